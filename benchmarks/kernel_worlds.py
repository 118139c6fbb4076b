"""Data for `kernel_trees`: a nonlinear tree with exact posteriors, torsions of proteins, and the simple contestants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.networks import data_folder

__all__ = ["RESIDUES", "World", "discretized", "table_tree", "torsions", "tuned_kde", "world"]

_GRID = 360
MECHANISMS: dict[str, Callable[[Any], list[Any]]] = {
    "sin": lambda x: [1.2 * np.sin(2 * x)],
    "square": lambda x: [0.7 * (np.minimum(np.abs(x), 2.5) ** 2 - 1)],  # squares of squares would leave all scales
    "tanh": lambda x: [1.2 * np.tanh(2 * x)],
    "abs": lambda x: [1.3 * (np.abs(x) - 0.8)],
    "either": lambda x: [x, -x],
    "linear": lambda x: [0.85 * x],
}
RESIDUES = {"arg": 4, "lys": 4, "met": 3, "cys": 1, "cispro": 3}


class World:
    """A random tree of v variables: a child is a function of its parent (or one of two) plus normal noise."""

    def __init__(self, seed: int, v: int = 100) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.v = v
        self.parent = [-1, *(int(rng.integers(max(0, i - 12), i)) for i in range(1, v))]
        kinds = list(MECHANISMS)
        self.kind = [kinds[rng.integers(len(kinds))] for _ in range(v)]
        self.sd = np.concatenate([[1.0], rng.uniform(0.3, 0.6, v - 1)])

    @property
    def names(self) -> list[str]:
        return [f"x{i}" for i in range(self.v)]

    @property
    def edges(self) -> list[tuple[str, str]]:
        return [(f"x{self.parent[i]}", f"x{i}") for i in range(1, self.v)]

    def sample(self, n: int) -> Any:
        X = np.zeros((n, self.v))
        X[:, 0] = self.rng.standard_normal(n)
        for i in range(1, self.v):
            means = MECHANISMS[self.kind[i]](X[:, self.parent[i]])
            which = self.rng.integers(len(means), size=n)
            X[:, i] = np.choose(which, means) + self.sd[i] * self.rng.standard_normal(n)
        return X

    def conditional(self, i: int, above: Any, x: Any) -> Any:
        """p(x_i | parent), all pairs (parents, values)."""
        z = [(x - mean[:, None]) / self.sd[i] for mean in MECHANISMS[self.kind[i]](above)]
        return sum(np.exp(-0.5 * u**2) for u in z) / (len(z) * self.sd[i] * np.sqrt(2 * np.pi))

    def posterior(self, Q: Any, seen: Any, near: Any) -> tuple[Any, Any]:
        """Exact posterior means and log densities of the true values, by sum-product on fine grids around `near`."""
        grids = [_grid(near[:, i], Q[:, i]) for i in range(self.v)]
        width = [np.gradient(g) for g in grids]
        kids: list[list[int]] = [[] for _ in range(self.v)]
        for i in range(1, self.v):
            kids[self.parent[i]].append(i)
        T = {i: self.conditional(i, grids[self.parent[i]], grids[i]) for i in range(1, self.v)}
        up: dict[int, Any] = {}
        for i in range(self.v - 1, 0, -1):
            M = T[i] @ (width[i][:, None] * _product([up[c] for c in kids[i]], len(grids[i]), len(Q)))
            rows = np.flatnonzero(seen[:, i])
            M[:, rows] = self.conditional(i, grids[self.parent[i]], Q[rows, i])
            up[i] = _scaled(M)
        prior = np.exp(-0.5 * grids[0] ** 2)[:, None] * np.ones((1, len(Q)))
        down, mean, score = {0: prior}, np.zeros(Q.shape), np.zeros(Q.shape)
        for i in range(self.v):
            for c in kids[i]:
                others = [down[i], *(up[k] for k in kids[i] if k != c)]
                M = T[c].T @ (width[i][:, None] * _product(others, len(grids[i]), len(Q)))
                rows = np.flatnonzero(seen[:, i])
                M[:, rows] = self.conditional(c, Q[rows, i], grids[c]).T
                down[c] = _scaled(M)
            p = _product([down[i], *(up[k] for k in kids[i])], len(grids[i]), len(Q))
            p /= np.maximum(width[i] @ p, 1e-300)
            mean[:, i] = (width[i] * grids[i]) @ p
            at = [np.interp(x, grids[i], row) for x, row in zip(Q[:, i], p.T, strict=True)]
            score[:, i] = np.log(np.maximum(at, 1e-4))
        return mean, score


def _grid(near: Any, also: Any) -> Any:
    """Half of the points by probability, half evenly in asinh x, which resolves bulk and tails alike."""
    both = np.concatenate([near, also])
    ends = np.arcsinh([both.min() - 1.0, both.max() + 1.0])
    line = np.sinh(np.linspace(ends[0], ends[1], _GRID // 2))
    return np.unique(np.concatenate([line, np.quantile(both, np.linspace(0.001, 0.999, _GRID // 2))]))


def _product(parts: Sequence[Any], size: int, cases: int) -> Any:
    out = np.ones((size, cases))
    for part in parts:
        out = _scaled(out * part)
    return out


def _scaled(M: Any) -> Any:
    return M / np.maximum(M.max(axis=0), 1e-300)


@cache
def world(seed: int, n: int, cases: int) -> dict[str, Any]:
    """Samples, cases with 30 % observed at random, and the exact answers."""
    made = World(seed)
    X, Q = made.sample(n), made.sample(cases)
    seen = made.rng.random(Q.shape) < 0.3
    mean, score = made.posterior(Q, seen, made.sample(4000))
    return {"world": made, "X": X, "Q": Q, "seen": seen, "mean": mean, "score": score}


def table_tree(X: Any, edges: Sequence[tuple[int, int]], bins: int) -> Any:
    """A discretized tree, equal counts a bin: (tables, codes of new rows, means of bins, edges of bins, shares)."""
    from gramgraph.engines.cells.messages import branches_of

    v = X.shape[1]
    cuts = [np.unique(np.quantile(X[:, i], np.linspace(0, 1, bins + 1)[1:-1])) for i in range(v)]
    codes = [np.searchsorted(cuts[i], X[:, i]) for i in range(v)]
    sizes = [len(c) + 1 for c in cuts]
    q = [np.bincount(codes[i], minlength=sizes[i]) / len(X) for i in range(v)]
    links = []
    for a, b in edges:
        table = np.full((sizes[a], sizes[b]), 0.5)
        np.add.at(table, (codes[a], codes[b]), 1.0)
        table /= table.sum()
        links.append((a, b, table / np.outer(table.sum(1), table.sum(0))))
    centers = [np.bincount(codes[i], X[:, i], sizes[i]) / np.maximum(q[i] * len(X), 1e-9) for i in range(v)]
    ends = [np.concatenate([[X[:, i].min()], cuts[i], [X[:, i].max()]]) for i in range(v)]
    return branches_of(q, links), cuts, centers, ends


def discretized(data: dict[str, Any], bins: int) -> tuple[Any, Any]:
    """Posterior means and log scores of the discretized tree."""
    from gramgraph.cells.axes import Placed
    from gramgraph.engines.cells.messages import propagate

    made, Q, seen = data["world"], data["Q"], data["seen"]
    edges = [(made.parent[i], i) for i in range(1, made.v)]
    tree, cuts, centers, ends = table_tree(data["X"], edges, bins)
    codes = [np.searchsorted(cuts[i], Q[:, i]) for i in range(made.v)]
    zero, one = np.zeros(len(Q)), np.ones(len(Q))
    placed = {i: Placed(codes[i], codes[i], zero, one, seen[:, i]) for i in range(made.v)}
    found, _ = propagate(tree, placed, len(Q), range(made.v))
    mean = np.stack([found[i] @ centers[i] for i in range(made.v)], axis=1)
    rows = np.arange(len(Q))
    height = [found[i][rows, codes[i]] / np.maximum(np.diff(ends[i])[codes[i]], 1e-9) for i in range(made.v)]
    return mean, np.log(np.maximum(np.stack(height, axis=1), 1e-4))


# ------------------------------------------------------------------------------------------ torsions


@cache
def torsions(which: str, n: int, seed: int = 0) -> dict[str, Any] | None:
    """n rows to fit, 2,000 to choose, up to 3,000 to judge, split by protein; None without the data."""
    import pandas as pd

    folder = data_folder()
    file = None if folder is None else folder / "kernel" / "circular" / f"top8000_{which}.csv.gz"
    if file is None or not file.exists():
        return None
    names = ["phi", "psi", *(f"chi{i + 1}" for i in range(RESIDUES[which]))]
    frame = pd.read_csv(file).dropna(subset=names)
    angles = np.angle(np.exp(1j * np.deg2rad(frame[names].to_numpy())))
    proteins = frame["pdb"].to_numpy().astype(str)
    rng = np.random.default_rng(seed)
    ids = np.unique(proteins)
    rng.shuffle(ids)
    inside = np.isin(proteins, ids[: int(0.7 * len(ids))])
    train = angles[inside][rng.permutation(int(inside.sum()))]
    test = angles[~inside][rng.permutation(int((~inside).sum()))][:3000]
    frames = [pd.DataFrame(part, columns=names) for part in (train[:n], train[n : n + 2000], test)]
    edges = [("psi", "phi"), ("phi", "chi1"), *pairwise(names[2:])]
    return {"fit": frames[0], "choose": frames[1], "judge": frames[2], "edges": edges, "names": names}


def _place(x: Any, size: int = _GRID) -> Any:
    return np.rint((np.asarray(x) + np.pi) / (2 * np.pi) * size).astype(int) % size


def _bumps(a: Any, b: Any, kappa: float) -> Any:
    return np.exp(kappa * (np.cos(a[:, None] - b) - 1.0))


def _marginal(fit: Any, choose: Any) -> Any:
    grid = -np.pi + 2 * np.pi / _GRID * np.arange(_GRID)
    best: tuple[float, Any] = (-np.inf, None)
    for kappa in (10, 30, 60, 100, 200, 400, 800):
        p = _bumps(grid, fit, kappa).sum(axis=1)
        p /= p.sum() * 2 * np.pi / _GRID
        score = float(np.log(p[_place(choose)] + 1e-12).mean())
        best = max(best, (score, p), key=lambda pair: pair[0])
    return best[1]


def _judged(data: dict[str, Any], tables: dict[tuple[str, str], Any]) -> float:
    judge = data["judge"]
    total = np.log(_marginal(data["fit"]["psi"].to_numpy(), data["choose"]["psi"].to_numpy())[_place(judge["psi"])])
    for a, b in data["edges"]:
        total = total + np.log(tables[a, b][_place(judge[a]), _place(judge[b])] + 1e-12)
    return float(total.mean())


def tuned_kde(data: dict[str, Any]) -> float:
    """Held-out log-likelihood a residue of conditional kernel densities, both widths chosen for every edge."""
    grid = -np.pi + 2 * np.pi / _GRID * np.arange(_GRID)
    tables = {}
    for a, b in data["edges"]:
        x, y = data["fit"][a].to_numpy(), data["fit"][b].to_numpy()
        best: tuple[float, Any] = (-np.inf, None)
        for first in (10, 30, 60, 100, 200):
            left = _bumps(grid, x, first)
            for second in (30, 100, 200, 400):
                c = left @ _bumps(y, grid, second) + 1e-9
                c /= c.sum(axis=1, keepdims=True) * 2 * np.pi / _GRID
                score = float(np.log(c[_place(data["choose"][a]), _place(data["choose"][b])]).mean())
                best = max(best, (score, c), key=lambda pair: pair[0])
        tables[a, b] = best[1]
    return _judged(data, tables)


def discretized_torsions(data: dict[str, Any]) -> float:
    """The same for tables, number of bins and pseudo-count chosen for all edges together."""
    best: tuple[float, Any] = (-np.inf, None)
    for bins in (12, 24, 36, 72):
        spread = np.arange(_GRID) * bins // _GRID
        for extra in (0.01, 0.1, 1.0):
            tables, score = {}, 0.0
            for a, b in data["edges"]:
                T = np.full((bins, bins), extra)
                np.add.at(T, (_place(data["fit"][a]) * bins // _GRID, _place(data["fit"][b]) * bins // _GRID), 1.0)
                T /= T.sum(axis=1, keepdims=True)
                tables[a, b] = T[spread][:, spread] * bins / (2 * np.pi)
                score += float(np.log(tables[a, b][_place(data["choose"][a]), _place(data["choose"][b])]).mean())
            best = max(best, (score, tables), key=lambda pair: pair[0])
    return _judged(data, best[1])
