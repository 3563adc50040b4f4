"""StructRankSVM: the estimator."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from structrank import penalties
from structrank._support import checks
from structrank._support.progress import ProgressLine, Reporter
from structrank._support.saveable import saveable
from structrank.datasets.shards import Shards, column_names
from structrank.feature_maps import Permutation
from structrank.models.linear import LinearMethods
from structrank.models.ranker import FeatureRanker
from structrank.solvers.backends import BACKENDS
from structrank.solvers.backends.cvxpy import installed_solvers
from structrank.solvers.results import Certificate
from structrank.training.checkpoint import Checkpoint
from structrank.training.data import RankingData, score_rows
from structrank.training.executor import InProcess
from structrank.training.health import Health
from structrank.training.history import History
from structrank.training.ramp import RampRound, kept_start
from structrank.training.risk import Risk
from structrank.training.run import Training
from structrank.training.scaling import column_ratio, scale_by_deviation, scale_problems
from structrank.training.sources import is_dask, sources_of
from structrank.training.structured_loss import LossParameters

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

    from structrank._support.typing import Matrix, Path
    from structrank.criteria import Criterion
    from structrank.distributed import DaskBackend
    from structrank.solvers import Iteration


_LOG = logging.getLogger(__name__)
# In 420 choices on digits, webis-clueweb09 and synthetic data, 0.001 and 1000 as further candidates gained nothing on test
# queries and cost a third more.
DEFAULT_CS = (0.01, 0.1, 1.0, 10.0, 100.0)
# More ranks than any list can have.
_NO_CUT = 2**31


@saveable
@dataclass(eq=False, repr=False)
class StructRankSVM(LinearMethods, LossParameters, FeatureRanker):
    r"""Linear ranker trained by a structured SVM on a measure of the whole ranking.

    .. math:: \min_w \tfrac12 |w|^2 + \frac{C}{|Q|} \sum_q \max_y
              [w \cdot \phi(x_q, y) - w \cdot \phi(x_q, y^*_q) + \Delta(y^*_q, y)]

    over the queries q that have both relevant and irrelevant documents (good and bad in the KDD 2008 paper). Documents are
    ranked by decreasing w.x. The inner maximum is computed exactly; a dual bound certifies the optimum (`certificate_`).

    Parameters
    ----------
    criterion : str, Criterion, or a list, default "map"
        Delta: "auc", "map", "ndcg@10", "ndcg-nc" (no rank cutoff), "mrr@10", "dorm@10", "err@10", an object as
        ``criteria.NDCG(k=5)``, or a criterion registered with `structrank.register`; a list trains on several at once (COMBO).
        The loss is 1 - measure, relative to the ideal ranking. A name without its cutoff has that of `k`.
    C : float or list of float, default 1.0
        Weight of the training loss; with separate slacks, optionally a list with one C_l for each criterion.
    k : int, None or "auto", default "auto"
        Rank cutoff of the criteria whose names have none; None for no cutoff, "auto" for the default of the criterion, 10.
    feature_map : str, feature map, or a list, default "auto"
        phi: "po" (pairs), "mrr" (first relevant), "dorm" (permutation); "auto" is the criterion's default.
        "dorm(ties=score)" makes the bound tighter, but not convex, see `structrank.feature_maps.Permutation`.
    discount : {"auto", "kdd08", "log2"}, default "auto"
        Discount of "ndcg", "ndcg-nc" and "dorm" given by name, see `structrank.criteria.NDCG`; "auto" is "kdd08".
    decay : str, array-like or callable, default "sqrt"
        Decay of the permutation map, see `structrank.feature_maps.Permutation`; ``"sqrt@30"`` cuts it after 30 ranks.
    slack : {"separate", "shared"}, default "separate"
        For several criteria: the sum of their risks, or per query the largest of their losses.
    relevant_from : float or None, default 1
        Lowest label that counts as relevant. None uses labels as grades: "auc" over all pairs with different labels, "ndcg" and
        "dorm" with `gain`, and "err".
    formulation : {"auto", "one-slack", "grouped", "n-slack"}, default "auto"
        Slacks of the QP, and so planes of each pass: one; one for each group of queries, 128 to 512 groups by the size of X,
        fewer if X is sparse and wide; or one for each query (eq. 1 of the KDD 2008 paper as printed). "auto" starts with one
        slack and switches to groups after 16 passes, 5 if C is large; in rounds (`rounds_`) it has groups from the start. The
        optimum is the same; more slacks mean fewer passes over the data but larger QPs.
    solver : str, default "auto"
        Backend for the QPs. "auto" is OSQP for one slack, and for many the compiled backends "dual" (ascent on the dual) and
        "interior" (an interior-point method, if C is large and the optimum far). "osqp", "cvxpy" (Clarabel), "cvxpy:NAME"
        with any solver that CVXPY has installed, and registered backends (`structrank.solvers.backends.register`) keep one
        slack with ``formulation="auto"``. If a backend misses the accuracy, the compiled backends are tried.
    tol : float, default 1e-3
        Stopping tolerance, in units of the loss (the paper's epsilon): stop when the certified gap is at most C tol.
    max_iter : int, default 1000
        Maximum number of iterations, each with at most one pass over the data, after a first pass at w = 0.
    n_jobs : int or None, default None
        Number of threads: None is 1, -1 all cores. Results are bit-identical for any n_jobs.
    warm_start : bool, default False
        Start from `coef_` of the last fit.
    verbose : int, default 0
        1 shows a line of progress; 0 prints nothing.
    query_weight : {"equal", "pairs"}, default "equal"
        Whether queries count equally or by their number of pairs; "auc" with "pairs" and ``relevant_from=None`` is RankSVM.
    bound : {"convex", "ramp", "auto"}, default "convex"
        Bound on the loss that training minimises: the convex bound, certified; or the tighter, non-convex ramp bound, which is
        not vacuous on long lists (see `structrank.training.ramp`; continuation in C starts at 10 C, or higher if w would be
        too small for a tight bound). With binary relevance, ``feature_map="auto"`` means "dorm" for criteria with a k, cut
        after 3 k ranks with ``decay="sqrt"``. "auto" uses the convex bound, or the ramp bound if the convex bound is vacuous;
        the ramp then ignores `feature_map` and uses "auto", and `notes_` reports it.
    scale : {None, "std"}, default None
        "std" divides each column by its standard deviation within queries during training, for columns of very different scale;
        X is not copied or centred, so sparse data stay sparse. `coef_` is for X as it is: prediction, files and exports need no
        scaler. `certificate_`, `history_` and `health_` are those of the scaled problem, whose penalty is
        ``1/2 |scale_ * w|^2``. Costs one more pass over X.
    gain : {"auto", "exp2", "linear"} or array-like, default "auto"
        Gain of grades in "ndcg" and "dorm" given by name, with ``relevant_from=None``: 2^label - 1 ("auto"), label, or a table
        of gains of labels 0, 1, ....
    penalty : None, "nonnegative" or Penalty, default None
        What replaces ``1/2 |w|^2``: bounds on weights, a prior, sparsity, see `structrank.penalties.Penalty`; "nonnegative" is
        ``Penalty(lower=0)``. Bounds hold exactly, and `certificate_` is that of the problem with the penalty.
    missing : {"error", "zero", "min", "mean", "query_min"}, number or dict, default "error"
        Rule for missing values (nan), or a rule for each column by name or number, ``{"age": "mean", "clicks": 0}``. What is
        learned, as the mean, is a part of the model; see `structrank.preparation.Fill`.
    preparation : Step, list of Step, or None, default None
        Further steps from raw values to features, after that, such as ``Log(["clicks"])``; see `structrank.preparation`.
    normalise : {"minmax", "l2", "zscore", "rank"}, dict or None, default None
        Normaliser within the query, the last step, or one for each column; makes `qid` necessary in `predict`. See
        `structrank.preparation.Normalise`.

    Attributes
    ----------
    coef_ : (n_features,) array
        The weights w.
    scale_ : (n_features,) array or None
        Standard deviation of each column within queries, averaged over queries as the loss is; 1 where a column is constant.
        None without `scale`.
    n_iter_ : int
        Iterations: a QP and a pass over the data each; no pass if the QP shows that the best w so far is within the tolerance.
    history_ : History
        One entry per iteration: objective, bound, gap, violation, planes, seconds, solver of the QP. ``history_.to_frame()``
        returns a pandas frame.
    certificate_ : Certificate
        ``.primal`` and ``.dual`` enclose the optimum, ``.gap`` is their difference.
    health_ : Health
        Objective relative to w = 0, norm of w, mean slack, and whether training was vacuous, or C small.
    rounds_ : tuple of RampRound
        Rounds of a bound that is not convex (the ramp bound, or ``Permutation(ties="score")``), see
        `structrank.training.ramp`; empty if the convex bound was used. If not empty, `history_`
        and `certificate_` are those of the last convex problem solved.
    stop_reason_ : str
        "converged", "max_iter", "callback" (stopped by the callback), "interrupted" (Ctrl-C) or "stalled".
    n_queries_ : int
        Queries that training learned from: queries with relevant and irrelevant documents.
    notes_ : tuple of str
        Warnings of training, and remarks that are no warnings: that training used the ramp bound because the convex bound is
        vacuous, that C is small, that one of several criteria with shared slacks decides alone, or that grades were reduced to
        binary relevance by the default of `relevant_from`.
    n_features_in_ : int
        Number of columns before the preparation.
    feature_names_in_ : (n_features,) array
        Their names, if X has string column names.
    preparation_ : tuple of Step
        The steps with their learned constants; `coef_`, `certificate_` and `health_` are of prepared columns.

    See Also
    --------
    structrank.compare : Train on each criterion, test on each measure.

    Examples
    --------
    >>> from structrank import StructRankSVM, datasets
    >>> fold = datasets.make_ranking(n_queries=60, n_docs=10, n_features=5, noise=0.5, random_state=0)
    >>> model = StructRankSVM(criterion="map", C=10.0).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> model.predict(fold.test.X).shape == fold.test.y.shape
    True
    >>> bool(model.certificate_.dual <= model.certificate_.primal)
    True
    """

    criterion: str | Criterion | Sequence[str | Criterion] = "map"
    C: float | Sequence[float] = 1.0
    k: int | str | None = "auto"
    feature_map: Any = "auto"
    discount: str = "auto"
    decay: Any = "sqrt"
    slack: str = "separate"
    relevant_from: float | None = 1
    formulation: str = "auto"
    solver: str = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    n_jobs: int | None = None
    warm_start: bool = False
    verbose: int = 0
    query_weight: str = "equal"
    bound: str = "convex"
    scale: str | None = None
    gain: Any = "auto"
    penalty: Any = None
    _trains_in_rounds = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def fit(
        self,
        X: Matrix | Shards,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        callback: Callable[[Iteration], object] | None = None,
        backend: DaskBackend | None = None,
        checkpoint: Path | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)
            numpy, memory map, pandas, polars or scipy sparse; float32 and float64 are used in place. Or
            `structrank.datasets.Shards`, which are read one after another, or `structrank.training.data.RankingData`, checked
            and grouped once for many fits; both have their own y, qid and weights.
        y : array-like of shape (n_docs,)
            Labels, at least 0; larger is more relevant.
        qid : array-like of shape (n_docs,) or int
            Query of each row: any order, any hashable type. An integer makes all rows one query.
        sample_weight : array-like of shape (n_docs,), default None
            Weight of each row's query; constant within a query.
        callback : callable, default None
            Called with each iteration's entry of the history; a true return value stops training.
        backend : DaskBackend, default None
            A cluster to train on, see `structrank.distributed` (or another, see `structrank.training.executor`); None trains in
            this process.
        checkpoint : path-like, default None
            Folder for checkpoints. If training is killed, the same call resumes it and ends with the same model, bit for bit;
            see `structrank.training.checkpoint`.

        Returns
        -------
        self
        """
        C, loss = self.check_parameters()
        start = self.coef_ if self.warm_start and hasattr(self, "coef_") else None
        kept = self._checkpoint(checkpoint, "training", C=C)
        line = ProgressLine() if self.verbose else None  # before data are prepared, which may compile functions
        with closing(self._executor(X, y, qid, sample_weight, backend)) as executor:
            training = self._training(executor, loss, kept, column_names(X))
            if start is not None:
                if start.shape[0] != training.risk.n_features:
                    raise ValueError(
                        f"warm_start: the last fit had {start.shape[0]} features, X has {training.risk.n_features}. "
                        "Fit a new model, or set warm_start=False."
                    )
                start = training.penalty.nearest(start * training.risk.scale)
            reporter = _reporter(callback, line, C)
            result, health = training.run(C, reporter, start)
            reporter.finish(result.history[-1], result.reason)
            self._set_fitted(X, training, result, health)
        return self

    def fit_path(
        self,
        X: Matrix | Shards,
        y: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        Cs: Sequence[float] = DEFAULT_CS,
        sample_weight: ArrayLike | None = None,
        callback: Callable[[Iteration], object] | None = None,
        backend: DaskBackend | None = None,
        checkpoint: Path | None = None,
    ) -> list[Self]:
        """Train for several values of C, which share their planes: cheaper than separate fits.

        Parameters
        ----------
        X, y, qid, sample_weight, callback, backend, checkpoint
            As for `fit`.
        Cs : sequence of float, default (0.01, 0.1, 1, 10, 100)
            Values of C, in any order. If `C` is a list, its entries keep their ratios and these values are their means.

        Returns
        -------
        list of StructRankSVM
            A fitted model for each C, in the order of `Cs`; after Ctrl-C the finished models, with a warning.

        Examples
        --------
        >>> from structrank import StructRankSVM, datasets
        >>> train = datasets.make_ranking(n_queries=40, n_docs=8, n_features=3, random_state=0).train
        >>> models = StructRankSVM("auc").fit_path(train.X, train.y, qid=train.qid, Cs=[0.1, 10.0])
        >>> [model.C for model in models]
        [0.1, 10.0]
        """
        _, loss = self.check_parameters()
        Cs = checks.check_Cs(Cs)
        models: dict[float, Self] = {}
        kept = self._checkpoint(checkpoint, "path", C=list(loss.weights))
        line = ProgressLine() if self.verbose else None
        with closing(self._executor(X, y, qid, sample_weight, backend)) as executor:
            training = self._training(executor, loss, kept, column_names(X))
            try:
                unfitted = clone(self)
                for C in sorted(set(Cs)):
                    model = deepcopy(unfitted)  # 10 times faster than `clone`
                    model.C = C if np.ndim(self.C) == 0 else [C * weight for weight in loss.weights]
                    reporter = _reporter(callback, line, C)
                    result, health = training.run(C, reporter)
                    reporter.finish(result.history[-1], result.reason)
                    model._set_fitted(X, training, result, health)
                    models[C] = model
                    if model.stop_reason_ == "interrupted":
                        break
            except KeyboardInterrupt:
                if not models:
                    raise
        missing = [f"{C:g}" for C in sorted(set(Cs) - set(models))]
        if missing:
            text = f"The path was interrupted; the models for C = {', '.join(missing)} are missing."
            warnings.warn(text, checks.StructRankWarning, stacklevel=3)
        return [models[C] for C in Cs if C in models]

    @property
    def intercept_(self) -> float:
        """0, as a constant does not change a ranking; tools for linear models read it beside `coef_`."""
        check_is_fitted(self)
        return 0.0

    def _score_documents(self, X):
        matrix = self._check_features(X)
        scores = score_rows(matrix, self.coef_)
        if not np.isfinite(scores).all():
            checks.check_finite_matrix(matrix, checks.column_names(X))
            raise ValueError(
                f"the score of row {int(np.argmin(np.isfinite(scores)))} of X is too large for float64; X must have the scale "
                "of the training data."
            )
        return scores

    def check_loaded(self):
        """Raise unless a loaded model has one weight per feature and criteria that are registered."""
        super().check_loaded()
        self._check_loaded_weights("coef_")
        if any(hasattr(self, name) for name in ("certificate_", "health_", "history_")):  # models of other programs have none
            checks.check_fitted_attribute(self, "health_", Health)
            checks.check_fitted_attribute(self, "history_", History)
            found = checks.check_fitted_attribute(self, "certificate_", Certificate)
            if found.dual > found.primal + 1e-9 * abs(found.primal):
                raise ValueError(f"certificate_ has the lower bound {found.dual} above the upper bound {found.primal}")
        if not all(isinstance(one, RampRound) for one in getattr(self, "rounds_", ())):  # older files have none
            raise ValueError("rounds_ has an entry that is not a RampRound")
        if getattr(self, "scale_", None) is not None:
            self._check_loaded_weights("scale_")

    def score(self, X: Matrix, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Measure the ranking by the training criterion, as a measure: higher is better, 1 is perfect.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)
        y : array-like of shape (n_docs,)
        qid : array-like of shape (n_docs,) or int
        sample_weight : array-like of shape (n_docs,), default None
            Weight of each row's query; constant within a query.

        Returns
        -------
        float
            Mean over the queries for which the measure is defined; for several criteria, the mean of their measures.
        """
        from structrank import metrics

        scores = self._scores_of_queries(X, qid)
        qid = checks.as_query_ids(qid, scores.shape[0])
        measures = self.measures()
        means = [metrics.evaluate(y, scores, qid, measure, sample_weight=sample_weight)[measure.name] for measure in measures]
        return float(np.mean(means))

    def _ramp_loss(self, loss):
        """Return the loss of the ramp bound; with shared slacks it would not be an upper bound, as each has its prediction."""
        given = self.feature_map if isinstance(self.feature_map, (list, tuple)) else [self.feature_map] * len(loss.criteria)
        maps = [self._ramp_map(*pair) for pair in zip(given, loss.criteria, strict=True)]
        return loss.other(loss.criteria, maps, loss.weights, self.decay)

    def _ramp_map(self, feature_map, criterion):
        """Return the permutation map for a criterion with a cutoff, unless a map was chosen: ranks far below do not count.

        With graded labels, the oracles of phi_po are much faster and so preferred.
        """
        if self.relevant_from is None:
            return "auto" if self.bound == "auto" else feature_map
        free = self.bound == "auto" or (isinstance(feature_map, str) and feature_map == "auto")
        k = getattr(criterion, "k", None)
        if not free or k is None or "dorm" not in criterion.oracles:
            return feature_map
        return Permutation(self.decay, min(3 * k, _NO_CUT) if isinstance(self.decay, str) and self.decay == "sqrt" else None)

    def check_parameters(self):
        """Raise if a parameter is not valid, whatever the data; return C and the `StructuredLoss`."""
        checks.check_choice("formulation", self.formulation, ("auto", "one-slack", "grouped", "n-slack"))
        checks.check_choice("query_weight", self.query_weight, ("equal", "pairs"))
        checks.check_choice("bound", self.bound, ("convex", "ramp", "auto"))
        if self.scale is not None:
            checks.check_choice("scale", self.scale, ("std",))
        checks.check_number("tol", self.tol, above=0)
        checks.check_number("max_iter", self.max_iter, at_least=1, integer=True)
        _check_solver(self.solver)
        checks.n_threads(self.n_jobs)
        loss = self._structured_loss(query_weight=self.query_weight)
        penalties.parse(self.penalty)
        if checks.as_array(self.C, "C").ndim == 0:
            return checks.check_number("C", self.C, above=0), loss
        each, n_criteria = [checks.check_number("C", C, above=0) for C in self.C], len(loss.criteria)
        if len(each) != n_criteria:
            raise ValueError(f"C has {len(each)} entries but criterion has {n_criteria}; pass one for each, or one number.")
        if loss.shared:
            raise ValueError("slack='shared' has one slack for all criteria and so takes one C, not a list.")
        C = float(np.mean(each))
        return C, replace(loss, weights=tuple(one / C for one in each))

    def _executor(self, X, y, qid, sample_weight, backend):
        """Return where the data are, to be closed after training."""
        if backend is None:
            return InProcess(sources_of(X, y, qid, sample_weight), checks.n_threads(self.n_jobs))
        if not hasattr(backend, "executor"):
            raise ValueError(f"backend={backend!r} is not valid: expected DaskBackend(client), or None for this process.")
        return backend.executor(X, y, qid, sample_weight)

    def _training(self, executor, loss, checkpoint, names=None):
        risk, penalty = Risk(executor, loss, self.formulation), penalties.parse(self.penalty)
        if self.scale is not None:
            risk = scale_by_deviation(risk)
        penalty = penalty.for_columns(risk.n_features, names, None if self.scale is None else risk.scale)
        return Training(risk, self._ramp_loss, self.bound, self.tol, self.solver, self.max_iter, checkpoint, penalty)

    def _checkpoint(self, folder, name, C):
        """Return the checkpoint of a run, None without a folder."""
        if folder is None:
            return None
        irrelevant = ("n_jobs", "verbose", "warm_start", "max_iter")
        settings = {key: value for key, value in self.get_params().items() if key not in irrelevant}
        return Checkpoint(folder, {**settings, "C": C}, name)

    def _set_fitted(self, X, training, result, health):
        """Set the fitted attributes: after training, so that a failed fit leaves the earlier model unchanged."""
        if isinstance(X, (Shards, RankingData, np.ndarray)) or is_dask(X):
            vars(self).pop("feature_names_in_", None)
            names = column_names(X)
            if names is not None:
                self.feature_names_in_ = np.array(names, dtype=object)
        else:
            validate_data(self, X, skip_check_array=True)
        self.n_features_in_, self.n_queries_ = training.risk.n_features, training.risk.n_queries
        scale = training.risk.scale
        self.coef_, self.scale_ = result.w / scale, None if self.scale is None else scale
        if self.scale is not None:  # the division rounds
            self.coef_ = penalties.parse(self.penalty).for_columns(self.n_features_in_, column_names(X)).nearest(self.coef_)
        self.n_iter_ = len(result.history)
        self.history_ = History(result.history)
        self.certificate_ = result.certificate
        self.stop_reason_ = result.reason
        self.health_ = replace(health, column_ratio=column_ratio(training.risk.deviations / scale))
        self.rounds_ = result.rounds
        for name in ("selection_", "polish_"):  # of an earlier model
            vars(self).pop(name, None)
        problems = self._problems(training.risk)
        remarks = [text[0].upper() + text[1:] for text in self.health_.remarks(self._start_name)]
        kind = self.rounds_[0].kind if self.rounds_ else None
        if kind == "ideal":
            remarks.insert(
                0,
                "Trained with the ties of ideal rankings ordered by score, so the bound is not convex: certificate_ is that of "
                "the last convex problem, and a better w may exist.",
            )
        elif kind == "prediction":
            if kept_start(self.rounds_):
                remarks.insert(
                    0,
                    "No round of the ramp bound lowered the training loss: the model is its start, the w of "
                    f"{training.start_name}.",
                )
            if self.bound == "auto":
                name = training.ramp_loss.name
                remarks.insert(0, f"Trained on the ramp bound of {name}, as the convex bound is vacuous on these data.")
        remarks += training.risk.loss.remarks(training.risk.has_grades)
        self.notes_ = (*remarks, *problems)
        for text in remarks:
            _LOG.info("%s", text)
        for text in problems:
            warnings.warn(text, checks.StructRankWarning, stacklevel=4)

    @property
    def _start_name(self):
        return "w = 0" if self.penalty is None else "the w of least penalty"

    def _problems(self, risk):
        """Return warnings about the training run; an empty list if there are none."""
        # The optimum of a bound that is not convex is unknown.
        which = "that of the last convex problem" if self.rounds_ else "the objective"
        gap = f"{which} is within {100 * self.certificate_.relative_gap:.3g}% of the optimum"
        unfinished = {
            "max_iter": f"training stopped at max_iter={self.max_iter}; {gap}. Raise max_iter or tol.",
            "callback": f"training was stopped by the callback after {self.n_iter_} iterations; {gap}.",
            "interrupted": f"training was interrupted after {self.n_iter_} iterations; the model is the best so far, {gap}.",
            "stalled": f"no QP solver reached the accuracy that tol={self.tol} requires; {gap}. See history_ for notes.",
        }
        found = [unfinished[self.stop_reason_]] if self.stop_reason_ in unfinished else []
        found += self.health_.problems(risk.median_length, risk.loss.name, self._start_name)
        found += scale_problems(risk.deviations / risk.scale, getattr(self, "feature_names_in_", None))
        return [text[0].upper() + text[1:] for text in found]


def _check_solver(solver):
    if not (isinstance(solver, str) and solver.startswith("cvxpy:")):
        checks.check_choice("solver", solver, ("auto", *BACKENDS, "cvxpy:NAME"))
        return
    name, installed = solver.partition(":")[2], installed_solvers()
    if name not in installed:
        raise ValueError(f"solver={solver!r}: CVXPY has no solver {name!r} installed; it has {', '.join(installed)}.")


def _reporter(callback, line, C):
    started = time.perf_counter()

    def text(iteration):
        seconds = time.perf_counter() - started
        return (
            f"C={C:g}  iteration {iteration.iteration}  objective {iteration.objective:.6g}  gap {iteration.gap:.2e}  "
            f"planes {iteration.planes}  {seconds:.1f} s  {iteration.iteration / seconds:.1f} it/s"
        )

    return Reporter(text, line, callback)
