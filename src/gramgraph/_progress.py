"""How far a long work is: a bar on a terminal or in a notebook, nothing elsewhere, or a function of the caller's."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator

from gramgraph._show import fraction_done
from gramgraph.exceptions import OptionError

__all__ = ["Progress", "Report", "in_notebook", "progress_bar", "reporting"]

#: done cases → nothing.
Report = Callable[[int], object]
#: False: silent; True: a bar on a terminal or in a notebook; a function is called with (done, total).
Progress = bool | Callable[[int, int], object]


@contextlib.contextmanager
def progress_bar(size: int, what: str = "cases") -> Iterator[Callable[[int, int], None]]:
    """A function of (position out of `size`, number of cases done) that moves a bar on the terminal or in a notebook.

    Through rich where it is installed, else a line that is written over; silent when stderr is not a terminal and no
    notebook is there to show it. A size below 0 is not known.
    """
    notebook = in_notebook()
    if not notebook and not sys.stderr.isatty():
        yield lambda at, done: None
        return
    try:
        if notebook:
            importlib.import_module("ipywidgets")  # rich needs it there
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        with _plain_line(size, what) as move:
            yield move
        return
    share = "{task.percentage:.0f} %  " if size >= 0 else ""
    columns = (BarColumn(), TextColumn(f"{share}{{task.fields[done]:,}} {what}"), TimeRemainingColumn())
    console = Console(force_jupyter=True) if notebook else Console(stderr=True)
    with Progress(*columns, console=console, refresh_per_second=4) as bar:
        task = bar.add_task(what, total=size if size >= 0 else None, done=0)
        yield lambda at, done: bar.update(task, completed=at, done=done)


@contextlib.contextmanager
def _plain_line(size: int, what: str) -> Iterator[Callable[[int, int], None]]:
    """A line that is written over, at most ten times a second."""
    last: list[float] = [-1.0]
    now: list[str] = [""]

    def move(at: int, done: int) -> None:
        share = f" ({100 * at // max(size, 1)} %)" if size >= 0 else ""
        now[0] = f"\r{fraction_done(done, None, noun=what)}{share}"
        if time.monotonic() - last[0] >= 0.1:
            last[0] = time.monotonic()
            sys.stderr.write(now[0])
            sys.stderr.flush()

    try:
        yield move
    finally:
        sys.stderr.write(f"{now[0]}\n")


def in_notebook() -> bool:
    """Whether a notebook shows what we display."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


@contextlib.contextmanager
def reporting(progress: Progress, total: int, what: str = "cases") -> Iterator[Report | None]:
    """What a loop over `total` cases calls with the number it has done; None when nobody asked."""
    if progress is False:
        yield None
    elif progress is True:
        with progress_bar(total, what) as move:
            yield lambda done: move(done, done)
    elif not callable(progress):
        raise OptionError(f"progress is True, False or a function (done, total), not {progress!r}")
    else:
        yield lambda done: progress(done, total)
