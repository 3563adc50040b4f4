"""The tables and figures of five papers, each from one call: ``papers.kdd08.figure9({"ohsumed": folds})``.

One module for each paper, named after its venue and year. `exhibits` lists all tables and figures; docs/reproduction.md states
which of them come out, on which data.
"""

import importlib

from structrank._support.lazy import lazy

_PAPERS = ("kdd08", "www11", "sigir09", "msr07", "aaai10")

__getattr__, __dir__, _ = lazy(__name__, __file__)
__all__ = [*_PAPERS, "exhibits"]


def exhibits():
    """Return all exhibits by paper and name, in the order of the papers.

    Returns
    -------
    dict
        From papers to dicts from names to `structrank.papers.exhibit.Exhibit`.

    Examples
    --------
    >>> from structrank import papers
    >>> papers.exhibits()["kdd08"]["figure9"].title
    'Figure 9: test measure by training criterion'
    """
    modules = {paper: importlib.import_module(f"{__name__}.{paper}") for paper in _PAPERS}
    return {paper: {name: getattr(module, name) for name in module.__all__} for paper, module in modules.items()}
