"""Conjugate models: a prior, its likelihood, and everything that learning does to them without an integral."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np

from gramgraph.distributions._check import array, number, weights_of
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray


class ConjugateModel(ABC):
    """p(w | α, ν) ∝ exp(αᵀw − ν A(w)) / F(α, ν) for the parameter w of an exponential family, as a frozen value.

    Data add to the hyper-parameters: α ← α + Σ φ(xᵢ), ν ← ν + n. From F alone come the predictive
    p(x) = h(x) F(α + φ(x), ν + 1) / F(α, ν) and the evidence Π h(xᵢ) · F(α + Σφ, ν + n) / F(α, ν).

    A model gives: `posterior`, `predictive`, `_read`, `_absorb`, `_log_base`, `_scaled`; and
    `log_normalizer` (log F) where that is not the log partition of the posterior.

    Examples
    --------
    >>> from gramgraph.distributions import BetaBernoulli
    >>> coin = BetaBernoulli(1.0, 1.0).update([1, 1, 0])
    >>> coin
    BetaBernoulli(a=3.0, b=2.0)
    >>> round(coin.predictive.p, 12), round(coin.evidence([1]), 12)
    (0.6, 0.6)
    """

    #: Number of axes of one data point.
    event_ndim = 0

    # --- what a model gives ---------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def posterior(self) -> Any:
        """The distribution of the parameter, given all data so far."""

    @property
    @abstractmethod
    def predictive(self) -> Any:
        """The distribution of the next data point, in closed form."""

    @abstractmethod
    def _absorb(self, x: FloatArray, w: FloatArray) -> Self:
        """The model after checked data x (n, …) with weights w (n,)."""

    @abstractmethod
    def _log_base(self, x: FloatArray) -> Any:
        """log h(x) of checked data, (n,) or a number for all."""

    @abstractmethod
    def _scaled(self, factor: float) -> Self:
        """The model with the weight of all that it knows multiplied by the factor."""

    @abstractmethod
    def _read(self, data: Any) -> FloatArray:
        """Data as a checked array (n, …); a single point is a data set of one."""

    # --- what follows ---------------------------------------------------------------------------------------------

    @property
    def log_normalizer(self) -> float:
        """log F of the hyper-parameters."""
        return float(self.posterior.log_partition)

    def update(self, data: Any, *, weights: Any = None, forget: float = 1.0) -> Self:
        """The model updated with more data; forget < 1 discounts what was known before.

        In any number of batches and any order the result is the same (without forgetting). Weights count like
        repetitions. O(n).

        >>> from gramgraph.distributions import GammaPoisson
        >>> GammaPoisson(2.0, 1.0).update([3, 4]).update([5])
        GammaPoisson(shape=14.0, rate=4.0)
        """
        x = self._read(data)
        start = self if forget == 1.0 else self.forget(forget)
        return start._absorb(x, weights_of(weights, len(x))) if len(x) else start

    def forget(self, factor: float, /) -> Self:
        """The model with its effective number of observations multiplied by factor ∈ (0, 1]; best guesses stay.

        >>> from gramgraph.distributions import BetaBernoulli
        >>> BetaBernoulli(8.0, 2.0).forget(0.5)
        BetaBernoulli(a=4.0, b=1.0)
        """
        value = number("forget", factor, low=0.0, high=1.0, closed=True)
        if value == 0.0:
            raise ModelError("forget must be above 0: with nothing left there is no prior.")
        return self._scaled(value)

    def stream(self, batches: Iterable[Any], *, forget: float = 1.0) -> Iterator[Self]:
        """The model after each batch: the same as `update` batch by batch.

        >>> from gramgraph.distributions import BetaBernoulli
        >>> [m.a for m in BetaBernoulli(1.0, 1.0).stream([[1, 1], [0], [1]])]
        [3.0, 3.0, 4.0]
        """
        model = self
        for batch in batches:
            model = model.update(batch, forget=forget)
            yield model

    def log_evidence(self, data: Any, *, weights: Any = None) -> float:
        """log p(data) with the parameter averaged out: Σ log h + log F(after) − log F(before).

        >>> from gramgraph.distributions import BetaBernoulli
        >>> round(float(np.exp(BetaBernoulli(1.0, 1.0).log_evidence([1, 0]))), 12)  # 1/6
        0.166666666667
        """
        x = self._read(data)
        w = weights_of(weights, len(x)) if len(x) else np.zeros(0)
        if not len(x):
            return 0.0
        return float(w @ np.broadcast_to(self._log_base(x), w.shape) + self._log_growth(x, w))

    def evidence(self, data: Any, *, weights: Any = None) -> float:
        """p(data), the exponential of `log_evidence`."""
        return float(np.exp(self.log_evidence(data, weights=weights)))

    def log_predictive(self, x: Any, /) -> Any:
        """log p(x) of each next data point alone, by the generic h(x) F(α + φ(x), ν + 1)/F(α, ν).

        `predictive.log_density(x)` gives the same by a closed form, for many points at once.

        >>> from gramgraph.distributions import GammaPoisson
        >>> model = GammaPoisson(2.0, 1.0)
        >>> bool(np.isclose(model.log_predictive(3), model.predictive.log_density(3)))
        True
        """
        points = self._read(x)
        single = array("x", x).ndim == self.event_ndim
        out = np.array([self.log_evidence(points[i : i + 1]) for i in range(len(points))])
        return float(out[0]) if single else out

    def _log_growth(self, x: FloatArray, w: FloatArray) -> float:
        """log F(after) − log F(before)."""
        return self._absorb(x, w).log_normalizer - self.log_normalizer


def read_points(data: Any, event_shape: tuple[int, ...], what: str) -> FloatArray:
    """Data as (n, *event_shape), finite; one point alone becomes a data set of one."""
    x = array("data", data)
    k = len(event_shape)
    if x.ndim == k:
        x = x[None]
    if x.ndim == 1 and not x.size:
        x = x.reshape((0, *event_shape))
    if x.ndim != k + 1 or x.shape[1:] != event_shape:
        wanted = ", ".join(["n", *map(str, event_shape)])
        raise ModelError(f"data of {what} must have shape ({wanted}{',' if not k else ''}); their shape is {x.shape}.")
    if not np.isfinite(x).all():
        raise ModelError(f"data of {what} must be finite.")
    return x


def refuse(x: FloatArray, bad: Any, what: str) -> None:
    """An error that names the first bad data point."""
    if np.any(bad):
        i = int(np.flatnonzero(bad)[0])
        raise ModelError(f"data must be {what}; data point {i} is {x[i]:g}.")
