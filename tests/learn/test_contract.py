"""Every score of families in the registry holds to the laws of scores: names are read from it, not listed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gramgraph.data import Counts, code_table
from gramgraph.learn import gaussian_scores, mixed_table, scores
from gramgraph.learn.scores import SCORES, FamilyScores


def check(name: str) -> None:
    """The laws for a score of tables of counts, whoever wrote it."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 30, size=(4, 3))
    total = float(counts.sum())
    value = SCORES[name](counts, total, 5.0)
    assert np.isfinite(value) and isinstance(value, float), f"{name}: a score is a number"
    shuffled = counts[rng.permutation(4)][:, rng.permutation(3)]
    assert SCORES[name](shuffled, total, 5.0) == pytest.approx(value), f"{name}: the order of states does not matter"
    assert value <= SCORES["log_likelihood"](counts, total, 5.0) + 1e-9, f"{name}: above the largest log likelihood"
    a = rng.integers(0, 2, 4000)
    frame = pd.DataFrame({"a": a, "b": np.where(rng.random(4000) < 0.9, a, 1 - a), "c": rng.integers(0, 3, 4000)})
    family = FamilyScores(Counts(code_table(frame)), name).family
    assert family(1, (0,)) > family(1, ()) + 100.0, f"{name}: a parent that tells much is worth much"
    if name != "log_likelihood":
        assert family(1, (0,)) > family(1, (0, 2)), f"{name}: a parent that tells nothing costs something"


@pytest.mark.parametrize("name", SCORES)
def test_contract(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", gaussian_scores.REAL_SCORES)
def test_contract_of_real_scores(name: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    frame = pd.DataFrame({"x": x, "y": 0.8 * x + rng.normal(size=1000), "z": rng.normal(size=1000)})
    found = gaussian_scores.MixedScores(mixed_table.read_table(frame), name)
    assert found.family(1, (0,)) > found.family(1, ()) + 50.0
    assert found.family(1, (0, 2)) == pytest.approx(found.family(1, (2, 0)))
    if name != "log_likelihood":
        assert found.family(1, (0,)) > found.family(1, (0, 2))
        forward, backward = [(), (0,), ()], [(1,), (), ()]  # equivalent graphs
        assert found.total(forward) == pytest.approx(found.total(backward))


def test_every_score_in_the_module_is_in_the_registry() -> None:
    written = {
        function
        for name, function in vars(scores).items()
        if callable(function) and getattr(function, "__annotations__", {}).keys() >= {"counts", "n", "ess"}
    }
    assert written == set(SCORES.values())


def test_a_wrong_score_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCORES, "generous", lambda counts, n, ess: SCORES["bic"](counts, n, ess) + 0.1 * counts.size**3)
    with pytest.raises(AssertionError, match="generous"):
        check("generous")
