"""Code blocks of a page: run one after the other, and compared with the output that stands below them.

`python -m sitetools.blocks guide/series.md` (in docs/) shows what differs; `--write` puts the present output there.
A block under `<!-- needs: hmmlearn -->` runs only where these packages are installed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Block", "blocks", "run_page"]

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>[\w ]+) -->\n+)?"
    r"^```python\n(?P<code>.*?)^```$(?P<output>\n\n```text\n(?P<said>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """Python code, the output that the page shows for it (None: it shows none), and where they stand."""

    code: str
    said: str | None
    needs: tuple[str, ...]
    line: int
    end: int  # of the code's fence, as a position in the text
    output_end: int

    @property
    def runs_here(self) -> bool:
        """Whether everything it needs is installed."""
        return all(importlib.util.find_spec(name) is not None for name in self.needs)


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page in their order."""
    return [
        Block(
            m["code"],
            m["said"],
            tuple((m["needs"] or "").split()),
            text.count("\n", 0, m.start("code")),
            m.start("output") if m["output"] else m.end(),
            m.end(),
        )
        for m in BLOCK.finditer(text)
    ]


def run_page(text: str, name: str = "page") -> Iterator[tuple[Block, str]]:
    """Each block that can run here, with what it printed; all of them share their names."""
    space: dict[str, Any] = {"__name__": "__page__"}
    for block in blocks(text):
        if not block.runs_here:
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile("\n" * block.line + block.code, name, "exec"), space)
        yield block, said.getvalue()


def same(shown: str | None, said: str) -> bool:
    """Whether the page shows what was printed (no output shown: anything goes)."""
    return shown is None or shown.rstrip() == said.rstrip()


def renewed(text: str, name: str) -> str:
    """The page with the output of today below every block that prints; a block that prints nothing loses its output."""
    made = [(block, said) for block, said in run_page(text, name)]
    for block, said in reversed(made):
        output = f"\n\n```text\n{said.rstrip()}\n```" if said.strip() else ""
        text = text[: block.end] + output + text[block.output_end :]
    return text


def main() -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    faults = 0
    for page in args.pages:
        text = page.read_text(encoding="utf-8")
        if args.write:
            page.write_text(renewed(text, str(page)), encoding="utf-8")
            continue
        for block, said in run_page(text, str(page)):
            if not same(block.said, said):
                faults += 1
                sys.stderr.write(f"{page}:{block.line}: printed\n{said}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
