"""Numba: messages on grids. Spins need one number a message; ordered labels O(L) operations by distance transforms.

Messages to a pixel (r, c) come from the left, from the right, from above and from below.
"""

from __future__ import annotations

import numpy as np

from gramgraph._numerics.compiling import njit

_jit = njit(cache=True, nogil=True, boundscheck=False)
POTTS, LINEAR, QUADRATIC = 0, 1, 2


@_jit(no_cpython_wrapper=True)
def _passed(a, J, temperature):
    """What a spin with half log-odds a sends through a coupling J: half log-odds again.

    At temperature 0 the value of the best choice, which is a cut off at ±J; else T/2 log cosh((J+a)/T) / cosh((J-a)/T).
    """
    if temperature == 0.0:
        return max(-J, min(J, a)) if J >= 0 else -max(J, min(-J, a))
    s, d = abs(J + a) / temperature, abs(J - a) / temperature
    return 0.5 * temperature * (s - d + np.log1p(np.exp(-2 * s)) - np.log1p(np.exp(-2 * d)))


@_jit
def spin_sweeps(field, right, below, temperature, damping, max_iter, tol, messages, residuals):
    """Passes along rows and columns, forth and back, until no message moves by more than tol: (sweeps, converged).

    field (rows, cols) half log-odds; right (rows, cols-1), below (rows-1, cols) couplings; messages (4, rows, cols)
    from the left, the right, above, below. One sweep is exact on a single row or column.
    """
    rows, cols = field.shape
    left, after, up, down = messages[0], messages[1], messages[2], messages[3]
    for sweep in range(max_iter):
        change = 0.0
        for r in range(rows):
            for c in range(cols - 1):
                new = _passed(field[r, c] + left[r, c] + up[r, c] + down[r, c], right[r, c], temperature)
                new = (1 - damping) * new + damping * left[r, c + 1]
                change = max(change, abs(new - left[r, c + 1]))
                left[r, c + 1] = new
            for c in range(cols - 1, 0, -1):
                new = _passed(field[r, c] + after[r, c] + up[r, c] + down[r, c], right[r, c - 1], temperature)
                new = (1 - damping) * new + damping * after[r, c - 1]
                change = max(change, abs(new - after[r, c - 1]))
                after[r, c - 1] = new
        for r in range(rows - 1):  # whole rows at a time: memory is read in order
            for c in range(cols):
                new = _passed(field[r, c] + left[r, c] + after[r, c] + up[r, c], below[r, c], temperature)
                new = (1 - damping) * new + damping * up[r + 1, c]
                change = max(change, abs(new - up[r + 1, c]))
                up[r + 1, c] = new
        for r in range(rows - 1, 0, -1):
            for c in range(cols):
                new = _passed(field[r, c] + left[r, c] + after[r, c] + down[r, c], below[r - 1, c], temperature)
                new = (1 - damping) * new + damping * down[r - 1, c]
                change = max(change, abs(new - down[r - 1, c]))
                down[r - 1, c] = new
        residuals[sweep] = change
        if change <= tol:
            return sweep + 1, True
    return max_iter, False


@_jit
def spin_modes(field, right, below, spins, rounds):
    """Each spin on its better side given its neighbors, until none moves; ties stay."""
    rows, cols = field.shape
    for _ in range(rounds):
        moved = False
        for r in range(rows):
            for c in range(cols):
                a = field[r, c]
                if c > 0:
                    a += right[r, c - 1] * spins[r, c - 1]
                if c + 1 < cols:
                    a += right[r, c] * spins[r, c + 1]
                if r > 0:
                    a += below[r - 1, c] * spins[r - 1, c]
                if r + 1 < rows:
                    a += below[r, c] * spins[r + 1, c]
                if a * spins[r, c] < -1e-12:
                    spins[r, c] = -spins[r, c]
                    moved = True
        if not moved:
            break


@_jit(no_cpython_wrapper=True)
def cheapest(h, n, kind, weight, cut, at, edge, out, o0):
    """out[y] = min_x h[x] + weight · min(d(x, y), cut), less its smallest value: O(n); gives that value.

    d is [x ≠ y], |x - y| or (x - y)²; `at` and `edge` are room for the lower envelope of parabolas.
    """
    low = h[0]
    for x in range(1, n):
        low = min(low, h[x])
    if kind == POTTS:
        for y in range(n):
            out[o0 + y] = min(h[y], low + weight)
    elif kind == LINEAR:
        for y in range(n):
            out[o0 + y] = h[y]
        for y in range(1, n):
            out[o0 + y] = min(out[o0 + y], out[o0 + y - 1] + weight)
        for y in range(n - 2, -1, -1):
            out[o0 + y] = min(out[o0 + y], out[o0 + y + 1] + weight)
    elif weight > 0:
        k = 0
        at[0] = 0
        edge[0], edge[1] = -np.inf, np.inf
        for q in range(1, n):
            while True:
                p = at[k]
                s = ((h[q] - h[p]) / weight + q * q - p * p) / (2.0 * (q - p))
                if s > edge[k] or k == 0:
                    break
                k -= 1
            if s > edge[k]:
                k += 1
            at[k] = q
            edge[k], edge[k + 1] = s if k > 0 else -np.inf, np.inf
        k = 0
        for y in range(n):
            while edge[k + 1] < y:
                k += 1
            out[o0 + y] = h[at[k]] + weight * (y - at[k]) * (y - at[k])
    else:
        for y in range(n):
            out[o0 + y] = low
    most = low + weight * cut
    for y in range(n):
        out[o0 + y] = min(out[o0 + y], most) - low
    return low


@_jit(no_cpython_wrapper=True)
def pair_cost(x, y, kind, weight, cut):
    """weight · min(d(x, y), cut)."""
    if kind == POTTS:
        return weight * min(1.0 if x != y else 0.0, cut)
    d = float(abs(x - y))
    return weight * min(d if kind == LINEAR else d * d, cut)


@_jit(no_cpython_wrapper=True)
def _beliefs(cost, messages, r, c, n, out):
    for x in range(n):
        out[x] = (
            cost[r, c, x] + messages[0, r, c, x] + messages[1, r, c, x] + messages[2, r, c, x] + messages[3, r, c, x]
        )


@_jit
def label_sweep(cost, right, below, kind, cut, messages, backward):
    """One pass of sequential reweighted messages through the pixels, row by row, or back."""
    rows, cols, n = cost.shape
    belief, h, at, edge = np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n + 1)
    out = np.empty(n)
    for i in range(rows * cols):
        p = rows * cols - 1 - i if backward else i
        r, c = p // cols, p % cols
        _beliefs(cost, messages, r, c, n, belief)
        n_before = (1 if r > 0 else 0) + (1 if c > 0 else 0)
        n_after = (1 if r + 1 < rows else 0) + (1 if c + 1 < cols else 0)
        share = 1.0 / max(max(n_before, n_after), 1)
        for vertical in range(2):
            if backward:
                if (r == 0) if vertical else (c == 0):
                    continue
                back, into = (2, 3) if vertical else (0, 1)  # what came from there; what is sent there
                r2, c2 = (r - 1, c) if vertical else (r, c - 1)
                weight = below[r - 1, c] if vertical else right[r, c - 1]
            else:
                if (r + 1 == rows) if vertical else (c + 1 == cols):
                    continue
                back, into = (3, 2) if vertical else (1, 0)
                r2, c2 = (r + 1, c) if vertical else (r, c + 1)
                weight = below[r, c] if vertical else right[r, c]
            for x in range(n):
                h[x] = share * belief[x] - messages[back, r, c, x]
            cheapest(h, n, kind, weight, cut, at, edge, out, 0)
            for x in range(n):
                messages[into, r2, c2, x] = out[x]


@_jit
def label_bound(cost, right, below, kind, cut, messages):
    """A lower bound on the cost of every labelling, for any messages: the least of each pixel and of each pair.

    The pixel has lent its share to the pairs with those before it, as the pass back leaves it.
    """
    rows, cols, n = cost.shape
    belief, h, at, edge = np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n + 1)
    out, total = np.empty(n), 0.0
    for r in range(rows):
        for c in range(cols):
            _beliefs(cost, messages, r, c, n, belief)
            n_before = (1 if r > 0 else 0) + (1 if c > 0 else 0)
            n_after = (1 if r + 1 < rows else 0) + (1 if c + 1 < cols else 0)
            share = 1.0 / max(max(n_before, n_after), 1)
            total += (1.0 - share * n_before) * belief.min()
            for vertical in range(2):
                if (r == 0) if vertical else (c == 0):
                    continue
                back, into = (2, 3) if vertical else (0, 1)
                r2, c2 = (r - 1, c) if vertical else (r, c - 1)
                weight = below[r - 1, c] if vertical else right[r, c - 1]
                for x in range(n):
                    h[x] = share * belief[x] - messages[back, r, c, x]
                low = cheapest(h, n, kind, weight, cut, at, edge, out, 0)
                best = np.inf
                for y in range(n):
                    best = min(best, out[y] - messages[into, r2, c2, y])
                total += best + low
    return total


@_jit
def label_choice(cost, right, below, kind, cut, messages, labels):
    """Pixel after pixel its best label, given those to the left and above and the messages from the others."""
    rows, cols, n = cost.shape
    for r in range(rows):
        for c in range(cols):
            best, best_x = np.inf, 0
            for x in range(n):
                value = cost[r, c, x] + messages[1, r, c, x] + messages[3, r, c, x]
                if c > 0:
                    value += pair_cost(labels[r, c - 1], x, kind, right[r, c - 1], cut)
                if r > 0:
                    value += pair_cost(labels[r - 1, c], x, kind, below[r - 1, c], cut)
                if value < best:
                    best, best_x = value, x
            labels[r, c] = best_x


@_jit
def label_cost(cost, right, below, kind, cut, labels):
    """Σ cost of the labels + Σ over neighbors of weight · min(d, cut)."""
    rows, cols, _ = cost.shape
    total = 0.0
    for r in range(rows):
        for c in range(cols):
            total += cost[r, c, labels[r, c]]
            if c + 1 < cols:
                total += pair_cost(labels[r, c], labels[r, c + 1], kind, right[r, c], cut)
            if r + 1 < rows:
                total += pair_cost(labels[r, c], labels[r + 1, c], kind, below[r, c], cut)
    return total
