"""A case under study: observations come and go, and only what they touch is computed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._numerics.tree.columns import O_CLIQUE, O_COLUMNS, P_OUTPUTS
from gramgraph.answers import Answer
from gramgraph.compile.cache import MemoryPool
from gramgraph.compile.lower import lower
from gramgraph.compile.range import needs_logs
from gramgraph.compile.tree import plan_tree
from gramgraph.engines.exact.outputs import Outputs
from gramgraph.engines.exact.tree_runner import TreeRunner
from gramgraph.exceptions import VariableError, listing
from gramgraph.questions.reading import read, read_targets, refuse_soft

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel


class Session:
    """Beliefs of one case while its evidence changes.

    A new observation invalidates the messages from its clique to the root; a question recomputes those, and the way
    down to the cliques it reads. Everything else is reused. Not for use from several threads at once.

    >>> import gramgraph as gg
    >>> case = gg.datasets.asia().session()
    >>> case.observe(xray="yes")
    >>> before = case.query("lung")["lung"].prob("yes")
    >>> case.observe(smoke="no")
    >>> case.query("lung")["lung"].prob("yes") < before
    True
    """

    def __init__(self, model: GraphicalModel, *, memory: float | None = None) -> None:
        low = lower(model)
        self._model = model
        self._outputs = Outputs.of(model, tuple(range(low.n_visible)), (), ())
        masked = tuple(int(v) for v in np.flatnonzero(low.sizes[: low.n_visible] > 1))
        self._plan = plan_tree(
            low, masked=masked, wants=self._outputs.wants, columns=self._outputs.columns, memory=memory
        )
        self._plan.check_budget(memory)
        self._work = np.empty(TreeRunner(self._plan, MemoryPool()).memory_size)
        n = self._plan.n_cliques
        self._codes = np.full((1, max(len(masked), 1)), -1, np.int64)
        self._weights = np.ones((1, max(int(self._plan.tree.mask_offset[-1]), 1)))
        self._weighted = np.full(len(masked), -1, np.int64)
        self._dirty = np.ones(n, np.bool_)  # the message up is out of date
        self._stale = np.ones(n, np.bool_)  # the belief is out of date
        self._rebuild = np.zeros(n, np.uint8)  # the table holds a belief, not the product of what flows in
        self._rank = np.empty(n, np.int64)
        self._rank[self._plan.tree.topo] = np.arange(n)
        self._out = np.empty((1, self._outputs.width))
        self._log_z = np.zeros(1)
        self._row_of = {int(want[0]): row for row, want in enumerate(self._plan.in_tree)}
        self._constants: dict[int, float] = {}  # logs of what likelihoods were divided by, and of single states
        self._in_logs = needs_logs(low)  # then the model's own query answers
        self._given: dict[str, Any] = {}
        self.recomputed = 0  # cliques whose message or belief the last question computed

    @property
    def evidence(self) -> dict[str, Any]:
        """What is observed now, by name, as it was given."""
        return dict(self._given)

    def observe(self, evidence: Mapping[str, Any] | None = None, **named: Any) -> None:
        """Set observations; variables that are not named keep theirs. Values as in `query`, `Soft` excepted.

        None forgets what was observed, as `retract` does.
        """
        if evidence is not None and not isinstance(evidence, Mapping):
            raise VariableError(f"a session observes one case: a dict, or name=state, not {type(evidence).__name__}")
        news = {**(evidence or {}), **named}
        asked = {name: refuse_soft(self._model, read(self._model, [], {name: value})) for name, value in news.items()}
        for name, part in asked.items():
            if not part.observed and not part.likelihoods:  # not observed
                if name in self._given:
                    self.retract(name)
                continue
            self._given[name] = news[name]
            for v in part.observed:
                self._change(v, int(part.codes[0, 0]), None)
            for v, weight in part.likelihoods:
                self._change(v, -1, weight, part.log_scale)

    def __repr__(self) -> str:
        seen = listing((f"{name}={value}" for name, value in self._given.items()), 8)
        return f"Session of {self._model!r}: {seen or 'nothing observed'}"

    def retract(self, *names: str) -> None:
        """Forget observations (all of them, when no name is given)."""
        for name in names or tuple(self._given):
            self._change(self._model.index(name), -1, None)
            self._given.pop(name, None)

    def _change(self, v: int, code: int, weight: Any, scale: float = 0.0) -> None:
        self._constants[v] = scale
        slot = self._plan.slot_of.get(v)
        if slot is None:  # a variable with a single state: a likelihood of it is a constant
            return
        lo, hi = self._plan.tree.mask_offset[slot], self._plan.tree.mask_offset[slot + 1]
        same = self._codes[0, slot] == code and weight is None and self._weighted[slot] < 0
        if same:
            return
        self._codes[0, slot] = code
        self._weighted[slot] = -1 if weight is None else lo
        self._weights[0, lo:hi] = 1.0 if weight is None else weight
        parent = self._plan.tree.parent
        clique = int(self._plan.tree.mask_home[slot])
        while clique >= 0 and not self._dirty[clique]:
            self._dirty[clique] = True
            clique = int(parent[clique])
        self._stale[:] = True

    @property
    def log_evidence(self) -> float:
        """log p(observations)."""
        if not self._out_of_range():
            self._run([])
        if self._out_of_range() or not np.isfinite(self._log_z[0]):
            return float(self._model.log_evidence(self._given))
        return float(self._log_z[0]) + sum(self._constants.values())

    def query(self, targets: Any = None) -> Answer:
        """Beliefs in the targets (default: everything that is not observed) given what is observed now."""
        singles, joints = read_targets(self._model, targets)
        if joints:
            raise VariableError("a session answers single variables; for joint tables use query(…) of the model")
        wanted = range(len(self._model.vars)) if singles is None else singles
        if self._out_of_range():
            return self._model.query(targets, self._given)
        self._run([self._row_of[v] for v in wanted if v in self._row_of])
        if not np.isfinite(self._log_z[0]):  # impossible, which the model's own query says, or to be answered in logs
            return self._model.query(targets, self._given)
        marginals = {name: self._outputs.marginals[name] for name in (self._model.vars[v].name for v in wanted)}
        hidden: frozenset[str] = frozenset()
        if singles is None:
            seen = np.flatnonzero(self._codes[0, : len(self._plan.masked)] >= 0)
            hidden = frozenset(self._model.vars[self._plan.masked[slot]].name for slot in seen)
        out = self._out[0].copy()
        for var, start, stop in marginals.values():
            if var.size == 1:
                out[start:stop] = 1.0
        log_evidence = float(self._log_z[0]) + sum(self._constants.values())
        return Answer(marginals, out, log_evidence, engine="junction_tree", hidden=hidden)

    def _out_of_range(self) -> bool:
        """Whether the numbers of the model, or of the likelihoods observed now, are to be multiplied in logarithms."""
        if self._in_logs or not (self._weighted >= 0).any():
            return self._in_logs
        return needs_logs(self._plan.lowered, read(self._model, [], self._given))

    def _run(self, rows: list[int]) -> None:
        from gramgraph._numerics.tree.runner import again

        plan = self._plan
        p = plan.program
        outputs = np.ascontiguousarray(p.section(P_OUTPUTS, O_COLUMNS)[rows])
        needed = self._way_down(outputs[:, O_CLIQUE])
        collect = np.flatnonzero(self._dirty)
        collect = collect[np.argsort(-self._rank[collect])]
        down = needed[np.argsort(self._rank[needed])]
        again(
            collect, self._rebuild, down, outputs, p.ints, p.static, plan.lowered.values, self._codes,
            np.arange(len(plan.masked)), self._weighted, self._weights, p.log_scale, self._work, self._out, self._log_z,
        )  # fmt: skip
        self._dirty[:] = False
        self._stale[down] = False
        self.recomputed = len(collect) + len(down)

    def _way_down(self, cliques: Any) -> Any:
        """Cliques from the roots to the given ones whose beliefs are out of date."""
        mark = np.zeros(self._plan.n_cliques, np.bool_)
        for clique in cliques.tolist():
            while clique >= 0 and not mark[clique]:
                mark[clique] = True
                clique = int(self._plan.tree.parent[clique])
        return np.flatnonzero(mark & self._stale)
