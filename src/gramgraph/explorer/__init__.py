"""The explorer: see a model think, on a page of this machine or in a notebook.

>>> import gramgraph as gg
>>> with gg.explorer.serve(gg.datasets.asia()) as running:
...     running.url.startswith("http://127.0.0.1:")
True
"""

from __future__ import annotations

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
    """
    from gramgraph.explorer.server import Server

    return Server(view_of(model, **options), port=port, host=host, token=token, max_upload=max_upload)


def explore(model: Any, *, port: int = 0, browser: bool = True, static: Any = None, **options: Any) -> Any:
    """Open the explorer: a widget in a notebook, else a page in the browser; `static` writes one self-contained file.

    Returns the widget, the running server, or the path that was written.
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

        webbrowser.open(running.url)
    return running


def _in_notebook() -> bool:
    """Whether this runs in a notebook that is able to show widgets."""
    import sys
    from importlib.util import find_spec

    shell = sys.modules.get("IPython")
    ip = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return getattr(ip, "kernel", None) is not None and find_spec("anywidget") is not None
