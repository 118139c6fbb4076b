"""Cascades in OpenCV's XML: read from files that may come from anywhere, written so that OpenCV runs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from gramgraph.exceptions import ModelError, ParseError
from gramgraph.vision.stages import Stages

#: OpenCV takes this off every stage's threshold when it reads one.
_SLACK = 1e-5
_MOST_ELEMENTS, _DEEPEST = 1_000_000, 50


@dataclass(slots=True)
class _Element:
    tag: str
    line: int
    children: list[_Element] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    def find(self, tag: str) -> _Element | None:
        return next((child for child in self.children if child.tag == tag), None)

    @property
    def text(self) -> str:
        return "".join(self.parts).strip()


class _Reader:
    """Elements, their text and lines; declarations of entities are refused, depth and number are bounded."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.stack = [_Element("", 0)]
        self.count = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity

    def fail(self, message: str, line: int | None = None) -> ParseError:
        return ParseError(message, source=self.source, line=self.parser.CurrentLineNumber if line is None else line)

    def _entity(self, *_: Any) -> None:
        raise self.fail("entity declarations are not read")

    def _start(self, tag: str, _: Any) -> None:
        self.count += 1
        if self.count > _MOST_ELEMENTS or len(self.stack) > _DEEPEST:
            raise self.fail("the file is larger or nested deeper than any cascade")
        element = _Element(tag, self.parser.CurrentLineNumber)
        self.stack[-1].children.append(element)
        self.stack.append(element)

    def _end(self, _: str) -> None:
        self.stack.pop()

    def _text(self, text: str) -> None:
        self.stack[-1].parts.append(text)

    def read(self, data: bytes) -> _Element:
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            raise ParseError(f"not XML: {error}", source=self.source, line=error.lineno) from None
        except (ValueError, LookupError) as error:  # an encoding that does not exist
            if isinstance(error, ParseError):
                raise
            raise ParseError(f"not XML: {error}", source=self.source) from None
        return self.stack[0]


def loads(data: bytes, *, source: str = "<bytes>") -> Stages:
    """The stages of a cascade with Haar-like features, of OpenCV's newer or older layout."""
    reader = _Reader(source)
    root = reader.read(data)
    storage = root.find("opencv_storage")
    cascade = next((child for child in storage.children if child.children), None) if storage is not None else None
    if cascade is None or cascade.find("stages") is None:
        raise ParseError("no cascade in this file: <opencv_storage> with <stages> is expected", source=source)
    try:
        made = _newer(cascade, reader) if cascade.find("featureType") is not None else _older(cascade, reader)
        return Stages(**made)
    except ParseError:
        raise
    except (ModelError, OverflowError) as error:
        raise ParseError(str(error), source=source) from None


def _numbers(element: _Element | None, reader: _Reader, what: str, n: int | None = None) -> list[float]:
    if element is None:
        raise reader.fail(f"{what} is missing")
    try:
        found = [float(word) for word in element.text.split()]
    except ValueError:
        found = []
    if not found or (n is not None and len(found) != n) or not np.isfinite(found).all():
        wanted = "numbers" if n is None else f"{n} number{'s' if n > 1 else ''}"
        raise reader.fail(f"{what} must be {wanted}, not {element.text[:40]!r}", element.line)
    return found


def _whole(value: float, reader: _Reader, what: str) -> int:
    if value != int(value) or abs(value) > 1e9:
        raise reader.fail(f"{what} must be a whole number, not {value!r}")
    return int(value)


class _Builder:
    """Collects features, nodes and leaves while stages are read."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.rects: list[list[list[int]]] = []
        self.weights: list[list[float]] = []
        self.tilted: list[bool] = []
        self.starts: list[int] = [0]
        self.thresholds: list[float] = []
        self.roots: list[int] = []
        self.nodes: list[tuple[int, float, int, int]] = []
        self.leaves: list[float] = []

    def feature(self, element: _Element) -> int:
        held = element.find("rects")
        rows = [_numbers(child, self.reader, "a rectangle", 5) for child in (held.children if held else [])]
        if not 1 <= len(rows) <= 3:
            raise self.reader.fail(f"a feature has {len(rows)} rectangles: two or three are expected", element.line)
        rows += [[0.0] * 5] * (3 - len(rows))
        self.rects.append([[_whole(v, self.reader, "a corner") for v in row[:4]] for row in rows])
        self.weights.append([row[4] for row in rows])
        tilted = element.find("tilted")
        self.tilted.append(tilted is not None and _numbers(tilted, self.reader, "tilted", 1)[0] != 0)
        return len(self.rects) - 1

    def tree(self, nodes: list[tuple[int, float, int, int]], leaves: list[float]) -> None:
        """Nodes (feature, threshold, left, right) whose positive children are nodes, others −child a leaf."""
        first, base = len(self.nodes), len(self.leaves)

        def place(child: int) -> int:
            if child > 0:
                if child >= len(nodes):
                    raise self.reader.fail("a branch leads to a node that does not exist")
                return first + child
            if -child >= len(leaves):
                raise self.reader.fail("a branch leads to a leaf that does not exist")
            return -1 - (base - child)

        self.roots.append(first)
        self.nodes += [(f, cut, place(a), place(b)) for f, cut, a, b in nodes]
        self.leaves += leaves

    def stage(self, threshold: float) -> None:
        self.starts.append(len(self.roots))
        self.thresholds.append(float(np.float32(threshold) - np.float32(_SLACK)))

    def made(self, window: tuple[int, int]) -> dict[str, Any]:
        columns = list(zip(*self.nodes, strict=True)) if self.nodes else [(), (), (), ()]
        return {
            "window": window, "rects": np.array(self.rects, dtype=np.int64).reshape(-1, 3, 4),
            "weights": np.array(self.weights).reshape(-1, 3), "tilted": np.array(self.tilted, dtype=bool),
            "stage_start": np.array(self.starts), "stage_threshold": np.array(self.thresholds),
            "root": np.array(self.roots), "feature": np.array(columns[0]), "threshold": np.array(columns[1]),
            "left": np.array(columns[2]), "right": np.array(columns[3]),
            "leaf": np.array(self.leaves, dtype=np.float32),
        }  # fmt: skip


def _newer(cascade: _Element, reader: _Reader) -> dict[str, Any]:
    kind = cascade.find("featureType")
    if kind is None or kind.text.upper() != "HAAR":
        raise reader.fail(f"features of the type {kind.text if kind else ''!r} are not known: only HAAR is")
    width, height = (
        _whole(_numbers(cascade.find(side), reader, side, 1)[0], reader, side) for side in ("width", "height")
    )
    build = _Builder(reader)
    features = cascade.find("features")
    for element in features.children if features is not None else []:
        build.feature(element)
    stages = cascade.find("stages")
    assert stages is not None
    for stage in stages.children:
        held = stage.find("weakClassifiers")
        for weak in held.children if held is not None else []:
            flat = _numbers(weak.find("internalNodes"), reader, "internalNodes")
            leaves = _numbers(weak.find("leafValues"), reader, "leafValues")
            if len(flat) % 4:
                raise reader.fail("internalNodes must hold four numbers for each node", weak.line)
            nodes = []
            for i in range(0, len(flat), 4):
                left, right, feature = (_whole(v, reader, "a place in internalNodes") for v in flat[i : i + 3])
                nodes.append((feature, flat[i + 3], left, right))
            build.tree(nodes, leaves)
        build.stage(_numbers(stage.find("stageThreshold"), reader, "stageThreshold", 1)[0])
    return build.made((width, height))


def _older(cascade: _Element, reader: _Reader) -> dict[str, Any]:
    """The layout of OpenCV 1 and 2: features stand in the nodes of their trees."""
    width, height = (_whole(v, reader, "size") for v in _numbers(cascade.find("size"), reader, "size", 2))
    build = _Builder(reader)
    stages = cascade.find("stages")
    assert stages is not None
    for stage in stages.children:
        trees = stage.find("trees")
        for tree in trees.children if trees is not None else []:
            nodes: list[tuple[int, float, int, int]] = []
            leaves: list[float] = []
            for node in tree.children:
                held = node.find("feature")
                if held is None:
                    raise reader.fail("a node has no feature", node.line)
                sides = []
                for side in ("left", "right"):
                    value, below = node.find(f"{side}_val"), node.find(f"{side}_node")
                    if below is not None:
                        sides.append(_whole(_numbers(below, reader, f"{side}_node", 1)[0], reader, f"{side}_node"))
                    else:
                        sides.append(-len(leaves))
                        leaves.append(_numbers(value, reader, f"{side}_val", 1)[0])
                cut = _numbers(node.find("threshold"), reader, "threshold", 1)[0]
                nodes.append((build.feature(held), cut, sides[0], sides[1]))
            build.tree(nodes, leaves)
        build.stage(_numbers(stage.find("stage_threshold"), reader, "stage_threshold", 1)[0])
    return build.made((width, height))


def load(path: Any) -> Stages:
    """The cascade of a file."""
    return loads(Path(path).read_bytes(), source=str(path))


def dumps(stages: Stages) -> str:
    """The cascade as OpenCV's XML of today."""
    w, h = stages.window
    most = max(np.diff(stages.stage_start), default=0)
    lines = [
        '<?xml version="1.0"?>', "<opencv_storage>", '<cascade type_id="opencv-cascade-classifier">',
        "  <stageType>BOOST</stageType>", "  <featureType>HAAR</featureType>", f"  <height>{h}</height>",
        f"  <width>{w}</width>", "  <stageParams>", f"    <maxWeakCount>{most}</maxWeakCount></stageParams>",
        "  <featureParams>", "    <maxCatCount>0</maxCatCount></featureParams>",
        f"  <stageNum>{stages.n_stages}</stageNum>", "  <stages>",
    ]  # fmt: skip
    for s in range(stages.n_stages):
        first, stop = stages.stage_start[s : s + 2].tolist()
        lines += ["    <_>", f"      <maxWeakCount>{stop - first}</maxWeakCount>"]
        lines += [f"      <stageThreshold>{stages.stage_threshold[s] + _SLACK:.9g}</stageThreshold>"]
        lines.append("      <weakClassifiers>")
        for k in range(first, stop):
            nodes, leaves = _tree(stages, int(stages.root[k]))
            lines += ["        <_>", f"          <internalNodes>{nodes}</internalNodes>"]
            lines.append(f"          <leafValues>{leaves}</leafValues></_>")
        lines.append("      </weakClassifiers></_>")
    lines += ["  </stages>", "  <features>"]
    for rects, weights, tilted in zip(stages.rects.tolist(), stages.weights, stages.tilted, strict=True):
        lines += ["    <_>", "      <rects>"]
        for rect, weight in zip(rects, weights, strict=True):
            if weight != 0:
                lines.append(f"        <_>{' '.join(map(str, rect))} {weight:.9g}</_>")
        lines.append(f"      </rects>\n      <tilted>{int(tilted)}</tilted></_>")
    return "\n".join([*lines, "  </features>", "</cascade>", "</opencv_storage>", ""])


def _tree(stages: Stages, root: int) -> tuple[str, str]:
    """internalNodes and leafValues of one tree, numbered within it."""
    order, todo = [root], [root]
    leaves: list[int] = []
    while todo:
        node = todo.pop(0)
        for child in (int(stages.left[node]), int(stages.right[node])):
            (order if child >= 0 else leaves).append(child)
            if child >= 0:
                todo.append(child)
    at = {node: i for i, node in enumerate(order)} | {leaf: -i for i, leaf in enumerate(leaves)}
    words = [
        f"{at[int(stages.left[n])]} {at[int(stages.right[n])]} {int(stages.feature[n])} {stages.threshold[n]:.9g}"
        for n in order
    ]
    return " ".join(words), " ".join(f"{np.float32(stages.leaf[-1 - leaf]):.9g}" for leaf in leaves)
