"""The conditional mean embedding as an estimator: the whole distribution of Y given x, from one ridge regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from gramgraph.data.frames import is_frame
from gramgraph.embeddings.conditional import conditional_operator
from gramgraph.embeddings.mean import MeanEmbedding
from gramgraph.estimators._base import KernelEstimator
from gramgraph.estimators._reading import is_matrix, read_points
from gramgraph.estimators._sound import read_matrix
from gramgraph.exceptions import ModelError, OptionError
from gramgraph.kernels.inputs import KernelError, count
from gramgraph.kernels.tables import own_copy
from gramgraph.machines.checks import LARGEST
from gramgraph.machines.kernels import is_kernel
from gramgraph.typing import FloatArray


@dataclass(eq=False, repr=False)
class ConditionalEmbedding(RegressorMixin, MultiOutputMixin, KernelEstimator):
    """E[ψ(Y) | x] = Σ βᵢ(x) ψ(yᵢ): after one fit, the expectation of every function of Y given x.

    The weights β(x) sum to one (centered form) and are the marginal's, 1/n, far from the data. Without `kernel_x` it is
    an RBF whose bandwidth is chosen together with the penalty; without `kernel_y` that of the values' domain with the
    median distance. X and Y may be points of any kind that their kernels take; `predict` needs numbers in Y.

    Parameters
    ----------
    kernel_x, kernel_y : Kernel or None
        Values of `gg.kernels`.
    reg : float or "loo"
        λ of (HKH + nλ)⁻¹; "loo" takes the smallest leave-one-out error, in closed form.
    domain_x, domain_y : str or None
        A domain ("real", "circle", "category", …) that names the default kernel.
    centered : bool
        False gives the weights (K + nλ)⁻¹ k_x, which do not sum to one.
    approx : {"auto", "exact", "cholesky", "nystrom", "features"}
        All directions, O(n³); incomplete Cholesky; landmarks; random Fourier features. "auto" is exact up to 500
        points and incomplete Cholesky above.
    n_components : int
        The largest number of features, except for "exact".
    random_state : int or None
        For landmarks and random features.

    Attributes
    ----------
    operator_ : ConditionalOperator
        What `gg.embeddings.sum_rule`, `chain_rule` and `bayes_rule` take.
    kernel_x_, kernel_y_, reg_, loo_error_
        Kernels and penalty in use; the leave-one-out error in feature space (None for a given penalty).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (400, 1))
    >>> y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=400)
    >>> model = ConditionalEmbedding().fit(X, y)
    >>> model.predict([[1.5]]).round(1)
    array([1.])
    >>> model.predict_expectation(lambda y: y > 1.0, [[1.5], [-1.5]]).round(1) + 0.0
    array([0.5, 0. ])
    """

    kernel = None  # the base class asks for it; this estimator has two
    kernel_x: Any = None
    kernel_y: Any = None
    reg: float | str = "loo"
    _: KW_ONLY
    domain_x: str | None = None
    domain_y: str | None = None
    centered: bool = True
    approx: str = "auto"
    n_components: int = 300
    random_state: int | None = None

    def fit(self, X: Any, y: Any) -> ConditionalEmbedding:
        """Learn from points X and Y, paired row by row; O(n r²) with r features, for each of up to five bandwidths."""
        X = self._inputs(X, reset=True)
        Y = self._outcomes(y, count(X))
        self.operator_ = conditional_operator(
            X,
            Y,
            kernel_x=self.kernel_x,
            kernel_y=self.kernel_y,
            domain_x=self.domain_x,
            domain_y=self.domain_y,
            reg=self.reg,
            centered=bool(self.centered),
            approx=self.approx,
            n_components=self.n_components,
            random_state=self.random_state,
        )
        self._outcome = Y
        self.kernel_x_, self.kernel_y_ = self.operator_.kernel_x, self.operator_.kernel_y
        self.reg_, self.loo_error_ = self.operator_.reg, self.operator_.loo_error
        return self

    def _inputs(self, X: Any, *, reset: bool) -> Any:
        if is_kernel(self.kernel_x) and is_frame(X):
            found = read_points(self, self.kernel_x, X, reset=reset)
            if found is not None:
                return own_copy(found, X) if reset else found
        elif not self._takes_vectors(X):
            return own_copy(X, X) if reset else X
        least = 2 if reset else 1
        return read_matrix(
            self,
            X,
            limit=np.inf if is_kernel(self.kernel_x) else LARGEST,
            reset=reset,
            dtype=np.float64,
            order="C",
            ensure_min_samples=least,
            copy=reset,
        )

    def _takes_vectors(self, X: Any) -> bool:
        """Whether X must be a matrix of numbers, which scikit-learn checks; other points are their kernel's affair."""
        if self.kernel_x is None:
            return self.domain_x not in ("category", "set", "string") or is_matrix(X)
        if not is_kernel(self.kernel_x) or isinstance(X, tuple):
            return not isinstance(X, tuple)
        if is_matrix(X):
            return True
        try:
            self.kernel_x.prepare(np.array([["a"]]))
        except KernelError:  # a kernel that knows numbers only
            return True
        return False

    def _outcomes(self, y: Any, n: int) -> Any:
        """Y as numbers where they are, as their kernel's own points where they are not."""
        values = y.to_numpy() if hasattr(y, "to_numpy") else y
        if values is not None and (self.kernel_y is not None or self.domain_y is not None or _is_labels(values)):
            if _is_labels(values) or not _is_numbers(values):
                return own_copy(values, values)
        return self._targets(y, n, keep=True)

    # -- answers ------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> FloatArray:
        """E[Y | x], (m,) or (m, q); for points that are numbers."""
        check_is_fitted(self, "operator_")
        if not isinstance(self._outcome, np.ndarray) or self._outcome.dtype.kind != "f":
            raise ModelError(
                "predict averages numbers, and Y holds points of another kind. Try: predict_expectation(f, X) "
                "with f of these points, or embedding(x)."
            )
        return self.operator_.expect(self._outcome, self._inputs(X, reset=False))

    def predict_expectation(self, f: Callable[[Any], Any], X: Any) -> FloatArray:
        """E[f(Y) | x]; f is called once with all of Y, as given to `fit`, and gives a number or a row for each."""
        check_is_fitted(self, "operator_")
        if not callable(f):
            raise OptionError(f"f must be a function of all outcomes, such as lambda y: y > 1; it is {f!r}.")
        return self.operator_.expect(f(self._outcome), self._inputs(X, reset=False))

    def predict_quantile(self, q: Any, X: Any) -> FloatArray:
        """Quantiles of one-dimensional Y given x, (m,) for one q and (m, k) for several."""
        check_is_fitted(self, "operator_")
        op = self.operator_
        found = [MeanEmbedding(op.kernel_y, op.Y, w).quantile(q) for w in self.weights(X)]
        return np.array(found, dtype=np.float64).reshape(len(found), *np.shape(q))

    def weights(self, X: Any) -> FloatArray:
        """β(x), (m, n): one row of weights on the fitted outcomes for every point."""
        check_is_fitted(self, "operator_")
        return self.operator_.weights(self._inputs(X, reset=False))

    def embedding(self, x: Any) -> MeanEmbedding:
        """The distribution of Y given one point, with mean, quantiles, mode and draws: `embedding([[0.3]])`."""
        check_is_fitted(self, "operator_")
        return self.operator_.embedding(self._inputs(x, reset=False))


def _is_labels(values: Any) -> bool:
    try:
        array = np.asarray(values)
    except ValueError:
        return True
    return array.dtype.kind in "US" or (array.dtype.kind == "O" and any(isinstance(v, str) for v in array.ravel()))


def _is_numbers(values: Any) -> bool:
    try:
        return np.asarray(values).dtype.kind in "fiub"
    except ValueError:
        return False
