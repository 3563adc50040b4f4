"""Selection of C on validation queries and on inner folds of the training queries.

Each query counts once: a C has the mean, over validation queries and the queries of three inner folds, of the measure that
chooses. Validation queries are ranked by models trained on the whole training part, those of an inner fold by models trained on
the other two. Validation parts of at least 1,000 queries are used alone; without a validation part, inner folds are.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from structrank import metrics
from structrank._support import checks
from structrank.datasets.containers import Dataset
from structrank.models.ranker import check_finished
from structrank.training.data import RankingData

# On digits, webis-clueweb09 and synthetic data, with candidates from 0.0001 to 10000, the chosen values were 0.01 to 1000,
# mostly 0.1 to 100 (without vacuous criteria); 10000 alone costs as much as the rest of the path.
DEFAULT_CS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
# Number of inner folds of the training queries.
_INNER_FOLDS = 3
# With fewer validation queries, inner folds are added: the mean of 1,000 differences of standard deviation 0.1 has a standard
# error of 0.003, about the difference between criteria.
FEW_QUERIES = 1000


@dataclass(frozen=True)
class Choice:
    """Settings for the selection of C.

    Attributes
    ----------
    Cs : tuple of float
        Candidates; ties go to the smallest.
    select : Measure or None
        Measure to maximise; None for the criterion of each trainer.
    random_state : int
        Seed of the inner folds.
    """

    Cs: tuple
    select: metrics.Measure | None
    random_state: int

    @property
    def how(self):
        """Name and settings of the measure."""
        if self.select is None:
            return "own"
        return f"{self.select.name} ({self.select.settings})" if self.select.settings else self.select.name

    def judge(self, model, part):
        """Score a model on validation queries; higher is better."""
        if self.select is None:
            return model.score(part.X, part.y, qid=part.qid)
        (value,) = metrics.evaluate(part.y, model.predict(part.X), part.qid, self.select).values()
        return value

    def is_defined(self, part):
        """Return a mask of the queries for which `select` is defined."""
        (values,) = metrics.evaluate(part.y, np.zeros(len(part.y)), part.qid, self.select, per_query=True).values()
        return ~np.isnan(values)

    def count(self, part, relevant_from):
        """Count the queries for which the score is defined."""
        if self.select is not None:
            return int(self.is_defined(part).sum())
        return int(usable_queries(RankingData(part.X, part.y, part.qid), relevant_from).sum())


def train_best(trainer, fold, choice, begun=None):
    """Choose C; return the model of that C, C, its mean score, and the notes of training.

    The score is None where a single C and no validation part leave nothing to choose or to measure. `begun` is a folder for
    checkpoints.
    """
    means, models = score_Cs(trainer, fold, choice, begun)
    best = 0 if means is None else int(np.argmax(means))
    if models is None:
        checkpoint = None if begun is None else begun / "whole"
        (model,) = fit_whole_path(trainer, fold.train, choice.Cs[best : best + 1], checkpoint)
    else:
        model = models[best]
    return model, choice.Cs[best], None if means is None else float(means[best]), model.notes_


def score_Cs(trainer, fold, choice, begun=None):
    """Return the mean score of each C, None without a query that counts, and the models if there is a validation part."""
    relevant_from = getattr(trainer, "relevant_from", None)
    totals, n_measured, models = np.zeros(len(choice.Cs)), 0, None
    if fold.validation is not None:
        models = fit_whole_path(trainer, fold.train, choice.Cs, None if begun is None else begun / "path")
        n_measured = max(choice.count(fold.validation, relevant_from), 1)
        totals = n_measured * np.array([choice.judge(model, fold.validation) for model in models])
    if len(choice.Cs) > 1 and n_measured < FEW_QUERIES:
        # One fold at a time, as each holds a copy of its rows.
        for number, (learn, check) in enumerate(inner_folds(fold.train, relevant_from, choice.random_state), 1):
            if count := choice.count(check, relevant_from):
                kept = None if begun is None else begun / f"inner-fold{number}"
                inner = fit_whole_path(trainer, learn, choice.Cs, kept)
                totals = totals + count * np.array([choice.judge(model, check) for model in inner])
                n_measured += count
    return totals / n_measured if n_measured else None, models


def fit_whole_path(trainer, part, Cs, checkpoint=None):
    """Train for each C; warnings are kept in the notes of the models, and Ctrl-C is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", checks.StructRankWarning)
        models = trainer.fit_path(part.X, part.y, qid=part.qid, Cs=Cs, checkpoint=checkpoint)
    for model in models:
        check_finished(model)
    if len(models) < len(Cs):
        raise KeyboardInterrupt
    return models


def inner_folds(part, relevant_from, random_state):
    """Split the usable queries into folds; yield a training and a validation part for each, none with a single query."""
    from sklearn.model_selection import GroupKFold

    data = RankingData(part.X, part.y, part.qid)
    usable = usable_queries(data, relevant_from)
    if usable.sum() < 2:
        return
    query = data.grouping.query_of_row()
    rows = np.flatnonzero(usable[query])
    splitter = GroupKFold(min(_INNER_FOLDS, int(usable.sum())), shuffle=True, random_state=random_state)
    for learn, check in splitter.split(rows, groups=query[rows]):
        chosen = (rows[learn], rows[check])
        yield tuple(Dataset(data.X[some], data.labels[some], query[some]) for some in chosen)


def usable_queries(data, relevant_from):
    """Return a mask of queries with relevant and irrelevant documents (with different labels, if graded)."""
    labels = data.labels[data.grouping.rows]
    kinds = labels if relevant_from is None else labels >= relevant_from
    firsts = data.grouping.indptr[:-1]
    return np.maximum.reduceat(kinds, firsts) > np.minimum.reduceat(kinds, firsts)
