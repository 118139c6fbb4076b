"""The library's own format: JSON that keeps everything a model has, bit for bit.

    {"format": "gramgraph", "version": 1, "kind": "bayesian_network", "name": "…",
     "variables": [{"name": "a", "states": ["no", "yes"]}, …],
     "conditionals": [{"kind": "table", "child": "a", "parents": […], "values": […]}, …],
     "metadata": {…}}

Conditionals save themselves by their kind (`Conditional.to_fields`, `conditionals.from_fields`), so that a noisy-or
stays one; a real-valued variable has `"real": dimension` in the place of its states (and `"domain": "circle"`, …),
one of sets or strings `"points": "string"`.
Influence diagrams: `decision_files`.
`null` stands for a variable without numbers yet, with its parents in `structure`. Undirected models have `factors`
(`scope`, `values` with the last variable fastest, `log_scale`; Gaussian ones `precision` and `shift`), log-linear ones
`features` and `weights`; plate models are those of `plate_files`.
A distribution (`"kind": "distribution"`) has its `family` and `fields`; models of sequences are those of
`sequence_files`. Estimators and chains, which are mostly arrays, are containers (`io/container.py`) as base64 text.
Nothing in a file is ever executed. Files of the layout of `study_json` are recognized and read too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, Table, from_fields
from gramgraph.distributions import files as distribution_files
from gramgraph.exceptions import GramGraphError, ModelError, ParseError, did_you_mean
from gramgraph.factors import GaussianFactor, TableFactor
from gramgraph.io import _json, study_json
from gramgraph.io._numbers import cells_of
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
from gramgraph.models import BayesianNetwork, FactorGraph, GraphicalModel, LogLinear, MarkovNetwork
from gramgraph.models.influence_diagram import InfluenceDiagram
from gramgraph.typing import FloatArray
from gramgraph.variables import Points, Real, Var, domain_of_word, real

_VERSION = 1
_LONGEST_VECTOR = 100_000
#: Cells that single numbers of a file may be spread to, in all (16 MB).
_MOST_SPREAD = 1 << 21
_KINDS: dict[str, type[GraphicalModel]] = {
    "bayesian_network": BayesianNetwork,
    "factor_graph": FactorGraph,
    "log_linear": LogLinear,
    "markov_network": MarkovNetwork,
}

#: What a kind of conditional may raise when its fields are not what it wrote.
_UNFIT = (GramGraphError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


#: Kinds of models on cells, which have their own form.
_KERNEL_KINDS = (
    "kernel_factor_graph", "kernel_grid", "kernel_markov", "kernel_network", "kernel_tree", "spectral_hmm",
)  # fmt: skip


def loads(data: bytes, *, source: str = "<text>", normalize: bool = True) -> Any:
    """A model from the bytes of a file.

    >>> net = BayesianNetwork("a -> b", cpds={"a": [0.25, 0.75], "b": [[0.5, 0.5], [0.125, 0.875]]})
    >>> loads(dumps(net)) == net
    True
    """
    return from_object(_json.load(data, source), source=source, normalize=normalize)


def holds(model: Any) -> bool:
    """Whether a model has a JSON form of its own (kernel models have one too, beside their arrays)."""
    from gramgraph.io import sequence_files

    if getattr(model, "kind", None) == "cells":
        return False
    if isinstance(model, (*_KINDS.values(), InfluenceDiagram)) or distribution_files.is_distribution(model):
        return True
    return type(model).__module__.startswith("gramgraph.sequences") and sequence_files.holds(model)


def to_parts(model: Any) -> tuple[Any, dict[str, Any]]:
    """The tree of a JSON file, for a container."""
    return json.loads(dumps(model)), {}


def from_parts(tree: Any, arrays: Mapping[str, Any], *, source: str) -> Any:
    """The model of `to_parts`."""
    if not isinstance(tree, dict) or arrays or tree.get("kind") == "container":
        raise ParseError("the tree of the container is not that of a model", source=source)
    return from_object(tree, source=source)


def from_object(top: dict[str, Any], *, source: str = "<text>", normalize: bool = True) -> Any:
    """The model in the object of a JSON file."""
    if study_json.recognizes(top):
        return study_json.from_object(top, source=source, normalize=normalize)
    if top.get("format") != "gramgraph":
        message = "expected \"format\": \"gramgraph\", or a study network with 'kind' and 'nodes'"
        raise ParseError(f"{message}; got the keys {', '.join(map(shown, list(top)[:8]))}", source=source)
    if top.get("version") != _VERSION:
        version = shown(top.get("version"))
        raise ParseError(f"version {version} of the format is not known; this library reads {_VERSION}", source=source)
    kind = _json.get(top, "kind", str, "", source)
    if kind == "distribution":
        return distribution_files.from_object(top, source=source)
    if kind == "container":
        return _contained(top, source)
    if kind in _KERNEL_KINDS:
        from gramgraph.embeddings.network.files import from_object as kernel_model

        return kernel_model(top, source=source)
    if kind == "influence_diagram":
        from gramgraph.io import decision_files

        return decision_files.from_object(top, from_object, source=source)
    if kind in ("dynamic_bayesian_network", "sequence_model"):
        from gramgraph.io import sequence_files

        return sequence_files.from_object(top, source=source)
    if kind == "plates":
        from gramgraph.io import plate_files

        return plate_files.from_object(top, _variables(top, source), source)
    if kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise ParseError(f"kind {shown(kind)} is not known. Kinds: {known}.{did_you_mean(kind, _KINDS)}", source=source)
    variables = _variables(top, source)
    model: GraphicalModel = _READERS[kind](top, variables, source, normalize)
    return model


def _contained(top: dict[str, Any], source: str) -> Any:
    """A model that has no JSON form: the bytes of a container, with their checksum, as text."""
    from gramgraph.io import container

    try:
        data = base64.b64decode(_json.get(top, "base64", str, "", source), validate=True)
    except ValueError as error:
        raise ParseError(f"base64: {error}", source=source) from None
    return container.loads(data, source=source)


def _variables(top: dict[str, Any], source: str) -> dict[str, Var]:
    specs = []
    reals: dict[str, Var] = {}
    for i, entry in enumerate(_json.get(top, "variables", list, "", source)):
        path = f"variables[{i}]"
        if not isinstance(entry, dict):
            raise ParseError(f"{path} must be an object with 'name' and 'states'", source=source)
        name = _json.get(entry, "name", str, path, source)
        if "real" in entry:
            reals[name] = _real(name, _json.get(entry, "real", int, path, source), entry.get("domain"), path, source)
            specs.append(Spec(name, ("real",)))
        elif "points" in entry:
            kind = _json.get(entry, "points", str, path, source)
            if kind not in ("set", "string"):
                raise ParseError(f"{path}.points is 'set' or 'string', not {kind!r:.40}", source=source)
            reals[name] = Var(name, Points(kind))
            specs.append(Spec(name, ("real",)))
        else:
            specs.append(Spec(name, _json.strings(entry, "states", path, source)))
    found = variables_of(specs, source)
    return {name: reals.get(name, var) for name, var in found.items()} if reals else found


def _real(name: str, dimension: int, domain: Any, path: str, source: str) -> Var:
    if not 1 <= dimension <= _LONGEST_VECTOR:
        raise ParseError(f"{path}.real must be a dimension from 1 to {_LONGEST_VECTOR}, not {dimension}", source=source)
    if domain is None:
        return real(name, dimension)
    found = domain_of_word(domain, name) if isinstance(domain, str) else None
    if not isinstance(found, Real) or found.dimension != dimension:
        raise ParseError(f"{path}.domain {domain!r:.40} is not a domain of {dimension} numbers", source=source)
    return Var(name, found)


def _head(top: dict[str, Any], source: str) -> dict[str, Any]:
    """Name and metadata, which may be absent."""
    name = _json.get(top, "name", str, "", source) if "name" in top else ""
    metadata = _json.get(top, "metadata", dict, "", source) if "metadata" in top else {}
    return {"name": name, "metadata": metadata}


def _bayesian_network(top: dict[str, Any], variables: dict[str, Var], source: str, normalize: bool) -> BayesianNetwork:
    entries = _json.get(top, "conditionals", list, "", source)
    if len(entries) != len(variables):
        message = f"{len(variables)} variables need as many conditionals (null where there is none), not {len(entries)}"
        raise ParseError(message, source=source)
    structure = _json.get(top, "structure", dict, "", source) if "structure" in top else {}
    index = {name: i for i, name in enumerate(variables)}
    conditionals: list[Conditional | None] = []
    parents: list[list[int]] = []
    spread = 0
    for i, (name, entry) in enumerate(zip(variables, entries, strict=True)):
        path = f"conditionals[{i}]"
        given = _parents(entry, name, structure, variables, path, source)
        parents.append([index[parent] for parent in given])
        spread += _spread(entry, variables[name], [variables[parent] for parent in given])
        if spread > _MOST_SPREAD:
            message = f"{path}: {shown(name)} claims far more numbers than the file has; write its matrices in full"
            raise ParseError(message, source=source)
        conditionals.append(None if entry is None else _conditional(entry, variables, path, source))
    cycle = find_cycle(parents)
    if cycle:
        names = list(variables)
        raise ParseError(f"the arcs form a cycle: {cycle_shown([names[i] for i in cycle])}", source=source)
    if normalize:
        conditionals = _normalized(conditionals, variables, source)
    head = _head(top, source)
    return BayesianNetwork.from_parts(variables.values(), conditionals, parents=parents, **head, check=False)


def _spread(entry: dict[str, Any] | None, child: Var, parents: Sequence[Var]) -> int:
    """Cells that a conditional with real-valued variables takes beyond the numbers that the file has for it.

    One number may stand for a matrix, so that a few bytes could ask for gigabytes.
    """
    if entry is None or (child.is_discrete and all(parent.is_discrete for parent in parents)):
        return 0
    m = sum(parent.dimension for parent in parents if parent.is_real)
    k = child.size if child.is_discrete else child.dimension if child.is_real else 1
    rows = cells_of([parent.size for parent in parents if parent.is_discrete])
    return max(0, rows * (k * m + k + (0 if child.is_discrete else k * k)) - _count(entry))


def _count(value: Any) -> int:
    """How many entries the lists of an object have in all."""
    found, rest = 0, [value]
    while rest:
        item = rest.pop()
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        found += len(inner)
        rest.extend(part for part in inner if isinstance(part, (dict, list)))
    return found


def _parents(
    entry: Any, name: str, structure: dict[str, Any], variables: Mapping[str, Var], path: str, source: str
) -> tuple[str, ...]:
    """Names of the parents, each declared and named once."""
    if entry is None:
        given = _json.strings(structure, name, "structure", source) if name in structure else ()
    else:
        if not isinstance(entry, dict):
            raise ParseError(f"{path} must be an object or null", source=source)
        child = _json.get(entry, "child", str, path, source)
        if child != name:
            raise ParseError(f"{path} must be that of {shown(name)}, not of {shown(child)}", source=source)
        given = _json.strings(entry, "parents", path, source)
    for parent in given:
        if parent not in variables:
            hint = did_you_mean(parent, variables)
            raise ParseError(f"{path}: parent {shown(parent)} is not declared.{hint}", source=source)
    if len(set(given)) < len(given) or name in given:
        raise ParseError(f"{path}: {shown(name)} has a parent twice or is its own parent", source=source)
    return given


def _conditional(entry: dict[str, Any], variables: Mapping[str, Var], path: str, source: str) -> Conditional:
    if entry.get("kind") == "table":
        values = _json.numbers(entry, "values", path, source)
        family = Family(entry["child"], tuple(entry["parents"]), values)
        family_vars = {name: variables[name] for name in (*family.parents, family.child)}
        for name, var in family_vars.items():
            if not var.is_discrete:
                raise ParseError(f"{path}: a table over the real-valued {shown(name)}", source=source)
        shape = checked_shape(family, {name: var.size for name, var in family_vars.items()}, source)
        return Table(variables[family.child], tuple(variables[p] for p in family.parents), values.reshape(shape))
    try:
        return from_fields(entry, variables)
    except _UNFIT as error:
        raise ParseError(f"{path}: {error or type(error).__name__}", source=source) from None


def _normalized(
    conditionals: list[Conditional | None], variables: Mapping[str, Var], source: str
) -> list[Conditional | None]:
    """Tables with their rows divided by their sums; other kinds are checked and stay."""
    at = [i for i, c in enumerate(conditionals) if isinstance(c, Table)]
    out = list(conditionals)
    tables: list[Table] = [c for c in conditionals if isinstance(c, Table)]
    if tables:
        families = [Family(c.child.name, tuple(p.name for p in c.parents), c.values) for c in tables]
        flat = normalize_tables(
            [c.values.ravel() for c in tables], [c.child.size for c in tables], families, variables, source
        )
        for i, table, values in zip(at, tables, flat, strict=True):
            out[i] = Table(table.child, table.parents, values.reshape(table.values.shape))
    for i, c in enumerate(conditionals):
        if c is not None and not isinstance(c, Table) and (faults := c.faults()):
            raise ParseError(f"conditionals[{i}]: {faults[0]}", source=source)
    return out


def _factors(top: dict[str, Any], variables: Mapping[str, Var], source: str) -> list[Any]:
    found: list[Any] = []
    for i, entry in enumerate(_json.get(top, "factors", list, "", source)):
        path = f"factors[{i}]"
        if isinstance(entry, dict) and "precision" in entry:
            found.append(_gaussian(entry, variables, path, source))
            continue
        scope, values = _scoped(entry, variables, path, source)
        scale = _json.number(entry, "log_scale", path, source) if "log_scale" in entry else 0.0
        if not ((values >= 0.0) & (values < np.inf)).all():
            raise ParseError(f"{path}.values must be finite and not negative", source=source)
        found.append(TableFactor(scope, values, scale))
    return found


def _gaussian(entry: dict[str, Any], variables: Mapping[str, Var], path: str, source: str) -> GaussianFactor:
    scope = tuple(variables[name] for name in _scope(entry, variables, path, source))
    P, h = _json.numbers(entry, "precision", path, source), _json.numbers(entry, "shift", path, source)
    scale = _json.number(entry, "log_scale", path, source) if "log_scale" in entry else 0.0
    if not (np.isfinite(P).all() and np.isfinite(h).all()):
        raise ParseError(f"{path}: precision and shift must be finite numbers", source=source)
    if P.ndim == 2 and P.shape[0] == P.shape[1] and not np.allclose(P, P.T, rtol=1e-8, atol=1e-12 * np.abs(P).max()):
        raise ParseError(f"{path}.precision is not symmetric", source=source)
    try:
        return GaussianFactor(scope, P, h, scale)
    except ModelError as error:
        raise ParseError(f"{path}: {error}", source=source) from None


def _scope(entry: dict[str, Any], variables: Mapping[str, Var], path: str, source: str) -> tuple[str, ...]:
    names = _json.strings(entry, "scope", path, source)
    for name in names:
        if name not in variables:
            raise ParseError(f"{path}: {shown(name)} is not declared.{did_you_mean(name, variables)}", source=source)
    if len(set(names)) < len(names):
        raise ParseError(f"{path}.scope names a variable twice", source=source)
    return names


def _scoped(entry: Any, variables: Mapping[str, Var], path: str, source: str) -> tuple[tuple[Var, ...], FloatArray]:
    """The scope of a factor or feature and its numbers in the scope's shape."""
    if not isinstance(entry, dict):
        raise ParseError(f"{path} must be an object with 'scope' and 'values'", source=source)
    names = _scope(entry, variables, path, source)
    for name in names:
        if not variables[name].is_discrete:
            raise ParseError(f"{path}: a table over the real-valued {shown(name)}", source=source)
    values = _json.numbers(entry, "values", path, source)
    shape: tuple[int, ...] = ()
    if names:  # a scope is a family whose child is its last variable
        sizes = {name: variables[name].size for name in names}
        shape = checked_shape(Family(names[-1], names[:-1], values), sizes, source)
    elif values.size != 1:
        raise ParseError(f"{path}: a factor over no variables has one number, not {values.size}", source=source)
    return tuple(variables[name] for name in names), values.reshape(shape)


def _markov_network(top: dict[str, Any], variables: dict[str, Var], source: str, normalize: bool) -> MarkovNetwork:
    net = MarkovNetwork.from_parts(variables.values(), _factors(top, variables, source), **_head(top, source))
    links = []
    for pair in _json.get(top, "links", list, "", source) if "links" in top else ():
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(v, str) and v in variables for v in pair)):
            raise ParseError("links must be pairs of variables", source=source)
        links.append((net.index(pair[0]), net.index(pair[1])))
    if any(a == b for a, b in links):
        raise ParseError("links must be pairs of different variables", source=source)
    net.bare_links = tuple(links)
    return net


def _factor_graph(top: dict[str, Any], variables: dict[str, Var], source: str, normalize: bool) -> FactorGraph:
    names = _json.strings(top, "factor_names", "", source) if "factor_names" in top else None
    try:
        factors = _factors(top, variables, source)
        return FactorGraph.from_parts(variables.values(), factors, names=names, **_head(top, source))
    except ModelError as error:
        raise ParseError(f"factor_names: {error}", source=source) from None


def _log_linear(top: dict[str, Any], variables: dict[str, Var], source: str, normalize: bool) -> LogLinear:
    features = []
    for i, entry in enumerate(_json.get(top, "features", list, "", source)):
        path = f"features[{i}]"
        scope, values = _scoped(entry, variables, path, source)
        label = _json.get(entry, "name", str, path, source) if "name" in entry else ""
        features.append((tuple(var.name for var in scope), values, label))
    weights = _json.numbers(top, "weights", "", source)
    head = _head(top, source)
    states = {name: var.states for name, var in variables.items()}
    try:
        model = LogLinear(features, weights, states=states, name=head["name"])
    except _UNFIT as error:
        raise ParseError(str(error), source=source) from None
    model.metadata = head["metadata"]
    return model


_READERS: dict[str, Any] = {
    "bayesian_network": _bayesian_network,
    "factor_graph": _factor_graph,
    "log_linear": _log_linear,
    "markov_network": _markov_network,
}


def dumps(model: Any) -> bytes:
    """The bytes of a file, one variable, conditional or factor a line."""
    if type(model).__module__.startswith(("gramgraph.embeddings.network.", "gramgraph.models.of_potentials")):
        from gramgraph.embeddings.network.files import to_object

        return f"{_json.dump(to_object(model))}\n".encode()
    if isinstance(model, InfluenceDiagram):
        from gramgraph.io import decision_files

        made = decision_files.to_object(model, json.loads(dumps(model.network)))
        return f"{_json.dump(made)}\n".encode()
    kinds = {cls: kind for kind, cls in _KINDS.items()}
    kind = next((kinds[cls] for cls in type(model).__mro__ if cls in kinds), None)  # a learned network is a network
    if kind is None and type(model).__module__.startswith("gramgraph.sequences"):
        from gramgraph.io import sequence_files

        if sequence_files.holds(model):
            return f"{_json.dump(sequence_files.to_object(model))}\n".encode()
    if kind is None and distribution_files.is_distribution(model):
        return f"{distribution_files.dumps(model)}\n".encode()
    if kind is None:
        from gramgraph.io import container

        head = {"format": "gramgraph", "version": _VERSION, "kind": "container"}
        return f"{_json.dump({**head, 'base64': base64.b64encode(container.dumps(model)).decode('ascii')})}\n".encode()
    parts: dict[str, Any] = {"format": "gramgraph", "version": _VERSION, "kind": kind, "name": model.name}
    parts["variables"] = [_variable(var) for var in model.vars]
    if model.kind == "plates":
        from gramgraph.io import plate_files

        parts |= {"kind": "plates", **plate_files.to_object(model)}
    elif isinstance(model, BayesianNetwork):
        parts["conditionals"] = [None if c is None else c.to_fields() for c in model.conditionals]
        if None in parts["conditionals"]:
            parts["structure"] = {name: list(model.parents(name)) for name in model.variables}
    elif isinstance(model, LogLinear):
        parts["features"] = [
            {"name": f.name, "scope": [v.name for v in f.scope], "values": f.values.ravel().tolist()}
            for f in model.features
        ]
        parts["weights"] = model.weights.tolist()
    else:
        parts["factors"] = [_fields(f) for f in model.factors()]
    if isinstance(model, FactorGraph):
        parts["factor_names"] = list(model.factor_names)
    if isinstance(model, MarkovNetwork) and model.bare_links:
        names = model.variables
        parts["links"] = [[names[a], names[b]] for a, b in model.bare_links]
    parts["metadata"] = model.metadata
    return ("{\n" + ",\n".join(f'"{key}": {_block(value)}' for key, value in parts.items()) + "\n}\n").encode("utf-8")


def _variable(var: Var) -> dict[str, Any]:
    """A variable as a dict that JSON can hold; domains within the reals by their word."""
    if var.is_discrete:
        return {"name": var.name, "states": list(var.states)}
    if isinstance(var.domain, Points):
        return {"name": var.name, "points": var.domain.kind}
    own = {"name": var.name, "real": var.dimension}
    return own if type(var.domain) is Real else {**own, "domain": repr(var.domain)}


def _fields(factor: Any) -> dict[str, Any]:
    """A factor as a dict that JSON can hold."""
    scope = [var.name for var in factor.scope]
    if isinstance(factor, GaussianFactor):
        numbers = {"precision": factor.precision.tolist(), "shift": factor.shift.tolist()}
        return {"scope": scope, **numbers, "log_scale": factor.log_scale}
    return {"scope": scope, "values": factor.values.ravel().tolist(), "log_scale": factor.log_scale}


def _block(value: Any) -> str:
    """A list of objects with one a line; anything else on one line."""
    if isinstance(value, list) and value and isinstance(value[0], (dict, type(None))):
        return "[\n" + ",\n".join("  " + _json.dump(item) for item in value) + "\n]"
    return _json.dump(value)
