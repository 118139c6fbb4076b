"""One objective for all classes: a round over the points of the dual, one point's coefficients at a time."""

from __future__ import annotations

from gramgraph._numerics.compiling import njit


@njit(cache=True, nogil=True)
def round_of_all_classes(K, codes, bound, order, alpha, F, B, D):
    """One pass; α (n, k) and F = Kα are changed in place, B and D (k,) are scratch. The largest violation comes back.

    For a point: min ½ K_ii |a|² + Bᵀa with Σ a = 0, a_m ≤ bound of the point at its own class and 0 elsewhere.
    """
    n, k = alpha.shape
    worst = 0.0
    for t in range(n):
        i = order[t]
        A, y, C = K[i, i], codes[i], bound[i]
        if A <= 0.0 or C <= 0.0:
            continue
        high, low = -1e300, 1e300
        for m in range(k):
            g = F[i, m]
            limit = C
            if m != y:
                g += 1.0
                limit = 0.0
            if g > high:
                high = g
            if alpha[i, m] < limit and g < low:
                low = g
            B[m] = g - A * alpha[i, m]
        if high - low <= 1e-12:
            continue
        if high - low > worst:
            worst = high - low
        for m in range(k):
            D[m] = B[m]
        D[y] += A * C
        for a in range(1, k):  # largest first
            value = D[a]
            b = a - 1
            while b >= 0 and D[b] < value:
                D[b + 1] = D[b]
                b -= 1
            D[b + 1] = value
        level = D[0] - A * C
        r = 1
        while r < k and level < r * D[r]:
            level += D[r]
            r += 1
        level /= r
        for m in range(k):
            new = (level - B[m]) / A
            limit = C if m == y else 0.0
            if new > limit:
                new = limit
            step = new - alpha[i, m]
            if step != 0.0:
                alpha[i, m] = new
                for j in range(n):
                    F[j, m] += step * K[i, j]
    return worst
