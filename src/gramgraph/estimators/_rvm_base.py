"""What both relevance vector machines share: parameters, weights, design, evaluation of sparse functions."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from gramgraph._numerics.gram.grams import same_digits
from gramgraph._numerics.rvm.regression import START
from gramgraph._validation import check_choice, check_count, check_positive
from gramgraph.estimators._base import NamedKernelEstimator
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.machines.kernels import KernelSpec
from gramgraph.machines.points import take_points
from gramgraph.machines.rvm import SparseFit
from gramgraph.typing import FloatArray, IntArray


@dataclass(eq=False, repr=False)
class RelevanceMachine(NamedKernelEstimator):
    """Base of `RVR` and `RVC`."""

    _sparse_rows = "dense"

    kernel: KernelSpec = "rbf"
    _: KW_ONLY
    bias: bool = True
    basis: str | int = "all"
    tol: float = 1e-4
    max_iter: int = 5000
    random_state: Any = None

    def _check_parameters(self) -> None:
        check_positive("tol", self.tol)
        check_choice("bias", self.bias, (True, False))
        check_count("max_iter", self.max_iter)
        some = isinstance(self.basis, (int, np.integer)) and not isinstance(self.basis, bool) and self.basis >= 1
        if not some and not (isinstance(self.basis, str) and self.basis == "all"):
            raise ModelError(f"basis must be 'all' or a number of landmarks of at least 1; it is {self.basis!r}.")

    def _weigh(self, X: Any, sample_weight: Any) -> tuple[IntArray, FloatArray | None]:
        """The training points of positive weight, and their weights (None: all one)."""
        n = count(X)
        if sample_weight is None:
            return np.arange(n), None
        weights = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
        kept = np.flatnonzero(weights > 0.0)
        if not len(kept):  # refused by scikit-learn from 1.8 on only
            raise ModelError("all sample weights are zero: no point is left to learn from.")
        weights = weights[kept]
        return kept, None if (weights == 1.0).all() else weights

    def _select(self, X: Any, kept: IntArray) -> Any:
        """Some of the training points; of a precomputed matrix their rows and columns."""
        if len(kept) == count(X):
            return X
        return (
            X[np.ix_(kept, kept)]
            if isinstance(self.kernel, str) and self.kernel == "precomputed"
            else take_points(X, kept)
        )

    def _candidates(self, n: int) -> IntArray:
        """The training points whose columns are candidates, ascending; landmarks are drawn."""
        if isinstance(self.basis, str) or self.basis >= n:
            return np.arange(n)
        return np.sort(check_random_state(self.random_state).choice(n, size=int(self.basis), replace=False))

    def _design(self, X: Any, points: IntArray, head: int = 0, *, same: bool = True) -> FloatArray:
        """Transposed design (head + M, n): the first `head` rows free, then the columns of these points.

        Of few points it has the same digits whether loops are compiled or not, where that is asked for.
        """
        n, some = count(X), len(points) < count(X)
        T = np.empty((head + len(points), n))
        with same_digits() if same and n <= START else nullcontext():
            if self.kernel_.precomputed:
                T[head:] = X[:, points].T
            elif self.kernel_.value is not None:
                self.kernel_.value.gram(take_points(X, points) if some else X, X if some else None, out=T[head:])
            else:
                T[head:] = self.kernel_.gram(take_points(X, points), X) if some else self.kernel_.gram(X)
        if not np.isfinite(T[head:]).all():
            raise ModelError(
                f"the kernel {self.kernel!r} gives values that are not finite on these points. Try: scale X."
            )
        return T

    def _warn(self, fits: list[SparseFit]) -> None:
        open_ = [fit for fit in fits if not fit.converged]
        if open_:
            why = f"after max_iter={self.max_iter} steps before the evidence settled; raise max_iter or tol."
            if max(fit.n_iter for fit in open_) < self.max_iter:
                why = (
                    "where rounding took over: with so little noise, columns count that differ in their last digits. "
                    "Try: a larger noise, or a narrower kernel."
                )
            warnings.warn(f"{type(self).__name__} stopped {why}", ConvergenceWarning, stacklevel=5)

    def _keep(self, X: Any, fits: list[SparseFit]) -> None:
        """Store the fits and the points that any of them needs."""
        self._warn(fits)
        self.fits_ = fits
        self.relevance_: IntArray = np.unique(np.concatenate([fit.relevance for fit in fits]))
        self.relevance_vectors_ = take_points(X, self.relevance_)
        self.n_iter_ = max(max(fit.n_iter for fit in fits), 1)
        one = len(fits) == 1
        for name in ("alpha", "mu", "sigma", "noise", "evidence"):
            values = [getattr(fit, name) for fit in fits]
            setattr(self, f"{name}_", values[0] if one else values)

    def _columns(self, X: Any) -> FloatArray:
        """Kernel columns of new points at the relevance vectors, (n, r): O(n r) kernel values."""
        check_is_fitted(self)
        X = self._points(X, reset=False)
        if self.kernel_.precomputed:
            return np.asarray(X[:, self.relevance_], dtype=np.float64)
        if not len(self.relevance_):
            return np.zeros((count(X), 0))
        return self.kernel_.gram(X, self.relevance_vectors_)

    def _features(self, K: FloatArray, fit: SparseFit) -> FloatArray:
        """Columns of one fit, the bias first."""
        columns = K[:, np.searchsorted(self.relevance_, fit.relevance)]
        return np.column_stack([np.ones(len(K)), columns]) if fit.bias else columns
