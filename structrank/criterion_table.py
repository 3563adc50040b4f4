"""The train-vs-test criterion table: which loss to train on, for the measure that one is judged by.

KDD 2008, section 4.5 and Figure 9. `compare` trains every criterion on every fold, one cell of work each, and keeps
what it has finished; `CriterionTable` holds and shows the result.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import hashlib
import html
import itertools
import json
import math
import os
import re
import tempfile
import textwrap
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse
from sklearn.base import clone

import structrank
from structrank import _validation, criteria, metrics, significance
from structrank._progress import ProgressLine
from structrank.data import RankingData, group_by_query
from structrank.datasets.containers import Dataset, Fold
from structrank.svm import StructRankSVM

__all__ = ["Cell", "CriterionTable", "compare", "default_trainers"]

# On digits, webis-clueweb09 and synthetic data, of 0.0001 to 10000, the values chosen for criteria that learn at all lay
# from 0.01 to 1000, mostly from 0.1 to 100; 10000 alone costs as much as the rest of the path.
DEFAULT_CS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
# Queries of a training part without validation part are dealt into this many folds.
_INNER_FOLDS = 3
_SIGNIFICANT = 0.05
# Enters the key of stored cells: raise it when what a cell means changes.
_CELL_FORMAT = 1


def default_trainers(relevant_from=1, discount="kdd08"):
    """Give the rows of the paper's Figure 9 that are structured SVMs, each an untrained `StructRankSVM`.

    MRR comes with both feature maps (Figure 7), COMBO with both ways to share slacks (section 3.7), and the decay of
    DORM is cut at 30 ranks (section 4.4).

    Parameters
    ----------
    relevant_from : float, default 1
        Least label of a good document.
    discount : {"kdd08", "log2"}, default "kdd08"
        Discount of the criteria that have one.

    Returns
    -------
    dict
        From names to trainers.

    Examples
    --------
    >>> list(default_trainers())[:4]
    ['AUC', 'MAP', 'NDCG', 'NDCG-NC']
    """
    # COMBO takes MAP, NDCG-NC and MRR, all with the map `po`, and MRR not clipped. Chosen on validation queries (four
    # digits splits, ten inner folds of webis-clueweb09's training parts), by the mean of mrr@10, ndcg@10 and map there:
    #                                        digits             webis
    #                                   separate shared    separate shared      of 14 + 2 synthetic, vacuous
    #   MAP + NDCG-NC + MRR (mrr)@10      .719    .644       .340    .339       13, 16
    #   MAP + NDCG-NC + MRR (po)@10       .791    .783       .499    .420        0, 13
    #   MAP + NDCG-NC + MRR (po)          .788    .788       .499    .495        0,  1
    #   MAP + NDCG-NC                     .788    .789       .470    .494        0,  0
    #   MAP alone                              .790               .488           0
    # phi_mrr drowns the other parts, and the bound of a clipped criterion stays above 1 on long lists, so that with
    # shared slacks it is the largest whatever the others say.
    make = functools.partial(StructRankSVM, relevant_from=relevant_from, discount=discount)
    combo = functools.partial(make, ["map", "ndcg-nc", criteria.MRR(k=None)], feature_map="po")
    return {
        "AUC": make("auc"),
        "MAP": make("map"),
        "NDCG": make("ndcg"),
        "NDCG-NC": make("ndcg-nc"),
        "MRR (map mrr)": make("mrr", feature_map="mrr"),
        "MRR (map po)": make("mrr", feature_map="po"),
        "COMBO (separate slacks)": combo(slack="separate"),
        "COMBO (shared slacks)": combo(slack="shared"),
        "DORM": make("dorm", decay="sqrt@30"),
    }


@dataclass(frozen=True, eq=False)
class Cell:
    """What one trainer made of one fold.

    Attributes
    ----------
    dataset : str
    fold : int
        From 0.
    trainer : str
    C : float or None
        The C chosen; None for trainers that are not a `StructRankSVM`.
    validation : float or None
        What the chosen C reached on validation queries; None where there was nothing to choose.
    seconds : float
        Time for training, the choice of C included.
    notes : tuple of str
        Warnings raised while the chosen model was trained.
    scores : (n_test_docs,) array
        Predictions for the test part, in its row order.
    """

    dataset: str
    fold: int
    trainer: str
    C: float | None
    validation: float | None
    seconds: float
    notes: tuple
    scores: np.ndarray


def compare(
    datasets,
    trainers=None,
    measures=("mrr@10", "ndcg@10", "map"),
    Cs=None,
    results=None,
    n_jobs=None,
    *,
    relevant_from=1,
    discount="kdd08",
    select="own",
    random_state=0,
    verbose=0,
):
    """Train by every criterion, test by every measure: fill the table of the KDD 2008 paper's Figure 9.

    Parameters
    ----------
    datasets : dict
        From names to a `structrank.datasets.Fold` or a list of them, as ``load_letor_folds`` gives. The test parts of
        all folds are pooled per query, so they should not overlap.
    trainers : dict, list of names, or None
        Rows. None for all of `default_trainers`, a list of names for some of these, or a dict from names to objects
        with ``fit(X, y, qid=...)`` and ``predict(X)``; they are copied, never trained themselves. To set others beside
        the defaults: ``{**default_trainers(), "mine": mine}``.
    measures : str, Measure, or a list of them
        Columns, as `structrank.metrics.evaluate` takes them. Those given by name have the paper's conventions: binary
        gain, `discount` and `relevant_from` as here.
    Cs : sequence of float, default None
        From which each `StructRankSVM` chooses its C; None for 0.001, 0.01, ..., 1000.
    results : path-like, default None
        A folder that keeps each finished cell (a trainer on a fold). A later call with the same data, parameters of
        trainers and settings reads it in place of training again, so that an interrupted comparison goes on where it
        was; measures may differ, as scores are kept. The code of trainers is not looked at: after you changed it, take
        another folder.
    n_jobs : int or None, default None
        Cells trained at a time, each in a process of its own: None is 1, -1 all cores. The numbers do not depend on it.
    relevant_from : float, default 1
        Least label of a good document, for measures given by name and for the default trainers.
    discount : {"kdd08", "log2"}, default "kdd08"
        Discount for measures given by name and for the default trainers.
    select : str or Measure, default "own"
        Measure by which C is chosen, see below.
    random_state : int, default 0
        Seed of the inner folds and of the randomisation tests.
    verbose : int, default 0
        1 shows a line of progress on stderr.

    Returns
    -------
    CriterionTable

    Notes
    -----
    For each fold and `StructRankSVM`, one C is chosen on the validation part; where there is none, by three inner folds
    of the training queries, after which the model is trained on the whole training part. The measure of this choice is
    by default the row's own criterion (of a COMBO the mean of its parts'), so that a row is what you get if you know and
    use that criterion only. To choose by the column's measure instead would make each row several models and credit the
    criterion with what the choice of C has done; to choose by one measure for all rows, name it in `select`. Of equally
    good values the smallest is taken. Other trainers are fitted to the training part as they are.

    Examples
    --------
    >>> from structrank import compare, datasets
    >>> fold = datasets.make_ranking(n_queries=30, n_docs=10, n_features=3, noise=0.5, random_state=0)
    >>> table = compare({"made": fold}, trainers=["AUC", "MAP"], measures=["mrr@10", "map"], Cs=[0.1, 10.0])
    >>> table.to_frame().shape, table.query_ids["made"].tolist()
    ((2, 2), [24, 25, 26, 27, 28, 29])
    """
    folds = _as_folds(datasets)
    trainers = _as_trainers(trainers, relevant_from, discount)
    conventions = {"gain": "binary", "discount": discount, "relevant_from": relevant_from}
    if isinstance(measures, (str, metrics.Measure)):
        measures = [measures]
    measures = [metrics.parse(measure, **conventions) for measure in measures]
    choice = _Choice(
        Cs=tuple(sorted({_validation.check_number("Cs", C, above=0) for C in (DEFAULT_CS if Cs is None else Cs)})),
        select=None if isinstance(select, str) and select == "own" else metrics.parse(select, **conventions),
        random_state=_validation.check_number("random_state", random_state, at_least=0, integer=True),
    )
    if not choice.Cs:
        raise ValueError("Cs is empty; expected at least one value of C.")
    n_jobs = _check_n_jobs(n_jobs)
    for where, fold in _each_fold(folds):
        _check_fold(where, fold, trainers, measures, choice, relevant_from)

    tasks = [
        _Task(dataset, number, fold, name, trainer, choice)
        for dataset, its_folds in folds.items()
        for number, fold in enumerate(its_folds)
        for name, trainer in trainers.items()
    ]
    files = [None] * len(tasks) if results is None else _cell_files(tasks, results)
    cells = _run_all(tasks, files, n_jobs, verbose)
    tests = {dataset: [fold.test for fold in its_folds] for dataset, its_folds in folds.items()}
    return CriterionTable(cells, tests, measures, choice.random_state)


# ---- Input


def _as_folds(datasets):
    if not isinstance(datasets, Mapping) or not datasets:
        raise ValueError(f"datasets={datasets!r} is not valid: expected a dict from names to folds, with at least one.")
    folds = {}
    for name, value in datasets.items():
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        if not listed:
            raise ValueError(f"data set {name!r} has no folds; expected at least one.")
        for fold in listed:
            if not all(hasattr(fold, part) for part in ("train", "validation", "test")):
                raise ValueError(
                    f"data set {name!r} holds {type(fold).__name__} objects; expected a Fold (train, validation or None, "
                    "test) or a list of them."
                )
        folds[str(name)] = listed
    return folds


def _as_trainers(trainers, relevant_from, discount):
    default = default_trainers(relevant_from, discount)
    if trainers is None:
        chosen = default
    elif isinstance(trainers, Mapping):
        chosen = {str(name): trainer for name, trainer in trainers.items()}
    else:
        chosen = {}
        for name in [trainers] if isinstance(trainers, str) else trainers:
            _validation.check_choice("trainer", name, tuple(default))
            chosen[name] = default[name]
    if not chosen:
        raise ValueError("trainers is empty; expected at least one.")
    for name, trainer in chosen.items():
        missing = [method for method in ("fit", "predict") if not callable(getattr(trainer, method, None))]
        if missing or isinstance(trainer, type):
            found = f"the class {trainer.__name__}" if isinstance(trainer, type) else repr(trainer)
            raise ValueError(
                f"trainer {name!r} is {found}; expected an object with fit(X, y, qid=...) and predict(X)"
                + (f", missing: {', '.join(missing)}." if missing else ".")
            )
        if isinstance(trainer, StructRankSVM):
            try:
                trainer._check_parameters()
            except ValueError as error:
                raise ValueError(f"trainer {name!r}: {error}") from None
    return chosen


def _check_n_jobs(n_jobs):
    if n_jobs is None:
        return 1
    import joblib

    if _validation.check_number("n_jobs", n_jobs, integer=True) == 0:
        raise ValueError("n_jobs=0 is not valid: expected None, an integer of at least 1, or -1 for all cores.")
    return joblib.effective_n_jobs(n_jobs)


def _each_fold(folds):
    for dataset, its_folds in folds.items():
        for number, fold in enumerate(its_folds):
            yield f"data set {dataset!r}, fold {number + 1} of {len(its_folds)}", fold


def _check_fold(where, fold, trainers, measures, choice, relevant_from):
    """Judge all that training and testing will need of a fold, before anything is trained."""
    parts = {name: getattr(fold, name) for name in ("train", "validation", "test") if getattr(fold, name) is not None}
    data = {}
    for name, part in parts.items():
        try:
            data[name] = RankingData(part.X, part.y, part.qid)
            if name == "test":
                metrics.evaluate(part.y, np.zeros(len(data[name].labels)), part.qid, measures)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}, {name} part: {error}") from None
        if data[name].n_features != data["train"].n_features:
            raise ValueError(
                f"{where}: the {name} part has {data[name].n_features} features, the train part "
                f"{data['train'].n_features}; they must have the same."
            )
    structured = [trainer for trainer in trainers.values() if isinstance(trainer, StructRankSVM)]
    for least in {relevant_from, *(trainer.relevant_from for trainer in structured)}:
        wanted = "different labels" if least is None else f"both good (label >= {least:g}) and bad documents"
        usable = _usable_queries(data["train"], least).sum()
        if usable == 0:
            raise ValueError(f"{where}: no query of the train part has {wanted}, so there is nothing to learn from.")
        if not structured or len(choice.Cs) == 1:
            continue
        if "validation" not in data and usable == 1:
            raise ValueError(
                f"{where}: only one query of the train part has {wanted}, and there is no validation part to choose C on. "
                "Give one, or a single C."
            )
        if "validation" in data and not _usable_queries(data["validation"], least).any():
            raise ValueError(f"{where}: no query of the validation part has {wanted}, so C cannot be chosen on it.")


def _usable_queries(data, relevant_from):
    """Tell which queries one can learn from: those with good and bad documents (different labels, where graded)."""
    labels = data.labels[data.grouping.rows]
    kinds = labels if relevant_from is None else labels >= relevant_from
    firsts = data.grouping.indptr[:-1]
    return np.maximum.reduceat(kinds, firsts) > np.minimum.reduceat(kinds, firsts)


# ---- Work


@dataclass(frozen=True)
class _Choice:
    """How C is chosen: among `Cs`, by the measure `select` (None: each trainer's own criterion)."""

    Cs: tuple
    select: metrics.Measure | None
    random_state: int

    def judge(self, model, part):
        """Measure a model on validation queries; higher is better."""
        if self.select is None:
            return model.score(part.X, part.y, qid=part.qid)
        (value,) = metrics.evaluate(part.y, model.predict(part.X), part.qid, self.select).values()
        return value


@dataclass(frozen=True, eq=False)
class _Task:
    """One cell, still to be filled."""

    dataset: str
    number: int
    fold: Fold
    name: str
    trainer: object
    choice: _Choice

    def run(self, file):
        """Train, predict, and keep the cell in its file, if it has one."""
        from threadpoolctl import threadpool_limits

        try:
            # BLAS adds up in another order with other numbers of threads, and processes share the cores.
            with threadpool_limits(limits=1, user_api="blas"):
                cell = self._fill()
        except Exception as error:
            error.add_note(f"in compare: trainer {self.name!r}, data set {self.dataset!r}, fold {self.number + 1}")
            raise
        if file is not None:
            file.save(cell)
        return cell

    def _fill(self):
        trainer = clone(self.trainer) if hasattr(self.trainer, "get_params") else copy.deepcopy(self.trainer)
        train, test = self.fold.train, self.fold.test
        started = time.perf_counter()
        C = validation = None
        if isinstance(trainer, StructRankSVM):
            model, C, validation, notes = _train_best(trainer, self.fold, self.choice)
        else:
            model = trainer
            with _recorded_warnings() as caught:
                model.fit(train.X, train.y, qid=train.qid)
            notes = _texts(caught)
        seconds = time.perf_counter() - started
        scores = _validation.as_scores(model.predict(test.X), len(test.y), against="the test part")
        return Cell(self.dataset, self.number, self.name, C, validation, seconds, notes, scores)


def _train_best(trainer, fold, choice):
    """Choose C on validation queries; give the model, C, what it reached, and the notes of its training."""
    if fold.validation is not None:
        models = _fit_path(trainer, fold.train, choice.Cs)
        reached = [choice.judge(model, fold.validation) for model in models]
        best = int(np.argmax(reached))
        return models[best], choice.Cs[best], float(reached[best]), models[best].notes_
    best, reached = 0, None
    if len(choice.Cs) > 1:
        reached = 0.0
        for weight, learn, check in _inner_folds(fold.train, trainer.relevant_from, choice.random_state):
            models = _fit_path(trainer, learn, choice.Cs)
            reached = reached + weight * np.array([choice.judge(model, check) for model in models])
        best = int(np.argmax(reached))
        reached = float(reached[best])
    (model,) = _fit_path(trainer, fold.train, choice.Cs[best : best + 1])
    return model, choice.Cs[best], reached, model.notes_


def _fit_path(trainer, part, Cs):
    """Train for each of the Cs; what training warns of stays with the models."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", _validation.StructRankWarning)
        models = trainer.fit_path(part.X, part.y, qid=part.qid, Cs=Cs)
    # Training answers Ctrl-C with the model so far; here that must not pass for a finished cell.
    if any(model.stop_reason_ == "interrupted" for model in models):
        raise KeyboardInterrupt
    return models


def _inner_folds(part, relevant_from, random_state):
    """Deal the usable queries into folds; yield (share of the queries to check on, part to learn from, part to check on)."""
    from sklearn.model_selection import GroupKFold

    data = RankingData(part.X, part.y, part.qid)
    usable = _usable_queries(data, relevant_from)
    query = data.grouping.query_of_row()
    rows = np.flatnonzero(usable[query])
    splitter = GroupKFold(min(_INNER_FOLDS, int(usable.sum())), shuffle=True, random_state=random_state)
    for learn, check in splitter.split(rows, groups=query[rows]):
        share = np.unique(query[rows[check]]).size / usable.sum()
        chosen = (rows[learn], rows[check])
        yield share, *(Dataset(data.X[some], data.labels[some], query[some]) for some in chosen)


@contextlib.contextmanager
def _recorded_warnings():
    """Keep warnings in a list, each time they are raised, in place of showing them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def _texts(caught):
    """Give the texts of warnings that are meant for users, each once."""
    meant = [warning for warning in caught if not issubclass(warning.category, DeprecationWarning)]
    return tuple(dict.fromkeys(str(warning.message) for warning in meant))


def _run_all(tasks, files, n_jobs, verbose):
    """Give the cells of all tasks in their order, from their files where these have them."""
    import joblib

    cells = [None if file is None else file.load() for file in files]
    missing = [number for number, cell in enumerate(cells) if cell is None]
    progress = _Progress(len(cells) - len(missing), len(missing)) if verbose else None
    # Writable maps of large arrays: for arrays that are read-only, numba would compile everything anew.
    parallel = joblib.Parallel(min(n_jobs, max(1, len(missing))), mmap_mode="c", return_as="generator_unordered")
    for number, cell in parallel(joblib.delayed(_run_one)(number, tasks[number], files[number]) for number in missing):
        cells[number] = cell
        if progress is not None:
            progress.advance(cell)
    if progress is not None:
        progress.finish()
    return cells


def _run_one(number, task, file):
    return number, task.run(file)


class _Progress:
    """Shows how many cells are done."""

    def __init__(self, n_kept, n_missing):
        self.n_kept, self.n_missing, self.n_done = n_kept, n_missing, 0
        self.line, self.started = ProgressLine(), time.perf_counter()
        self.line.update(self._text("starting"))

    def advance(self, cell):
        self.n_done += 1
        seconds = time.perf_counter() - self.started
        left = seconds / self.n_done * (self.n_missing - self.n_done)
        self.line.update(
            self._text(f"{cell.dataset}, fold {cell.fold + 1}: {cell.trainer}  {seconds:.0f} s, {left:.0f} s left")
        )

    def finish(self):
        self.line.finish(self._text(f"{time.perf_counter() - self.started:.1f} s"))

    def _text(self, what):
        kept = f" ({self.n_kept} kept from earlier)" if self.n_kept else ""
        return f"{self.n_kept + self.n_done} of {self.n_kept + self.n_missing} cells{kept}  {what}"


# ---- Finished cells on disk


@dataclass(frozen=True)
class _CellFile:
    """Where a finished cell is kept, and the fingerprint of all that it depends on."""

    path: Path
    key: str

    def load(self):
        """Give the cell, or None if it is not there or damaged."""
        try:
            with np.load(self.path, allow_pickle=False) as file:
                record, scores = json.loads(file["record"].item()), file["scores"]
            if record.pop("key") != self.key:
                return None
            return Cell(**{**record, "notes": tuple(record["notes"])}, scores=scores)
        except Exception:  # there are many ways for a file to be damaged, and one answer
            return None

    def save(self, cell):
        """Write the cell in one step: a reader sees all of it or nothing, whenever the writer is killed."""
        record = np.array(json.dumps({**_record(cell), "key": self.key}))
        handle, temporary = tempfile.mkstemp(prefix=f".{self.path.stem}-", suffix=".tmp", dir=self.path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, record=record, scores=cell.scores)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def _record(cell):
    """Give what a cell holds beside the scores, by name."""
    return {field.name: getattr(cell, field.name) for field in dataclasses.fields(cell) if field.name != "scores"}


def _cell_files(tasks, folder):
    """Make the folder; give the file of each task."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"results={str(folder)!r} is a file; expected a folder, or a new name for one.")
    folder.mkdir(parents=True, exist_ok=True)
    folds = {id(task.fold): task.fold for task in tasks}
    digests = {number: _digest_fold(fold) for number, fold in folds.items()}
    files = []
    for task in tasks:
        what = [f"cell format {_CELL_FORMAT}", f"structrank {structrank.__version__}", digests[id(task.fold)]]
        what += [_describe((task.dataset, task.number, task.name))]
        if isinstance(task.trainer, StructRankSVM):
            what += [_describe(task.trainer, leave_out=("n_jobs", "verbose")), _describe(task.choice)]
        else:
            what += [_describe(task.trainer)]
        key = hashlib.sha256("\n".join(what).encode()).hexdigest()
        dataset, trainer = (re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40] for name in (task.dataset, task.name))
        files.append(_CellFile(folder / f"{dataset}-fold{task.number + 1}-{trainer}-{key[:16]}.npz", key))
    return files


def _digest_fold(fold):
    digest = hashlib.sha256()
    for part in (fold.train, fold.validation, fold.test):
        for values in () if part is None else (_validation.as_matrix(part.X), part.y, part.qid):
            _add_content(digest, values)
        digest.update(b"end of part")
    return digest.hexdigest()


def _add_content(digest, values):
    """Add type, shape and values of an array or sparse matrix to a digest."""
    if scipy.sparse.issparse(values):
        digest.update(str(values.shape).encode())
        for array in (values.data, values.indices, values.indptr):
            _add_content(digest, array)
        return
    values = np.asarray(values)
    digest.update(f"{values.dtype.str}{values.shape}".encode())
    step = max(1, 2**20 // max(1, values[:1].size))
    for start in range(0, values.shape[0], step):
        block = values[start : start + step]
        plain = block.dtype.kind in "biufcSU"
        digest.update(np.ascontiguousarray(block).tobytes() if plain else repr(block.tolist()).encode())


def _describe(value, leave_out=()):
    """Describe a value by its content, with the same text in every process."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, np.ndarray) or scipy.sparse.issparse(value):
        digest = hashlib.sha256()
        _add_content(digest, value)
        return f"array {digest.hexdigest()}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_describe, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_describe(key)}: {_describe(value[key])}' for key in sorted(value, key=_describe))}}}"
    if hasattr(value, "__code__"):
        code = value.__code__
        inside = (code.co_code, code.co_names, code.co_consts, value.__defaults__, value.__kwdefaults__)
        inside += tuple(cell.cell_contents for cell in value.__closure__ or ())
        return f"{value.__module__}.{value.__qualname__}{_describe(inside)}"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "get_params"):
        settings = value.get_params(deep=False)
    elif hasattr(value, "__dict__"):
        settings = vars(value)
    else:  # perhaps with an address in memory: then it is new to every process, and its cells are trained again
        return repr(value)
    settings = {name: setting for name, setting in settings.items() if name not in leave_out}
    return f"{_describe(type(value))}({_describe(settings)})"


# ---- The table


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

    Attributes
    ----------
    cells : list of Cell
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

    def __init__(self, cells, tests, measures, random_state=0):
        self.cells = list(cells)
        self.random_state = random_state
        self.trainers = list(dict.fromkeys(cell.trainer for cell in self.cells))
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
                    **{key: float(values[number]) for key, values in tests.items()},
                }
        return records

    def to_frame(self):
        """Give the means as a pandas frame: rows are trainers, columns are (data set, measure).

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        columns = pd.MultiIndex.from_tuples(self._columns(), names=["data set", "measure"])
        rows = [[self._means[name, *column] for column in columns] for name in self.trainers]
        return pd.DataFrame(rows, index=pd.Index(self.trainers, name="trained on"), columns=columns)

    def significance(self):
        """Test each row against the best of each column, paired by query.

        Both tests are two-sided. The correction is Holm's, over the rows of a column. The best is the best on these very
        queries, so a p-value says how firmly they set a row below it, not what other queries would.

        Returns
        -------
        pandas.DataFrame
            A row for each (data set, measure, trainer) but the best; columns ``best``, ``difference`` (of the means,
            negative), ``p_t``, ``p_t_holm`` (paired t-test), ``p_randomisation``, ``p_randomisation_holm``.
        """
        import pandas as pd

        index = pd.MultiIndex.from_tuples(list(self._tests), names=["data set", "measure", "trainer"])
        return pd.DataFrame(list(self._tests.values()), index=index)

    def details(self):
        """Give what was chosen, how long it took and what was noted, cell by cell.

        Returns
        -------
        pandas.DataFrame
            Index (data set, fold, trainer); columns ``C``, ``validation`` (what that C reached on validation queries),
            ``seconds``, ``notes``.
        """
        import pandas as pd

        frame = pd.DataFrame([_record(cell) for cell in self.cells]).rename(columns={"dataset": "data set"})
        return frame.set_index(["data set", "fold", "trainer"])

    def marks(self):
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
                if test is not None and test["p_randomisation_holm"] <= _SIGNIFICANT:
                    mark += "<"
                marks[name, dataset, measure] = mark
        return marks

    def to_csv(self, path=None):
        """Give the means as CSV, one row a trainer; with `path`, write them there."""
        frame = self.to_frame()
        frame.columns = [f"{dataset} {measure}" for dataset, measure in frame.columns]
        return _deliver(frame.to_csv(lineterminator="\n"), path)

    def to_latex(self, path=None):
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

    def to_html(self, path=None):
        """Give an HTML table with its legend and notes; with `path`, write it there.

        The best of a column is bold, the second underlined, and a small < follows what is significantly below the best.
        """
        titles = [(html.escape(self._title(dataset)), len(self.measures)) for dataset in self.datasets]
        titles = "".join(f'<th colspan="{width}">{title}</th>' for title, width in titles)
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

    def to_report(self, path, datasets=None):
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
            f"{below} significantly below the best: p <= {_SIGNIFICANT} in a paired randomisation test over queries, with "
            "Holm's correction over the rows of the column (paired t-test: see .significance())",
            f"Measures: {'; '.join(measures)}",
            f"Undefined test queries, left out of the means: {'; '.join(missing) or 'none'}",
        ]

    def _short_notes(self):
        """Give the first sentences of the notes, those that begin alike once for each trainer, with where they were made."""
        grouped = {}
        for (trainer, dataset, _), texts in self.notes.items():
            for text in texts:
                start = re.split(r"[:;.,]\s", text, maxsplit=1)[0]
                sentence = re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]
                places = grouped.setdefault((trainer, start), (sentence, {}))[1]
                places[dataset] = places.get(dataset, 0) + 1
        notes = []
        for (trainer, _), (sentence, places) in sorted(
            grouped.items(), key=lambda item: self.trainers.index(item[0][0])
        ):
            where = [
                dataset if self.n_folds[dataset] == 1 else f"{dataset} ({count} of {self.n_folds[dataset]} folds)"
                for dataset, count in places.items()
            ]
            notes.append(f"{trainer} on {', '.join(where)}: {sentence}")
        return notes


_WIDTH = 100
_CAPTION = (
    "Rows: what was trained on. Columns: data set and test measure, mean over all test queries; higher is better."
)


def _mean(values):
    """Give the mean of what is not nan; an exact sum, so that the order of the queries does not show."""
    defined = values[~np.isnan(values)]
    return math.fsum(defined) / defined.size if defined.size else math.nan


def _padded(texts, at_least=0):
    width = max(at_least, *map(len, texts))
    return [text.ljust(width) for text in texts]


def _latex(text):
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(letter, f"\\{letter}" if letter in "&%$#_{}" else letter) for letter in text)


def _deliver(text, path):
    """Give a text; with a path, write it there too."""
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
