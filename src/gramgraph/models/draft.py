"""Drafts: networks that can still be changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gramgraph._show import counted
from gramgraph.conditionals import Conditional, Table
from gramgraph.conditionals.base import row_name
from gramgraph.conditionals.showing import html_rows, text_rows
from gramgraph.exceptions import ModelError, VariableError
from gramgraph.models.contexts import find_context, row_values
from gramgraph.models.notation import read_structure
from gramgraph.models.writing import as_states, as_var, make_conditional
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, discrete

if TYPE_CHECKING:
    from gramgraph.models.bayesian_network import BayesianNetwork


class Draft:
    """A network under construction: add and remove edges, fill tables by context, then `build()`.

    Parameters
    ----------
    owner : the class that `build()` makes.
    name : a title.

    Examples
    --------
    >>> import gramgraph as gg
    >>> draft = gg.BayesianNetwork.draft("S -> W <- R")
    >>> draft.cpt["S"], draft.cpt["R"] = 0.3, 0.2
    >>> draft.cpt["W"][{"S": "no"}] = [0.8, 0.2]  # both rows of R
    >>> draft.cpt["W"][{"S": "yes", "R": "no"}] = [0.1, 0.9]
    >>> draft.cpt["W"]["S=yes, R=yes"] = 0.99  # p(last state)
    >>> net = draft.build()
    >>> net.cpt["W"][{"R": "no"}].tolist()
    [[0.8, 0.2], [0.1, 0.9]]
    """

    def __init__(self, owner: type[BayesianNetwork], *, name: str = "") -> None:
        self.name = name
        self._owner = owner
        self._metadata: dict[str, Any] = {}
        self.vars: dict[str, Var] = {}
        self._parents: dict[str, list[str]] = {}
        self._tables: dict[str, FloatArray | Conditional] = {}  # NaN where nothing was written yet

    @classmethod
    def start(cls, owner: type[BayesianNetwork], structure: Any, *, edges: Any, states: Any, name: str) -> Self:
        """A draft of a structure, given in any of the ways that `BayesianNetwork` takes."""
        written = read_structure(structure, edges)
        draft = cls(owner, name=name)
        declared = {**written.states, **(states or {})}
        for node in {**written.names, **dict.fromkeys(states or ())}:
            draft.add_variable(node, declared.get(node, ("no", "yes")))
        for child, parents in written.parents.items():
            for parent in parents:
                draft.add_edge(parent, child)
        return draft

    @classmethod
    def continuing(cls, net: BayesianNetwork) -> Self:
        """A draft that starts as a copy of a network."""
        draft = cls(type(net), name=net.name)
        draft._metadata = dict(net.metadata)
        for var, row, c in zip(net.vars, net.parent_positions, net.conditionals, strict=True):
            draft.vars[var.name] = var
            draft._parents[var.name] = list(net.names_of(row))
            if c is not None:
                draft._tables[var.name] = c.table().copy() if type(c) is Table else c
        return draft

    # ------------------------------------------------------------------------------------------ structure

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(self.vars)

    def states(self, name: str) -> tuple[str, ...]:
        """Labels of a variable's states."""
        return self._var(name).states

    def parents(self, name: str) -> tuple[str, ...]:
        """Parents in the order of the table's axes."""
        self._var(name)
        return tuple(self._parents[name])

    def add_variable(self, name: str, states: Any = ("no", "yes"), *, parents: Iterable[str] = ()) -> Self:
        """A new variable with its states and, if wanted, edges from `parents`."""
        if name in self.vars:
            raise ModelError(f"{name} is already a variable of this draft: set_states changes its states")
        made = as_var(name, states)
        if not made.is_discrete:
            raise ModelError(f"{name}: a draft holds tables of discrete variables; write a real-valued one with cpds=")
        self.vars[name] = made
        self._parents[name] = []
        for parent in (parents,) if isinstance(parents, str) else parents:
            self.add_edge(parent, name)
        return self

    def remove_variable(self, name: str) -> Self:
        """Takes a variable out, with all its edges."""
        self._var(name)
        for child in [child for child, row in self._parents.items() if name in row]:
            self.remove_edge(name, child)
        for held in (self.vars, self._parents, self._tables):
            held.pop(name, None)  # type: ignore[attr-defined]
        return self

    def set_states(self, name: str, states: Any) -> Self:
        """New labels; as many as before rename the states, another number drops the tables that use them."""
        before, after = self._var(name), discrete(name, as_states(states))
        self.vars[name] = after
        for child, row in self._parents.items():
            if child != name and name not in row:
                continue
            if after.size != before.size:
                self._tables.pop(child, None)
            elif child in self._tables:
                self._tables[child] = self._dense(child)
        return self

    def add_edge(self, parent: str, child: str) -> Self:
        """An edge; numbers that the child already has are kept for every state of the new parent."""
        var = self._var(parent)
        self._var(child)
        if parent in self._parents[child]:
            return self
        if child in self._tables:
            table = self._dense(child)
            self._tables[child] = np.repeat(table[..., None, :], var.size, axis=-2)
        self._parents[child].append(parent)
        return self

    def remove_edge(self, parent: str, child: str) -> Self:
        """Takes an edge out. Numbers that did not depend on the parent stay, others are forgotten."""
        self._var(parent)
        self._var(child)
        if parent not in self._parents[child]:
            raise ModelError(f"there is no edge {parent} -> {child}")
        axis = self._parents[child].index(parent)
        if child in self._tables:
            table = self._dense(child)
            first = np.asarray(table.take(0, axis))
            if np.array_equal(table, np.repeat(np.expand_dims(first, axis), table.shape[axis], axis), equal_nan=True):
                self._tables[child] = first
            else:
                del self._tables[child]
        del self._parents[child][axis]
        return self

    # ------------------------------------------------------------------------------------------ numbers

    @property
    def cpt(self) -> DraftTables:
        """Tables to read and write: `draft.cpt["W"][{"S": "yes"}] = [0.1, 0.9]`, `draft.cpt["W"] = …`."""
        return DraftTables(self)

    def _var(self, name: str) -> Var:
        if name not in self.vars:
            raise VariableError.unknown(name, self.variables)
        return self.vars[name]

    def _family(self, name: str) -> tuple[Var, tuple[Var, ...]]:
        return self._var(name), tuple(self.vars[p] for p in self._parents[name])

    def _numbers(self, name: str) -> FloatArray:
        """A copy of the table; reading leaves the draft as it is (a noisy-or stays one)."""
        found = self._tables.get(name)
        if found is None:
            child, parents = self._family(name)
            return np.full([var.size for var in (*parents, child)], np.nan)
        return np.array(found if isinstance(found, np.ndarray) else found.table())

    def _dense(self, name: str) -> FloatArray:
        """The table as an array that may be written to, kept in the draft."""
        found = self._tables.get(name)
        if isinstance(found, np.ndarray):
            return found
        table = self._tables[name] = self._numbers(name)
        return table

    # ------------------------------------------------------------------------------------------ building

    def build(self, *, check: bool = True) -> BayesianNetwork:
        """The network; a `ModelError` lists everything that is wrong or missing."""
        faults: list[tuple[str, str]] = []
        index = {name: i for i, name in enumerate(self.vars)}
        parents = [[index[p] for p in self._parents[name]] for name in self.vars]
        conditionals = [self._conditional(name, faults) for name in self.vars]
        net = self._owner.from_parts(
            self.vars.values(), conditionals, parents=parents, name=self.name, metadata=self._metadata, check=False
        )
        net._writing_faults = tuple(faults)
        if check:
            net._check(missing=bool(self._tables))
        return net

    def _conditional(self, name: str, faults: list[tuple[str, str]]) -> Conditional | None:
        found = self._tables.get(name)
        if not isinstance(found, np.ndarray):
            return found
        child, parents = self._family(name)
        empty = np.argwhere(np.isnan(found).any(axis=-1))
        faults += [(name, f"no numbers for {row_name(child, parents, at)}") for at in empty[:20]]
        if len(empty) > 20:
            faults.append((name, f"… and {len(empty) - 20} more rows of {name} have no numbers"))
        return None if len(empty) else Table(child, parents, found)

    def __repr__(self) -> str:
        n_edges = sum(map(len, self._parents.values()))
        return f"Draft({counted(variable=len(self.vars), edge=n_edges, table=len(self._tables))})"


class DraftTables(MutableMapping[str, "DraftTable"]):
    """The tables of a draft by the child's name."""

    __slots__ = ("_draft",)

    def __init__(self, draft: Draft) -> None:
        self._draft = draft

    def __getitem__(self, name: str) -> DraftTable:
        self._draft._var(name)
        return DraftTable(self._draft, name)

    def __setitem__(self, name: str, spec: Any) -> None:
        child, parents = self._draft._family(name)
        if isinstance(spec, DraftTable):
            spec = spec.values
        made = make_conditional(child, parents, spec)
        if made.child != child or made.parents != parents:
            wanted = ", ".join(var.name for var in parents) or "none"
            raise ModelError(f"a conditional of {name} with the parents ({wanted}) is expected, not {made!r}")
        self._draft._tables[name] = made.table().copy() if type(made) is Table else made

    def __delitem__(self, name: str) -> None:
        self._draft._var(name)
        self._draft._tables.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._draft.variables)

    def __len__(self) -> int:
        return len(self._draft.variables)


class DraftTable:
    """One table of a draft; rows that are not written yet are NaN."""

    __slots__ = ("_draft", "_name")

    def __init__(self, draft: Draft, name: str) -> None:
        self._draft, self._name = draft, name

    @property
    def values(self) -> FloatArray:
        """A copy of the numbers, shape (*parent sizes, child size)."""
        return self._draft._numbers(self._name)

    def __getitem__(self, context: Any) -> FloatArray:
        """The numbers in a context, a copy."""
        _, parents = self._draft._family(self._name)
        return self.values[find_context(context, parents, self._name)]

    def __setitem__(self, context: Any, row: Any) -> None:
        """Writes one row into every context that matches."""
        child, parents = self._draft._family(self._name)
        at = find_context(context, parents, self._name)
        values = row_values(row, child, f"the row {context!r} of {self._name}")
        table = self._draft._dense(self._name)
        try:
            table[at] = values
        except ValueError:
            wanted = table[at].shape
            raise ModelError(f"the rows {context!r} of {self._name} have shape {wanted}, not {values.shape}") from None

    def __repr__(self) -> str:
        _, parents = self._draft._family(self._name)
        given = f" | {', '.join(var.name for var in parents)}" if parents else ""
        empty = int(np.isnan(self.values).any(axis=-1).sum())
        return f"<draft of p({self._name}{given}), {counted(row=empty)} to be written>"

    def __str__(self) -> str:
        child, parents = self._draft._family(self._name)
        return text_rows(parents, child, self.values)

    def _repr_html_(self) -> str:
        child, parents = self._draft._family(self._name)
        return html_rows(parents, child, self.values)
