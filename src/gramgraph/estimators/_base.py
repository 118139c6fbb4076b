"""What the kernel machines share: one reading of points and targets, and kernel parameters by name."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array

from gramgraph.estimators._reading import read_points
from gramgraph.estimators._sound import SoundNumbers, read_matrix
from gramgraph.kernels.fields import with_kernel_parameters
from gramgraph.kernels.inputs import count
from gramgraph.kernels.tables import own_copy
from gramgraph.machines.checks import LARGEST
from gramgraph.machines.kernels import KernelSpec, ResolvedKernel, check_gram, is_kernel, resolve_kernel
from gramgraph.machines.sparse import dense
from gramgraph.typing import FloatArray


class KernelEstimator(SoundNumbers, BaseEstimator):
    """Base of estimators with a `kernel` parameter: points are checked here, the kernel is resolved here.

    With a kernel value, its fields are parameters of the estimator too: `kernel__length_scale` in a grid search.
    """

    kernel: Any
    #: What becomes of sparse matrices: None refuses them, "dense" makes them dense, "keep" hands them on as they are.
    _sparse_rows: str | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also the fields of a kernel value, as `kernel__…`."""
        found: dict[str, Any] = super().get_params(deep=deep)
        return found

    def set_params(self, **params: Any) -> KernelEstimator:
        """Set parameters; `kernel__…` replaces a field of the kernel (a new value: kernels do not change)."""
        own = {name: value for name, value in params.items() if "__" not in name}
        super().set_params(**own)
        inner: dict[str, dict[str, Any]] = {}
        for name, value in params.items():
            head, _, rest = name.partition("__")
            if rest:
                inner.setdefault(head, {})[rest] = value
        for head, changes in inner.items():
            value = getattr(self, head, None)
            if hasattr(value, "set_params") and not is_kernel(value):  # of scikit-learn, which changes in place
                super().set_params(**{f"{head}__{name}": new for name, new in changes.items()})
                continue
            if not is_kernel(value):
                raise ValueError(
                    f"Invalid parameter {head!r} for estimator {type(self).__name__}: {head}__… names a field of a "
                    f"kernel value, but {head} is {value!r}."
                )
            setattr(self, head, with_kernel_parameters(value, changes))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse_rows is not None
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _resolve(self, X: Any, sample_weight: FloatArray | None = None) -> ResolvedKernel:
        return resolve_kernel(
            self.kernel,
            X,
            gamma=getattr(self, "gamma", "scale"),
            degree=getattr(self, "degree", 3),
            coef0=getattr(self, "coef0", 1.0),
            sample_weight=sample_weight,
        )

    def _points(self, X: Any, *, reset: bool, least: int = 1, keep: bool = False) -> Any:
        """X as a float matrix; points of other kinds (words, sets, graphs, mixed columns) as their kernel reads them.

        With `keep` they are the estimator's own: whatever becomes of the caller's array does not change the model. A
        frame whose columns a kernel asks for by name, or that holds more than numbers, becomes a `Table`: its columns
        are found by name, whatever their order. Sparse matrices stay so or are made dense, as the class says.
        """
        named = self.kernel is None or isinstance(self.kernel, str)
        value = self.kernel if not named and is_kernel(self.kernel) else None
        if value is not None and (found := read_points(self, value, X, reset=reset)) is not None:
            if count(found) < least:
                raise ValueError(
                    f"Found {count(found)} point(s) while a minimum of {least} is required by {type(self).__name__}."
                )
            return own_copy(found, X) if keep else found
        sparse: Any = False if self._sparse_rows is None else "csr"
        precomputed = named and self.kernel == "precomputed"
        X = read_matrix(
            self,
            X,
            limit=self._limit(),
            reset=reset,
            dtype=np.float64,
            order="C",
            accept_sparse=sparse,
            ensure_min_samples=least,
            copy=keep,  # only where reading has not made a copy already
        )
        if self._sparse_rows == "dense" or precomputed:
            X = dense(X)
        if reset and precomputed:
            check_gram(X)
        return X

    def _limit(self) -> float:
        """The largest number a matrix may hold: kernel values divide by their own scales, matrices are kernels."""
        named = isinstance(self.kernel, str) and self.kernel != "precomputed"
        return LARGEST if named or self.kernel is None else np.inf

    def _targets(self, y: Any, n: int, *, keep: bool = False) -> FloatArray:
        """y as floats with one or two axes and n rows; with `keep`, in memory of the estimator's own."""
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} learns from targets."
            )
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self, copy=keep)
        if y.ndim > 2 or len(y) != n:
            raise ValueError(
                f"y must have shape ({n},) or ({n}, t), as X has {n} points; its shape is {y.shape}: inconsistent "
                f"numbers of samples."
            )
        return y


@dataclass(eq=False, repr=False)
class NamedKernelEstimator(KernelEstimator):
    """Base of estimators whose kernel may be a name, with the parameters of the kernels that have one."""

    _: KW_ONLY
    kernel: KernelSpec = "rbf"
    gamma: float | str | None = "scale"
    degree: int = 3
    coef0: float = 1.0
