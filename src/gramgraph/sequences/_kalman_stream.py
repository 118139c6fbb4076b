"""The Kalman filter one observation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.sequences._square_root import lower_root
from gramgraph.sequences._state_space import Model
from gramgraph.typing import FloatArray

__all__ = ["KalmanStream"]


class KalmanStream:
    """What a Kalman filter knows between two observations: mean and root of the covariance of the state.

    `state` holds everything as plain numbers (JSON keeps them bit by bit): `filter.stream(state=saved)` goes on exactly
    where it was. `KalmanFilter.stream` makes one.
    """

    def __init__(self, model: Model, state: dict[str, Any] | None = None) -> None:
        if model.varying or model.diffuse:
            raise ModelError("a stream has constant matrices and a given P0.")
        self._model = model
        self._roots = lower_root(model.Q)[None]
        self._mean, self._root = model.m0, lower_root(model.P0)
        self.log_likelihood, self.steps = 0.0, 0
        self._control: FloatArray | None = None
        if state is not None:
            self._mean, self._root = (np.array(state[key], dtype=np.float64) for key in ("mean", "root"))
            if self._mean.shape != model.m0.shape or self._root.shape != model.P0.shape:
                raise ModelError(f"state belongs to a model with {self._mean.size} states, not {len(model.m0)}.")
            self.log_likelihood, self.steps = float(state["log_likelihood"]), int(state["steps"])
            self._control = None if state["control"] is None else np.array(state["control"], dtype=np.float64)

    @property
    def state(self) -> dict[str, Any]:
        """Everything that the stream remembers."""
        return {
            "mean": self._mean.tolist(),
            "root": self._root.tolist(),
            "control": None if self._control is None else self._control.tolist(),
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
        return np.asarray(self._root @ self._root.T)

    def update(self, y: Any, *, control: Any = None) -> FloatArray:
        """Take the next observation (NaN or None where there is none) and return the mean of the state.

        `control` acts on this observation (D) and on the move to the next one (B).
        """
        from gramgraph._numerics.square_root import square_root_filter

        model = self._model
        row = np.full(model.n_outputs, np.nan) if y is None else np.array(y, dtype=np.float64).reshape(-1)
        if row.shape != (model.n_outputs,) or np.isinf(row).any():
            raise ModelError(f"an observation has {model.n_outputs} numbers, NaN where one is missing; got {y!r}.")
        control = self._checked(control)
        if model.D is not None and control is not None:
            row = row - model.D @ control
        first = self.steps == 0
        rows = row[None] if first else np.array([np.full(model.n_outputs, np.nan), row])
        shift = np.zeros((2, model.n_states))
        if model.B is not None and self._control is not None:
            shift[1] = model.B @ self._control
        n, s = len(rows), model.n_states
        means, ahead = np.empty((n, s)), np.empty((n, s))
        roots, ahead_roots, logs = np.empty((n, s, s)), np.empty((n, s, s)), np.empty(n)
        at = np.zeros(n, dtype=np.int64)
        done = square_root_filter(
            model.A[None], self._roots, at, shift, model.H[None], at, model.R[None], at, rows, self._mean, self._root,
            means, roots, ahead, ahead_roots, logs,
        )  # fmt: skip
        if done < n:
            raise ModelError("the covariance of the observation is not positive definite. What helps: add to R.")
        self._mean, self._root, self._control = means[-1].copy(), roots[-1].copy(), control
        self.log_likelihood += float(logs[-1])
        self.steps += 1
        return self.mean

    def _checked(self, control: Any) -> FloatArray | None:
        widths = [M.shape[1] for M in (self._model.B, self._model.D) if M is not None]
        if not widths:
            if control is not None:
                raise ModelError("the model takes no controls: give it B or D.")
            return None
        if control is None:
            raise ModelError("the model has B or D, so that every update needs its control.")
        u = np.array(control, dtype=np.float64).reshape(-1)
        if u.shape != (widths[0],) or not np.isfinite(u).all():
            raise ModelError(f"a control is {widths[0]} finite numbers; got {control!r}.")
        return u
