"""Selection of C: one rule and one grid for `choose_C`, `StructRankSVMCV`, `compare`, `train_for` and the command line.

Models along the path of C are compared on queries that they were not trained on: those of a validation part, ranked by models
of the whole training part, and those of inner folds of the training queries, each ranked by models of the other folds. Each
query counts once, the C with the largest mean wins, and ties go to the smallest C, or to the larger mean of a second measure if
one is given. Validation parts of at least 1,000 queries are used alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from structrank import metrics
from structrank._support import checks
from structrank._support.saveable import saveable
from structrank.models.fitting import names_of_columns
from structrank.models.ranker import raw_names
from structrank.preparation import fit_steps, names_of, parameters_of, prepare, steps_of
from structrank.selection.graded import graded_order
from structrank.svm import DEFAULT_CS, StructRankSVM
from structrank.training.checkpoint import CheckpointFolder
from structrank.training.data import RankingData, score_rows

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd
    from numpy.typing import ArrayLike

    from structrank._support.typing import Matrix, Path
    from structrank.criteria import Criterion
    from structrank.datasets import Dataset
    from structrank.metrics import Measure

# Inner folds of the training queries. In 420 choices on digits, webis-clueweb09 and synthetic data, the chosen C lost on test
# queries against the best one: 0.0045 with validation queries and three folds together, 0.0050 with five folds, 0.0049 with
# validation queries alone, 0.0052 with three folds alone, 0.0058 with the smallest C within a standard error of the best.
N_FOLDS = 3
# With fewer validation queries, inner folds are added: the mean of 1,000 differences of standard deviation 0.1 has a standard
# error of 0.003, about the difference between criteria.
FEW_QUERIES = 1000


@dataclass(frozen=True, eq=False, repr=False)
class ScoredPath:
    """Models along the path of C for several splits of the queries, and how well they rank the queries held out.

    Attributes
    ----------
    Cs : tuple of float
        In increasing order.
    models : list of list of StructRankSVM
        For each split, the model of each C.
    values : list of (n_Cs, n_queries) arrays
        For each split, the measure of each C and held-out query, nan where it is undefined.
    weights : list of (n_queries,) arrays
        Weights of these queries.
    has_validation : bool
        Whether the first split is the training part and the validation part; the others are inner folds.
    interrupted : bool
        Whether Ctrl-C has left out values of C, or folds.
    tie_breakers : list of list
        As `values`, for each measure that decides between equal means of all measures before it.

    Examples
    --------
    >>> path = ScoredPath((0.1, 1.0), [], [np.array([[0.5, 0.5], [0.25, 0.75]])], [np.ones(2)])
    >>> path, path.C
    (ScoredPath(chose C = 0.1 on 2 queries; C=0.1: 0.5000, C=1: 0.5000), 0.1)
    """

    Cs: tuple
    models: list
    values: list
    weights: list
    has_validation: bool = False
    interrupted: bool = False
    tie_breakers: list = field(default_factory=list)

    @cached_property
    def means(self):
        """Mean over all held-out queries for which the measure is defined, for each C."""
        return self._means_of(self.values)

    def _means_of(self, values):
        return _means(np.concatenate(values, axis=1), np.concatenate(self.weights))

    @cached_property
    def scores(self):
        """Mean of each C (row) over the held-out queries of each split (column)."""
        return np.column_stack([_means(values, weights) for values, weights in zip(self.values, self.weights, strict=True)])

    @cached_property
    def best(self):
        """Position of the chosen C."""
        if np.isnan(self.means[0]):
            raise ValueError("the measure is undefined for all held-out queries, so C cannot be chosen by it.")
        columns = [self.means, *(self._means_of(values) for values in self.tie_breakers)]
        return int(graded_order(np.column_stack(columns))[0])

    @property
    def C(self):
        """The chosen C."""
        return self.Cs[self.best]

    @property
    def trained(self):
        """Model of the chosen C, trained on all training queries; None without a validation part."""
        return self.models[0][self.best] if self.has_validation else None

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas frame of `scores`, and their means over the queries: one row per C."""
        import pandas as pd

        n_folds = self.scores.shape[1] - self.has_validation
        names = ["validation"] * self.has_validation + [f"fold {number}" for number in range(1, n_folds + 1)]
        return pd.DataFrame(self.scores, pd.Index(self.Cs, name="C"), names).assign(mean=self.means)

    def __repr__(self):
        n_queries = sum(int(np.isfinite(values[0]).sum()) for values in self.values)
        shown = ", ".join(f"C={C:g}: {mean:.4f}" for C, mean in zip(self.Cs, self.means, strict=True))
        return f"ScoredPath(chose C = {self.C:g} on {n_queries} queries; {shown})"


def choose_C(
    X: Matrix,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    model: str | Criterion | Sequence[str | Criterion] | StructRankSVM = "map",
    *,
    measure: str | Measure | Sequence[str | Measure] | None = None,
    Cs: Sequence[float] = DEFAULT_CS,
    cv: int = N_FOLDS,
    validation: Dataset | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int = 0,
    checkpoint: Path | None = None,
) -> ScoredPath:
    """Choose C on held-out queries.

    Parameters
    ----------
    X, y, qid, sample_weight
        Training data, as for `StructRankSVM.fit`.
    model : StructRankSVM, or criterion, default "map"
        Its C is not used, and it is not changed.
    measure : str, Measure, a list of these, or None, default None
        Measure to maximise, as for `structrank.metrics.parse`; None for the criterion, as `StructRankSVM.score` measures it.
        With a list, a graded measure, the second decides between values of C with equal means of the first, and so on, see
        `structrank.selection.graded.graded_order`.
    Cs : sequence of float, default (0.01, 0.1, 1, 10, 100)
        Candidates; ties go to the smallest.
    cv : int, default 3
        Number of inner folds of the training queries. A query is never split, and queries without both relevant and irrelevant
        documents are left out.
    validation : Dataset, default None
        Further queries to choose on, ranked by models of all training data; with at least 1,000 of them there are no folds.
    random_state : int, default 0
        Seed of the folds.
    checkpoint : path-like, default None
        Folder for checkpoints, see `structrank.training.checkpoint`.

    Returns
    -------
    ScoredPath
        `C`, the mean of each candidate over the queries and in each fold, and the models.

    See Also
    --------
    StructRankSVMCV : Chooses C and trains with it.

    Examples
    --------
    >>> from structrank import choose_C, datasets
    >>> train = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0).train
    >>> path = choose_C(train.X, train.y, train.qid, "ndcg@5", Cs=[0.01, 1.0, 100.0])
    >>> path.C in path.Cs, path.to_frame().shape
    (True, (3, 4))

    The best MRR@1 is often that of several C; NDCG@10 decides between them:

    >>> choose_C(train.X, train.y, train.qid, "ndcg@5", measure=["mrr@1", "ndcg@10"], Cs=[0.01, 1.0, 100.0]).C in path.Cs
    True
    """
    model = model if isinstance(model, StructRankSVM) else StructRankSVM(model)
    model.check_parameters()
    listed: Sequence[Any] = measure if isinstance(measure, (list, tuple)) else [measure]
    if not listed:
        raise ValueError("measure is an empty list; expected at least one measure.")
    first, *later = [None] if measure is None else map(metrics.parse, listed)
    measures = model.measures() if first is None else [first]
    Cs = tuple(sorted(set(checks.check_Cs(Cs))))
    checks.check_number("cv", cv, at_least=2, integer=True)
    random_state = checks.check_number("random_state", random_state, at_least=0, integer=True)
    is_raw = bool(steps_of(**parameters_of(model)))  # raw values need not be finite
    train = RankingData(X, y, qid, sample_weight, check_finite=not is_raw)
    n_usable = train.usable(model.relevant_from).sum()
    unseen = None
    if validation is not None:
        checks.check_dataset("validation", validation)
        parts = validation.X, validation.y, validation.qid
        unseen = RankingData(*parts, check_finite=False) if is_raw else RankingData.of(validation)
        unseen.check_columns(train)
    elif n_usable < 2:
        raise ValueError(f"{n_usable} queries to learn from are too few to choose C on inner folds; expected at least 2.")
    splits = held_out(train, unseen, model.relevant_from, random_state, cv)
    checkpoint = None if checkpoint is None else CheckpointFolder.create(checkpoint)
    path = score_path(model, splits, Cs, measures, checkpoint, has_validation=validation is not None, later=later)
    if path.interrupted:
        text = f"The choice of C was interrupted: {path!r}."
        warnings.warn(text, checks.StructRankWarning, stacklevel=2)
    return path


def held_out(train, validation, relevant_from, random_state, n_folds=N_FOLDS):
    """Yield pairs of data to train on and data to choose C on: first the validation part, then inner folds if it is small."""
    if validation is not None:
        yield train, validation
    if validation is None or validation.usable(relevant_from).sum() < FEW_QUERIES:
        yield from inner_folds(train, relevant_from, random_state, n_folds)


def score_path(trainer, splits, Cs, measures, checkpoint=None, has_validation=False, later=(), stop=None):
    """Train along the path of C on each split and evaluate on the queries held out.

    Parameters
    ----------
    trainer : StructRankSVM
    splits : iterable of pairs of RankingData
        To train and to evaluate on. A generator, as each inner fold holds a copy of its rows.
    Cs : tuple of float
        In increasing order.
    measures : list of Measure
        A query has the mean of their values.
    checkpoint : CheckpointFolder, default None
    has_validation : bool, default False
        Whether the first split has all training queries. Then, Ctrl-C keeps what its models tell, and is otherwise raised.
    later : sequence of Measure, default ()
        Measures that decide between equal means, in order of importance.
    stop : callable, default None
        Called after each split with the values so far, an (n_Cs, n_queries) array; a true return value ends the path there.

    Returns
    -------
    ScoredPath
    """
    path = ScoredPath(Cs, [], [], [], has_validation, tie_breakers=[[] for _ in later])
    for number, (learn, check) in enumerate(splits, 1):
        folder = None if checkpoint is None else checkpoint / f"split-{number}"
        try:
            models = fit_whole_path(trainer, learn, Cs, folder)
        except PathInterrupted as stop:
            if not (has_validation and (path.models or stop.models)):
                raise
            if path.models:
                return replace(path, interrupted=True)
            models = stop.models
            path = replace(path, Cs=Cs[: len(models)], interrupted=True)
        path.models.append(models)
        check = _prepared_by(models[0], check)
        for values, compared in zip([path.values, *path.tie_breakers], [measures, *([each] for each in later)], strict=True):
            values.append(np.array([values_of(model, check, compared) for model in models]))
        path.weights.append(check.query_weights)
        if path.interrupted or (stop is not None and stop(np.concatenate(path.values, axis=1))):
            break
    return path


def prepare_split(preparation, learn, check):
    """Fit a preparation to `RankingData`; return these data and others prepared by it, and its fitted steps."""
    names = names_of_columns(learn.column_names, learn.n_features)
    steps, X = fit_steps(preparation, learn.X, learn.grouping.query_of_row(), names)
    other = prepare(steps, check.X, check.grouping.query_of_row(), names)
    prepared = None if learn.column_names is None else names_of(steps, names)
    return learn.with_matrix(X, prepared), check.with_matrix(other, prepared), steps


def _prepared_by(model, data):
    """Return held-out `RankingData` as a linear model weights them; once for all models of a path, whose steps are the same."""
    if not (isinstance(model, StructRankSVM) and hasattr(model, "preparation_")):
        return data
    return data.with_matrix(prepare(model.preparation_, data.X, data.grouping.query_of_row(), raw_names(model)))


class PathInterrupted(KeyboardInterrupt):
    """Ctrl-C on the path of C; `models` are those trained so far, the last perhaps not to the end."""

    def __init__(self, models):
        super().__init__()
        self.models = models


def values_of(model, data, measures):
    """Return the mean of some measures for each query of `RankingData`, prepared if linear, ranked by a model."""
    linear = isinstance(model, StructRankSVM)
    scores = checks.as_scores(score_rows(data.X, model.coef_) if linear else model.predict(data.table), data.labels.shape[0])
    return np.mean([data.evaluator(measure).per_query(scores) for measure in measures], axis=0)


def fit_whole_path(trainer, data, Cs, checkpoint=None):
    """Train for each C on `RankingData`; warnings are kept in the notes of the models, and Ctrl-C is raised."""
    given = {"X": data}
    if not isinstance(trainer, StructRankSVM):
        given = {"X": data.table, "y": data.labels, "qid": data.grouping.query_of_row()}
        given |= {"sample_weight": data.row_weights} if data.weighted else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", checks.StructRankWarning)
        try:
            models = trainer.fit_path(**given, Cs=Cs, checkpoint=checkpoint)
        except KeyboardInterrupt:
            raise PathInterrupted([]) from None
    if len(models) < len(Cs) or getattr(models[-1], "stop_reason_", None) == "interrupted":
        raise PathInterrupted(models)
    return models


def inner_folds(data, relevant_from, random_state, n_folds=N_FOLDS):
    """Split the usable queries into folds; yield data to train on and to evaluate for each, none with a single query."""
    from sklearn.model_selection import GroupKFold

    usable = data.usable(relevant_from)
    if usable.sum() < 2:
        return
    query = data.grouping.query_of_row()
    rows = np.flatnonzero(usable[query])
    splitter = GroupKFold(min(n_folds, int(usable.sum())), shuffle=True, random_state=random_state)
    for learn, check in splitter.split(rows, groups=query[rows]):
        yield data.take(rows[learn]), data.take(rows[check])


def _means(values, weights):
    """Return the weighted mean of each row over its numbers; nan for none."""
    weights = np.where(np.isnan(values[0]), 0.0, weights)
    total = weights.sum()
    return np.nansum(values * weights, axis=1) / total if total > 0 else np.full(values.shape[0], np.nan)


@saveable
@dataclass(eq=False, repr=False)
class StructRankSVMCV(StructRankSVM):
    """`StructRankSVM` that chooses its C on held-out queries, see `choose_C`.

    Parameters
    ----------
    criterion : str, Criterion, or a list, default "map"
        As for `StructRankSVM`, as are all parameters that are not described here.
    Cs : sequence of float, default (0.01, 0.1, 1, 10, 100)
        Candidates; ties go to the smallest.
    cv : int, default 3
        Number of inner folds of the training queries.
    measure : str, Measure, a list of these, or None, default None
        Measure to maximise; None for the criterion. The later measures of a list decide between equal means.
    refit : bool, default True
        Whether to train with the chosen C on all queries; without, there is no model but only `C_` and the scores.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : (n_Cs,) array
        The candidates, in increasing order.
    scores_ : (n_Cs, n_folds) array
        Mean of the (first) measure over the held-out queries of each fold. With a validation part, its column is the first.
    mean_scores_ : (n_Cs,) array
        Mean over all held-out queries; C maximises it.

    Examples
    --------
    >>> from structrank import StructRankSVMCV, datasets
    >>> train = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0).train
    >>> model = StructRankSVMCV("ndcg@5", Cs=[0.01, 1.0, 100.0]).fit(train.X, train.y, qid=train.qid)
    >>> model.C_ in model.Cs_, model.scores_.shape
    (True, (3, 3))
    """

    _prepares_itself = True  # each part that a C is chosen on has its own constants

    # Chosen by `fit`, and not used.
    C: float | Sequence[float] = field(default=1.0, init=False)
    warm_start: bool = field(default=False, init=False)
    _: KW_ONLY
    Cs: Sequence[float] = DEFAULT_CS
    cv: int = N_FOLDS
    measure: str | Measure | Sequence[str | Measure] | None = None
    refit: bool = True
    random_state: int = 0

    def fit(  # type: ignore[override]
        self,
        X: Matrix,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        validation: Dataset | None = None,
        checkpoint: Path | None = None,
    ) -> Self:
        """Choose C and train with it.

        Parameters
        ----------
        X, y, qid, sample_weight
            As for `StructRankSVM.fit`.
        validation, checkpoint
            As for `choose_C`.

        Returns
        -------
        self
        """
        plain = StructRankSVM(**{name: getattr(self, name) for name in StructRankSVM().get_params()})
        checkpoint = None if checkpoint is None else CheckpointFolder.create(checkpoint)
        path = choose_C(
            *(X, y, qid, plain),
            measure=self.measure,
            Cs=self.Cs,
            cv=self.cv,
            validation=validation,
            sample_weight=sample_weight,
            random_state=self.random_state,
            checkpoint=checkpoint,
        )
        model = path.trained
        if self.refit and model is None:
            folder = None if checkpoint is None else checkpoint / "whole"
            model = plain.set_params(C=path.C).fit(X, y, qid, sample_weight, checkpoint=folder)
        for name in [name for name in vars(self) if name.endswith("_")]:  # of an earlier fit
            delattr(self, name)
        if self.refit:
            self.__dict__ |= {name: value for name, value in vars(model).items() if name.endswith("_")}
        self.C = self.C_ = path.C
        self.Cs_, self.scores_, self.mean_scores_ = np.array(path.Cs), path.scores, path.means
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    def check_loaded(self):
        """Raise unless a loaded model is complete."""
        super().check_loaded()
        self.C = checks.check_fitted_attribute(self, "C_", float)
