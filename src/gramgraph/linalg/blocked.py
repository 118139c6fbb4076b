"""Cholesky factors and inverses of large dense matrices by halves, in place.

LAPACK's own `potrf` and `trtri` spend much of their time in triangular solves, which run at half the speed of matrix
products. Here the matrix is cut in two again and again, down to leaves of 128 rows: nearly all operations are products
(`gemm`, `syrk`, `trmm`) of large blocks. The blocks are parts of one matrix, which the array interface of BLAS cannot
take without copies, so that the routines are called by their addresses.

Large products are cut in parts that are made at the same time where threads are to spare (`_threads.spare_threads`).
They are cut in the same way where none are, so that the numbers do not depend on it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from gramgraph._threads import at_once
from gramgraph.typing import FloatArray

BLOCKED = 600  # rows from which on halves are quicker than LAPACK
_LEAF = 128
_WIDE_LEAF = 256
_CUT = 256  # rows or columns from which on a product is made in two parts

_ARGUMENTS = {"dgemm": 13, "dsyrk": 10, "dtrmm": 11, "dtrsm": 11, "dpotrf": 5, "dtrtri": 6, "dlauum": 5}


@lru_cache(maxsize=1)
def _routines() -> dict[str, Callable[..., None]] | None:
    """BLAS and LAPACK by address; None where SciPy's integers have not the size that is expected."""
    from scipy.linalg import cython_blas, cython_lapack

    api = ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    found: dict[str, Callable[..., None]] = {}
    for name, size in _ARGUMENTS.items():
        capsule = (cython_blas if name in cython_blas.__pyx_capi__ else cython_lapack).__pyx_capi__[name]
        signature = name_of(capsule)
        kinds = [part.strip(" )") for part in signature.decode().split("(", 1)[1].split(",")]
        if len(kinds) != size or not {"char *", "int *"}.issuperset(k for k in kinds if not k.endswith("_d *")):
            return None
        address = pointer_of(capsule, signature)
        found[name] = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * size)(address)
    return found


def _char(value: bytes) -> Any:
    return ctypes.byref(ctypes.c_char(value))


def _int(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _real(value: float) -> Any:
    return ctypes.byref(ctypes.c_double(value))


@dataclass(frozen=True, eq=False)
class _Halves:
    """The lower triangle of a C-ordered matrix: for BLAS the upper one U of a Fortran-ordered matrix, A = Uᵀ U."""

    run: dict[str, Callable[..., None]]
    base: int  # address of the first entry
    n: int
    leaves: FloatArray | None  # (n / leaf, leaf, leaf): inverses of the diagonal blocks

    def at(self, row: int, column: int) -> int:
        """Address of an entry of U."""
        return self.base + 8 * (row + column * self.n)

    def _two(
        self, side: bytes, trans: bytes, scale: float, tri: int, ld: int, rows: int, to: int, columns: int
    ) -> None:
        """B ← scale · T B or scale · B T, T a triangle; columns of the first and rows of the second stand alone."""

        def part(rows: int, to: int, columns: int) -> None:
            self.run["dtrmm"](
                _char(side), _char(b"U"), _char(trans), _char(b"N"), _int(rows), _int(columns), _real(scale), tri,
                _int(ld), to, _int(self.n),
            )  # fmt: skip

        if side == b"L":
            at_once(*(partial(part, rows, to + 8 * self.n * a, b - a) for a, b in _parts(columns)))
        else:
            at_once(*(partial(part, b - a, to + 8 * a, columns) for a, b in _parts(rows)))

    def _square(self, trans: bytes, scale: float, rows: int, inner: int, of: int, to: int) -> None:
        """C ← C + scale · (BᵀB or B Bᵀ), one triangle."""
        step = 8 * self.n if trans == b"T" else 8  # from a row of the product to the next

        def corner(a: int, b: int) -> None:
            self.run["dsyrk"](
                _char(b"U"), _char(trans), _int(b - a), _int(inner), _real(scale), of + step * a, _int(self.n),
                _real(1.0), to + 8 * a * (self.n + 1), _int(self.n),
            )  # fmt: skip

        def across(h: int) -> None:
            other = b"N" if trans == b"T" else b"T"
            self.run["dgemm"](
                _char(trans), _char(other), _int(h), _int(rows - h), _int(inner), _real(scale), of, _int(self.n),
                of + step * h, _int(self.n), _real(1.0), to + 8 * h * self.n, _int(self.n),
            )  # fmt: skip

        def both(h: int) -> None:
            corner(0, h)
            corner(h, rows)

        parts = _parts(rows)
        if len(parts) == 1:
            corner(0, rows)
        else:
            h = parts[1][0]
            at_once(partial(across, h), partial(both, h))

    def factor(self, o: int, n: int) -> int:
        """U of the block of n rows at o; 0, or the number of the pivot that is not positive."""
        if n <= (_LEAF if self.leaves is not None else _WIDE_LEAF):
            info = ctypes.c_int(0)
            self.run["dpotrf"](_char(b"U"), _int(n), self.at(o, o), _int(self.n), ctypes.byref(info))
            return o + info.value if info.value else 0
        h = _half(n)
        bad = self.factor(o, h)
        if bad:
            return bad
        if self.leaves is not None:
            self._invert_leaves(o, h)
        at_once(*(partial(self._solve, o, h, self.at(o, o + h + a), b - a) for a, b in _parts(n - h)))
        self._square(b"T", -1.0, n - h, h, self.at(o, o + h), self.at(o + h, o + h))
        return self.factor(o + h, n - h)

    def _invert_leaves(self, o: int, n: int) -> None:
        """Inverses of the diagonal blocks of these rows, as far as they were not made before."""
        if n > _LEAF:
            h = _half(n)
            self._invert_leaves(o + h, n - h)
            return
        assert self.leaves is not None
        leaf = self.leaves[o // _LEAF]
        part = np.ctypeslib.as_array((ctypes.c_double * (self.n * (n - 1) + n)).from_address(self.at(o, o)))
        leaf[:n, :n] = np.lib.stride_tricks.as_strided(part, (n, n), (8 * self.n, 8))
        info = ctypes.c_int(0)
        self.run["dtrtri"](_char(b"U"), _char(b"N"), _int(n), leaf.ctypes.data, _int(_LEAF), ctypes.byref(info))

    def _solve(self, o: int, n: int, to: int, columns: int) -> None:
        """B ← U⁻ᵀ B for the triangle of n rows at o."""
        if n <= (_LEAF if self.leaves is not None else _LEAF // 2):
            if self.leaves is not None:
                self._two(b"L", b"T", 1.0, self.leaves[o // _LEAF].ctypes.data, _LEAF, n, to, columns)
            else:
                self.run["dtrsm"](
                    _char(b"L"), _char(b"U"), _char(b"T"), _char(b"N"), _int(n), _int(columns), _real(1.0),
                    self.at(o, o), _int(self.n), to, _int(self.n),
                )  # fmt: skip
            return
        h = _half(n) if n > _LEAF else n // 2
        self._solve(o, h, to, columns)
        self.run["dgemm"](
            _char(b"T"), _char(b"N"), _int(n - h), _int(columns), _int(h), _real(-1.0), self.at(o, o + h), _int(self.n),
            to, _int(self.n), _real(1.0), to + 8 * h, _int(self.n),
        )  # fmt: skip
        self._solve(o + h, n - h, to + 8 * h, columns)

    def invert(self, o: int, n: int) -> None:
        """U ← U⁻¹ for the block of n rows at o."""
        if n <= _LEAF:
            info = ctypes.c_int(0)
            self.run["dtrtri"](_char(b"U"), _char(b"N"), _int(n), self.at(o, o), _int(self.n), ctypes.byref(info))
            return
        h = _half(n)
        at_once(partial(self.invert, o, h), partial(self.invert, o + h, n - h))
        self._two(b"L", b"N", -1.0, self.at(o, o), self.n, h, self.at(o, o + h), n - h)
        self._two(b"R", b"N", 1.0, self.at(o + h, o + h), self.n, h, self.at(o, o + h), n - h)

    def square(self, o: int, n: int) -> None:
        """The upper triangle of U Uᵀ for the block of n rows at o."""
        if n <= _WIDE_LEAF:
            info = ctypes.c_int(0)
            self.run["dlauum"](_char(b"U"), _int(n), self.at(o, o), _int(self.n), ctypes.byref(info))
            return
        h = _half(n)
        self.square(o, h)
        self._square(b"N", 1.0, h, n - h, self.at(o, o + h), self.at(o, o))
        self._two(b"R", b"T", 1.0, self.at(o + h, o + h), self.n, h, self.at(o, o + h), n - h)
        self.square(o + h, n - h)


def _half(n: int) -> int:
    """Rows of the first half: whole leaves."""
    return -(-n // _LEAF) // 2 * _LEAF


def _parts(n: int) -> list[tuple[int, int]]:
    """Where the parts of so many rows or columns begin and end: one part, or two."""
    h = n // 16 * 8
    return [(0, n)] if n < _CUT else [(0, h), (h, n)]


def _suits(A: FloatArray) -> bool:
    return A.dtype == np.float64 and A.flags.c_contiguous and A.flags.writeable and len(A) >= BLOCKED


def blocked_cholesky(A: FloatArray, *, well_conditioned: bool = False) -> int | None:
    """Turn the lower triangle of A into its Cholesky factor; None when A is too small or not of the right kind.

    The answer is 0, or the number (from 1) of the first pivot that is not positive. With `well_conditioned` the
    triangles of the diagonal are inverted and multiplied instead of solved: quicker by a tenth, with errors that grow
    with the square root of the condition number, which is for the caller to know.

    >>> import numpy as np
    >>> A = np.eye(700) + 1.0
    >>> blocked_cholesky(A), round(2 * float(np.log(A.diagonal()).sum()), 6) == round(float(np.log(701)), 6)
    (0, True)
    """
    run = _routines() if _suits(A) else None
    if run is None:
        return None
    n = len(A)
    leaves = np.empty((-(-n // _LEAF), _LEAF, _LEAF)) if well_conditioned else None
    return _Halves(run, A.ctypes.data, n, leaves).factor(0, n)


def blocked_inverse(L: FloatArray) -> bool:
    """Turn the Cholesky factor in the lower triangle of L into (L Lᵀ)⁻¹ in place; the upper triangle is not touched.

    False, and nothing done, when L is too small or not of the right kind. 2n³/3 operations.
    """
    run = _routines() if _suits(L) else None
    if run is None:
        return False
    halves = _Halves(run, L.ctypes.data, len(L), None)
    halves.invert(0, len(L))
    halves.square(0, len(L))
    return True
