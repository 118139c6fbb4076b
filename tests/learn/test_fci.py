"""FCI: marks against all ancestral graphs that state the same independencies, and on data with a hidden cause."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.graphs import Digraph, d_separated
from gramgraph.learn.hidden_causes import ARROW, CIRCLE, TAIL, fci_marks
from gramgraph.learn.independence import IndependenceTest

N = 4
PAIRS = list(itertools.combinations(range(N), 2))


def with_hidden(kinds) -> Digraph:
    """A directed graph for edges of the kinds 1 (a -> b), 2 (a <- b), 3 (a <-> b: a hidden common cause)."""
    edges, extra = [], N
    for (a, b), kind in zip(PAIRS, kinds, strict=True):
        if kind == 1:
            edges.append((a, b))
        elif kind == 2:
            edges.append((b, a))
        elif kind == 3:
            edges += [(extra, a), (extra, b)]
            extra += 1
    return Digraph.from_edges(N + 6, edges)


def ancestors_of(kinds) -> list[set[int]]:
    above = [{a if kind == 1 else b for (a, b), kind in zip(PAIRS, kinds, strict=True)
              if (kind == 1 and b == v) or (kind == 2 and a == v)} for v in range(N)]  # fmt: skip
    for _ in range(N):
        above = [found.union(*(above[u] for u in found)) for found in above]
    return above


def is_ancestral(kinds) -> bool:
    above = ancestors_of(kinds)
    if any(v in above[v] for v in range(N)):
        return False
    return not any(k == 3 and (a in above[b] or b in above[a]) for (a, b), k in zip(PAIRS, kinds, strict=True))


def separations(kinds) -> tuple[tuple[bool, ...], ...]:
    graph = with_hidden(kinds)
    out = []
    for a, b in PAIRS:
        rest = [v for v in range(N) if v not in (a, b)]
        sets = [s for size in range(len(rest) + 1) for s in itertools.combinations(rest, size)]
        out.append(tuple(d_separated(graph, a, b, given) for given in sets))
    return tuple(out)


def marks_of(kinds) -> np.ndarray:
    marks = np.zeros((N, N), int)
    for (a, b), kind in zip(PAIRS, kinds, strict=True):
        if kind:
            marks[a, b] = ARROW if kind in (1, 3) else TAIL
            marks[b, a] = ARROW if kind in (2, 3) else TAIL
    return marks


@pytest.fixture(scope="module")
def classes() -> dict:
    """Independencies → the marks that all maximal ancestral graphs with them share."""
    found: dict = {}
    for kinds in itertools.product(range(4), repeat=len(PAIRS)):
        if not is_ancestral(kinds):
            continue
        says = separations(kinds)
        if all(any(row) == (kind == 0) for row, kind in zip(says, kinds, strict=True)):  # maximal
            found.setdefault(says, []).append(marks_of(kinds))
    return {
        says: np.where([np.ptp([m[i, j] for m in graphs]) == 0 for i in range(N) for j in range(N)],
                       graphs[0].ravel(), CIRCLE).reshape(N, N)
        for says, graphs in found.items()
    }  # fmt: skip


def oracle(says):
    def test(a: int, b: int, given: tuple[int, ...]) -> IndependenceTest:
        a, b = min(a, b), max(a, b)
        rest = [v for v in range(N) if v not in (a, b)]
        sets = [s for size in range(len(rest) + 1) for s in itertools.combinations(rest, size)]
        return IndependenceTest(0.0, 0, 1.0 if says[PAIRS.index((a, b))][sets.index(tuple(sorted(given)))] else 0.0)

    return test


def test_marks_are_those_that_all_equivalent_graphs_share(classes) -> None:
    assert len(classes) > 150
    for says, expected in classes.items():
        np.testing.assert_array_equal(fci_marks(oracle(says), N, alpha=0.5, max_given=3), expected)


def graph_oracle(graph: Digraph):
    return lambda a, b, given: IndependenceTest(0.0, 0, 1.0 if d_separated(graph, a, b, given) else 0.0)


def test_a_discriminating_path() -> None:
    # 0 -> 1 <-> 2 <-> 3 with 1 -> 3: 2 is a collider on the path that discriminates it
    graph = Digraph.from_edges(6, [(0, 1), (4, 1), (4, 2), (5, 2), (5, 3), (1, 3)])
    marks = fci_marks(graph_oracle(graph), 4, alpha=0.5, max_given=3)
    assert marks[1, 2] == marks[2, 1] == marks[2, 3] == marks[3, 2] == ARROW
    assert marks[1, 3] == ARROW and marks[3, 1] == TAIL


@pytest.mark.parametrize("seed", range(12))
def test_marks_are_true_of_larger_graphs(seed) -> None:
    rng = np.random.default_rng(seed)
    n = 9
    edges = [(a, b) for a, b in itertools.combinations(range(n), 2) if rng.random() < 0.25]
    shuffled = rng.permutation(n)
    graph = Digraph.from_edges(n, [(int(shuffled[a]), int(shuffled[b])) for a, b in edges])
    shown = 6  # the last ones are hidden
    marks = fci_marks(graph_oracle(graph), shown, alpha=0.5, max_given=shown)
    above = [gg.graphs.ancestors(graph, v) for v in range(n)]
    for a, b in itertools.permutations(range(shown), 2):
        rest = [v for v in range(shown) if v not in (a, b)]
        apart = any(d_separated(graph, a, b, s) for k in range(len(rest) + 1) for s in itertools.combinations(rest, k))
        assert (marks[a, b] == 0) == apart
        if marks[a, b] == ARROW:
            assert b not in above[a]
        if marks[a, b] == TAIL:
            assert b in above[a]


def test_a_hidden_cause_in_data() -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    h = rng.normal(size=n)
    a, d = rng.normal(size=n), rng.normal(size=n)
    b, c = a + h + 0.5 * rng.normal(size=n), d + h + 0.5 * rng.normal(size=n)
    found = gg.learn.fci(pd.DataFrame({"a": a, "b": b, "c": c, "d": d}), alpha=0.001)
    assert found.confounded == (("b", "c"),)
    assert str(found) == "a o-> b\nb <-> c\nc <-o d"
    assert found.to_frame()["edge"].tolist() == ["o->", "<->", "<-o"]
    later = gg.learn.fci(pd.DataFrame({"a": a, "b": b}), tiers=[["b"], ["a"]])
    assert str(later) == "a <-o b"
    assert found.plot() is not None


def test_discrete_data_and_mistakes() -> None:
    frame = gg.datasets.asia().sample(5000, random_state=0)
    found = gg.learn.fci(frame, alpha=0.01)
    assert found.nodes == tuple(frame.columns)
    with pytest.raises(gg.OptionError, match="alpha"):
        gg.learn.fci(frame, alpha=2)
    with pytest.raises(gg.OptionError, match="call gg.learn.fci"):
        gg.learn_structure(frame, method="fci")
    with pytest.raises(gg.ModelError, match="marks"):
        gg.learn.PAG(("a", "b"), (("a", "x", ">", "b"),))
    with pytest.raises(gg.VariableError):
        found.mark("asia", "nobody")
