"""Kernels made from probability models: latent-variable and probability-product kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.kernels.base import Cotangent, Kernel, KernelError, Pull, as_points, parameter
from gramgraph.kernels.maps import FunctionMap
from gramgraph.typing import FloatArray


def same_rows(name: str, rows: FloatArray, n: int) -> FloatArray:
    """A finite matrix with n rows, or an error."""
    if rows.ndim != 2 or len(rows) != n or not np.isfinite(rows).all():
        raise KernelError(f"{name}: expected a finite matrix with {n} rows, one per point; got shape {rows.shape}.")
    return rows


def as_sequence(X: Any) -> Any:
    """Data frames and arrays as they are (rows are points), other sequences as lists."""
    return X if hasattr(X, "shape") or isinstance(X, list) else list(X)


def features_pullback(
    kernel: Kernel, features: Callable[[Any], FloatArray], X: Any, Y: Any | None, inputs: bool
) -> tuple[FloatArray, Pull]:
    """K = Φ(X) Φ(Y)ᵀ of features without parameters; gradients by points that are numbers are numeric ones."""
    A = features(X)
    B = A if Y is None else features(Y)
    if not inputs:
        return A @ B.T, lambda bar: kernel.cotangent({})
    for Z in (X, Y):
        if Z is not None and not _are_numbers(Z):
            raise KernelError(
                f"{type(kernel).__name__}: its inputs are not rows of real numbers, so there is no gradient by them."
            )
    slopes = FunctionMap(lambda Z: features(Z if np.ndim(X) == 2 else Z[:, 0]))

    def pull(bar: FloatArray) -> Cotangent:
        if Y is None:
            return kernel.cotangent({}, slopes.pull(as_points(X), bar @ B + bar.T @ A)[1])
        left, right = slopes.pull(as_points(X), bar @ B)[1], slopes.pull(as_points(Y), bar.T @ A)[1]
        return kernel.cotangent({}, left, right)

    return A @ B.T, pull


def _are_numbers(X: Any) -> bool:
    """Whether points are real numbers or rows of them, which can be moved a little."""
    try:
        return not hasattr(X, "columns") and np.asarray(X).dtype.kind == "f" and np.ndim(X) in (1, 2)
    except ValueError:
        return False


@dataclass(frozen=True, eq=False, repr=False)
class LatentVariable(Kernel):
    """k(x, x′) = Σ_z p(z) p(x | z) p(x′ | z): how probable it is that x and x′ come from one hidden cause, both.

    `prior` is p(z), shape (c,). `likelihood` is a table p(x | z), shape (c, s) (points are then states 0 … s − 1), or a
    function from n points to the matrix (n, c) of p(x_i | z). Cost O(n m c).

    Parameters
    ----------
    prior : p(z), (c,).
    likelihood : p(x | z), a table or a function.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> k = LatentVariable([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]])
    >>> k.gram([0, 1])
    array([[0.425, 0.125],
           [0.125, 0.325]])
    """

    prior: FloatArray
    likelihood: FloatArray | Callable[[Any], FloatArray] = None  # type: ignore[assignment]  # asked for below

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.likelihood is None:
            raise KernelError(
                "LatentVariable needs both p(z) and p(x | z): a table of one row a cause, or a function of points. Use "
                "LatentVariable([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]), for example."
            )
        try:
            prior = np.array(self.prior, dtype=np.float64)
        except (TypeError, ValueError):
            raise KernelError(
                f"LatentVariable.prior: expected probabilities (c,) with sum 1, got {self.prior!r:.80}."
            ) from None
        if prior.ndim != 1 or (prior < 0).any() or not np.isclose(prior.sum(), 1.0, rtol=0, atol=1e-6):
            raise KernelError(f"LatentVariable.prior: expected probabilities (c,) with sum 1, got {self.prior!r}.")
        object.__setattr__(self, "prior", prior)
        if not callable(self.likelihood):
            try:
                table = np.array(self.likelihood, dtype=np.float64)
            except (TypeError, ValueError):
                raise KernelError(
                    f"LatentVariable.likelihood: expected a function or a table ({len(prior)}, s) of numbers, got "
                    f"{self.likelihood!r:.80}."
                ) from None
            good = table.ndim == 2 and len(table) == len(prior) and not (table < 0).any()
            if not good or not np.allclose(table.sum(1), 1.0, rtol=0, atol=1e-6):
                raise KernelError(
                    f"LatentVariable.likelihood: expected a function or a table ({len(prior)}, s), rows with sum 1; "
                    f"got shape {table.shape}."
                )
            object.__setattr__(self, "likelihood", table)

    def prepare(self, X: Any) -> Any:
        """States for a table; whatever the function takes otherwise."""
        if callable(self.likelihood):
            return as_sequence(X)
        states = np.asarray(X)
        states = states[:, 0] if states.ndim == 2 and states.shape[1] == 1 else states
        size = self.likelihood.shape[1]
        if states.ndim != 1 or (
            states.size and (states.dtype.kind not in "iu" or states.min() < 0 or states.max() >= size)
        ):
            raise KernelError(f"LatentVariable: expected states (n,), whole numbers from 0 to {size - 1}.")
        return states

    def _features(self, X: Any) -> FloatArray:
        """√p(z) p(x | z), shape (n, c)."""
        P = np.asarray(self.likelihood(X)) if callable(self.likelihood) else self.likelihood[:, X].T
        P = same_rows("LatentVariable.likelihood(X)", P, len(X))
        if P.shape[1] != len(self.prior):
            raise KernelError(
                f"LatentVariable.likelihood(X): expected {len(self.prior)} columns, one a cause; got shape {P.shape}."
            )
        return P * np.sqrt(self.prior)

    def _diag(self, X: Any) -> FloatArray:
        return np.square(self._features(X)).sum(1)

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        F = self._features(X)
        return F @ (F if Y is None else self._features(Y)).T

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        return features_pullback(self, self._features, X, Y, inputs)


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalProbabilityProduct(Kernel):
    """k(p, q) = Σ_s (p_s q_s)^power on rows of probabilities (n, s). Cost O(n m s).

    Power 1/2 is the Bhattacharyya affinity, with k(p, p) = 1; power 1 is the chance that draws from p and q agree.
    Gradients by the inputs are those of the formula in every p_s; moves that keep the sum 1 are the meaningful ones.

    Parameters
    ----------
    power : the exponent.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> CategoricalProbabilityProduct().gram([[0.5, 0.5]], [[0.5, 0.5], [1.0, 0.0]]).round(4)
    array([[1.    , 0.7071]])
    """

    power: float = parameter(0.5, bounds=(1e-2, 10.0))

    def prepare(self, X: Any) -> FloatArray:
        """Rows of numbers ≥ 0 with sum 1."""
        P = super().prepare(X)
        bad = (P < 0).any(1) | (np.abs(P.sum(1) - 1.0) > 1e-6)
        if bad.any():
            i = int(bad.argmax())
            raise KernelError(f"CategoricalProbabilityProduct: expected rows of probabilities; row {i} is {P[i]}.")
        return P

    def _diag(self, X: FloatArray) -> FloatArray:
        return (X ** (2.0 * self.power)).sum(1)

    def _pullback(self, X: FloatArray, Y: FloatArray | None, inputs: bool) -> tuple[FloatArray, Pull]:
        A = X**self.power
        B = A if Y is None else Y**self.power

        def slope(Z: FloatArray) -> FloatArray:  # of Z ** power; 0 where a probability is 0 and the slope may not exist
            return self.power * np.where(Z > 0, Z, 1.0) ** (self.power - 1.0) * (Z > 0)

        def pull(bar: FloatArray) -> Cotangent:
            slope_A = A * np.log(np.where(X > 0, X, 1.0))
            slope_B = slope_A if Y is None else B * np.log(np.where(Y > 0, Y, 1.0))
            gradients = {"power": np.vdot(bar @ B, slope_A) + np.vdot(bar @ slope_B, A)}
            if not inputs:
                return self.cotangent(gradients)
            left = (bar @ B) * slope(X)
            right = (bar.T @ A) * slope(X if Y is None else Y)
            return self.cotangent(gradients, left + right) if Y is None else self.cotangent(gradients, left, right)

        return A @ B.T, pull


@dataclass(frozen=True, eq=False, repr=False)
class GaussianProbabilityProduct(Kernel):
    """k(p, q) = ∫ p(x)^power q(x)^power dx of two normal distributions, in closed form.

    Inputs: a list of pairs (mean (d,), covariance), the covariance a matrix (d, d), a vector (d,) of variances or one
    number; or of `Gaussian` and `Normal` distributions. With S = Σ + Σ′ and power ρ:
    log k = (1 − ρ)(d log 2π + ½ log|Σ||Σ′|) − (d/2) log 2πρ − ½ log|S| − (ρ/2)(μ − μ′)ᵀS⁻¹(μ − μ′).
    Power 1/2 is the Bhattacharyya affinity, power 1 the expected likelihood. Cost O(d³) a pair. Gradients by the inputs
    have the mean and the rows of the covariance side by side, (n, d + d²).

    Parameters
    ----------
    power : the exponent.
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> round(float(GaussianProbabilityProduct().gram([([0.0], 1.0)], [([2.0], 1.0)])[0, 0]), 6)  # e^(−4/8)
    0.606531
    """

    power: float = parameter(0.5, bounds=(1e-2, 10.0))

    def prepare(self, X: Any) -> list[tuple[FloatArray, FloatArray]]:
        """A list of (mean, covariance) of one dimension, covariances positive definite."""
        out = []
        for i, item in enumerate(X):
            if not isinstance(item, (tuple, list)) and hasattr(item, "mean"):
                item = (item.mean, getattr(item, "cov", getattr(item, "variance", None)))
            if not isinstance(item, (tuple, list)) or len(item) != 2 or callable(item[0]) or item[1] is None:
                raise KernelError(
                    "GaussianProbabilityProduct: expected pairs (mean, covariance), Gaussian or Normal distributions; "
                    f"entry {i} is {item!r}."
                )
            mean = np.atleast_1d(np.asarray(item[0], dtype=np.float64))
            cov = np.asarray(item[1], dtype=np.float64)
            cov = np.diag(np.broadcast_to(cov, len(mean))) if cov.ndim < 2 else cov
            if mean.ndim != 1 or cov.shape != (len(mean), len(mean)) or not np.allclose(cov, cov.T):
                raise KernelError(
                    f"GaussianProbabilityProduct: expected mean (d,) and symmetric covariance (d, d); entry {i} has "
                    f"{mean.shape} and {cov.shape}."
                )
            out.append((mean, cov))
        if len({len(mean) for mean, _ in out}) > 1:
            raise KernelError("GaussianProbabilityProduct: expected distributions of one dimension; they have several.")
        return out

    @staticmethod
    def _arrays(X: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray, FloatArray]:
        means, covs = np.stack([m for m, _ in X]), np.stack([c for _, c in X])
        try:
            half = np.linalg.cholesky(covs)
        except np.linalg.LinAlgError:
            raise KernelError("GaussianProbabilityProduct: expected positive definite covariances.") from None
        return means, covs, 2.0 * np.log(np.diagonal(half, axis1=1, axis2=2)).sum(1)

    def _logs(self, means: FloatArray, S: FloatArray, logdets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log k and its derivative by the power; means are differences, logdets sums."""
        d = means.shape[-1]
        half = np.linalg.cholesky(S)
        white = np.linalg.solve(half, means[..., None])[..., 0]
        mahalanobis = np.square(white).sum(-1)
        log_S = 2.0 * np.log(np.diagonal(half, axis1=-2, axis2=-1)).sum(-1)
        volume = d * np.log(2.0 * np.pi) + 0.5 * logdets
        log_k = (1.0 - self.power) * volume - 0.5 * d * np.log(2.0 * np.pi * self.power) - 0.5 * log_S
        return log_k - 0.5 * self.power * mahalanobis, -volume - 0.5 * d / self.power - 0.5 * mahalanobis

    def _diag(self, X: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
        if not X:
            return np.zeros(0)
        means, covs, logdets = self._arrays(X)
        return np.exp(self._logs(np.zeros_like(means), 2.0 * covs, 2.0 * logdets)[0])

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        K, slope = np.zeros((len(X), len(X if Y is None else Y))), np.zeros((len(X), len(X if Y is None else Y)))
        if K.size:
            means, covs, logdets = self._arrays(X)
            other = (means, covs, logdets) if Y is None else self._arrays(Y)
            for i in range(len(X)):  # a row at a time: (m, d, d) numbers
                log_k, slope[i] = self._logs(means[i] - other[0], covs[i] + other[1], logdets[i] + other[2])
                K[i] = np.exp(log_k)
            if Y is None:
                K = 0.5 * (K + K.T)

        def pull(bar: FloatArray) -> Cotangent:
            gradients = {"power": np.vdot(bar * K, slope)}
            if not inputs or not K.size:
                return self.cotangent(gradients)
            left = self._moves(X, X if Y is None else Y, bar * K)
            right = self._moves(X if Y is None else Y, X, (bar * K).T)
            return self.cotangent(gradients, left + right) if Y is None else self.cotangent(gradients, left, right)

        return K, pull

    def _moves(self, X: Any, Y: Any, W: FloatArray) -> FloatArray:
        """Σ_j W_ij ∂ log k(x_i, y_j) / ∂x_i, mean and covariance side by side."""
        means, covs, _ = self._arrays(X)
        other_means, other_covs, _ = self._arrays(Y)
        d = means.shape[1]
        out = np.empty((len(X), d + d * d))
        for i in range(len(X)):
            inverse = np.linalg.inv(covs[i] + other_covs)  # (m, d, d)
            v = np.einsum("mab,mb->ma", inverse, means[i] - other_means)
            out[i, :d] = -self.power * W[i] @ v
            outer = 0.5 * self.power * np.einsum("m,ma,mb->ab", W[i], v, v) - 0.5 * np.einsum(
                "m,mab->ab", W[i], inverse
            )
            out[i, d:] = (outer + 0.5 * (1.0 - self.power) * W[i].sum() * np.linalg.inv(covs[i])).ravel()
        return out
