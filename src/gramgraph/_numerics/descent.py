"""The direction of limited-memory quasi-Newton descent."""

from __future__ import annotations

from gramgraph._numerics.compiling import njit

_ENTRY = 2e-3  # steps of a loop that NumPy takes for one entry


def _with_numpy(slope, S, Y, products, newest, count):
    rows = [(newest - k) % len(products) for k in range(count)]
    q = -slope
    weights = []
    for i in rows:
        weights.append(float(S[i] @ q) / products[i])
        q -= weights[-1] * Y[i]
    if count:
        q *= products[newest] / float(Y[newest] @ Y[newest])
    for i, a in zip(reversed(rows), reversed(weights), strict=True):
        q += (a - float(Y[i] @ q) / products[i]) * S[i]
    return q


def _work(slope, S, Y, products, newest, count):
    return _ENTRY * (4 * count + 1) * slope.size


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"reassoc", "contract"}, plain=_with_numpy, work=_work)
def quasi_newton(slope, S, Y, products, newest, count):
    """− H · slope by the two-loop recursion, H a guess of the inverse Hessian from the last `count` moves.

    Rows of S and Y are moves and what they did to the slope, products their inner products; the newest stands at
    `newest`, older ones before it, around the end.
    """
    size, rows = slope.shape[0], products.shape[0]
    q = -slope
    weights = products.copy()
    for k in range(count):
        i = (newest - k) % rows
        sum_ = 0.0
        for j in range(size):
            sum_ += S[i, j] * q[j]
        weights[i] = sum_ / products[i]
        for j in range(size):
            q[j] -= weights[i] * Y[i, j]
    if count > 0:
        sum_ = 0.0
        for j in range(size):
            sum_ += Y[newest, j] * Y[newest, j]
        for j in range(size):
            q[j] *= products[newest] / sum_
    for k in range(count - 1, -1, -1):
        i = (newest - k) % rows
        sum_ = 0.0
        for j in range(size):
            sum_ += Y[i, j] * q[j]
        change = weights[i] - sum_ / products[i]
        for j in range(size):
            q[j] += change * S[i, j]
    return q
