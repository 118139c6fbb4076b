"""Nonlinear state space with Gaussian noise: extended, unscented and cubature Kalman filters and smoothers."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from gramgraph._numerics.gaussian.root import root
from gramgraph.exceptions import ModelError
from gramgraph.sequences._calling import check_call
from gramgraph.sequences._circle import angles_of, mean_of, turned
from gramgraph.sequences._nonlinear_model import NonlinearModel, RowFunction, controls_of
from gramgraph.sequences._reading import one_row, saved_numbers
from gramgraph.sequences._state_space import even, series_of, solved
from gramgraph.sequences.kalman import FilteredStates, SmoothedStates
from gramgraph.typing import FloatArray, IntArray

_LOG_2PI = float(np.log(2.0 * np.pi))
#: (function of rows, moments of its argument) → mean and covariance of the value, and Cov(argument, value).
Moments = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(eq=False, repr=False)
class GaussianFilter(BaseEstimator):
    """What the Gaussian filters share: every belief is kept as a Gaussian.

    What f and h do to a Gaussian is approximated; subclasses say how.
    """

    f: Any
    h: Any
    Q: Any
    R: Any
    m0: Any
    P0: Any
    _: KW_ONLY
    vectorized: bool = False
    angles: Any = ()
    y_angles: Any = ()

    def _moments(self, function: RowFunction, m: FloatArray, P: FloatArray, angles: IntArray) -> Moments:
        raise NotImplementedError

    def filter(self, y: Any, *, controls: Any = None) -> FilteredStates:
        """States given the observations so far, and log p(y_t | y before t) under the Gaussian beliefs.

        controls[t] acts on the move from step t to the next, and on what is seen at t where h takes it.
        """
        return self._filter(y, controls)[0]

    def log_likelihood(self, y: Any, *, controls: Any = None) -> float:
        """log p(y), approximately."""
        return self.filter(y, controls=controls).log_likelihood

    def smooth(self, y: Any, *, controls: Any = None) -> SmoothedStates:
        """States given all observations: backward with the gain Cov(x_t, x_{t+1}) Cov(x_{t+1})⁻¹ of the filter."""
        seen, across = self._filter(y, controls)
        angles = angles_of("angles", self.angles, seen.means.shape[1])
        means, covs = seen.means.copy(), seen.covariances.copy()
        cross = np.empty_like(across[1:])
        for t in range(len(means) - 2, -1, -1):
            predicted = seen.predicted_covariances[t + 1]
            gain = solved(predicted, across[t + 1])
            gap = turned(means[t + 1] - seen.predicted_means[t + 1], angles)
            means[t] = turned(means[t] + gain @ gap, angles)
            covs[t] = even(covs[t] + gain @ (covs[t + 1] - predicted) @ gain.T)
            cross[t] = gain @ covs[t + 1]
        return SmoothedStates(means, covs, cross, seen.log_likelihood)

    def stream(self, *, state: dict[str, Any] | None = None) -> GaussianStream:
        """Take observations one at a time, in constant memory; `state` continues an earlier stream.

        >>> ukf = UnscentedKalmanFilter(np.sin, lambda x: x**2 / 2, Q=0.01, R=0.04, m0=1.0, P0=0.1)
        >>> stream = ukf.stream()
        >>> [round(float(stream.update(y)[0]), 3) for y in (0.6, 0.5)]
        [1.034, 0.885]
        """
        return GaussianStream(self, self._checked(), state)

    def _checked(self) -> NonlinearModel:
        parts = self.Q, self.R, self.m0, self.P0, self.vectorized, self.angles, self.y_angles
        return NonlinearModel.of(self.f, self.h, *parts)

    def _check_calls(self, model: NonlinearModel, controlled: bool) -> None:
        """An error where a function cannot be called as it will be."""
        model.check_calls(controlled)

    def _filter(self, y: Any, controls: Any) -> tuple[FilteredStates, FloatArray]:
        """The filter, and Cov(x_{t−1}, x_t | y before t) at t."""
        model = self._checked()
        y = series_of(y, len(model.R))
        u = controls_of(controls, len(y), seen="h" if model.h_takes_control else "")
        self._check_calls(model, u is not None)
        T, s = len(y), len(model.m0)
        means, ahead, logs = np.empty((T, s)), np.empty((T, s)), np.zeros(T)
        covs, ahead_covs, across = (np.empty((T, s, s)) for _ in range(3))
        across[0] = 0.0
        m, P = model.m0, model.P0
        for t in range(T):
            if t:
                m, P, across[t] = self._move(model, None if u is None else u[t - 1], m, P)
            ahead[t], ahead_covs[t] = m, P
            m, P, logs[t] = self._update(model, y[t], None if u is None or t >= len(u) else u[t], m, P, t)
            means[t], covs[t] = m, P
        return FilteredStates(means, covs, ahead, ahead_covs, logs), across

    def _move(self, model: NonlinearModel, control: Any, m: FloatArray, P: FloatArray) -> Moments:
        """Moments of the next state, and Cov(this one, next)."""
        m, P, across = self._moments(model.move(control), m, P, model.angles)
        return m, P + model.Q, across

    def _update(
        self, model: NonlinearModel, y: FloatArray, control: Any, m: FloatArray, P: FloatArray, t: int
    ) -> tuple[FloatArray, FloatArray, float]:
        """Moments after one observation, and its log probability."""
        shown = ~np.isnan(y)
        if not shown.any():
            return m, P, 0.0
        middle, S, C = self._moments(model.look(control), m, P, model.y_angles)
        v = turned(y - middle, model.y_angles)[shown]
        S, C = (S + model.R)[np.ix_(shown, shown)], C[:, shown]
        try:
            L = np.linalg.cholesky(S)
        except np.linalg.LinAlgError:
            raise ModelError(
                f"the covariance of the observation at step {t} is not positive definite. Try: a positive definite R."
            ) from None
        z, W = np.linalg.solve(L, v), np.linalg.solve(L, C.T)
        log = -0.5 * (len(v) * _LOG_2PI + float(z @ z)) - float(np.log(np.diagonal(L)).sum())
        return turned(m + W.T @ z, model.angles), even(P - W.T @ W), log


class GaussianStream:
    """What a filter with Gaussian beliefs knows between two observations.

    `state` holds everything as plain numbers (JSON keeps them bit by bit): `filter.stream(state=saved)` goes on exactly
    where it was.
    """

    def __init__(self, parent: GaussianFilter, model: NonlinearModel, state: dict[str, Any] | None = None) -> None:
        self._parent, self._model = parent, model
        self._mean, self._covariance = model.m0, model.P0
        self.log_likelihood, self.steps = 0.0, 0
        self._called: set[bool] = set()  # with and without controls, as far as checked
        if state is not None:
            mean, cov, self.log_likelihood, self.steps = saved_numbers(state, "mean", "covariance")
            if mean.shape != model.m0.shape or cov.shape != model.P0.shape:
                raise ModelError(f"state belongs to a model with {mean.size} states, not {len(model.m0)}.")
            self._mean, self._covariance = mean, cov

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the stream remembers."""
        return {
            "mean": self._mean.tolist(),
            "covariance": self._covariance.tolist(),
            "log_likelihood": self.log_likelihood,
            "steps": self.steps,
        }

    @property
    def mean(self) -> FloatArray:
        """E[x | y so far], (s,)."""
        return self._mean.copy()

    @property
    def covariance(self) -> FloatArray:
        """Cov[x | y so far], (s, s)."""
        return self._covariance.copy()

    def update(self, y: Any, *, control: Any = None, now: Any = None) -> FloatArray:
        """Take the next observation (NaN or None where there is none) and return the mean of the state.

        `control` acts on the move to this observation (the first has no move), `now` on what is seen at it, where h
        takes a control.
        """
        row = one_row(y, len(self._model.R))[0]
        m, P, model = self._mean, self._covariance, self._model
        self._check(control, now)
        if self.steps:
            m, P, _ = self._parent._move(model, control, m, P)
        m, P, log = self._parent._update(model, row, now, m, P, self.steps)
        self._mean, self._covariance = m, P
        self.log_likelihood += log
        self.steps += 1
        return m.copy()

    def _check(self, control: Any, now: Any) -> None:
        """That f and h can be called so; once each way."""
        controlled = control is not None or now is not None
        if self._model.h_takes_control and now is None:
            raise ModelError("h takes the control of its step: update(y, control=…, now=…) gives it as `now`.")
        if self.steps and controlled not in self._called:
            self._parent._check_calls(self._model, controlled)
            self._called.add(controlled)


@dataclass(eq=False, repr=False)
class ExtendedKalmanFilter(GaussianFilter):
    """x_t = f(x_{t−1}) + N(0, Q), y_t = h(x_t) + N(0, R): f and h are replaced by their tangents at the mean.

    Exact to first order; linear f and h give the Kalman filter.

    Parameters
    ----------
    f, h : functions of a state (s,), or of many, (n, s), when `vectorized`. With `controls`, f(x, u) takes the control
        of the step that it moves from, and h(x, u), if it has a second parameter, that of the step that it sees
    Q, R : (s, s) and (o, o) covariances of the noise. m0, P0 : moments of the first state, that of y_0
    vectorized : whether f and h take many states at once, one per row
    angles, y_angles : places of the angles (in radians) among the numbers of a state and of an observation. Their
        differences go the short way round, their means are on the circle, and states keep them between −π and π
    f_jacobian, h_jacobian : the matrices of derivatives, (s, s) and (o, s), at one state (and control); without them
        they come from central differences, 2 s calls a step
    m0 : (s,) mean of the first state.
    P0 : (s, s) its covariance.

    Notes
    -----
    y has shape (T,) or (T, o); NaN entries were not observed. A step costs O(s³ + o³) and the calls of f and h.

    Examples
    --------
    >>> ekf = ExtendedKalmanFilter(np.sin, lambda x: x**2 / 2, Q=0.01, R=0.04, m0=1.0, P0=0.1)
    >>> ekf.filter([0.6, 0.5]).means.ravel().round(3).tolist()
    [1.071, 0.909]
    >>> compass = ExtendedKalmanFilter(lambda x: x + 0.1, lambda x: x, 0.01, 0.01, 3.0, 0.1, angles=[0], y_angles=[0])
    >>> compass.filter([3.1, -3.1]).means.ravel().round(2).tolist()
    [3.09, -3.1]
    """

    _: KW_ONLY
    f_jacobian: Any = None
    h_jacobian: Any = None

    def _check_calls(self, model: NonlinearModel, controlled: bool) -> None:
        super()._check_calls(model, controlled)
        for name, given, more in (("f", self.f_jacobian, True), ("h", self.h_jacobian, model.h_takes_control)):
            if given is not None:
                check_call(f"{name}_jacobian", given, ("x", "u") if controlled and more else ("x",))

    def _moments(self, function: RowFunction, m: FloatArray, P: FloatArray, angles: IntArray) -> Moments:
        given = self.f_jacobian if function.name == "f" else self.h_jacobian
        value = turned(function(m[None])[0], angles)
        if given is None:
            J = _differences(function, m, angles)
        else:
            J = np.asarray(given(m.copy(), *function.extra), dtype=np.float64).reshape(len(value), -1)
            if J.shape != (len(value), len(m)):
                wanted = (len(value), len(m))
                raise ModelError(f"{function.name}_jacobian must give shape {wanted}; it gives {J.shape}.")
        C = P @ J.T
        return value, J @ C, C


class _SigmaPoints(GaussianFilter):
    """f and h are called at points with the mean and covariance of the belief; weighted sums give the moments."""

    _center: ClassVar[bool]

    def _spread(self, s: int) -> tuple[float, FloatArray, FloatArray]:
        """(squared distance of the points in standard deviations, weights for means, weights for covariances)."""
        raise NotImplementedError

    def _moments(self, function: RowFunction, m: FloatArray, P: FloatArray, angles: IntArray) -> Moments:
        s = len(m)
        square, w, c = self._spread(s)
        steps = np.sqrt(square) * root(P).T
        offsets = np.concatenate([np.zeros((1, s)), steps, -steps])
        if not self._center:
            offsets, w, c = offsets[1:], w[1:], c[1:]
        values = function(m + offsets)
        mean = mean_of(values, w, angles)
        gaps = turned(values - mean, angles)
        return mean, even((gaps * c[:, None]).T @ gaps), (offsets * c[:, None]).T @ gaps


@dataclass(eq=False, repr=False)
class UnscentedKalmanFilter(_SigmaPoints):
    """f and h at 2 s + 1 points around the mean: exact means for polynomials up to the third degree.

    alpha, beta, kappa : spread of the points and weight of the middle one; the defaults are alpha = 1, beta = 0,
    kappa = max(3 − s, 0): up to s = 3 fourth moments along the axes are those of a Gaussian. A small alpha (1e-3)
    stays close to the mean, as the extended filter does. The rest as in `ExtendedKalmanFilter`, derivatives aside.

    Parameters
    ----------
    f : function that moves the state.
    h : function from the state to what is observed.
    Q : (s, s) covariance of the noise of the state.
    R : (o, o) covariance of the noise of the observation.
    m0 : (s,) mean of the first state.
    P0 : (s, s) its covariance.
    vectorized : whether f and h take many states at once.
    angles : components of the state that are angles.
    y_angles : components of the observation that are angles.
    alpha : spread of the points.
    beta : weight of the middle one.
    kappa : spread of the points; None for max(3 − s, 0).

    Examples
    --------
    >>> ukf = UnscentedKalmanFilter(np.sin, lambda x: x**2 / 2, Q=0.01, R=0.04, m0=1.0, P0=0.1)
    >>> ukf.filter([0.6, 0.5]).means.ravel().round(3).tolist()
    [1.034, 0.885]
    """

    _center = True

    _: KW_ONLY
    alpha: float = 1.0
    beta: float = 0.0
    kappa: float | None = None

    def _spread(self, s: int) -> tuple[float, FloatArray, FloatArray]:
        kappa = max(3.0 - s, 0.0) if self.kappa is None else float(self.kappa)
        square = float(self.alpha) ** 2 * (s + kappa)
        if not square > 0.0:
            raise ModelError(f"alpha² (s + kappa) must be positive; alpha is {self.alpha!r}, kappa {self.kappa!r}.")
        w = np.full(2 * s + 1, 0.5 / square)
        w[0] = 1.0 - s / square
        c = w.copy()
        c[0] += 1.0 - float(self.alpha) ** 2 + float(self.beta)
        return square, w, c


class CubatureKalmanFilter(_SigmaPoints):
    """f and h at 2 s points of equal weight, √s standard deviations from the mean: covariances stay positive.

    Parameters as in `ExtendedKalmanFilter`, derivatives aside.

    Parameters
    ----------
    f : function that moves the state.
    h : function from the state to what is observed.
    Q : (s, s) covariance of the noise of the state.
    R : (o, o) covariance of the noise of the observation.
    m0 : (s,) mean of the first state.
    P0 : (s, s) its covariance.
    vectorized : whether f and h take many states at once.
    angles : components of the state that are angles.
    y_angles : components of the observation that are angles.

    Examples
    --------
    >>> ckf = CubatureKalmanFilter(np.sin, lambda x: x**2 / 2, Q=0.01, R=0.04, m0=1.0, P0=0.1)
    >>> ckf.filter([0.6, 0.5]).means.ravel().round(3).tolist()
    [1.036, 0.885]
    """

    _center = False

    def _spread(self, s: int) -> tuple[float, FloatArray, FloatArray]:
        w = np.full(2 * s + 1, 0.5 / s)
        return float(s), w, w


def _differences(function: RowFunction, m: FloatArray, angles: IntArray) -> FloatArray:
    """Central differences, (values, s)."""
    step = np.cbrt(np.finfo(float).eps) * np.maximum(np.abs(m), 1.0)
    values = function(np.concatenate([m + np.diag(step), m - np.diag(step)]))
    s = len(m)
    return np.asarray(turned(values[:s] - values[s:], angles).T / (2.0 * step))
