"""Writing XDSL files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, Deterministic, NoisyMax
from gramgraph.io._names import check_dense, identifiers
from gramgraph.io._text import as_network
from gramgraph.io._xdsl_screen import extensions
from gramgraph.io._xml import attribute, content
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray

#: A table with at most so many cells is written out where GeNIe's own form of noisy-max does not hold the conditional.
_SMALL = 1 << 20

_PROPERTY = re.compile(r"([A-Za-z]\w*) = (.*)", re.ASCII | re.DOTALL)


def dumps(model: Any) -> bytes:
    """The network as an XDSL file: numbers as short as they can be without loss, the look of the screen kept.

    Noisy-max and deterministic conditionals are written as such. Names that are not identifiers are written as ones
    like them, with the names themselves as properties.
    """
    net = as_network(model, "XDSL")
    ids = identifiers(net.variables)
    turned = frozenset(name for name in net.variables if _is_noisy(net.conditional(name)))
    about = net.metadata.get("variables", {})
    smile = net.metadata.get("smile", {})
    title = identifiers([net.name], "net_")[net.name]
    head = attribute("version", "1.0") + attribute("id", title)
    head += "".join(attribute(key, str(text)) for key, text in smile.items() if key not in ("version", "id"))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<smile{head}>", "<nodes>"]
    for name in net.variables:
        lines += _node(net, name, ids, turned, about.get(name, {}))
    lines += ["</nodes>", *_properties(net.metadata.get("properties", []))]
    lines += [*extensions(ids, net.metadata, name=net.name), "</smile>", ""]
    return "\n".join(_indented(lines)).encode("utf-8")


def _indented(lines: Iterable[str]) -> Iterator[str]:
    """One tab a level; a line holds a start tag, an end tag or a whole element."""
    depth = 0
    for line in lines:
        if line.startswith("</"):
            depth -= 1
        yield "\t" * depth + line if line else line
        if line.startswith("<") and line[1:2] not in "/?" and "</" not in line and not line.endswith("/>"):
            depth += 1


def _is_noisy(conditional: Conditional) -> bool:
    """Whether to write `<noisymax>`: each parent needs a state without effect, unless the table would be too large."""
    if not isinstance(conditional, NoisyMax) or not conditional.parents:
        return False
    neutral = all(((link[:, 0] == 1.0) & ~link[:, 1:].any(axis=1)).any() for link in conditional.links)
    return neutral or conditional.size > _SMALL


def _node(
    net: BayesianNetwork, name: str, ids: Mapping[str, str], turned: frozenset[str], notes: Mapping[str, Any]
) -> list[str]:
    conditional = net.conditional(name)
    labels = net.states(name)[::-1] if name in turned else net.states(name)
    states = identifiers(labels, "s_")
    kind = "cpt"
    if name in turned:
        kind, body = "noisymax", _noisy(conditional, turned)
    elif isinstance(conditional, Deterministic):
        kind = "deterministic"
        outcomes = _flipped(np.asarray(conditional.outcomes), conditional, turned).ravel().tolist()
        words = [states[label] for label in labels]
        body = [content("resultingstates", " ".join(words[i] for i in outcomes))]
    else:
        body = [content("probabilities", " ".join(map(repr, _numbers(conditional, turned))))]
    given = notes.get("attributes", {})
    head = attribute("id", ids[name]) + "".join(attribute(k, str(v)) for k, v in given.items() if k != "id")
    lines = [f"<{kind}{head}>", *(f"<state{attribute('id', states[label])} />" for label in labels)]
    if conditional.parents:
        lines.append(content("parents", " ".join(ids[parent] for parent in net.parents(name))))
    lines += body
    if ids[name] != name:
        lines.append(_property("gramgraph_name", name))
    if any(states[label] != label for label in labels):
        lines.append(_property("gramgraph_states", json.dumps(list(labels))))
    return [*lines, *_properties(notes.get("properties", [])), f"</{kind}>"]


def _flipped(values: Any, conditional: Conditional, turned: frozenset[str]) -> Any:
    """The array with the axes of reversed parents reversed."""
    return np.flip(values, tuple(i for i, parent in enumerate(conditional.parents) if parent.name in turned))


def _numbers(conditional: Conditional, turned: frozenset[str]) -> list[float]:
    check_dense(conditional, "XDSL")
    return _flipped(conditional.table(), conditional, turned).ravel().tolist()


def _noisy(conditional: Conditional, turned: frozenset[str]) -> list[str]:
    """`<strengths>` and `<parameters>`: each parent's states, the one without effect last, and the leak."""
    assert isinstance(conditional, NoisyMax)
    strengths: list[int] = []
    columns: list[FloatArray] = []
    for parent, link in zip(conditional.parents, conditional.links, strict=True):
        rows = link[::-1, ::-1] if parent.name in turned else link[:, ::-1]
        order = list(range(parent.size))
        neutral = [i for i in order if rows[i, -1] == 1.0 and not rows[i, :-1].any()]
        if neutral:
            order.remove(neutral[-1])
            order.append(neutral[-1])
        strengths += order
        columns.append(rows[order])
    numbers = np.concatenate([*columns, conditional.leak[None, ::-1]]).ravel().tolist()
    parameters = " ".join(map(repr, numbers))
    return [content("strengths", " ".join(map(str, strengths))), content("parameters", parameters)]


def _property(key: str, text: str) -> str:
    inner = content("property", text, "the property")
    return inner.replace("<property", f"<property{attribute('id', key)}", 1)


def _properties(properties: Iterable[str]) -> list[str]:
    """One element per property; a text that is no `key = value` is kept under a key of its own."""
    lines: list[str] = []
    for text in properties:
        match = _PROPERTY.fullmatch(text)
        if match and not text.startswith("gramgraph_"):
            lines.append(_property(match.group(1), match.group(2)))
        else:
            lines.append(_property(f"gramgraph_property{len(lines)}", text))
    return lines
