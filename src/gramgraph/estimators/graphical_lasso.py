"""Sparse Gaussian graphs from data: the graphical lasso, its penalty chosen by EBIC or by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from gramgraph._other_words import OtherWords
from gramgraph._validation import check_choice, check_count, check_positive
from gramgraph.estimators._sound import SoundNumbers, read_matrix
from gramgraph.exceptions import ModelError
from gramgraph.machines.glasso import (
    GraphicalLassoPath,
    Solution,
    alpha_grid,
    cv_scores,
    ebic_path,
    graphical_lasso_path,
    refit,
    solutions,
)
from gramgraph.typing import FloatArray

if TYPE_CHECKING:
    from gramgraph.distributions.gaussian import Gaussian
    from gramgraph.models.markov_network import MarkovNetwork

__all__ = ["GraphicalLasso", "GraphicalLassoPath", "graphical_lasso_path", "partial_correlations"]

_SOFT = 0.1  # partial correlation at which an adaptive penalty is half


@dataclass(eq=False, repr=False)
class GraphicalLasso(OtherWords, SoundNumbers, BaseEstimator):
    """A Gaussian with few edges: Θ minimizes −log |Θ| + tr(SΘ) + α Σ_{i≠j} w_ij |Θ_ij|, zeros of Θ are missing edges.

    The problem is cut into exact blocks, solved by block coordinate descent, and every solution carries a duality gap
    that bounds its distance from the optimum. Penalties are tried from large to small, each beginning at the last.

    Parameters
    ----------
    alpha : the penalty α, or how it is chosen: "ebic" (extended Bayesian information criterion of the graphs on the
        path, each with its own best fit: finds graphs) or "cv" (held-out likelihood: finds densities, with more edges)
    alphas : the penalties that are tried; without them `n_alphas` from the least one that leaves no edge down to
        `alpha_min_ratio` of it (by default down to what chance alone would show, √(log p / n) / 4)
    gamma : of the EBIC, from 0 (the plain criterion) to 1 (strict, for many variables)
    cv : number of folds, or a scikit-learn splitter
    adaptive : True fits twice: pairs with partial correlation ρ in the first fit pay α / (1 + |ρ| / 0.1) in the second,
        which takes bias off strong edges and leaves fewer false ones. A number replaces 0.1.
    refit : whether the precision is fitted again by maximum likelihood with the zeros of the graph, without a penalty
    standardize : whether α acts on correlations, so that units do not matter; False takes the covariances as they are
    tol : duality gap at which a solution is taken
    max_iter : most sweeps
    n_alphas : number of penalties on the path
    alpha_min_ratio : the least penalty, as a share of the largest

    Attributes
    ----------
    precision_, covariance_ (p, p), location_ (p,) : the model, in the units of the data
    graph_ (p, p) : True where two variables share an edge
    partial_correlations_ (p, p)
    alpha_ : the penalty that was used
    alphas_, scores_ : penalties tried, and their EBIC (less is better) or mean held-out log likelihood
    cv_results_ : of "cv", by the words of scikit-learn: alphas, mean_test_score, std_test_score, split0_test_score, …
    objective_, dual_gap_, n_iter_ : of the final solution, on the scale it was solved on

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal(500)
    >>> y = x + rng.standard_normal(500)
    >>> z = y + rng.standard_normal(500)
    >>> model = GraphicalLasso(adaptive=True).fit(np.column_stack([x, y, z]))
    >>> model.graph_.astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    """

    alpha: float | str = "ebic"
    _: KW_ONLY
    alphas: Any = None
    n_alphas: int = 20
    alpha_min_ratio: float | None = None
    gamma: float = 0.5
    cv: Any = 5
    adaptive: bool | float = False
    refit: bool = False
    standardize: bool = True
    tol: float = 1e-4
    max_iter: int = 200

    def fit(self, X: Any, y: Any = None) -> GraphicalLasso:
        """Estimate the precision from rows of X (n, p), n ≥ 2. O(p² · edges per variable) for a penalty and sweep."""
        self._check_parameters()
        X = read_matrix(self, X, dtype=np.float64, ensure_min_samples=2)
        self.location_: FloatArray = X.mean(axis=0)
        D = X - self.location_
        spread = np.sqrt(np.mean(D * D, axis=0))
        flat = spread <= 1e-14 * np.maximum(np.abs(self.location_), 1e-300)
        if flat.any():
            raise ModelError(
                f"Column {self._name(int(np.flatnonzero(flat)[0]))} is constant, so its precision is infinite. What "
                f"helps: leave it out."
            )
        self._refuse_copies(D / spread)
        size = spread if self.standardize else np.ones_like(spread)
        D /= size
        S = D.T @ D / len(D)
        if self.standardize:
            np.fill_diagonal(S, 1.0)
        best = self._choose(X, S, np.ones_like(S))
        if self.adaptive is not False:
            soft = _SOFT if self.adaptive is True else float(self.adaptive)
            best = self._choose(X, S, 1.0 / (1.0 + np.abs(partial_correlations(best.precision)) / soft))
        if self.refit:
            best = self._without_penalty(S, best)
        self._keep(best, size)
        return self

    def _refuse_copies(self, Z: FloatArray) -> None:
        """Columns that are multiples of each other have no joint density: without a penalty they cannot be fitted."""
        if len(Z) < 3 or not (self.alpha == "ebic" or self.refit):
            return
        R = np.triu(np.abs(Z.T @ Z) / len(Z), 1)
        if (R > 1.0 - 1e-12).any():
            a, b = (self._name(int(i)) for i in np.argwhere(R > 1.0 - 1e-12)[0])
            raise ModelError(
                f"Columns {a} and {b} are multiples of each other, so that graphs with both cannot be compared. What "
                f"helps: leave one out, or give alpha a number or 'cv'."
            )

    def _without_penalty(self, S: FloatArray, best: Solution) -> Solution:
        graph = (best.precision != 0.0) & ~np.eye(len(S), dtype=bool)
        found = refit(S, graph, tol=float(self.tol), max_iter=int(self.max_iter))
        if found is None:
            raise ModelError(
                f"refit=True: the graph has {int(graph.sum()) // 2} edges, too many for a maximum likelihood fit to "
                f"these data. Try: a larger alpha, or refit=False."
            )
        return found._replace(alpha=best.alpha)

    def _choose(self, X: FloatArray, S: FloatArray, w: FloatArray) -> Solution:
        """The solution at the best penalty; which were tried and how they did is kept."""
        options = {"tol": float(self.tol), "max_iter": int(self.max_iter)}
        self.__dict__.pop("cv_results_", None)  # of another fit
        if not isinstance(self.alpha, str):
            self.alphas_, self.scores_ = np.array([float(self.alpha)]), np.array([np.nan])
            return next(solutions(S, w, self.alphas_, **options))  # type: ignore[arg-type]
        self.alphas_ = alpha_grid(S, w, self.alphas, self.n_alphas, self.alpha_min_ratio, len(X))
        if self.alpha == "ebic":
            self.scores_, best = ebic_path(S, len(X), w, self.alphas_, gamma=float(self.gamma), **options)  # type: ignore[arg-type]
            return best
        from sklearn.model_selection import check_cv

        splits = list(check_cv(self.cv).split(X))
        scores = cv_scores(X, splits, w, self.alphas_, scaled=bool(self.standardize), **options)  # type: ignore[arg-type]
        self.scores_ = scores.mean(axis=0)
        self.cv_results_ = {
            "alphas": self.alphas_,
            "mean_test_score": self.scores_,
            "std_test_score": scores.std(axis=0),
        }
        self.cv_results_ |= {f"split{fold}_test_score": row for fold, row in enumerate(scores)}
        upto = int(self.scores_.argmax())
        *_, last = solutions(S, w, self.alphas_[: upto + 1], **options)  # type: ignore[arg-type]
        return last

    def _keep(self, best: Solution, size: FloatArray) -> None:
        if best.dual_gap > self.tol:
            warnings.warn(
                f"GraphicalLasso stopped after max_iter={self.max_iter} sweeps with a duality gap {best.dual_gap:.2g} "
                f"above tol={self.tol:g}; raise max_iter, tol or alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )
        T = best.precision
        self.precision_: FloatArray = T / size[:, None] / size
        W = np.linalg.inv(T)
        self.covariance_: FloatArray = 0.5 * (W + W.T) * size[:, None] * size
        self.graph_ = (T != 0.0) & ~np.eye(len(T), dtype=bool)
        self.partial_correlations_: FloatArray = partial_correlations(T)
        self.alpha_, self.objective_, self.dual_gap_ = best.alpha, best.objective, best.dual_gap
        self.n_iter_ = max(best.n_iter, 1)

    def score_samples(self, X: Any) -> FloatArray:
        """Log density of every row, (n,)."""
        check_is_fitted(self)
        X = read_matrix(self, X, dtype=np.float64, reset=False)
        return np.asarray(self.to_gaussian().log_density(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(self.score_samples(X).mean())

    def edges(self) -> list[tuple[str, str, float]]:
        """Pairs of variables that share an edge, with their partial correlation, in the order of the columns.

        >>> X = np.random.default_rng(0).standard_normal((50, 2))
        >>> GraphicalLasso(2.0).fit(X).edges()
        []
        """
        check_is_fitted(self)
        rho = self.partial_correlations_
        pairs = np.argwhere(np.triu(self.graph_)).tolist()
        return [(self._name(i), self._name(j), float(rho[i, j])) for i, j in pairs]

    def to_gaussian(self) -> Gaussian:
        """The fitted distribution N(location_, precision_⁻¹)."""
        from gramgraph.distributions.gaussian import Gaussian

        check_is_fitted(self)
        return Gaussian.from_precision(self.precision_ @ self.location_, self.precision_)

    def to_markov_network(self, names: Sequence[str] | None = None) -> MarkovNetwork:
        """The fitted distribution as a `MarkovNetwork` with an edge for every non-zero precision; it answers queries.

        Names are those of the data frame it was fitted on, else x0, x1, ….
        """
        from gramgraph.models.markov_network import MarkovNetwork

        check_is_fitted(self)
        own = [self._name(i) for i in range(len(self.precision_))]
        return MarkovNetwork.from_precision(self.precision_, mean=self.location_, names=own if names is None else names)

    def _name(self, i: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"x{i}" if names is None else str(names[i])

    def _check_parameters(self) -> None:
        if isinstance(self.alpha, str):
            check_choice("alpha", self.alpha, ("ebic", "cv"))
        else:
            check_positive("alpha", self.alpha, zero=True)
        check_positive("gamma", self.gamma, zero=True)
        check_positive("tol", self.tol)
        check_choice("refit", self.refit, (True, False))
        check_choice("standardize", self.standardize, (True, False))
        if not isinstance(self.adaptive, bool):
            check_positive("adaptive", self.adaptive)
        check_count("max_iter", self.max_iter)


def partial_correlations(precision: Any) -> FloatArray:
    """−Θ_ij / √(Θ_ii Θ_jj): the correlation of i and j once all others are known; 1 on the diagonal.

    Parameters
    ----------
    precision : (p, p) inverse covariance.

    Examples
    --------
    >>> partial_correlations([[2.0, -1.0], [-1.0, 2.0]]).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    try:
        T = np.asarray(precision, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"precision must be a square matrix of numbers; it is {precision!r:.60}.") from None
    if T.ndim != 2 or T.shape[0] != T.shape[1] or not (np.diagonal(T) > 0.0).all():
        raise ModelError(f"precision must be a square matrix with a positive diagonal; its shape is {T.shape}.")
    size = np.sqrt(np.diagonal(T))
    R = T / -size[:, None] / size
    if not np.abs(R).max(initial=0.0) <= 1.0 + 1e-9:  # NaN as well
        raise ModelError("precision must be positive semidefinite; some |Θ_ij| is above √(Θ_ii Θ_jj), or NaN.")
    np.fill_diagonal(R, 1.0)
    return R + 0.0  # no negative zeros
