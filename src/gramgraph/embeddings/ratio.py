"""The edge of a kernel graphical model: the density ratio p(x, y) / (p(x) p(y)), and its table on anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from gramgraph._validation import check_choice, check_count, generator
from gramgraph.embeddings.features import FeatureMap, feature_map
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import check_pairs, default_kernel, domain_of, sample_of
from gramgraph.linalg.blocks import select
from gramgraph.typing import FloatArray, RandomState

#: Penalties and bandwidths (× median distance, each end) to choose from.
REGS = np.logspace(-5, -1, 9)
FACTORS = (1.0, 0.5, 0.25, 0.125)
_RANK = 60
_CROSSED = 300  # held-out points whose cross pairs normalize the log score
_SWEEPS, _TOL = 500, 1e-10


@dataclass(frozen=True, eq=False)
class Compiled:
    """A density ratio on anchors: R ≥ 0 (m, p) with R q_y = 1 and Rᵀq_x = 1, so that q_x R q_y is a joint table."""

    R: FloatArray
    weights_x: FloatArray  # (m,) probabilities of the cells
    weights_y: FloatArray  # (p,)
    negative_mass: float  # Σ q_x max(−r, 0) q_y before the floor: how far the estimate was from a ratio
    residual: float  # largest deviation of the sums from 1

    @property
    def joint(self) -> FloatArray:
        """The joint table, (m, p); it sums to one."""
        return self.weights_x[:, None] * self.R * self.weights_y


@dataclass(frozen=True, eq=False)
class Whitening:
    """u(x) = (S + λ)^−½ Vᵀ(φ(x) − mean), with S the eigenvalues of the covariance of the features φ."""

    kernel: Kernel
    features: FeatureMap
    mean: FloatArray  # (r,)
    V: FloatArray  # (r, q)
    values: FloatArray  # (q,)

    @classmethod
    def of(cls, kernel: Kernel, X: Any) -> Whitening:
        """From prepared points: incomplete Cholesky with at most 60 features; directions at rounding are left out."""
        features = feature_map(kernel, X, "cholesky", n_components=_RANK)
        Phi = features.transform(X)
        scale, mean = float(np.vdot(Phi, Phi)) / len(Phi), Phi.mean(axis=0)
        Phi = Phi - mean
        values, V = np.linalg.eigh(Phi.T @ Phi / len(Phi))
        keep = values > 1e-10 * scale
        return cls(kernel, features, mean, V[:, keep], values[keep])

    def rotated(self, X: Any) -> FloatArray:
        """Vᵀ(φ(x) − mean), one row a point."""
        return (self.features.transform(X) - self.mean) @ self.V

    def scales(self, reg: float) -> FloatArray:
        """(S + λ)^−½."""
        return 1.0 / np.sqrt(self.values + reg)


@dataclass(frozen=True, eq=False)
class DensityRatio:
    """r(x, y) = 1 + u(x)ᵀ M u(y), a least-squares estimate of p(x, y) / (p(x) p(y)); M = mean u(xᵢ)u(yᵢ)ᵀ.

    With delta kernels and no penalty it is the ratio of the tables. `log_score` is the held-out mean of log r,
    normalized (a lower bound of the mutual information in nats) when hyper-parameters were chosen by it.

    Parameters
    ----------
    x : features of the first end.
    y : features of the second end.
    M : mean of their products.
    reg : the penalty λ of the regression.
    smi : squared-loss mutual information.
    log_score : mean log ratio of rows that were left out.

    Examples
    --------
    >>> edge = density_ratio(["a", "a", "b", "b"], ["u", "u", "u", "v"], reg=0.0)
    >>> edge.matrix(["a", "b"], ["u", "v"]).round(4) + 0.0
    array([[1.3333, 0.    ],
           [0.6667, 2.    ]])
    """

    x: Whitening
    y: Whitening
    M: FloatArray  # (q_x, q_y)
    reg: float
    smi: float  # squared-loss mutual information ½ (mean r − 1) = ½ ‖M‖²
    log_score: float | None = None

    def __repr__(self) -> str:
        return f"DensityRatio({self.x.kernel!r}, {self.y.kernel!r}, reg={self.reg:.3g}, smi={self.smi:.4g})"

    def __call__(self, X: Any, Y: Any, /) -> FloatArray:
        """r at pairs (xᵢ, yᵢ), (n,). An estimate: it may be negative where there are few data."""
        U, W = self._coordinates(X, Y)
        if len(U) != len(W):
            raise ModelError(f"pairs need equally many points, got {len(U)} and {len(W)}; all pairs are `matrix`.")
        return 1.0 + np.einsum("ij,ij->i", U @ self.M, W)

    def matrix(self, X: Any, Y: Any, /) -> FloatArray:
        """r at all pairs, (n, m)."""
        U, W = self._coordinates(X, Y)
        return 1.0 + U @ self.M @ W.T

    def _coordinates(self, X: Any, Y: Any) -> tuple[FloatArray, FloatArray]:
        X, Y = self.x.kernel.prepare(X), self.y.kernel.prepare(Y)
        return self.x.rotated(X) * self.x.scales(self.reg), self.y.rotated(Y) * self.y.scales(self.reg)

    def compile(
        self, X: Any, Y: Any, /, weights_x: Any = None, weights_y: Any = None, *, floor: float = 1e-2
    ) -> Compiled:
        """The ratio on anchors X and Y with cell probabilities (equal by default), a proper non-negative table.

        Values below `floor` are lifted to it, then rows and columns are scaled in turn (Sinkhorn) until both marginals
        are met to 1e-10.

        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=500)
        >>> table = density_ratio(x, x + rng.normal(size=500)).compile([-1.0, 0.0, 1.0], [-1.0, 1.0])
        >>> table.joint.sum(axis=0).round(6), table.joint.sum(axis=1).round(6)
        (array([0.5, 0.5]), array([0.333333, 0.333333, 0.333333]))
        """
        if not 0.0 <= floor < 1.0:
            raise OptionError(f"floor must lie between 0 and 1; it is {floor!r}.")
        R = self.matrix(X, Y)
        p, q = _cells(weights_x, R.shape[0], "weights_x"), _cells(weights_y, R.shape[1], "weights_y")
        negative = float(p @ np.maximum(-R, 0.0) @ q)
        R = np.maximum(R, floor)
        residual = np.inf
        for _ in range(_SWEEPS):
            rows = R @ q
            R /= np.where(rows > 0.0, rows, 1.0)[:, None]
            columns = p @ R
            R /= np.where(columns > 0.0, columns, 1.0)
            residual = float(np.abs(R @ q - 1.0).max())
            if residual <= _TOL:
                break
        return Compiled(R, p, q, negative, residual)


def _cells(weights: Any, n: int, name: str) -> FloatArray:
    if weights is None:
        return np.full(n, 1.0 / n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0.0).any() or not w.sum() > 0.0:
        raise ModelError(f"{name} must be {n} numbers that are not negative, with a positive sum; got shape {w.shape}.")
    return w / w.sum()


def density_ratio(
    X: Any,
    Y: Any,
    *,
    kernel_x: Kernel | None = None,
    kernel_y: Kernel | None = None,
    domain_x: str | None = None,
    domain_y: str | None = None,
    reg: float | str = "cv",
    score: str = "log",
    folds: int = 3,
    random_state: RandomState = 0,
) -> DensityRatio:
    """Estimate p(x, y) / (p(x) p(y)) from pairs, by least squares in feature space.

    reg="cv" chooses the penalty, and the bandwidth of each end that has its default kernel among 1, ½, ¼, ⅛ × median
    distance, on held-out rows: score="log" by the normalized mean log ratio, "squares" by the closed-form
    ½ E_{p(x)p(y)} r² − E r. O(n r²) each fold and pair of bandwidths, r ≤ 60 features an end.

    Parameters
    ----------
    X : sample of the first variable.
    Y : sample of the second variable, paired with X.
    kernel_x : kernel of X; None for the default one of its domain.
    kernel_y : kernel of Y; None for the default one of its domain.
    domain_x : what the values of X are: "real", "circle", "category", …; None guesses.
    domain_y : what the values of Y are, likewise.
    reg : the penalty, or "cv".
    score : "log" or "squares": what left-out rows are scored by.
    folds : parts of the rows.
    random_state : seed, or a generator.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=800)
    >>> edge = density_ratio(x, np.abs(x) + 0.3 * rng.normal(size=800))
    >>> edge([1.0, 1.0], [1.0, -0.5]).round(1)[0] > 1.5, density_ratio(x, rng.normal(size=800)).smi < 0.05
    (np.True_, True)
    """
    check_choice("score", score, ("log", "squares"))
    kernels = _kernels(X, kernel_x, domain_x, "X"), _kernels(Y, kernel_y, domain_y, "Y")
    X, n = sample_of(X, kernels[0][0], None, name="X")[1:]
    Y, m = sample_of(Y, kernels[1][0], None, name="Y")[1:]
    check_pairs(n, m)
    if reg != "cv":
        if isinstance(reg, (str, bool)) or not 0.0 <= reg < np.inf:
            raise OptionError(f"reg must be a number that is not negative, or 'cv'; it is {reg!r}.")
        return _fit(kernels[0][0], kernels[1][0], X, Y, float(reg), None)
    check_count("folds", folds, 2, n // 2)
    part = generator(random_state).permutation(n) % int(folds)
    totals = sum(
        _held_out(kernels, X, Y, np.flatnonzero(part != f), np.flatnonzero(part == f), score) for f in range(folds)
    )
    scores = np.asarray(totals) / folds
    a, b, at = (int(i) for i in np.unravel_index(int(scores.argmax()), scores.shape))
    found = float(scores[a, b, at]) if score == "log" else None
    return _fit(kernels[0][a], kernels[1][b], X, Y, float(REGS[at]), found)


def _kernels(X: Any, kernel: Kernel | None, domain: str | None, name: str) -> list[Kernel]:
    first = sample_of(X, kernel, domain, name=name)[0]
    if kernel is not None or (domain or domain_of(X)) in ("category", "set", "string"):
        return [first]
    return [default_kernel(X, domain, factor=f) for f in FACTORS]


def _fit(kernel_x: Kernel, kernel_y: Kernel, X: Any, Y: Any, reg: float, score: float | None) -> DensityRatio:
    x, y = Whitening.of(kernel_x, X), Whitening.of(kernel_y, Y)
    A, B = x.rotated(X), y.rotated(Y)
    M = (A.T @ B / len(A)) * x.scales(reg)[:, None] * y.scales(reg)
    return DensityRatio(x, y, M, reg, 0.5 * float(np.vdot(M, M)), score)


def _held_out(
    kernels: tuple[Sequence[Kernel], Sequence[Kernel]], X: Any, Y: Any, train: Any, test: Any, score: str
) -> FloatArray:
    """Scores of one fold, larger is better: (bandwidths of x, bandwidths of y, penalties)."""
    ends = []
    for points, choices in ((X, kernels[0]), (Y, kernels[1])):
        inside, outside = select(points, train), select(points, test)
        made = [Whitening.of(kernel, inside) for kernel in choices]
        ends.append([(w, w.rotated(inside), w.rotated(outside)) for w in made])
    out = np.empty((len(ends[0]), len(ends[1]), len(REGS)))
    for (i, (x, A, A_new)), (j, (y, B, B_new)) in product(enumerate(ends[0]), enumerate(ends[1])):
        C = A.T @ B / len(A)
        second = (A_new.T @ A_new / len(A_new), B_new.T @ B_new / len(B_new)) if score == "squares" else None
        for k, reg in enumerate(REGS):
            N = C * (x.scales(reg) ** 2)[:, None] * y.scales(reg) ** 2  # r = 1 + aᵀN b in rotated features
            pairs = 1.0 + np.einsum("ij,ij->i", A_new @ N, B_new)
            if second is None:
                crossed = 1.0 + A_new[:_CROSSED] @ N @ B_new[:_CROSSED].T
                out[i, j, k] = np.log(np.maximum(pairs, 1e-2)).mean() - np.log(np.maximum(crossed, 1e-2).mean())
            else:
                squared = 1.0 + 2.0 * A_new.mean(0) @ N @ B_new.mean(0) + np.vdot(second[0] @ N, N @ second[1])
                out[i, j, k] = pairs.mean() - 0.5 * squared
    return out
