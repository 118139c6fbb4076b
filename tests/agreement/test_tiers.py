"""Draws, fits and decisions are the same whether loops are interpreted or compiled, for every capability."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramgraph as gg
from gramgraph import datasets
from gramgraph._journeys import CAPABILITIES
from gramgraph._numerics import compiling

Found = dict[str, Any]


def blobs(n: int = 45, columns: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 0, 1], n // 3)
    return rng.normal(size=(n, columns)) + 1.5 * y[:, None], y


def discrete() -> Found:
    net = datasets.asia()
    rows = net.sample(40, random_state=3)
    asked = net.query(None, rows[["smoke", "xray"]], engine="junction_tree")
    given = {"dysp": "yes"}
    return {
        "rows": rows.to_numpy(),
        "given": net.sample(20, given, random_state=4).to_numpy(),
        "beliefs": asked["lung"].probabilities,
        "log evidence": asked.log_evidence,
        "best": sorted(net.map_query(given).assignment.items()),
    }


def approximate() -> Found:
    net, given = datasets.asia(), {"dysp": "yes"}
    found: Found = {}
    for engine in ("bp", "mean_field", "trw", "join_graph"):
        found[engine] = net.query("lung", given, engine=engine)["lung"].probabilities
    for engine in ("gibbs", "block_gibbs", "metropolis", "likelihood_weighting", "importance"):
        asked = net.query("lung", given, engine=engine, budget=100, random_state=0)
        found[engine] = asked["lung"].probabilities
    for engine in ("search", "icm"):
        found[f"best by {engine}"] = sorted(net.map_query(given, engine=engine).assignment.items())
    found["picture"] = gg.denoise(np.arange(36).reshape(6, 6) % 2).image
    colors, differ = ["red", "blue", "green"], 1 - np.eye(3)
    ring = dict.fromkeys((("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")), differ)
    puzzle = gg.MarkovNetwork(potentials=ring, states=dict.fromkeys("abcd", colors))
    found["counted"] = puzzle.query("c", {"a": "red"}, engine="counting")["c"].probabilities
    return found


def learn() -> Found:
    frame = datasets.asia().sample(300, random_state=0)
    gaps = frame.assign(smoke=frame["smoke"].mask(frame["xray"] == "yes"))
    fitted = datasets.asia().fit(gaps, prior="bdeu", max_iter=3)
    return {
        "climbed": sorted(gg.learn_structure(frame).edges),
        "best": sorted(gg.learn_structure(frame, method="exact", score="bdeu").edges),
        "tree": sorted(gg.learn_structure(frame, method="chow_liu").edges),
        "filled": fitted.query("lung", {"smoke": "yes"})["lung"].probabilities,
        "many": datasets.asia().sample(10_000, random_state=1).to_numpy(),
    }


def gaussian() -> Found:
    rng = np.random.default_rng(0)
    chain = gg.MarkovNetwork.from_precision(np.diag([2.0] * 8) - np.eye(8, k=1) - np.eye(8, k=-1))
    found: Found = {e: chain.query("x0", {"x5": 1.0}, engine=e)["x0"].mean() for e in ("dense", "sparse", "bp")}
    found["lasso"] = gg.GraphicalLasso(0.1).fit(rng.normal(size=(60, 5))).precision_
    return found


def hmm() -> Found:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + np.repeat([0.0, 3.0, 6.0], 20)[:, None]
    model = gg.GaussianHMM(3, max_iter=5, random_state=0).fit(X)
    symbols = rng.integers(0, 4, size=60)
    coded = gg.CategoricalHMM(2, max_iter=5, random_state=0).fit(symbols)
    return {
        "states": model.predict(X),
        "shares": model.predict_proba(X),
        "score": model.score(X),
        "draws": model.sample(10, random_state=0)[0],
        "symbols": coded.predict(symbols),
        "coded": coded.score(symbols),
    }


def kalman() -> Found:
    from gramgraph.sequences import Season, Trend

    y = np.cumsum(np.random.default_rng(0).normal(size=40))
    level = gg.KalmanFilter([[1.0]], [[1.0]], [[0.1]], [[1.0]], [0.0], [[1.0]])
    y[7] = np.nan
    series = (Trend() + Season(4)).fit(y)
    return {"smooth": level.smooth(y).means, "log": series.log_likelihood_, "ahead": series.forecast(4).means}


def crf() -> Found:
    X = [[{"word": w, "long": float(len(w) > 2)} for w in ("a", "cat", "sat")], [{"word": "on"}, {"word": "mat"}]] * 4
    y = [["D", "N", "V"], ["P", "N"]] * 4
    found: Found = {}
    for algorithm in ("ap", "lbfgs"):
        model = gg.LinearChainCRF(algorithm, max_iterations=4, random_state=0).fit(X, y)
        found[algorithm] = [tag for tags in model.predict(X) for tag in tags]
    found["marginals"] = [list(t.values()) for s in model.predict_marginals(X) for t in s]
    return found


def svm() -> Found:
    X, y = blobs()
    machine = gg.SVC().fit(X, y > 0)
    line = gg.SVR().fit(X, X[:, 0])
    return {
        "classes": machine.predict(X),
        "several": gg.SVC().fit(X, y).predict(X),
        "margins": ("close", machine.decision_function(X)),
        "numbers": ("close", line.predict(X)),
    }


def gp() -> Found:
    X, y = blobs()
    process = gg.GaussianProcessRegressor().fit(X, X[:, 0])
    line = gg.GaussianProcessRegressor(gg.kernels.Matern(), approx="state_space").fit(X[:, :1], y)
    return {
        "numbers": ("fitted", process.predict(X)),
        "on a line": ("fitted", line.predict(X[:, :1])),
        "classes": gg.GaussianProcessClassifier().fit(X, y > 0).predict(X),
    }


def rvm() -> Found:
    X, y = blobs()
    x = np.linspace(-10.0, 10.0, 80)[:, None]  # a smooth curve, whose columns are nearly equal
    wave = np.sinc(x[:, 0] / np.pi) + 0.1 * np.random.default_rng(7).normal(size=80)
    sparse, averaged = gg.RVR(average=False).fit(x, wave), gg.RVR().fit(x, wave)
    return {
        "numbers": gg.RVR().fit(X, X[:, 0]).predict(X),
        "classes": gg.RVC().fit(X, y > 0).predict(X),
        "columns": [*sparse.relevance_, *averaged.relevance_],
        "curves": [sparse.predict(x), averaged.predict(x)],
    }


def kernel() -> Found:
    X, _ = blobs()
    columns = {"a": X[:, 0], "b": X[:, 0] ** 2 + 0.1 * X[:, 1], "c": np.where(X[:, 1] > 0, "u", "v")}
    return {
        "components": np.abs(gg.KernelPCA(2).fit_transform(X)),
        "ridge": gg.KernelRidge().fit(X, X[:, 0]).predict(X),
        "dependent": gg.hsic_test(X[:, 0], X[:, 1], random_state=0).p_value,
        "different": gg.mmd_test(X, X + 1.0, random_state=0).p_value,
        "tree": gg.learn_tree(columns).query("b", {"a": 0.0})["b"].mean(),
    }


def topics() -> Found:
    texts = [[0, 1, 2, 1], [3, 4, 5], [1, 2], [4, 5, 5, 0]] * 5
    found: Found = {}
    for method in ("gibbs", "collapsed", "variational", "online"):
        model = gg.LatentDirichletAllocation(2, method=method, max_iter=4, random_state=0).fit(texts)
        found[method] = model.components_
        found[f"{method}: shares"] = model.transform(texts)
    return found


def undirected() -> Found:
    grid = gg.models.ising_grid(3, 3, coupling=0.4)
    frame = grid.sample(200, random_state=0)
    by = {method: grid.fit(frame, method=method) for method in ("pseudo_likelihood", "exact", "ipf")}
    found: Found = {name: fitted.query("x0_0", {"x1_1": "+1"})["x0_0"].probabilities for name, fitted in by.items()}
    return found | {"edges": sorted(map(sorted, gg.learn.learn_ising(frame).edges))}


def plates() -> Found:
    structure = """
        alpha* -> theta{simplex 2}; beta* -> phi{simplex 3}
        theta -> z[2] -> w[3] <- phi
        plate documents: theta, z, w
        plate words in documents: z, w
        plate topics: phi
    """
    cpds = {"theta": gg.Dirichlet("alpha"), "phi": gg.Dirichlet("beta"), "w": gg.Index("phi", by="z")}
    model, seen = gg.BayesianNetwork(structure, cpds=cpds, alpha=0.5, beta=0.5), {"w": [[0, 1, 1], [2, 0, 2]]}
    drawn = model.query(["theta"], seen, engine="collapsed_gibbs", random_state=0, budget=200)
    climbed = model.query(["theta"], seen, engine="mean_field", random_state=0)
    return {"drawn": drawn["theta"].mean(), "climbed": climbed["theta"].mean(), "bound": climbed.log_evidence}


def mixtures() -> Found:
    X, _ = blobs()
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    whole = gg.GaussianMixture(3, random_state=0).fit(X)
    return {
        "shares": whole.predict_proba(X),
        "with gaps": gg.GaussianMixture(2, random_state=0).fit(gaps).predict_proba(gaps),
        "draws": whole.sample(10)[0],
        "centers": gg.estimators.KMeans(3, random_state=0).fit(X).cluster_centers_,
    }


def boosting() -> Found:
    from gramgraph import estimators

    X, y = blobs(90)
    found: Found = {}
    for name in ("AdaBoostClassifier", "GentleBoostClassifier", "LogitBoostClassifier", "GradientBoostingClassifier"):
        found[name] = getattr(estimators, name)(n_estimators=8, random_state=0).fit(X, y > 0).predict_proba(X)
    line = estimators.GradientBoostingRegressor(n_estimators=8, random_state=0).fit(X, X[:, 0])
    return found | {"numbers": line.predict(X)}


def vision() -> Found:
    rng = np.random.default_rng(0)
    face = np.full((8, 8), 120.0)
    face[2:4, 1:7], face[5:7, 3:6] = 40, 220
    faces = np.clip(face + rng.normal(scale=20, size=(20, 8, 8)), 0, 255).astype(np.uint8)
    scenes = [np.kron(rng.integers(0, 255, (6, 8)), np.ones((4, 4))).astype(np.uint8) for _ in range(2)]
    cascade = gg.vision.Cascade(1, window=8, n_negatives=40, random_state=0).fit(faces, scenes)
    return {"windows": cascade.detect(scenes[0], min_neighbors=0)}


def arrows() -> Found:
    """A kernel on an arrow: fitted, asked for a density, drawn from."""
    rng = np.random.default_rng(0)
    a, b = gg.variables.real("a"), gg.variables.real("b")
    x = rng.normal(size=80)
    data = {"a": x, "b": np.sin(2.0 * x) + 0.1 * rng.normal(size=80)}
    arrow = gg.KernelConditional.fit(b, (a,), data)
    words = gg.kernels.Subsequence()(["kernel", "kern", "graph", "gram"])
    return {
        "density": arrow.log_density({a: x[:9], b: data["b"][:9]}),
        "draws": arrow.draw({a: x[:9]}, 9, np.random.default_rng(1)),
        "strings": words,
    }


def files() -> Found:
    """From file to file, and a model that was saved and read again."""
    net = datasets.asia()
    with tempfile.TemporaryDirectory() as folder:
        rows, answers, saved = (Path(folder, name) for name in ("rows.csv", "answers.csv", "net.bif"))
        frame = net.sample(300, random_state=0)
        frame.to_csv(rows, index=False)
        gg.write(net.fit(str(rows)), saved)
        frame[["smoke", "xray"]].to_csv(rows, index=False)
        gg.read(saved).query("lung", str(rows), out=str(answers))
        return {"answers": pd.read_csv(answers).to_numpy()}


ALL = (
    discrete, approximate, learn, gaussian, hmm, kalman, crf, svm, gp, rvm, kernel, topics,
    undirected, plates, mixtures, boosting, vision, arrows, files,
)  # fmt: skip
WORKS: dict[str, Callable[[], Found]] = {work.__name__: work for work in ALL}
#: What searches for a maximum, or for support vectors, may leave.
TOLERANCES = {"fitted": 1e-4, "close": 2e-2}
#: Those that `make test` can afford to compile.
QUICK = ("crf", "hmm")


def test_every_capability_is_here() -> None:
    assert set(CAPABILITIES) <= set(WORKS)


def agree(plain: Found, compiled: Found) -> None:
    assert plain.keys() == compiled.keys()
    for name, value in plain.items():
        other = compiled[name]
        if isinstance(value, tuple):  # solved to a tolerance
            np.testing.assert_allclose(value[1], other[1], rtol=0.0, atol=TOLERANCES[value[0]], err_msg=name)
        elif np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(value, other, rtol=1e-5, atol=1e-7, err_msg=name)
        else:
            np.testing.assert_array_equal(value, other, err_msg=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in WORKS])
def test_the_tiers_agree(name: str) -> None:
    if compiling.disabled():
        pytest.skip("nothing is compiled")
    with compiling.tier("plain"):
        plain = WORKS[name]()
    with compiling.tier("compiled"):
        agree(plain, WORKS[name]())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_room_of_loops_takes_part() -> None:
    """Interpreted calls are noted by module: a new folder of `_numerics` needs a work that uses it."""
    if compiling.disabled():
        pytest.skip("nothing is noted")
    compiling._STATE.spent.clear()
    with compiling.tier("plain"):
        for work in WORKS.values():
            work()
    loops = (path for path in Path(compiling.__file__).parent.glob("*/*.py") if "njit" in path.read_text("utf-8"))
    idle = {path.parent.name for path in loops} - {group.partition(".")[0] for group in compiling._STATE.spent}
    assert not idle, f"add a work that uses {idle}"
