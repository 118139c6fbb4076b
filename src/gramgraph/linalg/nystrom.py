"""Nyström features: k(x, x′) ≈ φ(x)ᵀφ(x′) through m landmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from gramgraph._validation import check_positive, generator
from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.kernels.inputs import count
from gramgraph.kernels.tables import own_copy
from gramgraph.linalg.base import PositiveDefiniteError, check_finite, logger
from gramgraph.linalg.blocks import select
from gramgraph.linalg.dense import Dense, DenseFactor
from gramgraph.typing import FloatArray, IntArray, RandomState

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

Method = Literal["uniform", "leverage", "kmeans", "pivots"]


@dataclass(frozen=True, eq=False)
class NystromMap:
    """φ(x) = k(x, Z) W with W Wᵀ = k(Z, Z)⁻¹ and W upper triangular.

    `NystromMap.of` leaves out landmarks that are redundant up to rounding, so that the inverse exists: rank r ≤ m.

    φ(z)ᵀφ(z′) = k(z, z′) at the landmarks, and k − φᵀφ is positive semidefinite everywhere.

    Parameters
    ----------
    kernel : the kernel.
    landmarks : r points Z.
    W : (r, r), upper triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(0.0, 3.0, 100)[:, None]
    >>> features = nystrom(RBF(), X, 12, method="pivots")
    >>> Phi = features.transform(X)
    >>> Phi.shape, float(np.abs(Phi @ Phi.T - RBF().gram(X)).max()) < 1e-5
    ((100, 12), True)
    """

    kernel: Kernel
    landmarks: Any  # r points Z
    W: FloatArray  # (r, r), C order

    @classmethod
    def of(cls, kernel: Kernel, landmarks: Any) -> NystromMap:
        """The map through these landmarks, m³/3 operations."""
        Z = own_copy(kernel.prepare(landmarks), landmarks)
        kept, W = _inverse_root(kernel.gram(Z, Z))
        return cls(kernel, Z if kept is None else select(Z, kept), W)

    @property
    def rank(self) -> int:
        """Number of features."""
        return self.W.shape[1]

    def transform(self, X: Any, /) -> FloatArray:
        """φ(X), (n, r): n r² operations. Cut X into blocks where (n, r) is too much for memory."""
        return self.whiten(self.kernel.gram(X, self.landmarks))

    def whiten(self, K: FloatArray, /) -> FloatArray:
        """K W for rows K = k(X, Z), in K's own memory when it is C-ordered."""
        from scipy.linalg.blas import dtrmm

        if not K.size:
            return K
        K = np.ascontiguousarray(K)
        return dtrmm(1.0, self.W.T, K.T, side=0, lower=1, overwrite_b=1).T


def nystrom(
    kernel: Kernel,
    X: Any,
    m: int,
    *,
    method: Method = "uniform",
    random_state: RandomState = None,
) -> NystromMap:
    """The Nyström map with m landmarks chosen from X by `method`, see `select_landmarks`.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    m : most landmarks.
    method : "uniform", "leverage", "kmeans" or "pivots".
    random_state : seed, or a generator.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(0.0, 3.0, 20)[:, None]
    >>> nystrom(RBF(), X, 5, method="pivots").transform(X).shape
    (20, 5)
    """
    return NystromMap.of(kernel, select_landmarks(kernel, X, m, method=method, random_state=random_state))


def _inverse_root(K: FloatArray) -> tuple[IntArray | None, FloatArray]:
    """W = L⁻ᵀ with L Lᵀ = K; where that is too ill-conditioned the rows that are kept, and the W of these.

    Rows are then taken in the order of pivoted Cholesky factorization, until what is left is rounding.
    """
    from scipy.linalg.lapack import dpocon, dpstrf

    check_finite(K, "The Gram matrix of the landmarks")
    m = K.shape[0]
    try:
        factor = Dense(K).factor(max_jitter=0.0)
        assert isinstance(factor, DenseFactor)
        rcond, _ = dpocon(factor.L.T, float(np.abs(K).sum(axis=0).max()), uplo=b"U")
        if rcond > 1e-10:
            return None, _transposed_inverse(factor.lower())
    except PositiveDefiniteError:
        pass
    scale = float(K.diagonal().max())
    L, order, rank, _ = dpstrf(K, tol=10.0 * m * float(np.finfo(float).eps) * max(scale, 0.0), lower=1)
    if scale <= 0.0 or rank == 0:
        raise PositiveDefiniteError(
            f"The Gram matrix of the landmarks has no positive eigenvalue; its largest diagonal entry is {scale:.3g}. "
            f"Try: check that the kernel is positive definite on these inputs."
        )
    if rank < m:
        logger.info("Nyström: %d of %d landmarks are redundant, rank %d is kept", m - rank, m, rank)
    return order[:rank] - 1, _transposed_inverse(np.tril(L[:rank, :rank]))


def _transposed_inverse(L: FloatArray) -> FloatArray:
    """L⁻ᵀ in C order."""
    from scipy.linalg.lapack import dtrtri

    return np.ascontiguousarray(dtrtri(np.asfortranarray(L.T), lower=0)[0])


def select_landmarks(
    kernel: Kernel,
    X: Any,
    m: int,
    *,
    method: Method = "uniform",
    random_state: RandomState = None,
) -> Any:
    """At most m points that represent X.

    - "uniform": a sample without replacement;
    - "leverage": a sample without replacement with chances by approximate ridge leverage scores, n m² operations;
    - "kmeans": centers of k-means clusters (vectors only), which need not be points of X;
    - "pivots": pivots of the incomplete Cholesky factorization, n m² operations and no randomness.

    Fewer than m come back when X has fewer points or, with "pivots", when their rank is smaller.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    m : most landmarks.
    method : "uniform", "leverage", "kmeans" or "pivots".
    random_state : seed, or a generator.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(0.0, 3.0, 20)[:, None]
    >>> select_landmarks(RBF(), X, 2, method="pivots").ravel().tolist()
    [0.0, 3.0]
    """
    if method not in get_args(Method):
        hint = did_you_mean(method, get_args(Method))
        raise ModelError(f"{method!r} is not a way to choose landmarks: {', '.join(get_args(Method))}.{hint}")
    X = kernel.prepare(X)
    n = count(X)
    if m < 1 or n < 1:
        raise ModelError(f"Landmarks need m ≥ 1 and at least one point; m is {m}, there are {n} points.")
    m = min(m, n)
    rng = generator(random_state)
    if method == "kmeans":
        return _centers(X, m, rng)
    if method == "pivots":
        from gramgraph.linalg.pivoted import pivoted_cholesky

        return select(X, pivoted_cholesky(kernel, X, tol=0.0, max_rank=m).pivots)
    rows: IntArray
    if method == "uniform":
        rows = rng.choice(n, size=m, replace=False)
    else:
        scores = leverage_scores(kernel, X, m, random_state=rng)
        chances = scores + 1e-6 * scores.mean() + 1e-300  # no point is left without a chance
        rows = rng.choice(n, size=m, replace=False, p=chances / chances.sum())
    return select(X, np.sort(rows))


def leverage_scores(
    kernel: Kernel,
    X: Any,
    m: int,
    *,
    reg: float | None = None,
    random_state: RandomState = None,
) -> FloatArray:
    """Approximate ridge leverage scores [K (K + reg·I)⁻¹]ᵢᵢ from a uniform sample S of 2m points, O(n m²).

    ℓᵢ = (kᵢᵢ − kᵢS (K_SS + reg·I)⁻¹ k_Sᵢ) / reg, at most 1: never below the exact score, and equal to it with S = X. By
    default `reg` is the part of the spectrum that m landmarks cannot carry, Σ_{i > m/2} λᵢ / m, estimated from S.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    m : most landmarks.
    reg : the ridge; None for the default above.
    random_state : seed, or a generator.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(0.0, 3.0, 20)[:, None]
    >>> found = leverage_scores(RBF(), X, 10, reg=0.1, random_state=0)
    >>> found.shape, bool((found <= 1.0).all())
    ((20,), True)
    """
    X = kernel.prepare(X)
    n = count(X)
    s = min(n, 2 * m)
    rng = generator(random_state)
    S = select(X, np.sort(rng.choice(n, size=s, replace=False)))
    K_ss = kernel.gram(S, S)
    if reg is None:
        values = np.linalg.eigvalsh(K_ss)[::-1] * (n / s)
        reg = max(float(values[max(1, m // 2) :].sum()) / m, 1e-10 * float(np.abs(values).sum()), 1e-300)
    else:
        check_positive("reg", reg)
    K_ss[np.diag_indices(s)] += reg
    factor = Dense(K_ss).factor(overwrite=True)
    assert isinstance(factor, DenseFactor)
    P = factor.half_solve(kernel.gram(S, X))
    gap = kernel.diag(X) - np.einsum("ij,ij->j", P, P)
    return np.clip(gap / reg, 0.0, 1.0)


def _centers(X: Any, m: int, rng: np.random.Generator) -> FloatArray:
    """Centers of k-means clusters; mini batches for many points."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind != "f":
        raise ModelError("Landmarks by k-means need points that are vectors. Try: method='pivots'.")
    distinct = np.unique(X, axis=0)
    if len(distinct) <= m:
        return distinct
    seed = int(rng.integers(2**31))
    means: Any
    if len(X) > 10_000:
        means = MiniBatchKMeans(m, n_init=1, batch_size=max(2048, 4 * m), random_state=seed)
    else:
        means = KMeans(m, n_init=1, random_state=seed)
    return means.fit(X).cluster_centers_
