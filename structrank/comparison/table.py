"""The train-vs-test criterion table: which criterion to train on, for each test measure."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from structrank import metrics
from structrank._support import checks
from structrank._support.files import replace_file
from structrank._support.typing import DataFrame
from structrank._support.typing import Path as Pathlike
from structrank.comparison import rendering, runs, significance
from structrank.comparison.report.page import write_report
from structrank.comparison.trainers import is_below_the_rule
from structrank.datasets.queries import group_by_query
from structrank.selection.graded import graded_order

_TEST_COLUMNS = ("best", "difference", "standard_error_ratio", "p_t", "p_t_holm", "p_randomisation", "p_randomisation_holm")


class CriterionTable:
    """Test measures by training criterion, as returned by `compare`.

    Printing shows the table, with marks for the best two of each column, for rows significantly below the best, and for
    vacuous training. Rows below the rule are not in the KDD 2008 paper.

    Parameters
    ----------
    cells : list of Cell
        One for each data set, fold and trainer.
    folds : dict
        From data set names to lists of folds.
    measures : list of Measure, or dict from names to these
    random_state : int, default 0
        Seed of the randomisation tests.
    settings : dict, default None
        The other arguments of `structrank.compare`, which the report shows.

    Attributes
    ----------
    trainers, datasets, measures : list of str
        Names, in the order of rows and columns.
    n_folds : dict
        From data set to its number of folds.
    n_queries : dict
        From data set to the number of test queries for which a measure is defined.
    per_query : dict
        From (trainer, data set, measure) to a (n_queries,) array: the pooled test queries, fold after fold; nan where
        the measure is undefined.
    query_ids : dict
        From data set to the (n_queries,) ids, in the same order.
    undefined : dict
        From (data set, measure) to the number of test queries for which the measure is undefined; they are excluded from
        the means.
    vacuous : dict
        From (trainer, data set) to the number of folds with a vacuous bound, see `structrank.training.health`.
    notes : dict
        From (trainer, data set, fold from 0) to the notes of the trained model, where it has any.

    Examples
    --------
    >>> from structrank import compare, datasets
    >>> fold = datasets.make_ranking(n_queries=40, n_docs=10, n_features=3, noise=0.2, random_state=0)
    >>> table = compare({"made": fold}, trainers=["AUC", "MAP"], measures="map", Cs=[1.0])
    >>> table.per_query["MAP", "made", "map"].shape
    (8,)
    >>> table.details()[["C"]]
                              C
    data set fold trainer
    made     0    AUC       1.0
                  MAP       1.0
    """

    def __init__(self, cells, folds, measures, random_state=0, settings=None):
        self.cells = list(cells)
        self.folds, self.settings = dict(folds), settings or {}
        self.random_state = random_state
        self.trainers = list(dict.fromkeys(cell.trainer for cell in self.cells))
        self.datasets = list(folds)
        named = dict(measures) if isinstance(measures, Mapping) else metrics.parse_all(measures)
        self.measures = list(named)
        self.measure_settings = {name: measure.settings for name, measure in named.items()}
        self.n_folds = {dataset: len(its_folds) for dataset, its_folds in folds.items()}
        self.query_ids = {
            dataset: np.concatenate([group_by_query(fold.test.qid, len(fold.test.y)).ids for fold in its_folds])
            for dataset, its_folds in folds.items()
        }
        pieces = {}
        for cell in self.cells:
            test = folds[cell.dataset][cell.fold].test
            values = metrics.evaluate(test.y, cell.scores, test.qid, list(named.values()), per_query=True)
            for name, array in zip(named, values.values(), strict=True):
                pieces.setdefault((cell.trainer, cell.dataset, name), {})[cell.fold] = array
        self.per_query = {
            key: np.concatenate([arrays[number] for number in range(self.n_folds[key[1]])]) for key, arrays in pieces.items()
        }
        self.undefined = {
            (dataset, name): int(np.isnan(self.per_query[self.trainers[0], dataset, name]).sum())
            for dataset, name in self.columns
        }
        self.n_queries = {
            dataset: len(ids) - min(self.undefined[dataset, name] for name in self.measures)
            for dataset, ids in self.query_ids.items()
        }
        self.vacuous = dict.fromkeys(itertools.product(self.trainers, self.datasets), 0)
        for cell in self.cells:
            self.vacuous[cell.trainer, cell.dataset] += bool(cell.vacuous)
        self.notes = {(cell.trainer, cell.dataset, cell.fold): cell.notes for cell in self.cells if cell.notes}

    @property
    def columns(self):
        """Pairs (data set, measure), in the order of the columns."""
        return list(itertools.product(self.datasets, self.measures))

    @property
    def n_above(self):
        """Number of rows above the rule: all, if there are no rows below it, or none above."""
        below = [number for number, name in enumerate(self.trainers) if is_below_the_rule(name)]
        return below[0] if below and below[0] > 0 else len(self.trainers)

    @functools.cached_property
    def identical(self):
        """Groups of rows with the same ranking of every test query: pairs of a data set and a list of trainers."""
        found = []
        for dataset in self.datasets:
            rankings = {}
            for cell in self.cells:
                if cell.dataset == dataset:
                    rankings.setdefault(cell.trainer, []).append(_ranking(self.folds[dataset][cell.fold].test, cell.scores))
            same = {}
            for name, ranking in rankings.items():
                same.setdefault(b"".join(ranking), []).append(name)
            found += [(dataset, names) for names in same.values() if len(names) > 1]
        return found

    @functools.cached_property
    def means(self):
        """Means over the pooled test queries, by (trainer, data set, measure)."""
        return {key: metrics.mean_of_defined(values) for key, values in self.per_query.items()}

    def _best(self, dataset, measure):
        """Return the trainer with the largest mean of a column; None if all are undefined."""
        defined = [name for name in self.trainers if not math.isnan(self.means[name, dataset, measure])]
        return max(defined, key=lambda name: self.means[name, dataset, measure], default=None)

    @functools.cached_property
    def _tests(self):
        """The record of each comparison with a column's best, by (data set, measure, trainer)."""
        records = {}
        for dataset, measure in self.columns:
            best = self._best(dataset, measure)
            others = [name for name in self.trainers if name != best] if best is not None else []
            for name in others:
                pair = self.per_query[name, dataset, measure], self.per_query[best, dataset, measure]
                records[dataset, measure, name] = {
                    "best": best,
                    "difference": self.means[name, dataset, measure] - self.means[best, dataset, measure],
                    "standard_error_ratio": significance.standard_error_ratio(*pair),
                    "p_t": significance.paired_t_test(*pair),
                    "p_randomisation": significance.paired_randomisation_test(*pair, random_state=self.random_state),
                }
            column = [records[dataset, measure, name] for name in others]
            for test in ("p_t", "p_randomisation"):
                for record, p in zip(column, significance.holm([record[test] for record in column]).tolist(), strict=True):
                    record[f"{test}_holm"] = p
        return records

    def to_frame(self) -> DataFrame:
        """Return the means as a pandas frame: rows are trainers, columns are (data set, measure)."""
        import pandas as pd

        columns = pd.MultiIndex.from_tuples(self.columns, names=["data set", "measure"])
        rows = [[self.means[name, *column] for column in columns] for name in self.trainers]
        return pd.DataFrame(rows, index=pd.Index(self.trainers, name="trained on"), columns=columns)

    def order(self, measures: str | Sequence[str], dataset: str | None = None) -> list[str]:
        """Return the rows, best first, by a graded measure: its first measure, where equal its second, and so on.

        Parameters
        ----------
        measures : str or list of str
            Names of columns, in order of importance; see `structrank.selection.graded.graded_order`.
        dataset : str, default None
            Data set of the columns; None if there is only one.

        Examples
        --------
        >>> from structrank import compare, datasets
        >>> fold = datasets.make_ranking(n_queries=40, n_docs=10, n_features=3, noise=0.5, random_state=0)
        >>> table = compare({"made": fold}, trainers=["AUC", "MAP", "NDCG"], measures=["mrr@1", "map"], Cs=[1.0])
        >>> table.to_frame().round(3)
        data set    made
        measure    mrr@1    map
        trained on
        AUC         0.75  0.813
        MAP         0.75  0.817
        NDCG        0.75  0.801
        >>> table.order(["mrr@1", "map"])
        ['MAP', 'AUC', 'NDCG']
        """
        if dataset is None and len(self.datasets) > 1:
            raise ValueError(f"the table has {len(self.datasets)} data sets; pass dataset=, one of {', '.join(self.datasets)}.")
        dataset = checks.check_choice("dataset", self.datasets[0] if dataset is None else dataset, self.datasets)
        names = [measures] if isinstance(measures, str) else list(measures)
        if not names:
            raise ValueError("measures is empty; expected at least one column.")
        for name in names:
            checks.check_choice("measures", name, self.measures)
        values = [[self.means[trainer, dataset, name] for name in names] for trainer in self.trainers]
        return [self.trainers[row] for row in graded_order(values)]

    def significance(self) -> DataFrame:
        """Test each row against the best of each column, paired by query.

        Both tests are two-sided, with Holm's correction over the rows of a column. The best row is chosen on the same queries,
        so p-values are optimistic about differences from it.

        Returns
        -------
        pandas.DataFrame
            A row for each (data set, measure, trainer) but the best; columns ``best``, ``difference`` (of the means,
            negative), ``standard_error_ratio`` (of the difference to its standard error), ``p_t``, ``p_t_holm`` (paired
            t-test), ``p_randomisation``, ``p_randomisation_holm``.
        """
        import pandas as pd

        index = pd.MultiIndex.from_tuples(list(self._tests), names=["data set", "measure", "trainer"])
        return pd.DataFrame(list(self._tests.values()), index=index, columns=_TEST_COLUMNS)

    def details(self) -> DataFrame:
        """Return the chosen C, the training time and the notes of each cell.

        Returns
        -------
        pandas.DataFrame
            Index (data set, fold, trainer); columns ``C``, ``validation`` (the mean score of that C over validation queries
            and inner folds), ``seconds``, ``notes``, ``vacuous`` (whether the bound of a structured SVM is vacuous).
        """
        import pandas as pd

        frame = pd.DataFrame([cell.record() for cell in self.cells]).rename(columns={"dataset": "data set"})
        return frame.set_index(["data set", "fold", "trainer"])

    def marks(self) -> dict[tuple[str, str, str], str]:
        """Return the marks: "**" best of a column, "*" second best, "<" significantly below the best, "v" vacuous.

        Rows of equal mean share a mark; where two share the first, there is no second. "<" is the randomisation test with
        Holm's correction at the 5 % level, see `significance`. "v" means that the convex bound was vacuous in one of the folds
        or more: the criterion did not react to these data, and the row is not what the criterion can achieve.

        Returns
        -------
        dict
            From (trainer, data set, measure) to one of "**", "*" and "", followed by "<" and by "v" where they apply.
        """
        marks = {}
        for dataset, measure in self.columns:
            for name in self.trainers:
                mean = self.means[name, dataset, measure]
                better = sum(self.means[other, dataset, measure] > mean for other in self.trainers)
                mark = "" if math.isnan(mean) else {0: "**", 1: "*"}.get(better, "")
                test = self._tests.get((dataset, measure, name))
                if test is not None and test["p_randomisation_holm"] <= significance.SIGNIFICANT:
                    mark += "<"
                mark += "v" if self.vacuous[name, dataset] else ""
                marks[name, dataset, measure] = mark
        return marks

    def to_csv(self, path: Pathlike | None = None) -> str:
        """Return the means as CSV, one row per trainer; with `path`, also write them there.

        A last column for each data set counts the folds with a vacuous bound.
        """
        return self._deliver(rendering.csv(self), path)

    def to_latex(self, path: Pathlike | None = None) -> str:
        r"""Return a LaTeX tabular (it needs the package booktabs); with `path`, also write it there.

        The best of a column is bold, the second best underlined; $^{<}$ marks values significantly below the best, $^{v}$
        vacuous training.
        """
        return self._deliver(rendering.latex(self), path)

    def to_html(self, path: Pathlike | None = None) -> str:
        """Return an HTML table with its legend and notes; with `path`, also write it there.

        The best of a column is bold, the second best underlined; a small < marks values significantly below the best, a small v
        vacuous training.
        """
        return self._deliver(rendering.html(self), path)

    def to_report(self, path: Pathlike) -> None:
        """Write a report as one HTML file that needs no network, no other file and no server.

        The page has the table with its marks (sortable), figures, for any two trainers the queries that gained or lost most
        with both rankings side by side, and a summary of data, settings and versions. For large comparisons it is limited to
        the first 50 documents of a ranking and to the queries on which trainers differ most, and says so.

        Parameters
        ----------
        path : path-like
            File to write, replaced atomically if it exists. Its folder must exist.
        """
        write_report(self, path)

    def to_runs(self, folder: Pathlike) -> dict[tuple[str, str], Path]:
        """Write the rankings of all test queries as TREC runs, one for each data set and trainer, for other tools to measure.

        Parameters
        ----------
        folder : path-like
            Created if missing. Contains a folder for each data set, with ``qrels.txt`` (the labels) and ``TRAINER.run``, all
            folds in one; files of these names are replaced.

        Returns
        -------
        dict
            From (trainer, data set) to the path of the run.

        Notes
        -----
        Queries and documents are named as in `structrank.comparison.runs`. Where a query is in several test parts, ids are
        preceded by the fold, as in "fold2-17". A warning names runs with tied scores, which other tools rank in some order.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from structrank import compare, datasets
        >>> fold = datasets.make_ranking(n_queries=40, n_docs=10, n_features=3, noise=0.2, random_state=0)
        >>> table = compare({"made": fold}, trainers=["AUC", "MRR (phi_po)"], measures="map", Cs=[1.0])
        >>> with TemporaryDirectory() as folder:
        ...     paths = table.to_runs(folder)
        ...     sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*.*"))
        ['made/AUC.run', 'made/MRR-phi-po.run', 'made/qrels.txt']
        """
        return runs.write_table(self, folder)

    def _repr_html_(self):
        return rendering.html(self)

    def __repr__(self):
        return rendering.text(self)

    @staticmethod
    def _deliver(text, path):
        if path is not None:
            replace_file(path, text.encode(), "the table")
        return text


def _ranking(part, scores):
    """Return the ranking of each query by scores, ties included, as bytes."""
    grouping = group_by_query(part.qid, len(part.y))
    order, ranked = metrics.sort_queries(scores, grouping.indptr, grouping.rows)
    return order.tobytes() + np.packbits(ranked[1:] == ranked[:-1]).tobytes()
