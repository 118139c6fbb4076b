"""Influence diagrams: a network with decisions to make and utilities to gain."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph import graphs
from gramgraph._asking import analyses
from gramgraph._drawn import Drawn
from gramgraph._other_words import OtherWords
from gramgraph._show import counted, shorten
from gramgraph.conditionals import Conditional, Table
from gramgraph.exceptions import GramGraphError, ModelError, VariableError, did_you_mean
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.checking import cycle_faults
from gramgraph.models.contexts import find_context
from gramgraph.models.notation import Structure, read_structure
from gramgraph.models.writing import is_no_yes, labels_in, read_parts
from gramgraph.typing import FloatArray
from gramgraph.variables import Var, binary

if TYPE_CHECKING:
    from gramgraph.analysis.decisions import Strategy

#: `[umbrella]` where a node is expected; `z[3]`, states of a node, follows its name.
_DECISION = re.compile(r"""(?<![\w.':@$%&*+/=!?~^·"\]}])\[\s*("[^"\n]*"|[^\[\]{}"\n]+?)\s*(\{[^{}\n]*\})?\s*\]""")
_UTILITY = re.compile(r"""<\s*("[^"\n]*"|[\w.':@$%&*+/!?~^·]+)\s*>""")


@dataclass(frozen=True, eq=False)
class Utility:
    """What a combination of states is worth: `values` has one axis for each variable of `scope`."""

    name: str
    scope: tuple[Var, ...]
    values: FloatArray


class InfluenceDiagram(OtherWords, Drawn):
    """A Bayesian network with decisions `[umbrella]` and utilities `<comfort>`; `solve` finds the best policies.

    An arrow into a decision says what is known when it is made; what was known or decided before is not forgotten. An
    arrow into a utility says what it depends on. Several utilities are added. Decisions are made in the order of the
    arrows; one that no arrow orders is an error.

    Parameters
    ----------
    structure : a text as for `BayesianNetwork`, with `[name]` (or `[name{take|leave}]`) for decisions and `<name>` for
        utilities; or None, with `edges`.
    edges : pairs (parent, child).
    decisions : names of decisions, where the text does not mark them.
    cpds : tables of the other variables, as for `BayesianNetwork`.
    utilities : name → numbers of shape (sizes of the parents …), `{context: number}`, or a function of the labels.
    states : labels by name, or their number.
    name : a title.

    Examples
    --------
    >>> import gramgraph as gg
    >>> d = gg.InfluenceDiagram(
    ...     "weather{sun|rain} -> forecast{good|bad} -> [umbrella{leave|take}]; weather -> <comfort> <- umbrella",
    ...     cpds={"weather": [0.7, 0.3], "forecast": [[0.8, 0.2], [0.1, 0.9]]},
    ...     utilities={"comfort": [[100, 60], [0, 80]]},
    ... )
    >>> best = d.solve()
    >>> round(best.expected_utility, 2), best.policy["umbrella"]({"forecast": "bad"})
    (86.0, 'take')
    >>> round(d.value_of_information("forecast", before="umbrella"), 2)
    16.0
    """

    network: BayesianNetwork  # decisions have no parents in it, and every state is as likely as the others
    information: Mapping[str, tuple[str, ...]]  # decision → what its arrows say is known, in the order of the decisions
    utilities: Mapping[str, Utility]

    def __init__(
        self,
        structure: Any = None,
        *,
        edges: Iterable[tuple[str, str]] | None = None,
        decisions: Iterable[str] = (),
        cpds: Mapping[str, Any] | Iterable[Conditional] | None = None,
        utilities: Mapping[str, Any] | None = None,
        states: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> None:
        text, marked, valued = _unmark(structure)
        written = read_structure(text, edges)
        worth = dict(utilities or {})
        marked = list(dict.fromkeys([*marked, *((decisions,) if isinstance(decisions, str) else decisions)]))
        valued = list(dict.fromkeys([*valued, *(key for key in worth if key in written.names)]))
        _check_names(written, marked, valued, worth)
        known = {d: tuple(written.parents[d]) for d in marked}
        depends = {u: tuple(written.parents[u]) for u in valued}
        labels = _guessed_labels(written, cpds, worth, states or {})
        whole = _copy(written)
        for d in marked:
            written.parents[d].clear()
        for u in valued:
            del written.names[u], written.parents[u]
        parts = read_parts(written, None, cpds, {**labels, **(states or {})})
        net = BayesianNetwork.from_parts(
            parts.variables,
            [_uniform(v) if v.name in known else c for v, c in zip(parts.variables, parts.conditionals, strict=True)],
            parents=parts.parents,
            name=name,
            check=False,
        )
        faults = [fault for _, fault in parts.faults] + cycle_faults(*_positions(whole))
        if cpds is not None and isinstance(cpds, Mapping):
            faults += [f"{d} is a decision: it takes no table" for d in known if d in cpds]
        tables = {}
        for u, parents in depends.items():
            try:
                tables[u] = _utility(u, tuple(net.var(p) for p in parents), worth[u])
            except GramGraphError as error:
                faults += error.faults if isinstance(error, ModelError) else (str(error),)
        faults += [] if faults else net.faults()
        faults += [
            f"{v.name} is real-valued: decisions are solved on variables with states" for v in net.vars if v.is_real
        ]
        if faults:
            raise ModelError(faults)
        self._fill(net, known, tables)

    @classmethod
    def from_parts(
        cls, network: BayesianNetwork, information: Mapping[str, Sequence[str]], utilities: Iterable[Utility]
    ) -> InfluenceDiagram:
        """From a network in which decisions have no parents, what is known at each decision, and utilities."""
        out = cls.__new__(cls)
        out._fill(network, {d: tuple(known) for d, known in information.items()}, {u.name: u for u in utilities})
        return out

    def _fill(self, network: BayesianNetwork, known: dict[str, tuple[str, ...]], utilities: dict[str, Utility]) -> None:
        self.network, self.utilities, self.name = network, utilities, network.name
        graph = _with_information(network, known)
        order = [network.variables[v] for v in graphs.topological_order(graph) if network.variables[v] in known]
        for first, then in itertools.pairwise(order):
            if network.index(then) not in graphs.descendants(graph, network.index(first)):
                hint = f"draw an arrow from the one that is made first, as in [{first}] -> [{then}]"
                raise ModelError(f"no path says whether {first} or {then} is decided first: {hint}")
        self.information = {d: known[d] for d in order}

    # ------------------------------------------------------------------------------------------ the graph

    @property
    def decisions(self) -> tuple[str, ...]:
        """Names of the decisions, in the order in which they are made."""
        return tuple(self.information)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of all nodes: variables and decisions as written, then utilities."""
        return (*self.network.variables, *self.utilities)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All pairs (parent, child), those into decisions and utilities last."""
        told = [(p, d) for d, known in self.information.items() for p in known]
        return (*self.network.edges, *told, *((v.name, u.name) for u in self.utilities.values() for v in u.scope))

    def states(self, name: str) -> tuple[str, ...]:
        """Labels of a variable, or the options of a decision."""
        return self.network.states(name)

    def known_before(self, decision: str) -> tuple[str, ...]:
        """What is known when a decision is made: what its arrows say, and all that was known or decided before.

        >>> d = InfluenceDiagram(
        ...     "a -> [x] -> [y] <- b; x -> <u> <- y", cpds={"a": 0.5, "b": 0.5}, utilities={"u": [[0, 1], [2, 3]]}
        ... )
        >>> d.known_before("y")
        ('a', 'x', 'b')
        """
        if decision not in self.information:
            raise VariableError.unknown(decision, self.decisions)
        found: dict[str, None] = {}
        for d, known in self.information.items():
            found.update(dict.fromkeys(known))
            if d == decision:
                break
            found[d] = None
        return tuple(found)

    # ------------------------------------------------------------------------------------------ questions

    def solve(self, evidence: Mapping[str, Any] | None = None, *, memory: float | None = None) -> Strategy:
        """The policy of each decision that makes the expected sum of the utilities largest, exactly.

        Parameters
        ----------
        evidence : what is known from the start, {name: state}; of variables that no decision acts on.
        memory : bytes that the largest table may take (default: 60 % of what is free); more is a `BudgetError`.

        Returns
        -------
        Strategy
            `expected_utility`, and `policy`, by decision.
        """
        found: Strategy = analyses().solve_decisions(self, evidence, memory=memory)
        return found

    def value_of_information(self, variable: str, *, before: str, cost: float = 0.0) -> float:
        """How much the expected utility gains when `variable` is seen before a decision, less the cost of seeing it.

        If the diagram has it seen already, this is what would be lost without. Without a cost it is never negative.
        """
        value: float = analyses().value_of_information(self, variable, before=before, cost=cost)
        return value

    # ------------------------------------------------------------------------------------------ pictures, value

    def _picture(self) -> Any:
        """The whole graph, with the marks of the text around decisions and utilities."""
        marks = {d: f"[{d}]" for d in self.information} | {u: f"<{u}>" for u in self.utilities}
        out = Structure()
        for name in self.variables:
            out.add_node(marks.get(name, name))
        for a, b in self.edges:
            out.add_edge(marks.get(a, a), marks.get(b, b))
        return BayesianNetwork(out, states={n: self.states(n) for n in self.network.variables if n not in marks})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, InfluenceDiagram):
            return NotImplemented
        same = self.network == other.network and dict(self.information) == dict(other.information)
        pairs = zip(self.utilities.values(), other.utilities.values(), strict=False)
        return (
            same
            and list(self.utilities) == list(other.utilities)
            and all(a.scope == b.scope and np.array_equal(a.values, b.values) for a, b in pairs)
        )

    def __hash__(self) -> int:
        return hash((self.network, tuple(self.information), tuple(self.utilities)))

    def __repr__(self) -> str:
        chance = len(self.network) - len(self.information)
        named = f"decisions {shorten(', '.join(self.decisions), 60)}" if self.decisions else "no decision"
        return f"InfluenceDiagram({counted(variable=chance)}, {named}, {counted(utility=len(self.utilities))})"


# ---------------------------------------------------------------------------------------------------- reading


def _unmark(structure: Any) -> tuple[Any, list[str], list[str]]:
    """The text without the marks of decisions and utilities, and their names."""
    if not isinstance(structure, str):
        return structure, [], []
    decisions = [match[1].strip('"') for match in _DECISION.finditer(structure)]
    utilities = [match[1].strip('"') for match in _UTILITY.finditer(structure)]
    plain = _DECISION.sub(lambda m: f"{m[1]}{m[2] or ''}", structure)
    return _UTILITY.sub(lambda m: m[1], plain), decisions, utilities


def _check_names(written: Structure, marked: list[str], valued: list[str], worth: Mapping[str, Any]) -> None:
    """Decisions and utilities are nodes, each of one kind; a utility has numbers and no children."""
    faults = []
    for name in (*marked, *worth):
        if name not in written.names:
            faults.append(f"{name!r} is not in the structure.{did_you_mean(name, written.names)}")
    faults += [f"{name} is a decision and a utility" for name in marked if name in valued]
    faults += [f"the utility {u} has no numbers: give them with utilities={{…}}" for u in valued if u not in worth]
    for child, parents in written.parents.items():
        faults += [f"{child} depends on the utility {u}; a utility is an end" for u in valued if u in parents]
    if not valued:
        faults.append("no utility: mark what is to be gained as <name>, with its numbers in utilities={…}")
    if faults:
        raise ModelError(faults)


def _guessed_labels(
    written: Structure, cpds: Any, worth: Mapping[str, Any], states: Mapping[str, Any]
) -> dict[str, Any]:
    """Labels that only the contexts of utilities tell."""
    by_name = dict(cpds) if isinstance(cpds, Mapping) else {}
    made = [c for c in (by_name.values() if by_name else cpds or ()) if isinstance(c, Conditional)]
    told = {var.name: var for c in made for var in c.scope}
    told |= {name: binary(name) for name in (*states, *written.states) if name not in told}
    plain = {name: spec for name, spec in {**by_name, **worth}.items() if name in written.names}
    found = labels_in(written, plain, told)
    return {name: list(labels) for name, labels in found.items() if not is_no_yes(labels)}


def _copy(written: Structure) -> Structure:
    return Structure(dict(written.names), {child: dict(parents) for child, parents in written.parents.items()})


def _positions(written: Structure) -> tuple[list[list[int]], list[str]]:
    names = list(written.names)
    index = {name: i for i, name in enumerate(names)}
    return [[index[p] for p in written.parents[name]] for name in names], names


def _uniform(var: Var) -> Table:
    return Table(var, (), np.full(var.size, 1.0 / var.size))


def _with_information(net: BayesianNetwork, known: Mapping[str, Sequence[str]]) -> graphs.Digraph:
    """The graph of the network with the arrows into decisions."""
    rows = list(net.parent_positions)
    for d, names in known.items():
        rows[net.index(d)] = net.positions_of(names)
    return graphs.Digraph(tuple(rows))


def _utility(name: str, scope: tuple[Var, ...], given: Any) -> Utility:
    """A table of numbers from an array, numbers by context, or a function of labels."""
    shape = tuple(var.size for var in scope)
    if callable(given) and not hasattr(given, "__array__"):
        labels = itertools.product(*(var.states for var in scope))
        values = np.array([float(given(*row)) for row in labels]).reshape(shape)
    elif isinstance(given, Mapping):
        values = _by_context(name, scope, given)
    else:
        try:
            values = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"the utility {name} must be numbers; got {given!r:.80}") from None
        if values.shape != shape and values.shape == (int(np.prod(shape)),):
            values = values.reshape(shape)
    if values.shape != shape:
        order = ", ".join(f"{var.name} ({var.size})" for var in scope) or "no parents"
        raise ModelError(f"the utility {name} must have shape {shape} [{order}], not {values.shape}")
    if not np.isfinite(values).all():
        raise ModelError(f"the utility {name} has numbers that are not finite")
    values.flags.writeable = False
    return Utility(name, scope, values)


def _by_context(name: str, scope: tuple[Var, ...], rows: Mapping[Any, Any]) -> FloatArray:
    """Numbers by context; one that names more variables overrides one that names fewer."""
    values = np.full([var.size for var in scope], np.nan)
    contexts = [(find_context(context, scope, name), number) for context, number in rows.items()]
    for at, number in sorted(contexts, key=lambda pair: sum(not isinstance(i, slice) for i in pair[0])):
        values[at] = float(number)
    missing = np.argwhere(np.isnan(values))
    if missing.size or (not scope and np.isnan(values).any()):
        first = ", ".join(f"{var.name}={var.states[i]}" for var, i in zip(scope, missing[0], strict=True))
        raise ModelError(f"the utility {name} has no number for {first} ({len(missing)} missing)")
    return values
