"""Marginals and log Z of the UAI instances too wide for an exact answer, against a standard residual propagation.

`python -m benchmarks approximate_marginals`. Ours is what `query` does by itself where no exact plan fits; the standard
is propagation with the residual schedule and damping 0.5. The error is the mean absolute difference to the official
marginals over all states of all variables that are not observed; the interval must hold the official log Z. Instances
without official marginals show the interval alone. `--networks NAME …` takes some instances.
"""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, versions
from benchmarks.networks import data_folder
from benchmarks.tables import Result, failures, markdown, seconds

__all__ = ["report", "run_cell"]

OURS, STANDARD = "gramgraph", "gramgraph residual"
FOLDERS = ("2006_pe", "2008_protein", "2014_mar_pr")
#: Bytes of an exact plan above which an instance counts as too wide, whatever this machine has.
TOO_WIDE = 2 << 30
#: Official values have about six digits.
DIGITS = 1e-5


def instances() -> dict[str, Path]:
    """Name → file (without .gz) of the instances with official results."""
    folder = data_folder()
    if folder is None:
        return {}
    files = [path for part in FOLDERS for path in sorted((folder / "uai" / part).glob("*.uai.gz"))]
    return {
        path.name.removesuffix(".uai.gz"): path.with_suffix("") for path in files if _beside(path.with_suffix(""), "PR")
    }


def _beside(base: Path, suffix: str) -> Path | None:
    """The result file of an instance."""
    found = [path for end in ("", ".gz") if (path := base.with_name(f"{base.name}.{suffix}{end}")).is_file()]
    return found[0] if found else None


@cache
def _loaded(name: str) -> tuple[Any, dict[str, str], Any, float]:
    """(model, evidence, official marginals or None, official log Z)."""
    import gramgraph as gg
    from gramgraph.io.uai_results import read_uai_evidence, read_uai_result

    base = instances()[name]
    net = gg.read(base.with_name(base.name + ".gz"))
    given = _beside(base, "evid")
    evidence = (read_uai_evidence(given, net) or [{}])[0] if given else {}
    marginals, total = _beside(base, "MAR"), _beside(base, "PR")
    official = None if marginals is None else read_uai_result(marginals).marginals
    return net, evidence, official, float(read_uai_result(total).log_z)


def _ask(name: str, who: str) -> Any:
    """What `query` does by itself without an exact plan, or the standard."""
    from gramgraph.engines.base import Run
    from gramgraph.engines.fallback import approximate_answer
    from gramgraph.exceptions import BudgetError
    from gramgraph.questions.reading import read

    net, evidence, official, _ = _loaded(name)
    if who == STANDARD:
        return net.query(None, evidence, engine="bp", schedule="residual", damping=0.5)
    question = read(net, None if official is not None else [], evidence)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return approximate_answer(net, question, BudgetError("too wide", bytes=np.inf), Run(random_state=0))


@cache
def _warm() -> None:
    """Load the compiled loops before anything is timed."""
    import gramgraph as gg

    for engine in ("bp", "join_graph", "structured_mean_field", "trw"):
        gg.models.ising_grid(3, 3).query("x0_0", engine=engine)


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One question, asked once; for the task "plan" only how wide it is."""
    net, evidence, official, log_z = _loaded(cell.row)
    if cell.task == "plan":
        import gramgraph as gg

        wide = float(gg.plan(net, None, list(evidence)).bytes)
        return Measurement(0.0, 0.0, 1, 1, values={"bytes": wide, "marginals": float(official is not None)})
    _warm()
    cpu, wall = process_time(), perf_counter()
    answer = _ask(cell.row, cell.contestant)
    cpu, wall = process_time() - cpu, perf_counter() - wall
    values = {"converged": float(np.all(answer.details["converged"])) if "converged" in answer.details else np.nan}
    if official is not None:
        free = [(v, p) for v, p in zip(net.variables, official, strict=True) if v not in evidence]
        values["error"] = float(np.mean([np.abs(p - answer[v].probabilities).mean() for v, p in free]))
    low, high = answer.details.get("log_evidence_interval", (-np.inf, np.inf))
    values |= {"low": low, "high": high, "log_z": log_z}
    return Measurement(cpu, wall, 1, 1, note=json.dumps([answer.engine, answer.details.get("tried")]), values=values)


def report(
    runner: Runner,
    *,
    networks: Any = None,
    quick: bool = False,
    limit: float | None = None,
    **_: Any,
) -> tuple[str, list[str]]:
    """The table; faults are errors above the standard's and intervals without the official value."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults = [], []
    for name in networks or instances():
        plan = runner.run(Cell("approximate_marginals", name, "plan", OURS, 0.0, 120.0))
        if isinstance(plan, Failure) or plan.values["bytes"] < TOO_WIDE:
            continue
        with_marginals = plan.values["marginals"] > 0
        for who in (OURS, STANDARD) if with_marginals else (OURS,):
            cell = Cell("approximate_marginals", name, "ask", who, 0.0, limit or (60.0 if quick else 300.0))
            results[name, "ask", who] = runner.run(cell)
        line, wrong = _line(name, results[name, "ask", OURS], results.get((name, "ask", STANDARD)))
        lines.append(line)
        faults += wrong
    head = [
        "instance",
        "error",
        "error of residual propagation",
        "answered by",
        "converged",
        "time",
        "log Z in",
        "official",
    ]
    text = (
        f"# Marginals and log Z of instances too wide for an exact answer\n\n{versions(['gramgraph', 'numpy'])}\n\n"
        f"{markdown(head, lines)}\n\n{len(lines)} instances, {len(faults)} faults\n"
    )
    return text, [*failures(results), *faults]


def _line(name: str, ours: Result, standard: Result | None) -> tuple[list[Any], list[str]]:
    """The cells of an instance, and what is wrong."""
    if isinstance(ours, Failure):
        return [name, ours.reason, *[""] * 6], []
    mine, faults = ours.values, []
    theirs = standard.values["error"] if isinstance(standard, Measurement) else np.nan
    if mine.get("error", 0.0) > theirs + 1e-6:
        faults.append(f"{name}: error {mine['error']:.6f}, that of residual propagation {theirs:.6f}")
    slack = DIGITS * max(abs(mine["log_z"]), 1.0)
    if not mine["low"] - slack <= mine["log_z"] <= mine["high"] + slack:
        faults.append(f"{name}: log Z {mine['log_z']:.6g} is not in [{mine['low']:.6g}, {mine['high']:.6g}]")
    line = [
        name,
        f"{mine['error']:.6f}" if "error" in mine else "",
        f"{theirs:.6f}" if theirs == theirs else "",
        json.loads(ours.note)[0],
        {1.0: "yes", 0.0: "no"}.get(mine["converged"], ""),
        seconds(ours.cpu),
        f"[{mine['low']:.6g}, {mine['high']:.6g}]",
        f"{mine['log_z']:.6g}",
    ]
    return line, faults
