"""A conditional-Gaussian network given the states of its discrete variables: one Gaussian for each configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.engines.base import IllConditioned
from gramgraph.engines.gaussian.dense import ILL_CONDITIONED, SINGULAR, Observed
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.graphs import Digraph, topological_order
from gramgraph.models.layout import layout_of
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

_CHUNK = 4_000_000  # numbers of covariances that are worked on at a time


@dataclass(frozen=True, eq=False)
class Given:
    """Moments of the wanted components and the density of the evidence, for each case and configuration."""

    log_p: FloatArray  # (cases, configurations)
    mean: FloatArray  # (cases, configurations, wanted)
    blocks: list[FloatArray]  # (configurations, k, k) covariances of sets of components


def choosers(model: GraphicalModel) -> list[int]:
    """Positions of the discrete variables on which real ones depend."""
    found = {
        model.positions[p.name]
        for c in model.conditionals  # type: ignore[attr-defined]
        if not c.child.is_discrete
        for p in c.parents
        if p.is_discrete
    }
    return sorted(found)


def gaussians_given(
    model: GraphicalModel,
    states: dict[int, IntArray],  # discrete variable → (configurations,) state codes
    n: int,
    seen: IntArray,
    X: FloatArray,
    blocks: list[IntArray],  # sets of components; their union is what is wanted
    *,
    strict: bool = False,
) -> Given:
    """The Gaussian of every configuration by recursion, then conditioned on the evidence. O(n² · parents) each.

    With `strict`, `IllConditioned` where the evidence is nearly singular though all variables have noise.
    """
    size = layout_of(model).size
    step = max(1, _CHUNK // max(size * size, 1))
    want = np.concatenate(blocks) if blocks else np.zeros(0, np.int64)
    parts = []
    for start in range(0, n, step):
        stop = min(start + step, n)
        mu, S = _moments(model, {v: codes[start:stop] for v, codes in states.items()}, stop - start)
        if strict and _is_ill(model, S[:, seen[:, None], seen]):
            raise IllConditioned
        parts.append(_condition(mu, S, seen, X, want, blocks))
    return Given(
        np.concatenate([p.log_p for p in parts], axis=1),
        np.concatenate([p.mean for p in parts], axis=1),
        [np.concatenate([p.blocks[j] for p in parts]) for j in range(len(blocks))],
    )


def _moments(model: Any, states: dict[int, IntArray], n: int) -> tuple[FloatArray, FloatArray]:
    layout = layout_of(model)
    mu, S = np.zeros((n, layout.size)), np.zeros((n, layout.size, layout.size))
    for v in topological_order(Digraph(model.parent_positions)):
        c = model.conditionals[v]
        if c.child.is_discrete:
            continue
        row = tuple(states[model.positions[p.name]] for p in c.discrete_parents)
        at = layout.components(v)
        pa = layout.of([model.positions[p.name] for p in c.real_parents])
        W, b, noise = c.coefficients[row], c.intercept[row], c.covariance[row]
        if not row:
            W, b, noise = W[None], b[None], noise[None]
        mu[:, at] = b + (W @ mu[:, pa, None])[..., 0] if len(pa) else b
        S[:, at[:, None], at] = noise
        if len(pa):
            cross = S[:, :, pa] @ np.swapaxes(W, -1, -2)  # (n, size, k)
            own = W @ cross[:, pa]
            S[:, :, at] = cross
            S[:, at, :] = np.swapaxes(cross, 1, 2)
            S[:, at[:, None], at] = own + noise
    return mu, S


def _is_ill(model: Any, S: FloatArray) -> bool:
    """Whether some covariance of the evidence is nearly singular, and no variable without noise is the reason."""
    if not S.shape[-1]:
        return False
    scale = np.sqrt(np.maximum(np.diagonal(S, axis1=1, axis2=2), 1e-300))
    try:
        L = np.linalg.cholesky(S / (scale[:, :, None] * scale[:, None, :]))
        if np.diagonal(L, axis1=1, axis2=2).min() ** 2 >= ILL_CONDITIONED:
            return False
    except np.linalg.LinAlgError:
        pass
    reals = [c for c in model.conditionals if not c.child.is_discrete]
    return all((np.linalg.eigvalsh(c.covariance)[..., 0] > 0).all() for c in reals)


def _condition(
    mu: FloatArray, S: FloatArray, seen: IntArray, X: FloatArray, want: IntArray, blocks: list[IntArray]
) -> Given:
    n, cases = len(mu), len(X)
    S_ee = S[:, seen[:, None], seen]
    scale = np.sqrt(np.maximum(np.diagonal(S_ee, axis1=1, axis2=2), 0.0))
    ok = bool((scale > 0).all())
    if ok and len(seen):
        try:
            L = np.linalg.cholesky(S_ee / (scale[:, :, None] * scale[:, None, :]))
            ok = bool((np.diagonal(L, axis1=1, axis2=2).min(axis=1) ** 2 >= SINGULAR).all())
        except np.linalg.LinAlgError:
            ok = False
    if not ok:
        return _condition_singly(mu, S, seen, X, want, blocks)
    off = (X[:, None, :] - mu[None, :, seen]) / scale[None]  # (cases, n, e)
    if len(seen):
        half = np.linalg.inv(L)  # (n, e, e)
        z = np.einsum("nij,bnj->bni", half, off)
        log_det = 2.0 * (np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1) + np.log(scale).sum(axis=1))
        A = half @ (S[:, seen[:, None], want] / scale[:, :, None])  # (n, e, wanted)
        mean = mu[None, :, want] + np.einsum("bni,niw->bnw", z, A)
        log_p = -0.5 * ((z**2).sum(axis=2) + log_det + len(seen) * LOG_2PI)
    else:
        half, mean = np.zeros((n, 0, 0)), np.broadcast_to(mu[None, :, want], (cases, n, len(want)))
        log_p = np.zeros((cases, n))
    made = []
    for set_ in blocks:
        B = half @ (S[:, seen[:, None], set_] / scale[:, :, None])
        cov = S[:, set_[:, None], set_] - np.swapaxes(B, 1, 2) @ B
        made.append(_without_known(cov, set_, seen))
    return Given(log_p, _with_known(mean, want, seen, X), made)


def _with_known(mean: FloatArray, want: IntArray, seen: IntArray, X: FloatArray) -> FloatArray:
    """Observed components have exactly their value."""
    known = np.flatnonzero(np.isin(want, seen))
    if not len(known):
        return mean
    mean = mean.copy()
    place = {int(c): j for j, c in enumerate(seen)}
    mean[:, :, known] = X[:, None, [place[int(c)] for c in want[known]]]
    return mean


def _without_known(cov: FloatArray, set_: IntArray, seen: IntArray) -> FloatArray:
    known = np.isin(set_, seen)
    cov[:, known], cov[:, :, known] = 0.0, 0.0
    diagonal = np.einsum("nii->ni", cov)
    np.maximum(diagonal, 0.0, out=diagonal)
    return cov


def _condition_singly(
    mu: FloatArray, S: FloatArray, seen: IntArray, X: FloatArray, want: IntArray, blocks: list[IntArray]
) -> Given:
    """The same where some Σ_EE is singular: one configuration at a time, by eigenvectors."""
    log_p = np.empty((len(X), len(mu)))
    mean = np.empty((len(X), len(mu), len(want)))
    made = [np.empty((len(mu), len(set_), len(set_))) for set_ in blocks]
    for k in range(len(mu)):
        observed = Observed(S[k][np.ix_(seen, seen)])
        off = X - mu[k, seen]
        z = observed.whiten(off)
        log_p[:, k] = observed.log_density(off, z)
        mean[:, k] = mu[k, want] + z @ observed.whiten_columns(S[k][np.ix_(seen, want)])
        for j, set_ in enumerate(blocks):
            B = observed.whiten_columns(S[k][np.ix_(seen, set_)])
            made[j][k] = S[k][np.ix_(set_, set_)] - B.T @ B
    return Given(
        log_p, _with_known(mean, want, seen, X), [_without_known(c, s, seen) for c, s in zip(made, blocks, strict=True)]
    )
