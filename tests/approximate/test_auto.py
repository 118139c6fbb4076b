"""engine="auto" on models that no exact plan fits."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.engines.fallback import ApproximateWarning
from gramgraph.models.builders import ising_grid


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    shapes = (40, 39), (39, 40)
    return ising_grid(40, 40, coupling=tuple(0.3 * rng.normal(size=s) for s in shapes), field=0.1)


def test_a_model_too_wide_is_answered_and_says_how(wide):
    with pytest.warns(ApproximateWarning, match="an exact answer needs .*belief propagation, converged"):
        answer = wide.query("x20_20", {"x0_0": "+1"}, budget="10s")
    assert not answer.exact and answer.engine == "bp" and answer.details["converged"]
    low, high = answer.details["log_evidence_interval"]
    assert low < answer.log_evidence < high
    assert answer.details["exact_bytes"] > 1e12
    assert answer["x20_20"].probabilities.sum() == pytest.approx(1.0)
    assert "bp, approximate" in repr(answer)


def test_tables_of_cases_fall_back_too(wide):
    with pytest.warns(ApproximateWarning):
        answer = wide.query(["x20_20"], [{"x0_0": "+1"}, {"x20_21": "-1"}], budget="10s")
    assert answer["x20_20"].probabilities.shape == (2, 2)
    assert list(answer["x20_20"].to_frame().index) == [0, 1]


def test_named_engines_and_budgets_are_kept(wide):
    for options in ({}, {"engine": "junction_tree", "budget": "10s"}, {"memory": 1e6, "budget": "10s"}):
        with pytest.raises(gg.BudgetError):
            wide.query("x20_20", **options)


def test_exact_answers_stay_exact():
    assert gg.datasets.asia().query("lung", {"xray": "yes"}).exact


def test_engines_without_best_assignments_say_so():
    with pytest.raises(gg.OptionError, match="does not look for best assignments.*junction_tree"):
        gg.datasets.asia().map_query({"xray": "yes"}, engine="gibbs")
