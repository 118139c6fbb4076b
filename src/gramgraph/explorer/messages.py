"""The steps of sum-product and max-sum as the page draws them: variables round, factors square, observed ones fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.explorer.case import Case
from gramgraph.plot.drawing import text_length
from gramgraph.plot.layout import layered_layout

#: Numbers on a card; the panel has all of them.
MOST_ROWS = 4


def message_steps(model: Any, case: Case, method: str) -> dict[str, Any]:
    """Nodes, edges and messages in the order in which they are sent; observed variables have none."""
    maximize = method == "max_sum"
    passed = model.max_sum(case.evidence) if maximize else model.sum_product(case.evidence, normalized=False)
    # What was set has a table of its own now and takes part; what was observed is fixed.
    hard = {name: value for name, value in case.hard.items() if name not in passed.variables}
    factors = list(passed.factor_names)
    names = [*passed.variables, *hard]
    labels = [*names, *factors]
    at = {label: i for i, label in enumerate(labels)}
    scopes = _scopes(model, passed)
    edges = [(at[name], at[factor]) for factor, scope in zip(factors, scopes, strict=True) for name in scope]
    widths = [max(text_length(label, 12, bold=True) + 28, 64.0) for label in labels]
    rows = min(max((model.var(name).size for name in passed.variables), default=2), MOST_ROWS)
    lay = _side_by_side(_outward(len(labels), edges), widths, rows)
    out: dict[str, Any] = {
        "method": method,
        "w": lay["w"],
        "h": lay["h"],
        "nodes": [
            {
                "name": label,
                "kind": "variable" if i < len(names) else "factor",
                "value": None if label not in hard else str(hard[label]),
                "box": lay["boxes"][i],
            }
            for i, label in enumerate(labels)
        ],
        "edges": [[labels[a], labels[b]] for a, b in edges],
        "steps": _steps(model, passed),
    }
    if maximize:
        out["assignment"] = [[name, str(value)] for name, value in passed.assignment.assignment.items()]
        out["log_prob"] = float(passed.assignment.log_prob)
    else:
        out["log_evidence"] = float(passed.log_evidence)
        out["beliefs"] = {name: [float(p) for p in passed.belief(name).probabilities] for name in passed.variables}
    return out


def _scopes(model: Any, passed: Any) -> list[tuple[str, ...]]:
    """Of each factor all variables, the observed ones too; likelihoods, which come last, hold one."""
    own = [tuple(var.name for var in factor.scope) for factor in model.factors(structured=False)]
    return [*own, *passed.factor_scopes[len(own) :]]


def _steps(model: Any, passed: Any) -> list[dict[str, Any]]:
    """Every message: who sends it to whom, its numbers, and for each state the numbers that it is made of."""
    scopes = dict(zip(passed.factor_names, passed.factor_scopes, strict=True))
    steps = []
    for n, (sender, receiver) in enumerate(passed.schedule, start=1):
        if sender in scopes:
            name, values = receiver, passed.to_variable(sender, receiver)
            others = [other for other in scopes[sender] if other != receiver]
            incoming = [passed.to_factor(other, sender) for other in others]
            made = _terms_of_factor(passed.factor_table(sender), scopes[sender].index(receiver), incoming)
        else:
            name, values = sender, passed.to_factor(sender, receiver)
            near = [factor for factor, scope in scopes.items() if sender in scope and factor != receiver]
            incoming = [passed.to_variable(factor, sender) for factor in near]
            made = [[[float(message[k]) for message in incoming]] for k in range(len(values))]
        states = model.var(name).states
        steps.append(
            {
                "n": n,
                "from": sender,
                "to": receiver,
                "values": [[str(s), _number(v)] for s, v in zip(states, values, strict=True)],
                "made": [[[_number(x) for x in term] for term in terms] for terms in made],
            }
        )
    return steps


def _terms_of_factor(table: Any, axis: int, incoming: list[Any]) -> list[list[list[float]]]:
    """For each state of the receiver the products (sums in max-sum) of the factor and the messages, to be summed."""
    rows = np.moveaxis(np.asarray(table), axis, 0)
    shape = rows.shape[1:]
    return [
        [[float(row[at]), *(float(m[i]) for m, i in zip(incoming, at, strict=True))] for at in np.ndindex(shape)]
        for row in rows
    ]


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _outward(n: int, edges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges directed away from an end of a longest path, so that a chain is drawn as one line."""
    near: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)

    def walk(starts: list[int]) -> list[int]:
        order, seen = list(starts), set(starts)
        for node in order:
            for other in near[node]:
                if other not in seen:
                    seen.add(other)
                    order.append(other)
        return order

    rank: dict[int, int] = {}
    for node in range(n):
        if node not in rank:
            for other in walk([walk([node])[-1]]):
                rank[other] = len(rank)
    return [(a, b) if rank[a] < rank[b] else (b, a) for a, b in edges]


def _side_by_side(arrows: list[tuple[int, int]], widths: list[float], rows: int) -> dict[str, Any]:
    """A layout from left to right, with room for a card of so many rows above and below each line."""
    n, slot = len(widths), 2.0 * (46.0 + 17.0 * rows)
    lay = layered_layout(n, arrows, widths=[slot] * n, heights=widths, gap_x=12.0, gap_y=132.0)
    boxes = [[y - widths[i] / 2, x - 24.0, widths[i], 48.0] for i, (x, y) in enumerate(lay.centers)]
    return {"w": lay.height, "h": lay.width, "boxes": boxes}
