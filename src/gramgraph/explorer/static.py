"""One self-contained file: page, style, model and the answers, without a server and without the network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import Any

import numpy as np

from gramgraph._replace import write_whole
from gramgraph.exceptions import GramGraphError, OptionError
from gramgraph.explorer.files import bundle, page_file
from gramgraph.explorer.server import dumps

#: Numbers in the tables of a network, and in its largest clique, up to which the page computes by itself.
TABLE_NUMBERS, CLIQUE_NUMBERS = 200_000, 20_000
#: Single findings whose answers are written into the file for other models.
FINDINGS = 400


def write_static(view: Any, path: str | os.PathLike[str]) -> str:
    """Write the file; the path is returned."""
    write_whole(path, static_page(getattr(view, "first", None) or view))
    return os.fspath(path)


def static_page(view: Any) -> str:
    """The text of the file. Networks of small tables are answered in the page, exactly; of other models the file holds
    the beliefs before evidence and after each single finding."""
    if view.kind not in ("network",):
        raise OptionError(
            "a static file can be written for networks; explore sequences and processes with Python running"
        )
    if view.large:
        raise OptionError(f"a static file holds networks of up to 300 variables; this one has {len(view.nodes)}")
    info = view.request("model", {})
    exact = _tables(view)
    info["can"] = ["explain", "compare"] + (["do", "separation", "next"] if exact is not None and view.directed else [])
    info["can"] += ["separation"] if not view.directed else []
    info["cannot"] = info["cannot"] | {
        "tree": "The junction tree is drawn while Python runs.",
        "messages": "Messages are drawn while Python runs.",
    }
    if exact is None:
        info["cannot"]["do"] = "This file holds answers to single observations only."
        info["cannot"]["separation"] = "Separation is shown while Python runs."
    data = {"info": info, "tables": exact, "answers": None if exact is not None else _answers(view)}
    script = bundle("infer.js", "still.js")
    text = base64.b64encode(dumps(data)).decode()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    title = json.dumps(view.title)[1:-1].replace("&", "&amp;").replace("<", "&lt;")
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} · gramgraph explorer</title>\n<style>{page_file('style.css').decode()}</style>\n</head>\n"
        f'<body>\n<div id="app" class="gg"></div>\n<div id="data" hidden>{text}</div>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _tables(view: Any) -> list[Any] | None:
    """The factors of a discrete network, where the page can compute with them; else None."""
    model = view.model
    if model.kind != "tables":
        return None
    factors = model.factors(structured=False)
    if sum(np.size(factor.values) for factor in factors) > TABLE_NUMBERS:
        return None
    tree = model.to_junction_tree()
    sizes = [int(np.prod([float(model.var(name).size) for name in clique])) for clique in tree.cliques]
    if max(sizes, default=0) > CLIQUE_NUMBERS or sum(sizes) * len(model) > 4_000_000:
        return None
    out = []
    for k, factor in enumerate(factors):
        scope = [var.name for var in factor.scope]
        child = model.variables[k] if view.directed and len(factors) == len(model) else None
        values = np.asarray(factor.values, dtype=np.float64) * np.exp(float(factor.log_scale))
        out.append({"scope": scope, "child": child, "values": values.reshape(-1).tolist()})
    return out


def _answers(view: Any) -> dict[str, Any]:
    """Beliefs before evidence, and after each single state observed."""
    out = {"[]": view.request("ask", {"case": []})}
    for node in view.nodes:
        if node["kind"] != "discrete":
            continue
        for state in node["states"]:
            if len(out) > FINDINGS:
                return out
            case = [{"name": node["name"], "type": "see", "value": state}]
            try:
                out[json.dumps([node["name"], state])] = view.request("ask", {"case": case})
            except GramGraphError:
                continue
    return out
