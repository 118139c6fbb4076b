"""A plate model without plates: one variable for every member."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gramgraph.conditionals import Conditional, FromFamily, Table
from gramgraph.exceptions import ModelError
from gramgraph.models.bayesian_network import BayesianNetwork
from gramgraph.models.plated.layout import PlateLayout
from gramgraph.models.plated.template import Link, Node, Product, Ref, Template
from gramgraph.variables import Var

#: Members of all variables together, at most: each becomes an object.
MOST_VARIABLES = 1_000_000


def unrolled(template: Template, layout: PlateLayout, order: Sequence[str], *, name: str = "") -> BayesianNetwork:
    """The ordinary network; variables in topological order of the template, members in the order of the plates."""
    total = sum(layout.count(node) for node in template.nodes)
    if total > MOST_VARIABLES:
        raise ModelError(f"{total:,} variables are too many to unroll: ask the plate model itself")
    members = {
        node: [Var(label, template.nodes[node].var.domain) for label in layout.labels(node)] for node in template.nodes
    }
    variables: list[Var] = []
    conditionals: list[Conditional | None] = []
    for node in [template.nodes[n] for n in order if n in template.nodes]:
        parents = {ref: layout.parent(node, ref) for ref in node.refs}
        choosers = {by: layout.parent(node, Ref(by)) for ref in node.refs for by in ref.by}
        for i, var in enumerate(members[node.name]):
            variables.append(var)
            conditionals.append(_conditional(node, var, i, parents, choosers, members))
    return BayesianNetwork.from_parts(variables, conditionals, name=name)


def _conditional(node: Node, var: Var, i: int, parents: Any, choosers: Any, members: Any) -> Conditional | None:
    """The conditional of one member."""
    if node.form == "given":
        return None
    family: dict[Var, int] = {}  # parents in first-seen order, with their positions

    def place(parent: Var) -> int:
        return family.setdefault(parent, len(family))

    def write(ref: Ref) -> dict[str, Any]:
        at = parents[ref][i]
        if not ref.by:
            return {"parent": place(members[ref.name][int(at)])}
        by = [place(members[name][int(choosers[name][i])]) for name in ref.by]
        of = [place(members[ref.name][k]) for k in at.ravel().tolist()]
        return {"choose": of, "by": by, "shape": list(at.shape)}

    def write_argument(value: Any) -> Any:
        if isinstance(value, Ref):
            return write(value)
        if isinstance(value, Product):
            return {"dot": [write(value.left), write(value.right)]}
        return {value.kind: write_argument(value.of)} if isinstance(value, Link) else value

    if node.form == "table":
        refs = node.refs
        for ref in refs:
            write(ref)
        return Table(var, tuple(family), np.asarray(node.arguments["table"]))
    arguments: dict[str, Any] = {}
    for word, value in node.arguments.items():
        arguments[word] = write_argument(value)
    return FromFamily(var, tuple(family), node.form, arguments)
