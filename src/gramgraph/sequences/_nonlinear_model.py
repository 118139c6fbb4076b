"""What a user gives of a nonlinear state space, checked: functions of rows, covariances, controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.sequences._state_space import covariance, matrix
from gramgraph.typing import FloatArray

__all__ = ["NonlinearModel", "RowFunction", "controls_of"]


class RowFunction:
    """A user's function applied to rows of states, with its result checked; `control` is its second argument."""

    def __init__(self, name: str, function: Callable[..., Any], width: int, vectorized: bool, control: Any) -> None:
        self.name, self.function, self.width, self.vectorized, self.control = name, function, width, vectorized, control

    def __call__(self, X: FloatArray) -> FloatArray:
        extra = () if self.control is None else (self.control,)
        if self.vectorized:
            values = np.asarray(self.function(X, *extra), dtype=np.float64)
            values = values[:, None] if values.ndim == 1 and self.width == 1 else values
        else:
            values = np.array([np.asarray(self.function(x, *extra), dtype=np.float64).reshape(-1) for x in X])
        if values.shape != (len(X), self.width):
            raise ModelError(
                f"{self.name} must give {self.width} numbers for a state; for {len(X)} states its values have shape "
                f"{values.shape}."
            )
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
            raise ModelError(f"{self.name} gives {values[row].tolist()} for the state {X[row].tolist()}.")
        return values


@dataclass(frozen=True)
class NonlinearModel:
    """x_t = f(x_{t−1}) + N(0, Q), y_t = h(x_t) + N(0, R), x_0 ~ N(m0, P0)."""

    f: Callable[..., Any]
    h: Callable[..., Any]
    Q: FloatArray
    R: FloatArray
    m0: FloatArray
    P0: FloatArray
    vectorized: bool

    @classmethod
    def of(cls, f: Any, h: Any, Q: Any, R: Any, m0: Any, P0: Any, vectorized: bool) -> NonlinearModel:
        """From what a user gave, checked."""
        for name, function in (("f", f), ("h", h)):
            if not callable(function):
                raise ModelError(f"{name} must be a function of a state; it is {function!r}.")
        Q, R, P0 = (covariance(name, matrix(name, value)) for name, value in (("Q", Q), ("R", R), ("P0", P0)))
        m0 = np.array(m0, dtype=np.float64).reshape(-1)
        s = len(m0)
        if Q.shape != (s, s) or P0.shape != (s, s) or R.shape[0] != R.shape[1] or not np.isfinite(m0).all():
            raise ModelError(
                f"m0, P0 and Q must have shapes {(s,)}, {(s, s)} and {(s, s)} and R must be square; P0 is {P0.shape}, "
                f"Q {Q.shape}, R {R.shape}."
            )
        return cls(f, h, Q, R, m0, P0, bool(vectorized))

    def move(self, control: Any = None) -> RowFunction:
        """f of rows."""
        return RowFunction("f", self.f, len(self.m0), self.vectorized, control)

    def look(self) -> RowFunction:
        """h of rows."""
        return RowFunction("h", self.h, len(self.R), self.vectorized, None)


def controls_of(controls: Any, T: int) -> Any:
    """What acts between the steps, controls[t] from step t to t + 1; None without."""
    if controls is None:
        return None
    if len(controls) < T - 1:
        raise ModelError(f"controls must have an entry for each of the {T - 1} moves; it has {len(controls)}.")
    return controls
