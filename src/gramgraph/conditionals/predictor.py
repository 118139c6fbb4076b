"""Any scikit-learn regressor or classifier as a conditional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from gramgraph._validation import check_choice
from gramgraph.conditionals.continuous import (
    Draws,
    RealConditional,
    as_parents,
    as_var,
    draw_states,
    n_features,
    stack_features,
)
from gramgraph.conditionals.grid_density import GridDensity
from gramgraph.conditionals.laws import CenteredLaws, Laws, NormalLaws
from gramgraph.exceptions import ModelError, VariableError, listing
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Real, Var, discrete

#: With fewer rows than this the errors are taken as Gaussian.
_FEW_ROWS = 30


@dataclass(frozen=True, eq=False, repr=False)
class Predictor(RealConditional):
    """p(child | parents) from a fitted estimator.

    A real-valued child: N(estimator.predict(x), noise²), where `noise` is the standard deviation (or, for a vector, the
    covariance) of the errors; with noise="predictive" it is N(mean, std²) from `predict(x, return_std=True)`, as
    Gaussian processes and Bayesian regressions give it; with `residuals`, a density of the errors, it is that density
    around the prediction. A discrete child: `predict_proba`, whose classes are the
    child's states. The features x are the components of the real parents and, for a discrete parent, one 0/1 column a
    state, in the order of the parents; an angle gives its
    cosine and sine. `Predictor.fit` fits an estimator and finds the noise by cross-validation.

    Inference is by quadrature or weighted draws. An estimator cannot be written to a file.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    estimator : a fitted estimator of scikit-learn or gramgraph.
    noise : standard deviation (of a vector: covariance) of the errors, or "predictive".
    residuals : `GridDensity` of the errors of a scalar child; None where they are Gaussian.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> data = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "y": [0.1, 0.9, 2.1, 2.9, 4.1, 4.9]})
    >>> y = Predictor.fit("y", ("x",), LinearRegression(), data)
    >>> bool(y.noise[0, 0] < 0.1)
    True
    """

    kind: ClassVar[str] = "predictor"
    child: Var
    parents: tuple[Var, ...]
    estimator: Any
    noise: Any = None
    residuals: Any = None  # GridDensity of the errors of a scalar child; None where they are Gaussian

    def __post_init__(self) -> None:
        object.__setattr__(self, "child", as_var(self.child))
        object.__setattr__(self, "parents", as_parents(self.parents))
        wanted = "predict" if isinstance(self.child.domain, Real) else "predict_proba"
        if not callable(getattr(self.estimator, wanted, None)):
            raise ModelError(
                f"the predictor of {self.child.name} needs a method {wanted}: {self.estimator!r:.60} has none"
            )
        if not self.parents:
            raise ModelError(f"the predictor of {self.child.name} has no parents to predict from")
        width = sum(var.size if var.is_discrete else n_features(var) for var in self.parents)
        learned = getattr(self.estimator, "n_features_in_", None)
        if learned is not None and learned != width:
            raise ModelError(
                f"the estimator of {self.child.name} was fitted to {learned} columns; its parents "
                f"({listing(map(repr, self.parents))}) make {width}"
            )
        if isinstance(self.child.domain, Real):
            object.__setattr__(self, "noise", self._covariance(self.noise))
            if self.residuals is not None and (self.child.dimension > 1 or not isinstance(self.residuals, GridDensity)):
                raise ModelError(f"residuals of {self.child.name} are a GridDensity of a scalar variable's errors")

    def _covariance(self, given: Any) -> FloatArray:
        k = self.child.dimension
        if given is None:
            raise ModelError(
                f"the predictor of {self.child.name} needs the standard deviation of its errors: noise=…, or let "
                "Predictor.fit find it"
            )
        if isinstance(given, str):
            return self._predictive(given)  # type: ignore[return-value]
        try:
            noise = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"the noise of {self.child.name} must be numbers, not {given!r}") from None
        if noise.shape != (k, k) and noise.size not in (1, k):
            raise ModelError(f"the noise of {self.child.name} has {k} standard deviations, not shape {noise.shape}")
        if (noise.shape != (k, k) or k == 1) and (noise < 0).any():
            raise ModelError(f"the noise of {self.child.name} must be positive, got {given!r}")
        S = noise if noise.shape == (k, k) and k > 1 else np.broadcast_to(noise.reshape(-1) ** 2, (k,)) * np.eye(k)
        if not np.isfinite(S).all() or np.linalg.eigvalsh(S)[0] <= 0.0:
            raise ModelError(f"the noise of {self.child.name} must be positive, got {given!r}")
        return np.asarray(S)

    def _predictive(self, given: str) -> str:
        from inspect import signature

        if given != "predictive":
            raise ModelError(f"the noise of {self.child.name} must be numbers or 'predictive', not {given!r}")
        if "return_std" not in signature(self.estimator.predict).parameters:
            raise ModelError(
                f"noise='predictive' of {self.child.name} needs an estimator whose predict takes return_std=True, such "
                f"as GaussianProcessRegressor; {type(self.estimator).__name__} does not"
            )
        return given

    @classmethod
    def fit(
        cls,
        child: Var | str,
        parents: Sequence[Var | str] | Var | str,
        estimator: Any,
        data: Any,
        *,
        cv: int = 5,
        residuals: str = "kernel",
    ) -> Self:
        """A copy of the estimator fitted to the columns of a data frame; the noise from `cv`-fold predictions: a kernel
        density of the errors, or residuals="gaussian".

        A variable that is given by its name is real-valued, or, where its column holds labels, takes these as states.
        """
        from sklearn.base import clone
        from sklearn.model_selection import cross_val_predict

        check_choice("residuals", residuals, ("kernel", "gaussian"))
        own, given, X, Y = _read(child, parents, data)
        made = clone(estimator)
        if own.is_discrete:
            made.fit(X, Y)
            return cls(own, given, made)
        target = Y[:, 0] if Y.shape[1] == 1 else Y
        held = cross_val_predict(clone(estimator), X, target, cv=min(cv, len(X)))
        return cls._with_errors(own, given, made.fit(X, target), Y - np.asarray(held).reshape(Y.shape), residuals)

    @classmethod
    def fit_folds(
        cls, child: Var, parents: Sequence[Var], estimator: Any, data: Any, fold: Array
    ) -> tuple[Self, Array]:
        """(what is learned of a scalar from all rows, log density of every row by what is learned from other folds).

        `fold` is the fold of every row. One fit a fold: its errors judge the fold and are noise to the other folds.
        """
        from sklearn.base import clone

        own, given, X, Y = _read(child, parents, data)
        error = np.empty_like(Y)
        for k in np.unique(fold):
            rest = clone(estimator).fit(X[fold != k], Y[fold != k, 0])
            error[fold == k, 0] = Y[fold == k, 0] - rest.predict(X[fold == k])
        made = clone(estimator).fit(X, Y[:, 0])
        logs = np.empty(len(Y))
        for k in np.unique(fold):
            law = cls._with_errors(own, given, made, error[fold != k])._error_laws(np.zeros(1))
            logs[fold == k] = law.log_density(error[fold == k, 0])[0]
        return cls._with_errors(own, given, made, error), logs

    @classmethod
    def _with_errors(
        cls, own: Var, given: tuple[Var, ...], made: Any, error: FloatArray, residuals: str = "kernel"
    ) -> Self:
        """The noise from errors of rows that were left out, (rows, components)."""
        S = error.T @ error / len(error)
        if len(S) > 1 or residuals == "gaussian" or len(error) < _FEW_ROWS or not S[0, 0] > 0.0:
            return cls(own, given, made, np.sqrt(S[0, 0]) if len(S) == 1 else S)
        return cls(own, given, made, np.sqrt(S[0, 0]), GridDensity.of(error[:, 0]))

    def features(self, values: Draws, n: int) -> Array:
        """What the estimator is given: (n, features)."""
        parts = []
        for var in self.parents:
            x = np.asarray(values[var])
            parts.append(np.eye(var.size)[x] if var.is_discrete else stack_features((var,), values, n))
        X = np.concatenate(parts, axis=1)
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is not None and len(names) == X.shape[1]:  # fitted with a data frame: it wants one again
            import pandas as pd

            return pd.DataFrame(X, columns=list(names))  # type: ignore[no-any-return]
        return X

    def log_density(self, values: Draws, /) -> FloatArray:
        """log p(child | parents) of every case."""
        y = np.asarray(values[self.child])
        if self.child.is_discrete:
            with np.errstate(divide="ignore"):
                return np.log(self.probabilities(values, len(y))[np.arange(len(y)), y])
        k = self.child.dimension
        if isinstance(self.noise, str):
            mean, sd = self._moments(values, len(y))
            gaps = (y.reshape(-1, k) - mean) / sd
            return np.asarray(-0.5 * (gaps**2).sum(axis=1) - np.log(sd).sum(axis=1) - 0.5 * k * LOG_2PI)
        r = y.reshape(-1, k) - self._mean(values, len(y))
        if self.residuals is not None:
            return np.asarray(self.residuals.log_density(r[:, 0]))
        L = np.linalg.cholesky(self.noise)
        z = np.linalg.solve(L, r.T)
        return np.asarray(-0.5 * (z**2).sum(axis=0) - np.log(np.diagonal(L)).sum() - 0.5 * k * LOG_2PI)

    def laws(self, values: Draws, n: int, /) -> Laws:
        """Normal distributions; the estimator is asked once for each case of the parents."""
        if self.child.dimension > 1:
            return super().laws(values, n)
        if isinstance(self.noise, str):
            mean, sd = self._moments(values, n)
            return NormalLaws(mean[:, 0], sd[:, 0])
        return self._error_laws(self._mean(values, n)[:, 0])

    def _error_laws(self, mean: FloatArray) -> Laws:
        """Errors of a scalar around each mean."""
        if self.residuals is not None:
            r = self.residuals
            return CenteredLaws(mean, np.ones(len(mean)), r.log_density, r.sd, r.cdf)
        return NormalLaws(mean, np.full(len(mean), np.sqrt(self.noise[0, 0])))

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> Array:
        """A value of the child for each of n cases."""
        if self.child.is_discrete:
            return draw_states(self.probabilities(values, n), rng)
        if isinstance(self.noise, str):
            mean, sd = self._moments(values, n)
            return mean + sd * rng.standard_normal(mean.shape)
        if self.residuals is not None:
            return self._mean(values, n) + self.residuals.quantile(rng.random(n))[:, None]
        L = np.linalg.cholesky(self.noise)
        return self._mean(values, n) + rng.standard_normal((n, len(L))) @ L.T

    def _mean(self, values: Draws, n: int) -> FloatArray:
        if not n:
            return np.zeros((0, self.child.dimension))
        return np.asarray(self.estimator.predict(self.features(values, n)), dtype=np.float64).reshape(n, -1)

    def moments(self, values: Draws, n: int) -> tuple[FloatArray, FloatArray]:
        """Mean (n, k) and covariance (n, k, k) of a real-valued child for every case."""
        k = self.child.dimension
        if isinstance(self.noise, str):
            mean, sd = self._moments(values, n)
            return mean, sd[:, :, None] ** 2 * np.eye(k)
        return self._mean(values, n), np.broadcast_to(self.noise, (n, k, k))

    def _moments(self, values: Draws, n: int) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of every case, (n, k) each; a deviation of 0 has no density and is lifted."""
        k = self.child.dimension
        if not n:
            return np.zeros((0, k)), np.ones((0, k))
        mean, sd = self.estimator.predict(self.features(values, n), return_std=True)
        mean, sd = (np.asarray(part, dtype=np.float64).reshape(n, -1) for part in (mean, sd))
        least = 1e-9 * max(float(np.abs(mean).max()), float(sd.max()), 1e-290)
        return mean, np.maximum(np.broadcast_to(sd, mean.shape), least)

    def probabilities(self, values: Draws, n: int) -> FloatArray:
        """p(state | parents) of n rows of parents' values, (n, states)."""
        out = np.zeros((n, self.child.size))
        if n:
            classes = [self.child.index(label) for label in self.estimator.classes_]
            out[:, classes] = self.estimator.predict_proba(self.features(values, n))
        return out

    @property
    def n_parameters(self) -> int:
        """Not known: the estimator's own."""
        return 0

    def faults(self) -> list[str]:
        """Classes that are not states of the child, or an estimator that was not fitted."""
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        try:
            check_is_fitted(self.estimator)
        except NotFittedError:
            return [f"the estimator of {self.child.name} is not fitted: use Predictor.fit, or fit it first"]
        except TypeError:
            pass  # not one of scikit-learn's
        if self.child.is_discrete:
            known = getattr(self.estimator, "classes_", ())
            odd = [str(label) for label in known if self.child.discrete.find(label) < 0]
            if odd:
                states = listing(self.child.states)
                return [
                    f"the estimator of {self.child.name} has the classes {listing(odd)}, no states of it ({states})"
                ]
        return []

    def to_fields(self) -> NoReturn:
        """An estimator has no place in a file."""
        raise ModelError(
            f"the conditional of {self.child.name} holds a scikit-learn estimator, which cannot be written to a file "
            "(files hold numbers only, never pickled objects); refit it after reading, with Predictor.fit"
        )

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> NoReturn:
        """An estimator has no place in a file."""
        raise ModelError("a predictor holds a scikit-learn estimator, which cannot be read from a file")

    def _equal_numbers(self, other: Any) -> bool:
        return self.estimator is other.estimator


def _read(
    child: Var | str, parents: Sequence[Var | str] | Var | str, data: Any
) -> tuple[Var, tuple[Var, ...], FloatArray, Array]:
    """(child, parents, features, labels or numbers of the child) from a data frame."""
    own = _shown(child, data)
    given = tuple(_shown(p, data) for p in ((parents,) if isinstance(parents, (str, Var)) else parents))
    missing = [var.name for var in (own, *given) if not _columns(var, data)]
    if missing:
        raise VariableError(f"the data have no column for {listing(missing)}")
    X = np.hstack([_encoded(var, data) for var in given])
    if own.is_discrete:
        return own, given, X, np.array(own.states)[[own.index(label) for label in data[own.name]]]
    return own, given, X, np.asarray(data[_columns(own, data)], dtype=np.float64)


def _shown(given: Var | str, data: Any) -> Var:
    """The variable; one that is only named takes the labels of its column, if that holds any."""
    if isinstance(given, Var) or given not in data:
        return as_var(given)
    column = data[given]
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf":
        return as_var(given)
    if hasattr(column, "cat"):
        return discrete(given, column.cat.categories.tolist())
    labels = [label for label in dict.fromkeys(column) if label is not None and label == label]
    return discrete(given, sorted(labels, key=str)) if labels else as_var(given)


def _columns(var: Var, data: Any) -> list[str]:
    """The columns of a variable: its name, or name[0], name[1], … for a vector."""
    if var.is_discrete or var.dimension == 1:
        return [var.name] if var.name in data else []
    names = [f"{var.name}[{i}]" for i in range(var.dimension)]
    return names if all(name in data for name in names) else []


def _encoded(var: Var, data: Any) -> FloatArray:
    if var.is_discrete:
        return np.eye(var.size)[[var.index(label) for label in data[var.name]]]
    x = np.asarray(data[_columns(var, data)], dtype=np.float64)
    return stack_features((var,), {var: x}, len(x))
