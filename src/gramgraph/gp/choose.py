"""Which way of computing fits the kernel, the points and their number; the choice explains itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.gp.markov import is_markov, split_noise
from gramgraph.gp.methods import Data, Exact, Method
from gramgraph.gp.repeats import exact_method

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

APPROXIMATIONS = ("auto", "exact", "state_space", "kronecker", "toeplitz", "titsias", "fitc", "sor", "rff", "cg")
_FEW = 500  # up to here a plain Cholesky factorization is quickest whatever the structure
_MOST = 8000  # four (n, n) matrices of this size take 2 GB


def choose(
    approx: str,
    kernel: Kernel,
    data: Data,
    *,
    n_inducing: int,
    rank: int | None,
    rng: np.random.Generator,
    noise: Any = None,
) -> tuple[Method, str]:
    """The method for `approx`, and a sentence that says why.

    >>> from gramgraph.gp.means import Mean
    >>> from gramgraph.kernels import Matern
    >>> data = Data(np.arange(600.0)[:, None], np.zeros((600, 1)), np.full(600, 0.1), Mean())
    >>> choose("auto", Matern(), data, n_inducing=10, rank=None, rng=np.random.default_rng(0))[0].name
    'state_space'
    """
    if data.cross is not None:
        if approx not in ("auto", "exact") or noise is not None or rank is not None:
            raise ModelError(
                "noise with covariances between points has one way: approx='exact', for independent outputs."
            )
        return Exact(data), f"exact, because the noise of points is correlated: {_about(Exact(data))}"
    if noise is not None:
        return _learned_noise(approx, data, noise, rank, rng)
    if rank is not None:
        return _coregional(approx, data, rank)
    if approx != "auto":
        method = _named(approx, kernel, data, n_inducing, rng)
        return method, f"{approx}, as asked: {_about(method)}"
    name, reason = _automatic(kernel, data)
    method = _named(name, kernel, data, n_inducing, rng)
    return method, f"{name}, chosen because {reason}: {_about(method)}"


def _automatic(kernel: Kernel, data: Data) -> tuple[str, str]:
    from gramgraph.gp.grids import find_grid, is_even_line, is_separable, is_stationary

    n, X = data.n, data.X
    if n <= _FEW:
        return "exact", f"there are only {n} points"
    vectors = isinstance(X, np.ndarray) and X.ndim == 2
    smooth, equal = split_noise(kernel).smooth, data.equal_noise is not None
    if vectors and X.shape[1] == 1 and is_markov(kernel):
        return "state_space", f"the {n} points lie on a line and the kernel is of the Matérn family"
    if vectors and equal and is_separable(smooth, X.shape[1]) and find_grid(X) is not None:
        return "kronecker", f"the {n} points form a full grid and the kernel is a product over columns"
    if n > 2 * _FEW and equal and is_stationary(smooth) and is_even_line(X):
        return "toeplitz", f"the {n} points are evenly spaced and the kernel is stationary"
    if n <= _MOST:
        return "exact", f"{n} points have no structure that helps, and {4 * 8 * n * n / 1e9:.2g} GB suffice"
    return "titsias", f"{n} points are too many for an (n, n) matrix ({4 * 8 * n * n / 1e9:.0f} GB)"


def _named(approx: str, kernel: Kernel, data: Data, m: int, rng: np.random.Generator) -> Method:
    if approx == "exact":
        return exact_method(kernel, data)
    if approx == "state_space":
        from gramgraph.gp.markov import markov_model
        from gramgraph.gp.state_space import StateSpaceMethod, line

        line(data.X)
        smooth = split_noise(kernel).smooth
        if smooth is not None:
            markov_model(smooth)  # says what is missing
        return StateSpaceMethod(data)
    if approx == "kronecker":
        from gramgraph.gp.grids import KroneckerMethod, find_grid

        grid = find_grid(data.X)
        if grid is None:
            raise ModelError("approx='kronecker' needs points that form a full grid of at least two columns.")
        return KroneckerMethod(data, grid)
    if approx == "toeplitz":
        from gramgraph.gp.grids import ToeplitzMethod, is_even_line, is_stationary

        if not is_even_line(data.X) or not is_stationary(split_noise(kernel).smooth):
            raise ModelError("approx='toeplitz' needs evenly spaced points in rising order and a stationary kernel.")
        return ToeplitzMethod(data)
    if approx == "rff":
        from gramgraph.gp.sparse import RandomFeatures

        return RandomFeatures(data, m, int(rng.integers(2**31)))
    if approx == "cg":
        from gramgraph.gp.iterative import ConjugateGradient

        return ConjugateGradient(data, rank=min(m, 200), seed=int(rng.integers(2**31)))
    from gramgraph.gp.sparse import Sparse, select_inducing

    return Sparse(data, select_inducing(kernel, data.X, m, rng), approx)


def _coregional(approx: str, data: Data, rank: int) -> tuple[Method, str]:
    from gramgraph.gp.coregional import Coregional

    if approx not in ("auto", "exact"):
        raise ModelError(f"coregionalization has one way, an exact one: approx='auto', not {approx!r}.")
    method: Any = Coregional(data, rank)
    return method, f"coregional, as asked: {_about(method)}"


def _learned_noise(
    approx: str, data: Data, noise: Any, rank: int | None, rng: np.random.Generator
) -> tuple[Method, str]:
    from gramgraph.gp.hetero import LearnedNoise
    from gramgraph.kernels.base import Kernel

    if approx not in ("auto", "exact") or rank is not None:
        raise ModelError("learned noise has one way, an exact one, for independent outputs: approx='auto'.")
    if noise != "learned" and not isinstance(noise, Kernel):
        raise ModelError(f"noise must be None, 'learned' or the kernel of its logarithm; it is {noise!r}.")
    method: Any = LearnedNoise(data, noise if isinstance(noise, Kernel) else None, rng)
    return method, f"exact with a noise process, as asked: {_about(method)}"


_ABOUT = {
    "exact": "Cholesky of the full matrix, exact, O(n³) time and O(n²) memory.",
    "state_space": "Kalman filter and smoother, exact, O(n) time and memory.",
    "kronecker": "eigenvectors of the axes, exact, O(n) memory.",
    "toeplitz": "Levinson recursion, exact, O(n²) time and O(n) memory.",
    "titsias": "inducing points (pivots of the kernel), evidence replaced by a lower bound, O(n m²) time.",
    "fitc": "inducing points, points independent given them, evidence without a bound, O(n m²) time.",
    "sor": "subset of regressors, evidence without a bound, O(n m²) time.",
    "rff": "random Fourier features, error O(1/√m), O(n m²) time; hyper-parameters from a subset.",
    "cg": "conjugate gradients to a residual of 1e-8, O(n²) a step; the evidence is a random estimate; "
    "hyper-parameters from a subset.",
    "coregional": "one eigendecomposition for all outputs, exact, O(n³) time.",
}


def _about(method: Any) -> str:
    return _ABOUT[method.name]
