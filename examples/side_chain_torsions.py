"""Protein side-chain torsions: a tree of angles with several peaks, learned with kernels exp(κ pᵀq) on the circle.

Reads the torsion tables below `GRAMGRAPH_DATA` (or ../shared/data beside the project); without them a small synthetic
chain of angles stands in. Proteins are split: no protein of the test set was seen in training.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

import gramgraph as gg

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("GRAMGRAPH_DATA", ROOT.parent / "shared" / "data"))


def measured(residue: str, chis: int) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Angles in radians of two groups of proteins, or None without the tables."""
    file = DATA / "kernel" / "circular" / f"top8000_{residue}.csv.gz"
    if not file.exists():
        return None
    names = ["psi", "phi", *(f"chi{i + 1}" for i in range(chis))]
    frame = pd.read_csv(file).dropna(subset=names)
    proteins = frame["pdb"].astype(str).to_numpy()
    ids = np.random.default_rng(0).permutation(np.unique(proteins))
    inside = np.isin(proteins, ids[: int(0.7 * len(ids))])
    angles = np.deg2rad(frame[names])
    return angles[inside].sample(2000, random_state=0), angles[~inside].sample(3000, random_state=1)


def stand_in(n: int, seed: int) -> pd.DataFrame:
    """Three angles in a row: each sits in one of three wells that its neighbor prefers."""
    rng = np.random.default_rng(seed)
    columns, well = {}, rng.integers(0, 3, n)
    for name in ("psi", "phi", "chi1", "chi2"):
        columns[name] = np.angle(np.exp(1j * (2.0 * np.pi / 3.0 * well + 0.6 + 0.2 * rng.normal(size=n))))
        well = np.where(rng.random(n) < 0.6, well, rng.integers(0, 3, n))
    return pd.DataFrame(columns)


def main(residue: str = "met", chis: int = 3) -> None:
    found = measured(residue, chis)
    fit, test = found if found is not None else (stand_in(2000, 0), stand_in(3000, 1))
    print(
        f"{residue if found is not None else 'synthetic angles'}: {len(fit)} rows to learn from, {len(test)} to judge"
    )
    edges, domains = list(pairwise(fit.columns)), dict.fromkeys(fit.columns, "circle")
    trees = {edge: gg.learn_tree(fit, edge=edge, edges=edges, domains=domains) for edge in ("kernel", "table")}
    apart = gg.learn_tree(fit, edge="kernel", edges=[], domains=domains)
    for name, net in (("kernels", trees["kernel"]), ("histograms", trees["table"]), ("no edges", apart)):
        print(f"  {name:11s} held-out {net.log_likelihood(test).mean():7.3f} nats a residue")
    net = trees["kernel"]
    print("\nWhat each edge tells, in nats, and the estimates that it mixes:")
    for edge in net.edge_list:
        kinds = ", ".join(f"{kind} {weight:.2f}" for kind, weight in edge.kinds.items())
        print(f"  {edge.x:4s} - {edge.y:4s} {edge.gain:.3f}  ({kinds})")
    last = fit.columns[-1]
    case = {"phi": -1.1, "chi1": 2.9} if "chi1" in fit else {"phi": -1.1}
    case.pop(last, None)
    belief = net.query(last, case)[last]
    low, high = belief.interval(0.5)
    print(f"\n{last} given {case}: mode {belief.mode():.2f}, mean direction {belief.mean_direction():.2f}")
    print(f"  (length {belief.resultant_length():.2f}), half of it in [{low:.2f}, {high:.2f}]")
    print(f"  rests on {belief.diagnostics['effective_sample_size']:.0f} rows")


if __name__ == "__main__":
    main()
