"""Selection of C on validation queries, or without them on inner folds of the training queries."""

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
# Number of inner folds of a training set without validation set.
_INNER_FOLDS = 3


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

    def count(self, part):
        """Count the queries of an inner fold for which the score is defined."""
        return np.unique(part.qid).size if self.select is None else int(self.is_defined(part).sum())


def train_best(trainer, fold, choice, begun=None):
    """Choose C on validation queries; return the model, C, the validation score, and the notes of training.

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
        # One fold at a time, as each holds a copy of its rows.
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
    """Split the usable queries into folds; yield a training and a validation part for each."""
    from sklearn.model_selection import GroupKFold

    data = RankingData(part.X, part.y, part.qid)
    usable = usable_queries(data, relevant_from)
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
