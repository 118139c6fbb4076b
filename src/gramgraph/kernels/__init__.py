"""Kernels: frozen values with `gram`, `diag` and `pullback`, closed under +, *, scaling, powers, warps."""

from __future__ import annotations

from typing import Any

from gramgraph._lazy import lazy_name

#: Public name → module that defines it; loaded on first use.
_PUBLIC: dict[str, str] = {
    # protocol
    "Cotangent": "base",
    "Kernel": "base",
    "KernelError": "inputs",
    "as_points": "inputs",
    "parameter": "parameters",
    "FunctionMap": "maps",
    "LinearMap": "maps",
    "Map": "maps",
    # algebra
    "Centered": "feature_space",
    "Exponential": "algebra",
    "FunctionScaled": "input_maps",
    "Normalized": "feature_space",
    "OnColumns": "input_maps",
    "Power": "algebra",
    "Product": "algebra",
    "Scale": "algebra",
    "Sum": "algebra",
    "Tensor": "input_maps",
    "Warp": "input_maps",
    # stationary
    "Constant": "stationary",
    "Matern": "stationary",
    "Periodic": "periodic",
    "RBF": "stationary",
    "RBFOver": "feature_space",
    "RationalQuadratic": "stationary",
    "SpectralMixture": "periodic",
    "White": "stationary",
    # dot product
    "ArcCosine": "dot_product",
    "Linear": "dot_product",
    "Polynomial": "dot_product",
    "QuadraticForm": "dot_product",
    "Sigmoid": "dot_product",
    # process
    "CubicSpline": "process",
    "IntegratedWiener": "process",
    "Wiener": "process",
    # directional
    "Angular": "directional",
    "Directional": "directional",
    "GreatCircle": "directional",
    # discrete
    "Categorical": "discrete",
    "Delta": "discrete",
    "Hamming": "discrete",
    "SetKernel": "discrete",
    # structured
    "EditDistance": "structured",
    "Graph": "structured",
    "RandomWalk": "structured",
    "Spectrum": "structured",
    "Subsequence": "structured",
    # generative
    "CategoricalProbabilityProduct": "generative",
    "Fisher": "fisher",
    "GaussianProbabilityProduct": "generative",
    "GaussianLatent": "latent",
    "LatentVariable": "generative",
    "latent_integral": "latent",
    "NetworkScore": "fisher",
    "ScoreModel": "fisher",
    # precomputed
    "FunctionKernel": "precomputed",
    "Precomputed": "precomputed",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    return lazy_name(__name__, _PUBLIC, name)


def __dir__() -> list[str]:
    return __all__
