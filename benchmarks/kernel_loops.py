"""Undirected networks with loops: posterior means on a torus whose potentials are known.

`python -m benchmarks kernel_loops` (`--tasks strong`: only that row). 10 × 10 variables on a torus with two wells each,
p(x) ∝ exp(Σ 2x² − x⁴ + J Σ cos 1.5(xᵢ − xⱼ)), weak and strong coupling J. 2,000 rows are learned from; then 30 % of the
variables of another draw are observed, and the means of the others are compared with those of long chains (whose
standard error is told). Five samples each. Contestants know the graph: kernel potentials by pseudo-likelihood
(`learn_markov`, one for every edge or one for all), tables on bins of equal counts by pseudo-likelihood (the number of
bins and the penalty that turn out best in hindsight: of twelve on the first sample, of the best two on all), and
products of density ratios of single edges (`learn_tree`).
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, versions
from benchmarks.tables import Result, failures, markdown

__all__ = ["report", "run_cell", "torus"]

SIDE, ROWS, SAMPLES, OBSERVED = 10, 2000, 5, 0.3
#: Metropolis sweeps of every row.
SWEEPS = 200
COUPLING = {"weak": 0.25, "strong": 0.6}
BINS, PENALTIES = (4, 6, 8, 12), (1e-4, 1e-3, 1e-2)
CONTESTANTS = (
    "gramgraph kernel potentials",
    "gramgraph one potential",
    "numpy tables",
    "gramgraph ratios",
    "numpy prior",
)
_TURN = 1.5
NAMES = [f"x{i}" for i in range(SIDE * SIDE)]


def _edges() -> list[tuple[int, int]]:
    at = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    pairs = [(at, np.roll(at, -1, axis=1)), (at, np.roll(at, -1, axis=0))]
    return [(int(a), int(b)) for x, y in pairs for a, b in zip(x.ravel(), y.ravel(), strict=True)]


EDGES = _edges()


# ------------------------------------------------------------------------------------------ the truth


@cache
def _compiled() -> Any:
    import numba

    @numba.njit
    def run(X: Any, J: float, free: Any, first: int, sweeps: int, rng: Any) -> Any:
        """Metropolis sweeps of every chain X (chains, sites); sums of the states after the first ones. A step is to a
        near value, one in four of them mirrored into the other well."""
        total = np.zeros_like(X)
        C, S = np.empty(SIDE * SIDE), np.empty(SIDE * SIDE)
        for k in range(len(X)):
            x = X[k]
            for i in range(SIDE * SIDE):
                C[i], S[i] = np.cos(_TURN * x[i]), np.sin(_TURN * x[i])
            for sweep in range(sweeps):
                for i in range(SIDE * SIDE):
                    if not free[i]:
                        continue
                    r, c = i // SIDE, i % SIDE
                    a, b = (r + 1) % SIDE * SIDE + c, (r + SIDE - 1) % SIDE * SIDE + c
                    d, e = r * SIDE + (c + 1) % SIDE, r * SIDE + (c + SIDE - 1) % SIDE
                    y = x[i] + 0.7 * rng.standard_normal()
                    y = -y if rng.random() < 0.25 else y
                    cy, sy = np.cos(_TURN * y), np.sin(_TURN * y)
                    gain = 2.0 * (y**2 - x[i] ** 2) - (y**4 - x[i] ** 4)
                    gain += J * ((cy - C[i]) * (C[a] + C[b] + C[d] + C[e]) + (sy - S[i]) * (S[a] + S[b] + S[d] + S[e]))
                    if np.log(rng.random()) < gain:
                        x[i], C[i], S[i] = y, cy, sy
                if sweep >= first:
                    total[k] += x
        return total

    return run


@cache
def torus(word: str, sample: int) -> dict[str, Any]:
    """Rows, a case with gaps, the means of its free variables by long chains, and their largest standard error."""
    J, rng, run = COUPLING[word], np.random.default_rng([sample, 18]), _compiled()
    size = SIDE * SIDE
    X = rng.choice([-1.0, 1.0], size=(ROWS + 1, size))
    X[::2] = X[::2, :1]  # ordered and disordered starts
    run(X, J, np.ones(size, dtype=bool), SWEEPS, SWEEPS, rng)
    case, rows = X[-1].copy(), X[:-1]
    seen = np.zeros(size, dtype=bool)
    seen[rng.permutation(size)[: round(OBSERVED * size)]] = True
    chains = rng.choice([-1.0, 1.0], size=(400, size))
    chains[:, seen] = case[seen]
    means = run(chains, J, ~seen, 100, 700, rng) / 600
    error = means.std(axis=0, ddof=1) / np.sqrt(len(chains))
    return {"rows": rows, "case": case, "seen": seen, "mean": means.mean(axis=0), "error": float(error.max())}


# ------------------------------------------------------------------------------------------ contestants


def _frame(X: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=NAMES)


def _ours(data: dict[str, Any], shared: bool) -> Any:
    import gramgraph as gg

    pairs = [(NAMES[a], NAMES[b]) for a, b in EDGES]
    net = gg.learn_markov(_frame(data["rows"]), pairs, shared=shared)
    evidence = {NAMES[i]: float(data["case"][i]) for i in np.flatnonzero(data["seen"])}
    found = net.query(None, evidence, engine="bp")
    return np.array([found[name].mean() if name not in evidence else evidence[name] for name in NAMES])


def _ratios(data: dict[str, Any]) -> Any:
    """Kernel densities of single variables times density ratios of edges: three forests hold all edges."""
    import gramgraph as gg

    frame, left, logs = _frame(data["rows"]), list(EDGES), {}
    while left:
        root, forest = list(range(len(NAMES))), []
        for a, b in list(left):
            if _top(root, a) != _top(root, b):
                root[_top(root, a)] = _top(root, b)
                forest.append((a, b))
                left.remove((a, b))
        tree = gg.learn_tree(frame, edges=[(NAMES[a], NAMES[b]) for a, b in forest])
        for a, b in forest:
            edge = tree.edge(NAMES[a], NAMES[b])
            R = edge.R if edge.x == NAMES[a] else edge.R.T
            logs[a, b] = np.log(np.maximum(R, 1e-12))
    axes = tree.cell_axes
    placed = [axis.place(data["case"][i : i + 1]) for i, axis in enumerate(axes)]
    corners = [((int(p.a[0]), 1.0 - float(p.f[0])), (int(p.b[0]), float(p.f[0]))) for p in placed]
    centers = [axis.moments(np.eye(axis.m))[0] for axis in axes]
    return _loopy([np.log(axis.q) for axis in axes], logs, centers, corners, data)


def _top(root: list[int], i: int) -> int:
    while root[i] != i:
        i = root[i]
    return i


def _tables(data: dict[str, Any], bins: int, lam: float) -> Any:
    """Tables of edges by pseudo-likelihood on bins of equal counts, with a ridge."""
    from gramgraph.embeddings.network.node_problem import solve_node

    X = data["rows"]
    cuts = [np.quantile(x, np.linspace(0.0, 1.0, bins + 1)[1:-1]) for x in X.T]
    codes = [np.searchsorted(c, x) for c, x in zip(cuts, X.T, strict=True)]
    U = [np.eye(bins)[code] - 1.0 / bins for code in codes]
    F, q = np.eye(bins) - 1.0 / bins, np.full(bins, 1.0 / bins)
    near: list[list[int]] = [[] for _ in NAMES]
    for a, b in EDGES:
        near[a].append(b)
        near[b].append(a)
    fields, pairs = [], dict.fromkeys(EDGES, np.zeros((bins, bins)))
    for i in range(len(NAMES)):
        design = np.hstack([np.ones((len(X), 1)), *(U[j] for j in near[i])])
        penalty = np.full((design.shape[1], bins), lam)
        penalty[0] = 1e-6
        B = solve_node([(design, U[i], F, q)], penalty)
        fields.append(F @ B[0])
        for k, j in enumerate(near[i]):
            T = 0.5 * F @ B[1 + k * bins : 1 + (k + 1) * bins].T @ F.T  # (own, other)
            if (i, j) in pairs:
                pairs[i, j] = pairs[i, j] + T
            else:
                pairs[j, i] = pairs[j, i] + T.T
    centers = [np.array([x[code == k].mean() for k in range(bins)]) for code, x in zip(codes, X.T, strict=True)]
    corners = [((int(np.searchsorted(c, x)), 1.0),) for c, x in zip(cuts, data["case"], strict=True)]
    return _loopy(fields, pairs, centers, corners, data)


def _loopy(fields: Any, pairs: Any, centers: Any, corners: Any, data: dict[str, Any]) -> Any:
    """Means by loopy propagation; an observed value stands between cells with weights."""
    own = [np.array(f) for f in fields]
    seen, links = data["seen"], []
    for (a, b), T in pairs.items():
        if seen[a] and not seen[b]:
            own[b] = own[b] + np.log(sum(w * np.exp(T[k]) for k, w in corners[a]))
        elif seen[b] and not seen[a]:
            own[a] = own[a] + np.log(sum(w * np.exp(T[:, k]) for k, w in corners[b]))
        elif not seen[a] and not seen[b]:
            links += [(a, b, np.exp(T)), (b, a, np.exp(T).T)]
    heard: list[dict[int, Any]] = [{} for _ in own]
    for a, b, T in links:
        heard[b][a] = np.zeros(T.shape[1])
    for _ in range(500):
        moved = 0.0
        for a, b, T in links:
            z = own[a] + sum((m for c, m in heard[a].items() if c != b), np.zeros_like(own[a]))
            m = np.log(np.maximum(np.exp(z - z.max()) @ T, 1e-300))
            m = 0.5 * (m - m.max()) + 0.5 * heard[b][a]
            moved = max(moved, float(np.abs(m - heard[b][a]).max()))
            heard[b][a] = m
        if moved < 1e-6:
            break
    out = data["case"].copy()
    for i in np.flatnonzero(~seen):
        z = own[i] + sum(heard[i].values(), np.zeros_like(own[i]))
        p = np.exp(z - z.max())
        out[i] = p @ centers[i] / p.sum()
    return out


def _off(data: dict[str, Any], mean: Any) -> float:
    free = ~data["seen"]
    return float(np.sqrt(np.mean((mean - data["mean"])[free] ** 2)))


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One contestant at one coupling, over all samples."""
    samples = range(int(cell.options.get("samples", SAMPLES)))
    worlds = [torus(cell.row, k) for k in samples]
    start = time.process_time()
    if cell.contestant == "numpy tables":
        first = {(b, lam): _off(worlds[0], _tables(worlds[0], b, lam)) for b in BINS for lam in PENALTIES}
        tried = {
            key: [first[key], *(_off(d, _tables(d, *key)) for d in worlds[1:])]
            for key in sorted(first, key=lambda key: first[key])[:2]
        }
        best = min(tried, key=lambda key: float(np.mean(np.square(tried[key]))))
        found, note = tried[best], f"{best[0]} bins, penalty {best[1]:g}"
    else:
        answer = {
            "gramgraph kernel potentials": lambda d: _ours(d, shared=False),
            "gramgraph one potential": lambda d: _ours(d, shared=True),
            "gramgraph ratios": _ratios,
            "numpy prior": lambda d: np.broadcast_to(d["rows"].mean(axis=0), d["case"].shape),
        }[cell.contestant]
        found, note = [_off(d, answer(d)) for d in worlds], ""
    cpu = time.process_time() - start
    values = {"rmse": float(np.sqrt(np.mean(np.square(found)))), "error": max(d["error"] for d in worlds)}
    values |= {f"sample {k}": off for k, off in zip(samples, found, strict=True)}
    return Measurement(cpu / len(worlds), cpu / len(worlds), 1, 1, note=note, values=values)


# ------------------------------------------------------------------------------------------ the report


def report(
    runner: Runner, *, quick: bool = False, limit: float | None = None, tasks: Any = None, **_: Any
) -> tuple[str, list[str]]:
    """Root mean squared errors of posterior means, and where kernel potentials are not clearly ahead."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults, options = [], [], {"samples": 1} if quick else {}
    for row in [word for word in COUPLING if tasks is None or word in tasks]:
        for name in CONTESTANTS:
            cell = Cell("kernel_loops", row, "all", name, 1.0, limit or 560.0, options=options)
            results[row, "all", name] = runner.run(cell)
        off = {name: _rmse(results[row, "all", name]) for name in CONTESTANTS}
        own = off["gramgraph kernel potentials"]
        if not own <= 0.8 * off["numpy tables"]:
            faults.append(f"{row}: kernel potentials {own:.3f}, tables {off['numpy tables']:.3f}")
        if row == "strong" and not own <= 0.5 * off["gramgraph ratios"]:
            faults.append(f"{row}: kernel potentials {own:.3f}, ratios {off['gramgraph ratios']:.3f}")
        lines.append([row, *(_shown(results[row, "all", name]) for name in CONTESTANTS)])
    head = versions(["gramgraph", "numpy", "scipy"])
    table = markdown(["coupling", *CONTESTANTS], lines)
    errors = [r.values["error"] for r in results.values() if isinstance(r, Measurement)]
    told = f"Largest standard error of a mean of the chains: {max(errors, default=np.nan):.4f}."
    what = "Root mean squared error of posterior means (CPU seconds a sample)."
    return f"# Loops\n\n{head}\n\n{what}\n\n{table}\n\n{told}\n", faults + failures(results)


def _rmse(result: Result) -> float:
    return result.values["rmse"] if isinstance(result, Measurement) else np.nan


def _shown(result: Result) -> str:
    if not isinstance(result, Measurement):
        return result.reason
    note = f", {result.note}" if result.note else ""
    return f"{result.values['rmse']:.4f} ({result.cpu:.1f} s{note})"
