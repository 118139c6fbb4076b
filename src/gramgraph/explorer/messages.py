"""The steps of sum-product and max-sum as the page draws them: variables round, factors square, observed ones fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.explorer.case import Case
from gramgraph.plot.drawing import text_length
from gramgraph.plot.layout import layered_layout

__all__ = ["message_steps"]


def message_steps(model: Any, case: Case, method: str) -> dict[str, Any]:
    """Nodes, edges and messages in the order in which they are sent; observed variables have none."""
    maximize = method == "max_sum"
    passed = model.max_sum(case.evidence) if maximize else model.sum_product(case.evidence, normalized=False)
    hard = {name: value for name, value in case.hard.items() if name in model.variables}
    factors = list(passed.factor_names)
    scopes = _scopes(model)
    names = [*passed.variables, *hard]
    kinds = dict.fromkeys(names, "variable") | dict.fromkeys(factors, "factor")
    labels = [*names, *factors]
    at = {label: i for i, label in enumerate(labels)}
    edges = []
    for factor, scope in zip(_all_names(model, factors, scopes), scopes, strict=False):
        if factor in at:
            edges += [(at[name], at[factor]) for name in scope if name in at]
    widths = [max(text_length(label, 12, bold=True) + 28, 64.0) for label in labels]
    lay = _side_by_side(len(labels), _outward(len(labels), edges), widths)
    frame = passed.to_frame()
    steps = []
    for step, rows in frame.groupby("step", sort=True):
        first = rows.iloc[0]
        values = [[str(s), _number(v)] for s, v in zip(rows["state"], rows["value"], strict=True)]
        steps.append({"n": int(step), "from": str(first["sender"]), "to": str(first["receiver"]), "values": values})
    out: dict[str, Any] = {
        "method": method,
        "w": lay["w"],
        "h": lay["h"],
        "nodes": [
            {
                "name": label,
                "kind": kinds[label],
                "value": None if label not in hard else str(hard[label]),
                "box": lay["boxes"][i],
            }
            for i, label in enumerate(labels)
        ],
        "edges": [[labels[a], labels[b]] for a, b in edges],
        "steps": steps,
    }
    if maximize:
        out["assignment"] = [[name, str(value)] for name, value in passed.assignment.assignment.items()]
        out["log_prob"] = float(passed.assignment.log_prob)
    else:
        out["log_evidence"] = float(passed.log_evidence)
        out["beliefs"] = {name: [float(p) for p in passed.belief(name).probabilities] for name in passed.variables}
    return out


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _scopes(model: Any) -> list[tuple[str, ...]]:
    return [tuple(var.name for var in factor.scope) for factor in model.factors(structured=False)]


def _all_names(model: Any, names: list[str], scopes: list[tuple[str, ...]]) -> list[str]:
    """A name for each scope: those of the messages where the numbers agree, else p(x | …) by the child."""
    if len(names) == len(scopes):
        return names
    found = []
    for scope in scopes:
        wanted = [name for name in names if all(part in name for part in scope)]
        found.append(wanted[0] if wanted else "")
    return found


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


def _side_by_side(n: int, arrows: list[tuple[int, int]], widths: list[float]) -> dict[str, Any]:
    """A layout from left to right, with room for a card of numbers above and below each line."""
    lay = layered_layout(n, arrows, widths=[150.0] * n, heights=widths, gap_x=24.0, gap_y=104.0)
    boxes = [[y - widths[i] / 2, x - 24.0, widths[i], 48.0] for i, (x, y) in enumerate(lay.centers)]
    return {"w": lay.height, "h": lay.width, "boxes": boxes}
