"""Rounds of boosting: AdaBoost, LogitBoost and GentleBoost, each a loop over weak learners as the texts write it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gramgraph.machines.boosting.weak import WeakClass, WeakNumber
from gramgraph.typing import FloatArray, IntArray

#: Working responses of LogitBoost are clipped to ± this, as its authors advise.
LARGEST_RESPONSE = 4.0
_LEAST_WEIGHT = 1e-12


def ada_rounds(
    weak: Any, codes: IntArray, n_classes: int, v: FloatArray, n_rounds: int, learning_rate: float = 1.0
) -> Iterator[tuple[WeakClass, float, float]]:
    """(weak classifier, α, its weighted error) of every round; SAMME for more than two classes.

    err = Σ v 1[wrong] / Σ v, α = log((1 − err) / err) + log(K − 1), v ← v exp(α 1[wrong]). A classifier without any
    error ends the rounds with the α of half a wrong case; one that is no better than guessing ends them unused.
    """
    half_a_case = 0.5 / max(float(v.sum()), 1.0)
    v = v / v.sum()
    for _ in range(n_rounds):
        part = weak.classify(v, codes, n_classes)
        wrong = part.codes != codes
        error = float(v[wrong].sum() / v.sum())
        if error >= 1.0 - 1.0 / n_classes - 1e-12:
            return
        alpha = learning_rate * _log_odds(max(error, half_a_case if error <= 0.0 else 0.0), n_classes)
        yield part, alpha, error
        if error <= 0.0:
            return
        v = v * np.exp(alpha * wrong)
        v /= v.sum()


def _log_odds(error: float, n_classes: int) -> float:
    return float(np.log1p(-error) - np.log(error) + np.log(n_classes - 1.0))


def logit_rounds(
    weak: Any, t: FloatArray, weights: FloatArray, n_rounds: int, learning_rate: float = 1.0
) -> Iterator[WeakNumber]:
    """φ of every round, t = 0 or 1: z = (t − π)/(π(1 − π)), v = π(1 − π), y ← y + φ/2, π = σ(2y)."""
    y = np.zeros(len(t))
    pi = np.full(len(t), 0.5)
    for _ in range(n_rounds):
        z, v = _working(t, pi)
        part = weak.regress(z, v * weights)
        y += 0.5 * learning_rate * part.values
        pi = 1.0 / (1.0 + np.exp(-2.0 * np.clip(y, -350.0, 350.0)))
        yield part


def _working(t: FloatArray, pi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Working responses, clipped, and weights, kept away from 0."""
    v = np.maximum(pi * (1.0 - pi), _LEAST_WEIGHT)
    return np.clip((t - pi) / v, -LARGEST_RESPONSE, LARGEST_RESPONSE), v


def logit_rounds_many(
    weak: Any, codes: IntArray, n_classes: int, weights: FloatArray, n_rounds: int, learning_rate: float = 1.0
) -> Iterator[list[WeakNumber]]:
    """K regressions per round for K classes; f_k ← f_k + (K − 1)/K (φ_k − mean φ), p = softmax(f)."""
    n = len(codes)
    T = np.zeros((n, n_classes))
    T[np.arange(n), codes] = 1.0
    F = np.zeros((n, n_classes))
    for _ in range(n_rounds):
        p = np.exp(F - F.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        parts = []
        for k in range(n_classes):
            z, v = _working(T[:, k], p[:, k])
            parts.append(weak.regress(z, v * weights))
        steps = np.stack([part.values for part in parts], axis=1)
        F += learning_rate * (n_classes - 1.0) / n_classes * (steps - steps.mean(axis=1, keepdims=True))
        yield parts


def gentle_rounds(
    weak: Any, t: FloatArray, weights: FloatArray, n_rounds: int, learning_rate: float = 1.0
) -> Iterator[WeakNumber]:
    """f of every round, t = ±1: weighted least squares of t, F ← F + f, w ← w exp(−t f), renormalized."""
    w = weights / weights.sum()
    for _ in range(n_rounds):
        part = weak.regress(t, w)
        yield part
        w = w * np.exp(-learning_rate * t * part.values)
        w = np.maximum(w / w.sum(), _LEAST_WEIGHT / len(w) * (weights > 0))
