"""Pictures of decision trees: scikit-learn's, pruned ones, and tables by contexts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.plot.axes import axes
from gramgraph.plot.decision import _COLORS


class _Drawn(NamedTuple):
    text: str
    shares: Any  # of classes, or None
    below: tuple[tuple[str, Any], ...]  # (what the branch says, node)


def plot_tree(model: Any, *, ax: Any = None, feature_names: Any = None, digits: int = 3) -> Any:
    """Draw a decision tree, root on top: tests in the nodes, what holds on the branches, distributions in the leaves.

    `model` is a fitted `PrunedTree`, a decision tree of scikit-learn, or a `TreeTable`. The axes are returned.

    Parameters
    ----------
    model : the fitted model.
    ax : axes to draw on; None makes new ones.
    feature_names : of the columns, or None.
    digits : of the numbers.

    Examples
    --------
    >>> import gramgraph as gg
    >>> from gramgraph.variables import binary
    >>> a, b, c = map(binary, "abc")
    >>> tree = gg.conditionals.TreeTable(c, (a, b), {"a": {"no": 0.1, "yes": {"b": {"no": 0.5, "yes": 0.9}}}})
    >>> len(gg.plot.plot_tree(tree).texts)
    9
    """
    root = _of_contexts(model, model.tree, digits) if hasattr(model, "leaves") and hasattr(model, "parents") else None
    if root is None:
        tree: Any = getattr(model, "tree_", None)
        names = feature_names if feature_names is not None else getattr(model, "feature_names_in_", None)
        if hasattr(tree, "tree_"):  # a pruned tree holds one of scikit-learn
            names = getattr(tree, "feature_names_in_", None) if names is None else names
            model, tree = tree, tree.tree_
        if not hasattr(tree, "children_left"):
            raise ModelError(f"{type(model).__name__} is no fitted decision tree")
        shown = [f"x{j}" for j in range(tree.n_features)] if names is None else [str(name) for name in names]
        root = _of_tests(tree, 0, shown, getattr(model, "classes_", None), digits)
    ax = axes(ax)
    ax.set_axis_off()
    _place(ax, root, 0.0, float(_width(root)), 0)
    ax.autoscale_view()
    ax.margins(0.06)
    return ax


def _of_contexts(model: Any, node: Any, digits: int) -> _Drawn:
    if hasattr(node, "row"):
        text = "\n".join(f"{s}: {p:.{digits}g}" for s, p in zip(model.child.states, node.row, strict=True))
        return _Drawn(text, np.asarray(node.row), ())
    var = model.parents[node.parent]
    below = tuple((" | ".join(var.states[s] for s in states), _of_contexts(model, part, digits))
                  for states, part in node.branches)  # fmt: skip
    return _Drawn(var.name, None, below)


def _of_tests(tree: Any, node: int, names: list[str], classes: Any, digits: int) -> _Drawn:
    if tree.children_left[node] >= 0:
        test = f"{names[tree.feature[node]]} ≤ {tree.threshold[node]:.{digits}g}"
        sides = (("yes", tree.children_left[node]), ("no", tree.children_right[node]))
        return _Drawn(test, None, tuple((word, _of_tests(tree, at, names, classes, digits)) for word, at in sides))
    value = np.asarray(tree.value[node][0], dtype=np.float64)
    if classes is None:
        return _Drawn(f"{value[0]:.{digits}g}\nn = {tree.n_node_samples[node]}", None, ())
    p = value / value.sum()
    best = int(p.argmax())
    return _Drawn(f"{classes[best]}: {p[best]:.{digits}g}\nn = {tree.n_node_samples[node]}", p, ())


def _width(node: _Drawn) -> int:
    return sum(_width(part) for _, part in node.below) if node.below else 1


def _place(ax: Any, node: _Drawn, left: float, right: float, depth: int) -> tuple[float, float]:
    x, y = 0.5 * (left + right), -float(depth)
    start = left
    for word, part in node.below:
        end = start + _width(part)
        at = _place(ax, part, start, end, depth + 1)
        ax.plot([x, at[0]], [y, at[1]], color="#9aa5b1", linewidth=1, zorder=1)
        ax.text(0.5 * (x + at[0]), 0.5 * (y + at[1]), word, ha="center", va="center", fontsize=8, color="#5b6570")
        start = end
    face = "white" if node.shares is None else _COLORS[int(np.argmax(node.shares)) % len(_COLORS)]
    box = {"boxstyle": "round", "facecolor": face, "edgecolor": "#5b6570", "alpha": 0.35 if node.below == () else 1.0}
    ax.text(x, y, node.text, ha="center", va="center", fontsize=8, bbox=box, zorder=2)
    return x, y
