"""Distributions as values: exponential families, conjugate pairs, the algebra of Gaussians."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramgraph._lazy import lazy_names

if TYPE_CHECKING:
    from gramgraph.distributions.base import *
    from gramgraph.distributions.boltzmann import *
    from gramgraph.distributions.by_name import *
    from gramgraph.distributions.conjugate import *
    from gramgraph.distributions.conjugate_discrete import *
    from gramgraph.distributions.conjugate_numeric import *
    from gramgraph.distributions.conjugate_real import *
    from gramgraph.distributions.counts import *
    from gramgraph.distributions.directional import *
    from gramgraph.distributions.discrete import *
    from gramgraph.distributions.files import *
    from gramgraph.distributions.gaussian import *
    from gramgraph.distributions.line import *
    from gramgraph.distributions.matrices import *
    from gramgraph.distributions.positive import *
    from gramgraph.distributions.predictive import *
    from gramgraph.distributions.simplex import *
    from gramgraph.distributions.transforms import *

#: Module → its public names; loaded at first use.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "base": "ExponentialFamily",
        "boltzmann": "Boltzmann",
        "by_name": "ByName Dot Exp Index Logistic",
        "conjugate": "ConjugateModel",
        "conjugate_discrete": "BetaBernoulli DirichletCategorical GammaPoisson",
        "conjugate_numeric": "ConjugatePrior",
        "conjugate_real": "NormalGamma NormalInverseWishart NormalNormal VonMisesMean",
        "counts": "Geometric Poisson",
        "directional": "VonMises VonMisesFisher",
        "discrete": "Bernoulli Binomial Categorical Multinomial",
        "files": "load save",
        "gaussian": "Gaussian",
        "line": "Laplace Normal",
        "matrices": "InverseWishart Wishart",
        "positive": "ChiSquared Exponential Gamma InverseGamma",
        "predictive": (
            "BetaBinomial DirichletMultinomial MultivariateT NegativeBinomial Predictive StudentT VonMisesPredictive"
        ),
        "simplex": "Beta Dirichlet",
        "transforms": "change_of_variables laplace_approximation LaplaceApproximation Transformed",
    },
)
