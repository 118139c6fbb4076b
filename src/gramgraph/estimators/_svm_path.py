"""A grid of C and γ by cross-validation, from one Gram matrix a γ: folds are parts of it, each C starts at the last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._validation import check_jobs
from gramgraph.estimators._svm_base import SupportVectors
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.machines.points import take_points
from gramgraph.machines.sparse import dense
from gramgraph.machines.svm.grid import Grid
from gramgraph.machines.svm.kernel import ChosenKernel, choose_kernel
from gramgraph.machines.svm.machine import Settings
from gramgraph.typing import FloatArray, IntArray, RandomState


@dataclass(frozen=True)
class SVCPath:
    """Held-out accuracy of every kernel width, C and fold.

    Parameters
    ----------
    Cs : (c,).
    gammas : widths of the kernel.
    scores : of every fold and pair of parameters.
    n_iter : steps that were taken.

    Examples
    --------
    >>> import gramgraph as gg
    >>> X = np.array([[0.0], [0.2], [0.4], [1.0], [1.2], [1.4]])
    >>> path = gg.SVC().path(X, [0, 0, 0, 1, 1, 1], Cs=[0.1, 10.0], cv=3)
    >>> path.scores.shape[-1] == 3
    True
    """

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
        """C of the best mean score; at a tie the first C and of its γ the first, as a search over both would say."""
        return float(self.Cs[self._best()[1]])

    @property
    def best_gamma(self) -> float:
        """γ of the best mean score."""
        return float(self.gammas[self._best()[0]])

    def _best(self) -> tuple[int, int]:
        c, g = np.unravel_index(int(np.argmax(self.mean_scores.T)), self.mean_scores.T.shape)
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
    break_ties: bool = False,
    class_weight: Any = None,
    sample_weight: Any = None,
    tol: float = 1e-3,
    cache_size: float = 200,
    random_state: RandomState = None,
    n_jobs: int | None = None,
) -> SVCPath:
    """Cross-validated accuracy of `SVC` (pairs of classes vote) for every C in `Cs` and every γ in `gamma`.

    One Gram matrix a γ serves all folds, pairs and C, in single precision where that is far below `tol`; C grows and
    each fit starts from the last one, scaled. gamma="scale" and class_weight="balanced" are taken from the training
    points of each fold, as a search that refits would; `gammas` then holds the value of all points. `cv` is a number of
    stratified folds or a splitter of scikit-learn; `random_state` shuffles the folds. Weights count in learning, not
    in the scores. X may be whatever `kernel` takes: a matrix, sparse or not, a frame, words, sets, graphs. Memory O(n²)
    of 4 or 8 bytes.

    Parameters
    ----------
    X : points.
    y : classes.
    kernel : a kernel value, a name, or a function.
    Cs : penalties.
    cv : folds, or a splitter.
    gamma : of the kernels with a name.
    degree : of the kernel "poly".
    coef0 : of the kernels "poly" and "sigmoid".
    break_ties, class_weight : as in `SVC`.
    sample_weight : weights of the points.
    tol : KKT gap at which a problem is solved.
    cache_size : megabytes of kernel rows that are kept.
    random_state : seed.
    n_jobs : threads over folds and pairs of classes; None for one, -1 for one a processor. Scores do not depend on it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> path = svc_path(X, y, Cs=[0.1, 1.0, 10.0], gamma=[0.1, 1.0])
    >>> path.scores.shape, path.best_score > 0.95
    ((2, 3, 5), True)
    """
    from sklearn.utils.validation import _check_sample_weight

    costs = np.logspace(-2, 3, 10) if Cs is None else np.atleast_1d(np.asarray(Cs, dtype=np.float64))
    if not len(costs) or not np.all(np.isfinite(costs) & (costs > 0)):
        raise ModelError(f"Cs: expected finite numbers above zero; got {Cs!r}.")
    X = _read(X, kernel)
    n = count(X)
    classes, label = np.unique(np.asarray(y), return_inverse=True)
    if len(label) != n or len(classes) < 2:
        raise ModelError(f"X has {n} points; y has {len(label)} labels of {len(classes)} classes (two or more).")
    weight = _check_sample_weight(sample_weight, np.empty((n, 0)), dtype=np.float64, ensure_non_negative=True)
    by_class = np.argsort(label, kind="stable")  # so that the points of a pair are few stretches of the matrix
    splits = _sorted_splits(_splits(cv, n, label, random_state), by_class)
    label, weight = label[by_class], weight[by_class]
    X = X[np.ix_(by_class, by_class)] if _is_precomputed(kernel) else take_points(X, by_class)
    threads = check_jobs(1 if n_jobs is None else n_jobs)
    settings = Settings(1.0, None, tol, cache_size * 2.0**20, -1, True, n_jobs=threads)
    grid = Grid(
        X, classes, label, weight, splits=splits, class_weight=class_weight, break_ties=bool(break_ties),
        settings=settings, costs=np.sort(costs),
    )  # fmt: skip
    order = np.argsort(costs, kind="stable")
    gammas = [gamma] if isinstance(gamma, str) or np.ndim(gamma) == 0 else list(gamma)
    scores = np.zeros((len(gammas), len(costs), len(splits)))
    steps = np.zeros(scores.shape, np.int64)
    widths = np.full(len(gammas), np.nan)
    for g, value in enumerate(gammas):
        choice = choose_kernel(kernel, X, gamma=value, degree=degree, coef0=coef0)
        widths[g] = choice.gamma if choice.kind in ("rbf", "poly", "sigmoid") else np.nan
        parts: list[tuple[ChosenKernel, list[int]]] = [(choice, list(range(len(splits))))]
        if isinstance(value, str) and value == "scale" and choice.kind in ("rbf", "poly", "sigmoid"):
            parts = [
                (choose_kernel(kernel, X[train], gamma=value, degree=degree, coef0=coef0), [s])
                for s, (train, _) in enumerate(splits)
            ]
        for part, folds in parts:
            cells = np.ix_(order, np.array(folds))
            scores[g][cells], steps[g][cells] = grid.scores(part, folds)
    return SVCPath(costs, widths, scores, steps)


def _is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel == "precomputed"


def _read(X: Any, kernel: Any) -> Any:
    """The points as the machines read them."""
    reader = SupportVectors()
    reader.kernel = kernel
    with np.errstate(over="ignore", invalid="ignore"):  # numbers out of range are an error of their own
        return dense(reader._points(X, reset=True))


def _sorted_splits(splits: list[tuple[IntArray, IntArray]], order: IntArray) -> list[tuple[IntArray, IntArray]]:
    """The same splits of points that stand in another order."""
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return [(np.sort(place[train]), np.sort(place[test])) for train, test in splits]


def _splits(cv: Any, n: int, label: IntArray, random_state: Any) -> list[tuple[IntArray, IntArray]]:
    from sklearn.model_selection import StratifiedKFold, check_cv

    if isinstance(cv, (int, np.integer)) and random_state is not None:
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=random_state)
    return [(np.asarray(a), np.asarray(b)) for a, b in check_cv(cv, label, classifier=True).split(np.zeros(n), label)]
