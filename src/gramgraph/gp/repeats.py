"""Rows that coincide, under next to no noise: one point with the mean of their y stands for each place.

Given f(x), the y_i of one place are independent N(f(x), σ²_i), so that with w_i = 1 / σ²_i and W = Σ w_i

    Π_i N(y_i | f, σ²_i) = N(ȳ | f, 1 / W) · c,   ȳ = Σ w_i y_i / W,

where c does not depend on the kernel. So the evidence of all rows is that of the distinct points plus log c. Computed
with all rows instead, by weights of the size (y_i − ȳ) / σ²_i, it is the rounding of large sums: what has to be added
to the diagonal, and with it the optimum, then hangs on the last digit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.methods import Data, Exact, Method
from gramgraph.gp.posterior import ExactPosterior, LeaveOneOut
from gramgraph.kernels.inputs import count
from gramgraph.linalg.base import MAX_JITTER
from gramgraph.linalg.dense import DenseFactor
from gramgraph.linalg.triangles import factor_lower
from gramgraph.typing import Array, FloatArray

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_LITTLE = 1e-6  # of the variance of y: less noise is too little for rows that disagree
_LEVEL = 1e-9  # of the mean square of y
_LEAST = 1e-10  # of the variance of y at one place: so much noise is there at least, for c to be a number
_ROUNDING = 1e-30  # of the mean square of y


@dataclass(frozen=True, eq=False)
class Repeats:
    """The rows of `data` by their places, of which there are u.

    Parameters
    ----------
    data : all n rows.
    points : the u distinct points in the order in which they come first, with the means of y and what noise these have.
    which : (n,) place of every row.
    noise : (n,) variances, `lifted` at least where rows coincide.
    share : (n,) w_i / W: how much of its place's mean a row makes.
    gap : (n, q) y less the mean at its place.
    log_rest : log c, summed over the columns.
    lifted : what was added to the noise of a row, at most.

    Examples
    --------
    >>> from gramgraph.gp.means import Mean
    >>> data = Data(np.array([[0.0], [1.0], [0.0]]), np.array([[1.0], [5.0], [2.0]]), np.full(3, 1e-8), Mean())
    >>> found = find_repeats(data)
    >>> found.points.X.ravel(), found.points.Y.ravel(), found.which
    (array([0., 1.]), array([1.5, 5. ]), array([0, 1, 0]))
    """

    data: Data
    points: Data
    which: Array
    noise: FloatArray
    share: FloatArray
    gap: FloatArray
    log_rest: float
    lifted: float

    def worst(self) -> tuple[int, int] | None:
        """The two rows of one place whose y differ most, None where the noise allows it."""
        n, q = self.gap.shape
        if not n * q:
            return None
        i, column = divmod(int(np.abs(self.gap).argmax()), q)
        y = self.data.Y[:, column]
        here = np.flatnonzero(self.which == self.which[i])
        j = int(here[np.abs(y[here] - y[i]).argmax()])
        apart = abs(float(y[i] - y[j]))
        usual = max(10.0 * float(np.sqrt(self.data.noise[here].max())), 1e-6 * float(np.abs(self.data.Y).max()))
        return (min(i, j), max(i, j)) if apart > usual else None


def find_repeats(data: Data) -> Repeats | None:
    """The places of the rows where some coincide and have next to no noise, else None; O(n log n)."""
    X, Y = data.X, data.Y
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind != "f" or data.cross is not None:
        return None
    level = float((Y**2).mean())
    little = max(_LITTLE * float(Y.var(0).mean()), _LEVEL * level)
    if X.shape[1] == 0 or float(data.noise.min()) > little or not _may_repeat(X[:, 0]):
        return None
    _, first, which, size = np.unique(X, axis=0, return_index=True, return_inverse=True, return_counts=True)
    n, u = len(X), len(first)
    if u == n:
        return None
    order = np.argsort(first)  # places in the order of the rows
    first, size, place = first[order], size[order], np.empty(u, np.intp)
    place[order] = np.arange(u)
    which = place[which.ravel()]
    again = size[which] > 1
    if float(data.noise[again].min()) > little or data.mean.basis(X[:1]).shape[1] > u:
        return None
    return _together(data, first, which, again, level)


def _together(data: Data, first: Array, which: Array, again: Array, level: float) -> Repeats:
    Y, n, u = data.Y, len(which), len(first)
    apart = Y - Y[first[which]]  # rows that agree have no gap at all
    even = 1.0 / np.bincount(which)
    spread = float(((apart - _sums(apart, which, u)[which] * even[which, None]) ** 2).sum()) / ((n - u) * Y.shape[1])
    least = max(_LEAST * spread, _ROUNDING * level, 1e-300)
    noise = np.where(again, np.maximum(data.noise, least), data.noise)
    w = np.where(again, 1.0 / np.where(again, noise, 1.0), 1.0)
    W = np.bincount(which, w)
    share = w / W[which]
    shift = _sums(share[:, None] * apart, which, u)
    gap = apart - shift[which]
    rest = -0.5 * float((w[:, None] * gap**2).sum())
    log_noise = float(np.log(W).sum() - np.log(w).sum())
    rest -= 0.5 * Y.shape[1] * ((n - u) * float(np.log(2.0 * np.pi)) + log_noise)
    left = np.where(again[first], 1.0 / W, data.noise[first])
    points = Data(np.ascontiguousarray(data.X[first]), Y[first] + shift, left, data.mean)
    return Repeats(data, points, which, noise, share, gap, rest, float((noise - data.noise).max()))


def _may_repeat(x: FloatArray) -> bool:
    ordered = np.sort(x)
    return bool((ordered[1:] == ordered[:-1]).any())


def _sums(A: FloatArray, which: Array, u: int) -> FloatArray:
    """Sums of the rows of one place, (u, q)."""
    return np.stack([np.bincount(which, column, minlength=u) for column in A.T], axis=1)


# --- the method ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Together:
    """The exact way for rows that coincide: all that is learned is learned from the distinct points."""

    kernel: Kernel  # any with the structure of those that will be asked for
    repeats: Repeats
    name = "exact"
    exact = True

    @property
    def data(self) -> Data:
        """All rows."""
        return self.repeats.data

    @cached_property
    def distinct(self) -> Exact:
        """The same for the distinct points: its evidence differs by a constant, which would drown it in a search."""
        return Exact(self.repeats.points)

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """log p(Y) of all rows."""
        value, slope = self.distinct.evidence(kernel, gradient)
        return value + self.repeats.log_rest, slope

    def posterior(self, kernel: Kernel) -> TogetherPosterior:
        """The process given the data."""
        found = self.distinct.posterior(kernel)
        return TogetherPosterior(
            **{f.name: getattr(found, f.name) for f in fields(ExactPosterior)}, repeats=self.repeats
        )

    def with_data(self, data: Data) -> Method:
        """For other data, which may have no such rows."""
        return exact_method(self.kernel, data)


def exact_method(kernel: Kernel, data: Data) -> Method:
    """`Exact`, or `Together` where rows coincide and neither kernel nor data have noise by which their y may differ."""
    found = repeats_of(kernel, data)
    return Exact(data) if found is None else Together(kernel, found)


def repeats_of(kernel: Kernel, data: Data) -> Repeats | None:
    """`find_repeats`, unless the kernel has noise of its own."""
    found = None if has_noise(kernel) else find_repeats(data)
    if found is None:
        return None
    pair = np.flatnonzero(found.which == np.bincount(found.which).argmax())[:2]
    K = kernel.gram(data.X[pair])  # a kernel with noise by another name tells equal points apart
    return found if K[0, 0] - K[0, 1] <= 1e-12 * K[0, 0] else None


def has_noise(kernel: Any) -> bool:
    """Whether a `White` term is anywhere in the kernel.

    >>> from gramgraph.kernels import RBF, White
    >>> has_noise(RBF()), has_noise(2.0 * (RBF() + White(0.1)))
    (False, True)
    """
    from gramgraph.kernels.stationary import White

    return any(isinstance(part, White) for part in _parts(kernel))


def _parts(kernel: Any) -> Iterator[Any]:
    yield kernel
    for part in kernel._parts():
        if part.declared is None:
            yield from _parts(part.value)


@dataclass(frozen=True, eq=False, repr=False)
class TogetherPosterior(ExactPosterior):
    """`ExactPosterior` of the distinct points that answers for all rows where these are asked for.

    Parameters
    ----------
    kernel : the kernel.
    X : (u, d) distinct points.
    Y : (u, q) means of the observations there.
    noise : (u,) variances of these means.
    trend_of : the learned part of the mean, or None.
    factor : of the Gram matrix with its noise.
    weights : (u, q) of the mean.
    cross : None.
    repeats : all rows.
    """

    repeats: Repeats = field(kw_only=True)

    @property
    def log_evidence(self) -> float:
        """log p(Y) of all rows, summed over the columns."""
        return super().log_evidence + self.repeats.log_rest

    @property
    def jitter(self) -> float:
        """What had to be added to a diagonal."""
        return max(self.factor.jitter, self.repeats.lifted)

    @property
    def row_alpha(self) -> FloatArray:
        """Weights of all rows in the kernel expansion, (n, q): those of a place shared out, as for y without gaps."""
        return self.repeats.share[:, None] * self.alpha[self.repeats.which]

    @property
    def row_factor(self) -> DenseFactor:
        """The factor of the Gram matrix of all rows with its noise, O(n³)."""
        A = np.ascontiguousarray(self.kernel.gram(self.repeats.data.X))
        A[np.diag_indices_from(A)] += self.repeats.noise
        return DenseFactor(*factor_lower(A, max_jitter=MAX_JITTER))

    def condition(self, X: Any, Y: Any, *, noise: float | FloatArray = 0.0) -> ExactPosterior:
        """The posterior after more points, which may lie at old places: computed anew from the distinct ones."""
        data = self.repeats.data
        Y = np.asarray(Y, dtype=float).reshape(count(X), -1)
        if Y.shape[1] != data.Y.shape[1]:
            raise ModelError(f"expected {data.Y.shape[1]} columns of y, got {Y.shape[1]}.")
        extra = np.broadcast_to(np.asarray(noise, dtype=float), (len(Y),)).copy()
        more = Data(self.kernel.prepare(X), Y, extra, data.mean)
        found: ExactPosterior = exact_method(self.kernel, data.joined(more)).posterior(self.kernel)
        return found

    def loo(self) -> LeaveOneOut:
        """Leave-one-out predictions of all rows, closed form.

        With P of the distinct points that of all rows has the diagonal w_i (1 − s_i) + s_i² P_gg, s_i = w_i / W_g.
        """
        r, s = self.repeats, self.repeats.share
        w = np.where(s < 1.0, 1.0 / np.where(s < 1.0, r.noise, 1.0), 0.0)
        P = w * (1.0 - s) + s**2 / super().loo().var[r.which]
        gap = (w[:, None] * r.gap + self.row_alpha) / P[:, None]
        var = 1.0 / P
        logs = -0.5 * (np.log(2.0 * np.pi * var)[:, None] + gap**2 / var[:, None]).sum(1)
        return LeaveOneOut(r.data.Y - gap, var, logs)
