"""LAPACK on C-ordered triangles while other threads run: SciPy's own functions keep Python's lock to their end."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from gramgraph.typing import Array

_INT = ctypes.POINTER(ctypes.c_int)
#: The arguments that are known here, as SciPy writes them: uplo, n, a, lda, info.
_ARGUMENTS = ("char *", "int *", None, "int *", "int *")


def triangle(name: str, A: Array) -> int:
    """Run `potrf` or `potri` on the lower triangle of the square A, in place; LAPACK's `info`.

    A C-ordered lower triangle is the upper triangle of the transposed, Fortran-ordered view.

    >>> import numpy as np
    >>> A = np.array([[4.0, 9.0], [2.0, 2.0]])
    >>> triangle("potrf", A), A.tolist()
    (0, [[2.0, 9.0], [1.0, 1.0]])
    """
    letter = {"d": "d", "f": "s"}.get(A.dtype.char)
    routine = None if letter is None or not A.flags.c_contiguous else _routine(letter + name)
    if routine is None:
        return _by_scipy(name, A)
    n, info = ctypes.c_int(len(A)), ctypes.c_int(0)
    routine(b"U", ctypes.byref(n), A.ctypes.data, ctypes.byref(n), ctypes.byref(info))
    return info.value


def _by_scipy(name: str, A: Array) -> int:
    from scipy.linalg import get_lapack_funcs

    (function,) = get_lapack_funcs((name,), (A,))
    if name == "potrf":
        return int(function(A.T, lower=0, clean=0, overwrite_a=1)[1])
    return int(function(A.T, lower=0, overwrite_c=1)[1])


@cache
def _routine(name: str) -> Any:
    """The routine that SciPy offers to Cython, as a function that lets other threads run; None where it differs."""
    from scipy.linalg import cython_lapack

    capsule = cython_lapack.__pyx_capi__.get(name)
    if capsule is None:
        return None
    api: Any = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    told = signature.decode().removeprefix("void (").removesuffix(")").split(", ")
    if len(told) != len(_ARGUMENTS) or any(
        want not in (None, have) for want, have in zip(_ARGUMENTS, told, strict=True)
    ):
        return None  # integers of 64 bits, say
    kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, _INT, ctypes.c_void_p, _INT, _INT)
    return kind(api.PyCapsule_GetPointer(capsule, signature))
