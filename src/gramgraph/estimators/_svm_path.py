"""A grid of C and γ by cross-validation, from one Gram matrix a γ: folds are parts of it, each C starts at the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.estimators._svm_classes import class_factors, elect, pairs_of
from gramgraph.estimators._svm_kernel import ChosenKernel, choose_kernel, gram_of_matrix
from gramgraph.estimators._svm_machine import Settings
from gramgraph.estimators._svm_many import Problems, pair_problems, solve_paths
from gramgraph.estimators._svm_rows import GramRows
from gramgraph.exceptions import ModelError
from gramgraph.typing import FloatArray, IntArray, RandomState

__all__ = ["SVCPath", "svc_path"]


@dataclass(frozen=True)
class SVCPath:
    """Held-out accuracy of every kernel width, C and fold."""

    Cs: FloatArray  # (c,)
    gammas: FloatArray  # (g,); NaN where the kernel has no γ
    scores: FloatArray  # (g, c, folds)
    n_iter: IntArray  # (g, c, folds) steps of the solver, all pairs together

    @property
    def mean_scores(self) -> FloatArray:
        """(g, c): mean over the folds."""
        return self.scores.mean(axis=2)

    @property
    def best_score(self) -> float:
        """The largest mean score."""
        return float(self.mean_scores.max())

    @property
    def best_C(self) -> float:
        """C of the best mean score; the first γ and the smallest C at a tie."""
        return float(self.Cs[self._best()[1]])

    @property
    def best_gamma(self) -> float:
        """γ of the best mean score."""
        return float(self.gammas[self._best()[0]])

    def _best(self) -> tuple[int, int]:
        g, c = np.unravel_index(int(np.argmax(self.mean_scores)), self.mean_scores.shape)
        return int(g), int(c)


def svc_path(
    X: Any,
    y: Any,
    kernel: Any = None,
    Cs: Any = None,
    cv: Any = 5,
    *,
    gamma: Any = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    class_weight: Any = None,
    sample_weight: Any = None,
    tol: float = 1e-3,
    cache_size: float = 200,
    random_state: RandomState = None,
) -> SVCPath:
    """Cross-validated accuracy of `SVC` (pairs of classes vote) for every C in `Cs` and every γ in `gamma`.

    One Gram matrix a γ serves all folds, pairs and C, in single precision where that is far below `tol`; C grows and
    each fit starts from the last one, scaled. gamma="scale" is taken once, from all of X. `cv` is a number of
    stratified folds or a splitter of scikit-learn; `random_state` shuffles the folds. Weights count in learning, not
    in the scores. Memory O(n²) of 4 or 8 bytes.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = svc_path(X, y, Cs=[0.1, 1.0, 10.0], gamma=[0.1, 1.0])
    >>> path.scores.shape, path.best_score > 0.95
    ((2, 3, 5), True)
    """
    from sklearn.utils import check_array
    from sklearn.utils.validation import _check_sample_weight

    costs = np.logspace(-2, 3, 10) if Cs is None else np.atleast_1d(np.asarray(Cs, dtype=np.float64))
    if not len(costs) or not np.all(np.isfinite(costs) & (costs > 0)):
        raise ModelError(f"Cs: expected finite numbers above zero; got {Cs!r}.")
    X = check_array(X, dtype=np.float64, order="C")
    classes, label = np.unique(np.asarray(y), return_inverse=True)
    if len(label) != len(X) or len(classes) < 2:
        raise ModelError(f"X has {len(X)} points; y has {len(label)} labels of {len(classes)} classes (two or more).")
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    weight = weight * class_factors(class_weight, classes, label, weight)[label]
    splits = _splits(cv, X, label, random_state)
    choices = [
        choose_kernel(kernel, X, weight, gamma=g, degree=degree, coef0=coef0)
        for g in ([gamma] if isinstance(gamma, str) or np.ndim(gamma) == 0 else list(gamma))
    ]
    settings = Settings(1.0, None, tol, cache_size * 2.0**20, -1, True)
    by_class = np.argsort(label, kind="stable")  # so that the points of a pair are few stretches of the matrix
    splits, label, weight = _sorted_splits(splits, by_class), label[by_class], weight[by_class]
    grid = _Grams(X[np.ix_(by_class, by_class)] if choices[0].kind == "precomputed" else X[by_class], tol, costs.max())
    order = np.argsort(costs, kind="stable")
    folds = _folds(label, weight, [train for train, _ in splits], len(classes))
    scores = np.zeros((len(choices), len(costs), len(splits)))
    steps = np.zeros(scores.shape, np.int64)
    for g, choice in enumerate(choices):
        scores[g, order], steps[g, order] = _one_kernel(
            grid.of(choice), label, weight, folds, [test for _, test in splits], costs[order], settings, len(classes)
        )
    widths = [c.gamma if c.kind in ("rbf", "poly") else np.nan for c in choices]
    return SVCPath(costs, np.array(widths), scores, steps)


def _sorted_splits(splits: list[tuple[IntArray, IntArray]], order: IntArray) -> list[tuple[IntArray, IntArray]]:
    """The same splits of points that stand in another order."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return [(np.sort(place[train]), np.sort(place[test])) for train, test in splits]


def _splits(cv: Any, X: FloatArray, label: IntArray, random_state: Any) -> list[tuple[IntArray, IntArray]]:
    from sklearn.model_selection import StratifiedKFold, check_cv

    if isinstance(cv, (int, np.integer)) and random_state is not None:
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    return [(np.asarray(a), np.asarray(b)) for a, b in check_cv(cv, label, classifier=True).split(X, label)]


class _Grams:
    """Gram matrices of one set of points for several kernels; RBF ones share the squared distances."""

    def __init__(self, X: FloatArray, tol: float, largest: float) -> None:
        self.X = X
        error = 3e-8 * np.sqrt(len(X)) * largest
        self.dtype: Any = np.float32 if error < 0.1 * tol else np.float64
        self.distances: FloatArray | None = None

    def of(self, choice: ChosenKernel) -> GramRows:
        """The matrix of this kernel."""
        if choice.kind == "precomputed":
            return GramRows(np.asarray(gram_of_matrix(self.X), dtype=self.dtype))
        if choice.kind != "rbf":
            source = choice.source(self.X, len(self.X))
            scale = float(np.max(np.abs(source.diag), initial=0.0))
            # Entries above 1 scale the error of single precision, which was judged for a largest entry of 1.
            return GramRows(source.full(self.dtype if scale <= 1.0 else np.float64))
        if self.distances is None:
            Z = self.X - self.X.mean(axis=0)
            squares = np.einsum("ij,ij->i", Z, Z)
            D = Z @ Z.T
            D *= -2.0
            D += squares[:, None]
            D += squares
            np.maximum(D, 0.0, out=D)
            np.fill_diagonal(D, 0.0)
            self.distances = D.astype(self.dtype)
        from gramgraph._numerics.svm_exp import exp_rows

        K = self.distances.copy()
        exp_rows(K, -choice.gamma)
        return GramRows(K)


def _folds(label: IntArray, weight: FloatArray, trains: list[IntArray], k: int) -> Problems:
    """The pairs of classes of every fold, fold by fold."""
    parts = []
    for train in trains:
        problems = pair_problems(label, k, train[weight[train] > 0])
        for q, (i, j) in enumerate(pairs_of(k)):
            points, side = problems.part(q)
            if len(points) < 2 or np.ptp(side) == 0:
                raise ModelError(
                    f"A fold has training points of one of the classes {i} and {j} only. What helps: fewer folds."
                )
            parts.append((points, side))
    return Problems.of(parts)


def _one_kernel(
    matrix: GramRows,
    label: IntArray,
    weight: FloatArray,
    folds: Problems,
    tests: list[IntArray],
    costs: FloatArray,
    settings: Settings,
    k: int,
) -> tuple[FloatArray, IntArray]:
    """(costs, folds): accuracy on the held-out points and steps, for costs in growing order."""
    beta, told = solve_paths(matrix, folds, weight, costs, settings)
    n_pairs = k * (k - 1) // 2
    scores = np.zeros((len(costs), len(tests)))
    steps = told[:, :, 2].reshape(len(tests), n_pairs, -1).sum(axis=1).T.astype(np.int64)
    for s, test in enumerate(tests):
        mine = range(s * n_pairs, (s + 1) * n_pairs)
        W = np.zeros((matrix.n, len(costs), n_pairs), matrix.K.dtype)
        for q, problem in enumerate(mine):
            here = slice(int(folds.first[problem]), int(folds.first[problem + 1]))
            W[folds.points[here], :, q] = beta[:, here].T
        used = np.flatnonzero(W.any(axis=(1, 2)))
        D = (matrix.block(test, used) @ W[used].reshape(len(used), -1)).astype(np.float64)
        D = D.reshape(len(test), len(costs), n_pairs) - told[mine.start : mine.stop, :, 0].T
        for c in range(len(costs)):
            scores[c, s] = np.mean(elect(D[:, c], k).argmax(axis=1) == label[test])
    return scores, steps
