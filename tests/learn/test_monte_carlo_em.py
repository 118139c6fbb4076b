"""Monte Carlo EM finds what EM finds, up to the noise of its draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.learn import monte_carlo_em

STRUCTURE = "rain -> wet <- sprinkler; rain -> cloudy"


def frame(n: int = 300, share: float = 0.25) -> Any:
    net = gg.BayesianNetwork(STRUCTURE).random_tables(3)
    rng = np.random.default_rng(0)
    table = net.sample(n, random_state=0).astype(object)
    for column in table.columns:
        table.loc[rng.random(n) < share, column] = None
    return table


def furthest(a: Any, b: Any) -> float:
    return max(float(np.abs(a.conditional(v).table() - b.conditional(v).table()).max()) for v in a.variables)


def test_it_agrees_with_em() -> None:
    data, net = frame(), gg.BayesianNetwork(STRUCTURE)
    exact = net.fit(data, prior="k2", tol=1e-8, max_iter=500)
    drawn = net.fit(data, prior="k2", method="mcem", random_state=0)
    assert furthest(exact, drawn) < 0.03
    trace = drawn.fit_report.trace
    assert trace[-1] > trace[0] and abs(trace[-1] - exact.fit_report.log_likelihood) < 1.0
    again = net.fit(data, prior="k2", method="mcem", random_state=0)
    assert furthest(drawn, again) == 0.0


def test_rows_with_many_gaps_are_drawn_by_the_junction_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    data, net = frame(60), gg.BayesianNetwork(STRUCTURE)
    listed = net.fit(data, prior="k2", method="mcem", random_state=1, max_iter=12)
    monkeypatch.setattr(monte_carlo_em, "MOST_WAYS", 2)
    drawn = net.fit(data, prior="k2", method="mcem", random_state=1, max_iter=12)
    assert 0.0 < furthest(listed, drawn) < 0.1


def test_a_hidden_variable() -> None:
    """A mixture of two kinds of answers: the likelihood reaches that of EM."""
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=400)
    data = {f"q{i}": np.where(rng.random(400) < np.where(kind, 0.85, 0.2), "yes", "no") for i in range(4)}
    net = gg.BayesianNetwork({"q0": ["k"], "q1": ["k"], "q2": ["k"], "q3": ["k"]}, states={"k": 2})
    exact = net.fit(data, hidden=["k"], prior="k2", restarts=3, random_state=0)
    drawn = net.fit(data, hidden=["k"], prior="k2", method="mcem", random_state=0)
    assert drawn.fit_report.log_likelihood > exact.fit_report.log_likelihood - 2.0


def test_bad_input() -> None:
    with pytest.raises(gg.OptionError, match="'em' or 'mcem'"):
        gg.BayesianNetwork("a -> b").fit({"a": ["no", "yes"], "b": ["no", None]}, method="mc")
    with pytest.raises(gg.OptionError, match="discrete"):
        gg.BayesianNetwork("x{real}").fit({"x": [0.5, 1.5]}, method="mcem")
    complete = gg.BayesianNetwork("a -> b").fit({"a": ["no", "yes"], "b": ["no", "yes"]}, method="mcem")
    assert complete.fit_report is None  # nothing to draw
