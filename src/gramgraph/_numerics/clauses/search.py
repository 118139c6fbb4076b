"""Numba: sums of products of clauses by search: choose a value, follow what it implies, take what falls apart by
itself, and remember the sum of every part that was met.

A clause with a weight multiplies by it where all its literals are false; one without (log weight -inf) forbids that.
What is left of a part is told by its open variables and its clauses that are not satisfied; a fingerprint of 128 random
bits stands for both. Learned clauses hold for the whole: where one part turns out impossible, others may have been
counted too low, so everything remembered since the last choice goes with it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramgraph._numerics.clauses.propagation import (
    CHOICES,
    CLAUSES,
    COUNTERS,
    ITEMS,
    LINKS,
    NODES,
    PARTS,
    STEPS,
    TRAIL,
    UNITS,
    assign,
    learn,
    propagate,
    watch,
)
from gramgraph._numerics.compiling import njit
from gramgraph._numerics.joining import root_of
from gramgraph._numerics.tree.structure import log_sum

#: How a search ended: with the sum, without any possible assignment, or at a limit.
DONE, IMPOSSIBLE, OUT_OF_STEPS, OUT_OF_ROOM = 0, 1, 2, 3
#: A learned clause with more literals than this is not kept.
LONGEST = 60
#: What recent conflicts count for, beside the number of clauses; it is halved after about so many of them.
CONFLICTS, HALVED = 10.0, 64.0
#: Room that is made for each node: for items, for links, and bytes with all else.
ITEMS_PER_NODE, LINKS_PER_NODE, BYTES_PER_NODE = 64, 4, 380
#: How often everything has room in the stack of parts, and for how many nodes once more.
DEEP, NODES_PER_DEPTH = 32, 1000
#: What is done next with the part of a depth.
ASSIGN, NEXT_PART, NOTHING_POSSIBLE, SUMMED = range(4)


class Clauses(NamedTuple):
    """Clauses over variables of two states, with room for learned ones behind them."""

    first: np.ndarray  # (clauses + 1,) where the literals of each begin
    literals: np.ndarray
    log_weight: np.ndarray  # (clauses,) -inf where a clause must hold
    log_literal: np.ndarray  # (2 n,)
    leading: np.ndarray  # (n,) how much a variable is to be chosen first
    marks: np.ndarray  # (n + clauses, 2) random numbers


class Assigned(NamedTuple):
    """Which variables have a value, why, and what watches them."""

    value: np.ndarray
    depth: np.ndarray
    reason: np.ndarray
    trail: np.ndarray
    head: np.ndarray
    following: np.ndarray
    seen: np.ndarray
    activity: np.ndarray
    learned: np.ndarray
    units: np.ndarray


class Parts(NamedTuple):
    """A stack of parts, each with its variables and clauses; and room for what telling them apart needs."""

    first_member: np.ndarray
    first_clause: np.ndarray
    members: np.ndarray
    clauses: np.ndarray
    root: np.ndarray
    number: np.ndarray
    left: np.ndarray
    times: np.ndarray


class Depths(NamedTuple):
    """What is known at each depth: the part, the choice in it, and how far everything was when it was made."""

    part: np.ndarray
    base: np.ndarray
    trail: np.ndarray
    literal: np.ndarray
    second: np.ndarray
    total: np.ndarray  # of the value that is tried
    other_total: np.ndarray  # of the value that was tried first
    kept: np.ndarray  # (depths, 3) nodes, items, links
    branch: np.ndarray  # (depths, 6)
    key: np.ndarray  # (depths, 2)


class Sums(NamedTuple):
    """What is remembered: a node for each part that is summed, found by its fingerprint.

    A node has two branches, for both values of the variable chosen: items from … to (literals; 2n + v is an open
    variable in no clause) and the first of its links, each a node below and the next link.
    """

    key: np.ndarray  # (nodes, 2)
    total: np.ndarray
    share: np.ndarray  # (nodes, 2) of both branches: of a small one, the rest of the other would be rounding
    chain: np.ndarray
    branches: np.ndarray  # (nodes, 6)
    buckets: np.ndarray  # a power of two
    items: np.ndarray
    links: np.ndarray  # (links, 2)


def bytes_for(n, n_clauses):
    """Bytes of the arrays of a search: whatever it remembers, and more for each node."""
    stack = 4.0 * (3 * n + n_clauses)
    return DEEP * stack + 200.0 * n, BYTES_PER_NODE + stack / NODES_PER_DEPTH


def room_for(clauses, n_clauses, n_all, nodes):
    """Arrays for a search that remembers so many sums: counters, `Assigned`, `Parts`, `Depths` and `Sums`."""
    n = len(clauses.leading)
    deep = DEEP + nodes // NODES_PER_DEPTH
    assigned = Assigned(
        np.empty(n, np.int8),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(2 * n, np.int32),
        np.empty(2 * len(clauses.first), np.int32),
        np.empty(n, np.bool_),
        np.empty(n),
        np.empty(n + 1, np.int32),
        np.empty(n_all + n, np.int32),
    )
    parts = Parts(
        np.empty(deep * n + 64, np.int32),
        np.empty(deep * n + 64, np.int32),
        np.empty(deep * n, np.int32),
        np.empty(deep * n_clauses, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n_clauses, np.int32),
        np.empty(2 * n, np.int32),
    )
    whole = [np.empty(n + 2, np.int32) for _ in range(4)]
    depths = Depths(
        *whole,
        np.empty(n + 2, np.bool_),
        np.empty(n + 2),
        np.empty(n + 2),
        np.empty((n + 2, 3), np.int64),
        np.zeros((n + 2, 6), np.int32),
        np.empty((n + 2, 2), np.uint64),
    )
    sums = Sums(
        np.empty((nodes, 2), np.uint64),
        np.empty(nodes),
        np.empty((nodes, 2)),
        np.empty(nodes, np.int32),
        np.empty((nodes, 6), np.int32),
        np.empty(1 << max(nodes - 1, 1).bit_length(), np.int32),
        np.empty(ITEMS_PER_NODE * nodes + n, np.int32),
        np.empty((LINKS_PER_NODE * nodes, 2), np.int32),
    )
    return np.zeros(COUNTERS, np.int64), assigned, parts, depths, sums


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
def choice(part, at, parts, clauses, activity, bump):
    """The literal to try first: of a variable high in the tree, in many clauses, and in recent conflicts."""
    times = parts.times
    for i in range(parts.first_member[part], parts.first_member[part + 1]):
        times[2 * parts.members[i]] = 0
        times[2 * parts.members[i] + 1] = 0
    for i in range(parts.first_clause[part], parts.first_clause[part + 1]):
        c = parts.clauses[i]
        for j in range(clauses.first[c], clauses.first[c + 1]):
            times[clauses.literals[j]] += 1
        at[STEPS] += clauses.first[c + 1] - clauses.first[c]
    best, top = -1, -1.0
    for i in range(parts.first_member[part], parts.first_member[part + 1]):
        v = parts.members[i]
        score = clauses.leading[v] + CONFLICTS * activity[v] / bump + times[2 * v] + times[2 * v + 1]
        if score > top:
            best, top = v, score
    return 2 * best + (1 if times[2 * best + 1] >= times[2 * best] else 0)


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def begin(n_clauses, n_all, at, clauses, assigned, parts, depths, sums):
    """Nothing is assigned or remembered, and all is one part."""
    n = assigned.value.shape[0]
    assigned.value[:] = -1
    assigned.seen[:] = False
    assigned.activity[:] = 0.0
    assigned.head[:] = -1
    sums.buckets[:] = -1
    at[:] = 0
    at[PARTS], at[CLAUSES] = 1, n_all
    for c in range(n_all):
        if c >= n_clauses or clauses.log_weight[c] == -np.inf:
            if clauses.first[c + 1] - clauses.first[c] == 1:
                assigned.units[at[UNITS]] = c
                at[UNITS] += 1
            else:
                watch(c, clauses.first, clauses.literals, assigned.head, assigned.following)
    for v in range(n):
        parts.members[v] = v
    for c in range(n_clauses):
        parts.clauses[c] = c
    parts.first_member[0], parts.first_member[1] = 0, n
    parts.first_clause[0], parts.first_clause[1] = 0, n_clauses
    depths.part[0], depths.second[0], depths.trail[0] = 0, True, 0


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def try_value(depth, last, at, clauses, assigned, depths):
    """Assign the value that is tried at a depth, and what it implies, with the clause that was learned last: the clause
    in conflict, or -1."""
    first, literals, value = clauses.first, clauses.literals, assigned.value
    start, conflict = at[TRAIL], -1
    if depth > 0:
        assign(depths.literal[depth] ^ (1 if depths.second[depth] else 0), -1, depth, at, assigned)
    if last >= 0:
        implied, alone = literals[first[last]], value[literals[first[last]] >> 1] < 0
        for j in range(first[last] + 1, first[last + 1]):
            if value[literals[j] >> 1] != 1 - (literals[j] & 1):
                alone = False
        if alone:
            assign(implied, last, depth, at, assigned)
    for k in range(at[UNITS]):
        c = assigned.units[k]
        if value[literals[first[c]] >> 1] < 0:
            assign(literals[first[c]], c, depth, at, assigned)
        elif value[literals[first[c]] >> 1] != (literals[first[c]] & 1):
            conflict = c
    if conflict >= 0:
        return conflict
    return propagate(start, depth, at, first, literals, assigned)


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def learn_from(conflict, depth, bump, at, clauses, assigned):
    """Add the clause that a conflict teaches: its number, -1 where it is not kept or has one literal."""
    first, c = clauses.first, at[CLAUSES]
    length = learn(conflict, depth, bump, at, first, clauses.literals, assigned)
    if not 0 < length <= LONGEST or first[c] + length > clauses.literals.shape[0] or c + 2 > first.shape[0]:
        return -1
    for k in range(length):
        clauses.literals[first[c] + k] = assigned.learned[k]
    if length == 1 and at[UNITS] >= assigned.units.shape[0]:
        return -1
    first[c + 1] = first[c] + length
    at[CLAUSES] += 1
    if length == 1:
        assigned.units[at[UNITS]] = c
        at[UNITS] += 1
        return -1
    watch(c, first, clauses.literals, assigned.head, assigned.following)
    return c


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def link(node, depth, at, depths, sums):
    """Put a node below the branch that is tried at a depth."""
    side = 5 if depths.second[depth] else 2
    sums.links[at[LINKS], 0], sums.links[at[LINKS], 1] = node, depths.branch[depth, side]
    depths.branch[depth, side] = at[LINKS]
    at[LINKS] += 1


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


@njit(restarts=True, cache=True, nogil=True, boundscheck=False)
def search(n_clauses, n_all, most, keep, stop, at, clauses, assigned, parts, depths, sums):
    """How a search for log Z ended, and log Z; within so many steps and the room of the arrays.

    Clauses n_clauses and later hold by what they are about (of several states one): they are followed, but not looked
    at where parts are told apart. With `keep`, `sums` say afterward how log Z came about, for `beliefs`.
    """
    begin(n_clauses, n_all, at, clauses, assigned, parts, depths, sums)
    depth, doing, conflict, last, bump = 0, ASSIGN, -1, -1, 1.0
    while True:
        if at[STEPS] > most or stop[0]:
            return OUT_OF_STEPS, -np.inf
        if at[LINKS] + 2 > sums.links.shape[0] or at[NODES] + 1 > sums.total.shape[0]:
            return OUT_OF_ROOM, -np.inf
        if doing == ASSIGN:
            conflict = try_value(depth, last, at, clauses, assigned, depths)
            last = -1
            if conflict >= 0:
                if depth > 0:
                    bump *= 2.0 ** (1.0 / HALVED)
                    last = learn_from(conflict, depth, bump, at, clauses, assigned)
                    if bump > 1e6:
                        for v in range(assigned.activity.shape[0]):
                            assigned.activity[v] /= bump
                        bump = 1.0
                doing = NOTHING_POSSIBLE
                continue
            if not has_room(depths.part[depth], at, parts, sums):
                return OUT_OF_ROOM, -np.inf
            depths.base[depth] = at[PARTS]
            depths.kept[depth, 0], depths.kept[depth, 1], depths.kept[depth, 2] = at[NODES], at[ITEMS], at[LINKS]
            depths.total[depth] = fall_apart(depths.part[depth], at, parts, clauses, assigned.value, sums.items)
            side = 3 if depths.second[depth] else 0
            depths.branch[depth, side], depths.branch[depth, side + 2] = depths.kept[depth, 1], -1
            if not keep:
                at[ITEMS] = depths.kept[depth, 1]
            depths.branch[depth, side + 1] = at[ITEMS]
            doing = NEXT_PART if depths.total[depth] > -np.inf else NOTHING_POSSIBLE
        elif doing == NEXT_PART:
            if at[PARTS] == depths.base[depth]:
                doing = SUMMED
                continue
            part = at[PARTS] - 1
            fingerprint(part, at, parts, clauses, depths.key[depth + 1])
            node = remembered(depths.key[depth + 1], sums)
            if node >= 0:
                depths.total[depth] += sums.total[node]
                at[PARTS] -= 1
                if keep:
                    link(node, depth, at, depths, sums)
                continue
            depth += 1
            at[CHOICES] += 1
            depths.part[depth], depths.second[depth], depths.trail[depth] = part, False, at[TRAIL]
            depths.literal[depth] = choice(part, at, parts, clauses, assigned.activity, bump)
            doing = ASSIGN
        else:
            while at[TRAIL] > depths.trail[depth]:
                at[TRAIL] -= 1
                assigned.value[assigned.trail[at[TRAIL]] >> 1] = -1
            if doing == NOTHING_POSSIBLE:
                depths.total[depth] = -np.inf
                if conflict < 0:
                    forget(depth, at, depths, sums)
                conflict = -1
            if depth == 0:
                break
            if not depths.second[depth]:
                depths.other_total[depth], depths.second[depth] = depths.total[depth], True
                doing = ASSIGN
                continue
            total = log_sum(depths.other_total[depth], depths.total[depth])
            at[PARTS] = depths.part[depth]  # it is done, and goes
            depth -= 1
            doing = NOTHING_POSSIBLE
            if total > -np.inf:
                node = remember(total, depth + 1, at, depths, sums)
                depths.total[depth] += total
                if keep:
                    link(node, depth, at, depths, sums)
                doing = NEXT_PART
    return (IMPOSSIBLE if depths.total[0] == -np.inf else DONE), depths.total[0]


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
