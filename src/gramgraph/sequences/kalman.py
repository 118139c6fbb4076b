"""Linear-Gaussian state space: Kalman filter, smoother, likelihood and its gradient, learning by EM, forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from gramgraph._numerics.gaussian_root import root
from gramgraph._numerics.kalman import kalman_filter, rts_smoother
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.sequences._information import information_filter, information_smoother
from gramgraph.sequences._kalman_states import (
    FilteredStates,
    Forecast,
    SettledFiltered,
    SettledSmoothed,
    SmoothedStates,
)
from gramgraph.sequences._reading import check_count, generator
from gramgraph.sequences._settled import Settled
from gramgraph.sequences._square_root import rooted_filter, stacked, without_controls
from gramgraph.sequences._state_space import Model, gradient_of, maximized, moments_of, series_of
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.models import BayesianNetwork

__all__ = ["FilteredStates", "Forecast", "KalmanFilter", "SmoothedStates"]

_BLOCK = 4096
_FIRST = 256  # steps in which covariances should settle
_NAMES = ("A", "Q", "H", "R", "m0", "P0")


class KalmanFilter(BaseEstimator):
    """x_t = A x_{t−1} + B u_{t−1} + N(0, Q), y_t = H x_t + D u_t + N(0, R); the first state is N(m0, P0).

    Parameters
    ----------
    A, Q : (s, s) transition and its noise. H, R : (o, s) and (o, o) observation and its noise. Numbers stand for 1 × 1;
        a stack (T, …) has one matrix a step, A[t] and Q[t] for the move from step t − 1 to t.
    m0, P0 : moments of the first state, that of y_0; None: mean 0, and the stationary covariance, which exists when A
        is stable. P0="diffuse": the start is unknown (a variance 10⁷ times that of the series), and as many numbers as
        there are states do not count in the likelihood.
    B, D : (s, c) and (o, c), what controls u do to states and observations; questions then take `controls`, (T, c).
    form : "covariance", or "square_root", which keeps covariances positive whatever the rounding, at about twice the
        time (stacks and controls use it always); or "information", which keeps precisions: slower, but exact for
        P0="diffuse", where what is not determined yet has infinite variance. It needs invertible A, R and P0.
    learn : which of "A", "Q", "H", "R", "m0", "P0" `fit` learns.
    max_iter, tol : EM ends when a step gains less than tol in log-likelihood.

    y has shape (T,) or (T, o); NaN entries were not observed and are integrated out. Filter and smoother take
    O(T (s³ + s² o + o³)) time and O(T s²) memory, `log_likelihood` constant memory.

    Attributes
    ----------
    A_, Q_, H_, R_, m0_, P0_ : after `fit`; questions then use them. history_ (log-likelihood before every update: it
    never falls), n_iter_, converged_.

    >>> walk = KalmanFilter(1.0, 1.0, 1.0, 1.0, m0=0.0, P0=1.0)
    >>> walk.filter([1.0, 2.0]).means.ravel().tolist()
    [0.5, 1.4]
    >>> walk.smooth([1.0, 2.0]).means.ravel().tolist()
    [0.8, 1.4]
    >>> walk.forecast([1.0, 2.0], 2).means.ravel().tolist()
    [1.4, 1.4]
    """

    def __init__(
        self,
        A: Any = 1.0,
        Q: Any = 1.0,
        H: Any = 1.0,
        R: Any = 1.0,
        m0: Any = None,
        P0: Any = None,
        *,
        B: Any = None,
        D: Any = None,
        form: str = "covariance",
        learn: Sequence[str] = ("Q", "R", "m0", "P0"),
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> None:
        self.A = A
        self.Q = Q
        self.H = H
        self.R = R
        self.m0 = m0
        self.P0 = P0
        self.B = B
        self.D = D
        self.form = form
        self.learn = learn
        self.max_iter = max_iter
        self.tol = tol

    def _model(self) -> Model:
        """The learned matrices, else those given."""
        if self.form not in ("covariance", "square_root", "information"):
            raise ModelError(f'form is "covariance", "square_root" or "information", not {self.form!r}.')
        if hasattr(self, "A_"):
            return Model(self.A_, self.Q_, self.H_, self.R_, self.m0_, self.P0_)
        return Model.of(self.A, self.Q, self.H, self.R, self.m0, self.P0, self.B, self.D)

    def _ready(self, y: Any, controls: Any) -> tuple[Model, FloatArray, FloatArray | None]:
        """The model, the series less what controls add to it, and what they add to the states (None: nothing)."""
        model = self._model()
        y = series_of(y, model.n_outputs)
        ready = model if self.form == "information" else model.fitted_to(y)
        return ready, *without_controls(model, y, controls)

    # ----------------------------------------------------------------------------------------- questions

    def filter(self, y: Any, *, controls: Any = None) -> FilteredStates:
        """States given the observations so far."""
        model, y, shift = self._ready(y, controls)
        if self.form == "information":
            return FilteredStates(*information_filter(model, y, shift))
        rooted = self.form == "square_root"
        settled = None if rooted or model.varying or shift is not None else _settled(model, y)
        if settled is None:
            return _filtered(model, y, shift=shift, rooted=rooted)
        found = settled.filter(y)._asdict()
        stacks = {name: found.pop(name) for name in ("covariances", "predicted_covariances")}
        return SettledFiltered(stacks, found)

    def smooth(self, y: Any, *, controls: Any = None) -> SmoothedStates:
        """States given all observations (Rauch, Tung and Striebel)."""
        model, y, shift = self._ready(y, controls)
        if self.form == "information":
            return SmoothedStates(*information_smoother(model, y, shift))
        return _smoothed(model, y, shift=shift, rooted=self.form == "square_root")

    def log_likelihood(self, y: Any, *, controls: Any = None) -> float:
        """log p(y) of one series, or of a list of series together; constant memory where nothing changes with time."""
        if controls is None and self.form == "covariance":
            parts = _many(y, self._model().n_outputs)
        else:
            parts = [y]
        return sum(self._log_likelihood(part, controls) for part in parts)

    def _log_likelihood(self, y: Any, controls: Any) -> float:
        model, y, shift = self._ready(y, controls)
        if self.form == "information":
            return float(information_filter(model, y, shift)[-1].sum())
        if model.varying or shift is not None or self.form == "square_root":
            return _filtered(model, y, shift=shift, rooted=True).log_likelihood
        return _log_likelihood(model, y)

    def gradient(self, y: Any) -> dict[str, FloatArray]:
        """∂ log p(y) / ∂ each of A, Q, H, R, m0, P0, from one smoothing pass; Q, R and P0 must be invertible.

        For the symmetric ones the entry G satisfies d log p = Σ_ij G_ij dQ_ij over symmetric changes.

        >>> walk = KalmanFilter(1.0, 1.0, 1.0, 1.0, m0=0.0, P0=1.0)
        >>> walk.gradient([1.0, 2.0])["m0"].tolist()
        [0.8]
        """
        model = self._model()
        if model.varying or model.B is not None or model.D is not None or model.diffuse:
            raise ModelError("gradients are there for constant matrices without controls and with a given P0.")
        parts = _many(y, model.n_outputs)
        return gradient_of(model, moments_of(model, parts, [_smoothed(model, part) for part in parts]))

    def stream(self, *, state: dict[str, Any] | None = None) -> Any:
        """Take observations one at a time, in constant memory; `state` goes on where a stream was.

        >>> walk = KalmanFilter(1.0, 1.0, 1.0, 1.0, m0=0.0, P0=1.0)
        >>> stream = walk.stream()
        >>> [round(float(stream.update(y)[0]), 6) for y in (1.0, 2.0)]
        [0.5, 1.4]
        """
        from gramgraph.sequences._kalman_stream import KalmanStream

        return KalmanStream(self._model(), state)

    def score(self, y: Any) -> float:
        """The same as `log_likelihood`."""
        return self.log_likelihood(y)

    def forecast(self, y: Any, steps: int = 1, *, level: float = 0.95) -> Forecast:
        """Observations 1 … steps after the end of y, with central intervals of this probability."""
        from scipy.special import ndtri

        if not 0.0 < level < 1.0:
            raise ModelError(f"level must lie between 0 and 1; it is {level!r}.")
        model, h = self._model(), check_count("steps", steps)
        if model.varying or model.B is not None or model.D is not None:
            raise ModelError(
                "the future of a model whose matrices or controls change with time is not known. What helps: append "
                "NaN rows to y, with their matrices and controls, and filter."
            )
        seen = self.filter(y)
        m, P = seen.means[-1], seen.covariances[-1]
        if not np.isfinite(P).all():
            raise ModelError(
                "y does not determine the state: its variance is infinite. What helps: more rows, or a given P0."
            )
        means, covs = np.empty((h, model.n_states)), np.empty((h, model.n_states, model.n_states))
        for i in range(h):
            m, P = model.A @ m, model.A @ P @ model.A.T + model.Q
            means[i], covs[i] = m, P
        outs = means @ model.H.T
        spread = model.H @ covs @ model.H.T + model.R
        half = ndtri(0.5 + 0.5 * level) * np.sqrt(np.diagonal(spread, axis1=1, axis2=2))
        return Forecast(outs, spread, outs - half, outs + half, level, means, covs)

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> tuple[FloatArray, FloatArray]:
        """(y (T, o), states (T, s)) drawn from the model."""
        model, T = self._model(), check_count("n_samples", n_samples)
        if model.varying or model.B is not None or model.D is not None or model.diffuse:
            raise ModelError("sample draws from models with constant matrices, no controls and a given P0.")
        rng = generator(random_state)
        x = rng.standard_normal((T, model.n_states))
        x[1:] = x[1:] @ root(model.Q).T
        x[0] = model.m0 + root(model.P0) @ x[0]
        for t in range(1, T):
            x[t] += model.A @ x[t - 1]
        return x @ model.H.T + rng.standard_normal((T, model.n_outputs)) @ root(model.R).T, x

    def plot(self, y: Any, steps: int = 20, **options: Any) -> Any:
        """The series and its forecast with intervals: `gramgraph.plot.plot_forecast`."""
        from gramgraph.plot.sequences import plot_forecast

        return plot_forecast(self, y, steps, **options)

    def to_network(self, length: int, *, prefixes: tuple[str, str] = ("x", "y")) -> BayesianNetwork:
        """The model unrolled for `length` steps, counted from 1: x1 -> x2 -> …, x_t -> y_t, vectors of numbers.

        >>> walk = KalmanFilter(1.0, 1.0, 1.0, 1.0, m0=0.0, P0=1.0)
        >>> net = walk.to_network(2)
        >>> round(float(net.query("x1", evidence={"y1": 1.0, "y2": 2.0})["x1"].mean()), 6)
        0.8
        """
        from gramgraph.sequences._state_space import network_of

        return network_of(self._model(), check_count("length", length), prefixes)

    # ------------------------------------------------------------------------------------------- learning

    def fit(self, y: Any) -> Self:
        """Learn the matrices that `learn` names by EM, from one series or a list of them; starts from those given."""
        unknown = [name for name in tuple(self.learn) if name not in _NAMES]
        if isinstance(self.learn, str) or unknown:
            hint = did_you_mean(unknown[0], _NAMES) if unknown else ""
            raise ModelError(f"learn must be a list of names out of {listing(_NAMES)}; it is {self.learn!r}.{hint}")
        check_count("max_iter", self.max_iter)
        model = Model.of(self.A, self.Q, self.H, self.R, self.m0, self.P0, self.B, self.D)
        if model.varying or model.B is not None or model.D is not None:
            raise ModelError("fit learns constant matrices without controls.")
        parts = _many(y, model.n_outputs)
        model = replace(model.fitted_to(np.concatenate(parts)), burn=0)
        if all(np.isnan(part).all() for part in parts):
            raise ModelError("y has no observed value.")
        history: list[float] = []
        self.converged_ = False
        for _ in range(self.max_iter):
            found = [_smoothed(model, part) for part in parts]
            history.append(sum(part.log_likelihood for part in found))
            if len(history) > 1 and history[-1] - history[-2] < self.tol:
                self.converged_ = True
                break
            model = maximized(model, moments_of(model, parts, found), tuple(self.learn))
        self.A_, self.Q_, self.H_, self.R_, self.m0_, self.P0_ = (getattr(model, name) for name in _NAMES)
        self.history_, self.n_iter_ = np.array(history), len(history)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


# --- one series (T, o) under a checked model --------------------------------------------------------------------------


def _filtered(
    model: Model,
    y: FloatArray,
    start: tuple[FloatArray, FloatArray] | None = None,
    *,
    shift: FloatArray | None = None,
    rooted: bool = False,
) -> FilteredStates:
    T, s = len(y), model.n_states
    m0, P0 = (model.m0, model.P0) if start is None else start
    means, pred_means, logs = np.empty((T, s)), np.empty((T, s)), np.empty(T)
    covs, pred_covs = np.empty((T, s, s)), np.empty((T, s, s))
    if rooted or model.varying or shift is not None:
        done = rooted_filter(model, y, m0, P0, shift, means, covs, pred_means, pred_covs, logs)
    else:
        same = np.zeros(T, dtype=np.int64)
        done = kalman_filter(
            model.A[None], model.Q[None], same, model.H, model.R[None], same, y, m0, P0,
            means, covs, pred_means, pred_covs, logs,
        )  # fmt: skip
    if done < T:
        raise ModelError(
            f"the covariance of the observation at step {done} is not positive definite: R and H P Hᵀ leave a "
            f"direction without noise. What helps: a positive definite R."
        )
    if model.burn:
        seen = np.cumsum((~np.isnan(y)).sum(axis=1))
        logs[: int(np.searchsorted(seen, model.burn)) + 1] = 0.0
    return FilteredStates(means, covs, pred_means, pred_covs, logs)


def _smoothed(model: Model, y: FloatArray, *, shift: FloatArray | None = None, rooted: bool = False) -> SmoothedStates:
    plain = not (rooted or model.varying or shift is not None)
    settled = _settled(model, y) if plain else None
    if settled is not None:
        found = settled.smooth(y)
        stacks = {"covariances": found.covariances, "cross_covariances": found.cross}
        return SettledSmoothed(stacks, {"means": found.means, "log_likelihood": found.log_likelihood})
    seen = _filtered(model, y, shift=shift, rooted=rooted)
    means, covs = np.empty_like(seen.means), np.empty_like(seen.covariances)
    gains = np.empty((len(y), model.n_states, model.n_states))
    A, at = stacked(model.A, len(y))
    rts_smoother(
        A, at, seen.means, seen.covariances, seen.predicted_means, seen.predicted_covariances,
        means, covs, gains,
    )  # fmt: skip
    return SmoothedStates(means, covs, gains[:-1] @ covs[1:], seen.log_likelihood)


def _settled(model: Model, y: FloatArray) -> Settled | None:
    """The constant gain of a long series without gaps, when its covariances settle within the first steps."""
    if len(y) < 2 * _FIRST or np.isnan(y).any():
        return None
    return Settled.of(model, _filtered(model, y[:_FIRST]))


def _log_likelihood(model: Model, y: FloatArray) -> float:
    """Block after block, so that a long series needs no memory for its covariances."""
    settled = _settled(model, y)
    if settled is not None:
        return settled.log_likelihood(y)
    total, start = 0.0, (model.m0, model.P0)
    for first in range(0, len(y), _BLOCK):
        try:
            seen = _filtered(model, y[first : first + _BLOCK], start)
        except ModelError as error:
            raise ModelError(f"in the steps from {first}: {error}") from None
        total += seen.log_likelihood
        start = model.A @ seen.means[-1], model.A @ seen.covariances[-1] @ model.A.T + model.Q
    return total


def _many(y: Any, n_outputs: int) -> list[FloatArray]:
    """A list of series: of arrays, or the one series that y is."""
    if isinstance(y, (list, tuple)) and len(y) and all(isinstance(part, np.ndarray) and part.ndim for part in y):
        return [series_of(part, n_outputs) for part in y]
    return [series_of(y, n_outputs)]
