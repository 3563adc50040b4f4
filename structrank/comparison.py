"""compare(): every trainer on every fold, tested by every measure.

KDD 2008, section 4.5 and Figure 9. A trainer on a fold is a cell of work; finished cells are kept, so that a comparison that
was interrupted goes on where it was. `structrank.criterion_table` holds and shows the result.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from structrank import _validation, criteria, metrics
from structrank._progress import ProgressLine
from structrank.cells import Cell, cell_files
from structrank.criterion_table import CriterionTable
from structrank.data import RankingData
from structrank.datasets.containers import Dataset, Fold
from structrank.ranker import check_finished
from structrank.svm import StructRankSVM
from structrank.trees import TreeRanker

if TYPE_CHECKING:
    from structrank._typing import Path
    from structrank.metrics import Measure

# On digits, webis-clueweb09 and synthetic data, of 0.0001 to 10000, the values chosen for criteria that learn at all lay
# from 0.01 to 1000, mostly from 0.1 to 100; 10000 alone costs as much as the rest of the path.
DEFAULT_CS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
# Queries of a training part without validation part are dealt into this many folds.
_INNER_FOLDS = 3
# Numbers in a training part from which on its cells have checkpoints; smaller ones are trained again in a minute.
_LARGE = 10_000_000


def default_trainers(
    relevant_from: float = 1, discount: str = "kdd08", bound: str = "auto"
) -> dict[str, StructRankSVM]:
    """Give the rows of the paper's Figure 9 that are structured SVMs, each an untrained `StructRankSVM`.

    MRR comes with both feature maps (Figure 7), COMBO with both ways to share slacks (section 3.7), and the decay of
    DORM is cut at 30 ranks (section 4.4).

    Parameters
    ----------
    relevant_from : float, default 1
        Least label of a good document.
    discount : {"kdd08", "log2"}, default "kdd08"
        Discount of the criteria that have one.
    bound : {"auto", "convex", "ramp"}, default "auto"
        See `StructRankSVM`. With "auto" the ramp bound takes the place of a convex one that is vacuous, as that of the clipped
        criteria is on long lists.

    Returns
    -------
    dict
        From names to trainers.

    Examples
    --------
    >>> list(default_trainers())[:4]
    ['AUC', 'MAP', 'NDCG', 'NDCG-NC']
    """
    # COMBO takes AUC, MAP and NDCG-NC, all with the map `po`. Chosen on queries not trained on, by the mean of mrr@10, ndcg@10
    # and map there for the best C, with separate / shared slacks (four digits splits; made-up sets like OHSUMED and MQ2008, and
    # with long lists; inner folds of webis-clueweb09's training parts):
    #                          digits        like OHSUMED  like MQ2008   long lists    webis         mean
    #   MAP + NDCG-NC + MRR    .788 / .787   .673 / .664   .618 / .614   .594 / .581   .454 / .447   .625 / .619
    #   AUC + MAP + MRR        .787 / .788   .678 / .665   .620 / .615   .593 / .584   .460 / .459   .628 / .622
    #   AUC + MAP + NDCG-NC    .787 / .785   .677 / .674   .619 / .619   .588 / .586   .459 / .456   .626 / .624
    # With shared slacks MRR, whose maximum is the largest of most queries, leaves the others little say, even with the map `po`
    # and not clipped; phi_mrr drowns them in either case.
    make = _row_maker(relevant_from, discount, bound)
    combo = functools.partial(make, ["auc", "map", "ndcg-nc"])
    return {
        "AUC": make("auc"),
        "MAP": make("map"),
        "NDCG": make("ndcg"),
        "NDCG-NC": make("ndcg-nc"),
        "MRR (map mrr)": make("mrr", feature_map="mrr"),
        "MRR (map po)": make("mrr", feature_map="po"),
        "COMBO (separate slacks)": combo(slack="separate"),
        "COMBO (shared slacks)": combo(slack="shared"),
        "DORM": make("dorm"),
    }


def _row_maker(relevant_from, discount, bound):
    return functools.partial(
        StructRankSVM, relevant_from=relevant_from, discount=discount, decay="sqrt@30", bound=bound
    )


def compare(
    datasets: Mapping[str, Fold | Sequence[Fold]],
    trainers: Mapping[str, Any] | Sequence[str] | None = None,
    measures: str | Measure | Sequence[str | Measure] = ("mrr@10", "ndcg@10", "map"),
    Cs: Sequence[float] | None = None,
    results: Path | None = None,
    n_jobs: int | None = None,
    *,
    relevant_from: float = 1,
    discount: str = "kdd08",
    select: str | Measure = "own",
    random_state: int = 0,
    verbose: int = 0,
) -> CriterionTable:
    """Train by every criterion, test by every measure: fill the table of the KDD 2008 paper's Figure 9.

    Parameters
    ----------
    datasets : dict
        From names to a `structrank.datasets.Fold` or a list of them, as ``load_letor_folds`` gives. The test parts of
        all folds are pooled per query, so they should not overlap.
    trainers : dict, list of names, or None
        Rows. None for all of `default_trainers`, a list of names (in any case) for some of these and for criteria of your own
        (`structrank.register`; with k = 10), or a dict from names to objects with ``fit(X, y, qid=...)`` and ``predict(X)``;
        they are copied, never trained themselves. To set others beside the defaults:
        ``{**default_trainers(), "LightGBM": LightGBMRanker()}``, see `structrank.trees`.
    measures : str, Measure, or a list of them
        Columns, as `structrank.metrics.evaluate` takes them. Those given by name have the paper's conventions: binary
        gain, `discount` and `relevant_from` as here.
    Cs : sequence of float, default None
        From which each `StructRankSVM` chooses its C; None for 0.001, 0.01, ..., 1000.
    results : path-like, default None
        A folder that keeps each finished cell (a trainer on a fold) and, of structured SVMs on large data, checkpoints of
        cells that are begun. A later call with the same data, parameters of trainers and settings reads them in place of
        training again, so that an interrupted comparison goes on where it was; measures may differ, as scores are kept.
        The code of trainers is not looked at: after you changed it, take another folder.
    n_jobs : int or None, default None
        Cells trained at a time, each in a process of its own: None is 1, -1 all cores. The numbers do not depend on it.
    relevant_from : float, default 1
        Least label of a good document, for measures given by name and for the default trainers.
    discount : {"kdd08", "log2"}, default "kdd08"
        Discount for measures given by name and for the default trainers.
    select : str or Measure, default "own"
        Measure by which C is chosen, see below.
    random_state : int, default 0
        Seed of the inner folds, to which queries are dealt as they first appear, and of the randomisation tests.
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
    trainers = as_trainers(trainers, relevant_from, discount)
    conventions: dict[str, Any] = {"gain": "binary", "discount": discount, "relevant_from": relevant_from}
    measures = list(metrics._choose(measures, **conventions).values())
    choice = _Choice(
        Cs=tuple(sorted(set(_validation.check_Cs(DEFAULT_CS if Cs is None else Cs)))),
        select=None if isinstance(select, str) and select == "own" else metrics.parse(select, **conventions),
        random_state=_validation.check_number("random_state", random_state, at_least=0, integer=True),
    )
    n_jobs = _check_n_jobs(n_jobs)
    for where, fold in _each_fold(folds):
        _check_fold(where, fold, trainers, measures, choice)

    tasks = [
        _Task(dataset, number, fold, name, trainer, choice)
        for dataset, its_folds in folds.items()
        for number, fold in enumerate(its_folds)
        for name, trainer in trainers.items()
    ]
    files = [None] * len(tasks) if results is None else cell_files(tasks, results)
    cells = _run_all(tasks, files, n_jobs, verbose)
    tests = {dataset: [fold.test for fold in its_folds] for dataset, its_folds in folds.items()}
    settings = {
        "relevant_from": relevant_from,
        "discount": discount,
        "Cs": choice.Cs,
        "select": choice.how,
        "random_state": choice.random_state,
        "trainers": {name: repr(trainer) for name, trainer in trainers.items()},
    }
    return CriterionTable(cells, tests, measures, choice.random_state, folds, settings)


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
        folds[_as_name("data set", name, folds)] = listed
    return folds


def _as_name(what, given, others):
    """Give a name as text that can be written to any file; no two may look the same."""
    name = str(given).encode("utf-8", "backslashreplace").decode()
    if name in others:
        raise ValueError(f"two {what}s are called {name!r}; expected a name of its own for each.")
    return name


def as_trainers(trainers, relevant_from=1, discount="kdd08", bound="auto") -> dict[str, Any]:
    """Return what `compare` takes as trainers as a dict from names to objects.

    Examples
    --------
    >>> list(as_trainers(["auc", "MRR (map po)"]))
    ['AUC', 'MRR (map po)']
    """
    default = default_trainers(relevant_from, discount, bound)
    if trainers is None:
        chosen = default
    elif isinstance(trainers, Mapping):
        chosen = {}
        for name, trainer in trainers.items():
            chosen[_as_name("trainer", name, chosen)] = trainer
    else:
        make = _row_maker(relevant_from, discount, bound)
        known = default | {name: make(name) for name in criteria.registered()}
        chosen, by_name = {}, {name.lower(): name for name in known}
        for given in [trainers] if isinstance(trainers, str) else trainers:
            name = by_name.get(str(given).lower(), given)
            _validation.check_choice("trainer", name, tuple(known))
            chosen[name] = known[name]
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
        if isinstance(trainer, (StructRankSVM, TreeRanker)):
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


def _check_fold(where, fold, trainers, measures, choice):
    """Judge all that training and testing will need of a fold, before anything is trained."""
    parts = {name: getattr(fold, name) for name in ("train", "validation", "test") if getattr(fold, name) is not None}
    data = {}
    for name, part in parts.items():
        try:
            data[name] = RankingData(part.X, part.y, part.qid)
            data[name].check_columns(data["train"])
            if name == "test":
                metrics.evaluate(part.y, np.zeros(len(data[name].labels)), part.qid, measures)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}, {name} part: {error}") from None
    for name, trainer in trainers.items():
        if isinstance(trainer, TreeRanker):
            try:
                trainer.check_labels(data["train"].labels)
            except ValueError as error:
                raise ValueError(f"{where}, train part, trainer {name!r}: {error}") from None
    learners = [trainer for trainer in trainers.values() if isinstance(trainer, (StructRankSVM, TreeRanker))]
    for least in {trainer.relevant_from for trainer in learners}:
        wanted = "different labels" if least is None else f"both good (label >= {least:g}) and bad documents"
        usable = usable_queries(data["train"], least)
        if not usable.any():
            raise ValueError(
                f"{where}: no query of the train part has {wanted}, so there is nothing to learn from. Is relevant_from right?"
            )
        if len(choice.Cs) == 1 or not any(isinstance(one, StructRankSVM) and one.relevant_from == least for one in learners):
            continue
        if "validation" in data:
            part, measured = "validation", np.ones(data["validation"].grouping.n_queries, dtype=bool)
            if not usable_queries(data[part], least).any():
                raise ValueError(f"{where}: no query of the validation part has {wanted}, so C cannot be chosen on it.")
        else:
            part, measured = "train", usable  # which inner folds hold
            if usable.sum() == 1:
                raise ValueError(
                    f"{where}: only one query of the train part has {wanted}, and there is no validation part to choose C on. "
                    "Give one, or a single C."
                )
        if choice.select is not None and not choice.is_defined(parts[part])[measured].any():
            raise ValueError(
                f"{where}: {choice.how} is undefined for all queries of the {part} part, so C cannot be chosen by it."
            )


def usable_queries(data, relevant_from):
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

    @property
    def how(self):
        """The measure in words."""
        if self.select is None:
            return "own"
        return f"{self.select.name} ({self.select.settings})" if self.select.settings else self.select.name

    def judge(self, model, part):
        """Measure a model on validation queries; higher is better."""
        if self.select is None:
            return model.score(part.X, part.y, qid=part.qid)
        (value,) = metrics.evaluate(part.y, model.predict(part.X), part.qid, self.select).values()
        return value

    def is_defined(self, part):
        """Tell for which queries `select` is defined."""
        (values,) = metrics.evaluate(part.y, np.zeros(len(part.y)), part.qid, self.select, per_query=True).values()
        return ~np.isnan(values)

    def count(self, part):
        """Count the queries of an inner fold that are measured."""
        return np.unique(part.qid).size if self.select is None else int(self.is_defined(part).sum())


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
                cell = self._fill(None if file is None or not self._takes_long() else file.begun)
        except Exception as error:
            error.add_note(f"in compare: trainer {self.name!r}, data set {self.dataset!r}, fold {self.number + 1}")
            raise
        if file is not None:
            file.save(cell)
        return cell

    def _takes_long(self):
        return _validation.as_matrix(self.fold.train.X).size >= _LARGE

    def _fill(self, begun):
        trainer = clone(self.trainer) if hasattr(self.trainer, "get_params") else copy.deepcopy(self.trainer)
        train, test = self.fold.train, self.fold.test
        started = time.perf_counter()
        C = validation = None
        if isinstance(trainer, StructRankSVM):
            model, C, validation, notes = _train_best(trainer, self.fold, self.choice, begun)
        else:
            model = trainer
            with _recorded_warnings() as caught:
                model.fit(train.X, train.y, qid=train.qid)
            check_finished(model)
            notes = _texts(caught)
        seconds = time.perf_counter() - started
        scores = _validation.as_scores(model.predict(test.X), len(test.y), against="the test part")
        vacuous = isinstance(model, StructRankSVM) and model.health_.vacuous
        return Cell(self.dataset, self.number, self.name, C, validation, seconds, notes, scores, vacuous)


def _train_best(trainer, fold, choice, begun=None):
    """Choose C on validation queries; give the model, C, what it reached, and the notes of its training.

    `begun` is a folder for checkpoints.
    """
    checkpoint = (lambda part: None) if begun is None else begun.joinpath
    if fold.validation is not None:
        models = fit_whole_path(trainer, fold.train, choice.Cs, checkpoint("path"))
        reached = [choice.judge(model, fold.validation) for model in models]
        best = int(np.argmax(reached))
        return models[best], choice.Cs[best], float(reached[best]), models[best].notes_
    best, reached = 0, None
    if len(choice.Cs) > 1:
        total = n_measured = 0
        # One after another, as each holds a copy of its rows.
        for number, (learn, check) in enumerate(inner_folds(fold.train, trainer.relevant_from, choice.random_state), 1):
            if count := choice.count(check):
                models = fit_whole_path(trainer, learn, choice.Cs, checkpoint(f"inner-fold{number}"))
                total = total + count * np.array([choice.judge(model, check) for model in models])
                n_measured += count
        best = int(np.argmax(total))
        reached = float(total[best] / n_measured)
    (model,) = fit_whole_path(trainer, fold.train, choice.Cs[best : best + 1], checkpoint("whole"))
    return model, choice.Cs[best], reached, model.notes_


def fit_whole_path(trainer, part, Cs, checkpoint=None):
    """Train for each of the Cs; what training warns of stays with the models, and Ctrl-C is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", _validation.StructRankWarning)
        models = trainer.fit_path(part.X, part.y, qid=part.qid, Cs=Cs, checkpoint=checkpoint)
    for model in models:
        check_finished(model)
    if len(models) < len(Cs):
        raise KeyboardInterrupt
    return models


def inner_folds(part, relevant_from, random_state):
    """Deal the usable queries into folds; yield of each the part to learn from and the part to check on."""
    from sklearn.model_selection import GroupKFold

    data = RankingData(part.X, part.y, part.qid)
    usable = usable_queries(data, relevant_from)
    query = data.grouping.query_of_row()
    rows = np.flatnonzero(usable[query])
    splitter = GroupKFold(min(_INNER_FOLDS, int(usable.sum())), shuffle=True, random_state=random_state)
    for learn, check in splitter.split(rows, groups=query[rows]):
        chosen = (rows[learn], rows[check])
        yield tuple(Dataset(data.X[some], data.labels[some], query[some]) for some in chosen)


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
    run = functools.partial(joblib.delayed(_run_one), list(criteria.registered().values()))
    for number, cell in parallel(run(number, tasks[number], files[number]) for number in missing):
        cells[number] = cell
        if progress is not None:
            progress.advance(cell)
    if progress is not None:
        progress.finish()
    return cells


def _run_one(registered, number, task, file):
    for pair in registered:  # perhaps this is another process
        criteria.register(*pair)
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
