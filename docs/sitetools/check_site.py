"""Scan a built site: no page asks another machine for anything, and every internal link leads somewhere.

`python docs/sitetools/check_site.py docs/_build/html` prints what is wrong and ends with 1. Links that a reader may
click (`<a href="https://…">`) are allowed; what a browser would load by itself is not.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["check"]

#: Elements and attributes that a browser loads without being asked.
LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("img", "srcset"),
    ("source", "src"),
    ("source", "srcset"),
    ("iframe", "src"),
    ("link", "href"),
    ("video", "src"),
    ("audio", "src"),
    ("object", "data"),
    ("embed", "src"),
    ("image", "href"),
    ("image", "xlink:href"),
    ("use", "href"),
}
#: Links of <link> that are told, not loaded.
TOLD = {"canonical", "search", "index", "next", "prev", "author", "license", "copyright", "top", "up"}
OUTSIDE = re.compile(r"^(?:https?:)?//", re.IGNORECASE)
IN_CSS = re.compile(r"""@import\s+(?:url\()?["']?([^"')\s;]+)|url\(\s*["']?([^"')]+)""")


class Page(HTMLParser):
    """Anchors, links and loads of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        self._style = tag == "style"
        told = tag == "link" and set(given.get("rel", "").split()) & TOLD
        for name, value in given.items():
            if name == "style":
                self.loads += [a or b for a, b in IN_CSS.findall(value)]
            elif (tag, name) in LOADED and not told:
                self.loads.append(value.split()[0] if value.split() else "")
            elif tag == "a" and name == "href":
                self.links.append(value)

    def handle_data(self, data: str) -> None:
        if self._style:
            self.loads += [a or b for a, b in IN_CSS.findall(data)]


def _page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def check(folder: Path) -> list[str]:
    """Everything that is wrong, one line each."""
    folder = folder.resolve()
    pages = {path: _page(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    faults = []
    for path, page in pages.items():
        where = path.relative_to(folder)
        faults += [f"{where} loads {load}" for load in page.loads if OUTSIDE.match(load)]
        for target in (*page.links, *(load for load in page.loads if not OUTSIDE.match(load))):
            fault = _broken(folder, path, target, pages)
            if fault:
                faults.append(f"{where}: {fault}")
    for sheet in sorted(folder.rglob("*.css")):
        found = [a or b for a, b in IN_CSS.findall(sheet.read_text(encoding="utf-8", errors="replace"))]
        faults += [f"{sheet.relative_to(folder)} loads {load}" for load in found if OUTSIDE.match(load)]
    return faults


def _broken(folder: Path, path: Path, target: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or not target or target == "#":
        return ""
    file = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    if file.is_dir():
        file = file / "index.html"
    if not file.exists() or not file.is_relative_to(folder):
        return f"{target} leads nowhere"
    if parts.fragment and file.suffix == ".html":
        page = pages.get(file)
        if page is not None and unquote(parts.fragment) not in page.anchors:
            return f"{target}: no such place on that page"
    return ""


if __name__ == "__main__":
    wrong = check(Path(sys.argv[1]))
    sys.stdout.write("".join(f"{line}\n" for line in wrong) or "no external request, every internal link resolves\n")
    sys.exit(1 if wrong else 0)
