"""Particle filters: any state space that can be drawn from and weighed, by weighted draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np

from gramgraph._numerics.gaussian.root import root
from gramgraph._validation import check_count, generator
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences._calling import CONTROLS, check_call, takes_more
from gramgraph.sequences._circle import angles_of, mean_of, turned
from gramgraph.sequences._nonlinear_model import NonlinearModel, controls_of
from gramgraph.sequences._reading import numbers, plain_generator, restored_generator, saved_numbers
from gramgraph.typing import FloatArray, IntArray

_TIMES = ("t", "time", "step")


@dataclass(frozen=True)
class ParticleStates:
    """Moments of p(x_t | y up to t) from weighted particles, and an unbiased estimate of p(y), as its logarithm."""

    means: FloatArray  # (T, s)
    covariances: FloatArray  # (T, s, s)
    effective: FloatArray  # (T,) 1 / Σ w²: particles that count, before resampling
    log_likelihoods: FloatArray  # (T,)
    particles: FloatArray | None  # (T, n, s) when kept
    weights: FloatArray | None  # (T, n)

    @property
    def log_likelihood(self) -> float:
        """log of the estimate of p(y)."""
        return float(self.log_likelihoods.sum())

    def interval(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Central intervals of every state variable, (T, s) each; the particles must have been kept."""
        if self.particles is None or self.weights is None:
            raise ModelError("the particles were not kept: filter(y, keep=True) keeps them.")
        ends = 0.5 - 0.5 * level, 0.5 + 0.5 * level
        order = np.argsort(self.particles, axis=1, kind="stable")
        sorted_ = np.take_along_axis(self.particles, order, axis=1)
        run = np.cumsum(np.take_along_axis(self.weights[:, :, None], order, axis=1), axis=1)
        found = [np.take_along_axis(sorted_, _first_above(run, end), axis=1)[:, 0] for end in ends]
        return found[0], found[1]


def _first_above(run: FloatArray, end: float) -> IntArray:
    return np.asarray(np.argmax(run >= end * run[:, -1:], axis=1)[:, None])


def systematic(weights: FloatArray, n: int, u: float) -> IntArray:
    """n indices, index i about n wᵢ times: one uniform number u and n even steps through the cumulative weights.

    >>> systematic(np.array([0.5, 0.25, 0.25]), 4, 0.5).tolist()
    [0, 0, 1, 2]
    """
    run = np.cumsum(weights)
    return np.minimum(np.searchsorted(run / run[-1], (np.arange(n) + u) / n, side="right"), len(weights) - 1)


class ParticleFilter:
    """Weighted draws of the state: moved by the model, weighed by the observation, resampled when few of them count.

    Parameters
    ----------
    start : start(n, rng) draws n first states, (n, s) or (n,)
    move : move(x, rng), or move(x, rng, u) with controls, draws the next state of each row of x
    weigh : weigh(y_t, x) gives log p(y_t | x) of each row, (n,); weigh(y_t, x, u) also takes the control of its step
        (None without), and weigh(y_t, x, u, t), or one with a parameter `t`, how many observations came before
    log_move : log_move(new, x), or log_move(new, x, u), gives log p(new | x) of each row of x for one state `new`; only
        `smooth` needs it
    look_ahead : look_ahead(x), or look_ahead(x, u), gives a likely next state of each row; with it the filter is
        auxiliary: particles whose future fits the next observation are chosen before they move
    angles : places of the angles (in radians) in a state: their means and gaps are those of the circle
    n_particles : draws; the error falls with their root
    resample_below : resample when fewer than this share of the particles count
    random_state : seed, or a generator.

    Notes
    -----
    A step costs one call of each function on all particles. y is a sequence of whatever `weigh` takes; entries that are
    None or NaN throughout were not observed. `ParticleFilter.gaussian` makes one from the arguments of
    `UnscentedKalmanFilter`.

    Examples
    --------
    >>> pf = ParticleFilter.gaussian(
    ...     np.sin,
    ...     lambda x: x**2 / 2,
    ...     Q=0.01,
    ...     R=0.04,
    ...     m0=1.0,
    ...     P0=0.1,
    ...     n_particles=4000,
    ...     vectorized=True,
    ...     random_state=0,
    ... )
    >>> np.abs(pf.filter([0.6, 0.5]).means.ravel() - [1.04, 0.89]).max() < 0.02
    np.True_
    """

    def __init__(
        self,
        start: Callable[..., Any],
        move: Callable[..., Any],
        weigh: Callable[..., Any],
        *,
        log_move: Callable[..., Any] | None = None,
        look_ahead: Callable[..., Any] | None = None,
        n_particles: int = 1000,
        resample_below: float = 0.5,
        random_state: Any = None,
        angles: Any = (),
    ) -> None:
        for name, function in (("start", start), ("move", move), ("weigh", weigh)):
            if not callable(function):
                raise ModelError(f"{name} must be a function; it is {function!r}.")
        check_call("start", start, ("n", "rng"))
        extra = ["t" if name in _TIMES else "u" for name in takes_more(weigh, 2, (*CONTROLS, *_TIMES))]
        if extra == ["u", "u"]:
            extra = ["u", "t"]  # whatever they are called
        check_call("weigh", weigh, ("y", "x", *extra) if len(extra) <= 2 else ("y", "x", "u", "t"))
        self._weigh_extra = tuple(extra)
        for name, given, plain in (("log_move", log_move, ("new", "x")), ("look_ahead", look_ahead, ("x",))):
            if given is not None:
                check_call(name, given, (*plain, "u") if takes_more(given, len(plain)) else plain)
        self._ahead_takes_control = look_ahead is not None and bool(takes_more(look_ahead, 1))
        self.angles = angles
        if not 0.0 <= resample_below <= 1.0:
            raise ModelError(f"resample_below must lie between 0 and 1; it is {resample_below!r}.")
        self.start, self.move, self.weigh = start, move, weigh
        self.log_move, self.look_ahead = log_move, look_ahead
        self.n_particles = check_count("n_particles", n_particles)
        self.resample_below = float(resample_below)
        self.random_state = random_state

    @classmethod
    def gaussian(
        cls, f: Any, h: Any, Q: Any, R: Any, m0: Any, P0: Any, *, vectorized: bool = False, auxiliary: bool = False,
        angles: Any = (), y_angles: Any = (), **options: Any,
    ) -> Self:  # fmt: skip
        """x_t = f(x_{t−1}) + N(0, Q), y_t = h(x_t) + N(0, R), x_0 ~ N(m0, P0), as for `ExtendedKalmanFilter`."""
        model = NonlinearModel.of(f, h, Q, R, m0=m0, P0=P0, vectorized=vectorized, angles=angles, y_angles=y_angles)
        first, noise = root(model.P0), root(model.Q)
        seen = _LogDensity(model.R, "R")
        check = cache(model.check_calls)

        def start(n: int, rng: np.random.Generator) -> FloatArray:
            return np.asarray(model.m0 + rng.standard_normal((n, len(model.m0))) @ first.T)

        def move(x: FloatArray, rng: np.random.Generator, control: Any = None) -> FloatArray:
            check(control is not None)
            return turned(model.move(control)(x) + rng.standard_normal(x.shape) @ noise.T, model.angles)

        def weigh(y: Any, x: FloatArray, control: Any = None) -> FloatArray:
            y = numbers("an observation", y).reshape(-1)
            if len(y) != len(model.R):
                raise ModelError(f"an observation has {len(model.R)} numbers; got {len(y)}.")
            if model.h_takes_control:
                check(control is not None)
            return seen(turned(y - model.look(control)(x), model.y_angles), ~np.isnan(y))

        def log_move(new: FloatArray, x: FloatArray, control: Any = None) -> FloatArray:
            moved = _LogDensity(model.Q, "Q")
            return moved(turned(new - model.move(control)(x), model.angles), np.ones(len(new), np.bool_))

        def ahead(x: FloatArray, control: Any = None) -> FloatArray:
            return model.move(control)(x)

        look_ahead = ahead if auxiliary else None
        made = cls(start, move, weigh, log_move=log_move, look_ahead=look_ahead, angles=model.angles, **options)
        if not model.h_takes_control:
            made._weigh_extra = ()
        return made

    def stream(self, *, state: dict[str, Any] | None = None) -> ParticleStream:
        """Take observations one at a time, in constant memory; `state` continues an earlier stream."""
        return ParticleStream(self, state)

    def filter(self, y: Any, *, controls: Any = None, keep: bool = False) -> ParticleStates:
        """All of y; `keep` keeps particles and weights of every step."""
        if isinstance(y, (str, dict)) or not hasattr(y, "__iter__"):
            raise ModelError(f"y must be a sequence of observations; it is {y!r}.")
        y = list(y)
        if not y:
            raise ModelError("y is empty; a series needs at least one observation (None where nothing was observed).")
        u = controls_of(controls, len(y), seen="weigh" if "u" in self._weigh_extra else "")
        stream = self.stream()
        rows: list[tuple[Any, ...]] = []
        kept: list[tuple[FloatArray, FloatArray]] = []
        for t, z in enumerate(y):
            before = stream.log_likelihood
            now = None if u is None or t >= len(u) else u[t]
            stream.update(z, control=None if u is None or t == 0 else u[t - 1], now=now)
            rows.append((stream.mean, stream.covariance, stream.effective, stream.log_likelihood - before))
            if keep:
                kept.append((stream.particles, stream.weights))
        means, covs, effective, logs = (np.array(part) for part in zip(*rows, strict=True))
        x, w = (np.array(part) for part in zip(*kept, strict=True)) if keep else (None, None)
        return ParticleStates(means, covs, effective, logs, x, w)

    def smooth(self, y: Any, n_trajectories: int = 100, *, controls: Any = None) -> FloatArray:
        """Trajectories (n_trajectories, T, s) drawn from p(x_0 … x_T | y): backward through the particles.

        O(T · n_trajectories · n_particles); needs `log_move`.
        """
        if self.log_move is None:
            raise ModelError("smooth needs log_move, the log density of a move.")
        n = check_count("n_trajectories", n_trajectories)
        seen = self.filter(y, controls=controls, keep=True)
        takes = bool(takes_more(self.log_move, 2))
        assert seen.particles is not None and seen.weights is not None
        rng = generator(self.random_state).spawn(1)[0]
        T, _, s = seen.particles.shape
        out = np.empty((n, T, s))
        out[:, -1] = seen.particles[-1, rng.choice(len(seen.weights[-1]), n, p=seen.weights[-1])]
        with np.errstate(divide="ignore"):
            logs = np.log(seen.weights)
        for t in range(T - 2, -1, -1):
            extra = (None if controls is None else controls[t],) if takes else ()
            for i in range(n):
                w = logs[t] + np.asarray(self.log_move(out[i, t + 1], seen.particles[t], *extra), dtype=np.float64)
                w = np.exp(w - w.max())
                out[i, t] = seen.particles[t, rng.choice(len(w), p=w / w.sum())]
        return out


class ParticleStream:
    """The particles of a `ParticleFilter` between two observations.

    `state` holds everything as plain numbers (JSON keeps them bit by bit), the generator's place included, so that
    `filter.stream(state=saved)` goes on with equal results.
    """

    def __init__(self, model: ParticleFilter, state: dict[str, Any] | None = None) -> None:
        self._model = model
        self._rng = generator(model.random_state)
        self._x: FloatArray | None = None
        self._w = np.full(model.n_particles, 1.0 / model.n_particles)
        self.log_likelihood, self.steps = 0.0, 0
        self.effective = float(model.n_particles)
        self._called: set[int] = set()  # with and without controls, as far as checked
        if state is not None:
            x, w, effective, self.log_likelihood, self.steps = saved_numbers(
                state, "particles", "weights", "effective", optional=("particles",)
            )
            if w.shape != self._w.shape or (x is not None and (x.ndim != 2 or len(x) != len(w))) or effective.ndim:
                raise ModelError(f"state has {np.size(w)} particles, but the filter {model.n_particles}.")
            self._x = x
            self._w, self.effective = w, float(effective)
            self._rng = restored_generator(state.get("generator"))

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the stream remembers."""
        return {
            "particles": None if self._x is None else self._x.tolist(),
            "weights": self._w.tolist(),
            "log_likelihood": self.log_likelihood,
            "steps": self.steps,
            "effective": self.effective,
            "generator": plain_generator(self._rng),
        }

    @property
    def particles(self) -> FloatArray:
        """(n, s)."""
        if self._x is None:
            raise ModelError("no observation so far: update(z) takes the first one.")
        return self._x.copy()

    @property
    def weights(self) -> FloatArray:
        """(n,), sum one."""
        return self._w.copy()

    @property
    def mean(self) -> FloatArray:
        """E[x | y so far], (s,)."""
        x = self.particles
        return mean_of(x, self._w, angles_of("angles", self._model.angles, x.shape[1]))

    @property
    def covariance(self) -> FloatArray:
        """Cov[x | y so far], (s, s)."""
        x = self.particles
        gaps = turned(x - self.mean, angles_of("angles", self._model.angles, x.shape[1]))
        return np.asarray((gaps * self._w[:, None]).T @ gaps)

    def update(self, z: Any, *, control: Any = None, now: Any = None) -> FloatArray:
        """Take the next observation (None or NaN where there is none) and return the mean of the state.

        `control` acts on the move to this observation (the first has no move), `now` on what is seen at it, where weigh
        takes a control.
        """
        place = self._rng.bit_generator.state
        try:
            self._take(z, control, now)
        except BaseException:  # whatever a function of the user raises: the stream stays as it was
            self._rng.bit_generator.state = place
            raise
        return self.mean

    def _take(self, z: Any, control: Any, now: Any) -> None:
        x, w = self._x, self._w
        gone = _missing(z)
        first = np.zeros(len(w))  # log p(z | look-ahead) that a particle was chosen by
        if x is None:
            x = _rows("start", self._model.start(len(w), self._rng), len(w))
        else:
            x, w, first = self._chosen(x, w, None if gone else z, control, now)
            extra = () if control is None else (control,)
            if len(extra) not in self._called:
                hint = "" if extra else " Try: controls, one per step."
                check_call("move", self._model.move, ("x", "rng", "u")[: 2 + len(extra)], hint)
                self._called.add(len(extra))
            x = _rows("move", self._model.move(x, self._rng, *extra), len(w))
        if not gone:
            with np.errstate(divide="ignore"):
                logs = np.log(w) + self._weighed(z, x, now) - first
            top = float(logs.max())
            if not np.isfinite(top):
                raise ImpossibleEvidenceError(
                    f"observation {self.steps} has probability zero at all {len(w)} particles. Try: more "
                    f"particles, an auxiliary filter (look_ahead), or heavier tails in weigh. The particles stay as "
                    f"they were."
                )
            new = np.exp(logs - top)
            total = float(new.sum())
            w = new / total
            self.log_likelihood += top + float(np.log(total))
        self._x, self._w = x, w
        self.effective = 1.0 / float(w @ w)
        self.steps += 1

    def _chosen(
        self, x: FloatArray, w: FloatArray, z: Any, control: Any, now: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The particles that move: resampled when few count; for an auxiliary filter by what they look ahead to."""
        n, model = len(w), self._model
        nothing = np.zeros(n)
        if model.look_ahead is not None and z is not None:
            extra = (control,) if model._ahead_takes_control else ()
            hint = self._weighed(z, _rows("look_ahead", model.look_ahead(x, *extra), n), now)
            hint = np.where(np.isfinite(hint), hint, hint[np.isfinite(hint)].min(initial=0.0) - 50.0)
            both = w * np.exp(hint - hint.max())
            total = float(both.sum())
            if total > 0.0:
                pick = systematic(both, n, self._rng.random())
                shift = float(np.log(total)) + float(hint.max())
                # Σ w p(z | x) is estimated by total · mean of p(z | x) / p(z | look-ahead)
                return x[pick], np.full(n, 1.0 / n), hint[pick] - shift
        if 1.0 / float(w @ w) < model.resample_below * n:
            return x[systematic(w, n, self._rng.random())], np.full(n, 1.0 / n), nothing
        return x.copy(), w, nothing  # a move may work in place

    def _weighed(self, z: Any, x: FloatArray, now: Any) -> FloatArray:
        extra = [now if name == "u" else self.steps for name in self._model._weigh_extra]
        logs = np.asarray(self._model.weigh(z, x, *extra), dtype=np.float64)
        if logs.shape != (len(x),) or np.isnan(logs).any() or (logs == np.inf).any():
            raise ModelError(
                f"weigh must give {len(x)} log probabilities, one a particle, finite or -inf; it gives "
                f"{'NaN or inf' if logs.shape == (len(x),) else f'shape {logs.shape}'}."
            )
        return logs


class _LogDensity:
    """log N(gap | 0, S) of rows, over the entries that were observed."""

    def __init__(self, S: FloatArray, name: str) -> None:
        self.S, self.name = S, name

    def __call__(self, gaps: FloatArray, shown: Any) -> FloatArray:
        try:
            L = np.linalg.cholesky(self.S[np.ix_(shown, shown)])
        except np.linalg.LinAlgError:
            raise ModelError(f"{self.name} must be positive definite: its density is needed.") from None
        z = np.linalg.solve(L, gaps[:, shown].T)
        constant = len(L) * np.log(2.0 * np.pi) + 2.0 * np.log(np.diagonal(L)).sum()
        with np.errstate(over="ignore"):  # too far to be seen from here
            return np.asarray(-0.5 * ((z * z).sum(axis=0) + constant))


def _missing(z: Any) -> bool:
    """Whether an observation is None, or numbers that are all NaN."""
    if z is None:
        return True
    try:
        values = np.asarray(z, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return values.size > 0 and bool(np.isnan(values).all())


def _rows(name: str, x: Any, n: int) -> FloatArray:
    values = np.asarray(x, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != n or not np.isfinite(values).all():
        raise ModelError(f"{name} must give {n} rows of finite numbers; it gives shape {values.shape}.")
    return values
