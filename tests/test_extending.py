"""What others add to the package: criteria, measures, feature maps, oracles, and what is said of parts that are missing."""

from types import SimpleNamespace

import pytest

from structrank import _requirements

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
