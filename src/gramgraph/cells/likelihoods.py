"""Likelihoods of the cells of a variable, from what users write."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.cells.axes import Axis, LineAxis
from gramgraph.cells.columns import single, values_of
from gramgraph.evidence import weights_of
from gramgraph.exceptions import OptionError, StateError
from gramgraph.typing import FloatArray


def cell_weights(axis: Axis, how: Any) -> FloatArray:
    """p(observation | cell) up to a factor, (m,): of numbers a function of x, or a noisy reading (value, sd); of states
    and points weights by label or in order, or a function."""
    how = getattr(how, "weights", how)
    if isinstance(axis, LineAxis):
        values = _line_weights(axis, how)
    elif callable(how):
        values = np.array([float(how(axis.value(i))) for i in range(axis.m)])
    else:
        return weights_of(axis.cell_var, how)
    if values.shape != (axis.m,) or not np.isfinite(values).all() or (values < 0.0).any() or not values.any():
        raise OptionError(f"the likelihood of {axis.name!r} must be finite, not negative, and above 0 somewhere.")
    return values


def _line_weights(axis: LineAxis, how: Any) -> FloatArray:
    if isinstance(how, (tuple, list)) and len(how) == 2:
        center = float(axis.read(single(how[0]))[0])
        sd = float(how[1]) if isinstance(how[1], (int, float, np.number)) else 0.0
        if not 0.0 < sd < np.inf:
            raise StateError(f"the noise of the virtual evidence of {axis.name} must be positive, got {how[1]!r}")

        def how(x: FloatArray) -> FloatArray:
            away = np.angle(np.exp(1j * (x - center))) if axis.circle else x - center
            return np.asarray(np.exp(-0.5 * (away / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi)))

    if not callable(how):
        raise OptionError(
            f"the likelihood of {axis.name!r}, a number, is a function of x, or a noisy reading (value, sd): "
            f"virtual_evidence={{{axis.name!r}: lambda x: np.exp(-0.5 * (x - 1.0) ** 2)}}."
        )
    return axis.average(values_of(how, axis.grid_values))[1] / axis.q
