"""Plate models as JSON: variables, parents, plates, hyper-parameters, and conditionals as they were written.

    {"format": "gramgraph", "version": 1, "kind": "plates", "variables": […], "structure": {"w": ["z", "phi"], …},
     "plates": [{"name": "words", "members": ["z", "w"], "outer": "documents", "size": null}, …],
     "hyperparameters": {"alpha": 0.5, "beta": null},
     "cpds": {"theta": {"family": "Dirichlet", "arguments": {"alpha": {"name": "alpha"}}},
              "w": {"index": "phi", "by": ["z"]}, "a": {"table": […]}, "x": null}}

An argument is a number or an array, `{"name": …}`, `{"index": …, "by": […]}`, `{"dot": [a, b]}`, `{"exp": a}` or
`{"logistic": a}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph import distributions
from gramgraph.distributions.by_name import FAMILIES, ByName, Dot, Exp, Index, Logistic
from gramgraph.exceptions import ModelError, ParseError
from gramgraph.io import _json
from gramgraph.models.plated.model import PlateModel
from gramgraph.models.plated.notation import Plate
from gramgraph.variables import Var

_LINKS: dict[str, Any] = {"exp": Exp, "logistic": Logistic}


def to_object(model: PlateModel) -> dict[str, Any]:
    """What a file holds beside kind, name and variables."""
    values = {key: None if value is None else value.tolist() for key, value in model.hyperparameters.items()}
    plates = [
        {"name": p.name, "members": list(p.members), "outer": p.outer, "size": p.size} for p in model.plates.values()
    ]
    return {
        "structure": {name: list(model.parents(name)) for name in model.variables},
        "plates": plates,
        "hyperparameters": values,
        "cpds": {name: _spec(model, name) for name in model.template.nodes},
    }


def _spec(model: PlateModel, name: str) -> Any:
    spec, node = model.written.get(name), model.template.nodes[name]
    if spec is None:
        return None
    if node.form == "table":
        return {"table": np.asarray(node.arguments["table"]).tolist()}
    if isinstance(spec, Index):
        return _argument(spec)
    if isinstance(spec, ByName):
        return {"family": spec.family.__name__, "arguments": {word: _argument(value) for word, value in spec}}
    own = [word for word in type(spec).__dataclass_fields__ if not word.startswith("_")]
    return {"family": type(spec).__name__, "arguments": {word: _argument(getattr(spec, word)) for word in own}}


def _argument(value: Any) -> Any:
    if isinstance(value, str):
        return {"name": value}
    if isinstance(value, Index):
        return {"index": value.of, "by": list(value.selectors)}
    if isinstance(value, Dot):
        return {"dot": [_argument(value.left), _argument(value.right)]}
    if isinstance(value, (Exp, Logistic)):
        return {type(value).__name__.lower(): _argument(value.of)}
    return None if value is None else np.asarray(value, dtype=np.float64).tolist()


def from_object(top: dict[str, Any], variables: Mapping[str, Var], source: str) -> PlateModel:
    """The model; a `ParseError` for what no model has written."""
    structure = _json.get(top, "structure", dict, "", source)
    hyper = _json.get(top, "hyperparameters", dict, "", source)
    cpds = _json.get(top, "cpds", dict, "", source)
    parents = {name: _json.strings(structure, name, "structure", source) for name in variables}
    unknown = [n for n in (*(p for given in parents.values() for p in given), *hyper, *cpds) if n not in variables]
    if unknown:
        raise ParseError(f"{unknown[0]!r:.40} is not declared", source=source)
    plates = [_plate(entry, i, source) for i, entry in enumerate(_json.get(top, "plates", list, "", source))]
    name = _json.get(top, "name", str, "", source) if "name" in top else ""
    try:
        specs = {key: _read_spec(entry) for key, entry in cpds.items() if entry is not None}
        return PlateModel.of_parts(tuple(variables.values()), parents, tuple(plates), specs, hyper, name=name)
    except (ModelError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ParseError(f"{error or type(error).__name__}", source=source) from None


def _plate(entry: Any, i: int, source: str) -> Plate:
    path = f"plates[{i}]"
    if not isinstance(entry, dict):
        raise ParseError(f"{path} must be an object with 'name' and 'members'", source=source)
    outer, size = entry.get("outer"), entry.get("size")
    if not (outer is None or isinstance(outer, str)) or not (size is None or (type(size) is int and size >= 0)):
        raise ParseError(f"{path}: outer is a name and size a whole number, or null", source=source)
    members = _json.strings(entry, "members", path, source)
    return Plate(_json.get(entry, "name", str, path, source), tuple(members), outer, size)


def _read_spec(entry: Any) -> Any:
    if not isinstance(entry, dict):
        raise ModelError("a conditional is an object or null")
    if "table" in entry:
        return np.asarray(entry["table"], dtype=np.float64)
    if "index" in entry:
        return _read_argument(entry)
    family, arguments = entry["family"], entry["arguments"]
    if family not in FAMILIES:
        raise ModelError(f"{family!r:.40} is not a family for plate models")
    given = {word: _read_argument(value) for word, value in arguments.items() if value is not None}
    return getattr(distributions, family)(**given)


def _read_argument(value: Any) -> Any:
    if not isinstance(value, dict):
        found = np.asarray(value, dtype=np.float64)
        return float(found) if found.ndim == 0 else found
    if len(value) == 1 and isinstance(value.get("name"), str):
        return value["name"]
    if set(value) == {"index", "by"}:
        return Index(value["index"], by=tuple(value["by"]))
    if set(value) == {"dot"}:
        left, right = value["dot"]
        return Dot(_read_argument(left), _read_argument(right))
    for word, link in _LINKS.items():
        if set(value) == {word}:
            return link(_read_argument(value[word]))
    raise ModelError(f"an argument is numbers, a name, index, dot, exp or logistic, not {value!r:.60}")
