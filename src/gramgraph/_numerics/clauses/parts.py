"""Numba: what an assignment leaves of a part of the clauses, taken apart where nothing links it.

What is left of a part is told by its open variables and its clauses that are not satisfied; a fingerprint of 128 random
bits stands for both.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.clauses.propagation import ITEMS, PARTS, STEPS
from gramgraph._numerics.compiling import njit
from gramgraph._numerics.joining import root_of
from gramgraph._numerics.tree.search import log_sum


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def clauses_left(part, parts, clauses, value):
    """Link the open variables of the clauses that are left of a part, which go into `parts.left`: how many they are,
    the log weight of those that are false, steps."""
    first, literals = clauses.first, clauses.literals
    n_left, steps, total = 0, 0, 0.0
    for i in range(parts.first_clause[part], parts.first_clause[part + 1]):
        c = parts.clauses[i]
        lead, satisfied = -1, False
        for j in range(first[c], first[c + 1]):
            kind = value[literals[j] >> 1]
            if kind == (literals[j] & 1):
                satisfied = True
                break
            if kind < 0 and lead < 0:
                lead = literals[j] >> 1
        steps += 1
        if satisfied:
            continue
        if lead < 0:
            total += clauses.log_weight[c]
            continue
        parts.left[n_left] = c
        n_left += 1
        lead = root_of(parts.root, lead)
        for j in range(first[c], first[c + 1]):
            v = literals[j] >> 1
            if value[v] < 0:
                parts.number[v] = 0
                v = root_of(parts.root, v)
                parts.root[max(v, lead)] = min(v, lead)
                lead = min(v, lead)
        steps += first[c + 1] - first[c]
    return n_left, total, steps


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def part_of(c, parts, clauses, value):
    """The number of the part to which a clause that is left belongs."""
    for j in range(clauses.first[c], clauses.first[c + 1]):
        v = clauses.literals[j] >> 1
        if value[v] < 0:
            return parts.number[v]
    return -1


@njit(pauses=True, cache=True, nogil=True, boundscheck=False)
def fall_apart(part, at, parts, clauses, value, items):
    """What an assignment leaves of a part, as new parts behind the last one, the smallest of them last; what it decides
    goes into `items`. The log of the factor that is decided."""
    n = value.shape[0]
    v0, v1, base = parts.first_member[part], parts.first_member[part + 1], at[PARTS]
    log_literal = clauses.log_literal
    total, n_items, made = 0.0, at[ITEMS], 0
    for i in range(v0, v1):
        v = parts.members[i]
        parts.root[v] = v
        parts.number[v] = -1
        if value[v] >= 0:
            total += log_literal[2 * v + value[v]]
            items[n_items] = 2 * v + value[v]
            n_items += 1
    n_left, false, steps = clauses_left(part, parts, clauses, value)
    total += false
    at[STEPS] += steps
    for i in range(v0, v1):  # the parts are numbered by their least variables
        v = parts.members[i]
        if value[v] >= 0:
            continue
        if parts.number[v] < 0:
            total += log_sum(log_literal[2 * v], log_literal[2 * v + 1])
            items[n_items] = 2 * n + v
            n_items += 1
            continue
        if root_of(parts.root, v) == v:
            parts.number[v] = made
            made += 1
            parts.first_member[base + made] = 0
            parts.first_clause[base + made] = 0
        parts.number[v] = parts.number[root_of(parts.root, v)]
        parts.first_member[base + parts.number[v] + 1] += 1
    for i in range(n_left):
        parts.first_clause[base + part_of(parts.left[i], parts, clauses, value) + 1] += 1
    at[ITEMS] = n_items
    at[PARTS] = base + made
    write_parts(base, made, v0, v1, n_left, parts, clauses, value)
    return total


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def write_parts(base, made, v0, v1, n_left, parts, clauses, value):
    """Write parts whose members and clauses are counted, the largest first."""
    v_end, c_end = parts.first_member[base], parts.first_clause[base]
    sizes = parts.first_member[base + 1 : base + made + 1].copy()
    lengths = parts.first_clause[base + 1 : base + made + 1].copy()
    v_at, c_at = sizes.copy(), lengths.copy()
    for k in range(made):
        largest = 0
        for p in range(made):
            if sizes[p] > sizes[largest]:
                largest = p
        v_at[largest], c_at[largest] = v_end, c_end
        v_end += sizes[largest]
        c_end += lengths[largest]
        sizes[largest] = -1
        parts.first_member[base + k + 1], parts.first_clause[base + k + 1] = v_end, c_end
    for i in range(v0, v1):
        v = parts.members[i]
        if value[v] < 0 and parts.number[v] >= 0:
            parts.members[v_at[parts.number[v]]] = v
            v_at[parts.number[v]] += 1
    for i in range(n_left):
        p = part_of(parts.left[i], parts, clauses, value)
        parts.clauses[c_at[p]] = parts.left[i]
        c_at[p] += 1


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def has_room(part, at, parts, sums):
    """Whether there is room for what is left of a part."""
    v_size = parts.first_member[part + 1] - parts.first_member[part]
    c_size = parts.first_clause[part + 1] - parts.first_clause[part]
    return (
        at[PARTS] + v_size + 1 < parts.first_member.shape[0]
        and parts.first_member[at[PARTS]] + v_size <= parts.members.shape[0]
        and parts.first_clause[at[PARTS]] + c_size <= parts.clauses.shape[0]
        and at[ITEMS] + v_size <= sums.items.shape[0]
    )


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def fingerprint(part, at, parts, clauses, key):
    """The sums of the marks of the variables and clauses of a part."""
    n = clauses.leading.shape[0]
    key[0], key[1] = np.uint64(0), np.uint64(0)
    for i in range(parts.first_member[part], parts.first_member[part + 1]):
        key[0] += clauses.marks[parts.members[i], 0]
        key[1] += clauses.marks[parts.members[i], 1]
    for i in range(parts.first_clause[part], parts.first_clause[part + 1]):
        key[0] += clauses.marks[n + parts.clauses[i], 0]
        key[1] += clauses.marks[n + parts.clauses[i], 1]
    at[STEPS] += parts.first_member[part + 1] - parts.first_member[part]
