"""Tables of a network from data: maximum likelihood, Dirichlet priors, and the door to EM."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gramgraph._progress import Progress
from gramgraph.conditionals import Table
from gramgraph.data.columns import CodedTable, code_table, encode, to_pandas
from gramgraph.data.counts import Counts
from gramgraph.data.stream import is_stream, read_labels, stream_counts
from gramgraph.exceptions import ModelError, OptionError, StateError, VariableError, did_you_mean
from gramgraph.models import BayesianNetwork
from gramgraph.typing import FloatArray, RandomState
from gramgraph.variables import Var

if TYPE_CHECKING:
    from gramgraph.learn.em import EMReport

__all__ = ["fit", "pseudo_counts", "read_cases", "states_from", "tables_from"]

_DEFAULT_STATES = ("no", "yes")


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
    progress: Progress = False,
) -> tuple[BayesianNetwork, EMReport | None]:
    """A network with the same graph and tables learned from `data`; see `BayesianNetwork.fit`."""
    if is_stream(data):
        counts = _stream(net, data, weights, progress)
        if counts is not None:
            extra = pseudo_counts(net, net._vars, prior, equivalent_sample_size)
            return _count_tables(net, net._vars, _Renamed(net, counts), extra), None
        data = read_labels(data)
    table = read_cases(net, data, weights)
    variables = table.variables
    if not len(table) or table.total <= 0:
        raise VariableError("there are no rows to learn from")
    extra = pseudo_counts(net, variables, prior, equivalent_sample_size)
    if table.has_missing:
        from gramgraph.learn.em import fit_em

        return fit_em(
            net, table, extra, max_iter=max_iter, tol=tol, restarts=restarts, random_state=random_state,
            progress=progress,
        )  # fmt: skip
    return _count_tables(net, variables, Counts(table), extra), None


def _count_tables(net: BayesianNetwork, variables: tuple[Var, ...], counts: Any, extra: Any) -> BayesianNetwork:
    families = [(*net._parents[v], v) for v in range(len(variables))]
    numbers = [counts.table(family) + more for family, more in zip(families, extra, strict=True)]
    return tables_from(net, variables, numbers)


class _Renamed:
    """Counts of a stream whose states are brought into the order of the network's."""

    def __init__(self, net: BayesianNetwork, counts: Counts) -> None:
        self._counts, self._net = counts, net
        self._at = [counts.position(name) for name in net.variables]
        self._states = [
            np.array([var.index(label) for label in counts.variables[at].states])
            for var, at in zip(net._vars, self._at, strict=True)
        ]

    def table(self, family: tuple[int, ...]) -> Any:
        found = self._counts.table([self._at[v] for v in family])
        out = np.zeros([self._net._vars[v].size for v in family], np.int64)
        out[np.ix_(*(self._states[v] for v in family))] = found
        return out


def _stream(net: BayesianNetwork, data: Any, weights: Any, progress: Progress) -> Counts | None:
    """Counts of a file or stream, or None where the whole table is needed (gaps, hidden variables, new states)."""
    if weights is not None:
        raise OptionError("weights are for frames in memory, not for files and streams")
    if not isinstance(data, (str, os.PathLike)):
        return stream_counts(data, columns=net.variables, progress=progress)
    if not net.has_tables:
        return None
    try:
        counts = stream_counts(data, columns=net.variables, progress=progress)
    except VariableError as error:
        if "has no column" in str(error):
            return None
        raise
    return None if counts.has_missing else counts


def read_cases(net: BayesianNetwork, data: Any, weights: Any = None) -> CodedTable:
    """The frame as codes of the network's variables; a variable without a column is hidden.

    A variable that has neither a table nor labels of its own takes the states that its column shows.
    """
    frame = to_pandas(data)
    unknown = [str(c) for c in frame.columns if c not in net and not (isinstance(weights, str) and c == weights)]
    if len(unknown) == len(frame.columns) - (weights in frame.columns if isinstance(weights, str) else 0):
        hint = did_you_mean(unknown[0], net.variables) if unknown else ""
        raise VariableError(f"no column of the frame is a variable of the network.{hint}")
    seen = [name for name in net.variables if name in frame.columns]
    variables = tuple(states_from(net, v, frame) for v in range(len(net.variables)))
    return code_table(frame, variables, weights=weights, needed=seen)


def states_from(net: BayesianNetwork, v: int, frame: Any) -> Var:
    """The variable, with the states of its column where it has neither a table nor labels of its own."""
    var = net._vars[v]
    if net._conditionals[v] is not None or var.name not in frame.columns or var.states != _DEFAULT_STATES:
        return var
    try:
        encode(frame[var.name], var)
    except StateError:
        return code_table(frame, needed=[var.name]).variables[0]
    return var


def pseudo_counts(
    net: BayesianNetwork, variables: tuple[Var, ...], prior: Any, equivalent_sample_size: float
) -> list[FloatArray]:
    """What is added to the counts of every family, shape (*parent sizes, child size)."""
    if not (isinstance(equivalent_sample_size, (int, float)) and equivalent_sample_size > 0):
        raise OptionError(f"equivalent_sample_size is a positive number, not {equivalent_sample_size!r}")
    shapes = [tuple(variables[u].size for u in (*net._parents[v], v)) for v in range(len(variables))]
    if isinstance(prior, Mapping):
        for name in prior:
            net.index(name)
        given = {net.index(name): np.asarray(value, dtype=np.float64) for name, value in prior.items()}
        return [
            _custom(given[v], shape, variables[v]) if v in given else np.zeros(shape) for v, shape in enumerate(shapes)
        ]
    if prior is None:
        return [np.zeros(shape) for shape in shapes]
    if isinstance(prior, (int, float)) and not isinstance(prior, bool) and prior >= 0:
        return [np.full(shape, float(prior)) for shape in shapes]
    if prior == "bdeu":
        return [np.full(shape, equivalent_sample_size / np.prod(shape)) for shape in shapes]
    if prior == "k2":
        return [np.ones(shape) for shape in shapes]
    raise OptionError(
        f"prior is None, 'bdeu', 'k2', a pseudo-count for every cell, or a dict from variables to arrays, not {prior!r}"
    )


def _custom(given: FloatArray, shape: tuple[int, ...], var: Var) -> FloatArray:
    if not np.isfinite(given).all() or (given < 0).any():
        raise OptionError(f"the pseudo-counts of {var.name} must be finite numbers from 0 on")
    try:
        return np.broadcast_to(given, shape).copy()
    except ValueError:
        raise OptionError(f"the pseudo-counts of {var.name} must have shape {shape}, not {given.shape}") from None


def tables_from(net: BayesianNetwork, variables: tuple[Var, ...], numbers: list[Any]) -> BayesianNetwork:
    """The network whose rows are the given numbers divided by their sums; a row of zeros becomes uniform."""
    conditionals = []
    for v, values in enumerate(numbers):
        sums = values.sum(axis=-1, keepdims=True)
        if not np.isfinite(sums).all():
            raise ModelError(f"the counts of {variables[v].name} are not finite")
        rows = np.where(sums > 0, values / np.where(sums > 0, sums, 1.0), 1.0 / variables[v].size)
        rows.flags.writeable = False
        conditionals.append(Table(variables[v], tuple(variables[p] for p in net._parents[v]), rows))
    return BayesianNetwork.from_parts(variables, conditionals, name=net.name, metadata=dict(net.metadata), check=False)
