"""Messages that do not come to rest say so: a warning, once a call, and in what is printed."""

from __future__ import annotations

import warnings

import pytest

import gramgraph as gg


@pytest.mark.parametrize("engine", ["bp", "trw", "join_graph"])
def test_messages_that_did_not_converge_are_told(engine: str) -> None:
    net = gg.models.ising_grid(3, 3, coupling=1.5, field=0.05)
    with pytest.warns(gg.ConvergenceWarning, match="NOT converged") as caught:
        answer = net.query(None, engine=engine, max_iter=1)
    assert len(caught) == 1
    assert not answer.exact
    assert "approximate, NOT converged" in repr(answer)
    with pytest.warns(gg.ConvergenceWarning, match="NOT converged in 2 cases"):
        answer = net.query(None, [{"x0_0": "+1"}, {"x0_0": "-1"}], engine=engine, max_iter=1)
    assert "NOT converged in 2 cases" in repr(answer)


def test_messages_that_converged_are_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = gg.datasets.sprinkler().query("rain", {"wet": "yes"}, engine="bp")
    assert "NOT" not in repr(answer)
