"""Forward–backward of many label sequences at once, with matrix products of NumPy: nothing has to be compiled.

Sequences stand longest first and position by position: row steps[t] + s holds position t of sequence s, and position t
exists for the first steps[t + 1] − steps[t] of them. So a step of all sequences is a product of neighboring rows with
the (K, K) matrix of transitions, without padding. Nothing is checked.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gramgraph.typing import Array, FloatArray

#: Scores beyond this are taken relative to the largest of their row: exp of them could leave the range of numbers.
LARGE = 300.0
#: A position whose sum is below this may have lost labels to underflow: its sequence is left to logarithms.
_SMALL = 1e-100


def pack(offsets: Array, sequences: Array) -> tuple[Array, list[int]]:
    """(rows (n,): their positions in the data, steps) of sequences that are sorted, longest first, none empty."""
    first = offsets[sequences]
    lengths = offsets[sequences + 1] - first
    longest = int(lengths[0])
    sizes = len(lengths) - np.cumsum(np.bincount(lengths, minlength=longest + 1))[:longest]
    steps = np.concatenate(([0], np.cumsum(sizes)))
    place = np.arange(steps[-1]) - np.repeat(steps[:-1], sizes)  # which sequence a row belongs to
    return first[place] + np.repeat(np.arange(longest), sizes), steps.tolist()


def packed_posteriors(
    scores: FloatArray, M: FloatArray, start: FloatArray | None, allowed: Array | None, steps: list[int]
) -> tuple[FloatArray, FloatArray, Array]:
    """(pairs (K, K) to be multiplied by M, log Z (S,), which sequences can be trusted (S,)).

    The scores (n, K) become p(label | sequence). M = exp(transitions − shift); log Z is without the shift. M, start
    (K,) and allowed (n, K) are 0 for what is forbidden; None allows everything. Sequences whose numbers leave the range
    are 0 everywhere.
    """
    good, log_z = np.ones(steps[1], dtype=np.bool_), np.zeros(steps[1])
    if not max(scores.max(), -scores.min()) < LARGE:
        top = scores.max(axis=1)
        scores -= top[:, None]
        _add(log_z, top, steps)
    E = np.exp(scores, out=scores)
    if start is not None:
        E[: steps[1]] *= start
    if allowed is not None:
        E *= allowed
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        alpha, c = _forward(E, M, steps)
        if not c.min() > _SMALL:
            for i, z in pairwise(steps):
                good[: z - i] &= c[i:z] > _SMALL
            rows = ~np.concatenate([good[: z - i] for i, z in pairwise(steps)])
            alpha[rows], E[rows], c[rows] = 0.0, 0.0, 1.0
        pairs = _backward(E, np.ascontiguousarray(M.T), steps, alpha)
    if not (np.abs(E[: steps[1]].sum(axis=1) - good) < 1e-6).all():  # what went backward left the range: a rare case
        E[:], pairs[:], good[:] = 0.0, 0.0, False
    _add(log_z, np.log(c), steps)
    log_z[~good] = 0.0
    return pairs, log_z, good


def _add(sums: FloatArray, values: FloatArray, steps: list[int]) -> None:
    """Add values of rows to the sums of their sequences."""
    for i, z in pairwise(steps):
        sums[: z - i] += values[i:z]


def _forward(E: FloatArray, M: FloatArray, steps: list[int]) -> tuple[FloatArray, FloatArray]:
    """(alpha = p(label | positions up to here), c = the sums they were divided by); E is divided by them as well."""
    alpha, c, ones = np.empty_like(E), np.empty(len(E)), np.ones(len(M))
    for t in range(len(steps) - 1):
        i, z = steps[t], steps[t + 1]
        x, e = alpha[i:z], E[i:z]
        if t:
            np.matmul(alpha[steps[t - 1] : steps[t - 1] + z - i], M, out=x)
            x *= e
        else:
            x[:] = e
        np.matmul(x, ones, out=c[i:z])
        inverse = (1.0 / c[i:z])[:, None]
        x *= inverse
        e *= inverse
    return alpha, c


def _backward(E: FloatArray, MT: FloatArray, steps: list[int], alpha: FloatArray) -> FloatArray:
    """Σ_t alpha[t, i] v[t + 1, j]; E becomes p(label). p(i at t, j at t + 1) = alpha[t, i] M[i, j] v[t + 1, j]."""
    pairs = np.zeros_like(MT)
    beta = np.ones((steps[1], len(MT)))
    for t in range(len(steps) - 2, 0, -1):
        i, z, before = steps[t], steps[t + 1], steps[t - 1]
        b, v = beta[: z - i], E[i:z]
        v *= b
        pairs += alpha[before : before + z - i].T @ v
        alpha[i:z] *= b
        np.matmul(v, MT, out=b)
        v[:] = alpha[i:z]
    np.multiply(alpha[: steps[1]], beta, out=E[: steps[1]])
    return pairs


def log_posteriors(scores: FloatArray, A: FloatArray, start: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """(log Z, gamma (T, K), pairs (K, K)) of one sequence with logarithms, for scores of any size; all may be −inf."""
    T, K = scores.shape
    alpha, beta, pairs = np.empty((T, K)), np.zeros((T, K)), np.zeros((K, K))
    alpha[0] = start + scores[0]
    for t in range(1, T):
        alpha[t] = np.logaddexp.reduce(alpha[t - 1][:, None] + A, axis=0) + scores[t]
    log_z = float(np.logaddexp.reduce(alpha[-1]))
    if log_z == -np.inf:
        return log_z, np.zeros((T, K)), pairs
    for t in range(T - 1, 0, -1):
        onward = A + (scores[t] + beta[t])
        pairs += np.exp(alpha[t - 1][:, None] + onward - log_z)
        beta[t - 1] = np.logaddexp.reduce(onward, axis=1)
    return log_z, np.exp(alpha + beta - log_z), pairs
