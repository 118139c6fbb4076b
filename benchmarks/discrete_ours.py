"""Our side of the discrete benchmark: one function a task."""

from __future__ import annotations

import functools
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.discrete_rows import N_CASES, N_COMPARED, cases_of, free_variables, net_of
from benchmarks.harness import Cell, Measurement, PeakMemory, measure
from benchmarks.networks import Cases, draw_cases, network_paths

#: Rows of a first try; a call that would take longer than `LONGEST` seconds is cut to the rows that fit.
N_PROBE = 64
LONGEST = 5.0


@functools.cache
def _warm_up() -> None:
    """Compile the machine code on the smallest network, so that no figure holds it."""
    import gramgraph as gg

    name, path = min(network_paths().items(), key=lambda item: item[1].stat().st_size)
    net = gg.read(path)
    cases = draw_cases(net, 20, name=name)
    for mixed in (False, True):
        net.query(None, evidence=cases.frame(mixed=mixed))
        net.query(None, evidence=cases.evidence(0, mixed=mixed))
    net.map_query(evidence=cases.frame())
    net.map_query(evidence=cases.evidence(0))


def batch(cell: Cell, context: dict[str, Any]) -> Measurement:
    """1,000 cases in one call, per case; the arrays of all posteriors are taken out of the answer."""
    net, cases = net_of(cell, context), cases_of(cell, context)
    mixed = cell.task == "mixed"

    def ask(frame: Any) -> Any:
        ans = net.query(None, evidence=frame)
        for v in ans:
            assert ans[v].probabilities.shape[0] == len(frame)
        return ans

    ans, found = _many(cell, cases.frame(mixed=mixed), ask)
    answers = []
    for case in range(N_COMPARED):
        free = free_variables(cases, case, mixed)
        answers.append(np.concatenate([ans[v].probabilities[case] for v in free] or [np.zeros(0)]))
    return replace(found, answers=tuple(answers))


def _many(cell: Cell, frame: Any, ask: Callable[[Any], Any]) -> tuple[Any, Measurement]:
    """The last answer, and the time per case of `ask(frame)`; on fewer rows where all would take too long."""
    _warm_up()
    few = frame.iloc[:N_PROBE]
    ask(few)
    start = time.perf_counter()
    ask(few)
    one = (time.perf_counter() - start) / len(few)
    rows = len(frame) if one * len(frame) < LONGEST else max(N_PROBE, int(LONGEST / one))
    frame = frame.iloc[:rows]
    with PeakMemory() as memory:
        ask(frame)
    answers: list[Any] = []

    def call() -> None:
        answers[:] = [ask(frame)]

    slow = one * rows > 1.0
    cpu, wall, repeats = measure(call, budget=cell.budget, units=rows, warm=not slow, least=1 if slow else 3)
    note = f"(from {rows} cases)" if rows < N_CASES else ""
    return answers[0], Measurement(cpu, wall, repeats, rows, memory.peak, note)


def warm(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One case after the other, with other values each time."""
    net, cases = net_of(cell, context), cases_of(cell, context)
    evidence = [cases.evidence(i) for i in range(50)]
    turn = iter(range(1 << 62))

    def call() -> Any:
        ans = net.query(None, evidence=evidence[next(turn) % len(evidence)])
        return [ans[v].probabilities for v in ans]

    _warm_up()
    with PeakMemory() as memory:
        call()
    cpu, wall, repeats = measure(call, budget=cell.budget, least=3)
    return Measurement(cpu, wall, repeats, 1, memory.peak, answers=_answers(net, cases))


def _answers(net: Any, cases: Cases) -> tuple[Any, ...]:
    answers = []
    for case in range(N_COMPARED):
        ans = net.query(None, evidence=cases.evidence(case))
        free = free_variables(cases, case)
        answers.append(np.concatenate([ans[v].probabilities for v in free] or [np.zeros(0)]))
    return tuple(answers)


def first(cell: Cell, context: dict[str, Any]) -> Measurement:
    """First answer of a network that was just read; the machine code is compiled already."""
    import gramgraph as gg

    cases = cases_of(cell, context)
    _warm_up()
    _answers(net_of(cell, context), cases)  # compiles the code, not this model: every repeat reads the model anew
    best_cpu = best_wall = math.inf
    repeats, start = 0, time.perf_counter()
    while repeats < 5 or (time.perf_counter() - start < 2 * cell.budget and repeats < 100):
        net = gg.read(network_paths([cell.row])[cell.row])
        cpu, wall = time.process_time(), time.perf_counter()
        ans = net.query(None, evidence=cases.evidence(0))
        arrays = [ans[v].probabilities for v in ans]
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        best_cpu, best_wall = min(cpu, best_cpu), min(wall, best_wall)
        repeats += 1
        del arrays
    return Measurement(best_cpu, best_wall, repeats, 1, answers=_answers(net, cases)[:1])


def mpe(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Most probable explanation of case after case."""
    net, cases = net_of(cell, context), cases_of(cell, context)
    evidence = [cases.evidence(i) for i in range(50)]
    turn = iter(range(1 << 62))

    def call() -> Any:
        return net.map_query(evidence=evidence[next(turn) % len(evidence)]).assignment

    _warm_up()
    cpu, wall, repeats = measure(call, budget=cell.budget, least=2)
    best = [net.map_query(evidence=cases.evidence(case)) for case in range(N_COMPARED)]
    answers = tuple(np.array([b.log_prob]) for b in best)
    return Measurement(cpu, wall, repeats, 1, answers=answers)


def mpe_batch(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Most probable explanations of 1,000 cases in one call, per case."""
    net, cases = net_of(cell, context), cases_of(cell, context)
    best, found = _many(cell, cases.frame(), lambda frame: net.map_query(evidence=frame))
    logs = np.asarray(best["log_prob"], dtype=float)
    return replace(found, answers=tuple(logs[i : i + 1] for i in range(N_COMPARED)))


def _unpacked(cell: Cell, context: dict[str, Any]) -> str:
    """The file without compression: pyAgrum reads no .gz."""
    import gzip

    path = network_paths([cell.row])[cell.row]
    if "folder" not in context:
        context["folder"] = tempfile.TemporaryDirectory()
        target = Path(context["folder"].name) / path.name.removesuffix(".gz")
        target.write_bytes(gzip.decompress(path.read_bytes()))
        context["file"] = str(target)
    return str(context["file"])


def load(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Reading one file, ours and pyAgrum's."""
    file = _unpacked(cell, context)
    if cell.contestant == "gramgraph":
        import gramgraph as gg

        call: Callable[[], Any] = lambda: gg.read(file)  # noqa: E731
    else:
        import pyagrum

        call = lambda: pyagrum.loadBN(file)  # noqa: E731
    cpu, wall, repeats = measure(call, budget=cell.budget, least=3)
    return Measurement(cpu, wall, repeats, 1)


def plan_memory(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Announced bytes and the growth of the resident set by the plan and one query, the machine code being compiled."""
    import gramgraph as gg

    _warm_up()
    net, cases = net_of(cell, context), cases_of(cell, context)
    given = [cases.variables[v] for v in cases.observed]
    evidence = cases.evidence(0)
    with PeakMemory() as memory:
        start = time.perf_counter()
        plan = gg.plan(net, given=given)
        planning = time.perf_counter() - start
        if cell.options.get("announced"):
            return Measurement(planning, planning, 1, 1, values={"announced": float(plan.bytes)})
        cpu, wall = time.process_time(), time.perf_counter()
        net.query(None, evidence=evidence)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Measurement(cpu, wall, 1, 1, memory.peak, values={"announced": float(plan.bytes), "planning": planning})
