"""Draws, fits and decisions are the same whether loops are interpreted or compiled, for every capability."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
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
    found["picture"] = gg.denoise(np.arange(36).reshape(6, 6) % 2)
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
    return {
        "numbers": process.predict(X),
        "classes": gg.GaussianProcessClassifier().fit(X, y > 0).predict(X),
    }


def rvm() -> Found:
    X, y = blobs()
    return {"numbers": gg.RVR().fit(X, X[:, 0]).predict(X), "classes": gg.RVC().fit(X, y > 0).predict(X)}


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


ALL = (discrete, approximate, learn, gaussian, hmm, kalman, crf, svm, gp, rvm, kernel, topics)
WORKS: dict[str, Callable[[], Found]] = {work.__name__: work for work in ALL}
#: Those that `make test` can afford to compile.
QUICK = ("crf", "hmm")


def test_every_capability_is_here() -> None:
    assert set(WORKS) == set(CAPABILITIES)


def agree(plain: Found, compiled: Found) -> None:
    assert plain.keys() == compiled.keys()
    for name, value in plain.items():
        other = compiled[name]
        if isinstance(value, tuple) and value[0] == "close":  # solved to a tolerance
            np.testing.assert_allclose(value[1], other[1], rtol=0.0, atol=2e-2, err_msg=name)
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
