"""Principal components, in the space of the inputs and in the space of a kernel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from gramgraph._other_words import OtherWords
from gramgraph._validation import check_choice, check_jobs, check_positive
from gramgraph.estimators._base import NamedKernelEstimator
from gramgraph.estimators._sound import SoundNumbers, read_matrix, sound
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count, take
from gramgraph.machines.components import feature_components, fixed_points, kernel_components, linear_components
from gramgraph.machines.ridge_features import FeatureModel, expansion, make_features, row_blocks
from gramgraph.machines.sparse import dense
from gramgraph.typing import FloatArray

_ROWS = 2048


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SoundNumbers, BaseEstimator):
    """Directions of largest variance; the smaller of the (n, n) and (d, d) problems is the one that is solved.

    Parameters
    ----------
    n_components : how many; a fraction in (0, 1) for as many as explain that part of the variance; None for all.
    whiten : scale the projections to unit variance.

    Attributes
    ----------
    components_ (k, d), mean_, explained_variance_, explained_variance_ratio_, singular_values_, noise_variance_.

    Examples
    --------
    >>> from gramgraph.estimators import PCA
    >>> PCA(1).fit([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]).explained_variance_ratio_
    array([1.])
    """

    def __init__(self, n_components: int | float | None = None, *, whiten: bool = False) -> None:
        self.n_components = n_components
        self.whiten = whiten

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> PCA:
        """Find the components; O(n d min(n, d))."""
        X = dense(read_matrix(self, X, dtype=np.float64, accept_sparse="csr", ensure_min_samples=2))
        n, d = X.shape
        self.mean_, s, components = linear_components(X)
        variance = s**2 / (n - 1)
        total = float(variance.sum())
        ratio = variance / total if total > 0.0 else np.zeros_like(variance)
        k = self._count(ratio, min(n, d))
        self.components_ = components[:k].copy()
        self.explained_variance_, self.explained_variance_ratio_ = variance[:k], ratio[:k]
        self.singular_values_ = s[:k]
        self.noise_variance_ = float(variance[k:].mean()) if k < min(n, d) else 0.0
        self.n_components_, self.n_samples_ = k, n
        return self

    def _count(self, ratio: FloatArray, most: int) -> int:
        k = self.n_components
        if k is None:
            return most
        if isinstance(k, (float, np.floating)) and 0.0 < k < 1.0:
            return min(most, int(np.searchsorted(ratio.cumsum(), k, side="right")) + 1)
        if isinstance(k, (int, np.integer)) and 1 <= k <= most:
            return int(k)
        raise ModelError(
            f"n_components must be an integer from 1 to {most} = min(points, columns), a fraction between 0 and 1, or "
            f"None; it is {k!r}."
        )

    def transform(self, X: Any) -> FloatArray:
        """Coordinates along the components, (n, k)."""
        check_is_fitted(self)
        X = dense(read_matrix(self, X, dtype=np.float64, accept_sparse="csr", reset=False))
        return ((X - self.mean_) @ self.components_.T) / self._scale()

    def inverse_transform(self, X: Any) -> FloatArray:
        """The points of the inputs' space with these coordinates: reconstruction."""
        check_is_fitted(self)
        Z = check_array(X, dtype=np.float64)
        if Z.shape[1] != self.n_components_:
            raise ModelError(f"X must have {self.n_components_} columns, one a component; it has {Z.shape[1]}.")
        return (Z * self._scale()) @ self.components_ + self.mean_

    def _scale(self) -> FloatArray:
        deviation = np.sqrt(self.explained_variance_)
        return np.where(deviation > 0.0, deviation, 1.0) if self.whiten else np.ones(self.n_components_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


def _has_blocks(model: Any) -> bool:
    if model.approx is None:
        raise AttributeError("partial_fit needs approx='nystrom' or 'features'.")
    return True


@dataclass(eq=False, repr=False)
class KernelPCA(OtherWords, ClassNamePrefixFeaturesOutMixin, TransformerMixin, NamedKernelEstimator):
    """Principal components of the features φ(x) of a kernel, centered on the training points.

    With K̃ = (I − 1/n) K (I − 1/n) = V Λ Vᵀ the projection of x on component a is Σᵢ k̃(x, xᵢ) vᵢₐ / √λₐ, where
    k̃(x, xᵢ) = ⟨φ(x) − φ̄, φ(xᵢ) − φ̄⟩ and φ̄ is the mean over the training points, for new points too.

    Parameters
    ----------
    n_components : how many; None for all with a positive eigenvalue.
    kernel, gamma, degree, coef0 : as in `KernelRidge`.
    solver : "dense" (all eigenvectors, O(n³), one (n, n) array centered in place), "lanczos" (the largest ones, some
        O(n²) products, memory 3 n² bytes: one triangle of the Gram matrix to 11 digits) or "auto", by size.
    tol : relative accuracy of eigenvalues by "lanczos"; 0 is machine precision.
    pre_image : how `inverse_transform` finds points: None (not at all), "ridge" (kernel ridge from coordinates to
        points, penalty `alpha`) or "fixed_point" (RBF only: the point whose features are nearest).
    approx : None, or for large n components of m = `n_features` features: "nystrom" (`landmarks` as `KernelRidge` has
        them) or "features" (random Fourier features); O(n m²) time, O(m²) memory, and `partial_fit` for blocks.
    n_jobs : threads over blocks of rows of the Gram matrix, or of the points with approx.
    alpha : penalty of pre_image="ridge".
    n_features : features of approx.
    landmarks : as in `KernelRidge`.
    random_state : seed of landmarks and features.

    Notes
    -----
    Points as in `KernelRidge`; pre-images need dense vectors.

    Attributes
    ----------
    eigenvalues_ (k,) of K̃, eigenvectors_ (n, k), explained_variance_ = λ/(n − 1), explained_variance_ratio_, X_fit_;
    with approx those of the approximate kernel, features_ and components_ (m, k) instead of eigenvectors_ and X_fit_.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.estimators import KernelPCA
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> KernelPCA(1, kernel="linear").fit_transform(X).ravel()
    array([-2.75, -1.75,  0.25,  4.25])
    """

    n_components: int | None = None
    _: KW_ONLY
    solver: str = "auto"
    tol: float = 0.0
    pre_image: str | None = None
    alpha: float = 0.001
    approx: str | None = None
    n_features: int = 500
    landmarks: Any = "uniform"
    n_jobs: int | None = None
    random_state: Any = None

    _sparse_rows = "keep"

    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Find the components of the training points."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Coordinates of the training points, V √Λ, without a second Gram matrix."""
        self._fit(X)
        return self.transform(X) if self.approx is not None else self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    @available_if(_has_blocks)
    @sound
    def partial_fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Learn from one more block of rows; the features are fixed by the first block, or by given landmarks."""
        first = not hasattr(self, "_model")
        X = dense(self._points(X, reset=first))
        if first:
            self._check_options()
            self.kernel_ = self._resolve(X)
            self._model = self._new_model(X)
        self._add(X)
        return self

    def _check_options(self) -> None:
        check_choice("solver", self.solver, ("auto", "dense", "lanczos"))
        check_choice("pre_image", self.pre_image, (None, "ridge", "fixed_point"))
        check_choice("approx", self.approx, (None, "nystrom", "features"))
        if self.approx is not None and self.pre_image is not None:
            raise ModelError(f"pre_image={self.pre_image!r} needs the training points: approx=None.")

    def _new_model(self, X: Any) -> FeatureModel:
        if self.n_features != int(self.n_features) or self.n_features < 1:
            raise ModelError(f"n_features must be an integer of at least 1; it is {self.n_features!r}.")
        m, how = int(self.n_features), self.landmarks
        features = make_features(self.kernel_, X, str(self.approx), m, how, self.random_state, self.kernel)
        return FeatureModel(self.kernel_, features)

    def _add(self, X: Any) -> None:
        """Add rows to the sums ΦᵀΦ and Φᵀ1; components are eigenvectors of ΦᵀΦ − n φ̄ φ̄ᵀ."""
        ones = np.ones(count(X))
        self._model = self._model.with_rows(X, ones[:, None], ones, n_jobs=self.n_jobs)
        sums = self._model.sums
        assert sums is not None
        center = sums.c[:, 0] / sums.n
        values, V, trace, rank = feature_components(sums, center)
        k = min(self._count(len(values)), rank if self.n_components is None else len(values))
        self.features_, self.eigenvalues_, self.components_ = self._model.features, values[:k], V[:, :k].copy()
        self.explained_variance_ = self.eigenvalues_ / max(sums.n - 1, 1)
        self.explained_variance_ratio_ = self.eigenvalues_ / trace if trace > 0.0 else np.zeros(k)
        scale = float(np.sqrt(self.explained_variance_[:1].sum()))
        self._dual = expansion(self.features_, self.components_, scale)
        self._shift = center @ self.components_

    def _fit(self, X: Any) -> None:
        self._check_options()
        X = self._points(X, reset=True, least=2, keep=self.approx is None)
        X = X if self.approx is None and self.pre_image is None else dense(X)
        self.kernel_ = self._resolve(X)
        if self.approx is not None:
            self._model = self._new_model(X)
            return self._add(X)
        n = count(X)
        k = self._count(n)
        self.X_fit_ = X
        n_jobs = check_jobs(1 if self.n_jobs is None else self.n_jobs)
        found = kernel_components(
            self.kernel_, X, k, solver=self.solver, tol=self.tol, random_state=self.random_state, n_jobs=n_jobs
        )
        if self.n_components is None:
            found = found.positive()
        self._column_means, self._mean = found.column_means, found.mean
        values = found.values
        self.eigenvalues_, self.eigenvectors_ = values, found.vectors
        self.explained_variance_ = values / (n - 1)
        self.explained_variance_ratio_ = values / found.trace if found.trace > 0.0 else np.zeros_like(values)
        roots = np.sqrt(np.where(values > 0.0, values, 1.0))
        self._weights = self.eigenvectors_ * np.where(values > 0.0, 1.0 / roots, 0.0)  # (n, k) expansion of components
        if self.pre_image == "ridge":
            self._fit_ridge()
        elif self.pre_image == "fixed_point":
            self._check_fixed_point()

    def _count(self, n: int) -> int:
        k = self.n_components
        if k is None:
            return n
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
            raise ModelError(f"n_components must be an integer of at least 1, or None; it is {k!r}.")
        return min(int(k), n)

    # -- new points ---------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> FloatArray:
        """Coordinates of points, (n, k); new points are centered with the means of the training points."""
        check_is_fitted(self, "eigenvalues_")
        X = self._points(X, reset=False)
        out = np.empty((count(X), len(self.eigenvalues_)))
        if self.approx is not None:
            for rows in row_blocks(len(out)):
                part = dense(take(X, rows))
                if self._dual is None:
                    out[rows] = self.features_.transform(part) @ self.components_
                else:
                    out[rows] = self.kernel_.gram(part, self.features_.landmarks) @ self._dual
            out -= self._shift
            return out
        shift = (self._column_means - self._mean) @ self._weights
        sums = self._weights.sum(axis=0)
        for start in range(0, len(out), _ROWS):
            rows = slice(start, min(len(out), start + _ROWS))
            K = self.kernel_.gram(take(X, rows), self.X_fit_)
            out[rows] = K @ self._weights - K.mean(axis=1)[:, None] * sums - shift
        return out

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    # -- pre-images ---------------------------------------------------------------------------------------------

    def _fit_ridge(self) -> None:
        from gramgraph.estimators.ridge import KernelRidge

        if self.kernel_.precomputed or not isinstance(self.X_fit_, np.ndarray):
            raise ModelError("pre_image='ridge' needs points that are vectors, which the kernel matrix does not give.")
        check_positive("alpha", self.alpha)
        Z = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        self._center_of_points = self.X_fit_.mean(axis=0)
        self._ridge = KernelRidge(self.alpha, kernel="rbf", gamma="scale").fit(Z, self.X_fit_ - self._center_of_points)

    def _check_fixed_point(self) -> None:
        from gramgraph.kernels import RBF

        if not isinstance(self.kernel_.value, RBF):
            raise ModelError(
                f"pre_image='fixed_point' holds for RBF kernels; the kernel is {self.kernel!r}. Try: 'ridge'."
            )

    def inverse_transform(self, X: Any) -> FloatArray:
        """Points of the inputs' space whose projections are near to these coordinates (k columns)."""
        check_is_fitted(self, "eigenvalues_")
        Z = check_array(X, dtype=np.float64)
        if Z.shape[1] != len(self.eigenvalues_):
            raise ModelError(f"X must have {len(self.eigenvalues_)} columns, one a component; it has {Z.shape[1]}.")
        if self.pre_image is None:
            raise ModelError("inverse_transform needs pre_image='ridge' or 'fixed_point', chosen before fit.")
        if self.pre_image == "ridge":
            return self._ridge.predict(Z) + self._center_of_points
        T = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        near = ((T * T).sum(axis=1) - 2.0 * Z @ T.T).argmin(axis=1)  # training points to start from
        return fixed_points(self.kernel_, self.X_fit_, Z @ self._weights.T, near)
