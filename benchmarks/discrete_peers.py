"""The peers' side of the discrete benchmark: pyAgrum and pgmpy, each used the way its documentation advises."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.discrete_rows import (
    ELIMINATION,
    LAZY,
    N_CASES,
    N_COMPARED,
    PROPAGATION,
    cases_of,
    free_variables,
    net_of,
    pyagrum_of,
)
from benchmarks.harness import Cell, Measurement, PeakMemory, measure
from benchmarks.networks import to_pgmpy


def _pyagrum_engine(cell: Cell, context: dict[str, Any]) -> Any:
    import pyagrum

    made = pyagrum.LazyPropagation if cell.contestant == LAZY else pyagrum.ShaferShenoyInference
    engine = made(pyagrum_of(cell, context))
    engine.setNumberOfThreads(1)
    return engine


def pyagrum_case(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One case after the other: new values (or, in `mixed`, new variables), inference, every posterior as an array."""
    cases, bn = cases_of(cell, context), pyagrum_of(cell, context)
    mixed = cell.task == "mixed"
    engine = _pyagrum_engine(cell, context)
    ids = {v: bn.idFromName(v) for v in cases.variables}
    engine.setEvidence({ids[v]: s for v, s in cases.indices(0, mixed=mixed).items()})

    def run(case: int) -> list[Any]:
        seen = cases.indices(case, mixed=mixed)
        if mixed:
            engine.setEvidence({ids[v]: s for v, s in seen.items()})
        else:
            for v, state in seen.items():
                engine.chgEvidence(ids[v], state)
        engine.makeInference()
        return [engine.posterior(ids[v]).toarray() for v in cases.variables if v not in seen]

    with PeakMemory() as memory:
        run(0)
    if mixed:
        return _in_a_row(cell, run, memory.peak)
    return _one_by_one(cell, run, lambda case: np.concatenate(run(case) or [np.zeros(0)]), memory.peak)


def _one_by_one(
    cell: Cell, run: Callable[[int], Any], answer: Callable[[int], Any], peak: int | None = None
) -> Measurement:
    """Time of case after case, in stretches of as many as the budget holds; the answers of the first cases."""
    start = time.perf_counter()
    answers = [answer(0)]
    one = time.perf_counter() - start
    if one * N_COMPARED < cell.budget:
        answers += [answer(case) for case in range(1, N_COMPARED)]
    stretch = int(min(200, max(1, cell.budget / 3 / max(one, 1e-7))))
    turn = iter(range(1, 1 << 62))

    def call() -> None:
        for _ in range(stretch):
            run(next(turn) % N_CASES)

    cpu, wall, repeats = measure(call, budget=cell.budget, units=stretch, warm=False, least=1 if one > 1 else 2)
    done = stretch * repeats
    note = f"(from {done} case{'s' if done > 1 else ''})" if done < 10 else ""
    return Measurement(cpu, wall, repeats, stretch, peak, note, answers=tuple(answers))


def _in_a_row(cell: Cell, run: Callable[[int], Any], peak: int) -> Measurement:
    """Mean over the first cases: their costs differ, so that the best stretch would flatter."""
    answers = [np.concatenate(run(case) or [np.zeros(0)]) for case in range(N_COMPARED)]
    cpu, wall, done = time.process_time(), time.perf_counter(), 0
    while done < 5 or (done < N_CASES and time.perf_counter() - wall < 8 * cell.budget):
        run(done)
        done += 1
    cpu, wall = (time.process_time() - cpu) / done, (time.perf_counter() - wall) / done
    return Measurement(cpu, wall, 1, done, peak, f"(mean of {done})", answers=tuple(answers))


def pyagrum_first(cell: Cell, context: dict[str, Any]) -> Measurement:
    cases, bn = cases_of(cell, context), pyagrum_of(cell, context)
    evidence = {bn.idFromName(v): s for v, s in cases.indices(0).items()}
    free = [bn.idFromName(v) for v in free_variables(cases, 0)]

    def call() -> list[Any]:
        engine = _pyagrum_engine(cell, context)
        engine.setEvidence(evidence)
        engine.makeInference()
        return [engine.posterior(v).toarray() for v in free]

    wall = time.perf_counter()
    answers = (np.concatenate(call() or [np.zeros(0)]),)
    slow = time.perf_counter() - wall > cell.budget
    cpu, took, repeats = measure(call, budget=cell.budget, warm=False, most=1 if slow else 100)
    return Measurement(cpu, took, repeats, 1, answers=answers)


def pyagrum_mpe(cell: Cell, context: dict[str, Any]) -> Measurement:
    """The most probable explanation of case after case; its answer is the log probability by our tables."""
    cases, bn, net = cases_of(cell, context), pyagrum_of(cell, context), net_of(cell, context)
    engine = _pyagrum_engine(cell, context)
    ids = {v: bn.idFromName(v) for v in cases.variables}
    engine.setEvidence({ids[v]: s for v, s in cases.indices(0).items()})

    def run(case: int) -> dict[str, int]:
        for v, state in cases.indices(case).items():
            engine.chgEvidence(ids[v], state)
        found: dict[str, int] = engine.mpe().todict()
        return found

    def answer(case: int) -> Any:
        found = run(case)
        return np.array([net.joint_log_prob({v: net.states(v)[found[v]] for v in cases.variables})])

    run(0)
    return _one_by_one(cell, run, answer)


# --- pgmpy --------------------------------------------------------------------------------------------------------


def pgmpy_case(cell: Cell, context: dict[str, Any]) -> Measurement:
    """All posteriors of one case; timed on a few of the variables and scaled where the network is large."""
    from pgmpy.inference import BeliefPropagation, VariableElimination

    cases = cases_of(cell, context)
    model = to_pgmpy(net_of(cell, context))
    evidence = cases.evidence(0)
    free = free_variables(cases, 0)
    start = time.process_time()
    engine = VariableElimination(model) if cell.contestant == ELIMINATION else BeliefPropagation(model)
    if cell.contestant == PROPAGATION:
        engine.calibrate()
    building = time.process_time() - start

    def posterior(name: str) -> Any:
        found = engine.query([name], evidence=evidence, show_progress=False)
        order = [found.state_names[name].index(s) for s in cases.states[cases.variables.index(name)]]
        return np.asarray(found.values)[order]

    arrays, cpu, wall = [], time.process_time(), time.perf_counter()
    for name in free:
        arrays.append(posterior(name))
        if time.perf_counter() - wall > max(cell.budget, 1.0):
            break
    scale = len(free) / len(arrays)
    cpu, wall = (time.process_time() - cpu) * scale, (time.perf_counter() - wall) * scale
    note = "" if len(arrays) == len(free) else f"(from {len(arrays)} of {len(free)} variables)"
    answers = (np.concatenate(arrays),) if len(arrays) == len(free) else ()
    return Measurement(cpu, wall, 1, 1, note=note, answers=answers, values={"building": building})


def pgmpy_mpe(cell: Cell, context: dict[str, Any]) -> Measurement:
    from pgmpy.inference import VariableElimination

    cases, net = cases_of(cell, context), net_of(cell, context)
    engine = VariableElimination(to_pgmpy(net))
    free, evidence = free_variables(cases, 0), cases.evidence(0)
    cpu, wall = time.process_time(), time.perf_counter()
    found = engine.map_query(free, evidence=evidence, show_progress=False)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    value = net.joint_log_prob({**{v: found[v] for v in free}, **evidence})
    return Measurement(cpu, wall, 1, 1, answers=(np.array([value]),))
