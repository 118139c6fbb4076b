"""Images as grids, on arrays: binary denoising by propagation of one number per message, and bounded labellings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.engines.approximate import between, one_of, whole
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.typing import Array, FloatArray, IntArray

KINDS = ("potts", "linear", "quadratic")


@dataclass(frozen=True, eq=False)
class Denoised:
    """A binary image behind a noisy one, with how sure each pixel is and how the propagation went."""

    image: Array  # (rows, cols) True where the pixel is on
    log_odds: FloatArray  # (rows, cols) of the pixel being on; of max-marginals at temperature 0
    log_score: float  # J Σ x_s x_t + Σ h_s x_s of the image: log p(image, data) without constants
    converged: bool
    residuals: FloatArray  # largest move of a message in every sweep

    @property
    def sweeps(self) -> int:
        """Sweeps that were made."""
        return len(self.residuals)


def denoise(
    image: Any,
    coupling: Any = 1.0,
    flip_probability: Any = 0.1,
    *,
    temperature: float = 0.0,
    damping: float = 0.0,
    max_iter: int = 100,
    tol: float = 1e-3,
) -> Denoised:
    """The most probable clean image behind a binary one whose pixels were flipped with `flip_probability`.

    p(x | y) ∝ exp(J Σ_st x_s x_t) Π_s p(y_s | x_s) over neighbors s, t, as `gg.models.denoising_grid` builds it, but
    straight on arrays: max-product (temperature 0), sum-product (temperature 1, the image is then the more probable
    state of each pixel) or between. `coupling` is one number or a pair of arrays, (rows, cols−1) and (rows−1, cols);
    `flip_probability` one number or one a pixel. Cost: O(pixels) a sweep.

    Parameters
    ----------
    image : two values, (rows, columns).
    coupling : J, how strongly neighbors agree.
    flip_probability : chance that a pixel was changed.
    temperature : 0 for max-product, 1 for sum-product.
    damping : share of the old message in a new one.
    max_iter, tol : the most sweeps, and the change of messages at which they end.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> noisy = np.zeros((8, 8), bool)
    >>> noisy[2:6, 2:6] = True
    >>> noisy[3, 3], noisy[0, 7] = False, True
    >>> clean = gg.denoise(noisy, coupling=0.8)
    >>> int((clean.image != noisy).sum()), clean.converged
    (2, True)
    """
    from gramgraph._numerics.messages.grids import spin_modes, spin_sweeps

    spins = _spins(image)
    rows, cols = spins.shape
    flip = np.asarray(flip_probability, np.float64)
    if not ((flip > 0) & (flip < 1)).all():
        raise OptionError(f"flip_probability lies between 0 and 1, not {flip_probability!r}")
    field = np.ascontiguousarray(_shaped(0.5 * np.log((1 - flip) / flip), (rows, cols), "flip_probability") * spins)
    right, below = _weights(coupling, rows, cols, "coupling")
    if not 0.0 <= float(temperature) < np.inf:
        raise OptionError(f"temperature is a number from 0 (max-product) on, 1 is sum-product, not {temperature!r}")
    limit = whole("max_iter", max_iter)
    messages, residuals = np.zeros((4, rows, cols)), np.zeros(limit)
    made, done = spin_sweeps(
        field, right, below, float(temperature), between("damping", damping, 0.0, 1.0), limit, float(tol), messages,
        residuals,
    )  # fmt: skip
    odds = field + messages.sum(axis=0)
    out = np.where(odds == 0, spins, np.where(odds > 0, 1.0, -1.0))
    if temperature == 0:
        spin_modes(field, right, below, out, 100)
    score = (field * out).sum() + (right * out[:, 1:] * out[:, :-1]).sum() + (below * out[1:] * out[:-1]).sum()
    return Denoised(out > 0, 2.0 * odds, float(score), bool(done), residuals[:made].copy())


def _spins(image: Any) -> FloatArray:
    pixels = np.asarray(image, np.float64)
    low, high = pixels.min(initial=1.0), pixels.max(initial=0.0)
    if pixels.ndim != 2 or not pixels.size or not ((pixels == low) | (pixels == high)).all() or high > 1 or low < -1:
        raise ModelError("a binary image is needed: two axes, and pixels 0/1, true/false or -1/+1")
    return np.where(pixels > 0, 1.0, -1.0)


def _shaped(values: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    try:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(values, np.float64), shape))
    except ValueError:
        raise ModelError(f"{what} is one number or an array of shape {shape}, not {np.shape(values)}") from None


def _weights(given: Any, rows: int, cols: int, what: str) -> tuple[FloatArray, FloatArray]:
    """Numbers of the edges along rows and along columns."""
    along, down = given if isinstance(given, tuple | list) else (given, given)
    return _shaped(along, (rows, cols - 1), f"{what} along rows"), _shaped(
        down, (rows - 1, cols), f"{what} along columns"
    )


@dataclass(frozen=True, eq=False)
class GridLabels:
    """A label for every pixel, its cost, and a bound below which no labelling can be."""

    labels: IntArray  # (rows, cols)
    cost: float
    bound: float
    costs: FloatArray  # of the labelling after each sweep
    bounds: FloatArray

    @property
    def gap(self) -> float:
        """How much cheaper any other labelling can be."""
        return max(self.cost - self.bound, 0.0)


def label_grid(
    costs: Any,  # (rows, cols, labels)
    smoothness: Any = 1.0,
    *,
    kind: str = "linear",
    truncation: float = np.inf,
    max_iter: int = 50,
    tol: float = 1e-6,
) -> GridLabels:
    """Labels of a grid with least Σ_s costs[s, x_s] + Σ_st w_st min(d(x_s, x_t), truncation): stereo, gray images.

    d is |x − y| ("linear"), (x − y)² ("quadratic") or [x ≠ y] ("potts"); w is one number or a pair of arrays,
    (rows, cols−1) and (rows−1, cols). Sequential reweighted messages (TRW-S), whose bound only rises; it ends when the
    bound moves by less than `tol` of the gap. Cost: O(pixels · labels) a sweep, by distance transforms.

    Parameters
    ----------
    costs : (rows, columns, labels).
    smoothness : w, one number or a pair of arrays.
    kind : d, "linear", "quadratic" or "potts".
    truncation : the largest d that counts.
    max_iter, tol : the most sweeps, and when the bound has settled.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> seen = np.array([[0, 0, 3, 0], [0, 1, 0, 0], [4, 4, 4, 4]])
    >>> found = gg.label_grid(np.abs(seen[..., None] - np.arange(5)), 0.6, truncation=2)
    >>> found.labels.tolist(), bool(found.gap < 1e-9)
    ([[0, 0, 0, 0], [0, 0, 0, 0], [4, 4, 4, 4]], True)
    """
    from gramgraph._numerics.messages import grids as grid

    table = np.ascontiguousarray(costs, np.float64)
    if table.ndim != 3 or not table.size or not np.isfinite(table).all():
        raise ModelError(f"costs are finite numbers, (rows, cols, labels), not an array of shape {table.shape}")
    rows, cols, n = table.shape
    right, below = _weights(smoothness, rows, cols, "smoothness")
    if min(right.min(initial=0.0), below.min(initial=0.0)) < 0:
        raise OptionError("smoothness must not be negative")
    which = KINDS.index(one_of("kind", kind, KINDS))
    cut = float(truncation)
    if not cut > 0:
        raise OptionError(f"truncation is a number above 0, not {truncation!r}")
    cut = min(cut, {"potts": 1.0, "linear": n - 1.0, "quadratic": (n - 1.0) ** 2}[kind]) if n > 1 else 1.0
    term = (table, right, below, which, cut)
    messages, labels = np.zeros((4, rows, cols, n)), np.zeros((rows, cols), np.int64)
    best, best_cost, made, bounds = labels, np.inf, [], []
    for _ in range(whole("max_iter", max_iter)):
        grid.label_sweep(*term, messages, False)
        grid.label_sweep(*term, messages, True)
        grid.label_choice(*term, messages, labels)
        made.append(float(grid.label_cost(*term, labels)))
        bounds.append(float(grid.label_bound(*term, messages)))
        if made[-1] < best_cost:
            best, best_cost = labels.copy(), made[-1]
        gap = best_cost - max(bounds)
        if gap <= 1e-12 * max(abs(best_cost), 1.0) or (len(bounds) > 1 and bounds[-1] - bounds[-2] <= tol * gap):
            break
    return GridLabels(best, best_cost, min(max(bounds), best_cost), np.array(made), np.array(bounds))
