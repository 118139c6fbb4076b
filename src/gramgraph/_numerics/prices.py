"""What compiling costs, by group of modules that compile each other, in seconds of a processor of 2020 or so.

Rounded estimates, not measurements of each group. A price that is off by half costs a user half of it, once; so the
table stays short.
"""

from __future__ import annotations

import sys

__all__ = ["LOAD_FIRST", "LOAD_NEXT", "LOOK_AGAIN", "NOTICE", "SET_UP", "STEP", "group_of", "price_of"]

#: Seconds of interpreting that are worth loading machine code from disk: the first time in a process, when Numba has to
#: be imported, and each later one. Loading takes half of that.
LOAD_FIRST, LOAD_NEXT = 0.4, 0.05
#: Seconds that the first compilation of a process costs more than later ones: Numba sets up its tables.
SET_UP = 0.6
#: Seconds after which files that were not there are looked for again.
LOOK_AGAIN = 5.0
#: Seconds of one interpreted step of a loop.
STEP = 1e-6
#: Whoever has to wait longer than this is told.
NOTICE = 2.0

_OTHER = 1.0
_PRICES = {
    "tree.program": 3.0,
    "tree.structure": 4.0,
    "tree.search": 3.0,
    "tree.runner": 7.0,
    "messages.loopy_run": 5.0,
    "svm.svm_batch": 3.0,
    "svm.smo": 1.5,
    "rvm.few_changes": 3.0,
    "hmm.emissions": 1.5,
    "state_space.kalman": 1.5,
    "state_space.structural": 1.5,
    "crf.expectations": 1.5,
    "boosting.trees": 2.0,
}


def group_of(module: str) -> str:
    """room.file of a module of this folder."""
    return module.removeprefix("gramgraph._numerics.")


def price_of(group: str) -> float:
    """Seconds that compiling what a task needs of the group costs, with all that it calls."""
    ready = "gramgraph._numerics.separate" in sys.modules  # imported with the first compilation
    return _PRICES.get(group, _OTHER) + (0.0 if ready else SET_UP)
