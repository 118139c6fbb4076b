"""Losses on rows that were left out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg

NET = gg.datasets.asia()
FRAME = NET.sample(200, random_state=1)


def test_losses_are_those_of_the_models_without_the_rows() -> None:
    found = gg.cross_validate(NET, FRAME, cv=4, prior="bdeu")
    for k, model in enumerate(found.models):
        left = FRAME[found.folds == k]
        np.testing.assert_allclose(found.losses[found.folds == k], -model.log_likelihood(left))
        again = NET.fit(FRAME[found.folds != k].reset_index(drop=True), prior="bdeu")
        np.testing.assert_allclose(model.log_likelihood(left), again.log_likelihood(left))
    assert np.bincount(found.folds).tolist() == [50] * 4
    assert found.mean == pytest.approx(found.losses.mean())
    assert "log loss" in repr(found)


def test_losses_of_a_target() -> None:
    log = gg.cross_validate(NET, FRAME, loss="log", target="lung", prior="bdeu")
    error = gg.cross_validate(NET, FRAME, loss="error", target="lung", prior="bdeu")
    brier = gg.cross_validate(NET, FRAME, loss="brier", target="lung", prior="bdeu")
    assert set(np.unique(error.losses)) <= {0.0, 1.0}
    p = np.exp(-log.losses)
    np.testing.assert_allclose(brier.losses, 2 * (1 - p) ** 2, atol=1e-9)  # two states
    np.testing.assert_array_equal(error.losses, p < 0.5)


def test_learners_by_name_and_by_function() -> None:
    by_name = gg.cross_validate("hill_climb", FRAME, cv=2, score="bic")
    by_function = gg.cross_validate(lambda frame: gg.learn_structure(frame, score="bic"), FRAME, cv=2)
    np.testing.assert_allclose(by_name.losses, by_function.losses)
    assert by_name.minus(by_function) == (0.0, 0.0)
    with pytest.raises(gg.OptionError, match="same folds"):
        by_name.minus(gg.cross_validate(NET, FRAME, cv=4, prior="bdeu"))


def test_numbers_are_predicted_by_their_mean() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    frame = pd.DataFrame({"x": x, "y": 2 * x + rng.normal(size=200)})
    found = gg.cross_validate(gg.BayesianNetwork("x{real} -> y{real}"), frame, loss="squared", target="y")
    assert 0.7 < found.mean < 1.4


@pytest.mark.parametrize(
    "bad", [{"cv": 1}, {"cv": 201}, {"loss": "los"}, {"loss": "error"}, {"target": "lun", "loss": "error"}]
)
def test_bad_options(bad: dict) -> None:
    with pytest.raises(gg.GramGraphError):
        gg.cross_validate(NET, FRAME, **bad)
    with pytest.raises(gg.OptionError, match="learner is"):
        gg.cross_validate(3, FRAME)
