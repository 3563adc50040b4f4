"""The self-contained HTML report of a criterion table.

`contents` collects the data, `page` renders HTML, and ``report.html`` and ``report.js`` are shared by all reports.
"""
