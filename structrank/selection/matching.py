"""Training for the evaluation measure: candidate criteria and bounds are trained, and validation queries choose.

The criterion named after the measure is often not the best to train on (`structrank.compare`): its convex bound may be loose,
even vacuous, and its ramp bound may fit the noise of few queries. `train_for` therefore trains AUC, MAP, NDCG-NC, these three
together and the measure's own criterion with both bounds, and compares them on validation queries. Each convex bound is
trained along a path of C. The ramp bound takes longer than all of these, and goes through values of C by itself. So it starts
from the C of its convex bound alone: starts from five values took 2.8 times the CPU time of `train_for`, for a test measure
that was lower by 0.0003 (standard error 0.0005) in 24 trainings on synthetic data and digits, and higher by 0.0002 (0.0012) in
8 with grades. Where the convex bound is vacuous, it starts from every second C; from all of them, the test measure of the ramp
bound was higher by 0.0002 (0.0020) in 22 trainings. And it is trained last and dropped after a split where another candidate
is better by more than the standard error of the difference: this saves 28 % of its time, for a test measure of the choice that
was higher by 0.0004 (0.0003) in 15 trainings.

With few queries the comparison is uncertain, so the measure's
own criterion is kept (with the ramp bound if its convex bound is vacuous) unless another is better by more than the standard
error of the difference. MRR depends on one document per query and is noisy, so for MRR the comparison uses MAP, which on
synthetic data also gives a higher MRR.

For a measure of grades (`structrank.metrics.NDCG` with its default gain, `structrank.metrics.ERR`) on labels with more than two
grades, there are candidates on grades as well: AUC, DORM and the measure's own criterion with both bounds
(`structrank.selection.candidates`). The best of these is kept, unless a binary one is better by more than the standard error.

A line search on the measure (`structrank.selection.polish`) follows, for the number of steps that is best on validation
queries. The inner folds leave models of the chosen candidate behind, polished alike; the weights are the mean of all of these,
which has less variance than the model of all training queries alone. In 90 trainings on synthetic data the test measure is
higher by 0.0008 (standard error 0.0005), in 15 on webis-clueweb09 by 0.0076 (0.0034).
"""

from __future__ import annotations

import functools
import shutil
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structrank import metrics
from structrank._support import checks, compile_time
from structrank._support.content import describe
from structrank._support.progress import ProgressLine
from structrank._support.saveable import record
from structrank._support.text import printable
from structrank._support.typing import Path
from structrank.comparison.significance import paired_randomisation_test, standard_error_ratio
from structrank.datasets.containers import Dataset
from structrank.metrics import Measure
from structrank.models.fitting import keep_steps
from structrank.models.ranker import FeatureRanker
from structrank.preparation import steps_of
from structrank.selection.candidates import GRADED, RAMP, binary_candidates, graded_candidates, uses_grades
from structrank.selection.choosing_c import fit_whole_path, held_out, prepare_split, score_path, values_of
from structrank.selection.polish import LineSearch, Polish, TooManyPairsError, is_polishable, scores_by_query
from structrank.svm import DEFAULT_CS, StructRankSVM
from structrank.training.checkpoint import CheckpointFolder, KeptState
from structrank.training.data import RankingData, score_rows
from structrank.training.structured_loss import BINARISED


@record
@dataclass(frozen=True)
class Trial:
    """A criterion trained along its path of C; printed as a row of `Selection`.

    Attributes
    ----------
    name : str
    bound : {"convex", "ramp"}
    C : float
        The best C of the path, by the value on validation queries.
    train, validation : float
        The selection measure on the training and on the validation queries; with inner folds, means over the folds.
    vacuous : bool
        Whether the bound was vacuous in any fold.
    seconds : float
        Training time of the whole path, without compiling.
    dropped : bool
        Whether training ended before the last split, as another trial was better by more than the standard error of the
        difference. Then `train` and `validation` are of the splits before.
    """

    name: str
    bound: str
    C: float
    train: float
    validation: float
    vacuous: bool
    seconds: float
    dropped: bool = False


@record
@dataclass(frozen=True, repr=False)
class Selection:
    """The trials, and the reason for the choice; printing shows both.

    Attributes
    ----------
    measure : str
        The evaluation measure, with the settings that are not the defaults of `train_for`.
    winner : str
        Name of the chosen trial.
    trials : tuple of Trial
        Sorted by value on validation queries, best first; those that were dropped come last.
    n_queries : int
        Number of validation queries for which the measure is defined.
    inner_folds : bool
        Whether these include inner folds of the training queries.
    p_value : float
        p-value of the paired randomisation test between the winner and the best other trial, over these queries.
    judge : str
        The measure used to choose C and criterion, if it differs from `measure`: "map" for MRR.
    """

    measure: str
    winner: str
    trials: tuple
    n_queries: int
    inner_folds: bool
    p_value: float
    judge: str = ""

    def to_frame(self):
        """Return a pandas frame with one row per trial, best first."""
        import pandas as pd

        return pd.DataFrame([vars(trial) for trial in self.trials]).set_index("name").rename_axis("trained on")

    def __repr__(self):
        where = "with inner folds of the training queries" if self.inner_folds else "validation queries"
        frame = self.to_frame()
        frame.loc[frame["dropped"], ["train", "validation"]] = np.nan  # of other queries than those of the other trials
        for column in ("vacuous", "dropped"):
            frame[column] = np.where(frame[column], "yes", "")
        frame.index = frame.index.map(printable)
        shown = frame.to_string(
            formatters={"C": "{:g}".format, "seconds": "{:.1f}".format}, float_format="{:.4f}".format, na_rep=""
        )
        by = f"for {self.measure} by {self.judge}" if self.judge else f"by {self.measure}"
        return f"Chosen {by} on {self.n_queries} queries ({where}).\n\n{shown}\n\n{printable(self.reason)}"

    @property
    def reason(self):
        """The reason for the choice, as a sentence."""
        (winner,) = (trial for trial in self.trials if trial.name == self.winner)
        other = next(trial for trial in self.trials if trial.name != self.winner)
        lead = winner.validation - other.validation
        if lead > 0.0:
            likely = "unlikely to be chance" if self.p_value <= 0.05 else "which may be chance: either is a reasonable choice"
            return f"{winner.name} is ahead of {other.name} by {lead:.4f} (p = {self.p_value:.3f}), {likely}."
        if lead == 0.0:
            return f"{winner.name} and {other.name} are tied; the first by order of preference is chosen."
        little = "less than the standard error of the difference" if self.n_queries > 1 else "which one query cannot confirm"
        graded = winner.name.startswith(GRADED)
        why = "is trained on grades, which the measure uses" if graded else "optimises the measure directly"
        return (
            f"{winner.name} is behind {other.name} by {-lead:.4f}, {little} (p = {self.p_value:.3f}); it is "
            f"preferred because it {why}."
        )


def train_for(
    measure: str | Measure,
    train: Dataset,
    validation: Dataset | None = None,
    *,
    Cs: Sequence[float] = DEFAULT_CS,
    relevant_from: float = 1,
    discount: str = "kdd08",
    scale: str | None = None,
    missing: Any = "error",
    preparation: Any = None,
    normalise: Any = None,
    random_state: int = 0,
    verbose: int = 0,
    checkpoint: Path | None = None,
) -> StructRankSVM:
    """Train for an evaluation measure.

    AUC, MAP, NDCG-NC, these three together and the measure's own criterion are trained on their convex bounds for every C, the
    last also on the ramp bound (see `structrank.training.ramp`), for the C of the convex bound, or every second C if that is
    vacuous; it is dropped after an inner fold if another criterion is better by more than the standard error.
    The measure's own criterion wins, with the ramp bound if its convex bound is vacuous, unless another is better on validation
    queries by more than the standard error of the difference (for MRR compared by MAP, which is less noisy). For a measure of
    grades, NDCG with a gain that is not binary or ERR, on labels with more than two grades, graded AUC, graded DORM and the
    measure's own criterion on grades, with its gain, discount and cutoff, are trained as well, and the best of them wins unless
    a binary one is better by more than the standard error. Exact line searches on the measure then polish the winner on the
    training queries (see `structrank.selection.polish`; not for "auc" and "err"), for the number of steps that is best on
    validation queries; for none if no number gains. The weights are the mean of those of all training queries and those of the
    inner folds, scaled to the same spread of scores within queries.

    Parameters
    ----------
    measure : str or Measure
        "map", "mrr[@k]", "ndcg[@k]", "auc", "err@k", or a measure registered with its criterion by `structrank.register`.
        Measures given by name follow the conventions of `structrank.compare`: binary gain, `discount` and `relevant_from` as
        here. A `Measure` keeps its own settings: ``metrics.NDCG(k=10)`` has the gain 2^label - 1. Its `relevant_from`, if it
        uses one, also applies to training.
    train : Dataset
        Has ``X``, ``y`` and ``qid``.
    validation : Dataset, default None
        Queries for the comparison. If there are fewer than 1,000, three inner folds of the training queries are added: models
        trained on two folds rank the third.
    Cs : sequence of float, default (0.01, 0.1, 1, 10, 100)
        Candidates; C is chosen as by `structrank.choose_C`.
    relevant_from : float, default 1
        Lowest label that counts as relevant, except for candidates on grades.
    discount : {"kdd08", "log2"}, default "kdd08"
    scale : {None, "std"}, default None
        Scale of the columns while training, see `StructRankSVM`.
    missing, normalise
        Rules for missing values and normaliser within the query, as for `StructRankSVM`; part of the model as these:
    preparation : Step, list of Step, or None, default None
        Steps from raw values to features, a part of the model, see `structrank.preparation`. Each inner fold has its own
        constants.
    random_state : int, default 0
        Seed of the inner folds and of the test.
    verbose : int, default 0
        1 shows a progress line on stderr.
    checkpoint : path-like, default None
        Folder for finished trials and for checkpoints of the running one. If training is killed, the same call resumes it and
        ends with the same model, bit for bit; see `structrank.training.checkpoint`.

    Returns
    -------
    StructRankSVM
        The winner, trained on all training queries, with ``selection_``, a `Selection` with the trials and the reason for the
        choice, and ``polish_``, a `structrank.selection.polish.Polish`. Certificate, health and history are of the weights
        before polishing and averaging; `polish_` is of the weights before averaging.

    See Also
    --------
    MeasureMatched : `train_for` as an estimator.
    structrank.selection.polish.polish : The last step alone.

    Examples
    --------
    >>> from structrank import datasets, train_for
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=4, noise=0.5, random_state=0)
    >>> model = train_for("ndcg@10", fold.train, fold.validation, Cs=[1.0, 10.0])
    >>> model.selection_.to_frame().index.sort_values().tolist()
    ['AUC', 'AUC + MAP + NDCG-NC', 'MAP', 'NDCG-NC', 'NDCG@10', 'NDCG@10, ramp']
    >>> model.predict(fold.test.X).shape == fold.test.y.shape
    True
    """
    checks.check_number("relevant_from", relevant_from)
    conventions: dict[str, Any] = {"gain": "binary", "discount": discount, "relevant_from": relevant_from}
    measure = metrics.parse(measure, **conventions)
    graded = uses_grades(measure)
    if not graded:
        relevant_from = getattr(measure, "relevant_from", relevant_from)
    binary = binary_candidates(measure, relevant_from, discount)
    Cs = sorted(set(checks.check_Cs(Cs)))
    random_state = checks.check_number("random_state", random_state, at_least=0, integer=True)
    parameters = {"missing": missing, "preparation": preparation, "normalise": normalise}
    prepares = steps_of(**parameters)  # raises, before any work, if one is not valid
    learn, unseen = _prepare(train, validation, measure, None if graded else relevant_from, is_raw=bool(prepares))
    raw = learn
    splits = list(held_out(learn, unseen, None if graded else relevant_from, random_state))
    splits = splits if validation is None else [*splits[1:], splits[0]]
    if prepares:
        splits = [prepare_split(prepares, *pair)[:2] for pair in splits]
        learn, _, steps = prepare_split(prepares, learn, learn)
    on_grades = graded_candidates(measure, learn, relevant_from) if graded else {}
    if on_grades and not all(part.usable(relevant_from).any() for part, _ in splits):
        binary = {}
    candidates = {name: trainer.set_params(scale=scale) for name, trainer in (binary | on_grades).items()}
    judge = metrics.MAP(relevant_from=measure.relevant_from) if isinstance(measure, metrics.MRR) else measure

    places = _Places(checkpoint, splits, Cs, judge)
    line = ProgressLine() if verbose else None
    tried = _try_all(candidates, splits, Cs, judge, places, line)
    winner, other = _choose(tried, on_grades)
    tried.sort(key=lambda one: (one.trial.dropped, -one.trial.validation))
    if validation is None:
        (model,) = fit_whole_path(candidates[winner.trial.name], learn, [winner.trial.C], places.folder("winner"))
    else:
        model = winner.models[-1]
    model.selection_ = Selection(
        metrics.full_name(measure, **conventions),
        winner.trial.name,
        tuple(one.trial for one in tried),
        int(np.isfinite(winner.values).sum()),
        len(splits) > 1,
        paired_randomisation_test(winner.values, other.values, random_state=random_state),
        "" if judge is measure else judge.name,
    )
    weights = [one.coef_ for one in (*(one for one in winner.models if one is not model), model)]
    if is_polishable(measure):
        if line is not None:
            line.update(f"{len(candidates)} criteria  polishing {winner.trial.name}")
        try:
            weights = _polish(model, winner.models, learn, splits, measure, random_state)
        except TooManyPairsError as error:
            model.notes_ += (f"Not polished: {error}",)
    model.coef_ = _mean_of(weights, learn)
    if line is not None:
        line.finish(f"{len(candidates)} criteria  {model.selection_.reason}")
    model.notes_ = tuple(note for note in model.notes_ if not note.startswith(BINARISED))
    if not graded and relevant_from == 1 and isinstance(measure, metrics.NDCG) and np.unique(learn.labels).size > 2:
        model.notes_ += (
            f"{BINARISED}{measure.name} with gain='binary' uses binary relevance (label >= 1); "
            f"metrics.NDCG(k={measure.k}, gain='exp2') uses grades.",
        )
    if prepares:
        keep_steps(model, parameters, steps, raw.n_features, raw.column_names)
    if all(one.trial.vacuous for one in tried):  # otherwise validation queries have confirmed the winner
        warnings.warn(" ".join(model.notes_), checks.StructRankWarning, stacklevel=2)
    return model


def _try_all(candidates, splits, Cs, judge, places, line):
    """Train each candidate along the path of C, the ramp bounds last; return the trials in the order of the candidates."""
    tried = {}
    for number, name in enumerate(sorted(candidates, key=lambda name: candidates[name].bound == "ramp")):
        trainer, own_Cs, rivals = candidates[name], Cs, []
        if line is not None:
            line.update(f"{number} of {len(candidates)} criteria  training on {name}")
        if trainer.bound == "ramp":  # takes longer than all others, and goes through the values of C by itself
            convex, rivals = tried[name.removesuffix(RAMP)].trial, list(tried.values())
            own_Cs = (Cs[1::2] or Cs) if convex.vacuous else [convex.C]
        attempt = functools.partial(_try, name, trainer, splits, own_Cs, judge, rivals)
        tried[name] = places.keep(number, trainer, attempt)
    return [tried[name] for name in candidates]


def _choose(tried, on_grades):
    """Return the winner of the trials, which end with the convex and the ramp bound of the measure, and the best other one."""
    convex, ramp = tried[-2:]
    tried = sorted((one for one in tried if not one.trial.dropped), key=lambda one: -one.trial.validation)
    preferred = convex
    if on_grades:
        preferred = next(one for one in tried if one.trial.name in on_grades)
    elif convex.trial.vacuous:
        preferred = tried[0] if ramp.trial.dropped else ramp
    winner = tried[0] if standard_error_ratio(tried[0].values, preferred.values) > 1.0 else preferred
    return winner, next(one for one in tried if one is not winner)


def _polish(model, models, train, splits, measure, random_state):
    """Search lines from w, for the number of steps after which the models of the splits are best on unseen queries.

    Returns the weights of the models of the splits and of `model` after these steps; there are none if no step gains.
    """

    def walk(start, part):
        search = LineSearch(part, measure)
        return search, [start.coef_, *search.moves(start.coef_, np.random.default_rng(random_state))]

    search, path = walk(model, train)
    paths = [path if one is model else walk(one, learn)[1] for one, (learn, _) in zip(models, splits, strict=True)]
    by_split = [[_per_query(w, check, measure) for w in steps] for steps, (_, check) in zip(paths, splits, strict=True)]
    longest = max(len(values) for values in by_split)
    by_steps = [np.concatenate([values[min(n, len(values) - 1)] for values in by_split]) for n in range(longest)]
    n_steps = min(int(np.argmax([np.nanmean(values) for values in by_steps])), len(path) - 1)
    reached = [float(np.nanmean(by_steps[n])) for n in (0, n_steps)]
    ends = [float(np.nanmean(_per_query(w, train, measure))) for w in (path[0], path[n_steps])]
    model.polish_ = Polish(measure.name, tuple(ends), tuple(reached), n_steps, search.n_lines)
    others = [steps for steps in paths if steps is not path]
    return [steps[min(n_steps, len(steps) - 1)] for steps in (*others, path)]


def _mean_of(weights, data):
    """Return the mean of weight vectors, after scaling all to the spread of scores that the last has."""
    spreads = [scores_by_query(data, w)[1] for w in weights]
    scaled = [w * (spreads[-1] / spread) for w, spread in zip(weights, spreads, strict=True) if spread > 0.0]
    return np.mean(scaled, axis=0) if scaled else weights[-1]


@dataclass(frozen=True)
class _Tried:
    """A trial with its value for each validation query and its models, one per split."""

    trial: Trial
    values: np.ndarray
    models: list


class _Places:
    """Where finished trials and checkpoints of the running one are kept; nothing is kept if `checkpoint` is None."""

    def __init__(self, checkpoint, splits, Cs, judge):
        self._root = self._data = None
        if checkpoint is not None:
            self._root = CheckpointFolder.create(checkpoint)
            parts = [(part.X, part.labels, part.grouping.query_of_row()) for split in splits for part in split]
            self._data = {"the data": describe(parts), "Cs": Cs, "measure": judge}

    def folder(self, name):
        """Return a folder for checkpoints."""
        return None if self._root is None else self._root / name

    def keep(self, number, trainer, attempt):
        """Return a kept trial, or try with ``attempt(folder)`` and keep the result."""
        folder = self.folder(f"trial-{number + 1}")
        kept = KeptState(folder, trainer, self._data)
        if kept.state is not None:
            return _Tried(**kept.state)
        tried = attempt(folder)
        kept.finish(lambda: vars(tried))
        if folder is not None:  # the trial is kept without the checkpoints of its fits
            shutil.rmtree(folder / "fits", ignore_errors=True)
        return tried


def _prepare(train, validation, measure, relevant_from, is_raw):
    """Return the training and the validation part as `RankingData`, after checking them; raw values need not be finite."""
    data, usable = {"validation": None}, {}
    for name, part in {"train": train, "validation": validation}.items():
        if part is None and name == "validation":
            continue
        checks.check_dataset(name, part)
        try:
            data[name] = RankingData(part.X, part.y, part.qid, check_finite=False) if is_raw else RankingData.of(part)
            data[name].check_columns(data["train"])
            measure.check_labels(data[name].labels)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name} part: {error}") from None
        usable[name] = int(data[name].usable(relevant_from).sum())
        least = 2 if validation is None else 1
        if usable[name] < least:
            wanted = "different labels"
            if relevant_from is not None:
                wanted = f"both relevant (label >= {relevant_from:g}) and irrelevant documents"
            raise ValueError(
                f"{name} part: {usable[name]} of its queries have {wanted}; expected at least {least}"
                + (", or a validation part." if least == 2 else ".")
            )
    return data["train"], data["validation"]


def _try(name, trainer, splits, Cs, judge, rivals, folder):
    """Train along the path of C on each split, and choose C; checkpoints are written below a folder, unless it is None.

    A trial ends when one of its rivals is better by more than the standard error of the difference, over the queries so far.
    """

    def is_behind(values):
        best = values[np.argmax(np.nanmean(values, axis=1))]
        others = [rival.values[: best.size] for rival in rivals if rival.values.size > best.size]
        return bool(others) and standard_error_ratio(max(others, key=np.nanmean), best) > 1.0

    started, compiled = time.perf_counter(), compile_time.seconds()
    path = score_path(trainer, splits, Cs, [judge], None if folder is None else folder / "fits", stop=is_behind)
    seconds = time.perf_counter() - started - (compile_time.seconds() - compiled)
    models = [models[path.best] for models in path.models]
    train = [np.nanmean(values_of(model, learn, [judge])) for model, (learn, _) in zip(models, splits, strict=False)]
    trial = Trial(
        name,
        trainer.bound,
        path.C,
        float(np.mean(train)),
        float(path.means[path.best]),
        any(model.health_.vacuous for model in models),
        seconds,
        len(models) < len(splits),
    )
    return _Tried(trial, np.concatenate(path.values, axis=1)[path.best], models)


def _per_query(w, part, measure):
    return part.evaluator(measure).per_query(score_rows(part.X, w))


@dataclass(eq=False, repr=False)
class MeasureMatched(FeatureRanker):
    """`train_for` as an estimator, also usable as a row of `structrank.compare`.

    Parameters
    ----------
    measure, Cs, relevant_from, discount, scale, random_state, verbose, missing, preparation, normalise
        As for `train_for`.

    Attributes
    ----------
    model_ : StructRankSVM
        The winner; ``save`` writes it to a file and `structrank.load_model` reads it.
    selection_ : Selection
        The trials and the reason for the choice.
    health_ : Health
        Health of the winner.
    notes_ : tuple of str
        The choice in short, and the notes of the winner.

    Examples
    --------
    >>> from structrank import compare, datasets
    >>> from structrank.comparison.trainers import default_trainers
    >>> from structrank.selection.matching import MeasureMatched
    >>> fold = datasets.make_ranking(n_queries=40, n_docs=8, n_features=3, noise=0.5, random_state=0)
    >>> rows = {"AUC": default_trainers()["AUC"], "for map": MeasureMatched("map", Cs=[1.0])}
    >>> compare({"made": fold}, rows, measures="map", Cs=[1.0]).to_frame().shape
    (2, 1)
    """

    measure: str | Measure = "ndcg@10"
    Cs: Sequence[float] = DEFAULT_CS
    relevant_from: float = 1
    discount: str = "kdd08"
    scale: str | None = None
    random_state: int = 0
    verbose: int = 0
    _prepares_itself = True

    def fit(self, X, y, qid=None, validation=None):
        """Train; arguments as for `StructRankSVM.fit`, and `validation` as for `train_for`."""
        self.model_ = train_for(**self.get_params(deep=False), train=Dataset(X, y, qid), validation=validation)
        self.selection_, self.health_ = self.model_.selection_, self.model_.health_
        (chosen,) = (trial for trial in self.selection_.trials if trial.name == self.selection_.winner)
        polished = getattr(self.model_, "polish_", None)
        n_steps = 0 if polished is None else polished.steps
        steps = f", polished by {n_steps} step{'s' * (n_steps > 1)}" if n_steps else ""
        # Commas come after what the notes of several folds share.
        name = chosen.name.replace(RAMP, " with the ramp bound")
        self.notes_ = (f"Chose {name}, C = {chosen.C:g}{steps}.", *self.model_.notes_)
        self.n_features_in_ = self.model_.n_features_in_
        return self

    def predict(self, X, qid=None):
        """Score documents; higher is better."""
        check_is_fitted(self)
        return self.model_.predict(X, qid)

    def _scores_of_queries(self, X, qid):
        return self.predict(X, qid)

    def save(self, path):
        """Write the winner to a file, see `structrank.models.ranker.Ranker.save`."""
        check_is_fitted(self)
        self.model_.save(path)
