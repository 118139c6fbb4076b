"""The first steps of a series whose start is unknown: beliefs with open directions, forward and backward.

As soon as the observations have told where the series starts, the filter is an ordinary one that begins there; so all
forms of the filter share these steps, and their log likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.sequences._square_root import lower_root, moves_of, stacked
from gramgraph.sequences._state_space import Model, even
from gramgraph.typing import FloatArray, IntArray

_CHUNK = 64
_RANK = 1e-13  # share of the largest singular value below which there is none
_OPEN = 1e-9  # share of a row of open directions that counts as none


@dataclass(frozen=True)
class FlatGaussian:
    """N(mean, covariance), and any multiple of the columns of `flat` on top of it."""

    mean: FloatArray  # (s,)
    covariance: FloatArray  # (s, s) its finite part
    flat: FloatArray  # (s, q)
    root: FloatArray | None = None  # (s, s) of the covariance, where the filter knows it

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance; infinite variance and no covariance where an open direction has a part."""
        if self.flat.shape[1] == 0:
            return self.mean, self.covariance
        norms = np.sqrt((self.flat**2).sum(axis=1))
        unknown = norms > _OPEN * norms.max()
        P = self.covariance.copy()
        P[unknown], P[:, unknown] = 0.0, 0.0
        P[unknown, unknown] = np.inf
        return self.mean, P


@dataclass(frozen=True)
class Head:
    """What was known after and before the observation of every step so far, and log p(y_t | y before t)."""

    after: tuple[FlatGaussian, ...]
    before: tuple[FlatGaussian, ...]
    logs: FloatArray

    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """(means, covariances, predicted means, predicted covariances)."""
        after, before = ([belief.moments() for belief in part] for part in (self.after, self.before))
        return tuple(np.array([pair[i] for pair in part]) for part in (after, before) for i in (0, 1))  # type: ignore[return-value]


def open_start(model: Model, y: FloatArray, shift: FloatArray | None) -> tuple[Head, Model | None]:
    """The steps until no direction is open, and the model of the others, which starts there (None: no step is left)."""
    from gramgraph._numerics.state_space.diffuse import diffuse_filter

    assert model.flat is not None
    T, s = len(y), model.n_states
    A, roots, at, b, (H, ht), (R, rt) = moves_of(model, T, shift)
    m, L = model.m0.copy(), lower_root(model.P0)
    B = np.zeros((s, s))
    q = model.flat.shape[1]
    B[:, :q] = model.flat
    size = np.sqrt((B**2).sum(axis=1))
    after: list[FlatGaussian] = []
    before: list[FlatGaussian] = []
    logs: list[FloatArray] = []
    done = 0
    while q and done < T:
        part = slice(done, min(done + _CHUNK, T))
        n = part.stop - part.start
        stacks = [np.empty((n, *shape)) for shape in ((s,), (s, s), (s, s))]
        ahead = [np.empty((n, *shape)) for shape in ((s,), (s, s), (s, s))]
        counts, ahead_counts, log = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
        steps, q, fine = diffuse_filter(
            A, roots, at[part], b if len(b) == 1 else b[part], H, ht[part], R, rt[part], y[part], done == 0,
            m, L, B, q, size, *stacks, counts, *ahead, ahead_counts, log,
        )  # fmt: skip
        if not fine:
            raise ModelError(
                f"the covariance of the observation at step {done + steps} is not positive definite: R and H P Hᵀ "
                f"leave a direction without noise. Try: a positive definite R."
            )
        after += _beliefs(stacks, counts, steps)
        before += _beliefs(ahead, ahead_counts, steps)
        logs.append(log[:steps])
        done += steps
    head = Head(tuple(after), tuple(before), np.concatenate(logs))
    return head, _rest(model, head, done, shift) if done < T else None


def _beliefs(stacks: list[FloatArray], counts: IntArray, n: int) -> list[FlatGaussian]:
    means, roots, flats = stacks
    covs = roots[:n] @ roots[:n].transpose(0, 2, 1)
    return [FlatGaussian(means[t], even(covs[t]), flats[t, :, : int(counts[t])], roots[t]) for t in range(n)]


def _rest(model: Model, head: Head, n: int, shift: FloatArray | None) -> Model:
    """The model of the steps from n on."""
    last = head.after[-1]
    A, Q = (M if M.ndim == 2 else M[n] for M in (model.A, model.Q))
    m0 = A @ last.mean if shift is None else A @ last.mean + shift[n]
    cut = {name: getattr(model, name)[n:] for name in model.varying}
    return replace(model, m0=m0, P0=even(A @ last.covariance @ A.T + Q), flat=None, **cut)


def backward(
    model: Model, head: Head, rest: Model | None, later: FlatGaussian | None
) -> tuple[list[FlatGaussian], FloatArray]:
    """Beliefs of these steps given all observations, and Cov(x_t, x_{t+1}).

    `later` is the belief of the step after them, where `rest` starts.
    """
    n = len(head.after)
    A, at = stacked(model.A, n if rest is None else n + 1)
    Q, qt = stacked(model.Q, n if rest is None else n + 1)
    noises = [lower_root(S) for S in Q[: n + 1]]
    found: list[FlatGaussian] = []
    cross: list[FloatArray] = []
    after, ahead = later, None if rest is None else rest.m0
    for t in range(n - 1, -1, -1):
        here = head.after[t]
        if after is not None and ahead is not None:
            gain, spread, lost = _back(here, A[at[t + 1]], noises[qt[t + 1]])
            here = FlatGaussian(
                here.mean + gain @ (after.mean - ahead),
                even(spread + gain @ after.covariance @ gain.T),
                np.concatenate([gain @ after.flat, lost], axis=1),
            )
            cross.append(gain @ after.covariance)
        found.append(here)
        after, ahead = here, head.before[t].mean
    return found[::-1], np.array(cross[::-1]).reshape(-1, model.n_states, model.n_states)


def _back(belief: FlatGaussian, A: FloatArray, G: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(gain, covariance, directions that A forgets) of x_t given x_{t+1}, which is A x_t + G w.

    With x_t = m + L e + B c and z = x_{t+1} less its prediction = A L e + G w + A B c, the part of z that A B does not
    span tells of e and w as any Gaussian does, and the rest of z then gives c: the limit of Rauch, Tung and Striebel's
    step.
    """
    B, L = belief.flat, lower_root(belief.covariance) if belief.root is None else belief.root
    s, q = B.shape
    L, G = (M[:, M.any(axis=0)] for M in (L, G))  # a start that is unknown has few known directions
    C = np.concatenate([A @ L, G], axis=1)  # what e and w do to z
    U, values, Vt = np.linalg.svd(A @ B, full_matrices=True)
    r = int((values > _RANK * values.max(initial=0.0)).sum())
    N = U[:, r:]
    solve = B @ (Vt[:r].T / values[:r]) @ U[:, :r].T  # z less what e and w did → B c
    inner = N.T @ C
    back = np.linalg.pinv(inner, rcond=_RANK)
    M = back @ N.T  # z → e and w
    own = np.concatenate([L, np.zeros_like(G)], axis=1)
    gain = own @ M + solve @ (np.eye(s) - C @ M)
    left = (own - solve @ C) @ (np.eye(C.shape[1]) - back @ inner)
    return gain, left @ left.T, B @ Vt[r:q].T
