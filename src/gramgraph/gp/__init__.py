"""Gaussian processes: evidence, mean functions, posteriors as values, structured and sparse approximations."""

from __future__ import annotations

from gramgraph._lazy import lazy_names

#: Module → its public names; loaded at first use.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "bases": (
            "BellBasis FourierBasis GaussianBasis IdentityBasis LaguerreBasis LaplaceBasis LegendreBasis "
            "PixelBasis PolynomialBasis SigmoidBasis SwitchBasis VBasis"
        ),
        "derivatives": "stack_derivatives WithDerivatives",
        "ep": "ep_evidence ep_posterior",
        "evidence": "Evidence exact_evidence",
        "hetero": "NoiseProcess",
        "hyper": "quadrature slice_sample",
        "inducing": "move_inducing",
        "laplace": "laplace_evidence laplace_posterior",
        "latent": "LatentPosterior",
        "latent_fit": "fit_latent LatentProblem SoftmaxProblem spread_latent",
        "likelihoods": "CLogLog GammaSizes GaussianNoise Likelihood Logistic NegativeBinomial Poisson Probit Softmax",
        "markov": "markov_model",
        "means": "BasisMean ConstantMean FixedMean LinearMean Mean",
        "posterior": "ExactPosterior fit_exact",
        "priors": "Gamma InverseGamma LogNormal",
        "softmax": "softmax_evidence softmax_posterior SoftmaxPosterior",
        "state_space": "state_space_evidence",
    },
)
