"""Sparse symmetric positive definite matrices: an elimination order, A = L D Lᵀ, solutions, parts of the inverse.

Matrices come as columns (ptr, idx) of a symmetric pattern; L has ones on its diagonal, which are not stored.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit
from gramgraph._numerics.copies import put


@njit(cache=True, nogil=True, boundscheck=False)
def minimum_degree(n, ptr, idx):
    """An order in which few entries fill in: next goes the node with (about) the fewest neighbors.

    Nodes that are gone live on as elements, cliques of their neighbors (a quotient graph), so that memory stays
    that of the graph and of the cliques. Degrees are upper bounds: Σ over elements without their common part.
    (ptr, idx): neighbors of each node, without itself, in both directions.
    """
    near = idx.copy()  # of node i: its elements first, then its remaining neighbors
    n_elements = np.zeros(n, np.int64)
    n_near = np.empty(n, np.int64)
    degree = np.empty(n, np.int64)
    for i in range(n):
        n_near[i] = ptr[i + 1] - ptr[i]
        degree[i] = n_near[i]
    # lists of nodes by degree
    head = np.full(n + 1, -1, np.int64)
    after = np.full(n, -1, np.int64)
    before = np.full(n, -1, np.int64)
    for i in range(n - 1, -1, -1):
        d = degree[i]
        after[i] = head[d]
        if head[d] >= 0:
            before[head[d]] = i
        head[d] = i
    members = np.empty(max(4 * len(idx), 16), np.int64)  # of all elements, one after the other
    start = np.zeros(n, np.int64)
    length = np.zeros(n, np.int64)
    alive = np.zeros(n, np.uint8)  # elements that were not swallowed by a later one
    gone = np.zeros(n, np.uint8)  # nodes that were eliminated
    mark = np.full(n, -1, np.int64)
    seen = np.full(n, -1, np.int64)
    outside = np.zeros(n, np.int64)
    order = np.empty(n, np.int64)
    free = 0
    low = 0
    for step in range(n):
        while head[low] < 0:
            low += 1
        p = head[low]
        head[low] = after[p]
        if after[p] >= 0:
            before[after[p]] = -1
        order[step] = p
        gone[p] = 1
        mark[p] = step
        # the new element: all neighbors of p, direct or through its elements
        need = n_near[p]
        for q in range(n_elements[p]):
            need += length[near[ptr[p] + q]]
        if free + need > len(members):
            larger = np.empty(2 * len(members) + need, np.int64)
            put(members[:free], larger)
            members = larger
        start[p] = free
        for q in range(n_elements[p]):
            e = near[ptr[p] + q]
            for t in range(start[e], start[e] + length[e]):
                i = members[t]
                if mark[i] != step and gone[i] == 0:
                    mark[i] = step
                    members[free] = i
                    free += 1
            alive[e] = 0
        for q in range(n_elements[p], n_elements[p] + n_near[p]):
            i = near[ptr[p] + q]
            if mark[i] != step and gone[i] == 0:
                mark[i] = step
                members[free] = i
                free += 1
        size = free - start[p]
        length[p] = size
        alive[p] = 1
        # |element \ new element| for the elements that touch it
        for t in range(start[p], free):
            i = members[t]
            for q in range(n_elements[i]):
                e = near[ptr[i] + q]
                if alive[e] == 1:
                    if seen[e] != step:
                        seen[e] = step
                        outside[e] = length[e]
                    outside[e] -= 1
        left = n - step - 1
        for t in range(start[p], free):
            i = members[t]
            base = ptr[i]
            count = 0
            total = size - 1
            old_elements = n_elements[i]
            last = old_elements + n_near[i]
            for q in range(old_elements):
                e = near[base + q]
                if alive[e] == 1 and e != p:
                    if outside[e] == 0:
                        alive[e] = 0  # inside the new element: nothing is lost without it
                    else:
                        near[base + count] = e
                        count += 1
                        total += outside[e]
            kept = 0
            for q in range(old_elements, last):
                v = near[base + q]
                if gone[v] == 0 and mark[v] != step:
                    near[base + count + kept] = v
                    kept += 1
            # There is room for p: i lost an entry to it (p itself, or an element that p swallowed).
            near[base + count + kept] = near[base + count]
            near[base + count] = p
            n_elements[i] = count + 1
            n_near[i] = kept
            total += kept
            new = min(total, min(degree[i] + size - 1, left - 1))
            if new < 0:
                new = 0
            # move i to the list of its new degree
            d = degree[i]
            if before[i] >= 0:
                after[before[i]] = after[i]
            else:
                head[d] = after[i]
            if after[i] >= 0:
                before[after[i]] = before[i]
            degree[i] = new
            before[i] = -1
            after[i] = head[new]
            if head[new] >= 0:
                before[head[new]] = i
            head[new] = i
            if new < low:
                low = new
    return order


@njit(cache=True, nogil=True, boundscheck=False)
def symbolic(n, ptr, idx):
    """(parents in the elimination tree, column pointers of L), from the upper triangle by columns."""
    parent = np.full(n, -1, np.int64)
    flag = np.empty(n, np.int64)
    count = np.zeros(n, np.int64)
    for k in range(n):
        flag[k] = k
        for p in range(ptr[k], ptr[k + 1]):
            i = idx[p]
            while i < k and flag[i] != k:
                if parent[i] < 0:
                    parent[i] = k
                count[i] += 1
                flag[i] = k
                i = parent[i]
    l_ptr = np.zeros(n + 1, np.int64)
    for k in range(n):
        l_ptr[k + 1] = l_ptr[k] + count[k]
    return parent, l_ptr


@njit(cache=True, nogil=True, boundscheck=False)
def factorize(n, ptr, idx, values, parent, l_ptr):
    """(rows of L, values of L, D, bad): row k of L by a sparse triangular solve with the rows before it.

    `bad` is the first position whose pivot is not positive, or -1.
    """
    l_idx = np.empty(l_ptr[n], np.int64)
    l_val = np.empty(l_ptr[n])
    D = np.zeros(n)
    y = np.zeros(n)
    flag = np.full(n, -1, np.int64)
    pattern = np.empty(n, np.int64)
    stack = np.empty(n, np.int64)
    fill = np.zeros(n, np.int64)
    for k in range(n):
        top = n
        flag[k] = k
        for p in range(ptr[k], ptr[k + 1]):
            i = idx[p]
            if i > k:
                continue
            y[i] += values[p]
            depth = 0
            while flag[i] != k:
                stack[depth] = i
                depth += 1
                flag[i] = k
                i = parent[i]
            while depth > 0:
                depth -= 1
                top -= 1
                pattern[top] = stack[depth]
        D[k] = y[k]
        y[k] = 0.0
        largest = abs(D[k])
        for t in range(top, n):
            i = pattern[t]
            yi = y[i]
            y[i] = 0.0
            first = l_ptr[i]
            last = first + fill[i]
            for p in range(first, last):
                y[l_idx[p]] -= l_val[p] * yi
            l_ki = yi / D[i]
            D[k] -= l_ki * yi
            l_idx[last] = k
            l_val[last] = l_ki
            fill[i] += 1
        if not D[k] > 1e-14 * largest:
            return l_idx, l_val, D, k
    return l_idx, l_val, D, -1


@njit(cache=True, nogil=True, boundscheck=False)
def solve_in_place(n, l_ptr, l_idx, l_val, D, B):
    """B (n, m) becomes (L D Lᵀ)⁻¹ B."""
    m = B.shape[1]
    for j in range(n):
        for p in range(l_ptr[j], l_ptr[j + 1]):
            i, v = l_idx[p], l_val[p]
            for c in range(m):
                B[i, c] -= v * B[j, c]
    for j in range(n - 1, -1, -1):
        for c in range(m):
            B[j, c] /= D[j]
        for p in range(l_ptr[j], l_ptr[j + 1]):
            i, v = l_idx[p], l_val[p]
            for c in range(m):
                B[j, c] -= v * B[i, c]


@njit(cache=True, nogil=True, boundscheck=False)
def solve_upper_in_place(n, l_ptr, l_idx, l_val, D, B):
    """B (n, m) becomes L⁻ᵀ D^(-1/2) B: standard normal numbers become draws with the covariance (L D Lᵀ)⁻¹."""
    m = B.shape[1]
    for j in range(n - 1, -1, -1):
        root = 1.0 / np.sqrt(D[j])
        for c in range(m):
            B[j, c] *= root
        for p in range(l_ptr[j], l_ptr[j + 1]):
            i, v = l_idx[p], l_val[p]
            for c in range(m):
                B[j, c] -= v * B[i, c]


@njit(cache=True, nogil=True, boundscheck=False)
def selected_inverse(n, l_ptr, l_idx, l_val, D):
    """Entries of (L D Lᵀ)⁻¹ on the pattern of L: (diagonal, entries beside those of L).

    Takahashi's recursion, from the last column to the first: Z_ij = −Σ_k Z_ik L_kj over the rows k of column j of L.
    """
    Z = np.zeros(len(l_val))
    diagonal = np.zeros(n)
    sums = np.zeros(n)
    weight = np.zeros(n)
    mark = np.full(n, -1, np.int64)
    for j in range(n - 1, -1, -1):
        a, b = l_ptr[j], l_ptr[j + 1]
        for p in range(a, b):
            k = l_idx[p]
            mark[k] = j
            weight[k] = l_val[p]
            sums[k] = 0.0
        for p in range(a, b):
            k = l_idx[p]
            l_kj = weight[k]
            own = diagonal[k] * l_kj
            for t in range(l_ptr[k], l_ptr[k + 1]):
                q = l_idx[t]
                if mark[q] == j:
                    z = Z[t]
                    own += z * weight[q]
                    sums[q] += z * l_kj
            sums[k] += own
        total = 1.0 / D[j]
        for p in range(a, b):
            k = l_idx[p]
            Z[p] = -sums[k]
            total += sums[k] * weight[k]
        diagonal[j] = total
    return diagonal, Z
