"""Linear-Gaussian state space: Kalman filter, smoother, likelihood and its gradient, learning by EM, forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from gramgraph._drawn import Explored
from gramgraph._numerics.gaussian.root import root
from gramgraph._pictures import pictures
from gramgraph._validation import check_count, check_fraction, generator
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.sequences._kalman_runs import filtered, log_likelihood_of, smoothed
from gramgraph.sequences._kalman_states import FilteredStates, Forecast, SmoothedStates
from gramgraph.sequences._square_root import without_controls
from gramgraph.sequences._state_space import Model, gradient_of, maximized, moments_of, series_of, start_of
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.models import BayesianNetwork

__all__ = ["FilteredStates", "Forecast", "KalmanFilter", "SmoothedStates"]

_NAMES = ("A", "Q", "H", "R", "m0", "P0")


@dataclass(eq=False, repr=False)
class KalmanFilter(Explored, BaseEstimator):
    """x_t = A x_{t−1} + B u_{t−1} + N(0, Q), y_t = H x_t + D u_t + N(0, R); the first state is N(m0, P0).

    Parameters
    ----------
    A, Q : (s, s) transition and its noise.
    H, R : (o, s) and (o, o) observation and its noise. Numbers stand for 1 × 1; in all four a stack (T, …) has one
        matrix per step, A[t] and Q[t] for the move from step t − 1 to t.
    m0, P0 : moments of the first state, that of y_0; None: mean 0, and the stationary covariance, which exists when A
        is stable. P0="diffuse": the start is unknown; so are states whose variance in P0 is infinite. Then log p(y) is
        the limit of log p_κ(y) + ½ d log κ as their variance κ grows, d of them being determined by y (Durbin and
        Koopman's exact diffuse likelihood), and states that y does not determine yet have infinite variance.
    B, D : (s, c) and (o, c), what controls u do to states and observations; questions then take `controls`, (T, c).
    form : "covariance", or "square_root", which keeps covariances positive whatever the rounding, at about twice the
        time (stacks and controls use it always); or "information", which keeps precisions: slower; it needs invertible
        A, R and P0. The steps that tell where an unknown start was are the same in all of them.
    learn : which of "A", "Q", "H", "R", "m0", "P0" `fit` learns; an unknown start stays unknown.
    max_iter, tol : EM ends when a step gains less than tol in log-likelihood.

    Notes
    -----
    y has shape (T,) or (T, o); NaN entries were not observed and are integrated out. Filter and smoother take
    O(T (s³ + s² o + o³)) time and O(T s²) memory, `log_likelihood` constant memory.

    Attributes
    ----------
    A_, Q_, H_, R_, m0_, P0_ ("diffuse" if it was) : after `fit`; questions then use them.
    history_ (log-likelihood before every update: it never falls), n_iter_, converged_.

    Examples
    --------
    >>> walk = KalmanFilter(1.0, 1.0, 1.0, 1.0, m0=0.0, P0=1.0)
    >>> walk.filter([1.0, 2.0]).means.ravel().tolist()
    [0.5, 1.4]
    >>> walk.smooth([1.0, 2.0]).means.ravel().tolist()
    [0.8, 1.4]
    >>> walk.forecast([1.0, 2.0], 2).means.ravel().tolist()
    [1.4, 1.4]
    """

    A: Any = 1.0
    Q: Any = 1.0
    H: Any = 1.0
    R: Any = 1.0
    m0: Any = None
    P0: Any = None
    _: KW_ONLY
    B: Any = None
    D: Any = None
    form: str = "covariance"
    learn: Sequence[str] = ("Q", "R", "m0", "P0")
    max_iter: int = 100
    tol: float = 1e-3

    def _model(self) -> Model:
        """The learned matrices, else those given."""
        if self.form not in ("covariance", "square_root", "information"):
            raise ModelError(f'form is "covariance", "square_root" or "information", not {self.form!r}.')
        if hasattr(self, "A_"):
            P0, flat = start_of(self.P0_, len(self.m0_))
            return Model(self.A_, self.Q_, self.H_, self.R_, self.m0_, P0, flat=flat)
        return Model.of(self.A, self.Q, self.H, self.R, self.m0, self.P0, self.B, self.D)

    def _ready(self, y: Any, controls: Any) -> tuple[Model, FloatArray, FloatArray | None]:
        """The model, the series less what controls add to it, and what they add to the states (None: nothing)."""
        model = self._model()
        return model, *without_controls(model, series_of(y, model.n_outputs), controls)

    # ----------------------------------------------------------------------------------------- questions

    def filter(self, y: Any, *, controls: Any = None) -> FilteredStates:
        """States given the observations so far."""
        return filtered(*self._ready(y, controls), self.form)

    def smooth(self, y: Any, *, controls: Any = None) -> SmoothedStates:
        """States given all observations (Rauch, Tung and Striebel)."""
        return smoothed(*self._ready(y, controls), self.form)

    def log_likelihood(self, y: Any, *, controls: Any = None) -> float:
        """log p(y) of one series, or of a list of series together; constant memory where nothing changes with time."""
        if controls is None and self.form == "covariance":
            parts = _many(y, self._model().n_outputs)
        else:
            parts = [y]
        return sum(log_likelihood_of(*self._ready(part, controls), self.form) for part in parts)

    def gradient(self, y: Any) -> dict[str, FloatArray]:
        """∂ log p(y) / ∂ each of A, Q, H, R, m0, P0, from one smoothing pass; Q, R and P0 must be invertible.

        With an unknown start there are no m0 and P0 to differentiate by.

        For the symmetric ones the entry G satisfies d log p = Σ_ij G_ij dQ_ij over symmetric changes.

        >>> walk = KalmanFilter(1.0, 1.0, 1.0, 1.0, m0=0.0, P0=1.0)
        >>> walk.gradient([1.0, 2.0])["m0"].tolist()
        [0.8]
        """
        model = self._model()
        if model.varying or model.B is not None or model.D is not None:
            raise ModelError("gradients are there for constant matrices without controls.")
        parts = _many(y, model.n_outputs)
        return gradient_of(model, moments_of(model, parts, _all_smoothed(model, parts)))

    def stream(self, *, state: dict[str, Any] | None = None) -> Any:
        """Take observations one at a time, in constant memory; `state` continues an earlier stream.

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

        check_fraction("level", level)
        model, h = self._model(), check_count("steps", steps)
        if model.varying or model.B is not None or model.D is not None:
            raise ModelError(
                "the future of a model whose matrices or controls change with time is not known. Try: append "
                "NaN rows to y, with their matrices and controls, and filter."
            )
        seen = self.filter(y)
        m, P = seen.means[-1], seen.covariances[-1]
        if not np.isfinite(P).all():
            raise ModelError("y does not determine the state: its variance is infinite. Try: more rows, or a given P0.")
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
        if model.varying or model.B is not None or model.D is not None or model.flat is not None:
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
        return pictures().plot_forecast(self, y, steps, **options)

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
        learn = tuple(self.learn)
        if model.flat is not None:  # a start that is unknown stays so
            learn = tuple(name for name in learn if name not in ("m0", "P0"))
        if all(np.isnan(part).all() for part in parts):
            raise ModelError("y has no observed value.")
        history: list[float] = []
        self.converged_ = False
        for _ in range(self.max_iter):
            found = _all_smoothed(model, parts)
            history.append(sum(part.log_likelihood for part in found))
            if len(history) > 1 and history[-1] - history[-2] < self.tol:
                self.converged_ = True
                break
            model = maximized(model, moments_of(model, parts, found), learn)
        self.A_, self.Q_, self.H_, self.R_, self.m0_ = (getattr(model, name) for name in _NAMES[:-1])
        self.P0_ = model.given_P0
        self.history_, self.n_iter_ = np.array(history), len(history)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _many(y: Any, n_outputs: int) -> list[FloatArray]:
    """A list of series: of arrays, or the one series that y is."""
    if isinstance(y, (list, tuple)) and len(y) and all(isinstance(part, np.ndarray) and part.ndim for part in y):
        return [series_of(part, n_outputs) for part in y]
    return [series_of(y, n_outputs)]


def _all_smoothed(model: Model, parts: list[FloatArray]) -> list[SmoothedStates]:
    """Every series; an error where one leaves a state open."""
    found = [smoothed(model, part, None) for part in parts]
    if model.flat is not None and any(not np.isfinite(part.covariances).all() for part in found):
        raise ModelError("y does not determine its first state. Try: longer series, or a given P0.")
    return found
