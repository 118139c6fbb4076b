"""The door to the loops of this folder: each exists interpreted and compiled, from one source, and callers see neither.

`njit` leaves a function as it is and puts a door before it. A call from outside goes through the door, which decides:
compiled code that is in memory is used; else the function is interpreted while that is cheap, and compiled (or loaded
from the files of an earlier process) when the interpreted seconds, those already spent and those ahead, would exceed
the price. So nobody waits longer than about twice the best choice, and a first small answer needs no Numba at all.

Inside, functions call each other without doors: there are copies of the globals of a module in which every door is
replaced, by the plain function for the interpreter, by Numba's dispatcher for the compiler. Once a function is
compiled, its dispatcher takes the place of the door in the module, and a call costs what a call of Numba costs.

`GRAMGRAPH_TIER=plain` or `compiled` forces one tier (`auto` chooses); `NUMBA_DISABLE_JIT=1` leaves plain functions.
"""

from __future__ import annotations

import functools
import gc
import importlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from gramgraph._numerics import kept, prices

__all__ = [
    "Door",
    "External",
    "ahead",
    "disabled",
    "expect_calls",
    "njit",
    "pays",
    "processor_has",
    "rent",
    "replace",
    "ripe",
    "source_of",
    "spent",
    "taken_by",
    "tier",
    "when_compiled",
]

TIERS = ("auto", "plain", "compiled")


#: Parameters that say how often a loop over the arguments may run, and how often it does before it has converged.
_COUNTS = frozenset({"max_iter", "sweeps", "rounds", "steps", "most"})
_FEW_ROUNDS = 10.0


class _TooLong(Exception):
    """An interpreted call has cost as much as compiling it would."""


class _Deadline(threading.local):
    """The thread's time at which an interpreted call that may start again gives up."""

    at = math.inf


_DEADLINE = _Deadline()


class _Taker(threading.local):
    """Who takes the thread's compiling to another process (`_numerics/aside.py`), or None."""

    aside: Any = None


_TAKER = _Taker()


class _State:
    """What the process has decided and spent so far."""

    def __init__(self) -> None:
        self.tier = os.environ.get("GRAMGRAPH_TIER") or "auto"
        if self.tier not in TIERS:
            raise ValueError(f"GRAMGRAPH_TIER is {self.tier!r}; use one of {', '.join(TIERS)}.")
        self.spent: dict[str, float] = {}  # interpreted seconds by group
        self.total = 0.0  # and in all
        self.overloads: list[str] = []  # modules to import before something is compiled
        self.instead: dict[Any, Any] = {}  # plain functions, modules → what compiled code holds in their place
        self.bound: list[tuple[dict[str, Any], Door]] = []  # modules in which a dispatcher stands for a door
        self.lock = threading.RLock()  # of all that is above, and of the making of dispatchers

    def note(self, group: str, seconds: float) -> None:
        """Interpreted seconds have been spent."""
        with self.lock:
            self.spent[group] = self.spent.get(group, 0.0) + seconds
            self.total += seconds


_STATE = _State()


def njit(
    function: Callable[..., Any] | None = None,
    *,
    cache: bool = False,
    work: Callable[..., float] | None = None,
    plain: Callable[..., Any] | None = None,
    pauses: bool = False,
    restarts: bool = False,
    **options: Any,
) -> Any:
    """A door before a function that Numba can compile with these options.

    `work(*arguments)` estimates how many steps of the innermost loop a call takes; without it the size of the arguments
    stands for it, times a count of rounds where a parameter is named as one. Where nobody can tell beforehand,
    functions that change none of their arguments are marked `restarts`, and those that they call over and over
    `pauses`: there the interpreted tier looks at the clock, gives up when compiling would have been cheaper, and the
    call starts again compiled. `plain` does the same in NumPy: it runs where the interpreted loop would be much slower.
    """
    if function is None:
        return functools.partial(njit, cache=cache, work=work, plain=plain, pauses=pauses, restarts=restarts, **options)
    if disabled():
        return function
    return Door(function, cache, work, options, plain, pauses, restarts)


def disabled() -> bool:
    """Whether the user wants nothing compiled, as Numba lets them say it."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def when_compiled(module: str) -> None:
    """`module` tells Numba what to make of plain functions: it is imported before anything is compiled."""
    _STATE.overloads.append(module)


def replace(function: Any, intrinsic: Any) -> None:
    """Compiled code holds this intrinsic of Numba (or module) wherever it calls the plain `function` (or module)."""
    _STATE.instead[function] = intrinsic


def processor_has(feature: str) -> bool:
    """Whether compiled code may use this feature of the processor."""
    given = os.environ.get("NUMBA_CPU_FEATURES")
    return f"+{feature}" in given if given is not None else feature.upper() in kept.processor_features()


@contextmanager
def tier(name: str) -> Iterator[None]:
    """Force one tier for a while: "plain", "compiled", or "auto"."""
    if name not in TIERS:
        raise ValueError(f"{name!r} is not a tier. Tiers: {', '.join(TIERS)}.")
    before = _STATE.tier
    _STATE.tier = name
    _doors_back()
    try:
        yield
    finally:
        _STATE.tier = before
        _doors_back()


@contextmanager
def taken_by(aside: Any) -> Iterator[None]:
    """Let this thread's compiling be done elsewhere, for a while."""
    before = _TAKER.aside
    _TAKER.aside = aside
    try:
        yield
    finally:
        _TAKER.aside = before


def spent(group: str | None = None) -> float:
    """Interpreted seconds so far, of a group or in all."""
    return _STATE.total if group is None else _STATE.spent.get(group, 0.0)


def _doors_back() -> None:
    with _STATE.lock:
        while _STATE.bound:
            names, door = _STATE.bound.pop()
            door.stand(names)


class Door:
    """A function of this folder as its callers see it until it is compiled."""

    def __init__(
        self,
        function: Any,
        cache: bool,
        work: Any,
        options: dict[str, Any],
        plain: Any = None,
        pauses: bool = False,
        restarts: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self._pauses, self._restarts = pauses, restarts
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        self._counts = [at for at, name in enumerate(names) if name in _COUNTS]
        self.py_func = function
        self.group = prices.group_of(function.__module__)
        self.rate = prices.STEP  # seconds of one interpreted step
        self.calls_ahead = 0  # as `expect_calls` says
        self.keeps, self._work, self._options = cache, work, options
        self._plain = plain
        self._dispatcher: Any = None
        self._looked, self._found = -math.inf, False  # when its files were looked for, and whether they were there
        self._ready: Any = None  # the dispatcher, when it has run

    @property
    def plain(self) -> Any:
        """The function that calls plain functions."""
        if self._plain is None:
            with _STATE.lock:
                made = _copy(self.py_func, _space(self.py_func.__globals__, "plain"))
                self._plain = _pausing(made) if self._pauses else made
        return self._plain

    @property
    def compiled(self) -> Any:
        """Numba's dispatcher, whose function calls dispatchers."""
        if self._dispatcher is None:
            machine_code = _machine_code()
            with _STATE.lock:
                if self._dispatcher is None:  # else another thread was here
                    names = self.py_func.__globals__
                    function = _copy(self.py_func, _unfilled(names, "compiled"))
                    prepare = functools.partial(_fill_for_compiling, names)
                    made = machine_code.dispatcher(function, self.keeps, self._options, prepare)
                    made.door = self
                    self._dispatcher = made
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes a door for, where one is met in compiled code."""
        from numba.core import types

        return types.Dispatcher(self.compiled)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.compiled, name)  # signatures, stats, …

    def __repr__(self) -> str:
        return f"<{self.__module__}.{self.__qualname__}: interpreted or compiled>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (ready := self._ready) is not None:
            return ready(*args, **kwargs)
        steps = self._steps(args, kwargs)
        seconds = self.rate * steps * max(self.calls_ahead, 1)
        self.calls_ahead -= self.calls_ahead > 0
        if self._due(seconds) and not self._taken(seconds, args, kwargs):
            return self.run_compiled(*args, **kwargs)
        start = time.thread_time()
        before = _DEADLINE.at
        if self._restarts and _STATE.tier == "auto":
            _DEADLINE.at = start + prices.price_of(self.group)
        try:
            with np.errstate(all="ignore"):
                return _unboxed(self.plain(*args, **kwargs))
        except _TooLong:
            return self.run_compiled(*args, **kwargs)
        finally:
            _DEADLINE.at = before
            took = time.thread_time() - start
            if steps > 0.0 and took > 1e-3:  # what it took tells what the next call will take
                self.rate = 0.5 * (self.rate + took / steps)
            _STATE.note(self.group, took)

    def run_compiled(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function, then let it stand in the module."""
        dispatcher = self.compiled
        if not dispatcher.signatures:
            self._announce()
        result = dispatcher(*args, **kwargs)
        if self._ready is None:
            self._ready = dispatcher
            self._step_aside()
        return result

    def _step_aside(self) -> None:
        """Let the dispatcher stand in the module, and in those that imported the function by its name."""
        loaded = [vars(m) for name, m in list(sys.modules.items()) if m and name.startswith("gramgraph.")]
        with _STATE.lock:
            for names in (self.py_func.__globals__, *loaded):
                if names.get(self.__name__) is self:
                    names[self.__name__] = self._dispatcher
                    _STATE.bound.append((names, self))
            _STATE.bound.append((self.py_func.__globals__, self))  # also where nobody knows it by its name

    def stand(self, names: dict[str, Any]) -> None:
        """Take the place in a module again."""
        self._ready = None
        if names.get(self.__name__) is self._dispatcher:
            names[self.__name__] = self

    def pays(self, seconds: float) -> bool:
        """Whether compiled code should run a call that would take so many seconds interpreted."""
        return self._due(seconds) and (self.in_memory() or not self._elsewhere)

    @property
    def _elsewhere(self) -> bool:
        """Whether this thread has its compiling done elsewhere."""
        return _TAKER.aside is not None and _STATE.tier == "auto"

    def _taken(self, seconds: float, args: Any, kwargs: Any) -> bool:
        """Whether it is compiled elsewhere, and interpreted meanwhile."""
        return self._elsewhere and not self.in_memory() and bool(_TAKER.aside.takes(self, seconds, args, kwargs))

    def _due(self, seconds: float) -> bool:
        """Whether such a call runs compiled code."""
        if self._options.get("no_cpython_wrapper"):
            return False  # a helper of compiled code: it has no way in from Python
        return self.is_due(seconds) if _STATE.tier == "auto" else _STATE.tier == "compiled"

    def is_due(self, seconds: float) -> bool:
        """Whether such a call is worth compiled code, where both tiers may be used."""
        if self.in_memory():
            return True
        if self._elsewhere:
            return bool(_TAKER.aside.due(self, seconds))
        if _STATE.total + seconds < (prices.LOAD_NEXT if "numba" in sys.modules else prices.LOAD_FIRST):
            return False
        if _STATE.spent.get(self.group, 0.0) + seconds > prices.price_of(self.group):
            return True
        return self.kept()

    def in_memory(self) -> bool:
        """Whether compiled code is at hand."""
        return self._dispatcher is not None and bool(self._dispatcher.signatures)

    def kept(self, *, anew: bool = False) -> bool:
        """Whether its machine code is in a file; looked up anew only after a while, as another process may make it."""
        now = time.monotonic()
        if anew or now > self._looked + prices.LOOK_AGAIN:
            self._looked, self._found = now, self.keeps and kept.holds(self.py_func)
        return self._found

    def _steps(self, args: Any, kwargs: Any) -> float:
        if self._work is not None:
            return float(self._work(*args, **kwargs))
        given = (args[at] for at in self._counts if at < len(args))
        rounds = max((n for n in given if np.ndim(n) == 0), default=1)  # a name may stand for an array too
        return _size(args) * min(max(float(rounds), 1.0), _FEW_ROUNDS)

    def _announce(self) -> None:
        price = prices.price_of(self.group)
        if price > prices.NOTICE and not self.kept():
            from gramgraph._numerics import notice

            notice.say(price)


class External:
    """A function of the interpreter's C interface: called by ctypes or, compiled, directly."""

    def __init__(self, name: str, result: str, *arguments: str) -> None:
        self._name, self._types = name, (result, *arguments)

    @functools.cached_property
    def plain(self) -> Any:
        import ctypes

        kinds: dict[str, Any] = {
            "int32": ctypes.c_int,
            "int64": ctypes.c_longlong,
            "intp": ctypes.c_ssize_t,
            "float64": ctypes.c_double,
        }
        made = ctypes.PYFUNCTYPE(*(kinds[kind] for kind in self._types))
        return made((self._name, ctypes.pythonapi))

    @functools.cached_property
    def compiled(self) -> Any:
        from numba import types

        result, *arguments = (getattr(types, kind) for kind in self._types)
        return types.ExternalFunction(self._name, result(*arguments))


def pays(function: Any, seconds: float) -> bool:
    """Whether to call `function`, where another way without it would take so many seconds more; these are noted."""
    found = ripe(function, seconds)
    if not found and isinstance(function, Door):
        _STATE.note(function.group, seconds)
    return found


def ripe(function: Any, seconds: float) -> bool:
    """Whether `function` is compiled, or should be where another way without it would take so many seconds."""
    return function.pays(seconds) if isinstance(function, Door) else hasattr(function, "signatures")


def expect_calls(function: Any, calls: int) -> None:
    """So many similar calls lie ahead: whether to compile is decided for all of them together, at the first."""
    if isinstance(function, Door):
        function.calls_ahead = calls


@contextmanager
def rent(function: Any) -> Iterator[None]:
    """The time of the block counts as spent in the place of a compiled `function`."""
    start = time.thread_time()
    try:
        yield
    finally:
        if isinstance(function, Door):
            _STATE.note(function.group, time.thread_time() - start)


def ahead(function: Any, steps: float) -> float:
    """Seconds that a call of so many steps would spend on compiling: 0 where it would be interpreted or is compiled."""
    if not isinstance(function, Door) or function.in_memory() or not function.pays(function.rate * steps):
        return 0.0
    return 0.0 if function.kept() else prices.price_of(function.group)


def _machine_code() -> Any:
    """The module of that name, which imports Numba. Nobody looks for garbage meanwhile: all that is made stays."""
    name = "gramgraph._numerics.machine_code"
    if name in sys.modules or not gc.isenabled():
        return importlib.import_module(name)
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.enable()


def load_overloads() -> None:
    """Import what Numba has to know before it compiles."""
    while _STATE.overloads:
        importlib.import_module(_STATE.overloads.pop())


# ------------------------------------------------------------------------------------------- functions without doors

_SPACES: dict[tuple[int, str], dict[str, Any]] = {}
_FILLED: set[tuple[int, str]] = set()


def source_of(function: Any) -> Any:
    """The function as it was written, in the module where it was written, whatever stands in its place by now."""
    return (function if isinstance(function, Door) else function.door).py_func


def _unfilled(names: dict[str, Any], kind: str) -> dict[str, Any]:
    """What `_space` gives, as long as nobody looks at it."""
    return _SPACES.setdefault((id(names), kind), {})


def _fill_for_compiling(names: dict[str, Any]) -> None:
    """Let the functions of a module find dispatchers behind their names: they are about to be compiled."""
    with _STATE.lock:
        load_overloads()
        replace(np, _machine_code().numpy_for_compiling())
        _space(names, "compiled")


def _space(names: dict[str, Any], kind: str) -> dict[str, Any]:
    """The globals of a module with every door replaced by what stands behind it, `plain` or `compiled`."""
    key = (id(names), kind)
    if key not in _FILLED:
        _FILLED.add(key)
        space = _unfilled(names, kind)
        space.update(names)
        for name, value in names.items():
            door = getattr(value, "door", None) if type(value).__name__ == "CPUDispatcher" else value
            if isinstance(door, (Door, External)):
                space[name] = getattr(door, kind)
            elif kind == "compiled" and isinstance(value, (FunctionType, ModuleType)):
                space[name] = _STATE.instead.get(value, value)
    return _SPACES[key]


def _copy(function: Any, names: dict[str, Any]) -> Any:
    made = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return functools.update_wrapper(made, function, updated=())


def _unboxed(result: Any) -> Any:
    """The result as compiled code would give it: Python's numbers in the place of NumPy's scalars."""
    if isinstance(result, np.generic):
        return result.item()
    if type(result) is tuple:
        return tuple(map(_unboxed, result))
    if isinstance(result, tuple):  # one with names
        return type(result)(*map(_unboxed, result))
    return result


def _pausing(function: Any) -> Any:
    @functools.wraps(function)
    def run(*args: Any) -> Any:
        if time.thread_time() > _DEADLINE.at:
            raise _TooLong
        return function(*args)

    return run


def _size(arguments: Any) -> int:
    total = 0
    for value in arguments:
        if type(value) is np.ndarray:
            total += value.size
        elif type(value) is tuple:
            total += _size(value)
    return total
