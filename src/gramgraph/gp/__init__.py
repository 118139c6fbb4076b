"""Gaussian processes: evidence, mean functions, posteriors as values, structured and sparse approximations."""

from __future__ import annotations

import importlib
from typing import Any

#: Name → module that defines it; loaded at first use.
_HOMES: dict[str, str] = {
    "BasisMean": "means",
    "BellBasis": "bases",
    "CLogLog": "likelihoods",
    "ConstantMean": "means",
    "Evidence": "evidence",
    "ExactPosterior": "posterior",
    "FixedMean": "means",
    "FourierBasis": "bases",
    "Gamma": "priors",
    "GammaSizes": "likelihoods",
    "GaussianBasis": "bases",
    "GaussianNoise": "likelihoods",
    "IdentityBasis": "bases",
    "InverseGamma": "priors",
    "LaguerreBasis": "bases",
    "LaplaceBasis": "bases",
    "LatentPosterior": "latent",
    "LatentProblem": "latent_fit",
    "LegendreBasis": "bases",
    "Likelihood": "likelihoods",
    "LinearMean": "means",
    "LogNormal": "priors",
    "Logistic": "likelihoods",
    "Mean": "means",
    "NegativeBinomial": "likelihoods",
    "NoiseProcess": "hetero",
    "PixelBasis": "bases",
    "Poisson": "likelihoods",
    "PolynomialBasis": "bases",
    "Probit": "likelihoods",
    "SigmoidBasis": "bases",
    "Softmax": "likelihoods",
    "SoftmaxPosterior": "softmax",
    "SoftmaxProblem": "latent_fit",
    "SwitchBasis": "bases",
    "VBasis": "bases",
    "WithDerivatives": "derivatives",
    "ep_evidence": "ep",
    "ep_posterior": "ep",
    "exact_evidence": "evidence",
    "fit_exact": "posterior",
    "fit_latent": "latent_fit",
    "laplace_evidence": "laplace",
    "laplace_posterior": "laplace",
    "markov_model": "markov",
    "move_inducing": "inducing",
    "quadrature": "hyper",
    "slice_sample": "hyper",
    "softmax_evidence": "softmax",
    "softmax_posterior": "softmax",
    "spread_latent": "latent_fit",
    "stack_derivatives": "derivatives",
    "state_space_evidence": "state_space",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        from gramgraph.exceptions import did_you_mean

        raise AttributeError(f"gramgraph.gp has no {name!r}.{did_you_mean(name, _HOMES)}")
    value = getattr(importlib.import_module(f"gramgraph.gp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
