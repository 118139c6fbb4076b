"""One thread and two: wall time of the same work with `n_jobs=1` and `n_jobs=2`, and whether the numbers agree.

`python -m benchmarks threads`, on a machine where nothing else runs. Both are timed in turns, and the figure is the
median of five ratios; `numbers` is the largest difference of the results. "tiny" rows are work for which a second
thread does not pay: it should stay on one by itself. "questions from two threads" are single warm questions, all from
one thread and half from each of two.
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

from benchmarks.harness import Cell, Failure, Measurement, Runner, versions
from benchmarks.networks import network_paths
from benchmarks.tables import Result, failures, markdown, seconds

__all__ = ["ROWS", "report", "run_cell"]

#: What is wanted of two threads: large work and tiny work.
WANTED, TINY = 1.7, 0.9
REPEATS = 5
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


def _bootstrap() -> Work:
    from gramgraph.learn import bootstrap_edges

    rows = _network("alarm").sample(5000, random_state=0)

    def strengths(n_jobs: int) -> Any:
        found = bootstrap_edges(rows, 20, random_state=0, n_jobs=n_jobs).to_frame()
        return found.select_dtypes("number").to_numpy()

    return strengths


def _pairs() -> Work:
    from sklearn.datasets import load_digits

    from gramgraph import SVC

    X, y = load_digits(return_X_y=True)
    X = np.vstack([X + 0.5 * np.random.default_rng(i).normal(size=X.shape) for i in range(4)])
    y = np.tile(y, 4)
    return lambda n_jobs: SVC(C=10.0, gamma=1e-3, n_jobs=n_jobs).fit(X, y).dual_coef_


def _grid() -> Work:
    from sklearn.datasets import load_digits

    from gramgraph.estimators import svc_path

    X, y = load_digits(return_X_y=True)
    return lambda n_jobs: svc_path(X, y, None, [0.1, 1.0, 10.0], 5, gamma=[1e-3], n_jobs=n_jobs).scores


def _restarts() -> Work:
    from gramgraph import GaussianProcessRegressor, kernels

    X = np.random.default_rng(0).normal(size=(512, 3))
    y = np.sin(X).sum(axis=1) + 0.1 * np.random.default_rng(1).normal(size=512)
    kernel = 1.0 * kernels.RBF([1.0] * 3) + kernels.White(0.1)
    make = partial(GaussianProcessRegressor, kernel, n_restarts_optimizer=7, random_state=0)
    return lambda n_jobs: make(n_jobs=n_jobs).fit(X, y).kernel_.theta


def _gram(n: int) -> Work:
    from gramgraph import kernels

    X = np.random.default_rng(0).normal(size=(n, 10))
    out = np.empty((n, n))
    return lambda n_jobs: kernels.RBF().gram(X, out=out, n_jobs=n_jobs)[::101]


def _chains() -> Work:
    net = _network("alarm")
    asked = {"HRBP": "HIGH", "CO": "LOW"}

    def belief(n_jobs: int) -> Any:
        options: Any = {"engine": "gibbs", "random_state": 0, "n_jobs": n_jobs}
        return net.query("HR", asked, budget=40_000, **options)["HR"].probabilities

    return belief


def _sequences() -> Work:
    from gramgraph import GaussianHMM

    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 6, 5000), 10)
    X = states[:, None] + rng.normal(size=(len(states), 2))
    lengths = [len(X) // 50] * 50
    make = partial(GaussianHMM, 6, max_iter=8, tol=0.0, random_state=0)
    return lambda n_jobs: make(n_jobs=n_jobs).fit(X, lengths).means_


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
    "exact batch, alarm, 100,000 rows": (partial(_batch, "alarm", 100_000), WANTED),
    "EM, alarm, 20,000 rows with gaps": (partial(_em, 20_000), WANTED),
    "hill climbing, hailfinder, 20,000 rows": (partial(_climbing, 20_000), WANTED),
    "bootstrap of edges, alarm, 20 × 5,000 rows": (_bootstrap, WANTED),
    "SVC, ten classes, 7,188 rows": (_pairs, WANTED),
    "SVC grid, digits": (_grid, WANTED),
    "GP with 7 restarts, n = 512": (_restarts, WANTED),
    "RBF Gram matrix, n = 6,000": (partial(_gram, 6000), WANTED),
    "Gibbs chains, alarm": (_chains, WANTED),
    "GaussianHMM, 50 sequences of 1,000": (_sequences, WANTED),
    "tiny: exact batch, asia-sized, 20 rows": (partial(_batch, "asia", 20), TINY),
    "tiny: RBF Gram matrix, n = 50": (partial(_gram, 50), TINY),
    "questions from two threads, alarm": (_questions, TINY),
}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement | Failure:
    """One row, inside the child process; loops are compiled before the clock starts."""
    from gramgraph._numerics.compiling import tier

    warnings.simplefilter("ignore")
    try:
        work = ROWS[cell.row][0]()
    except FileNotFoundError as error:
        return Failure("no data", detail=str(error), tried=False)
    with tier("compiled"):
        one, two = work(1), work(2)
        rounds = [(_wall(work, 1), _wall(work, 2)) for _ in range(REPEATS)]
    walls = np.array(rounds)
    values = {"ratio": float(np.median(walls[:, 0] / walls[:, 1])), "difference": _difference(one, two)}
    return Measurement(float(walls[:, 0].min()), float(walls[:, 0].min()), REPEATS, 1, values=values)


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
    for row, (_made, wanted) in ROWS.items():
        if tasks and not any(task in row for task in tasks):
            continue
        print(f"{row} …", file=sys.stderr, flush=True)
        found = runner.run(Cell("threads", row, "threads", "gramgraph", 1.0, limit or 300.0))
        if isinstance(found, Failure):
            lines.append([row, found.reason, "", f"{wanted:g}", ""])
            if found.reason != "no data":
                results[row, "threads", "gramgraph"] = found
            continue
        ratio, difference = found.values["ratio"], found.values["difference"]
        lines.append([row, seconds(found.wall), f"{ratio:.2f}×", f"{wanted:g}", f"{difference:.1g}"])
        if difference > 1e-8:
            faults.append(f"{row}: numbers on two threads differ by {difference:.3g}")
    head = ["work", "one thread", "two threads", "wanted", "numbers"]
    assert __doc__ is not None
    text = (
        f"# One thread and two\n\n{versions(['gramgraph', 'numpy', 'numba'])}.\n\n"
        f"{__doc__.partition(chr(10) * 2)[2].strip()}\n\n{markdown(head, lines)}\n"
    )
    return text, failures(results) + faults
