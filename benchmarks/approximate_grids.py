"""Grids of 512 × 512 spins: denoising in seconds, spin updates a second, magnetization against Onsager's exact value.

Part of `python -m benchmarks approximate`. No peer takes a model of this size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure
from benchmarks.tables import Result, markdown, shown

__all__ = ["grid_table", "run_cell"]

SIDE = 512


@cache
def _noisy() -> Any:
    """A picture of two shapes of which a tenth of the pixels was flipped."""
    r, c = np.mgrid[:SIDE, :SIDE]
    clean = ((r > 100) & (r < 400) & (c > 150) & (c < 350)) | ((c - 380) ** 2 + (r - 150) ** 2 < 80**2)
    return clean, clean ^ (np.random.default_rng(0).random((SIDE, SIDE)) < 0.1)


def _denoise_array() -> float:
    import gramgraph as gg

    clean, noisy = _noisy()
    return float((gg.denoise(noisy, coupling=1.0, flip_probability=0.1).image != clean).mean())


def _denoise_model() -> float:
    import gramgraph as gg

    clean, noisy = _noisy()
    best = gg.models.denoising_grid(noisy, coupling=1.0, flip_probability=0.1).map_query(engine="bp")
    found = np.array(list(best.assignment.values())).reshape(SIDE, SIDE) == "+1"
    return float((found != clean).mean())


def _magnetization(temperature: float, engine: str) -> tuple[float, float]:
    """(mean of the inner spins of a grid whose rim is +1, its standard error)."""
    import gramgraph as gg

    net = gg.models.ising_grid(SIDE, SIDE, coupling=1 / temperature)
    rim = {v: "+1" for v in net.variables if {*v[1:].split("_")} & {"0", str(SIDE - 1)}}
    inside = [f"x{r}_{c}" for r in range(SIDE // 4, 3 * SIDE // 4, 2) for c in range(SIDE // 4, 3 * SIDE // 4, 2)]
    start = dict.fromkeys(net.variables, "+1") if temperature < 2.27 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # R-hat of 16,384 spins: some are above 1.1 by chance
        answer = net.query(inside, rim, engine=engine, random_state=0, budget=320, burn_in=60, keep=True, start=start)
    spins = 2.0 * np.mean([answer.details["chains"][v] for v in inside], axis=0) - 1.0  # (chains, draws)
    pieces = spins[:, : spins.shape[1] // 8 * 8].reshape(len(spins) * 8, -1).mean(axis=1)
    return float(pieces.mean()), float(pieces.std(ddof=1) / np.sqrt(len(pieces)))


def onsager(temperature: float) -> float:
    """m = (1 − sinh(2/T)⁻⁴)^(1/8) below the critical temperature, else 0."""
    return float(max(1 - np.sinh(2 / temperature) ** -4, 0.0) ** 0.125)


DENOISING: dict[str, Callable[[], float]] = {
    "denoising, on arrays (gg.denoise)": _denoise_array,
    "denoising, as a model (built and asked)": _denoise_model,
}
MAGNETS = {
    f"magnetization, T = {t:g}, {engine}": (t, engine) for t in (2.0, 3.0) for engine in ("gibbs", "swendsen_wang")
}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One row."""
    found: list[Any] = []
    if cell.row in DENOISING:
        cpu, wall, repeats = measure(lambda: found.append(DENOISING[cell.row]()), budget=cell.budget)
        return Measurement(cpu, wall, repeats, 1, values={"wrong": found[-1]})
    t, engine = MAGNETS[cell.row]
    cpu, wall, repeats = measure(lambda: found.append(_magnetization(t, engine)), budget=0.0, warm=False)
    return Measurement(cpu, wall, repeats, 1, values={"mean": found[-1][0], "error": found[-1][1]})


def grid_table(runner: Runner, spins: Result, *, budget: float, limit: float) -> tuple[str, dict[Any, Result]]:
    """The table, with the spins a second of the main one, and the results."""
    results: dict[Any, Result] = {}
    lines: list[list[object]] = []
    if not isinstance(spins, Failure):
        lines.append(["spin updates a second (Gibbs)", "", f"{1000 / spins.cpu / 1e6:.0f} million", "50 million"])
    for row in (*DENOISING, *MAGNETS):
        found = runner.run(Cell("approximate_grids", row, "grid", "gramgraph", budget, limit))
        results[row, "grid", "gramgraph"] = found
        values = {} if isinstance(found, Failure) else found.values
        outcome = wanted = ""
        if row in DENOISING:
            outcome, wanted = (f"{values['wrong']:.2%} of pixels wrong" if values else ""), "2 s"
        elif values:
            exact = onsager(MAGNETS[row][0])
            off = (values["mean"] - exact) / values["error"]
            outcome = f"{values['mean']:.5f} ± {values['error']:.5f}, exact {exact:.5f}: {off:+.1f} standard errors"
            wanted = "within 3"
        lines.append([row, shown(found), outcome, wanted])
    return markdown(["512 × 512 spins", "time", "outcome", "target"], lines), results
