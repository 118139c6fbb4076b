"""Open every page of a built site in a browser, at two widths, light and dark, and tell what cannot be read.

`python docs/sitetools/in_browser.py docs/_build/html` prints what is wrong and ends with 1: a page that scrolls
sideways, text whose contrast is below 4.5, text of a drawing below 10 pixels, an image that is bent, shrunk or missing,
a request to another machine. It needs Playwright and a Chromium; `tests/explorer/needs.py` says what is missing.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))

from sitetools.figures import CONTRAST, SMALLEST  # noqa: E402

__all__ = ["check", "faults_of", "pages_of"]

LOOK = Path(__file__).with_name("look.js").read_text(encoding="utf-8")
WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")


def pages_of(folder: Path) -> list[Path]:
    """Pages and drawings; not what comes with the theme, nor the explorer, which has tests of its own."""
    found = [path for ending in ("html", "svg") for path in folder.rglob(f"*.{ending}")]
    return sorted(path for path in found if not {"_static", "explorer"} & set(path.relative_to(folder).parts))


def faults_of(tab: Any, page: Path) -> Iterator[tuple[str, str]]:
    """What is wrong with one page: a kind of fault, and an example with where it was seen."""
    tab.goto(page.resolve().as_uri())
    drawing = page.suffix == ".svg"
    for width in WIDTHS[:1] if drawing else WIDTHS:
        tab.set_viewport_size({"width": width, "height": 800})
        for scheme in SCHEMES[:1] if drawing else SCHEMES:
            tab.emulate_media(color_scheme=scheme)
            for kind, example in tab.evaluate(LOOK, {"smallest": SMALLEST, "contrast": CONTRAST}):
                yield kind, f"{page.name} ({width} px, {scheme}): {example}"


def check(browser: Any, pages: Iterable[Path]) -> dict[str, list[str]]:
    """Kind of fault → where it was seen."""
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(180_000)  # a busy machine may take its time
    tab = context.new_page()
    found: dict[str, list[str]] = defaultdict(list)
    page = Path()

    def asked(request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            found["asks another machine"].append(f"{page.name}: {request.url}")

    tab.on("request", asked)
    for page in pages:
        for kind, where in faults_of(tab, page):
            found[kind].append(where)
    context.close()
    return found


def main() -> int:
    """All pages of a folder, or those that are named after it."""
    sys.path.insert(0, str(ROOT / "tests" / "explorer"))
    import needs

    if missing := needs.missing():
        sys.exit("".join(f"missing: {line}\n" for line in missing))
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[1])
    pages = [folder / name for name in sys.argv[2:]] or pages_of(folder)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs.browser(), args=["--no-sandbox"], timeout=180_000)
        found = check(browser, pages)
        browser.close()
    for kind, where in sorted(found.items(), key=lambda item: -len(item[1])):
        sys.stdout.write(f"{kind}, {len(where)} times: {where[0]}\n")
    sys.stdout.write(f"{len(pages)} pages at {WIDTHS} px, {' and '.join(SCHEMES)}: {len(found)} kinds of faults\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
