"""A model as boxes and edges, measured and placed: what the SVG and the matplotlib pictures have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from gramgraph._show import clean, shorten
from gramgraph.answers import Answer
from gramgraph.evidence import Likelihood, Not, OneOf, Soft
from gramgraph.exceptions import GramGraphError
from gramgraph.models import BayesianNetwork, FactorGraph, GraphicalModel, PlateModel
from gramgraph.plot.layout import Layout, layered_layout, orient
from gramgraph.plot.plates import Frame, place_plates

#: Measures of a box in pixels.
HEADER, ROW, PAD = 22.0, 15.0, 8.0
BAR, NUMBER = 58.0, 42.0
FONT, SMALL = 12.0, 10.5
MAX_NAME, MAX_LABEL, MAX_ROWS = 28, 14, 7

_NARROW, _WIDE = frozenset("iljtfrI.,:;|!'()[]{} -"), frozenset("mwMW@%")


@dataclass(frozen=True)
class Box:
    """A node as it is drawn: its title, what was observed, its states with probabilities, and its size."""

    name: str
    rows: tuple[tuple[str, float], ...] = ()
    observed: str | None = None
    lines: tuple[str, ...] = ()  # text instead of bars (cliques)
    dot: bool = False  # a hyper-parameter: a dot with its name
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True)
class Drawing:
    """Boxes, edges between them (by position) with labels, and their positions."""

    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]
    labels: tuple[str, ...]  # one per edge, mostly empty
    directed: bool
    layout: Layout
    frames: tuple[Frame, ...] = ()  # plates, outer ones first


def text_length(text: str, size: float, *, bold: bool = False) -> float:
    """About how many pixels a text takes in a sans-serif font of this size."""
    capital, other = (0.75, 0.62) if bold else (0.68, 0.57)
    units = 0.0
    for c in text:
        if c in _NARROW:
            units += 0.37 if bold else 0.34
        elif c in _WIDE:
            units += 0.95 if bold else 0.9
        elif ord(c) > 0x2E7F:
            units += 1.0
        else:
            units += capital if c.isupper() or c == "_" else other
    return units * size


def percent_text(p: float) -> str:
    """A probability as printed beside its bar.

    >>> percent_text(1.0), percent_text(0.1234), percent_text(0.0), percent_text(2e-5)
    ('100%', '12.3%', '0%', '<0.1%')
    """
    if math.isnan(p):
        return "–"
    if p in (0.0, 1.0):
        return f"{100 * p:.0f}%"
    return f"{100 * p:.1f}%" if p >= 0.0005 else "<0.1%"


def draw_model(
    model: GraphicalModel, answer: Answer | None = None, evidence: Mapping[str, Any] | None = None
) -> Drawing:
    """Boxes for the variables: with bars where `answer` has a belief, marked where `evidence` has an observation."""
    if isinstance(model, PlateModel):
        return _draw_plates(model, evidence)
    if answer is not None and answer.batched:
        raise GramGraphError("a picture shows one case, but the answer has many: ask with one row as a dict")
    observed = dict(evidence or {})
    for name in observed:
        model.index(name)  # an unknown name is an error with the nearest one
    boxes = tuple(_variable_box(name, answer, observed) for name in model.variables)
    if isinstance(model, FactorGraph):
        boxes += tuple(_lines_box(name, (shorten(name, MAX_NAME),)) for name in model.factor_names)
    directed = isinstance(model, BayesianNetwork)
    edges = _model_edges(model)
    return _place(boxes, edges, [""] * len(edges), directed=directed)


def _draw_plates(model: PlateModel, evidence: Any) -> Drawing:
    """The template: a rectangle for each plate, dots for hyper-parameters; `evidence` holds the observed variables."""
    seen = [evidence] if isinstance(evidence, str) else list(evidence or ())
    for name in seen:
        model.index(name)
    boxes = []
    for name in model.variables:
        width = round(max(text_length(shorten(name, MAX_NAME), FONT, bold=True) + 2 * PAD, 34.0), 1)
        known = "observed" if name in seen else None
        if known is not None:
            width = max(width, 66.0)
        height = HEADER + (ROW + 6 if known is not None else 4)
        boxes.append(Box(name, (), known, dot=name in model.hyperparameters, width=width, height=height))
    layout, frames = place_plates(model, [box.width for box in boxes], [box.height for box in boxes])
    edges = [(p, v) for v, row in enumerate(model.parent_positions) for p in row]
    return Drawing(tuple(boxes), tuple(edges), ("",) * len(edges), True, layout, frames)


def network_dot(model: GraphicalModel) -> str:
    """The graph of a model in the language of Graphviz; factors are boxes, variables set by `do` have two rims.

    Parameters
    ----------
    model : the network or other graphical model.

    Examples
    --------
    >>> import gramgraph as gg
    >>> print(network_dot(gg.BayesianNetwork("a -> b")).splitlines()[0])
    digraph {
    """
    directed = isinstance(model, BayesianNetwork)
    names = list(map(_quoted, model.variables))
    done = getattr(model, "interventions", {})
    lines = [
        f"{name} [peripheries=2];" if own in done else f"{name};"
        for name, own in zip(names, model.variables, strict=True)
    ]
    if isinstance(model, FactorGraph):
        factors = [_quoted(name) for name in model.factor_names]
        lines += [f"{name} [shape=box];" for name in factors]
        names += factors
    if isinstance(model, PlateModel):
        lines = _plate_lines(model)
    arrow = "->" if directed else "--"
    lines += [f"{names[a]} {arrow} {names[b]};" for a, b in _model_edges(model)]
    return "\n".join(["digraph {" if directed else "graph {", *(f"  {line}" for line in lines), "}"])


def _plate_lines(model: PlateModel) -> list[str]:
    """Nodes inside clusters for plates; of crossed plates the first that was written holds the node."""
    out = [f"{_quoted(name)} [shape=point, xlabel={_quoted(name)}];" for name in model.hyperparameters]
    homes = {name: (model.plates_of(name) or ("",))[-1] for name in model.template.nodes}

    def cluster(plate: str, indent: str) -> list[str]:
        lines = [f"{indent}subgraph {_quoted('cluster_' + plate)} {{", f"{indent}  label={_quoted(plate)};"]
        lines += [f"{indent}  {_quoted(name)};" for name, home in homes.items() if home == plate]
        for inner, own in model.plates.items():
            lines += cluster(inner, indent + "  ") if own.outer == plate else []
        return [*lines, f"{indent}}}"]

    out += [f"{_quoted(name)};" for name, home in homes.items() if not home]
    for plate, own in model.plates.items():
        out += [] if own.outer else [line.removeprefix("  ") for line in cluster(plate, "  ")]
    return out


def _quoted(name: str) -> str:
    text = clean(name).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def draw_junction_tree(cliques: Sequence[Sequence[str]], edges: Sequence[tuple[int, int]]) -> Drawing:
    """Boxes for cliques; each edge carries the separator."""
    boxes = [_lines_box(", ".join(c), _wrap([shorten(name, MAX_NAME) for name in c])) for c in cliques]
    separators = []
    for a, b in edges:
        inside = frozenset(cliques[b])
        separators.append(shorten(", ".join(name for name in cliques[a] if name in inside), 2 * MAX_NAME))
    return _place(tuple(boxes), list(edges), separators, directed=False)


def draw_comparison(found: Any) -> Drawing:
    """The edges of two graphs; those in which they differ carry the word for it."""
    boxes = tuple(_lines_box(name, (shorten(name, MAX_NAME),)) for name in found.variables)
    place = {name: i for i, name in enumerate(found.variables)}
    words = [(edge, word) for word in ("added", "missing", "reversed") for edge in getattr(found, word)]
    named = [*((edge, "") for edge in found.kept), *words]
    edges = [(place[a], place[b]) for (a, b), _ in named]
    return _place(boxes, edges, [word for _, word in named], directed=True)


def tree_parts(tree: Any) -> tuple[list[tuple[str, ...]], list[tuple[int, int]]]:
    """Names in each clique, and the edges between cliques, of a junction tree or of a model's junction tree."""
    names: Sequence[str] | None = None
    model: Any = tree
    if isinstance(tree, GraphicalModel):
        names, tree = tree.variables, model.to_junction_tree()
    cliques = [
        tuple(str(names[v]) if names is not None and isinstance(v, int) else str(v) for v in clique)
        for clique in tree.cliques
    ]
    edges = tree.edges() if callable(tree.edges) else tree.edges
    return cliques, [(int(edge[0]), int(edge[1])) for edge in edges]


def _place(boxes: tuple[Box, ...], edges: list[tuple[int, int]], labels: Sequence[str], *, directed: bool) -> Drawing:
    arrows = edges if directed else orient(len(boxes), edges)
    layout = layered_layout(
        len(boxes),
        arrows,
        widths=[box.width for box in boxes],
        heights=[box.height for box in boxes],
        gap_y=42.0 if not any(labels) else 56.0,
    )
    return Drawing(boxes, tuple(arrows), tuple(labels), directed, layout)


def _model_edges(model: GraphicalModel) -> list[tuple[int, int]]:
    if isinstance(model, BayesianNetwork):
        return [(model.index(p), i) for i, name in enumerate(model.variables) for p in model.parents(name)]
    if isinstance(model, FactorGraph):
        scopes = [factor.scope for factor in model.factors(structured=False)]
        return [(model.index(var.name), len(model) + k) for k, scope in enumerate(scopes) for var in scope]
    if getattr(model, "kind", "") == "cells":
        return [(model.index(a), model.index(b)) for a, b in model.edges]  # type: ignore[attr-defined]
    pairs: dict[tuple[int, int], None] = {}  # a dict keeps first-seen order
    for factor in model.factors(structured=False):
        scope = sorted(model.index(var.name) for var in factor.scope)
        for pair in combinations(scope, 2):
            pairs[pair] = None
    return list(pairs)


def _variable_box(name: str, answer: Answer | None, observed: Mapping[str, Any]) -> Box:
    seen = _observation_text(observed[name]) if name in observed else None
    title = shorten(name, MAX_NAME)
    if answer is not None and name in answer:
        belief: Any = answer[name]
        if not hasattr(belief, "probabilities"):  # a real-valued variable
            return _real_box(name, belief, seen)
        rows = _rows(belief.states, belief.probabilities.tolist())
        label = max(text_length(shorten(text, MAX_LABEL), SMALL) for text, _ in rows)
        width = max(text_length(title, FONT, bold=True) + 2 * PAD, label + BAR + NUMBER + 3 * PAD)
        return Box(name, rows, seen, width=round(width, 1), height=HEADER + ROW * len(rows) + 6)
    width = text_length(title, FONT, bold=True) + 2 * PAD
    if seen is None:
        return Box(name, width=round(max(width, 34.0), 1), height=HEADER + 4)
    width = max(width, text_length(shorten(seen, MAX_NAME), SMALL) + 2 * PAD)
    return Box(name, (), seen, width=round(max(width, 44.0), 1), height=HEADER + ROW + 6)


def _real_box(name: str, belief: Any, seen: str | None) -> Box:
    """A box with mean and standard deviation."""
    if seen is None:
        parts = zip(np.atleast_1d(belief.mean()), np.atleast_1d(belief.sd()), strict=True)
        seen = ", ".join(f"{m:.4g} ± {s:.3g}" for m, s in parts)
    title, text = shorten(name, MAX_NAME), shorten(seen, MAX_NAME)
    width = max(text_length(title, FONT, bold=True), text_length(text, SMALL)) + 2 * PAD
    return Box(name, (), seen, width=round(max(width, 44.0), 1), height=HEADER + ROW + 6)


def _lines_box(name: str, lines: tuple[str, ...]) -> Box:
    width = max(text_length(line, FONT) for line in lines) + 2 * PAD
    return Box(name, lines=lines, width=round(max(width, 30.0), 1), height=ROW * len(lines) + PAD)


def _rows(states: Sequence[str], probabilities: Sequence[float]) -> tuple[tuple[str, float], ...]:
    """The states in their order; of many states the likeliest, and the rest in one row."""
    if len(states) <= MAX_ROWS:
        return tuple(zip(states, probabilities, strict=True))
    best = sorted(sorted(range(len(states)), key=lambda i: (-probabilities[i], i))[: MAX_ROWS - 1])
    rest = max(1.0 - sum(probabilities[i] for i in best), 0.0)
    rows = [(states[i], probabilities[i]) for i in best]
    return (*rows, (f"… {len(states) - len(best)} more", rest))


def _observation_text(value: Any) -> str:
    """What was observed, in words."""
    if isinstance(value, (Mapping, Likelihood)):
        return "likelihood"
    if isinstance(value, Soft):
        return "soft"
    if isinstance(value, (Not, OneOf)):
        text = " or ".join(map(str, value.states))
        return f"not {text}" if isinstance(value, Not) else text
    if isinstance(value, (set, frozenset)):
        return " or ".join(sorted(map(str, value)))
    if isinstance(value, (list, tuple)):
        return " or ".join(map(str, value))
    return str(value)


def _wrap(names: Sequence[str], limit: int = 34) -> tuple[str, ...]:
    lines = [""]
    for i, name in enumerate(names):
        text = name + (", " if i + 1 < len(names) else "")
        if lines[-1] and len(lines[-1]) + len(text) > limit:
            lines.append("")
        lines[-1] += text
    return tuple(line.rstrip() for line in lines)
