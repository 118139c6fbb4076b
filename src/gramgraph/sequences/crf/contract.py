"""scikit-learn's contract of an estimator, met without importing scikit-learn.

`clone`, pipelines and searches ask for methods, not for a base class. Importing scikit-learn costs more than a hundred
megabytes (pandas and Arrow come along where they are installed): for text that is tagged in a small process, more than
the model and its data.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

from gramgraph.exceptions import ModelError, did_you_mean


class Estimator:
    """Parameters are the arguments of `__init__`, stored under their names; what is learned ends in `_`."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters by name; `deep` is accepted for scikit-learn, but no parameter is an estimator."""
        return {name: getattr(self, name) for name in sorted(self._defaults())}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        known = self._defaults()
        for name, value in params.items():
            if name not in known:
                raise ModelError(
                    f"{name!r} is not a parameter of {type(self).__name__}. Parameters: {', '.join(sorted(known))}."
                    f"{did_you_mean(name, list(known))}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = ((name, getattr(self, name), default) for name, default in self._defaults().items())
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v, d in given if repr(v) != repr(d))})"

    def _repr_html_(self) -> str:
        """The box that notebooks show for scikit-learn's estimators."""
        from sklearn.utils import estimator_html_repr

        return str(estimator_html_repr(self))

    def __sklearn_tags__(self) -> Any:
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)  # type: ignore[arg-type]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"This {type(self).__name__} has not learned anything yet. Call fit first.")
