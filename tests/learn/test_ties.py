"""The last digits of scores decide nothing: candidates that are equal by rights are told apart by position."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph.data import Counts, code_table
from gramgraph.graphs.spanning import spanning_tree
from gramgraph.learn import trees
from gramgraph.learn.gaussian_scores import MixedScores
from gramgraph.learn.hybrid import _closest
from gramgraph.learn.scores import FamilyScores
from gramgraph.learn.ties import LEAST_GAIN, best_first, first_best, least_gain, to_ten_digits


def chain(seed: int, rows: int = 200, columns: int = 5) -> pd.DataFrame:
    """Columns of three states, each of which follows an earlier one: classes with many graphs."""
    rng = np.random.default_rng(seed)
    out = [rng.integers(0, 3, rows)]
    for _ in range(columns - 1):
        out.append(np.where(rng.random(rows) < 0.6, out[rng.integers(len(out))], rng.integers(0, 3, rows)))
    return pd.DataFrame({f"x{j}": v for j, v in enumerate(out)}).astype(str)


def with_copies(seed: int) -> pd.DataFrame:
    """The same with a column twice and one that says nothing."""
    frame = chain(seed, columns=4)
    return frame.assign(copy=frame["x0"], alone=(np.arange(len(frame)) % 2).astype(str))


def learned(monkeypatch: pytest.MonkeyPatch, frame: pd.DataFrame, seed: int | None, **options: object) -> object:
    """Edges and steps, where the last digits of all scores are drawn with a seed."""
    real = any(values.dtype.kind == "f" for _, values in frame.items())
    kind = MixedScores if real else FamilyScores
    family, additions = kind.family, FamilyScores.additions
    rng = np.random.default_rng(seed)
    known: dict[tuple[int, tuple[int, ...]], float] = {}

    def shaken(self, values):
        noise, n = rng.uniform(-1, 1, (2, *np.shape(values))), self._n
        return values * (1 + 1e-14 * noise[0]) + 7e-16 * n * math.log(max(n, 2.0)) * noise[1]

    def one(self, child, parents):
        key = (child, tuple(sorted(parents)))
        if key not in known:
            known[key] = float(shaken(self, family(self, *key)))
        return known[key]

    with monkeypatch.context() as patch:
        if seed is not None:
            patch.setattr(kind, "family", one)
        if seed is not None and kind is FamilyScores:
            patch.setattr(kind, "additions", lambda self, *key: shaken(self, additions(self, *key)))
        net = gg.learn_structure(frame, **options)
    return sorted(net.edges), [step[:3] for step in net.report.moves]


METHODS = ("hill_climb", "tabu", "ges", "order", "exact", "mmhc")
SCORES = ({"score": "bdeu"}, {"score": "bic"}, {"score": "log_likelihood", "max_parents": 2})


@pytest.mark.parametrize("options", SCORES, ids=lambda options: options["score"])
@pytest.mark.parametrize("method", METHODS)
def test_the_last_digits_of_scores_change_no_graph(method, options, monkeypatch) -> None:
    for frame in (chain(0), chain(11), with_copies(1)):
        plain = learned(monkeypatch, frame, None, method=method, **options)
        for seed in range(2):
            assert learned(monkeypatch, frame, seed, method=method, **options) == plain


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_nor_where_the_weights_of_rows_are_large_or_small(score, scale, monkeypatch) -> None:
    frame = with_copies(2)
    options = {"score": score, "max_parents": 2, "weights": np.random.default_rng(0).random(len(frame)) * scale}
    for method in METHODS:
        plain = learned(monkeypatch, frame, None, method=method, **options)
        assert learned(monkeypatch, frame, 0, method=method, **options) == plain


def test_nor_where_columns_are_real_valued(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    X[:, 1] += X[:, 0]
    X[:, 3] += X[:, 1] - X[:, 2]
    frame = pd.DataFrame(X * [1.0, 1e-8, 1e8, 1.0, 1.0], columns=list("abcde"))
    for method in METHODS:
        for score in ("bic", "bge"):
            plain = learned(monkeypatch, frame, None, method=method, score=score)
            assert learned(monkeypatch, frame, 0, method=method, score=score) == plain


def test_nor_the_graph_of_structural_em(monkeypatch) -> None:
    frame = with_copies(3)
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    plain = learned(monkeypatch, frame, None, method="structural_em")
    assert learned(monkeypatch, frame, 0, method="structural_em") == plain


@pytest.mark.parametrize("weight", [1e3, 1e5, 1e7])
def test_steps_between_classes_end_however_large_the_weights(weight) -> None:
    rng = np.random.default_rng(6)
    columns = [rng.integers(0, 3, 300)]
    for _ in range(3):
        columns.append(np.where(rng.random(300) < 0.6, columns[-1], rng.integers(0, 3, 300)))
    frame = pd.DataFrame({f"x{j}": v for j, v in enumerate(columns)}).astype(str)
    net = gg.learn_structure(frame, method="ges", score="bic", weights=np.full(300, weight), max_steps=40)
    assert len(net.report.moves) < 15
    assert all(after > before for before, after in itertools.pairwise(net.report.trace))


def test_the_last_digits_of_informations_change_no_tree(monkeypatch) -> None:
    frame, exact = with_copies(4), trees.information_matrix
    plain = [
        sorted(gg.learn_structure(frame, method=m, target=t).edges) for m, t in (("chow_liu", None), ("tan", "x1"))
    ]
    for seed in range(4):
        noise = 1 + 1e-14 * np.random.default_rng(seed).uniform(-1, 1, (6, 6))
        monkeypatch.setattr(trees, "information_matrix", lambda *at, noise=noise: exact(*at) * (noise + noise.T) / 2)
        found = [gg.learn_structure(frame, method=m, target=t) for m, t in (("chow_liu", None), ("tan", "x1"))]
        assert [sorted(net.edges) for net in found] == plain


def test_of_edges_with_equal_weights_a_tree_takes_the_first() -> None:
    weights = np.array([[0, 1, 1, 0.5], [1, 0, 1, 0.5], [1, 1, 0, 0.5], [0.5, 0.5, 0.5, 0]])
    for change in (np.zeros((4, 4)), 1e-15 * np.arange(16).reshape(4, 4), -1e-15 * np.arange(16).reshape(4, 4)):
        assert spanning_tree(weights + change, [0, 1, 2, 3], 0) == {1: 0, 2: 0, 3: 0}


def test_max_min_neighbors_takes_the_first_of_equal_columns() -> None:
    for shift in (1.0, 1.0 + 1e-14, 1.0 - 1e-14):
        assert _closest({2: (0.0, -80.0), 1: (0.0, -80.0 * shift), 3: (0.0, -10.0)}, [2, 1, 3]) == 1
        assert _closest({0: (0.02, -9.0), 4: (0.01, -8.0), 3: (0.01 * shift, -8.0)}, [0, 4, 3]) == 3


def test_equals_are_ordered_by_position() -> None:
    gains = {3: 1.0, 1: 1.0 + 1e-12, 2: 0.5, 0: 2.0, 5: -np.inf, 4: 0.5 - 1e-12}
    assert best_first(list(gains), gains.__getitem__, int, LEAST_GAIN) == [0, 1, 3, 2, 4, 5]
    assert first_best(np.array([0.0, 1.0 - 1e-12, 1.0, -np.inf]), LEAST_GAIN) == 1
    assert first_best(np.full(2, -np.inf), LEAST_GAIN) == 0


def test_what_counts_as_rounding_grows_with_the_terms_of_a_score() -> None:
    scores = FamilyScores(Counts(code_table(chain(0))), "bic")
    assert least_gain(scores) == LEAST_GAIN
    scores.size = 1e12
    assert 0.05 <= least_gain(scores) <= 0.1
    assert math.frexp(least_gain(scores))[0] == 0.5
    assert to_ten_digits(-1e-12) == 0.0
    assert to_ten_digits(-1234.5678901234567) == pytest.approx(-1234.5678901, abs=1e-7)
    assert to_ten_digits(-np.inf) == -np.inf
