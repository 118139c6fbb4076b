"""How wide every tree of a graph is at least: where no order could help, none is looked for."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

from gramgraph.compile.lower import Lowered
from gramgraph.exceptions import BudgetError
from gramgraph.typing import Array

#: Tables of more variables than this fit nowhere: a thousand terabytes.
MOST_VARIABLES = 47
#: Graphs with fewer pairs inside scopes for each variable are not looked at: their trees are seldom so wide.
FEW_PAIRS = 4


def is_too_wide(low: Lowered, keep: Array | None = None) -> bool:
    """Whether every junction tree of the factors has a clique of more than `MOST_VARIABLES` variables, as far as that
    is easily seen; `keep` marks the variables that are not observed. Cost: some steps for each link."""
    if len(low.sizes) <= MOST_VARIABLES:
        return False
    kept = (low.sizes > 1) if keep is None else (low.sizes > 1) & (np.asarray(keep) > 0)
    lengths = np.diff(low.scope_ptr)
    if np.count_nonzero(kept) <= MOST_VARIABLES or int((lengths * (lengths - 1)).sum()) < 2 * FEW_PAIRS * len(
        low.sizes
    ):
        return False
    free, bounds, members = kept.tolist(), low.scope_ptr.tolist(), low.scope_idx.tolist()
    links: list[set[int]] = [set() for _ in free]
    for start, end in pairwise(bounds):
        scope = [v for v in members[start:end] if free[v]]
        for v in scope:
            links[v].update(scope)
    for v, others in enumerate(links):
        others.discard(v)
    return _least_degree(links) >= MOST_VARIABLES


def _least_degree(links: list[set[int]]) -> int:
    """The largest of all least degrees while a node of the least one is merged with a neighbor, again and again, up to
    `MOST_VARIABLES`.

    Merging two neighbors never makes the tree of a graph wider, and some clique of a tree holds a node with all its
    neighbors. The neighbor that shares the fewest others is taken: so most links stay.
    """
    queue = [(len(others), v) for v, others in enumerate(links)]
    heapify(queue)
    most = 0
    while queue and most < MOST_VARIABLES:
        degree, v = heappop(queue)
        own = links[v]
        if degree != len(own) or not own:  # its degree has changed since, or it is gone
            continue
        most = max(most, degree)
        into = min(own, key=lambda u: (len(own & links[u]), u))
        for u in own:
            links[u].discard(v)
            if u != into:
                links[u].add(into)
                links[into].add(u)
            heappush(queue, (len(links[u]), u))
        heappush(queue, (len(links[into]), into))
        links[v] = set()
    return most


def wider_than_any(variables: int = MOST_VARIABLES) -> BudgetError:
    """The error where some table of every tree has more variables than this."""
    return BudgetError(
        f"exact inference on tables needs one of more than {variables} variables, whatever the order",
        bytes=8.0 * 2.0 ** (variables + 1),
        remedies=("observe or fix more variables", "take an approximate answer: engine='bp' (or budget='10s')"),
    )
