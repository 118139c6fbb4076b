"""Kinds of evidence other than a plain observed state, for use as values of the evidence dict.

>>> Not("HIGH")
Not('HIGH')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramgraph.exceptions import StateError
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

__all__ = ["Likelihood", "Not", "OneOf", "Soft", "weights_of"]


class States:
    __slots__ = ("states",)

    def __init__(self, *states: Any) -> None:
        only = states[0] if len(states) == 1 else None
        self.states = tuple(only) if isinstance(only, (list, tuple, set, frozenset)) else states

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.states))})"


class OneOf(States):
    """The variable is known to be in one of these states; nothing is said about which.

    Parameters
    ----------
    *states : labels that remain.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("d[6]", cpds={"d": [1 / 6] * 6})
    >>> round(net.query("d", {"d": gg.OneOf(2, 4)})["d"].prob(2), 4)
    0.5
    """

    __slots__ = ()


class Not(States):
    """The variable is known not to be in any of these states.

    Parameters
    ----------
    *states : labels that are excluded.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("d[6]", cpds={"d": [1 / 6] * 6})
    >>> round(net.query("d", {"d": gg.Not(0)})["d"].prob(2), 4)
    0.2
    """

    __slots__ = ()


class _Weights:
    __slots__ = ("weights",)

    def __init__(self, weights: Mapping[Any, float] | Sequence[float]) -> None:
        self.weights = weights

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weights!r})"


class Likelihood(_Weights):
    """Virtual evidence: p(observation | state) up to a factor. The belief becomes ∝ belief · weights.

    Parameters
    ----------
    weights : state → p(what was seen | state), up to a factor.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.BayesianNetwork("rain", cpds={"rain": 0.2})
    >>> round(net.query("rain", {"rain": gg.Likelihood({"yes": 4, "no": 1})})["rain"].prob("yes"), 4)
    0.5
    """

    __slots__ = ()


class Soft(_Weights):
    """Jeffrey's evidence: the belief in this variable *becomes* these probabilities; the rest follows.

    Parameters
    ----------
    weights : state → probability after the observation.

    Examples
    --------
    >>> import gramgraph as gg
    >>> net = gg.datasets.asia()
    >>> round(net.query("lung", {"smoke": gg.Soft({"yes": 0.8, "no": 0.2})})["lung"].prob("yes"), 4)
    0.082
    """

    __slots__ = ()


def weights_of(var: Var, value: Any, *, what: str = "likelihood") -> FloatArray:
    """One non-negative weight per state, from a mapping (states left out: 0) or numbers in the order of the states."""
    if isinstance(value, _Weights):
        value = value.weights
    out = np.zeros(var.size)
    if isinstance(value, Mapping):
        for state, weight in value.items():
            out[var.index(state)] = _numbers(var, weight, what)
    else:
        given = np.asarray(_numbers(var, value, what)).reshape(-1)
        if len(given) != var.size:
            labels = ", ".join(var.states)
            raise StateError(f"{what} of {var.name} needs {var.size} numbers ({labels}), got {len(given)}")
        out[:] = given
    if not np.isfinite(out).all() or (out < 0).any() or not out.any():
        raise StateError(f"{what} of {var.name} must be finite, non-negative and not all zero, got {out.tolist()}")
    return out


def _numbers(var: Var, value: Any, what: str) -> Any:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        labels = ", ".join(var.states)
        text = f"{what} of {var.name} is {{state: number}} or {var.size} numbers ({labels}), not {value!r}"
        raise StateError(text) from None


def allowed_weights(var: Var, value: Any) -> FloatArray:
    """0/1 weights of `OneOf`, `Not`, or a collection of allowed labels."""
    labels = value.states if isinstance(value, States) else list(value)
    out = np.zeros(var.size)
    out[[var.index(label) for label in labels]] = 1.0
    if isinstance(value, Not):
        out = 1.0 - out
    if not out.any():
        raise StateError(f"the evidence {value!r} leaves no state of {var.name}. States: {', '.join(var.states)}")
    return out
