"""One thread and two: wall time of the same work with `n_jobs=1` and `n_jobs=2`, and whether the numbers agree.

`python -m benchmarks threads`, on a machine where nothing else runs. Both are timed in turns, and the figure is the
median of five ratios (three where a round takes seconds); `numbers` is the largest difference of the results. Most work
is measured in two sizes: the smaller one is over before one looks up, the larger one is what one would wait for. "tiny"
rows are work for which a second thread does not pay: it should stay on one by itself. "questions from two threads" are
single warm questions, all from one thread and half from each of two. "roof of the machine" is what two processes gain
that share nothing but the machine: twice the time of one that works alone over the time of two at once.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks import two_processes
from benchmarks.harness import Cell, Failure, Measurement, Runner, versions
from benchmarks.networks import network_paths
from benchmarks.tables import Result, failures, markdown, seconds

__all__ = ["ROOFS", "ROWS", "report", "run_cell"]

#: What is wanted of two threads: large work and tiny work.
WANTED, TINY = 1.7, 0.9
#: Rounds of a row, and at least so many once they have taken so many seconds.
REPEATS, FEW, LONG = 5, 3, 10.0
Work = Callable[[int], Any]  # n_jobs → numbers that must not depend on it


def _network(name: str) -> Any:
    import gramgraph as gg

    found = network_paths()
    if name not in found:
        raise FileNotFoundError(f"{name} is not in GRAMGRAPH_DATA")
    return gg.read(found[name])


def _drawn(net: Any, n: int, share: float) -> Any:
    """Cases of which `share` of the variables are observed, a choice of its own for each case: rows differ."""
    frame = net.sample(n, random_state=0).astype(object)
    hidden = np.random.default_rng(1).random(frame.shape) > share
    return frame.mask(hidden)


def _batch(name: str, n: int) -> Work:
    net = _network(name)
    cases = _drawn(net, n, 0.2)
    target = net.variables[0]
    return lambda n_jobs: net.query(None, cases, n_jobs=n_jobs)[target].probabilities


def _em(n: int) -> Work:
    net = _network("alarm")
    rows = _drawn(net, n, 0.8)
    first = net.variables[-1]
    return lambda n_jobs: net.fit(rows, max_iter=3, tol=0.0, n_jobs=n_jobs).conditional(first).table()


def _edges(graph: Any) -> Any:
    return np.array(sorted(map(str, graph.edges)))


def _climbing(n: int) -> Work:
    from gramgraph import learn_structure

    rows = _network("hailfinder").sample(n, random_state=0)
    return lambda n_jobs: _edges(learn_structure(rows, n_jobs=n_jobs))


def _bootstrap(n: int, graphs: int) -> Work:
    from gramgraph.learn import bootstrap_edges

    rows = _network("alarm").sample(n, random_state=0)

    def strengths(n_jobs: int) -> Any:
        found = bootstrap_edges(rows, graphs, random_state=0, n_jobs=n_jobs).to_frame()
        return found.select_dtypes("number").to_numpy()

    return strengths


def _digits(copies: int) -> tuple[Any, Any]:
    """The digits, each so many times with noise of its own."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = np.vstack([X + 0.5 * np.random.default_rng(i).normal(size=X.shape) for i in range(copies)])
    return X, np.tile(y, copies)


def _pairs(copies: int) -> Work:
    from gramgraph import SVC

    X, y = _digits(copies)
    return lambda n_jobs: SVC(C=10.0, gamma=1e-3, n_jobs=n_jobs).fit(X, y).dual_coef_


def _grid(copies: int, gammas: Sequence[float]) -> Work:
    from gramgraph.estimators import svc_path

    X, y = _digits(copies)
    return lambda n_jobs: svc_path(X, y, None, [0.1, 1.0, 10.0], 5, gamma=list(gammas), n_jobs=n_jobs).scores


def _restarts(n: int) -> Work:
    from gramgraph import GaussianProcessRegressor, kernels

    X = np.random.default_rng(0).normal(size=(n, 3))
    y = np.sin(X).sum(axis=1) + 0.1 * np.random.default_rng(1).normal(size=n)
    kernel = 1.0 * kernels.RBF([1.0] * 3) + kernels.White(0.1)
    make = partial(GaussianProcessRegressor, kernel, n_restarts_optimizer=7, random_state=0)
    return lambda n_jobs: make(n_jobs=n_jobs).fit(X, y).kernel_.theta


def _gram(n: int) -> Work:
    from gramgraph import kernels

    X = np.random.default_rng(0).normal(size=(n, 10))
    out = np.empty((n, n))
    return lambda n_jobs: kernels.RBF().gram(X, out=out, n_jobs=n_jobs)[::101]


def _chains(draws: int) -> Work:
    net = _network("alarm")
    asked = {"HRBP": "HIGH", "CO": "LOW"}

    def belief(n_jobs: int) -> Any:
        options: Any = {"engine": "gibbs", "random_state": 0, "n_jobs": n_jobs}
        return net.query("HR", asked, budget=draws, **options)["HR"].probabilities

    return belief


def _sequences(count: int) -> Work:
    from gramgraph import GaussianHMM

    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 6, 100 * count), 10)
    X = states[:, None] + rng.normal(size=(len(states), 2))
    make = partial(GaussianHMM, 6, max_iter=8, tol=0.0, random_state=0)
    return lambda n_jobs: make(n_jobs=n_jobs).fit(X, [1000] * count).means_


def _questions() -> Work:
    """The same 8,000 warm questions from one thread and from two."""
    net = _network("alarm")
    asked = [{"CO": state} for state in net.states("CO")]

    def ask(n: int) -> None:
        for i in range(n):
            net.query("HR", asked[i % len(asked)])

    def work(n_jobs: int) -> Any:
        threads = [threading.Thread(target=ask, args=(8000 // n_jobs,)) for _ in range(n_jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return net.query("HR", asked[0])["HR"].probabilities

    return work


#: Row → (how its work is made, the ratio that is wanted).
ROWS: dict[str, tuple[Callable[[], Work], float]] = {
    "exact batch, munin, 100 cases": (partial(_batch, "munin", 100), WANTED),
    "exact batch, munin, 400 cases": (partial(_batch, "munin", 400), WANTED),
    "exact batch, alarm, 100,000 rows": (partial(_batch, "alarm", 100_000), WANTED),
    "exact batch, alarm, 500,000 rows": (partial(_batch, "alarm", 500_000), WANTED),
    "EM, alarm, 20,000 rows with gaps": (partial(_em, 20_000), WANTED),
    "EM, alarm, 100,000 rows with gaps": (partial(_em, 100_000), WANTED),
    "hill climbing, hailfinder, 20,000 rows": (partial(_climbing, 20_000), WANTED),
    "hill climbing, hailfinder, 400,000 rows": (partial(_climbing, 400_000), WANTED),
    "bootstrap of edges, alarm, 20 × 5,000 rows": (partial(_bootstrap, 5_000, 20), WANTED),
    "bootstrap of edges, alarm, 200 × 20,000 rows": (partial(_bootstrap, 20_000, 200), WANTED),
    "SVC, ten classes, 7,188 rows": (partial(_pairs, 4), WANTED),
    "SVC, ten classes, 17,970 rows": (partial(_pairs, 10), WANTED),
    "SVC grid, digits": (partial(_grid, 1, [1e-3]), WANTED),
    "SVC grid, digits, 7,188 rows, 3 kernels": (partial(_grid, 4, [3e-4, 1e-3, 3e-3]), WANTED),
    "GP with 7 restarts, n = 512": (partial(_restarts, 512), WANTED),
    "GP with 7 restarts, n = 2,000": (partial(_restarts, 2000), WANTED),
    "RBF Gram matrix, n = 6,000": (partial(_gram, 6000), WANTED),
    "RBF Gram matrix, n = 18,000": (partial(_gram, 18_000), WANTED),
    "Gibbs chains, alarm": (partial(_chains, 40_000), WANTED),
    "Gibbs chains, alarm, 2,000,000 sweeps": (partial(_chains, 2_000_000), WANTED),
    "GaussianHMM, 50 sequences of 1,000": (partial(_sequences, 50), WANTED),
    "GaussianHMM, 1,000 sequences of 1,000": (partial(_sequences, 1000), WANTED),
    "tiny: exact batch, asia-sized, 20 rows": (partial(_batch, "asia", 20), TINY),
    "tiny: RBF Gram matrix, n = 50": (partial(_gram, 50), TINY),
    "questions from two threads, alarm": (_questions, TINY),
}
#: Row → kind of loop, of what no work of two threads can exceed.
ROOFS = {f"roof of the machine: two processes, {text}": kind for kind, text in two_processes.KINDS.items()}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement | Failure:
    """One row, inside the child process; loops are compiled before the clock starts."""
    from gramgraph._numerics.compiling import tier

    if cell.row in ROOFS:
        walls = np.array(two_processes.rounds(ROOFS[cell.row], REPEATS)) / [1.0, 2.0]  # for the work of one process
        return _measured(walls, 0.0)
    warnings.simplefilter("ignore")
    try:
        work = ROWS[cell.row][0]()
    except FileNotFoundError as error:
        return Failure("no data", detail=str(error), tried=False)
    with tier("compiled"):
        one, two = work(1), work(2)
        difference = _difference(one, two)
        del one, two
        rounds: list[tuple[float, float]] = []
        while len(rounds) < (FEW if np.sum(rounds) > LONG else REPEATS):
            rounds.append((_wall(work, 1), _wall(work, 2)))
    return _measured(np.array(rounds), difference)


def _measured(walls: Any, difference: float) -> Measurement:
    values = {"ratio": float(np.median(walls[:, 0] / walls[:, 1])), "difference": difference}
    best = float(walls[:, 0].min())
    return Measurement(best, best, len(walls), 1, values=values)


def _wall(work: Work, n_jobs: int) -> float:
    """Seconds of one call; work too short for the clock is repeated."""
    start, calls = time.perf_counter(), 0
    while calls < 1 or time.perf_counter() - start < 0.05:
        work(n_jobs)
        calls += 1
    return (time.perf_counter() - start) / calls


def _difference(one: Any, two: Any) -> float:
    one, two = np.asarray(one), np.asarray(two)
    if one.dtype.kind not in "fiu":
        return 0.0 if np.array_equal(one, two) else float("inf")
    return float(np.abs(one - two).max(initial=0.0))


def report(
    runner: Runner, *, tasks: Sequence[str] | None = None, limit: float | None = None, **_: Any
) -> tuple[str, list[str]]:
    """The table, and the rows whose numbers depend on the threads."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults = [], []
    for row, wanted in {**dict.fromkeys(ROOFS, 0.0), **{row: wanted for row, (_, wanted) in ROWS.items()}}.items():
        if tasks and not any(task in row for task in tasks):
            continue
        print(f"{row} …", file=sys.stderr, flush=True)
        goal = f"{wanted:g}" if wanted else ""
        found = runner.run(Cell("threads", row, "threads", "gramgraph", 1.0, limit or 300.0))
        if isinstance(found, Failure):
            lines.append([row, found.reason, "", goal, ""])
            if found.reason != "no data":
                results[row, "threads", "gramgraph"] = found
            continue
        ratio, difference = found.values["ratio"], found.values["difference"]
        lines.append([row, seconds(found.wall), f"{ratio:.2f}×", goal, f"{difference:.1g}"])
        if difference > 1e-8:
            faults.append(f"{row}: numbers on two threads differ by {difference:.3g}")
    head = ["work", "one thread", "two threads", "wanted", "numbers"]
    assert __doc__ is not None
    text = (
        f"# One thread and two\n\n{versions(['gramgraph', 'numpy', 'numba'])}.\n\n"
        f"{__doc__.partition(chr(10) * 2)[2].strip()}\n\n{markdown(head, lines)}\n"
    )
    return text, failures(results) + faults
