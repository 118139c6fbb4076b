"""From what a user writes (structure, states, tables in several forms) to variables and conditionals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramgraph.conditionals import Boosted, Conditional, Deterministic, Table
from gramgraph.conditionals.base import Kind, row_name
from gramgraph.exceptions import GramGraphError, ModelError, did_you_mean, listing
from gramgraph.models.checking import describe
from gramgraph.models.contexts import find_context, name_labels, row_values
from gramgraph.models.mixed import is_linear, make_mixed
from gramgraph.models.notation import Structure, read_structure
from gramgraph.variables import Discrete, Domain, Var, discrete, domain_of_word, real

_DEFAULT = Discrete(("no", "yes"))


@dataclass
class Parts:
    """What a network is made of; `faults` holds (variable or "", sentence)."""

    variables: tuple[Var, ...] = ()
    parents: list[list[int]] = field(default_factory=list)
    conditionals: list[Conditional | None] = field(default_factory=list)
    kinds: dict[str, Kind] = field(default_factory=dict)  # conditionals to be fitted
    faults: list[tuple[str, str]] = field(default_factory=list)


def read_parts(structure: Any, edges: Iterable[Any] | None, cpds: Any, states: Mapping[str, Any] | None) -> Parts:
    """Variables, parents and conditionals, with every fault of the writing collected on the way."""
    written = read_structure(structure, edges)
    out = Parts()
    specs = _by_name(cpds, out)
    specs = {name: _as_kind(spec) for name, spec in specs.items()}
    out.kinds = {name: specs.pop(name) for name, spec in list(specs.items()) if isinstance(spec, Kind)}
    if structure is None and edges is None:
        _take_structure(written, specs)
    else:
        _drop_unknown(written, specs, "cpds", out)
        _drop_unknown(written, out.kinds, "cpds", out)
    _order_parents(written, specs, out)
    assumed: dict[str, None] = {}  # whose states nobody wrote
    out.variables = _make_variables(written, specs, states or {}, out, assumed)
    by_name = {var.name: var for var in out.variables}
    index = {name: i for i, name in enumerate(by_name)}
    for name, var in by_name.items():
        parents = tuple(by_name[p] for p in written.parents[name])
        out.parents.append([index[p.name] for p in parents])
        made: Conditional | None = None
        if name in specs:
            try:
                made = make_conditional(var, parents, specs[name])
            except GramGraphError as error:
                found = error.faults if isinstance(error, ModelError) else (f"the table of {name}: {error}",)
                family = [member for member in (*written.parents[name], name) if member in assumed]
                hint = _no_states(family) if not isinstance(specs[name], Mapping) else ""
                out.faults += [(name, fault + hint) for fault in found]
        out.conditionals.append(made)
    return out


def _as_kind(spec: Any) -> Any:
    """Boosted trees that have learned nothing yet are a kind to be fitted; all else stays."""
    return Kind(Boosted, {"maker": spec}) if isinstance(spec, Boosted) and spec.trees is None else spec


def _no_states(names: Sequence[str]) -> str:
    if not names:
        return ""
    last = names[-1]
    return f". No states were given for {listing(names)}, so no and yes are taken: write {last}{{a|b|c}} or {last}[3]"


def _by_name(cpds: Any, out: Parts) -> dict[str, Any]:
    """Tables by the child's name, whichever way they were given."""
    if cpds is None:
        return {}
    if isinstance(cpds, Mapping):
        for name, spec in cpds.items():
            unlearned = isinstance(spec, Boosted) and spec.trees is None
            if isinstance(spec, Conditional) and spec.child.name != name and not unlearned:
                out.faults.append((str(name), f"cpds[{name!r}] is a conditional of {spec.child.name}"))
        return {str(name): spec for name, spec in cpds.items()}
    specs: dict[str, Any] = {}
    for spec in cpds if isinstance(cpds, Iterable) else [cpds]:
        if not isinstance(spec, Conditional):
            wanted = "a list of conditionals (Table, NoisyOr, …) or a dict {name: numbers}"
            raise ModelError(f"cpds must be {wanted}; got {spec!r:.80}")
        if spec.child.name in specs:
            out.faults.append((spec.child.name, f"{spec.child.name} has more than one conditional"))
        specs[spec.child.name] = spec
    return specs


def _take_structure(written: Structure, specs: Mapping[str, Any]) -> None:
    """Without a structure, the conditionals say what it is."""
    for name in specs:
        written.add_node(name)
    for name, spec in specs.items():
        for parent in spec.parents if isinstance(spec, Conditional) else ():
            written.add_edge(parent.name, name)


def _drop_unknown(written: Structure, given: dict[str, Any], what: str, out: Parts) -> None:
    for name in [name for name in given if name not in written.names]:
        hint = did_you_mean(name, written.names)
        out.faults.append(("", f"{what}: {name!r} is not a variable ({listing(written.names)}).{hint}"))
        del given[name]


def _order_parents(written: Structure, specs: dict[str, Any], out: Parts) -> None:
    """A conditional brings its own order of parents; another set of parents than the structure's is a fault."""
    for name, spec in list(specs.items()):
        if not isinstance(spec, Conditional):
            continue
        own = dict.fromkeys(var.name for var in spec.parents)
        if own.keys() == written.parents[name].keys():
            written.parents[name] = own
        else:
            here, there = listing(own) or "none", listing(written.parents[name]) or "none"
            fault = f"the conditional of {name} has the parents ({here}), but the structure says ({there})"
            out.faults.append((name, fault))
            del specs[name]


# ------------------------------------------------------------------------------------------------- states


def as_states(given: Any) -> tuple[str, ...]:
    """Labels from a list, from their number, or from a text `low|mid|high`."""
    if isinstance(given, bool) or given is None:
        raise ModelError(f"states are a list of labels or their number, not {given!r}")
    if isinstance(given, str):
        return tuple(label.strip() for label in given.strip("{} ").split("|"))
    if isinstance(given, int | np.integer):
        return tuple(map(str, range(int(given))))
    return tuple(map(str, given))


def as_var(name: str, given: Any) -> Var:
    """A variable from its labels or their number, or one of numbers from a domain or its word: "real", "real^3",
    "positive", "circle", "sphere"."""
    if isinstance(given, Domain):
        return Var(name, given)
    word = given[0] if isinstance(given, tuple) and len(given) == 1 else given
    if isinstance(word, str) and (domain := domain_of_word(word, name)) is not None:
        return Var(name, domain)
    return discrete(name, as_states(given))


def _make_variables(
    written: Structure, specs: Mapping[str, Any], states: Mapping[str, Any], out: Parts, assumed: dict[str, None]
) -> tuple[Var, ...]:
    known: dict[str, Var] = {name: as_var(name, labels) for name, labels in written.states.items()}
    declared = dict(states)
    _drop_unknown(written, declared, "states", out)

    def learn(var: Var, source: str) -> None:
        before = known.setdefault(var.name, var)
        if before != var:
            fault = f"{source} gives {var.name} {describe(var)}, elsewhere {describe(before)}"
            out.faults.append((var.name, fault))

    for name, labels in declared.items():
        learn(as_var(name, labels), "states=")
    for spec in specs.values():
        for var in spec.scope if isinstance(spec, Conditional) else ():
            learn(var, f"the conditional of {spec.child.name}")
    for name, spec in specs.items():
        if name not in known and is_linear(spec):
            known[name] = real(name)
    guessed = labels_in(written, specs, known)
    for name in written.names:
        if name not in known:
            labels = guessed.get(name, {})
            if not labels:
                assumed[name] = None
            known[name] = Var(name, _DEFAULT) if is_no_yes(labels) else discrete(name, list(labels))
    return tuple(known[name] for name in written.names)


def is_no_yes(labels: Iterable[Any]) -> bool:
    """Whether all labels are among no and yes, in any way of writing them."""
    return all(_DEFAULT.find(label) >= 0 for label in labels)


def labels_in(written: Structure, specs: Mapping[str, Any], known: Mapping[str, Var]) -> dict[str, dict[Any, None]]:
    """Labels that dict-like tables use, in first-seen order, for variables whose states nobody declared."""
    found: dict[str, dict[Any, None]] = {}

    def note(name: str, label: Any) -> None:
        if name not in known:
            found.setdefault(name, {}).setdefault(label)

    for name, spec in specs.items():
        if not isinstance(spec, Mapping):
            continue
        parents = [p for p in written.parents[name] if p not in known or known[p].is_discrete]
        if is_linear(spec, alone=True):
            continue
        rows = spec.items() if parents else [((), spec)]
        for context, row in rows:
            try:
                labels = name_labels(context, parents, name)
            except GramGraphError:
                continue  # reported when the table is made
            for parent, label in labels.items():
                note(parent, label)
            for label in row if isinstance(row, Mapping) and not is_linear(spec) else ():
                note(name, label)
    return found


# ------------------------------------------------------------------------------------------------- tables


def make_conditional(child: Var, parents: Sequence[Var], spec: Any) -> Conditional:
    """A conditional from its specification: itself, a function, rows by context, or numbers."""
    if isinstance(spec, Conditional):
        return spec
    if not all(var.is_discrete for var in (child, *parents)):
        return make_mixed(child, tuple(parents), spec)
    if callable(spec) and not hasattr(spec, "__array__"):
        return Deterministic(child, tuple(parents), spec)
    if isinstance(spec, Mapping) and parents:
        return Table(child, tuple(parents), _from_rows(child, parents, spec))
    what = f"the table of {child.name}"
    if not parents:
        return Table(child, (), row_values(spec, child, what))
    try:
        values = np.array(spec, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be numbers, or a dict of rows; got {spec!r:.80}") from None
    if values.ndim == 0:
        raise ModelError(f"{what} is one number, but {child.name} has parents ({listing(v.name for v in parents)})")
    return Table(child, tuple(parents), values)


def _from_rows(child: Var, parents: Sequence[Var], rows: Mapping[Any, Any]) -> Any:
    """A table from rows by context. A context that names more parents overrides one that names fewer."""
    out = np.full([*(var.size for var in parents), child.size], np.nan)
    named = np.full(out.shape[:-1], -1)  # how many parents the context named that filled a row
    faults: list[str] = []
    for context, row in rows.items():
        try:
            at = find_context(context, parents, child.name)
            values = row_values(row, child, f"the row {context!r} of {child.name}")
        except GramGraphError as error:
            faults.append(str(error))
            continue
        count = sum(not isinstance(i, slice) for i in at)
        if (named[at] >= count).any():
            faults.append(f"the table of {child.name} has more than one row for {context!r}")
        named[at], out[at] = count, values
    empty = np.argwhere(named < 0)
    faults += [f"the table of {child.name} has no row for {row_name(child, parents, at)}" for at in empty[:20]]
    if len(empty) > 20:
        faults.append(f"… and {len(empty) - 20} more rows of {child.name} are missing")
    if faults:
        raise ModelError(faults)
    return out
