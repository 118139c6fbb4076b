"""What the support vector machines share: reading the data, keeping support vectors, evaluating expansions."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from gramgraph._validation import check_choice, check_jobs, check_positive
from gramgraph.estimators._base import KernelEstimator
from gramgraph.estimators._sound import read_matrix
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.machines.checks import scale_the_columns
from gramgraph.machines.points import take_points
from gramgraph.machines.sparse import dense, is_sparse
from gramgraph.machines.svm import dual as duals
from gramgraph.machines.svm.approx import (
    FeatureRows,
    Memory,
    features_of,
    joined,
    kernel_value,
    make_features,
)
from gramgraph.machines.svm.kernel import ChosenKernel, choose_kernel, gram_of_matrix
from gramgraph.machines.svm.machine import Settings, warn_about
from gramgraph.machines.svm.rows import Source
from gramgraph.typing import Array, FloatArray, IntArray, RandomState

_BLOCK = 1 << 22  # entries of a Gram block in prediction
_FEW = 8  # points up to which looking at the support vectors would cost more than the product with them
_THIN = 4  # entries for a nonzero one, above which sparse rows stay so
_ROOM = 1 << 22  # entries that are always made dense
_FEW_COLUMNS, _ROOM_OF_FEW = 4096, 1 << 25  # and of rows in few columns, whose descent is slow: they say much alike
_FOLDED = 8  # times as much as the support vectors may be kept for the weights of the columns


def refuse_nu(machine: Any) -> None:
    """ν is a share of all points, which are not kept from block to block."""
    if machine.nu is not None:
        raise ModelError(
            f"partial_fit learns with C: nu={machine.nu!r} is a share of all points, and blocks are forgotten but for "
            "their support vectors. Try: nu=None and a C, or fit."
        )


def learns_in_blocks(machine: Any) -> bool:
    """Whether `partial_fit` is available."""
    if machine.approx is None:
        raise AttributeError(
            "partial_fit needs approx='nystrom' or 'features': without it the machine keeps every point and is solved "
            f"anew. Try: {type(machine).__name__}(approx='nystrom', n_components=…)."
        )
    return True


@dataclass(eq=False, repr=False)
class SupportVectors(KernelEstimator):
    """What the three machines share: reading the data, keeping support vectors, evaluating expansions."""

    kernel: Any = None
    _: KW_ONLY
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    tol: float = 1e-3
    cache_size: float = 200
    max_iter: int = -1
    shrinking: bool = True
    approx: str | None = None
    n_components: int = 200
    landmarks: str = "uniform"
    random_state: RandomState = None
    support_: IntArray = field(init=False)
    n_iter_: Any = field(init=False)  # one number, or one a two-class problem
    dual_objective_: Any = field(init=False)
    _overflow_means = "The dual coefficients or intercepts are not finite then."

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- reading ------------------------------------------------------------------------------------------------

    def _points(self, X: Any, *, reset: bool, least: int = 1, keep: bool = False) -> Any:
        """As in the base; thin sparse matrices stay so where inner products are enough, and all for prediction."""
        if not hasattr(X, "tocsr"):
            return super()._points(X, reset=reset, least=least, keep=keep)
        X = read_matrix(
            self, X, limit=self._limit(), reset=reset, dtype=np.float64, accept_sparse="csr", ensure_min_samples=least
        )
        if not reset:
            return X
        size = X.shape[0] * X.shape[1]
        room = _ROOM_OF_FEW if X.shape[1] <= _FEW_COLUMNS else _ROOM
        thin = size > max(_THIN * X.nnz, room)  # else products of dense rows are quicker, and small enough
        named = self.kernel is None or (isinstance(self.kernel, str) and self.kernel != "precomputed")
        return X if thin and named and self.approx is None else X.toarray()

    def _weights_of(self, sample_weight: Any, n: int) -> FloatArray:
        if sample_weight is None:
            return np.ones(n)
        weight = _check_sample_weight(sample_weight, np.empty((n, 0)), dtype=np.float64, ensure_non_negative=True)
        if not np.any(weight > 0):
            raise ModelError("Every sample weight is zero: no point is left to learn from.")
        return np.asarray(weight)

    def _open(self, X: Any, sample_weight: Any, n: int) -> tuple[IntArray, FloatArray, Source]:
        """Rows of positive weight, their weights, and where their kernel rows come from."""
        check_choice("approx", self.approx, (None, "nystrom", "features"))
        weight = self._weights_of(sample_weight, n)
        kept = np.flatnonzero(weight > 0)
        weight = weight[kept]
        points = X if len(kept) == n else take_points(X, kept)
        self._choose(points, X)
        self.__dict__.pop("_memory", None)
        if self.approx is not None:
            return kept, weight, FeatureRows(features_of(self.features_, points))
        if self.kernel_.kind == "precomputed":
            points = gram_of_matrix(X)[np.ix_(kept, kept)] if len(kept) < n else gram_of_matrix(X)
        source = self.kernel_.source(points, len(kept))
        if not np.isfinite(source.diag).all():
            what = f"{type(self).__name__}.fit: the kernel is not finite on these points."
            raise scale_the_columns(what, X, self._overflow_means)
        return kept, weight, source

    def _choose(self, points: Any, everyone: Any) -> None:
        """Settle the kernel, by all points, and its features, by those of positive weight, where they are asked for."""
        chosen = choose_kernel(self.kernel, everyone, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        self.kernel_: ChosenKernel = chosen
        self.__dict__.pop("features_", None)
        if self.approx is not None:
            value = kernel_value(chosen, self.approx)
            self.features_ = make_features(
                value, points, self.approx, self.n_components, self.landmarks, self.random_state
            )

    def _next_block(self, X: Any, target: Array, sample_weight: Any) -> tuple[Any, Array, FloatArray, FeatureRows]:
        """The support vectors so far and the points of a new block: points, targets, weights, features."""
        n = len(target)
        weight = self._weights_of(sample_weight, n)
        kept = np.flatnonzero(weight > 0)
        points, target, weight = take_points(X, kept), target[kept], weight[kept]
        memory: Memory | None = getattr(self, "_memory", None)
        if memory is None:
            check_choice("approx", self.approx, (None, "nystrom", "features"))
            self._choose(points, X)
        Phi, fresh = features_of(self.features_, points), float(weight.sum())
        number = kept + (0 if memory is None else memory.seen)
        if memory is not None:
            points, Phi = joined(memory.points, points), np.concatenate([memory.Phi, Phi])
            target, weight = np.concatenate([memory.target, target]), np.concatenate([memory.weight, weight])
            number = np.concatenate([memory.number, number])
        seen, total = (0, 0.0) if memory is None else (memory.seen, memory.total)
        self._memory = Memory(points, Phi, target, weight, number, seen + n, total + fresh)
        return points, target, weight, FeatureRows(Phi)

    def _end_block(self) -> None:
        """Forget what is not a support vector; number the support vectors as they came."""
        memory, used = self._memory, self.support_
        self._kept = memory.number
        self._memory = Memory(
            take_points(memory.points, used),
            memory.Phi[used],
            memory.target[used],
            memory.weight[used],
            memory.number[used],
            memory.seen,
            memory.total,
        )
        self.support_ = self._memory.number

    def _settings(self, C: float, nu: float | None) -> Settings:
        check_positive("tol", self.tol)
        check_positive("cache_size", self.cache_size)
        if nu is not None and not (isinstance(nu, (int, float, np.floating)) and 0 < nu <= 1):
            raise ModelError(f"nu must be a number in (0, 1]; it is {nu!r}.")
        n_jobs = check_jobs(1 if getattr(self, "n_jobs", None) is None else self.n_jobs)
        cache_bytes = self.cache_size * 2.0**20
        return Settings(C, nu, self.tol, cache_bytes, self.max_iter, self.shrinking, n_jobs=n_jobs)

    # -- keeping ------------------------------------------------------------------------------------------------

    def _fit_dual(self, X: Any, kept: IntArray, source: Source, dual: duals.Dual, settings: Settings) -> duals.Solution:
        """Solve the dual of a machine with one expansion and keep it; X are the points that `kept` counts."""
        found = duals.solve(
            dual,
            source,
            tol=settings.tol,
            cache_bytes=settings.cache_bytes,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
        )
        warn_about(found.converged, found.curved, self.max_iter, type(self).__name__)
        used = np.flatnonzero(found.beta)
        self._keep(X, kept[used], found.beta[used, None], np.array([-found.rho]))
        self.dual_coef_ = found.beta[used][None]
        self.n_support_ = np.array([len(used)], np.int32)
        self.n_iter_, self.dual_objective_ = found.iterations, found.objective
        self._bound = np.any(found.alpha[:, used] >= dual.upper[:, used], axis=0)
        self._kept = kept
        return found

    def _keep(self, X: Any, support: IntArray, weights: FloatArray, intercept: FloatArray) -> None:
        """Support points and the matrix (n_sv, q) of their weights in the q expansions."""
        self.support_ = support
        precomputed = self.kernel_.kind == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if precomputed else take_points(X, support)
        self._weights, self.intercept_ = weights, intercept
        self.__dict__.pop("_feature_weights", None)
        self.__dict__.pop("_columns", None)
        if self.approx is not None:
            self._feature_weights = features_of(self.features_, self.support_vectors_).T @ weights
        elif self.kernel_.kind == "linear":
            S: Any = self.support_vectors_
            held = S.nnz if is_sparse(S) else S.size
            if S.shape[1] * weights.shape[1] <= _FOLDED * max(held, 1):  # else the support vectors take less room
                self._feature_weights = np.ascontiguousarray(S.T @ weights)

    @property
    def margin_support_(self) -> IntArray:
        """Indices of the points on the margin: 0 < α < C."""
        check_is_fitted(self, "support_")
        return self.support_[~self._bound]

    @property
    def bound_support_(self) -> IntArray:
        """Indices of the points with α = C (in any of the problems): inside the margin or on the wrong side."""
        check_is_fitted(self, "support_")
        return self.support_[self._bound]

    @property
    def non_support_(self) -> IntArray:
        """Indices of the points that may be left out without changing the machine."""
        check_is_fitted(self, "support_")
        return np.setdiff1d(self._kept, self.support_)

    @property
    def margin_vectors_(self) -> Any:
        """The points on the margin."""
        check_is_fitted(self, "support_")
        return take_points(self.support_vectors_, np.flatnonzero(~self._bound))

    @property
    def bound_vectors_(self) -> Any:
        """The points with α = C."""
        check_is_fitted(self, "support_")
        return take_points(self.support_vectors_, np.flatnonzero(self._bound))

    # -- asking -------------------------------------------------------------------------------------------------

    @cached_property
    def _columns(self) -> Any:
        """The support vectors as `gram_columns` takes them, kept from the first question about a few points on."""
        return self.kernel_.prepare_columns(self.support_vectors_)

    def _expansions(self, X: Any) -> FloatArray:
        """Σ weights k(x_i, x) + intercept, (n, q), a block of points at a time."""
        if "support_" not in vars(self):
            check_is_fitted(self, "support_")
        X = self._points(X, reset=False)
        n = count(X)
        folded = getattr(self, "_feature_weights", None)
        if n <= _FEW and folded is None and self.kernel_.kind != "precomputed" and not hasattr(X, "tocsr"):
            return self.kernel_.gram_columns(X, self._columns) @ self._weights + self.intercept_
        found = np.empty((n, len(self.intercept_)))
        widths = [len(self.support_) if folded is None else len(folded), 1]
        stays = hasattr(X, "tocsr") and (is_sparse(self.support_vectors_) or (folded is not None and not self.approx))
        if hasattr(X, "tocsr") and not stays:
            widths.append(X.shape[1])
        height = max(1, _BLOCK // max(widths))
        for start in range(0, n, height):
            rows: Any = slice(start, start + height)
            part = X if height >= n else take_points(X, np.arange(start, min(n, start + height)))
            part = part if stays else dense(part)
            if self.approx is not None:
                found[rows] = self.features_.transform(part) @ folded
                continue
            if folded is not None:
                found[rows] = part @ folded if folded.shape[1] > 1 else (part @ folded[:, 0])[:, None]
                continue
            if self.kernel_.kind == "precomputed":
                K: Array = part[:, self.support_]
            else:
                K = self.kernel_.gram(part, self.support_vectors_)
            found[rows] = K @ self._weights
        found += self.intercept_
        return found

    def approx_error(self) -> FloatArray:
        """½ βᵀ(K − ΦΦᵀ)β of every expansion, (q,), for approx="nystrom": a certificate of the approximation.

        As K − ΦΦᵀ is positive semi-definite, the least objective of the approximate dual is not above that of the
        exact one: so the exact dual objective at this solution lies above its least value by this much at most.
        O(n_sv² d) time, O(n_sv) memory.
        """
        check_is_fitted(self, "support_")
        if self.approx != "nystrom":
            raise ModelError(
                f"approx_error is known for approx='nystrom', whose kernel is never above the exact one; approx is "
                f"{self.approx!r}."
            )
        source, everyone = self.kernel_.source(self.support_vectors_, len(self.support_)), np.arange(len(self.support_))
        exact = []
        for beta in self._weights.T:
            used = np.flatnonzero(beta)
            exact.append(beta[used] @ source.times(everyone[used], used, beta[used]))
        return 0.5 * (np.array(exact) - (self._feature_weights**2).sum(axis=0))

    @property
    def coef_(self) -> FloatArray:
        """Weights of the columns, (q, d), for kernel="linear"; with `approx`, of the features, (q, m)."""
        if self.approx is None and self.kernel != "linear":
            raise AttributeError("coef_ exists for kernel='linear' only: other kernels have no weight per column.")
        check_is_fitted(self, "support_")
        if hasattr(self, "_feature_weights"):
            return np.ascontiguousarray(self._feature_weights.T)
        return np.ascontiguousarray(self._weights.T @ self.support_vectors_)
