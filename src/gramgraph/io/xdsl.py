"""XDSL, the XML format of GeNIe and SMILE: `<cpt>`, `<deterministic>` and `<noisymax>` nodes.

`<probabilities>` counts through the parents as listed (the last one fastest) and then through the child, which varies
fastest of all. Files written by pyAgrum count with the *first* parent fastest; they name their program and are read so.

A `<noisymax>` holds one distribution of the child for every state of every parent, and one for the leak. `<strengths>`
gives for each parent the order in which its states stand in `<parameters>`. The child's first state is the strongest
effect and its last is none; a `NoisyMax` counts upward, so **the states of such a node are read in reverse** (and
written in reverse again).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, Deterministic, NoisyMax
from gramgraph.exceptions import ModelWarning, ParseError, did_you_mean
from gramgraph.io._numbers import count_of
from gramgraph.io._text import MAX_AXES, Family, Spec, build_network, cycle_shown, find_cycle, shown
from gramgraph.io._xdsl_screen import describe
from gramgraph.io._xdsl_write import dumps
from gramgraph.io._xml import Element, numbers, parse
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray
from gramgraph.variables import Var

__all__ = ["dumps", "loads"]

#: What the other kinds of node are, for the message that refuses them.
_REFUSED = {
    "cast": "a CAST node",
    "decision": "a decision",
    "demorgan": "a DeMorgan gate",
    "distribution": "a continuous variable",
    "equation": "a continuous variable given by an equation",
    "hequation": "a continuous variable given by an equation",
    "mau": "a utility of several attributes",
    "noisyadder": "a noisy adder",
    "utility": "a utility",
}


@dataclass(slots=True)
class _Node:
    """A node of the file; `states` are the identifiers that stand in it."""

    element: Element
    key: str
    name: str
    states: tuple[str, ...]
    labels: tuple[str, ...]
    parents: tuple[str, ...]  # names of variables

    @property
    def at(self) -> tuple[int, int]:
        """Position of the node in the file."""
        return self.element.at

    @property
    def reversed(self) -> bool:
        """Whether its states are read in reverse."""
        return self.element.tag == "noisymax"


@dataclass(frozen=True, slots=True)
class _Setting:
    """What the readers of all nodes need to know."""

    source: str
    normalize: bool
    first_fastest: bool  # pyAgrum's order of tables
    sizes: Mapping[str, int]
    reversed: frozenset[str]

    def turned(self, node: _Node, values: Any, shape: Sequence[int]) -> Any:
        """Numbers of the file as an array in our order: parents, then what is left in `shape`."""
        n = len(node.parents)
        if self.first_fastest and n > 1:
            values = values.reshape(*shape[:n][::-1], *shape[n:])
            values = values.transpose(*range(n - 1, -1, -1), *range(n, len(shape)))
        axes = tuple(i for i, parent in enumerate(node.parents) if parent in self.reversed)
        return np.flip(values.reshape(shape), axes)


def loads(data: bytes, *, source: str = "<text>", normalize: bool = True) -> BayesianNetwork:
    """A network from the bytes of an XDSL file.

    A `ParseError` with line and column when it does not follow the format, or has nodes that are not discrete chance
    nodes.

    >>> node = b'<cpt id="a"><state id="no"/><state id="yes"/><probabilities>0.2 0.8</probabilities></cpt>'
    >>> loads(b"<smile><nodes>" + node + b"</nodes></smile>").conditional("a").table().tolist()
    [0.2, 0.8]
    """
    root = parse(data, source=source, root="smile")
    holder = root.first("nodes")
    if holder is None:
        raise _fault("<smile> holds no <nodes>", root, source)
    dynamic = root.first("dynamic")
    if dynamic is not None:
        raise _fault("a dynamic network (with time slices); unroll it in GeNIe and save it again", dynamic, source)
    nodes = _nodes(holder, source)
    genie = next((found for ext in root.all("extensions") if (found := ext.first("genie")) is not None), None)
    first_fastest = genie is not None and "agrum" in genie.attributes.get("app", "").lower()
    made: dict[str, Callable[[Mapping[str, Var]], Conditional]] = {}
    families: list[Family] = []
    sizes = {node.name: len(node.states) for node in nodes}
    turned = frozenset(node.name for node in nodes if node.reversed)
    setting = _Setting(source, normalize, first_fastest, sizes, turned)
    for node in nodes:
        family, maker = _READERS[node.element.tag](node, setting)
        families.append(family)
        if maker is not None:
            made[node.name] = maker
    name = (
        root.attributes.get("id", "") if genie is None else genie.attributes.get("name", root.attributes.get("id", ""))
    )
    net = build_network(
        [Spec(node.name, node.labels[::-1] if node.reversed else node.labels, node.at) for node in nodes],
        families,
        source=source,
        normalize=normalize,
        name=name,
        metadata=_metadata(root, nodes, genie),
    )
    return _completed(net, nodes, made, source) if made else net


def _fault(message: str, element: Element, source: str) -> ParseError:
    return ParseError(message, source=source, line=element.at[0], column=element.at[1])


def _nodes(holder: Element, source: str) -> list[_Node]:
    """The nodes with their names resolved; kinds that cannot be read are refused."""
    found: list[_Node] = []
    names: dict[str, str] = {}
    for element in holder.children:
        key = element.attributes.get("id", "")
        if element.tag in _REFUSED or element.tag not in _READERS:
            what = _REFUSED.get(element.tag, f"of the unknown kind <{element.tag}>")
            raise _fault(f"{shown(key)} is {what}; only discrete chance nodes can be read", element, source)
        if not key:
            raise _fault(f"a <{element.tag}> without id", element, source)
        states = tuple(state.attributes.get("id", "") for state in element.all("state"))
        properties = {item.attributes.get("id", ""): item.word for item in element.all("property")}
        name = properties.get("gramgraph_name") or key
        labels = _labels(properties.get("gramgraph_states"), states, element, source)
        if key in names:
            raise _fault(f"a second node with the id {shown(key)}", element, source)
        names[key] = name
        found.append(_Node(element, key, name, states, labels, ()))
    for node in found:
        listed = node.element.first("parents")
        keys = [] if listed is None else listed.text.split()
        node.parents = tuple([names.get(key, key) for key in keys])
    return found


def _labels(text: str | None, states: tuple[str, ...], element: Element, source: str) -> tuple[str, ...]:
    """The states, as they were called before they were made identifiers."""
    if text is None:
        return states
    try:
        labels = json.loads(text)
    except (ValueError, RecursionError):
        labels = None
    good = isinstance(labels, list) and len(labels) == len(states) and all(isinstance(word, str) for word in labels)
    if not good:
        raise _fault(f"the property gramgraph_states must list {len(states)} names", element, source)
    return tuple(labels)  # type: ignore[arg-type]


_Read = tuple[Family, Callable[[Mapping[str, Var]], Conditional] | None]


def _part(node: _Node, tag: str, source: str) -> Element:
    found = node.element.first(tag)
    if found is None:
        raise _fault(f"<{node.element.tag}> {shown(node.key)} has no <{tag}>", node.element, source)
    return found


def _cpt(node: _Node, setting: _Setting) -> _Read:
    table = _part(node, "probabilities", setting.source)
    values = numbers(table, source=setting.source)
    shape = [setting.sizes.get(parent, 0) for parent in node.parents] + [len(node.states)]
    if values.size == prod(shape) and len(shape) <= MAX_AXES:
        values = setting.turned(node, values, shape)
    return Family(node.name, node.parents, values, table.at), None


def _placeholder(node: _Node) -> Family:
    """A family without parents, for the common checks; its conditional is put in afterwards."""
    return Family(node.name, (), np.full(len(node.states), 1.0 / max(len(node.states), 1)), node.at)


def _parent_sizes(node: _Node, setting: _Setting) -> list[int]:
    """Sizes of the parents, which must be nodes of the file, each named once."""
    for i, parent in enumerate(node.parents):
        if parent not in setting.sizes:
            hint = did_you_mean(parent, setting.sizes)
            message = f"parent {shown(parent)} of {shown(node.name)} is not declared.{hint}"
            raise _fault(message, node.element, setting.source)
        if parent in node.parents[:i]:
            message = f"variable {shown(node.name)} names the parent {shown(parent)} twice"
            raise _fault(message, node.element, setting.source)
    return [setting.sizes[parent] for parent in node.parents]


def _deterministic(node: _Node, setting: _Setting) -> _Read:
    listed = _part(node, "resultingstates", setting.source)
    words = listed.text.split()
    shape = _parent_sizes(node, setting)
    if len(words) != prod(shape):
        message = f"{shown(node.name)} needs {prod(shape)} resulting states, {len(words)} came"
        raise _fault(message, listed, setting.source)
    index = {state: i for i, state in enumerate(node.states)}
    wrong = next((word for word in words if word not in index), None)
    if wrong is not None:
        hint = did_you_mean(wrong, index)
        raise _fault(f"{shown(wrong)} is not a state of {shown(node.name)}.{hint}", listed, setting.source)
    if len(shape) > MAX_AXES:
        raise _fault(f"{shown(node.name)} has {len(shape)} parents, too many for a table", listed, setting.source)
    outcomes = setting.turned(node, np.array([index[word] for word in words], dtype=np.int64), shape)

    def make(variables: Mapping[str, Var]) -> Conditional:
        return Deterministic(variables[node.name], tuple(variables[p] for p in node.parents), outcomes)

    return _placeholder(node), make


def _noisy(node: _Node, setting: _Setting) -> _Read:
    shape = _parent_sizes(node, setting)
    table = _part(node, "parameters", setting.source)
    values = numbers(table, source=setting.source)
    k = len(node.states)
    wanted = (sum(shape) + 1) * k
    if values.size != wanted:
        raise _fault(f"{shown(node.name)} needs {wanted} parameters, {values.size} came", table, setting.source)
    if k == 0:
        return _placeholder(node), None  # a node without states, which the common checks refuse
    rows = (
        _normalized(values.reshape(-1, k), node, table, setting.source) if setting.normalize else values.reshape(-1, k)
    )
    links: list[FloatArray] = []
    start = 0
    for parent, positions in zip(node.parents, _strengths(node, shape, setting.source), strict=True):
        link = np.empty((len(positions), k))
        link[positions] = rows[start : start + len(positions), ::-1]
        links.append(link[::-1] if parent in setting.reversed else link)
        start += len(positions)

    def make(variables: Mapping[str, Var]) -> Conditional:
        parents = tuple(variables[p] for p in node.parents)
        return NoisyMax(variables[node.name], parents, links, rows[-1, ::-1])

    return _placeholder(node), make


def _normalized(rows: FloatArray, node: _Node, table: Element, source: str) -> FloatArray:
    """Rows divided by their sums, as tables are."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = rows.sum(axis=1)
    if not (np.isfinite(rows).all() and (rows >= 0.0).all() and (sums > 0.0).all() and np.isfinite(sums).all()):
        message = f"the parameters of {shown(node.name)} must be probabilities, not all zero in a column"
        raise _fault(message, table, source)
    off = np.abs(sums - 1.0)
    if off.max() > 1e-2:
        worst = float(sums[off.argmax()])
        message = (
            f"{source}: parameters of {node.name} did not sum to one (the worst to {worst:.6g}) and were normalized"
        )
        warnings.warn(message, ModelWarning, stacklevel=5)
    return rows / np.where(off > 4e-16 * rows.shape[1], sums, 1.0)[:, None]


def _strengths(node: _Node, shape: Sequence[int], source: str) -> list[list[int]]:
    """For each parent: the states in the order of the columns."""
    listed = node.element.first("strengths")
    if listed is None:
        return [list(range(size)) for size in shape]
    words = listed.text.split()
    out: list[list[int]] = []
    start = 0
    for size in shape:
        out.append([count_of(word, size - 1) for word in words[start : start + size]])
        start += size
    if len(words) != start or any(sorted(part) != list(range(size)) for part, size in zip(out, shape, strict=True)):
        message = f"the strengths of {shown(node.name)} must list the states 0, 1, … of each parent once"
        raise _fault(message, listed, source)
    return out


_READERS: dict[str, Callable[[_Node, _Setting], _Read]] = {
    "cpt": _cpt,
    "deterministic": _deterministic,
    "noisymax": _noisy,
}


def _completed(
    net: BayesianNetwork,
    nodes: Sequence[_Node],
    made: Mapping[str, Callable[[Mapping[str, Var]], Conditional]],
    source: str,
) -> BayesianNetwork:
    """The network with its structured conditionals in place; the arcs are checked again."""
    variables = {name: net.var(name) for name in net.variables}
    parents = [[net.index(parent) for parent in node.parents] for node in nodes]
    cycle = find_cycle(parents)
    if cycle:
        path = cycle_shown([nodes[i].name for i in cycle])
        raise _fault(f"the arcs form a cycle: {path}", nodes[cycle[0]].element, source)
    conditionals = [made[name](variables) if name in made else net.conditional(name) for name in variables]
    return BayesianNetwork.from_parts(
        variables.values(), conditionals, parents=parents, name=net.name, metadata=net.metadata, check=False
    )


def _metadata(root: Element, nodes: Sequence[_Node], genie: Element | None) -> dict[str, Any]:
    """Properties, attributes and the look of the screen."""
    found: dict[str, Any] = {}
    about: dict[str, dict[str, Any]] = {}
    if genie is not None:
        about, found = describe(genie, {node.key: node.name for node in nodes})
    for node in nodes:
        notes = about.setdefault(node.name, {})
        if notes.get("label") == node.name:
            del notes["label"]
        kept = [_property(item) for item in node.element.all("property")]
        kept = [text for text in kept if text is not None]
        if kept:
            notes["properties"] = kept
        attributes = {key: text for key, text in node.element.attributes.items() if key != "id"}
        if attributes:
            notes["attributes"] = attributes
    about = {name: notes for name, notes in about.items() if notes}
    if about:
        found["variables"] = about
    properties = [text for item in root.all("property") if (text := _property(item)) is not None]
    if properties:
        found["properties"] = properties
    smile = {key: text for key, text in root.attributes.items() if key not in ("id", "version")}
    if smile:
        found["smile"] = smile
    return found


def _property(item: Element) -> str | None:
    """`key = value`; a property that came from another format as it was there; nothing for those of our own."""
    key = item.attributes.get("id", "")
    if key in ("gramgraph_name", "gramgraph_states"):
        return None
    return item.word if key.startswith("gramgraph_property") else f"{key} = {item.word}"
