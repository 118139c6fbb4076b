"""Dirichlet–categorical models as counts: with the probability vectors integrated out, states are drawn from urns.

Every discrete member is a site. It draws its state from a row: a Dirichlet vector (an urn: each draw adds a ball of its
color), or known probabilities (an urn that never changes). Which row it is may depend on the states of other sites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.models.plated.template import Node, Ref
from gramgraph.questions.plate_question import PlateQuestion
from gramgraph.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CountModel:
    """Sites in topological order, rows with their weights, and how the one chooses the other."""

    sizes: IntArray  # (sites,) number of states
    value: IntArray  # (sites,) observed state, -1 where it is not known
    table: IntArray  # (sites,) start of the site's list of rows in `choice`
    choice: IntArray  # rows, by combined states of the parents
    ptr: IntArray  # (sites + 1,) parents of a site: idx[ptr[s]:ptr[s + 1]], with their strides
    idx: IntArray
    stride: IntArray
    offset: IntArray  # (rows + 1,) cells of a row
    alpha: FloatArray  # (cells,) weights; probabilities of a row that is known
    step: FloatArray  # (rows,) 1 for an urn, 0 for known probabilities
    log_constant: float  # what observed parameters and coefficients of counts add to log p
    sites: dict[str, tuple[int, int]]  # variable → first site, and one past its last
    rows: dict[str, tuple[int, int]]  # parameter → first row, and one past its last

    @property
    def totals(self) -> FloatArray:
        """Sum of the weights of each row."""
        return np.add.reduceat(self.alpha, self.offset[:-1]) if len(self.offset) > 1 else np.zeros(0)

    @property
    def hidden(self) -> IntArray:
        """Sites whose state is not known."""
        return np.flatnonzero(self.value < 0)

    @property
    def configurations(self) -> float:
        """Number of combinations of states of the hidden sites."""
        with np.errstate(over="ignore"):
            return float(np.exp(np.log(self.sizes[self.hidden]).sum()))

    def children(self) -> tuple[IntArray, IntArray]:
        """Sites whose row depends on a site: pointers and sites."""
        parent = self.idx
        child = np.repeat(np.arange(len(self.sizes)), np.diff(self.ptr))
        order = np.argsort(parent, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=len(self.sizes)))])
        return ptr.astype(np.int64), child[order].astype(np.int64)


class Found:
    """What an engine on urns has found: log p(evidence), moments of all cells, and tables of hidden sites."""

    def __init__(
        self, log_evidence: float, cells: tuple[FloatArray, FloatArray], exact: bool, details: dict[str, Any]
    ) -> None:
        self.log_evidence, self.cells, self.exact, self.details = log_evidence, cells, exact, details

    def table(self, sites: tuple[int, ...]) -> FloatArray:
        """Joint probabilities of hidden sites."""
        raise NotImplementedError

    def joint(self, model: CountModel, sites: list[int]) -> FloatArray:
        """Joint probabilities of any sites, observed ones and the same one twice included."""
        free = tuple(dict.fromkeys(s for s in sites if model.value[s] < 0))
        table = self.table(free)
        out = np.zeros([model.sizes[s] for s in sites])
        for at in np.ndindex(*(int(model.sizes[s]) for s in free)):
            state = dict(zip(free, at, strict=True))
            out[tuple(int(state.get(s, model.value[s])) for s in sites)] += table[at]
        return out

    def marginals(self, model: CountModel, first: int, last: int) -> FloatArray:
        """Probabilities of each of a run of sites with the same states, (sites, states)."""
        size = int(model.sizes[first]) if last > first else 0
        out = np.eye(size)[np.maximum(model.value[first:last], 0)] if size else np.zeros((0, 0))
        for s in range(first, last):
            if model.value[s] < 0:
                out[s - first] = self.table((s,))
        return out


class _Builder:
    """Collects rows and sites, variable by variable."""

    def __init__(self, question: PlateQuestion) -> None:
        self.q, self.layout, self.nodes = question, question.layout, question.model.template.nodes
        self.alpha: list[FloatArray] = []
        self.widths: list[IntArray] = []
        self.steps: list[FloatArray] = []
        self.n_rows = self.n_sites = self.n_choice = 0
        self.parts: list[dict[str, Any]] = []
        self.log_constant = 0.0
        self.sites: dict[str, tuple[int, int]] = {}
        self.rows: dict[str, tuple[int, int]] = {}

    def add_rows(self, weights: FloatArray, step: FloatArray) -> int:
        """Rows of one width, (rows, states); the number of the first."""
        start = self.n_rows
        self.alpha.append(weights.ravel())
        self.widths.append(np.full(len(weights), weights.shape[1]))
        self.steps.append(np.broadcast_to(step, (len(weights),)).astype(np.float64))
        self.n_rows += len(weights)
        return start

    def parameter(self, node: Node) -> None:
        """A Dirichlet or Beta variable: urns, or known probabilities where it is observed."""
        n = self.layout.count(node.name)
        weights = prior_weights(node, n)
        step = np.ones(n)
        seen = self.q.observed.get(node.name)
        if seen is not None and n:
            known = ~self.q.hidden(node.name)
            p = np.hstack([1.0 - seen, seen]) if node.form == "beta" else seen
            self.log_constant += _log_dirichlet(weights[known], p[known])
            weights = np.where(known[:, None], p, weights)
            step[known] = 0.0
        start = self.add_rows(weights, step)
        self.rows[node.name] = (start, start + n)

    def site(self, node: Node) -> None:
        """A discrete variable: its rows, and which states choose among them."""
        n, size = self.layout.count(node.name), node.var.size
        refs: list[str] = []
        if node.form == "given":
            row = self.add_rows(np.ones((1, size)), np.zeros(1))
            choice = np.full((n, 1), row)
        elif node.form == "table":
            table = np.asarray(node.arguments["table"])
            row = self.add_rows(table.reshape(-1, size), np.zeros(table.size // size))
            refs = [ref.name for ref in node.refs]
            choice = np.broadcast_to(row + np.arange(table.size // size), (n, table.size // size))
        else:
            choice, refs = self.choices(node, n, size)
        value = self.q.observed.get(node.name)
        value = np.full(n, -1) if value is None else value
        self.sites[node.name] = (self.n_sites, self.n_sites + n)
        self.add_sites(node, n, size, value, choice, refs)

    def choices(self, node: Node, n: int, size: int) -> tuple[IntArray, list[str]]:
        """Rows of a variable that is drawn from probabilities, (n, combinations), and the names of what chooses."""
        given = node.arguments["probabilities"]
        if not isinstance(given, Ref):
            p = np.atleast_1d(given)
            p = np.array([1.0 - p[0], p[0]]) if node.form == "bernoulli" else p
            return np.full((n, 1), self.add_rows(p[None], np.zeros(1))), []
        start = self.rows[given.name][0]
        found = self.layout.parent(node, given)
        return found.reshape(n, int(np.prod(found.shape[1:]))) + start, list(given.by)

    def add_sites(self, node: Node, n: int, size: int, value: Any, choice: IntArray, refs: list[str]) -> None:
        if n and choice.shape[1] > 1:
            distinct, which = np.unique(choice, axis=0, return_inverse=True)
        else:
            distinct, which = choice, np.arange(n)
        strides = np.ones(len(refs), dtype=np.int64)
        sizes = [self.nodes[r].var.size for r in refs]
        for i in range(len(refs) - 2, -1, -1):
            strides[i] = strides[i + 1] * sizes[i + 1]
        parents = [self.sites[r][0] + self.layout.parent(node, Ref(r)) for r in refs]
        self.parts.append(
            {
                "sizes": np.full(n, size),
                "value": value,
                "table": self.n_choice + which.reshape(-1) * choice.shape[1],
                "choice": distinct.ravel(),
                "degree": np.full(n, len(refs)),
                "idx": np.column_stack(parents).ravel() if refs else np.zeros(0, dtype=np.int64),
                "stride": np.tile(strides, n),
            }
        )
        self.n_sites += n
        self.n_choice += distinct.size

    def counts(self, node: Node) -> None:
        """Observed counts are that many draws, and the number of orders in which they can come."""
        from scipy.special import gammaln

        if self.q.hidden(node.name).any():
            raise ModelError(f"{node.name}: counts that are not observed have no urns")
        x = self.q.observed[node.name].astype(np.int64)
        n, size = x.shape
        self.log_constant += float((gammaln(x.sum(axis=1) + 1.0) - gammaln(x + 1.0).sum(axis=1)).sum())
        choice, refs = self.choices(node, n, size)
        owner = np.repeat(np.arange(n), x.sum(axis=1))
        value = np.repeat(np.tile(np.arange(size), n), x.ravel())
        parents = [(self.sites[r][0] + self.layout.parent(node, Ref(r)))[owner] for r in refs]
        before = len(self.parts)
        self.add_sites(node, 0, size, np.zeros(0, dtype=np.int64), np.zeros((0, 1), dtype=np.int64), [])
        part = self.parts[before]
        strides = np.ones(len(refs), dtype=np.int64)
        for i in range(len(refs) - 2, -1, -1):
            strides[i] = strides[i + 1] * self.nodes[refs[i + 1]].var.size
        part.update(
            sizes=np.full(len(owner), size), value=value, table=self.n_choice + owner * choice.shape[1],
            choice=choice.ravel(), degree=np.full(len(owner), len(refs)), stride=np.tile(strides, len(owner)),
            idx=np.column_stack(parents).ravel() if refs else np.zeros(0, dtype=np.int64),
        )  # fmt: skip
        self.n_sites += len(owner)
        self.n_choice += choice.size

    def finish(self) -> CountModel:
        """The model in flat arrays."""

        def whole(key: str) -> IntArray:
            return np.concatenate([np.zeros(0), *(part[key] for part in self.parts)]).astype(np.int64)

        widths = np.concatenate([np.zeros(0), *self.widths]).astype(np.int64)
        return CountModel(
            sizes=whole("sizes"),
            value=whole("value"),
            table=whole("table"),
            choice=whole("choice"),
            ptr=np.concatenate([[0], np.cumsum(whole("degree"))]).astype(np.int64),
            idx=whole("idx"),
            stride=whole("stride"),
            offset=np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
            alpha=np.concatenate([np.zeros(0), *self.alpha]),
            step=np.concatenate([np.zeros(0), *self.steps]),
            log_constant=self.log_constant,
            sites=self.sites,
            rows=self.rows,
        )


def refusal(question: PlateQuestion) -> str:
    """Why a model is not a Dirichlet–categorical one, in words; nothing where it is."""
    for node in question.model.template.nodes.values():
        if node.form in ("dirichlet", "beta"):
            if node.refs:
                return f"{node.name} depends on {node.refs[0].name}"
        elif node.form == "multinomial":
            if question.hidden(node.name).any():
                return f"the counts {node.name} are not all observed"
        elif not node.var.is_discrete and node.form != "given":
            return f"{node.name} is {node.var!r}"
    return ""


def lower_counts(question: PlateQuestion) -> CountModel:
    """The question as urns; a `ModelError` that says which variable does not fit."""
    if why := refusal(question):
        raise ModelError(f"not a model of categories with Dirichlet (or Beta) probabilities: {why}")
    builder = _Builder(question)
    model = question.model
    order = [model.template.nodes[n] for n in model.topological_order() if n in model.template.nodes]
    for node in order:
        if node.form in ("dirichlet", "beta"):
            builder.parameter(node)
        elif node.form == "multinomial":
            builder.counts(node)
        elif node.var.is_discrete:
            builder.site(node)
    return builder.finish()


def prior_weights(node: Node, n: int) -> FloatArray:
    """Weights of a Dirichlet variable's states, (n, states); of a Beta variable those of failure and success."""
    if node.form == "beta":
        weights = np.array([float(np.asarray(node.arguments[w])) for w in ("b", "a")])
    else:
        weights = np.broadcast_to(np.asarray(node.arguments["alpha"]), (node.var.dimension,)).astype(np.float64)
    if not (weights > 0.0).all():
        raise ModelError(f"the weights of {node.name} must be positive; they are {weights.tolist()[:8]}")
    return np.broadcast_to(weights, (n, len(weights)))


def _log_dirichlet(alpha: FloatArray, p: FloatArray) -> float:
    from scipy.special import gammaln, xlogy

    return float((gammaln(alpha.sum(1)) - gammaln(alpha).sum(1) + xlogy(alpha - 1.0, p).sum(1)).sum())
