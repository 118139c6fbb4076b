"""The explorer: see a model think, on a page of this machine or in a notebook.

>>> import gramgraph as gg
>>> with gg.explorer.serve(gg.datasets.asia()) as running:
...     running.url.startswith("http://127.0.0.1:")
True
"""

from __future__ import annotations

import atexit
import contextlib
import sys
import warnings
from typing import Any

from gramgraph.explorer.views import view_of

__all__ = ["explore", "serve", "view_of"]


def serve(
    model: Any,
    port: int = 0,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    max_upload: int = 200_000_000,
    **options: Any,
) -> Any:
    """Serve the page about a model on this machine: an object with `url`, `token` and `close()`.

    `port` 0 takes any free port. Other machines can reach it only where `host` and a long `token` are given.

    Parameters
    ----------
    model : a network, a sequence model, a Gaussian process, or a view of one.
    port : 0 takes any free port.
    host : address to listen at.
    token : that questions must carry; a random one by default.
    max_upload : bytes of a file that is dropped on the page.
    **options : `title`, and `data` for sequence models.

    Examples
    --------
    >>> import gramgraph as gg
    >>> with serve(gg.datasets.asia()) as running:
    ...     running.url.startswith("http://127.0.0.1:")
    True
    """
    from gramgraph.explorer.server import Server

    return Server(view_of(model, **options), port=port, host=host, token=token, max_upload=max_upload)


def explore(model: Any, *, port: int = 0, browser: bool = True, static: Any = None, **options: Any) -> Any:
    """Open the explorer: a widget in a notebook, else a page in the browser; `static` writes one self-contained file.

    Returns the widget, the running server, or the path that was written. A script that opened a page stays at its end
    until Ctrl-C, so that the page can be used; `close()` the server to end before.

    Parameters
    ----------
    model : a network, a sequence model, a Gaussian process, or a view of one.
    port : 0 takes any free port.
    browser : whether a browser is opened.
    static : path of a self-contained file to write in place of a page.
    **options : `title`, and `data` for sequence models.

    Examples
    --------
    >>> import os, tempfile
    >>> import gramgraph as gg
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = explore(gg.datasets.asia(), static=os.path.join(folder, "asia.html"))
    ...     os.path.getsize(file) > 100_000
    True
    """
    if static is not None:
        from gramgraph.explorer.static import write_static

        return write_static(view_of(model, **options), static)
    if _in_notebook():
        from gramgraph.explorer.widget import widget_of

        return widget_of(view_of(model, **options))
    from gramgraph.explorer.workbench import Workbench

    running = serve(Workbench(view_of(model, **options)), port)
    if browser:
        import webbrowser

        opened = webbrowser.open(running.url)
        if not _is_interactive() and (opened or sys.stderr.isatty()):
            atexit.register(_stay, running)
    return running


def _is_interactive() -> bool:
    """Whether somebody types into this process: it then lives on by itself."""
    return hasattr(sys, "ps1") or bool(sys.flags.interactive) or _shell() is not None


def _stay(running: Any) -> None:
    """A script that opened the page has ended: the page shall not end with it."""
    with contextlib.suppress(KeyboardInterrupt):
        if running.is_open:
            sys.stderr.write(f"The explorer is at {running.url}\nCtrl-C ends it.\n")
            running.wait()


def _shell() -> Any:
    """The IPython that runs this, or None."""
    module = sys.modules.get("IPython")
    return module.get_ipython() if module is not None and hasattr(module, "get_ipython") else None


def _in_notebook() -> bool:
    """Whether this runs in a notebook that is able to show widgets."""
    from importlib.util import find_spec

    if getattr(_shell(), "kernel", None) is None:
        return False
    if find_spec("anywidget") is None:
        warnings.warn("pip install gramgraph[notebook] shows the explorer here, in the notebook", stacklevel=4)
        return False
    return True
