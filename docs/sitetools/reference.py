"""The reference: one page for every public name, made from the packages themselves.

`entries()` walks the public surface; `write(folder)` writes a page for each class, function and constant, and one for
each package. Nothing is listed by hand, so nothing can be forgotten. It needs no Sphinx: a test calls it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gramgraph

__all__ = ["Entry", "entries", "packages", "page_of", "write"]


@dataclass(frozen=True)
class Entry:
    """A public name: the place where users find it, and the value."""

    place: str  # "gramgraph.kernels"
    name: str
    value: Any

    @property
    def path(self) -> str:
        """`gramgraph.kernels.RBF`, as it is called and as its page is named."""
        return f"{self.place}.{self.name}"

    @property
    def kind(self) -> str:
        """ "class", "exception", "function" or "data"."""
        if inspect.isclass(self.value):
            return "exception" if issubclass(self.value, BaseException) else "class"
        return "function" if callable(self.value) and hasattr(self.value, "__name__") else "data"

    @property
    def summary(self) -> str:
        """First sentence of the docstring, on one line."""
        if self.kind == "data":
            return f"A constant: {type(self.value).__name__}."
        paragraph = (inspect.getdoc(self.value) or "").split("\n\n")[0]
        return " ".join(paragraph.split())


def packages() -> tuple[str, ...]:
    """Packages whose lists are public, those for extensions included."""
    return tuple(sorted((*gramgraph._PACKAGES, *gramgraph._UNLISTED)))


def _entry(place: str, name: str) -> Entry:
    return Entry(place, name, getattr(importlib.import_module(place), name))


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Every public name once: in the package that lists it; flat names that no package lists stand at the top."""
    found = [
        _entry(f"gramgraph.{package}", name)
        for package in packages()
        for name in sorted(importlib.import_module(f"gramgraph.{package}").__all__)
    ]
    once: dict[tuple[str, int], Entry] = {}
    for entry in found:
        once.setdefault((entry.name, id(entry.value)), entry)
    for name in gramgraph._FLAT:
        flat = _entry("gramgraph", name)
        once.setdefault((name, id(flat.value)), flat)
    return tuple(once.values())


@functools.cache
def _places() -> dict[tuple[str, int], Entry]:
    return {(entry.name, id(entry.value)): entry for entry in entries()}


def page_of(path: str) -> str:
    """Name of the page (without suffix) of a public name such as "gg.SVC" or "gramgraph.kernels.RBF".

    >>> page_of("gg.SVC")
    'gramgraph.estimators.SVC'
    """
    place, _, name = path.replace("gg.", "gramgraph.", 1).rpartition(".")
    value = getattr(importlib.import_module(place), name)
    return _places()[name, id(value)].path


# ------------------------------------------------------------------------------------------------------ pages


def members(cls: type) -> Iterator[tuple[str, str, type]]:
    """(name, directive, class that defines it) of the public members that are ours.

    scikit-learn puts `set_fit_request` and its like into every class; they are described there.
    """
    for name in sorted(n for n in dir(cls) if not n.startswith("_") and not re.fullmatch(r"set_\w+_request", n)):
        owner = next((base for base in cls.__mro__ if name in vars(base)), None)
        if owner is None or not owner.__module__.startswith("gramgraph"):
            continue
        value = vars(owner)[name]
        if isinstance(value, (property, functools.cached_property)):
            yield name, "autoproperty", owner
        elif callable(getattr(cls, name, None)) and not inspect.isclass(value):
            yield name, "automethod", owner


def _title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def class_page(entry: Entry) -> str:
    """Members of a public base are linked, all others are described here; another name of a class leads to it."""
    public = {id(other.value): other for other in reversed(entries()) if inspect.isclass(other.value)}
    public |= {id(other.value): other for other in entries() if getattr(other.value, "__name__", "") == other.name}
    itself = public[id(entry.value)]
    if itself is not entry:
        head = f".. currentmodule:: {entry.place}\n\n{_title(entry.path)}\n"
        return head + f".. py:class:: {entry.name}\n\n   Another name of :class:`~{itself.path}`.\n"
    own, inherited = [], {}
    for name, directive, owner in members(entry.value):
        base = public.get(id(owner))
        if owner is entry.value or base is None or name == "fit":
            own.append(f"   .. {directive}:: {name}\n")
        else:
            inherited.setdefault(base.path, []).append(name)
    directive = "autoexception" if entry.kind == "exception" else "autoclass"
    text = f".. currentmodule:: {entry.place}\n\n{_title(entry.path)}\n"
    text += f".. {directive}:: {entry.name}\n   :show-inheritance:\n\n"
    text += "\n".join(own)
    for base, names in inherited.items():
        links = ", ".join(f":meth:`~{base}.{name}`" for name in names)
        text += f"\n   From :class:`{base}`: {links}\n"
    return text


def page(entry: Entry) -> str:
    """The page of one name."""
    if entry.kind in ("class", "exception"):
        return class_page(entry)
    head = f".. currentmodule:: {entry.place}\n\n{_title(entry.path)}\n"
    if entry.kind == "function":
        return head + f".. autofunction:: {entry.name}\n"
    shown = repr(entry.value)
    shown = shown if len(shown) < 400 else shown[:400] + " …"
    return head + f".. py:data:: {entry.name}\n\n   ::\n\n      {shown}\n"


def table(rows: list[tuple[str, str]]) -> str:
    """Names with their first sentences."""
    text = ".. list-table::\n   :widths: 30 70\n\n"
    for name, summary in rows:
        text += f"   * - {name}\n     - {plain(summary)}\n"
    return text


def plain(text: str) -> str:
    """Text as reStructuredText that says the same: nothing in it is a mark, but for `code`."""
    pieces = text.split("`")
    return "".join(
        f"``{piece}``" if at % 2 and at < len(pieces) - 1 and piece.strip() else _escaped(piece)
        for at, piece in enumerate(pieces)
    )


def _escaped(piece: str) -> str:
    for mark in ("\\", "*", "|", "_"):
        piece = piece.replace(mark, "\\" + mark)
    return piece


def _link(entry: Entry, shown: str) -> str:
    return f":doc:`{shown} <names/{entry.path}>`"


def flat_page() -> str:
    """What `import gramgraph as gg` offers directly."""
    rows = []
    for name in sorted(gramgraph._FLAT, key=str.lower):
        entry = _places()[name, id(getattr(gramgraph, name))]
        rows.append((_link(entry, f"gg.{name}"), entry.summary))
    own = [entry for entry in entries() if entry.place == "gramgraph"]
    head = _title("gramgraph") + "\nWhat a first hour needs: ``import gramgraph as gg``.\n\n"
    return head + table(rows) + _tree(own)


def package_page(package: str) -> str:
    """A package: what its docstring says, and its names."""
    module = importlib.import_module(f"gramgraph.{package}")
    rows = []
    for name in sorted(module.__all__, key=str.lower):
        entry = _places()[name, id(getattr(module, name))]
        rows.append((_link(entry, name), entry.summary))
    about = (inspect.getdoc(module) or "").split("\n\n")[0]
    own = [entry for entry in entries() if entry.place == f"gramgraph.{package}"]
    head = _title(f"gramgraph.{package}") + "\n" + plain(" ".join(about.split())) + "\n\n"
    return head + table(rows) + _tree(own)


def _tree(found: list[Entry]) -> str:
    """The pages of a package below its own, for the navigation."""
    if not found:
        return ""
    pages = sorted(found, key=lambda entry: entry.name.lower())
    return "\n.. toctree::\n   :hidden:\n\n" + "".join(f"   {e.name} <names/{e.path}>\n" for e in pages)


def index_page() -> str:
    """The list of packages; the page of each holds those of its names."""
    text = _title("Reference") + "\n"
    text += "Every public name, made from the code. Names without a package are called as ``gg.SVC``.\n\n"
    text += ".. toctree::\n   :maxdepth: 1\n\n   gramgraph\n"
    text += "".join(f"   gramgraph.{package}\n" for package in packages())
    return text


@functools.cache
def pages() -> dict[str, str]:
    """File → text of the whole reference."""
    made = {"index.rst": index_page(), "gramgraph.rst": flat_page()}
    made |= {f"gramgraph.{package}.rst": package_page(package) for package in packages()}
    made |= {f"names/{entry.path}.rst": page(entry) for entry in entries()}
    return made


def write(folder: Path) -> None:
    """Write the pages; one that says what it said stays untouched, so that it is not built anew."""
    made = pages()
    (folder / "names").mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    for file in folder.rglob("*.rst"):
        if str(file.relative_to(folder)) not in made:
            file.unlink()
