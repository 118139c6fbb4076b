"""What users see prints itself: values as text and as HTML, models as drawings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gramgraph as gg

CHAIN = gg.BayesianNetwork("a{no|yes} -> b{no|yes}", cpds={"a": [0.2, 0.8], "b": [[0.5, 0.5], [0.1, 0.9]]})


def test_messages_show_their_values() -> None:
    messages = CHAIN.sum_product({})
    assert "no: 0.18, yes: 0.82" in repr(messages) and "yes: 0.82" in messages._repr_html_()
    best = CHAIN.max_sum({})
    assert f"{np.log(0.9 * 0.8):.6g}" in repr(best) and "<table" in best._repr_html_()


def test_reports_are_tables() -> None:
    frame = CHAIN.sample(300, random_state=0)
    report = gg.learn_structure(frame).report
    lines = repr(report).splitlines()
    assert lines[0].startswith("hill_climb: bic") and lines[1].split() == ["step", "parent", "child", "gain", "score"]
    assert max(map(len, lines)) <= 120 and len(lines) == 2 + len(report.moves) and "<th>gain" in report._repr_html_()
    with_gaps = frame.astype(object)
    with_gaps.loc[::7, "b"] = None
    em = CHAIN.fit(with_gaps).fit_report
    assert f"{em.log_likelihood:.8g}" in repr(em) and "converged" in em._repr_html_()
    long = type(report)("hill_climb", "bic", -1.0, (("add", "a", "b", 1.0, -1.0),) * 500)
    assert "… and 470 more" in repr(long) and "470 more" in long._repr_html_()


def test_conditionals_show_their_numbers() -> None:
    table = CHAIN.conditional("b")
    assert "p(b | a), Table" in repr(table) and "0.9000" in repr(table) and "0.9000" in table._repr_html_()
    line = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0, 1), "y": {"coefficients": 2.5, "sd": 1.0}})
    assert "2.5" in repr(line.conditional("y")) and "coefficients" in line.conditional("y")._repr_html_()


def test_a_network_after_do_says_so() -> None:
    done = CHAIN.do({"b": "yes"})
    assert "after do(b=yes)" in repr(done) and "do(" not in repr(CHAIN)
    assert "do(a=no, b=yes)" in repr(CHAIN.do("a", "no").do("b", "yes"))
    assert '"b" [peripheries=2];' in done.to_dot() and '"a" -> "b"' not in done.to_dot()


def _models() -> dict[str, Any]:
    markov = CHAIN.to_markov_network()
    rain = gg.DynamicBayesianNetwork("rain' -> rain{no|yes}", cpds={"rain": [[0.7, 0.3], [0.3, 0.7]]})
    real = gg.BayesianNetwork("x{real} -> y{real}")
    return {"directed": CHAIN, "undirected": markov, "factors": markov.to_factor_graph(), "time": rain, "real": real}


@pytest.mark.parametrize("kind", list(_models()))
def test_every_model_draws_itself(kind: str) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    model = _models()[kind]
    view, dot = model._repr_html_(), model.to_dot()
    assert "<svg" in view and view.count('class="head"') >= 2
    assert dot.startswith("digraph {" if kind in ("directed", "time", "real") else "graph {")
    assert dot.count(" -> ") + dot.count(" -- ") >= 1 and model.plot() is not None


def test_names_are_quoted_in_graphviz() -> None:
    odd = gg.BayesianNetwork([('say "hi"', "b\\c")])
    assert '"say \\"hi\\"" -> "b\\\\c";' in odd.to_dot()


def test_graphs_and_plans_have_a_notebook_view() -> None:
    frame = CHAIN.sample(300, random_state=0)
    assert "<table" in gg.learn_structure(frame).cpdag()._repr_html_()
    assert "<pre>" in gg.plan(CHAIN, "a")._repr_html_()
    strengths = gg.learn.bootstrap_edges(frame, 4, random_state=0)
    assert "strength" in repr(strengths).splitlines()[1] and "<th>direction" in strengths._repr_html_()
    found = gg.BayesianNetwork("smoking -> tar -> cancer; smoking <-> cancer").identify("cancer", do="smoking")
    assert "front door" in repr(found) and "front door" in found._repr_html_()
