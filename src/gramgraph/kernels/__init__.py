"""Kernels: frozen values with `gram`, `diag` and `pullback`, closed under +, *, scaling, powers, warps."""

from __future__ import annotations

from gramgraph._lazy import lazy_names

#: Module → its public names; loaded at first use.
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "algebra": "Exponential Power Product Scale Sum",
        "base": "Cotangent Kernel",
        "directional": "Angular Directional GreatCircle",
        "discrete": "Categorical Delta Hamming SetKernel",
        "dot_product": "ArcCosine Linear Polynomial QuadraticForm Sigmoid",
        "feature_space": "Centered Normalized RBFOver",
        "fisher": "Fisher NetworkScore ScoreModel",
        "generative": "CategoricalProbabilityProduct GaussianProbabilityProduct LatentVariable",
        "input_maps": "FunctionScaled OnColumns Tensor Warp",
        "inputs": "as_points KernelError",
        "latent": "GaussianLatent latent_integral",
        "maps": "FunctionMap LinearMap Map",
        "parameters": "parameter",
        "periodic": "Periodic SpectralMixture",
        "precomputed": "FunctionKernel Precomputed",
        "process": "CubicSpline IntegratedWiener Wiener",
        "stationary": "Constant Matern RationalQuadratic RBF White",
        "structured": "EditDistance Graph RandomWalk Spectrum Subsequence",
    },
)
