"""The Kalman filter one observation at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.state_space.square_root import square_root_stream
from gramgraph.exceptions import ModelError
from gramgraph.sequences._reading import one_row, saved_numbers
from gramgraph.sequences._square_root import lower_root
from gramgraph.sequences._state_space import Model, series_of
from gramgraph.typing import FloatArray


class KalmanStream:
    """What a Kalman filter knows between two observations: mean and root of the covariance of the state.

    Every form of the filter streams with roots, which stay positive however long it runs. `update` takes one
    observation, `update_many` an array of them, with the same results and much faster. `state` holds everything as
    plain numbers (JSON keeps them bit by bit): `filter.stream(state=saved)` goes on exactly where it was.
    `KalmanFilter.stream` makes one.
    """

    def __init__(self, model: Model, state: dict[str, Any] | None = None) -> None:
        if model.varying or model.flat is not None:
            raise ModelError("a stream has constant matrices and a given P0.")
        self._model = model
        parts = model.A, lower_root(model.Q), model.H, model.R
        self._A, self._Lq, self._H, self._R = (np.ascontiguousarray(part) for part in parts)
        self._mean, self._root = model.m0.copy(), lower_root(model.P0)
        self.log_likelihood, self.steps = 0.0, 0
        self._control: FloatArray | None = None
        self._shift = np.zeros((1, model.n_states))  # B times the control before
        self._row = np.empty((1, model.n_states))
        if state is not None:
            mean, root, control, self.log_likelihood, self.steps = saved_numbers(
                state, "mean", "root", "control", optional=("control",)
            )
            if mean.shape != self._mean.shape or root.shape != self._root.shape:
                raise ModelError(f"state belongs to a model with {mean.size} states, not {len(model.m0)}.")
            self._mean, self._root = mean, root
            self._moved_by(None if control is None else self._controls(control[None], 1)[0])

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
        row = one_row(y, self._model.n_outputs)
        if control is None and self._control is None and self._model.B is None and self._model.D is None:
            self._take(row, self._shift, self._row)
        else:
            given = None if control is None else np.array(control, dtype=np.float64).reshape(1, -1)
            self._take_controlled(row, self._controls(given, 1), self._row)
        return self._row[0].copy()

    def update_many(self, y: Any, *, controls: Any = None) -> FloatArray:
        """Take observations in a row, (n, o) or (n,), and return the means of the state after each, (n, s).

        If the covariance of one is not positive definite, none is taken.
        """
        rows = series_of(y, self._model.n_outputs)
        out = np.empty((len(rows), self._model.n_states))
        if controls is None and self._model.B is None and self._model.D is None:
            self._take(rows, self._shift, out)
        else:
            self._take_controlled(rows, self._controls(controls, len(rows)), out)
        return out

    def _take_controlled(self, rows: FloatArray, controls: FloatArray, out: FloatArray) -> None:
        model = self._model
        if model.D is not None:
            rows = rows - controls @ model.D.T
        shifts = np.zeros_like(out)
        if model.B is not None:
            shifts[0] = self._shift[0]
            shifts[1:] = controls[:-1] @ model.B.T
        self._take(rows, shifts, out)
        self._moved_by(controls[-1])

    def _moved_by(self, control: FloatArray | None) -> None:
        """The control that acts on the next move."""
        self._control = control
        if self._model.B is not None and control is not None:
            self._shift[0] = control @ self._model.B.T

    def _take(self, rows: FloatArray, shifts: FloatArray, out: FloatArray) -> None:
        done, total = square_root_stream(
            self._A, self._Lq, shifts, self._H, self._R, rows, self.steps == 0, self.log_likelihood, self._mean,
            self._root, out,
        )  # fmt: skip
        if done < len(rows):
            raise ModelError(
                f"the covariance of observation {self.steps + done} is not positive definite. Try: add to R."
            )
        self.log_likelihood = total
        self.steps += len(rows)

    def _controls(self, controls: Any, n: int) -> FloatArray:
        """(n, c), checked."""
        widths = [M.shape[1] for M in (self._model.B, self._model.D) if M is not None]
        if not widths:
            raise ModelError("the model takes no controls: give it B or D.")
        if controls is None:
            raise ModelError("the model has B or D, so that every update needs its control.")
        u = np.array(controls, dtype=np.float64)
        u = u[:, None] if u.ndim == 1 and widths[0] == 1 else u
        if u.shape != (n, widths[0]) or not np.isfinite(u).all():
            raise ModelError(f"a control is {widths[0]} finite numbers, one an observation; got {controls!r}.")
        return u
