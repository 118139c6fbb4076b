"""Tables of a network from data: maximum likelihood, Dirichlet priors, and the door to EM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._progress import Progress
from gramgraph.data.columns import DEFAULT_STATES, CodedTable, code_table, smallest_integer, with_states_of
from gramgraph.data.counts import Counts
from gramgraph.data.frames import read_frame
from gramgraph.data.stream import is_stream, stream_counts, stream_names
from gramgraph.exceptions import OptionError, StateError, VariableError, did_you_mean
from gramgraph.learn.normalized import tables_from
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.learn.em import EMReport


def fit(
    net: BayesianNetwork,
    data: Any,
    *,
    prior: Any = None,
    equivalent_sample_size: float = 10.0,
    weights: Any = None,
    max_iter: int = 200,
    tol: float = 1e-5,
    restarts: int = 1,
    random_state: RandomState = None,
    client: Any = None,
    progress: Progress = False,
    method: str = "em",
    n_jobs: int = 1,
) -> tuple[BayesianNetwork, EMReport | None]:
    """A network with the same graph and tables learned from `data`; see `BayesianNetwork.fit`."""
    found = count_cases(net, data, weights=weights, client=client, progress=progress)
    variables = found.variables
    if not found.total > 0:
        raise VariableError("there are no rows to learn from")
    extra = pseudo_counts(net, variables, prior, equivalent_sample_size)
    if found.has_missing and method == "mcem":
        from gramgraph.learn.monte_carlo_em import fit_mcem

        return fit_mcem(
            net, found.to_table(), extra, max_iter=max_iter, tol=tol, random_state=random_state, progress=progress
        )
    if found.has_missing:
        from gramgraph.learn.em import fit_em

        return fit_em(
            net, found.to_table(), extra, max_iter=max_iter, tol=tol, restarts=restarts, random_state=random_state,
            n_jobs=n_jobs, progress=progress,
        )  # fmt: skip
    return tables_from(net, variables, add_up(family_counts(net, found), extra)), None


def family_counts(net: BayesianNetwork, counts: Counts | _Recoded) -> list[Any]:
    """How often each state of a variable occurs with each configuration of its parents, for every variable."""
    families = [(*net.parent_positions[v], v) for v in range(len(net.vars))]
    counts.prefetch(families)
    return [counts.table(family) for family in families]


def add_up(counts: list[Any], extra: list[FloatArray]) -> list[Any]:
    """Counts with pseudo-counts."""
    return [found + more for found, more in zip(counts, extra, strict=True)]


def count_cases(
    net: BayesianNetwork, data: Any, *, weights: Any = None, client: Any = None, progress: Progress = False
) -> Counts | _Recoded:
    """The counts of a network's variables in a frame, a file, a stream or a Dask frame."""
    if not is_stream(data):
        return Counts(read_cases(net, data, weights))
    if weights is not None:
        raise OptionError("weights are for frames in memory, not for files and streams")
    names = stream_names(data)
    seen = [name for name in net.variables if name in names]
    if not seen:
        hint = did_you_mean(names[0], net.variables) if names else ""
        raise VariableError(f"no column of the data is a variable of the network.{hint}")
    declared = tuple(name for name in seen if not is_open(net, net.index(name)))
    return _Recoded(net, stream_counts(data, columns=seen, declared=declared, client=client, progress=progress))


class _Recoded:
    """Counts of a stream in the variables and states of a network; those without a column are hidden."""

    def __init__(self, net: BayesianNetwork, counts: Counts) -> None:
        self._counts = counts
        self._at = [counts.names.index(name) if name in counts.names else -1 for name in net.variables]
        self.variables = tuple(self._variable(net, v) for v in range(len(self._at)))
        self._states = [self._places(v) for v in range(len(self._at))]
        self.total = counts.total
        self.has_missing = min(self._at) < 0 or counts.has_missing

    def _variable(self, net: BayesianNetwork, v: int) -> Var:
        """The variable, with the states of its column where it has neither a table nor labels of its own."""
        var, at = net.vars[v], self._at[v]
        if at < 0 or not is_open(net, v):
            return var
        fits = all(var.discrete.find(label) >= 0 for label in self._counts.labels[at])
        return var if fits else self._counts.variables[at]

    def _places(self, v: int) -> Any:
        """The state of the network for each of the column, -1 for a label that never occurs."""
        var, at = self.variables[v], self._at[v]
        if at < 0:
            return np.zeros(0, np.int64)
        places = np.array([var.discrete.find(label) for label in self._counts.labels[at]], np.int64)
        for i in np.flatnonzero(places < 0):
            if self._counts.table((at,))[i]:
                raise StateError.unknown(self._counts.labels[at][i], var.name, var.states)
        return places

    def prefetch(self, families: list[tuple[int, ...]]) -> None:
        self._counts.prefetch([[self._at[v] for v in family] for family in families])

    def table(self, family: tuple[int, ...]) -> Any:
        found = self._counts.table([self._at[v] for v in family])
        used = [np.flatnonzero(self._states[v] >= 0) for v in family]
        out = np.zeros([self.variables[v].size for v in family], np.int64)
        out[np.ix_(*(self._states[v][i] for v, i in zip(family, used, strict=True)))] = found[np.ix_(*used)]
        return out

    def to_table(self) -> CodedTable:
        rows = self._counts.to_table()
        columns = []
        for var, at, states in zip(self.variables, self._at, self._states, strict=True):
            kind = smallest_integer(var.size)
            new = np.append(states, -1).astype(kind)
            columns.append(new[rows.columns[at]] if at >= 0 else np.full(len(rows), -1, kind))
        return CodedTable(self.variables, tuple(columns))


def read_cases(net: BayesianNetwork, data: Any, weights: Any = None) -> CodedTable:
    """The frame as codes of the network's variables; a variable without a column is hidden.

    A variable that has neither a table nor labels of its own takes the states that its column shows.
    """
    frame = read_frame(data).table
    unknown = [str(c) for c in frame.columns if c not in net and not (isinstance(weights, str) and c == weights)]
    if len(unknown) == len(frame.columns) - (weights in frame.columns if isinstance(weights, str) else 0):
        hint = did_you_mean(unknown[0], net.variables) if unknown else ""
        raise VariableError(f"no column of the frame is a variable of the network.{hint}")
    seen = [name for name in net.variables if name in frame.columns]
    variables = tuple(states_from(net, v, frame) for v in range(len(net.variables)))
    return code_table(frame, variables, weights=weights, needed=seen)


def is_open(net: BayesianNetwork, v: int) -> bool:
    """Whether a variable has neither a table nor labels of its own, so that its column says what it is."""
    return net.conditionals[v] is None and net.vars[v].is_discrete and net.vars[v].states == DEFAULT_STATES


def states_from(net: BayesianNetwork, v: int, frame: Any) -> Var:
    """The variable, with the states of its column where it has neither a table nor labels of its own."""
    return with_states_of(net.vars[v], frame) if is_open(net, v) else net.vars[v]


def pseudo_counts(
    net: BayesianNetwork, variables: tuple[Var, ...], prior: Any, equivalent_sample_size: float
) -> list[FloatArray]:
    """What is added to the counts of every family, shape (*parent sizes, child size)."""
    if not (isinstance(equivalent_sample_size, (int, float)) and equivalent_sample_size > 0):
        raise OptionError(f"equivalent_sample_size is a positive number, not {equivalent_sample_size!r}")
    shapes = [tuple(variables[u].size for u in (*net.parent_positions[v], v)) for v in range(len(variables))]
    if isinstance(prior, Mapping):
        given = {net.index(name): value for name, value in prior.items() if name is not ...}
        rest = _uniform(prior.get(...), shapes, equivalent_sample_size)
        return [
            _custom(net, v, given[v], variables, shape) if v in given else rest[v] for v, shape in enumerate(shapes)
        ]
    return _uniform(prior, shapes, equivalent_sample_size)


def _uniform(prior: Any, shapes: list[tuple[int, ...]], equivalent_sample_size: float) -> list[FloatArray]:
    if prior is None:
        return [np.zeros(shape) for shape in shapes]
    if isinstance(prior, (int, float)) and not isinstance(prior, bool) and 0 <= prior < np.inf:
        return [np.full(shape, float(prior)) for shape in shapes]
    if isinstance(prior, str) and prior == "bdeu":
        return [np.full(shape, equivalent_sample_size / np.prod(shape)) for shape in shapes]
    if isinstance(prior, str) and prior == "k2":
        return [np.ones(shape) for shape in shapes]
    raise OptionError(
        f"prior is None, 'bdeu', 'k2', a pseudo-count for every cell, or a dict from variables to arrays or to "
        f"pseudo-counts for contexts, not {prior!r}"
    )


def _custom(net: BayesianNetwork, v: int, given: Any, variables: tuple[Var, ...], shape: tuple[int, ...]) -> FloatArray:
    """Pseudo-counts of one variable: an array, or a dict from states of the parents to a number or to numbers."""
    var = variables[v]
    if not isinstance(given, Mapping):
        return _numbers(given, shape, var, "")
    parents = [variables[p] for p in net.parent_positions[v]]
    out = np.zeros(shape)
    out[...] = _numbers(given.get(..., 0.0), shape, var, "")
    for context, row in given.items():
        if context is ...:
            continue
        states = context if isinstance(context, tuple) else (context,)
        if len(states) != len(parents):
            names = ", ".join(parent.name for parent in parents)
            raise OptionError(
                f"a context of {var.name} is a tuple with one state for each parent ({names}), not {context!r}"
            )
        at = tuple(parent.index(state) for parent, state in zip(parents, states, strict=True))
        if isinstance(row, Mapping):
            cells = np.zeros(var.size)
            for state, number in row.items():
                cells[var.index(state)] = number
            row = cells
        out[at] = _numbers(row, shape[-1:], var, f" for {context!r}")
    return out


def _numbers(given: Any, shape: tuple[int, ...], var: Var, where: str) -> FloatArray:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError(f"the pseudo-counts of {var.name}{where} must be numbers, not {given!r}") from None
    if not np.isfinite(found).all() or (found < 0).any():
        raise OptionError(f"the pseudo-counts of {var.name}{where} must be finite numbers from 0 on")
    try:
        return np.broadcast_to(found, shape).copy()
    except ValueError:
        raise OptionError(
            f"the pseudo-counts of {var.name}{where} must have shape {shape}, not {found.shape}"
        ) from None
