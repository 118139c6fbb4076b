"""Features along a path of penalties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.learn import feature_path


@pytest.fixture(scope="module")
def ring():
    """Eight spins on a ring, and a model in which every pair competes."""
    names = [f"s{i}" for i in range(8)]
    states = {v: ["-1", "+1"] for v in names}
    W = np.zeros((8, 8))
    for i in range(8):
        W[i, (i + 1) % 8] = W[(i + 1) % 8, i] = 0.4 if i % 2 else -0.5
    frame = gg.models.boltzmann_machine(W, 0.1, names=names, spins=True).sample(3000, random_state=0)
    every = gg.MarkovNetwork({p: np.ones((2, 2)) for p in itertools.combinations(names, 2)}, states=states)
    truth = {f"s{min(i, j)}·s{max(i, j)}" for i in range(8) for j in [(i + 1) % 8]}
    return every, frame, truth


@pytest.mark.parametrize("method", ["exact", "pseudo_likelihood"])
@pytest.mark.parametrize("refit", [True, False])
def test_ebic_finds_the_ring(ring, method, refit) -> None:
    net, frame, truth = ring
    path = feature_path(net, frame, method=method, refit=refit, n_penalties=12, ratio=0.05)
    assert path.method == method
    pairs = {name for name in path.selected if "·" in name}
    assert pairs == truth if refit else pairs >= truth
    assert (np.diff(path.penalties) < 0).all()
    assert path.n_active[0] == 8, "at the first penalty only the fields are there"
    assert path.best == int(np.argmin(path.scores))


def test_each_step_is_the_fit_at_its_penalty(ring) -> None:
    net, frame, _ = ring
    path = feature_path(net, frame, method="exact", n_penalties=4, ratio=0.2)
    for penalty, weights in zip(path.penalties, path.weights, strict=True):
        alone = net.fit(frame, method="exact", l1=penalty).fit_report
        np.testing.assert_allclose(weights, alone.weights, atol=2e-5)


def test_the_score_is_the_extended_bic(ring) -> None:
    net, frame, _ = ring
    path = feature_path(net, frame, method="exact", n_penalties=5, ratio=0.1, gamma=0.3, refit=False)
    k = path.n_active
    expected = -2 * path.values + k * np.log(3000) + 2 * 0.3 * k * np.log(len(path.names))
    np.testing.assert_allclose(path.scores, expected)


def test_rows_held_out_choose_too_and_the_winner_sees_all_rows(ring) -> None:
    net, frame, truth = ring
    path = feature_path(net, frame, method="exact", score="held_out", n_penalties=10, ratio=0.02, random_state=0)
    assert truth <= set(path.selected)
    again = feature_path(net, frame, method="exact", score="held_out", n_penalties=10, ratio=0.02, random_state=0)
    np.testing.assert_array_equal(path.scores, again.scores)
    best = net.fit(frame, method="exact").fit_report.value / 3000
    assert -path.scores.min() > best - 0.05
    assert path.model.log_evidence({"s0": "+1"}) < net.fit(frame, method="exact").log_evidence({}) + 100


def test_log_linear_features_compete_and_may_be_tied() -> None:
    agree = lambda a, b: float(a == b)  # noqa: E731
    names = list("abcd")
    features = [
        (p, agree, "near" if p in itertools.pairwise(names) else "far") for p in itertools.combinations(names, 2)
    ]
    truth = gg.models.LogLinear(features, weights=[1.0 if f[2] == "near" else 0.0 for f in features])
    frame = truth.sample(2000, random_state=1)
    path = feature_path(truth.with_weights(np.zeros(6)), frame, tie="name", n_penalties=8)
    assert path.selected == ("near",)
    assert isinstance(path.model, gg.models.LogLinear)
    assert {w for f, w in zip(features, path.model.weights, strict=True) if f[2] == "far"} == {0.0}


def test_paths_show_themselves(ring) -> None:
    net, frame, _ = ring
    path = feature_path(net, frame, method="pseudo_likelihood", penalties=[0.01, 0.2, 0.05])
    assert path.penalties.tolist() == [0.2, 0.05, 0.01]
    assert list(path.to_frame().columns) == ["penalty", "active", "value", "ebic"]
    assert "3 penalties, pseudo_likelihood" in repr(path)
    pytest.importorskip("matplotlib").use("Agg")
    assert len(path.plot().lines) == len(path.names) + 1


def test_bad_options_are_told(ring) -> None:
    net, frame, _ = ring
    for options, text in [
        ({"method": "ipf"}, "method must be one of"),
        ({"score": "aic"}, "score must be one of"),
        ({"ratio": 2.0}, "ratio must be a number between 0 and 1"),
        ({"penalties": [0.1, -1]}, "positive"),
        ({"n_penalties": 0}, "n_penalties"),
    ]:
        with pytest.raises(gg.OptionError, match=text):
            feature_path(net, frame, **options)
    with pytest.raises(gg.OptionError, match="cannot be held out"):
        feature_path(net, frame.head(1), score="held_out")
