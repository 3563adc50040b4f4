"""Formulas of models: their numbers, and names that a language would read otherwise."""

import math
import re

import numpy as np
import pytest

from structrank import StructRankSVM, StructRankWarning
from structrank.learners import LambdaMART
from structrank.models import exports


def with_weights(weights):
    model = StructRankSVM()
    model.coef_, model.n_features_in_ = np.asarray(weights), len(weights)
    return model


@pytest.mark.parametrize("dialect", ["lucene", "vespa", "sql", "painless"])
def test_numbers_read_back_exactly(dialect, rng):
    weights = rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200)
    terms = re.split(r" (?=[-+] )", exports.to_expression(with_weights(weights), dialect))
    read = [float(term.split(" * ")[0].replace(" ", "")) for term in terms]
    assert read == weights.tolist()
    if dialect == "sql":  # with an exponent, a number is of type DOUBLE
        assert all("E" in term.split(" * ")[0] for term in terms)


def test_features_of_weight_zero_are_left_out():
    assert exports.to_expression(with_weights([0.0, 2.0]), "lucene") == "2.0 * f2"
    assert exports.to_expression(with_weights([0.0, 0.0]), "lucene") == "0.0"
    assert exports.to_expression(with_weights([0.0, 0.0]), "sql", shift=1.0) == "1.0E0"


def test_names_that_vespa_cannot_hold_are_rejected():
    model = with_weights([1.0, 2.0])
    names = ["bm25(title)", "fieldMatch(title).completeness"]
    assert exports.to_expression(model, "vespa", feature_names=names) == f"1.0 * {names[0]} + 2.0 * {names[1]}"
    with pytest.raises(ValueError, match="feature 'title match' cannot be a field or a rank feature of Vespa"):
        exports.to_expression(model, "vespa", feature_names=["a", "title match"])
    with pytest.raises(ValueError, match="name='my profile' is not valid: expected an identifier"):
        exports.to_vespa(model, "my profile")
    with pytest.raises(ValueError, match="name='default' is not valid"):
        exports.to_vespa(with_weights([1.0]), "default")  # would inherit itself


@pytest.mark.parametrize(
    "name", ["log(price)", "if(a, b, c)", "bm25(a b)", "bm25(a,,b)", "bm25(a\n)", "", "a\n", "é", "x}y", "rank-1"]
)
def test_names_that_vespa_reads_otherwise_are_rejected(name):
    with pytest.raises(ValueError, match=r"cannot be a field or a rank feature of Vespa|is not valid"):
        exports.to_expression(with_weights([1.0]), "vespa", feature_names=[name])


@pytest.mark.parametrize(
    ("dialect", "names"),
    [("sql", ["Age", "aGe"]), ("vespa", ["age", "attribute(age)"]), ("vespa", ["f(a,b)", "f( a, b)"]), ("lucene", ["a", "a"])],
)
def test_names_that_an_engine_takes_for_one_are_rejected(dialect, names):
    with pytest.raises(ValueError, match=r"feature_names has .*; engines identify features by name"):
        exports.to_expression(with_weights([1.0, 1.0]), dialect, feature_names=names)


def test_invalid_arguments_are_rejected():
    with pytest.raises(ValueError, match="dialect='mysql' is not known"):
        exports.to_expression(with_weights([1.0]), "mysql")
    with pytest.raises(ValueError, match="shift=nan is not valid"):
        exports.to_expression(with_weights([1.0]), "sql", shift=math.nan)
    with pytest.raises(ValueError, match="table='' is not valid"):
        exports.to_sql(with_weights([1.0]), "")


def test_formulas_that_engines_reject_for_their_size_warn(rng):
    X, qid = rng.normal(size=(3000, 3)), np.repeat(np.arange(100), 30)
    model = LambdaMART(n_estimators=75, num_leaves=31, min_child_samples=1).fit(X, rng.integers(0, 2, 3000), qid=qid)
    with pytest.warns(StructRankWarning, match="has 2250 splits; Java limits"):
        model.to_expression("lucene")
    with pytest.warns(StructRankWarning, match="bytes; engines accept 65535"):
        model.to_expression("painless")
