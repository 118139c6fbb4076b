"""Numba: sums of products of clauses by search: choose a value, follow what it implies, take what falls apart by
itself, and remember the sum of every part that was met.

A clause with a weight multiplies by it where all its literals are false; one without (log weight -inf) forbids that.
Learned clauses hold for the whole: where one part turns out impossible, others may have been
counted too low, so everything remembered since the last choice goes with it.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.clauses.memory import forget, link, remember, remembered
from gramgraph._numerics.clauses.parts import fall_apart, fingerprint, has_room
from gramgraph._numerics.clauses.propagation import (
    CHOICES,
    CLAUSES,
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
from gramgraph._numerics.tree.search import log_sum

#: How a search ended: with the sum, without any possible assignment, or at a limit.
DONE, IMPOSSIBLE, OUT_OF_STEPS, OUT_OF_ROOM = 0, 1, 2, 3
#: A learned clause with more literals than this is not kept.
LONGEST = 60
#: What recent conflicts count for, beside the number of clauses; it is halved after about so many of them.
CONFLICTS, HALVED = 10.0, 64.0
#: What is done next with the part of a depth.
ASSIGN, NEXT_PART, NOTHING_POSSIBLE, SUMMED = range(4)


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
