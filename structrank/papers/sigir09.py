"""SIGIR 2009: Donmez, Svore and Burges, "On the local optimality of LambdaRank"."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pandas as pd
from sklearn.base import clone

from structrank import metrics
from structrank.comparison import significance
from structrank.learners import LambdaRank, LocalOptimalityDisplay, local_optimality
from structrank.papers.exhibit import Result, exhibit, printed_table
from structrank.papers.stand_ins import described, first_folds, sentences, some_queries, train_with_rates
from structrank.plots import BarsDisplay, LinesDisplay, PanelsDisplay

__all__ = ["figure1", "figure2", "figure3", "figure4", "figure5", "figure6", "restarts", "table1", "table2", "table3", "table4"]

_CONSTRUCTIONS = ("ranknet-weight-pairs", "spring-smooth", "local-gradient", "local-cost", "discrete-bounded")
_LAYERS = {"one layer": 0, "two layers": 10}
_SMALL = 10 / 22  # the 10K and the 22K Web data, as shares of the larger
_WEB = "Web data of a commercial search engine: 10K and 22K training queries, 158.7 documents a query, 420 features"
_ARTIFICIAL = "artificial data graded by random cubic polynomials (10K training queries, 50 documents a query, 300 features)"
_HERE = (
    'Default here: "artificial", generated in the same way, and "noisy" (linear utility with noise, five grades) in place of '
    "the Web data."
)
_FULL = (5000, 50, 50)  # queries, documents a query, features of generated data
_TABLE = (1500, 30, 20)
_FIGURE = (5000, 20, 10)
_RESTARTS = (300, 30, 50)
_EPOCHS = {"tables": 100, "figures": 300, "full": 700}
_RATES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_RESTARTS_OF_TRAINING = 14  # all that fit into 700 epochs, after 50 without a better value each
_PRIVATE = "The paper's Web data are private; generated data have other noise, fewer queries and fewer features."


# ---- Data and training


def _reduced(size: tuple[int, int, int], epochs: str) -> str:
    return (
        f"{_EPOCHS[epochs]} epochs of Adam instead of {_EPOCHS['full']} of gradient steps, with restarts and the best of "
        f"{len(_RATES)} learning rates; generated data of {size[0]} queries (40 % for training) with "
        f"{size[1]} documents and {size[2]} features instead of {_FULL[0]}, {_FULL[1]} and {_FULL[2]}."
    )


def _measures(fold):
    """Return the four measures; labels from 2 on are relevant, as in the paper, or from 1 on where there are no others."""
    relevant_from = 2 if fold.train.y.max() > 1 else 1
    return {
        "ndcg": metrics.NDCG(),
        "ndcg@10": metrics.NDCG(k=10),
        "map": metrics.MAP(relevant_from=relevant_from),
        "mrr": metrics.MRR(relevant_from=relevant_from),
    }


def _trained(measure, fold, quick, part=None, **settings):
    """Train LambdaRank by lambdas alone, the best epoch by the validation queries if there are any."""
    return _fitted(measure, fold.train if part is None else part, fold.validation, quick, _EPOCHS["tables"], **settings)


def _converged(measure, fold, quick, **settings):
    """Train LambdaRank for the tests of local optimality; quick settings stop for the training queries alone."""
    return _fitted(measure, fold.train, None if quick else fold.validation, quick, _EPOCHS["figures"], **settings)


def _fitted(measure, part, validation, quick, epochs, start=None, **settings):
    """Train LambdaRank; without `quick` as the paper does, by gradient steps with restarts and the best of its rates."""
    if quick:
        ranker = LambdaRank(measure, **{"max_epochs": epochs, **settings})
        return ranker.fit(part.X, part.y, qid=part.qid, validation=validation, start=start)
    ranker = LambdaRank(measure, **{"max_epochs": _EPOCHS["full"], "restarts": _RESTARTS_OF_TRAINING, **settings})
    return train_with_rates(ranker, _RATES, part, validation, start)


def _settled(model, part):
    """Move the weights of a model until none of the moves that are tested raises the measure on the training queries."""
    ranker = clone(model).set_params(optimizer="adam", learning_rate=None, patience=1, restarts=0, settle=459)
    return ranker.fit(part.X, part.y, qid=part.qid, start=model.weights_)


def _tested(model, part, measure, n_directions=459, each_weight=False):
    return local_optimality(model, part.X, part.y, part.qid, measure, n_directions=n_directions, each_weight=each_weight)


def _values(model, part, measure):
    """Return the measure of each query of a part; nan where it is undefined."""
    return metrics.evaluate(part.y, model.predict(part.X), part.qid, measure, per_query=True)[measure.name]


def _standard_error(values):
    defined = values[~np.isnan(values)]
    return defined.std(ddof=1) / np.sqrt(defined.size)


# ---- Tables 1 and 2


def _constructions(name, data, quick, n_seeds):
    """Train with each construction and compare on the validation queries, as Tables 1 and 2."""
    runs = defaultdict(list)
    for seed in range(n_seeds):
        folds = first_folds(data, ("noisy", "artificial"), _TABLE if quick else _FULL, seed)
        for title, fold in folds.items():
            runs[title].append(_compared_constructions(name, fold, quick, seed))
    tables = {}
    outcomes = defaultdict(dict)
    for title, each in runs.items():
        by_construction = pd.concat(each).groupby(level=0, sort=False)
        means = by_construction.mean()
        mine = means[[name]].assign(SD=by_construction[name].std(ddof=0), SE=means["SE"])
        tables[title] = mine.join(by_construction[["below", "above"]].sum())
        first, others = mine[name].iloc[0], tables[title].iloc[1:]
        wins = [(run["below"].iloc[1:] == 1).all() for run in each]
        best = others[name].idxmax()
        evidence = (
            f"for {sum(wins)} of {n_seeds} seeds; {first:.3f} on average, SD {mine['SD'].iloc[0]:.3f}; the best other, {best}, "
            f"{others[name].max():.3f}, is significantly below for {others.loc[best, 'below']} and above for "
            f"{others.loc[best, 'above']}"
        )
        outcomes["RankNetWeightPairs is best, with significance"][title] = all(wins), evidence
    ours = pd.concat(tables, names=["data", "construction"])
    bars, errors = (ours[column].unstack(0)[list(folds)].loc[list(_CONSTRUCTIONS)] for column in (name, "SE"))
    return Result(ours, BarsDisplay(bars, f"validation {name}", errors=errors), described(folds), findings=sentences(outcomes))


def _compared_constructions(name, fold, quick, seed):
    """Return the measure of each construction with one seed, and whether it is significantly below or above the first."""
    measure, held_out = _measures(fold)[name], fold.test if fold.validation is None else fold.validation
    found = {
        each: _values(_trained(measure, fold, quick, construction=each, random_state=seed), held_out, measure)
        for each in _CONSTRUCTIONS
    }
    reference = found[_CONSTRUCTIONS[0]]
    rows = {}
    for each, values in found.items():
        differs = significance.paired_t_test(values, reference) < significance.SIGNIFICANT
        gain = np.nanmean(values) - np.nanmean(reference)
        below, above = int(differs and gain < 0), int(differs and gain > 0)
        rows[each] = {name: np.nanmean(values), "SE": _standard_error(values), "below": below, "above": above}
    return pd.DataFrame.from_dict(rows, orient="index").astype({"below": int, "above": int})


_TABLES_1_2 = {
    "question": "Which of five constructions of lambdas trains best?",
    "protocol": "Train LambdaRank with two layers and each construction; report mean and standard error (SE) over the "
    "validation queries, which also select the epoch. Here: means over seeds, of the initial weights and of generated data, "
    "with their standard deviation (SD), and the number of seeds for which a construction is significantly below or above "
    "RankNetWeightPairs (paired t-test).",
    "data": f"5K training and 5K validation queries of the {_WEB[:3]} data. {_HERE}",
    "reported": "RankNetWeightPairs outperforms the other constructions, with significance. (Our copy of the paper has lost "
    "the cells of Tables 1 to 4.)",
    "reduced": _reduced(_TABLE, "tables"),
    "reason": _PRIVATE,
}


@exhibit(title="Table 1: constructions of lambdas for MAP", **_TABLES_1_2)
def table1(data=None, *, quick=True, n_seeds=3):
    """Compute Table 1: validation MAP by construction.

    Examples
    --------
    >>> from structrank import datasets, papers
    >>> fold = datasets.make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0)
    >>> papers.sigir09.table1({"made": fold}, n_seeds=1).ours.columns.tolist()
    ['map', 'SD', 'SE', 'below', 'above']
    """
    return _constructions("map", data, quick, n_seeds)


@exhibit(title="Table 2: constructions of lambdas for MRR", **_TABLES_1_2)
def table2(data=None, *, quick=True, n_seeds=3):
    """Compute Table 2: validation MRR by construction."""
    return _constructions("mrr", data, quick, n_seeds)


# ---- Figures 1 to 4 and 6


def _around(name, data, quick, n_directions, settled):
    """Test whether the trained weights are local optima of the training measure, as Figures 1 to 4."""
    folds = first_folds(data, ("artificial", "noisy"), _FIGURE if quick else _FULL)
    rows, panels = {}, {}
    for title, fold in folds.items():
        measure = _measures(fold)[name]
        for layers, hidden_units in _LAYERS.items():
            models = {"lambdas": _converged(measure, fold, quick, hidden_units=hidden_units)}
            if settled:
                models["settled"] = _settled(models["lambdas"], fold.train)
            for training, model in models.items():
                result = _tested(model, fold.train, measure, n_directions, each_weight=True)
                rows[title, layers, training] = {
                    f"training {name}": result.value,
                    "ascent directions": result.n_better,
                    "ascent weights": result.better_weights.size,
                    "weights": result.weight_curves.shape[0],
                    "local optimum": result.passed,
                }
                if training == "lambdas":
                    panels[f"{title}, {layers}"] = LocalOptimalityDisplay(result)
    ours = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["data", "layers", "training"])
    outcomes = defaultdict(dict)
    for (title, training), mine in ours.groupby(["data", "training"], sort=False):
        statement = {"lambdas": "Trained by lambdas", "settled": "Trained by lambdas and settled"}[training]
        evidence = (
            f"{int(mine['local optimum'].sum())} of {len(mine)} models; at most {mine['ascent directions'].max()} of "
            f"{n_directions} directions lead up, and {mine['ascent weights'].sum()} of {mine['weights'].sum()} single weights"
        )
        outcomes[f"{statement}, the weights are local optima"][title] = mine["local optimum"].all(), evidence
    return Result(ours, PanelsDisplay(panels), described(folds), findings=sentences(outcomes))


def _around_about(name):
    return {
        "question": f"Are the weights that LambdaRank learns for {name} a local optimum of {name}?",
        "protocol": "Move all weights in 459 random directions, by 10 step sizes: if none raises the measure on the training "
        "queries, the weights are a local optimum with 99 % confidence. Then move each weight alone. Steps are relative to "
        'the norm of the weights. "lambdas" trains by lambdas alone, as the paper does; with settled=True, "settled" trains on '
        "from these weights while the measure rises, then moves them and keeps moves that raise it (`settle` of `LambdaRank`).",
        "data": f"{_ARTIFICIAL}; {_WEB}. {_HERE}",
        "reported": "The measure decreases in all directions, and whenever one weight is moved, with one layer and with two, "
        "on all three training sets.",
        "reduced": f"{_reduced(_FIGURE, 'figures')} 300 queries became 5000, as the paper has 10,000 for "
        "training, after the outcome for NDCG with 5000 had been seen.",
        "reason": "With 2,000 queries instead of 10,000 the measure is a more rugged function of the weights, in which a "
        "direction leads up by chance; and of the few weights of a linear ranker (420 in the paper), a random direction has a "
        "larger component along the gradient.",
    }


@exhibit(title="Figure 1: mean NDCG around the learned weights", **_around_about("mean NDCG"))
def figure1(data=None, *, quick=True, n_directions=459, settled=False):
    """Compute Figure 1: the training NDCG around the weights that LambdaRank learns for it."""
    return _around("ndcg", data, quick, n_directions, settled)


@exhibit(title="Figure 2: mean NDCG@10 around the learned weights", **_around_about("mean NDCG@10"))
def figure2(data=None, *, quick=True, n_directions=459, settled=False):
    """Compute Figure 2, as Figure 1 for NDCG@10."""
    return _around("ndcg@10", data, quick, n_directions, settled)


@exhibit(title="Figure 3: MAP around the learned weights", **_around_about("MAP"))
def figure3(data=None, *, quick=True, n_directions=459, settled=False):
    """Compute Figure 3, as Figure 1 for MAP."""
    return _around("map", data, quick, n_directions, settled)


@exhibit(title="Figure 4: MRR around the learned weights", **_around_about("MRR"))
def figure4(data=None, *, quick=True, n_directions=459, settled=False):
    """Compute Figure 4, as Figure 1 for MRR."""
    return _around("mrr", data, quick, n_directions, settled)


@exhibit(
    title="Figure 6: mean NDCG around random weights",
    question="Can the test of local optimality fail?",
    protocol="The test of Figure 1 at the random weights from which training starts, with one layer.",
    data=f"10K {_WEB[:3]} data. {_HERE}",
    reported="Random weights are not a local optimum: two of the four directions shown lead up.",
    reduced=_reduced(_FIGURE, "figures").partition("; ")[2].capitalize(),
)
def figure6(data=None, *, quick=True, n_directions=459):
    """Compute Figure 6: the training NDCG around random weights."""
    folds = first_folds(data, ("noisy", "artificial"), _FIGURE if quick else _FULL)
    found = {}
    for title, fold in folds.items():
        model = LambdaRank("ndcg", hidden_units=0, max_epochs=0).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
        found[title] = _tested(model, fold.train, "ndcg", n_directions)
    values = {title: {"training ndcg": result.value, "ascent directions": result.n_better} for title, result in found.items()}
    ours = pd.DataFrame.from_dict(values, orient="index").rename_axis("data")
    cases = {title: (not result.passed, f"{result.n_better} of {n_directions} lead up") for title, result in found.items()}
    panels = {title: LocalOptimalityDisplay(result) for title, result in found.items()}
    findings = sentences({"Random weights are not a local optimum": cases})
    return Result(ours, PanelsDisplay(panels), described(folds), findings=findings)


# ---- Tables 3 and 4, Figure 5

_GAIN = "ndcg - matched"


def _matched(data, quick, share):
    """Compare training measures on all test measures, with a share of the training queries, as Tables 3 and 4."""
    folds = first_folds(data, ("noisy", "artificial"), _TABLE if quick else _FULL)
    rows, bars = {}, {}
    outcomes = defaultdict(dict)
    for title, fold in folds.items():
        n_queries = max(2, round(share * len(np.unique(fold.train.qid))))
        measures, part = _measures(fold), some_queries(fold.train, n_queries)
        models = {name: _trained(measure, fold, quick, part) for name, measure in measures.items()}
        found = {
            (row, column): _values(model, fold.test, measures[column]) for row, model in models.items() for column in measures
        }
        means = pd.DataFrame({column: {row: np.nanmean(found[row, column]) for row in models} for column in measures})
        p = {
            row: {f"p {column}": significance.paired_t_test(found[row, column], found[column, column]) for column in measures}
            for row in models
        }
        pairs = {row: np.mean([each.effective_pairs for each in model.history_]) for row, model in models.items()}
        mine = means.join(pd.DataFrame(p).T).join(pd.Series(pairs, name="effective pairs"))
        mine.loc[_GAIN] = means.loc["ndcg"] - pd.Series(np.diag(means), index=means.columns)
        rows[title] = mine
        for statement, outcome in [*_matching(mine, list(measures)), _fewer_pairs(mine["effective pairs"])]:
            outcomes[statement][title] = outcome
        bars[title] = means.T.rename_axis(columns="trained for")
    ours = pd.concat(rows, names=["data", "trained for"])
    display = BarsDisplay(pd.concat(bars, names=["data", "tested by"]), "test value")
    return Result(ours, display, described(folds), findings=sentences(outcomes))


def _matching(mine, measures):
    """Yield the paper's statement on each test measure, and its outcome here."""
    for column in measures:
        values = mine[column].loc[measures]
        best, other = values.idxmax(), values.drop(column).idxmax()
        p = mine.loc[other, f"p {column}"]
        evidence = f"{values[column]:.3f}; trained for {other} {values[other]:.3f}, p = {p:.2g}"
        if column in ("ndcg", "map"):
            sure = best == column and p < significance.SIGNIFICANT
            yield f"Training on {column} is best for {column}, with significance", (sure, evidence)
        else:
            yield f"Training on ndcg is best for {column}, which training on {column} is not", (best == "ndcg", evidence)


def _fewer_pairs(pairs):
    order = ("ndcg", "ndcg@10", "map", "mrr")
    evidence = f"{', '.join(f'{name} {pairs[name]:,.0f}' for name in order)} an epoch"
    return "Effective pairs decrease from ndcg to ndcg@10, map and mrr", (
        all(pairs[one] > pairs[other] for one, other in pairwise(order)),
        evidence,
    )


_TABLES_3_4 = {
    "question": "Does training on the test measure give the best test value?",
    "protocol": "Train LambdaRank with two layers for each of four measures; test each model on all of them. p is that of a "
    f"paired t-test against the model trained for the column's measure. Row {_GAIN!r}: the value of training on NDCG less that "
    "of training on the measure itself. Effective pairs are the pairs with a non-zero lambda, in the mean of the epochs.",
    "reduced": _reduced(_TABLE, "tables"),
    "reason": _PRIVATE + " Its explanation, that a measure with few effective pairs needs more queries, can be tested with "
    "Figure 5.",
}


@exhibit(
    title="Table 3: test measure by training measure, smaller training set",
    **_TABLES_3_4,
    data=f"The 10K {_WEB[:3]} data. {_HERE} Here: 10/22 of the training queries.",
    reported="NDCG and MAP are best trained on themselves, with significance; NDCG@10 and MRR are best trained on NDCG, by "
    "0.02 each. NDCG has more effective pairs than NDCG@10, this more than MAP, and MAP more than MRR.",
    printed=printed_table(f"trained for  ndcg@10  mrr\n{_GAIN}  .02  .02"),
)
def table3(data=None, *, quick=True):
    """Compute Table 3, on 10/22 of the training queries of Table 4."""
    return _matched(data, quick, _SMALL)


@exhibit(
    title="Table 4: test measure by training measure, larger training set",
    **_TABLES_3_4,
    data=f"The 22K {_WEB[:3]} data. {_HERE}",
    reported="As Table 3, but the advantage of NDCG has shrunk to 0.004 for NDCG@10 and to 0.011 for MRR.",
    printed=printed_table(f"trained for  ndcg@10  mrr\n{_GAIN}  .004  .011"),
)
def table4(data=None, *, quick=True):
    """Compute Table 4, on all training queries."""
    return _matched(data, quick, 1.0)


@exhibit(
    title="Figure 5: test MRR by number of effective pairs",
    question="Is training on MRR best for MRR where all measures learn from equally many effective pairs?",
    protocol="Train LambdaRank with two layers for each of four measures on growing subsets of the queries; compare the test "
    "MRR at equal numbers of effective pairs (in the mean of the epochs).",
    data=f"{_ARTIFICIAL}, in various sizes. Default here: generated in the same way.",
    reported="For similar numbers of effective pairs, training for MRR results in the best test MRR, with significance.",
    reduced=_reduced(_TABLE, "tables"),
    reason="With a share of 16 % relevant documents test MRR is close to 1, which leaves little room for differences. The "
    "paper does not state the sizes of its training sets.",
)
def figure5(data=None, *, quick=True):
    """Compute Figure 5: the test MRR by number of effective pairs."""
    folds = first_folds(data, ["artificial"], _TABLE if quick else _FULL)
    rows, panels, cases = {}, {}, {}
    for title, fold in folds.items():
        measures, total = _measures(fold), len(np.unique(fold.train.qid))
        sizes = sorted({max(2, round(total * share)) for share in (0.02, 0.05, 0.1, 0.2, 0.4, 1.0)})
        for size in sizes:
            part = some_queries(fold.train, size)
            for name, measure in measures.items():
                model = _trained(measure, fold, quick, part)
                values = _values(model, fold.test, measures["mrr"])
                pairs = np.mean([each.effective_pairs for each in model.history_])
                rows[title, name, size] = {"effective pairs": pairs, "mrr": np.nanmean(values), "SE": _standard_error(values)}
        mine = pd.DataFrame.from_dict({key[1:]: row for key, row in rows.items() if key[0] == title}, orient="index")
        curves = {name: mine.loc[name].set_index("effective pairs")["mrr"].sort_index() for name in measures}
        panels[title] = LinesDisplay(pd.DataFrame(curves), "effective pairs an epoch", "test mrr", logx=True)
        cases[title] = _at_equal_pairs(curves)
    ours = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["data", "trained for", "queries"])
    findings = sentences({"At equal numbers of effective pairs, training for MRR gives the best MRR": cases})
    return Result(ours, PanelsDisplay(panels), described(folds), findings=findings)


def _at_equal_pairs(curves):
    """Compare the curves at the numbers of pairs of MRR that all of them reach, in the mean of the epochs."""
    least = max(curve.index[0] for curve in curves.values())
    most = min(curve.index[-1] for curve in curves.values())
    common = [pairs for pairs in curves["mrr"].index if least <= pairs <= most]
    if not common:
        return False, "the training sets have no number of effective pairs in common"
    at = pd.DataFrame({name: np.interp(np.log(common), np.log(curve.index), curve) for name, curve in curves.items()})
    wins = int((at["mrr"] > at.drop(columns="mrr").max(axis=1)).sum())
    last = ", ".join(f"{name} {value:.3f}" for name, value in at.iloc[-1].items())
    return wins == len(common), f"at {wins} of {len(common)} numbers; with {common[-1]:,.0f} pairs {last}"


# ---- Restarts


@exhibit(
    title="Restarts: training for NDCG@10 from weights that are local optima",
    question="Are the weights of early epochs and those learned for MRR local optima of NDCG@10, and does training leave them?",
    protocol="Train two layers for NDCG@10 for 7 and for 12 epochs, and for MRR; test the weights for local optimality in "
    "NDCG@10, and train from them for NDCG@10. Here the early weights are the best of the first 7 and 12 epochs.",
    data=f"The 10K {_WEB[:3]} data. {_HERE}",
    reported="All three are local optima of NDCG@10, and training from them raises NDCG@10 at once: learning escapes local "
    "optima, as its steps are stochastic.",
    reduced=_reduced(_RESTARTS, "figures"),
    reason="Networks of the paper have over 4000 weights. The fewer weights there are, the more random directions have a "
    "component along the gradient that is large enough to lead up.",
)
def restarts(data=None, *, quick=True, n_directions=459):
    """Compute the restart experiment of the section on local optima."""
    folds = first_folds(data, ["noisy"], _RESTARTS if quick else _FULL)
    rows, curves = {}, {}
    for title, fold in folds.items():
        measures, part = _measures(fold), fold.train
        target = measures["ndcg@10"]
        starts = {
            "epoch 7": _converged(target, fold, quick, max_epochs=7),
            "epoch 12": _converged(target, fold, quick, max_epochs=12),
            "trained for mrr": _converged(measures["mrr"], fold, quick),
        }
        for name, model in starts.items():
            before = _tested(model, part, target, n_directions)
            again = _converged(target, fold, quick, start=model.weights_, random_state=1)
            after = _tested(again, part, target, n_directions)
            values = np.array([each.train for each in again.history_])
            higher = np.flatnonzero(values > before.value)
            rows[title, name] = {
                "weights": model.weights_.size,
                "ndcg@10 at start": before.value,
                "ascent directions at start": before.n_better,
                "local optimum": before.passed,
                "epochs until above": higher[0] + 1 if higher.size else np.nan,
                "ndcg@10 after": after.value,
                "ascent directions after": after.n_better,
            }
            curves[title, name] = pd.Series([before.value, *values])
    ours = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["data", "start"])
    outcomes = defaultdict(dict)
    for title, mine in ours.groupby("data", sort=False):
        up, gains = mine["ascent directions at start"], mine["ndcg@10 after"] - mine["ndcg@10 at start"]
        outcomes["Early weights, and weights learned for MRR, are local optima of NDCG@10"][title] = (
            mine["local optimum"].all(),
            f"{int(mine['local optimum'].sum())} of {len(mine)}; {up.min()} to {up.max()} of {n_directions} directions lead up",
        )
        outcomes["Training from them raises NDCG@10"][title] = (
            (gains > 0).all(),
            f"{int((gains > 0).sum())} of {len(mine)}, by {gains.min():.3f} to {gains.max():.3f}; above the start after "
            f"at most {mine['epochs until above'].max():.0f} epochs",
        )
    display = LinesDisplay(pd.DataFrame(curves), "epoch", "training ndcg@10")
    return Result(ours, display, described(folds), findings=sentences(outcomes))
