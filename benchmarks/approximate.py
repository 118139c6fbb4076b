"""Approximate inference against pyAgrum and pgmpy: loopy propagation, likelihood weighting, Gibbs sampling.

`python -m benchmarks approximate`. The time is per sweep (propagation) or per 1,000 draws (samplers: a draw of Gibbs is
a sweep over all variables), from the model in memory on, a peer's inference object included. The value is the mean
absolute error of all marginals against exact ones, at the sweeps or draws that the contestant made.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from benchmarks.approximate_grids import grid_table
from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.networks import network_paths, to_pgmpy, to_pyagrum
from benchmarks.tables import Ratio, Result, Target, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
PEERS = ("pyagrum", "pgmpy")
#: Row → (network, task, every how many-th variable is observed, draws).
ROWS = {
    "propagation, alarm": ("alarm", "propagation", 8, 0),
    "propagation, munin": ("munin", "propagation", 40, 0),
    "weighting, alarm": ("alarm", "weighting", 12, 20_000),
    "Gibbs, alarm": ("alarm", "gibbs", 12, 20_000),
    "Gibbs, alarm, nothing observed": ("alarm", "gibbs", 0, 20_000),
    "Gibbs, survey, nothing observed": ("survey", "gibbs", 0, 20_000),
    "forward draws, alarm": ("alarm", "forward", 0, 1_000_000),
    "spins of a 512 × 512 Ising grid": ("ising", "spins", 0, 1000),
}

Outcome = tuple[dict[str, Any], float]  # beliefs by name, and how many sweeps or draws were made


@cache
def _network(name: str) -> Any:
    import gramgraph as gg

    if name == "ising":
        return gg.models.ising_grid(512, 512, coupling=0.44)
    return gg.read(network_paths([name])[name])


@cache
def _evidence(row: str) -> dict[str, str]:
    name, _, every, _ = ROWS[row]
    if not every:
        return {}
    net = _network(name)
    case = net.sample(1, random_state=1).iloc[0]
    return {v: str(case[v]) for v in net.variables[::every]}


@cache
def _exact(row: str) -> Any:
    return _network(ROWS[row][0]).query(None, _evidence(row), engine="junction_tree")


def _error(row: str, beliefs: dict[str, Any]) -> float:
    if not beliefs:
        return 0.0  # too wide for an exact answer: only the speed is of interest
    exact = _exact(row)
    return float(np.mean([np.abs(np.asarray(beliefs[v]) - exact[v].probabilities).mean() for v in exact]))


def ours(row: str) -> Outcome:
    name, task, _, draws = ROWS[row]
    net, evidence = _network(name), _evidence(row)
    if task == "propagation":
        answer = net.query(None, evidence, engine="bp", schedule="flooding")
        return {v: answer[v].probabilities for v in answer}, float(answer.details["sweeps"])
    if task == "forward":
        return _shares(net, net.sample(draws, random_state=0)), float(draws)
    engine = "likelihood_weighting" if task == "weighting" else "gibbs"
    targets = ["x0_0"] if task == "spins" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # alarm has rows near zero: R-hat says so, and so does the error
        answer = net.query(targets, evidence, engine=engine, random_state=0, budget=draws)
    made = answer.details["draws"] + answer.details.get("n_chains", 0) * answer.details.get("burn_in", 0)
    if task == "spins":
        return {}, float(made * len(net.variables))
    return {v: answer[v].probabilities for v in answer}, float(made)


def _shares(net: Any, frame: Any) -> dict[str, Any]:
    """How often each state was drawn."""
    return {v: [float((frame[v] == s).mean()) for s in net.states(v)] for v in net.variables}


def _labeled(net: Any, frame: Any) -> Any:
    """A frame of state numbers with labels in their place."""
    return frame.apply(lambda column: np.array(net.states(column.name))[column.to_numpy()])


def pyagrum(row: str) -> Outcome:
    import pyagrum as gum

    name, task, _, draws = ROWS[row]
    bn = _peer(name, "pyagrum")
    if task == "forward":
        draws //= 100
        maker = gum.BNDatabaseGenerator(bn)
        maker.drawSamples(draws)
        return _shares(_network(name), maker.to_pandas()), float(draws)
    if task == "propagation":
        engine = gum.LoopyBeliefPropagation(bn)
    else:
        engine = (gum.WeightedSampling if task == "weighting" else gum.GibbsSampling)(bn)
        engine.setEpsilon(1e-12)
        engine.setMinEpsilonRate(1e-12)
        engine.setMaxIter(draws)
        engine.setPeriodSize(1000)
    engine.setEvidence(_evidence(row))
    engine.makeInference()
    beliefs = {v: engine.posterior(v).toarray() for v in _network(name).variables if v not in _evidence(row)}
    return beliefs, float(max(engine.nbrIterations(), 1))


def pgmpy(row: str) -> Outcome:
    name, task, _, draws = ROWS[row]
    if task == "propagation":
        raise NotImplementedError("pgmpy has no loopy propagation")
    draws //= 100 if task == "forward" else 10
    net, evidence = _network(name), _evidence(row)
    rest = [v for v in net.variables if v not in evidence]
    if task == "gibbs":
        if name != "survey":  # it tabulates all states of all other variables for each variable
            raise NotImplementedError("pgmpy's Gibbs sampler does not take a network of this size")
        from pgmpy.sampling import GibbsSampling

        return _shares(net, _labeled(net, GibbsSampling(_peer(name, "pgmpy")).sample(size=draws, seed=0))), float(draws)
    from pgmpy.factors.discrete import State
    from pgmpy.sampling import BayesianModelSampling

    if task == "forward":
        return _shares(
            net, BayesianModelSampling(_peer(name, "pgmpy")).forward_sample(draws, show_progress=False)
        ), float(draws)
    frame = BayesianModelSampling(_peer(name, "pgmpy")).likelihood_weighted_sample(
        evidence=[State(v, s) for v, s in evidence.items()], size=draws, show_progress=False
    )
    w = frame["_weight"].to_numpy()
    return {v: [float(w[(frame[v] == s).to_numpy()].sum() / w.sum()) for s in net.states(v)] for v in rest}, float(
        draws
    )


@cache
def _peer(name: str, who: str) -> Any:
    return (to_pyagrum if who == "pyagrum" else to_pgmpy)(_network(name))


WORK: dict[str, Callable[[str], Outcome]] = {OURS: ours, "pyagrum": pyagrum, "pgmpy": pgmpy}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Ask once or a few times; the time of one sweep, or of 1,000 draws."""
    last: list[Outcome] = []
    _evidence(cell.row)
    if cell.contestant != OURS:
        _peer(ROWS[cell.row][0], cell.contestant)  # the model in the peer's form is not timed

    def call() -> None:
        last[:] = [WORK[cell.contestant](cell.row)]

    cpu, wall, repeats = measure(
        call, budget=cell.budget, warm=cell.contestant == OURS, least=2 if cell.contestant == OURS else 1
    )
    beliefs, made = last[0]
    share = (1.0 if ROWS[cell.row][1] == "propagation" else 1000.0) / made
    return Measurement(cpu * share, wall * share, repeats, 1, values={"error": _error(cell.row, beliefs), "made": made})


def report(
    runner: Runner,
    *,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    with_peers: Any = PEERS,
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines: list[list[object]] = []
    ratios: dict[tuple[str, str], Ratio] = {}
    for row in ROWS:
        peers = () if ROWS[row][1] == "spins" else PEERS  # which take no Markov network of 262,144 variables
        names = (OURS, *(peer for peer in peers if peer in with_peers))
        for name in names:
            cell = Cell("approximate", row, "ask", name, budget or 0.5, limit or (60.0 if quick else 300.0))
            results[row, "ask", name] = runner.run(cell)
        for name in names:
            found = results[row, "ask", name]
            ratio: Ratio | None = None if name == OURS else ratio_of(results[row, "ask", OURS], found)
            if ratio:
                ratios[row, name] = ratio
            values = {} if isinstance(found, Failure) else found.values
            made = f"{values['made']:,.0f}" if values else ""
            lines.append([row, name, shown(found), ratio or "", made, f"{values['error']:.2e}" if values else ""])
    head = ["task", "who", "time of a sweep, or of 1,000 draws", "ratio", "sweeps or draws", "mean absolute error"]
    spins = results["spins of a 512 × 512 Ising grid", "ask", OURS]
    grids, more = grid_table(runner, spins, budget=budget or 0.5, limit=limit or 300.0)
    text = (
        f"# Approximate inference\n\n{versions(['gramgraph', 'pyagrum', 'pgmpy', 'numpy'])}\n\n"
        f"{markdown(head, lines)}\n\n{_told(ratios)}\n\n{grids}\n"
    )
    return text, failures({**results, **more})


def _told(ratios: dict[tuple[str, str], Ratio]) -> str:
    """Ratios by peer and kind of work, with what is wanted of each."""
    kinds = [
        ("pyAgrum, a sweep of propagation on munin", "pyagrum", ("propagation, munin",), 20.0),
        ("pyAgrum, a sweep of propagation on alarm", "pyagrum", ("propagation, alarm",), None),
        ("pyAgrum's samplers", "pyagrum", tuple(r for r in ROWS if not r.startswith("propagation")), 10.0),
        ("pgmpy's samplers", "pgmpy", tuple(ROWS), 50.0),
    ]
    said = []
    for what, peer, rows, least in kinds:
        found = [ratios[row, peer] for row in rows if (row, peer) in ratios]
        if found:
            said.append(f"- {what}: {summary(found, Target(each=least))}")
    return "\n".join(said)
