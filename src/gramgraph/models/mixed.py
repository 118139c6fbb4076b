"""Models with real-valued variables: how they are written, and their density at a point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph.conditionals import Conditional, ConditionalLinearGaussian, LinearGaussian
from gramgraph.conditionals.continuous import log_density
from gramgraph.exceptions import ModelError, listing
from gramgraph.factors.gaussian import GaussianFactor
from gramgraph.models.contexts import find_context
from gramgraph.typing import Array
from gramgraph.variables import Real, Var

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

_KEYS = frozenset(("intercept", "coefficients", "sd", "covariance"))


def is_linear(spec: Any, *, alone: bool = False) -> bool:
    """Whether a written conditional is the dict of a linear Gaussian, or (unless `alone`) one such dict a context."""
    if not isinstance(spec, Mapping) or not spec:
        return False
    if all(isinstance(key, str) and key in _KEYS for key in spec):
        return True
    return not alone and all(is_linear(row, alone=True) for row in spec.values())


def make_mixed(child: Var, parents: tuple[Var, ...], spec: Any) -> Conditional:
    """The conditional of a family with a real-valued variable, from the user's specification."""
    what = f"the conditional of {child.name}"
    if hasattr(spec, "predict"):
        from gramgraph.conditionals.predictor import Predictor

        return Predictor(child, parents, spec)
    if not isinstance(child.domain, Real):
        names = listing(var.name for var in parents if not var.is_discrete)
        raise ModelError(
            f"{what}: {child.name} is discrete and has real parents ({names}); give a Softmax, a classifier with "
            f"predict_proba, or a Predictor, not {spec!r:.60}"
        )
    discrete = tuple(var for var in parents if var.is_discrete)
    if is_linear(spec, alone=True):
        kind = ConditionalLinearGaussian if discrete else LinearGaussian
        return kind(child, parents, **spec)
    if is_linear(spec) and discrete:
        return _from_contexts(child, parents, discrete, spec)
    if not parents and isinstance(spec, tuple) and len(spec) == 2:
        return LinearGaussian(child, (), (), spec[0], sd=spec[1])
    helps = "{'intercept': …, 'coefficients': {parent: …}, 'sd': …}"
    if not parents:
        helps = "(mean, sd), as in (0.0, 1.0), or {'intercept': 0.0, 'sd': 1.0}"
        if isinstance(spec, list) and len(spec) == 2:  # a row of a table, or did they mean the pair?
            helps += f" (for a table, declare states: {child.name}{{no|yes}})"
    if discrete:
        helps += ", or one such dict for each context of the discrete parents"
    raise ModelError(f"{what}: {child.name} is real-valued; {helps} is expected, not {spec!r:.60}")


def _from_contexts(
    child: Var, parents: tuple[Var, ...], discrete: tuple[Var, ...], spec: Mapping[Any, Any]
) -> Conditional:
    rows: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for context, row in spec.items():
        at = find_context(context, discrete, child.name)
        choices = [range(var.size) if isinstance(i, slice) else (i,) for var, i in zip(discrete, at, strict=True)]
        for states in _product(choices):
            rows[tuple(var.states[i] for var, i in zip(discrete, states, strict=True))] = row
    return ConditionalLinearGaussian.from_configurations(child, parents, rows)


def _product(choices: list[Any]) -> Any:
    from itertools import product

    return product(*choices)


def point_of(model: GraphicalModel, assignment: Mapping[str, Any]) -> dict[Var, Array]:
    """A full assignment as arrays with one case: (1, dimension) numbers, or (1,) state codes."""
    model._check_full(assignment)
    out: dict[Var, Array] = {}
    for var in model.vars:
        value = assignment[var.name]
        if isinstance(var.domain, Real):
            out[var] = var.domain.read(value, var.name)[None]
        else:
            out[var] = np.array([var.index(value)])
    return out


def joint_log_density(model: GraphicalModel, assignment: Mapping[str, Any]) -> float:
    """log of the product of all conditionals or factors at a full assignment."""
    values = point_of(model, assignment)
    conditionals = getattr(model, "conditionals", None)
    if conditionals is not None:
        return float(sum(log_density(c, values)[0] for c in conditionals))
    total = 0.0
    for factor in model.factors(structured=False):
        point = {var: values[var][0] for var in factor.scope}
        with np.errstate(divide="ignore"):
            total += (
                factor.log_value(point)  # type: ignore[attr-defined]
                if not isinstance(getattr(factor, "values", None), np.ndarray)
                else float(np.log(factor.values[tuple(point.values())])) + factor.log_scale
            )
    return total


def kind_of_real(model: Any) -> str:
    """The kind of a model with real-valued variables: "gaussian", "mixed" or "general"."""
    conditionals = getattr(model, "conditionals", None)
    if conditionals is None:
        if all(isinstance(f, GaussianFactor) for f in model.factors()):
            return "gaussian"
        raise ModelError(
            "an undirected model has either discrete variables with tables or real ones with Gaussian factors"
        )
    for name, c in zip(model.variables, conditionals, strict=True):
        if c is None:
            model.conditional(name)  # raises
    if all(type(c) is LinearGaussian for c in conditionals):
        return "gaussian"
    if all(c.tabular or isinstance(c, (LinearGaussian, ConditionalLinearGaussian)) for c in conditionals):
        return "mixed"
    return "general"
