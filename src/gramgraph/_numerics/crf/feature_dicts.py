"""Numbers of the features in Python dicts or lists of strings, looked up inside compiled code.

The loop goes through dicts with the interpreter's own `PyDict_Next` and takes the hashes that strings keep
(`PyObject_Hash`), so that no Python object is made on the way. It holds the interpreter's lock (no `nogil`): nothing
can change the dicts meanwhile. A feature is known by 64 bits that are mixed from the hashes of its name and its value;
hashes differ from process to process, and so does the table. `usable()` says whether this interpreter is laid out as
expected.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

from gramgraph._numerics.compiling import External, disabled, njit, when_compiled

when_compiled("gramgraph._numerics.crf.feature_dicts_compiled")

__all__ = [
    "NAME", "NUMBER", "WORD", "dict_size", "floats_at", "ints_at", "kinds", "list_size", "list_tokens", "longs_at",
    "look_up", "look_up_words", "make_table", "mixed", "put_objects", "usable",
]  # fmt: skip

#: Stand in the place of a value's hash: the value is a number; the name itself; a feature that is one string.
NUMBER, NAME, WORD = 0x243F6A8885A308D3, 0x13198A2E03707344, 0x24A4093822299F31
_C1, _C2, _C3 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0xFF51AFD7ED558CCD)
_NUMBER, _NAME, _WORD = np.uint64(NUMBER), np.uint64(NAME), np.uint64(WORD)
_S29, _S32, _ONE = np.uint64(29), np.uint64(32), np.uint64(1)
_TYPE_AT = 8  # bytes before the type of an object: its count of references

_dict_next = External("PyDict_Next", "int32", "intp", "intp", "intp", "intp")
_object_hash = External("PyObject_Hash", "intp", "intp")
_as_double = External("PyFloat_AsDouble", "float64", "intp")
_as_long = External("PyLong_AsLongLongAndOverflow", "int64", "intp", "intp")
_list_item = External("PyList_GetItem", "intp", "intp", "intp")
_list_set = External("PyList_SetItem", "int32", "intp", "intp", "intp")
_new_reference = External("Py_NewRef", "intp", "intp")
list_size = External("PyList_Size", "intp", "intp")
dict_size = External("PyDict_Size", "intp", "intp")


@cache
def usable() -> bool:
    """Whether compiled code may read dicts here: CPython with its lock, 64 bits, types where they are expected."""
    locked = getattr(sys, "_is_gil_enabled", lambda: True)()
    if disabled() or sys.implementation.name != "cpython" or not locked or sys.maxsize < 2**62:
        return False
    word = ctypes.c_ssize_t
    samples: tuple[Any, ...] = ("text", True, 2.5, {}, 7)
    return all(word.from_address(id(x) + _TYPE_AT).value == id(type(x)) for x in samples)


def kinds() -> Any:
    """Addresses of str, float, int, True and False, as `look_up` takes them."""
    return np.array([id(str), id(float), id(int), id(True), id(False)], dtype=np.int64)


def mixed(name: Any, value: Any) -> Any:
    """64 bits from two hashes, as arrays of uint64; the compiled loop does the same."""
    with np.errstate(over="ignore"):
        h = name * _C1 + ((value << _S32) | (value >> _S32)) * _C2
        h = (h ^ (h >> _S29)) * _C3
        return (h ^ (h >> _S32)) | _ONE  # 0 marks an empty place


@njit(cache=True, boundscheck=False, no_cpython_wrapper=True)
def _mix(name, value):
    h = name * _C1 + ((value << _S32) | (value >> _S32)) * _C2
    h = (h ^ (h >> _S29)) * _C3
    return (h ^ (h >> _S32)) | _ONE


def floats_at(address, n):
    """The n doubles that stand at an address, as an array."""
    return np.frombuffer((ctypes.c_double * int(n)).from_address(int(address)), np.float64)


def longs_at(address, n):
    """The same for integers of 64 bits."""
    return np.frombuffer((ctypes.c_int64 * int(n)).from_address(int(address)), np.int64)


def ints_at(address, n):
    """The same for integers of 32 bits."""
    return np.frombuffer((ctypes.c_int32 * int(n)).from_address(int(address)), np.int32)


def _word_at(address):
    """The 64 bits that stand at an address."""
    return ctypes.c_longlong.from_address(int(address)).value


@njit(cache=True, boundscheck=False)
def make_table(marks, numbers, places, values):
    """Put marks with their numbers into a table with open places; False when two marks are the same."""
    last = np.uint64(places.shape[0] - 1)
    for i in range(marks.shape[0]):
        at = (marks[i] >> _S32) & last
        while places[at] != 0:
            if places[at] == marks[i]:
                return False
            at = (at + _ONE) & last
        places[at] = marks[i]
        values[at] = numbers[i]
    return True


@njit(cache=True, boundscheck=False, no_cpython_wrapper=True)
def list_tokens(items, kind, found):
    """found = addresses of all items of a list; False when there are not so many, or one is not of this type."""
    if list_size(items) != found.shape[0]:
        return False
    for t in range(found.shape[0]):
        found[t] = _list_item(items, t)
        if _word_at(found[t] + 8) != kind:
            return False
    return True


@njit(cache=True, boundscheck=False, no_cpython_wrapper=True)
def put_objects(items, codes, objects):
    """Item t of a list becomes the object whose address stands at objects[codes[t]]."""
    for t in range(codes.shape[0]):
        _list_set(items, t, _new_reference(objects[codes[t]]))


@njit(cache=True, boundscheck=False, no_cpython_wrapper=True)
def _find(mark, places, values):
    last = np.uint64(places.shape[0] - 1)
    at = (mark >> _S32) & last
    while places[at] != 0:
        if places[at] == mark:
            return values[at]
        at = (at + _ONE) & last
    return np.int32(-2)


@njit(cache=True, boundscheck=False)
def look_up(dicts, kinds, places, values, ids, data):
    """ids = numbers of all features of dicts (addresses), −2 for unknown ones, −1 for values of 0.

    kinds are the addresses of str, float, int, True and False. data is filled where a value is not 1. (Features done,
    whether all values are 1); features done is −1 when something is met that Python code has to look at: a name that is
    not known, values of other types, numbers that are not finite or too large, more features than ids has places for
    (another thread may have added some).
    """
    text, floating, whole, true, false = kinds[0], kinds[1], kinds[2], kinds[3], kinds[4]
    box = np.zeros(4, np.int64)
    p = box.ctypes.data
    n, ones = 0, True
    for d in range(dicts.shape[0]):
        box[0] = 0
        while _dict_next(dicts[d], p, p + 8, p + 16):
            key, value = box[1], box[2]
            if _word_at(key + 8) != text or n == ids.shape[0]:
                return -1, ones
            name = np.uint64(np.int64(_object_hash(key)))
            x = 1.0
            if value == false:
                ids[n] = -1
                n += 1
                continue
            if _word_at(value + 8) == text:
                mark = _mix(name, np.uint64(np.int64(_object_hash(value))))
            elif value == true:
                mark = _mix(name, _NUMBER)
            elif _word_at(value + 8) == floating:
                x = _as_double(value)
                if not abs(x) < 1e150:
                    return -1, ones
                mark = _mix(name, _NUMBER)
            elif _word_at(value + 8) == whole:
                x = float(_as_long(value, p + 24))
                if box[3] != 0:  # it does not fit into 64 bits
                    return -1, ones
                mark = _mix(name, _NUMBER)
            else:
                return -1, ones
            number = _find(mark, places, values)
            if number == -2 and _find(_mix(name, _NAME), places, values) == -2:
                return -1, ones
            if x != 1.0:
                if x == 0.0:
                    number = np.int32(-1)
                else:
                    if ones:
                        data[:] = 1.0
                        ones = False
                    data[n] = x
            ids[n] = number
            n += 1
    return n, ones


@njit(cache=True, boundscheck=False)
def look_up_words(lists, kinds, places, values, ids, data):
    """The same for lists of strings: their values are 1, and data stays as it is."""
    n = 0
    for d in range(lists.shape[0]):
        for i in range(list_size(lists[d])):
            word = _list_item(lists[d], i)
            if _word_at(word + 8) != kinds[0] or n == ids.shape[0]:
                return -1, True
            ids[n] = _find(_mix(np.uint64(np.int64(_object_hash(word))), _WORD), places, values)
            n += 1
    return n, True
