"""Numba: a column of objects as the few that they are, by their addresses, while other threads run.

Gaps of a column are often floats, each an object of its own, which is not a number: those are looked into.
"""

from __future__ import annotations

import ctypes
import math
from functools import cache

import numpy as np

from gramgraph._numerics.compiling import njit, when_compiled

when_compiled("gramgraph._numerics.counts.objects_compiled")

#: Places of the table of objects, and how many of them may be taken.
PLACES, FEW = 256, 100
_MULTIPLIER, _TOP = np.uint64(0x9E3779B97F4A7C15), np.uint64(56)
#: Where an object of CPython keeps its type, and a float its value.
_TYPE, _VALUE = 8, 16


@cache
def can_look_into() -> bool:
    """Whether floats are kept as it is expected here."""
    here = id(number := 1.5)
    return word_at(here + _TYPE) == id(float) and real_at(here + _VALUE) == number


def word_at(address):
    """The integer of 64 bits at an address."""
    return ctypes.c_int64.from_address(int(address)).value


def real_at(address):
    """The double at an address."""
    return ctypes.c_double.from_address(int(address)).value


@njit(cache=True, nogil=True, boundscheck=False)
def few_objects(addresses, step, kind, found, out):
    """out[i] = where the object at addresses[i · step] stands among the distinct ones, -1: there is none, or a NaN.

    `kind` is the address of `float`; `found` (FEW,) receives the addresses as they appear. How many there are; -1 where
    these are more than FEW.
    """
    table = np.full(PLACES, -1, np.int64)
    count = 0
    for i in range(out.shape[0]):
        address = addresses[i * step]
        at = np.int64((np.uint64(address) * _MULTIPLIER) >> _TOP)
        while table[at] >= 0 and found[table[at]] != address:
            at = (at + 1) % PLACES
        if table[at] < 0:
            # an array that nobody has filled may hold no object at all, which NumPy reads as None
            if address == 0 or (word_at(address + _TYPE) == kind and math.isnan(real_at(address + _VALUE))):
                out[i] = -1
                continue
            if count == FEW:
                return -1
            table[at] = count
            found[count] = address
            count += 1
        out[i] = table[at]
    return count
