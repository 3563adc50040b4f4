"""Custom criteria, measures, feature maps and oracles, and the errors that name missing parts."""

import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from structrank import StructRankSVM, cli, compare, criteria, datasets, load_model, metrics, most_violated, register, train_for
from structrank._support import requirements
from structrank.comparison.diagnostics import health_path
from structrank.feature_maps import PartialOrder, Permutation
from structrank.learners import SPSARanker
from structrank.oracles import auc_partial_order, discounted_partial_order, permutation
from structrank.selection.polish import LineSearch, polish
from structrank.training.data import RankingData


@dataclass(frozen=True, repr=False)
class NRBP(metrics.Discounted, metrics.Binary):
    """Rank-biased precision divided by that of the ideal ranking, with a custom field."""

    short: ClassVar[str] = "nrbp"
    k: int | None = None
    p: float = 0.8

    def discounts(self, n):
        return self.p ** np.arange(n)


@dataclass(frozen=True)
class Geometric(criteria.Discounted):
    """One minus `NRBP`."""

    k: int | None = None
    p: float = 0.8

    name: ClassVar[str] = "geometric"


@dataclass(frozen=True)
class Discounts(criteria.Discounted):
    """Arbitrary discounts and credits."""

    table: tuple = (1.0,)
    weights: tuple = ()
    k: int | None = None
    convex_from: int = 0

    name: ClassVar[str] = "any"

    def discounts(self, n):
        return np.concatenate([self.table, np.zeros(n)])[:n]

    def credits(self, n):
        return np.concatenate([self.weights, np.ones(n)])[:n]

    def measure(self, relevant_from=1):
        return metrics.MAP(relevant_from=relevant_from)

    def loss(self, ranking, labels):
        ranks = np.flatnonzero(labels[ranking])
        discounts, credits = self.discounts(len(labels)), self.credits(len(ranks))
        return 1 - credits @ discounts[ranks] / (credits @ discounts[: len(ranks)])


@dataclass(frozen=True)
class Short(criteria.MAP):
    name: ClassVar[str] = "short"

    def discounts(self, n):
        return np.ones(1)


def random_query(rng, n):
    """Draw scores at scales where both loss and score matter, with ties in a third of the queries, and labels."""
    labels = np.zeros(n, int)
    labels[rng.permutation(n)[: rng.integers(1, n)]] = 1
    if rng.integers(3) == 0:
        return rng.integers(-2, 3, n) / 4.0, labels
    return rng.normal(size=n) * 10 ** rng.uniform(-2, 1), labels


def brute_force(scores, relevant, criterion, feature_map):
    """Return the largest value over all rankings."""
    ideal = scores @ feature_map.ideal_coefficients(relevant)
    return max(
        scores @ feature_map.coefficients(ranking, relevant) - ideal + criterion.loss(ranking, relevant)
        for ranking in map(np.array, itertools.permutations(range(len(scores))))
    )


# ---- Requirements of each role


@pytest.mark.parametrize("role", requirements.REQUIRED)
def test_each_missing_requirement_is_named(role):
    whole = {}
    for one in requirements.REQUIRED[role]:
        for option in one if isinstance(one, tuple) else (one,):
            whole[option.partition("(")[0]] = len if "(" in option else 1
    if "__call__" in whole:
        requirements.check(len, role)
        with pytest.raises(ValueError, match=rf"^5 is not usable as .*{role}\. It must have __call__\(.*Missing: __call__\("):
            requirements.check(5, role)
        return
    requirements.check(SimpleNamespace(**whole), role)
    for one in requirements.REQUIRED[role]:
        options = one if isinstance(one, tuple) else (one,)
        names = [option.partition("(")[0] for option in options]
        for name in names[1:]:  # one of several alternatives is enough
            requirements.check(SimpleNamespace(**{key: whole[key] for key in whole if key != name}), role)
        lacking = SimpleNamespace(**{key: whole[key] for key in whole if key not in names})
        with pytest.raises(ValueError, match=rf"^SimpleNamespace is not usable as an? {role}\. It must have") as error:
            requirements.check(lacking, role)
        missing = str(error.value).partition("Missing: ")[2]
        assert missing == (f"({' or '.join(options)})." if len(options) > 1 else f"{options[0]}.")


def test_the_message_reads_as_a_sentence():
    thing = SimpleNamespace(name="mine", oracles={})
    with pytest.raises(ValueError, match="SimpleNamespace is not usable as a criterion") as error:
        requirements.check(thing, "criterion", "See notebook 07.")
    assert str(error.value) == (
        "SimpleNamespace is not usable as a criterion. It must have name, measure(relevant_from) and (oracles or "
        "graded_oracles). Missing: measure(relevant_from) and (oracles or graded_oracles). See notebook 07."
    )
    thing = SimpleNamespace(name="mine", measure=0.5, graded_oracles={"po": len})
    with pytest.raises(ValueError, match=r"Missing: measure\(relevant_from\)\.$"):  # an attribute, but not callable
        requirements.check(thing, "criterion")


def test_a_class_in_place_of_an_object_is_rejected():
    with pytest.raises(ValueError, match=r"^SimpleNamespace is a class; expected an object of it, such as SimpleNamespace\(\)"):
        requirements.check(SimpleNamespace, "criterion")


# ---- Measures


@pytest.mark.parametrize("k", [None, 3])
def test_a_custom_field_of_a_measure_enters_its_value(rng, k):
    for p in (0.5, 0.9):
        labels, scores = rng.integers(0, 3, 8), rng.normal(size=8)
        labels[0] = 2
        discounts = np.where(np.arange(8) < (k or 8), p ** np.arange(8), 0.0)
        relevant = labels[np.argsort(-scores)] >= 2
        expected = (relevant @ discounts) / discounts[: relevant.sum()].sum()
        measure = NRBP(k, p, relevant_from=2)
        assert metrics.evaluate(labels, scores, None, measure)[measure.name] == pytest.approx(expected)


def test_a_custom_field_is_shown_with_the_measure(fold):
    measure = NRBP(k=5, p=0.5)
    assert (measure.name, repr(measure)) == ("nrbp@5", "nrbp@5(p=0.5)")
    assert measure.settings == "relevant_from=1, p=0.5"
    assert measure != NRBP(k=5)
    shown = repr(metrics.evaluate([1, 0], [2.0, 1.0], None, measure))
    assert shown.endswith("nrbp@5: relevant_from=1, p=0.5")
    table = compare({"made": fold}, {"AUC": StructRankSVM("auc")}, [measure, "map"], Cs=[1.0])
    assert "nrbp@5 (relevant_from=1, p=0.5)" in str(table)
    both = metrics.evaluate([0, 1], [2.0, 1.0], None, [NRBP(), NRBP(p=0.5)])
    assert len(set(both)) == 2
    assert any("p=0.5" in name for name in both)


def test_a_custom_field_distinguishes_stored_cells(fold, tmp_path):
    for n_cells, p in ((1, 0.5), (1, 0.5), (2, 0.9)):
        compare({"made": fold}, {"AUC": StructRankSVM("auc")}, "map", [1.0], tmp_path, select=NRBP(p=p))
        assert len(list(tmp_path.glob("*.cell"))) == n_cells


def test_the_standard_fields_of_a_custom_measure_are_checked():
    with pytest.raises(ValueError, match="k=0 is not valid"):
        NRBP(k=0)


def test_the_missing_methods_of_a_measure_are_named():
    @dataclass(frozen=True, repr=False)
    class Half(metrics.Measure):
        short: ClassVar[str] = "half"

    @dataclass(frozen=True, repr=False)
    class Gainless(metrics.Discounted):
        short: ClassVar[str] = "gainless"

        def discounts(self, n):
            return np.ones(n)

    with pytest.raises(ValueError, match=r"^Half is not usable as a measure.*Missing: values\(ranking\)\.$"):
        metrics.evaluate([1, 0], [2.0, 1.0], None, Half())
    with pytest.raises(ValueError, match=r"^Gainless is not usable as a discounted measure.*Missing: gains\(labels\)\.$"):
        metrics.evaluate([1, 0], [2.0, 1.0], None, Gainless())


# ---- Discounted losses


@pytest.mark.parametrize("feature_map", [PartialOrder(), Permutation()], ids=["po", "dorm"])
@pytest.mark.parametrize("kind", ["clipped", "convex", "convex from 1", "credits"])
def test_the_oracles_of_a_discounted_loss_are_exact(kind, feature_map):
    rng = np.random.default_rng(sum(map(ord, kind)))
    for _ in range(40):
        n = int(rng.integers(2, 7))
        scores, labels = random_query(rng, n)
        falls = np.sort(rng.uniform(size=n + 2))[::-1]
        convex = np.cumsum(falls[::-1])[::-1]
        if kind == "clipped":
            k = int(rng.integers(1, n + 2))
            criterion = Discounts(tuple(falls[:k]), k=k)
        elif kind == "convex from 1":
            criterion = Discounts((convex[0], *convex), convex_from=1)
        else:
            criterion = Discounts(tuple(convex), tuple(rng.uniform(0.1, 1, n + 2)) if kind == "credits" else ())
        found = most_violated(scores, labels, criterion, feature_map=feature_map)
        tolerance = 1e-12 * max(1.0, n * np.abs(scores).max())
        assert found.value == pytest.approx(brute_force(scores, labels, criterion, feature_map), abs=tolerance)
        assert found.loss == pytest.approx(criterion.loss(found.ranking, labels), abs=1e-12)


@pytest.mark.parametrize(
    ("criterion", "reason"),
    [
        (Discounts((1.0, 0.9, 0.2, 0.1)), "its discount is not convex from rank 0 on"),
        (Discounts((1.0, 1.0, 0.9, 0.2, 0.1), convex_from=1), "its discount is not convex from rank 1 on"),
        (Discounts((1.0, 0.9, 0.2, 0.1, 0.1), convex_from=2), "its discount is not convex from rank 2 on"),
        (Discounts((1.0, 0.5), k=1), "its discount is not 0 from rank k=1 on, or its credits differ"),
        (Discounts((1.0, 0.5), (1.0, 2.0), k=2), "its discount is not 0 from rank k=2 on, or its credits differ"),
    ],
)
def test_an_oracle_that_would_not_be_exact_is_rejected(criterion, reason):
    scores, labels = np.array([0.3, 0.2, 0.1, 0.0]), np.array([0, 1, 0, 1])
    text = rf"^criterion 'any' has no exact oracle with feature_map 'po', as {reason}; use feature_map='dorm'\.$"
    with pytest.raises(ValueError, match=text):
        most_violated(scores, labels, criterion)
    found = most_violated(scores, labels, criterion, feature_map="dorm")
    assert found.value == pytest.approx(brute_force(scores, labels, criterion, Permutation()), abs=1e-12)


@pytest.mark.parametrize(
    ("criterion", "text"),
    [
        (Discounts((0.5, 1.0)), r"the discount of criterion 'any' has D\(1\) = 1 after D\(0\) = 0.5; .*never rise"),
        (Discounts((0.0,)), r"discounts\(4\) of criterion 'any' has shape \(4,\) and begins with \[0.*the first above 0"),
        (Discounts((1.0, np.nan)), r"discounts\(4\) of criterion 'any' .* begins with \[ 1. nan .* finite numbers"),
        (Discounts((1.0,), (1.0, -1.0)), r"credits\(4\) of criterion 'any' .* expected 4 finite numbers of at least 0"),
        (Short(), r"discounts\(4\) of criterion 'short' has shape \(1,\) and begins with \[1.\]; expected 4"),
    ],
)
def test_discounts_and_credits_are_checked(criterion, text):
    with pytest.raises(ValueError, match=text):
        most_violated([0.1, 0.2], [0, 1], criterion)


# ---- Registering


def test_a_measure_can_be_registered_without_a_criterion(fold):
    assert register(NRBP) is NRBP
    assert metrics.evaluate([0, 1], [2.0, 1.0], None, "nrbp@2") == metrics.evaluate([0, 1], [2.0, 1.0], None, NRBP(2))
    assert "nrbp@2" in str(compare({"synthetic": fold}, ["AUC"], "nrbp@2", Cs=[1.0]))
    with pytest.raises(ValueError, match=r"Missing: measure\(relevant_from\). structrank.register\(Geometric, MEASURE\) adds"):
        register(Geometric)


def test_a_registered_criterion_can_be_used_by_name(fold):
    assert register(Geometric, NRBP) is Geometric
    train = fold.train
    assert criteria.parse("geometric", k=3) == Geometric(k=3)
    assert metrics.parse("NRBP@3") == NRBP(k=3)
    scores, labels = np.array([0.3, 0.2, 0.1]), np.array([0, 1, 0])
    found = most_violated(scores, labels, criterion="geometric", k=2)
    assert found.value == pytest.approx(brute_force(scores, labels, Geometric(2), PartialOrder()), abs=1e-12)
    by_name = StructRankSVM("geometric", k=3).fit(train.X, train.y, qid=train.qid)
    by_object = StructRankSVM(Geometric(3)).fit(train.X, train.y, qid=train.qid)
    assert np.array_equal(by_name.coef_, by_object.coef_)
    reached = metrics.evaluate(train.y, by_name.predict(train.X), train.qid, NRBP(3))["nrbp@3"]
    assert by_name.score(train.X, train.y, qid=train.qid) == reached
    assert "geometric: po, dorm" in criteria.exact_pairs()


def test_fields_shared_by_criterion_and_measure_are_passed_in_both_directions():
    register(Geometric, NRBP)
    assert criteria.matched_criterion(NRBP(4, 0.5)) == Geometric(4, 0.5)
    assert Geometric(4, 0.5).measure(2) == NRBP(4, 0.5, relevant_from=2)

    class Finer(Geometric):
        """Unregistered; evaluated by the measure of its base class."""

    assert Finer(4).measure() == NRBP(4)


@pytest.fixture(scope="module")
def noisy():
    return datasets.make_ranking(n_queries=60, n_docs=12, n_features=5, noise=0.7, random_state=1)


def test_the_measure_of_a_registered_pair_can_be_polished_and_trained_for(noisy):
    with pytest.raises(ValueError, match=r"measure 'nrbp@3' has no criterion to train on; choose one of: 'auc'.*register"):
        train_for(NRBP(3), noisy.train, noisy.validation)
    register(Geometric, NRBP)
    model = StructRankSVM("auc", C=0.01).fit(noisy.train.X, noisy.train.y, qid=noisy.train.qid)
    polished = polish(model, noisy.train, noisy.validation, "nrbp@3")
    assert polished.polish_.steps > 0
    assert polished.polish_.train[1] > polished.polish_.train[0]
    assert polished.polish_.validation[1] >= polished.polish_.validation[0]
    trained = train_for("nrbp@3", noisy.train, noisy.validation, Cs=[1.0])
    assert {trial.name for trial in trained.selection_.trials} >= {"NRBP@3", "NRBP@3, ramp", "AUC", "MAP"}
    assert trained.polish_.measure == "nrbp@3"


def test_a_line_search_uses_the_gains_of_the_measure(fold):
    @dataclass(frozen=True, repr=False)
    class Squares(metrics.Discounted):
        short: ClassVar[str] = "squares"
        k: int | None = None
        p: float = 0.8

        def discounts(self, n):
            return self.p ** np.arange(n)

        def gains(self, labels):
            return labels**2

    register(Geometric, Squares)
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, len(fold.train.y))
    search = LineSearch(RankingData(fold.train.X, y, fold.train.qid), Squares(k=3))
    w, direction = rng.normal(size=(2, fold.train.X.shape[1]))
    better, gain = search.along(w, direction, reach=1.0)
    values = [metrics.evaluate(y, fold.train.X @ v, fold.train.qid, Squares(k=3))["squares@3"] for v in (w, better)]
    assert gain > 0
    assert gain == pytest.approx(values[1] - values[0], abs=1e-9)


def test_train_for_accepts_a_measure_that_cannot_be_polished(fold):
    @dataclass(frozen=True, repr=False)
    class Opaque(metrics.Measure):
        short: ClassVar[str] = "opaque"
        k: int | None = None
        relevant_from: float = 1

        def discounts(self, n):
            return NRBP().discounts(n)

        def values(self, ranking):
            return NRBP(self.k).values(ranking)

    register(Geometric, Opaque)
    trained = train_for("opaque@3", fold.train, fold.validation, Cs=[1.0])
    assert not hasattr(trained, "polish_")
    with pytest.raises(ValueError, match=r"measure 'opaque@3' cannot be polished"):
        polish(trained, fold.train, fold.validation, "opaque@3")


def test_a_criterion_with_a_measure_method_is_registered_alone():
    @dataclass(frozen=True)
    class Half(criteria.AUC):
        name: ClassVar[str] = "half"

    register(Half)
    assert criteria.parse("half") == Half()
    assert criteria.matched_criterion(metrics.AUC()) == criteria.AUC(), "a criterion of the package takes precedence"


def test_a_redefined_class_replaces_the_earlier_one():
    def cell():
        @dataclass(frozen=True)
        class Cell(Geometric):
            name: ClassVar[str] = "cell"

        return register(Cell, NRBP)

    first, second = cell(), cell()
    assert first is not second
    assert type(criteria.parse("cell")) is second
    assert criteria.registered() == {"cell": (second, NRBP)}


def test_names_already_in_use_are_rejected():
    @dataclass(frozen=True)
    class Rank(Geometric):
        name: ClassVar[str] = "map"

    @dataclass(frozen=True, repr=False)
    class Other(NRBP):
        short: ClassVar[str] = "mrr"

    with pytest.raises(ValueError, match=r"the name 'map' is taken by structrank.criteria.MAP; choose another for .*Rank\.$"):
        register(Rank, NRBP)
    with pytest.raises(ValueError, match=r"the name 'mrr' is taken by structrank.metrics.MRR; choose another for .*Other\.$"):
        register(Geometric, Other)
    MAP = dataclass(frozen=True)(type("MAP", (Geometric,), {}))
    with pytest.raises(ValueError, match=r"the class name 'MAP' is taken by structrank.criteria.MAP"):
        register(MAP, NRBP)
    assert "geometric" not in criteria.CRITERIA


@pytest.mark.parametrize("name", ["NDCG@3", "my loss", "Geometric", "", 3])
def test_invalid_names_are_rejected(name):
    Named = dataclass(frozen=True)(type("Named", (Geometric,), {"name": name}))
    with pytest.raises(ValueError, match=r"Named has the name .*; expected lowercase letters, digits"):
        register(Named, NRBP)


def test_register_rejects_invalid_classes():
    class Undecorated(Geometric):
        q: int = 3

    @dataclass(frozen=True)
    class Bare(criteria.Criterion):
        pass

    @dataclass(frozen=True)
    class Undiscounted(criteria.Discounted):
        name: ClassVar[str] = "undiscounted"

    @dataclass(frozen=True)
    class Demanding(criteria.Discounted):
        k: int
        name: ClassVar[str] = "demanding"

    @dataclass(frozen=True, repr=False)
    class Valueless(metrics.Measure):
        short: ClassVar[str] = "valueless"

        def discounts(self, n):
            return np.ones(n)

    for arguments, text in {
        (
            Geometric(),
            NRBP,
        ): r"^Geometric\(k=None, p=0.8\) is not valid: expected a class derived from structrank.criteria.Crit",
        (NRBP, NRBP): r"^the class NRBP is not valid: expected a class derived from structrank.criteria.Criterion\.$",
        (Geometric, Geometric): r"^the class Geometric is not valid: expected a class derived from structrank.metrics.Measure",
        (Geometric, NRBP()): r"^nrbp\(p=0.8\) is not valid: expected a class derived from structrank.metrics.Measure\.$",
        (Undecorated, NRBP): r"^Undecorated is not a frozen dataclass; write @dataclass\(frozen=True\) above the class\.$",
        (Demanding, NRBP): r"^Demanding has no default for 'k', which is needed to create it by name\.$",
        (Bare, NRBP): r"^Bare is not usable as a criterion\. It must have .* Missing: name and \(oracles or",
        (
            Undiscounted,
            metrics.MAP,
        ): r"^MAP is not usable as a measure of a discounted criterion.* Undiscounted has none of its",
        (Geometric, Valueless): r"^Valueless is not usable as a measure.* Missing: values\(ranking\)\.$",
    }.items():
        with pytest.raises(ValueError, match=text):
            register(*arguments)
    with pytest.raises(ValueError, match=r"Missing: measure\(relevant_from\)\. structrank.register\(Undecided, MEASURE\)"):
        register(dataclass(frozen=True)(type("Undecided", (criteria.Discounted,), {"name": "u"})))
    assert not criteria.registered()


def test_incomplete_criteria_are_rejected_before_training(fold):
    @dataclass(frozen=True)
    class Unjudged(criteria.Criterion):
        name: ClassVar[str] = "unjudged"
        oracles: ClassVar[dict] = {"po": len}

    text = r"^Unjudged is not usable as a criterion.* Missing: measure\(relevant_from\)\. structrank.register\(Unjudged, MEAS"
    with pytest.raises(ValueError, match=text):
        StructRankSVM(Unjudged()).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    with pytest.raises(ValueError, match=text):
        most_violated([0.1, 0.2], [0, 1], Unjudged())
    with pytest.raises(ValueError, match=text):
        Unjudged().loss([0, 1], [1, 0])
    with pytest.raises(ValueError, match=r"^Unjudged is a class; expected an object of it, such as Unjudged\(\)"):
        most_violated([0.1, 0.2], [0, 1], Unjudged)
    with pytest.raises(ValueError, match=r"^criterion=3 is not valid: expected one of 'auc', .*derived from structrank.crit"):
        most_violated([0.1, 0.2], [0, 1], 3)
    with pytest.raises(ValueError, match=r"^criterion='geometric' is not known; .*structrank.register\(.*--import"):
        StructRankSVM("geometric").fit(fold.train.X, fold.train.y, qid=fold.train.qid)


# ---- Feature maps and oracles


@dataclass(frozen=True)
class LoudPairs:
    """Pairs as in phi_po, but p pairs of a query count as p ** power, not as 1."""

    power: float = 0.5
    name: ClassVar[str] = "loud"

    def loudness(self, n_relevant, n_irrelevant):
        return (n_relevant * n_irrelevant) ** self.power

    def coefficients(self, ranking, relevant):
        loudness = self.loudness(np.sum(relevant), len(relevant) - np.sum(relevant))
        return loudness * PartialOrder().coefficients(ranking, relevant)

    def ideal_coefficients(self, relevant):
        loudness = self.loudness(np.sum(relevant), len(relevant) - np.sum(relevant))
        return loudness * PartialOrder().ideal_coefficients(relevant)


def loud_oracle(criterion, feature_map, longest):
    quiet = discounted_partial_order(criterion, PartialOrder(), longest)

    def oracle(queries):
        sizes = np.diff(queries.starts)
        loudness = np.repeat(feature_map.loudness(queries.n_good, sizes - queries.n_good), sizes)
        found = quiet(replace(queries, scores=loudness * queries.scores))
        return replace(found, coefficients=loudness * found.coefficients)

    return oracle


@dataclass(frozen=True)
class Loud(Geometric):
    name: ClassVar[str] = "loud"
    oracles: ClassVar[dict] = {LoudPairs(): loud_oracle, **criteria.Discounted.oracles}


def test_a_custom_feature_map_and_oracle_train_exactly(fold, assert_same_optimum):
    register(Loud, NRBP)
    rng = np.random.default_rng(4)
    for _ in range(50):
        scores, labels = random_query(rng, int(rng.integers(2, 6)))
        found = most_violated(scores, labels, "loud", k=2, feature_map=LoudPairs(1.0))
        expected = brute_force(scores, labels, Loud(2), LoudPairs(1.0))
        assert found.value == pytest.approx(expected, abs=1e-12 * max(1.0, 9 * np.abs(scores).max()))
    assert criteria.find_oracle(Loud(), "auto")[0] == LoudPairs()
    assert "loud: loud, po, dorm" in criteria.exact_pairs()
    plain, quiet, loud = (
        StructRankSVM("loud", k=3, feature_map=one, tol=1e-6).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
        for one in ("po", LoudPairs(0.0), "auto")
    )
    assert_same_optimum(quiet, plain)
    assert loud.certificate_.primal < 0.95 * plain.certificate_.primal, "for a larger phi a shorter w suffices"


def test_the_missing_methods_of_a_feature_map_are_named(fold):
    @dataclass(frozen=True)
    class Incomplete:
        name: ClassVar[str] = "po"

        def coefficients(self, ranking, relevant):
            return np.zeros(len(ranking))

    with pytest.raises(ValueError, match=r"^Incomplete is not usable as a feature map.*Missing: ideal_coefficients\(rel"):
        most_violated([0.1, 0.2], [0, 1], feature_map=Incomplete())
    with pytest.raises(ValueError, match=r"^5 is not usable as a feature map\. It must have name, coefficients"):
        StructRankSVM(feature_map=5).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    register(Loud, NRBP)
    with pytest.raises(ValueError, match=r"^LoudPairs is not usable as a feature map of compiled oracles and the ramp bound"):
        StructRankSVM(Loud(3), feature_map=LoudPairs(), bound="ramp").fit(fold.train.X, fold.train.y, qid=fold.train.qid)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"coefficients": 1, "losses": 1}, r"^SimpleNamespace is not usable as a result of an oracle.*Missing: values\. .*'x'"),
        ({"coefficients": 0, "losses": 1, "values": 1}, r"'x' with feature_map 'po' returned coefficients of shape \(\d+,\);"),
        ({"coefficients": 1, "losses": 0, "values": 1}, r"returned losses of shape \(\d+,\); expected \(\d+,\): one per query"),
        ({"coefficients": 1, "losses": 1, "values": 0}, r"returned values of shape \(\d+,\); expected \(\d+,\): one per query"),
    ],
)
def test_the_result_of_an_oracle_is_checked(fold, answer, text):
    def maker(criterion, feature_map, longest):
        def oracle(queries):
            lengths = {"coefficients": len(queries.scores), "losses": len(queries.n_good), "values": len(queries.n_good)}
            return SimpleNamespace(**{name: np.zeros(lengths[name] if whole else 9999) for name, whole in answer.items()})

        return oracle

    X = dataclass(frozen=True)(type("X", (criteria.AUC,), {"name": "x", "oracles": {"po": maker}}))
    with pytest.raises(ValueError, match=text):
        most_violated([0.1, 0.2], [0, 1], X())
    with pytest.raises(ValueError, match=text):
        StructRankSVM(X()).fit(fold.train.X, fold.train.y, qid=fold.train.qid)


def test_makers_that_return_no_oracle_and_compiled_oracles_without_discounts_are_rejected():
    def nothing(criterion, feature_map, longest):
        return None

    X = dataclass(frozen=True)(type("X", (criteria.AUC,), {"name": "x", "oracles": {"po": nothing}}))
    with pytest.raises(ValueError, match=r"^None is not usable as an oracle\. It must have __call__\(queries\)\..*'x'"):
        most_violated([0.1, 0.2], [0, 1], X())
    Y = dataclass(frozen=True)(type("Y", (criteria.AUC,), {"name": "y", "oracles": {"dorm": permutation}}))
    with pytest.raises(ValueError, match=r"^Y is not usable as a criterion of compiled oracles.*Missing: discounts\(n\) and"):
        most_violated([0.1, 0.2], [0, 1], Y())


def test_any_object_with_the_three_result_arrays_is_accepted():
    def maker(criterion, feature_map, longest):
        found = auc_partial_order(criterion, feature_map, longest)
        return lambda queries: SimpleNamespace(
            **{name: getattr(found(queries), name) for name in ("coefficients", "losses", "values")}
        )

    X = dataclass(frozen=True)(type("X", (criteria.AUC,), {"name": "x", "oracles": {"po": maker}}))
    scores, labels = [0.3, 0.1, 0.2], [0, 1, 1]
    found, expected = most_violated(scores, labels, X()), most_violated(scores, labels, "auc")
    assert (found.value, found.ranking) == (expected.value, None)


# ---- Comparisons


def test_registered_criteria_can_be_compared_by_name_with_any_n_jobs(fold):
    @dataclass(frozen=True)
    class Hits(criteria.Discounted):
        k: int = 5
        name: ClassVar[str] = "hits"

    @dataclass(frozen=True, repr=False)
    class PossibleHits(metrics.Discounted, metrics.Binary):
        short: ClassVar[str] = "hits"
        k: int = 5

        def discounts(self, n):
            return np.ones(n)

    with pytest.raises(ValueError, match="trainer='hits' is not known; choose one of: 'paper', 'RankSVM', 'AUC'"):
        compare({"made": fold}, ["hits"], "map")
    register(Hits, PossibleHits)
    tables = [
        compare({"made": fold}, ["auc", "Hits"], ["hits@3", "map"], [0.1, 1.0], n_jobs=n_jobs).to_frame() for n_jobs in (1, 2)
    ]
    assert tables[0].index.tolist() == ["AUC", "hits"]
    assert tables[0].columns.tolist() == [("made", "hits@3"), ("made", "map")]
    assert tables[0].equals(tables[1])
    by_object = compare({"made": fold}, {"hits": StructRankSVM(Hits(5))}, "map", [0.1, 1.0]).to_frame()
    assert by_object.loc["hits", ("made", "map")] == tables[0].loc["hits", ("made", "map")]
    assert health_path(fold.train, ["hits"], [1.0]).index.tolist() == [("hits", 1.0)]


def test_stored_cells_depend_on_the_settings_of_a_criterion_passed_by_name(fold, tmp_path):
    def define(default):
        @dataclass(frozen=True)
        class Redefined(Geometric):
            name: ClassVar[str] = "redefined"
            p: float = default

        register(Redefined, NRBP)

    for n_cells, p in ((1, 0.5), (1, 0.5), (2, 0.9)):
        define(p)
        compare({"made": fold}, {"mine": StructRankSVM("redefined", k=3)}, "map", [1.0], tmp_path)
        assert len(list(tmp_path.glob("*.cell"))) == n_cells


# ---- Files


def test_models_of_a_registered_criterion_load_only_while_it_is_registered(fold, tmp_path):
    register(Geometric, NRBP)
    train = fold.train
    models = {
        "by name": StructRankSVM("geometric", k=3),
        "by object": StructRankSVM(Geometric(3, p=0.5)),
        "combo": StructRankSVM(["map", "geometric"]),
        "searched": SPSARanker(measure=NRBP(3, p=0.5), max_evaluations=50),
    }
    for name, model in models.items():
        model.fit(train.X, train.y, qid=train.qid).save(tmp_path / name)
        loaded = load_model(tmp_path / name)
        assert repr(loaded) == repr(model)
        assert loaded.score(train.X, train.y, qid=train.qid) == model.score(train.X, train.y, qid=train.qid)
    del criteria.CRITERIA["geometric"], metrics.MEASURES["nrbp"]
    for name in models:
        with pytest.raises(ValueError, match=r"structrank\.register\("):
            load_model(tmp_path / name)
    with pytest.raises(ValueError, match=r"the class Geometric is not known here.*structrank.register\(CRITERION, MEASURE\)"):
        load_model(tmp_path / "by object")
    with pytest.raises(ValueError, match=r"criterion='geometric' is not known"):
        load_model(tmp_path / "by name")
    with pytest.raises(ValueError, match=r"the class NRBP is not known here"):
        load_model(tmp_path / "searched")


def test_a_criterion_that_is_not_registered_cannot_be_saved(fold, tmp_path):
    @dataclass(frozen=True)
    class Unregistered(criteria.AUC):
        name: ClassVar[str] = "unregistered"

    model = StructRankSVM(Unregistered()).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    with pytest.raises(ValueError, match=r"criterion is an object of class Unregistered.* dataclass with structrank.register"):
        model.save(tmp_path / "m")


# ---- The command line

MODULE = """
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from structrank import criteria, metrics, register

@dataclass(frozen=True)
class Precision(criteria.Discounted):
    k: int = 5
    name: ClassVar[str] = "precision"

@dataclass(frozen=True, repr=False)
class PossiblePrecision(metrics.Discounted, metrics.Binary):
    short: ClassVar[str] = "possible_p"
    k: int = 5

    def discounts(self, n):
        return np.ones(n)

register(Precision, PossiblePrecision)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, noisy):
    """Working directory with data and a user module."""
    (tmp_path / "my_criteria.py").write_text(MODULE)
    (tmp_path / "made" / "Fold1").mkdir(parents=True)
    for name in ("train", "test"):
        part = getattr(noisy, name)
        rows = zip(part.y, part.qid, part.X.tolist(), strict=True)
        lines = [f"{y:g} qid:{q} {' '.join(f'{i}:{v!r}' for i, v in enumerate(x, 1))}" for y, q, x in rows]
        (tmp_path / "made" / "Fold1" / f"{name}.txt").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("my_criteria", None)


@pytest.fixture
def run(folder, capsys):
    """Run a command in this process; return its exit code, stdout and stderr."""

    def run(command):
        code = cli.main(command.split())
        return code, *capsys.readouterr()

    return run


def test_a_module_named_by_import_is_used_by_every_command(run):
    train = "train made/Fold1/train.txt --criterion precision@3 -o m"
    code, _, message = run(train)
    assert code == 2
    assert re.search(r"criterion='precision@3' is not known; .* --import\.\n", message)
    assert run(f"{train} --import my_criteria")[0] == 0
    assert load_model("m").criterion == "precision@3"
    assert sys.path.index(os.getcwd()) == len(sys.path) - 1, "files of the folder must not shadow libraries"
    facts = json.loads(run("evaluate made/Fold1/test.txt m --measures possible_p@3 --json --import my_criteria")[1])
    data = datasets.load_letor("made/Fold1/test.txt")
    expected = metrics.evaluate(data.y, load_model("m").predict(data.X), data.qid, "possible_p@3")["possible_p@3"]
    assert facts["measures"]["possible_p@3"]["mean"] == expected
    assert "criterion='precision@3'" in run("inspect m --import my_criteria")[1]
    assert run("predict m made/Fold1/test.txt --import my_criteria")[1].startswith("qid\tdocid\tscore\trank\n")


def test_the_installed_command_and_its_workers_import_from_the_current_folder(folder):
    command = "compare made --trainers auc precision --measures possible_p@3 map --Cs 1 10 --jobs 2 --import my_criteria"
    script = pathlib.Path(sys.executable).parent / "structrank"
    done = subprocess.run([script, *command.split()], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^precision +0\.\d+", done.stdout, re.MULTILINE)
    assert "possible_p@3 (relevant_from=1)" in done.stdout


def test_a_model_of_an_unregistered_criterion_is_rejected_in_one_line(run):
    assert run("train made/Fold1/train.txt --criterion precision --import my_criteria -o m")[0] == 0
    del criteria.CRITERIA["precision"]
    code, out, message = run("inspect m")
    assert (code, out, message.count("\n")) == (2, "", 1)
    assert "structrank.register(" in message


def test_a_module_that_cannot_be_imported_is_an_error_in_one_line(run):
    message = "structrank inspect: error: --import my_criterai: No module named 'my_criterai'.\n"
    assert run("inspect m --import my_criterai") == (2, "", message)
