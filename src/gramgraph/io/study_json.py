"""Networks of published studies as JSON: an object with `network`, `kind` and `nodes`.

    {"network": "…", "kind": "discrete",
     "nodes": {"A": {"states": ["no", "yes"], "parents": ["B"], "cpt": [[0.9, 0.1], [0.2, 0.8]]}, …}}

The axes of `cpt` are the parents in the listed order and then the node. A node may stand before its parents; the order
of the file is the order of the variables. Networks of the kinds "gaussian" and "clg" are read by `study_real`.
"""

from __future__ import annotations

from typing import Any

from gramgraph.exceptions import ParseError
from gramgraph.io import _json, study_real
from gramgraph.io._text import Family, Spec, build_network, shown
from gramgraph.models import BayesianNetwork


def recognizes(top: dict[str, Any]) -> bool:
    """Whether an object has this layout."""
    return "nodes" in top and "format" not in top


def loads(data: bytes, *, source: str = "<text>", normalize: bool = True) -> BayesianNetwork:
    """A network from the bytes of a file.

    >>> text = b'{"kind": "discrete", "nodes": {"a": {"states": ["n", "y"], "parents": [], "cpt": [0.5, 0.5]}}}'
    >>> loads(text).variables
    ('a',)
    """
    return from_object(_json.load(data, source), source=source, normalize=normalize)


def from_object(top: dict[str, Any], *, source: str, normalize: bool) -> BayesianNetwork:
    """A network from the object in a file."""
    if study_real.recognizes(top):
        return study_real.from_object(top, source=source, normalize=normalize)
    kind = top.get("kind", "(not stated)")
    if kind != "discrete":
        message = f"a network of kind {shown(kind)}: expected 'discrete', 'gaussian' or 'clg'"
        raise ParseError(message, source=source)
    nodes = _json.get(top, "nodes", dict, "", source)
    if not nodes:
        raise ParseError("nodes must hold at least one variable", source=source)
    specs, families = [], []
    for name, node in nodes.items():
        path = f"nodes.{name}"
        if not isinstance(node, dict):
            raise ParseError(f"{path} must be an object with 'states', 'parents' and 'cpt'", source=source)
        parents = _json.strings(node, "parents", path, source)
        states = _json.strings(node, "states", path, source)
        values = _json.numbers(node, "cpt", path, source)
        specs.append(Spec(name, states))
        families.append(Family(name, parents, values))
        _check_axes(families[-1], nodes, path, source)
    name = _json.get(top, "network", str, "", source) if "network" in top else ""
    metadata = {key: top[key] for key in ("source", "note") if isinstance(top.get(key), str)}
    return build_network(specs, families, source=source, normalize=normalize, name=name, metadata=metadata)


def _check_axes(family: Family, nodes: dict[str, Any], path: str, source: str) -> None:
    """A nested `cpt` must have its axes in the order of the parents and the node, not only the right size."""
    shape = []
    for name in (*family.parents, family.child):
        node = nodes.get(name)
        if not isinstance(node, dict) or not isinstance(node.get("states"), list):
            return  # the checks of the whole network say what is wrong
        shape.append(len(node["states"]))
    given = list(family.values.shape)
    if family.values.ndim > 1 and given != shape:
        raise ParseError(f"{path}.cpt must have the axes {shape} (parents, then the node), not {given}", source=source)
