"""Numba: the sums of parts that a search remembers, found by their fingerprints, and how they came about."""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.clauses.propagation import ITEMS, LINKS, NODES, PARTS
from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def link(node, depth, at, depths, sums):
    """Put a node below the branch that is tried at a depth."""
    side = 5 if depths.second[depth] else 2
    sums.links[at[LINKS], 0], sums.links[at[LINKS], 1] = node, depths.branch[depth, side]
    depths.branch[depth, side] = at[LINKS]
    at[LINKS] += 1


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def remembered(key, sums):
    """The node of a part, or -1."""
    node = sums.buckets[key[0] & np.uint64(sums.buckets.shape[0] - 1)]
    while node >= 0 and (sums.key[node, 0] != key[0] or sums.key[node, 1] != key[1]):
        node = sums.chain[node]
    return node


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def remember(total, depth, at, depths, sums):
    """A node for the part of a depth, both of whose values are summed."""
    node = at[NODES]
    at[NODES] += 1
    bucket = depths.key[depth, 0] & np.uint64(sums.buckets.shape[0] - 1)
    sums.chain[node] = sums.buckets[bucket]
    sums.buckets[bucket] = node
    sums.total[node] = total
    sums.share[node, 0] = np.exp(depths.other_total[depth] - total)
    sums.share[node, 1] = np.exp(depths.total[depth] - total)
    for k in range(2):
        sums.key[node, k] = depths.key[depth, k]
    for k in range(6):
        sums.branches[node, k] = depths.branch[depth, k]
    return node


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def forget(depth, at, depths, sums):
    """Nothing that was remembered since the last choice is left: the newest nodes come first in their chains."""
    at[PARTS] = depths.base[depth]
    while at[NODES] > depths.kept[depth, 0]:
        at[NODES] -= 1
        sums.buckets[sums.key[at[NODES], 0] & np.uint64(sums.buckets.shape[0] - 1)] = sums.chain[at[NODES]]
    at[ITEMS], at[LINKS] = depths.kept[depth, 1], depths.kept[depth, 2]


@njit(cache=True, nogil=True, boundscheck=False)
def beliefs(at, top, log_literal, share, branches, items, links):
    """The probability of every literal, from what a search has kept: what flows through each sum."""
    n = log_literal.shape[0] // 2
    out, flow = np.zeros(2 * n), np.zeros(at[NODES])
    for node in range(at[NODES], -1, -1):
        for side in range(2):
            if node == at[NODES]:
                branch, mass = top, float(side)
            else:
                branch, mass = branches[node], flow[node] * share[node, side]
            if mass <= 0.0:
                continue
            for i in range(branch[3 * side], branch[3 * side + 1]):
                if items[i] < 2 * n:
                    out[items[i]] += mass
                else:
                    v = items[i] - 2 * n
                    odds = log_literal[2 * v + 1] - log_literal[2 * v]
                    out[2 * v + 1] += mass / (1.0 + np.exp(-odds))
                    out[2 * v] += mass / (1.0 + np.exp(odds))
            below = branch[3 * side + 2]
            while below >= 0:
                flow[links[below, 0]] += mass
                below = links[below, 1]
    return out
