"""Networks of the shared data, seeded cases, and the same model in the form of each library."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cases", "data_folder", "draw_cases", "network_paths", "to_pgmpy", "to_pyagrum"]

IntArray = NDArray[np.int64]

#: Part of the variables that is observed.
OBSERVED = 0.1


def data_folder() -> Path | None:
    """The shared data (`GRAMGRAPH_DATA`, or `../shared/data` beside the project), or None."""
    given = os.environ.get("GRAMGRAPH_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"
    return folder if folder.is_dir() else None


def network_paths(names: Sequence[str] | None = None) -> dict[str, Path]:
    """Name → file of every discrete network, those of the bnlearn repository first."""
    folder = data_folder()
    if folder is None:
        return {}
    files = [*sorted((folder / "bn").glob("*.bif.gz")), *sorted((folder / "bn_bnrep").glob("*.json.gz"))]
    found = {path.name.split(".")[0]: path for path in files}
    if names:
        unknown = [name for name in names if name not in found]
        if unknown:
            raise SystemExit(f"no such network: {', '.join(unknown)}. There are: {', '.join(found)}")
        found = {name: found[name] for name in names}
    return found


# --- cases --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cases:
    """Samples of the whole network, and which variables of each count as observed."""

    variables: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    codes: IntArray  # (cases, variables)
    observed: tuple[int, ...]  # the same set in every case
    masks: NDArray[np.bool_]  # (cases, variables): a different set in every case

    def evidence(self, case: int, *, mixed: bool = False) -> dict[str, str]:
        """Observed variable → label."""
        return {self.variables[v]: self.states[v][self.codes[case, v]] for v in self._observed(case, mixed)}

    def indices(self, case: int, *, mixed: bool = False) -> dict[str, int]:
        """Observed variable → index of its state."""
        return {self.variables[v]: int(self.codes[case, v]) for v in self._observed(case, mixed)}

    def frame(self, *, mixed: bool = False, rows: int | None = None) -> Any:
        """A DataFrame of labels; with `mixed` one column per variable, empty where it is not observed."""
        import pandas as pd

        columns = range(len(self.variables)) if mixed else self.observed
        out = {}
        for v in columns:
            labels = np.array(self.states[v], dtype=object)[self.codes[:rows, v]]
            if mixed:
                labels[~self.masks[: len(labels), v]] = None
            out[self.variables[v]] = labels
        return pd.DataFrame(out)

    def _observed(self, case: int, mixed: bool) -> Sequence[int]:
        return np.flatnonzero(self.masks[case]).tolist() if mixed else self.observed


def draw_cases(net: Any, n: int, *, name: str) -> Cases:
    """`n` ancestral samples (so that every case is possible), seeded by the network's name."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    variables = net.variables
    position = {v: i for i, v in enumerate(variables)}
    parents = [[position[p] for p in net.parents(v)] for v in variables]
    count = max(1, round(OBSERVED * len(variables)))
    observed = tuple(sorted(rng.choice(len(variables), count, replace=False).tolist()))
    codes = np.zeros((n, len(variables)), np.int64)
    for v in topological_order(parents):
        table = np.asarray(net.conditional(variables[v]).table())
        sums = table.reshape(-1, table.shape[-1]).cumsum(axis=1)
        rows = np.zeros(n, np.int64)
        for p, width in zip(parents[v], table.shape[:-1], strict=True):
            rows = rows * width + codes[:, p]
        drawn = rng.random(n) * sums[rows, -1]
        # counts the cumulative sums at or below the draw, so that a state of probability zero is never taken
        codes[:, v] = np.minimum((sums[rows] <= drawn[:, None]).sum(axis=1), table.shape[-1] - 1)
    masks = np.zeros(codes.shape, bool)
    for case in range(n):
        masks[case, rng.choice(len(variables), count, replace=False)] = True
    return Cases(variables, tuple(net.states(v) for v in variables), codes, observed, masks)


def topological_order(parents: Sequence[Sequence[int]]) -> list[int]:
    """Parents before children."""
    order: list[int] = []
    state = [0] * len(parents)
    for start in range(len(parents)):
        stack = [start]
        while stack:
            v = stack[-1]
            if state[v] == 0:
                state[v] = 1
                stack += [p for p in parents[v] if state[p] == 0]
            else:
                stack.pop()
                if state[v] == 1:
                    state[v] = 2
                    order.append(v)
    return order


# --- the same model in other libraries ----------------------------------------------------------------------------


def _table(net: Any, name: str) -> NDArray[np.float64]:
    """p(name | parents), rows normalized, axes: parents in their order, then the variable."""
    values = np.asarray(net.conditional(name).table(), dtype=np.float64)
    sums = values.sum(axis=-1, keepdims=True)
    return values / np.where(sums > 0, sums, 1.0)


def to_pyagrum(net: Any) -> Any:
    """The network built through pyAgrum's own interface (its BIF reader does not take every file)."""
    import pyagrum

    bn = pyagrum.BayesNet(net.name or "network")
    for name in net.variables:
        bn.add(pyagrum.LabelizedVariable(name, name, list(net.states(name))))
    for name in net.variables:
        for parent in net.parents(name):
            bn.addArc(parent, name)
    for name in net.variables:
        cpt = bn.cpt(name)
        axes = [*net.parents(name), name]
        # pyAgrum's arrays have the axes of `names` reversed
        order = [axes.index(axis) for axis in reversed(cpt.names)]
        cpt[:] = np.ascontiguousarray(_table(net, name).transpose(order))
    return bn


def to_pgmpy(net: Any) -> Any:
    """The network as a pgmpy model."""
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork()
    model.add_nodes_from(net.variables)
    model.add_edges_from((parent, name) for name in net.variables for parent in net.parents(name))
    for name in net.variables:
        table = _table(net, name)
        parents = list(net.parents(name))
        model.add_cpds(
            TabularCPD(
                name,
                table.shape[-1],
                table.reshape(-1, table.shape[-1]).T,
                evidence=parents or None,
                evidence_card=list(table.shape[:-1]) or None,
                state_names={v: list(net.states(v)) for v in [name, *parents]},
            )
        )
    return model
