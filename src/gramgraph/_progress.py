"""How far a long work is: a bar on a terminal, nothing elsewhere, or a function of the caller's."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from gramgraph._show import fraction_done

__all__ = ["Progress", "Report", "progress_bar", "reporting"]

#: done cases → nothing.
Report = Callable[[int], object]
#: False: silent; True: a bar on a terminal; a function is called with (done, total).
Progress = bool | Callable[[int, int], object]


@contextlib.contextmanager
def progress_bar(size: int) -> Iterator[Callable[[int, int], None]]:
    """A function of (position out of `size`, number of cases done) that moves a bar on the terminal.

    Through rich where it is installed, else a line that is written over; silent when stderr is no terminal.
    """
    if not sys.stderr.isatty():
        yield lambda at, done: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:

        def plain(at: int, done: int) -> None:
            sys.stderr.write(f"\r{fraction_done(done, None)} ({100 * at // max(size, 1)} %)")
            sys.stderr.flush()

        yield plain
        sys.stderr.write("\n")
        return
    columns = (BarColumn(), TextColumn("{task.percentage:.0f} %  {task.fields[cases]:,} cases"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("cases", total=size, cases=0)
        yield lambda at, done: bar.update(task, completed=at, cases=done)


@contextlib.contextmanager
def reporting(progress: Progress, total: int) -> Iterator[Report | None]:
    """What a loop over `total` cases calls with the number it has done; None when nobody asked."""
    if progress is False:
        yield None
    elif progress is True:
        with progress_bar(total) as move:
            yield lambda done: move(done, done)
    else:
        yield lambda done: progress(done, total)
