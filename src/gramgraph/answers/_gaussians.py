"""Mixtures of Gaussians as arrays: log densities and peaks."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph.typing import FloatArray

_LOG_2PI = float(np.log(2.0 * np.pi))


def log_mixture(x: FloatArray, w: FloatArray, m: FloatArray, S: FloatArray) -> FloatArray:
    """log Σ w_k N(x; m_k, S_k) at (p, d) points."""
    d = m.shape[1]
    off = x[:, None, :] - m[None]
    if d == 1:
        s = np.maximum(S[:, 0, 0], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(w) - 0.5 * (off[:, :, 0] ** 2 / s + np.log(s) + _LOG_2PI)
            logs = np.where(s > 0, logs, np.where(off[:, :, 0] == 0, np.inf, -np.inf))
    else:
        L = np.linalg.cholesky(S)
        z = np.linalg.solve(L[None], off[..., None])[..., 0]
        log_det = 2.0 * np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(w) - 0.5 * ((z**2).sum(axis=2) + log_det + d * _LOG_2PI)
    top = logs.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.where(np.isfinite(top), np.log(np.exp(logs - safe[:, None]).sum(axis=1)) + safe, top)


def entropy_of(w: FloatArray, m: FloatArray, S: FloatArray) -> float:
    """−∫ p log p: in closed form for one Gaussian, by quadrature in one dimension, else from 20,000 draws."""
    d = m.shape[1]
    with np.errstate(divide="ignore"):
        log_det = np.linalg.slogdet(S)[1]
    if len(w) == 1 or not np.isfinite(log_det).all():
        return float(0.5 * (d * (1.0 + _LOG_2PI) + log_det.min()))
    if d == 1:
        nodes, share = np.polynomial.hermite_e.hermegauss(96)
        x = m + np.sqrt(S[:, 0]) * nodes
        logs = log_mixture(x.reshape(-1, 1), w, m, S).reshape(x.shape)
        return -float(w @ (logs @ share)) / float(np.sqrt(2 * np.pi))
    rng = np.random.default_rng(0)
    pick = rng.choice(len(w), size=20_000, p=w)
    x = m[pick] + np.einsum("nij,nj->ni", symmetric_root(S)[pick], rng.standard_normal((len(pick), d)))
    return -float(log_mixture(x, w, m, S).mean())


def highest_peak(w: FloatArray, m: FloatArray, S: FloatArray) -> FloatArray:
    """Fixed-point steps toward a peak from every component's mean; the highest point found."""
    if not np.isfinite(w).all():
        return np.full(m.shape[1], np.nan)
    live = w > 0
    w, m, S = w[live], m[live], S[live]
    if len(w) > 200:  # the heaviest components are where a peak can be
        top = np.argsort(-w)[:200]
        w, m, S = w[top], m[top], S[top]
    P = np.linalg.pinv(S, hermitian=True)
    if (np.linalg.eigvalsh(S)[:, 0] <= 0).any():
        return np.asarray(m[int(np.argmax(w))])
    x = m.copy()
    for _ in range(200):
        off = x[:, None] - m[None]
        logs = np.log(w) - 0.5 * np.einsum("pkd,kde,pke->pk", off, P, off) - 0.5 * np.linalg.slogdet(S)[1]
        r = np.exp(logs - logs.max(axis=1, keepdims=True))
        A = np.einsum("pk,kde->pde", r, P)
        b = np.einsum("pk,kde,ke->pd", r, P, m)
        new = np.linalg.solve(A, b[..., None])[..., 0]
        if np.abs(new - x).max() <= 1e-12 * (1.0 + np.abs(x).max()):
            x = new
            break
        x = new
    return np.asarray(x[int(np.argmax(log_mixture(x, w, m, S)))])
