"""Support vector machines: classification, regression, one class."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeGuard

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from gramgraph._validation import check_choice
from gramgraph.estimators._sound import sound
from gramgraph.estimators._svm_base import SupportVectors, learns_in_blocks, refuse_nu
from gramgraph.estimators._svm_others import SVR, OneClassSVM
from gramgraph.estimators._svm_path import SVCPath, svc_path
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.machines.sparse import dense
from gramgraph.machines.svm.classes import (
    agree,
    class_factors,
    count_votes,
    couple,
    dag_scores,
    elect,
    held_out,
    pairs_of,
    platt,
    ranks_of,
    sigmoid,
    untied,
)
from gramgraph.machines.svm.dual import row_type
from gramgraph.machines.svm.machine import Settings, fit_machine, warn_about, warn_about_nu
from gramgraph.machines.svm.many import Machines, Problems, fit_apart, fit_together, pair_problems, rest_problems
from gramgraph.machines.svm.products import PowerRows, SparseRows
from gramgraph.machines.svm.rows import GramRows, Source
from gramgraph.typing import Array, FloatArray, IntArray

__all__ = ["SVC", "SVR", "OneClassSVM", "SVCPath", "svc_path"]

_MANY_POINTS = 1000  # from which the whole Gram matrix costs more than the rows that steps ask for
_FEW_COLUMNS = 128  # up to which a row of products is as quick to compute as to gather


def _has_probability(machine: Any) -> bool:
    if not machine.probability:
        raise AttributeError("predict_proba is available when SVC is made with probability=True.")
    return True


@dataclass(eq=False, repr=False)
class SVC(ClassifierMixin, SupportVectors):
    """Support vector classification.

    min ½ ‖w‖² + C Σ wᵢ max(0, 1 − yᵢ(⟨w, φ(xᵢ)⟩ + b)), solved through its dual to a KKT gap of `tol` by sequential
    minimal optimization. `nu` (the least share of support vectors, the largest of margin errors) replaces C when
    given; C = inf asks for the hard margin and fails with an error when the classes cannot be separated. A ν below what
    the data allow would have a margin of zero and any decision; where the margin is below `tol` times the spread of the
    kernel, a warning names the smallest ν that has a margin, and its machine is fitted, a C-SVC with a large C.

    `kernel` is None (RBF with gamma), a value of `gramgraph.kernels`, "linear", "rbf", "poly", "sigmoid" (not always
    positive definite), "precomputed", or a function of (X, Y). `multiclass` is "ovo" (all pairs vote; a tie goes to
    the first class, or with `break_ties=True` to the larger summed decisions), "ovr" (one against the rest, the largest
    decision wins; of those within 2 `tol`, as points on several margins have, that of the class with the most weight,
    then the first: its decision is raised to the largest) or "dag" (pairs in a decision graph, k − 1 evaluations a
    point).
    `probability=True` fits Platt's sigmoids to cross-validated decisions and couples pairs; `predict` does not change
    by it, and the largest probability is always that of the predicted class.

    `approx` serves large n: the same dual on m = `n_components` features, "nystrom" (landmarks chosen "uniform", by
    "leverage", "kmeans" or "pivots") or "features" (random Fourier features, for kernels that have them): O(n m) a
    step and O(m) a prediction. With Nyström features k − φᵀφ is positive semi-definite, and the exact dual objective
    of the solution is within `approx_error()` = ½ βᵀ(K − ΦΦᵀ)β of its least value. Random features have an error of
    O(1/√m) in every entry of the kernel matrix. Only with `approx` is there `partial_fit`, for data in blocks.

    Sparse matrices of more than four million entries (32 million in up to 4,096 columns), at most a quarter of them
    nonzero, stay sparse for kernels with a name: "linear" is solved by coordinate descent in memory of the order of the
    data (`n_iter_` counts sweeps then), the others by sparse products. Others, and all with `approx` or a kernel value,
    are made dense, 8 n d bytes.

    Fitted: `support_`, `support_vectors_`, `n_support_`, `dual_coef_` ((1, n_sv) for two classes, (k − 1, n_sv) for
    pairs as in libsvm, (k, n_sv) for "ovr"), `intercept_`; `margin_support_` / `margin_vectors_` (0 < α < C, on the
    margin), `bound_support_` / `bound_vectors_` (α = C, inside it or misclassified), `non_support_`;
    `dual_objective_`, `n_iter_`. Cost: O(n) a step, and O(n d) for a kernel row outside the cache of `cache_size` MB.

    Parameters
    ----------
    kernel : a kernel value, a name, or a function of (X, Y).
    gamma, degree, coef0 : numbers of the kernels with a name.
    tol : KKT gap at which the dual is solved.
    cache_size : megabytes of kernel rows that are kept.
    max_iter : most steps; -1: no bound.
    shrinking : whether points at their bounds are set aside.
    approx, n_components, landmarks : see above.
    random_state : seed of folds and features.
    C : penalty of margin errors.
    nu : in place of C.
    multiclass, break_ties : see above.
    decision_function_shape : "ovr" (one column a class) or "ovo" (one a pair).
    class_weight : None, "balanced", or a dict {class: weight}.
    probability : whether `predict_proba` is there.
    n_jobs : threads over the two-class machines of several classes; None for one, -1 for one a processor. The numbers
        do not depend on it, and little work stays on one thread.

    Examples
    --------
    >>> X = [[-1.0], [0.0], [1.0]]
    >>> machine = SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=float("inf"), tol=1e-8).fit(X, [1, -1, 1])
    >>> machine.predict([[-2.0], [0.1], [3.0]])
    array([ 1, -1,  1])
    >>> machine.decision_function(X).round(4)
    array([ 1., -1.,  1.])
    """

    _: KW_ONLY
    C: float = 1.0
    nu: float | None = None
    multiclass: str = "ovo"
    decision_function_shape: str = "ovr"
    break_ties: bool = False
    class_weight: Any = None
    probability: bool = False
    n_jobs: int | None = None

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SVC:
        """Learn from points X and labels y; a sample weight multiplies C, as repeating the row would."""
        settings = self._checked()
        X = self._points(X, reset=True)
        y = self._labels(y, count(X))
        kept, weight, source = self._open(X, sample_weight, len(y))
        return self._fit_classes(X, kept, source, y[kept], weight, settings)

    @available_if(learns_in_blocks)
    @sound
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> SVC:
        """Learn from one more block of rows; the features are fixed by the first, support vectors are carried on.

        `classes` names all labels at the first call (by default those of the first block, which must hold points of
        every class). The machine is that of the new block and the support vectors so far: near that of one `fit`,
        not equal to it. Memory O((block + support vectors) (m + d)).
        """
        settings = self._checked()
        refuse_nu(self)
        first = not hasattr(self, "_memory")
        X = self._points(X, reset=first)
        y = self._labels(y, count(X), self.classes_ if not first else classes)
        points, label, weight, source = self._next_block(dense(X), y, sample_weight)
        self._fit_classes(points, np.arange(len(label)), source, label, weight, settings)
        self._end_block()
        return self

    def _checked(self) -> Settings:
        check_choice("multiclass", self.multiclass, ("ovo", "ovr", "dag"))
        check_choice("decision_function_shape", self.decision_function_shape, ("ovo", "ovr"))
        check_choice("break_ties", self.break_ties, (True, False))
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ModelError(
                "break_ties must be False when decision_function_shape is 'ovo': ties are broken by the scores of "
                "classes. Try: decision_function_shape='ovr'."
            )
        if not (isinstance(self.C, (int, float, np.integer, np.floating)) and self.C > 0):
            raise ModelError(f"C must be a number above zero (inf for the hard margin); it is {self.C!r}.")
        return self._settings(float(self.C), self.nu)

    def _fit_classes(
        self, X: Any, kept: IntArray, source: Source, label: IntArray, weight: FloatArray, settings: Settings
    ) -> SVC:
        present = np.bincount(label, minlength=len(self.classes_))
        if np.any(present == 0) or len(self.classes_) < 2:
            raise ModelError(
                f"{type(self).__name__} needs points of at least two classes, each with a positive weight; the number "
                f"of classes with points is {np.count_nonzero(present)}: got 1 class"
                if np.count_nonzero(present) < 2
                else f"Class {self.classes_[int(np.argmin(present))]!r} has no point with a positive weight."
            )
        weight = weight * class_factors(self.class_weight, self.classes_, label, weight)[label]
        if len(self.classes_) > 2:  # class by class, so that the points of a pair are two stretches
            order = np.argsort(label, kind="stable")
            source, kept, label, weight = source.subset(order), kept[order], label[order], weight[order]
        self._fit_all(X, source, kept, label, weight, settings)
        return self

    def _labels(self, y: Any, n: int, classes: Any = None) -> IntArray:
        """Labels as numbers of classes; sets classes_."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: SVC learns from labels.")
        if not (isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuUS"):  # these need no look inside
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
        if len(y) != n:
            raise ValueError(f"X has {n} points, y has {len(y)} labels: inconsistent numbers of samples.")
        if classes is None:
            self.classes_, codes = np.unique(y, return_inverse=True)
            return np.asarray(codes, np.int64)
        self.classes_ = np.unique(classes)
        strange = np.setdiff1d(y, self.classes_)
        if len(strange):
            raise ModelError(f"label {strange.tolist()[0]!r}, which is not a class of {self.classes_.tolist()}.")
        return np.searchsorted(self.classes_, y)

    def _problems(self, label: IntArray) -> tuple[Problems, list[tuple[object, object]]]:
        """The two-class problems, and the names of their two sides (−1 first)."""
        k, names = len(self.classes_), self.classes_.tolist()
        if k == 2:
            return rest_problems(label, k), [(names[0], names[1])]
        if self.multiclass == "ovr":
            return rest_problems(label, k), [("the rest", name) for name in names]
        return pair_problems(label, k), [(names[j], names[i]) for i, j in pairs_of(k)]

    def _fit_all(
        self, X: Any, source: Source, kept: IntArray, label: IntArray, weight: FloatArray, settings: Settings
    ) -> None:
        problems, names = self._problems(label)
        source, shared = _shared(source, weight, settings, problems, self.probability)
        if settings.nu is None and np.isfinite(settings.C) and _belong_together(source, problems, settings):
            found = fit_together(source, problems, weight, settings)
        else:
            found = fit_apart(source, problems, weight, settings, names)
        self._sigmoids: list[tuple[float, float]] = []
        if self.probability:
            rng = np.random.default_rng(_seed(self.random_state))
            for q in range(len(problems)):
                points, side = problems.part(q)
                part = shared if len(points) == shared.n else shared.subset(points)
                self._sigmoids.append(_calibrate(part, side, weight[points], settings, rng))
        self.n_iter_, self.dual_objective_ = found.iterations, found.objectives
        warn_about(found.converged, found.curved, self.max_iter, type(self).__name__)
        warn_about_nu(self.nu, found.least_nu, type(self).__name__)
        self._ties = ranks_of(label, weight, len(self.classes_)), 2.0 * settings.tol
        self._keep_all(X, kept, label, found)

    def _keep_all(self, X: Any, kept: IntArray, label: IntArray, found: Machines) -> None:
        used = np.flatnonzero(found.weights.any(axis=1))
        used = used[np.argsort(label[used], kind="stable")]
        W = found.weights[used]
        self._n = len(kept)
        self.n_support_ = np.bincount(label[used], minlength=len(self.classes_)).astype(np.int32)
        self._keep(X, kept[used], W, found.intercepts)
        self._bound = found.bound[used]
        self._kept = kept
        self.dual_coef_ = _libsvm_layout(W, self.n_support_, self.multiclass)

    # -- asking -------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> FloatArray:
        """(n,) for two classes: positive speaks for classes_[1]; (n, k) scores whose largest is the prediction, but
        for ties of votes without `break_ties`.

        With decision_function_shape="ovo" (and pairs): the raw (n, k (k − 1) / 2) decisions, positive for the first.
        """
        D = self._expansions(X)
        if len(self.classes_) == 2:
            return D[:, 0]
        return D if self.decision_function_shape == "ovo" else self._scores(D)

    def _scores(self, D: FloatArray) -> FloatArray:
        if self.multiclass == "ovr":
            return untied(D, *self._ties) if hasattr(self, "_ties") else D  # files of earlier versions have none
        return (dag_scores if self.multiclass == "dag" else elect)(D, len(self.classes_))

    def _codes(self, D: FloatArray) -> IntArray:
        if len(self.classes_) == 2:
            return (D[:, 0] > 0).astype(np.int64)
        if self.multiclass == "ovo" and not self.break_ties:
            return np.asarray(count_votes(D, len(self.classes_)).argmax(axis=1), np.int64)
        return np.asarray(self._scores(D).argmax(axis=1), np.int64)

    def predict(self, X: Any) -> Array:
        """The label of every point."""
        D = self._expansions(X)
        return self.classes_[self._codes(D)]

    @available_if(_has_probability)
    @sound
    def predict_proba(self, X: Any) -> FloatArray:
        """(n, k) probabilities in the order of classes_; their largest is the predicted class."""
        D, k = self._expansions(X), len(self.classes_)
        if not self._sigmoids:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False: the sigmoids are learned in fit. "
                "Try: fit again, now that probability=True."
            )
        p = np.stack([sigmoid(D[:, q], *self._sigmoids[q]) for q in range(D.shape[1])], axis=1)
        p = np.clip(p, 1e-7, 1 - 1e-7)
        if k == 2:
            P = np.column_stack([1 - p[:, 0], p[:, 0]])
        elif self.multiclass == "ovr":
            P = p / p.sum(axis=1, keepdims=True)
        else:
            R = np.zeros((len(D), k, k))
            for q, (i, j) in enumerate(pairs_of(k)):
                R[:, i, j], R[:, j, i] = p[:, q], 1 - p[:, q]
            P = couple(R)
        return agree(P, self._codes(D))

    @available_if(_has_probability)
    @sound
    def predict_log_proba(self, X: Any) -> FloatArray:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def path(self, X: Any, y: Any, Cs: Any, *, cv: Any = 5, sample_weight: Any = None) -> SVCPath:
        """Cross-validated accuracy for many C, sharing one Gram matrix over C, folds, warm starts; see `svc_path`."""
        return svc_path(
            X,
            y,
            self.kernel,
            Cs,
            cv,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            break_ties=self.break_ties,
            class_weight=self.class_weight,
            sample_weight=sample_weight,
            tol=self.tol,
            cache_size=self.cache_size,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )


def _seed(random_state: Any) -> Any:
    """What numpy's generator takes, from what scikit-learn's users pass."""
    return random_state.randint(2**31) if isinstance(random_state, np.random.RandomState) else random_state


def _shared(
    source: Source, weight: FloatArray, settings: Settings, problems: Problems, probability: bool
) -> tuple[Source, Source]:
    """The sources of the machines and of their cross-validation: one matrix where many read the same entries.

    A single machine keeps its own source, so that its result does not depend on `probability`.
    """
    if isinstance(source, SparseRows) and source.linear:
        return source, source
    if isinstance(source, PowerRows) and _rows_pay(source, problems, settings):
        return source, source
    largest = float(weight.max()) * (settings.C if settings.nu is None else 1.0)
    dtype = row_type(largest, source, settings.tol, int(np.diff(problems.first).max()))
    if settings.nu is not None:  # its margin, which decisions are divided by, may be small
        dtype = np.float64
    if (len(problems) == 1 and not probability) or source.n**2 * np.dtype(dtype).itemsize > settings.cache_bytes:
        return source, source
    matrix = GramRows(source.full(dtype, settings.n_jobs))
    return (source if len(problems) == 1 else matrix), matrix


def _rows_pay(source: PowerRows, problems: Problems, settings: Settings) -> bool:
    """Whether rows are better computed when a step asks for them: few columns, and room for those of one problem."""
    size = int(np.diff(problems.first).max())
    return source.n > _MANY_POINTS and source.X.shape[1] <= _FEW_COLUMNS and 8 * size**2 <= settings.cache_bytes


def _belong_together(source: Source, problems: Problems, settings: Settings) -> TypeGuard[GramRows | PowerRows]:
    """Whether the machines are solved in one call of compiled code."""
    if isinstance(source, PowerRows):
        return _rows_pay(source, problems, settings)
    return isinstance(source, GramRows) and len(problems) > 1


def _calibrate(
    source: Source, y: FloatArray, weight: FloatArray, settings: Settings, rng: np.random.Generator
) -> tuple[float, float]:
    def decide(train: IntArray, test: IntArray) -> FloatArray:
        machine = fit_machine(source.subset(train), y[train], weight[train], settings)
        used = np.flatnonzero(machine.beta)
        return source.times(test, train[used], machine.beta[used]) + machine.intercept

    return platt(held_out(y, 5, rng, decide), y, weight)


def _libsvm_layout(W: FloatArray, counts: Array, multiclass: str) -> FloatArray:
    """(n_sv, q) weights as scikit-learn's users know them: the k − 1 machines of its class for each support vector.

    Rows come class by class, `counts` of each.
    """
    k = len(counts)
    if k == 2 or multiclass == "ovr":
        return np.ascontiguousarray(W.T)
    ends = np.concatenate([[0], np.cumsum(counts)]).tolist()
    row = [0] * k
    found = np.zeros((k - 1, len(W)))
    for q, (i, j) in enumerate(pairs_of(k)):
        for c in (i, j):  # the machines of class c stand in the order of the other class
            mine = slice(ends[c], ends[c + 1])
            found[row[c], mine] = W[mine, q]
            row[c] += 1
    return found
