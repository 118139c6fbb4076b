"""The Gaussian as a value: everything linear that can be done to it gives a Gaussian again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._numerics.gaussian.root import symmetric_root
from gramgraph._validation import generator
from gramgraph.distributions._check import array, covariance_like, frozen, matrix, vector, weights_of
from gramgraph.distributions._gaussian_door import check_form, coordinates, linear_map, rows_of, split_evidence
from gramgraph.distributions._gaussian_family import GaussianFamily
from gramgraph.distributions._root import Root, psd_root, symmetric
from gramgraph.distributions.base import count_of_draws
from gramgraph.exceptions import ImpossibleEvidenceError, ModelError, did_you_mean
from gramgraph.typing import FloatArray, RandomState

_LOG_2PI = float(np.log(2.0 * np.pi))
_OFF = 1e-7  # a point further than this from the support, relative to its size, is off the support


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(GaussianFamily):
    """N(μ, Σ) on R^d: products, affine maps, marginals, conditionals and Bayes' rule in closed form.

    Σ may be singular. The distribution then lives on the affine support μ + range(Σ): densities and entropies are
    taken with respect to the volume on the support, `log_density` is −inf off it, `precision` is the Moore–Penrose
    inverse. What is given is checked once, O(d³); results of operations are not checked again.

    Parameters
    ----------
    mean : μ, (d,); a number where d = 1
    cov : Σ, (d, d), or d variances, or one variance for all coordinates

    Examples
    --------
    >>> g = Gaussian([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]])
    >>> g.condition({1: 2.0})
    Gaussian(mean=[0.5], cov=[[1.5]])
    >>> g.affine([[1.0, 1.0]])
    Gaussian(mean=[1], cov=[[6]])
    >>> Gaussian(0.0, 1.0) * Gaussian(2.0, 1.0)
    Gaussian(mean=[1], cov=[[0.5]])
    """

    mean: FloatArray  # (d,)
    cov: FloatArray  # (d, d)

    def __post_init__(self) -> None:
        mean = vector("mean", self.mean)
        self._set(mean, covariance_like("cov", self.cov, len(mean)))
        self._root  # noqa: B018  definiteness is checked here, and the factor kept

    def _set(self, mean: FloatArray, cov: FloatArray, scale: FloatArray | None = None) -> None:
        object.__setattr__(self, "mean", frozen(mean))
        object.__setattr__(self, "cov", frozen(cov))
        object.__setattr__(self, "_scale", scale)

    @classmethod
    def _made(cls, mean: FloatArray, cov: FloatArray, scale: FloatArray | None = None) -> Gaussian:
        """From numbers that are right by construction; `scale` as in `psd_root`."""
        new = object.__new__(cls)
        new._set(mean, symmetric(cov), scale)
        return new

    @classmethod
    def from_precision(cls, h: Any, precision: Any) -> Gaussian:
        """N(P⁻¹ h, P⁻¹) from the canonical form exp(hᵀx − ½ xᵀP x); P (d, d) must be positive definite.

        >>> Gaussian.from_precision([2.0, 0.0], [[2.0, 0.0], [0.0, 4.0]])
        Gaussian(mean=[1, 0], cov=[[0.5, 0], [0, 0.25]])
        """
        h = vector("h", h)
        P = covariance_like("precision", precision, len(h))
        root = psd_root(P, "precision")
        if not root.full:
            raise ModelError(
                f"precision must be positive definite; its rank is {root.rank} of {len(h)}, so that exp(hᵀx − ½ xᵀPx) "
                f"has no finite integral. Try: multiply by a prior first, or keep it as a factor."
            )
        half = root.solve(np.eye(len(h)))
        new = cls._made(half.T @ (half @ h), half.T @ half)
        new.__dict__["precision"] = frozen(P)
        new.__dict__["shift"] = frozen(h)
        return new

    @classmethod
    def from_samples(cls, X: Any, *, weights: Any = None) -> Gaussian:
        """Maximum likelihood from rows of X (n, d): the mean and the covariance with divisor n (or Σ weights).

        >>> Gaussian.from_samples([[0.0, 0.0], [2.0, 4.0]])
        Gaussian(mean=[1, 2], cov=[[1, 2], [2, 4]])
        """
        X = array("X", X)
        X = matrix("X", X[:, None] if X.ndim == 1 else X)
        if not len(X):
            raise ModelError("X must have at least one row.")
        w = weights_of(weights, len(X))
        w = w / w.sum()
        mean = w @ X
        D = (X - mean) * np.sqrt(w)[:, None]
        return cls(mean, D.T @ D)

    # --- algebra --------------------------------------------------------------------------------------------------

    def product(self, other: Gaussian, /) -> Gaussian:
        """The normalized product of two densities: precisions and shifts add.

        C = A − A (A + B)⁻¹ A, c = a + A (A + B)⁻¹ (b − a), which needs no inverse of A or B and so holds for singular
        ones. `log_overlap` is the logarithm of what was divided out.

        >>> Gaussian(0.0, 1.0).product(Gaussian(3.0, 2.0))
        Gaussian(mean=[1], cov=[[0.6667]])
        """
        self._same_space(other, "product")
        return self.bayes(np.eye(self.dim), None, other.cov, other.mean)

    def log_overlap(self, other: Gaussian, /) -> float:
        """log ∫ p(x) q(x) dx = log N(a; b, A + B), the scale of the product.

        >>> round(Gaussian(0.0, 1.0).log_overlap(Gaussian(0.0, 1.0)), 4)
        -1.2655
        """
        self._same_space(other, "overlap")
        return float(Gaussian._made(other.mean, self.cov + other.cov).log_density(self.mean[None])[0])

    def quotient(self, other: Gaussian, /) -> Gaussian:
        """The normalized quotient p / q: precisions and shifts subtract. Where q is not wider than p, there is none.

        >>> p, q = Gaussian(0.0, 1.0), Gaussian(1.0, 3.0)
        >>> (p * q) / q
        Gaussian(mean=[0], cov=[[1]])
        """
        self._same_space(other, "quotient")
        if self.is_degenerate or other.is_degenerate:
            raise ModelError("A quotient needs two positive definite covariances; one of these is singular.")
        P = self.precision - other.precision
        root = None
        if (np.diagonal(P) > 0.0).all():
            try:
                root = psd_root(P, "precision", np.diagonal(self.precision))
            except ModelError:
                root = None
        if root is None or not root.full:
            raise ModelError(
                "The quotient is not a Gaussian: the precision of the divisor must be below that of the dividend in "
                "every direction (the divisor must be wider)."
            )
        return Gaussian.from_precision(self.shift - other.shift, P)

    def affine(self, A: Any, b: Any = None, noise: Any = None) -> Gaussian:
        """The distribution of A x + b + ε with ε ~ N(0, noise): N(A μ + b, A Σ Aᵀ + noise); O(k d²).

        A is (k, d), or (d,) for one combination, or a number; noise is (k, k), k variances, or one variance.

        >>> Gaussian([1.0, 2.0], [1.0, 4.0]).affine([1.0, -1.0], 0.5, noise=0.25)
        Gaussian(mean=[-0.5], cov=[[5.25]])
        """
        A, b, R = linear_map(A, b, noise, self.dim)
        return Gaussian._made(A @ self.mean + b, A @ self.cov @ A.T + R)

    def joint(self, A: Any, b: Any = None, noise: Any = None) -> Gaussian:
        """The distribution of (x, y) with y = A x + b + ε, ε ~ N(0, noise), on R^(d + k).

        >>> Gaussian(1.0, 2.0).joint(3.0, 0.0, noise=1.0)
        Gaussian(mean=[1, 3], cov=[[2, 6], [6, 19]])
        """
        A, b, R = linear_map(A, b, noise, self.dim)
        cross = A @ self.cov
        cov = np.block([[self.cov, cross.T], [cross, cross @ A.T + R]])
        return Gaussian._made(np.concatenate([self.mean, A @ self.mean + b]), cov)

    def marginal(self, indices: int | Sequence[int], /) -> Gaussian:
        """The distribution of some coordinates, in the order given.

        >>> Gaussian([1.0, 2.0, 3.0], [1.0, 4.0, 9.0]).marginal([2, 0])
        Gaussian(mean=[3, 1], cov=[[9, 0], [0, 1]])
        """
        keep = coordinates(indices, self.dim)
        scale = getattr(self, "_scale", None)
        return Gaussian._made(self.mean[keep], self.cov[np.ix_(keep, keep)], None if scale is None else scale[keep])

    def condition(
        self, which: Mapping[int, float] | int | Sequence[int], values: Any = None, /, *, form: str = "gain"
    ) -> Gaussian:
        """The distribution of the other coordinates, in their order, once some are known.

        form="gain": N(μ_a + G (x_b − μ_b), Σ_aa − G Σ_ba) with the gain G = Σ_ab Σ_bb⁻¹; O(b³ + a b d).
        form="precision": N(P_aa⁻¹ (h_a − P_ab x_b), P_aa⁻¹), cheaper where the precision is known; it needs Σ⁻¹.
        Values off the support of a singular Σ_bb raise `ImpossibleEvidenceError`.

        >>> g = Gaussian([0.0, 0.0, 0.0], [[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
        >>> g.condition({0: 1.0, 2: 1.0})
        Gaussian(mean=[1], cov=[[1]])
        >>> g.condition([0, 2], [1.0, 1.0], form="precision")
        Gaussian(mean=[1], cov=[[1]])
        """
        check_form(form)
        seen, x, rest = split_evidence(which, values, self.dim)
        if form == "precision":
            self._need_full("condition(form='precision')")
            P = self.precision
            known = P[np.ix_(rest, seen)] @ x
            return Gaussian.from_precision(self.shift[rest] - known, P[np.ix_(rest, rest)])
        part = self.marginal(seen)
        W = part._root.solve(self.cov[np.ix_(seen, rest)])  # Σ_ab Σ_bb⁻¹ Σ_ba = Wᵀ W
        z = part._whiten(x, "The observed values")
        S = self.cov[np.ix_(rest, rest)]
        return Gaussian._made(self.mean[rest] + W.T @ z, S - W.T @ W, self._reach()[rest])

    def bayes(self, A: Any, b: Any, noise: Any, observed: Any, *, form: str = "gain") -> Gaussian:
        """The posterior of x once y = A x + b + ε, ε ~ N(0, noise), was observed; this Gaussian is the prior.

        form="gain": μ + G (y − A μ − b) with G = Σ Aᵀ (A Σ Aᵀ + R)⁻¹, covariance (I − G A) Σ (I − G A)ᵀ + G R Gᵀ.
        form="precision": P = Σ⁻¹ + Aᵀ R⁻¹ A and P⁻¹ (Σ⁻¹ μ + Aᵀ R⁻¹ (y − b)); it needs both inverses.
        log p(y) is `affine(A, b, noise).log_density(y)`. b = None is zero, noise = None an exact observation.

        >>> Gaussian(0.0, 1.0).bayes(1.0, 0.0, 0.5, 3.0)
        Gaussian(mean=[2], cov=[[0.3333]])
        """
        check_form(form)
        A, b, R = linear_map(A, b, noise, self.dim)
        y = vector("observed", observed, len(A))
        if form == "precision":
            return self._bayes_precision(A, y - b, R)
        AS = A @ self.cov
        seen = Gaussian._made(A @ self.mean + b, AS @ A.T + R)
        z = seen._whiten(y, "The observation")
        G = _gain(seen._root, AS)
        T = np.eye(self.dim) - G @ A
        cov = T @ self.cov @ T.T + G @ R @ G.T
        return Gaussian._made(self.mean + seen._root.solve(AS).T @ z, cov, self._reach())

    def _bayes_precision(self, A: FloatArray, y: FloatArray, R: FloatArray) -> Gaussian:
        self._need_full("bayes(form='precision')")
        root = psd_root(R, "noise")
        if not root.full:
            raise ModelError(
                "bayes(form='precision') needs a positive definite noise; form='gain' takes a singular one."
            )
        W = root.solve(A)
        return Gaussian.from_precision(self.shift + W.T @ root.solve(y), self.precision + W.T @ W)

    # --- numbers --------------------------------------------------------------------------------------------------

    def log_density(self, X: Any, /) -> Any:
        """log N(x; μ, Σ): a number for one point (d,), an array for rows (n, d); O(n d²).

        For d = 1 points may also be a number or an (n,) array.

        >>> round(Gaussian([0.0, 0.0], 1.0).log_density([0.0, 0.0]), 4)
        -1.8379
        """
        points, single = rows_of(X, self.dim)
        finite: Any = np.isfinite(points).all(axis=1)
        if not finite.all():
            points = np.where(finite[:, None], points, self.mean)
        D = points - self.mean
        root = self._root
        z = root.solve_rows(D)
        out = -0.5 * (np.einsum("ij,ij->i", z, z) + root.log_det + root.rank * _LOG_2PI)
        out[~finite] = -np.inf
        if not root.full:
            out[root.gap(D.T, np.abs(points.T) + np.abs(self.mean)[:, None]) > _OFF] = -np.inf
        return float(out[0]) if single else out

    def sample(self, n: int = 1, random_state: RandomState = None, *, method: str = "cholesky") -> FloatArray:
        """n draws, (n, d): μ + F z with z standard normal and Σ = F Fᵀ.

        method="cholesky" takes the Cholesky factor (a symmetric root where Σ is singular), "eigen" takes the symmetric
        root U diag(λ)^½ Uᵀ of the eigenvectors. O(d³) the first time, then O(n d²).

        >>> Gaussian([0.0, 5.0], [1.0, 0.0]).sample(2, random_state=0)[:, 1].tolist()
        [5.0, 5.0]
        """
        n = count_of_draws(n)
        if method == "cholesky":
            F = self._root.for_draws
        elif method == "eigen":
            F = symmetric_root(self.cov)
            F = F if self._root.full else self._root.F @ (self._root.solve(F))  # nothing may leave the support
        else:
            raise ModelError(
                f"method must be 'cholesky' or 'eigen'; it is {method!r}.{did_you_mean(method, ('cholesky', 'eigen'))}"
            )
        return self.mean + generator(random_state).standard_normal((n, F.shape[1])) @ F.T

    def entropy(self) -> float:
        """½ log |2πe Σ|, on the support.

        >>> round(Gaussian(0.0, 1.0).entropy(), 4)
        1.4189
        """
        return 0.5 * (self._root.log_det + self.rank * (1.0 + _LOG_2PI))

    def kl(self, other: Gaussian, /) -> float:
        """KL(p ‖ q) = ½ [tr(Σ_q⁻¹ Σ_p) + δᵀ Σ_q⁻¹ δ − d + log |Σ_q| / |Σ_p|]; infinite where the supports differ.

        >>> Gaussian(0.0, 1.0).kl(Gaussian(2.0, 1.0))
        2.0
        """
        self._same_space(other, "divergence")
        mine, root = self._root, other._root
        delta = self.mean - other.mean
        if mine.rank != root.rank:
            return float("inf")
        if not root.full:
            moved = np.column_stack([delta, mine.F])
            size = np.column_stack([np.abs(self.mean) + np.abs(other.mean), np.abs(mine.F)])
            if (root.gap(moved, size) > _OFF).any():
                return float("inf")
        Z, z = root.solve(mine.F), root.solve(delta)
        return max(0.0, 0.5 * float((Z * Z).sum() + z @ z - root.rank + root.log_det - mine.log_det))

    def allclose(self, other: Gaussian, /, *, rtol: float = 1e-9, atol: float = 1e-12) -> bool:
        """Whether means and covariances are equal up to rounding.

        >>> Gaussian(0.0, 1.0).allclose(Gaussian(0.0, 1.0 + 1e-13))
        True
        """
        return (
            self.dim == other.dim
            and np.allclose(self.mean, other.mean, rtol=rtol, atol=atol)
            and np.allclose(self.cov, other.cov, rtol=rtol, atol=atol)
        )

    def __repr__(self) -> str:
        if self.dim > 6:
            return f"Gaussian(dim={self.dim}, rank={self.rank})"
        return f"Gaussian(mean={_shown(self.mean)}, cov=[{', '.join(_shown(row) for row in self.cov)}])"

    def _whiten(self, x: FloatArray, what: str) -> FloatArray:
        delta = x - self.mean
        root = self._root
        if not root.full and root.gap(delta[:, None], (np.abs(x) + np.abs(self.mean))[:, None])[0] > _OFF:
            raise ImpossibleEvidenceError(
                f"{what} {_shown(x)} cannot occur: the covariance there is singular (rank {root.rank} of {self.dim}) "
                f"and the values lie off its support."
            )
        return root.solve(delta)

    def _reach(self) -> FloatArray:
        """Variances at which rounding happened so far, (d,)."""
        scale = getattr(self, "_scale", None)
        return np.diagonal(self.cov) if scale is None else np.maximum(scale, np.diagonal(self.cov))

    def _same_space(self, other: Any, what: str) -> None:
        if not isinstance(other, Gaussian):
            raise ModelError(f"A {what} needs another Gaussian; got {type(other).__name__}.")
        if other.dim != self.dim:
            raise ModelError(
                f"A {what} needs two Gaussians on the same space; these have {self.dim} and {other.dim} coordinates."
            )

    def _need_full(self, what: str) -> None:
        if self.is_degenerate:
            raise ModelError(
                f"{what} needs a positive definite covariance; this one has rank {self.rank} of {self.dim}. What "
                f"helps: form='gain'."
            )


def _gain(root: Root, AS: FloatArray) -> FloatArray:
    """Σ Aᵀ (F Fᵀ)⁺, (d, k)."""
    W = root.solve(AS)
    if root.full:
        from scipy.linalg import solve_triangular

        return solve_triangular(root.F, W, lower=True, trans="T", check_finite=False).T
    return W.T @ root.solve(np.eye(len(root.F)))


def _shown(values: FloatArray) -> str:
    return "[" + ", ".join(f"{v + 0.0:.4g}" for v in values) + "]"
