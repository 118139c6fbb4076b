"""Gram matrices, kernel ridge, Nyström ridge and kernel PCA against scikit-learn: CPU time, peak memory, agreement.

`python -m benchmarks kernel_machines [--quick] [--tasks gram path …]`: small sizes with `--quick`, else those of the
targets. Peaks come from a process of their own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, PeakMemory, Runner, measure, runner, versions
from benchmarks.tables import best_of, difference, markdown, ratio_of, seconds, size

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
ALPHAS = np.logspace(-4, 2, 30)
GAMMA = 0.1


@dataclass(frozen=True)
class Task:
    title: str
    n: int
    quick: int  # n of a quick run
    peers: tuple[str, ...]
    tolerance: float  # of the answers
    time: float  # least ratio of times
    memory: float | None = None  # largest ratio of peaks, ours over the peer's


GRAM_PEERS = ("sklearn rbf_kernel", "numpy product + exp")
#: Contestants are named by the package they need, which may be absent.
TASKS = {
    "gram10": Task("RBF Gram matrix, d = 10", 5_000, 2_000, GRAM_PEERS, 1e-12, 2.0),
    "gram100": Task("RBF Gram matrix, d = 100", 5_000, 2_000, GRAM_PEERS, 1e-12, 2.0),
    "path": Task("kernel ridge, 30 penalties", 3_000, 1_500, ("sklearn refits",), 1e-6, 3.0),
    "nystrom": Task(
        "Nyström + ridge, m = 500 (200)",
        100_000,
        20_000,
        ("sklearn pipeline", "sklearn pipeline, no intercept", "sklearnex pipeline"),
        0.02,
        3.0,
        0.2,
    ),
    "pca": Task("kernel PCA, top 10", 10_000, 3_000, ("sklearn arpack", "sklearn randomized"), 1e-5, 1.0, 0.5),
}


def _data(n: int, d: int, context: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    if d not in context:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d)) * np.sqrt(10.0 / d)  # distances as in ten columns
        context[d] = X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)
    X, y = context[d]
    return X, y


def _gram(who: str, X: np.ndarray, y: np.ndarray) -> Callable[[], np.ndarray]:
    """The matrix; the last contestant is no peer but the floor, as its products are not turned into distances."""
    if who == OURS:
        from gramgraph.kernels import RBF

        return lambda: RBF(length_scale=1.0 / np.sqrt(2.0 * GAMMA)).gram(X)
    if who.startswith("sklearn"):
        from sklearn.metrics.pairwise import rbf_kernel

        return lambda: rbf_kernel(X, gamma=GAMMA)

    def floor() -> np.ndarray:
        K = X @ X.T
        return np.exp(K, out=K)

    return floor


def _path(who: str, X: np.ndarray, y: np.ndarray) -> Callable[[], np.ndarray]:
    """Dual coefficients for all penalties (ours: with the leave-one-out errors)."""
    if who == OURS:
        from gramgraph.estimators import KernelRidge

        return lambda: KernelRidge("loo", gamma=GAMMA, alphas=ALPHAS).fit(X, y).path_.dual_coefs[:, 0]
    from sklearn.kernel_ridge import KernelRidge as Peer

    return lambda: np.stack([Peer(alpha=a, kernel="rbf", gamma=GAMMA).fit(X, y).dual_coef_ for a in ALPHAS], axis=1)


def _nystrom(who: str, X: np.ndarray, y: np.ndarray) -> Callable[[], np.ndarray]:
    """Root mean squared error: landmarks are drawn differently, so predictions agree only in quality."""
    m = 500 if len(X) > 50_000 else 200
    model: Any
    if who == OURS:
        from gramgraph.estimators import KernelRidge

        model = KernelRidge(1.0, gamma=GAMMA, approx="nystrom", n_components=m, random_state=0)
    else:
        from sklearn.kernel_approximation import Nystroem
        from sklearn.pipeline import make_pipeline

        if who.startswith("sklearnex"):
            from sklearnex.linear_model import Ridge
        else:
            from sklearn.linear_model import Ridge
        features = Nystroem(kernel="rbf", gamma=GAMMA, n_components=m, random_state=0)
        model = make_pipeline(features, Ridge(1.0, fit_intercept="no intercept" not in who))
    check = slice(0, 2000)
    return lambda: np.sqrt(np.mean((model.fit(X, y).predict(X[check]) - y[check]) ** 2, keepdims=True))


def _pca(who: str, X: np.ndarray, y: np.ndarray) -> Callable[[], np.ndarray]:
    """Eigenvalues, relative to the largest."""
    model: Any
    if who == OURS:
        from gramgraph.estimators import KernelPCA

        model = KernelPCA(10, gamma=GAMMA, random_state=0)
    else:
        from sklearn.decomposition import KernelPCA as Peer

        model = Peer(10, kernel="rbf", gamma=GAMMA, eigen_solver=who.split()[1], random_state=0)

    def run() -> np.ndarray:
        values = model.fit(X).eigenvalues_
        return values / values[0]

    return run


_WORK = {"gram10": _gram, "gram100": _gram, "path": _path, "nystrom": _nystrom, "pca": _pca}


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One contestant at one task; the row is the number of points."""
    X, y = _data(int(cell.row), 100 if cell.task == "gram100" else 10, context)
    call = _WORK[cell.task](cell.contestant, X, y)
    _WORK[cell.task](cell.contestant, X[:300], y[:300])()  # imports and compiled code come before the clock
    if cell.fresh:
        with PeakMemory() as memory:
            call()
        return Measurement(0.0, 0.0, 1, 1, peak=memory.peak)
    answer = np.asarray(call())
    if cell.task.startswith("gram"):
        answer = answer[:: max(1, len(answer) // 50)].copy()  # some rows are enough to compare
    cpu, wall, repeats = measure(call, budget=cell.budget, warm=False, most=9)
    return Measurement(cpu, wall, repeats, 1, answers=(answer,))


def _both(run: Runner, n: str, task: str, who: str, budget: float, limit: float) -> Measurement | Failure:
    """Time, and from a process of its own (whose allocator is set to show every array, which costs time) the peak."""
    timed = run.run(Cell("kernel_machines", n, task, who, budget, limit))
    if isinstance(timed, Failure):
        return timed
    sized = run.run(Cell("kernel_machines", n, task, who, budget, limit, fresh=True))
    return replace(timed, peak=sized.peak) if isinstance(sized, Measurement) else timed


def report(
    run: Runner,
    *,
    tasks: Sequence[str] | None = None,
    with_peers: Sequence[str] = ("sklearn", "sklearnex", "numpy"),
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    **others: Any,
) -> tuple[str, list[str]]:
    """The table as Markdown, and what is wrong: answers that disagree, cells of ours that fail."""
    rows: list[list[str]] = []
    faults: list[str] = []
    for name in tasks or TASKS:
        if name not in TASKS:
            continue
        task = TASKS[name]
        n = str(task.quick if quick else task.n)
        peers = [p for p in task.peers if p.split()[0] in with_peers]
        cells = {who: _both(run, n, name, who, budget or 2.0, limit or 600.0) for who in (OURS, *peers)}
        rows.append(_row(task, n, cells, faults))
    header = ["task", "n", OURS, "peers", "time ratio", "memory, ours / theirs", "diff"]
    head = [
        "# Kernel machines",
        "",
        versions(["gramgraph", "numpy", "scikit-learn", "scikit-learn-intelex"]) + ", one thread.",
        "",
    ]
    if faults:
        head += ["**Faults**", "", *[f"- {fault}" for fault in faults], ""]
    return "\n".join([*head, markdown(header, rows), ""]), faults


def _row(task: Task, n: str, cells: dict[str, Measurement | Failure], faults: list[str]) -> list[str]:
    mine = cells[OURS]
    if isinstance(mine, Failure):
        faults += [f"{task.title}: {mine.reason} {mine.detail}"] if mine.tried else []
        return [task.title, n, mine.reason, "", "", "", ""]
    theirs = {who: result for who, result in cells.items() if who != OURS}
    shown = [f"{w}: {seconds(r.cpu) if isinstance(r, Measurement) else r.reason}" for w, r in theirs.items()]
    best = best_of(result for who, result in theirs.items() if not who.startswith("numpy"))
    ratio = ratio_of(mine, best)
    text = f"{ratio} (target ≥ {task.time:g}×)" if ratio else ""
    memory, gap = size(mine.peak), ""
    if isinstance(best, Measurement):
        memory = f"{size(mine.peak)} / {size(best.peak)} = {(mine.peak or 0) / max(best.peak or 0, 1):.2f}"
        memory += f" (target ≤ {task.memory:g})" if task.memory else ""
        off = difference(mine, best)
        gap = f"{off:.1e}"
        if not off <= task.tolerance:
            faults.append(f"{task.title}: answers differ by {off:.3g}, more than {task.tolerance:g}")
    return [task.title, n, seconds(mine.cpu), "; ".join(shown), text, memory, gap]


if __name__ == "__main__":
    with runner() as made:
        found, wrong = report(made, quick="--quick" in sys.argv, tasks=[a for a in sys.argv[1:] if a in TASKS] or None)
    print(found)
    sys.exit(1 if wrong else 0)
