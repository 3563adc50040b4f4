"""CollaborativeRanker: latent factors of queries and urls, learned from preference pairs."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structrank import _validation
from structrank._progress import ProgressLine
from structrank._validation import n_threads
from structrank.clicks.factorization import (
    BatchAscent,
    Priors,
    StochasticAscent,
    best_query_factors,
    count_uses,
    group_pairs,
    held_out_likelihood,
)
from structrank.clicks.ids import Ids, dense_pairs
from structrank.clicks.log import random_mask
from structrank.clicks.preferences import Preferences
from structrank.clicks.ranker import ClickRanker

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_RATES = {"sgd": 0.5, "adam": 0.01, "batch": 0.1}
_START_SD = 0.1  # of the factors before training: at 0 the gradient vanishes


@dataclass(frozen=True)
class Epoch:
    """What one pass over the pairs came to.

    Attributes
    ----------
    epoch : int
        Number of the pass, from 1.
    likelihood : float
        Mean log-likelihood of the pairs trained on, by weight; of stochastic steps each pair as it was met.
    held_out : float
        Mean log-likelihood of the pairs held out; nan where there are none.
    seconds : float
        Since the start.

    Examples
    --------
    >>> Epoch(1, -0.69, -0.68, 0.5).held_out
    -0.68
    """

    epoch: int
    likelihood: float
    held_out: float
    seconds: float


class CollaborativeRanker(ClickRanker):
    r"""Score (query, url) by latent factors that explain which urls were preferred to which.

    Relevance is R = Q U^T, and of query i, url j is preferred to url k with probability 1 / (1 + exp(r_ik - r_ij))
    (Bradley and Terry). Training maximises the posterior

    .. math:: \sum_i \sum_{\langle j, k \rangle_i} w_{ijk} \log \frac{1}{1 + e^{-q_i \cdot (u_j - u_k)}}
              - \frac{|Q - M|^2}{2 \sigma_q^2} - \frac{|U|^2}{2 \sigma_u^2}

    over the preference pairs, w their counts (Cao, Shen, Wang and Yang, AAAI 2010, eq. 4, where M = 0). Queries that prefer
    alike get alike factors, so that a query with few clicks learns from its likes. A pass costs time linear in the number of
    pairs.

    Parameters
    ----------
    factors : int, default 50
        Number of latent factors.
    solver : {"sgd", "adam", "batch"}, default "sgd"
        "sgd" steps along the gradient of single pairs, the shorter the more a row has been moved (Adagrad, one number a row);
        "adam" takes Adam's steps, at four times the memory of the factors; "batch" is the paper's Algorithm 1, in which a rate
        that leads down is halved.
    learning_rate : float or None, default None
        None is 0.5 for "sgd", 0.01 for "adam" and 0.1 for "batch".
    query_mean : float, default 1.0
        Mean of the first factor of a query before its pairs are seen; all other means are 0. The first factor of a url is then
        its worth to any query, which few pairs suffice to learn, and the others tell queries apart. The paper has 0, where
        sparse logs teach little.
    query_sd, url_sd : float, default 0.3 and 2.0
        Standard deviations of the priors; smaller keeps queries more alike, and scores closer to 0.
    max_iter : int, default 50
        Most passes over the pairs.
    validation_fraction : float, default 0.1
        Share of the pairs that is held out to tell when to stop; 0 holds out none. Has no effect if `fit` is given some.
    patience : int, default 2
        Stop when the likelihood of the pairs held out has not been improved for this many passes. The factors are those of
        the last pass: a copy of the best would double the memory.
    n_jobs : int or None, default None
        Threads of the stochastic solvers: None is 1, -1 all cores. The model does not depend on it, not in a single bit.
    warm_start : bool, default False
        Start from the factors of the last fit, for the ids that both have.
    random_state : int, default 0
        Seed of the start, the order of queries and the pairs held out. All three go by the numbers of ids: integers are
        numbered in increasing order, others as they first appear, so that for these the order of the log matters.
    verbose : int, default 0
        1 shows a line of progress; 0 prints nothing.

    Attributes
    ----------
    query_factors_ : (n_queries, factors) array of float32
        Q; the mean of the prior for queries without pairs.
    url_factors_ : (n_urls, factors) array of float32
        U; zero for urls without pairs.
    queries_, urls_ : Ids
        Whose rows these are.
    history_ : list of Epoch
    n_iter_ : int
        Passes made.
    stop_reason_ : str
        "converged" (the pairs held out gained nothing more), "max_iter" or "interrupted" (Ctrl-C).

    See Also
    --------
    RandomWalkRanker : Scores from clicks alone.
    HybridRanker : Both together, which is better than either.

    Examples
    --------
    >>> from structrank.clicks import ClickLog, CollaborativeRanker, preference_pairs
    >>> shown = ["a.org", "b.org", "c.org"]
    >>> log = ClickLog.from_sessions([("news", shown, [2]), ("headlines", shown, [2]), ("news", shown, [1, 2])] * 5)
    >>> model = CollaborativeRanker(factors=4, validation_fraction=0).fit(preference_pairs(log))
    >>> bool(model.rank(["headlines"] * 3, shown)[2] == 1)
    True
    """

    def __init__(
        self, factors: int = 50, solver: str = "sgd", learning_rate: float | None = None, query_mean: float = 1.0,
        query_sd: float = 0.3, url_sd: float = 2.0, max_iter: int = 50, validation_fraction: float = 0.1, patience: int = 2,
        n_jobs: int | None = None, warm_start: bool = False, random_state: int = 0, verbose: int = 0,
    ):  # fmt: skip
        self.factors = factors
        self.solver = solver
        self.learning_rate = learning_rate
        self.query_mean = query_mean
        self.query_sd = query_sd
        self.url_sd = url_sd
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, pairs: Preferences, validation: Preferences | None = None) -> Self:
        """Train.

        Parameters
        ----------
        pairs : Preferences
        validation : Preferences, default None
            Pairs to tell when to stop, over the same ids; None holds out some of `pairs`.

        Returns
        -------
        self
        """
        return self._fit(pairs, validation)

    def _fit(self, pairs, validation=None, expected=None):
        """Train; `expected` gives margins of pairs that the factors are to add to."""
        self._check_parameters()
        check_pairs(pairs, "pairs")
        if validation is not None:
            check_pairs(validation, "validation")
            if validation.queries is not pairs.queries or validation.urls is not pairs.urls:
                raise ValueError(
                    "validation has ids of its own; expected pairs over the same ids: split the log or the pairs."
                )
        rng = np.random.default_rng(self.random_state)
        weight = np.array(pairs.weight, dtype=np.float32)
        if validation is None and 0 < round(self.validation_fraction * len(pairs)) < len(pairs):
            weight[random_mask(len(pairs), self.validation_fraction, self.random_state, "pairs")] *= -1
        grouped = _grouped(pairs, weight, expected)
        held_out = grouped if validation is None else _grouped(validation, -validation.weight, expected)
        Q, U = self._start(pairs, grouped, rng)
        if self.solver == "batch":
            ascent = BatchAscent(Q, U, grouped, self._priors(), self._rate())
        else:
            ascent = StochasticAscent(
                Q, U, grouped, self._priors(), self._rate(), rng, n_threads(self.n_jobs), self.solver == "adam"
            )
        total = float(weight.sum(where=weight > 0, dtype=np.float64))
        history, reason = self._ascend(ascent, total, held_out)
        self.queries_, self.urls_ = pairs.queries, pairs.urls
        self.query_factors_ = ascent.query_factors.astype(np.float32, copy=False)
        self.url_factors_ = ascent.url_factors.astype(np.float32, copy=False)
        self.history_, self.n_iter_, self.stop_reason_ = history, len(history), reason
        return self

    def fold_in(self, pairs: Preferences) -> Self:
        """Give new queries their factors, with the urls as they are: nothing is retrained.

        For each query the posterior is concave in its factors, and Newton's method finds the maximum.

        Parameters
        ----------
        pairs : Preferences
            All pairs of the new queries, over any ids. Queries that the model has are solved anew from these pairs alone.
            Pairs with a url that the model does not have say nothing, and are left out with a warning.

        Returns
        -------
        self
            With rows for the new queries.

        Examples
        --------
        >>> from structrank.clicks import ClickLog, CollaborativeRanker, preference_pairs
        >>> shown = ["a.org", "b.org", "c.org"]
        >>> old = preference_pairs([("news", shown, [2]), ("headlines", shown, [1, 2])] * 5)
        >>> new = preference_pairs([("today", shown, [2])])
        >>> model = CollaborativeRanker(factors=4, validation_fraction=0).fit(old).fold_in(new)
        >>> bool(model.rank(["today"] * 3, shown)[2] == 1)
        True
        """
        check_is_fitted(self)
        check_pairs(pairs, "pairs")
        in_model = self.urls_.index(pairs.urls.values)
        winner, loser = in_model[pairs.winner], in_model[pairs.loser]
        known = (winner >= 0) & (loser >= 0)
        if not known.all():
            text = f"{(~known).sum()} of {len(pairs)} pairs have a url that the model does not know, and are left out."
            warnings.warn(text, _validation.StructRankWarning, stacklevel=2)
        query, winner, loser, weight = pairs.query[known], winner[known], loser[known], pairs.weight[known]
        grouped = group_pairs(query, winner, loser, weight, len(pairs.queries))
        numbers = np.flatnonzero(np.diff(grouped.indptr))
        found = np.empty((numbers.shape[0], self.query_factors_.shape[1]), np.float32)
        for row, number in enumerate(numbers):
            own = slice(grouped.indptr[number], grouped.indptr[number + 1])
            differences = self.url_factors_[grouped.winner[own]] - self.url_factors_[grouped.loser[own]]
            found[row] = best_query_factors(differences, grouped.weight[own].astype(np.float64), self._priors())
        names = pairs.queries.values[numbers]
        place = self.queries_.index(names)
        new = place < 0
        # Fresh arrays: models that share these are left alone.
        query_factors = np.concatenate([self.query_factors_, found[new]])
        query_factors[place[~new]] = found[~new]
        self.query_factors_ = query_factors
        self.queries_ = _joined(self.queries_, names[new])
        return self

    def predict(self, queries: ArrayLike, urls: ArrayLike) -> np.ndarray:
        """Score urls for queries, q_i . u_j; higher is better.

        Parameters
        ----------
        queries, urls : array-like of shape (n,)
            Ids; entry i of both is a pair.

        Returns
        -------
        (n,) array
            0 for urls that training had no pair with; nan, with a warning that counts them, for ids that the log did not have.
        """
        check_is_fitted(self)
        query, url, known = known_pairs(self.queries_, self.urls_, queries, urls)
        scores = np.full(known.shape[0], np.nan)
        scores[known] = self._scores(query, url)
        return scores

    def _scores(self, query, url):
        """Score by dense numbers, a block at a time."""
        scores = np.empty(query.shape[0])
        step = max(1, 2**20 // self.query_factors_.shape[1])
        for start in range(0, query.shape[0], step):
            part = slice(start, start + step)
            scores[part] = np.einsum("pf,pf->p", self.query_factors_[query[part]], self.url_factors_[url[part]])
        return scores

    def _check_parameters(self):
        _validation.check_number("factors", self.factors, at_least=1, integer=True)
        _validation.check_choice("solver", self.solver, tuple(_RATES))
        if self.learning_rate is not None:
            _validation.check_number("learning_rate", self.learning_rate, above=0)
        _validation.check_number("query_mean", self.query_mean)
        _validation.check_number("query_sd", self.query_sd, above=0)
        _validation.check_number("url_sd", self.url_sd, above=0)
        _validation.check_number("max_iter", self.max_iter, at_least=1, integer=True)
        check_share("validation_fraction", self.validation_fraction)
        _validation.check_number("patience", self.patience, at_least=1, integer=True)
        _validation.check_number("random_state", self.random_state, at_least=0, integer=True)
        n_threads(self.n_jobs)

    def _priors(self):
        return Priors(float(self.query_mean), float(self.query_sd), float(self.url_sd))

    def _rate(self):
        return _RATES[self.solver] if self.learning_rate is None else self.learning_rate

    def _start(self, pairs, grouped, rng):
        """Draw factors of the ids that have pairs, and take over those of the last fit where asked."""
        earlier = self.warm_start and hasattr(self, "query_factors_")
        if earlier and self.query_factors_.shape[1] != self.factors:
            raise ValueError(
                f"warm_start: the last fit had {self.query_factors_.shape[1]} factors, and factors={self.factors}. "
                "Fit a new model, or set warm_start=False."
            )
        query_uses, url_uses = count_uses(grouped, len(pairs.urls))
        both = []
        for kind, ids, uses in (("query", pairs.queries, query_uses), ("url", pairs.urls, url_uses)):
            factors = rng.standard_normal((len(ids), self.factors), dtype=np.float32)
            factors *= np.float32(_START_SD)
            factors[uses == 0] = 0
            if kind == "query":
                factors[:, 0] += np.float32(self.query_mean)
            if earlier:
                old_ids, old = (
                    (self.queries_, self.query_factors_) if kind == "query" else (self.urls_, self.url_factors_)
                )
                place = old_ids.index(ids.values)
                factors[place >= 0] = old[place[place >= 0]]
            both.append(factors)
        return both

    def _ascend(self, ascent, total, held_out):
        """Pass over the pairs until there is nothing more to gain; give the history and why it ended."""
        line = ProgressLine() if self.verbose else None
        started = time.perf_counter()
        history, best, reason = [], 0, "max_iter"
        try:
            for number in range(1, self.max_iter + 1):
                ascent.epoch()
                left_out = held_out_likelihood(ascent.query_factors, ascent.url_factors, held_out)
                history.append(Epoch(number, ascent.likelihood() / total, left_out, time.perf_counter() - started))
                if line is not None:
                    line.update(_text(history[-1]))
                if left_out > history[best].held_out:
                    best = number - 1
                if number - 1 - best >= self.patience and not np.isnan(left_out):
                    reason = "converged"
                    break
        except KeyboardInterrupt:
            if not history:
                raise
            reason = "interrupted"
            text = f"Training was interrupted after {len(history)} passes; the model is what there was."
            warnings.warn(text, _validation.StructRankWarning, stacklevel=3)
        if line is not None:
            line.finish(f"{_text(history[-1])}  {reason}")
        return history, reason


def check_pairs(pairs, name):
    """Raise unless `pairs` are preferences, and at least one."""
    if not isinstance(pairs, Preferences):
        raise ValueError(
            f"{name} is a {type(pairs).__name__}; expected Preferences, as preference_pairs(log) gives them."
        )
    if not len(pairs):
        raise ValueError(
            f"{name} holds no pair: there is nothing to learn from. The rule found no url that was passed over for another; "
            "another rule of preference_pairs may."
        )


def check_share(name, value):
    """Raise unless `value` is a number of at least 0 and below 1."""
    if _validation.check_number(name, value, at_least=0) >= 1:
        raise ValueError(f"{name}={value!r} is not valid: expected a number of at least 0 and below 1.")


def known_pairs(query_ids, url_ids, queries, urls):
    """Give dense numbers of the pairs (query, url) whose ids are known, and a mask of these; warn of the others."""
    query, url = dense_pairs(query_ids, url_ids, queries, urls)
    known = (query >= 0) & (url >= 0)
    if not known.all():
        warnings.warn(
            f"{(~known).sum()} of {known.shape[0]} entries have a query or a url that the model does not know "
            f"({(query < 0).sum()} queries, {(url < 0).sum()} urls); their scores are nan. A query that it knows is "
            f"{query_ids.values[:1].tolist()[0]!r}, a url {url_ids.values[:1].tolist()[0]!r}.",
            _validation.StructRankWarning,
            stacklevel=3,
        )
    return query[known], url[known], known


def _grouped(pairs, weight, expected):
    margins = None if expected is None else expected(pairs)
    return group_pairs(pairs.query, pairs.winner, pairs.loser, weight, len(pairs.queries), margins)


def _text(epoch):
    held_out = "" if np.isnan(epoch.held_out) else f"  held out {epoch.held_out:.4f}"
    return f"pass {epoch.epoch}  log-likelihood {epoch.likelihood:.4f}{held_out}  {epoch.seconds:.1f} s"


def _joined(ids, names):
    if ids.values.dtype.kind == "i" and names.dtype.kind == "i":
        return Ids(np.concatenate([ids.values, names]))
    values = np.empty(len(ids) + names.shape[0], dtype=object)
    values[:] = [*ids.values.tolist(), *names.tolist()]
    return Ids(values)
