"""What every representation of a Gram matrix offers: apply it, read its diagonal, factor it once, solve many times."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from gramgraph._validation import generator
from gramgraph.exceptions import GramGraphError, ModelError
from gramgraph.typing import Array, FloatArray, RandomState

_T = TypeVar("_T")

logger = logging.getLogger("gramgraph.linalg")

#: Largest jitter, relative to the mean of the diagonal, that `factor()` adds by itself.
MAX_JITTER = 1e-6
#: From this relative size on, jitter is logged as a warning: results may differ visibly.
_NOTICEABLE = 1e-8


class PositiveDefiniteError(GramGraphError, np.linalg.LinAlgError):
    """A matrix that is not positive definite, even with the largest jitter that was allowed.

    Examples
    --------
    >>> from gramgraph.linalg import Dense
    >>> try:
    ...     Dense(np.array([[0.0, 1.0], [1.0, 0.0]])).factor()
    ... except PositiveDefiniteError:
    ...     print("not positive definite")
    not positive definite
    """

    @classmethod
    def after_jitter(cls, what: str, jitter: float, scale: float) -> PositiveDefiniteError:
        """The error when the jitter has reached its limit."""
        return cls(
            f"{what} is not positive definite: its Cholesky factorization breaks down even with {jitter:.1e} added to "
            f"its diagonal (mean of the diagonal {scale:.3g}). Try: add noise (a White kernel or a larger "
            f"regularization), remove or merge duplicate points, rescale the inputs, or check that the kernel is "
            f"positive definite on these inputs; max_jitter=… allows more."
        )


@runtime_checkable
class Factored(Protocol):
    """A positive definite A (n, n) after factorization: A + jitter·I = H Hᵀ. Everything here is cheaper than factoring.

    `jitter` is the largest number that had to be added to an entry of the diagonal, 0 when none was needed.

    Parameters
    ----------
    *args : of a protocol: none.
    **kwargs : of a protocol: none.

    Examples
    --------
    >>> from gramgraph.linalg import Dense
    >>> isinstance(Dense(np.eye(2)).factor(), Factored)
    True
    """

    @property
    def n(self) -> int:
        """Number of rows."""
        ...

    @property
    def jitter(self) -> float:
        """What was added to the diagonal."""
        ...

    @property
    def logdet(self) -> float:
        """log |A|."""
        ...

    @property
    def half_width(self) -> int:
        """Number of columns of H, that is of normal numbers that one draw takes."""
        ...

    def solve(self, B: Array, /) -> FloatArray:
        """A⁻¹ B for B of shape (n,) or (n, q)."""
        ...

    def inverse_diag(self) -> FloatArray:
        """The diagonal of A⁻¹, (n,)."""
        ...

    def half(self, Z: Array, /) -> FloatArray:
        """H Z for Z of shape (half_width,) or (half_width, q): standard normal Z gives draws of N(0, A)."""
        ...


@runtime_checkable
class GramMatrix(Protocol):
    """A symmetric positive (semi)definite matrix A (n, n) in some representation.

    Parameters
    ----------
    *args : of a protocol: none.
    **kwargs : of a protocol: none.

    Examples
    --------
    >>> from gramgraph.linalg import Dense
    >>> isinstance(Dense(np.eye(2)), GramMatrix)
    True
    """

    @property
    def n(self) -> int:
        """Number of rows."""
        ...

    def matvec(self, V: Array, /) -> FloatArray:
        """A V for V of shape (n,) or (n, q)."""
        ...

    def to_dense(self) -> FloatArray:
        """A as an array (n, n)."""
        ...

    def diag(self) -> FloatArray:
        """The diagonal of A, (n,)."""
        ...

    def factor(self, *, max_jitter: float = MAX_JITTER) -> Factored:
        """The factorization; `max_jitter` is relative to the mean of the diagonal."""
        ...


def jitter_levels(
    scale: float, *, eps: float = float(np.finfo(float).eps), limit: float = MAX_JITTER, least: float = 0.0
) -> Iterator[float]:
    """0, then 10 ε·scale growing by powers of ten up to limit·scale; with `least`: that, ten times it, ….

    >>> [f"{level:.0e}" for level in jitter_levels(2.0, limit=1e-13)]
    ['0e+00', '4e-15', '4e-14']
    """
    yield least
    level = least * 10.0 / scale if least > 0.0 else 10.0 * eps
    while level <= limit:
        yield level * scale
        level *= 10.0


def report_jitter(what: str, jitter: float, scale: float) -> None:
    """Log the jitter: as information at the level of rounding, as a warning from 1e-8 of the diagonal on."""
    if jitter > 0.0:
        level = logging.WARNING if jitter > _NOTICEABLE * scale else logging.INFO
        logger.log(level, "%s: added %.1e to the diagonal (mean %.3g) to factor it", what, jitter, scale)


def with_jitter(
    attempt: Callable[[float], _T | None], scale: float, what: str, *, limit: float = MAX_JITTER
) -> tuple[_T, float]:
    """The first success of attempt(jitter) over `jitter_levels`, and that jitter, which is reported.

    >>> with_jitter(lambda jitter: "found" if jitter > 1e-13 else None, 1.0, "An example")[0]
    'found'
    """
    jitter = 0.0
    for jitter in jitter_levels(scale, limit=limit if scale > 0.0 else 0.0):
        found = attempt(jitter)
        if found is not None:
            report_jitter(what, jitter, scale)
            return found, jitter
    raise PositiveDefiniteError.after_jitter(what, jitter, scale)


def sample(factored: Factored, n_samples: int = 1, *, random_state: RandomState = None) -> FloatArray:
    """Draws of N(0, A), one per row: (n_samples, n).

    Parameters
    ----------
    factored : the factor of A.
    n_samples : number of draws.
    random_state : seed, or a generator.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.linalg import Dense
    >>> sample(Dense(np.eye(2)).factor(), 3, random_state=0).shape
    (3, 2)
    """
    rng = generator(random_state)
    Z = rng.standard_normal((n_samples, factored.half_width))
    return factored.half(Z.T).T


def check_square(A: Array, what: str) -> None:
    """A must be a non-empty square matrix."""
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise ModelError(f"{what} must be a square matrix with at least one row; its shape is {A.shape}.")


def check_rows(B: Array, n: int, what: str = "the right-hand side") -> FloatArray:
    """B as floats with n rows."""
    B = np.asarray(B)
    if B.dtype.kind != "f":
        B = B.astype(float)
    if B.ndim not in (1, 2) or B.shape[0] != n:
        raise ModelError(f"{what} must have shape ({n},) or ({n}, q); it has {B.shape}.")
    return B


def check_finite(A: Array, what: str) -> None:
    """Name the first entry that is not a finite number."""
    bad = ~np.isfinite(A)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ModelError(
            f"{what} has {int(bad.sum())} entries that are NaN or infinite, the first at {place}. Try: look for "
            f"missing or infinite values in the inputs and the kernel's parameters."
        )
