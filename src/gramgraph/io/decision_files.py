"""Influence diagrams in the library's own format: their network, what is known at each decision, and utilities.

{"format": "gramgraph", "version": 1, "kind": "influence_diagram", "network": {…},
 "information": {"umbrella": ["forecast"]}, "utilities": [{"name": "comfort", "scope": […], "values": […]}]}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramgraph.exceptions import GramGraphError, ParseError
from gramgraph.io import _json
from gramgraph.models import BayesianNetwork
from gramgraph.models.influence_diagram import InfluenceDiagram, Utility


def to_object(diagram: InfluenceDiagram, network: Any) -> dict[str, Any]:
    """The object of a JSON file, around that of its network."""
    return {
        "format": "gramgraph",
        "version": 1,
        "kind": "influence_diagram",
        "network": network,
        "information": {d: list(known) for d, known in diagram.information.items()},
        "utilities": [
            {"name": u.name, "scope": [var.name for var in u.scope], "values": u.values.ravel().tolist()}
            for u in diagram.utilities.values()
        ],
    }


def from_object(top: dict[str, Any], network: Callable[..., Any], *, source: str) -> InfluenceDiagram:
    """The diagram in the object of a JSON file; `network` reads that of its network."""
    net = network(_json.get(top, "network", dict, "", source), source=source)
    if not isinstance(net, BayesianNetwork) or not net.is_discrete or not net.has_tables:
        raise ParseError("network must be a Bayesian network of variables with states and tables", source=source)
    known = _json.get(top, "information", dict, "", source)
    told = {d: _json.strings(known, d, "information", source) for d in known}
    utilities = [_utility(net, entry, f"utilities[{i}]", source) for i, entry in enumerate(_entries(top, source))]
    try:
        for d in told:
            if net.parents(d):
                raise ParseError(f"information: the decision {d!r} has parents in the network", source=source)
        return InfluenceDiagram.from_parts(net, told, utilities)
    except ParseError:
        raise
    except GramGraphError as error:
        raise ParseError(f"information: {error}", source=source) from None


def _entries(top: dict[str, Any], source: str) -> list[Any]:
    found: list[Any] = _json.get(top, "utilities", list, "", source)
    if not found:
        raise ParseError("utilities must hold at least one table", source=source)
    return found


def _utility(net: BayesianNetwork, entry: Any, path: str, source: str) -> Utility:
    if not isinstance(entry, dict):
        raise ParseError(f"{path} must be an object with 'name', 'scope' and 'values'", source=source)
    name = _json.get(entry, "name", str, path, source)
    names = _json.strings(entry, "scope", path, source)
    values = np.asarray(_json.numbers(entry, "values", path, source), dtype=np.float64)
    if name in net or len(set(names)) < len(names) or any(n not in net for n in names):
        raise ParseError(f"{path}: {name!r:.40} must be a new name, its scope variables of the network", source=source)
    scope = tuple(net.var(n) for n in names)
    shape = tuple(var.size for var in scope)
    if values.size != int(np.prod(shape, dtype=object)) or not np.isfinite(values).all():
        raise ParseError(f"{path}.values must be finite numbers of shape {shape}", source=source)
    values = values.reshape(shape)
    values.flags.writeable = False
    return Utility(name, scope, values)
