"""The mean map of a sample: a distribution as one function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._validation import check_count, generator
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.kernels.base import Kernel
from gramgraph.kernels.domains import sample_of
from gramgraph.kernels.inputs import count
from gramgraph.kernels.tables import own_copy
from gramgraph.linalg import kernel_matvec
from gramgraph.linalg.blocks import select
from gramgraph.rkhs import RKHSFunction, SpaceError
from gramgraph.typing import FloatArray, RandomState


@dataclass(frozen=True, eq=False)
class MeanEmbedding:
    """μ = Σ wᵢ φ(xᵢ), the mean of the features of a weighted sample; E[f(X)] = ⟨f, μ⟩ = Σ wᵢ f(xᵢ).

    Weights of an empirical mean are 1/n; those that the rules of embeddings give may be negative. As a function, μ(x)
    is a kernel density estimate up to its constant; with the delta kernel it is the table of probabilities.

    Parameters
    ----------
    kernel : the kernel.
    points : the sample.
    weights : one for each point.

    Examples
    --------
    >>> mu = MeanEmbedding.of(["a", "b", "a", "a"])
    >>> mu(["a", "b", "c"])
    array([0.75, 0.25, 0.  ])
    """

    kernel: Kernel
    points: Any  # n points
    weights: FloatArray  # (n,)

    def __post_init__(self) -> None:
        function = RKHSFunction(self.kernel, self.points, self.weights)  # looks at all three
        object.__setattr__(self, "points", function.points)
        object.__setattr__(self, "weights", function.weights)

    @classmethod
    def of(
        cls, X: Any, *, kernel: Kernel | None = None, domain: str | None = None, weights: Any = None
    ) -> MeanEmbedding:
        """The embedding of a sample; weights are divided by their sum, the default is 1/n."""
        kernel, points, n = sample_of(X, kernel, domain, least=1)
        points = own_copy(points, X)
        if weights is None:
            return cls(kernel, points, np.full(n, 1.0 / n))
        w = np.asarray(weights, dtype=np.float64)
        if w.shape != (n,) or not np.isfinite(w).all() or not w.sum() > 0.0:
            raise ModelError(f"weights must be {n} finite numbers with a positive sum; their shape is {w.shape}.")
        return cls(kernel, points, w / w.sum())

    def __repr__(self) -> str:
        return f"MeanEmbedding({len(self)} points, {self.kernel!r})"

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def function(self) -> RKHSFunction:
        """μ as an element of the function space, with its arithmetic and gradient."""
        return RKHSFunction(self.kernel, self.points, self.weights)

    def __call__(self, X: Any, /) -> FloatArray:
        """μ(x) = Σ wᵢ k(xᵢ, x), one number a point; O(n m)."""
        return kernel_matvec(self.kernel, X, self.points, self.weights)

    # -- geometry -----------------------------------------------------------------------------------------------

    def inner(self, other: MeanEmbedding | RKHSFunction, /) -> float:
        """⟨μ, ν⟩, or E[f(X)] for a function f of the space."""
        if self.kernel != other.kernel:
            raise SpaceError(
                f"These live in different spaces: {self.kernel!r} and {other.kernel!r}. Try: give both samples "
                f"the same kernel, MeanEmbedding.of(Y, kernel=first.kernel)."
            )
        return float(self.weights @ other(self.points))

    def norm(self) -> float:
        """‖μ‖."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    def mmd(self, other: MeanEmbedding, /) -> float:
        """‖μ − ν‖, the maximum mean discrepancy (of the sample embeddings, hence the biased estimate)."""
        squared = self.inner(self) + other.inner(other) - 2.0 * self.inner(other)
        return float(np.sqrt(max(squared, 0.0)))

    # -- what the distribution says -----------------------------------------------------------------------------

    def expect(self, f: Callable[[Any], Any], /) -> Any:
        """E[f(X)] = Σ wᵢ f(xᵢ); f is called once with all points and gives one number or one row a point.

        >>> MeanEmbedding.of([0.0, 1.0, 5.0]).expect(lambda x: x[:, 0] > 0.5)
        0.6667
        """
        values = np.asarray(f(self.points), dtype=np.float64)
        if values.shape[:1] != (len(self),):
            raise ModelError(
                f"f must give one value or row for each of {len(self)} points; its shape is {values.shape}."
            )
        found = self.weights @ values
        return found if values.ndim > 1 else float(found)

    def mean(self) -> FloatArray:
        """E[X] for points that are numbers, (d,)."""
        return np.asarray(self.expect(lambda x: self._numbers("mean")))

    def var(self) -> FloatArray:
        """Variances of the columns, (d,); never negative, though the weights may be."""
        X = self._numbers("var")
        return np.maximum(self.weights @ (X - self.weights @ X) ** 2, 0.0)

    def quantile(self, q: Any) -> FloatArray:
        """Quantiles of numbers on the line: where the cumulative weights, made monotone and normalized, reach q."""
        X = self._numbers("quantile")
        levels = np.asarray(q, dtype=np.float64)
        if X.shape[1] != 1:
            raise ModelError(f"quantile is defined on the line; these points have {X.shape[1]} columns.")
        if not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise OptionError(f"quantiles lie between 0 and 1; got {q!r}.")
        order = np.argsort(X[:, 0], kind="stable")
        below = np.maximum.accumulate(np.clip(np.cumsum(self.weights[order]), 0.0, None))
        if not below[-1] > 0.0:
            raise ModelError("the weights have no positive partial sum, so there are no quantiles.")
        at = np.searchsorted(below, levels * below[-1] * (1.0 - 1e-12), side="left")
        return X[order[np.minimum(at, len(X) - 1)], 0]

    def sample(self, n: int, *, random_state: RandomState = None) -> Any:
        """n of the points, drawn by their weights; negative weights count as zero."""
        chances = np.maximum(self.weights, 0.0)
        if not chances.sum() > 0.0:
            raise ModelError("no weight is positive, so there is nothing to draw from.")
        rows = generator(random_state).choice(len(self), size=n, p=chances / chances.sum())
        return select(self.points, rows)

    # -- points that stand for the distribution -----------------------------------------------------------------

    def mode(self, *, refine: bool = True) -> Any:
        """The point with the largest μ(x): the best of the sample, then uphill where the kernel has gradients."""
        return self._best(self(self.points), refine, density=True)

    def pre_image(self, *, refine: bool = True) -> Any:
        """The point whose feature is nearest to μ: the smallest k(x, x) − 2 μ(x). For constant k(x, x) the `mode`."""
        return self._best(self(self.points) - 0.5 * self.kernel.diag(self.points), refine, density=False)

    def herd(self, n: int, *, candidates: Any = None) -> Any:
        """n points whose plain average embeds close to μ, chosen one after the other (herding); O(n m) kernel values.

        xₜ maximizes μ(x) − Σ_{s<t} k(x, x_s) / t over the candidates, by default the points of the sample. On smooth
        distributions the error falls like 1/n, that of random draws like 1/√n. A point may be chosen twice.
        """
        check_count("n", n)
        points = self.points if candidates is None else self.kernel.prepare(candidates)
        if not count(points):
            raise ModelError("herd needs at least one candidate.")
        wanted, taken = self(points), np.zeros(count(points))
        rows: list[int] = []
        for t in range(1, n + 1):
            best = int((wanted - taken / t).argmax())
            rows.append(best)
            taken += self.kernel.gram(select(points, [best]), points)[0]
        return select(points, rows)

    def _numbers(self, what: str) -> FloatArray:
        X = self.points
        if not isinstance(X, np.ndarray) or X.dtype.kind not in "fiu":
            raise ModelError(f"{what} needs points that are numbers. Try: expect(f) with f of the points.")
        return X.astype(np.float64).reshape(len(X), -1)

    def _best(self, values: FloatArray, refine: bool, *, density: bool) -> Any:
        start = select(self.points, [int(values.argmax())])
        if refine and isinstance(start, np.ndarray) and start.ndim == 2 and start.dtype.kind == "f":
            start = self._uphill(start, density)
        return start[0]

    def _uphill(self, start: FloatArray, density: bool) -> FloatArray:
        from scipy.optimize import minimize

        from gramgraph.kernels.inputs import KernelError

        function = self.function
        scale = max(float(np.abs(self.weights).sum()), 1e-300)

        def cost(x: FloatArray) -> tuple[float, FloatArray]:
            value, slope = function(x[None])[0], function.gradient(x[None])[0]
            if not density:
                diag, pull = self.kernel.diag_pullback(x[None], inputs=True)
                by_x = pull(np.ones(1)).X
                assert by_x is not None
                value, slope = value - 0.5 * diag[0], slope - 0.5 * by_x[0]
            return -float(value) / scale, -slope / scale

        try:
            found = minimize(cost, start[0], jac=True, method="L-BFGS-B")
        except (KernelError, ModelError):  # a kernel without gradients: the best point of the sample stays
            return start
        better = bool(np.isfinite(found.fun)) and found.fun <= cost(start[0])[0]
        return found.x[None] if better else start
