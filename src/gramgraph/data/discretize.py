"""Real columns cut into intervals, with edges that serve again on new data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Self

import numpy as np

from gramgraph._validation import check_count
from gramgraph.data.columns import distinct_values
from gramgraph.data.frames import read_frame
from gramgraph.data.kinds import as_numbers, is_real
from gramgraph.data.mdlp import mdlp_edges
from gramgraph.exceptions import OptionError, VariableError, did_you_mean
from gramgraph.typing import Array, FloatArray

METHODS = ("quantile", "uniform", "mdlp")


class Discretizer:
    """Cuts real columns into `bins` intervals; the other columns stay.

    `method`: "quantile" (about equally many rows in each), "uniform" (equal widths), "mdlp" (cuts that tell the classes
    in the column `target` apart, as many as Fayyad and Irani's description length pays for, at most `bins` - 1), or a
    dict from column to its inner edges, such as `edges_` of another one. Values outside what was seen fall into the
    first or last interval; missing cells stay missing.

    Parameters
    ----------
    bins : number of intervals, at most.
    method : "quantile", "uniform", "mdlp", or a dict from column to its inner edges.
    columns : which columns are cut; None for all that hold real numbers.
    target : the column with the classes, for "mdlp".

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [0.1, 0.2, 0.7, 0.9], "who": ["a", "b", "a", "b"]})
    >>> Discretizer(bins=2).fit_transform(frame)["x"].tolist()
    ['(-inf, 0.45]', '(-inf, 0.45]', '(0.45, inf)', '(0.45, inf)']
    """

    def __init__(
        self,
        bins: int = 5,
        *,
        method: str | Mapping[str, Any] = "quantile",
        columns: list[str] | None = None,
        target: str | None = None,
    ) -> None:
        self.bins = bins
        self.method = method
        self.columns = columns
        self.target = target

    def __repr__(self) -> str:
        cut = ", ".join(f"{name} at {np.size(edges)}" for name, edges in getattr(self, "edges_", {}).items())
        return f"Discretizer({self.bins}, method={self.method!r}" + (f"; cuts {cut} places)" if cut else ")")

    def fit(self, data: Any, weights: Any = None) -> Self:
        """Choose the inner edges of every real column (or of `columns`); a weight counts its row more than once."""
        check_count("bins", self.bins, 2)
        frame = read_frame(data).table
        if isinstance(self.method, Mapping):
            self.edges_ = {name: self._given(name, edges) for name, edges in self.method.items()}
            return self
        if self.method not in METHODS:
            raise OptionError(
                f"method is 'quantile', 'uniform', 'mdlp' or a dict of edges, not {self.method!r}."
                f"{did_you_mean(self.method, METHODS)}"
            )
        if (self.method == "mdlp") != (self.target is not None):
            raise OptionError("method 'mdlp' needs target=…, the column of the classes; the others take none")
        names = self.columns if self.columns is not None else [c for c in frame.columns if _is_real(frame[c])]
        share = np.ones(len(frame)) if weights is None else np.asarray(weights, dtype=np.float64)
        classes = None if self.target is None else self._classes(frame)
        self.edges_ = {name: self._edges(frame, name, share, classes) for name in names if name != self.target}
        return self

    def transform(self, data: Any) -> Any:
        """A pandas frame whose cut columns are ordered categories."""
        import pandas as pd

        frame = read_frame(data).table.copy()
        for name, edges in self.edges_.items():
            values = self._values(frame, name)
            codes = np.searchsorted(edges, values, side="left")
            codes[np.isnan(values)] = -1
            frame[name] = pd.Categorical.from_codes(codes, _labels(edges), ordered=True)
        return frame

    def fit_transform(self, data: Any, weights: Any = None) -> Any:
        """`fit`, then `transform`."""
        return self.fit(data, weights).transform(data)

    def _classes(self, frame: Any) -> Array:
        """The class of every row, -1 where it is missing."""
        assert self.target is not None
        if self.target not in frame.columns:
            raise VariableError.unknown(self.target, [str(c) for c in frame.columns])
        codes, labels = distinct_values(frame[self.target])
        if frame[self.target].dtype.kind == "f" and any(not float(label).is_integer() for label in labels):
            raise VariableError(f"the target {self.target!r} is real-valued; method 'mdlp' needs classes")
        return codes

    def _values(self, frame: Any, name: str) -> FloatArray:
        if name not in frame.columns:
            raise VariableError.unknown(name, [str(c) for c in frame.columns])
        try:
            return as_numbers(frame[name])
        except (TypeError, ValueError):
            raise VariableError(f"column {name!r} does not hold numbers and cannot be cut into intervals") from None

    def _edges(self, frame: Any, name: str, share: FloatArray, classes: Array | None) -> FloatArray:
        values = self._values(frame, name)
        known = np.isfinite(values) & (share > 0)
        values, share = values[known], share[known]
        if not len(values):
            raise VariableError(f"column {name!r} has no finite number from which edges could be chosen")
        if classes is not None:
            codes = classes[known]
            shown = codes >= 0
            return mdlp_edges(values[shown], codes[shown], share[shown], most=self.bins - 1)
        if self.method == "uniform":
            edges = np.linspace(values.min(), values.max(), self.bins + 1)[1:-1]
        else:
            edges = _quantiles(values, share, np.arange(1, self.bins) / self.bins)
        return np.unique(edges[(edges >= values.min()) & (edges < values.max())])

    @staticmethod
    def _given(name: str, edges: Any) -> FloatArray:
        found = np.asarray(edges, dtype=np.float64)
        if found.ndim != 1 or not np.isfinite(found).all() or (np.diff(found) <= 0).any():
            raise OptionError(f"the edges of {name!r} must be finite and increasing, got {edges!r}")
        return found


def _quantiles(values: FloatArray, share: FloatArray, at: FloatArray) -> FloatArray:
    """The smallest values below which at least these shares of the weight lie, and half-way to the next value."""
    order = np.argsort(values, kind="stable")
    found, first = np.unique(values[order], return_index=True)
    below = np.add.reduceat(share[order], first).cumsum()
    place = np.minimum(np.searchsorted(below, at * below[-1] * (1.0 - 1e-12)), len(found) - 1)
    return (found[place] + found[np.minimum(place + 1, len(found) - 1)]) / 2.0


def _is_real(column: Any) -> bool:
    """Numbers of a float column are cut even where they are few whole ones."""
    return getattr(column.dtype, "kind", "O") == "f" or is_real(column)


def _labels(edges: FloatArray) -> list[str]:
    ends = [f"{edge:.6g}" for edge in edges]
    if len(set(ends)) < len(ends):
        ends = [repr(float(edge)) for edge in edges]
    if not ends:
        return ["(-inf, inf)"]
    inner = [f"({low}, {high}]" for low, high in pairwise(ends)]
    return [f"(-inf, {ends[0]}]", *inner, f"({ends[-1]}, inf)"]
