"""Ctrl-C during a search: it ends at once, keeps its best graph, and says so."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.learn import search as searches

FRAME = gg.datasets.asia().sample(1500, random_state=0)


@pytest.mark.parametrize("method", ["hill_climb", "tabu", "ges", "order", "structural_em"])
def test_the_report_says_that_it_was_interrupted(method: str) -> None:
    calls = []

    def tell(done: int, total: int) -> None:
        calls.append(done)
        if len(calls) == 1:
            raise KeyboardInterrupt

    frame = FRAME
    if method == "structural_em":
        frame = FRAME.astype(object).mask(np.random.default_rng(0).random(FRAME.shape) < 0.05)
    found = gg.learn_structure(frame, method=method, progress=tell)
    assert found.report.interrupted
    assert len(calls) == 1  # no second search begins
    assert not gg.learn_structure(frame, method=method).report.interrupted


@pytest.mark.parametrize("method", ["ges", "order", "structural_em"])
def test_a_climb_within_a_search_passes_it_on(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []
    plain = searches.Search.take

    def take(self: searches.Search, step: tuple[float, str, int, int]) -> None:
        steps.append(step)
        if len(steps) == 3:
            raise KeyboardInterrupt
        plain(self, step)

    monkeypatch.setattr(searches.Search, "take", take)
    found = gg.learn_structure(FRAME, method=method)
    assert found.report.interrupted
    assert len(steps) == 3


def test_progress_is_a_function_or_a_choice() -> None:
    with pytest.raises(gg.OptionError, match="progress is True, False or a function"):
        gg.learn_structure(FRAME, progress="yes")


def test_edge_strengths_print_a_short_table() -> None:
    text = repr(gg.learn.bootstrap_edges(FRAME, n=2, random_state=0))
    assert text.startswith("EdgeStrengths(8 variables, 2 graphs, ") and len(text.splitlines()) <= 23
