"""The kernel protocol: what a kernel must provide, and what every kernel gets for free.

A new kernel is a frozen dataclass (`@dataclass(frozen=True, eq=False, repr=False)`) under `Kernel` that writes `_diag`
and `_pullback` (and `_gram` where that is cheaper alone), and `prepare` when its inputs are not vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from gramgraph._validation import check_jobs
from gramgraph.kernels.inputs import KernelError, as_points, count, same_columns, take
from gramgraph.kernels.parameters import Parametrized, parameter
from gramgraph.typing import FloatArray, RandomState

if TYPE_CHECKING:
    from gramgraph.kernels.maps import Map
    from gramgraph.kernels.spectral import FourierFeatures
    from gramgraph.kernels.state_space import StateSpace

__all__ = ["Cotangent", "Kernel", "KernelError", "Parametrized", "Pull", "as_points", "parameter"]


class Cotangent(NamedTuple):
    """Gradient of a scalar loss, as `pull(bar_K)` gives it.

    With Y left out the Gram matrix depends on X from both sides, and `X` holds the whole gradient. Points with several
    parts (`Tensor`, distributions) have the numbers of their parts side by side, as the kernel's docstring says.

    Parameters
    ----------
    theta : by the parameters.
    X : by the first points.
    Y : by the second points.

    Examples
    --------
    >>> from gramgraph.kernels import RBF
    >>> K, pull = RBF().pullback(np.array([[0.0], [1.0]]))
    >>> pull(np.ones_like(K)).theta.round(4).tolist()
    [1.2131]
    """

    theta: FloatArray  # (p,) by the unconstrained parameters
    X: FloatArray | None = None  # (n, d), only with inputs=True
    Y: FloatArray | None = None  # (m, d), only with inputs=True and a Y


Pull: TypeAlias = Callable[[FloatArray], Cotangent]
DiagPull: TypeAlias = Callable[[FloatArray], Cotangent]

_DIAG_BLOCK = 32


class Kernel(Parametrized, ABC):
    """A positive definite function k(x, x′), as a frozen value.

    `gram`, `diag` and `pullback` look at their inputs once; matrices they return are new, and the caller may write
    into them (the K of `pullback` may not be written into before `pull` was called). Y = None means "the same
    points": the result is symmetric, and noise (`White`) stands on its diagonal only then.

    Parameters
    ----------
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> from gramgraph.kernels import RBF, White
    >>> k = 2 * RBF(length_scale=0.5) + White(0.1)
    >>> k
    2 * RBF(length_scale=0.5) + White(0.1)
    >>> k.gram([0.0, 0.5]).round(4)
    array([[2.1   , 1.2131],
           [1.2131, 2.1   ]])
    """

    #: False for functions that are called kernels but are not always positive definite (the sigmoid).
    positive_definite: bool = True

    # -- what a kind of kernel writes ---------------------------------------------------------------------------

    def prepare(self, X: Any) -> Any:
        """Inputs in the form that the hooks below expect; the door where they are checked. Idempotent."""
        return as_points(X)

    @abstractmethod
    def _diag(self, X: Any) -> FloatArray:
        """k(x, x) for every prepared point."""

    @abstractmethod
    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        """K and its pull, for prepared points. `pull` is linear in bar_K and ends with `self.cotangent({...})`."""

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        """K for prepared points, a new matrix."""
        return self._pullback(X, Y, False)[0]

    # -- what a kernel is asked for -----------------------------------------------------------------------------

    def gram(
        self, X: Any, Y: Any | None = None, /, *, out: Any = None, n_jobs: int = 1, dtype: Any = None
    ) -> FloatArray:
        """K with K[i, j] = k(x_i, y_j), shape (n, m); symmetric (n, n) without Y.

        `out` is a matrix to write into (it is also what comes back), `n_jobs` the number of threads (−1: one a
        processor), `dtype` float64 or float32: values are computed in double precision and stored in single, with a
        relative error of 6e-8 and half the memory.

        >>> from gramgraph.kernels import RBF
        >>> RBF().gram([0.0, 1.0], dtype="float32")
        array([[1.        , 0.60653067],
               [0.60653067, 1.        ]], dtype=float32)
        """
        X, Y = self._both(X, Y)
        if out is None and dtype is None and n_jobs == 1:
            return self._gram(X, Y)
        from gramgraph.kernels import tiles

        n_jobs = check_jobs(n_jobs, error=KernelError)
        n = count(X)
        found = tiles.check_out(out, (n, n if Y is None else count(Y)), dtype)
        n_jobs = 1 if found.size < tiles.WORTH_THREADS else n_jobs
        if found.dtype == np.float64:
            self._gram_into(X, Y, found, n_jobs)
        else:
            tiles.fill(self, X, Y, found, n_jobs)
        return found  # type: ignore[no-any-return]

    def __call__(self, X: Any, Y: Any | None = None, /) -> FloatArray:
        """The same as `gram`: a kernel is a function of two sets of points.

        So it can be handed to estimators of scikit-learn that call `kernel(X, Y)` with matrices, such as its SVC, SVR
        and OneClassSVM. Those that call with one pair of points at a time (its KernelRidge, KernelPCA, Nystroem) take
        kernel="precomputed" and `gram`.

        >>> from gramgraph.kernels import RBF
        >>> RBF()([0.0], [0.0, 1.0]).round(4)
        array([[1.    , 0.6065]])
        """
        return self.gram(X, Y)

    def prepare_columns(self, Y: Any, /) -> Any:
        """What `gram_columns` needs of the points Y: looked at once, where many questions follow."""
        return self.prepare(Y)

    def gram_columns(self, X: Any, columns: Any, /) -> FloatArray:
        """gram(X, Y) with columns = `prepare_columns(Y)`.

        >>> from gramgraph.kernels import RBF
        >>> kernel = 2.0 * RBF()
        >>> kernel.gram_columns([0.0], kernel.prepare_columns([0.0, 1.0])).round(4)
        array([[2.    , 1.2131]])
        """
        return self.gram(X, columns)

    def _gram_into(self, X: Any, Y: Any | None, out: FloatArray, n_jobs: int) -> None:
        """K for prepared points, into a matrix of doubles."""
        from gramgraph.kernels import tiles

        tiles.fill(self, X, Y, out, n_jobs)

    def diag(self, X: Any, /) -> FloatArray:
        """k(x_i, x_i), shape (n,): the diagonal of `gram(X)` in O(n)."""
        return self._diag(self.prepare(X))

    def pullback(self, X: Any, Y: Any | None = None, /, *, inputs: bool = False) -> tuple[FloatArray, Pull]:
        """K, and the function that takes ∂loss/∂K to ∂loss/∂theta (and ∂loss/∂X, ∂loss/∂Y with `inputs=True`).

        All p parameters in one pass and O(n m) memory: no (n, m, p) array is made. bar_K need not be symmetric.
        """
        X, Y = self._both(X, Y)
        K, pull = self._pullback(X, Y, inputs)
        shape = K.shape  # not K itself: sums and scales let go of the matrices of their parts

        def checked(bar_K: FloatArray) -> Cotangent:
            bar_K = np.asarray(bar_K, dtype=np.float64)
            if bar_K.shape != shape:
                raise KernelError(f"pull expects bar_K of the shape of K, {shape}; it got {bar_K.shape}.")
            return pull(bar_K)

        return K, checked

    def diag_pullback(self, X: Any, /, *, inputs: bool = False) -> tuple[FloatArray, DiagPull]:
        """k(x_i, x_i) and its pull, which takes a (n,) gradient. O(n): small blocks of rows."""
        X = self.prepare(X)
        n = count(X)

        def pull(bar: FloatArray) -> Cotangent:
            theta, rows = np.zeros(len(self.theta)), []
            for start in range(0, n, _DIAG_BLOCK):
                stop = min(n, start + _DIAG_BLOCK)
                found = self._pullback(take(X, slice(start, stop)), None, inputs)[1](np.diag(bar[start:stop]))
                theta += found.theta
                rows.append(found.X)
            return Cotangent(theta, np.concatenate(rows) if inputs and n else None)  # type: ignore[arg-type]

        return self._diag(X), pull

    def blocks(self, X: Any, Y: Any | None = None, /, *, rows: int = 1024) -> Iterator[tuple[slice, FloatArray]]:
        """The Gram matrix some rows at a time, for n beyond memory: pairs (rows, K[rows])."""
        X, Y = self._both(X, Y)
        diag = self._diag(X) if Y is None else None
        for start in range(0, count(X), rows):
            here = slice(start, min(count(X), start + rows))
            block = self._gram(take(X, here), X if Y is None else Y)
            if diag is not None:  # noise belongs to a point itself, which a block of rows cannot know
                block[np.arange(len(block)), np.arange(here.start, here.stop)] = diag[here]
            yield here, block

    def _both(self, X: Any, Y: Any | None) -> tuple[Any, Any | None]:
        X = self.prepare(X)
        if Y is None:
            return X, None
        Y = self.prepare(Y)
        same_columns(X, Y)
        return X, Y

    def cotangent(
        self, gradients: dict[str, Any], X: FloatArray | None = None, Y: FloatArray | None = None
    ) -> Cotangent:
        """Gradients by the values of own parameters and by theta of parts, chained and put into the order of theta."""
        return Cotangent(self.chain(gradients), X, Y)

    # -- algebra ------------------------------------------------------------------------------------------------

    def __add__(self, other: Kernel | float) -> Kernel:
        from gramgraph.kernels import algebra

        return algebra.add(self, other)

    def __radd__(self, other: float) -> Kernel:
        from gramgraph.kernels import algebra

        return algebra.add(other, self)

    def __mul__(self, other: Kernel | float) -> Kernel:
        from gramgraph.kernels import algebra

        return algebra.multiply(self, other)

    def __rmul__(self, other: float) -> Kernel:
        return self * other

    def __truediv__(self, other: float) -> Kernel:
        from gramgraph.kernels import algebra

        return algebra.divide(self, other)

    def __pow__(self, exponent: int) -> Kernel:
        from gramgraph.kernels import algebra

        return algebra.power(self, exponent)

    def exp(self) -> Kernel:
        """exp(k(x, x′))."""
        from gramgraph.kernels import algebra

        return algebra.Exponential(self)

    def scaled_by(self, function: Map | Callable[[Any], Any]) -> Kernel:
        """f(x) k(x, x′) f(x′)."""
        from gramgraph.kernels import input_maps
        from gramgraph.kernels.maps import as_map

        return input_maps.FunctionScaled(self, as_map(function))

    def warp(self, phi: Map | Callable[[Any], Any]) -> Kernel:
        """k(φ(x), φ(x′))."""
        from gramgraph.kernels import input_maps
        from gramgraph.kernels.maps import as_map

        return input_maps.Warp(self, as_map(phi))

    def on(self, columns: Any) -> Kernel:
        """This kernel on some columns of a matrix or a data frame: a name or number, or a list of them."""
        from gramgraph.kernels import input_maps

        return input_maps.OnColumns(self, columns)

    def tensor(self, *others: Kernel) -> Kernel:
        """k(x, x′) l(z, z′) on pairs: inputs are tuples (points of k, points of l, …)."""
        from gramgraph.kernels import input_maps

        return input_maps.Tensor((self, *others))

    def normalized(self) -> Kernel:
        """k(x, x′) / √(k(x, x) k(x′, x′))."""
        from gramgraph.kernels.feature_space import Normalized

        return Normalized(self)

    def centered(self, reference: Any) -> Kernel:
        """⟨φ(x) − μ, φ(x′) − μ⟩ with μ the mean feature of the reference points."""
        from gramgraph.kernels.feature_space import Centered

        return Centered(self, reference)

    # -- fields by name -----------------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Fields by name; with `deep` those of parts too, as scikit-learn names them.

        >>> from gramgraph.kernels import RBF
        >>> sorted((2 * RBF(0.5)).get_params())
        ['base', 'base__fixed', 'base__length_scale', 'base__limits', 'fixed', 'limits', 'variance']
        """
        from gramgraph.kernels.fields import kernel_parameters

        return kernel_parameters(self, deep=deep)

    def with_params(self, **changes: Any) -> Kernel:
        """A new kernel with some fields replaced, named as in `get_params`.

        >>> from gramgraph.kernels import RBF
        >>> (2 * RBF(0.5)).with_params(base__length_scale=3.0)
        2 * RBF(length_scale=3)
        """
        from gramgraph.kernels.fields import with_kernel_parameters

        found: Kernel = with_kernel_parameters(self, changes)
        return found

    def set_params(self, **changes: Any) -> Kernel:
        """Refused: a kernel is a value. Estimators of this library put a new one in place, others cannot.

        scikit-learn's own estimators would ignore a kernel that comes back: a grid search over `kernel__length_scale`
        would then try the same kernel again and again without a word.
        """
        if not changes:
            return self
        raise KernelError(
            f"{type(self).__name__} is a value and does not change. Try: kernel.with_params({', '.join(changes)}"
            "=…), a grid of kernels such as {'kernel': [RBF(0.5), RBF(2.0)]}, or an estimator of gramgraph, whose "
            "set_params(kernel__…=…) puts a new kernel in place."
        )

    def __sklearn_clone__(self) -> Kernel:
        """A frozen value is its own copy."""
        return self

    # -- other forms, where they exist --------------------------------------------------------------------------

    def spectral_sample(self, n_features: int, d: int, random_state: RandomState = None) -> FourierFeatures:
        """Random Fourier features: a map z with z(x)ᵀz(x′) ≈ k(x, x′), error O(1/√n_features)."""
        raise KernelError(
            f"{type(self).__name__} has no known spectral density, so no random Fourier features. They exist for RBF, "
            "Matern, RationalQuadratic, Periodic (d = 1), SpectralMixture, Constant, their scaled sums and products. "
            "Try: Nyström features, which any kernel has."
        )

    def state_space(self) -> StateSpace:
        """The process on the line as dx = F x dt + L dw, f = H x."""
        raise KernelError(
            f"{type(self).__name__} has no finite state-space form here. It exists for Matern with nu 1/2, 3/2, 5/2 "
            "and one length scale, Constant, Wiener, IntegratedWiener, CubicSpline, and their scaled sums and products."
        )
