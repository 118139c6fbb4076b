"""Functions of a reproducing kernel Hilbert space: f = Σ αᵢ k(xᵢ, ·), with evaluation, inner product and arithmetic.

Also empirical Mercer eigenpairs, Karhunen–Loève draws, and fits by the representer theorem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from gramgraph._validation import check_count, check_positive, generator
from gramgraph.exceptions import GramGraphError, ModelError, did_you_mean
from gramgraph.kernels.inputs import count
from gramgraph.linalg import Dense, PositiveDefiniteError, kernel_matvec
from gramgraph.linalg.base import check_finite, logger
from gramgraph.linalg.blocks import select
from gramgraph.typing import Array, FloatArray, RandomState

if TYPE_CHECKING:
    from gramgraph.kernels.base import Kernel

__all__ = ["Mercer", "RKHSFunction", "SpaceError", "fit_representer", "karhunen_loeve", "mercer"]

Loss = Literal["squared", "hinge", "epsilon", "logistic"]


class SpaceError(GramGraphError, ValueError):
    """Two functions that do not live in the same space.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> f, g = (RKHSFunction(RBF(length), [[0.0]], [1.0]) for length in (1.0, 2.0))
    >>> try:
    ...     f + g
    ... except SpaceError:
    ...     print("two kernels, two spaces")
    two kernels, two spaces
    """


@dataclass(frozen=True, eq=False)
class RKHSFunction:
    """f(x) = Σ αᵢ k(xᵢ, x). Noise kernels on the diagonal take no part: points are compared with copies of themselves.

    Parameters
    ----------
    kernel : the kernel.
    points : the points xᵢ.
    weights : (n,) weights αᵢ.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> f = RKHSFunction(RBF(), [[0.0], [1.0]], [1.0, -1.0])
    >>> f([[0.0], [0.5]]).round(4)
    array([0.3935, 0.    ])
    >>> round(f.norm() ** 2, 4) == round(f.inner(f), 4) == round(float((f - 0.5 * f).norm() ** 2) * 4, 4)
    True
    """

    kernel: Kernel
    points: Any  # n points
    weights: FloatArray  # (n,)

    def __post_init__(self) -> None:
        points = self.kernel.prepare(self.points)
        weights = np.array(self.weights, dtype=float)
        if weights.shape != (count(points),):
            raise ModelError(f"weights must have shape ({count(points)},), one per point; they have {weights.shape}.")
        check_finite(weights, "The weights")
        weights.setflags(write=False)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "weights", weights)

    def __len__(self) -> int:
        return self.weights.shape[0]

    def __call__(self, X: Any, /) -> FloatArray:
        """f(X), (m,): tiles of the Gram matrix, O(n m) kernel values and little memory."""
        return kernel_matvec(self.kernel, X, self.points, self.weights)

    def inner(self, other: RKHSFunction, /) -> float:
        """⟨f, g⟩ = Σ αᵢ βⱼ k(xᵢ, yⱼ)."""
        self._same_space(other)
        return float(self.weights @ other(self.points))

    def norm(self) -> float:
        """‖f‖ = √⟨f, f⟩."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    def gradient(self, X: Any, /) -> FloatArray:
        """∇f at every row of X, (m, d), through the kernel's pullback; only for kernels of vectors."""
        K, pull = self.kernel.pullback(X, self.points, inputs=True)
        found = pull(np.broadcast_to(self.weights, K.shape).copy()).X
        if found is None:
            raise ModelError(f"{type(self.kernel).__name__} offers no gradient by its inputs.")
        return found

    def simplify(self, *, tol: float = 0.0) -> RKHSFunction:
        """The same function with equal points merged and weights of size at most `tol` left out; order is kept."""
        numbers: dict[Any, int] = {}
        where = np.empty(len(self), dtype=np.int64)
        first: list[int] = []
        for i in range(len(self)):
            key = _key(self.points, i)
            if key not in numbers:
                numbers[key] = len(first)
                first.append(i)
            where[i] = numbers[key]
        weights = np.zeros(len(first))
        np.add.at(weights, where, self.weights)
        keep = np.flatnonzero(np.abs(weights) > tol)
        if keep.size == 0:
            keep = np.array([0])  # the zero function still stands on a point
            weights = np.zeros_like(weights)
        return RKHSFunction(self.kernel, select(self.points, np.array(first)[keep]), weights[keep])

    def _same_space(self, other: RKHSFunction) -> None:
        if not isinstance(other, RKHSFunction):
            raise TypeError(f"expected an RKHSFunction, got {type(other).__name__}.")
        if self.kernel != other.kernel:
            raise SpaceError(
                f"These functions live in different spaces: {self.kernel!r} and {other.kernel!r}. "
                f"Try: build both with the same kernel."
            )

    def __add__(self, other: RKHSFunction) -> RKHSFunction:
        if not isinstance(other, RKHSFunction):
            return NotImplemented
        self._same_space(other)
        points = _join(self.points, other.points)
        return RKHSFunction(self.kernel, points, np.concatenate([self.weights, other.weights]))

    def __mul__(self, scalar: float) -> RKHSFunction:
        if not np.isscalar(scalar):
            return NotImplemented
        return RKHSFunction(self.kernel, self.points, float(scalar) * self.weights)  # type: ignore[arg-type]

    def __sub__(self, other: RKHSFunction) -> RKHSFunction:
        return self + (-other) if isinstance(other, RKHSFunction) else NotImplemented

    def __neg__(self) -> RKHSFunction:
        return self * -1.0

    def __truediv__(self, scalar: float) -> RKHSFunction:
        return self * (1.0 / scalar)

    __rmul__ = __mul__


def _join(X: Any, Y: Any) -> Any:
    if isinstance(X, tuple):
        return tuple(_join(a, b) for a, b in zip(X, Y, strict=True))
    return np.concatenate([X, Y]) if isinstance(X, np.ndarray) else [*X, *Y]


def _key(X: Any, i: int) -> Any:
    """What makes point i equal to another: its numbers, or itself when it can be hashed, else its identity."""
    if isinstance(X, tuple):
        return tuple(_key(part, i) for part in X)
    point = X[i]
    if isinstance(point, np.ndarray):
        return tuple(point.ravel().tolist())
    try:
        hash(point)
    except TypeError:
        return ("identity", id(point))
    return point


# ------------------------------------------------------------------------------------------------- eigenfunctions


@dataclass(frozen=True, eq=False)
class Mercer:
    """Empirical eigenpairs: k(x, x′) ≈ Σ λᵢ φᵢ(x) φᵢ(x′), with φᵢ orthonormal over the sample.

    λᵢ are the eigenvalues of K/n in falling order; φᵢ(x) = Σⱼ uⱼᵢ k(xⱼ, x) / (√n λᵢ) extends √n uᵢ to every x.

    Parameters
    ----------
    kernel : the kernel.
    points : the points xᵢ.
    values : (r,) eigenvalues, falling.
    weights : (n, r): column i holds the weights of φᵢ.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> found = mercer(RBF(), np.linspace(-1.0, 1.0, 10)[:, None], 3)
    >>> bool((np.diff(found.values) < 0.0).all()), found.weights.shape
    (True, (10, 3))
    """

    kernel: Kernel
    points: Any  # n points
    values: FloatArray  # (r,)
    weights: FloatArray  # (n, r): column i holds the weights of φᵢ

    def __call__(self, X: Any, /) -> FloatArray:
        """φᵢ(x) for every row of X, (m, r)."""
        return kernel_matvec(self.kernel, X, self.points, self.weights)

    def function(self, i: int) -> RKHSFunction:
        """φᵢ as a function of the space; √λᵢ φᵢ has norm 1."""
        return RKHSFunction(self.kernel, self.points, self.weights[:, i])


def mercer(kernel: Kernel, X: Any, k: int | None = None) -> Mercer:
    """The first k eigenpairs of the kernel under the sample X; fewer when the Gram matrix has smaller rank.

    Lanczos iterations when k is small against n, else a full decomposition, O(n³). Signs: the largest entry of an
    eigenvector is positive, so that results do not depend on the routine.

    Parameters
    ----------
    kernel : the kernel.
    X : the sample.
    k : how many pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(-1.0, 1.0, 40)[:, None]
    >>> pairs = mercer(RBF(), X, 3)
    >>> Phi = pairs(X)
    >>> bool(np.allclose(Phi.T @ Phi / 40, np.eye(3), atol=1e-8))
    True
    """
    X = kernel.prepare(X)
    n = count(X)
    k = n if k is None else k
    if not k >= 1 or n < 1:
        raise ModelError(f"mercer needs k ≥ 1 and at least one point; k is {k}, there are {n} points.")
    K = kernel.gram(X, X)
    K = (K + K.T) / (2.0 * n)
    check_finite(K, "The Gram matrix")
    values, U = _top_eigenpairs(K, min(k, n))
    keep = values > 10.0 * n * float(np.finfo(float).eps) * max(float(values[0]), 0.0)
    if not keep.any():
        raise PositiveDefiniteError(f"The Gram matrix has no positive eigenvalue; the largest is {values[0]:.3g}.")
    values, U = values[keep], U[:, keep]
    U = U * np.where(U[np.abs(U).argmax(axis=0), np.arange(U.shape[1])] < 0.0, -1.0, 1.0)
    return Mercer(kernel, X, values, U / (np.sqrt(n) * values))


def _top_eigenpairs(K: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """The k largest eigenvalues in falling order and their eigenvectors."""
    n = K.shape[0]
    if n > 500 and k <= n // 10:
        from scipy.sparse.linalg import eigsh

        start = np.random.default_rng(0).uniform(-1.0, 1.0, n)
        values, U = eigsh(K, k=k, which="LA", v0=start)
    else:
        from scipy.linalg import eigh

        values, U = eigh(K, subset_by_index=(n - k, n - 1), check_finite=False)
    order = np.argsort(-values, kind="stable")
    return values[order], U[:, order]


def karhunen_loeve(
    kernel: Kernel,
    X: Any,
    n_terms: int | None = None,
    *,
    n_draws: int = 1,
    random_state: RandomState = None,
) -> tuple[RKHSFunction, ...]:
    """Draws of the centered Gaussian process, f = Σ √λᵢ zᵢ φᵢ over the first terms, as functions.

    With all terms the values at X have covariance K; fewer terms give smoother draws with less variance.

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    n_terms : how many terms; None for all.
    n_draws : how many draws.
    random_state : seed, or a generator.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> (f,) = karhunen_loeve(RBF(), np.linspace(0.0, 1.0, 30)[:, None], 5, random_state=0)
    >>> f([[0.2], [0.4]]).shape
    (2,)
    """
    check_count("n_draws", n_draws)
    pairs = mercer(kernel, X, n_terms)
    rng = generator(random_state)
    Z = rng.standard_normal((n_draws, pairs.values.shape[0]))
    weights = (Z * np.sqrt(pairs.values)) @ pairs.weights.T
    return tuple(RKHSFunction(kernel, pairs.points, w) for w in weights)


# ---------------------------------------------------------------------------------------------- representer fits


def fit_representer(
    kernel: Kernel,
    X: Any,
    y: Array,
    *,
    loss: Loss = "squared",
    reg: float = 1.0,
    epsilon: float = 0.1,
    tol: float = 1e-8,
    max_iter: int = 10_000,
) -> RKHSFunction:
    """The function that minimizes Σ loss(yᵢ, f(xᵢ)) + reg ‖f‖²; by the representer theorem Σ αᵢ k(xᵢ, ·).

    - "squared" (y − f)²: α = (K + reg·I)⁻¹ y;
    - "logistic" log(1 + exp(−y f)), labels ±1: Newton steps with halving;
    - "hinge" max(0, 1 − y f), labels ±1, and "epsilon" max(0, |y − f| − epsilon): coordinate steps on the dual, until
      the gap between primal and dual objective is at most `tol` of the objective at f = 0 (a certificate).

    No offset: add a constant kernel to have one. O(n³), or O(n) a coordinate step (at most `max_iter`·n of them).

    Parameters
    ----------
    kernel : the kernel.
    X : points, one per row.
    y : the values, or labels ±1.
    loss : "squared", "logistic", "hinge" or "epsilon_insensitive".
    reg : weight of ‖f‖².
    epsilon : of "epsilon_insensitive".
    tol : below which a change counts as none.
    max_iter : most steps that are taken.

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.kernels import RBF
    >>> X = np.linspace(0.0, 3.0, 20)[:, None]
    >>> f = fit_representer(RBF(), X, np.sin(X[:, 0]), reg=1e-6)
    >>> float(np.abs(f(X) - np.sin(X[:, 0])).max()) < 1e-3
    True
    """
    if loss not in get_args(Loss):
        raise ModelError(f"{loss!r} is not a loss: {', '.join(get_args(Loss))}.{did_you_mean(loss, get_args(Loss))}")
    check_positive("reg", reg)
    check_positive("epsilon", epsilon, zero=True)
    X = kernel.prepare(X)
    y = np.asarray(y, dtype=float)
    if y.shape != (count(X),) or not len(y):
        raise ModelError(f"y must have shape ({count(X)},), one target per point, at least one; it has {y.shape}.")
    check_finite(y, "y")
    if loss in ("hinge", "logistic") and not np.all(np.abs(y) == 1.0):
        raise ModelError(f"The {loss} loss needs labels −1 and +1; y holds {np.unique(y)[:6].tolist()}.")
    K = kernel.gram(X, X)
    check_finite(K, "The Gram matrix")
    solver = _SOLVERS[loss]
    return RKHSFunction(kernel, X, solver(K, y, reg, epsilon, tol, max_iter))


def _squared(K: FloatArray, y: FloatArray, reg: float, epsilon: float, tol: float, max_iter: int) -> FloatArray:
    A = K.copy()
    A[np.diag_indices_from(A)] += reg
    return Dense(A).factor(overwrite=True).solve(y)


def _logistic(K: FloatArray, y: FloatArray, reg: float, epsilon: float, tol: float, max_iter: int) -> FloatArray:
    """Newton's method for f = P a with P = K / (2 reg): only I + W^½ P W^½ is factored, which is never singular."""
    P = K / (2.0 * reg)
    a = np.zeros(len(y))

    def objective(a: FloatArray, f: FloatArray) -> float:
        return float(np.logaddexp(0.0, -y * f).sum() + 0.5 * a @ f)

    f = P @ a
    value = objective(a, f)
    for _ in range(min(max_iter, 200)):
        p = 0.5 * (1.0 + np.tanh(0.5 * f))
        w = np.maximum(p * (1.0 - p), 1e-300)
        root = np.sqrt(w)
        residual = 0.5 * (y + 1.0) - p
        if np.abs(a - residual).max() <= tol:  # at the optimum a is the gradient of the log-likelihood
            break
        b = w * f + residual
        B = root[:, None] * P * root
        B[np.diag_indices_from(B)] += 1.0
        target = b - root * Dense(B).factor(overwrite=True).solve(root * (P @ b))
        step, moved = 1.0, False
        while step > 1e-10:
            trial = a + step * (target - a)
            trial_f = P @ trial
            trial_value = objective(trial, trial_f)
            if trial_value <= value + 1e-14 * abs(value):
                moved = True
                break
            step *= 0.5
        if not moved:
            break
        a, f, value = trial, trial_f, trial_value
    gap = float(np.abs(a - (0.5 * (y + 1.0) - 0.5 * (1.0 + np.tanh(0.5 * f)))).max())
    if gap > max(tol, 1e-6):
        logger.warning("fit_representer: Newton's method stopped with a gradient of %.1e", gap)
    return a / (2.0 * reg)


def _box_dual(
    K: FloatArray,
    target: FloatArray,
    epsilon: float,
    box: tuple[FloatArray, FloatArray],
    losses: Callable[[FloatArray], FloatArray],
    C: float,
    tol: float,
    max_iter: int,
) -> FloatArray:
    """min ½ βᵀKβ − targetᵀβ + ε‖β‖₁ in a box, the dual of ½‖f‖² + C Σ losses(f) with f = Kβ."""
    from gramgraph._numerics.gram.algebra import box_dual_steps

    n = len(target)
    K = np.ascontiguousarray(K)
    diag = np.ascontiguousarray(K.diagonal())
    beta = np.zeros(n)
    f = np.zeros(n)
    scale = C * float(losses(f).sum())
    gap = scale
    for _ in range(max_iter):
        taken = box_dual_steps(K, diag, target, epsilon, box[0], box[1], beta, f, n)
        f = K @ beta
        energy = float(beta @ f)
        dual = float(target @ beta - epsilon * np.abs(beta).sum()) - 0.5 * energy
        gap = 0.5 * energy + C * float(losses(f).sum()) - dual
        if gap <= tol * scale or taken == 0:
            break
    if gap > max(tol, 1e-9) * scale:
        logger.warning("fit_representer: stopped at a relative duality gap of %.1e (tol %.1e)", gap / scale, tol)
    return beta


def _hinge(K: FloatArray, y: FloatArray, reg: float, epsilon: float, tol: float, max_iter: int) -> FloatArray:
    C = 0.5 / reg
    box = np.minimum(0.0, C * y), np.maximum(0.0, C * y)
    return _box_dual(K, y, 0.0, box, lambda f: np.maximum(0.0, 1.0 - y * f), C, tol, max_iter)


def _epsilon(K: FloatArray, y: FloatArray, reg: float, epsilon: float, tol: float, max_iter: int) -> FloatArray:
    C = 0.5 / reg
    box = np.full(len(y), -C), np.full(len(y), C)
    return _box_dual(K, y, epsilon, box, lambda f: np.maximum(0.0, np.abs(y - f) - epsilon), C, tol, max_iter)


_Solver = Callable[[FloatArray, FloatArray, float, float, float, int], FloatArray]
_SOLVERS: dict[str, _Solver] = {"squared": _squared, "logistic": _logistic, "hinge": _hinge, "epsilon": _epsilon}
