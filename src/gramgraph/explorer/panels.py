"""The panels beside the graph: what findings add, what to observe next, stories, separation, tables, plan, messages."""

from __future__ import annotations

import base64
import math
from time import monotonic
from typing import Any

import numpy as np

from gramgraph.exceptions import BudgetError, GramGraphError, OptionError
from gramgraph.explorer import drawing
from gramgraph.explorer.waiting import Waiting, always, go_on
from gramgraph.models.directed import DirectedModel

#: Variables beyond which messages are not drawn, and only one story is told.
MESSAGE_NODES, STORY_NODES = 30, 150
#: Entries of a table that is shown.
TABLE_ENTRIES = 4096
#: Seconds for what to observe next, and of it between two looks at whether somebody waits.
SECONDS, STRETCH = 0.8, 0.1

#: Suffix → what a user calls the format.
FORMATS = {
    "bif": "BIF",
    "xmlbif": "XMLBIF",
    "uai": "UAI",
    "net": "Hugin NET",
    "xdsl": "GeNIe XDSL",
    "json": "gramgraph JSON",
}


def abilities(view: Any) -> tuple[list[str], dict[str, str]]:
    """What the model can do on the page, and the reasons for what it cannot."""
    model, cannot = view.model, {}
    if not view.directed:
        cannot["do"] = "Setting a variable needs arrows, and this model has none."
    if (reason := no_messages(view, model, {})) is not None:
        cannot["messages"] = reason
    if len(view.nodes) > drawing.COMPACT_NODES or not hasattr(model, "to_junction_tree"):
        cannot["tree"] = "The junction tree is drawn for up to 300 variables."
    everything = ["do", "next", "story", "messages", "tree", "separation", "explain", "compare", "python", "save"]
    return [name for name in everything if name not in cannot], cannot


def no_messages(view: Any, model: Any, evidence: Any) -> str | None:
    """Why the messages of this case are not drawn, or None: observed variables may have opened the loops."""
    if not model.is_discrete:
        return "Messages are shown for models whose variables all have states."
    if len(view.nodes) > MESSAGE_NODES:
        return f"Messages are shown for trees of up to {MESSAGE_NODES} variables."
    try:
        model.sum_product(evidence)
    except GramGraphError as error:
        said = str(error).partition(", or use engine=")[0]  # what a program could do is no help on the page
        return said[:1].upper() + said[1:] + "."
    return None


def _target(view: Any, body: dict[str, Any]) -> str:
    return str(view.model.var(str(body.get("target"))).name)


def explain(view: Any, body: dict[str, Any], waiting: Waiting = always) -> dict[str, Any]:
    """What each finding adds to the belief in the target; of large models also whether they disagree."""
    case, target = view.case(body), _target(view, body)
    model = view.under(case)
    out: dict[str, Any] = {"target": target, "rows": []}
    if view.large or len(view.nodes) > 300:
        out |= view.disagreement(model, case)
        go_on(waiting)
    if target in case.hard or not case.findings:
        return out
    state = body.get("state")
    given = {"state": state} if state is not None and model.var(target).is_discrete else {}
    found = model.explain(target, case.evidence, **given)
    rows = [
        [row.finding, _plain(row.contribution), _plain(row.without)]
        for row in found.itertuples()
        if row.finding != target
    ]
    for name in case.do:
        go_on(waiting)
        rows.append([name, *_set_adds(view, case, name, target, found.attrs)])
    return out | {
        "rows": rows,
        "state": found.attrs["state"],
        "measure": found.attrs["measure"],
        "before": found.attrs["before"],
        "after": found.attrs["after"],
    }


def _set_adds(view: Any, case: Any, name: str, target: str, attrs: Any) -> list[Any]:
    """What setting a variable adds: against the same case without it."""
    from dataclasses import replace

    less = replace(case, do={k: v for k, v in case.do.items() if k != name})
    belief = view._query(view.under(less), [target], case.evidence)[target]
    if attrs["measure"] == "log odds":
        p, q = attrs["after"], float(belief.prob(attrs["state"]))
        return [_plain(_odds(p) - _odds(q)) if p != q else 0.0, q]
    mean = float(belief.mean())
    moved = attrs["after"] - mean
    if attrs["measure"] == "direction":
        moved = float(np.angle(np.exp(1j * moved)))
    return [_plain(moved), mean]


def _odds(p: float) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log(p) - np.log1p(-p))


def _plain(x: float) -> float | None:
    """A number for JSON: infinities are too large to draw, and not a number is none."""
    if math.isnan(x):
        return None
    return float(min(max(x, -1e300), 1e300))


def next_best(view: Any, body: dict[str, Any], waiting: Waiting = always) -> dict[str, Any]:
    """What to observe next: the most telling first, and how many were not looked at in the time given."""
    case, target = view.case(body), _target(view, body)
    if target in case.hard:
        return {"rows": [], "left": []}
    candidates = body.get("candidates")
    names = None if candidates is None else [str(name) for name in candidates if name not in case.hard]
    if names is None:
        # What has an uncertain finding, or is excluded from some states, can still be observed.
        names = [name for name in view.model.variables if name not in case.hard and name != target]
        names = [
            name
            for name in names
            if view.model.var(name).is_discrete or getattr(view.model.var(name), "dimension", 0) == 1
        ]
    seconds = min(float(body.get("seconds") or SECONDS), 5.0)
    model, end = view.under(case), monotonic() + seconds
    rows: list[list[Any]] = []
    while names and (not rows or monotonic() < end):
        go_on(waiting)
        found = model.most_informative(target, case.evidence, candidates=names, time_limit=min(seconds, STRETCH))
        share = found["share"].fillna(0.0)
        rows += [
            [str(n), float(s), float(r)] for n, s, r in zip(found["variable"], share, found["reduction"], strict=True)
        ]
        names = list(found.attrs.get("left", ()))
    return {"rows": sorted(rows, key=lambda row: -row[2]), "left": names}


def stories(view: Any, body: dict[str, Any], waiting: Waiting = always) -> dict[str, Any]:
    """The most probable values of everything, and the next ones as differences from these."""
    go_on(waiting)
    case = view.case(body)
    model = view.under(case)
    count = 3 if model.is_discrete and len(view.nodes) <= STORY_NODES else 1
    limited = {"time_limit": SECONDS} if model.is_discrete and count == 1 else {}
    found = (
        model.map_query(case.evidence, k=count, **limited) if count > 1 else [model.map_query(case.evidence, **limited)]
    )
    total = float(body["log_evidence"]) if isinstance(body.get("log_evidence"), (int, float)) else None
    if total is None:
        total = float(model.log_evidence(case.evidence))
    usual = _usual(view)
    first = found[0].assignment
    out = []
    for k, story in enumerate(found):
        against = usual if k == 0 else first
        rows = [
            [name, _value(value)]
            for name, value in story.assignment.items()
            if name not in case.do
            and (name in against or not view.large)
            and _value(value) != _value(against.get(name))
        ]
        p = math.exp(min(float(story.log_prob) - total, 0.0)) if model.is_discrete else None
        out.append({"rows": rows[:12], "more": max(len(rows) - 12, 0), "p": p})
    return {"stories": out, "exact": bool(getattr(found[0], "exact", True))}


def _usual(view: Any) -> dict[str, Any]:
    """The likeliest state before evidence of each variable that was shown."""
    out = {}
    for name, belief in view.known_prior.items():
        if hasattr(belief, "probabilities"):
            out[name] = view.model.states(name)[int(np.asarray(belief.probabilities).argmax())]
    return out


def _value(value: Any) -> Any:
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.4g}")
    return value.tolist() if hasattr(value, "tolist") else value


#: Slow questions, asked after the beliefs; each looks between its steps whether somebody still waits.
PANELS = {"explain": explain, "next": next_best, "story": stories}


def separation(view: Any, body: dict[str, Any]) -> dict[str, Any]:
    """What the source still tells about the others given what was observed; setting a variable cuts its arcs."""
    case = view.case(body)
    model = view.under(case)
    source = str(view.model.var(str(body.get("source"))).name)
    seen = [f["name"] for f in case.findings if f["type"] in ("see", "do")]
    soft = [f["name"] for f in case.findings if f["type"] not in ("see", "do")]
    found = _opened(model, source, seen, soft)
    names = model.variables
    return {
        "source": source,
        "given": seen,
        "reached": [] if source in seen else [names[v] for v in found.reached if v < len(names)],
        "edges": [[names[a], names[b]] for a, b in found.edges if max(a, b) < len(names)],
        "observed": [names[v] for v in found.observed if v < len(names)],
        "closed": [names[v] for v in found.closed if v < len(names)],
    }


def _opened(model: Any, source: str, seen: list[str], soft: list[str]) -> Any:
    """Uncertain findings, and "not this", tell about a variable without fixing it: as observed children of it."""
    from gramgraph.graphs import Digraph, openness

    graph, given = model.graph, model.positions_of(seen)
    if soft and isinstance(model, DirectedModel):
        readings = tuple((model.index(name),) for name in soft)
        given = (*given, *range(len(model), len(model) + len(soft)))
        graph = Digraph((*model.parent_positions, *readings))
    return openness(graph, model.index(source), given)


def table(view: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The conditional table of a variable, one row per configuration of the parents, for a heat map."""
    name = str(view.model.var(str(body.get("name"))).name)
    if not isinstance(view.model, DirectedModel):
        raise OptionError(f"{name} has no table of its own: this model is a product of factors")
    model: Any = view.model
    conditional = model.conditional(name)
    if not view.model.is_discrete and not all(model.var(v).is_discrete for v in (name, *model.parents(name))):
        return {"name": name, "text": str(conditional)}
    parents = list(model.parents(name))
    size = math.prod(model.var(v).size for v in (*parents, name))
    if size > TABLE_ENTRIES:
        return {"name": name, "text": f"The table has {size:,} entries; up to {TABLE_ENTRIES:,} are shown."}
    values = np.asarray(conditional.table(), dtype=np.float64).reshape(-1, model.var(name).size)
    shapes = [model.states(v) for v in parents]
    rows = []
    for index, row in enumerate(values):
        at = np.unravel_index(index, [len(s) for s in shapes]) if shapes else ()
        rows.append([[shapes[i][int(j)] for i, j in enumerate(at)], [float(p) for p in row]])
    return {"name": name, "parents": parents, "states": list(model.states(name)), "rows": rows}


def plan(view: Any, body: dict[str, Any]) -> dict[str, Any]:
    """How the question was answered, and what that takes."""
    from gramgraph.questions.planning import plan as plan_question

    case = view.case(body)
    model = view.under(case)
    try:
        found = plan_question(model, given=list(case.evidence))
    except BudgetError as error:
        return {"reason": str(error), "rows": []}
    rows = [
        ["Parts", f"{found.parts:,}"],
        ["Width", f"{found.width:,}"],
        [
            "Largest clique",
            ", ".join(map(str, found.largest_clique[:8])) + (" …" if len(found.largest_clique) > 8 else ""),
        ],
        ["Memory", f"{found.bytes / 1e6:,.1f} MB" if found.bytes >= 1e5 else f"{found.bytes / 1e3:,.1f} kB"],
    ]
    return {"engine": found.engine, "exact": found.exact, "reason": found.reason, "rows": rows}


def tree(view: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The junction tree, placed; above each clique stands what it shares with the one it hangs on."""
    from gramgraph.plot.drawing import draw_junction_tree, text_length, tree_parts
    from gramgraph.plot.layout import layered_layout

    model = view.model.cells if view.model.kind == "cells" else view.model
    cliques, pairs = tree_parts(model.to_junction_tree())
    made = draw_junction_tree(cliques, pairs)
    labels = {b: text for (_, b), text in zip(made.edges, made.labels, strict=True)}
    widths = [max(box.width, text_length(labels.get(i, ""), 11) + 16) for i, box in enumerate(made.boxes)]
    heights = [box.height for box in made.boxes]
    lay = layered_layout(len(cliques), made.edges, widths=widths, heights=heights, gap_x=20.0, gap_y=56.0)
    return {
        "w": lay.width,
        "h": lay.height,
        "cliques": [
            {
                "names": list(names),
                "lines": list(box.lines),
                "box": [x - box.width / 2, y - box.height / 2, box.width, box.height],
            }
            for names, box, (x, y) in zip(cliques, made.boxes, lay.centers, strict=True)
        ],
        "edges": [
            {"path": path[0], "label": labels.get(b, ""), "at": [lay.centers[b][0], lay.centers[b][1] - heights[b] / 2]}
            for path, (_, b) in zip(drawing.paths(lay, False), made.edges, strict=True)
        ],
    }


def messages(view: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The messages of sum-product or max-sum, one by one, on the drawn factor graph."""
    from gramgraph.explorer.messages import message_steps

    case = view.case(body)
    return message_steps(view.under(case), case, str(body.get("method") or "sum_product"))


def formats(model: Any) -> list[list[str]]:
    """Formats that this model can be written in, as (suffix, name)."""
    if model.kind == "tables":
        return [
            [suffix, name]
            for suffix, name in FORMATS.items()
            if isinstance(model, DirectedModel) or suffix in ("uai", "json")
        ]
    return [["json", FORMATS["json"]]]


def save(model: Any, suffix: str) -> dict[str, Any]:
    """The model as a file of this format, its bytes as text."""
    import tempfile
    from pathlib import Path

    from gramgraph.io import write

    if suffix not in FORMATS:
        raise OptionError(f"{suffix!r} is not a format. Formats: {', '.join(FORMATS)}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{suffix}"
        write(model, path)
        return {"data": base64.b64encode(path.read_bytes()).decode("ascii"), "suffix": suffix}
