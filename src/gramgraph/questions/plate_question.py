"""A question about a plate model in numbers: members of all variables, and what was observed of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError, StateError, VariableError, did_you_mean, listing
from gramgraph.models.plated.layout import PlateLayout
from gramgraph.models.plated.model import PlateModel
from gramgraph.models.plated.template import Node
from gramgraph.typing import Array
from gramgraph.variables import Var

#: A variable (all its members), one member (variable, number), or several members jointly.
Target = str | tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False)
class PlateQuestion:
    """Members, observations (-1 or NaN for what is not observed), and targets by key."""

    model: PlateModel
    layout: PlateLayout
    observed: Mapping[str, Array]  # (members,) codes of a discrete variable, (members, dimension) numbers of others
    targets: Mapping[Any, Target] = field(default_factory=dict)

    def hidden(self, name: str) -> Array:
        """Which members of a variable are not observed, (members,)."""
        n = self.layout.count(name)
        seen = self.observed.get(name)
        if seen is None:
            return np.ones(n, dtype=bool)
        return np.asarray(seen < 0 if seen.ndim == 1 else np.isnan(seen).any(axis=1))

    def label(self, name: str, member: int) -> str:
        """The name of one member."""
        return self.layout.labels(name)[member]


def read_plate_question(
    model: PlateModel, targets: Any, evidence: Any, sizes: Mapping[str, Any] | None
) -> PlateQuestion:
    """Names looked up, sizes taken from the evidence, values checked."""
    if evidence is not None and not isinstance(evidence, Mapping):
        raise ModelError("evidence about a plate model is a dict {variable: nested lists}, one list for each plate")
    model.need_values()
    whole = {name: value for name, value in (evidence or {}).items() if name in model.template.nodes}
    single = {name: value for name, value in (evidence or {}).items() if name not in whole}
    read = {name: _Reader(model, model.template.nodes[name], value) for name, value in whole.items()}
    layout = PlateLayout(model.template, _sizes(model, read.values(), dict(sizes or {})))
    observed: dict[str, Any] = {name: reader.codes(layout) for name, reader in read.items()}
    for key, value in single.items():
        name, member = _member(model, layout, key)
        node = model.template.nodes[name]
        if name not in observed:
            observed[name] = _nothing(node, layout.count(name))
        observed[name][member] = _one(node.var, value)
    for name, node in model.template.nodes.items():
        if node.form == "given" and (name not in observed or PlateQuestion(model, layout, observed).hidden(name).any()):
            raise ModelError(f"{name} has no distribution: it is an input that must be observed, all of it")
    return PlateQuestion(model, layout, observed, _targets(model, layout, targets, observed))


# ------------------------------------------------------------------------------------------------- values


def _nothing(node: Node, n: int) -> Array:
    return np.full(n, -1) if node.var.is_discrete else np.full((n, node.var.dimension), np.nan)


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and np.isnan(value))


def _one(var: Var, value: Any) -> Any:
    if _is_gap(value):
        return -1 if var.is_discrete else np.nan
    if var.is_discrete:
        return var.index(value)
    return var.domain.read(value, var.name)  # type: ignore[attr-defined]


class _Reader:
    """Nested lists of one variable: their lengths level by level, and the values in order."""

    def __init__(self, model: PlateModel, node: Node, value: Any) -> None:
        self.model, self.node = model, node
        self.lengths: dict[str, dict[tuple[int, ...], int]] = {}  # plate → positions around it → length
        items: list[Any] = [value]
        rows: list[tuple[int, ...]] = [()]
        for plate in node.plates:
            around = self._around(plate)
            found = self.lengths.setdefault(plate, {})
            deeper: list[Any] = []
            places: list[tuple[int, ...]] = []
            for item, row in zip(items, rows, strict=True):
                listed = self._listed(item, plate)
                key = tuple(row[i] for i in around)
                if found.setdefault(key, len(listed)) != len(listed):
                    raise ModelError(
                        f"evidence of {node.name}: {found[key]} and {len(listed)} members of plate {plate} do not fit"
                    )
                deeper += listed
                places += [(*row, i) for i in range(len(listed))]
            items, rows = deeper, places
        self.values = items

    def _around(self, plate: str) -> list[int]:
        outer = self.model.template.plates[plate].outer
        chain = self.model.template.chain(outer) if outer else ()
        return [self.node.plates.index(p) for p in chain]

    def _listed(self, item: Any, plate: str) -> list[Any]:
        if isinstance(item, (str, bytes, Mapping)) or not isinstance(item, Iterable):
            depth = listing(self.node.plates)
            raise ModelError(
                f"evidence of {self.node.name} is a list for each plate ({depth}); a list over {plate} is expected, "
                f"not {item!r:.40}"
            )
        return list(item)

    def codes(self, layout: PlateLayout) -> Array:
        """The values in the order of the layout."""
        var, n = self.node.var, layout.count(self.node.name)
        if len(self.values) != n:
            raise ModelError(f"evidence of {self.node.name}: {len(self.values)} values for {n} members")
        if not var.is_discrete:
            return np.array([_one(var, v) * np.ones(var.dimension) for v in self.values]).reshape(n, var.dimension)
        plain = var.states == tuple(map(str, range(var.size)))
        if plain and all(type(v) in (int, np.int64) for v in self.values):
            found = np.array(self.values, dtype=np.int64).reshape(n)
            if ((found >= 0) & (found < var.size)).all():
                return found
        try:
            return np.array([_one(var, v) for v in self.values], dtype=np.int64).reshape(n)
        except StateError as error:
            raise StateError(f"evidence of {self.node.name}: {error}") from None


def _sizes(model: PlateModel, readers: Iterable[_Reader], given: dict[str, Any]) -> dict[str, Any]:
    """Sizes of plates from what was observed; a size that was given, too, must agree."""
    found: dict[str, dict[tuple[int, ...], int]] = {}
    for reader in readers:
        for plate, lengths in reader.lengths.items():
            known = found.setdefault(plate, {})
            for key, n in lengths.items():
                if known.setdefault(key, n) != n:
                    at = f" in {model.template.plates[plate].outer} {', '.join(map(str, key))}" if key else ""
                    raise ModelError(
                        f"the plate {plate}{at} has {known[key]} members in one variable, but {n} in {reader.node.name}"
                    )
    out = dict(given)
    for plate, lengths in found.items():
        if model.template.plates[plate].outer is None:
            n = lengths.get((), 0)
            if plate in given and given[plate] != n:
                raise ModelError(f"the plate {plate} has {n} members in the evidence, not {given[plate]!r}")
            out[plate] = n
        elif plate not in given:
            out[plate] = np.array([lengths[key] for key in sorted(lengths)], dtype=np.int64)
    return out


# ------------------------------------------------------------------------------------------------- names


def _member(model: PlateModel, layout: PlateLayout, key: Any) -> tuple[str, int]:
    """The variable and the number of a member, from its name `z[0,2]`."""
    name, _, inside = key.partition("[") if isinstance(key, str) else (key, "", "")
    if name not in model.template.nodes:
        if name in model.hyperparameters:
            raise VariableError(f"{name} is a hyper-parameter: its value is given when the model is made")
        raise VariableError.unknown(name, list(model.template.nodes))
    plates = model.template.nodes[name].plates
    if not inside and not plates:
        return name, 0
    try:
        at = [int(part) for part in inside.removesuffix("]").split(",")]
    except ValueError:
        at = []
    rows = layout.rows(plates)
    fits = len(at) == len(plates)
    found = np.flatnonzero((rows == np.array(at)).all(axis=1)) if fits else np.zeros(0)
    if not inside.endswith("]") or len(found) != 1:
        wanted = f"{name}[{','.join(plates)}]" if plates else name
        hint = did_you_mean(key, layout.labels(name)[:1000])
        raise VariableError(f"{key!r} is not a member of {name}: members are written {wanted}.{hint}")
    return name, int(found[0])


def _targets(model: PlateModel, layout: PlateLayout, targets: Any, observed: Mapping[str, Any]) -> dict[Any, Target]:
    if targets is None:
        targets = [name for name in model.template.nodes if name not in observed]
    asked = [targets] if isinstance(targets, (str, tuple)) else list(targets)
    out: dict[Any, Target] = {}
    for key in asked:
        if isinstance(key, tuple):
            out[key] = tuple(_member(model, layout, part) for part in key)
        elif key in model.template.nodes:
            out[key] = key
        else:
            out[key] = (_member(model, layout, key),)
    return out
