"""What can be compiled ahead: one capability per line of `CAPABILITIES`, each a short journey that uses all of it.

Run as a program it is a worker of `_warmup.py`: names come in by lines, and it tells how many functions it has compiled
and when a journey is done. It begins further workers as copies of itself, so that what all need is imported once.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

import numpy as np

__all__ = ["AFTER", "CAPABILITIES"]


def discrete() -> None:
    """One question, a table of cases, best assignments, draws and a session, on a tree of cliques."""
    import pandas as pd

    from gramgraph import datasets

    net = datasets.asia()
    table = pd.DataFrame({"smoke": ["yes", "no"] * 10, "xray": ["yes", "yes", "no", "no"] * 5})
    tree: dict[str, Any] = {"engine": "junction_tree"}
    for given in ({"smoke": "yes"}, table):
        net.query(None, given)
        net.query(None, given, **tree)
        net.query([("lung", "bronc"), "asia"], given, virtual_evidence={"dysp": {"yes": 3, "no": 1}}, **tree)
        net.map_query(given)
    net.sample(10, {"smoke": "yes"}, random_state=0)
    session = net.session()
    for state in ("yes", "no"):
        session.observe(smoke=state)
        session.query("lung")


def approximate() -> None:
    """Engines for networks that no tree fits: propagation, variational ones, samplers, searches."""
    import gramgraph as gg
    from gramgraph import datasets

    net = datasets.asia()
    given = {"dysp": "yes"}
    for engine in ("bp", "mean_field", "structured_mean_field", "trw", "join_graph"):
        net.query("lung", given, engine=engine)
    for engine in ("gibbs", "block_gibbs", "colored_gibbs", "metropolis", "likelihood_weighting", "importance"):
        net.query("lung", given, engine=engine, budget=200, random_state=0)
    for engine in ("bp", "search", "icm"):
        net.map_query(given, engine=engine)
    side = 6
    links = {(f"x{i}_{j}", f"x{i}_{j + 1}"): [[2.0, 1.0], [1.0, 2.0]] for i in range(side) for j in range(side - 1)}
    links |= {(f"x{i}_{j}", f"x{i + 1}_{j}"): [[2.0, 1.0], [1.0, 2.0]] for i in range(side - 1) for j in range(side)}
    field = gg.MarkovNetwork(links)
    field.query("x0_0", engine="bp")
    field.map_query({"x0_0": "yes"}, engine="search")
    gg.denoise(np.arange(36).reshape(6, 6) % 2)


def learn() -> None:
    """Tables from complete rows and from rows with gaps, and structures by scores."""
    import gramgraph as gg
    from gramgraph import datasets

    net = datasets.asia()
    frame = net.sample(200, random_state=0)
    net.fit(frame)
    gg.learn_structure(frame)
    gg.learn_structure(frame, method="exact", score="bdeu")
    gg.learn_structure(frame, method="chow_liu")
    net.fit(frame.assign(smoke=frame["smoke"].mask(frame["xray"] == "yes")), prior="bdeu", max_iter=2)


def gaussian() -> None:
    """Linear-Gaussian and mixed networks, sparse precisions, the graphical lasso."""
    import gramgraph as gg

    rng = np.random.default_rng(0)
    net = gg.BayesianNetwork(
        "sex{f|m} -> height{real} -> weight{real}",
        cpds={
            "sex": [0.5, 0.5],
            "height": {"f": {"intercept": 165, "sd": 7}, "m": {"intercept": 178, "sd": 8}},
            "weight": {"intercept": -60, "coefficients": {"height": 0.75}, "sd": 8},
        },
    )
    net.query(["sex", "height"], {"weight": 80})
    net.fit(net.sample(50, random_state=0))
    chain = gg.MarkovNetwork.from_precision(np.diag([2.0] * 8) - np.eye(8, k=1) - np.eye(8, k=-1))
    for engine in ("dense", "sparse", "bp"):
        chain.query("x0", {"x5": 1.0}, engine=engine)
    gg.GraphicalLasso(0.1).fit(rng.normal(size=(60, 5)))


def hmm() -> None:
    """Hidden Markov models of numbers and of symbols: fit, states, scores, draws."""
    import gramgraph as gg

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + np.repeat([0.0, 3.0, 6.0], 20)[:, None]
    for covariance in ("diag", "full"):
        model = gg.GaussianHMM(3, covariance_type=covariance, max_iter=3, random_state=0).fit(X)
        model.predict(X)
        model.predict_proba(X)
        model.score(X)
    model.sample(10, random_state=0)
    symbols = rng.integers(0, 4, size=60)
    coded = gg.CategoricalHMM(2, max_iter=3, random_state=0).fit(symbols)
    coded.predict(symbols)
    coded.score(symbols)


def kalman() -> None:
    """Filters, smoothers and the fit of structural series; a forecast goes through the series once: interpreted."""
    import gramgraph as gg
    from gramgraph.sequences import Season, Trend

    y = np.cumsum(np.random.default_rng(0).normal(size=40))
    level = gg.KalmanFilter([[1.0]], [[1.0]], [[0.1]], [[1.0]], [0.0], [[1.0]])
    level.filter(y)
    level.smooth(y)
    (Trend() + Season(4)).fit(y)


def crf() -> None:
    """Linear-chain conditional random fields: fit and predict."""
    import gramgraph as gg

    X = [[{"word": w, "long": float(len(w) > 2)} for w in ("a", "cat", "sat")], [{"word": "on"}, {"word": "mat"}]] * 4
    y = [["D", "N", "V"], ["P", "N"]] * 4
    for algorithm in ("ap", "lbfgs"):
        model = gg.LinearChainCRF(algorithm, max_iterations=3).fit(X, y)
        model.predict(X)
        model.predict_single(X[0])
    model.predict_marginals(X)


def svm() -> None:
    """Support vector machines for two classes, several classes and numbers."""
    import gramgraph as gg

    X, y = _blobs()
    for target in (y > 0, y):
        gg.SVC().fit(X, target).predict(X)
    gg.SVC(kernel="linear").fit(X, y > 0).predict(X)
    marks = np.eye(40)[np.arange(len(y)) % 40]  # columns with many zeros
    gg.SVC(kernel="poly").fit(marks, y > 0)
    gg.SVR().fit(X, X[:, 0]).predict(X)


def gp() -> None:
    """Gaussian processes for numbers and classes."""
    import gramgraph as gg

    X, y = _blobs()
    gg.GaussianProcessRegressor().fit(X, X[:, 0]).predict(X, return_std=True)
    gg.GaussianProcessClassifier().fit(X, y > 0).predict(X)


def rvm() -> None:
    """Relevance vector machines."""
    import gramgraph as gg

    X, y = _blobs()
    gg.RVR().fit(X, X[:, 0]).predict(X)
    gg.RVC().fit(X, y > 0).predict(X)


def kernel() -> None:
    """Kernel PCA and ridge, tests of independence and of two samples, kernel trees."""
    import gramgraph as gg
    from gramgraph import kernels

    X, y = _blobs()
    gg.KernelPCA(2).fit_transform(X)
    gg.KernelRidge().fit(X, X[:, 0]).predict(X)
    for stationary in (kernels.RBF(), kernels.Matern(), kernels.Periodic()):
        stationary(X)
    gg.hsic_test(X[:, 0], X[:, 1], random_state=0)
    gg.mmd_test(X, X + 1.0, random_state=0)
    columns = {"a": X[:, 0], "b": X[:, 0] ** 2 + 0.1 * X[:, 1], "c": np.where(X[:, 1] > 0, "u", "v")}
    gg.learn_tree(columns).query("b", {"a": 0.0})


def topics() -> None:
    """Topic models by every method: fit, shares, held-out documents, a stream."""
    import gramgraph as gg

    texts = [[0, 1, 2, 1], [3, 4, 5], [1, 2], [4, 5, 5, 0]] * 3
    for method in ("gibbs", "collapsed", "variational", "online"):
        model = gg.LatentDirichletAllocation(3, method=method, max_iter=3, learn_priors=True, random_state=0).fit(texts)
        model.transform(texts)
        model.partial_fit(texts)
    model.perplexity(texts)


def mixtures() -> None:
    """Mixtures of Gaussians, of bits and of symbols."""
    import gramgraph as gg

    X, _ = _blobs()
    for covariance in ("full", "diag"):
        gg.GaussianMixture(2, covariance_type=covariance, random_state=0).fit(X[:, :3]).predict_proba(X[:, :3])
    gg.BernoulliMixture(2, random_state=0).fit(X > 0).predict(X > 0)


def boosting() -> None:
    """Boosted stumps and trees, for classes and numbers."""
    import gramgraph as gg

    X, y = _blobs()
    gg.AdaBoostClassifier(3).fit(X, y > 0).predict(X)
    gg.GradientBoostingClassifier(3).fit(X, y > 0).predict(X)
    gg.GradientBoostingRegressor(3).fit(X, X[:, 0]).predict(X)


def vision() -> None:
    """A cascade of boosted windows: training, and detection in an image."""
    from gramgraph import vision

    rng = np.random.default_rng(0)
    faces, scene = rng.integers(0, 99, (20, 12, 12), np.uint8), rng.integers(0, 255, (60, 60), np.uint8)
    faces[:, 4:8] += np.uint8(100)
    vision.Cascade(1, window=12, n_negatives=40, random_state=0).fit(faces, [scene]).detect(scene)


def _blobs() -> tuple[Any, Any]:
    """60 points of 20 columns (as many as are multiplied, not subtracted) in three classes."""
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 0, 1], 20)
    return rng.normal(size=(60, 20)) + y[:, None], y


#: Name → what compiles all that the capability uses.
CAPABILITIES: dict[str, Callable[[], None]] = {
    "discrete": discrete,
    "approximate": approximate,
    "learn": learn,
    "gaussian": gaussian,
    "hmm": hmm,
    "kalman": kalman,
    "crf": crf,
    "svm": svm,
    "gp": gp,
    "rvm": rvm,
    "kernel": kernel,
    "topics": topics,
    "mixtures": mixtures,
    "boosting": boosting,
    "vision": vision,
}
#: Those that share most of their code with another one go after it, so that nothing is compiled twice.
AFTER: dict[str, tuple[str, ...]] = {
    "approximate": ("discrete",),
    "learn": ("discrete", "approximate"),
    "gaussian": ("discrete", "learn"),
    "kalman": ("hmm",),
    "rvm": ("gp",),
    "kernel": ("gp", "svm"),
    "vision": ("boosting",),
}


def _work(others: Sequence[str]) -> None:
    """Run the journeys whose names come in by lines; a copy of this process does so for each of the other pairs of
    files ("in:out"), and says its number first."""
    gc.disable()  # the compiler keeps most of what it makes, and looking for the rest takes 4 % of the time
    copies: list[int] = []
    if others:
        _make_ready()
        copies = _copies_for(others)

    from numba.core import event

    out, last, count = sys.stdout, time.monotonic(), 0

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            nonlocal last, count
            count += 1
            if time.monotonic() - last > 0.2:
                last = time.monotonic()
                out.write(f"compiled {count}\n")
                out.flush()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())
    for line in sys.stdin:
        count = 0
        try:
            with redirect_stdout(sys.stderr):
                CAPABILITIES[line.strip()]()
            said = f"done {count}"
        except Exception as error:  # whatever it is, the others go on
            said = f"failed {count} {type(error).__name__}: {error}".replace("\n", " ")
        out.write(f"{said}\n")
        out.flush()
    for copy in copies:  # what they have used is counted as used by this process
        os.waitpid(copy, 0)


def _make_ready() -> None:
    """Import what most journeys need, and let Numba set up its tables."""
    from gramgraph._numerics.machine_code import dispatcher

    for name in ("pandas", "scipy.linalg", "sklearn.base"):
        import_module(name)

    dispatcher(lambda x: x.sum(), False, {})(np.zeros(1))


def _copies_for(others: Sequence[str]) -> list[int]:
    """A copy of this process for each pair of files, which are its standard input and output; their numbers."""
    pairs = [tuple(map(int, pair.split(":"))) for pair in others]
    copies: list[int] = []
    for pair in pairs:
        if (copy := os.fork()) == 0:
            copies = []
            for standard, number in enumerate(pair):
                os.dup2(number, standard)
            os.write(1, f"process {os.getpid()}\n".encode())
            break
        copies.append(copy)
    for number in (each for pair in pairs for each in pair):  # nobody is to hold the files of another one
        os.close(number)
    return copies


if __name__ == "__main__":
    _work(sys.argv[1:])
