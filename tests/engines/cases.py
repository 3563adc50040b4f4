"""The models and documents that all engines run."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from structrank import StructRankSVM, datasets
from structrank.learners import LambdaMART, McRank, RankNet, StructRankTrees
from structrank.learners.trees import LightGBMRanker, XGBoostRanker
from structrank.models import exports

# A quote, a double quote, a letter that is not ASCII, a blank, a dot, a function of Lucene and words of SQL.
NAMES = ["bm25", 'title\'s "match"', "längd", "order by", "doc.age", "max"]
SCALES = np.array([1.0, 100.0, 1e-3, 5.0, 0.2, 3.0])
OFFSETS = np.array([0.0, 40.0, 3e-3, -7.0, -1.0, 0.0])
SCALERS = {
    "no scaler": None,
    "StandardScaler": StandardScaler(),
    "MinMaxScaler": MinMaxScaler(),
    "MinMaxScaler to [-1, 3]": MinMaxScaler(feature_range=(-1, 3)),
}


@dataclass(frozen=True)
class Case:
    """A fitted model, the constant added to its scores, and what its exported scores equal."""

    name: str
    model: Any
    shift: float
    expected: np.ndarray


class Suite:
    """Training data, models, and documents to rank.

    Attributes
    ----------
    folder : Path
        An empty folder for files.
    documents : DataFrame
        Features of the documents to rank.
    qid : array
    cases : list of Case
    """

    def __init__(self, folder):
        self.folder = folder
        fold = datasets.make_ranking(n_queries=170, n_docs=90, n_features=6, n_grades=3, noise=0.5, random_state=0)
        train, test = fold.train, fold.test
        X, self.documents, self.qid = _features(train.X), _features(test.X), test.qid
        self.cases = []
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Columns of X differ in scale")
            for name, model in _models().items():
                qid = {f"{model.steps[-1][0]}__qid" if hasattr(model, "steps") else "qid": train.qid}
                self._add(name, model.fit(X, train.y, **qid))

    def _add(self, name, model):
        scores = model.predict(self.documents)
        shift = exports.positive_shift(model, self.documents)  # engines on Lucene reject negative scores
        self.cases.append(Case(name, model, shift, scores + shift))


def _features(X):
    """Return features of different scales and signs, in numbers of 32 bits, as engines index them; one has few values."""
    X = X * SCALES + OFFSETS
    X[:, 5] = np.round(X[:, 5])
    return pd.DataFrame(X.astype(np.float32).astype(np.float64), columns=NAMES)


def _models():
    models = {}
    for name, scaler in SCALERS.items():
        svm = StructRankSVM("map", C=10.0)
        models[f"StructRankSVM, {name}"] = svm if scaler is None else make_pipeline(scaler, svm)
    models['StructRankSVM, scale="std"'] = StructRankSVM("map", C=10.0, scale="std")
    models["RankNet, StandardScaler"] = make_pipeline(StandardScaler(), RankNet(hidden_units=0, max_epochs=3))
    for name in ("no scaler", "MinMaxScaler"):
        for model in (
            LambdaMART(n_estimators=50, num_leaves=15),
            LightGBMRanker(n_estimators=50, num_leaves=15),
            XGBoostRanker(n_estimators=30, max_depth=4),
        ):
            title = f"{type(model).__name__}, {name}"
            models[title] = model if SCALERS[name] is None else make_pipeline(SCALERS[name], model)
    models["StructRankTrees, no scaler"] = StructRankTrees("auc", relevant_from=None, n_estimators=30)
    models["McRank, two grades"] = McRank(n_estimators=10, num_leaves=15, relevant_from=1)
    models["McRank, three grades"] = McRank(n_estimators=10, num_leaves=15)
    models["McRank, three grades, ordinal"] = McRank("ordinal", n_estimators=10, num_leaves=15)
    return models
