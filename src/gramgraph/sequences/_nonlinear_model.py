"""What a user gives of a nonlinear state space, checked: functions of rows, covariances, angles, controls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.sequences._calling import check_call, takes_more
from gramgraph.sequences._circle import angles_of
from gramgraph.sequences._state_space import covariance, matrix
from gramgraph.typing import FloatArray, IntArray


class RowFunction:
    """A user's function applied to rows of states, with its result checked; `control` is its second argument."""

    def __init__(self, name: str, function: Callable[..., Any], width: int, vectorized: bool, control: Any) -> None:
        self.name, self.function, self.width, self.vectorized, self.control = name, function, width, vectorized, control

    @property
    def extra(self) -> tuple[Any, ...]:
        """What comes after the state."""
        return () if self.control is None else (self.control,)

    def __call__(self, X: FloatArray) -> FloatArray:
        X = X.copy()  # the function may work in place
        if self.vectorized:
            values = np.asarray(self.function(X, *self.extra), dtype=np.float64)
            values = values[:, None] if values.ndim == 1 and self.width == 1 else values
        else:
            values = np.array([np.asarray(self.function(x, *self.extra), dtype=np.float64).reshape(-1) for x in X])
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
    """x_t = f(x_{t−1}, u_{t−1}) + N(0, Q), y_t = h(x_t, u_t) + N(0, R), x_0 ~ N(m0, P0); controls u where there are."""

    f: Callable[..., Any]
    h: Callable[..., Any]
    Q: FloatArray
    R: FloatArray
    m0: FloatArray
    P0: FloatArray
    vectorized: bool
    angles: IntArray  # places of angles in a state
    y_angles: IntArray  # and in an observation

    @classmethod
    def of(
        cls, f: Any, h: Any, Q: Any, R: Any, m0: Any, P0: Any, vectorized: bool, angles: Any = (), y_angles: Any = ()
    ) -> NonlinearModel:
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
        places = angles_of("angles", angles, s), angles_of("y_angles", y_angles, len(R))
        return cls(f, h, Q, R, m0, P0, bool(vectorized), *places)

    @cached_property
    def h_takes_control(self) -> bool:
        """Whether h(x, u) is meant."""
        return bool(takes_more(self.h, 1))

    def check_calls(self, controlled: bool) -> None:
        """An error where f or h cannot be called as they will be."""
        lacking = " Try: controls, one per step." if not controlled else ""
        check_call("f", self.f, ("x", "u") if controlled else ("x",), lacking)
        check_call("h", self.h, ("x", "u") if controlled and self.h_takes_control else ("x",), lacking)

    def move(self, control: Any = None) -> RowFunction:
        """f of rows."""
        return RowFunction("f", self.f, len(self.m0), self.vectorized, control)

    def look(self, control: Any = None) -> RowFunction:
        """h of rows."""
        return RowFunction("h", self.h, len(self.R), self.vectorized, control if self.h_takes_control else None)


def controls_of(controls: Any, T: int, *, seen: str = "") -> Any:
    """What acts at the steps: controls[t] on the move from t to t + 1, and on what is seen at t; None without.

    The last step is moved from by none: it needs a control only where the function of this name `seen` takes one.
    """
    if controls is None:
        return None
    if len(controls) < T - 1:
        raise ModelError(f"controls must have an entry for each of the {T - 1} moves; it has {len(controls)}.")
    if seen and len(controls) < T:
        raise ModelError(
            f"{seen} takes the control of its step, so that controls must have an entry for each of the {T} "
            f"observations; it has {len(controls)}."
        )
    return controls
