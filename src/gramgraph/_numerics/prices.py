"""What compiling costs, by group of modules that compile each other, in seconds of a processor of 2020 or so.

Rounded estimates, not measurements of each group. A price that is off by half costs a user half of it, once; so the
table stays short.
"""

from __future__ import annotations

__all__ = ["LOAD_FIRST", "LOAD_NEXT", "LOOK_AGAIN", "NOTICE", "STEP", "group_of", "price_of"]

#: Seconds that the first compiled function of a process costs when its machine code is on disk (most of them go into
#: the import of Numba), and each later one.
LOAD_FIRST, LOAD_NEXT = 0.6, 0.05
#: Seconds after which files that were not there are looked for again.
LOOK_AGAIN = 5.0
#: Seconds of one interpreted step of a loop.
STEP = 1e-6
#: Whoever has to wait longer than this is told.
NOTICE = 2.0

_OTHER = 2.5
_PRICES = {
    "tree.program": 4.0,
    "tree.structure": 5.0,
    "tree.runner": 7.0,
    "gram.grams": 3.0,
    "rvm.few_changes": 7.0,
}


def group_of(module: str) -> str:
    """room.file of a module of this folder."""
    return module.removeprefix("gramgraph._numerics.")


def price_of(group: str) -> float:
    """Seconds that compiling a function of the group costs, with all that it calls."""
    return _PRICES.get(group, _OTHER)
