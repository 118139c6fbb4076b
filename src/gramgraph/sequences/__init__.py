"""Sequences: hidden Markov models, Bayes filters, linear-Gaussian state space; pure recursions and thin classes."""

from __future__ import annotations

from gramgraph._lazy import lazy_names

#: Module → its names; a new model is one class and one name here.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "categorical": "CategoricalHMM",
        "choose": "choose_n_states StateChoice",
        "crf.chain": "LinearChainCRF",
        "crf.graph": "GraphCRF GridCRF",
        "distribution": "DistributionHMM",
        "durations": "DurationHMM",
        "dynamic": "DynamicBayesianNetwork",
        "filtering": "BayesFilter HMMFilter",
        "gaussian": "GaussianHMM",
        "inputs": "InputHMM",
        "kalman": "KalmanFilter",
        "mixture": "GaussianMixtureHMM",
        "multi_categorical": "MultiCategoricalHMM",
        "nonlinear": "CubatureKalmanFilter ExtendedKalmanFilter UnscentedKalmanFilter",
        "particle": "ParticleFilter",
        "poisson": "PoissonHMM",
        "recursions": "forward log_likelihood Posteriors posteriors sample_states viterbi",
        "structural": "Level Regression Season StructuralModel Trend",
        "switching": "SwitchingKalmanFilter",
    },
)
