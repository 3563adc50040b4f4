"""CollaborativeRanker: latent factors of queries and urls from preference pairs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from structrank._support import checks
from structrank._support.saveable import record, saveable
from structrank._support.typing import Path
from structrank.clicks.factorization import (
    BatchAscent,
    Priors,
    StochasticAscent,
    best_query_factors,
    count_uses,
    group_pairs,
    held_out_likelihood,
)
from structrank.clicks.ids import Ids, check_loaded_ids
from structrank.clicks.log import random_mask
from structrank.clicks.preferences import Preferences
from structrank.clicks.ranker import ClickRanker
from structrank.training.rounds import Rounds

_RATES = {"sgd": 0.5, "adam": 0.01, "batch": 0.1}
_LARGEST_FACTOR = 1e15  # of trained and loaded models: products in float32 stay finite
_START_SD = 0.1  # of the initial factors; at 0 the gradient vanishes


@record
@dataclass(frozen=True)
class Epoch:
    """Results of one pass over the pairs."""

    epoch: int  # from 1
    likelihood: float  # weighted mean log-likelihood of the training pairs; the stochastic solvers evaluate each at its visit
    held_out: float  # the same of the held-out pairs; nan if there are none
    seconds: float  # since the start of training


@saveable
@dataclass(eq=False, repr=False)
class CollaborativeRanker(ClickRanker):
    r"""Score (query, url) by latent factors fitted to preference pairs.

    The score is R = Q U^T, and query i prefers url j to url k with probability 1 / (1 + exp(r_ik - r_ij)) (Bradley and Terry).
    Training maximises the posterior

    .. math:: \sum_i \sum_{\langle j, k \rangle_i} w_{ijk} \log \frac{1}{1 + e^{-q_i \cdot (u_j - u_k)}}
              - \frac{|Q - M|^2}{2 \sigma_q^2} - \frac{|U|^2}{2 \sigma_u^2}

    over the preference pairs with counts w (Cao, Shen, Wang and Yang, AAAI 2010, eq. 4, where M = 0). Queries with similar
    preferences get similar factors, so that a query with few clicks learns from similar queries. A pass takes time linear in
    the number of pairs.

    Parameters
    ----------
    factors : int, default 50
        Number of latent factors.
    solver : {"sgd", "adam", "batch"}, default "sgd"
        "sgd" is stochastic gradient ascent on single pairs with Adagrad step sizes, one per row; "adam" is Adam, which takes
        four times the memory of the factors; "batch" is Algorithm 1 of the paper, with the rate halved when a step decreases
        the posterior.
    learning_rate : float or None, default None
        None is 0.5 for "sgd", 0.01 for "adam" and 0.1 for "batch".
    query_mean : float, default 1.0
        Prior mean of the first factor of a query; all other means are 0. The first factor of a url is then its relevance to all
        queries, which few pairs suffice to learn; the other factors distinguish queries. The paper uses 0, which learns little
        from sparse logs.
    query_sd, url_sd : float, default 0.3 and 2.0
        Standard deviations of the priors; smaller values make queries more similar and scores smaller.
    max_iter : int, default 50
        Maximum number of passes over the pairs.
    validation_fraction : float, default 0.1
        Fraction of the pairs held out for early stopping; 0 holds out none. Ignored if `fit` gets validation pairs.
    patience : int, default 2
        Stop when the likelihood of the held-out pairs has not improved for this many passes. The factors are those of the last
        pass: a copy of the best factors would double the memory.
    n_jobs : int or None, default None
        Threads of the stochastic solvers: None is 1, -1 all cores. Results are bit-identical for any `n_jobs`.
    warm_start : bool, default False
        Start from the factors of the last fit, for ids that it shares with the new pairs.
    random_state : int, default 0
        Seed of the initial factors, the order of queries and the held-out pairs. All three depend on the dense integers of the
        ids, and so, unless ids are integers, on the order of the log.
    verbose : int, default 0
        1 shows a progress line; 0 prints nothing.

    Attributes
    ----------
    query_factors_ : (n_queries, factors) array of float32
        Q; the prior mean for queries without pairs.
    url_factors_ : (n_urls, factors) array of float32
        U; zero for urls without pairs.
    queries_, urls_ : Ids
        Ids of the rows of the factors.
    history_ : History
        An `Epoch` per pass.
    n_iter_ : int
        Number of passes.
    stop_reason_ : str
        "converged" (the likelihood of the held-out pairs stopped improving), "max_iter" or "interrupted" (Ctrl-C).

    See Also
    --------
    RandomWalkRanker : Scores by clicks alone.
    HybridRanker : Combines both, and is more accurate than either.

    Examples
    --------
    >>> from structrank.clicks import ClickLog, CollaborativeRanker, preference_pairs
    >>> shown = ["a.org", "b.org", "c.org"]
    >>> log = ClickLog.from_sessions([("news", shown, [2]), ("headlines", shown, [2]), ("news", shown, [1, 2])] * 5)
    >>> model = CollaborativeRanker(factors=4, validation_fraction=0).fit(preference_pairs(log))
    >>> bool(model.rank(["headlines"] * 3, shown)[2] == 1)
    True
    """

    factors: int = 50
    solver: str = "sgd"
    learning_rate: float | None = None
    query_mean: float = 1.0
    query_sd: float = 0.3
    url_sd: float = 2.0
    max_iter: int = 50
    validation_fraction: float = 0.1
    patience: int = 2
    n_jobs: int | None = None
    warm_start: bool = False
    random_state: int = 0
    verbose: int = 0

    def fit(self, pairs: Preferences, validation: Preferences | None = None, checkpoint: Path | None = None) -> Self:
        """Fit the factors.

        Parameters
        ----------
        pairs : Preferences
        validation : Preferences, default None
            Pairs for early stopping, over the same ids; None holds out some of `pairs`.
        checkpoint : path-like, default None
            Folder for checkpoints. If training is killed, the same call resumes it and ends with the same model, bit for bit;
            see `structrank.training.checkpoint`.
        """
        return self._fit(pairs, validation, checkpoint=checkpoint)

    def _fit(self, pairs, validation=None, expected=None, checkpoint=None):
        """Fit the factors; `expected` maps pairs to margins that the margins of the factors are added to."""
        self._check_parameters()
        check_pairs(pairs, "pairs")
        if validation is not None:
            check_pairs(validation, "validation")
            if validation.queries is not pairs.queries or validation.urls is not pairs.urls:
                raise ValueError("validation does not share the ids of pairs; split the log or the pairs to get it.")
        rng = np.random.default_rng(self.random_state)
        weight = np.array(pairs.weight, dtype=np.float32)
        if validation is None and 0 < round(self.validation_fraction * len(pairs)) < len(pairs):
            weight[random_mask(len(pairs), self.validation_fraction, self.random_state, "pairs")] *= -1
        grouped = _grouped(pairs, weight, expected)
        held_out = grouped if validation is None else _grouped(validation, -validation.weight, expected)
        Q, U = self._start(pairs, grouped, rng)
        rate = _RATES[self.solver] if self.learning_rate is None else self.learning_rate
        problem = Q, U, grouped, self._priors(), rate
        if self.solver == "batch":
            ascent = BatchAscent(*problem)
        else:
            ascent = StochasticAscent(*problem, rng, checks.n_threads(self.n_jobs), self.solver == "adam")
        total = float(weight.sum(where=weight > 0, dtype=np.float64))
        facts = {"pairs": grouped._asdict(), "validation": held_out._asdict(), "initial factors": (Q, U)}
        rounds = Rounds(self, ascent, facts, "max_iter", "pass", folder=checkpoint)
        with rounds:
            for number in rounds:
                ascent.epoch()
                unseen = held_out_likelihood(ascent.query_factors, ascent.url_factors, held_out)
                rounds.end(Epoch(number, ascent.likelihood() / total, unseen, rounds.seconds + rounds.lap()), watched=unseen)
        if rounds.reason == "patience":
            rounds.reason = "converged"
        rounds.store(self)
        factors = [found.astype(np.float32, copy=False) for found in (ascent.query_factors, ascent.url_factors)]
        if not all(np.abs(found).max(initial=0.0) <= _LARGEST_FACTOR for found in factors):
            raise ValueError(
                f"learning_rate={rate:g} or query_mean={self.query_mean:g} is too large: the factors overflowed. Use smaller "
                "numbers."
            )
        self.queries_, self.urls_ = pairs.queries, pairs.urls
        self.query_factors_, self.url_factors_ = factors
        return self

    def fold_in(self, pairs: Preferences) -> Self:
        """Compute the factors of new queries, with the factors of urls fixed.

        The posterior is concave in the factors of a query; Newton's method finds its maximum.

        Parameters
        ----------
        pairs : Preferences
            All pairs of the new queries, over any ids. Queries that the model has get new factors from these pairs alone. Pairs
            with a url that the model does not have are skipped with a warning.

        Returns
        -------
        self
            Model with rows for the new queries.

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
            text = f"{(~known).sum()} of {len(pairs)} pairs have a url that the model does not have, and are skipped."
            warnings.warn(text, checks.StructRankWarning, stacklevel=2)
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
        # New arrays, because copies of the model may share the old arrays.
        query_factors = np.concatenate([self.query_factors_, found[new]])
        query_factors[place[~new]] = found[~new]
        self.query_factors_ = query_factors
        self.queries_ = _joined(self.queries_, names[new])
        return self

    def check_loaded(self):
        """Raise unless a loaded model has valid parameters, which `fold_in` uses, and factors for each of its ids."""
        super().check_loaded()
        self._check_parameters()
        n_factors = np.shape(getattr(self, "query_factors_", None))[1:]
        for name, ids in (("query_factors_", "queries_"), ("url_factors_", "urls_")):
            checks.check_array(name, getattr(self, name, None), "f", (len(check_loaded_ids(self, ids)), *n_factors))
            checks.check_magnitudes(name, getattr(self, name), 0.0, _LARGEST_FACTOR)
        if len(n_factors) != 1 or not n_factors[0]:
            raise ValueError(f"query_factors_ has shape {self.query_factors_.shape}; expected a row of factors for each query")
        if not all(isinstance(entry, Epoch) for entry in self.history_):
            raise ValueError("history_ has an entry that is not an Epoch")

    def _scores(self, query, url):
        """Compute q_i . u_j of dense integers (query, url), in blocks."""
        scores = np.empty(query.shape[0])
        step = max(1, 2**20 // self.query_factors_.shape[1])
        for start in range(0, query.shape[0], step):
            part = slice(start, start + step)
            scores[part] = np.einsum("pf,pf->p", self.query_factors_[query[part]], self.url_factors_[url[part]])
        return scores

    def _check_parameters(self):
        checks.check_number("factors", self.factors, at_least=1, integer=True)
        checks.check_choice("solver", self.solver, tuple(_RATES))
        if self.learning_rate is not None:
            checks.check_number("learning_rate", self.learning_rate, above=0)
        checks.check_number("query_mean", self.query_mean)
        for name in ("query_sd", "url_sd"):  # whose squares are finite in float32
            checks.check_number(name, getattr(self, name), at_least=1e-9, at_most=1e9)
        checks.check_number("max_iter", self.max_iter, at_least=1, integer=True)
        checks.check_number("validation_fraction", self.validation_fraction, at_least=0, below=1)
        checks.check_number("patience", self.patience, at_least=1, integer=True)
        checks.check_number("random_state", self.random_state, at_least=0, integer=True)
        checks.n_threads(self.n_jobs)

    def _priors(self):
        return Priors(float(self.query_mean), float(self.query_sd), float(self.url_sd))

    def _start(self, pairs, grouped, rng):
        """Draw initial factors of the ids that have pairs, or copy those of the last fit if `warm_start`."""
        resume = self.warm_start and hasattr(self, "query_factors_")
        if resume and self.query_factors_.shape[1] != self.factors:
            raise ValueError(
                f"warm_start: the last fit had {self.query_factors_.shape[1]} factors, and factors={self.factors}. "
                "Fit a new model, or set warm_start=False."
            )
        both = []
        for ids, uses in zip((pairs.queries, pairs.urls), count_uses(grouped, len(pairs.urls)), strict=True):
            factors = rng.standard_normal((len(ids), self.factors), dtype=np.float32)
            factors *= np.float32(_START_SD)
            factors[uses == 0] = 0
            both.append(factors)
        both[0][:, 0] += np.float32(self.query_mean)
        if resume:
            old = (pairs.queries, self.queries_, self.query_factors_), (pairs.urls, self.urls_, self.url_factors_)
            for factors, (ids, old_ids, old_factors) in zip(both, old, strict=True):
                place = old_ids.index(ids.values)
                factors[place >= 0] = old_factors[place[place >= 0]]
        return both


def check_pairs(pairs, name):
    """Raise if `pairs` is not a non-empty `Preferences`."""
    if not isinstance(pairs, Preferences):
        raise ValueError(f"{name} is a {type(pairs).__name__}; expected Preferences, as returned by preference_pairs(log).")
    if not len(pairs):
        raise ValueError(
            f"{name} has no pairs to learn from: the rule found no preferences. Try another rule of preference_pairs."
        )


def _grouped(pairs, weight, expected):
    margins = None if expected is None else expected(pairs)
    return group_pairs(pairs.query, pairs.winner, pairs.loser, weight, len(pairs.queries), margins)


def _joined(ids, names):
    if ids.values.dtype.kind == "i" and names.dtype.kind == "i":
        return Ids(np.concatenate([ids.values, names]))
    values = np.empty(len(ids) + names.shape[0], dtype=object)
    values[:] = [*ids.values.tolist(), *names.tolist()]
    return Ids(values)
