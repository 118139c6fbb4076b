"""Losses L(t, y) of a target t and a score y: values with their gradients, and the best constant of each.

Losses of margins take t = ±1 (`Exponential`, `Log`, `Hinge`, `ZeroOne`); losses of differences take real targets. Those
with a curvature are boosted by Newton steps, the others by exact line searches in the leaves. `gg.plot.plot_losses`
draws them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramgraph._validation import check_fraction, check_positive
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray

__all__ = [
    "EpsilonInsensitive",
    "Exponential",
    "Hinge",
    "Huber",
    "Log",
    "Loss",
    "Quantile",
    "Squared",
    "ZeroOne",
    "weighted_quantile",
]

_LOG_2 = float(np.log(2.0))


class Loss(ABC):
    """L(t, y): call it for values, `gradient` and `curvature` are derivatives by y, one number per case.

    Examples
    --------
    >>> Squared()([1.0, 2.0], [0.0, 2.5]).tolist()
    [1.0, 0.25]
    """

    #: Whether targets are classes ±1 and the loss depends on t·y alone.
    of_margin: ClassVar[bool] = False
    #: Whether there is a useful second derivative.
    curved: ClassVar[bool] = False

    def __call__(self, t: Any, y: Any) -> FloatArray:
        """The loss of every case."""
        t, y = self._read(t, y)
        return self._value(t, y)

    def gradient(self, t: Any, y: Any) -> FloatArray:
        """∂L/∂y of every case; one of the slopes where there is a corner."""
        t, y = self._read(t, y)
        return self._gradient(t, y)

    def curvature(self, t: Any, y: Any) -> FloatArray:
        """∂²L/∂y² of every case; 0 where the loss is straight."""
        t, y = self._read(t, y)
        return self._curvature(t, y)

    def best_constant(self, t: Any, y: Any = 0.0, weights: Any = None) -> float:
        """A number c for which Σ w L(t, y + c) is least."""
        t, y = self._read(t, y)
        t, y = np.broadcast_arrays(t, y)
        if not t.size:
            raise ModelError("the best constant of no cases is not defined")
        w = np.ones(t.shape) if weights is None else np.asarray(weights, dtype=np.float64)
        return self._best_constant(t, y, w)

    def probability(self, y: Any) -> FloatArray:
        """p(t = 1 | score): the one for which y minimizes the expected loss, where the loss has one."""
        raise ModelError(f"{type(self).__name__} has no probabilities: use Log or Exponential instead")

    @property
    def has_probability(self) -> bool:
        """Whether scores of this loss mean probabilities."""
        return type(self).probability is not Loss.probability

    def _read(self, t: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        t, y = np.asarray(t, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if self.of_margin and not (np.abs(t) == 1.0).all():
            raise ModelError(f"targets of {type(self).__name__} are classes: -1 or 1")
        return t, y

    @abstractmethod
    def _value(self, t: FloatArray, y: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _gradient(self, t: FloatArray, y: FloatArray) -> FloatArray: ...

    def _curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.zeros(np.broadcast(t, y).shape)

    def _best_constant(self, t: FloatArray, y: FloatArray, w: FloatArray) -> float:
        return self._newton(t, y, w)

    def _newton(self, t: FloatArray, y: FloatArray, w: FloatArray, start: float = 0.0) -> float:
        """Damped Newton steps for a convex loss."""
        c = start
        value = float((w * self._value(t, y + c)).sum())
        for _ in range(100):
            slope = float((w * self._gradient(t, y + c)).sum())
            bend = float((w * self._curvature(t, y + c)).sum())
            step = -slope / max(bend, 1e-12 * max(float(w.sum()), 1e-300))
            while True:
                new = float((w * self._value(t, y + c + step)).sum())
                if new <= value or abs(step) < 1e-12 * max(1.0, abs(c)):
                    break
                step /= 2.0
            if not new < value:
                break
            c, value = c + step, new
        return c


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 where t·y ≤ 0, else 0: what classifiers are judged by; it has no slope to descend.

    Examples
    --------
    >>> ZeroOne()([1, -1], [0.3, 0.2]).tolist()
    [0.0, 1.0]
    """

    of_margin: ClassVar[bool] = True

    def _value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return (t * y <= 0.0).astype(np.float64)

    def _gradient(self, t: FloatArray, y: FloatArray) -> FloatArray:
        raise ModelError("the 0-1 loss has no gradient: use Log, Exponential or Hinge instead")

    def _best_constant(self, t: FloatArray, y: FloatArray, w: FloatArray) -> float:
        edges = np.unique(-y)
        tries = np.concatenate(([edges[0] - 1.0], (edges[1:] + edges[:-1]) / 2.0, [edges[-1] + 1.0]))
        return float(tries[np.argmin([(w * self._value(t, y + c)).sum() for c in tries])])


@dataclass(frozen=True)
class Squared(Loss):
    """(t − y)².

    Examples
    --------
    >>> Squared().best_constant([1.0, 2.0, 6.0])
    3.0
    """

    curved: ClassVar[bool] = True

    def _value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return (t - y) ** 2

    def _gradient(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return 2.0 * (y - t)

    def _curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.full(np.broadcast(t, y).shape, 2.0)

    def _best_constant(self, t: FloatArray, y: FloatArray, w: FloatArray) -> float:
        return float((w * (t - y)).sum() / w.sum())


@dataclass(frozen=True)
class Exponential(Loss):
    """exp(−t y), which AdaBoost minimizes; its best score is half the log odds, p = σ(2y).

    Examples
    --------
    >>> Exponential()([1.0, -1.0], 0.0).tolist()
    [1.0, 1.0]
    """

    of_margin: ClassVar[bool] = True
    curved: ClassVar[bool] = True

    def _value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(-t * y)

    def _gradient(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return -t * self._value(t, y)

    def _curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return self._value(t, y)

    def _best_constant(self, t: FloatArray, y: FloatArray, w: FloatArray) -> float:
        # Σ₊ w e^{−y} e^{−c} + Σ₋ w e^{y} e^{c}: half the log of the ratio, with one weak case for each class.
        with np.errstate(divide="ignore"):
            logs = np.log(w) - t * y
        top = logs.max()
        plus, minus = (float(np.exp(logs[t == s] - top).sum()) for s in (1.0, -1.0))
        least = 1e-9 * (plus + minus)
        return 0.5 * float(np.log(max(plus, least)) - np.log(max(minus, least)))

    def probability(self, y: Any) -> FloatArray:
        """σ(2y)."""
        return _sigmoid(2.0 * np.asarray(y, dtype=np.float64))


@dataclass(frozen=True)
class Log(Loss):
    """log₂(1 + exp(−2 t y)): grows only linearly with a wrong score; the best one is half the log odds, p = σ(2y).

    Examples
    --------
    >>> Log()([1.0, -1.0], 0.0).tolist()
    [1.0, 1.0]
    """

    of_margin: ClassVar[bool] = True
    curved: ClassVar[bool] = True

    def _value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, -2.0 * t * y) / _LOG_2

    def _gradient(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return -2.0 * t * _sigmoid(-2.0 * t * y) / _LOG_2

    def _curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        p = _sigmoid(2.0 * y * np.ones_like(t))
        return 4.0 * p * (1.0 - p) / _LOG_2

    def probability(self, y: Any) -> FloatArray:
        """σ(2y)."""
        return _sigmoid(2.0 * np.asarray(y, dtype=np.float64))

    def _best_constant(self, t: FloatArray, y: FloatArray, w: FloatArray) -> float:
        if (t == t.flat[0]).all():  # one class: the score would go to infinity
            return float(t.flat[0]) * 0.5 * float(np.log(1e9))
        return self._newton(t, y, w)


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 − t y), the loss of support vector machines.

    Examples
    --------
    >>> Hinge()([1.0, 1.0, -1.0], [2.0, 0.5, 0.5]).tolist()
    [0.0, 0.5, 1.5]
    """

    of_margin: ClassVar[bool] = True

    def _value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.maximum(0.0, 1.0 - t * y)

    def _gradient(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(t * y < 1.0, -t, 0.0)

    def _best_constant(self, t: FloatArray, y: FloatArray, w: FloatArray) -> float:
        # The slope is −Σ₊ w far to the left and grows by w at every corner t − y.
        return weighted_quantile(t - y, float(w[t > 0].sum() / w.sum()), w)


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """max(0, |t − y| − ε): differences up to ε cost nothing.

    Parameters
    ----------
    epsilon : up to which a difference costs nothing.

    Examples
    --------
    >>> EpsilonInsensitive(0.5)([1.0, 2.0], [1.2, 4.0]).tolist()
    [0.0, 1.5]
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon, zero=True)

    def _value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.maximum(0.0, np.abs(t - y) - self.epsilon)

    def _gradient(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(np.abs(t - y) > self.epsilon, np.sign(y - t), 0.0)

    def _best_constant(self, t: FloatArray, y: FloatArray, w: FloatArray) -> float:
        # Twice the loss is |r − ε| + |r + ε| − 2ε with r = t − y − c: a median of twice as many points.
        r = t - y
        return weighted_quantile(np.concatenate((r - self.epsilon, r + self.epsilon)), 0.5, np.concatenate((w, w)))


@dataclass(frozen=True)
class Huber(Loss):
    """½ (t − y)² up to a difference of delta, from there on delta (|t − y| − delta / 2).

    Parameters
    ----------
    delta : from which on the loss is linear.

    Examples
    --------
    >>> Huber(1.0)([0.0, 0.0], [0.5, 3.0]).tolist()
    [0.125, 2.5]
    """

    delta: float = 1.0
    curved: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive("delta", self.delta)

    def _value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        a = np.abs(t - y)
        return np.where(a <= self.delta, 0.5 * a * a, self.delta * (a - 0.5 * self.delta))

    def _gradient(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.clip(y - t, -self.delta, self.delta)

    def _curvature(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return (np.abs(t - y) <= self.delta).astype(np.float64)

    def _best_constant(self, t: FloatArray, y: FloatArray, w: FloatArray) -> float:
        return self._newton(t, y, w, start=weighted_quantile(t - y, 0.5, w))


@dataclass(frozen=True)
class Quantile(Loss):
    """α (t − y) above and (1 − α)(y − t) below: its best constant is the α-quantile; α = ½ gives half the distance.

    Parameters
    ----------
    alpha : which quantile.

    Examples
    --------
    >>> Quantile(0.9).best_constant([1.0, 2.0, 3.0, 4.0, 5.0])
    5.0
    """

    alpha: float = 0.5

    def __post_init__(self) -> None:
        check_fraction("alpha", self.alpha)

    def _value(self, t: FloatArray, y: FloatArray) -> FloatArray:
        r = t - y
        return np.maximum(self.alpha * r, (self.alpha - 1.0) * r)

    def _gradient(self, t: FloatArray, y: FloatArray) -> FloatArray:
        return np.where(t > y, -self.alpha, np.where(t < y, 1.0 - self.alpha, 0.0))

    def _best_constant(self, t: FloatArray, y: FloatArray, w: FloatArray) -> float:
        return weighted_quantile(t - y, self.alpha, w)


def weighted_quantile(values: FloatArray, q: float, weights: FloatArray) -> float:
    """The smallest value below or at which a share q of the weight lies; halfway to the next where it is met exactly.

    Parameters
    ----------
    values : the numbers.
    q : the share, between 0 and 1.
    weights : of the values; None for equal ones.

    Examples
    --------
    >>> weighted_quantile(np.array([1.0, 2.0, 10.0]), 0.5, np.array([1.0, 1.0, 8.0]))
    10.0
    """
    kept = weights > 0.0
    values, weights = values[kept], weights[kept]
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    goal = q * sums[-1]
    at = int(np.searchsorted(sums, goal * (1.0 - 1e-12), side="left"))
    at = min(at, len(order) - 1)
    here = float(values[order[at]])
    if abs(sums[at] - goal) <= 1e-12 * sums[-1] and at + 1 < len(order):
        return 0.5 * (here + float(values[order[at + 1]]))
    return here


def _sigmoid(x: FloatArray) -> FloatArray:
    from scipy.special import expit

    return np.asarray(expit(x))
