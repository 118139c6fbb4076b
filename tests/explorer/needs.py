"""What the tests in a real browser need; `make test-browser` prints what is missing, and installs nothing."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser() -> str | None:
    """Path of a system browser: GRAMGRAPH_BROWSER, or a Chromium that is installed."""
    chosen = os.environ.get("GRAMGRAPH_BROWSER")
    return chosen if chosen else next((found for name in NAMES if (found := shutil.which(name))), None)


def missing() -> list[str]:
    """What is missing, with what to install."""
    out = []
    if browser() is None:
        out.append("a Chromium: install the system's package (Debian: chromium), or set GRAMGRAPH_BROWSER to its path")
    if find_spec("playwright") is None:
        out.append("Playwright for Python: pip install 'gramgraph[browser]' (its own browser download is not needed)")
    return out


if __name__ == "__main__":
    import sys

    sys.stdout.write("".join(f"missing: {line}\n" for line in missing()) or f"browser: {browser()}\n")
