"""Context-specific tables learned from data: a pruned tree whose leaves hold distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gramgraph.conditionals.predictor import _shown
from gramgraph.conditionals.tree_table import Leaf, Node, Split, TreeTable
from gramgraph.data.frames import missing_cells, read_frame
from gramgraph.exceptions import ModelError, VariableError, listing
from gramgraph.machines.pruning import choose_pruning
from gramgraph.typing import Array
from gramgraph.variables import Var


def fit_tree_table(
    child: Var | str,
    parents: Sequence[Var | str] | Var | str,
    data: Any,
    *,
    pseudo_count: float = 1.0,
    min_samples_leaf: int = 5,
    rule: str = "one_se",
    cv: int = 5,
    random_state: Any = 0,
) -> TreeTable:
    """The tree of a child given discrete parents; a leaf's row is (counts + pseudo_count) / (n + k pseudo_count)."""
    from sklearn.tree import DecisionTreeClassifier

    table = read_frame(data).table
    own = _shown(child, table)
    given = tuple(_shown(p, table) for p in ((parents,) if isinstance(parents, (str, Var)) else parents))
    lost = [var.name for var in (own, *given) if var.name not in table]
    if lost:
        raise VariableError(f"the data have no column for {listing(lost)}")
    numbers = [var.name for var in (own, *given) if not var.is_discrete]
    if numbers:
        raise ModelError(f"{listing(numbers)} is real-valued; a tree of contexts takes discrete variables")
    kept = np.ones(len(table), dtype=bool)
    for var in (own, *given):
        kept &= ~np.asarray(missing_cells(table[var.name]), dtype=bool)
    if not kept.any():
        raise ModelError(f"no row has values of {own.name} and all its parents")
    rows = table[kept]
    codes = {var: np.array([var.index(label) for label in rows[var.name]], dtype=np.int64) for var in (own, *given)}
    y, k = codes[own], own.size
    if not given:
        return TreeTable(own, (), Leaf(_row(np.bincount(y, minlength=k), pseudo_count)))
    X = np.hstack([np.eye(var.size)[codes[var]] for var in given])
    columns = [(p, s) for p, var in enumerate(given) for s in range(var.size)]
    tree = DecisionTreeClassifier(min_samples_leaf=min_samples_leaf, random_state=random_state)
    alpha = 0.0
    if rule != "none" and len(y) >= 2 * cv and len(np.unique(y)) > 1:
        order = np.random.default_rng(random_state).permutation(len(y))
        found = choose_pruning(tree, X, y, None, order % cv, rule=rule)
        alpha = float(found.alphas[found.chosen])
    made = tree.set_params(ccp_alpha=alpha).fit(X, y)
    counts = np.zeros((made.tree_.node_count, k))
    np.add.at(counts, (made.apply(X), y), 1.0)
    return TreeTable(own, given, _Reader(made.tree_, columns, given, counts, pseudo_count).read(0, {}))


def _row(counts: Array, pseudo: float) -> tuple[float, ...]:
    p = np.asarray(counts, dtype=np.float64) + pseudo
    total = p.sum()
    p = p / total if total > 0.0 else np.full(len(p), 1.0 / len(p))
    return tuple(p.tolist())


class _Reader:
    """Tests "is the parent in this state?" as splits that ask every parent once on each way down."""

    def __init__(self, tree: Any, columns: list[tuple[int, int]], given: tuple[Var, ...], counts: Array, pseudo: float):
        self.tree, self.columns, self.given, self.counts, self.pseudo = tree, columns, given, counts, pseudo

    def read(self, node: int, known: dict[int, int]) -> Node:
        """The node below tests that leave `known` (parent → a state that stands for all that are left)."""
        if self.tree.children_left[node] < 0:
            return Leaf(_row(self.counts[node], self.pseudo))
        parent, state = self.columns[self.tree.feature[node]]
        if parent in known:
            return self.read(self._side(node, known[parent] == state), known)
        asked = self._asked(node, parent)
        alone = [(s,) for s in range(self.given[parent].size) if s in asked]
        rest = tuple(s for s in range(self.given[parent].size) if s not in asked)
        groups = [*alone, *([rest] if rest else [])]
        return Split(parent, tuple((group, self.read(node, {**known, parent: group[0]})) for group in groups))

    def _side(self, node: int, hit: bool) -> int:
        """Below 0.5 stands what is not in the state."""
        return int(self.tree.children_right[node] if hit else self.tree.children_left[node])

    def _asked(self, node: int, parent: int) -> set[int]:
        """States of a parent that are tested at a node or below."""
        if self.tree.children_left[node] < 0:
            return set()
        owner, state = self.columns[self.tree.feature[node]]
        below = self._asked(self.tree.children_left[node], parent) | self._asked(self.tree.children_right[node], parent)
        return below | ({state} if owner == parent else set())
