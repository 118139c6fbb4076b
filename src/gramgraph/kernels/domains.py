"""Kinds of values and the kernel each one has by default."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._validation import check_positive
from gramgraph.exceptions import ModelError, OptionError, did_you_mean, listing
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.inputs import KernelError, as_points, count
from gramgraph.typing import FloatArray

#: Names of the kinds of values that have a default kernel.
DOMAINS = ("category", "circle", "positive", "real", "set", "sphere", "string", "vector")
_SUBSET = 1000  # points from which distances are taken: half a million pairs fix a median to less than a percent


def median_distance(X: Any, *, scale_columns: bool = False) -> float | FloatArray:
    """The median of |xᵢ − xⱼ| over pairs of different points; 1 where all points are equal.

    At most 1,000 points are looked at, evenly spread over the rows, so that the result is always the same; O(1000² d).
    With `scale_columns` each column is first divided by its standard deviation, and the result has one length a column.

    Parameters
    ----------
    X : points.
    scale_columns : whether columns are divided by their spread.

    Examples
    --------
    >>> median_distance([0.0, 1.0, 3.0])
    2.0
    """
    points = as_points(X)
    if np.abs(points).max(initial=0.0) > 1e150:
        raise ModelError("squares of numbers beyond 1e150 overflow. Try: scale the columns to moderate numbers.")
    if len(points) > _SUBSET:
        points = points[np.linspace(0, len(points) - 1, _SUBSET).astype(np.int64)]
    spread = np.ones(points.shape[1])
    if scale_columns:
        spread = points.std(axis=0)
        spread[~(spread > 1e-12 * np.abs(points).max(axis=0))] = 1.0  # a constant column says nothing
    distances = _pair_distances(points / spread)
    distances = distances[distances > 0.0]
    middle = float(np.median(distances)) if distances.size else 1.0
    return middle * spread if scale_columns else middle


def _pair_distances(X: FloatArray) -> FloatArray:
    from scipy.spatial.distance import pdist

    if len(X) < 2:
        return np.zeros(0)
    return np.asarray(pdist(X), dtype=np.float64)


def domain_of(X: Any) -> str:
    """The domain that values have when none is named: numbers "real" or "vector", all else "category"."""
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    try:
        array = np.asarray(X)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiu":
        if array.dtype.kind == "O" and array.size and all(isinstance(v, (int, float)) for v in array.ravel()[:1000]):
            return "real" if array.ndim == 1 else "vector"
        if array.ndim == 1 and array.size and all(isinstance(v, (set, frozenset)) for v in array[:1000]):
            return "set"
        if array.ndim == 2 and array.shape[1] > 1:
            raise ModelError(
                "columns of several kinds have no default kernel: a row would count as one label. Give a kernel, as "
                'gg.kernels.RBF().on("age") * gg.kernels.Delta().on("city"), or pass the numbers alone.'
            )
        return "category"
    return "real" if array.ndim == 1 or array.shape[1] == 1 else "vector"


def default_kernel(X: Any, domain: str | None = None, *, factor: float = 1.0, scale_columns: bool = False) -> Kernel:
    """The kernel of a domain, with a bandwidth from the data: `factor` × median distance.

    real, vector: RBF; positive: RBF of log x; circle: exp(κ cos(x − x′)) with angles in radians; sphere: exp(κ pᵀq);
    category: 1 where equal; set: 2^|A ∩ B|, normalized; string: common pieces of up to three letters, normalized.
    Without a domain, numbers are real or vectors and everything else is a category.

    Parameters
    ----------
    X : points.
    domain : "real", "circle", … .
    factor : bandwidth in units of the median distance.
    scale_columns : whether columns are divided by their spread.

    Examples
    --------
    >>> default_kernel([0.0, 1.0, 3.0])
    RBF(length_scale=2)
    >>> default_kernel(["a", "b", "a"])
    Delta()
    """
    from gramgraph import kernels

    domain = domain_of(X) if domain is None else domain
    if domain not in DOMAINS:
        raise OptionError(f"{domain!r} is not a domain. Domains: {listing(DOMAINS)}.{did_you_mean(domain, DOMAINS)}")
    check_positive("factor", factor)
    if domain in ("real", "vector"):
        return kernels.RBF(_scaled(median_distance(X, scale_columns=scale_columns), factor))
    if domain == "positive":
        points = as_points(X)
        if points.min(initial=1.0) <= 0.0:
            raise KernelError(f"domain 'positive': expected numbers above 0; the smallest is {points.min()}.")
        return kernels.RBF(_scaled(median_distance(np.log(points)), factor)).warp(np.log)
    if domain == "circle":
        angles = as_points(X)
        chords = median_distance(np.hstack([np.cos(angles), np.sin(angles)]))
        return kernels.Angular(_kappa(chords, factor)).normalized()
    if domain == "sphere":
        directions = as_points(X)
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        return kernels.Directional(
            _kappa(median_distance(directions / np.where(length > 0, length, 1.0)), factor)
        ).normalized()
    if domain == "set":
        return kernels.SetKernel().normalized()
    return kernels.Delta() if domain == "category" else kernels.Spectrum(3, blended=True).normalized()


def _scaled(length: float | FloatArray, factor: float) -> float | FloatArray:
    return length * factor if isinstance(length, np.ndarray) else float(length) * factor


def _kappa(chord: float | FloatArray, factor: float) -> float:
    """κ whose kernel looks like an RBF of this length near its top: exp(−κ |p − q|² / 2)."""
    return float(np.clip(1.0 / (float(chord) * factor) ** 2, 1e-4, 200.0))


def _plain(kernel: Kernel, X: Any) -> Any:
    """A frame of numbers as an array, unless the kernel asks for columns by name."""
    if not hasattr(X, "columns") or not hasattr(X, "to_numpy"):
        return X
    array = X.to_numpy()
    if array.dtype.kind not in "fiub":
        return X
    try:
        kernel.prepare(array)
    except KernelError:
        return X
    return array


def check_pairs(n: int, m: int) -> None:
    """`ModelError` unless there are as many points X as Y."""
    if n != m:
        raise ModelError(f"X and Y are paired row by row: expected equally many points, got {n} and {m}.")


def sample_of(
    X: Any, kernel: Kernel | None, domain: str | None, *, name: str = "X", least: int = 2
) -> tuple[Kernel, Any, int]:
    """The kernel of a sample, the sample as that kernel prepares it, and how many points it has."""
    if kernel is not None and not isinstance(kernel, Kernel):
        raise OptionError(
            f"the kernel of {name} must be a value such as gg.kernels.RBF(0.5), or None; it is {kernel!r}."
        )
    if kernel is not None and domain is not None:
        raise OptionError(f"{name}: give a kernel or a domain, not both; a domain stands for its default kernel.")
    if X is None or isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
        raise ModelError(f"{name}: expected a sample, a list or array with one point a row; got {X!r}.")
    try:
        used = default_kernel(X, domain) if kernel is None else kernel
        points = used.prepare(_plain(used, X))
    except KernelError as error:
        text = str(error)
        raise KernelError(f"{name}{text[1:]}" if text.startswith("X:") else f"{name}: {text}") from None
    n = count(points)
    if n < least:
        raise ModelError(f"{name}: expected at least {least} points, got {n}.")
    return used, points, n
