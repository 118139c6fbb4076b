"""A network on the page: everything it shows is asked of the library here, one function per question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cached_property
from threading import Lock
from typing import Any

from gramgraph.exceptions import BudgetError, GramGraphError, ImpossibleEvidenceError, OptionError
from gramgraph.explorer import drawing, panels
from gramgraph.explorer.beliefs import Ranges, belief_of
from gramgraph.explorer.case import Case, is_circle, read_case
from gramgraph.explorer.waiting import Waiting, always
from gramgraph.models import FactorGraph
from gramgraph.models.directed import DirectedModel

#: Networks with interventions that are kept compiled, and scenes that are kept drawn.
KEPT_MODELS, KEPT_SCENES = 8, 8
#: Beyond so many variables the conflict of findings comes with the panels, not with the beliefs.
QUICK = 300


class NetworkView:
    """Answers the questions of the page about one model; it keeps no case, so pages cannot disturb each other."""

    kind = "network"

    def __init__(self, model: Any, title: str | None = None, source: str | None = None) -> None:
        self.model = model
        self.source = source
        self.title = title or getattr(model, "name", "") or type(model).__name__
        self.directed = isinstance(model, DirectedModel)
        self._done: OrderedDict[Any, Any] = OrderedDict()
        self._prior: dict[str, Any] = {}
        self._lock = Lock()
        self._drawn: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._drawing = Lock()
        self.actions: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "model": self.describe,
            "scene": self.scene,
            "ask": self.ask,
            "separation": lambda body: panels.separation(self, body),
            "table": lambda body: panels.table(self, body),
            "plan": lambda body: panels.plan(self, body),
            "tree": lambda body: panels.tree(self, body),
            "messages": lambda body: panels.messages(self, body),
            "python": self.python,
            "save": self.save,
        }

    # ------------------------------------------------------------------------------------------ the model

    @cached_property
    def nodes(self) -> list[dict[str, Any]]:
        """Name, kind and states of every variable, with its parents."""
        out = []
        for var in self.model.vars:
            node: dict[str, Any] = {"name": var.name, "kind": _kind(var)}
            if var.is_discrete:
                node["states"] = list(var.states)
            out.append(node)
        return out

    @cached_property
    def edges(self) -> list[tuple[int, int]]:
        """Pairs of positions, (parent, child) in a directed model."""
        at = self.model.positions
        if isinstance(self.model, FactorGraph):
            pairs = self.model.to_markov_network().edges
        else:
            pairs = self.model.edges
        return [(at[a], at[b]) for a, b in pairs]

    def prior(self, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Beliefs before evidence of these variables, by default of all; each is asked for once."""
        wanted = list(self.model.variables if names is None else names)
        new = [name for name in wanted if name not in self._prior]
        if new:
            answer = self._query(self.model, new, {})
            self._prior.update({name: answer[name] for name in new})
        return {name: self._prior[name] for name in wanted}

    @property
    def known_prior(self) -> dict[str, Any]:
        """The beliefs before evidence that were asked for already."""
        return dict(self._prior)

    @cached_property
    def ranges(self) -> Ranges:
        """Where real-valued variables are drawn."""
        reals = [node["name"] for node in self.nodes if node["kind"] in ("real", "circle")]
        return Ranges(self.prior(name for name in reals if not is_circle(self.model.var(name))))

    @property
    def large(self) -> bool:
        """Whether only neighborhoods are drawn."""
        return len(self.nodes) > drawing.COMPACT_NODES

    def describe(self, body: dict[str, Any]) -> dict[str, Any]:
        """What the page needs first: variables, abilities, the first scene, and the answer to the case that the page
        begins with, where it sends one."""
        can, cannot = panels.abilities(self)
        found: dict[str, Any] = {
            "kind": self.kind,
            "title": self.title,
            "directed": self.directed,
            "size": [len(self.nodes), len(self.edges)],
            "names": [node["name"] for node in self.nodes],
            "density": not self.model.is_discrete,
            "large": self.large,
            "can": can,
            "cannot": cannot,
            "target": self._first_target(),
            "formats": panels.formats(self.model),
        }
        center = body.get("center")
        center = center if center in self.model.positions else found["target"]
        found["scene"] = self.scene({"center": center})
        if "case" in body:
            show = [*dict.fromkeys([*(node["name"] for node in found["scene"]["nodes"]), center])]
            found["answer"] = self.request("ask", {"case": body["case"], "show": show if self.large else None})
        return found

    def prepare(self) -> None:
        """Draw the first scene before somebody looks."""
        self.describe({"case": []})

    def _first_target(self) -> str:
        """A variable that many lead to and few come from: the last of the leaves, or the first variable."""
        if self.directed and not self.large:
            order = self.model.topological_order()
            leaves = set(self.model.leaves)
            found = [name for name in order if name not in leaves and self.model.parents(name)]
            return found[len(found) // 2] if found else order[0]
        return self.nodes[0]["name"]

    def scene(self, body: dict[str, Any]) -> dict[str, Any]:
        """Nodes, positions and beliefs before evidence: of the whole model, or around a variable of a large one."""
        center = str(body.get("center")) if self.large else ""
        with self._drawing:  # a second page waits for what the first one has begun
            found = self._drawn.pop(center, None)
            self._drawn[center] = found = self._scene(center) if found is None else found
            while len(self._drawn) > KEPT_SCENES:
                self._drawn.popitem(last=False)
        return found

    def _scene(self, center: str) -> dict[str, Any]:
        keep = self._near(center) if self.large else list(range(len(self.nodes)))
        place = {v: i for i, v in enumerate(keep)}
        nodes = [self._node(v) for v in keep]
        edges = [(place[a], place[b]) for a, b in self.edges if a in place and b in place]
        names = [node["name"] for node in nodes]
        prior = self._beliefs(self.prior(names), names, Case())
        out: dict[str, Any] = {"nodes": nodes, "edges": edges, "prior": prior, "order": self._order(keep)}
        if len(nodes) <= drawing.BAR_NODES:
            out["full"] = drawing.draw(nodes, edges, directed=self.directed, full=True)
        out["compact"] = drawing.draw(nodes, edges, directed=self.directed, full=False)
        for node in nodes:
            if node["kind"] == "discrete":
                node["size"] = list(drawing.bar_size(node))
                node["labels"] = drawing._labels(node, node["size"][0])
            else:
                node["size"] = list(drawing.bar_size(node))
        return out

    def _node(self, v: int) -> dict[str, Any]:
        node = dict(self.nodes[v])
        if node["kind"] == "real":
            node["range"] = list(self.ranges.ends[node["name"]])
        if self.directed:
            node["parents"] = list(self.model.parents(node["name"]))
        node["blanket"] = list(self.model.markov_blanket(node["name"])) if not self.large else []
        return node

    def _order(self, keep: list[int]) -> list[int]:
        """Positions in the scene in topological order: how arrow keys walk."""
        place = {v: i for i, v in enumerate(keep)}
        if not self.directed:
            return list(range(len(keep)))
        at = self.model.positions
        return [place[at[name]] for name in self.model.topological_order() if at[name] in place]

    def _near(self, center: str) -> list[int]:
        """The variable, and those up to two steps away, nearest and best connected first."""
        start = self.model.index(center)
        near: list[list[int]] = [[] for _ in self.nodes]
        for a, b in self.edges:
            near[a].append(b)
            near[b].append(a)
        found, ring = [start], [start]
        for _ in range(2):
            following = sorted({w for v in ring for w in near[v]} - set(found), key=lambda w: (-len(near[w]), w))
            ring = following[: drawing.NEAR_NODES - len(found)]
            found += ring
        return sorted(found)

    # ------------------------------------------------------------------------------------------ questions

    def case(self, body: dict[str, Any], key: str = "case") -> Case:
        """The findings of a request."""
        return read_case(self.model, body.get(key) or [])

    def under(self, case: Case) -> Any:
        """The model with what was set cut from its causes."""
        if not case.do:
            return self.model
        if not self.directed:
            raise OptionError("setting a variable needs arrows, and this model has none")
        key = tuple(sorted(case.do.items()))
        with self._lock:
            found = self._done.pop(key, None)
            if found is None:
                found = self.model.do(case.do)
            self._done[key] = found
            while len(self._done) > KEPT_MODELS:
                self._done.popitem(last=False)
        return found

    def _query(self, model: Any, names: Any, evidence: dict[str, Any]) -> Any:
        options = {} if model.kind in ("tables", "gaussian", "mixed", "cells") else {"random_state": 0}
        return model.query(names, evidence, **options)

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """Beliefs of the shown variables, log p(e), how they were found, and whether the findings disagree."""
        case = self.case(body)
        show = body.get("show")
        names = list(self.model.variables) if show is None else [self.model.var(str(name)).name for name in show]
        model = self.under(case)
        free = [name for name in names if name not in case.hard]
        try:
            answer = self._query(model, free, case.evidence)
        except ImpossibleEvidenceError as error:
            clash = [name for name in error.conflict if name in case.evidence or name in case.do]
            if len(self.nodes) <= QUICK:
                clash = self._smallest(model, case, clash)
            texts = case.texts(clash or None)
            return {
                "impossible": list(clash),
                "text": f"These cannot all hold: {', '.join(texts)}. Nothing was changed.",
            }
        except BudgetError as error:
            return {"budget": str(error)}
        out = {
            "beliefs": self._beliefs(answer, names, case),
            "log_evidence": float(answer.log_evidence),
            "engine": answer.engine,
            "exact": bool(answer.exact),
            "reason": answer.reason,
        }
        if len(self.nodes) <= QUICK:
            out |= self.disagreement(model, case)
        if self.model.is_discrete and len(self.nodes) <= panels.MESSAGE_NODES:
            out["no_messages"] = panels.no_messages(self, model, case.evidence)
        return out

    def _smallest(self, model: Any, case: Case, names: list[str]) -> list[str]:
        """Findings that clash, none of which can be left out: tried one by one; what was set is kept."""
        found = {name: case.evidence[name] for name in (names or case.evidence) if name in case.evidence}
        if model.log_evidence(found) > float("-inf"):
            found = dict(case.evidence)
        for name in list(found):
            less = {other: value for other, value in found.items() if other != name}
            if less and model.log_evidence(less) == float("-inf"):
                found = less
        return [*found, *case.do]

    def disagreement(self, model: Any, case: Case) -> dict[str, Any]:
        """The conflict of the findings, and the one that pulls most against the others."""
        if len(case.evidence) < 2:
            return {"conflict": 0.0, "against": None}
        found = model.conflict(case.evidence)
        return {"conflict": float(found), "against": found.against}

    def _beliefs(self, answer: Any, names: list[str], case: Case) -> dict[str, Any]:
        hard = case.hard
        out: dict[str, Any] = {}
        for name in names:
            var = self.model.var(name)
            if name not in hard:
                out[name] = belief_of(var, answer[name], self.ranges)
            elif var.is_discrete:
                out[name] = [float(state == hard[name]) for state in var.states]
            else:
                out[name] = {"value": float(hard[name])}
        return out

    # ------------------------------------------------------------------------------------------ out of the page

    def python(self, body: dict[str, Any]) -> dict[str, Any]:
        """The case as a program."""
        target = body.get("target")
        return {"text": self.case(body).to_python(self.source, target if isinstance(target, str) else None)}

    def save(self, body: dict[str, Any]) -> dict[str, Any]:
        """The model as the text of a file."""
        return panels.save(self.model, str(body.get("format")))

    def request(self, name: str, body: dict[str, Any], waiting: Waiting = always) -> dict[str, Any]:
        """The answer to one question of the page; what the library refuses comes back as `error`."""
        try:
            if name in panels.PANELS:
                return panels.PANELS[name](self, body, waiting)
            return self.actions[name](body)
        except GramGraphError as error:
            return {"error": str(error)}


def _kind(var: Any) -> str:
    if var.is_discrete:
        return "discrete"
    if is_circle(var):
        return "circle"
    return (
        "real" if getattr(var, "dimension", 0) == 1 and type(var.domain).__name__ in ("Real", "Positive") else "other"
    )
