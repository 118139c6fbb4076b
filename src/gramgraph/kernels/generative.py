"""Kernels made from probability models: latent-variable, probability-product, Fisher."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gramgraph.exceptions import did_you_mean, listing
from gramgraph.kernels.base import Cotangent, Kernel, KernelError, Pull, parameter
from gramgraph.typing import FloatArray

__all__ = [
    "CategoricalProbabilityProduct",
    "Fisher",
    "GaussianProbabilityProduct",
    "LatentVariable",
    "NetworkScore",
    "ScoreModel",
]


def _same_rows(name: str, rows: FloatArray, n: int) -> FloatArray:
    if rows.ndim != 2 or len(rows) != n or not np.isfinite(rows).all():
        raise KernelError(f"{name}: expected a finite matrix with {n} rows, one a point; got shape {rows.shape}.")
    return rows


def _as_sequence(X: Any) -> Any:
    """Data frames and arrays as they are (rows are points), other sequences as lists."""
    return X if hasattr(X, "shape") or isinstance(X, list) else list(X)


@dataclass(frozen=True, eq=False, repr=False)
class LatentVariable(Kernel):
    """k(x, x′) = Σ_z p(z) p(x | z) p(x′ | z): how probable it is that x and x′ come from one hidden cause, both.

    `prior` is p(z), shape (c,). `likelihood` is a table p(x | z), shape (c, s) (points are then states 0 … s − 1), or a
    function from n points to the matrix (n, c) of p(x_i | z). Cost O(n m c).

    >>> k = LatentVariable([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]])
    >>> k.gram([0, 1])
    array([[0.425, 0.125],
           [0.125, 0.325]])
    """

    prior: FloatArray
    likelihood: FloatArray | Callable[[Any], FloatArray]

    def __post_init__(self) -> None:
        super().__post_init__()
        prior = np.array(self.prior, dtype=np.float64)
        if prior.ndim != 1 or (prior < 0).any() or not np.isclose(prior.sum(), 1.0, rtol=0, atol=1e-6):
            raise KernelError(f"LatentVariable.prior: expected probabilities (c,) with sum 1, got {self.prior!r}.")
        object.__setattr__(self, "prior", prior)
        if not callable(self.likelihood):
            table = np.array(self.likelihood, dtype=np.float64)
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
            return _as_sequence(X)
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
        P = _same_rows("LatentVariable.likelihood(X)", P, len(X))
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
        if inputs:
            raise KernelError("LatentVariable: there is no gradient by its inputs.")
        return self._gram(X, Y), lambda bar: self.cotangent({})


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalProbabilityProduct(Kernel):
    """k(p, q) = Σ_s (p_s q_s)^power on rows of probabilities (n, s). Cost O(n m s).

    Power 1/2 is the Bhattacharyya affinity, with k(p, p) = 1; power 1 is the chance that draws from p and q agree.

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
        if inputs:
            raise KernelError("CategoricalProbabilityProduct: there is no gradient by its inputs.")
        A = X**self.power
        B = A if Y is None else Y**self.power

        def pull(bar: FloatArray) -> Cotangent:
            slope_A = A * np.log(np.where(X > 0, X, 1.0))
            slope_B = slope_A if Y is None else B * np.log(np.where(Y > 0, Y, 1.0))
            return self.cotangent({"power": np.vdot(bar @ B, slope_A) + np.vdot(bar @ slope_B, A)})

        return A @ B.T, pull


@dataclass(frozen=True, eq=False, repr=False)
class GaussianProbabilityProduct(Kernel):
    """k(p, q) = ∫ p(x)^power q(x)^power dx of two normal distributions, in closed form.

    Inputs: a list of pairs (mean (d,), covariance), the covariance a matrix (d, d), a vector (d,) of variances or one
    number. With S = Σ + Σ′ and power ρ:
    log k = (1 − ρ)(d log 2π + ½ log|Σ||Σ′|) − (d/2) log 2πρ − ½ log|S| − (ρ/2)(μ − μ′)ᵀS⁻¹(μ − μ′).
    Power 1/2 is the Bhattacharyya affinity, power 1 the expected likelihood. Cost O(d³) a pair.

    >>> round(float(GaussianProbabilityProduct().gram([([0.0], 1.0)], [([2.0], 1.0)])[0, 0]), 6)  # e^(−4/8)
    0.606531
    """

    power: float = parameter(0.5, bounds=(1e-2, 10.0))

    def prepare(self, X: Any) -> list[tuple[FloatArray, FloatArray]]:
        """A list of (mean, covariance) of one dimension, covariances positive definite."""
        out = []
        for i, item in enumerate(X):
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                raise KernelError(
                    f"GaussianProbabilityProduct: expected pairs (mean, covariance); entry {i} is {item!r}."
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
        if inputs:
            raise KernelError("GaussianProbabilityProduct: there is no gradient by its inputs.")
        K, slope = np.zeros((len(X), len(X if Y is None else Y))), np.zeros((len(X), len(X if Y is None else Y)))
        if K.size:
            means, covs, logdets = self._arrays(X)
            other = (means, covs, logdets) if Y is None else self._arrays(Y)
            for i in range(len(X)):  # a row at a time: (m, d, d) numbers
                log_k, slope[i] = self._logs(means[i] - other[0], covs[i] + other[1], logdets[i] + other[2])
                K[i] = np.exp(log_k)
            if Y is None:
                K = 0.5 * (K + K.T)
        return K, lambda bar: self.cotangent({"power": np.vdot(bar * K, slope)})


# ------------------------------------------------------------------------------------------------------ Fisher


@runtime_checkable
class ScoreModel(Protocol):
    """A fitted model whose log-likelihood can be differentiated by its parameters."""

    def fisher_score(self, X: Any, /) -> FloatArray:
        """∂ log p(x_i) / ∂ parameters, one row a sample: (n, p)."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Fisher(Kernel):
    """k(x, x′) = s(x)ᵀ I⁻¹ s(x′), s(x) = ∂ log p(x) / ∂ parameters of a fitted model, I its information matrix.

    `model` has a method `fisher_score(X)` giving (n, p); a discrete Bayesian network becomes `NetworkScore(network)`.
    `information` is None for the identity, a vector (p,) for a diagonal, or a matrix (p, p); "model" asks the model
    (`model.fisher_information()`). `Fisher.from_sample(model, X)` estimates it by the mean of s sᵀ over a sample.
    Directions in which the information is 0 are left out. Cost: the scores, O(n m p), and O(p³) once for a matrix.

    >>> class Coin:  # p(x) = θ^x (1 − θ)^(1 − x)
    ...     def fisher_score(self, X):
    ...         x = np.asarray(X, dtype=float)[:, None]
    ...         return x / 0.25 - (1 - x) / 0.75
    >>> Fisher(Coin(), information=[1 / (0.25 * 0.75)]).gram([1, 0]).round(4)
    array([[ 3.    , -1.    ],
           [-1.    ,  0.3333]])
    """

    model: Any
    information: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.model, ScoreModel):
            if not all(hasattr(self.model, name) for name in ("query", "conditional", "variables")):
                raise KernelError(
                    f"Fisher.model: expected an object with fisher_score(X) → (n, p), or a Bayesian network; got "
                    f"{type(self.model).__name__}."
                )
            object.__setattr__(self, "model", NetworkScore(self.model))
        given = self.information
        if isinstance(given, str):
            if given != "model" or not hasattr(self.model, "fisher_information"):
                raise KernelError(
                    f"Fisher.information: expected None, a vector, a matrix, or 'model' for a model with "
                    f"fisher_information(); got {given!r} and {type(self.model).__name__}."
                )
            given = self.model.fisher_information()
        if given is not None:
            given = np.array(given, dtype=np.float64)
            if given.ndim not in (1, 2) or (given.ndim == 2 and given.shape[0] != given.shape[1]):
                raise KernelError(f"Fisher.information: expected shape (p,) or (p, p), got {given.shape}.")
        object.__setattr__(self, "information", given)
        object.__setattr__(self, "_whitening", None if given is None else _inverse_root(given))

    @classmethod
    def from_sample(cls, model: Any, X: Any, *, diagonal: bool = False) -> Fisher:
        """With the information estimated by (1/n) Σ s sᵀ over a sample X, or by its diagonal."""
        scored = cls(model)
        S = scored._scores(scored.prepare(X))
        return cls(scored.model, np.square(S).mean(0) if diagonal else S.T @ S / len(S))

    def prepare(self, X: Any) -> Any:
        """Samples as the model takes them."""
        return _as_sequence(X)

    def _scores(self, X: Any) -> FloatArray:
        return _same_rows("fisher_score(X)", np.asarray(self.model.fisher_score(X), dtype=np.float64), len(X))

    def _features(self, X: Any) -> FloatArray:
        S, W = self._scores(X), self._whitening  # type: ignore[attr-defined]
        if W is None:
            return S
        if S.shape[1] != len(W):
            raise KernelError(f"Fisher: the information has {len(W)} rows, the scores have {S.shape[1]} columns.")
        return S * W if W.ndim == 1 else S @ W

    def _diag(self, X: Any) -> FloatArray:
        return np.square(self._features(X)).sum(1)

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        F = self._features(X)
        return F @ (F if Y is None else self._features(Y)).T

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        if inputs:
            raise KernelError("Fisher: there is no gradient by its inputs.")
        return self._gram(X, Y), lambda bar: self.cotangent({})


def _inverse_root(information: FloatArray) -> FloatArray:
    """W with W Wᵀ = I⁺: a vector for a diagonal, else (p, r) with r the rank."""
    values, vectors = (information, None) if information.ndim == 1 else np.linalg.eigh(information)
    largest = float(values.max(initial=0.0))
    if (values < -1e-8 * largest).any() or not np.isfinite(values).all():
        raise KernelError("Fisher.information: expected a positive semi-definite matrix; it has negative eigenvalues.")
    keep = values > 1e-12 * largest
    roots = np.where(keep, 1.0 / np.sqrt(np.where(keep, values, 1.0)), 0.0)
    return roots if vectors is None else vectors[:, keep] * roots[keep]


class NetworkScore:
    """Scores of a discrete Bayesian network: ∂ log p(e) / ∂ the logits of its tables, for cases with gaps.

    A row of a table is p(x | u) = softmax of logits, and ∂ log p(e)/∂ logit(x, u) = p(x, u | e) − p(x | u) p(u | e):
    one joint posterior a family, all cases in one batched pass. The parameters are the families in the order of the
    variables, each with its axes (parents …, child) flattened. Entries with p(x | u) = 0 have score 0. A case of
    probability 0 is an error, as in `network.query`.

    >>> from gramgraph import BayesianNetwork
    >>> NetworkScore(BayesianNetwork("A", cpds={"A": 0.25})).fisher_score([{"A": "yes"}, {}]) + 0.0
    array([[-0.75,  0.75],
           [ 0.  ,  0.  ]])
    """

    def __init__(self, network: Any) -> None:
        self.network = network
        self._families = [
            (tuple(var.name for var in net_c.scope), np.asarray(net_c.table(), dtype=np.float64))
            for net_c in (network.conditional(name) for name in network.variables)
        ]

    def fisher_score(self, X: Any, /) -> FloatArray:
        """(n, p) for a frame of cases, or a list of dicts {variable: state}; None or NaN is not observed."""
        frame = self._frame(X)
        if len(frame) == 0:
            return np.zeros((0, sum(table.size for _, table in self._families)))
        answer = self.network.query([scope for scope, _ in self._families], evidence=frame)
        blocks = []
        for scope, table in self._families:
            joint = np.asarray(answer[scope].probabilities, dtype=np.float64).reshape(len(frame), *table.shape)
            blocks.append((joint - table * joint.sum(-1, keepdims=True)).reshape(len(frame), -1))
        return np.concatenate(blocks, axis=1)

    def _frame(self, X: Any) -> Any:
        import pandas as pd

        names = list(self.network.variables)
        frame = X if hasattr(X, "columns") else pd.DataFrame([dict.fromkeys(names) | dict(row) for row in X])
        for column in frame.columns:
            if column not in names:
                hint = did_you_mean(column, names)
                raise KernelError(f"{column!r} is not a variable of the network. Variables: {listing(names)}.{hint}")
        return frame

    def fisher_information(self) -> FloatArray:
        """p(u) p(x | u), a vector (p,): for scores of complete cases, s I⁺ s′ = Σ s s′ / (p(u) p(x | u)).

        The true block of a row is p(u)(diag θ − θθᵀ); on scores, which sum to 0 over x, its pseudo-inverse acts as
        that of its diagonal part p(u) diag θ. With gaps in the cases it is the information of the complete cases.
        """
        answer = self.network.query([scope for scope, _ in self._families])
        return np.concatenate([np.asarray(answer[scope].probabilities).ravel() for scope, _ in self._families])
