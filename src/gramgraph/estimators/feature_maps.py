"""Features of a kernel as transformers: Nyström's through landmarks, and random Fourier features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramgraph._validation import check_count
from gramgraph.estimators._base import NamedKernelEstimator
from gramgraph.kernels.inputs import count
from gramgraph.machines.ridge_features import make_features
from gramgraph.typing import FloatArray


class _Features(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NamedKernelEstimator):
    """φ with φ(x)ᵀφ(x′) ≈ k(x, x′)."""

    n_components: int

    def transform(self, X: Any) -> FloatArray:
        """φ(X), (n, features)."""
        check_is_fitted(self)
        return self.map_.transform(self._points(X, reset=False))  # type: ignore[no-any-return]

    def _learn_map(self, X: Any, kind: str, landmarks: Any, random_state: Any) -> None:
        check_count("n_components", self.n_components)
        X = self._points(X, reset=True)
        kernel = self._resolve(X)
        m = min(self.n_components, count(X)) if kind == "nystrom" else self.n_components
        self.map_ = make_features(kernel, X, kind, m, landmarks, random_state, self.kernel)

    @property
    def _n_features_out(self) -> int:
        return self.map_.rank if hasattr(self.map_, "rank") else len(self.map_.masses)


@dataclass(eq=False, repr=False)
class NystromFeatures(_Features):
    """Nyström features φ(x) = k(x, Z) W with W Wᵀ = k(Z, Z)⁻¹ through landmarks Z of the training points.

    Parameters
    ----------
    n_components : landmarks at most; redundant ones are left out.
    kernel, gamma, degree, coef0 : as in `KernelRidge`; points may be words, sets or graphs where the kernel takes them.
    landmarks : "uniform", "leverage", "kmeans", "pivots", or points.
    random_state : seed, or a generator.

    Notes
    -----
    `map_` is the `NystromMap`. At the landmarks φᵀφ = k exactly. O(n m²).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 3.0, 100)[:, None]
    >>> Phi = NystromFeatures(12, gamma=0.5, landmarks="pivots").fit_transform(X)
    >>> bool(np.abs(Phi @ Phi.T - np.exp(-0.5 * (X - X.T) ** 2)).max() < 1e-5)
    True
    """

    n_components: int = 100
    landmarks: Any = "uniform"
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> NystromFeatures:
        """Choose landmarks."""
        self._learn_map(X, "nystrom", self.landmarks, self.random_state)
        return self


@dataclass(eq=False, repr=False)
class RandomFeatures(_Features):
    """Random Fourier features √(2/m) cos(ωᵀx + phase), ω from the spectral density of the kernel; error O(1/√m).

    Parameters
    ----------
    n_components : number m of features.
    kernel, gamma : "rbf", or a value with a spectral density (RBF, Matern, RationalQuadratic, their sums and products).
    random_state : seed, or a generator.
    degree, coef0 : of kernels that have no such features; they are there for all estimators with a kernel.

    Notes
    -----
    `map_` is the `FourierFeatures`. O(n m d).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 3.0, 50)[:, None]
    >>> Phi = RandomFeatures(4000, gamma=0.5, random_state=0).fit_transform(X)
    >>> bool(np.abs(Phi @ Phi.T - np.exp(-0.5 * (X - X.T) ** 2)).max() < 0.1)
    True
    """

    n_components: int = 100
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> RandomFeatures:
        """Draw frequencies."""
        self._learn_map(X, "features", None, self.random_state)
        return self
