"""UAI instances with zeros: those whose tree fits once zeros are followed must be answered exactly, against the
official results; of the others those that a search answers within its limits are shown, too.

`python -m benchmarks deterministic`. `query` gives all posteriors, `evidence` log p(evidence), `map` the best
assignment, each with the code in memory: the second of two calls counts. Log Z and marginals are compared with the
official ones (about six digits); the best assignment must be worth what it says. `--networks NAME …` takes some.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, versions
from benchmarks.networks import data_folder
from benchmarks.tables import Result, failures, markdown, seconds

__all__ = ["instances", "report", "run_cell"]

#: The folders that are walked first, and one whose files no reader takes. Of equal names the later ones go with their
#: folder.
FIRST, BROKEN = ("2006_pe", "2014_mar_pr"), "malformed"
SUFFIXES = (".uai", ".fg")
TASKS = ("query", "evidence", "map")
#: Instances of which exact answers within this time were asked for.
NAMED, WANTED = ("BN_32", "BN_34", "BN_38", "BN_40", "BN_47", "BN_51", "BN_57"), 0.2
#: An exact plan that takes more bytes than this is not asked of any machine.
ROOM = 2e9
#: Questions that take longer than so many seconds are asked once.
LONG = 2.0
#: Official values have about six digits.
DIGITS = 1e-5


@cache
def instances() -> dict[str, Path]:
    """Name → file."""
    folder = data_folder()
    found: dict[str, Path] = {}
    parts = sorted(path.name for path in (folder / "uai").iterdir() if path.is_dir()) if folder else []
    for part in sorted(set(parts) - {BROKEN}, key=lambda name: (name not in FIRST, name)):
        for path in sorted((folder / "uai" / part).iterdir()):
            base = path.name.removesuffix(".gz")
            if base.endswith(SUFFIXES):
                name = base.rsplit(".", 1)[0]
                found.setdefault(name if name not in found else f"{part}/{name}", path)
    return found


def _beside(path: Path, suffix: str) -> Path | None:
    """The result file of an instance."""
    base = path.name.removesuffix(".gz")
    found = [file for end in ("", ".gz") if (file := path.with_name(f"{base}.{suffix}{end}")).is_file()]
    return found[0] if found else None


def _load(name: str) -> tuple[Any, dict[str, str], Path]:
    import gramgraph as gg
    from gramgraph.io.uai_results import read_uai_evidence

    path = instances()[name]
    net = gg.read(path)
    beside = _beside(path, "evid")
    return net, (read_uai_evidence(beside, net) or [{}])[0] if beside else {}, path


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One task on one instance; `values` tell what zeros leave, and how far the answer is from the official one."""
    from gramgraph.compile.lower import lower

    net, evidence, base = _load(cell.row)
    values = {"zeros": lower(net).zeros, "n": float(len(net.variables))}
    if values["zeros"] == 0.0:
        return Measurement(0.0, 0.0, 0, 1, values=values)
    values["bytes"] = _bytes_left(net, evidence)
    wide = values["bytes"] > ROOM
    if wide and (cell.task == "map" or not _is_searched(net, evidence)):
        return Measurement(0.0, 0.0, 0, 1, values=values)
    best, repeats = (np.inf, np.inf), 0
    while repeats == 0 or (not wide and repeats < 3 and best[0] < LONG):
        cpu, wall = time.process_time(), time.perf_counter()
        found = _ask(net, evidence, cell.task)
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
        repeats += 1
    return Measurement(*best, repeats, 1, values=values | _judged(net, evidence, base, cell.task, found))


def _bytes_left(net: Any, evidence: dict[str, str]) -> float:
    """What the tree takes that zeros leave, after a search where that may make it fit."""
    from gramgraph.compile.lower import lower
    from gramgraph.compile.tree import plan_tree
    from gramgraph.engines.exact.smaller import rough_tree, smaller_model
    from gramgraph.questions.reading import read

    small = smaller_model(lower(net), read(net, None, evidence))
    if small is None:
        return 0.0
    tree = rough_tree(small.model)
    if tree is not None and 8.0 * tree.cells > ROOM:
        tree = plan_tree(lower(small.model))
    return np.inf if tree is None else 8.0 * tree.cells


def _is_searched(net: Any, evidence: dict[str, str]) -> bool:
    """Whether a search comes to its end within the limits that it has where nobody names it."""
    from gramgraph.engines import get_engine
    from gramgraph.exceptions import BudgetError
    from gramgraph.questions.reading import read

    search = get_engine("counting")
    search.strict = True
    try:
        search.answer(net, read(net, None, evidence))
    except BudgetError:
        return False
    return True


def _ask(net: Any, evidence: dict[str, str], task: str) -> Any:
    if task == "query":
        return net.query(None, evidence)
    return net.log_evidence(evidence) if task == "evidence" else net.map_query(evidence)


def _judged(net: Any, evidence: dict[str, str], base: Path, task: str, found: Any) -> dict[str, float]:
    """Whether the answer is exact, and its errors where there is an official result."""
    from gramgraph.io.uai_results import read_uai_result

    if task == "map":
        worth = net.joint_log_prob({**evidence, **found.assignment})
        return {"exact": float(found.exact), "error": abs(worth - found.log_prob) / max(1.0, abs(worth))}
    out = {"exact": float(found.exact)} if task == "query" else {}
    log_p = found.log_evidence if task == "query" else found
    if file := _beside(base, "PR"):
        official = read_uai_result(file).log_z
        out["error"] = abs(log_p - official) / max(1.0, abs(official))
    if task == "query" and (file := _beside(base, "MAR")):
        pairs = zip(net.variables, read_uai_result(file).marginals, strict=True)
        out["marginals"] = max(
            (float(np.abs(found[v].probabilities - p).max()) for v, p in pairs if v not in evidence), default=0.0
        )
    return out


def report(
    runner: Runner,
    *,
    networks: Any = None,
    tasks: Any = None,
    quick: bool = False,
    limit: float | None = None,
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults, wide = [], [], 0
    for row in networks or (NAMED if quick else instances()):
        for task in tasks or TASKS:
            cell = Cell("deterministic", row, task, "gramgraph", 0.0, limit or 300.0)
            found = results[row, task, "gramgraph"] = runner.run(cell)
            if isinstance(found, Failure):
                lines.append([row, task, "", "", found.reason, "", ""])
                continue
            values = found.values
            if not found.repeats:
                wide += task == "query" and values["zeros"] > 0.0
                continue
            faults += _faults(row, task, found)
            lines.append(
                [row, task, f"{values['n']:.0f}", f"{values['bytes']:.2g}", seconds(found.cpu)]
                + [f"{values[key]:.1e}" if key in values else "" for key in ("error", "marginals")]
            )
    head = ["instance", "task", "variables", "bytes that zeros leave", "time", "error of log p", "of marginals"]
    text = (
        f"# Tables with zeros\n\n{versions(['gramgraph', 'numpy'])}\n\n{markdown(head, lines)}\n\n"
        f"{wide} more instances with zeros need more than {ROOM:.0e} bytes whatever their zeros leave, and no search "
        "came to its end in them.\n"
    )
    return text, failures(results) + faults


def _faults(row: str, task: str, found: Measurement) -> list[str]:
    out = []
    if found.values.get("exact") == 0.0:
        out.append(f"{row} {task}: the answer is not exact")
    for key in ("error", "marginals"):
        if not found.values.get(key, 0.0) <= DIGITS:
            out.append(f"{row} {task}: {key} {found.values[key]:.1e}")
    if row in NAMED and found.cpu > WANTED:
        out.append(f"{row} {task}: {found.cpu:.2f} s, more than {WANTED} s")
    return out
