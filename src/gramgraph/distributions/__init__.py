"""Distributions as values: exponential families, conjugate pairs, the algebra of Gaussians."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gramgraph._lazy import lazy_name

if TYPE_CHECKING:
    from gramgraph.distributions.base import ExponentialFamily
    from gramgraph.distributions.boltzmann import Boltzmann
    from gramgraph.distributions.by_name import ByName, Dot, Exp, Index, Logistic
    from gramgraph.distributions.conjugate import ConjugateModel
    from gramgraph.distributions.conjugate_discrete import BetaBernoulli, DirichletCategorical, GammaPoisson
    from gramgraph.distributions.conjugate_numeric import ConjugatePrior
    from gramgraph.distributions.conjugate_real import NormalGamma, NormalInverseWishart, NormalNormal, VonMisesMean
    from gramgraph.distributions.counts import Geometric, Poisson
    from gramgraph.distributions.directional import VonMises, VonMisesFisher
    from gramgraph.distributions.discrete import Bernoulli, Binomial, Categorical, Multinomial
    from gramgraph.distributions.files import load, save
    from gramgraph.distributions.gaussian import Gaussian
    from gramgraph.distributions.line import Laplace, Normal
    from gramgraph.distributions.matrices import InverseWishart, Wishart
    from gramgraph.distributions.positive import ChiSquared, Exponential, Gamma, InverseGamma
    from gramgraph.distributions.predictive import (
        BetaBinomial,
        DirichletMultinomial,
        MultivariateT,
        NegativeBinomial,
        Predictive,
        StudentT,
        VonMisesPredictive,
    )
    from gramgraph.distributions.simplex import Beta, Dirichlet
    from gramgraph.distributions.transforms import (
        LaplaceApproximation,
        Transformed,
        change_of_variables,
        laplace_approximation,
    )

__all__ = [
    "Bernoulli",
    "Beta",
    "BetaBernoulli",
    "BetaBinomial",
    "Binomial",
    "Boltzmann",
    "ByName",
    "Categorical",
    "ChiSquared",
    "ConjugateModel",
    "ConjugatePrior",
    "Dirichlet",
    "DirichletCategorical",
    "DirichletMultinomial",
    "Dot",
    "Exp",
    "Exponential",
    "ExponentialFamily",
    "Gamma",
    "GammaPoisson",
    "Gaussian",
    "Geometric",
    "Index",
    "InverseGamma",
    "InverseWishart",
    "Laplace",
    "LaplaceApproximation",
    "Logistic",
    "Multinomial",
    "MultivariateT",
    "NegativeBinomial",
    "Normal",
    "NormalGamma",
    "NormalInverseWishart",
    "NormalNormal",
    "Poisson",
    "Predictive",
    "StudentT",
    "Transformed",
    "VonMises",
    "VonMisesFisher",
    "VonMisesMean",
    "VonMisesPredictive",
    "Wishart",
    "change_of_variables",
    "laplace_approximation",
    "load",
    "save",
]

#: Public name → module that defines it; loaded on first use.
_HOMES: dict[str, str] = {
    "ExponentialFamily": "base",
    "Boltzmann": "boltzmann",
    "ByName": "by_name",
    "Dot": "by_name",
    "Exp": "by_name",
    "Index": "by_name",
    "Logistic": "by_name",
    "ConjugateModel": "conjugate",
    "BetaBernoulli": "conjugate_discrete",
    "DirichletCategorical": "conjugate_discrete",
    "GammaPoisson": "conjugate_discrete",
    "ConjugatePrior": "conjugate_numeric",
    "NormalGamma": "conjugate_real",
    "NormalInverseWishart": "conjugate_real",
    "NormalNormal": "conjugate_real",
    "VonMisesMean": "conjugate_real",
    "Geometric": "counts",
    "Poisson": "counts",
    "VonMises": "directional",
    "VonMisesFisher": "directional",
    "Bernoulli": "discrete",
    "Binomial": "discrete",
    "Categorical": "discrete",
    "Multinomial": "discrete",
    "load": "files",
    "save": "files",
    "Gaussian": "gaussian",
    "Laplace": "line",
    "Normal": "line",
    "InverseWishart": "matrices",
    "Wishart": "matrices",
    "ChiSquared": "positive",
    "Exponential": "positive",
    "Gamma": "positive",
    "InverseGamma": "positive",
    "BetaBinomial": "predictive",
    "DirichletMultinomial": "predictive",
    "MultivariateT": "predictive",
    "NegativeBinomial": "predictive",
    "Predictive": "predictive",
    "StudentT": "predictive",
    "VonMisesPredictive": "predictive",
    "Beta": "simplex",
    "Dirichlet": "simplex",
    "LaplaceApproximation": "transforms",
    "Transformed": "transforms",
    "change_of_variables": "transforms",
    "laplace_approximation": "transforms",
}


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__
