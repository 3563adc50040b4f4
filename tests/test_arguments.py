"""Array arguments: whatever would be ignored, merged or missing is refused, with the name of the argument and the place."""

import decimal
import math

import numpy as np
import pandas as pd
import pyarrow
import pytest

from structrank import StructRankSVM, clicks, datasets, learners, metrics, most_violated
from structrank.comparison.significance import holm, paired_randomisation_test
from structrank.datasets.queries import group_by_query
from structrank.learners import lambda_gradients, swap_gains

N = 12
X, Y, QID = np.arange(3.0 * N).reshape(N, 3) % 7, np.arange(N) % 2, np.arange(N) // 4
LOG = clicks.ClickLog.from_sessions([(7, [1, 2], [1]), (8, [2, 3], [0])])
PAIRS = clicks.preference_pairs(LOG)


def fit(**changed):
    arguments = {"X": X, "y": Y, "qid": QID, **changed}
    return StructRankSVM("auc").fit(**arguments)


NUMBERS = {
    "y": lambda y: fit(y=y),
    "sample_weight": lambda weight: fit(sample_weight=weight),
    "decay": lambda decay: StructRankSVM("dorm", decay=decay).check_parameters(),
    "scores": lambda scores: metrics.evaluate(Y, scores, QID, "map"),
    "scores of most_violated": lambda scores: most_violated(scores, Y, criterion="map"),
    "relevant": lambda relevant: most_violated(Y, relevant, criterion="map"),
    "labels": lambda labels: lambda_gradients(Y, labels, measure="map"),
    "labels_by_rank": lambda labels: swap_gains(labels, measure="map"),
    "start": lambda start: learners.RankNet(hidden_units=0, max_epochs=1).fit(X, Y, qid=QID, start=start),
    "p_values": holm,
    "a": lambda a: paired_randomisation_test(a, np.ones(N)),
    "scores of to_labels": lambda scores: clicks.to_labels(scores, QID, np.arange(N)),
}
ROWS = {
    "X": lambda values: fit(X=values),
    "X of predict": lambda values, model=fit(): model.predict(values),  # noqa: B008
    "validation: X": lambda values: learners.RankNet(max_epochs=1).fit(X, Y, qid=QID, validation=(values, Y, QID)),
    "scores of pair_accuracy": lambda values: clicks.pair_accuracy(PAIRS, values),
}
IDS = {
    "qid": lambda ids: fit(qid=ids),
    "qid of rank": lambda ids, model=fit(): model.rank(X, qid=ids),  # noqa: B008
    "qid of evaluate": lambda ids: metrics.evaluate(Y, Y, ids, "map"),
    "queries": lambda ids: clicks.ClickThroughRate().fit(LOG).predict(ids, QID),
    "urls": lambda ids: clicks.ClickThroughRate().fit(LOG).predict(QID, ids),
}


def first_word(name):
    return rf"^{name.split()[0]}"


def masked(values):
    return np.ma.array(values, mask=np.arange(np.size(values)).reshape(np.shape(values)) == 2)


@pytest.mark.parametrize("name", [*NUMBERS, *IDS])
def test_masks_of_columns_are_refused(name):
    call, ones = {**NUMBERS, **IDS}[name], np.ones(N)
    with pytest.raises(ValueError, match=rf"{first_word(name)} has a masked value at row 2 \(1 in all\); masks are not used"):
        call(masked(ones))
    with pytest.raises(
        ValueError, match=f"{first_word(name)} (has a masked value at row 2|contains masked at row 2; an id must be)"
    ):
        call([1.0, 1.0, np.ma.masked] + [1.0] * (N - 3))


@pytest.mark.parametrize("name", ROWS)
def test_masks_of_matrices_are_refused(name):
    with pytest.raises(ValueError, match=rf"{first_word(name)}.* has a masked value at row 0, column 2 \(1 in all\)"):
        ROWS[name](masked(X))
    with pytest.raises(ValueError, match=r"has a masked value at row 0"):
        ROWS[name]([masked(row) for row in X])


def test_masks_of_groups_and_of_selections_are_refused_and_masked_arrays_without_a_mask_accepted():
    with pytest.raises(ValueError, match=r"^group has a masked value at row 2"):
        StructRankSVM("auc").fit(X, Y, group=masked([4, 4, 4]))
    with pytest.raises(ValueError, match=r"^mask has a masked value"):
        LOG.subset(np.ma.array([True, True], mask=[False, True]))
    plain = fit(X=np.ma.array(X), y=np.ma.array(Y), qid=np.ma.array(QID))
    assert np.array_equal(plain.coef_, fit().coef_)


@pytest.mark.parametrize("name", [*NUMBERS, *ROWS])
def test_rows_of_different_lengths_are_named(name):
    with pytest.raises(
        ValueError, match=rf"{first_word(name)}.* has 3 values in row 0 and 2 values in row 1; expected as many"
    ):
        {**NUMBERS, **ROWS}[name]([[1.0, 2.0, 3.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match=rf"{first_word(name)}.* has a single value in row 0 and 2 values in row 1"):
        {**NUMBERS, **ROWS}[name]([1.0, [1.0, 2.0]])


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", [np.complex64(1 + 2j), np.timedelta64(1, "s"), decimal.Decimal(1), None, pd.NA])
def test_objects_that_are_no_real_numbers_are_refused(name, value):
    column = np.ones(N, dtype=object)
    column[3] = value
    with pytest.raises(ValueError, match=rf"{first_word(name)} has .* at row 3; expected"):
        NUMBERS[name](column)


def test_complex_features_are_refused_whatever_holds_them():
    objects = X.astype(object)
    objects[1, 1] = np.complex128(1 + 2j)
    with pytest.raises(ValueError, match=r"^Complex data not supported: X has dtype object"):
        fit(X=objects)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_matrices_of_numpy_are_plain_arrays():
    plain = fit()
    assert np.array_equal(fit(X=np.matrix(X), y=np.matrix(Y).T, qid=np.matrix(QID).T).coef_, plain.coef_)
    assert np.array_equal(plain.predict(np.matrix(X)), plain.predict(X))


MISSING = {
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "NaT of numpy": np.datetime64("NaT"),
    "nan": math.nan,
    "Decimal": decimal.Decimal("NaN"),
    "complex": complex("nan"),
    "complex of numpy": np.complex64(complex("nan")),
    "in a tuple": ("a", math.nan),
    "deep in a tuple": ("a", (1, decimal.Decimal("NaN"))),
}


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("name", IDS)
def test_missing_ids_are_refused(name, missing):
    ids = list(range(N))
    ids[3] = MISSING[missing]
    with pytest.raises(ValueError, match=rf"{first_word(name)} contains .* at row 3; every (row|entry) needs"):
        IDS[name](ids)


@pytest.mark.parametrize("missing", MISSING)
def test_missing_ids_in_click_logs_are_malformed(missing):
    for session in ((MISSING[missing], ["a"], [0]), ("q", ["a", MISSING[missing]], [0])):
        with pytest.raises(ValueError, match=r"as an id, expected a number"):
            clicks.ClickLog.from_sessions([session], malformed="error")
    for column in ("session", "query", "url"):
        frame = pd.DataFrame({name: [1, 2] for name in ("session", "query", "url", "position", "clicked")}, dtype=object)
        frame.at[1, column] = MISSING[missing]
        with pytest.raises(ValueError, match=f"^frame, row 1: found no {column}, expected one"):
            clicks.read_frame(frame, malformed="error")


def test_arrays_of_missing_ids_are_refused():
    ids = QID.astype(complex)
    ids[3] = math.nan
    with pytest.raises(ValueError, match=r"qid contains .* at row 3"):
        fit(qid=ids)
    with pytest.raises(ValueError, match=r"qid contains .* at row 0"):
        fit(qid=np.array([(1, math.nan)] * N, dtype=[("a", int), ("b", float)]))


@pytest.mark.parametrize("kind", [list, tuple, pd.Series, pyarrow.array, lambda ids: np.array(ids, dtype=object)])
def test_texts_that_differ_in_null_characters_are_different_ids(kind):
    assert group_by_query(kind(["a\0", "a"]), 2).n_queries == 2


def test_sizes_whose_sum_overflows_to_the_number_of_rows_are_refused():
    with pytest.raises(ValueError, match=r"group has 5 sizes, which sum up to 18446744073709551628, but X has 12 rows"):
        StructRankSVM("auc").fit(X, Y, group=[2**62] * 4 + [N])  # np.repeat would write beyond its memory


@pytest.mark.parametrize("learner", [StructRankSVM("auc"), learners.RankNet(), learners.SPSARanker()])
def test_repeated_columns_are_named_before_training(learner):
    trained = []
    frame = pd.DataFrame(X, columns=["a", "b", "a"])
    with pytest.raises(ValueError, match=r"^X has 2 columns named 'a' \(columns 0, 2\); expected different names"):
        learner.fit(frame, Y, qid=QID, callback=trained.append)
    assert not trained
    with pytest.raises(ValueError, match=r"^X has 2 columns named 1"):
        learner.fit(pd.DataFrame(X, columns=[1, 2, 1]), Y, qid=QID)
    with pytest.raises(ValueError, match=r"^X has 2 columns named 'a'"):
        learner.fit(X, Y, qid=QID).predict(frame)


def test_repeated_columns_of_shards_are_named_before_training():
    shards = datasets.cut_shards(pd.DataFrame(X, columns=["a", "b", "a"]), Y, qid=QID, docs_per_shard=4)
    with pytest.raises(ValueError, match=r"^X has 2 columns named 'a'"):
        StructRankSVM("auc").fit(shards)
