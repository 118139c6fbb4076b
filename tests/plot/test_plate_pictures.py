"""Plate models as pictures: one rectangle per plate, nested as the plates are, dots for hyper-parameters."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt

import gramgraph as gg
from gramgraph.plot.drawing import draw_model
from gramgraph.plot.svg import network_svg

TOPICS = """
    alpha* -> theta{simplex 2};  beta* -> phi{simplex 3}
    theta -> z[2] -> w[3] <- phi
    plate documents: theta, z, w
    plate words in documents: z, w
    plate topics: phi
"""


def topics() -> Any:
    cpds = {"theta": gg.Dirichlet("alpha"), "phi": gg.Dirichlet("beta"), "w": gg.Index("phi", by="z")}
    return gg.BayesianNetwork(TOPICS, cpds=cpds, alpha=0.5, beta=0.5)


def crossed() -> Any:
    cpds = {"a": [0.5, 0.5], "b": [0.5, 0.5], "r": [[[0.5, 0.5]] * 2] * 2}
    return gg.BayesianNetwork("a[2] -> r[2] <- b[2]; plate users: a, r; plate items: b, r", cpds=cpds)


def rectangles(svg: str) -> list[tuple[float, float, float, float]]:
    """left, top, right, bottom of every plate."""
    number = r'"([-\d.]+)"'
    found = re.findall(rf'<rect class="plate" x={number} y={number} width={number} height={number}', svg)
    return [(float(x), float(y), float(x) + float(w), float(y) + float(h)) for x, y, w, h in found]


def inside(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] > b[0] and a[1] > b[1] and a[2] < b[2] and a[3] < b[3]


def test_one_rectangle_per_plate_nested_as_they_are() -> None:
    svg = network_svg(topics(), evidence={"w": [[0]]})
    documents, subjects, words = rectangles(svg)
    assert inside(words, documents) and not inside(subjects, documents)
    assert subjects[0] > documents[2] or subjects[2] < documents[0]  # apart
    for label in ("documents", "words", "topics: 2"):
        assert f">{label}</text>" in svg
    assert svg.count('class="dot"') == 2 and svg.count('class="node seen"') == 1
    assert svg.count('class="edge"') == 5 and svg.count('class="node"') == 3


def test_every_variable_stands_in_its_plates_and_in_no_other() -> None:
    for model in (topics(), crossed()):
        drawing = draw_model(model)
        frames = {frame.label.partition(":")[0]: frame for frame in drawing.frames}
        assert sorted(frames) == sorted(model.plates)
        for box, (x, y) in zip(drawing.boxes, drawing.layout.centers, strict=True):
            for name, frame in frames.items():
                within = frame.x < x < frame.x + frame.width and frame.y < y < frame.y + frame.height
                assert within == (name in model.plates_of(box.name)), (box.name, name)
        places = [(round(x, 3), round(y, 3)) for x, y in drawing.layout.centers]
        assert all(a != b for a, b in combinations(places, 2))


def test_matplotlib_and_graphviz_draw_the_same() -> None:
    model = topics()
    ax = model.plot(evidence=["w"])
    texts = {text.get_text() for text in ax.texts}
    assert {"documents", "words", "topics: 2", "alpha", "theta", "observed"} <= texts
    plt.close(ax.figure)
    dot = model.to_dot()
    assert dot.count("subgraph") == 3 and dot.index('"cluster_words"') > dot.index('"cluster_documents"')
    assert '"alpha" [shape=point' in dot and model._repr_html_().count('class="plate"') == 3
