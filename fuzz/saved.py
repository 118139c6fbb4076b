"""One small model of every kind that can be saved: what the fuzzer breaks and what the tests of files go through.

`EXAMPLES` maps a name to a function that makes the model; `probe` asks a model a few questions, as plain numbers, so
that two models can be compared whatever their class.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import gramgraph as gg

__all__ = ["EXAMPLES", "QUICK", "example", "probe"]

_RNG = np.random.default_rng(0)
_ROWS = np.repeat([0.1, 4.2, 0.3], 8)[:, None] + _RNG.normal(size=(24, 1))
_COUNTS = np.round(np.abs(_ROWS))
_LABELS = np.where(_ROWS[:, 0] > 2, "high", "low")
_SENTENCES = [[["the"], ["cat", "short"], ["sat"]], [["a"], ["dog", "short"], ["ran"], ["home"]]]
_TAGS = [["D", "N", "V"], ["D", "N", "V", "R"]]
_WORDS = [["river", "water", "fish"], ["bank", "money"], ["water", "bank"]]
_FIT = {"random_state": 0, "max_iter": 5}


_X = np.random.default_rng(2).normal(size=(24, 2))
_Y = _X[:, 0] + 0.1 * np.random.default_rng(3).normal(size=24)
_C = np.where(_X[:, 1] > 0, "u", "v")


def _noisy() -> Any:
    return gg.kernels.RBF() + gg.kernels.White(0.1)


def _graphs() -> tuple[list[Any], list[Any]]:
    chain = [(i, i + 1) for i in range(5)]
    y = [np.repeat([0, 1], 3), np.repeat([1, 0], 3)]
    return [(np.c_[labels + 0.1, np.ones(6)], chain) for labels in y], y


def _pictures() -> tuple[list[Any], list[Any]]:
    y = [np.repeat([[0, 1]], 4, axis=0), np.repeat([[1, 0]], 4, axis=0)]
    return [np.dstack([labels + 0.1, np.ones(labels.shape)]) for labels in y], y


def _frame() -> Any:
    import pandas as pd

    rng = np.random.default_rng(1)
    a = rng.normal(size=60)
    return pd.DataFrame({"a": a, "b": a + 0.3 * rng.normal(size=60), "c": np.where(a > 0, "u", "v")})


def structured() -> gg.BayesianNetwork:
    """A network with every kind of conditional that files hold."""
    from gramgraph.variables import discrete

    a, b, c, n, d, g, t, s = (discrete(name, ("no", "yes")) for name in "abcndgts")
    m = discrete("m", ("none", "mild", "strong"))
    x, z, w, v = gg.real("x"), gg.real("z", 2), gg.real("w"), gg.real("v")
    margins = {"x": gg.conditionals.Margin("norm"), "v": gg.conditionals.Margin("expon")}
    parts = [
        gg.Table(a, (), [0.4, 0.6]),
        gg.Table(b, (a,), [[0.25, 0.75], [0.5, 0.5]]),
        gg.Table(c, (), [0.1, 0.9]),
        gg.NoisyOr(n, (a, b), [0.5, 0.25], leak=0.125),
        gg.NoisyMax(m, (a, b), [[[1, 0, 0], [0.2, 0.5, 0.3]], [[1, 0, 0], [0.1, 0.3, 0.6]]]),
        gg.Deterministic(d, (a, b), lambda p, q: "yes" if p == q else "no"),
        gg.conditionals.Gate(g, (a, b, c), "xor"),
        gg.conditionals.TreeTable(t, (a, b), {"a": {"no": 0.1, "yes": {"b": {"no": 0.5, "yes": 0.9}}}}),
        gg.LinearGaussian(x, (), {}, 0.5, sd=2.0),
        gg.LinearGaussian(z, (x,), [[1.0], [0.5]], [0.0, 1.0], [[1.0, 0.5], [0.5, 1.0]]),
        gg.ConditionalLinearGaussian(w, (a, x), {"x": [1.0, 2.0]}, [0.0, 5.0], sd=[1.0, 0.5]),
        gg.conditionals.GaussianCopula(v, (x,), 0.8, margins),
        gg.conditionals.Softmax.logistic(s, (x,), weights=[-2.0], bias=1.0),
    ]
    return gg.BayesianNetwork.from_parts([part.child for part in parts], parts)


def _sentences() -> Any:
    return gg.LinearChainCRF(c2=0.1, max_iterations=20).fit(_SENTENCES, _TAGS)


def _inputs() -> Any:
    base = gg.CategoricalHMM.from_parameters([0.3, 0.7], [[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.3, 0.7]])
    return gg.sequences.InputHMM.from_parameters(base, [np.eye(2), np.full((2, 2), 0.5)])


def _grid() -> Any:
    clean = np.add.outer(np.arange(12.0), np.arange(12.0))
    return gg.learn_grid(clean, clean + np.random.default_rng(0).normal(size=(12, 12)), cells=8)


def _umbrella() -> Any:
    return gg.DynamicBayesianNetwork(
        "rain' -> rain{no|yes} -> umbrella{no|yes}",
        cpds={"rain": [[0.7, 0.3], [0.3, 0.7]], "umbrella": [[0.8, 0.2], [0.1, 0.9]]},
    )


def _field() -> Any:
    x, y = gg.real("x"), gg.real("y")
    factor = gg.factors.GaussianFactor((x, y), [[2.0, 0.5], [0.5, 1.0]], [0.1, 0.2])
    return gg.MarkovNetwork.from_parts([x, y], [factor])


#: Name → how to make it. A name begins with the kind that stands in the file.
EXAMPLES: dict[str, Callable[[], Any]] = {
    "bayesian_network": lambda: gg.BayesianNetwork(
        "a -> b", cpds={"a": [0.25, 0.75], "b": [[0.5, 0.5], [0.125, 0.875]]}
    ),
    "bayesian_network-structured": structured,
    "markov_network": lambda: gg.MarkovNetwork({("a", "b"): [[1.0, 2.0], [3.0, 0.5]]}),
    "markov_network-gaussian": _field,
    "factor_graph": lambda: gg.FactorGraph({("a", "b"): [[1.0, 2.0], [3.0, 0.5]], ("b",): [0.5, 1.5]}),
    "log_linear": lambda: gg.models.LogLinear(
        [(("a", "b"), [[1.0, 0.0], [0.0, 1.0]], "same")], [0.5], states={"a": ("no", "yes"), "b": ("no", "yes")}
    ),
    "dynamic_bayesian_network": _umbrella,
    "influence_diagram": lambda: gg.InfluenceDiagram(
        "a -> [d] -> <u> <- a", cpds={"a": 0.3}, utilities={"u": [[0.0, -1.5], [2.0, 4.0]]}
    ),
    "distribution-gamma": lambda: gg.distributions.Gamma(2.0, 0.5),
    "distribution-gaussian": lambda: gg.Gaussian([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]]),
    "distribution-niw": lambda: gg.distributions.NormalInverseWishart([0.0, 1.0], 1.0, 4.0, np.eye(2)),
    "distribution-prior": lambda: gg.distributions.ConjugatePrior(gg.distributions.Laplace, 2.0, 1.0, {"center": 0.5}),
    "kernel_tree": lambda: gg.learn_tree(_frame(), cells=8),
    "kernel_markov": lambda: gg.learn_markov(_frame(), "a - b - c - a", cells=8, rank=2, penalty=0.01),
    "kernel_factor_graph": lambda: gg.learn_markov(_frame(), "a - b", cells=8, rank=2, penalty=0.1).to_factor_graph(),
    "kernel_network": lambda: gg.learn_dag(_frame(), "a -> b; a -> c", cells=8),
    "kernel_grid": _grid,
    "spectral_hmm": lambda: gg.embeddings.learn_spectral_hmm(_ROWS[:, 0], 2, cells=8),
    "sequence_model-categorical": lambda: gg.CategoricalHMM(2, **_FIT).fit(_LABELS),
    "sequence_model-several": lambda: gg.sequences.MultiCategoricalHMM(2, **_FIT).fit(np.hstack([_COUNTS, _COUNTS])),
    "sequence_model-gaussian": lambda: gg.GaussianHMM(2, **_FIT).fit(_ROWS),
    "sequence_model-mixture": lambda: gg.sequences.GaussianMixtureHMM(2, 2, **_FIT).fit(_ROWS),
    "sequence_model-poisson": lambda: gg.sequences.PoissonHMM(2, **_FIT).fit(_COUNTS),
    "sequence_model-distribution": lambda: gg.sequences.DistributionHMM(2, families="VonMises", **_FIT).fit(_ROWS),
    "sequence_model-durations": lambda: gg.sequences.DurationHMM(gg.GaussianHMM(2, **_FIT), max_duration=8).fit(_ROWS),
    "sequence_model-inputs": _inputs,
    "sequence_model-kalman": lambda: gg.KalmanFilter(1.0, 0.1, 1.0, 1.0, 0.0, 1.0, max_iter=3).fit(_ROWS),
    "linear_chain_crf": _sentences,
    "structural_model": lambda: (gg.sequences.Level() + gg.sequences.Season(4)).fit(_ROWS[:, 0]),
    "switching_kalman_filter": lambda: gg.sequences.SwitchingKalmanFilter(
        [[0.9, 0.1], [0.1, 0.9]], Q=[0.01, 4.0], R=0.1
    ),
    "graph_crf": lambda: gg.sequences.GraphCRF(max_iterations=5).fit(*_graphs()),
    "grid_crf": lambda: gg.sequences.GridCRF(max_iterations=5).fit(*_pictures()),
    "discretizer": lambda: gg.data.Discretizer(bins=3).fit(_frame()),
    "mean_embedding": lambda: gg.embeddings.MeanEmbedding.of(_X, kernel=gg.kernels.RBF(0.5)),
    "rkhs_function": lambda: gg.rkhs.RKHSFunction(gg.kernels.Matern(1.5), _X[:3], [1.0, -1.0, 0.5]),
    "nystrom_map": lambda: gg.linalg.nystrom(gg.kernels.RBF(), _X, 5, random_state=0),
    "kernel-sum": lambda: 2.0 * gg.kernels.RBF([0.5, 1.0]).fix("length_scale") + gg.kernels.White(0.1),
    "kernel-columns": lambda: gg.kernels.Linear().on([0]) * gg.kernels.Periodic().on([1]),
    "kernel-words": lambda: gg.kernels.Spectrum(2).exp(),
    "estimator-bayesian_linear": lambda: gg.BayesianLinearRegression().fit(_X, _Y),
    "estimator-conditional_embedding": lambda: gg.ConditionalEmbedding().fit(_X, _Y),
    "estimator-gp_classifier": lambda: gg.GaussianProcessClassifier().fit(_X, _C),
    "estimator-gp_counts": lambda: gg.estimators.GaussianProcessCounts().fit(_X, np.round(np.abs(_Y))),
    "estimator-gp_regressor": lambda: gg.GaussianProcessRegressor(_noisy(), normalize_y=True).fit(_X, _Y),
    "estimator-gp_sparse": lambda: gg.GaussianProcessRegressor(_noisy(), approx="titsias", n_inducing=5).fit(_X, _Y),
    "estimator-graphical_lasso": lambda: gg.GraphicalLasso(alpha=0.1).fit(_X),
    "estimator-graphical_lasso_path": lambda: gg.estimators.graphical_lasso_path(np.cov(_X.T), n_alphas=3),
    "estimator-kernel_density": lambda: gg.estimators.KernelDensity().fit(_X),
    "estimator-kernel_k_means": lambda: gg.estimators.KernelKMeans(2, random_state=0).fit(_X),
    "estimator-kernel_neighbors": lambda: gg.estimators.KernelNeighborsClassifier().fit(_X, _C),
    "estimator-kernel_neighbors_regressor": lambda: gg.estimators.KernelNeighborsRegressor().fit(_X, _Y),
    "estimator-nystrom_features": lambda: gg.estimators.NystromFeatures(6, random_state=0).fit(_X),
    "estimator-random_features": lambda: gg.estimators.RandomFeatures(6, random_state=0).fit(_X),
    "estimator-kernel_pca": lambda: gg.KernelPCA(3).fit(_X),
    "estimator-kernel_pca_features": lambda: gg.KernelPCA(3, approx="nystrom", n_features=8, random_state=0).fit(_X),
    "estimator-kernel_ridge": lambda: gg.KernelRidge(kernel=gg.kernels.RBF(0.7)).fit(_X, _Y),
    "estimator-kernel_ridge_features": lambda: gg.KernelRidge(approx="features", n_components=8, random_state=0).fit(
        _X, _Y
    ),
    "estimator-nadaraya_watson": lambda: gg.NadarayaWatson().fit(_X, _Y),
    "estimator-naive_bayes": lambda: gg.estimators.NaiveBayesClassifier().fit(_X, _C),
    "estimator-network_classifier": lambda: gg.estimators.BayesianNetworkClassifier().fit(_X, _C),
    "estimator-one_class": lambda: gg.estimators.OneClassSVM().fit(_X),
    "estimator-pca": lambda: gg.estimators.PCA(1).fit(_X),
    "estimator-rvc": lambda: gg.RVC().fit(_X, _C),
    "estimator-rvr": lambda: gg.RVR().fit(_X, _Y),
    "estimator-svc": lambda: gg.SVC().fit(_X, _C),
    "estimator-svc_three": lambda: gg.SVC(probability=True, random_state=0).fit(_X, np.arange(24) % 3),
    "estimator-svc_path": lambda: gg.estimators.svc_path(_X, _C, Cs=[0.1, 1.0]),
    "estimator-topics": lambda: gg.LatentDirichletAllocation(2, max_iter=5, random_state=0).fit(_WORDS),
    "estimator-ada_boost": lambda: gg.AdaBoostClassifier(5).fit(_X, _C),
    "estimator-basis_regression": lambda: gg.estimators.BasisRegression().fit(_X, _Y),
    "estimator-bayesian_logistic": lambda: gg.BayesianLogisticRegression().fit(_X, _C),
    "estimator-bernoulli_mixture": lambda: gg.BernoulliMixture(2, random_state=0).fit(_X > 0),
    "estimator-categorical_mixture": lambda: gg.CategoricalMixture(2, random_state=0).fit(np.c_[_C, _C[::-1]]),
    "estimator-fisher": lambda: gg.FisherDiscriminant().fit(_X, _C),
    "estimator-gaussian_classifier": lambda: gg.GaussianClassifier().fit(_X, _C),
    "estimator-gaussian_mixture": lambda: gg.GaussianMixture(2, random_state=0).fit(_X),
    "estimator-gentle_boost": lambda: gg.GentleBoostClassifier(5).fit(_X, _C),
    "estimator-gradient_boosting": lambda: gg.GradientBoostingClassifier(5).fit(_X, _C),
    "estimator-gradient_boosting_regressor": lambda: gg.GradientBoostingRegressor(5).fit(_X, _Y),
    "estimator-k_means": lambda: gg.estimators.KMeans(2, random_state=0).fit(_X),
    "estimator-lasso": lambda: gg.estimators.Lasso(alpha=0.1).fit(_X, _Y),
    "estimator-least_squares": lambda: gg.estimators.LeastSquares().fit(_X, _Y),
    "estimator-logit_boost": lambda: gg.LogitBoostClassifier(5).fit(_X, _C),
    "estimator-mixture_of": lambda: gg.MixtureOf(2, random_state=0).fit(_X),
    "estimator-multiclass_svc": lambda: gg.MulticlassSVC().fit(_X, np.arange(24) % 3),
    "estimator-svr": lambda: gg.SVR(kernel="linear").fit(_X, _Y),
    "estimator-tan": lambda: gg.estimators.TANClassifier().fit(_X, _C),
}


#: Examples that need no compiled code, for tests that must be quick.
QUICK = tuple(
    name
    for name in EXAMPLES
    if name.split("-")[0] in ("bayesian_network", "discretizer", "distribution", "kernel", "markov_network")
    or name.endswith(("-pca", "-kernel_density", "-bayesian_linear", "-gp_regressor", "-graphical_lasso_path", "-rvr"))
)


@cache
def example(name: str) -> Any:
    """The model of this name, made once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return EXAMPLES[name]()


def probe(model: Any) -> list[float]:
    """A few answers of a model, as numbers that two equal models have bit by bit in common."""
    for ask in _PROBES:
        found = ask(model)
        if found is not None:
            return [float(value) for value in np.ravel(found)]
    raise TypeError(f"no question is known for {type(model).__name__}")


def _ask_network(model: Any) -> Any:
    """The numbers of a network: its answers follow from them, and no engine need be compiled to compare them."""
    from gramgraph.io import native

    if type(model).__name__ == "InfluenceDiagram":
        return [model.solve().expected_utility, *_numbers(json.loads(native.dumps(model)))]
    if type(model).__name__ == "DynamicBayesianNetwork":
        return [*_ask_network(model.first), *_ask_network(model.step)]
    if not hasattr(model, "check_model") or getattr(model, "kind", "") == "cells":
        return None
    return _numbers(json.loads(native.dumps(model)))


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in _numbers(item)]
    return [float(value)] if isinstance(value, (int, float)) else []


def _ask_distribution(model: Any) -> Any:
    if not type(model).__module__.startswith("gramgraph.distributions"):
        return None
    if not hasattr(model, "log_density"):
        return [model.log_normalizer]
    return model.log_density(model.sample(3, random_state=0))


def _ask_kernel(model: Any) -> Any:
    name = type(model).__name__
    if name in ("KernelFactorGraph", "KernelMarkovNetwork", "KernelTree", "KernelNetwork"):
        return model.log_likelihood(_frame().head(5)[list(model.variables)])
    if name == "KernelGrid":
        return model.query(np.arange(16.0).reshape(4, 4)).mean()
    return [model.predict(_ROWS[:3, 0]).mean()] if name == "SpectralHMM" else None


def _ask_sequence(model: Any) -> Any:
    name = type(model).__name__
    data = {"CategoricalHMM": _LABELS, "MultiCategoricalHMM": np.hstack([_COUNTS, _COUNTS]), "PoissonHMM": _COUNTS}
    if name == "InputHMM":
        return [model.score([0, 1, 1], [0, 1, 0])]
    if name == "LinearChainCRF":
        return [p for seq in model.predict_marginals(_SENTENCES) for token in seq for p in token.values()]
    if name.endswith("HMM") or name == "KalmanFilter":
        return [model.score(data.get(name, _ROWS))]
    return None


def _ask_other(model: Any) -> Any:
    name = type(model).__name__
    if name == "StructuralModel":
        return model.forecast(3).means
    if name == "SwitchingKalmanFilter":
        return model.filter(_ROWS[:5]).modes
    if name in ("GraphCRF", "GridCRF"):
        X = (_graphs() if name == "GraphCRF" else _pictures())[0]
        return np.concatenate([np.ravel(p) for p in model.predict_proba(X)])
    if name == "LatentDirichletAllocation":
        return model.transform(_WORDS)
    if name == "Discretizer":
        return [model.transform(_frame())[c].cat.codes for c in ("a", "b")]
    if name in ("MeanEmbedding", "RKHSFunction"):
        return model(_X)
    if name == "GraphicalLassoPath":
        return model.precisions
    if name == "SVCPath":
        return model.scores
    if hasattr(model, "gram"):
        return model.gram(["abc", "abd"] if "Spectrum" in repr(model) else _X[:5])
    return None


def _ask_estimator(model: Any) -> Any:
    for ask in ("predict_proba", "decision_function", "transform", "score_samples", "predict"):
        if hasattr(model, ask):
            found = getattr(model, ask)(_X[:5] + 0.01)
            return (found == found[0]) if np.asarray(found).dtype.kind in "UO" else found
    return model.precision_ if hasattr(model, "precision_") else None


_PROBES: tuple[Callable[[Any], Any], ...] = (
    _ask_network, _ask_distribution, _ask_kernel, _ask_sequence, _ask_other, _ask_estimator,
)  # fmt: skip
