"""One connected component on its way from edges to coordinates; `layout` tells the whole story."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

from gramgraph.plot.spans import least_span_layers

Point = tuple[float, float]
Edge = tuple[int, int]
Placed = tuple[tuple[Point, ...], tuple[tuple[Point, ...], ...], float, float]  # centers, routes, width, height

_MOST_DUMMIES = 40_000  # beyond it long edges are drawn straight, so that any graph takes bounded time


class Component:
    """Layers, order and coordinates of one component. Numbers ≥ n are dummy nodes."""

    def __init__(
        self, edges: list[Edge], widths: list[float], heights: list[float], gap_x: float, gap_y: float
    ) -> None:
        self.n = len(widths)
        self.edges = edges
        self.widths, self.heights = list(widths), list(heights)
        self.gap_x, self.gap_y = gap_x, gap_y
        self.layer = _layers(self.n, _acyclic(self.n, edges))
        span = sum(abs(self.layer[u] - self.layer[v]) for u, v in edges)
        self.chains = [self._chain(u, v) if span <= _MOST_DUMMIES else [u, v] for u, v in edges]
        size = len(self.layer)
        self.above: list[list[int]] = [[] for _ in range(size)]
        self.below: list[list[int]] = [[] for _ in range(size)]
        for chain in self.chains:
            # A chain may run upward (a reversed edge of a cycle): `above` and `below` follow the layers.
            for a, b in pairwise(chain):
                a, b = (a, b) if self.layer[a] < self.layer[b] else (b, a)
                self.below[a].append(b)
                self.above[b].append(a)
        self.rows = self._first_rows()

    def _chain(self, u: int, v: int) -> list[int]:
        step = 1 if self.layer[v] > self.layer[u] else -1
        chain = [u]
        for level in range(self.layer[u] + step, self.layer[v], step):
            chain.append(len(self.layer))
            self.layer.append(level)
            self.widths.append(1.0)
            self.heights.append(0.0)
        return [*chain, v] if v != u else [u]

    def _first_rows(self) -> list[list[int]]:
        """Depth first from the top, so that a family starts out together."""
        rows: list[list[int]] = [[] for _ in range(max(self.layer) + 1)]
        seen = [False] * len(self.layer)
        for start in sorted(range(len(self.layer)), key=lambda v: (self.layer[v], v)):
            stack = [start]
            while stack:
                v = stack.pop()
                if seen[v]:
                    continue
                seen[v] = True
                rows[self.layer[v]].append(v)
                stack.extend(reversed(self.below[v]))
        return rows

    # -- order within the layers

    def place(self, sweeps: int) -> Placed:
        """Order the layers, then give coordinates."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        stale = 0
        for sweep in range(sweeps):
            if fewest == 0 or stale == 4:
                break
            self._sweep(down=sweep % 2 == 0, lean_right=sweep % 4 >= 2)
            if len(self.layer) <= 240:
                self._swap_neighbors()
            crossings = self._crossings()
            stale += 1
            if crossings < fewest:
                best, fewest, stale = [list(row) for row in self.rows], crossings, 0
        self.rows = best
        return self._coordinates()

    def _positions(self) -> list[int]:
        at = [0] * len(self.layer)
        for row in self.rows:
            for i, v in enumerate(row):
                at[v] = i
        return at

    def _sweep(self, *, down: bool, lean_right: bool) -> None:
        at = self._positions()
        order = range(1, len(self.rows)) if down else range(len(self.rows) - 2, -1, -1)
        near = self.above if down else self.below
        for level in order:
            row = self.rows[level]
            wanted = {v: _median(sorted([at[u] for u in near[v]]), at[v]) for v in row}
            sign = -1 if lean_right else 1
            row.sort(key=lambda v: (wanted[v], sign * at[v]))
            for i, v in enumerate(row):
                at[v] = i

    def _swap_neighbors(self) -> None:
        """Swap adjacent nodes while that removes crossings (small drawings only)."""
        at = self._positions()
        for row in self.rows:
            for i in range(len(row) - 1):
                a, b = row[i], row[i + 1]
                change = 0
                for near in (self.above, self.below):
                    pa, pb = [at[u] for u in near[a]], [at[u] for u in near[b]]
                    change += sum((x < y) - (x > y) for x in pa for y in pb)
                if change < 0:
                    row[i], row[i + 1] = b, a
                    at[a], at[b] = i + 1, i

    def _crossings(self) -> int:
        at = self._positions()
        total = 0
        for row in self.rows[:-1]:
            seen: list[int] = []
            for v in row:
                heads = sorted([at[u] for u in self.below[v]])
                total += sum(len(seen) - bisect_right(seen, head) for head in heads)
                for head in heads:
                    insort(seen, head)
        return total

    # -- coordinates

    def _coordinates(self) -> Placed:
        x = [0.0] * len(self.layer)
        for row in self.rows:
            _push_apart(row, x, [0.0] * len(row), [1.0] * len(row), self.widths, self.gap_x)
        last = len(self.rows) - 1
        for sweep in range(10):
            levels = range(last + 1) if sweep % 2 == 0 else range(last, -1, -1)
            for level in levels:
                self._align(self.rows[level], x, down=sweep % 2 == 0, both=sweep >= 6)
        shift = min(x[v] - self.widths[v] / 2 for v in range(len(x)))
        x = [value - shift for value in x]
        y, tops, bottoms = self._levels()
        centers = tuple((x[v], y[self.layer[v]]) for v in range(self.n))
        routes = self._routes(x, y, tops, bottoms)
        width = max(x[v] + self.widths[v] / 2 for v in range(len(x)))
        return centers, routes, width, bottoms[-1]

    def _align(self, row: list[int], x: list[float], *, down: bool, both: bool) -> None:
        wanted, weights = [], []
        for v in row:
            near = self.above[v] + self.below[v] if both else self.above[v] if down else self.below[v]
            if not near:
                wanted.append(x[v])
                weights.append(0.1)
                continue
            wanted.append(sum([x[u] for u in near]) / len(near))
            # A bend in the middle of a long edge is uglier than one at its end.
            weights.append(len(near) * (4.0 if v >= self.n else 1.0))
        _push_apart(row, x, wanted, weights, self.widths, self.gap_x)

    def _levels(self) -> tuple[list[float], list[float], list[float]]:
        y, tops, bottoms = [], [], []
        top = 0.0
        for row in self.rows:
            height = max(self.heights[v] for v in row)
            tops.append(top)
            y.append(top + height / 2)
            bottoms.append(top + height)
            top += height + self.gap_y
        return y, tops, bottoms

    def _routes(
        self, x: list[float], y: list[float], tops: list[float], bottoms: list[float]
    ) -> tuple[tuple[Point, ...], ...]:
        ports = self._ports(x)
        routes = []
        for k, chain in enumerate(self.chains):
            upward = self.layer[chain[-1]] < self.layer[chain[0]]
            route: list[Point] = []
            for i, v in enumerate(chain):
                level = self.layer[v]
                if v < self.n:  # straight from the box to the edge of its layer, past its taller neighbors
                    down = (i == 0) != upward
                    at = x[v] + ports[k, i == 0]
                    box = (at, y[level] + (self.heights[v] / 2 if down else -self.heights[v] / 2))
                    rim = (at, bottoms[level] if down else tops[level])
                    route += [box, rim] if i == 0 else [rim, box]
                else:
                    half = (bottoms[level] - tops[level]) / 2
                    lean = self._lean(chain[i - 1], v, chain[i + 1], x, y, half)
                    ends = [(x[v] - lean, tops[level]), (x[v] + lean, bottoms[level])]
                    route += reversed(ends) if upward else ends
            routes.append(tuple(route))
        return tuple(routes)

    def _lean(self, a: int, v: int, b: int, x: list[float], y: list[float], half: float) -> float:
        """How far a long edge moves aside while it passes half a layer, within the gap between two boxes."""
        if (x[b] - x[v]) * (x[v] - x[a]) <= 0.0:
            return 0.0
        slope = (x[b] - x[a]) / (y[self.layer[b]] - y[self.layer[a]])
        limit = 0.6 * self.gap_x
        return min(max(slope * half, -limit), limit)

    def _ports(self, x: list[float]) -> dict[tuple[int, bool], float]:
        """Where on a node each edge starts (True) and ends (False): apart, in the order of the other ends."""
        sides: dict[tuple[int, bool], list[tuple[float, int, bool]]] = {}
        for k, chain in enumerate(self.chains):
            for first in (True, False):
                v, u = (chain[0], chain[min(1, len(chain) - 1)]) if first else (chain[-1], chain[-2:][0])
                sides.setdefault((v, self.layer[u] > self.layer[v]), []).append((x[u], k, first))
        out = {}
        for (v, _), ends in sides.items():
            ends.sort()
            step = min(10.0, 0.6 * self.widths[v] / max(len(ends) - 1, 1))
            for i, (_, k, first) in enumerate(ends):
                out[k, first] = (i - (len(ends) - 1) / 2) * step
        return out


def _acyclic(n: int, edges: Sequence[Edge]) -> list[Edge]:
    """The edges with those reversed that close a cycle (depth first), without loops."""
    below: list[list[int]] = [[] for _ in range(n)]
    for u, v in edges:
        if u != v:
            below[u].append(v)
    done = [0] * n  # 0 not seen, 1 on the path, 2 left
    back = set()
    for start in range(n):
        if done[start]:
            continue
        done[start] = 1
        stack = [(start, iter(below[start]))]
        while stack:
            u, rest = stack[-1]
            for v in rest:
                if done[v] == 0:
                    done[v] = 1
                    stack.append((v, iter(below[v])))
                    break
                if done[v] == 1:
                    back.add((u, v))
            else:
                done[u] = 2
                stack.pop()
    return [(v, u) if (u, v) in back else (u, v) for u, v in edges if u != v]


def _layers(n: int, edges: Sequence[Edge]) -> list[int]:
    """Layers of least total span, found from the longest paths from the sources."""
    below: list[list[int]] = [[] for _ in range(n)]
    waiting = [0] * n
    for u, v in edges:
        below[u].append(v)
        waiting[v] += 1
    order = [v for v in range(n) if not waiting[v]]
    layer = [0] * n
    for u in order:
        for v in below[u]:
            layer[v] = max(layer[v], layer[u] + 1)
            waiting[v] -= 1
            if not waiting[v]:
                order.append(v)
    return least_span_layers(layer, edges)


def _median(at: list[int], default: int) -> float:
    """The median; of an even number the mean of the middle two, leaning to the side that is closer together."""
    k = len(at)
    if k == 0:
        return default
    if k % 2:
        return at[k // 2]
    if k == 2:
        return (at[0] + at[1]) / 2
    left, right = at[k // 2 - 1] - at[0], at[-1] - at[k // 2]
    if left + right == 0:
        return (at[k // 2 - 1] + at[k // 2]) / 2
    return (at[k // 2 - 1] * right + at[k // 2] * left) / (left + right)


def _push_apart(
    row: list[int],
    x: list[float],
    wanted: list[float],
    weights: list[float],
    widths: list[float],
    gap: float,
) -> None:
    """min Σ w (x − wanted)² subject to the order of the row and the widths, in place (pool adjacent violators)."""
    offset, before = 0.0, -1
    offsets = []
    blocks: list[list[float]] = []  # [mean, weight, count]
    for i, v in enumerate(row):
        if before >= 0:
            offset += (widths[before] + widths[v]) / 2 + gap
        before = v
        offsets.append(offset)
        block = [wanted[i] - offset, weights[i], 1]
        while blocks and blocks[-1][0] >= block[0]:
            mean, weight, count = blocks.pop()
            total = weight + block[1]
            block = [(mean * weight + block[0] * block[1]) / total, total, count + block[2]]
        blocks.append(block)
    i = 0
    for mean, _, count in blocks:
        for _ in range(int(count)):
            x[row[i]] = mean + offsets[i]
            i += 1
