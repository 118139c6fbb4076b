"""The nodes of a plate model: in which plates each stands, and how it depends on others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from gramgraph.distributions import Categorical
from gramgraph.distributions.by_name import ByName, Dot, Exp, Index, Logistic
from gramgraph.exceptions import ModelError, did_you_mean, listing
from gramgraph.models.plated.notation import Plate
from gramgraph.typing import FloatArray
from gramgraph.variables import Counts, Matrix, Positive, Real, Simplex, Unit, Var


@dataclass(frozen=True)
class Ref:
    """A variable as an argument; `by` are the variables whose states choose among its members."""

    name: str
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Product:
    """The inner product of two vectors."""

    left: Ref
    right: Ref


@dataclass(frozen=True)
class Link:
    """A function of a number or of an inner product: "exp" or "logistic"."""

    kind: str
    of: Ref | Product

    @property
    def refs(self) -> tuple[Ref, ...]:
        """Its variables."""
        return refs_of(self.of)


def refs_of(value: Any) -> tuple[Ref, ...]:
    """The variables of an argument, in order; none for a number."""
    if isinstance(value, Ref):
        return (value,)
    if isinstance(value, Product):
        return (value.left, value.right)
    return value.refs if isinstance(value, Link) else ()


#: Numbers (those of a hyper-parameter included), a `Ref`, a `Product`, or a `Link` of one of these.
Argument: TypeAlias = Any


@dataclass(frozen=True)
class Node:
    """A variable of the template: `form` is the word of its family, "given" for an input without one."""

    name: str
    var: Var
    plates: tuple[str, ...]
    form: str
    arguments: Mapping[str, Argument] = field(default_factory=dict)

    @property
    def refs(self) -> tuple[Ref, ...]:
        """All variables among its arguments, in order."""
        return tuple(ref for value in self.arguments.values() for ref in refs_of(value))


#: Families by name → form, and domains of the child.
FORMS: dict[str, tuple[str, tuple[type, ...]]] = {
    "Dirichlet": ("dirichlet", (Simplex,)),
    "Beta": ("beta", (Unit,)),
    "Gamma": ("gamma", (Positive,)),
    "Normal": ("normal", (Real,)),
    "Gaussian": ("gaussian", (Real,)),
    "Wishart": ("wishart", (Matrix,)),
    "Poisson": ("poisson", (Counts,)),
    "Multinomial": ("multinomial", (Counts,)),
}
_WORD: dict[type, str] = {
    Simplex: "simplex K",
    Unit: "unit",
    Positive: "positive",
    Real: "real",
    Matrix: "matrix d",
    Counts: "count",
}


@dataclass(frozen=True)
class Template:
    """All nodes as they were written, the plates by name, values of hyper-parameters."""

    nodes: Mapping[str, Node]
    plates: Mapping[str, Plate]
    values: Mapping[str, FloatArray]  # of hyper-parameters

    def chain(self, plate: str) -> tuple[str, ...]:
        """A plate with all in which it stands, the outermost first."""
        out: list[str] = []
        at: str | None = plate
        while at is not None:
            out.insert(0, at)
            at = self.plates[at].outer
        return tuple(out)

    def extra(self, node: Node, ref: Ref) -> tuple[str, ...]:
        """Plates of a parent in which the child does not stand: a choice is needed for each."""
        return tuple(p for p in self.nodes[ref.name].plates if p not in node.plates)

    def chosen_sizes(self) -> dict[str, int]:
        """Sizes of plates whose members are numbered by the states of a variable."""
        out: dict[str, int] = {}
        for node in self.nodes.values():
            for ref in node.refs:
                for plate, by in zip(self.extra(node, ref), ref.by, strict=True):
                    out[plate] = self.nodes[by].var.size
        return out


class TemplateBuilder:
    """Reads specifications into nodes and collects every fault on the way."""

    def __init__(
        self,
        variables: Mapping[str, Var],
        parents: Mapping[str, tuple[str, ...]],
        plates: tuple[Plate, ...],
        values: Mapping[str, FloatArray],
        hyper: tuple[str, ...],
    ) -> None:
        self.vars, self.parents, self.values, self.hyper = variables, parents, values, hyper
        self.plates = {plate.name: plate for plate in plates}
        self.faults: list[str] = []
        self._check_plates()
        self.inside = {name: self._plates_of(name) for name in variables}

    def build(self, specs: Mapping[str, Any]) -> Template:
        """The template, or a `ModelError` with all faults."""
        if self.faults:
            raise ModelError(self.faults)
        nodes = {}
        for name in self.vars:
            if name in self.hyper:
                continue
            try:
                nodes[name] = self._node(name, specs.get(name))
            except ModelError as error:
                self.faults += error.faults
        if self.faults:
            raise ModelError(self.faults)
        made = Template(nodes, self.plates, self.values)
        for node in nodes.values():
            self._check_refs(made, node)
        if self.faults:
            raise ModelError(self.faults)
        return made

    # ------------------------------------------------------------------------------------------ plates

    def _check_plates(self) -> None:
        for plate in self.plates.values():
            for member in plate.members:
                if member not in self.vars:
                    hint = did_you_mean(member, self.vars)
                    self.faults.append(f"plate {plate.name}: {member!r} is not a variable.{hint}")
                elif member in self.hyper:
                    self.faults.append(f"plate {plate.name}: {member} is a hyper-parameter, which does not repeat")
            if plate.name in self.vars:
                self.faults.append(f"plate {plate.name} has the name of a variable")
            if plate.outer is not None and plate.outer not in self.plates:
                hint = did_you_mean(plate.outer, self.plates)
                self.faults.append(f"plate {plate.name} stands in {plate.outer!r}, which is not a plate.{hint}")
                continue
            seen, at = [plate.name], plate.outer
            while at in self.plates and at not in seen:
                seen.append(at)
                at = self.plates[at].outer
            if at in seen:
                self.faults.append(f"plate {plate.name} stands in itself ({' in '.join(seen)})")

    def _plates_of(self, name: str) -> tuple[str, ...]:
        """Plates in which a variable stands, outer ones included, outer before inner."""
        if self.faults:
            return ()
        out: dict[str, None] = {}
        for plate in self.plates.values():
            if name in plate.members:
                chain = [plate.name]
                while (outer := self.plates[chain[0]].outer) is not None:
                    chain.insert(0, outer)
                out.update(dict.fromkeys(chain))
        return tuple(sorted(out, key=self._rank))

    def _rank(self, plate: str) -> tuple[int, ...]:
        """Outer plates before inner ones, else as they were written."""
        order = list(self.plates)
        chain = [order.index(plate)]
        while (outer := self.plates[order[chain[0]]].outer) is not None:
            chain.insert(0, order.index(outer))
        return tuple(chain)

    # ------------------------------------------------------------------------------------------ conditionals

    def _node(self, name: str, spec: Any) -> Node:
        var, parents = self.vars[name], self.parents[name]
        make: dict[str, Any] = {"var": var, "name": name, "plates": self.inside[name]}
        if spec is None:
            spec = self._default(name)
        if spec is None:
            if parents:
                raise ModelError(f"no conditional for {name} (parents {listing(parents)}): give it with cpds=…")
            return Node(form="given", **make)
        if isinstance(spec, Index):
            self._same_names(name, spec.names)
            form = "bernoulli" if isinstance(self.vars[spec.of].domain, Unit) else "categorical"
            return Node(form=form, arguments={"probabilities": self._ref(spec)}, **make)
        if isinstance(spec, ByName):
            self._same_names(name, spec.names)
            return self._family(make, spec.family.__name__, dict(spec.arguments))
        if hasattr(spec, "natural_parameters"):
            own = {f: getattr(spec, f) for f in spec.__dataclass_fields__}
            self._same_names(name, ())
            return self._family(make, type(spec).__name__, own)
        return self._table(make, parents, spec)

    def _default(self, name: str) -> Any:
        """A discrete variable of one parent that is a distribution (chosen by discrete ones) is drawn from it."""
        var, parents = self.vars[name], self.parents[name]
        laws = [p for p in parents if p not in self.hyper and isinstance(self.vars[p].domain, (Simplex, Unit))]
        if not var.is_discrete or len(laws) != 1:
            return None
        others = tuple(p for p in parents if p != laws[0])
        return Index(laws[0], by=others) if others else ByName(Categorical, {"probabilities": laws[0]})

    def _same_names(self, name: str, used: tuple[str, ...]) -> None:
        parents = self.parents[name]
        if set(used) != set(parents):
            here, there = listing(dict.fromkeys(used)) or "none", listing(parents) or "none"
            raise ModelError(f"the conditional of {name} uses ({here}), but the structure says ({there})")

    def _family(self, make: dict[str, Any], family: str, given: dict[str, Any]) -> Node:
        name, var = make["name"], make["var"]
        if family in ("Categorical", "Bernoulli"):
            word = "probabilities" if family == "Categorical" else "p"
            value = given[word]
            unit = isinstance(value, str) and value in self.vars and isinstance(self.vars[value].domain, Unit)
            form = "bernoulli" if unit or family == "Bernoulli" else "categorical"
            return Node(form=form, arguments={"probabilities": self._argument(value)}, **make)
        if family not in FORMS:
            raise ModelError(f"{name}: {family} is not a family for plate models. Families: {listing(FORMS)}")
        form, domains = FORMS[family]
        if form == "normal" and var.is_real and var.dimension > 1:
            form = "gaussian"
        if type(var.domain) not in domains:
            wanted = " or ".join(f"{name}{{{_WORD[d]}}}" for d in domains)
            raise ModelError(f"{name} is {var!r}, but {family} is a family of {wanted}")
        arguments = {word: self._argument(value) for word, value in given.items() if not word.startswith("_")}
        return Node(form=form, arguments=arguments, **make)

    def _argument(self, value: Any) -> Argument:
        if isinstance(value, str):
            if value in self.hyper:
                return self.values.get(value, _Unset(value))
            return Ref(value)
        if isinstance(value, Index):
            return self._ref(value)
        if isinstance(value, Dot):
            return Product(self._ref(value.left), self._ref(value.right))
        if isinstance(value, (Exp, Logistic)):
            if isinstance(value.of, str) and value.of in self.hyper:
                raise ModelError(f"{value!r}: a link holds variables; give the value of {value.of} itself")
            return Link(type(value).__name__.lower(), self._argument(value.of))
        try:
            return np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise ModelError(
                f"a number, a name, Index, Dot, Exp or Logistic is expected as an argument; got {value!r}"
            ) from None

    @staticmethod
    def _ref(value: str | Index) -> Ref:
        return Ref(value) if isinstance(value, str) else Ref(value.of, value.selectors)

    def _table(self, make: dict[str, Any], parents: tuple[str, ...], spec: Any) -> Node:
        from gramgraph.models.writing import make_conditional

        family = [self.vars[p] for p in parents]
        if not all(v.is_discrete for v in (make["var"], *family)):
            raise ModelError(
                f"{make['name']}: a family such as gg.distributions.Normal(…) by name is expected, not {spec!r:.60}"
            )
        made = make_conditional(make["var"], family, spec)
        if faults := made.faults():
            raise ModelError(faults)
        arguments: dict[str, Argument] = {"table": made.table()}
        arguments.update({f"parent {i}": Ref(p) for i, p in enumerate(parents)})
        return Node(form="table", arguments=arguments, **make)

    # ------------------------------------------------------------------------------------------ choices

    def _check_refs(self, made: Template, node: Node) -> None:
        for ref in node.refs:
            extra = made.extra(node, ref)
            if len(extra) != len(ref.by):
                how = f'gg.Index("{ref.name}", by=…)'
                where = f"the plate {' and '.join(extra)}" if extra else "no other plate"
                said = f"{len(ref.by)} variables choose" if ref.by else "nothing chooses a member"
                self.faults.append(
                    f"{node.name}: {ref.name} stands in {where}, in which {node.name} does not, but {said}: write {how}"
                )
                continue
            for plate, by in zip(extra, ref.by, strict=True):
                self._check_choice(made, node, ref, plate, by)
        self._check_sizes(made, node)

    def _check_choice(self, made: Template, node: Node, ref: Ref, plate: str, by: str) -> None:
        chooser = made.nodes[by]
        if not chooser.var.is_discrete:
            self.faults.append(f"{node.name}: {by} is {chooser.var!r}; only states of a discrete variable choose")
            return
        if out := [p for p in chooser.plates if p not in node.plates]:
            self.faults.append(f"{node.name}: {by} stands in the plate {out[0]}, in which {node.name} does not")
        for other in made.nodes.values():
            for seen in other.refs:
                for own, name in zip(made.extra(other, seen), seen.by, strict=False):
                    if own == plate and made.nodes[name].var.size != chooser.var.size:
                        self.faults.append(
                            f"the plate {plate} has {chooser.var.size} members for {by}, but "
                            f"{made.nodes[name].var.size} for {name}"
                        )
                        return
        size = made.plates[plate].size
        if size is not None and size != chooser.var.size:
            self.faults.append(f"the plate {plate} has {size} members, but {by} has {chooser.var.size} states")

    def _check_sizes(self, made: Template, node: Node) -> None:
        """A variable drawn from a probability vector has as many states as that has numbers."""
        if node.form not in ("categorical", "multinomial", "bernoulli"):
            return
        ref = node.arguments["probabilities"]
        size = node.var.size if node.var.is_discrete else node.var.dimension
        if isinstance(ref, Link):
            wanted = 2
        elif isinstance(ref, Ref):
            domain = made.nodes[ref.name].var.domain
            wanted = 2 if isinstance(domain, Unit) else getattr(domain, "dimension", 0)
            if not isinstance(domain, (Simplex, Unit)):
                self.faults.append(f"{node.name} is drawn from {ref.name}, which is {made.nodes[ref.name].var!r}")
                return
        else:
            wanted = 2 if node.form == "bernoulli" else len(np.atleast_1d(ref))
        if size != wanted:
            self.faults.append(f"{node.name} has {size} states, but its probabilities are {wanted}")


class _Unset:
    """The value of a hyper-parameter that nobody gave."""

    def __init__(self, name: str) -> None:
        self.name = name
