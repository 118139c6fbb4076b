"""Sequences: hidden Markov models, Bayes filters, linear-Gaussian state space; pure recursions and thin classes."""

from __future__ import annotations

from typing import Any

from gramgraph._lazy import lazy_name

#: Name → module that defines it; a new model is one class and one line here.
_HOMES: dict[str, str] = {
    "BayesFilter": "filtering",
    "CategoricalHMM": "categorical",
    "CubatureKalmanFilter": "nonlinear",
    "DistributionHMM": "distribution",
    "DurationHMM": "durations",
    "DynamicBayesianNetwork": "dynamic",
    "ExtendedKalmanFilter": "nonlinear",
    "GaussianHMM": "gaussian",
    "GaussianMixtureHMM": "mixture",
    "GraphCRF": "crf.graph",
    "GridCRF": "crf.graph",
    "HMMFilter": "filtering",
    "InputHMM": "inputs",
    "KalmanFilter": "kalman",
    "Level": "structural",
    "LinearChainCRF": "crf.chain",
    "MultiCategoricalHMM": "multi_categorical",
    "ParticleFilter": "particle",
    "PoissonHMM": "poisson",
    "Posteriors": "recursions",
    "Regression": "structural",
    "Season": "structural",
    "StateChoice": "choose",
    "StructuralModel": "structural",
    "SwitchingKalmanFilter": "switching",
    "Trend": "structural",
    "UnscentedKalmanFilter": "nonlinear",
    "choose_n_states": "choose",
    "forward": "recursions",
    "log_likelihood": "recursions",
    "posteriors": "recursions",
    "sample_states": "recursions",
    "viterbi": "recursions",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__
