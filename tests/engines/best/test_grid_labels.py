"""Grids on arrays: the same answers as models of tables, bounds below every labelling."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph._numerics.messages.grids import cheapest, pair_cost
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.models.builders import denoising_grid, ising_grid
from tests.portions import examples


def blobs(side, seed, flips=0.1):
    x, y = np.meshgrid(np.arange(side), np.arange(side))
    clean = ((x - side / 2) ** 2 + (y - side / 3) ** 2 < (side / 4) ** 2) | (x + y > 1.6 * side)
    return clean, clean ^ (np.random.default_rng(seed).random(clean.shape) < flips)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), temperature=st.sampled_from([0.5, 1.0]))
def test_one_row_is_exact(seed, temperature):
    rng = np.random.default_rng(seed)
    image, J, flip = rng.random((1, 7)) < 0.5, rng.normal(size=(1, 6)), rng.uniform(0.1, 0.9, size=(1, 7))
    found = gg.denoise(image, (J, np.zeros((0, 7))), flip, temperature=temperature, tol=1e-12)
    field = 0.5 * np.log((1 - flip) / flip) * np.where(image, 1, -1)
    model = ising_grid(1, 7, (J / temperature, np.zeros((0, 7))), field / temperature)
    exact = model.query()
    odds = [np.log(exact[v].prob("+1") / exact[v].prob("-1")) * temperature for v in model.variables]
    np.testing.assert_allclose(found.log_odds[0], odds, atol=1e-9)
    assert found.converged
    best = gg.denoise(image, (J, np.zeros((0, 7))), flip, tol=1e-12)
    assert best.log_score == pytest.approx(ising_grid(1, 7, (J, np.zeros((0, 7))), field).map_query().log_prob)


def test_denoising_is_that_of_the_model_and_helps():
    clean, noisy = blobs(40, 0)
    found = gg.denoise(noisy, 0.7, 0.1)
    best = denoising_grid(noisy, 0.7, 0.1).map_query(engine="graph_cut")
    assert found.log_score == pytest.approx(best.log_prob, rel=1e-3) and found.log_score <= best.log_prob + 1e-6
    assert (found.image != clean).mean() < 0.3 * (noisy != clean).mean()
    assert found.converged and found.sweeps == len(found.residuals)
    between = gg.denoise(noisy, 0.7, 0.1, temperature=1.0)
    assert (between.image != clean).mean() < 0.5 * (noisy != clean).mean()
    assert np.isfinite(between.log_odds).all()


def test_frustrated_grids_say_that_they_did_not_settle():
    rng = np.random.default_rng(1)
    pairs = tuple(4 * rng.normal(size=s) for s in ((12, 11), (11, 12)))
    found = gg.denoise(rng.random((12, 12)) < 0.5, pairs, 0.45, max_iter=30, tol=1e-9)
    assert not found.converged and len(found.residuals) == 30 and np.isfinite(found.log_odds).all()


def test_bad_images_and_options_are_refused():
    with pytest.raises(ModelError, match="binary image"):
        gg.denoise([[0, 1, 2]])
    with pytest.raises(ModelError, match="along rows"):
        gg.denoise([[0, 1]], (np.ones((3, 3)), 1.0))
    with pytest.raises(OptionError, match="flip_probability"):
        gg.denoise([[0, 1]], flip_probability=0.0)
    with pytest.raises(OptionError, match="temperature"):
        gg.denoise([[0, 1]], temperature=-1.0)
    with pytest.raises(OptionError, match="potts, linear, quadratic"):
        gg.label_grid(np.zeros((2, 2, 3)), kind="pots")
    with pytest.raises(ModelError, match=r"\(rows, cols, labels\)"):
        gg.label_grid(np.zeros((2, 2)))


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.integers(0, 2))
def test_distance_transforms_are_those_of_the_table(seed, kind):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    h, weight, cut = rng.normal(size=n) * 4, float(rng.choice([0.0, 0.3, 1.0, 5.0])), float(rng.uniform(0.5, 20))
    cut = min(cut, 1.0) if kind == 0 else cut
    out = np.empty(n)
    low = cheapest(h, n, kind, weight, 1.0 if kind == 0 else cut, np.empty(n, np.int64), np.empty(n + 1), out, 0)
    true = [min(h[x] + pair_cost(x, y, kind, weight, 1.0 if kind == 0 else cut) for x in range(n)) for y in range(n)]
    np.testing.assert_allclose(out + low, true, atol=1e-12)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10**6), kind=st.sampled_from(["potts", "linear", "quadratic"]))
def test_labels_of_small_grids(seed, kind):
    rng = np.random.default_rng(seed)
    costs, pairs = rng.normal(size=(2, 3, 3)), tuple(rng.uniform(0, 1, size=s) for s in ((2, 2), (1, 3)))
    found = gg.label_grid(costs, pairs, kind=kind, truncation=1.5)
    distance = {"potts": lambda d: min(d, 1), "linear": lambda d: min(d, 1.5), "quadratic": lambda d: min(d * d, 1.5)}

    def cost(labels):
        total = np.take_along_axis(costs, labels[..., None], 2).sum()
        for r, c in np.ndindex(2, 3):
            if c < 2:
                total += pairs[0][r, c] * distance[kind](abs(labels[r, c] - labels[r, c + 1]))
            if r < 1:
                total += pairs[1][r, c] * distance[kind](abs(labels[r, c] - labels[r + 1, c]))
        return total

    best = min(cost(np.array(x).reshape(2, 3)) for x in itertools.product(range(3), repeat=6))
    assert found.cost == pytest.approx(cost(found.labels), abs=1e-9)
    assert found.bound <= best + 1e-9 <= found.cost + 2e-9
    assert np.all(np.diff(found.bounds) >= -1e-9)


@pytest.mark.slow
def test_a_large_image_is_cleaned():
    clean, noisy = blobs(512, 3)
    found = gg.denoise(noisy, 0.8)
    assert (found.image != clean).mean() < 0.01
