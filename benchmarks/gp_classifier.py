"""Gaussian process classification against scikit-learn: CPU time, peak memory, evidence, log loss.

`python -m benchmarks gp_classifier [--quick]`. Rows: points and kernel; a fit learns the kernel's parameters from the
same start, probabilities are of 1,000 held-out points. "evidence" is one evaluation with its gradient at fixed
parameters, where answers must agree; a fit may end on another hill, so there evidence and log loss are shown.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, PeakMemory, Runner, measure, runner, versions
from benchmarks.tables import Ratio, Target, difference, markdown, ratio_of, shown, size, summary

__all__ = ["report", "run_cell"]

OURS, PEER = "gramgraph", "sklearn"
MORE = ("gramgraph ep",)  # what the peer does not offer
COLUMNS = 5
ROWS = ("1000 one length scale", "1000 one a column")
QUICK = ("400 one length scale",)
TIMES = 5.0
LOSS = 2e-3  # by which a log loss may be larger before it counts as worse


def data(row: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training points and labels, test points and labels; two of five columns are noise."""
    n = int(row.split()[0])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 1000, COLUMNS))
    f = 2.0 * X[:, 0] + 1.5 * X[:, 1] ** 2 - 1.5 + np.sin(3.0 * X[:, 2])
    y = (rng.uniform(size=len(X)) < 1.0 / (1.0 + np.exp(-2.0 * f))).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def machine(who: str, row: str, **options: Any) -> Any:
    scales = 1.0 if "one length scale" in row else np.ones(COLUMNS)
    if who == PEER:
        from sklearn.gaussian_process import GaussianProcessClassifier as Peer
        from sklearn.gaussian_process.kernels import RBF as PeerRBF

        return Peer(1.0 * PeerRBF(scales), **options)
    from gramgraph import GaussianProcessClassifier
    from gramgraph.kernels import RBF

    more = {"inference": "ep", "link": "probit"} if who.endswith("ep") else {}
    return GaussianProcessClassifier(1.0 * RBF(scales), **more, **options)


def work(task: str, who: str, row: str, n: int | None = None) -> Callable[[], Any]:
    X, y, _, _ = data(row)
    X, y = X[:n], y[:n]
    if task == "fit":
        return lambda: machine(who, row).fit(X, y)
    fitted = machine(who, row, optimizer=None).fit(X, y)
    theta = np.full(2 if "one length scale" in row else COLUMNS + 1, 0.7)
    if who != PEER:  # a fresh evaluation: the peer keeps no mode either
        fitted.fits_ = tuple(replace(fit, start=None) for fit in fitted.fits_)
    return lambda: fitted.log_marginal_likelihood(theta, eval_gradient=True)


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One contestant at one task; what is loaded and compiled comes before the clock."""
    from sklearn.metrics import log_loss

    warnings.simplefilter("ignore")
    work(cell.task, cell.contestant, cell.row, 100)()
    call = work(cell.task, cell.contestant, cell.row)
    if cell.fresh:
        with PeakMemory() as memory:
            call()
        return Measurement(0.0, 0.0, 1, 1, peak=memory.peak)
    last: list[Any] = []
    cpu, wall, repeats = measure(lambda: last.append(call()), budget=cell.budget, warm=False, most=5)
    if cell.task == "evidence":
        value, slope = last[-1]
        return Measurement(cpu, wall, repeats, 1, answers=(np.r_[value, slope],))
    _, _, X, y = data(cell.row)
    values = {
        "evidence": float(last[-1].log_marginal_likelihood_value_),
        "loss": float(log_loss(y, last[-1].predict_proba(X))),
    }
    return Measurement(cpu, wall, repeats, 1, values=values)


def _both(run: Runner, row: str, task: str, who: str, budget: float, limit: float) -> Measurement | Failure:
    timed = run.run(Cell("gp_classifier", row, task, who, budget, limit))
    if isinstance(timed, Failure) or task == "evidence":
        return timed
    sized = run.run(Cell("gp_classifier", row, task, who, budget, limit, fresh=True))
    return replace(timed, peak=sized.peak) if isinstance(sized, Measurement) else timed


def report(
    run: Runner,
    *,
    tasks: Sequence[str] | None = None,
    with_peers: Sequence[str] = (PEER,),
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    **others: Any,
) -> tuple[str, list[str]]:
    """The table as Markdown, and what is wrong: answers that disagree, a worse log loss, cells of ours that fail."""
    lines: list[list[Any]] = []
    faults: list[str] = []
    ratios: list[Ratio] = []
    for row in QUICK if quick else ROWS:
        for task in tasks or ("evidence", "fit"):
            names = (OURS, *(MORE if task == "fit" else ()), *([PEER] if PEER in with_peers else []))
            cells = {who: _both(run, row, task, who, budget or 2.0, limit or 600.0) for who in names}
            mine, peer = cells[OURS], cells.get(PEER)
            for who, found in cells.items():
                ratio = ratio_of(mine, found) if who == PEER else None
                ratios += [ratio] if ratio and task == "fit" else []  # the target is that of a whole fit
                lines.append([row, task, who, shown(found), ratio or "", *_numbers(found)])
            faults += _faults(f"{row}, {task}", mine, peer)
    header = ["points, kernel", "task", "who", "CPU", "ratio", "peak memory", "log evidence", "log loss"]
    head = ["# Gaussian process classification", "", versions(["gramgraph", "numpy", "scikit-learn"]) + ", one thread."]
    target = "" if quick else summary(ratios, Target(each=TIMES))  # the target is that of 1,000 points
    text = [*head, "", markdown(header, lines), "", target, ""]
    return "\n".join(text), faults


def _numbers(found: Measurement | Failure) -> list[str]:
    if isinstance(found, Failure):
        return ["", "", ""]
    peak = size(found.peak) if found.peak else ""
    if not found.values:
        return [peak, f"{found.answers[0][0]:.6f}", ""]
    return [peak, f"{found.values['evidence']:.3f}", f"{found.values['loss']:.4f}"]


def _faults(where: str, mine: Measurement | Failure, peer: Measurement | Failure | None) -> list[str]:
    if isinstance(mine, Failure):
        return [f"{where}: {mine.reason} {mine.detail}"] if mine.tried else []
    if not isinstance(peer, Measurement):
        return []
    if not mine.values:
        off = difference(mine, peer)
        return [] if off <= 1e-6 else [f"{where}: evidence and gradient differ by {off:.3g}, more than 1e-6"]
    worse = mine.values["loss"] - peer.values["loss"]
    return [f"{where}: log loss larger by {worse:.4f}"] if worse > LOSS else []


if __name__ == "__main__":
    with runner() as made:
        found, wrong = report(made, quick="--quick" in sys.argv)
    print(found)
    sys.exit(1 if wrong else 0)
