"""Log-linear models: weighted features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gramgraph._asking import learners
from gramgraph._progress import Progress
from gramgraph.exceptions import ModelError
from gramgraph.factors import TableFactor
from gramgraph.models.markov_network import MarkovNetwork
from gramgraph.models.potentials import make_scopes, tabulate
from gramgraph.models.undirected import FactorModel
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.models.factor_graph import FactorGraph


@dataclass(frozen=True, eq=False)
class Feature:
    """A real-valued function of a few variables, as a table.

    Parameters
    ----------
    scope : the variables, in the order of the axes.
    values : a table with one axis per variable.
    name : of the feature.

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> Feature((binary("a"),), np.array([0.0, 1.0]), "a").name
    'a'
    """

    scope: tuple[Var, ...]
    values: FloatArray  # one axis per variable
    name: str = ""


class LogLinear(FactorModel):
    """log p(x) = θ · f(x) − log Z with features f_k(x) of small scopes and a weight θ_k each.

    A feature is (names, content) or (names, content, name), where the content is a table over the named
    variables or a function of one label per variable. `states` maps names to labels. Features over the same
    variables share one factor. `joint_log_prob` is θ · f(x), not normalized.

    Parameters
    ----------
    features : (names, content) or (names, content, name), as above.
    weights : one for each feature; None for zeros.
    states : labels by name, or their number.
    name : a title.

    Examples
    --------
    >>> agree = lambda a, b: float(a == b)
    >>> model = LogLinear([(("a", "b"), agree), (("b", "c"), agree), ("a", [0, 1])], weights=[0.5, 1.0, -0.2])
    >>> model.feature_values({"a": "yes", "b": "yes", "c": "no"}).tolist()
    [1.0, 0.0, 1.0]
    >>> round(model.joint_log_prob({"a": "yes", "b": "yes", "c": "no"}), 12)
    0.3
    """

    features: tuple[Feature, ...]
    weights: FloatArray
    fit_report: Any = None  # how the weights were learned, after `fit`

    def __init__(
        self,
        features: Iterable[Any],
        weights: Sequence[float] | FloatArray | None = None,
        *,
        states: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> None:
        given = list(features)
        pieces = [_piece(item) for item in given]
        faults: list[str] = []
        known = make_scopes([(names, content) for names, content, _ in pieces], states, faults=faults)
        if faults:
            raise ModelError(faults)
        made = []
        for names, content, label in pieces:
            scope = tuple(known[n] for n in names)
            values = tabulate(content, scope, f"the feature {label or '·'.join(names)}")
            values.flags.writeable = False
            made.append(Feature(scope, values, label))
        self._set_variables(known.values())
        self.features = tuple(made)
        self.name, self.metadata = name, {}
        self._set_weights(np.zeros(len(made)) if weights is None else weights)
        self.check_model()

    def _set_weights(self, weights: Any) -> None:
        theta = np.array(weights, dtype=np.float64)
        if theta.shape != (len(self.features),):
            raise ModelError(f"one weight for each of {len(self.features)} features is needed, not {theta.shape}")
        wrong = [
            f"the feature {f.name or i} has values that are not finite"
            for i, f in enumerate(self.features)
            if not np.isfinite(f.values).all()
        ]
        if not np.isfinite(theta).all():
            wrong.append("weights that are not finite numbers")
        if wrong:
            raise ModelError(wrong)
        theta.flags.writeable = False
        self.weights = theta
        self.stored_factors = self._make_factors()

    def _make_factors(self) -> tuple[TableFactor, ...]:
        """exp(Σ θ_k f_k) for each set of variables, in first-seen order."""
        logs: dict[frozenset[str], tuple[tuple[Var, ...], FloatArray]] = {}
        for feature, theta in zip(self.features, self.weights, strict=True):
            key = frozenset(var.name for var in feature.scope)
            scope, total = logs.get(key, (feature.scope, np.zeros(feature.values.shape)))
            aligned = feature.values.transpose([feature.scope.index(var) for var in scope])
            logs[key] = (scope, total + theta * aligned)
        return tuple(TableFactor.from_log(scope, total) for scope, total in logs.values())

    def with_weights(self, weights: Sequence[float] | FloatArray) -> Self:
        """The same features with other weights."""
        made = type(self).__new__(type(self))
        made._set_variables(self.vars)
        made.features, made.name, made.metadata = self.features, self.name, dict(self.metadata)
        made._set_weights(weights)
        return made

    def fit(
        self,
        data: Any,
        *,
        method: str = "auto",
        tie: Any = None,
        l1: float = 0.0,
        l2: float = 0.0,
        weights: Any = None,
        missing: str = "rows",
        max_iter: int | None = None,
        tol: float = 1e-6,
        random_state: RandomState = None,
        progress: Progress = False,
        **options: Any,
    ) -> LogLinear:
        """The same features with weights learned from a frame; `fit_report` tells how.

        The methods are those of `MarkovNetwork.fit` without "closed_form" and "ipf". At the maximum without penalties
        the model expects of every feature what the rows show on average. `tie` makes features share a weight: "name"
        (those of the same name), or one label for each feature. Penalties act on every weight.

        >>> agree = lambda a, b: float(a == b)
        >>> model = LogLinear([(("a", "b"), agree, "same"), (("b", "c"), agree, "same")])
        >>> rows = {"a": ["no", "no", "yes", "yes"], "b": ["no", "no", "yes", "no"], "c": ["no", "yes", "yes", "no"]}
        >>> model.fit(rows, tie="name").weights.round(4).tolist()  # log(3): six of eight pairs agree
        [1.0986, 1.0986]
        """
        made, report = learners().fit_log_linear(
            self, data, tie=tie, method=method, l1=l1, l2=l2, weights=weights, missing=missing, max_iter=max_iter,
            tol=tol, random_state=random_state, progress=progress, options=options,
        )  # fmt: skip
        made.fit_report = report
        return made

    def feature_values(self, assignment: Mapping[str, Any]) -> FloatArray:
        """f(x) at a full assignment."""
        at = self._full(assignment)
        return np.array([f.values[tuple(at[self.positions[v.name]] for v in f.scope)] for f in self.features])

    def joint_log_prob(self, assignment: Mapping[str, Any]) -> float:
        """θ · f(x), not normalized."""
        return float(self.weights @ self.feature_values(assignment))

    def neighbors(self, name: str) -> tuple[str, ...]:
        """Variables that share a feature with `name`."""
        return self.markov_blanket(name)

    def to_markov_network(self) -> MarkovNetwork:
        """The same distribution by potentials, one for each set of variables."""
        return MarkovNetwork.from_parts(self.vars, self.stored_factors, name=self.name)

    def to_factor_graph(self) -> FactorGraph:
        """Variables and factors as the two kinds of nodes."""
        return self.to_markov_network().to_factor_graph()


def _piece(item: Any) -> tuple[tuple[str, ...], Any, str]:
    if isinstance(item, Feature):
        return tuple(var.name for var in item.scope), TableFactor(item.scope, item.values), item.name
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        raise ModelError(
            f"a feature is (names, table or function) or (names, table or function, name); got {item!r:.80}"
        )
    names = (item[0],) if isinstance(item[0], str) else tuple(item[0])
    return tuple(map(str, names)), item[1], str(item[2]) if len(item) == 3 else ""
