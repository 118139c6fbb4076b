"""Mixtures of independent columns: Bernoulli, categorical, or a family for each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from gramgraph._validation import check_choice, check_positive
from gramgraph.conditionals import Conditional, ConditionalLinearGaussian, Table
from gramgraph.conditionals.grouped import Grouped
from gramgraph.data.describe import column_kinds
from gramgraph.data.frames import is_frame, read_frame
from gramgraph.distributions._columns import FAMILIES, Family
from gramgraph.estimators._mixture_base import MixtureEstimator
from gramgraph.estimators._numbers import column_names, read_weights, refuse_dates
from gramgraph.estimators._sound import read_matrix
from gramgraph.exceptions import ModelError, OptionError, VariableError, listing
from gramgraph.machines.checks import LARGEST, scale_the_columns
from gramgraph.machines.mixtures.families import ColumnParameters, ColumnRows, make_family
from gramgraph.machines.mixtures.online import step_size
from gramgraph.machines.mixtures.starts import shares
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, IntArray
from gramgraph.variables import discrete, real

STARTS = ("kmeans", "random")


@dataclass(eq=False, repr=False)
class _ColumnMixture(MixtureEstimator):
    """Columns that are independent given the component; cells are kept as numbers, labels as their places."""

    n_components: Any = 1
    _: KW_ONLY
    choose: str | None = None
    cv: int = 5
    concentration: float = 1.0
    pseudo_count: float = 0.01
    tol: float = 1e-6
    max_iter: int = 1000
    n_init: int = 1
    init_params: str = "kmeans"
    random_state: Any = None
    progress: Any = False

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Online EM: the first call learns from its rows alone, later ones move expected moments towards those of
        their rows, by a step that shrinks as t^-0.6. Labels that the first rows did not have count as missing."""
        fresh = "_online" not in self.__dict__
        if fresh:
            self.fit(X, sample_weight=sample_weight)
        X = self._read(X, reset=False)
        rows = self._rows(X, read_weights(sample_weight, X))
        found = rows.averages(self._parameters())
        if fresh:
            self._online, self._steps, self._total = found, 1, rows.total
            return self
        self._steps += 1
        self._total += rows.total
        share = step_size(self._steps)
        self._online = [
            ((1.0 - share) * n + share * m, (1.0 - share) * s + share * t)
            for (n, s), (m, t) in zip(self._online, found, strict=True)
        ]
        self.__dict__.pop("network_", None)
        self._store(rows.from_averages(self._online, self._total, self._parameters()))
        return self

    def _names(self, frame: Any) -> list[str]:
        """The family of every column."""
        raise NotImplementedError

    def _check_options(self) -> None:
        super()._check_options()
        check_choice("init_params", self.init_params, STARTS)
        check_positive("pseudo_count", self.pseudo_count, zero=True)

    def _frame(self, X: Any, *, reset: bool) -> Any:
        import pandas as pd

        if is_frame(X) and hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            refuse_dates(type(self).__name__, X)
            frame = read_frame(X).table.reset_index(drop=True)
            if not frame.shape[0] or not frame.shape[1]:
                raise ValueError(f"0 sample(s) or features (shape={frame.shape}) while a minimum of 1 is required.")
            return frame
        found = read_matrix(self, X, limit=np.inf, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        if found.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if found.dtype.kind == "O":
            try:
                found = found.astype(np.float64)
            except (TypeError, ValueError) as error:
                if "argument must be" in str(error):
                    raise TypeError(str(error)) from None
        return pd.DataFrame(found)

    def _read(self, X: Any, *, reset: bool) -> FloatArray:
        frame = self._frame(X, reset=reset)
        if reset:
            self._families = self._names(frame)
            self._labels = [
                _labels(frame.iloc[:, j]) if name == "categorical" else () for j, name in enumerate(self._families)
            ]
        out = np.empty(frame.shape)
        for j, name in enumerate(self._families):
            column = frame.iloc[:, j]
            if name == "categorical":
                at = {label: i for i, label in enumerate(self._labels[j])}
                out[:, j] = [at.get(value, np.nan) for value in _cells(column)]
            else:
                out[:, j] = self._numbers(column, j, name)
        return out

    def _numbers(self, column: Any, j: int, name: str) -> FloatArray:
        where = column_names(self, len(self._families))[j]
        try:
            x = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            raise ModelError(
                f"column {where!r} does not hold numbers: use the family 'categorical' for labels"
            ) from None
        if np.isinf(x).any():
            raise ValueError(f"Input X contains infinity in column {where!r}.")
        if np.abs(x[~np.isnan(x)]).max(initial=0.0) > LARGEST:
            raise scale_the_columns(f"column {where!r}: squares of such numbers overflow.", x)
        family = FAMILIES[name]()
        if not family.inside(x[~np.isnan(x)]).all():
            raise ModelError(f"column {where!r} must hold {family.wanted} for the family {name!r}")
        return x

    def _prepare(self, X: FloatArray, w: FloatArray | None) -> None:
        empty = np.isnan(X).all(axis=0)
        if empty.any():
            names = column_names(self, X.shape[1])
            gone = listing(names[j] for j in np.flatnonzero(empty))
            raise ModelError(f"there is nothing to learn from: no value in column {gone}. Leave it out")
        cells = [x[~np.isnan(x)] for x in X.T]
        self._floors = [
            make_family("gaussian", x).least if name == "gaussian" else 0.0  # type: ignore[attr-defined]
            for name, x in zip(self._families, cells, strict=True)
        ]

    def _kinds(self) -> list[Family]:
        made = []
        for name, least, labels in zip(self._families, self._floors, self._labels, strict=True):
            family = make_family(name, np.zeros(0), len(labels))
            made.append(type(family)(least) if name == "gaussian" else family)  # type: ignore[call-arg]
        return made

    def _rows(self, X: FloatArray, w: FloatArray | None) -> ColumnRows:
        return ColumnRows(
            X, w, self._kinds(), concentration=float(self.concentration), pseudo=float(self.pseudo_count)
        )  # fmt: skip

    def _start(self, rows: ColumnRows, X: FloatArray, w: FloatArray | None, k: int, rng: Any) -> ColumnParameters:
        R = shares(rows.encoded(), k, self.init_params, rng, w)
        return rows.from_responsibilities(0.9 * R + 0.1 / k)  # nothing is impossible at the start

    def _store(self, parameters: ColumnParameters) -> None:
        self.weights_, self.parameters_ = parameters.weights, list(parameters.columns)

    def _parameters(self) -> ColumnParameters:
        return ColumnParameters(self.weights_, tuple(self.parameters_))

    def _free(self, k: int) -> int:
        own = [max(len(labels) - 1, 0) if name == "categorical" else FAMILIES[name].n_parameters
               for name, labels in zip(self._families, self._labels, strict=True)]  # fmt: skip
        return k - 1 + k * sum(own)

    def _has_prior(self) -> bool:
        return super()._has_prior() or (self.pseudo_count > 0 and "categorical" in self._families)

    def _draw(self, z: IntArray, rng: np.random.Generator) -> Any:
        import pandas as pd

        columns = {}
        names = column_names(self, len(self._families))
        for j, family in enumerate(self._kinds()):
            x = family.draw(self.parameters_[j][z], rng)
            labels = self._labels[j]
            columns[names[j]] = [labels[int(i)] for i in x] if labels else x
        frame = pd.DataFrame(columns)
        return frame if hasattr(self, "feature_names_in_") else frame.to_numpy()

    def _network(self, latent: str) -> BayesianNetwork:
        z = discrete(latent, len(self.weights_))
        parts: list[Conditional] = [Table(z, (), self.weights_ / self.weights_.sum())]
        variables = [z]
        names = column_names(self, len(self._families))
        for name, family, theta, labels in zip(names, self._families, self.parameters_, self._labels, strict=True):
            if family == "categorical":
                var = discrete(name, [_shown(label) for label in labels])
                parts.append(Table(var, (z,), theta / theta.sum(axis=1, keepdims=True)))
            elif family == "gaussian":
                var = real(name)
                mean, variance = theta[:, :1], theta[:, 1][:, None, None]
                parts.append(ConditionalLinearGaussian(var, (z,), 0.0, mean, variance))
            else:
                var = real(name)
                parts.append(Grouped(var, (z,), family, theta))
            variables.append(var)
        return BayesianNetwork.from_parts(tuple(variables), parts)


def _cells(column: Any) -> list[Any]:
    return [None if value is None or value != value else value for value in column.tolist()]


def _labels(column: Any) -> tuple[Any, ...]:
    """Different values in order; numbers before text."""
    found = {value for value in _cells(column) if value is not None}
    return tuple(
        sorted(found, key=lambda value: (isinstance(value, str), value if isinstance(value, str) else float(value)))
    )


def _shown(label: Any) -> str:
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


class BernoulliMixture(_ColumnMixture):
    """p(x) = Σ_k π_k Π_d μ_kd^x_d (1 − μ_kd)^(1 − x_d), learned by EM; missing cells are integrated out.

    Parameters
    ----------
    n_components : how many; or several numbers to choose from.
    choose : None, "bic", "aic" or "cv", among 1, …, n_components or the numbers given.
    pseudo_count : added to every expected count of zeros and ones; EM then climbs to the mode. 0: maximum likelihood.
    concentration : of the Dirichlet prior of the weights.
    tol, max_iter, n_init : as in `GaussianMixture`.
    init_params : "kmeans" or "random".
    cv : folds of choose="cv".
    random_state : seed of the starts.
    progress : whether a bar is shown, or a function that is called.

    Notes
    -----
    A cell above 0.5 counts as one, any other as zero.

    Attributes
    ----------
    weights_ (k,), means_ (k, d), network_ ("z" and a variable with the states 0 and 1 for each column), report_.

    Examples
    --------
    >>> import numpy as np, gramgraph as gg
    >>> X = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 1], [0, 0, 1], [0, 0, 1], [0, 1, 1]])
    >>> model = gg.BernoulliMixture(2, random_state=0).fit(X)
    >>> model.predict(X).tolist() in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    True
    """

    def _read(self, X: Any, *, reset: bool) -> FloatArray:
        frame = self._frame(X, reset=reset)
        names = column_names(self, frame.shape[1])
        if reset:
            self._families, self._labels = ["categorical"] * frame.shape[1], [(0, 1)] * frame.shape[1]
        out = np.empty(frame.shape)
        for j in range(frame.shape[1]):
            try:
                x = frame.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan)
            except (TypeError, ValueError):
                raise ModelError(
                    f"column {names[j]!r} does not hold zeros and ones: use gg.CategoricalMixture for labels"
                ) from None
            if np.isinf(x).any():
                raise ValueError(f"Input X contains infinity in column {names[j]!r}.")
            out[:, j] = np.where(np.isnan(x), np.nan, x > 0.5)
        return out

    def _store(self, parameters: ColumnParameters) -> None:
        super()._store(parameters)
        self.means_ = np.column_stack([theta[:, 1] for theta in parameters.columns])


class CategoricalMixture(_ColumnMixture):
    """p(x) = Σ_k π_k Π_d p_kd(x_d) over labels; missing cells are integrated out, unseen labels count as missing.

    Parameters as in `BernoulliMixture`.

    Parameters
    ----------
    n_components, choose, cv, concentration, pseudo_count, tol, max_iter, n_init : as in `BernoulliMixture`.
    init_params, random_state, progress : as in `BernoulliMixture`.

    Attributes
    ----------
    weights_ (k,), parameters_ (for each column probabilities (k, labels), in the order of labels_), network_, report_.

    Examples
    --------
    >>> import pandas as pd, gramgraph as gg
    >>> frame = pd.DataFrame({"sky": ["blue", "blue", "grey", "grey"], "rain": ["no", None, "yes", "yes"]})
    >>> model = gg.CategoricalMixture(2, random_state=0).fit(frame)
    >>> bool(model.query("rain", {"sky": "grey"})["rain"].prob("yes") > 0.9)
    True
    """

    def _names(self, frame: Any) -> list[str]:
        return ["categorical"] * frame.shape[1]

    @property
    def labels_(self) -> list[tuple[Any, ...]]:
        """Labels of every column, in order."""
        return list(self._labels)


@dataclass(eq=False, repr=False)
class MixtureOf(_ColumnMixture):
    """A mixture with a family for each column, independent given the component; missing cells are integrated out.

    Parameters
    ----------
    n_components : how many; or several numbers to choose from.
    families : a name for all columns, a list with one for each, or a dictionary from columns to names; columns not
        named are "categorical" where they hold text, else "gaussian". Names: "gaussian", "poisson" (counts), "gamma"
        (positive numbers), "von_mises" (angles in radians), "categorical" (labels). Classes of `gg.distributions` such
        as `gg.distributions.VonMises` mean the same.
    choose, cv, concentration, pseudo_count, tol, max_iter, n_init, init_params : as in `BernoulliMixture`.
    random_state, progress : as in `BernoulliMixture`.

    Attributes
    ----------
    weights_ (k,), families_, parameters_ (for each column (k, p): mean and variance; rate; shape and rate; direction
    and concentration; probabilities of labels), network_, report_.

    Examples
    --------
    >>> import pandas as pd, gramgraph as gg
    >>> frame = pd.DataFrame({"angle": [0.1, -0.1, 0.0, 3.0, -3.1, 3.1], "calls": [1, 0, 2, 9, 11, 8]})
    >>> model = gg.MixtureOf(2, families={"angle": "von_mises", "calls": "poisson"}, random_state=0).fit(frame)
    >>> sorted(model.parameters_[1][:, 0].round(1).tolist())
    [1.0, 9.3]
    """

    families: Any = None

    @property
    def families_(self) -> list[str]:
        """The family of every column."""
        return list(self._families)

    def _names(self, frame: Any) -> list[str]:
        d = frame.shape[1]
        names = column_names(self, d)
        given = self.families
        if given is None or isinstance(given, Mapping):
            asked = {str(name): _family_name(value) for name, value in (given or {}).items()}
            for name in asked:
                if name not in names:
                    raise VariableError.unknown(name, tuple(names))
            kinds = column_kinds(frame)["kind"].tolist()
            text = [str(kind) for kind in kinds]
            return [
                asked.get(name, "gaussian" if _is_number(frame.iloc[:, j]) or text[j] == "empty" else "categorical")
                for j, name in enumerate(names)
            ]
        if isinstance(given, (str, type)):
            return [_family_name(given)] * d
        found = [_family_name(value) for value in given]
        if len(found) != d:
            raise OptionError(f"families names {len(found)} columns; X has {d}")
        return found


def _is_number(column: Any) -> bool:
    return getattr(column.dtype, "kind", "O") in "fiu"


def _family_name(value: Any) -> str:
    given = {"VonMises": "von_mises", "Normal": "gaussian", "Gaussian": "gaussian"}.get(
        getattr(value, "__name__", ""), getattr(value, "__name__", value)
    )
    name = given.lower() if isinstance(given, str) else given
    check_choice("families", name, tuple(FAMILIES))
    return str(name)
