"""Families chosen by left-out likelihood against pure families and other libraries, on tables of real data.

`python -m benchmarks families` (`--tasks iris "yacht 3"`: only these tables, yacht on another split into rows to learn
from and to judge by). Ten tables: scikit-learn's own and those below `kernel/uci` of the reference data, at most seven
columns; numbers only. A column that is recorded on a grid gets uniform noise of one step, for everybody. Half of the
rows (at most 500) are learned from; figures are nats a row on the others (at most 500). Our networks have one
structure, by BIC of linear Gaussians with two parents at most, and families of one kind or `conditional="auto"`;
conditional kernel densities of PyBNesian (which needs an OpenCL driver) have the same structure. Discretized networks
of pgmpy and pyAgrum look for their own (hill climbing, 4, 6 or 10 bins of equal counts, the best by the last third of
what is learned from); their density is the probability of a bin over its width.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Cell, Measurement, Runner, versions
from benchmarks.networks import data_folder
from benchmarks.tables import Result, failures, markdown

__all__ = ["report", "run_cell"]

TABLES = (
    "iris", "wine", "diabetes", "cancer", "airfoil", "autompg", "concrete", "energy", "housing", "yacht",
)  # fmt: skip
PURE = ("gramgraph linear_gaussian", "gramgraph gaussian_copula", "gramgraph kernel", "gramgraph predictor")
PEERS = ("pgmpy discretized", "pyagrum discretized", "pybnesian kde")
COLUMNS, ROWS, BINS = 7, 500, (4, 6, 10)


# ------------------------------------------------------------------------------------------ tables


def table(row: str) -> tuple[Any, Any]:
    """Rows to learn from and rows to judge by, as frames of numbers with unit deviations; "yacht 3" is split 3."""
    import pandas as pd

    name, _, split = row.partition(" ")
    X = _raw(name)[:, -COLUMNS:]
    rng = np.random.default_rng(int(split or 0))
    X = X[:, [np.unique(column).size > 2 for column in X.T]]
    X = np.column_stack([_off_the_grid(column, rng) for column in X.T])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = X[rng.permutation(len(X))]
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    n = min(len(X) // 2, ROWS)
    return frame[:n].reset_index(drop=True), frame[n : n + ROWS].reset_index(drop=True)


def _raw(name: str) -> Any:
    from sklearn import datasets

    own = {"iris": datasets.load_iris, "wine": datasets.load_wine, "diabetes": datasets.load_diabetes,
           "cancer": datasets.load_breast_cancer}  # fmt: skip
    if name in own:
        return np.asarray(own[name]().data, dtype=np.float64)
    folder = data_folder()
    path = None if folder is None else Path(folder) / "kernel" / "uci" / name / "data.csv.gz"
    if path is None or not path.exists():
        raise FileNotFoundError(f"kernel/uci/{name} is not there: set GRAMGRAPH_DATA")
    return np.genfromtxt(path, delimiter=",", dtype=np.float64)


def _off_the_grid(column: Any, rng: Any) -> Any:
    """Noise of one usual step where values repeat."""
    values = np.unique(column)
    if len(values) > 0.9 * len(column):
        return column
    return column + rng.uniform(-0.5, 0.5, len(column)) * np.median(np.diff(values))


# ------------------------------------------------------------------------------------------ contestants


def _structure(fit: Any) -> Any:
    import gramgraph as gg

    return gg.learn_structure(fit, method="hill_climb", score="bic", max_parents=2)


def _network(fit: Any) -> Any:
    import gramgraph as gg

    found = _structure(fit)
    states = dict.fromkeys(fit.columns, "real")
    return gg.BayesianNetwork({name: list(found.parents(name)) for name in fit.columns}, states=states)


def _ours(word: str, fit: Any, held: Any) -> float:
    import gramgraph as gg

    net = _network(fit)
    if word == "auto":
        made = net.fit(fit, conditional="auto", random_state=0)
    else:
        kinds = {"linear_gaussian": gg.LinearGaussian(), "gaussian_copula": gg.GaussianCopula(),
                 "kernel": gg.KernelConditional(), "predictor": gg.Predictor()}  # fmt: skip
        alone = gg.LinearGaussian() if word == "linear_gaussian" else gg.KernelConditional()
        made = net.fit(fit, conditional={n: kinds[word] if net.parents(n) else alone for n in fit.columns})
    return float(made.log_likelihood(held).mean())


def _kde(fit: Any, held: Any) -> float:
    import pybnesian

    net = _network(fit)
    arcs = [(parent, name) for name in fit.columns for parent in net.parents(name)]
    made = pybnesian.KDENetwork(list(fit.columns), arcs)
    made.fit(fit)
    return float(np.maximum(made.logl(held), -700.0).mean())


class _Bins:
    """Equal counts of what is learned from, the ends a tenth of the range farther out."""

    def __init__(self, fit: Any, bins: int) -> None:
        self.edges = {}
        for name in fit.columns:
            x = fit[name].to_numpy()
            inner = np.unique(np.quantile(x, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
            more = 0.1 * (x.max() - x.min())
            self.edges[name] = np.concatenate([[x.min() - more], inner, [x.max() + more]])

    def codes(self, frame: Any) -> dict[str, Any]:
        return {n: np.clip(np.searchsorted(e, frame[n]) - 1, 0, len(e) - 2) for n, e in self.edges.items()}

    def labelled(self, frame: Any) -> Any:
        import pandas as pd

        found = self.codes(frame)
        return pd.DataFrame(
            {n: pd.Categorical([f"b{k:02d}" for k in found[n]], categories=self.labels(n)) for n in found}
        )

    def labels(self, name: str) -> list[str]:
        return [f"b{k:02d}" for k in range(len(self.edges[name]) - 1)]

    def log_density(self, frame: Any, tables: dict[str, tuple[tuple[str, ...], Any]]) -> float:
        """Nats a row; tables have the parents' axes first. A row outside of all bins has a thousandth of a bin's."""
        codes, total = self.codes(frame), np.zeros(len(frame))
        for name, (parents, p) in tables.items():
            width = np.diff(self.edges[name])
            own = p[(*(codes[q] for q in parents), codes[name])] / width[codes[name]]
            x = frame[name].to_numpy()
            outside = (x < self.edges[name][0]) | (x > self.edges[name][-1])
            total += np.log(np.where(outside, 1e-3 * own, own))
        return float(total.mean())


def _pgmpy(bins: _Bins, fit: Any) -> dict[str, Any]:
    from pgmpy.estimators import HillClimbSearch
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.parameter_estimator import DiscreteBayesianEstimator

    data = bins.labelled(fit)
    found = HillClimbSearch(data).estimate(scoring_method="bic-d", max_indegree=2, show_progress=False)
    model = DiscreteBayesianNetwork(found.edges())
    model.add_nodes_from(data.columns)
    states = {name: bins.labels(name) for name in data.columns}
    model.fit(
        data, estimator=DiscreteBayesianEstimator(prior_type="BDeu", equivalent_sample_size=5, state_names=states)
    )
    out = {}
    for cpd in model.get_cpds():
        own, *parents = cpd.variables
        out[own] = (tuple(parents), np.moveaxis(np.asarray(cpd.values), 0, -1))
    return out


def _pyagrum(bins: _Bins, fit: Any) -> dict[str, Any]:
    import pyagrum as gum

    template = gum.BayesNet()
    for name in fit.columns:
        template.add(gum.LabelizedVariable(name, name, bins.labels(name)))
    learner = gum.BNLearner(bins.labelled(fit).astype(str), template)
    learner.useGreedyHillClimbing()
    learner.useScoreBIC()
    learner.setMaxIndegree(2)
    learner.useSmoothingPrior(0.2)
    found = learner.learnBN()
    out = {}
    for name in fit.columns:
        table = found.cpt(name)
        order = list(reversed(table.names))  # arrays have the axes of their names backwards
        out[name] = (tuple(v for v in order if v != name), np.moveaxis(table.toarray(), order.index(name), -1))
    return out


def _discretized(learn: Any, fit: Any, held: Any) -> float:
    cut = 2 * len(fit) // 3
    first, last = fit[:cut], fit[cut:]
    tried = {}
    for count in BINS:
        bins = _Bins(first, count)
        tried[count] = bins.log_density(last, learn(bins, first))
    bins = _Bins(fit, max(tried, key=lambda count: tried[count]))
    return bins.log_density(held, learn(bins, fit))


def run_cell(cell: Cell, context: dict[str, Any]) -> Measurement:
    """One contestant on one table."""
    if "table" not in context:
        context["table"] = table(cell.row)
    fit, held = context["table"]
    start = time.process_time()
    module, word = cell.contestant.split()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if module == "gramgraph":
            nats = _ours(word, fit, held)
        elif module == "pybnesian":
            nats = _kde(fit, held)
        else:
            nats = _discretized(_pgmpy if module == "pgmpy" else _pyagrum, fit, held)
    cpu = time.process_time() - start
    return Measurement(cpu, cpu, 1, 1, values={"nats": nats})


# ------------------------------------------------------------------------------------------ the report


def report(
    runner: Runner, *, quick: bool = False, limit: float | None = None, tasks: Any = None, **_: Any
) -> tuple[str, list[str]]:
    """Nats a row of every contestant, and tables on which "auto" falls behind a pure family or a peer."""
    results: dict[tuple[str, str, str], Result] = {}
    names = ("gramgraph auto", *PURE, *PEERS)
    lines, ahead, faults = [], 0, []
    rows = list(tasks) if tasks else list(TABLES[:1] if quick else TABLES)
    for row in rows:
        for name in names:
            results[row, "all", name] = runner.run(Cell("families", row, "all", name, 1.0, limit or 280.0))
        nats = {name: _nats(results[row, "all", name]) for name in names}
        own, pure = nats["gramgraph auto"], max(nats[name] for name in PURE)
        others = [nats[name] for name in ("gramgraph linear_gaussian", *PEERS) if np.isfinite(nats[name])]
        ahead += own > max(others, default=-np.inf)
        if own < pure - 0.02:
            faults.append(f"{row}: auto {own:.3f}, the best pure family {pure:.3f}")
        shown = [f"{nats[n]:.3f}" if np.isfinite(nats[n]) else _reason(results[row, "all", n]) for n in names]
        lines.append([row, *shown, f"{_seconds(results[row, 'all', 'gramgraph auto']):.0f}"])
    head = versions(("gramgraph", "pgmpy", "pyagrum", "pybnesian", "scikit-learn"))
    text = markdown(["held-out nats a row", *names, "seconds of auto"], lines)
    told = f"Ahead of the linear Gaussian and of the other libraries on {ahead} of {len(rows)} tables."
    return f"# Families by left-out likelihood\n\n{head}\n\n{text}\n\n{told}\n", faults + failures(results)


def _nats(result: Result) -> float:
    return result.values["nats"] if isinstance(result, Measurement) else -np.inf


def _seconds(result: Result) -> float:
    return result.cpu if isinstance(result, Measurement) else float("nan")


def _reason(result: Result) -> str:
    return "" if isinstance(result, Measurement) else result.reason
