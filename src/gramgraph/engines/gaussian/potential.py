"""Potentials over discrete and real variables: a sum of squares for every cell, for many cases at once.

Gaussians are kept as whitened residuals, −½ |A x − r|², and real variables are integrated out by an orthogonal
triangularization. That squares no condition numbers: nearly deterministic relations beside vague ones stay accurate
where precision matrices would cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.factors.log_table import log_sum_exp
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import Var, join


def components(scope: Sequence[Var], some: Sequence[Var]) -> IntArray:
    """Positions of the components of some real variables among those of a scope."""
    place, i = {}, 0
    for var in scope:
        place[var] = np.arange(i, i + var.dimension)
        i += var.dimension
    return np.concatenate([place[var] for var in some]) if some else np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class Regression:
    """What integrating variables out leaves to know about them: T x = z − U y + unit noise, y being the others."""

    out: tuple[Var, ...]
    given: tuple[Var, ...]
    T: FloatArray  # (*sizes, b, b) upper triangular
    U: FloatArray  # (*sizes, b, d)
    z: FloatArray  # (cases, *sizes, b)


@dataclass(frozen=True, eq=False)
class Potential:
    """log f(i, x) = g[i] − ½ |A[i] x − r[i]|²; g and r have a leading axis of cases (of length one where all agree)."""

    labelled: tuple[Var, ...]  # discrete variables, one axis each
    real: tuple[Var, ...]
    g: FloatArray  # (cases, *sizes)
    A: FloatArray  # (*sizes, k, d)
    r: FloatArray  # (cases, *sizes, k)

    @property
    def scope(self) -> tuple[Var, ...]:
        """Discrete variables, then real ones."""
        return (*self.labelled, *self.real)

    def eliminate(self, out: Sequence[Var], *, best: bool = False) -> tuple[Potential, Regression]:
        """∫ (or max) over real variables, and their regression on those that are left."""
        gone = tuple(var for var in self.real if var in out)
        keep = tuple(var for var in self.real if var not in out)
        b = sum(var.dimension for var in gone)
        A = self.A[..., components(self.real, (*gone, *keep))]
        k, d = A.shape[-2:]
        if not b:
            return self, Regression((), keep, A[..., :0, :0], A[..., :0, :], self.r[..., :0])
        Q, R = np.linalg.qr(A, mode="complete")
        z = np.einsum("...kj,c...k->c...j", Q, self.r)
        T, U = R[..., :b, :b], R[..., :b, b:]
        g = self.g
        if k > d:  # rows in which nothing is left: what the observations disagree by
            g = g - 0.5 * (z[..., d:] ** 2).sum(axis=-1)
        if not best:
            with np.errstate(divide="ignore"):
                g = g + 0.5 * b * LOG_2PI - np.log(np.abs(np.diagonal(T, axis1=-2, axis2=-1))).sum(axis=-1)
        rest = Potential(self.labelled, keep, g, R[..., b : min(k, d), b:], z[..., b : min(k, d)])
        return rest, Regression(gone, keep, T, U, z[..., :b])

    def summed(self, keep: Sequence[Var], *, best: bool = False) -> Potential:
        """Σ (or max) over the discrete variables outside `keep`; only where no real variables are left."""
        gone = tuple(i + 1 for i, var in enumerate(self.labelled) if var not in keep)
        if not gone:
            return self
        assert not self.real, "a sum of Gaussians is no Gaussian"
        g = self.plain().g
        g = g.max(axis=gone) if best else log_sum_exp(g, gone)
        left = tuple(var for var in self.labelled if var in keep)
        return Potential(left, (), g, np.zeros((*g.shape[1:], 0, 0)), np.zeros((1, *g.shape[1:], 0)))

    def plain(self) -> Potential:
        """Without real variables the residuals are numbers: they go into g."""
        if self.real or not self.r.shape[-1]:
            return self
        sizes = self.g.shape[1:]
        g = self.g - 0.5 * (self.r**2).sum(axis=-1)
        return Potential(self.labelled, (), g, np.zeros((*sizes, 0, 0)), np.zeros((1, *sizes, 0)))


@dataclass(frozen=True, eq=False)
class Moments:
    """Cells with log weight, mean and covariance."""

    labelled: tuple[Var, ...]
    real: tuple[Var, ...]
    w: FloatArray  # (cases, *sizes)
    mean: FloatArray  # (cases, *sizes, d)
    cov: FloatArray  # (cases or 1, *sizes, d, d)

    def only(self, keep: Sequence[Var]) -> Moments:
        """Some of the real variables, in the order given."""
        left = tuple(var for var in keep if var in self.real)
        at = components(self.real, left)
        return Moments(self.labelled, left, self.w, self.mean[..., at], self.cov[..., at[:, None], at])

    def collapse(self, keep: Sequence[Var]) -> Moments:
        """Discrete variables outside `keep` out: each group of cells becomes the Gaussian with its two moments."""
        axes = tuple(i + 1 for i, var in enumerate(self.labelled) if var not in keep)
        if not axes:
            return self
        left = tuple(var for var in self.labelled if var in keep)
        w = log_sum_exp(self.w, axes)
        p = np.exp(self.w - np.expand_dims(np.where(np.isneginf(w), 0.0, w), axes))
        mean = (p[..., None] * self.mean).sum(axis=axes)
        off = self.mean - np.expand_dims(mean, axes)
        cov = (p[..., None, None] * (self.cov + off[..., :, None] * off[..., None, :])).sum(axis=axes)
        return Moments(left, self.real, w, mean, cov)

    def ordered(self, labelled: tuple[Var, ...]) -> Moments:
        """The same with the discrete axes in another order."""
        order = [1 + self.labelled.index(var) for var in labelled]
        n = 1 + len(order)
        return Moments(
            labelled,
            self.real,
            self.w.transpose(0, *order),
            self.mean.transpose(0, *order, n),
            self.cov.transpose(0, *order, n, n + 1),
        )

    def extended(self, found: Regression, w: FloatArray) -> Moments:
        """The moments of what the regression predicts from these, in front of them; `w` are the new weights."""
        given = self.only(found.given)
        T_inv = np.linalg.inv(found.T)
        B = -T_inv @ found.U  # (*sizes, b, d)
        mean = np.einsum("...ij,c...j->c...i", T_inv, found.z) + np.einsum("...ij,c...j->c...i", B, given.mean)
        across = B @ given.cov
        own = T_inv @ np.swapaxes(T_inv, -1, -2) + across @ np.swapaxes(B, -1, -2)
        cov = np.concatenate(
            [
                np.concatenate([np.broadcast_to(own, (*across.shape[:-2], *own.shape[-2:])), across], axis=-1),
                np.concatenate([np.swapaxes(across, -1, -2), given.cov], axis=-1),
            ],
            axis=-2,
        )
        cases = max(len(mean), len(given.mean))
        parts = [np.broadcast_to(m, (cases, *m.shape[1:])) for m in (mean, given.mean)]
        return Moments(self.labelled, (*found.out, *found.given), w, np.concatenate(parts, axis=-1), cov)


def _spread(
    f: Potential, labelled: tuple[Var, ...], real: tuple[Var, ...]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Arrays with the axes of a larger scope (length one where f lacks a variable)."""
    order = [f.labelled.index(var) for var in labelled if var in f.labelled]
    shape = [var.size if var in f.labelled else 1 for var in labelled]
    at = components(real, f.real)
    k, n = f.A.shape[-2], len(order)
    g = f.g.transpose(0, *(1 + i for i in order)).reshape(len(f.g), *shape)
    r = f.r.transpose(0, *(1 + i for i in order), 1 + n).reshape(len(f.r), *shape, k)
    A = np.zeros((*shape, k, sum(var.dimension for var in real)))
    A[..., at] = f.A.transpose(*order, n, n + 1).reshape(*shape, k, len(at))
    return g, A, r


def product(parts: Sequence[Potential], labelled: tuple[Var, ...], real: tuple[Var, ...]) -> Potential:
    """The product of potentials on a scope that holds theirs: residuals are stacked."""
    labelled = join(labelled, *(f.labelled for f in parts))
    real = join(real, *(f.real for f in parts))
    sizes = tuple(var.size for var in labelled)
    d = sum(var.dimension for var in real)
    g: FloatArray = np.zeros((1, *sizes))
    rows, residuals = [np.zeros((*sizes, 0, d))], [np.zeros((1, *sizes, 0))]
    for f in parts:
        own, A, r = _spread(f, labelled, real)
        g = g + own
        rows.append(np.broadcast_to(A, (*sizes, *A.shape[-2:])))
        residuals.append(np.broadcast_to(r, (len(r), *sizes, r.shape[-1])))
    cases = max(len(r) for r in residuals)
    wide = [np.broadcast_to(r, (cases, *r.shape[1:])) for r in residuals]
    return Potential(labelled, real, g, np.concatenate(rows, axis=-2), np.concatenate(wide, axis=-1))
