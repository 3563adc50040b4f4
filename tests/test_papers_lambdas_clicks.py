"""The exhibits of the papers on LambdaRank, SPSA and click logs: their numbers are what they are called."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pytest

from structrank import cli, datasets, metrics, papers
from structrank.clicks import ClickLog, RandomWalkRanker, pair_accuracy, preference_pairs
from structrank.learners import LambdaRank, SPSARanker, local_optimality
from structrank.papers import aaai10, msr07, sigir09
from structrank.papers.stand_ins import some_queries

FEW = {"n_directions": 15}
SETTINGS = {
    (sigir09, "figure1"): FEW,
    (sigir09, "figure2"): FEW,
    (sigir09, "figure3"): FEW,
    (sigir09, "figure4"): FEW,
    (sigir09, "figure6"): FEW,
    (sigir09, "restarts"): FEW,
    (sigir09, "table1"): {"n_seeds": 2},
    (sigir09, "table2"): {"n_seeds": 1},
    (msr07, "figure1"): {"n_runs": 2},
    (msr07, "table1"): {"n_seeds": 2},
}
EXHIBITS = [(module, name) for module in (sigir09, msr07, aaai10) for name in module.__all__]


@pytest.fixture(scope="module")
def fold():
    return datasets.make_ranking(n_queries=100, n_docs=8, n_features=3, n_grades=5, relevant_share=0.5, random_state=0)


@pytest.fixture(scope="module")
def log():
    made = datasets.make_clicks(n_queries=50, n_urls=100, n_topics=2, n_sessions=500, random_state=0)
    return ClickLog.from_sessions(made)


@pytest.fixture(scope="module")
def computed(fold, log):
    """Return a function that computes an exhibit on small data, once."""
    kept = {}

    def compute(module, name):
        if (module, name) not in kept:
            data = {"made": log} if module is aaai10 else {"made": [fold]}
            kept[module, name] = getattr(module, name)(data, **SETTINGS.get((module, name), {}))
        return kept[module, name]

    return compute


@pytest.mark.parametrize(("module", "name"), EXHIBITS)
def test_each_call_returns_numbers_a_figure_and_an_outcome_for_the_data_given(module, name, computed):
    result = computed(module, name)
    assert len(result.ours)
    assert not result.ours.isna().all().any()
    assert result.findings
    for sentence in result.findings:
        assert re.search(r": (holds|does not hold) on (made|the example) \(.+\)\.$", sentence), sentence
    assert "Outcome: " in str(result)
    result.plot()
    plt.close("all")


# ---- Printed numbers


@pytest.mark.parametrize(("module", "name"), [(msr07, "table1"), (aaai10, "table1"), (sigir09, "table3"), (sigir09, "table4")])
def test_printed_numbers_of_private_data_stand_there_without_a_difference(module, name, computed):
    result = computed(module, name)
    assert result.printed is None
    assert list(result.frames()) == ["Ours", "Printed (other data)"]


def test_the_example_of_the_click_paper_comes_out_exactly():
    result = papers.aaai10.figure2()
    assert (result.difference == 0).all().all()
    assert all("holds on" in sentence and "does not" not in sentence for sentence in result.findings)


# ---- Seeds


@pytest.mark.parametrize(
    ("module", "ranker", "row", "column", "part"),
    [
        (msr07, LambdaRank("ndcg@10", hidden_units=0, max_epochs=100), "LambdaRank", "test", "test"),
        (
            sigir09,
            LambdaRank(metrics.MAP(relevant_from=2), max_epochs=100, settle=0, construction="spring-smooth"),
            "spring-smooth",
            "map",
            "validation",
        ),
    ],
)
def test_tables_over_seeds_are_means_with_their_standard_deviation(module, ranker, row, column, part, fold, computed):
    train, held_out = fold.train, getattr(fold, part)
    values = []
    for seed in range(2):
        ranker.set_params(random_state=seed).fit(train.X, train.y, qid=train.qid, validation=fold.validation)
        values.append(ranker.score(held_out.X, held_out.y, qid=held_out.qid))
    ours = computed(module, "table1").ours.loc["made", row]
    assert values[0] != values[1]
    assert ours[column] == pytest.approx(np.mean(values), abs=1e-12)
    spread = ours["SD" if column == "map" else f"{column} SD"]
    assert spread == pytest.approx(np.std(values), abs=1e-12)


# ---- SIGIR 2009


def test_a_cell_of_the_matching_tables_is_the_test_value_of_the_model_trained_for_the_row(fold, computed):
    measures = {"map": metrics.MAP(relevant_from=2), "ndcg@10": metrics.NDCG(k=10)}
    for name, share in (("table3", 10 / 22), ("table4", 1.0)):
        part = some_queries(fold.train, round(share * len(np.unique(fold.train.qid))))
        model = LambdaRank(measures["map"], max_epochs=100, settle=0)
        model.fit(part.X, part.y, qid=part.qid, validation=fold.validation)
        for column, measure in measures.items():
            value = metrics.evaluate(fold.test.y, model.predict(fold.test.X), fold.test.qid, measure)[measure.name]
            assert computed(sigir09, name).ours.loc[("made", "map"), column] == pytest.approx(value, abs=1e-12)


def test_the_gain_of_training_on_ndcg_is_against_the_model_trained_for_the_column(computed):
    ours = computed(sigir09, "table4").ours.loc["made"]
    for column in ("ndcg@10", "map", "mrr"):
        expected = ours.loc["ndcg", column] - ours.loc[column, column]
        assert ours.loc["ndcg - matched", column] == pytest.approx(expected)


def test_local_optima_are_counted_at_the_trained_weights(fold, computed):
    part = fold.train
    model = LambdaRank(metrics.MAP(relevant_from=2), hidden_units=0, max_epochs=300, settle=0).fit(part.X, part.y, qid=part.qid)
    result = local_optimality(model, part.X, part.y, part.qid, **FEW)
    row = computed(sigir09, "figure3").ours.loc["made", "one layer", "lambdas"]
    assert (row["training map"], row["ascent directions"]) == (result.value, result.n_better)
    assert row["local optimum"] == result.passed


def test_full_settings_are_those_of_the_paper(fold, monkeypatch):
    monkeypatch.setitem(sigir09._EPOCHS, "full", 60)
    monkeypatch.setattr(sigir09, "_RATES", (0.001, 0.1))
    measure, part = metrics.MAP(relevant_from=2), fold.train
    settings = {"optimizer": "sgd", "restarts": 14, "patience": 50, "max_epochs": 60, "hidden_units": 0}
    models = [LambdaRank(measure, learning_rate=rate, **settings) for rate in (0.001, 0.1)]
    for model in models:
        model.fit(part.X, part.y, qid=part.qid, validation=fold.validation)
    values = [model.score(fold.validation.X, fold.validation.y, qid=fold.validation.qid) for model in models]
    assert values[0] != values[1]
    result = papers.sigir09.figure3({"made": fold}, quick=False, settled=True, **FEW)
    ours = result.ours.loc["made", "one layer"]
    assert ours.loc["lambdas", "training map"] == models[np.argmax(values)].score(part.X, part.y, qid=part.qid)
    assert ours.loc["settled", "training map"] >= ours.loc["lambdas", "training map"]
    assert "Reduced" not in result.texts()


def test_restarts_begin_at_the_weights_they_test(fold, computed):
    ours = computed(sigir09, "restarts").ours.loc["made"]
    early = LambdaRank("ndcg@10", max_epochs=7, settle=0).fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    assert ours.loc["epoch 7", "ndcg@10 at start"] == pytest.approx(early.score(fold.train.X, fold.train.y, qid=fold.train.qid))
    assert (ours["ndcg@10 after"] >= ours["ndcg@10 at start"] - 1e-12).all()


def test_labels_from_2_on_are_relevant_unless_there_are_none():
    graded = datasets.make_ranking(n_queries=30, n_docs=8, n_features=3, n_grades=3, random_state=0)
    binary = datasets.make_ranking(n_queries=30, n_docs=8, n_features=3, n_grades=2, random_state=0)
    assert [sigir09._measures(each)["map"].relevant_from for each in (graded, binary)] == [2, 1]


# ---- MSR 2007


def test_the_curves_of_spsa_and_fdsa_are_means_over_runs(fold, computed):
    ours = computed(msr07, "figure1").ours["made"]
    part = some_queries(fold.train, 30)
    budget = 2 * 3 * 10
    finals = {
        step: np.mean(
            [
                SPSARanker("cross-entropy", method="fdsa", step=step, max_evaluations=budget, random_state=seed)
                .fit(part.X, part.y, qid=part.qid)
                .history_[-1]
                .loss
                for seed in range(2)
            ]
        )
        for step in msr07._STEPS
    }
    assert any(ours["fdsa"].iloc[-1] == pytest.approx(value, abs=1e-12) for value in finals.values())
    assert ours.index[-1] == budget


def test_a_smooth_curve_has_a_smooth_share_of_1_and_steps_have_less():
    from structrank.learners.weight_curves import Smoothness

    shifts = np.linspace(-1, 1, 101)
    curves = np.array([1 - shifts**2, np.floor(4 * shifts) / 4])
    swept = Smoothness(metrics.NDCG(), np.array([0, 1]), shifts, {10: curves})
    table = msr07._curve_table(swept, 10)
    assert table.loc[0, "smooth share"] == pytest.approx(1)
    assert table.loc[1, "smooth share"] < 0.999
    assert table.loc[0, "local maxima"] == 1
    assert table.loc[0, "shift of the highest (%)"] == 0


# ---- AAAI 2010


def test_the_ends_of_the_theta_curve_are_the_two_models(log, computed):
    curve, table = computed(aaai10, "figure4").ours["made"], computed(aaai10, "table1").ours.loc["made"]
    for title in ("raw sum", "standardised sum"):
        assert curve.loc[0.0, title] == pytest.approx(table["CoRank"], abs=1e-9)
    assert curve.loc[1.0, "raw sum"] == pytest.approx(table["Backward"], abs=1e-9)
    _, test = preference_pairs(log).split(0.5)
    assert table["Forward"] == pair_accuracy(test, RandomWalkRanker("forward").fit(log))


def test_the_last_point_of_the_factor_curve_is_the_model_of_the_table(computed):
    assert computed(aaai10, "figure3").ours.loc[50, "made"] == computed(aaai10, "table1").ours.loc["made", "CoRank"]


# ---- The command


def test_the_command_reads_click_logs(capfd, tmp_path):
    lines = ["news\ta.org b.org c.org\t2", "weather\tb.org c.org a.org\t1"] * 20
    (tmp_path / "log.tsv").write_text("\n".join(lines) + "\n")
    assert cli.main(["reproduce", "aaai10", "figure3", f"mine={tmp_path}/log.tsv"]) == 0
    assert "mine (40 sessions, 2 queries)" in capfd.readouterr().out


def test_an_exhibit_refuses_data_of_another_kind(capfd, tmp_path):
    assert cli.main(["reproduce", "aaai10", "figure3", f"mine={tmp_path}"]) == 2
    assert "aaai10 figure3 reads a file with a click log" in capfd.readouterr().err


# ---- Figures


def test_both_matrices_of_the_example_have_a_title_and_their_entries():
    figure = papers.aaai10.figure2().plot().figure_
    assert [ax.get_title() for ax in figure.axes] == ["click matrix", "preference matrix"]
    clicks = [int(text.get_text()) for text in figure.axes[0].texts]
    assert clicks == papers.aaai10.figure2().ours.filter(regex=r"^url \d$").to_numpy().ravel().tolist()
    plt.close(figure)


def test_a_sample_of_one_query_is_named_so(computed):
    titles = [ax.get_title() for ax in computed(msr07, "figure2").plot().figure_.axes]
    assert titles[0] == "made, 1 query"
    assert titles[-1] == "made, 60 queries"
    plt.close("all")
