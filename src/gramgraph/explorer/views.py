"""Which view answers the page's questions about a model."""

from __future__ import annotations

from typing import Any


def view_of(model: Any, **options: Any) -> Any:
    """What answers the page's questions about this model; an object that is one already is taken as it is.

    Parameters
    ----------
    model : a network, a sequence model, a Gaussian process, or a view of one.
    **options : `title`, and `data` for sequence models.

    Examples
    --------
    >>> import gramgraph as gg
    >>> view = view_of(gg.datasets.asia())
    >>> round(view.request("ask", {"case": []})["beliefs"]["lung"][1], 3)
    0.055
    """
    if hasattr(model, "request") and hasattr(model, "actions"):
        return model
    from gramgraph.models import GraphicalModel

    if isinstance(model, GraphicalModel):
        from gramgraph.explorer.network import NetworkView

        return NetworkView(model, options.get("title"), options.get("source"))
    from gramgraph.explorer.others import other_view

    return other_view(model, **options)
