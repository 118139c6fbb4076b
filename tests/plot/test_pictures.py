"""Pictures show what the values say, and no name can break out of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.answers import Answer, Belief
from gramgraph.conditionals import Table
from gramgraph.plot import junction_tree_svg, network_svg, plot_beliefs, plot_junction_tree, plot_network
from gramgraph.variables import discrete

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '</title><script>alert("x")</script>&"\x1b[2J\x00'


def chain(first="A", states=("low", "high")):
    a, b = discrete(first, states), discrete("B", ["no", "yes", "maybe"])
    return gg.BayesianNetwork.from_parts(
        (a, b), (Table(a, (), np.array([0.25, 0.75])), Table(b, (a,), np.full((2, 3), 1 / 3)))
    )


def answer_of(net):
    a, b = net.var(net.variables[0]), net.var("B")
    marginals = np.array([0.25, 0.75, 0.2, 0.3, 0.5])
    return Answer({a.name: (a, 0, 2), "B": (b, 2, 5)}, marginals, -0.5, engine="test")


def classes(root, kind):
    return [e for e in root.iter() if e.get("class") == kind]


def test_network_svg_shows_bars_edges_and_observations():
    net = chain()
    root = ET.fromstring(network_svg(net, answer_of(net), evidence={"A": "high"}))
    assert [e.text for e in classes(root, "name")] == ["A", "B"]
    assert [e.text for e in classes(root, "num")] == ["25.0%", "75.0%", "20.0%", "30.0%", "50.0%"]
    widths = [float(e.get("width")) for e in classes(root, "bar")]
    assert widths[1] == pytest.approx(3 * widths[0], rel=0.01)
    assert len(classes(root, "edge")) == len(classes(root, "tip")) == 1
    seen = classes(root, "node seen")
    assert len(seen) == 1
    assert seen[0].find(f"{SVG}title").text.startswith("A = high (observed)")


def test_network_svg_without_beliefs_is_names_only():
    root = ET.fromstring(network_svg(chain()))
    assert not classes(root, "bar")
    assert len(classes(root, "head")) == 2


def test_names_cannot_break_out():
    net = chain(NASTY, states=("<b>", "&amp;"))
    text = network_svg(net, answer_of(net), evidence={NASTY: "<b>"})
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\x00" not in text
    root = ET.fromstring(text)
    assert classes(root, "state")[0].text == "<b>"


def test_many_states_are_folded():
    v = discrete("V", 30)
    net = gg.BayesianNetwork.from_parts((v,), (Table(v, (), np.full(30, 1 / 30)),))
    p = np.arange(30.0) / np.arange(30.0).sum()
    root = ET.fromstring(network_svg(net, Answer({"V": (v, 0, 30)}, p, 0.0, engine="test")))
    labels = [e.text for e in classes(root, "state")]
    assert labels == ["24", "25", "26", "27", "28", "29", "… 24 more"]
    percent = [float(e.text.rstrip("%")) for e in classes(root, "num")]
    assert sum(percent) == pytest.approx(100, abs=0.5)


def test_undirected_models_have_no_arrows():
    net = chain()
    undirected = gg.MarkovNetwork.from_parts([net.var("A"), net.var("B")], net.factors())
    root = ET.fromstring(network_svg(undirected))
    assert len(classes(root, "edge")) == 1
    assert not classes(root, "tip")


def test_unknown_evidence_and_many_cases_are_refused():
    net = chain()
    with pytest.raises(gg.VariableError, match="Did you mean"):
        network_svg(net, evidence={"BB": "no"})
    a = net.var("A")
    many = Answer({"A": (a, 0, 2)}, np.full((3, 2), 0.5), np.zeros(3), engine="test")
    with pytest.raises(gg.GramGraphError, match="one case"):
        network_svg(net, many)


def test_junction_tree_svg_names_separators():
    root = ET.fromstring(junction_tree_svg([("A", "B", "C"), ("B", "C", "D"), ("E",)], [(0, 1)]))
    assert [e.text for e in classes(root, "sep")] == ["B, C"]
    assert [e.text for e in classes(root, "line")] == ["A, B, C", "B, C, D", "E"]


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_plot_beliefs_draws_the_numbers(plt):
    net = chain()
    ax = plot_beliefs(answer_of(net))
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.25, 0.75, 0.2, 0.3, 0.5])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["low", "high", "no", "yes", "maybe"]


def test_axes_in_axes_out(plt):
    net = chain()
    _, axes = plt.subplots(1, 3)
    answer = answer_of(net)
    assert answer.plot(ax=axes[0]) is axes[0]
    assert answer["B"].plot(ax=axes[1]) is axes[1]
    assert plot_network(net, answer, evidence={"A": "low"}, ax=axes[2]) is axes[2]
    assert "25.0%" in [t.get_text() for t in axes[2].texts]


def test_plot_many_cases_is_an_image(plt):
    v = discrete("V$_1$", ["a", "b"])
    p = np.array([[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]])
    ax = plot_beliefs(Belief((v,), p, batched=True))
    np.testing.assert_array_equal(ax.images[0].get_array(), p)
    ax.figure.canvas.draw()  # a dollar sign must not start a formula


def test_plot_junction_tree(plt):
    class Tree:
        cliques = (("A", "B"), ("B", "C"))
        edges = ((0, 1),)

    ax = plot_junction_tree(Tree())
    assert {"A, B", "B, C", "B"} <= {t.get_text() for t in ax.texts}


def test_plot_network_of_hundreds_of_nodes_has_a_bounded_size(plt):
    vs = [discrete(f"leaf{i}", 2) for i in range(400)]
    root = discrete("root", 2)
    tables = [Table(root, (), np.full(2, 0.5)), *(Table(v, (root,), np.full((2, 2), 0.5)) for v in vs)]
    ax = plot_network(gg.BayesianNetwork.from_parts((root, *vs), tables))
    assert max(ax.figure.get_size_inches()) <= 61
