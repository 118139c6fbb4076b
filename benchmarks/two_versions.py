"""This version of the library against an earlier one: the same warm work, alternately, CPU seconds.

    git worktree add ../before v0.1.0
    python -m benchmarks.two_versions ../before/src [--rows "SVC, digits" …] [--seconds 3] [--json FILE]

First each version compiles what it needs, in a process and with a compile cache of its own. Then both are loaded into
one process and take turns of some 20 ms, so that what the machine does meanwhile meets both: two processes of the same
version differ by up to a half on a busy machine. The best turn of both and the median of the ratios of neighboring
turns are shown. Both versions must give the same numbers (to `TOLERANCE`, or to the row's own).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

#: CPU seconds of a turn, and the fewest turns.
TURN, FEWEST = 0.02, 7
TOLERANCE = 1e-6
Work = Callable[[], Any]
NETWORKS = ("asia", "child", "alarm", "insurance", "hailfinder", "water", "andes", "pigs", "mildew", "munin")
SMALLER = NETWORKS[:-1]


# --- rows: each function makes the work, which returns the numbers that are compared ------------------------------


def network(name: str) -> Any:
    import gramgraph as gg

    return gg.read(_data() / "bn" / f"{name}.bif.gz")


def _data() -> Path:
    return Path(os.environ.get("GRAMGRAPH_DATA", "../shared/data"))


def _observed(net: Any, *, share: float = 0.1) -> list[str]:
    rng = np.random.default_rng(0)
    names = list(net.variables)
    return [names[i] for i in sorted(rng.choice(len(names), max(2, round(share * len(names))), replace=False))]


def _rows(net: Any, n: int, *, distinct: bool = False, patterns: bool = False) -> Any:
    frame = net.sample(n * (20 if distinct else 1), random_state=0)
    seen = _observed(net, share=0.4 if distinct else 0.1)
    frame = (frame[seen].drop_duplicates() if distinct else frame[seen]).head(n).reset_index(drop=True)
    return frame.mask(np.random.default_rng(1).random(frame.shape) < 0.3) if patterns else frame


def _posteriors(net: Any, frame: Any) -> Any:
    answer = net.query(None, evidence=frame)
    return np.concatenate([answer[v].probabilities[:5].ravel() for v in answer])


def batch(name: str, n: int, **how: bool) -> Work:
    net = network(name)
    frame = _rows(net, n, **how)
    return lambda: _posteriors(net, frame)


def best_rows(name: str, n: int) -> Work:
    net = network(name)
    frame = _rows(net, n)
    return lambda: np.asarray(net.map_query(evidence=frame)["log_prob"], dtype=float)


def one_case(name: str) -> Work:
    net = network(name)
    cases = [{k: v for k, v in row.items() if isinstance(v, str)} for row in _rows(net, 50).to_dict("records")]
    turn = iter(range(1 << 62))

    def ask() -> Any:
        for _ in range(50):
            answer = net.query(None, evidence=cases[next(turn) % 50])
            last = [answer[v].probabilities for v in answer]
        return np.concatenate(last)

    return ask


def first_answer(name: str) -> Work:
    case = _rows(network(name), 1).to_dict("records")[0]

    def ask() -> Any:
        net = network(name)
        answer = net.query(None, evidence=case)
        return np.concatenate([answer[v].probabilities for v in answer])

    return ask


def read(name: str) -> Work:
    return lambda: float(len(network(name).variables))


def _normal(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + np.sqrt(0.1) * rng.normal(size=n)


def gram(n: int, d: int) -> Work:
    from gramgraph.kernels import RBF

    X = _normal(n, d)[0] * np.sqrt(10.0 / d)
    return lambda: RBF(length_scale=1.0 / np.sqrt(0.2)).gram(X)[:3].ravel()


def svc(n: int, d: int) -> Work:
    from gramgraph.estimators import SVC

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return lambda: SVC(C=1.0).fit(X, y).decision_function(X[:50])


def svc_digits() -> Work:
    from sklearn.datasets import load_digits

    from gramgraph.estimators import SVC

    X, y = load_digits(return_X_y=True)
    return lambda: SVC(C=1.0).fit(X, y).decision_function(X[:20]).ravel()


def svc_grid() -> Work:
    from gramgraph.estimators import svc_path

    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    y = (X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=1000) > 0).astype(int)
    return lambda: svc_path(X, y, None, np.logspace(-1, 2, 10), 5, gamma=np.logspace(-2, 0, 5)).best_score


def kernel_pca(n: int) -> Work:
    from gramgraph.estimators import KernelPCA

    X = _normal(n, 10)[0]
    return lambda: KernelPCA(10, gamma=0.1, random_state=0).fit(X).eigenvalues_


def nystrom(n: int, m: int) -> Work:
    from gramgraph.estimators import KernelRidge

    X, y = _normal(n, 10)
    model = KernelRidge(1.0, gamma=0.1, approx="nystrom", n_components=m, random_state=0)
    return lambda: model.fit(X, y).predict(X[:20])


def ridge_path(n: int) -> Work:
    from gramgraph.estimators import KernelRidge

    X, y = _normal(n, 10)
    alphas = np.logspace(-4, 2, 30)
    return lambda: KernelRidge("loo", gamma=0.1, alphas=alphas).fit(X, y).predict(X[:20])


def relevance(n: int, d: int, *, average: bool, gamma: float) -> Work:
    """Fits of eight sets of points: one alone may end elsewhere with another version, after more or fewer steps."""
    from gramgraph.estimators.rvm import RVR

    rng = np.random.default_rng(0)
    sets = []
    for _ in range(8):
        X = np.linspace(-10, 10, n)[:, None] if d == 1 else rng.normal(size=(n, d))
        f = np.sinc(X[:, 0] / np.pi) if d == 1 else np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2
        sets.append((X, f + 0.1 * rng.normal(size=n)))
    return lambda: [RVR(gamma=gamma, average=average).fit(X, y).predict(X[:5]).sum() for X, y in sets]


def gp_evidence(n: int) -> Work:
    from gramgraph.gp import exact_evidence
    from gramgraph.kernels import RBF, White

    X, y = _normal(n, 8)
    kernel = 1.5 * RBF(np.linspace(1.0, 3.0, 8)) + White(0.1)
    return lambda: exact_evidence(kernel, X, y, gradient=True).value


def gp_fit(n: int) -> Work:
    from gramgraph import GaussianProcessRegressor
    from gramgraph.kernels import RBF, White

    X, y = _normal(n, 4)
    kernel = 1.0 * RBF(np.ones(4)) + White(0.1)

    def fit() -> Any:
        model = GaussianProcessRegressor(kernel, n_restarts_optimizer=5, random_state=0).fit(X, y)
        return model.predict(X[:20])

    return fit


def gp_line(n: int) -> Work:
    from gramgraph import GaussianProcessRegressor
    from gramgraph.kernels import Matern, White

    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, n / 50, n))
    y = np.sin(t) + np.sqrt(0.1) * rng.normal(size=n)
    kernel = 1.5 * Matern(1.0, nu=1.5) + White(0.1)
    model = GaussianProcessRegressor(kernel, optimizer=None)
    return lambda: model.fit(t[:, None], y).predict(t[:20, None])


def gp_classifier(n: int) -> Work:
    from gramgraph import GaussianProcessClassifier
    from gramgraph.kernels import RBF

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    f = 2.0 * X[:, 0] + 1.5 * X[:, 1] ** 2 - 1.5 + np.sin(3.0 * X[:, 2])
    y = (rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-2.0 * f))).astype(int)
    return lambda: GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, y).predict_proba(X[:20]).ravel()


def graphical_lasso(p: int) -> Work:
    from gramgraph.estimators import GraphicalLasso

    rng = np.random.default_rng(0)
    A = np.triu(rng.random((p, p)) < 2 / p, 1) * rng.choice([-1, 1], (p, p)) * rng.uniform(0.2, 0.5, (p, p))
    P = A + A.T
    P += np.diag(np.abs(P).sum(axis=1) + 0.2)
    X = rng.multivariate_normal(np.zeros(p), np.linalg.inv(P), size=2 * p, method="cholesky")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    R = np.abs(np.corrcoef(X.T))
    np.fill_diagonal(R, 0.0)
    alphas = np.geomspace(R.max(), 0.05 * R.max(), 16)
    return lambda: GraphicalLasso("cv", alphas=alphas, cv=5, standardize=False).fit(X).alpha_


def _alarm_rows(n: int) -> tuple[Any, Any]:
    import pandas as pd

    net = network("alarm")
    parts = [net.sample(min(100_000, n), random_state=i) for i in range(max(n // 100_000, 1))]
    return net, pd.concat(parts, ignore_index=True)


def tables(n: int, *, kind: str) -> Work:
    net, frame = _alarm_rows(n)
    frame = frame if kind == "category" else frame.astype(kind)
    return lambda: np.concatenate([net.fit(frame).conditional(v).table().ravel() for v in ("HR", "CO")])


def expectation_step(n: int) -> Work:
    net, frame = _alarm_rows(n)
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)
    return lambda: net.fit(frame, max_iter=5, tol=0.0).conditional("HR").table().ravel()


def hill_climbing(n: int) -> Work:
    import gramgraph as gg

    frame = _alarm_rows(n)[1]
    return lambda: float(len(gg.learn_structure(frame).edges) > 0)


def hmm(K: int, task: str) -> Work:
    from sklearn.base import clone

    from gramgraph.sequences import GaussianHMM

    rng = np.random.default_rng(K)
    start, A = np.full(K, 1 / K), 0.5 * np.eye(K) + 0.5 * rng.dirichlet(np.ones(K), K)
    means, variances = rng.normal(size=(K, 2)) * 3, rng.uniform(0.5, 2.0, (K, 2))
    model = GaussianHMM.from_parameters(
        start, A, means, variances, covariance_type="diag", covariance_prior=0.0, max_iter=1
    )
    X, lengths = model.sample(100_000, n_sequences=1, random_state=1)[0], [100_000]
    if task == "posteriors":
        return lambda: model.predict_proba(X, lengths)[:20].ravel()
    if task == "viterbi":
        return lambda: model.decode(X, lengths)[0]
    step = clone(model).set_params(init=model, max_iter=1)
    return lambda: step.fit(X, lengths).transmat_.ravel()


def kalman(states: int, steps: int) -> Work:
    import gramgraph as gg

    rng = np.random.default_rng(0)
    A = 0.9 * np.linalg.qr(rng.normal(size=(states, states)))[0]
    H = rng.normal(size=(2, states))
    y = rng.normal(size=(steps, 2))
    model = gg.KalmanFilter(A, 0.1 * np.eye(states), H, np.eye(2), np.zeros(states), np.eye(states))

    def smooth() -> Any:
        found = model.smooth(y)
        return np.asarray(getattr(found, "means", None) if hasattr(found, "means") else found[0])[:5].ravel()

    return smooth


def crf() -> Work:
    import gramgraph as gg

    rng = np.random.default_rng(0)
    words = [[int(k) for k in rng.integers(0, 500, 12)] for _ in range(300)]
    X = [[{f"w{k % 50}": 1.0, "l": float(k % 3), f"s{k % 7}": 1.0} for k in one] for one in words]
    y = [[str((k + k // 7) % 5) for k in one] for one in words]
    return lambda: gg.LinearChainCRF("lbfgs", max_iterations=20).fit(X, y).predict_marginals_single(X[0])[0]["0"]


def kernel_tree(nodes: int, n: int) -> Work:
    import gramgraph as gg

    rng = np.random.default_rng(0)
    X = np.empty((n, nodes))
    X[:, 0] = rng.normal(size=n)
    for j in range(1, nodes):
        X[:, j] = np.sin(1.5 * X[:, rng.integers(j)]) + 0.3 * rng.normal(size=n)
    frame = {f"x{j}": X[:, j] for j in range(nodes)}
    return lambda: float(len(gg.learn_tree(frame).edges))


ROWS: dict[str, tuple[Callable[[], Work], float]] = {
    **{f"1,000 different cases, {name}": (partial(batch, name, 1000, distinct=True), TOLERANCE) for name in NETWORKS},
    **{f"1,000 cases as drawn, {name}": (partial(batch, name, 1000), TOLERANCE) for name in NETWORKS},
    **{f"1,000 cases, own names, {name}": (partial(batch, name, 1000, patterns=True), TOLERANCE) for name in SMALLER},
    **{f"best assignments of 1,000 cases, {name}": (partial(best_rows, name, 1000), TOLERANCE) for name in NETWORKS},
    **{f"one case, {name}": (partial(one_case, name), TOLERANCE) for name in NETWORKS},
    **{f"read and first answer, {name}": (partial(first_answer, name), TOLERANCE) for name in NETWORKS},
    **{f"read, {name}": (partial(read, name), TOLERANCE) for name in NETWORKS},
    "RBF Gram matrix, 5,000 × 10": (partial(gram, 5000, 10), TOLERANCE),
    "RBF Gram matrix, 5,000 × 100": (partial(gram, 5000, 100), TOLERANCE),
    "SVC, 5,000 × 20": (partial(svc, 5000, 20), 1e-2),
    "SVC, 20,000 × 50": (partial(svc, 20_000, 50), 1e-2),
    "SVC, digits": (svc_digits, 1e-2),
    "SVC, grid": (svc_grid, 1e-2),
    "kernel PCA, 5,000": (partial(kernel_pca, 5000), 1e-4),
    "Nyström ridge, 100,000": (partial(nystrom, 100_000, 500), np.inf),
    "kernel ridge, 30 penalties, 2,000": (partial(ridge_path, 2000), 1e-4),
    **{
        f"RVR, {n} × {d}{'' if average else ', sparse alone'}": (
            partial(relevance, n, d, average=average, gamma=1 / 8 if d == 1 else 0.5 / d), np.inf
        )
        for average in (True, False) for n, d in ((100, 1), (300, 1), (1000, 1), (300, 5), (300, 12))
    },
    "GP evidence and gradient, 2,000": (partial(gp_evidence, 2000), TOLERANCE),
    "GP fit with 5 restarts, 500": (partial(gp_fit, 500), 1e-2),
    "Matérn-3/2 on 100,000 times": (partial(gp_line, 100_000), 1e-4),
    "GP classification, 1,000": (partial(gp_classifier, 1000), 1e-2),
    "graphical lasso with cross-validation, 200": (partial(graphical_lasso, 200), 1e-3),
    "tables of 1,000,000 rows, categories": (partial(tables, 1_000_000, kind="category"), TOLERANCE),
    "tables of 1,000,000 rows, strings": (partial(tables, 1_000_000, kind="str"), TOLERANCE),
    "EM, 10,000 rows with gaps": (partial(expectation_step, 10_000), TOLERANCE),
    "hill climbing, alarm, 100,000 rows": (partial(hill_climbing, 100_000), TOLERANCE),
    "HMM posteriors, 8 states": (partial(hmm, 8, "posteriors"), TOLERANCE),
    "HMM iteration, 8 states": (partial(hmm, 8, "iteration"), TOLERANCE),
    "HMM Viterbi, 8 states": (partial(hmm, 8, "viterbi"), TOLERANCE),
    "Kalman smoother, 4 states": (partial(kalman, 4, 50_000), TOLERANCE),
    "CRF fit": (crf, 1e-2),
    "kernel tree, 20 nodes, 1,000 rows": (partial(kernel_tree, 20, 1000), np.inf),
}  # fmt: skip


# --- the two versions ---------------------------------------------------------------------------------------------


class Version:
    """One version of the library; its modules are the imported ones inside `with`."""

    def __init__(self, source: Path) -> None:
        self.source = str(source)
        self.modules: dict[str, Any] = {}
        self.work: Work = lambda: None

    def __enter__(self) -> Version:
        for name in _imported():
            del sys.modules[name]
        sys.modules.update(self.modules)
        sys.path.insert(0, self.source)
        return self

    def __exit__(self, *_: object) -> None:
        self.modules = {name: sys.modules[name] for name in _imported()}
        sys.path.remove(self.source)

    def make(self, row: str) -> Any:
        """Make the work of a row and do it twice; its numbers."""
        with self:
            self.work = ROWS[row][0]()
            self.work()
            return np.ravel(np.asarray(self.work(), dtype=float))

    def turn(self, times: int) -> float:
        """CPU seconds of the work, done so often."""
        with self:
            if times > 1:
                self.work()  # what the other version has left in the processor's caches is not counted
            start = time.process_time()
            for _ in range(times):
                self.work()
            return (time.process_time() - start) / times


def _imported() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == "gramgraph"]


def compile_ahead(source: Path, rows: list[str]) -> None:
    """Do the rows once, so that what they compile is kept; in a process of its own, as each version has its own way."""
    command = [sys.executable, "-W", "ignore", __file__, str(source), "--ahead", "--rows", *rows]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(source)}, stdout=subprocess.DEVNULL)


def compare(row: str, before: Version, now: Version, seconds: float) -> dict[str, Any]:
    """Best CPU seconds of both, the median ratio of neighboring turns, and whether their numbers agree."""
    try:
        a, b = before.make(row), now.make(row)
    except Exception as error:
        return {"row": row, "error": f"{type(error).__name__}: {error}"[:300]}
    times = max(1, int(TURN / max(before.turn(1), 1e-7)))
    spent: dict[Version, list[float]] = {before: [], now: []}
    start = time.process_time()
    while len(spent[now]) < FEWEST or time.process_time() - start < seconds:
        order = (before, now) if len(spent[now]) % 2 == 0 else (now, before)
        for version in order:
            spent[version].append(version.turn(times))
    limit = ROWS[row][1]
    return {
        "row": row,
        "before": min(spent[before]),
        "now": min(spent[now]),
        "ratio": min(spent[now]) / min(spent[before]),
        "paired": statistics.median(y / x for x, y in zip(spent[before], spent[now], strict=True)),
        "turns": len(spent[now]),
        "agree": a.shape == b.shape and bool(np.isinf(limit) or np.allclose(a, b, rtol=limit, atol=limit)),
    }


def _shown(one: dict[str, Any]) -> str:
    text = f"{one['before']:.3e} → {one['now']:.3e}  {one['ratio']:.2f}, paired {one['paired']:.2f} of {one['turns']}"
    return text if one["agree"] else f"{text}  NUMBERS DIFFER"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_versions", description=__doc__)
    parser.add_argument("before", type=Path, help="folder that holds the package of the earlier version")
    parser.add_argument("--rows", nargs="+", default=list(ROWS), help="only these; a part of a name is enough")
    parser.add_argument("--seconds", type=float, default=3.0, help="CPU seconds of a row, of both versions together")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--ahead", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    rows = [row for row in ROWS if any(part in row for part in args.rows)]
    if args.ahead:
        for row in rows:
            with contextlib.suppress(Exception):  # the comparison tells
                Version(args.before).make(row)
        return 0
    sources = args.before.resolve(), Path(__file__).resolve().parent.parent / "src"
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
        os.environ.setdefault("GRAMGRAPH_TIER", "compiled")
        os.environ.setdefault("NUMBA_CACHE_DIR", folder)
        for source in sources:
            compile_ahead(source, rows)
        before, now = map(Version, sources)
        found = []
        for row in rows:
            one = compare(row, before, now, args.seconds)
            found.append(one)
            print(f"{row:50s} {one.get('error') or _shown(one)}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    return int(any("error" in one or not one["agree"] for one in found))


if __name__ == "__main__":
    sys.exit(main())
