"""What others add to the package: criteria, measures, feature maps, oracles, and what is said of parts that are missing."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from structrank import StructRankSVM, _requirements, compare, metrics


@dataclass(frozen=True, repr=False)
class RBP(metrics.Discounted, metrics.Binary):
    """Rank-biased precision over that of the ideal ranking, with a field of its own."""

    short: ClassVar[str] = "rbp"
    k: int | None = None
    p: float = 0.8

    def discounts(self, n):
        return self.p ** np.arange(n)


# ---- What each role requires


@pytest.mark.parametrize("role", _requirements.REQUIRED)
def test_each_requirement_is_named_where_it_alone_is_missing(role):
    whole = {}
    for one in _requirements.REQUIRED[role]:
        for option in one if isinstance(one, tuple) else (one,):
            whole[option.partition("(")[0]] = len if "(" in option else 1
    if "__call__" in whole:
        _requirements.check(len, role)
        with pytest.raises(ValueError, match=rf"^5 is not usable as .*{role}\. It must have __call__\(.*Missing: __call__\("):
            _requirements.check(5, role)
        return
    _requirements.check(SimpleNamespace(**whole), role)
    for one in _requirements.REQUIRED[role]:
        options = one if isinstance(one, tuple) else (one,)
        names = [option.partition("(")[0] for option in options]
        for name in names[1:]:  # one of several alternatives is enough
            _requirements.check(SimpleNamespace(**{key: whole[key] for key in whole if key != name}), role)
        lacking = SimpleNamespace(**{key: whole[key] for key in whole if key not in names})
        with pytest.raises(ValueError, match=rf"^SimpleNamespace is not usable as an? {role}\. It must have") as error:
            _requirements.check(lacking, role)
        missing = str(error.value).partition("Missing: ")[2]
        assert missing == (f"({' or '.join(options)})." if len(options) > 1 else f"{options[0]}.")


def test_the_message_reads_as_a_sentence():
    thing = SimpleNamespace(name="mine", loss=len, oracles={})
    with pytest.raises(ValueError, match="SimpleNamespace is not usable as a criterion") as error:
        _requirements.check(thing, "criterion", "See notebook 07.")
    assert str(error.value) == (
        "SimpleNamespace is not usable as a criterion. It must have name, loss(ranking, relevant), measure(relevant_from) "
        "and (oracles or graded_oracles). Missing: measure(relevant_from) and (oracles or graded_oracles). See notebook 07."
    )
    thing = SimpleNamespace(name="mine", loss=0.5, measure=len, graded_oracles={"po": len})
    with pytest.raises(ValueError, match=r"Missing: loss\(ranking, relevant\)\.$"):  # it is there, but cannot be called
        _requirements.check(thing, "criterion")


def test_a_class_in_place_of_an_object_is_refused():
    with pytest.raises(ValueError, match=r"^SimpleNamespace is a class; expected an object of it, such as SimpleNamespace\(\)"):
        _requirements.check(SimpleNamespace, "criterion")


# ---- Measures


@pytest.mark.parametrize("k", [None, 3])
def test_a_measure_with_a_field_of_its_own_is_computed_by_it(rng, k):
    for p in (0.5, 0.9):
        labels, scores = rng.integers(0, 3, 8), rng.normal(size=8)
        labels[0] = 2
        discounts = np.where(np.arange(8) < (k or 8), p ** np.arange(8), 0.0)
        relevant = labels[np.argsort(-scores)] >= 2
        expected = (relevant @ discounts) / discounts[: relevant.sum()].sum()
        measure = RBP(k, p, relevant_from=2)
        assert metrics.evaluate(labels, scores, None, measure)[measure.name] == pytest.approx(expected)


def test_a_field_of_its_own_shows_wherever_a_measure_is_shown(fold):
    measure = RBP(k=5, p=0.5)
    assert (measure.name, repr(measure)) == ("rbp@5", "rbp@5(p=0.5)")
    assert measure.settings == "relevant_from=1, p=0.5"
    assert measure != RBP(k=5)
    shown = repr(metrics.evaluate([1, 0], [2.0, 1.0], None, measure))
    assert shown.endswith("rbp@5: relevant_from=1, p=0.5")
    table = compare({"made": fold}, {"AUC": StructRankSVM("auc")}, [measure, "map"], Cs=[1.0])
    assert "rbp@5 (relevant_from=1, p=0.5)" in str(table)
    with pytest.raises(ValueError, match=r"two that are called 'rbp', with relevant_from=1, p=0.8 and with .* p=0.5"):
        metrics.evaluate([1, 0], [2.0, 1.0], None, [RBP(), RBP(p=0.5)])


def test_a_field_of_its_own_tells_stored_cells_apart(fold, tmp_path):
    for n_cells, p in ((1, 0.5), (1, 0.5), (2, 0.9)):
        compare({"made": fold}, {"AUC": StructRankSVM("auc")}, "map", [1.0], tmp_path, select=RBP(p=p))
        assert len(list(tmp_path.iterdir())) == n_cells


def test_the_fields_that_all_measures_share_are_still_checked():
    with pytest.raises(ValueError, match="k=0 is not valid"):
        RBP(k=0)


def test_a_measure_says_what_it_lacks():
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
