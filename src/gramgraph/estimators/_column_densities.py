"""Densities of columns given a class: what `NaiveBayesClassifier` takes its columns for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, ConditionalLinearGaussian, KernelConditional
from gramgraph.conditionals.grouped import Grouped
from gramgraph.data.describe import column_kinds
from gramgraph.exceptions import ModelError, OptionError, VariableError, did_you_mean
from gramgraph.machines.checks import LARGEST, scale_the_columns
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Real, Var, real

WAYS = ("gaussian", "kernel", "bins", "counts", "multinomial", "labels")
#: A class's variance of a column is not taken for less than this share of the column's.
_FLOOR = 1e-9


def choose_ways(frame: Any, given: Any, shown: Sequence[str]) -> dict[str, str]:
    """The way of every column x0, x1, … of a frame; `shown` are their names to the user."""
    if given is not None and not isinstance(given, (str, Mapping)):
        raise OptionError(f"columns is None, a word or a dict, not {given!r:.60}")
    kinds = column_kinds(frame)["kind"]
    wanted: dict[str, Any] = {}
    if isinstance(given, Mapping):
        for key, way in given.items():
            at = list(shown).index(str(key)) if str(key) in shown else key
            if not isinstance(at, (int, np.integer)) or not 0 <= at < len(shown):
                raise VariableError.unknown(str(key), tuple(shown))
            wanted[f"x{at}"] = way
    elif given is not None:
        wanted = {name: given for name in frame.columns if kinds[name] in ("real", "integer")}
    for way in (*wanted.values(), *([given] if isinstance(given, str) else [])):
        if way not in WAYS:
            raise OptionError(f"columns are one of {', '.join(WAYS)}, not {way!r}.{did_you_mean(str(way), WAYS)}")
    usual = {"real": "gaussian", "empty": "empty"}
    ways = {name: wanted.get(name, usual.get(kinds[name], "labels")) for name in frame.columns}
    for j, (name, way) in enumerate(ways.items()):
        if kinds[name] == "empty":
            ways[name] = "empty"
        elif way != "labels":
            numbers_of(frame[name], shown[j], way)
    return ways


def numbers_of(column: Any, name: str, way: str) -> FloatArray:
    """The cells as numbers, NaN where there is none; an error where they are not what the way needs."""
    try:
        x = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError):
        raise ModelError(f"column {name!r} does not hold numbers, which columns={way!r} needs") from None
    if way == "gaussian" and np.abs(x[~np.isnan(x)]).max(initial=0.0) > LARGEST:
        raise scale_the_columns(f"column {name!r}: squares of such numbers overflow.", x)
    odd = x < 0.0 if way == "multinomial" else (x < 0.0) | (x != np.floor(x)) & ~np.isnan(x)
    if way in ("counts", "multinomial") and odd.any():
        raise ModelError(f"column {name!r} does not hold counts, 0, 1, 2, …, which columns={way!r} needs")
    return x


def density_of_numbers(
    name: str, x: FloatArray, codes: Array, w: FloatArray | None, label: Var, *, way: str, pseudo_count: float
) -> Conditional:
    """p(column | class) of numbers: Gaussian, a kernel density, or Poisson."""
    if way == "kernel" and w is not None:
        raise ModelError("columns='kernel' takes no weights of rows: use 'gaussian' or 'bins' instead")
    seen = ~np.isnan(x)
    x, at = x[seen], codes[seen]
    w = np.ones(len(x)) if w is None else w[seen]
    k, var = label.size, real(name)
    n = np.bincount(at, w, k)
    total = float(n.sum())
    mean = float(w @ x / total)
    if way == "counts":
        rate = (np.bincount(at, w * x, k) + pseudo_count * mean) / np.maximum(n + pseudo_count, 1e-300)
        return Grouped(var, (label,), "poisson", np.maximum(rate, 1e-9)[:, None])
    if way == "kernel" and len(x) > 1 and np.ptp(x) > 0.0:
        states = np.array(label.states, dtype=object)
        return KernelConditional.fit(Var(name, Real()), (label,), {name: x, label.name: states[at]})
    spread = float(w @ (x - mean) ** 2 / total)
    few = n <= 0.0  # a class without a cell here is as all rows
    means = np.where(few, mean, np.bincount(at, w * x, k) / np.where(few, 1.0, n))
    squares = np.bincount(at, w * (x - means[at]) ** 2, k) / np.where(few, 1.0, n)
    least = _FLOOR * spread + 1e-24 * mean * mean or 1.0
    variance = np.where(few, spread, squares) + least
    return ConditionalLinearGaussian(var, (label,), 0.0, means[:, None], variance[:, None, None])


def multinomial_shares(X: FloatArray, codes: Array, w: FloatArray | None, k: int, pseudo_count: float) -> FloatArray:
    """log of the columns' shares of all counts in each class, (k, columns)."""
    found = np.zeros((k, X.shape[1]))
    np.add.at(found, codes, np.nan_to_num(X) * (1.0 if w is None else w[:, None]))
    found += max(pseudo_count, 1e-10)
    return np.asarray(np.log(found) - np.log(found.sum(axis=1, keepdims=True)))
