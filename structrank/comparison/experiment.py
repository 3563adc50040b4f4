"""compare(): train each row on each fold, a cell of work, and test on each measure (KDD 2008, section 4.5 and Figure 9)."""

from __future__ import annotations

import functools
import itertools
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structrank import criteria, metrics
from structrank._support import checks, compile_time
from structrank._support.progress import ProgressLine
from structrank._support.typing import Path
from structrank.comparison.cells import Cell, cell_files
from structrank.comparison.table import CriterionTable
from structrank.comparison.trainers import Row, as_trainers, unique_name
from structrank.datasets.cleaning import PROTOCOLS, clean_part, scale_per_query
from structrank.datasets.containers import Fold
from structrank.datasets.tables import is_table
from structrank.metrics import Measure
from structrank.models.ranker import check_finished
from structrank.selection.choosing_c import fit_whole_path, held_out, score_path
from structrank.svm import DEFAULT_CS
from structrank.training.data import RankingData
from structrank.training.structured_loss import BINARISED

# Entries of a training matrix above which cells write checkpoints; smaller cells train again within a minute.
_LARGE = 10_000_000


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
    scale: str | None = None,
    clean: str | None = None,
    random_state: int = 0,
    verbose: int = 0,
) -> CriterionTable:
    """Train on each criterion, test on each measure: the table of the KDD 2008 paper's Figure 9.

    Parameters
    ----------
    datasets : dict
        From names to a `structrank.datasets.Fold` or a list of folds, as returned by ``load_letor_folds``. The test parts of
        all folds are pooled per query, so they should not overlap.
    trainers : dict, list of names, or None
        Rows. None for `structrank.comparison.trainers.default_trainers`: the rows of the paper's Figures 1 and 9, and below a
        rule rows that are not in the paper. A list of names (case is ignored) for some of these rows and for other criteria,
        such as "ndcg@5"; "paper" stands for all rows of the paper. Or a dict from names to objects with ``fit(X, y, qid=...)``
        and ``predict(X)``, see `structrank.comparison.trainers.Row`, which are copied, never trained.
    measures : str, Measure, or a list of these
        Columns, see `structrank.metrics.evaluate`. Measures given by name follow the paper: binary gain, `discount` and
        `relevant_from` as below. Both conventions of NDCG can be columns: ``["ndcg@10", metrics.NDCG(k=10)]``.
    Cs : sequence of float, default None
        Candidates for C; None for 0.01, 0.1, 1, 10, 100.
    results : path-like, default None
        Folder for finished cells (one trainer on one fold) and, for structured SVMs on large data, for checkpoints of
        unfinished cells. A later call with the same data, trainers and settings reads them instead of training again, so an
        interrupted comparison resumes. Measures may differ, because scores are stored. The code of user-defined trainers is
        not part of the key: use a new folder after changing it. The chosen model of each cell is saved beside it, for
        `structrank.load_model`, if it is a learner of this package.
    n_jobs : int or None, default None
        Cells trained at the same time, each in its own process: None is 1, -1 all cores. Results are the same for any value.
    relevant_from : float, default 1
        Lowest label that counts as relevant, for measures given by name and for the default trainers.
    discount : {"kdd08", "log2"}, default "kdd08"
        Discount for measures given by name and for the default trainers.
    select : str or Measure, default "own"
        Measure by which C is chosen, see below.
    scale : {"query"} or None, default None
        "query" scales each feature to [0, 1] within each query first, see `structrank.datasets.scale_per_query`.
    clean : {"kdd08"} or None, default None
        "kdd08" then drops all-zero vectors and irrelevant near-duplicates of relevant documents, in all parts, see
        `structrank.datasets.clean`. The paper's data were scaled and cleaned; the legend of the table has the counts.
    random_state : int, default 0
        Seed of the inner folds and of the randomisation tests.
    verbose : int, default 0
        1 shows progress on stderr.

    Notes
    -----
    C is chosen per fold and trainer as by `structrank.choose_C`; the model is trained on the whole training part. By default C
    maximises the row's own criterion (the mean over the parts of a COMBO), so a row shows what that criterion alone achieves.
    Choosing by the column's measure would make each row several models; `select` names one measure for all rows. Trainers
    without a path of C are trained once, with the validation part if their ``fit`` takes it.

    Examples
    --------
    >>> from structrank import compare, datasets
    >>> fold = datasets.make_ranking(n_queries=30, n_docs=10, n_features=3, noise=0.5, random_state=0)
    >>> table = compare({"made": fold}, trainers=["AUC", "MAP"], measures=["mrr@10", "map"], Cs=[0.1, 10.0])
    >>> table.to_frame().shape, table.query_ids["made"].tolist()
    ((2, 2), [24, 25, 26, 27, 28, 29])
    """
    folds, preparation = _prepare(_as_folds(datasets), scale, clean, relevant_from)
    random_state = checks.check_number("random_state", random_state, at_least=0, integer=True)
    candidates = tuple(sorted(set(checks.check_Cs(DEFAULT_CS if Cs is None else Cs))))
    conventions: dict[str, Any] = {"gain": "binary", "discount": discount, "relevant_from": relevant_from}
    named = metrics.parse_all(measures, **conventions)
    rows = [Row(*row) for row in as_trainers(trainers, relevant_from, discount, Cs, random_state, named).items()]
    choice = _Choice(
        Cs=candidates,
        select=None if isinstance(select, str) and select == "own" else metrics.parse(select, **conventions),
        random_state=random_state,
    )
    n_jobs = checks.n_threads(n_jobs)
    for dataset, its_folds in folds.items():
        for number, fold in enumerate(its_folds, 1):
            where = f"data set {dataset!r}, fold {number} of {len(its_folds)}"
            _check_fold(where, fold, rows, list(named.values()), choice)

    tasks = [
        _Task(dataset, number, fold, row, choice)
        for dataset, its_folds in folds.items()
        for number, fold in enumerate(its_folds)
        for row in rows
    ]
    files = [None] * len(tasks) if results is None else cell_files(tasks, results)
    cells = _run_all(tasks, files, n_jobs, verbose)
    settings = {
        "relevant_from": relevant_from,
        "discount": discount,
        "Cs": choice.Cs,
        "select": choice.how,
        "random_state": choice.random_state,
        "scale": scale,
        "clean": clean,
        "preparation": [*preparation, *_binarised(folds, rows, named, relevant_from)],
        "trainers": {row.name: repr(row.estimator) for row in rows},
    }
    return CriterionTable(cells, folds, named, choice.random_state, settings)


# ---- Input


def _as_folds(datasets):
    if not isinstance(datasets, Mapping) or not datasets:
        raise ValueError(
            f"datasets is {_shown(datasets)}; expected a dict from names to folds, with at least one, such as "
            f"{{'mine': {_as_fold(datasets)}}}."
        )
    folds = {}
    for name, value in datasets.items():
        listed = list(value) if isinstance(value, (list, tuple)) else [value]
        if not listed:
            raise ValueError(f"data set {name!r} has no folds; expected at least one.")
        for fold in listed:
            if not all(hasattr(fold, part) for part in ("train", "validation", "test")):
                raise ValueError(
                    f"data set {name!r} holds {_shown(fold)}; expected a Fold (train, validation or None, test) or a list of "
                    f"them, such as {_as_fold(fold)}."
                )
        folds[unique_name("data set", name, folds)] = listed
    return folds


def _shown(value):
    plain = value is None or isinstance(value, (str, os.PathLike)) or (isinstance(value, Mapping) and not value)
    return repr(value) if plain else f"a {type(value).__name__}"


def _as_fold(value):
    """Return the expression that makes a fold, or a list of folds, of what was given."""
    if isinstance(value, (str, os.PathLike)):
        path = os.fspath(value)
        return (
            f"datasets.query_folds(datasets.load_table({path!r}))" if is_table(path) else f"datasets.load_letor_folds({path!r})"
        )
    return "datasets.query_folds(data) or datasets.Fold(train, validation, test)" if hasattr(value, "qid") else "fold"


def _prepare(folds, scale, clean, relevant_from):
    """Scale and clean the folds; return them, and a line for the legend on each step and data set."""
    lines = []
    if scale is not None:
        checks.check_choice("scale", scale, ("query",))
        folds = {name: scale_per_query(its_folds) for name, its_folds in folds.items()}
        lines.append("Features are scaled to [0, 1] within each query")
    if clean is not None:
        checks.check_choice("clean", clean, PROTOCOLS)
        cleaned = {}
        for name, its_folds in folds.items():
            counts = {}
            cleaned[name] = [_clean_fold(fold, clean, relevant_from, counts) for fold in its_folds]
            texts = [_removed_text(part, removed) for part, removed in counts.items()]
            lines.append(f"Cleaned ({clean}), {name}: {'; '.join(texts)}")
        folds = cleaned
    return folds, lines


def _clean_fold(fold, protocol, relevant_from, counts):
    """Clean the parts of a fold; add what was removed to `counts`, by the name of the part."""
    parts = {}
    for name in ("test", "train", "validation"):
        part = getattr(fold, name)
        if part is not None:
            part, removed = clean_part(part, protocol, relevant_from=relevant_from)
            counts[name] = counts[name] + removed if name in counts else removed
        parts[name] = part
    return Fold(**parts)


def _removed_text(part, removed):
    alike = removed.relevant + removed.irrelevant - removed.zero
    text = f"{part} {removed.documents:,} to {removed.left:,} documents ({removed.zero:,} all-zero, {alike:,} near-duplicates)"
    return text + (f", {removed.one_sided:,} queries left with one label" if removed.one_sided else "")


def _binarised(folds, rows, measures, relevant_from):
    """Return a line on data sets whose grades are reduced to binary relevance by default, if there are any, in a list."""
    default = any(row.needs_relevance and row.estimator.relevant_from == 1 for row in rows)
    default = default or any(getattr(measure, "gain", None) == "binary" for measure in measures.values())
    if relevant_from != 1 or not default:
        return []
    graded = [name for name, its_folds in folds.items() if np.unique(np.concatenate([f.train.y for f in its_folds])).size > 2]
    uses = "measures with gain=binary and rows trained on binary relevance use only whether a label is at least 1"
    instead = "NDCG with gain=exp2, and rows trained for it, use grades"
    return [f"{BINARISED}{uses} ({', '.join(graded)}); {instead}"] if graded else []


def _check_fold(where, fold, rows, measures, choice):
    """Raise if training or testing on a fold is bound to fail, before anything is trained."""
    parts = {name: getattr(fold, name) for name in ("train", "validation", "test") if getattr(fold, name) is not None}
    data = {}
    for name, part in parts.items():
        try:
            data[name] = RankingData.of(part)
            data[name].check_columns(data["train"])
            if name == "test":
                metrics.evaluate(part.y, np.zeros(len(data[name].labels)), part.qid, measures)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{where}, {name} part: {error}") from None
    for row in rows:
        if hasattr(row.estimator, "check_labels"):
            try:
                row.estimator.check_labels(data["train"].labels)
            except ValueError as error:
                raise ValueError(f"{where}, train part, trainer {row.name!r}: {error}") from None
    for least in {row.estimator.relevant_from for row in rows if row.needs_relevance}:
        wanted = "different labels" if least is None else f"both relevant (label >= {least:g}) and irrelevant documents"
        usable = data["train"].usable(least)
        if not usable.any():
            raise ValueError(
                f"{where}: no query of the train part has {wanted}, so there is nothing to learn from. Is relevant_from right?"
            )
        choosing = [row.name for row in rows if row.needs_relevance and row.estimator.relevant_from == least and row.chooses_C]
        if len(choice.Cs) == 1 or not choosing:
            continue
        if "validation" in data:
            part, measured = "validation", np.ones(data["validation"].grouping.n_queries, dtype=bool)
            if not data[part].usable(least).any():
                raise ValueError(f"{where}: no query of the validation part has {wanted}, so C cannot be chosen on it.")
        else:
            part, measured = "train", usable  # which inner folds hold
            if usable.sum() == 1:
                raise ValueError(
                    f"{where}: only one query of the train part has {wanted}, and there is no validation part to choose C on. "
                    "Pass one, or a single C."
                )
        if choice.select is not None and not choice.is_defined(data[part])[measured].any():
            raise ValueError(
                f"{where}: {choice.how} is undefined for all queries of the {part} part, so C cannot be chosen by it."
            )


# ---- Work


@dataclass(frozen=True)
class _Choice:
    """Settings for the selection of C; `select` is None for the criterion of each row."""

    Cs: tuple
    select: Measure | None
    random_state: int

    @property
    def how(self):
        """Name and settings of the measure."""
        if self.select is None:
            return "own"
        return f"{self.select.name} ({self.select.settings})" if self.select.settings else self.select.name

    def is_defined(self, part):
        """Return a mask of the queries for which `select` is defined."""
        return ~np.isnan(part.evaluator(self.select).per_query(np.zeros(part.labels.shape[0])))

    def train(self, trainer, train, validation, begun):
        """Return the model of the chosen C, C, and its mean score, None if there is nothing to choose."""
        C, reached, model, train = self.Cs[0], None, None, RankingData.of(train)
        validation = None if validation is None else RankingData.of(validation)
        if len(self.Cs) > 1 or validation is not None:
            splits = held_out(train, validation, trainer.relevant_from, self.random_state)
            splits = splits if len(self.Cs) > 1 else itertools.islice(splits, 1)
            measures = trainer.measures() if self.select is None else [self.select]
            path = score_path(trainer, splits, self.Cs, measures, begun, validation is not None)
            if path.interrupted:
                raise KeyboardInterrupt
            C, reached, model = path.C, float(path.means[path.best]), path.trained
        if model is None:
            (model,) = fit_whole_path(trainer, train, [C], None if begun is None else begun / "whole")
        return model, C, reached


@dataclass(frozen=True, eq=False)
class _Task:
    """A cell to be computed."""

    dataset: str
    number: int
    fold: Fold
    trainer: Row
    choice: _Choice

    def run(self, file):
        """Train, predict, and store the cell in its file, if it has one; return it, and the OSError if it was not stored."""
        from threadpoolctl import threadpool_limits

        try:
            # BLAS sums in an order that depends on the number of threads, and processes share the cores.
            with threadpool_limits(limits=1, user_api="blas"):
                cell, model = self._fill(None if file is None or not self._takes_long() else file.begun)
        except Exception as error:
            error.add_note(f"in compare: trainer {self.trainer.name!r}, data set {self.dataset!r}, fold {self.number + 1}")
            raise
        try:
            if file is not None:
                file.save(cell, model)
        except OSError as error:
            return cell, error
        return cell, None

    def _takes_long(self):
        return checks.as_matrix(self.fold.train.X).size >= _LARGE

    def _fill(self, begun):
        train, test, validation = self.fold.train, self.fold.test, self.fold.validation
        started = time.perf_counter()
        model, C, reached = self.trainer.fresh(), None, None
        if self.trainer.chooses_C:
            model, C, reached = self.choice.train(model, train, validation, begun)
            notes = model.notes_
        else:
            more = {"validation": validation} if self.trainer.takes_validation and validation is not None else {}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(train.X, train.y, qid=train.qid, **more)
            check_finished(model)
            shown = [str(warning.message) for warning in caught if not issubclass(warning.category, DeprecationWarning)]
            notes = tuple(dict.fromkeys([*getattr(model, "notes_", ()), *shown]))
        notes = tuple(note for note in notes if not note.startswith(BINARISED))  # said once, in the legend
        seconds = time.perf_counter() - started
        scores = checks.as_scores(metrics.predict(model, test.X, test.qid), len(test.y), against="the test part")
        vacuous = hasattr(model, "health_") and model.health_.vacuous
        return Cell(self.dataset, self.number, self.trainer.name, C, reached, seconds, notes, scores, vacuous), model


def _run_all(tasks, files, n_jobs, verbose):
    """Return the cells of all tasks in their order, from their files where these have them."""
    import joblib

    cells = [None if file is None else file.load() for file in files]
    missing = [number for number, cell in enumerate(cells) if cell is None]
    n_jobs = min(n_jobs, max(1, len(missing)))
    progress = _Progress(len(cells) - len(missing), len(missing), n_jobs) if verbose else None
    # Writable maps of large arrays: for arrays that are read-only, numba would compile everything anew.
    parallel = joblib.Parallel(n_jobs, mmap_mode="c", return_as="generator_unordered")
    run = functools.partial(joblib.delayed(_run_one), list(criteria.registered().values()))
    warned = False
    for number, cell, error, compiling in parallel(run(number, tasks[number], files[number]) for number in missing):
        cells[number] = cell
        if error is not None and not warned:
            text = f"Cells cannot be kept in {files[number].path.parent}: {error.strerror}. The comparison goes on without."
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            warned = True
        if progress is not None:
            progress.advance(cell, compiling)
    if progress is not None:
        progress.finish()
    return cells


def _run_one(registered, number, task, file):
    for pair in registered:  # perhaps this is another process
        criteria.register(*pair)
    before = compile_time.seconds()
    cell, error = task.run(file)
    return number, cell, error, compile_time.seconds() - before


class _Progress:
    """Shows how many cells are done. The estimate of the time left ignores what compiling took, in `n_jobs` processes."""

    def __init__(self, n_kept, n_missing, n_jobs):
        self.n_kept, self.n_missing, self.n_done = n_kept, n_missing, 0
        self.n_jobs, self.compiling = n_jobs, 0.0
        self.line, self.started = ProgressLine(), time.perf_counter()
        self.line.update(self._text("starting"))

    def advance(self, cell, compiling):
        self.n_done += 1
        self.compiling += compiling / self.n_jobs
        seconds = time.perf_counter() - self.started
        left = max(seconds - self.compiling, 0.0) / self.n_done * (self.n_missing - self.n_done)
        self.line.update(
            self._text(f"{cell.dataset}, fold {cell.fold + 1}: {cell.trainer}  {seconds:.0f} s, {left:.0f} s left")
        )

    def finish(self):
        self.line.finish(self._text(f"{time.perf_counter() - self.started:.1f} s"))

    def _text(self, what):
        kept = f" ({self.n_kept} kept from earlier)" if self.n_kept else ""
        return f"{self.n_kept + self.n_done} of {self.n_kept + self.n_missing} cells{kept}  {what}"
