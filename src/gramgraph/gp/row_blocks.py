"""Points some rows at a time, and kernels without their noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gramgraph.kernels.inputs import count, take

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

_ROWS = 1024


def row_blocks(X: Any, rows: int = _ROWS) -> Iterator[tuple[slice, Any]]:
    """The points some rows at a time."""
    n = count(X)
    if 0 < n <= rows:
        yield slice(0, n), X
        return
    for start in range(0, n, rows):
        here = slice(start, min(n, start + rows))
        yield here, take(X, here)


def without_noise(kernel: Kernel) -> Kernel | None:
    """The kernel without its `White` terms: the covariance of the latent function. None when nothing is left.

    >>> from gramgraph.kernels import RBF, White
    >>> without_noise(2 * RBF() + White(0.1))
    2 * RBF(length_scale=1)
    """
    from gramgraph.kernels.algebra import Scale, Sum
    from gramgraph.kernels.stationary import White

    if isinstance(kernel, White) or (isinstance(kernel, Scale) and without_noise(kernel.base) is None):
        return None
    if isinstance(kernel, Sum):
        kept = [part for part in (without_noise(term) for term in kernel.terms) if part is not None]
        return None if not kept else kept[0] if len(kept) == 1 else Sum(tuple(kept))
    if isinstance(kernel, Scale):
        base = without_noise(kernel.base)
        return kernel if base is kernel.base or base is None else Scale(kernel.variance, base, fixed=kernel.fixed)
    return kernel
