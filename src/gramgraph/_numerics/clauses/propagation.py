"""Numba: what clauses imply, by two watched literals each, and what is learned from a conflict.

Variable v is false or true (value 0 or 1, -1 for open); literal 2v + 1 says that it is true, 2v that it is false. The
literals of clause c are literals[first[c] : first[c + 1]], the first two of which are watched: `head[literal]` is the
first of a chain of watchers 2c or 2c + 1, `following` has the next one.
"""

from __future__ import annotations

from gramgraph._numerics.compiling import njit

#: Places of the counters: of the trail, parts, clauses with the learned ones, clauses of one literal, nodes, items,
#: links, choices and steps.
TRAIL, PARTS, CLAUSES, UNITS, NODES, ITEMS, LINKS, CHOICES, STEPS, COUNTERS = range(10)


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def watch(c, first, literals, head, following):
    """Put the first two literals of a clause under watch."""
    for side in range(2):
        literal = literals[first[c] + side]
        following[2 * c + side] = head[literal]
        head[literal] = 2 * c + side


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def assign(literal, reason, depth, at, assigned):
    """Let a literal be true, for the reason of a clause, or as a choice (-1)."""
    v = literal >> 1
    assigned.value[v] = literal & 1
    assigned.depth[v] = depth
    assigned.reason[v] = reason
    assigned.trail[at[TRAIL]] = literal
    at[TRAIL] += 1


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def propagate(start, depth, at, first, literals, assigned):
    """Assign what clauses imply, from a place of the trail on: the clause in conflict, or -1."""
    value, head, following = assigned.value, assigned.head, assigned.following
    while start < at[TRAIL]:
        gone = assigned.trail[start] ^ 1
        start += 1
        w, before = head[gone], -1
        while w >= 0:
            at[STEPS] += 1
            c, after = w >> 1, following[w]
            place, other = first[c] + (w & 1), literals[first[c] + 1 - (w & 1)]
            moved = False
            if value[other >> 1] != (other & 1):
                for i in range(first[c] + 2, first[c + 1]):
                    literal = literals[i]
                    if value[literal >> 1] != 1 - (literal & 1):  # it is not false: it is watched from now on
                        literals[place], literals[i] = literal, gone
                        if before < 0:
                            head[gone] = after
                        else:
                            following[before] = after
                        following[w] = head[literal]
                        head[literal] = w
                        moved = True
                        break
                if not moved:
                    if value[other >> 1] >= 0:
                        return c
                    assign(other, c, depth, at, assigned)
            if not moved:
                before = w
            w = after
    return -1


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def look_at(c, but, n, left, depth, bump, first, literals, assigned):
    """Note the variables of a clause that are new: those of the last choice are counted, others go into the clause that
    is learned."""
    for i in range(first[c], first[c + 1]):
        v = literals[i] >> 1
        if v != but and assigned.depth[v] > 0 and not assigned.seen[v]:
            assigned.seen[v] = True
            assigned.activity[v] += bump
            if assigned.depth[v] == depth:
                left += 1
            else:
                assigned.learned[n] = literals[i]
                n += 1
    return n, left


@njit(cache=True, nogil=True, boundscheck=False, no_cpython_wrapper=True)
def learn(conflict, depth, bump, at, first, literals, assigned):
    """The clause of a conflict in which one literal belongs to the last choice, into `learned`: that literal first,
    then one of the greatest depth among the others. Its length, 0 where the last choice has no part in it."""
    seen, out, place = assigned.seen, assigned.learned, at[TRAIL] - 1
    n, left = look_at(conflict, -1, 1, 0, depth, bump, first, literals, assigned)
    if left == 0:
        for i in range(1, n):
            seen[out[i] >> 1] = False
        return 0
    while True:
        while not seen[assigned.trail[place] >> 1]:
            place -= 1
        v = assigned.trail[place] >> 1
        seen[v] = False
        left -= 1
        if left == 0:
            out[0] = assigned.trail[place] ^ 1
            break
        n, left = look_at(assigned.reason[v], v, n, left, depth, bump, first, literals, assigned)
    kept = 1
    for i in range(1, n):  # literals that the others imply are left out
        v = out[i] >> 1
        c = assigned.reason[v]
        needed = c < 0
        if not needed:
            for j in range(first[c], first[c + 1]):
                u = literals[j] >> 1
                if u != v and assigned.depth[u] > 0 and not seen[u]:
                    needed = True
                    break
        if needed:
            out[kept], out[i] = out[i], out[kept]
            kept += 1
    for i in range(1, n):
        seen[out[i] >> 1] = False
    for i in range(2, kept):
        if assigned.depth[out[i] >> 1] > assigned.depth[out[1] >> 1]:
            out[1], out[i] = out[i], out[1]
    return kept
