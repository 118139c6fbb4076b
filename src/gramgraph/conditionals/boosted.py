"""Boosted trees on an arrow: p(child | parents) from a sum of trees, made of numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph._asking import learners
from gramgraph.conditionals.base import Conditional
from gramgraph.conditionals.continuous import Draws, RealConditional, as_parents, as_var, draw_states
from gramgraph.conditionals.laws import Laws, NormalLaws
from gramgraph.exceptions import ModelError, listing
from gramgraph.factors import TableFactor
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.tree_sum import TreeSum
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Real, Var, discrete

#: The child of what is not on an arrow yet.
_NOWHERE = discrete("·", ("0", "1"))


@dataclass(frozen=True, eq=False, repr=False)
class Boosted(RealConditional):
    """p(child | parents) from boosted trees: scores f(parents) are log odds or a softmax; N(f, noise²) for numbers.

    Features are the parents in order: the components of real ones, and the state codes of discrete ones, which trees
    split into sets. With discrete variables alone it is a table. Between the thresholds of the trees (`breakpoints`) p
    is constant: where real variables have boosted arrows alone (and Gaussians at their roots), queries are exact on the
    cells between them (engine "steps"), and so they are where real parents are observed; elsewhere by quadrature with a
    stated error, or weighted draws.

    `Boosted()` without variables is a way to learn: `Boosted(n_estimators=50).fit("y", ("x", "d"), frame)`.
    `Boosted.of(model)` takes over trees of LightGBM, XGBoost, scikit-learn or this library; `on(child, parents)` puts
    them on an arrow. It is saved as plain numbers.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    trees : the fitted trees of each score.
    noise : standard deviation of a number around its score; None for states.
    n_estimators : rounds of boosting, when it is fitted.
    learning_rate : share of each tree that is added.
    max_depth : splits from the root to a leaf, at most.
    min_samples_leaf : fewest rows in a leaf.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> frame = pd.DataFrame({"x": x, "y": np.where(np.abs(x) > 1, "far", "near")})
    >>> arrow = Boosted(n_estimators=20).fit("y", ("x",), frame)
    >>> arrow.probabilities({arrow.parents[0]: np.array([[0.1], [2.0]])}, 2)[:, 0].round(1).tolist()
    [0.1, 0.9]
    """

    kind: ClassVar[str] = "boosted"
    needs: ClassVar[str] = ""
    child: Var = _NOWHERE
    parents: tuple[Var, ...] = ()
    trees: TreeSum | None = None
    noise: float | None = None
    n_estimators: int = 100
    learning_rate: float = 0.1
    max_depth: int = 3
    min_samples_leaf: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "child", as_var(self.child))
        object.__setattr__(self, "parents", as_parents(self.parents))
        if self.trees is None or self.child is _NOWHERE:
            return
        width = sum(1 if var.is_discrete else var.dimension for var in self.parents)
        if self.trees.n_features != width:
            raise ModelError(
                f"the trees of {self.child.name} read {self.trees.n_features} features; its parents "
                f"({listing(map(repr, self.parents))}) make {width}"
            )
        outputs = len(self.trees.base)
        if isinstance(self.child.domain, Real):
            if self.child.dimension != 1 or outputs != 1:
                raise ModelError(f"boosted trees give one number; {self.child.name} has {self.child.dimension}")
            if self.noise is None or not self.noise > 0:
                raise ModelError(f"the boosted conditional of {self.child.name} needs noise=…, a standard deviation")
        elif outputs != (1 if self.child.size == 2 else self.child.size):
            raise ModelError(f"{self.child.name} has {self.child.size} states; the trees have {outputs} outputs")

    # ----------------------------------------------------------------------------------------------- making

    def fit(self, child: Var | str, parents: Any, data: Any, *, weights: Any = None) -> Boosted:
        """The conditional that gradient boosting learns from the columns of a frame; noise from held-out rows."""
        return learners().fit_boosted(self, child, parents, data, weights=weights)  # type: ignore[no-any-return]

    @classmethod
    def of(cls, model: Any, child: Var | str | None = None, parents: Any = (), *, noise: float | None = None) -> Self:
        """A trained model of LightGBM, XGBoost (or the JSON of their dumps), scikit-learn, or this library.

        `predict` and `predict_proba` answer as the model does; `child` and `parents` put it on an arrow at once. The
        order of the child's states must be that of the model's classes.
        """
        from gramgraph.conditionals.foreign_trees import trees_of

        made = cls(trees=trees_of(model), noise=noise)
        return made if child is None else made.on(child, parents, noise=noise)

    def on(self, child: Var | str, parents: Any, *, noise: float | None = None) -> Self:
        """The same trees as a conditional of `child` given `parents`."""
        kept = self.noise if noise is None else noise
        return replace(self, child=as_var(child), parents=as_parents(parents), noise=kept)

    def _sum(self) -> TreeSum:
        if self.trees is None:
            raise ModelError("this Boosted() has not learned anything yet: call fit(child, parents, data)")
        return self.trees

    # -------------------------------------------------------------------------------------------- as a model

    def predict(self, X: Any) -> FloatArray:
        """Scores of rows (n, features): the number itself, log odds, or one score per class."""
        scores = self._sum().scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> FloatArray:
        """p(class) of rows (n, features)."""
        return np.exp(log_shares(self._sum().scores(X)))

    def breakpoints(self, parent: str) -> FloatArray:
        """Between these values of a real parent, p does not change."""
        at = 0
        for var in self.parents:
            if var.name == parent:
                return self._sum().breakpoints(at)
            at += 1 if var.is_discrete else var.dimension
        raise ModelError(f"{parent!r} is not a parent of {self.child.name}")

    # -------------------------------------------------------------------------------------- as a conditional

    @property
    def tabular(self) -> bool:  # type: ignore[override]
        """Whether all variables are discrete: it is then a table."""
        return self.child.is_discrete and all(var.is_discrete for var in self.parents)

    def features(self, values: Draws, n: int) -> FloatArray:
        """One row of features per case."""
        parts = [np.asarray(values[var], dtype=np.float64).reshape(n, -1) for var in self.parents]
        return np.concatenate(parts, axis=1) if parts else np.zeros((n, 0))

    def scores(self, values: Draws, n: int) -> FloatArray:
        """f(parents) of every case, (n, outputs)."""
        return self._sum().scores(self.features(values, n))

    def probabilities(self, values: Draws, n: int) -> FloatArray:
        """p(state) of every case, (n, states)."""
        return np.exp(log_shares(self.scores(values, n)))

    def log_density(self, values: Draws, /) -> FloatArray:
        """log p of every case."""
        given = np.asarray(values[self.child])
        n = len(given)
        scores = self.scores(values, n)
        if self.child.is_discrete:
            return log_shares(scores)[np.arange(n), given]
        assert self.noise is not None
        z = (given.reshape(n) - scores[:, 0]) / self.noise
        return -0.5 * (z * z + LOG_2PI) - float(np.log(self.noise))

    def laws(self, values: Draws, n: int, /) -> Laws:
        """Normal distributions around the scores."""
        return NormalLaws(self.scores(values, n)[:, 0], np.full(n, self.noise))

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> Array:
        """A value of the child for each of n cases."""
        if self.child.is_discrete:
            return draw_states(self.probabilities(values, n), rng)
        mean = self.scores(values, n)
        assert self.noise is not None
        return mean + self.noise * rng.standard_normal((n, 1))

    def table(self) -> FloatArray:  # type: ignore[override]
        """The dense table, where all variables are discrete."""
        if not self.tabular:
            super().table()
        self._check_size()
        sizes = tuple(var.size for var in self.parents)
        grid = np.indices(sizes).reshape(len(sizes), prod(sizes))
        p = self.probabilities(dict(zip(self.parents, grid, strict=True)), prod(sizes))
        return p.reshape(*sizes, self.child.size)

    def factors(self) -> Any:
        """The table as a factor, where all variables are discrete."""
        return (TableFactor(self.scope, self.table()),) if self.tabular else super().factors()

    @property
    def size(self) -> int:
        """Entries of the table, or numbers in the leaves."""
        return prod(var.size for var in self.scope) if self.tabular else self.n_parameters

    def prob_at(self, states: Sequence[int], /) -> float:  # type: ignore[override]
        """p at one entry of the table."""
        if not self.tabular:
            super().prob_at(states)
        values = {var: np.array([s]) for var, s in zip(self.parents, states[:-1], strict=True)}
        return float(self.probabilities(values, 1)[0, states[-1]])

    @property
    def n_parameters(self) -> int:
        """Values of the leaves and thresholds."""
        return len(self._sum().feature) + (self.noise is not None)

    def faults(self) -> list[str]:
        """Nothing: the trees were checked when they were made."""
        return [] if self.trees is not None else [f"the boosted conditional of {self.child.name} has no trees"]

    def equals(self, other: Conditional, /) -> bool:
        """The same kind, scope and numbers; another kind of table by its entries."""
        if type(other) is not type(self) and self.tabular and other.tabular:
            return self.scope == other.scope and bool(np.array_equal(self.table(), other.table()))
        return super().equals(other)

    def to_fields(self) -> dict[str, Any]:
        """`trees` as lists of numbers, and `noise`."""
        return {**self._head(), "trees": self._sum().to_fields(), "noise": self.noise}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        noise = fields.get("noise")
        if noise is not None and (isinstance(noise, bool) or not isinstance(noise, (int, float))):
            raise ModelError(f"noise of {child.name} must be a number, not {noise!r:.40}")
        return cls(child, parents, TreeSum.from_fields(fields.get("trees", {})), noise)


def log_shares(scores: FloatArray) -> FloatArray:
    """log p(state): log σ of log odds, or a log softmax."""
    if scores.shape[1] == 1:
        return np.stack([-np.logaddexp(0.0, scores[:, 0]), -np.logaddexp(0.0, -scores[:, 0])], axis=1)
    top = scores.max(axis=1, keepdims=True)
    return scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
