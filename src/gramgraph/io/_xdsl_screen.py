"""How GeNIe shows a network: the `<extensions><genie>` part of an XDSL file, to metadata and back.

`metadata["variables"][name]` gets `label`, `position` (the center), `box` (x1, y1, x2, y2), `comment`, `submodel` (the
identifier of the submodel that holds the node) and `style`; `metadata["submodels"]` and `metadata["textboxes"]` are
lists of the same kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gramgraph.io._xml import Element, attribute, content

_STYLES = ("interior", "outline", "font", "barchart")
_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)


def describe(genie: Element, names: Mapping[str, str]) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """(notes per variable, notes on the whole screen); `names` maps identifiers of the file to variables."""
    about: dict[str, dict[str, Any]] = {}
    submodels: list[dict[str, Any]] = []
    textboxes: list[dict[str, Any]] = []
    seen: set[str] = set()
    waiting: list[tuple[Element, str]] = [(genie, "")]
    while waiting:
        holder, inside = waiting.pop()
        deeper: list[tuple[Element, str]] = []
        for element in holder.children:
            key = element.attributes.get("id", "")
            if element.tag == "node" and key in names and names[key] not in about:
                about[names[key]] = _icon(element, inside, plain=key)
            elif element.tag == "submodel" and key:
                if key not in seen:
                    notes = {"id": key, **_icon(element, inside, plain=key)}
                    window = _box(element.first("window"))
                    submodels.append({**notes, "window": window} if window else notes)
                    seen.add(key)
                deeper.append((element, key))
            elif element.tag == "textbox":
                caption = element.first("caption")
                textboxes.append({"caption": "" if caption is None else caption.word, **_icon(element, inside)})
        waiting.extend(reversed(deeper))
    whole: dict[str, Any] = {}
    if submodels:
        whole["submodels"] = submodels
    if textboxes:
        whole["textboxes"] = textboxes
    return about, whole


def _icon(element: Element, inside: str, *, plain: str = "") -> dict[str, Any]:
    """What nodes, submodels and text boxes have in common."""
    notes: dict[str, Any] = {"submodel": inside} if inside else {}
    label, comment = element.first("name"), element.first("comment")
    if label is not None and label.word not in ("", plain):
        notes["label"] = label.word
    if comment is not None and comment.word:
        notes["comment"] = comment.word
    box = _box(element.first("position"))
    if box:
        notes["position"] = [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2]
        notes["box"] = box
    style = {tag: dict(part.attributes) for tag in _STYLES if (part := element.first(tag)) is not None}
    if style:
        notes["style"] = style
    return notes


def _box(element: Element | None) -> list[int] | None:
    """The four whole numbers of a rectangle, or nothing."""
    words = [] if element is None else element.text.split()
    return [int(word) for word in words] if len(words) == 4 and all(map(_WHOLE.fullmatch, words)) else None


def extensions(
    ids: Mapping[str, str],  # variable → identifier in the file
    metadata: Mapping[str, Any],
    *,
    name: str,
) -> list[str]:
    """The lines of `<extensions>`: every node with its title and its place, inside its submodel."""
    about = metadata.get("variables", {})
    submodels = [dict(notes) for notes in metadata.get("submodels", [])]
    known = {notes["id"] for notes in submodels}
    held: dict[str, list[str]] = {"": [], **{key: [] for key in known}}
    for variable, key in ids.items():
        notes = about.get(variable, {})
        lines = [f"<node{attribute('id', key)}>", *_shown(notes, title=notes.get("label", key)), "</node>"]
        held[_holder(notes, known)] += lines
    for notes in metadata.get("textboxes", []):
        lines = ["<textbox>", content("caption", notes.get("caption", "")), *_shown(notes), "</textbox>"]
        held[_holder(notes, known)] += lines
    for notes in reversed(submodels):  # a submodel is listed after the one that holds it, so that inner ones end first
        key = notes["id"]
        lines = [f"<submodel{attribute('id', key)}>", *_shown(notes, title=notes.get("label", key))]
        if "window" in notes:
            lines.append(content("window", " ".join(map(str, notes["window"]))))
        lines += [*held.pop(key, []), "</submodel>"]
        outer = _holder(notes, known)
        held[outer if outer in held else ""] += lines
    head = f'<genie version="1.0" app="gramgraph"{attribute("name", name, "the name")}>'
    return ["<extensions>", head, *held[""], "</genie>", "</extensions>"]


def _holder(notes: Mapping[str, Any], known: set[str]) -> str:
    inside = notes.get("submodel", "")
    return inside if inside in known else ""


def _shown(notes: Mapping[str, Any], *, title: str | None = None) -> list[str]:
    lines = [] if title is None else [content("name", title, "the label")]
    style = notes.get("style", {})
    for tag in _STYLES[:3]:
        if tag in style:
            lines.append(f"<{tag}{''.join(attribute(key, value) for key, value in style[tag].items())} />")
    box = notes.get("box") or _box_around(notes.get("position"))
    if box:
        lines.append(content("position", " ".join(map(str, box))))
    if "barchart" in style:
        lines.append(f"<barchart{''.join(attribute(key, value) for key, value in style['barchart'].items())} />")
    if "comment" in notes:
        lines.append(content("comment", notes["comment"], "the comment"))
    return lines


def _box_around(position: Any) -> list[int] | None:
    """A rectangle of the usual size around a center that another format gave."""
    if not position:
        return None
    x, y = (round(float(value)) for value in position)
    return [x - 36, y - 24, x + 36, y + 24]
