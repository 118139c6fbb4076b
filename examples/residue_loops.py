"""Side chains with loops: angle pairs as directions with the kernel exp(κ pᵀq), in Markov networks that have cycles.

(a) Measured: the pairs (φ, ψ), (χ1, χ2), (χ3, χ4) of arginine and lysine as a triangle, against the chain, pairs by
themselves (independent rotamers) and tables along the chain of the six angles; proteins of the test set were not
seen in training. Figures: held-out nats a residue, and the angular error of the most probable value of a hidden pair
given the two others, in degrees.

(b) Simulated (and labeled as such: the measured tables have no residue numbers): eight residues on a contact graph with
loops, drawn from pair potentials between rotamers; the best side chains of all residues given two of them.

Reads the torsion tables below `GRAMGRAPH_DATA` (or ../shared/data beside the project); without them (a) is left out.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gramgraph as gg

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GRAMGRAPH_DATA", ROOT.parent / "shared" / "data"))
PAIRS = {"backbone": ("phi", "psi"), "chi12": ("chi1", "chi2"), "chi34": ("chi3", "chi4")}
GRAPHS = {
    "triangle": "backbone - chi12 - chi34 - backbone",
    "chain": "backbone - chi12 - chi34",
    "apart": "backbone; chi12; chi34",
}


def directions(angles: np.ndarray) -> np.ndarray:
    """Pairs of angles as unit vectors (cos a, sin a, cos b, sin b) / √2: pᵀq = (cos Δa + cos Δb) / 2."""
    parts = [f(angles[:, k]) for k in (0, 1) for f in (np.cos, np.sin)]
    return np.stack(parts, axis=1) / np.sqrt(2.0)


def angles_of(points: np.ndarray) -> np.ndarray:
    """The angles back."""
    return np.stack([np.arctan2(points[:, 1], points[:, 0]), np.arctan2(points[:, 3], points[:, 2])], axis=1)


def turned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angular distances in degrees."""
    return np.degrees(np.abs(np.angle(np.exp(1j * (a - b)))))


def measured(residue: str, n_fit: int, n_test: int) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Angles in radians of two groups of proteins, or None without the tables."""
    file = DATA / "kernel" / "circular" / f"top8000_{residue}.csv.gz"
    if not file.exists():
        return None
    names = [name for pair in PAIRS.values() for name in pair]
    frame = pd.read_csv(file).dropna(subset=names)
    proteins = frame["pdb"].astype(str).to_numpy()
    ids = np.random.default_rng(0).permutation(np.unique(proteins))
    inside = np.isin(proteins, ids[: int(0.7 * len(ids))])
    radians = np.deg2rad(frame[names])
    return radians[inside].sample(n_fit, random_state=0), radians[~inside].sample(n_test, random_state=1)


def columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """One direction a row for every pair."""
    return {name: list(directions(frame[list(pair)].to_numpy())) for name, pair in PAIRS.items()}


def on_angles(net: Any) -> float:
    """What turns densities of directions into densities of angles: the normalizers of exp(κ pᵀq) differ."""
    from scipy.special import ive

    total = 0.0
    for axis in net.cell_axes:
        f = axis.density
        own = float(f.log_kernels(f.sample[:1])[0, 0])  # log C at the kernel's own center, where pᵀq = 1
        total += -2.0 * np.log(2.0 * np.pi * ive(0, 0.5 * f.width)) - own
    return total


def best_values(net: Any, hidden: str, cases: list[dict[str, Any]]) -> np.ndarray:
    """The sample point of highest posterior density in every case, as angles."""
    axis = net.axis(hidden)
    sample = axis.density.sample
    base, shares = axis.cell_densities(sample)
    found = []
    for case in cases:
        p = net.query(hidden, case)[hidden].probabilities
        found.append(sample[int(np.argmax(base + np.log(shares @ (p / np.maximum(axis.q, 1e-300)))))])
    return angles_of(np.array(found))


def tables(fit: pd.DataFrame, test: pd.DataFrame) -> float:
    """Held-out nats of tables along the chain of the six angles, with the best number of bins for each edge."""
    names = list(fit.columns)
    edges = list(pairwise(names))
    net = gg.learn_tree(fit, "table", edges=edges, domains=dict.fromkeys(names, "circle"))
    return float(net.log_likelihood(test).mean())


def loops_within(residue: str, n_fit: int = 2000, n_test: int = 1000, judged: int = 100) -> dict[str, dict[str, float]]:
    """Study (a) of one residue type: held-out nats, and angular errors of hidden pairs."""
    found = measured(residue, n_fit, n_test)
    if found is None:
        return {}
    fit, test = found
    data, held = columns(fit), columns(test)
    out = {}
    for name, graph in GRAPHS.items():
        net = gg.learn_markov(data, graph, domains=dict.fromkeys(PAIRS, "sphere"), rank=8, penalty=1e-3)
        nats = float(net.log_likelihood(held).mean()) + on_angles(net)
        errors = {}
        for hidden in ("chi12", "chi34"):
            cases = [{k: held[k][i] for k in PAIRS if k != hidden} for i in range(judged)]
            truth = test[list(PAIRS[hidden])].to_numpy()[:judged]
            errors[hidden] = float(turned(best_values(net, hidden, cases), truth).mean())
        out[name] = {"nats": nats, **errors}
    out["tables"] = {"nats": tables(fit, test)}
    return out


def contacts(n_rows: int = 1200, cases: int = 40, seed: int = 0) -> dict[str, float]:
    """Study (b), simulated: share of hidden residues whose best rotamers are those of the true model."""
    rng = np.random.default_rng(seed)
    edges = [(i, (i + 1) % 8) for i in range(8)] + [(0, 4), (2, 6), (1, 5)]
    own = {i: 0.4 * rng.normal(size=4) for i in range(8)}
    pair = {edge: 0.8 * rng.normal(size=(4, 4)) for edge in edges}
    states = [str(s) for s in range(4)]
    factors = {(f"r{i}",): np.exp(w) for i, w in own.items()} | {
        (f"r{i}", f"r{j}"): np.exp(w) for (i, j), w in pair.items()
    }
    truth = gg.MarkovNetwork(factors, states={f"r{i}": states for i in range(8)})
    centers = np.stack(np.meshgrid([-1.1, 1.9], [-1.1, 1.9]), axis=2).reshape(4, 2)
    drawn = truth.sample(n_rows + cases, random_state=seed)
    code = np.stack([drawn[f"r{i}"].astype(int).to_numpy() for i in range(8)], axis=1)
    angle = centers[code] + 0.15 * rng.normal(size=(*code.shape, 2))
    data = {f"r{i}": list(directions(angle[:n_rows, i])) for i in range(8)}
    names = [(f"r{i}", f"r{j}") for i, j in edges]
    text = {"loops": "; ".join(f"{a} - {b}" for a, b in names), "apart": "; ".join(f"r{i}" for i in range(8))}
    right = dict.fromkeys((*text, "chain"), 0.0)
    text["chain"] = " - ".join(f"r{i}" for i in range(8))
    total = 0
    nets = {k: gg.learn_markov(data, t, domains=dict.fromkeys(data, "sphere"), cells=24, rank=4, penalty=1e-3)
            for k, t in text.items()}  # fmt: skip
    for row in range(n_rows, n_rows + cases):
        seen = {f"r{i}": states[code[row, i]] for i in (0, 3)}
        best = truth.map_query(seen).assignment
        given = {f"r{i}": directions(angle[row, i : i + 1])[0] for i in (0, 3)}
        for name, net in nets.items():
            found = net.map_query(given).assignment
            for key, state in best.items():
                near = turned(angles_of(np.atleast_2d(found[key])), centers).sum(axis=1)
                right[name] += float(near.argmin() == int(state))
        total += len(best)
    return {name: value / total for name, value in right.items()}


def main() -> None:
    for residue in ("arg", "lys"):
        print(f"(a) measured, {residue}")
        for name, figures in loops_within(residue).items():
            print(f"    {name:9s} " + "  ".join(f"{key} {value:7.2f}" for key, value in figures.items()))
    print("(b) simulated contact graph with loops: share of hidden residues at the best rotamers of the true model")
    for name, share in contacts().items():
        print(f"    {name:9s} {share:.2f}")


if __name__ == "__main__":
    main()
