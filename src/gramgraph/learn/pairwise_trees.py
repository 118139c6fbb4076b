"""Trees learned from data: one parent each, or one beside the class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gramgraph.learn.structure import LearnedNetwork


def chow_liu(data: Any, root: str | None = None, **options: Any) -> LearnedNetwork:
    """The tree-shaped network with the largest likelihood, its edges pointing away from `root` (or the first column).

    `data` and `options` are those of `gg.learn_structure`, of which this is method="chow_liu".

    Parameters
    ----------
    data : a frame, a dict of columns, a path or a stream.
    root : the column that edges point away from; None for the first.
    **options : of `learn_structure`.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(1000, random_state=0)
    >>> len(chow_liu(frame, root="smoke").edges)
    7
    """
    from gramgraph.learn.structure import learn_structure

    return learn_structure(data, method="chow_liu", root=root, **options)


def tan(data: Any, target: str, **options: Any) -> LearnedNetwork:
    """The tree-augmented naive Bayes network around the class in the column `target`.

    `data` and `options` are those of `gg.learn_structure`, of which this is method="tan".

    Parameters
    ----------
    data : a frame, a dict of columns, a path or a stream.
    target : the column with the classes.
    **options : of `learn_structure`.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.datasets.asia().sample(1000, random_state=0)
    >>> tan(frame, "dysp").parents("dysp")
    ()
    """
    from gramgraph.learn.structure import learn_structure

    return learn_structure(data, method="tan", target=target, **options)
