"""Laws of the layout: nothing overlaps, edges point down, the same graph gives the same picture."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.plot.layering import Component
from gramgraph.plot.layout import layered_layout, orient


@st.composite
def digraphs(draw):
    n = draw(st.integers(1, 12))
    pairs = [(u, v) for u, v in combinations(range(n), 2)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=20)) if pairs else []
    names = draw(st.permutations(range(n)))
    return n, [(names[u], names[v]) for u, v in edges]


def boxes(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(20, 90, n).tolist(), rng.uniform(15, 60, n).tolist()


@given(digraphs())
def test_boxes_do_not_overlap_and_parents_stand_above(graph):
    n, edges = graph
    widths, heights = boxes(n)
    lay = layered_layout(n, edges, widths=widths, heights=heights, gap_x=10, gap_y=20)
    for u, v in combinations(range(n), 2):
        (xu, yu), (xv, yv) = lay.centers[u], lay.centers[v]
        apart_x = abs(xu - xv) >= (widths[u] + widths[v]) / 2 + 10 - 1e-6
        apart_y = abs(yu - yv) >= (heights[u] + heights[v]) / 2 - 1e-6
        assert apart_x or apart_y, (u, v)
    for u, v in edges:
        assert lay.centers[u][1] < lay.centers[v][1]
    for (x, y), w, h in zip(lay.centers, widths, heights, strict=True):
        assert x - w / 2 >= -1e-6
        assert x + w / 2 <= lay.width + 1e-6
        assert y - h / 2 >= -1e-6
        assert y + h / 2 <= lay.height + 1e-6


@given(digraphs())
def test_routes_run_from_tail_to_head(graph):
    n, edges = graph
    widths, heights = boxes(n, 1)
    lay = layered_layout(n, edges, widths=widths, heights=heights)
    assert len(lay.routes) == len(edges)
    for (u, v), route in zip(edges, lay.routes, strict=True):
        assert abs(route[0][0] - lay.centers[u][0]) <= widths[u] / 2
        assert route[0][1] == pytest.approx(lay.centers[u][1] + heights[u] / 2)
        assert abs(route[-1][0] - lay.centers[v][0]) <= widths[v] / 2
        assert route[-1][1] == pytest.approx(lay.centers[v][1] - heights[v] / 2)
        assert all(a[1] <= b[1] + 1e-9 for a, b in pairwise(route))


@given(digraphs())
def test_same_graph_same_layout(graph):
    n, edges = graph
    widths, heights = boxes(n)
    assert layered_layout(n, edges, widths=widths, heights=heights) == layered_layout(
        n, edges, widths=widths, heights=heights
    )


def test_no_crossing_where_none_is_needed():
    # A tree whose children come in an order that crosses when taken as it is.
    edges = [(0, 2), (0, 1), (1, 6), (2, 3), (2, 5), (1, 4)]
    part = Component(edges, [20.0] * 7, [20.0] * 7, 10.0, 20.0)
    part.place(12)
    assert part._crossings() == 0


def test_cycles_and_loops_are_drawn():
    lay = layered_layout(3, [(0, 1), (1, 2), (2, 0), (1, 1)], widths=[10] * 3, heights=[10] * 3)
    assert len(lay.routes) == 4
    assert np.isfinite(lay.centers).all()


def test_nothing_to_draw():
    lay = layered_layout(0, [], widths=[], heights=[])
    assert (lay.centers, lay.routes, lay.width, lay.height) == ((), (), 0.0, 0.0)


def test_orient_points_away_from_the_middle():
    path = [(i, i + 1) for i in range(6)]
    assert sorted(orient(7, path)) == [(1, 0), (2, 1), (3, 2), (3, 4), (4, 5), (5, 6)]


def test_long_edges_are_bounded():
    # A chain of 400 with an edge from the first to every node: 80,000 dummies if each were made.
    n = 400
    edges = [(i, i + 1) for i in range(n - 1)] + [(0, j) for j in range(2, n)]
    part = Component(edges, [10.0] * n, [10.0] * n, 5.0, 5.0)
    assert len(part.layer) == n


def test_hundreds_of_nodes_are_laid_out(rng):
    n = 724
    edges = [(int(rng.integers(max(0, v - 60), v)), v) for v in range(1, n) for _ in range(2)]
    edges = list(dict.fromkeys(edges))
    found = layered_layout(n, edges, widths=[60.0] * n, heights=[26.0] * n)
    assert len(set(found.centers)) == n
