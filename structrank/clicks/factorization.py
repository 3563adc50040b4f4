"""Objective and solvers of collaborative ranking: R = Q U^T with Bradley-Terry likelihood and Gaussian priors.

Cao, Shen, Wang and Yang, *Clickthrough log analysis by collaborative ranking*, AAAI 2010, equations 4 to 6 and Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit, log_expit

from structrank._support.threads import Threads
from structrank.clicks import _kernels as kernels

# Queries between two synchronisations of the threads: enough work to make their cost negligible, and few enough that in a
# sparse log the queries form many groups without common urls.
_CHUNK = 1024


@dataclass(frozen=True)
class Priors:
    """Gaussian priors of the factors: q_i around (query_mean, 0, 0, ...), u_j around 0.

    The paper uses ``query_mean=0``. Otherwise the first factor of a url is its relevance to all queries, and the others
    distinguish queries.
    """

    query_mean: float
    query_sd: float
    url_sd: float

    def centred(self, query_factors):
        """Return Q minus its prior mean."""
        deviation = np.array(query_factors, dtype=np.float64)
        deviation[..., 0] -= self.query_mean
        return deviation

    def cost(self, query_factors, url_factors):
        """Compute -log p(Q) - log p(U), without constants."""
        deviation = self.centred(query_factors)
        return float(
            np.vdot(deviation, deviation) / (2 * self.query_sd**2) + np.vdot(url_factors, url_factors) / (2 * self.url_sd**2)
        )


def group_pairs(query, winner, loser, weight, n_queries, expected=None):
    """Sort pairs by query; return `Pairs` for the kernels. Arrays that have the right order and type are not copied."""
    columns = [query, winner, loser, weight, np.empty(0) if expected is None else expected]
    types = [np.int32, np.int32, np.int32, np.float32, np.float32]
    if (query[1:] < query[:-1]).any():
        order = np.argsort(query, kind="stable")
        columns = [column[order] if column.size else column for column in columns]
    columns = [np.ascontiguousarray(column, dtype=kind) for column, kind in zip(columns, types, strict=True)]
    counts = np.bincount(query, minlength=n_queries)
    return kernels.Pairs(*columns, indptr=np.concatenate([[0], np.cumsum(counts)]))


def count_uses(pairs, n_urls):
    """Count the pairs of weight above 0 of each query and of each url; return two arrays of float32."""
    query_uses, url_uses = np.zeros(pairs.indptr.shape[0] - 1, np.float32), np.zeros(n_urls, np.float32)
    kernels.count_uses(pairs, query_uses, url_uses)
    return query_uses, url_uses


def margins(query_factors, url_factors, pairs):
    """Compute q_i . (u_j - u_k) of each pair, plus its expected margin."""
    out = np.empty(pairs.query.shape[0])
    kernels.pair_margins(query_factors, url_factors, pairs, out)
    if pairs.expected.size:
        out += pairs.expected
    return out


def log_posterior(query_factors, url_factors, pairs, priors):
    """Compute equation 4 without its constants.

    ``sum_p weight_p log phi(margin_p) + log p(Q) + log p(U)``, phi the logistic function, Q and U the factors of queries and
    urls, of shapes (n_queries, n_factors) and (n_urls, n_factors).
    """
    return likelihood(query_factors, url_factors, pairs) - priors.cost(query_factors, url_factors)


def likelihood(query_factors, url_factors, pairs):
    """Compute the weighted log-likelihood of the pairs."""
    return float(pairs.weight @ log_expit(margins(query_factors, url_factors, pairs)))


def held_out_likelihood(query_factors, url_factors, pairs):
    """Compute the weighted mean log-likelihood of the held-out pairs; nan if there are none."""
    total, weight = kernels.held_out_likelihood(query_factors, url_factors, pairs)
    return total / weight if weight else np.nan


def query_gradient(query_factors, url_factors, pairs, priors):
    """Compute equation 5 for all queries: the gradient of `log_posterior` with respect to Q."""
    out = priors.centred(query_factors) / -(priors.query_sd**2)
    slopes = _slopes(query_factors, url_factors, pairs)
    kernels.add_query_gradients(slopes, url_factors, pairs, out)
    return out


def url_gradient(query_factors, url_factors, pairs, priors):
    """Compute equation 6: the gradient of `log_posterior` with respect to U."""
    out = url_factors / -(priors.url_sd**2)
    slopes = _slopes(query_factors, url_factors, pairs)
    kernels.add_url_gradients(slopes, query_factors, pairs, out)
    return out


def _slopes(query_factors, url_factors, pairs):
    # phi'(x) / phi(x) = phi(-x), which neither overflows nor divides by zero.
    return pairs.weight * expit(-margins(query_factors, url_factors, pairs))


class BatchAscent:
    """Algorithm 1: a gradient step in Q, then one in U; the rate is halved until the step does not decrease the posterior."""

    def __init__(self, query_factors, url_factors, pairs, priors, rate):
        self.query_factors = query_factors.astype(np.float64)
        self.url_factors = url_factors.astype(np.float64)
        self.pairs = pairs._replace(weight=np.maximum(pairs.weight, 0))
        self.priors, self.rate = priors, rate
        self.objective = log_posterior(self.query_factors, self.url_factors, self.pairs, priors)

    def epoch(self):
        """Take one step that does not decrease the posterior; none if the rate falls below 1e-12."""
        Q, U = self.query_factors, self.url_factors
        gradient_Q = query_gradient(Q, U, self.pairs, self.priors)
        while self.rate > 1e-12:
            new_Q = Q + self.rate * gradient_Q
            new_U = U + self.rate * url_gradient(new_Q, U, self.pairs, self.priors)
            objective = log_posterior(new_Q, new_U, self.pairs, self.priors)
            if objective >= self.objective:
                self.query_factors, self.url_factors, self.objective = new_Q, new_U, objective
                return
            self.rate /= 2

    def likelihood(self):
        """Return the log-likelihood of the pairs, without the priors."""
        return likelihood(self.query_factors, self.url_factors, self.pairs)

    def state(self):
        """Return what the next epoch depends on, for a checkpoint."""
        return {name: getattr(self, name) for name in ("query_factors", "url_factors", "rate", "objective")}

    def restore(self, state):
        """Continue from a state returned by `state`."""
        vars(self).update(state)


class StochasticAscent:
    """Stochastic gradient ascent on single pairs: queries in random order, all pairs of a query in sequence.

    The queries of a chunk are assigned to threads such that no two threads share a url. The factors are therefore bit-identical
    to those of a single thread. If some url is in nearly every list, one thread has nearly all the work. The factors, of
    float32, are modified in place.
    """

    def __init__(self, query_factors, url_factors, pairs, priors, rate, rng, n_threads=1, adam=False):
        self.query_factors, self.url_factors, self.pairs = query_factors, url_factors, pairs
        self._rng, self._n_threads = rng, n_threads
        self._step = kernels.Step(*np.float32([rate, priors.query_mean, priors.query_sd**-2, priors.url_sd**-2]))
        self._uses = count_uses(pairs, url_factors.shape[0])
        self._visits = np.flatnonzero(self._uses[0]).astype(np.int32)
        self._likelihood = np.zeros(query_factors.shape[0])
        self._kernel = kernels.adam if adam else kernels.sgd
        per_row = (3, query_factors.shape[1]) if adam else ()
        self._memory = [np.zeros((factors.shape[0], *per_row), np.float32) for factors in (query_factors, url_factors)]

    def epoch(self):
        """Visit every query once."""
        visits = self._rng.permutation(self._visits)
        starts = np.append(np.arange(0, visits.shape[0], _CHUNK), visits.shape[0])
        thread = self._assign_threads(visits, starts) if self._n_threads > 1 else np.zeros_like(visits)
        with Threads(self._n_threads) as pool:
            for start, stop in pairwise(starts):
                own = thread[start:stop]
                pool.map(self._run, [visits[start:stop][own == number] for number in range(self._n_threads)])

    def likelihood(self):
        """Return the log-likelihood of the pairs in the last epoch, each evaluated when it was visited."""
        return float(self._likelihood.sum())

    def state(self):
        """Return what the next epoch depends on, for a checkpoint."""
        factors = {"query_factors": self.query_factors, "url_factors": self.url_factors}
        return {**factors, "memory": self._memory, "rng": self._rng.bit_generator.state}

    def restore(self, state):
        """Continue from a state returned by `state`."""
        self.query_factors, self.url_factors, self._memory = state["query_factors"], state["url_factors"], state["memory"]
        self._rng.bit_generator.state = state["rng"]

    def _assign_threads(self, visits, starts):
        owner = np.full(self.url_factors.shape[0], -1, np.int32)
        thread = np.empty(visits.shape[0], np.int32)
        kernels.split_by_urls(visits, starts, self.pairs, owner, thread, self._n_threads)
        return thread

    def _run(self, visits):
        factors = self.query_factors, self.url_factors
        self._kernel(*factors, visits, self.pairs, *self._uses, self._step, self._likelihood, *self._memory)


def best_query_factors(differences, weight, priors, tol=1e-10, max_iter=100):
    """Maximise `log_posterior` over the factors of one query, with fixed urls: a concave problem, by Newton's method.

    `differences`, of shape (n_pairs, n_factors), are u_winner - u_loser of the query's pairs. Stops when the squared Newton
    decrement is at most `tol`, usually after about five steps.
    """
    differences = np.asarray(differences, dtype=np.float64)
    q = np.zeros(differences.shape[1])
    q[0] = priors.query_mean
    precision = priors.query_sd**-2

    def value(q):
        deviation = priors.centred(q)
        return weight @ log_expit(differences @ q) - precision / 2 * deviation @ deviation

    for _ in range(max_iter):
        wrong = expit(-(differences @ q))
        gradient = (weight * wrong) @ differences - precision * priors.centred(q)
        curvature = (differences.T * (weight * wrong * (1 - wrong))) @ differences + precision * np.eye(q.shape[0])
        step = np.linalg.solve(curvature, gradient)
        gain = gradient @ step
        if gain <= tol:
            break
        length = 1.0
        while value(q + length * step) < value(q) + 1e-4 * length * gain and length > 1e-8:
            length /= 2
        q += length * step
    return q
