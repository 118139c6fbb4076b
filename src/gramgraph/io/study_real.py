"""Networks with real-valued variables as JSON, in two layouts.

Published studies, `kind` "gaussian" or "clg"; nodes have a `type`:

    {"network": "…", "kind": "clg", "nodes": {
     "g": {"type": "discrete", "states": ["f", "m"], "parents": [], "cpt": [0.4, 0.6]},
     "x": {"type": "gaussian", "parents": [], "intercept": 1.0, "coef": {}, "sd": 2.0},
     "y": {"type": "clg", "parents": ["g", "x"], "discrete_parents": ["g"], "continuous_parents": ["x"],
           "configs": [{"when": {"g": "f"}, "intercept": 0.0, "coef": {"x": 1.5}, "sd": 1.0}, …]}}}

Exports of linear-Gaussian networks, with lists of nodes and arcs:

    {"nodes": ["x", "y"], "arcs": [["x", "y"]],
     "cpds": {"y": {"coefficients": {"(Intercept)": [0.0], "x": [1.5]}, "variance": [1.0], "parents": ["x"]}, …}}
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, ConditionalLinearGaussian, LinearGaussian, Table
from gramgraph.exceptions import GramGraphError, ParseError, did_you_mean
from gramgraph.io import _json
from gramgraph.io._text import (
    Family,
    Spec,
    checked_shape,
    cycle_shown,
    find_cycle,
    normalize_tables,
    shown,
    variables_of,
)
from gramgraph.models import BayesianNetwork
from gramgraph.variables import Var, real

_KINDS = ("gaussian", "clg")


def recognizes(top: dict[str, Any]) -> bool:
    """Whether an object has one of the two layouts."""
    return top.get("kind") in _KINDS or (isinstance(top.get("nodes"), list) and isinstance(top.get("cpds"), dict))


def from_object(top: dict[str, Any], *, source: str, normalize: bool) -> BayesianNetwork:
    """A network from the object in a file."""
    if isinstance(top.get("nodes"), list):
        return _from_export(top, source)
    nodes = _json.get(top, "nodes", dict, "", source)
    if not nodes:
        raise ParseError("nodes must hold at least one variable", source=source)
    variables = _variables(nodes, source)
    made = [_node(name, node, variables, source) for name, node in nodes.items()]
    if normalize:
        made = _normalized(made, variables, source)
    name = _json.get(top, "network", str, "", source) if "network" in top else ""
    metadata = {key: top[key] for key in ("source", "note") if isinstance(top.get(key), str) and top[key]}
    return _network(variables, made, name, metadata, source)


def _network(
    variables: Mapping[str, Var], made: list[Conditional], name: str, metadata: dict[str, Any], source: str
) -> BayesianNetwork:
    index = {key: i for i, key in enumerate(variables)}
    cycle = find_cycle([[index[p.name] for p in c.parents] for c in made])
    if cycle:
        names = list(variables)
        raise ParseError(f"the arcs form a cycle: {cycle_shown([names[i] for i in cycle])}", source=source)
    for c in made:
        if not isinstance(c, Table) and (faults := c.faults()):
            raise ParseError(f"nodes.{c.child.name}: {faults[0]}", source=source)
    return BayesianNetwork.from_parts(variables.values(), made, name=name, metadata=metadata, check=False)


def _variables(nodes: dict[str, Any], source: str) -> dict[str, Var]:
    specs: dict[str, Spec] = {}
    for name, node in nodes.items():
        path = f"nodes.{name}"
        if not isinstance(node, dict):
            raise ParseError(f"{path} must be an object with 'type' and 'parents'", source=source)
        kind = _json.get(node, "type", str, path, source)
        if kind not in ("discrete", "gaussian", "clg"):
            hint = did_you_mean(kind, ("discrete", "gaussian", "clg"))
            raise ParseError(f"{path}.type is discrete, gaussian or clg, not {shown(kind)}.{hint}", source=source)
        if kind == "discrete":
            specs[name] = Spec(name, _json.strings(node, "states", path, source))
    labelled = variables_of(list(specs.values()), source)
    return {name: labelled[name] if name in labelled else real(name) for name in nodes}


def _parents(node: dict[str, Any], name: str, variables: Mapping[str, Var], source: str) -> tuple[Var, ...]:
    path = f"nodes.{name}"
    given = _json.strings(node, "parents", path, source)
    for parent in given:
        if parent not in variables:
            hint = did_you_mean(parent, variables)
            raise ParseError(f"parent {shown(parent)} of {shown(name)} is not declared.{hint}", source=source)
    if name in given or len(set(given)) < len(given):
        raise ParseError(f"{path}: {shown(name)} has a parent twice or is its own parent", source=source)
    return tuple(variables[parent] for parent in given)


def _node(name: str, node: dict[str, Any], variables: Mapping[str, Var], source: str) -> Conditional:
    path, child = f"nodes.{name}", variables[name]
    parents = _parents(node, name, variables, source)
    if child.is_discrete:
        wrong = [p.name for p in parents if not p.is_discrete]
        if wrong:
            raise ParseError(f"{path}: a discrete node with the real-valued parent {shown(wrong[0])}", source=source)
        values = _json.numbers(node, "cpt", path, source)
        family = Family(name, tuple(p.name for p in parents), values)
        shape = checked_shape(family, {var.name: var.size for var in (*parents, child)}, source)
        if values.ndim > 1 and values.shape != shape:
            raise ParseError(f"{path}.cpt must have the axes {list(shape)}, not {list(values.shape)}", source=source)
        return Table(child, parents, values.reshape(shape))
    try:
        if any(p.is_discrete for p in parents):
            return _chosen(child, parents, node, path, source)
        return LinearGaussian(child, parents, **_row(node, path, source))
    except ParseError:
        raise
    except GramGraphError as error:
        raise ParseError(f"{path}: {error}", source=source) from None


def _row(where: dict[str, Any], path: str, source: str) -> dict[str, Any]:
    """Intercept, coefficients and sd."""
    coefficients = _json.get(where, "coef", dict, path, source)
    for parent in coefficients:
        _json.number(coefficients, parent, f"{path}.coef", source)
    return {
        "intercept": _json.number(where, "intercept", path, source),
        "coefficients": coefficients,
        "sd": _json.number(where, "sd", path, source),
    }


def _chosen(
    child: Var, parents: tuple[Var, ...], node: dict[str, Any], path: str, source: str
) -> ConditionalLinearGaussian:
    labelled = [p for p in parents if p.is_discrete]
    rows = {}
    for i, entry in enumerate(_json.get(node, "configs", list, path, source)):
        at = f"{path}.configs[{i}]"
        if not isinstance(entry, dict):
            raise ParseError(f"{at} must be an object", source=source)
        when = _json.get(entry, "when", dict, at, source)
        labels = tuple(_json.get(when, p.name, str, f"{at}.when", source) for p in labelled)
        rows[labels] = _row(entry, at, source)
    return ConditionalLinearGaussian.from_configurations(child, parents, rows)


def _normalized(made: list[Conditional], variables: Mapping[str, Var], source: str) -> list[Conditional]:
    """Tables with their rows divided by their sums."""
    tables = [c for c in made if isinstance(c, Table)]
    if not tables:
        return made
    families = [Family(c.child.name, tuple(p.name for p in c.parents), c.values) for c in tables]
    flat = normalize_tables(
        [c.values.ravel() for c in tables], [c.child.size for c in tables], families, variables, source
    )
    new = {
        c.child.name: Table(c.child, c.parents, v.reshape(c.values.shape)) for c, v in zip(tables, flat, strict=True)
    }
    return [new.get(c.child.name, c) for c in made]


# ---------------------------------------------------------------------------------------------- exports


def _from_export(top: dict[str, Any], source: str) -> BayesianNetwork:
    names = _json.strings(top, "nodes", "", source)
    if len(set(names)) < len(names) or not names:
        raise ParseError("nodes must name at least one variable, and each once", source=source)
    cpds = _json.get(top, "cpds", dict, "", source)
    variables = {name: real(name) for name in names}
    made: list[Conditional] = []
    for name in names:
        path = f"cpds.{name}"
        node = _json.get(cpds, name, dict, "cpds", source)
        parents = _parents(node, name, variables, source)
        numbers = _json.get(node, "coefficients", dict, path, source)
        known = {"(Intercept)", *(p.name for p in parents)}
        if set(numbers) != known:
            raise ParseError(f"{path}.coefficients must be those of {', '.join(sorted(known))}", source=source)
        values = {key: _one(numbers, key, f"{path}.coefficients", source) for key in numbers}
        variance = _one(node, "variance", path, source)
        row = np.array([[values[p.name] for p in parents]])
        made.append(LinearGaussian(variables[name], parents, row, values["(Intercept)"], variance))
    return _network(variables, made, "", {}, source)


def _one(where: dict[str, Any], key: str, path: str, source: str) -> float:
    """A number, or a list that holds one."""
    value = where.get(key)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    raise ParseError(f"{path}.{key} must be a finite number, or a list of one", source=source)
