"""Hidden Markov models and Kalman filters against hmmlearn, dynamax, pomegranate, statsmodels and filterpy; one thread.

`python -m benchmarks hmm`. Rows: Gaussian emissions (`gauss K`, two columns, diagonal) and symbols (`symbols K`) in one
sequence of 100,000 rows, and `short K`: 10,000 sequences of 10 rows. Tasks: `posteriors` (state probabilities of all
rows), `iteration` (one step of Baum–Welch, expectations and update) and `viterbi`. hmmlearn runs in both of its
implementations, with logarithms (its default) and scaled; dynamax in float64 after its compilation, likelihoods of the
rows included; pomegranate in float64. `full K`, `tied K`: 50,000 rows of ten columns with such covariances. `kalman s`:
s states, two observed numbers, 100,000 steps, filter, smoother and likelihood (20,000 steps for 32 states: the
covariances of all steps are kept); filterpy runs 2,000 steps, and its time is multiplied. All contestants get the same
parameters, and their answers must agree to 1e-8; the transitions after an iteration of pomegranate differ from those of
all others by a few 1e-5, and are not compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Cell, Failure, Measurement, Runner, measure, versions
from benchmarks.tables import Ratio, Result, Target, difference, failures, markdown, ratio_of, shown, summary

__all__ = ["report", "run_cell"]

OURS = "gramgraph"
ROWS = (
    "gauss 8", "gauss 32", "gauss 128", "full 8", "full 32", "tied 8", "tied 32", "symbols 8", "symbols 32", "short 8",
    "kalman 4", "kalman 32",
)  # fmt: skip
TASKS = ("posteriors", "iteration", "viterbi")
WANTED = {"posteriors": 10.0, "iteration": 10.0, "viterbi": 3.0, "smooth": 2.0}
TARGETS = {task: Target(each=least) for task, least in WANTED.items()} | {"dynamax": Target(each=1.0, median=2.0)}
_FEW = 2_000  # steps that filterpy takes


def peers_of(row: str) -> tuple[str, ...]:
    if row.startswith("kalman"):
        return ("statsmodels", "filterpy", "dynamax")
    if row.startswith(("short", "full", "tied")):
        return ("hmmlearn", "hmmlearn scaling")
    return ("hmmlearn", "hmmlearn scaling", "dynamax", "pomegranate")


def numbers(row: str) -> dict[str, Any]:
    """Parameters and a sample of them."""
    kind, size = row.split()
    K = int(size)
    rng = np.random.default_rng(K)
    start, A = np.full(K, 1 / K), 0.5 * np.eye(K) + 0.5 * rng.dirichlet(np.ones(K), K)
    lengths = [10] * 10_000 if kind == "short" else [100_000]
    from gramgraph.sequences import CategoricalHMM, GaussianHMM

    if kind == "symbols":
        B = rng.dirichlet(np.ones(20), K)
        model: Any = CategoricalHMM.from_parameters(start, A, B)
        X = model.sample(100_000, random_state=1)[0]
        return {"start": start, "A": A, "B": B, "X": X, "lengths": lengths, "model": model}
    shape, d = (kind, 10) if kind in ("full", "tied") else ("diag", 2)
    means, variances = rng.normal(size=(K, d)) * 3, rng.uniform(0.5, 2.0, (K, d))
    if shape != "diag":
        roots = rng.normal(size=(K, d, d)) / np.sqrt(d)
        variances = roots @ roots.transpose(0, 2, 1) + 0.5 * np.eye(d)
        variances = variances if shape == "full" else variances[0]
        lengths = [50_000]
    model = GaussianHMM.from_parameters(
        start, A, means, variances, covariance_type=shape, covariance_prior=0.0, max_iter=1
    )
    X = model.sample(lengths[0], n_sequences=len(lengths), random_state=1)[0]
    return {"start": start, "A": A, "means": means, "vars": variances, "X": X, "lengths": lengths, "model": model}


def ours(given: dict[str, Any], task: str) -> Any:
    from sklearn.base import clone

    model, X, lengths = given["model"], given["X"], given["lengths"]
    if task == "posteriors":
        return lambda: model.predict_proba(X, lengths)
    if task == "viterbi":
        return lambda: np.array([model.decode(X, lengths)[0]])
    step = clone(model).set_params(init=model, max_iter=1)
    return lambda: step.fit(X, lengths).transmat_


def hmmlearn(given: dict[str, Any], task: str, implementation: str) -> Any:
    from hmmlearn import hmm

    X, lengths, K = given["X"], given["lengths"], len(given["start"])
    options = {"n_iter": 1, "tol": 0.0, "init_params": "", "implementation": implementation}
    if "B" in given:
        model = hmm.CategoricalHMM(K, **options)
    else:
        model = hmm.GaussianHMM(K, covariance_type=given["model"].covariance_type, covars_prior=0.0, **options)

    def reset() -> Any:
        model.startprob_, model.transmat_ = given["start"], given["A"]
        if "B" in given:
            model.emissionprob_, model.n_features = given["B"], given["B"].shape[1]
        else:
            model.means_, model.covars_ = given["means"], given["vars"]
        return model

    if task == "posteriors":
        return lambda: reset().predict_proba(X, lengths)
    if task == "viterbi":
        return lambda: np.array([reset().decode(X, lengths)[0]])
    return lambda: reset().fit(X, lengths).transmat_


def dynamax(given: dict[str, Any], task: str) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    from dynamax.hidden_markov_model import inference

    start, A, X = jnp.asarray(given["start"]), jnp.asarray(given["A"]), jnp.asarray(given["X"])
    if "B" in given:
        columns = jnp.log(jnp.asarray(given["B"]).T)
        logs_of: Any = lambda X: columns[X[:, 0]]  # noqa: E731
    else:
        means, var = jnp.asarray(given["means"]), jnp.asarray(given["vars"])
        constant = -0.5 * jnp.log(2 * jnp.pi * var).sum(1)
        logs_of = lambda X: constant - 0.5 * ((X[:, None] - means) ** 2 / var).sum(2)  # noqa: E731

    @jax.jit
    def run(X: Any) -> Any:
        logs = logs_of(X)
        if task == "viterbi":
            path = inference.hmm_posterior_mode(start, A, logs)
            steps = jnp.log(A)[path[:-1], path[1:]].sum() + jnp.log(start)[path[0]]
            return jnp.array([steps + logs[jnp.arange(len(path)), path].sum()])
        if task == "posteriors":
            return inference.hmm_two_filter_smoother(start, A, logs).smoothed_probs
        found = inference.hmm_two_filter_smoother(start, A, logs)
        gamma = found.smoothed_probs
        if "B" in given:
            moments = jnp.zeros((len(columns), len(A))).at[X[:, 0]].add(gamma)
        else:
            moments = jnp.concatenate([gamma.T @ X, gamma.T @ X**2])
        new = found.trans_probs / found.trans_probs.sum(1, keepdims=True)
        return jnp.where(jnp.isfinite(moments.sum()), new, jnp.nan)  # the update of the emissions is not left out

    return lambda: np.asarray(run(X))


def pomegranate(given: dict[str, Any], task: str) -> Any:
    import torch
    from pomegranate.distributions import Categorical, Normal
    from pomegranate.hmm import DenseHMM

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    X = torch.tensor(given["X"])[None]

    def make() -> Any:
        if "B" in given:
            emissions = [Categorical(torch.tensor(row)[None]) for row in given["B"]]
        else:
            pairs = zip(given["means"], given["vars"], strict=True)
            emissions = [Normal(torch.tensor(m), torch.tensor(v), covariance_type="diag") for m, v in pairs]
        return DenseHMM(emissions, edges=torch.tensor(given["A"]), starts=torch.tensor(given["start"]))

    def step() -> Any:
        model = make()
        model.summarize(X)
        model.from_summaries()
        return np.exp(model.edges.numpy())

    def best() -> Any:
        path = make().viterbi(X)[0].numpy()
        return np.array([path_log(given, path)])

    return {"posteriors": lambda: make().predict_proba(X)[0].numpy(), "iteration": step, "viterbi": best}[task]


def path_log(given: dict[str, Any], path: Any) -> float:
    """log p(path, x)."""
    if "B" in given:
        seen = np.log(given["B"])[path, given["X"][:, 0]].sum()
    else:
        var = given["vars"][path]
        seen = -0.5 * (np.log(2 * np.pi * var) + (given["X"] - given["means"][path]) ** 2 / var).sum()
    return float(seen + np.log(given["A"])[path[:-1], path[1:]].sum() + np.log(given["start"][path[0]]))


def kalman(row: str, who: str) -> Any:
    from gramgraph.sequences import KalmanFilter

    s = int(row.split()[1])
    rng = np.random.default_rng(s)
    A = rng.normal(size=(s, s))
    A *= 0.95 / np.abs(np.linalg.eigvals(A)).max()
    B = rng.normal(size=(s, s)) / np.sqrt(s)
    model = KalmanFilter(A, B @ B.T + 0.1 * np.eye(s), rng.normal(size=(2, s)), np.eye(2), np.zeros(s), np.eye(s))
    y = model.sample(100_000 if s < 16 else 20_000, random_state=0)[0]
    if who == OURS:
        return lambda: model.smooth(y).means
    if who == "filterpy":
        return filterpy(model, y[:_FEW])
    if who == "dynamax":
        return dynamax_kalman(model, y)
    from statsmodels.tsa.statespace.mlemodel import MLEModel

    peer = MLEModel(y, k_states=s)
    peer["design"], peer["transition"], peer["selection"] = model.H, model.A, np.eye(s)
    peer["state_cov"], peer["obs_cov"] = model.Q, model.R
    peer.ssm.initialize_known(model.m0, model.P0)
    return lambda: peer.ssm.smooth().smoothed_state.T


def filterpy(model: Any, y: Any) -> Any:
    from filterpy.kalman import KalmanFilter

    def run() -> Any:
        peer = KalmanFilter(dim_x=len(model.A), dim_z=y.shape[1])
        peer.F, peer.Q, peer.H, peer.R = model.A, model.Q, model.H, model.R
        peer.x, peer.P = model.m0.copy(), model.P0.copy()
        means, covs, ahead = [], [], []
        for row in y:
            peer.update(row)
            means.append(peer.x)
            covs.append(peer.P)
            peer.predict()
            ahead.append(peer.P)
        return peer.rts_smoother(np.array(means), np.array(covs))[0]

    return run


def dynamax_kalman(model: Any, y: Any) -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    from dynamax.linear_gaussian_ssm.inference import lgssm_smoother, make_lgssm_params

    params = make_lgssm_params(model.m0, model.P0, model.A, model.Q, model.H, model.R)
    run = jax.jit(lambda y: lgssm_smoother(params, y).smoothed_means)
    rows = jax.numpy.asarray(y)
    return lambda: np.asarray(run(rows))


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """Every contestant runs once before, for the answer and to load what is compiled."""
    if cell.row.startswith("kalman"):
        call = kalman(cell.row, cell.contestant)
    else:
        if cell.row not in context:
            context.clear()
            context[cell.row] = numbers(cell.row)
        given = context[cell.row]
        if cell.contestant == OURS:
            call = ours(given, cell.task)
        elif cell.contestant == "dynamax":
            call = dynamax(given, cell.task)
        elif cell.contestant == "pomegranate":
            call = pomegranate(given, cell.task)
        else:
            call = hmmlearn(given, cell.task, "scaling" if cell.contestant.endswith("scaling") else "log")
    answer = np.asarray(call(), dtype=np.float64)
    if cell.task == "viterbi":
        answer = answer / 100_000  # a log probability a row
    cpu, wall, repeats = measure(call, budget=cell.budget, warm=False)
    if cell.contestant == "filterpy":
        times = (100_000 if cell.row.endswith(" 4") else 20_000) / _FEW
        cpu, wall = cpu * times, wall * times
    return Measurement(cpu, wall, repeats, 1, answers=(answer[:1000],))


def report(
    runner: Runner,
    *,
    tasks: list[str] | None = None,
    quick: bool = False,
    budget: float | None = None,
    limit: float | None = None,
    **_: Any,
) -> tuple[str, list[str]]:
    """The table, and what went wrong on our side."""
    results: dict[tuple[str, str, str], Result] = {}
    lines: list[list[object]] = []
    faults: list[str] = []
    ratios: dict[str, list[Ratio]] = {task: [] for task in (*WANTED, "dynamax")}
    rows = [row for row in ROWS if not quick or row in ("gauss 8", "kalman 4")]
    for row in rows:
        for task in ("smooth",) if row.startswith("kalman") else TASKS:
            if tasks and task not in tasks:
                continue
            for who in (OURS, *peers_of(row)):
                cell = Cell("hmm", row, task, who, budget or 1.0, limit or (60.0 if quick else 300.0))
                results[row, task, who] = runner.run(cell)
            mine = results[row, task, OURS]
            line: list[object] = [row, task, shown(mine)]
            for who in peers_of(row):
                found = results[row, task, who]
                ratio = ratio_of(mine, found)
                gap = ""
                if isinstance(mine, Measurement) and isinstance(found, Measurement):
                    off = difference(mine, found)
                    gap = f"{off:.1g}"
                    if not off < 1e-8 and (who, task) != ("pomegranate", "iteration"):
                        faults.append(f"{row}, {task}: answers differ from {who}'s by {gap}")
                if ratio is not None and who in ("hmmlearn", "statsmodels"):
                    ratios[task].append(ratio)
                elif ratio is not None and who == "dynamax":
                    ratios["dynamax"].append(ratio)
                name = "" if isinstance(found, Failure) and ratio is None else (ratio or "")
                line += [f"{who}: {shown(found)}", name, gap]
            lines.append(line + [""] * (15 - len(line)))
    header = ["data", "task", "gramgraph", *("peer", "ratio", "difference") * 4]
    names = [
        "gramgraph",
        "hmmlearn",
        "dynamax",
        "jax",
        "pomegranate",
        "torch",
        "statsmodels",
        "filterpy",
        "numba",
        "numpy",
    ]
    head = versions(names)
    tail = "\n".join(f"- {task}: {summary(found, TARGETS[task])}" for task, found in ratios.items() if found)
    text = f"# Hidden Markov models and Kalman filters\n\n{head}\n\n{markdown(header, lines)}\n\n{tail}\n"
    return text, faults + failures(results)
