"""What a Kalman filter, a smoother and a forecast return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gramgraph.sequences._settled import Repeated
from gramgraph.typing import FloatArray


@dataclass(frozen=True)
class FilteredStates:
    """Moments of p(x_t | y up to t) and of p(x_t | y before t), and log p(y_t | y before t)."""

    means: FloatArray  # (T, s)
    covariances: FloatArray  # (T, s, s)
    predicted_means: FloatArray
    predicted_covariances: FloatArray
    log_likelihoods: FloatArray  # (T,); 0 where nothing was observed

    @property
    def log_likelihood(self) -> float:
        """log p(y)."""
        return float(self.log_likelihoods.sum())


@dataclass(frozen=True)
class SmoothedStates:
    """Moments of p(x_t | all y), and Cov(x_t, x_{t+1} | all y)."""

    means: FloatArray  # (T, s)
    covariances: FloatArray  # (T, s, s)
    cross_covariances: FloatArray  # (T − 1, s, s)
    log_likelihood: float


class _Expanding:
    """Stacks of matrices that mostly repeat one are written out when they are read: O(T s²) memory only then."""

    def __init__(self, stacks: dict[str, Repeated], values: dict[str, Any]) -> None:
        self.__dict__.update(values, _stacks=stacks)

    def stack(self, name: str) -> Repeated:
        """The matrices of this name, not written out."""
        found: Repeated = self.__dict__["_stacks"][name]
        return found

    def __getattr__(self, name: str) -> FloatArray:
        stacks = self.__dict__.get("_stacks", {})
        if name not in stacks:
            raise AttributeError(name)
        self.__dict__[name] = stacks[name].array()
        return self.__dict__[name]  # type: ignore[no-any-return]


class SettledFiltered(_Expanding, FilteredStates):
    """`FilteredStates` of a series whose covariances settled."""


class SettledSmoothed(_Expanding, SmoothedStates):
    """`SmoothedStates` of a series whose covariances settled."""


@dataclass(frozen=True)
class Forecast:
    """Moments of future observations, and a central interval for every number."""

    means: FloatArray  # (h, o)
    covariances: FloatArray  # (h, o, o)
    lower: FloatArray  # (h, o)
    upper: FloatArray
    level: float
    state_means: FloatArray  # (h, s)
    state_covariances: FloatArray  # (h, s, s)
