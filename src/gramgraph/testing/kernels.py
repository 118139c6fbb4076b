"""The contract of kernels, as a check that any kernel can be put through."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.kernels.base import Kernel
from gramgraph.kernels.inputs import KernelError, count, take
from gramgraph.typing import FloatArray


def check_kernel(
    kernel: Kernel, X: Any, Y: Any | None = None, *, inputs: bool | None = None, tolerance: float = 1e-6, seed: int = 0
) -> None:
    """Raise `AssertionError` with a sentence where the kernel breaks the contract.

    Checked on the points X (and Y; without it the first half of X against the rest): symmetry, positive definiteness,
    the diagonal, rectangular and block results, `out`, threads and single precision, the pullback against finite
    differences by theta and (`inputs`; None: where they are float matrices that may move freely, which rows of
    probabilities may not, or tuples of parts some of which are) by the points, with_theta and its inverse, fixing,
    and printing.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    Y : second points; None splits X.
    inputs : whether gradients by the points are checked; None where the kernel has them.
    tolerance : of the comparisons.
    seed : of the random numbers.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> check_kernel(RBF(), [[0.0, 1.0], [2.0, 0.5], [1.0, 1.0]])
    """
    n = count(X)
    assert n >= 2, "check_kernel needs at least two points."
    rng = np.random.default_rng(seed)
    first, rest = take(X, slice(0, n // 2)), take(X, slice(n // 2, n))
    if inputs is None:
        inputs = any(_is_numeric(part) for part in X) if isinstance(X, tuple) else _is_numeric(X)
        inputs = inputs and _may_move(kernel, X)
    _check_values(kernel, X, tolerance)
    _check_parts(kernel, X, first, rest)
    _check_theta(kernel, X)
    pairs = [(X, None), (first, rest)] + ([] if Y is None else [(X, Y)])
    for left, right in pairs:
        _check_pullback(kernel, left, right, inputs, tolerance, rng)
    assert repr(kernel) and str(kernel), f"{type(kernel).__name__} prints as nothing."


def _check_values(kernel: Kernel, X: Any, tolerance: float) -> None:
    K = kernel.gram(X)
    n = count(X)
    assert K.shape == (n, n) and K.dtype == np.float64, (
        f"gram(X): expected float64 ({n}, {n}), got {K.dtype} {K.shape}."
    )
    size = max(1.0, float(np.abs(K).max()))
    assert np.abs(K - K.T).max() <= 1e-12 * size, f"gram(X) of {kernel} is not symmetric."
    assert np.allclose(np.diag(K), kernel.diag(X), rtol=1e-10, atol=1e-12), f"diag of {kernel} is not that of gram(X)."
    if kernel.positive_definite:
        low = float(np.linalg.eigvalsh(K)[0])
        assert low >= -1e-9 * size * n, f"gram(X) of {kernel} has the eigenvalue {low:g}: not positive definite."
    K[:] = 0.0
    assert kernel.gram(X).any() or not kernel.diag(X).any(), f"gram of {kernel} returns a matrix it keeps."


def _check_parts(kernel: Kernel, X: Any, first: Any, rest: Any) -> None:
    K, cut = kernel.gram(X), count(first)
    mixed = kernel.gram(first, rest)
    assert mixed.shape == (cut, count(rest)), f"gram(X, Y): expected ({cut}, {count(rest)}), got {mixed.shape}."
    assert np.allclose(mixed, K[:cut, cut:], rtol=1e-9, atol=1e-10), f"gram(X, Y) of {kernel} is not part of gram(X)."
    assert np.allclose(kernel.gram(rest, first), mixed.T, rtol=1e-9, atol=1e-10), f"{kernel}: k(x, y) ≠ k(y, x)."
    again = kernel.gram_columns(first, kernel.prepare_columns(rest))
    assert np.allclose(again, kernel.gram(first, rest), rtol=1e-9, atol=1e-10), f"gram_columns of {kernel} is not gram."
    for rows, block in kernel.blocks(X, rows=2):
        assert np.allclose(block, K[rows], rtol=1e-9, atol=1e-10), f"blocks of {kernel} differ from gram(X)."
    for left, right, wanted in ((X, None, K), (first, rest, mixed)):
        out = np.full(wanted.shape, np.nan)
        assert kernel.gram(left, right, out=out, n_jobs=2) is out, f"gram(…, out=…) of {kernel} is another matrix."
        assert np.allclose(out, wanted, rtol=1e-9, atol=1e-10), f"gram(…, out=…) of {kernel} differs from gram."
        single = kernel.gram(left, right, dtype=np.float32)
        assert single.dtype == np.float32, f"gram(…, dtype=float32) of {kernel} is {single.dtype}."
        assert np.allclose(single, wanted, rtol=1e-6, atol=1e-9), f"gram(…, dtype=float32) of {kernel} differs."


def _check_theta(kernel: Kernel, X: Any) -> None:
    theta = kernel.theta
    p = len(theta)
    assert theta.shape == (p,) and kernel.bounds.shape == (p, 2) and len(kernel.parameter_names) == p, (
        f"{kernel}: theta {theta.shape}, bounds {kernel.bounds.shape} and {len(kernel.parameter_names)} names differ."
    )
    moved = kernel.with_theta(theta + 0.01)
    assert np.allclose(moved.theta, theta + 0.01, rtol=1e-10, atol=1e-10), f"{kernel}: with_theta(t).theta is not t."
    assert np.array_equal(theta, kernel.theta), f"{kernel} changed by with_theta."
    assert np.allclose(kernel.with_theta(theta).gram(X), kernel.gram(X), rtol=1e-9), (
        f"{kernel}: with_theta(theta) differs."
    )
    assert len(kernel.fix().theta) == 0 if p else True, f"{kernel}: fix() leaves parameters in theta."


def _check_pullback(
    kernel: Kernel, X: Any, Y: Any | None, inputs: bool, tolerance: float, rng: np.random.Generator
) -> None:
    K, pull = kernel.pullback(X, Y, inputs=inputs)
    assert np.allclose(K, kernel.gram(X, Y), rtol=1e-10, atol=1e-12), f"{kernel}: K of pullback is not gram."
    bar_K = rng.standard_normal(K.shape)
    found = pull(bar_K)
    theta = kernel.theta
    scale = 1.0 + float(np.abs(K).max())

    def loss(points: Any, others: Any, at: Kernel = kernel) -> float:
        return float(np.vdot(bar_K, at.gram(points, others)))

    h = 1e-5
    wanted = np.array(
        [(loss(X, Y, kernel.with_theta(theta + h * e)) - loss(X, Y, kernel.with_theta(theta - h * e))) / (2 * h)
         for e in np.eye(len(theta))]
    )  # fmt: skip
    _compare(found.theta, wanted.reshape(theta.shape), tolerance * scale, f"{kernel}: pull(bar_K).theta")
    if not inputs:
        assert found.X is None and found.Y is None, f"{kernel}: gradients by inputs that nobody asked for."
        return
    assert found.X is not None, f"{kernel}: inputs=True gave no gradient by X."
    _compare(found.X, _slopes(_numbers(X), lambda Z: loss(_like(Z, X), Y)), tolerance * scale, f"{kernel}: pull().X")
    if Y is not None:
        assert found.Y is not None, f"{kernel}: inputs=True gave no gradient by Y."
        slopes = _slopes(_numbers(Y), lambda Z: loss(X, _like(Z, Y)))
        _compare(found.Y, slopes, tolerance * scale, f"{kernel}: pull().Y")


def _is_numeric(part: Any) -> bool:
    try:
        return isinstance(part, (list, np.ndarray)) and np.asarray(part).dtype.kind == "f"
    except ValueError:  # points of several lengths, such as graphs
        return False


def _may_move(kernel: Kernel, X: Any) -> bool:
    """Whether the kernel takes points that are a little off those given, as differences need them."""
    try:
        kernel.diag(_like(_numbers(X) + 1e-5, X))
    except KernelError:
        return False
    return True


def _numbers(X: Any) -> FloatArray:
    """The numbers of the points as one matrix; of points with parts those of the parts that are numbers."""
    parts = [np.asarray(x, dtype=np.float64) for x in X if _is_numeric(x)] if isinstance(X, tuple) else [np.asarray(X)]
    return np.hstack([(part[:, None] if part.ndim == 1 else part).astype(np.float64) for part in parts])


def _like(Z: FloatArray, X: Any) -> Any:
    """Points in the form of X with the numbers Z."""
    if not isinstance(X, tuple):
        return Z[:, 0] if np.ndim(X) == 1 else Z
    out, used = [], 0
    for part in X:
        if not _is_numeric(part):
            out.append(part)
            continue
        width = 1 if np.ndim(part) == 1 else np.shape(part)[1]
        columns = Z[:, used : used + width]
        out.append(columns[:, 0] if np.ndim(part) == 1 else columns)
        used += width
    return tuple(out)


def _slopes(A: FloatArray, loss: Any, h: float = 1e-5) -> FloatArray:
    out = np.empty_like(A)
    for at in np.ndindex(A.shape):
        up, down = A.copy(), A.copy()
        up[at] += h
        down[at] -= h
        out[at] = (loss(up) - loss(down)) / (up[at] - down[at])
    return out


def _compare(found: FloatArray, wanted: FloatArray, tolerance: float, what: str) -> None:
    assert found.shape == wanted.shape, f"{what}: expected shape {wanted.shape}, got {found.shape}."
    if found.size:
        gap = float((np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted))).max())
        assert gap <= tolerance, f"{what} differs from finite differences by {gap:.2g} (allowed {tolerance:.2g})."
