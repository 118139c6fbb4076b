"""Files of the page: modules in the source, one script for whoever shows it."""

from __future__ import annotations

import re
from importlib import resources

#: Modules of the page in the order in which they need each other.
MODULES = (
    "base.js",
    "case.js",
    "node.js",
    "panel.js",
    "dialogs.js",
    "learn.js",
    "graph.js",
    "views.js",
    "others.js",
    "keys.js",
    "frame.js",
    "asking.js",
    "showing.js",
    "hands.js",
    "app.js",
)

_IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def page_file(name: str) -> bytes:
    """A file of the page as it stands in the package."""
    return (resources.files("gramgraph.explorer") / "page" / name).read_bytes()


def bundle(*more: str) -> str:
    """All modules as one script: their imports are of each other only, and no two define the same name."""
    parts = [page_file(name).decode() for name in (*MODULES, *more)]
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", part)) for part in parts)


def served_files() -> dict[str, bytes]:
    """What the server sends, by name: one script instead of its modules, so that a page needs three requests."""
    files = {name: page_file(name) for name in ("index.html", "style.css")}
    return files | {"page.js": bundle("page.js").encode()}
