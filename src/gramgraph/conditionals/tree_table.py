"""Context-specific tables: a decision tree over the parents' states, with one row at each leaf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from gramgraph._asking import learners
from gramgraph.conditionals.base import ROW_TOLERANCE, Conditional
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.typing import FloatArray
from gramgraph.variables import Var


@dataclass(frozen=True)
class Leaf:
    """A distribution of the child, where the rest of the parents no longer matters."""

    row: tuple[float, ...]


@dataclass(frozen=True)
class Split:
    """A test of one parent (by position): each branch holds for some of its states."""

    parent: int
    branches: tuple[tuple[tuple[int, ...], Node], ...]


Node: TypeAlias = Leaf | Split


@dataclass(frozen=True, eq=False, repr=False)
class TreeTable(Conditional):
    """p(child | parents) by a decision tree: parents that a context makes irrelevant are not asked.

    A tree is written as nested dicts: `{"parent": {"state": subtree, …}}` splits, and a leaf is a row: numbers,
    `{"state": p, …}`, or one number, p(last state), for a child with two states. A branch may hold for several
    states, `("low", "mid"): subtree`, or for all that are not named, `"*": subtree`.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    tree : nested dicts, as above.

    Examples
    --------
    >>> from gramgraph.variables import binary
    >>> a, b, c = map(binary, "abc")
    >>> t = TreeTable(c, (a, b), {"a": {"no": 0.1, "yes": {"b": {"no": 0.5, "yes": 0.9}}}})
    >>> t.table()[..., 1].tolist(), t.n_parameters
    ([[0.1, 0.1], [0.5, 0.9]], 3)
    """

    kind: ClassVar[str] = "tree"
    child: Var
    parents: tuple[Var, ...]
    tree: Any

    def __post_init__(self) -> None:
        wrong: list[str] = []
        if not isinstance(self.tree, Leaf | Split):
            reader = _Reader(self.child, self.parents, wrong)
            object.__setattr__(self, "tree", reader.read(self.tree, {}))
        if wrong:
            raise ModelError(wrong)

    @classmethod
    def fit(
        cls,
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
        """Learn it from the columns of a data frame: a classification tree on the parents' states, pruned by left-out
        rows (`rule` "one_se", "best" or "none", as `gg.estimators.PrunedTree`), with distributions in its leaves.

        >>> import gramgraph as gg
        >>> frame = gg.datasets.asia().sample(3000, random_state=0)
        >>> tree = gg.conditionals.TreeTable.fit("either", ("tub", "lung"), frame)
        >>> tree.n_parameters  # of a whole table: 4
        3
        """
        fit = learners().fit_tree_table
        return fit(  # type: ignore[no-any-return]
            child, parents, data, pseudo_count=pseudo_count, min_samples_leaf=min_samples_leaf, rule=rule, cv=cv,
            random_state=random_state,
        )  # fmt: skip

    def leaves(self) -> Iterator[tuple[dict[str, tuple[str, ...]], tuple[float, ...]]]:
        """Each context (parent → its states there) with its row."""
        for at, leaf in self._walk(self.tree, {}):
            named = {self.parents[i].name: tuple(self.parents[i].states[s] for s in states) for i, states in at.items()}
            yield named, leaf.row

    def _walk(self, node: Node, at: dict[int, tuple[int, ...]]) -> Iterator[tuple[dict[int, tuple[int, ...]], Leaf]]:
        if isinstance(node, Leaf):
            yield at, node
            return
        for states, below in node.branches:
            yield from self._walk(below, {**at, node.parent: states})

    def table(self) -> FloatArray:
        """The dense table: each leaf's row in all cells of its context."""
        out = np.full([var.size for var in self.scope], np.nan)
        for at, leaf in self._walk(self.tree, {}):
            block = np.ix_(*(at.get(i, range(var.size)) for i, var in enumerate(self.parents)), range(self.child.size))
            out[block] = leaf.row
        return out

    def prob_at(self, states: Any, /) -> float:
        """p at one cell in O(depth), without the table."""
        node = self.tree
        while isinstance(node, Split):
            here = states[node.parent]
            node = next(below for chosen, below in node.branches if here in chosen)
        return float(node.row[states[-1]])

    @property
    def n_parameters(self) -> int:
        """leaves · (k − 1)."""
        return sum(1 for _ in self._walk(self.tree, {})) * (self.child.size - 1)

    def faults(self) -> list[str]:
        """Leaves whose row is not a distribution, each named by its context."""
        found = []
        for at, row in self.leaves():
            context = ", ".join(f"{name}={'|'.join(states)}" for name, states in at.items())
            what = f"p({self.child.name} | {context})" if context else f"p({self.child.name})"
            if not np.isfinite(row).all():
                found.append(f"{what} has entries that are not finite numbers")
            elif min(row) < 0:
                found.append(f"{what} has negative entries (smallest {min(row):g})")
            elif abs(sum(row) - 1.0) > ROW_TOLERANCE:
                found.append(f"{what} sums to {sum(row):.6g}, not 1")
        return found

    def to_fields(self) -> dict[str, Any]:
        """`tree`: a leaf as its list of numbers, a split as {"split": parent, "branches": [[states, subtree], …]}."""
        return {**self._head(), "tree": self._plain(self.tree)}

    def _plain(self, node: Node) -> Any:
        if isinstance(node, Leaf):
            return list(node.row)
        var = self.parents[node.parent]
        branches = [[[var.states[s] for s in states], self._plain(below)] for states, below in node.branches]
        return {"split": var.name, "branches": branches}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """The conditional that `to_fields` wrote."""
        child, parents = cls._family(fields, variables)
        return cls(child, parents, _written(fields["tree"]))


def _written(tree: Any) -> Any:
    """Saved fields as the nested dicts that a user writes."""
    if isinstance(tree, Mapping):
        return {tree["split"]: {tuple(states): _written(below) for states, below in tree["branches"]}}
    return tree


class _Reader:
    """Reads nested dicts into leaves and splits, and collects everything that is wrong with them."""

    def __init__(self, child: Var, parents: tuple[Var, ...], wrong: list[str]) -> None:
        self.child, self.parents, self.wrong = child, parents, wrong
        self.position = {var.name: i for i, var in enumerate(parents)}

    def read(self, tree: Any, at: dict[str, str]) -> Node:
        """The node for one piece of the specified tree; `at` is the context above it."""
        if isinstance(tree, Mapping) and len(tree) == 1:
            (name, branches), *_ = tree.items()
            if isinstance(branches, Mapping):
                return self.split(name, branches, at)
        return self.leaf(tree, at)

    def split(self, name: Any, branches: Mapping[Any, Any], at: dict[str, str]) -> Node:
        """A test of the parent `name`."""
        if name not in self.position:
            hint = did_you_mean(name, self.position)
            self.fault(at, f"{name!r} is not a parent; parents: {listing(self.position)}.{hint}")
            return Leaf(())
        if name in at:
            self.fault(at, f"{name} is tested a second time")
            return Leaf(())
        var = self.parents[self.position[name]]
        left = dict.fromkeys(range(var.size))
        out: list[tuple[tuple[int, ...], Node]] = []
        for key, below in sorted(branches.items(), key=lambda item: item[0] == "*"):  # the rest comes last
            states = tuple(left) if key == "*" and var.discrete.find("*") < 0 else self.states(var, key, at)
            for state in states:
                if state not in left:
                    self.fault(at, f"{name}={var.states[state]} has more than one branch")
                left.pop(state, None)
            shown = "|".join(var.states[s] for s in states)
            if states:
                out.append((states, self.read(below, {**at, name: shown})))
        if left:
            self.fault(at, f"no branch for {name} = {', '.join(var.states[s] for s in left)}")
        return Split(self.position[name], tuple(out))

    def states(self, var: Var, key: Any, at: dict[str, str]) -> tuple[int, ...]:
        """State indices of one branch."""
        labels = key if isinstance(key, tuple) else (key,)
        found = [var.discrete.find(label) for label in labels]
        for label, state in zip(labels, found, strict=True):
            if state < 0:
                hint = did_you_mean(label, var.states)
                self.fault(at, f"{label!r} is not a state of {var.name} ({listing(var.states)}).{hint}")
        return tuple(state for state in found if state >= 0)

    def leaf(self, row: Any, at: dict[str, str]) -> Leaf:
        """A row of the child's probabilities."""
        k = self.child.size
        if isinstance(row, Mapping):
            unknown = [label for label in row if self.child.discrete.find(label) < 0]
            if unknown:
                self.fault(at, f"{listing(unknown)}: not a state of {self.child.name} ({listing(self.child.states)})")
                return Leaf(())
            values = np.zeros(k)
            for label, p in row.items():
                values[self.child.discrete.find(label)] = p
        else:
            values = np.asarray(row, dtype=np.float64)
            if values.ndim == 0 and k == 2:
                values = np.array([1.0 - float(values), float(values)])
        if values.shape != (k,):
            self.fault(at, f"a row of {k} numbers is needed, not {row!r}")
        return Leaf(tuple(values.ravel().tolist()))

    def fault(self, at: dict[str, str], what: str) -> None:
        """Notes what is wrong, with the place in the tree."""
        place = ", ".join(f"{name}={states}" for name, states in at.items()) or "the root"
        self.wrong.append(f"the tree of {self.child.name}, at {place}: {what}")
