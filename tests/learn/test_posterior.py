"""Uncertain tables: Dirichlet posteriors, forgetting, intervals for answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import gramgraph as gg
from gramgraph.learn.normalized import draw_rows

DAYS = pd.DataFrame({"rain": ["no"] * 6 + ["yes"] * 4, "wet": ["no"] * 5 + ["yes"] * 5})
NET = gg.BayesianNetwork("rain -> wet")


def test_parameters_by_hand() -> None:
    posterior = NET.fit_posterior(DAYS, prior="bdeu", equivalent_sample_size=4)
    assert posterior.alpha("rain").tolist() == [8.0, 6.0]
    assert posterior.alpha("wet").tolist() == [[6.0, 2.0], [1.0, 5.0]]
    assert posterior.mean() == NET.fit(DAYS, prior="bdeu", equivalent_sample_size=4)
    low, high = posterior.interval("rain", 0.8)
    assert low[1] == pytest.approx(stats.beta(6, 8).ppf(0.1)) and high[1] == pytest.approx(stats.beta(6, 8).ppf(0.9))
    assert "10 rows" in repr(posterior)


def test_batches_in_any_order_and_weights_that_repeat_rows() -> None:
    whole = NET.fit_posterior(DAYS, prior="k2")
    parts = NET.fit_posterior(DAYS[7:], prior="k2").update(DAYS[:3]).update(DAYS[3:7])
    doubled = NET.fit_posterior(DAYS, prior="k2", weights=np.full(10, 2.0))
    for name in NET.variables:
        np.testing.assert_array_equal(parts.alpha(name), whole.alpha(name))
        np.testing.assert_array_equal(doubled.alpha(name), whole.update(DAYS).alpha(name))


def test_forgetting_keeps_the_prior_and_follows_a_change() -> None:
    always, never = DAYS.assign(rain="yes"), DAYS.assign(rain="no")
    posterior = list(NET.fit_posterior(always, prior=1.0).stream([never] * 40, forget=0.9))[-1]
    no, yes = posterior.alpha("rain")
    assert yes == pytest.approx(1.0 + 10 * 0.9**40)
    assert no == pytest.approx(1.0 + 10 * (1 - 0.9**40) / (1 - 0.9))
    assert posterior.update(never, forget=0.0).alpha("rain").tolist() == [11.0, 1.0]


def test_intervals_of_an_answer_that_is_a_cell_are_those_of_the_beta_distribution() -> None:
    posterior = NET.fit_posterior(DAYS, prior="k2")
    belief = posterior.query("wet", {"rain": "yes"}, draws=4000, level=0.8, random_state=0)["wet"]
    exact = stats.beta(*posterior.alpha("wet")[1][::-1])
    mean, low, high = belief.prob("yes")
    assert mean == pytest.approx(exact.mean(), abs=0.01) and belief.sd[1] == pytest.approx(exact.std(), abs=0.01)
    assert low == pytest.approx(exact.ppf(0.1), abs=0.02) and high == pytest.approx(exact.ppf(0.9), abs=0.02)
    assert belief.predictive.prob("yes") == pytest.approx(exact.mean())
    wide = belief.interval(0.99)
    assert wide[0][1] < low and wide[1][1] > high


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    # the number of hits is about Binomial(40, 0.8): outside 23 … 39 once in 1000 cases
    rng = np.random.default_rng(0)
    hits = 0
    for i in range(40):
        truth = NET.fit_posterior(DAYS[:0].assign(rain=[], wet=[]), prior="k2").draw(rng)
        frame = truth.sample(20, random_state=i)
        answer = NET.fit_posterior(frame, prior="k2").query("rain", {"wet": "yes"}, draws=60, level=0.8, random_state=i)
        _, low, high = answer["rain"].prob("yes")
        hits += low <= truth.query("rain", {"wet": "yes"})["rain"].prob("yes") <= high
    assert 23 <= hits <= 39


def test_tables_of_cases_joints_and_frames() -> None:
    posterior = NET.fit_posterior(DAYS, prior="k2")
    cases = pd.DataFrame({"rain": ["yes", None]}, index=["a", "b"])
    answer = posterior.query(["wet", ("rain", "wet")], cases, draws=20, random_state=0)
    assert answer["wet"].samples.shape == (20, 2, 2) and answer["rain", "wet"].mean.shape == (2, 2, 2)
    frame = answer["wet"].to_frame()
    assert frame["case"].tolist() == ["a", "a", "b", "b"] and frame["wet"].tolist() == ["no", "yes"] * 2
    assert (frame["low"] <= frame["high"]).all()
    alone = posterior.query(None, draws=20, random_state=0)
    assert alone.to_frame()["variable"].tolist() == ["rain", "rain", "wet", "wet"]
    assert "90 % intervals from 20 draws" in repr(alone)
    again = posterior.query(None, draws=20, random_state=0)
    np.testing.assert_array_equal(again["rain"].samples, alone["rain"].samples)


def test_draws_of_small_parameters_are_distributions() -> None:
    drawn = draw_rows(np.array([[1e-4, 1e-4, 2e-4], [0.0, 3.0, 1.0]] * 2000), np.random.default_rng(0))
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
    assert drawn[::2].mean(axis=0) == pytest.approx([0.25, 0.25, 0.5], abs=0.05)
    assert (drawn[1::2, 0] == 0).all() and drawn[1::2, 1].mean() == pytest.approx(0.75, abs=0.02)


def test_priors_for_single_contexts() -> None:
    prior = {"wet": {"yes": [1, 9], ...: 2.0}, ...: "k2"}
    posterior = NET.fit_posterior(DAYS[:0], prior=prior)
    assert posterior.alpha("rain").tolist() == [1.0, 1.0]
    assert posterior.alpha("wet").tolist() == [[2.0, 2.0], [1.0, 9.0]]
    two = gg.BayesianNetwork("a -> c <- b")
    frame = pd.DataFrame({"a": ["no"], "b": ["no"], "c": ["no"]})
    net = two.fit(frame, prior={"c": {("yes", "no"): {"yes": 3, "no": 1}}})
    assert net.parents("c") == ("a", "b") and net.conditional("c").table()[1, 0].tolist() == [0.25, 0.75]
    with pytest.raises(gg.OptionError, match="one state for each parent"):
        two.fit(frame, prior={"c": {"yes": [1, 2]}})
    with pytest.raises(gg.StateError, match="Did you mean 'yes'"):
        two.fit(frame, prior={"c": {("yse", "no"): [1, 2]}})
    with pytest.raises(gg.OptionError, match=r"for \('yes', 'no'\) must be finite"):
        two.fit(frame, prior={"c": {("yes", "no"): [1, -2]}})


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: NET.fit_posterior(DAYS, prior=None), gg.OptionError, "positive pseudo-count"),
        (lambda: NET.fit_posterior(DAYS).update(DAYS[["rain"]]), gg.VariableError, "missing cells"),
        (lambda: NET.fit_posterior(DAYS).update(DAYS.assign(wet=None)), gg.VariableError, "missing cells"),
        (lambda: NET.fit_posterior(DAYS).update(DAYS, forget=1.5), gg.OptionError, "forget"),
        (lambda: NET.fit_posterior(DAYS).update(DAYS.assign(wet="a bit")), gg.StateError, "not a state"),
        (lambda: NET.fit_posterior(DAYS).query("wet", draws=0), gg.OptionError, "draws"),
        (lambda: NET.fit_posterior(DAYS).query("wet", level=90), gg.OptionError, "level"),
        (lambda: NET.fit_posterior(DAYS).query("wett"), gg.VariableError, "Did you mean 'wet'"),
    ],
)
def test_mistakes_are_named(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call()
