"""Ising models with an unknown graph: sparse logistic regressions along a path of penalties, joined by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._interrupt import check_interrupt, interruptible
from gramgraph._progress import Progress, Report, reporting
from gramgraph._validation import check_count
from gramgraph.data.columns import CodedTable, code_table
from gramgraph.data.stream import is_stream, read_labels
from gramgraph.exceptions import ModelError, OptionError, VariableError, listing
from gramgraph.factors import TableFactor
from gramgraph.learn.log_linear import fit_markov_network
from gramgraph.models import MarkovNetwork
from gramgraph.typing import Array, FloatArray, IntArray

#: Cases whose residuals are held at a time, by their number of numbers.
NUMBERS = 1 << 24
#: A regression stops when its criterion has risen so often in a row.
PATIENCE = 3
#: How often columns may enter at one penalty; more rounds only chase the rounding of single precision.
ROUNDS = 10
#: A pull on refitted couplings that keeps separable data finite and is too small to be seen elsewhere.
RIDGE = 1e-6
SPIN_PRODUCT = np.array([[1.0, -1.0], [-1.0, 1.0]])


@dataclass(frozen=True, eq=False)
class IsingPath:
    """What the regressions found: `neighbors[v]` of each variable at its best penalty, and the path behind it.

    Parameters
    ----------
    names : of the variables.
    penalties : (steps,) from large to small.
    scores : (variables, steps) extended BIC, NaN where a regression had stopped.
    chosen : (variables,) the step with the smallest score.
    neighbors : of each variable.
    n_edges : (steps,) edges when every variable stands at this step.
    edges : after the rule.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 200)
    >>> b = np.where(rng.random(200) < 0.9, a, 1 - a)
    >>> net = learn_ising({"a": a, "b": b, "c": rng.integers(0, 2, 200)})
    >>> net.edges
    (('a', 'b'),)
    """

    names: tuple[str, ...]
    penalties: FloatArray  # (steps,) from large to small
    scores: FloatArray  # (variables, steps) EBIC, NaN where a regression had stopped
    chosen: IntArray  # (variables,) the step with the smallest score
    neighbors: tuple[tuple[int, ...], ...]
    n_edges: IntArray  # (steps,) edges when every variable stood at this step
    edges: tuple[tuple[str, str], ...]  # after the rule

    def to_frame(self) -> Any:
        """One row a penalty: edges, and the mean score."""
        import pandas as pd

        alive = (~np.isnan(self.scores)).sum(axis=0)
        mean = np.nansum(self.scores, axis=0) / np.maximum(alive, 1)
        return pd.DataFrame({"penalty": self.penalties, "edges": self.n_edges, "variables": alive, "mean_ebic": mean})


def learn_ising(
    data: Any,
    *,
    gamma: float = 0.5,
    rule: str = "and",
    penalties: Sequence[float] | None = None,
    n_penalties: int = 20,
    max_degree: int = 50,
    weights: Any = None,
    l2: float = 0.0,
    progress: Progress = False,
) -> MarkovNetwork:
    """An Ising model, graph and couplings, from columns with two states each.

    Every variable is regressed on all others by logistic regression with an L1 penalty, along a path of penalties from
    the first at which anything enters, each fit started at the last. The penalty of each variable is the one with the
    smallest extended BIC of its refitted support, -2 log L + k log N + 2 gamma k log(p - 1). An edge is kept when both
    ends chose it (`rule="and"`) or one did ("or"). Fields and couplings of the graph that results are then learned
    together by pseudo-likelihood, with `l2` on demand.

    Parameters
    ----------
    penalties : the path, if not `n_penalties` of equal ratio down to 0.5 √(log p / N).
    max_degree : regressions stop when they have more neighbors than this.
    data : a frame, a dict of columns, a path or a stream.
    gamma : of the extended BIC.
    rule : "and" or "or": whether both regressions must find an edge.
    n_penalties : how many.
    weights : of the rows; None for equal ones.
    l2 : a quadratic penalty beside.
    progress : True shows how far it is, or a function of (done, total).

    Notes
    -----
    The answer is a network with p(x) ∝ exp(Σ h_i x_i + Σ J_ij x_i x_j), x = -1 for the first state of a column and +1
    for the second; `fit_report` holds h and J by name, and the path in `details["path"]`. Cost: a product of matrices
    (p, N) × (N, p) for each penalty.

    Examples
    --------
    >>> import gramgraph as gg
    >>> frame = gg.models.ising_grid(3, 3, coupling=0.5).sample(3000, random_state=0)
    >>> net = gg.learn.learn_ising(frame)
    >>> set(net.edges) == set(gg.models.ising_grid(3, 3).edges)
    True
    """
    if rule not in ("and", "or"):
        raise OptionError(f'rule is "and" (both ends chose an edge) or "or" (one did), not {rule!r}')
    if not (isinstance(gamma, (int, float)) and 0 <= gamma <= 1):
        raise OptionError(f"gamma is a number from 0 (BIC) to 1, not {gamma!r}")
    table = _read(data, weights)
    spins = (2 * table.matrix - 1).astype(np.int8)
    w = np.ones(1) if table.weights is None else table.weights
    search = _Search(spins, w, table.total, float(gamma), int(max_degree))
    path = search.path(penalties, n_penalties)
    with reporting(progress, len(path)) as report:
        search.run(path, report)
    found = search.result(table.names, rule)
    start = _network(table, [(table.position(a), table.position(b)) for a, b in found.edges])
    frame = {name: table.columns[v] for v, name in enumerate(table.names)}
    made, fitted = fit_markov_network(
        start, _labels(table, frame), method="pseudo_likelihood", max_iter=None, tol=1e-6, random_state=None,
        progress=False, l1=0.0, l2=l2, equivalent_sample_size=0.0, weights=table.weights, missing="error", options={},
    )  # fmt: skip
    fitted.details["path"] = found
    made.fit_report = fitted
    return made


def _labels(table: CodedTable, columns: dict[str, Array]) -> Any:
    import pandas as pd

    return pd.DataFrame(
        {
            var.name: pd.Categorical.from_codes(columns[var.name], list(var.states))
            for var in table.variables
        }
    )  # fmt: skip


def _read(data: Any, weights: Any) -> CodedTable:
    table = code_table(read_labels(data) if is_stream(data) else data, weights=weights)
    if len(table.variables) < 2:
        raise VariableError("an Ising model needs at least two columns")
    if not len(table) or table.total <= 0:
        raise VariableError("there are no rows to learn from")
    wide = [f"{var.name} ({var.size})" for var in table.variables if var.size > 2]
    if wide:
        raise ModelError(
            f"an Ising model has two states per variable; more are in {listing(wide, 6)}. Merge states, or write the "
            "graph and learn its tables: gg.MarkovNetwork(edges=…).fit(data)"
        )
    still = [
        var.name for var, column in zip(table.variables, table.columns, strict=True)
        if var.size < 2 or len(np.unique(column[column >= 0])) < 2
    ]  # fmt: skip
    if still:
        raise VariableError(f"columns that never change say nothing of others: drop {listing(still, 6)}")
    if table.has_missing:
        raise VariableError("learn_ising needs complete rows: drop or fill missing cells (frame.dropna())")
    return table


def _network(table: CodedTable, edges: list[tuple[int, int]]) -> MarkovNetwork:
    variables = table.variables
    factors = [TableFactor((var,), np.ones(2)) for var in variables]
    factors += [TableFactor((variables[a], variables[b]), np.ones((2, 2))) for a, b in edges]
    return MarkovNetwork.from_parts(variables, factors, name="ising")


class _Search:
    """All regressions, moving down the path together so that gradients come from one product of matrices."""

    def __init__(self, spins: Array, weights: FloatArray, total: float, gamma: float, max_degree: int) -> None:
        self.spins, self.weights, self.total = spins, weights, total
        self.gamma, self.max_degree = gamma, max_degree
        self.p, self.n = spins.shape
        self.active = [np.zeros(0, np.int64) for _ in range(self.p)]
        self.beta = [np.zeros(1) for _ in range(self.p)]
        self.supports: list[list[tuple[int, ...]]] = [[] for _ in range(self.p)]
        self.scores: list[list[float]] = [[] for _ in range(self.p)]
        self._refitted: list[dict[tuple[int, ...], float]] = [{} for _ in range(self.p)]
        for v in range(self.p):
            self._fit(v, 0.0)
        self.gradient = self._gradients(list(range(self.p)))

    def path(self, penalties: Sequence[float] | None, n_penalties: int) -> FloatArray:
        """The penalties from large to small."""
        if penalties is not None:
            given = np.sort(np.asarray(penalties, np.float64))[::-1]
            if given.ndim != 1 or not len(given) or not np.isfinite(given).all() or given[-1] <= 0:
                raise OptionError("penalties are positive numbers")
            return given
        check_count("n_penalties", n_penalties, 2)
        top = max(float(np.abs(self.gradient).max()), 1e-6)
        low = min(0.5 * np.sqrt(np.log(max(self.p, 3)) / self.n), 0.5 * top)
        return np.geomspace(top * (1 - 1e-9), low, int(n_penalties))

    @interruptible()
    def run(self, path: FloatArray, report: Report | None = None) -> None:
        """Follow the path; Ctrl-C keeps what the larger penalties gave."""
        alive = list(range(self.p))
        self.taken = path
        try:
            for step, penalty in enumerate(path):
                self._step(alive, float(penalty))
                for v in alive:
                    self._judge(v)
                alive = [v for v in alive if not self._stopped(v)]
                if report is not None:
                    report(step + 1)
                if not alive:
                    break
        except KeyboardInterrupt:
            if not self.scores[-1]:
                raise

    def _step(self, alive: list[int], penalty: float) -> None:
        """Solve at this penalty: fit on the columns in use, look for others whose gradient is too large, repeat."""
        todo = list(alive)
        for _ in range(ROUNDS):
            for v in todo:
                check_interrupt()
                new = np.flatnonzero(self._over(v, penalty))
                self.active[v] = np.concatenate([self.active[v], new])
                self.beta[v] = np.concatenate([self.beta[v], np.zeros(len(new))])
                self._fit(v, penalty)
            self.gradient[todo] = self._gradients(todo)
            todo = [v for v in todo if self._over(v, penalty).any()]
            if not todo:
                break

    def _over(self, v: int, penalty: float) -> Array:
        """Columns outside the regression whose gradient the penalty does not hold."""
        over = np.abs(self.gradient[v]) > penalty * (1 + 1e-4)
        over[self.active[v]] = False
        return over

    def _fit(self, v: int, penalty: float) -> None:
        from gramgraph._numerics.undirected.nodewise import node_fit

        node_fit(self.spins, v, self.active[v], self.weights, penalty, 0.0, self.beta[v])
        kept = self.beta[v][1:] != 0
        self.active[v] = self.active[v][kept]
        self.beta[v] = np.concatenate([self.beta[v][:1], self.beta[v][1:][kept]])

    def _gradients(self, nodes: list[int]) -> Array:
        """(nodes, p): the mean of residual · spin, in single precision, block by block of the cases."""
        from gramgraph._numerics.undirected.nodewise import residuals

        ptr = np.concatenate([[0], np.cumsum([len(self.active[v]) for v in nodes])]).astype(np.int64)
        idx = np.concatenate([self.active[v] for v in nodes]).astype(np.int64) if nodes else np.zeros(0, np.int64)
        beta = np.concatenate([self.beta[v][1:] for v in nodes]) if nodes else np.zeros(0)
        intercept = np.array([self.beta[v][0] for v in nodes])
        out = np.zeros((len(nodes), self.p), np.float32)
        block = max(NUMBERS // max(len(nodes) + self.p, 1), 64)
        for begin in range(0, self.n, block):
            stop = min(begin + block, self.n)
            rest = np.empty((len(nodes), stop - begin), np.float32)
            residuals(self.spins, begin, stop, np.array(nodes, np.int64), ptr, idx, intercept, beta, self.weights, rest)
            out += rest @ self.spins[:, begin:stop].astype(np.float32).T
        out[np.arange(len(nodes)), nodes] = 0.0  # nobody explains itself
        return out / np.float32(self.total)

    def _judge(self, v: int) -> None:
        """The extended BIC of the support, refitted without the penalty."""
        from gramgraph._numerics.undirected.nodewise import node_fit

        support = tuple(np.sort(self.active[v]).tolist())
        known = self._refitted[v]
        if support not in known:
            columns = np.array(support, np.int64)
            loss = node_fit(self.spins, v, columns, self.weights, 0.0, RIDGE, np.zeros(len(support) + 1))
            k = len(support)
            extra = k * np.log(self.total) + 2 * self.gamma * k * np.log(max(self.p - 1, 1))
            known[support] = 2 * self.total * loss + extra
        self.supports[v].append(support)
        self.scores[v].append(known[support])

    def _stopped(self, v: int) -> bool:
        scores = self.scores[v]
        worse = len(scores) > PATIENCE and min(scores[-PATIENCE:]) > min(scores)
        return worse or len(self.active[v]) > min(self.max_degree, self.n // 2)

    def result(self, names: tuple[str, ...], rule: str) -> IsingPath:
        """Join the neighborhoods."""
        steps = max(map(len, self.scores))
        scores = np.full((self.p, steps), np.nan)
        for v, found in enumerate(self.scores):
            scores[v, : len(found)] = found
        chosen = np.nanargmin(scores, axis=1)
        neighbors = tuple(self.supports[v][chosen[v]] for v in range(self.p))
        counts = [
            len(_join([self.supports[v][min(step, len(self.supports[v]) - 1)] for v in range(self.p)], rule))
            for step in range(steps)
        ]
        edges = tuple((names[a], names[b]) for a, b in _join(neighbors, rule))
        return IsingPath(names, self.taken[:steps], scores, chosen, neighbors, np.array(counts), edges)


def _join(neighbors: Sequence[tuple[int, ...]], rule: str) -> list[tuple[int, int]]:
    sets = [set(found) for found in neighbors]
    votes: dict[tuple[int, int], int] = {}
    for v, found in enumerate(neighbors):
        for u in found:
            votes[min(u, v), max(u, v)] = (v in sets[u]) + (u in sets[v])
    needed = 2 if rule == "and" else 1
    return sorted(edge for edge, number in votes.items() if number >= needed)
