"""Mixtures whose columns are independent given the component, each with a family of its own.

A missing cell tells nothing about its column: leaving it out is what EM does exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._numerics.mixtures.statistics import normalize_logs
from gramgraph.distributions._columns import FAMILIES, CategoricalFamily, Family, GaussianFamily
from gramgraph.linalg.floors import FLOOR, GROUP_FLOOR
from gramgraph.machines.mixtures.em import new_weights, weight_penalty
from gramgraph.typing import FloatArray


def make_family(name: str, x: FloatArray, size: int = 0) -> Family:
    """The family of a column with cells x (without gaps)."""
    if name == "categorical":
        return CategoricalFamily(max(size, 1))
    if name == "gaussian":
        variance = float(x.var()) if len(x) else 1.0
        size2 = float((x**2).mean()) if len(x) else 1.0
        return GaussianFamily(GROUP_FLOOR * variance + FLOOR * (size2 or 1.0))
    return FAMILIES[name]()


@dataclass(frozen=True)
class ColumnParameters:
    """Weights (k,) and for each column an array (k, p)."""

    weights: FloatArray
    columns: tuple[FloatArray, ...]


class ColumnRows:
    """Rows for mixtures of independent columns; `Mixture` of `em`."""

    def __init__(
        self, X: FloatArray, w: FloatArray | None, families: Sequence[Family], *, concentration: float, pseudo: float
    ) -> None:
        self.X, self.w, self.families = X, w, families
        self.total = float(len(X) if w is None else w.sum())
        self.concentration, self.pseudo = concentration, pseudo
        self._seen = [None if not np.isnan(x).any() else np.flatnonzero(~np.isnan(x)) for x in X.T]

    def logs(self, parameters: ColumnParameters) -> FloatArray:
        """log π_k + log p(row | k), (n, k)."""
        with np.errstate(divide="ignore"):
            out = np.repeat(np.log(parameters.weights)[None], len(self.X), axis=0)
        for j, (family, theta) in enumerate(zip(self.families, parameters.columns, strict=True)):
            seen = self._seen[j]
            if seen is None:
                out += family.logs(self.X[:, j], theta)
            else:
                out[seen] += family.logs(self.X[seen, j], theta)
        return out

    def expect(self, parameters: ColumnParameters) -> tuple[Any, float]:
        """Responsibilities (n, k), weighted, and the log-likelihood."""
        logs = np.ascontiguousarray(self.logs(parameters).T)
        found = normalize_logs(logs)
        R = logs.T
        if self.w is None:
            return R, float(found.sum())
        return R * self.w[:, None], float(self.w @ found)

    def maximize(self, statistics: FloatArray, before: ColumnParameters | None) -> ColumnParameters:
        """The most probable parameters given weighted responsibilities."""
        R = statistics
        columns = []
        for j, family in enumerate(self.families):
            seen = self._seen[j]
            x, own = (self.X[:, j], R) if seen is None else (self.X[seen, j], R[seen])
            columns.append(family.fit(x, own, None if before is None else before.columns[j], self.pseudo))
        return ColumnParameters(new_weights(R.sum(axis=0), self.concentration), tuple(columns))

    def averages(self, parameters: ColumnParameters) -> list[tuple[FloatArray, FloatArray]]:
        """Expected weights (k,) and sums of moments (k, m) for a total weight of one: of the components, and for each
        column of the cells that are there."""
        R = self.expect(parameters)[0] / self.total
        found = [(R.sum(axis=0), np.zeros((R.shape[1], 0)))]
        for j, family in enumerate(self.families):
            seen = self._seen[j]
            x, own = (self.X[:, j], R) if seen is None else (self.X[seen, j], R[seen])
            found.append((own.sum(axis=0), own.T @ family.moments(x)))
        return found

    def from_averages(
        self, averages: list[tuple[FloatArray, FloatArray]], total: float, before: ColumnParameters
    ) -> ColumnParameters:
        """The most probable parameters where averages stand for rows of this total weight."""
        columns = [
            family.solve(total * n, total * sums, old, self.pseudo)
            for family, (n, sums), old in zip(self.families, averages[1:], before.columns, strict=True)
        ]
        return ColumnParameters(new_weights(total * averages[0][0], self.concentration), tuple(columns))

    def log_prior(self, parameters: ColumnParameters) -> float:
        """Dirichlet densities of weights and tables, up to constants."""
        found = weight_penalty(parameters.weights, self.concentration)
        pairs = zip(self.families, parameters.columns, strict=True)
        return found + sum(family.log_prior(theta, self.pseudo) for family, theta in pairs)

    def from_responsibilities(self, R: FloatArray) -> ColumnParameters:
        """Parameters from shares (n, k)."""
        return self.maximize(R if self.w is None else R * self.w[:, None], None)

    def encoded(self) -> FloatArray:
        """The rows as points for the first guess."""
        return np.concatenate([f.encode(x) for f, x in zip(self.families, self.X.T, strict=True)], axis=1)
