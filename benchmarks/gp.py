"""Gaussian process regression against scikit-learn, GPyTorch, GPy, tinygp and celerite2.

`python -m benchmarks gp`. Tasks: `evidence` (log evidence and gradient, RBF with a length scale for each of 8 columns,
variance and noise, n = 2,000), `fit` (5 restarts, n = 1,000, 4 columns), `line` (evidence of a Matérn-3/2 process at
10,000 to 1,000,000 uneven times), `inducing` (50,000 points through 500 inducing points, beside an exact fit of 2,000
of them). All at the same parameters where none are learned; values must agree to 1e-6 relative (celerite2
approximates the kernel: 1e-3). JAX's compilation is not counted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, PeakMemory, Runner, measure, versions
from benchmarks.tables import Ratio, Result, failures, markdown, ratio_of, shown, size

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
#: Task → rows, peers with the ratio that is asked of us.
TASKS: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {
    "evidence": (("n=2000 d=8",), {"sklearn": 4.0, "gpytorch": 3.0, "gpytorch default": 0.0, "GPy": 2.0}),
    "fit": (("n=1000 d=4",), {"sklearn": 10.0}),
    "line": (("n=10000", "n=100000", "n=1000000"), {"tinygp": 2.0, "celerite2": 1.0}),
    "inducing": (("n=50000 m=500",), {}),
}
#: Peers that approximate: the kernel (celerite2), the determinant by random vectors (GPyTorch's default).
TOLERANCES = {"celerite2": 1e-3, "gpytorch default": 0.1}
QUICK = {"evidence": ("n=500 d=8",), "fit": ("n=300 d=4",), "line": ("n=10000",), "inducing": ("n=3000 m=50",)}
VARIANCE, NOISE = 1.5, 0.1


def numbers(row: str) -> dict[str, int]:
    return {part.split("=")[0]: int(part.split("=")[1]) for part in row.split()}


def scattered(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] ** 2 + np.sqrt(NOISE) * rng.normal(size=n)


def times(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, n / 50, n))
    return t, np.sin(t) + np.sqrt(NOISE) * rng.normal(size=n)


# --- one evidence with its gradient -------------------------------------------------------------------------------


def evidence_gramgraph(X: Any, y: Any, scale: Any) -> Callable[[], tuple[float, Any]]:
    from gramgraph.gp import exact_evidence
    from gramgraph.kernels import RBF, White

    kernel = VARIANCE * RBF(scale) + White(NOISE)

    def call() -> tuple[float, Any]:
        found = exact_evidence(kernel, X, y, gradient=True)
        assert found.theta is not None
        return found.value, found.theta

    return call


def evidence_sklearn(X: Any, y: Any, scale: Any) -> Callable[[], tuple[float, Any]]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(VARIANCE) * RBF(scale) + WhiteKernel(NOISE)
    model = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X[:10], y[:10])
    model.X_train_, model.y_train_ = X, y
    theta = model.kernel_.theta
    return lambda: model.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)


def evidence_gpytorch_default(X: Any, y: Any, scale: Any) -> Callable[[], tuple[float, Any]]:
    return evidence_gpytorch(X, y, scale, cholesky=False)


def evidence_gpytorch(X: Any, y: Any, scale: Any, cholesky: bool = True) -> Callable[[], tuple[float, Any]]:
    import gpytorch  # type: ignore[import-not-found]
    import torch  # type: ignore[import-not-found]

    torch.set_num_threads(1)
    points, targets = torch.tensor(X), torch.tensor(y)

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc]
        def __init__(self, likelihood: Any) -> None:
            super().__init__(points, targets, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1]))

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(likelihood).double()
    model.covar_module.outputscale = VARIANCE
    model.covar_module.base_kernel.lengthscale = torch.tensor(scale)
    likelihood.double().noise = NOISE
    model.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def call() -> tuple[float, Any]:
        model.zero_grad()
        with ExitStack() as stack:
            if cholesky:
                stack.enter_context(gpytorch.settings.max_cholesky_size(10**6))
                stack.enter_context(gpytorch.settings.fast_computations(False, False, False))
            value = mll(model(points), targets) * len(y)
            value.backward()
        return float(value), None

    return call


def evidence_gpy(X: Any, y: Any, scale: Any) -> Callable[[], tuple[float, Any]]:
    import GPy  # type: ignore[import-not-found]

    kernel = GPy.kern.RBF(X.shape[1], variance=VARIANCE, lengthscale=scale, ARD=True)
    model = GPy.models.GPRegression(X, y[:, None], kernel, noise_var=NOISE)

    def call() -> tuple[float, Any]:
        model.parameters_changed()
        return float(model.log_likelihood()), None

    return call


EVIDENCE: dict[str, Callable[..., Callable[[], tuple[float, Any]]]] = {
    OURS: evidence_gramgraph,
    "sklearn": evidence_sklearn,
    "gpytorch": evidence_gpytorch,
    "gpytorch default": evidence_gpytorch_default,
    "GPy": evidence_gpy,
}


# --- whole fits ---------------------------------------------------------------------------------------------------


def fit_gramgraph(X: Any, y: Any) -> Callable[[], tuple[float, Any]]:
    from gramgraph import GaussianProcessRegressor
    from gramgraph.kernels import RBF, White

    kernel = 1.0 * RBF(np.ones(X.shape[1])) + White(1.0)
    model = GaussianProcessRegressor(kernel, n_restarts_optimizer=5, random_state=0)
    return lambda: (float(model.fit(X, y).log_marginal_likelihood_value_), None)


def fit_sklearn(X: Any, y: Any) -> Callable[[], tuple[float, Any]]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0) * RBF(np.ones(X.shape[1])) + WhiteKernel(1.0)
    model = GaussianProcessRegressor(kernel, n_restarts_optimizer=5, random_state=0)
    return lambda: (float(model.fit(X, y).log_marginal_likelihood_value_), None)


# --- the line -----------------------------------------------------------------------------------------------------


def line_gramgraph(t: Any, y: Any) -> Callable[[], tuple[float, Any]]:
    from gramgraph.gp.means import Mean
    from gramgraph.gp.methods import Data
    from gramgraph.gp.state_space import StateSpaceMethod
    from gramgraph.kernels import Matern, White

    kernel = VARIANCE * Matern(1.3, nu=1.5) + White(NOISE)
    method = StateSpaceMethod(Data(t[:, None], y[:, None], np.zeros(len(t)), Mean()))
    return lambda: (method.evidence(kernel, False)[0], None)


def line_tinygp(t: Any, y: Any) -> Callable[[], tuple[float, Any]]:
    import jax  # type: ignore[import-not-found]
    import tinygp  # type: ignore[import-not-found]

    jax.config.update("jax_enable_x64", True)
    values, targets = jax.numpy.array([VARIANCE, 1.3, NOISE]), jax.numpy.asarray(y)

    @jax.jit
    def run(p: Any, targets: Any) -> Any:
        kernel = p[0] * tinygp.kernels.quasisep.Matern32(scale=p[1])
        return tinygp.GaussianProcess(kernel, t, diag=p[2]).log_probability(targets)

    return lambda: (float(run(values, targets)), None)


def line_celerite2(t: Any, y: Any) -> Callable[[], tuple[float, Any]]:
    import celerite2  # type: ignore[import-not-found]

    kernel = celerite2.terms.Matern32Term(sigma=np.sqrt(VARIANCE), rho=1.3)
    diagonal = np.full(len(t), NOISE)

    def call() -> tuple[float, Any]:
        return float(celerite2.GaussianProcess(kernel, t=t, diag=diagonal).log_likelihood(y)), None

    return call


LINE = {OURS: line_gramgraph, "tinygp": line_tinygp, "celerite2": line_celerite2}


# --- inducing points ----------------------------------------------------------------------------------------------


def inducing(n: int, m: int) -> tuple[Callable[[], tuple[float, Any]], Callable[[], dict[str, float]]]:
    """The fit, and afterwards its scores and those of an exact fit to some of the points."""
    from gramgraph import GaussianProcessRegressor
    from gramgraph.kernels import RBF, White

    X, y = scattered(n + 5000, 4)
    train, test = slice(0, n), slice(n, None)
    kernel = 1.0 * RBF(np.ones(4)) + White(0.1)
    options: dict[str, Any] = {"normalize_y": True, "random_state": 0}
    model = GaussianProcessRegressor(kernel, approx="titsias", n_inducing=m, **options)
    small = GaussianProcessRegressor(kernel, approx="exact", **options)

    def scores(which: Any) -> tuple[float, float]:
        mean, std = which.predict(X[test], return_std=True)
        gap = (y[test] - mean) / std
        return float(np.sqrt(np.mean((y[test] - mean) ** 2))), float(np.mean(-0.5 * gap**2 - np.log(std) - 0.9189385))

    def after() -> dict[str, float]:
        few = min(2000, n)
        a, b = scores(model), scores(small.fit(X[:few], y[:few]))
        return {"RMSE": a[0], "log score": a[1], "RMSE exact subset": b[0], "log score exact subset": b[1]}

    return lambda: (float(model.fit(X[train], y[train]).log_marginal_likelihood_value_), None), after


# --- the harness --------------------------------------------------------------------------------------------------


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    warnings.simplefilter("ignore")
    sizes = numbers(cell.row)
    n = sizes["n"]
    after: Callable[[], dict[str, float]] = dict
    if cell.task == "evidence":
        X, y = scattered(n, sizes["d"])
        call = EVIDENCE[cell.contestant](X, y, np.linspace(1.5, 3.0, sizes["d"]))
    elif cell.task == "fit":
        X, y = scattered(n, sizes["d"])
        call = (fit_gramgraph if cell.contestant == OURS else fit_sklearn)(X, y)
    elif cell.task == "line":
        call = LINE[cell.contestant](*times(n))
    else:
        call, after = inducing(n, sizes["m"])
    if cell.options.get("memory"):
        call()
        with PeakMemory() as memory:
            value, _ = call()
        return Measurement(0.0, 0.0, 1, 1, peak=memory.peak, values={"value": value, **after()})
    values: list[float] = []

    def counted() -> None:
        values.append(call()[0])

    long = cell.task in ("fit", "inducing")
    if long and cell.contestant == OURS:
        _warm(cell.task)
    cpu, wall, repeats = measure(counted, budget=cell.budget, warm=not long, most=1 if long else 1000)
    return Measurement(cpu, wall, repeats, 1, values={"value": values[-1]})


def _warm(task: str) -> None:
    """Load what is compiled, on a few points."""
    if task == "fit":
        fit_gramgraph(*scattered(50, 4))()
    else:
        inducing(600, 20)[0]()


def report(
    runner: Runner,
    *,
    tasks: list[str] | None = None,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    with_peers: list[str] | None = None,
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines, faults = [], []
    for task, (all_rows, asked) in TASKS.items():
        if tasks and task not in tasks:
            continue
        peers = [p for p in asked if with_peers is None or p in with_peers]
        for row in QUICK[task] if quick else all_rows:
            for name in (OURS, *peers):
                cell = Cell("gp", row, task, name, budget or 2.0, limit or (120.0 if quick else 1800.0))
                results[row, task, name] = runner.run(cell)
            memory = None
            if task in ("evidence", "inducing"):
                options = {"memory": True}
                memory = runner.run(Cell("gp", row, task, OURS, 1.0, limit or 1800.0, fresh=True, options=options))
            lines += _lines(task, row, results, peers, asked, memory, faults)
    table = markdown(["task", "row", "who", "time", "ratio", "asked", "log evidence", "memory", "more"], lines)
    head = versions(["gramgraph", "scikit-learn", "gpytorch", "GPy", "tinygp", "celerite2", "jax", "torch", "numpy"])
    return f"# Gaussian process regression\n\n{head}\n\n{table}\n", failures(results) + faults


def _lines(
    task: str, row: str, results: Any, peers: list[str], asked: dict[str, float], memory: Any, faults: list[str]
) -> list[list[Any]]:
    mine = results[row, task, OURS]
    lines = []
    for name in (OURS, *peers):
        found = results[row, task, name]
        ratio: Ratio | None = None if name == OURS else ratio_of(mine, found)
        value = float("nan") if isinstance(found, Failure) else found.values["value"]
        peak = more = ""
        if name == OURS and isinstance(memory, Measurement) and memory.peak is not None:
            n = numbers(row)["n"]
            peak = f"{memory.peak / 8 / n**2:.2g} n² doubles" if task == "evidence" else size(memory.peak)
            more = ", ".join(f"{k} {v:.4g}" for k, v in memory.values.items() if k != "value")
        if name != OURS and task != "fit" and not isinstance(found, Failure) and not isinstance(mine, Failure):
            gap = abs(value - mine.values["value"]) / abs(value)
            if gap > TOLERANCES.get(name, 1e-6):
                faults.append(f"{task} {row}: {name} gives {value}, we {mine.values['value']}")
        wanted = f"{asked[name]:g}×" if ratio and asked[name] else ""
        lines.append([task, row, name, shown(found), ratio or "", wanted, f"{value:.6g}", peak, more])
    return lines
