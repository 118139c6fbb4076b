"""Mixtures and classifiers against scikit-learn, CPU time in one thread.

`python -m benchmarks mixtures`. Rows: an iteration of EM (100,000 × 10, 8 full covariances, the same start); fit and
probabilities of Gaussian classes (100,000 × 20, 5 classes) against the discriminants and GaussianNB; Bayesian logistic
regression (50,000 × 50, posterior included) against `newton-cholesky`. Answers are compared: log densities after the
same number of steps, probabilities, weights.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, one_thread, versions

__all__ = ["report"]

TARGETS = {"mixture": 5.0, "shared": 3.0, "own": 3.0, "diagonal": 3.0, "logistic": 1.0}
STEPS = 12


Seconds = np.ndarray  # (CPU, wall)


def seconds(work: Callable[[], Any], repeats: int) -> Seconds:
    """CPU and wall time of the best repeat."""
    found = []
    for _ in range(repeats):
        start = time.process_time(), time.perf_counter()
        work()
        found.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    return np.array(min(found))


def mixture(repeats: int) -> tuple[Seconds, Seconds, float]:
    """Seconds of one step of EM, ours and theirs, and how far densities are apart after as many."""
    from sklearn.mixture import GaussianMixture as Peer

    import gramgraph as gg

    rng = np.random.default_rng(0)
    k, d, n = 8, 10, 100_000
    means, A, z = rng.normal(size=(k, d)), rng.normal(size=(k, d, d)), rng.integers(k, size=n)
    X = means[z] + np.einsum("nij,nj->ni", A[z], rng.normal(size=(n, d)))
    first = gg.GaussianMixture(k, max_iter=1, tol=0.0, random_state=0).fit(X)

    start = {"means_init": first.means_, "weights_init": first.weights_, "precisions_init": first.precisions_}

    def ours(steps: int) -> Any:
        return gg.GaussianMixture(k, max_iter=steps, tol=0.0, **start).fit(X)

    def theirs(steps: int) -> Any:
        return Peer(k, max_iter=steps, tol=0.0, reg_covar=0.0, init_params="random", **start).fit(X)

    out, made = [], []
    for fit in (ours, theirs):
        few, many = fit(2), fit(2 + STEPS)
        short, long = seconds(lambda f=fit: f(2), repeats), seconds(lambda f=fit: f(2 + STEPS), repeats)
        out.append((long - short) / max(many.n_iter_ - few.n_iter_, 1))
        made.append(many)
    apart = abs(made[0].score(X) - made[1].score(X))
    return out[0], out[1], apart


def classes(kind: str, repeats: int) -> tuple[Seconds, Seconds, float]:
    """Seconds of fit and predict_proba, ours and theirs, and how far probabilities are apart."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
    from sklearn.naive_bayes import GaussianNB

    import gramgraph as gg

    rng = np.random.default_rng(1)
    n, d, k = 100_000, 20, 5
    means, y, A = rng.normal(size=(k, d)), rng.integers(k, size=n), rng.normal(size=(k, d, d)) + 4.0 * np.eye(d)
    X = means[y] + np.einsum("nij,nj->ni", A[y], rng.normal(size=(n, d)))
    peer = {"shared": LinearDiscriminantAnalysis, "own": QuadraticDiscriminantAnalysis, "diagonal": GaussianNB}[kind]()
    ours = gg.GaussianClassifier(kind)
    apart = float(np.abs(ours.fit(X, y).predict_proba(X) - peer.fit(X, y).predict_proba(X)).max())
    times = [seconds(lambda m=m: m.fit(X, y).predict_proba(X), repeats) for m in (ours, peer)]
    return times[0], times[1], apart


def logistic(repeats: int) -> tuple[Seconds, Seconds, float]:
    """Seconds of a fit, ours (with the posterior) and theirs, and how far weights are apart."""
    from sklearn.linear_model import LogisticRegression

    import gramgraph as gg

    rng = np.random.default_rng(2)
    n, d = 50_000, 50
    X = rng.normal(size=(n, d))
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ rng.normal(size=d) / 3.0))).astype(int)
    ours, peer = gg.BayesianLogisticRegression(), LogisticRegression(solver="newton-cholesky")
    apart = float(np.abs(ours.fit(X, y).coef_ - peer.fit(X, y).coef_).max())
    return seconds(lambda: ours.fit(X, y), repeats), seconds(lambda: peer.fit(X, y), repeats), apart


def report(runner: Runner, *, quick: bool = False, **_: Any) -> tuple[str, list[str]]:
    """The table as text, and what is wrong with it."""
    repeats = 2 if quick else 5
    one_thread()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps of EM do not converge, and are not meant to
        rows = {"mixture": mixture(repeats)}
    rows |= {kind: classes(kind, repeats) for kind in ("shared", "own", "diagonal")}
    rows["logistic"] = logistic(repeats)
    lines = ["| row | gramgraph, s | scikit-learn, s | ratio | wanted | apart |", "|---|---|---|---|---|---|"]
    faults = []
    for name, (ours, theirs, apart) in rows.items():
        ratio = theirs[0] / ours[0]
        lines.append(f"| {name} | {ours[0]:.4f} | {theirs[0]:.4f} | {ratio:.2f} | {TARGETS[name]} | {apart:.1e} |")
        for who, (cpu, wall) in (("gramgraph", ours), ("sklearn", theirs)):
            measured = Measurement(float(cpu), float(wall), repeats, 1, values={"apart": apart})
            runner.records.append((Cell("mixtures", name, "time", who, 0.0, 0.0), measured))
        if apart > 1e-3:
            faults.append(f"{name}: answers are {apart:.1e} apart")
    return "\n".join(
        ["# Mixtures and classifiers", "", versions(("gramgraph", "scikit-learn", "numpy")), "", *lines, ""]
    ), faults
