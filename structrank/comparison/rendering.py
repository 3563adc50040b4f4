"""The criterion table as text, CSV, LaTeX and HTML; each function takes a `CriterionTable`."""

from __future__ import annotations

import re
import textwrap

from structrank._support import html as write
from structrank._support.text import as_csv_text, as_html, printable
from structrank.comparison.significance import SIGNIFICANT

_WIDTH = 100
_CAPTION = "Rows: what was trained on. Columns: data set and test measure, mean over all test queries; higher is better."
# A LaTeX row must not begin with [ or *, which would be read as an argument of the line before.
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "*": "{*}",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def text(table):
    """Return the table as plain text, data sets side by side while they fit."""
    lines = [_CAPTION, ""]
    for block in _blocks(table):
        lines += [*block, ""]
    for line in legend(table, "**", "* ", "< ", "v "):
        lines += textwrap.wrap(line, _WIDTH, subsequent_indent="   ")
    if table.notes:
        lines += ["", "!  Notes on training (in full in the report):"]
        for note in short_notes(table):
            lines += textwrap.wrap(note, _WIDTH, initial_indent="-  ", subsequent_indent="   ")
    return "\n".join(lines)


def csv(table):
    """Return the means as CSV, one row per trainer, and for each data set the number of folds with a vacuous bound."""
    frame = table.to_frame()
    frame.columns = [f"{dataset} {measure}" for dataset, measure in frame.columns]
    for dataset in table.datasets:
        frame[f"{dataset} vacuous folds"] = [table.vacuous[name, dataset] for name in table.trainers]
    frame.columns, frame.index = frame.columns.map(as_csv_text), frame.index.map(as_csv_text)
    return frame.to_csv(lineterminator="\n")


def latex(table):
    """Return a LaTeX tabular, with the legend as comments."""
    width = len(table.measures)
    ends = [1 + (number + 1) * width for number in range(len(table.datasets))]
    rows = [
        ["", *(rf"\multicolumn{{{width}}}{{c}}{{{_latex(dataset)}}}" for dataset in table.datasets)],
        ["trained on", *(_latex(measure) for _, measure in table.columns)],
        *([_latex(name), *texts] for name, texts in _rows(table, r"\textbf{%s}", r"\underline{%s}", "%s$^{%s}$")),
    ]
    titles, heads, *body = [" & ".join(row) + r" \\" for row in rows]
    rules = " ".join(rf"\cmidrule(lr){{{end - width + 1}-{end}}}" for end in ends)
    if table.n_above < len(body):
        body.insert(table.n_above, r"\midrule")
    lines = [f"% {line}" for line in [*legend(table, "bold:", "underlined:", "^{<}:", "^{v}:"), *short_notes(table)]]
    lines += [rf"\begin{{tabular}}{{l{'r' * width * len(table.datasets)}}}", r"\toprule", titles, rules, heads]
    lines += [r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(lines)


def html(table):
    """Return an HTML table with its legend and notes."""
    width = len(table.measures)
    titles = [f'<th colspan="{width}">{as_html(_title(table, dataset))}</th>' for dataset in table.datasets]
    heads = [["<th></th>", *titles], ["<th>trained on</th>", *(f"<th>{as_html(measure)}</th>" for _, measure in table.columns)]]
    body = []
    for number, (name, texts) in enumerate(_rows(table, "<b>%s</b>", "<u>%s</u>", "%s<sup>%s</sup>", as_html)):
        style = ' style="border-top: 2px solid"' if number == table.n_above else ""
        body.append(f"<tr{style}><th>{as_html(name)}</th>{''.join(f'<td>{text}</td>' for text in texts)}</tr>\n")
    shown = write.table(heads, body, ' style="border-collapse: collapse"', _CAPTION)
    notes = f"<p>Notes on training</p>{write.items(short_notes(table))}" if table.notes else ""
    below = write.items(legend(table, "bold:", "underlined:", "<:", "v:"))
    return f'<div class="structrank-table">\n{shown}\n{below}{notes}\n</div>\n'


def legend(table, best, second, below, vacuous):
    """Return lines that explain the marks, the measures, the preparation of the data and the queries that do not count."""
    return [
        f"{best} best of its column",
        f"{second} second best",
        f"{below} {BELOW} (the report has paired t-tests too)",
        *([f"{vacuous} {VACUOUS}"] if any(table.vacuous.values()) else []),
        *explanations(table),
    ]


BELOW = (
    f"significantly below the best: p <= {SIGNIFICANT} in a paired randomisation test over queries, with Holm's correction "
    "over the rows of the column"
)
VACUOUS = (
    "vacuous: in at least one fold no C makes the bound of this criterion fall below that of w = 0, so the model has learned "
    "almost nothing"
)


def explanations(table):
    """Return the lines of the legend that do not explain marks."""
    measures = [f"{name} ({text})" if text and text not in name else name for name, text in table.measure_settings.items()]
    missing = [
        f"{dataset} {measure}: {count} of {len(table.query_ids[dataset])}"
        for (dataset, measure), count in table.undefined.items()
        if count
    ]
    lines = [
        *(["Rows below the rule are not in the KDD 2008 paper"] if table.n_above < len(table.trainers) else []),
        f"Measures: {'; '.join(measures)}",
        *table.settings.get("preparation", ()),
        f"Undefined test queries, excluded from the means: {'; '.join(missing) or 'none'}",
        *(f"Identical rankings on {dataset}: {' = '.join(names)}" for dataset, names in table.identical),
    ]
    return list(map(printable, lines))


def short_notes(table):
    """Return the first sentence of each note and where it applies; notes that begin alike share a line."""
    grouped = {}
    for (trainer, dataset, _), texts in table.notes.items():
        for note in texts:
            start = re.split(r"[:;.,]\s", note, maxsplit=1)[0]
            sentence = re.split(r"(?<=[.!?])\s", note, maxsplit=1)[0]
            sentences, places = grouped.setdefault((trainer, start), (set(), {}))
            sentences.add(sentence)
            places[dataset] = places.get(dataset, 0) + 1
    notes = []
    for (trainer, start), (sentences, places) in sorted(grouped.items(), key=lambda item: table.trainers.index(item[0][0])):
        where = [
            dataset if table.n_folds[dataset] == 1 else f"{dataset} ({count} of {table.n_folds[dataset]} folds)"
            for dataset, count in places.items()
        ]
        content = sentences.pop() if len(sentences) == 1 else f"{start}."
        notes.append(printable(f"{trainer} on {', '.join(where)}: {' '.join(content.split())}"))
    return notes


def _rows(table, best, second, signed, escape=str):
    """Yield each trainer with the texts of its row.

    `best` and `second` are formats for values, as in "<b>%s</b>"; `signed` is one for a value and its signs, "<" and "v".
    """
    marks = table.marks()
    for name in table.trainers:
        texts = []
        for column in table.columns:
            value, mark = f"{table.means[name, *column]:.3f}", marks[name, *column]
            stars = mark.rstrip("<v")
            value = {"**": best, "*": second}.get(stars, "%s") % value
            texts.append(signed % (value, escape(mark[len(stars) :])) if mark != stars else value)
        yield name, texts


def _title(table, dataset):
    n_queries = table.n_queries[dataset]
    return f"{printable(dataset)} ({n_queries} test {'query' if n_queries == 1 else 'queries'})"


def _blocks(table):
    noted = {trainer for trainer, _, _ in table.notes}
    rows = list(_rows(table, "%s **", "%s *", "%s %s"))
    heads = _padded(
        ["", "trained on", *(f"{printable(name)} !" if name in noted else printable(name) for name in table.trainers)]
    )
    blocks = []
    for number, dataset in enumerate(table.datasets):
        places = range(number * len(table.measures), (number + 1) * len(table.measures))
        columns = [
            _padded([printable(name), *(texts[place] for _, texts in rows)], at_least=8)
            for name, place in zip(table.measures, places, strict=True)
        ]
        lines = _padded([_title(table, dataset), *map("  ".join, zip(*columns, strict=True))])
        if blocks and len(blocks[-1][0]) + 3 + len(lines[0]) <= _WIDTH:
            blocks[-1] = list(map("   ".join, zip(blocks[-1], lines, strict=True)))
        else:
            blocks.append(list(map("   ".join, zip(heads, lines, strict=True))))
    if table.n_above < len(table.trainers):
        for block in blocks:
            block.insert(2 + table.n_above, "-" * len(block[0]))
    return [[line.rstrip() for line in block] for block in blocks]


def _padded(texts, at_least=0):
    width = max(at_least, *map(len, texts))
    return [text.ljust(width) for text in texts]


def _latex(text):
    return "".join(_LATEX.get(letter, letter) for letter in printable(text))
