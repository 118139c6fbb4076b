"""Linear-Gaussian networks: posterior means of 1,000 cases against pgmpy's `predict`, and growth on chains and grids.

`python -m benchmarks gaussian_networks [--networks arth150 …] [--tasks tenth half most gaps fresh growth]`. Cases are
drawn from the network; both sides hand back a data frame of the means. `tenth`, `half`, `most`: 10 %, 50 % and 90 % of
the variables are observed, the same in all cases; `gaps`: each cell is missing with probability 10 %, so that nearly
every case has its own pattern (pgmpy, which takes one pattern a call, is timed on 20 of them); `fresh`: as `half`, with
the network built anew for every call. `growth` has no peer: all posterior means and variances of a chain and of a
square grid, CPU time, peak memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, PeakMemory, Runner, measure, versions
from benchmarks.networks import data_folder
from benchmarks.tables import Ratio, Result, Target, difference, failures, markdown, ratio_of, shown, size, summary

__all__ = ["report", "run_cell"]

OURS, PEER = "gramgraph", "pgmpy"
NETWORKS = ("arth150", "magic-irri", "magic-niab")
TASKS = {"tenth": 0.1, "half": 0.5, "most": 0.9, "gaps": 0.9, "fresh": 0.5}
CASES = 1000
GROWTH = ("chain 1000", "chain 10000", "chain 100000", "grid 32", "grid 100", "grid 200")
#: pgmpy rounds what it computes with to some digits.
TOLERANCE = 1e-4


def _network(name: str) -> Any:
    import gramgraph as gg

    folder = data_folder()
    assert folder is not None
    return gg.read(folder / "bn_gaussian" / f"{name}.json")


def _cases(net: Any, task: str) -> Any:
    frame = net.sample(CASES, random_state=0)
    rng = np.random.default_rng(1)
    if task == "gaps":
        return frame.mask(rng.random(frame.shape) < 0.1)
    names = list(net.variables)
    seen = rng.permutation(len(names))[: max(1, round(TASKS[task] * len(names)))]
    return frame[[names[i] for i in seen]]


def _peer(net: Any) -> Any:
    from pgmpy.factors.continuous import LinearGaussianCPD
    from pgmpy.models import LinearGaussianBayesianNetwork

    model = LinearGaussianBayesianNetwork(list(net.edges))
    model.add_nodes_from(net.variables)
    for name in net.variables:
        c = net.conditional(name)
        beta = [float(c.intercept[0]), *c.coefficients[0].tolist()]
        model.add_cpds(LinearGaussianCPD(name, beta, float(c.noise_sd[0]), list(net.parents(name))))
    return model


def _ours(net: Any, cases: Any, names: list[str]) -> Any:
    return net.query(names, cases).means()


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One contestant on one task; answers are the means of the first cases."""
    if cell.task == "growth":
        return _growth(cell)
    net = context.setdefault("net", None) or _network(cell.row)
    context["net"] = net
    cases = context.setdefault(cell.task, None)
    cases = context[cell.task] = _cases(net, cell.task) if cases is None else cases
    if cell.task == "gaps":
        return _gaps(cell, net, cases)
    asked = [name for name in net.variables if name not in cases.columns]
    if cell.contestant == OURS:
        answer = _ours(net, cases, asked).to_numpy()[:20]

        def call() -> None:
            _ours(_network_again(net) if cell.task == "fresh" else net, cases, asked)
    else:
        model = _peer(net)
        answer = model.predict(cases)[asked].to_numpy()[:20]

        def call() -> None:
            (_peer(net) if cell.task == "fresh" else model).predict(cases)

    cpu, wall, repeats = measure(call, budget=cell.budget)
    return Measurement(cpu, wall, repeats, 1, answers=(answer,))


def _network_again(net: Any) -> Any:
    return type(net).from_parts(net.vars, net.conditionals, check=False)


def _gaps(cell: Cell, net: Any, cases: Any) -> Measurement:
    few = 20
    if cell.contestant == OURS:
        names = list(net.variables)
        found = _ours(net, cases, names).to_numpy()[:few]
        cpu, wall, repeats = measure(lambda: _ours(net, cases, names), budget=cell.budget)
        return Measurement(cpu, wall, repeats, 1, answers=(found,))
    model = _peer(net)
    rows = [cases.iloc[[i]].dropna(axis=1) for i in range(few)]
    full = cases.iloc[:few].copy()
    for i, row in enumerate(rows):
        made = model.predict(row)
        full.loc[full.index[i], list(made.columns)] = made.to_numpy()[0]
    cpu, wall, repeats = measure(lambda: [model.predict(row) for row in rows], budget=cell.budget)
    scale = CASES / few
    found = full[list(net.variables)].to_numpy()
    return Measurement(cpu * scale, wall * scale, repeats, 1, note=f"({few} cases timed)", answers=(found,))


def _growth(cell: Cell) -> Measurement:
    from scipy import sparse

    import gramgraph as gg

    kind, number = cell.row.split()
    k = int(number)
    if kind == "chain":
        P = sparse.diags([np.full(k - 1, -0.45), np.ones(k), np.full(k - 1, -0.45)], [-1, 0, 1]).tocsc()
    else:
        index = np.arange(k * k).reshape(k, k)
        pairs = [np.c_[index[:, :-1].ravel(), index[:, 1:].ravel()], np.c_[index[:-1].ravel(), index[1:].ravel()]]
        a, b = np.concatenate(pairs).T
        W = sparse.coo_array((np.full(len(a), -0.24), (a, b)), shape=(k * k, k * k))
        P = (W + W.T + sparse.eye_array(k * k)).tocsc()
    net = gg.MarkovNetwork.from_precision(P)
    evidence = {"x0": 1.0, f"x{P.shape[0] // 2}": -1.0}
    net.query(None, evidence, engine="sparse")
    with PeakMemory() as memory:
        net.query(None, evidence, engine="sparse")
    cpu, wall, repeats = measure(lambda: net.query(None, evidence, engine="sparse"), budget=cell.budget)
    plan = gg.plan(net, given=list(evidence), engine="sparse")
    values = {"components": float(plan.components), "entries": float(plan.entries)}
    return Measurement(cpu, wall, repeats, 1, peak=memory.peak, values=values)


def report(
    runner: Runner,
    *,
    networks: Any = None,
    tasks: Any = None,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    with_peers: Any = (PEER,),
    **_: Any,
) -> tuple[str, list[str]]:
    """The tables, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    wanted = [task for task in (*TASKS, "growth") if not tasks or task in tasks]
    ratios: list[Ratio] = []
    lines, faults = [], []
    for row in networks or (NETWORKS[:1] if quick else NETWORKS):
        for task in (task for task in wanted if task != "growth" and data_folder() is not None):
            for name in (OURS, *with_peers):
                cell = Cell("gaussian_networks", row, task, name, budget or (0.2 if quick else 1.0), limit or 120.0)
                results[row, task, name] = runner.run(cell)
            mine, peer = results[row, task, OURS], results.get((row, task, PEER))
            ratio = ratio_of(mine, peer)
            ratios += [ratio] if ratio and task != "fresh" else []
            lines.append([f"{row}, {task}", shown(mine), shown(peer), ratio or "", _gap(row, task, mine, peer, faults)])
    growth = []
    for row in GROWTH[:: 3 if quick else 1] if "growth" in wanted else ():
        found = results[row, "growth", OURS] = runner.run(
            Cell("gaussian_networks", row, "growth", OURS, budget or 0.5, limit or 120.0)
        )
        if isinstance(found, Measurement):
            n, entries = found.values["components"], found.values["entries"]
            growth.append(
                [row, f"{n:.0f}", f"{entries:.0f}", shown(found), f"{1e6 * found.cpu / n:.2f}", size(found.peak)]
            )
    text = f"# Linear-Gaussian networks\n\n{versions([OURS, PEER, 'numpy', 'scipy'])}\n\n"
    if lines:
        text += markdown(["1,000 cases", OURS, PEER, "ratio", "difference"], lines)
        text += f"\n\n{summary(ratios, Target(each=20.0))} (without `fresh`)\n\n"
    if growth:
        text += (
            markdown(["all means and variances", "components", "entries of L", "CPU", "µs each", "peak"], growth) + "\n"
        )
    return text, failures(results) + faults


def _gap(row: str, task: str, mine: Result, peer: Result | None, faults: list[str]) -> str:
    if not isinstance(mine, Measurement) or not isinstance(peer, Measurement) or isinstance(peer, Failure):
        return ""
    gap = difference(mine, peer)
    if not gap <= TOLERANCE:
        faults.append(f"{row}, {task}: means differ by {gap:.2g}")
    return f"{gap:.1g}"
