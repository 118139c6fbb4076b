"""Principal components, in the space of the inputs and in the space of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from gramgraph._validation import check_choice, check_positive
from gramgraph.estimators._base import KernelEstimator
from gramgraph.estimators._sound import SoundNumbers, read_matrix, sound
from gramgraph.exceptions import ModelError
from gramgraph.machines.kernels import KernelSpec
from gramgraph.machines.ridge_features import FeatureModel, expansion, make_features, row_blocks
from gramgraph.machines.sparse import dense
from gramgraph.machines.spectrum import HalfGram, WholeGram, smallest_ritz_value, top_eigenpairs
from gramgraph.typing import FloatArray

__all__ = ["PCA", "KernelPCA", "top_eigenpairs"]

_DENSE = 600  # up to this size all eigenvectors cost less than the search for some of them
_ROWS = 2048


def _signs(vectors: FloatArray) -> FloatArray:
    """±1 for every column, so that its largest entry becomes positive: eigenvectors have no sign of their own."""
    sizes = np.abs(vectors)
    first = (sizes >= (1.0 - 1e-9) * sizes.max(axis=0, initial=0.0)).argmax(axis=0)  # rounding decides no tie
    signs = np.sign(vectors[first, np.arange(vectors.shape[1])])
    return np.where(signs == 0.0, 1.0, signs)


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SoundNumbers, BaseEstimator):
    """Directions of largest variance; the smaller of the (n, n) and (d, d) problems is the one that is solved.

    Parameters
    ----------
    n_components : how many; a fraction in (0, 1) for as many as explain that part of the variance; None for all.
    whiten : scale the projections to unit variance.

    Attributes
    ----------
    components_ (k, d), mean_, explained_variance_, explained_variance_ratio_, singular_values_, noise_variance_.

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
        from scipy.linalg import svd

        X = dense(read_matrix(self, X, dtype=np.float64, accept_sparse="csr", ensure_min_samples=2))
        n, d = X.shape
        self.mean_ = X.mean(axis=0)
        _, s, components = svd(X - self.mean_, full_matrices=False, check_finite=False, overwrite_a=True)
        variance = s**2 / (n - 1)
        total = float(variance.sum())
        ratio = variance / total if total > 0.0 else np.zeros_like(variance)
        k = self._count(ratio, min(n, d))
        self.components_ = components[:k] * _signs(components[:k].T)[:, None]
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


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
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
    n_jobs : threads over blocks of rows, with approx.

    Points as in `KernelRidge`; pre-images need dense vectors.

    Attributes
    ----------
    eigenvalues_ (k,) of K̃, eigenvectors_ (n, k), explained_variance_ = λ/(n − 1), explained_variance_ratio_, X_fit_;
    with approx those of the approximate kernel, features_ and components_ (m, k) instead of eigenvectors_ and X_fit_.

    >>> import numpy as np
    >>> from gramgraph.estimators import KernelPCA
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> KernelPCA(1, kernel="linear").fit_transform(X).ravel()
    array([-2.75, -1.75,  0.25,  4.25])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: KernelSpec = "rbf",
        gamma: float | str | None = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        solver: str = "auto",
        tol: float = 0.0,
        pre_image: str | None = None,
        alpha: float = 1e-3,
        approx: str | None = None,
        n_features: int = 500,
        landmarks: Any = "uniform",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.tol = tol
        self.pre_image = pre_image
        self.alpha = alpha
        self.approx = approx
        self.n_features = n_features
        self.landmarks = landmarks
        self.n_jobs = n_jobs
        self.random_state = random_state

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
        from gramgraph.kernels.inputs import count

        ones = np.ones(count(X))
        self._model = self._model.with_rows(X, ones[:, None], ones, n_jobs=self.n_jobs)
        sums = self._model.sums
        assert sums is not None
        center = sums.c[:, 0] / sums.n
        values, vectors = np.linalg.eigh(sums.G - sums.n * np.outer(center, center))
        trace = float(values.sum())
        kept = values > 1e-12 * sums.n * max(float(values[-1]), float(center @ center), 1e-300)
        values, V = (values * kept)[::-1], vectors[:, ::-1]
        k = min(self._count(len(values)), int(kept.sum()) if self.n_components is None else len(values))
        self.features_, self.eigenvalues_ = self._model.features, values[:k]
        self.components_ = V[:, :k] * _signs(V[:, :k])
        self.explained_variance_ = self.eigenvalues_ / max(sums.n - 1, 1)
        self.explained_variance_ratio_ = self.eigenvalues_ / trace if trace > 0.0 else np.zeros(k)
        scale = float(np.sqrt(self.explained_variance_[:1].sum()))
        self._dual = expansion(self.features_, self.components_, scale)
        self._shift = center @ self.components_

    def _fit(self, X: Any) -> None:
        from gramgraph.kernels.inputs import count

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
        some = k < n and (self.solver == "lanczos" or (self.solver == "auto" and n > _DENSE and k <= n // 20))
        gram: HalfGram | WholeGram
        if some and not self.kernel_.precomputed:
            gram = HalfGram.of(self.kernel_, X)
        else:
            gram = WholeGram(self.kernel_.gram(X))
        self._column_means = gram.matvec(np.full(n, 1.0 / n))
        self._mean = float(self._column_means.mean())
        trace = gram.trace() - n * self._mean
        found = self._lanczos(gram, k) if some else None
        values, vectors = self._dense(gram) if found is None else found
        self._check_spectrum(values, trace, n)
        value = self.kernel_.value
        if found is not None and (value is None or not value.positive_definite):  # the largest ones show no negative
            low = smallest_ritz_value(self._centered(gram), n, random_state=self.random_state)
            self._check_spectrum(np.append(values, low), trace, n)
        kept = values > 1e-12 * n * max(float(values[0]), abs(self._mean), 1e-300)
        if self.n_components is None:
            values, vectors, kept = values[kept], vectors[:, kept], kept[kept]
        values, vectors = values[:k] * kept[:k], vectors[:, :k]
        self.eigenvalues_, self.eigenvectors_ = values, vectors * _signs(vectors)
        self.explained_variance_ = values / (n - 1)
        self.explained_variance_ratio_ = values / trace if trace > 0.0 else np.zeros_like(values)
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

    def _lanczos(self, gram: HalfGram | WholeGram, k: int) -> tuple[FloatArray, FloatArray] | None:
        """Centering happens in the products: the matrix itself is only read."""
        return top_eigenpairs(self._centered(gram), gram.n, k, tol=self.tol, random_state=self.random_state)

    @staticmethod
    def _centered(gram: HalfGram | WholeGram) -> Callable[[FloatArray], FloatArray]:
        return lambda v: _center(gram.matvec(_center(v.ravel())))

    def _dense(self, gram: HalfGram | WholeGram) -> tuple[FloatArray, FloatArray]:
        from scipy.linalg import eigh

        K = gram.K if isinstance(gram, WholeGram) else self.kernel_.gram(self.X_fit_)
        if self.kernel_.precomputed:
            K = K.copy()
        K -= self._column_means
        K -= self._column_means[:, None]
        K += self._mean
        values, vectors = eigh(K, overwrite_a=True, check_finite=False, driver="evd" if len(K) > 1 else "ev")
        return values[::-1], vectors[:, ::-1]

    @staticmethod
    def _check_spectrum(values: FloatArray, trace: float, n: int) -> None:
        largest, smallest = max(float(values[0]), 1e-300), float(values[-1])
        if (
            not np.isfinite(values).all()
            or smallest < -1e-9 * n * largest - 1e-12
            or trace < -1e-9 * n * largest - 1e-9
        ):
            raise ModelError(
                f"The centered kernel matrix is not positive semidefinite: its eigenvalues reach from {smallest:.3g} "
                f"to {largest:.3g} (trace {trace:.3g}). Try: check the kernel or the precomputed matrix."
            )

    # -- new points ---------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> FloatArray:
        """Coordinates of points, (n, k); new points are centered with the means of the training points."""
        from gramgraph.kernels.inputs import count, take

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
        return self._fixed_point(Z)

    def _fixed_point(self, Z: FloatArray, *, iterations: int = 200) -> FloatArray:
        """z ← Σ γᵢ k(z, xᵢ) xᵢ / Σ γᵢ k(z, xᵢ), γ the expansion of P φ; steps that divide by nothing are not taken."""
        n = len(self.X_fit_)
        G = Z @ self._weights.T
        G += (1.0 - G.sum(axis=1, keepdims=True)) / n  # the mean that projections leave out
        points = self.X_fit_[self._nearest(Z)]
        for _ in range(iterations):
            W = G * self.kernel_.gram(points, self.X_fit_)
            total = W.sum(axis=1, keepdims=True)
            safe = np.abs(total) > 1e-12
            moved = np.where(safe, (W @ self.X_fit_) / np.where(safe, total, 1.0), points)
            step = np.abs(moved - points).max()
            points = moved
            if step <= 1e-10 * (1.0 + np.abs(points).max()):
                break
        return points

    def _nearest(self, Z: FloatArray) -> Any:
        """Numbers of the training points whose projections are nearest: where the fixed-point search starts."""
        T = self.eigenvectors_ * np.sqrt(self.eigenvalues_)
        return ((T * T).sum(axis=1) - 2.0 * Z @ T.T).argmin(axis=1)


def _center(V: FloatArray) -> FloatArray:
    return V - V.mean(axis=0)
