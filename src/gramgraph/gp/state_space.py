"""Gaussian processes on the line by Kalman filtering: evidence, gradient and posterior in O(n)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph._numerics.gp.line_process import (
    matern12_evidence,
    matern32_evidence,
    matern52_evidence,
    process_filter,
    process_filter_pull,
    simulate_states,
    smoothed_cross,
)
from gramgraph._validation import generator
from gramgraph.exceptions import ModelError
from gramgraph.gp._shown import OneLine
from gramgraph.gp.evidence import Profile, prepared, profile, residual
from gramgraph.gp.markov import MarkovModel, NoiseSplit, markov_model, split_noise
from gramgraph.gp.methods import Data
from gramgraph.kernels.algebra import Scale
from gramgraph.kernels.inputs import as_points
from gramgraph.kernels.stationary import Matern
from gramgraph.linalg.base import PositiveDefiniteError, jitter_levels, report_jitter
from gramgraph.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from gramgraph.gp.means import Mean
    from gramgraph.kernels.base import Kernel

_LOG_2PI = float(np.log(2.0 * np.pi))
_EPS = float(np.finfo(float).eps)
_FIRST = 1e-10  # the first jitter, of the variance: observations that coincide and disagree need so much to be weighed


def line(X: Any) -> FloatArray:
    """The points as numbers on the line."""
    points = as_points(X)
    if points.shape[1] != 1:
        raise ModelError(f"a state-space process lives on the line: expected one column, got {points.shape[1]}.")
    return points[:, 0]


def _steps(t: FloatArray) -> tuple[FloatArray, IntArray]:
    """Different steps between sorted times, and which of them leads to each time (the first is not used)."""
    gaps = np.diff(t)
    values, index = np.unique(gaps, return_inverse=True)
    if len(values) > len(gaps) // 2:
        values, index = gaps, np.arange(len(gaps))
    return values, np.concatenate([[0], index]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Filtered:
    """One pass over the columns [R, H]."""

    model: MarkovModel
    split: NoiseSplit
    steps: FloatArray
    at: IntArray
    A: FloatArray
    D: FloatArray
    M: FloatArray
    V: FloatArray
    S: FloatArray
    jitter: float  # what was added to the noise, so that no innovation lost its variance to rounding


def _filtered(kernel: Kernel, t: FloatArray, columns: FloatArray, noise: FloatArray) -> _Filtered:
    split = split_noise(kernel)
    if split.smooth is None:
        raise ModelError("a state-space process needs a kernel beside its noise.")
    model = markov_model(split.smooth)
    steps, at = _steps(t)
    A = np.ascontiguousarray(model.transitions(steps)) if len(steps) else np.zeros((1, *model.F.shape))
    n, s, c = len(t), len(model.h), columns.shape[1]
    D, M, V, S = np.empty((n, s, s)), np.empty((n, s, c)), np.empty((n, c)), np.empty(n)
    R = noise + split.noise
    scale = float(model.h @ model.Pinf @ model.h + R.mean())
    columns = np.ascontiguousarray(columns)
    jitter = 0.0
    for jitter in (0.0, *jitter_levels(scale, least=_FIRST * scale)):
        if process_filter(A, at, model.Pinf, model.h, R + jitter, columns, 4.0 * _EPS * scale, D, M, V, S) == 0.0:
            report_jitter("The Kalman filter", jitter, scale)
            return _Filtered(model, split, steps, at, A=A, D=D, M=M, V=V, S=S, jitter=jitter)
    raise PositiveDefiniteError.after_jitter("The innovation variance", jitter, scale)


def _profiled(found: _Filtered, q: int, mean: Mean) -> Profile:
    """The evidence and the weights of the mean from whitened columns."""
    W = found.V / np.sqrt(found.S)[:, None]
    return profile(W.T @ W, float(np.log(found.S).sum()), q, len(W), mean)


def state_space_evidence(
    kernel: Kernel, data: Data, *, gradient: bool = False
) -> tuple[float, FloatArray | None, float]:
    """log p(Y), its gradient by theta, and the jitter; points sorted. O(n s³) time, O(n s²) memory with gradient.

    Parameters
    ----------
    kernel : the kernel.
    data : the sorted points with their observations.
    gradient : whether the derivatives by theta are computed as well.

    Examples
    --------
    >>> from gramgraph.gp.means import Mean
    >>> data = Data(np.array([[0.0], [1.0]]), np.array([[1.0], [0.5]]), np.full(2, 0.1), Mean())
    >>> round(state_space_evidence(Matern(nu=0.5), data)[0], 6)
    -2.342456
    """
    t = line(data.X)
    fast = None if gradient else _fast(kernel, t, data)
    if fast is not None:
        return fast[0], None, fast[1]
    R, H, _ = prepared(data.Y, data.X, data.mean)
    q = R.shape[1]
    found = _filtered(kernel, t, np.concatenate([R, H], axis=1), data.noise)
    solved = _profiled(found, q, data.mean)
    if not gradient:
        return solved.value, None, found.jitter
    return solved.value, _gradient(found, solved, q), found.jitter


def _gradient(found: _Filtered, solved: Profile, q: int) -> FloatArray:
    V = np.ascontiguousarray(found.V @ solved.T)  # filtering is linear in the columns
    M = found.M if found.M.shape[2] == solved.T.shape[1] == q else np.ascontiguousarray(found.M @ solved.T)
    model = found.model
    bar_A, bar_Pinf, bar_R = np.zeros_like(found.A), np.zeros_like(model.Pinf), np.empty(len(V))
    process_filter_pull(
        found.A, found.at, model.Pinf, model.h, found.D, M, V, found.S, float(q), bar_A, bar_Pinf, bar_R
    )
    if len(found.steps):
        G = np.einsum("u,uij,ukj->ik", found.steps, bar_A, found.A, optimize=True)
    else:
        G = np.zeros_like(model.F)
    by_smooth = np.einsum("pij,ij->p", model.dF, G) + np.einsum("pij,ij->p", model.dPinf, bar_Pinf)
    return found.split.theta(by_smooth, float(bar_R.sum()))


def _fast(kernel: Kernel, t: FloatArray, data: Data) -> tuple[float, float] | None:
    """One Matérn term, one column, no weights: nothing is stored."""
    split = split_noise(kernel)
    smooth: Kernel | None = split.smooth
    variance = 1.0
    if isinstance(smooth, Scale):
        variance, smooth = smooth.variance, smooth.base
    plain = isinstance(smooth, Matern) and smooth.nu in (0.5, 1.5, 2.5) and np.size(smooth.length_scale) == 1
    R, H = residual(data.Y, data.X, data.mean)
    if not plain or R.shape[1] != 1 or H.shape[1]:
        return None
    assert isinstance(smooth, Matern)
    rate = float(np.sqrt(2.0 * smooth.nu) / np.ravel(smooth.length_scale)[0])
    noise = data.noise + split.noise
    scale = variance + float(noise.mean())
    run = {0.5: matern12_evidence, 1.5: matern32_evidence, 2.5: matern52_evidence}[smooth.nu]
    y = np.ascontiguousarray(R[:, 0])
    for jitter in (0.0, *jitter_levels(scale, least=_FIRST * scale)):
        logs, fit, lifted = run(t, y, noise + jitter if jitter else noise, rate, variance, 4.0 * _EPS * scale)
        if lifted == 0.0:
            return -0.5 * (logs + fit + len(t) * _LOG_2PI), jitter
    return None  # the general way says what is wrong


@dataclass(frozen=True, eq=False)
class StateSpaceMethod:
    """Kalman filter and smoother: exact, O(n). The data are put in order of time once."""

    data: Data
    name = "state_space"
    exact = True

    @cached_property
    def _sorted(self) -> Data:
        t = line(self.data.X)
        return self.data if np.all(np.diff(t) >= 0) else self.data.rows(np.argsort(t, kind="stable"))

    def evidence(self, kernel: Kernel, gradient: bool) -> tuple[float, FloatArray | None]:
        """log p(Y)."""
        value, slope, _ = state_space_evidence(kernel, self._sorted, gradient=gradient)
        return value, slope

    def posterior(self, kernel: Kernel) -> StateSpacePosterior:
        """The smoother, ready for any times."""
        return StateSpacePosterior(kernel, self._sorted)

    def with_data(self, data: Data) -> StateSpaceMethod:
        """For other data."""
        return replace(self, data=data)


@dataclass(frozen=True, eq=False, repr=False)
class StateSpacePosterior(OneLine):
    """f | y of a Markov process. Every question runs filter and smoother over the data and the asked times, O(n + m).

    >>> import numpy as np
    >>> from gramgraph.gp.means import Mean
    >>> data = Data(np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]]), np.full(2, 0.01), Mean())
    >>> StateSpacePosterior(Matern(nu=1.5), data).mean([[0.0]]).round(3)
    array([[0.987]])
    """

    kernel: Kernel
    data: Data  # sorted by time

    def __getstate__(self) -> dict[str, Any]:
        return {"kernel": self.kernel, "data": self.data}  # what was computed is computed again

    @cached_property
    def _fit(self) -> tuple[_Filtered, Profile, FloatArray]:
        R, H, shift = prepared(self.data.Y, self.data.X, self.data.mean)
        found = _filtered(self.kernel, line(self.data.X), np.concatenate([R, H], axis=1), self.data.noise)
        return found, _profiled(found, R.shape[1], self.data.mean), shift

    @property
    def log_evidence(self) -> float:
        """log p(Y)."""
        return self._fit[1].value

    @property
    def jitter(self) -> float:
        """What had to be added to the noise."""
        return self._fit[0].jitter

    @property
    def coef(self) -> FloatArray:
        """Weights of the mean, (k, q)."""
        return self._fit[1].coef + self._fit[2]

    def mean(self, X: Any) -> FloatArray:
        """E f(x), (m, q)."""
        R, H = residual(self.data.Y, self.data.X, self.data.mean)
        R = R - H @ self.coef
        fixed = self.data.mean.fixed(X)
        out = _Smoothed(self, X).means(R) + self.data.mean.basis(X) @ self.coef
        return out if fixed is None else out + fixed.reshape(len(out), -1)

    def var(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Var f(x), (m,)."""
        run = _Smoothed(self, X)
        out = run.var() + (0.0 if latent else self._fit[0].split.noise)
        rest = self._trend_rest(run, X)
        out += np.einsum("ij,jk,ik->i", rest, self._fit[1].cov, rest)
        return np.maximum(out, 0.0)

    def _trend_rest(self, run: _Smoothed, X: Any) -> FloatArray:
        H = self.data.mean.basis(self.data.X)
        return self.data.mean.basis(X) - run.means(H)

    def cov(self, X: Any, *, latent: bool = False) -> FloatArray:
        """Cov f(x), (m, m); O((n + m) m)."""
        run = _Smoothed(self, X)
        rest = self._trend_rest(run, X)
        C = run.cross() + rest @ self._fit[1].cov @ rest.T
        if not latent:
            C[np.diag_indices_from(C)] += self._fit[0].split.noise
        return C

    def sample(self, X: Any, n_samples: int = 1, *, random_state: Any = None) -> FloatArray:
        """Draws, (m, q, n_samples): a path of the prior, corrected by the smoothed misfit; O(n + m).

        The kernel's own noise is added, as in `var`.
        """
        rng = generator(random_state)
        run = _Smoothed(self, X)
        q = self.data.Y.shape[1]
        seen, asked = run.prior_paths(q * n_samples, rng)
        seen = seen + np.sqrt(run.R)[:, None] * rng.standard_normal(seen.shape)
        H, h = self.data.mean.basis(self.data.X), self.data.mean.basis(X)
        prior = self.data.mean.weight_prior(H.shape[1]) if H.shape[1] else None
        if prior is not None:
            weights = np.linalg.cholesky(prior[1]) @ rng.standard_normal((H.shape[1], q * n_samples))
            seen, asked = seen + H @ weights, asked + h @ weights
        if H.shape[1] and (prior is not None or self.data.mean.prior == "vague"):
            whole = _filtered(self.kernel, line(self.data.X), np.concatenate([H, seen], axis=1), self.data.noise)
            white = whole.V / np.sqrt(whole.S)[:, None]
            W = self._fit[1].cov @ (white[:, : H.shape[1]].T @ white[:, H.shape[1] :])
            seen, asked = seen - H @ W, asked - h @ W
        noise = np.sqrt(self._fit[0].split.noise) * rng.standard_normal(asked.shape)
        out = asked - run.means(seen) + noise
        return np.repeat(self.mean(X), n_samples, axis=1).reshape(-1, q, n_samples) + out.reshape(-1, q, n_samples)


class _Smoothed:
    """Filter and smoother over the union of data times and asked times."""

    def __init__(self, process: StateSpacePosterior, X: Any) -> None:
        found = process._fit[0]
        self.model = found.model
        t, asked = line(process.data.X), line(X)
        self.n, self.m = len(t), len(asked)
        order = np.argsort(np.concatenate([t, asked]), kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self.at_data, self.at_asked = place[: self.n], place[self.n :]
        self.steps, self.at = _steps(np.concatenate([t, asked])[order])
        model = self.model
        self.A = (
            np.ascontiguousarray(model.transitions(self.steps)) if len(self.steps) else np.zeros((1, *model.F.shape))
        )
        self.Q = np.ascontiguousarray(model.Pinf - self.A @ model.Pinf @ np.swapaxes(self.A, 1, 2))
        self.R = process.data.noise + found.split.noise + found.jitter
        self.scale = float(model.h @ model.Pinf @ model.h + self.R.mean())
        self.covs: Any = None

    def _run(self, column: FloatArray) -> FloatArray:
        """Smoothed means of the process at all times for one column of data."""
        from gramgraph._numerics.state_space.kalman import kalman_filter, rts_smoother

        T, s = self.n + self.m, len(self.model.h)
        y = np.full((T, 1), np.nan)
        y[self.at_data, 0] = column
        R, rt = np.zeros((self.n + 1, 1, 1)), np.zeros(T, dtype=np.int64)
        rt[self.at_data] = np.arange(1, self.n + 1)
        shape = ((T, s), (T, s, s), (T, s), (T, s, s))
        for jitter in (0.0, *jitter_levels(self.scale, least=_FIRST * self.scale)):
            R[1:, 0, 0] = self.R + jitter
            parts = [np.empty(each) for each in shape]
            zero, h = np.zeros(s), self.model.h[None, :]
            done = kalman_filter(self.A, self.Q, self.at, h, R, rt, y, zero, self.model.Pinf, *parts, np.empty(T))
            if done == T:
                break
        else:
            raise PositiveDefiniteError.after_jitter("The innovation variance", jitter, self.scale)
        means, covs, gains = np.empty((T, s)), np.empty((T, s, s)), np.zeros((T, s, s))
        rts_smoother(self.A, self.at, *parts, means, covs, gains)
        self.covs, self.gains = covs, gains
        return means @ self.model.h

    def means(self, columns: FloatArray) -> FloatArray:
        """k(x, X) (K + R)⁻¹ columns at the asked times, (m, c)."""
        out = np.empty((self.m, columns.shape[1]))
        for j in range(columns.shape[1]):
            out[:, j] = self._run(columns[:, j])[self.at_asked]
        return out

    def _ready(self) -> None:
        if self.covs is None:
            self._run(np.zeros(self.n))

    def var(self) -> FloatArray:
        """Smoothed variances at the asked times."""
        self._ready()
        h = self.model.h
        return np.maximum(np.einsum("i,tij,j->t", h, self.covs[self.at_asked], h), 0.0)

    def cross(self) -> FloatArray:
        """Smoothed covariances between the asked times."""
        self._ready()
        slot = np.full(self.n + self.m, -1, dtype=np.int64)
        slot[self.at_asked] = np.arange(self.m)
        out = np.empty((self.m, self.m))
        smoothed_cross(self.gains, self.covs, self.model.h, slot, out)
        return out

    def prior_paths(self, c: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draws of the process at the data times and at the asked times."""
        s = len(self.model.h)
        half, start = np.ascontiguousarray(symmetric_root(self.Q)), symmetric_root(self.model.Pinf)
        out = np.empty((self.n + self.m, c))
        Z = rng.standard_normal((self.n + self.m, s, c))
        simulate_states(self.A, half, self.at, np.ascontiguousarray(start), Z, self.model.h, out)
        return out[self.at_data], out[self.at_asked]
