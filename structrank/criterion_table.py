"""The train-vs-test criterion table: which loss to train on, for the measure that one is judged by."""

from __future__ import annotations

import functools
import html
import itertools
import math
import re
import textwrap
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from structrank import metrics, runs, significance
from structrank._files import replace_file
from structrank._validation import StructRankWarning
from structrank.cells import as_file_name
from structrank.data import group_by_query

if TYPE_CHECKING:
    import pandas as pd

    from structrank._typing import Path as Pathlike

# Rows below a column's best by this p-value or less are marked.
SIGNIFICANT = 0.05
# What a test against the best of a column tells.
_TEST_COLUMNS = (
    "best", "difference", "standard_error_ratio", "p_t", "p_t_holm", "p_randomisation", "p_randomisation_holm",
)  # fmt: skip


class CriterionTable:
    """Test measures by training criterion; made by `compare`.

    Printing it shows the table with the best two of each column marked, and rows that are significantly below the best.

    Parameters
    ----------
    cells : list of Cell
        For every data set, fold and trainer.
    tests : dict
        From data set names to lists of test parts, one a fold.
    measures : list of Measure
    random_state : int, default 0
        Seed of the randomisation tests.
    folds, settings : dict, default None
        The data as `structrank.compare` took them, and what else was asked of it; the report shows both.

    Attributes
    ----------
    cells : list of Cell
    tests : dict
        From data set names to lists of test parts, one a fold.
    trainers, datasets, measures : list of str
        Names, in the order of rows and columns.
    n_folds : dict
        From data set to its number of folds.
    per_query : dict
        From (trainer, data set, measure) to a (n_queries,) array: the pooled test queries, fold after fold; nan where
        the measure is undefined.
    query_ids : dict
        From data set to the (n_queries,) ids, in the same order.
    undefined : dict
        From (data set, measure) to the number of test queries for which the measure is undefined; they are left out of
        the means.
    notes : dict
        From (trainer, data set, fold from 0) to the warnings that training raised, where there were some.

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

    def __init__(self, cells, tests, measures, random_state=0, folds=None, settings=None):
        self.cells = list(cells)
        self.folds, self.settings = folds, settings
        self.random_state = random_state
        self.trainers = list(dict.fromkeys(cell.trainer for cell in self.cells))
        self.tests = dict(tests)
        self.datasets = list(tests)
        self.measures = [measure.name for measure in measures]
        self._settings = {measure.name: measure.settings for measure in measures}
        self.n_folds = {dataset: len(parts) for dataset, parts in tests.items()}
        self.query_ids = {
            dataset: np.concatenate([group_by_query(part.qid, len(part.y)).ids for part in parts])
            for dataset, parts in tests.items()
        }
        pieces = {}
        for cell in self.cells:
            test = tests[cell.dataset][cell.fold]
            values = metrics.evaluate(test.y, cell.scores, test.qid, measures, per_query=True)
            for name, array in values.items():
                pieces.setdefault((cell.trainer, cell.dataset, name), {})[cell.fold] = array
        self.per_query = {
            key: np.concatenate([arrays[number] for number in range(self.n_folds[key[1]])])
            for key, arrays in pieces.items()
        }
        self.undefined = {
            (dataset, name): int(np.isnan(self.per_query[self.trainers[0], dataset, name]).sum())
            for dataset, name in self._columns()
        }
        self.notes = {(cell.trainer, cell.dataset, cell.fold): cell.notes for cell in self.cells if cell.notes}

    def _columns(self):
        return list(itertools.product(self.datasets, self.measures))

    @functools.cached_property
    def _means(self):
        return {key: _mean(values) for key, values in self.per_query.items()}

    def _best(self, dataset, measure):
        """Give the trainer with the largest mean of a column; None where all are undefined."""
        defined = [name for name in self.trainers if not math.isnan(self._means[name, dataset, measure])]
        return max(defined, key=lambda name: self._means[name, dataset, measure], default=None)

    @functools.cached_property
    def _tests(self):
        """The record of each comparison with a column's best, by (data set, measure, trainer)."""
        records = {}
        for dataset, measure in self._columns():
            best = self._best(dataset, measure)
            others = [name for name in self.trainers if name != best] if best is not None else []
            column = {name: self.per_query[name, dataset, measure] for name in self.trainers}
            tests = {
                "p_t": [significance.paired_t_test(column[name], column[best]) for name in others],
                "p_randomisation": [
                    significance.paired_randomisation_test(column[name], column[best], random_state=self.random_state)
                    for name in others
                ],
            }
            tests = {
                key: values
                for test, p_values in tests.items()
                for key, values in ((test, p_values), (f"{test}_holm", significance.holm(p_values)))
            }
            for number, name in enumerate(others):
                records[dataset, measure, name] = {
                    "best": best,
                    "difference": self._means[name, dataset, measure] - self._means[best, dataset, measure],
                    "standard_error_ratio": significance.standard_error_ratio(column[name], column[best]),
                    **{key: float(values[number]) for key, values in tests.items()},
                }
        return records

    def to_frame(self) -> pd.DataFrame:
        """Give the means as a pandas frame: rows are trainers, columns are (data set, measure).

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        columns = pd.MultiIndex.from_tuples(self._columns(), names=["data set", "measure"])
        rows = [[self._means[name, *column] for column in columns] for name in self.trainers]
        return pd.DataFrame(rows, index=pd.Index(self.trainers, name="trained on"), columns=columns)

    def significance(self) -> pd.DataFrame:
        """Test each row against the best of each column, paired by query.

        Both tests are two-sided. The correction is Holm's, over the rows of a column. The best is the best on these very
        queries, so a p-value says how firmly they set a row below it, not what other queries would.

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

    def details(self) -> pd.DataFrame:
        """Give what was chosen, how long it took and what was noted, cell by cell.

        Returns
        -------
        pandas.DataFrame
            Index (data set, fold, trainer); columns ``C``, ``validation`` (what that C reached on validation queries),
            ``seconds``, ``notes``, ``vacuous`` (whether a structured SVM has learned next to nothing).
        """
        import pandas as pd

        frame = pd.DataFrame([cell.record() for cell in self.cells]).rename(columns={"dataset": "data set"})
        return frame.set_index(["data set", "fold", "trainer"])

    def marks(self) -> dict[tuple[str, str, str], str]:
        """Give the marks: "**" for the best of a column, "*" for the second best, "<" for significantly below the best.

        Rows of equal mean share a mark; where two share the first, there is no second. "<" is the randomisation test with
        Holm's correction at the 5 % level, see `significance`.

        Returns
        -------
        dict
            From (trainer, data set, measure) to "**", "*", "<", "*<" or "".
        """
        marks = {}
        for dataset, measure in self._columns():
            for name in self.trainers:
                mean = self._means[name, dataset, measure]
                better = sum(self._means[other, dataset, measure] > mean for other in self.trainers)
                mark = "" if math.isnan(mean) else {0: "**", 1: "*"}.get(better, "")
                test = self._tests.get((dataset, measure, name))
                if test is not None and test["p_randomisation_holm"] <= SIGNIFICANT:
                    mark += "<"
                marks[name, dataset, measure] = mark
        return marks

    def to_csv(self, path: Pathlike | None = None) -> str:
        """Give the means as CSV, one row a trainer; with `path`, write them there."""
        frame = self.to_frame()
        frame.columns = [f"{dataset} {measure}" for dataset, measure in frame.columns]
        return _deliver(frame.to_csv(lineterminator="\n"), path)

    def to_latex(self, path: Pathlike | None = None) -> str:
        r"""Give a LaTeX tabular (for the package booktabs); with `path`, write it there.

        The best of a column is bold, the second underlined, and $^{<}$ follows what is significantly below the best.
        """
        width = len(self.measures)
        ends = [1 + (number + 1) * width for number in range(len(self.datasets))]
        rows = [
            ["", *(rf"\multicolumn{{{width}}}{{c}}{{{_latex(dataset)}}}" for dataset in self.datasets)],
            ["trained on", *(_latex(measure) for _, measure in self._columns())],
            *([_latex(name), *texts] for name, texts in self._rows(r"\textbf{%s}", r"\underline{%s}", "%s$^{<}$")),
        ]
        titles, heads, *body = [" & ".join(row) + r" \\" for row in rows]
        rules = " ".join(rf"\cmidrule(lr){{{end - width + 1}-{end}}}" for end in ends)
        lines = [f"% {line}" for line in self._legend("bold:", "underlined:", "^{<}:")]
        lines += [rf"\begin{{tabular}}{{l{'r' * width * len(self.datasets)}}}", r"\toprule", titles, rules, heads]
        lines += [r"\midrule", *body, r"\bottomrule", r"\end{tabular}", ""]
        return _deliver("\n".join(lines), path)

    def to_html(self, path: Pathlike | None = None) -> str:
        """Give an HTML table with its legend and notes; with `path`, write it there.

        The best of a column is bold, the second underlined, and a small < follows what is significantly below the best.
        """
        width = len(self.measures)
        titles = "".join(f'<th colspan="{width}">{html.escape(self._title(dataset))}</th>' for dataset in self.datasets)
        heads = "".join(f"<th>{html.escape(measure)}</th>" for _, measure in self._columns())
        lines = ['<div class="structrank-table">', "<table>", f"<caption>{html.escape(_CAPTION)}</caption>"]
        lines += [f"<thead><tr><th></th>{titles}</tr>", f"<tr><th>trained on</th>{heads}</tr></thead>", "<tbody>"]
        for name, texts in self._rows("<b>%s</b>", "<u>%s</u>", "%s<sup>&lt;</sup>"):
            lines.append(f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{text}</td>' for text in texts)}</tr>")
        lines += ["</tbody>", "</table>"]
        for heading, items in (
            ("", self._legend("bold:", "underlined:", "<:")),
            ("Notes on training", self._short_notes()),
        ):
            if items:
                items = "".join(f"<li>{html.escape(item)}</li>" for item in items)
                lines.append(f"<p>{heading}</p><ul>{items}</ul>" if heading else f"<ul>{items}</ul>")
        return _deliver("\n".join([*lines, "</div>", ""]), path)

    def to_report(self, path: Pathlike, datasets: Mapping[str, Any] | None = None) -> None:
        """Write a self-contained HTML report: the table, figures, queries and their rankings, data, settings, versions.

        Parameters
        ----------
        path : path-like
            A file of that name is replaced in one step.
        datasets : dict, default None
            The data sets as `compare` took them, for rankings and the summary of the data.

        See Also
        --------
        structrank.report.write_report : Says more of what the report holds.
        """
        from structrank.report import write_report

        write_report(self, path, datasets)

    def to_runs(self, folder: Pathlike) -> dict[tuple[str, str], Path]:
        """Write the rankings of all test queries as TREC runs, one for each data set and trainer, for other tools to measure.

        Parameters
        ----------
        folder : path-like
            Made where it is missing. Gets a folder for each data set, with ``qrels.txt`` (the labels) and ``TRAINER.run``, all
            folds in one; files of these names are replaced.

        Returns
        -------
        dict
            From (trainer, data set) to the path of the run.

        Notes
        -----
        Queries and documents are named as `structrank.runs` names them. Where a query is in the test parts of several folds,
        which the table counts once for each, ids are preceded by the fold, as in "fold2-17". A warning tells where scores are
        tied, because other tools rank tied documents in some order and the table averages over all orders.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from structrank import compare, datasets
        >>> fold = datasets.make_ranking(n_queries=40, n_docs=10, n_features=3, noise=0.2, random_state=0)
        >>> table = compare({"made": fold}, trainers=["AUC", "MRR (map po)"], measures="map", Cs=[1.0])
        >>> with TemporaryDirectory() as folder:
        ...     paths = table.to_runs(folder)
        ...     sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*.*"))
        ['made/AUC.run', 'made/MRR-map-po.run', 'made/qrels.txt']
        """
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"folder={str(folder)!r} is a file; expected a folder, or a new name for one.")
        paths, tied = {}, {}
        for dataset, name in _file_names(self.datasets).items():
            pooled = runs.pool(self.tests[dataset])
            (folder / name).mkdir(parents=True, exist_ok=True)
            runs.write_qrels(folder / name / "qrels.txt", pooled)
            for trainer, tag in _file_names(self.trainers).items():
                cells = {cell.fold: cell for cell in self.cells if (cell.dataset, cell.trainer) == (dataset, trainer)}
                scores = np.concatenate([cells[number].scores for number in range(self.n_folds[dataset])])
                paths[trainer, dataset] = folder / name / f"{tag}.run"
                runs.write_run(paths[trainer, dataset], pooled, scores, tag)
                count = runs.count_ties(pooled.qid, scores)
                if count:
                    tied[f"{trainer} on {dataset}"] = count / len(scores)
        if tied:
            most = max(tied, key=lambda name: tied[name])
            warnings.warn(
                f"{len(tied)} of {len(paths)} runs have scores that equal another of their query (most in {most}: "
                f"{tied[most]:.1%} of the documents). Other tools rank these by document id or by row, where the table "
                "averages over all their orders, so that means may differ a little.",
                StructRankWarning,
                stacklevel=2,
            )
        return paths

    def _repr_html_(self):
        return self.to_html()

    def __repr__(self):
        lines = [_CAPTION, ""]
        for block in self._blocks():
            lines += [*block, ""]
        for line in self._legend("**", "* ", "< "):
            lines += textwrap.wrap(line, _WIDTH, subsequent_indent="   ")
        if self.notes:
            lines += ["", "!  Notes on training (in full in .notes):"]
            for note in self._short_notes():
                lines += textwrap.wrap(note, _WIDTH, initial_indent="-  ", subsequent_indent="   ")
        return "\n".join(lines)

    def _rows(self, best, second, below):
        """Yield each trainer with the texts of its row; the arguments show how to write marked ones, as in "<b>%s</b>"."""
        marks = self.marks()
        for name in self.trainers:
            texts = []
            for column in self._columns():
                text, mark = f"{self._means[name, *column]:.3f}", marks[name, *column]
                for sign, style in (("**", best), ("*", second)):
                    if mark.rstrip("<") == sign:
                        text = style % text
                texts.append(below % text if "<" in mark else text)
            yield name, texts

    def _title(self, dataset):
        n_queries = len(self.query_ids[dataset])
        return f"{dataset} ({n_queries} test {'query' if n_queries == 1 else 'queries'})"

    def _blocks(self):
        """Give the table as blocks of lines, data sets side by side while they fit."""
        noted = {trainer for trainer, _, _ in self.notes}
        rows = list(self._rows("%s **", "%s *", "%s <"))
        heads = _padded(["", "trained on", *(f"{name} !" if name in noted else name for name in self.trainers)])
        blocks = []
        for number, dataset in enumerate(self.datasets):
            places = range(number * len(self.measures), (number + 1) * len(self.measures))
            columns = [
                _padded([name, *(texts[place] for _, texts in rows)], at_least=8)
                for name, place in zip(self.measures, places, strict=True)
            ]
            lines = _padded([self._title(dataset), *map("  ".join, zip(*columns, strict=True))])
            if blocks and len(blocks[-1][0]) + 3 + len(lines[0]) <= _WIDTH:
                blocks[-1] = list(map("   ".join, zip(blocks[-1], lines, strict=True)))
            else:
                blocks.append(list(map("   ".join, zip(heads, lines, strict=True))))
        return [[line.rstrip() for line in block] for block in blocks]

    def _legend(self, best, second, below):
        """Give lines that say what the marks, the measures and the gaps mean."""
        measures = [f"{name} ({text})" if text else name for name, text in self._settings.items()]
        missing = [
            f"{dataset} {measure}: {count} of {len(self.query_ids[dataset])}"
            for (dataset, measure), count in self.undefined.items()
            if count
        ]
        return [
            f"{best} best of its column",
            f"{second} second best",
            f"{below} significantly below the best: p <= {SIGNIFICANT} in a paired randomisation test over queries, with "
            "Holm's correction over the rows of the column (paired t-test: see .significance())",
            f"Measures: {'; '.join(measures)}",
            f"Undefined test queries, left out of the means: {'; '.join(missing) or 'none'}",
        ]

    def _short_notes(self):
        """Give the first sentences of the notes, with where they were made; of several that begin alike, how they begin."""
        grouped = {}
        for (trainer, dataset, _), texts in self.notes.items():
            for text in texts:
                start = re.split(r"[:;.,]\s", text, maxsplit=1)[0]
                sentence = re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]
                sentences, places = grouped.setdefault((trainer, start), (set(), {}))
                sentences.add(sentence)
                places[dataset] = places.get(dataset, 0) + 1
        notes = []
        for (trainer, start), (sentences, places) in sorted(
            grouped.items(), key=lambda item: self.trainers.index(item[0][0])
        ):
            where = [
                dataset if self.n_folds[dataset] == 1 else f"{dataset} ({count} of {self.n_folds[dataset]} folds)"
                for dataset, count in places.items()
            ]
            said = sentences.pop() if len(sentences) == 1 else f"{start}."
            notes.append(f"{trainer} on {', '.join(where)}: {said}")
        return notes


_WIDTH = 100
_CAPTION = (
    "Rows: what was trained on. Columns: data set and test measure, mean over all test queries; higher is better."
)


def _mean(values):
    """Give the mean of what is not nan; an exact sum, so that the order of the queries does not show."""
    defined = values[~np.isnan(values)]
    return math.fsum(defined) / defined.size if defined.size else math.nan


def _file_names(names):
    """Give each name as a file name, no two alike, whatever a file system makes of capital letters."""
    found = {}
    for name in names:
        wanted = as_file_name(name) or "unnamed"
        taken = {other.lower() for other in found.values()}
        numbered = (f"{wanted}-{number}" for number in itertools.count(2))
        found[name] = next(one for one in itertools.chain([wanted], numbered) if one.lower() not in taken)
    return found


def _padded(texts, at_least=0):
    width = max(at_least, *map(len, texts))
    return [text.ljust(width) for text in texts]


def _latex(text):
    # A row must not begin with [ or *, which LaTeX would take for arguments of the line before.
    special = {
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "|": r"\textbar{}", "[": "{[}", "*": "{*}",
    }  # fmt: skip
    return "".join(special.get(letter, f"\\{letter}" if letter in "&%$#_{}" else letter) for letter in text)


def _deliver(text, path):
    """Give a text; with a path, write it there too."""
    if path is not None:
        replace_file(path, text.encode(), "the table")
    return text
