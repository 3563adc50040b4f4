"""Rankings as files that other tools read: TREC runs and qrels, written and read.

A run has a line ``qid Q0 docid rank score tag`` for each document, a file of qrels a line ``qid 0 docid label``.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from structrank import metrics
from structrank._support import checks
from structrank._support.files import replace_file
from structrank._support.text import printable
from structrank._support.typing import ArrayLike, NDArray
from structrank._support.typing import Path as Pathlike
from structrank.comparison.cells import as_file_name
from structrank.datasets.containers import Dataset
from structrank.datasets.queries import group_by_query
from structrank.datasets.text_files import read_blocks

_FORMS = "a TREC run (qid Q0 docid rank score tag), a table as predict writes it (qid docid score rank), or one score per line"
_COLUMNS = {1: None, 4: (0, 1, 2), 6: (0, 2, 4)}  # number of columns -> where query, document and score are
# Infinity as `write_run` writes it. float() accepts more: 1_000, digits of other scripts, and 1e999 as infinity.
_SCORE = re.compile(r"-?inf|[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def write_run(path: Pathlike, data: Any, scores: ArrayLike, tag: str = "structrank") -> None:
    r"""Write scores as a TREC run: queries in order of first appearance, each by decreasing score, ties in row order.

    Parameters
    ----------
    path : path-like
        A file of that name is replaced.
    data : Dataset
        The scored data; any object with ``qid``, ``y`` and ``docid`` (or None). `query_names` and `document_names` define the
        names of queries and documents.
    scores : array-like of shape (n_docs,)
        Written so that they are read back bit for bit.
    tag : str, default "structrank"
        Last column, the name of the run.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> data = Dataset([[0.0], [1.0]], np.array([0, 1]), np.array([7, 7]), np.array(["a", "b"]))
    >>> with TemporaryDirectory() as folder:
    ...     write_run(f"{folder}/run.txt", data, [0.25, 0.5])
    ...     print(Path(folder, "run.txt").read_text(), end="")
    ...     read_scores(f"{folder}/run.txt", data)
    7 Q0 b 1 0.5 structrank
    7 Q0 a 2 0.25 structrank
    array([0.25, 0.5 ])
    """
    if not isinstance(tag, str) or not _are_words([tag]):
        raise ValueError(f"tag={tag!r} is not valid: expected a text without blanks.")
    lines = run_lines(query_names(data), document_names(data)[0], scores, tag)
    replace_file(path, "".join(lines).encode(), "the run")


def write_qrels(path: Pathlike, data: Any) -> None:
    """Write labels as qrels, with the names of queries and documents as in `write_run`.

    Parameters
    ----------
    path : path-like
        A file of that name is replaced.
    data : Dataset
        Any object with ``qid``, ``y`` and ``docid`` (or None). trec_eval reads labels as integers.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_qrels(f"{folder}/qrels.txt", Dataset([[0.0], [1.0]], np.array([0, 2]), np.array([7, 7])))
    ...     print(Path(folder, "qrels.txt").read_text(), end="")
    7 0 1 0
    7 0 2 2
    """
    labels = checks.as_labels(data.y, checks.count_rows(data.y, "y"), against="y")
    rows = zip(query_names(data), document_names(data)[0], labels.tolist(), strict=True)
    lines = [f"{qid} 0 {docid} {int(label) if label.is_integer() else label!r}\n" for qid, docid, label in rows]
    replace_file(path, "".join(lines).encode(), "the qrels")


def run_lines(queries: Sequence[str], documents: Sequence[str], scores: ArrayLike, tag: str = "structrank") -> list[str]:
    """Return the lines of a TREC run, see `write_run`, from the names of each row's query and document."""
    scores = checks.as_scores(scores, len(queries), against="the data")
    grouping = group_by_query(queries, len(queries))
    order, ranked_scores = metrics.sort_queries(scores, grouping.indptr, grouping.rows)
    ranks = np.arange(1, scores.shape[0] + 1) - np.repeat(grouping.indptr[:-1], grouping.sizes)
    ranked = zip(order.tolist(), ranks.tolist(), ranked_scores.tolist(), strict=True)
    return [f"{queries[row]} Q0 {documents[row]} {rank} {score!r} {tag}\n" for row, rank, score in ranked]


def pool(parts: Sequence[Any]) -> Dataset:
    """Return the test parts of several folds as one Dataset without X, named as in runs.

    Where a query is in several parts, the ids of all are preceded by "fold1-" and so on.

    Examples
    --------
    >>> parts = [Dataset(None, [0, 1], [7, 7]), Dataset(None, [1], [7])]
    >>> pool(parts).qid.tolist(), pool(parts).docid.tolist()
    (['fold1-7', 'fold1-7', 'fold2-7'], ['1', '2', '1'])
    """
    queries = [query_names(part) for part in parts]
    if sum(len(set(names)) for names in queries) > len(set().union(*queries)):
        queries = [[f"fold{number}-{name}" for name in names] for number, names in enumerate(queries, 1)]
    documents = [document_names(part)[0] for part in parts]
    labels = np.concatenate([checks.as_labels(part.y, len(part.y), against="y") for part in parts])
    return Dataset(None, labels, np.concatenate(queries), np.concatenate(documents))


def query_names(data: Any) -> list[str]:
    """Return the name of each row's query as in runs: its id as text.

    Where two ids are the same as text or one has blanks, all queries are numbered from 1.

    Examples
    --------
    >>> query_names(Dataset(None, [0, 1], ["hot", "dog"])), query_names(Dataset(None, [0, 1], ["hot dog", "dog"]))
    (['hot', 'dog'], ['1', '2'])
    """
    grouping = group_by_query(data.qid, len(data.y), against="y")
    names = list(map(str, grouping.ids.tolist()))
    if len(set(names)) < len(names) or not _are_words(names):
        names = [str(number) for number in range(1, len(names) + 1)]
    return [names[query] for query in grouping.query_of_row().tolist()]


def document_names(data: Any) -> tuple[list[str], bool]:
    """Return a name for each row, unique within its query, and whether it is a number.

    Rows are numbered from 1 where ids are missing, have blanks, or are not unique within a query.

    Examples
    --------
    >>> document_names(Dataset(None, [0, 1], [7, 7], ["a", "b"])), document_names(Dataset(None, [0, 1], [7, 7], ["a", "a"]))
    ((['a', 'b'], False), (['1', '2'], True))
    """
    docid = getattr(data, "docid", None)
    if docid is not None:
        names = list(map(str, checks.as_column(docid, len(data.y), "docid", against="y").tolist()))
        unique = len(set(names)) == len(names) or len(set(zip(query_names(data), names, strict=True))) == len(names)
        if unique and _are_words(names):
            return names, False
    return [str(number) for number in range(1, len(data.y) + 1)], True


def _are_words(names):
    """Return whether files can hold the names: none is empty, or has blanks, NUL, byte order marks or halves of surrogates."""
    text = "\n".join(names)
    return text.split() == names and not re.search("[\0\ufeff\ud800-\udfff]", text)


def count_ties(qid: ArrayLike, scores: ArrayLike) -> int:
    """Count the scores that are equal to another of their query as 32-bit numbers, as trec_eval reads them.

    trec_eval ranks such documents by their ids; `structrank.metrics` averages over all their orders.

    Examples
    --------
    >>> count_ties([7, 7, 8], [0.5, 0.5000000001, 0.5])
    2
    """
    scores = checks.as_scores(scores, checks.count_rows(scores, "scores"))
    with np.errstate(over="ignore"):
        rounded = scores.astype(np.float32).astype(np.float64)
    grouping = group_by_query(qid, rounded.shape[0])
    _, ranked = metrics.sort_queries(rounded, grouping.indptr, grouping.rows)
    equal = ranked[1:] == ranked[:-1]
    equal[grouping.indptr[1:-1] - 1] = False  # the last of a query and the first of the next
    return int(np.count_nonzero(np.append(equal, False) | np.append(False, equal)))


def read_scores(path: Pathlike, data: Any, data_name: str = "the data") -> NDArray[np.float64]:
    r"""Read the score of each row of the data from a TREC run, a table, or a list of scores.

    Parameters
    ----------
    path : path-like
        A TREC run; a table as the command ``structrank predict`` writes it (qid, docid, score, rank); or one score per
        line, in the order of the data. Every row of the data must have one score.
    data : Dataset
        Any object with ``qid``, ``y`` and ``docid`` (or None).
    data_name : str, default "the data"
        Name of the data in error messages.

    Returns
    -------
    (n_docs,) array

    Raises
    ------
    ValueError
        With file and line, what was found and what was expected.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "scores.txt").write_text("0.25\n0.5\n")
    ...     read_scores(f"{folder}/scores.txt", Dataset(None, [0, 1], [7, 7]))
    array([0.25, 0.5 ])
    """
    path = os.fspath(path)
    numbers, found_names, found, width = _read_lines(path)
    path = printable(path)
    n_docs = len(data.y)
    if not found or width == 1:
        if len(found) != n_docs:
            raise ValueError(f"{path} has {len(found)} scores, but {data_name} has {n_docs} rows; expected one each.")
        return np.array(found)
    documents, numbered = document_names(data)
    # A table has the ids of queries as they are, blanks and all.
    queries = list(map(str, np.asarray(data.qid).tolist())) if width == 4 else query_names(data)
    names = list(zip(queries, documents, strict=True))
    if numbered:
        data_name += ", whose rows are numbered from 1, as it has no document ids that are unique and without blanks"
    row_of = dict(zip(names, range(n_docs), strict=True))
    rows = np.array([row_of.get(name, -1) for name in found_names])
    again = np.ones(rows.size, dtype=bool)
    again[np.unique(rows, return_index=True)[1]] = False
    wrong = np.flatnonzero(again | (rows < 0))
    if wrong.size:
        (qid, docid), place = found_names[wrong[0]], f"{path}:{numbers[wrong[0]]}"
        if rows[wrong[0]] < 0:
            raise ValueError(f"{place}: found document {docid!r} of query {qid!r}, which is not in {data_name}.")
        raise ValueError(f"{place}: found document {docid!r} of query {qid!r} a second time.")
    scores, missing = np.empty(n_docs), np.ones(n_docs, dtype=bool)
    scores[rows], missing[rows] = found, False
    if missing.any():
        qid, docid = names[int(np.argmax(missing))]
        raise ValueError(
            f"{path} lacks document {docid!r} of query {qid!r} and {int(missing.sum()) - 1} others; "
            f"expected a score for every row of {data_name}."
        )
    return scores


def _lines(path):
    """Yield the numbers and texts of the lines of a file, which may be compressed."""
    for block in read_blocks(path):
        texts = bytes(block.text[: block.size]).decode("utf-8", "replace").split("\n")[:-1]
        yield from enumerate((text.strip(" \r") for text in texts), block.first_line)


def _read_lines(path):
    """Return the number, the names of query and document (where there are any) and the score of each line, and the columns."""
    numbers, names, scores, width = [], [], [], None
    lines, path = _lines(path), printable(path)
    for number, line in lines:
        # A table has tabs, and may have blanks in its ids; a run has tabs or blanks between its columns.
        fields = line.split("\t") if line.count("\t") in (3, 5) else line.split()
        if not fields or fields == ["qid", "docid", "score", "rank"]:
            continue
        if width is None:
            width = len(fields)
            if width not in _COLUMNS:
                raise ValueError(f"{path}:{number}: found {width} columns, expected {_FORMS}.")
            query, document, at = _COLUMNS[width] or (None, None, 0)
        if len(fields) != width:
            raise ValueError(f"{path}:{number}: found {len(fields)} columns, expected {width} as in the lines before.")
        score = float(fields[at]) if _SCORE.fullmatch(fields[at]) else math.nan
        if math.isnan(score) or (math.isinf(score) and not fields[at].endswith("inf")):
            raise ValueError(f"{path}:{number}: found {fields[at][:40]!r}, expected a score; the file should be {_FORMS}.")
        numbers.append(number)
        scores.append(score)
        if query is not None:
            names.append((fields[query], fields[document]))
    return numbers, names, scores, width


def write_table(table, folder):
    """Write a run of each trainer on each data set of a `CriterionTable`, and qrels; see `CriterionTable.to_runs`."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"folder={str(folder)!r} is a file; expected a folder, or a new name for one.")
    paths, tied = {}, {}
    for dataset, name in _file_names(table.datasets).items():
        pooled = pool([fold.test for fold in table.folds[dataset]])
        (folder / name).mkdir(parents=True, exist_ok=True)
        write_qrels(folder / name / "qrels.txt", pooled)
        for trainer, tag in _file_names(table.trainers).items():
            cells = {cell.fold: cell for cell in table.cells if (cell.dataset, cell.trainer) == (dataset, trainer)}
            scores = np.concatenate([cells[number].scores for number in range(table.n_folds[dataset])])
            paths[trainer, dataset] = folder / name / f"{tag}.run"
            write_run(paths[trainer, dataset], pooled, scores, tag)
            count = count_ties(pooled.qid, scores)
            if count:
                tied[f"{trainer} on {dataset}"] = count / len(scores)
    if tied:
        most = max(tied, key=lambda name: tied[name])
        warnings.warn(
            f"{len(tied)} of {len(paths)} runs have scores that equal another of their query (most in {most}: "
            f"{tied[most]:.1%} of the documents). Other tools rank these by document id or by row, where the table "
            "averages over all their orders, so that means may differ a little.",
            checks.StructRankWarning,
            stacklevel=2,
        )
    return paths


def _file_names(names):
    """Return each name as a file name, unique also on file systems that ignore case."""
    found = {}
    for name in names:
        wanted = as_file_name(name) or "unnamed"
        taken = {other.lower() for other in found.values()}
        numbered = (f"{wanted}-{number}" for number in itertools.count(2))
        found[name] = next(one for one in itertools.chain([wanted], numbered) if one.lower() not in taken)
    return found
