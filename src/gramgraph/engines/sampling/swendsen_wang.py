"""Swendsen–Wang: clusters of equal neighbors take a new state together."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.engines.sampling.chains import ChainEngine, Moves, Setting
from gramgraph.exceptions import ModelError
from gramgraph.typing import Array, FloatArray, IntArray

ADVICE = 'Swendsen–Wang is for attractive Ising and Potts models; use engine="gibbs", "block_gibbs" or "tempering"'


class ClusterMoves(Moves):
    """Bonds between equal neighbors, then one draw for each cluster."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.left, self.right, self.bond, self.logs = _bonds(setting)

    def start(self, rng: np.random.Generator) -> Array:
        """States at random: the tables have no zeros but between unequal neighbors."""
        seen, sizes = self.setting.cases.states[self.setting.case], self.setting.compiled.sizes
        state = np.where(seen >= 0, seen, rng.random(len(sizes)) * sizes).astype(np.int32)
        if self.bond.max(initial=0.0) < 1.0:
            return state
        state[self.setting.compiled.variables] = 0  # hard bonds: neighbors must be equal from the start
        return state

    def move(self, state: Array, rng: np.random.Generator) -> None:
        """Bonds and clusters."""
        from gramgraph._numerics.sampling.chains import cluster_sweep

        c = self.setting.compiled
        cluster_sweep(
            self.left, self.right, self.bond, c.variables, c.sizes, self.logs, c.unary_ptr,
            rng.random(len(self.left)), rng.random(len(c.variables)), state, np.empty(len(c.sizes), np.int64),
            np.empty(len(c.unary)),
        )  # fmt: skip


def _bonds(setting: Setting) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """(one end, other end, probability of a bond) of every edge, and log weights of all states; or `ModelError`."""
    part, c = setting.part, setting.compiled
    arity = np.diff(part.scope_ptr)
    names = [var.name for var in setting.cases.low.variables]
    if (arity > 2).any():
        wide = int(np.flatnonzero(arity > 2)[0])
        scope = ", ".join(names[v] for v in part.scope_idx[part.scope_ptr[wide] : part.scope_ptr[wide + 1]])
        raise ModelError(f"the table over ({scope}) joins more than two variables. {ADVICE}")
    with np.errstate(divide="ignore"):
        logs = np.log(c.unary)
        for f in np.flatnonzero(arity == 1):
            v = int(part.scope_idx[part.scope_ptr[f]])
            own = slice(int(c.unary_ptr[v]), int(c.unary_ptr[v + 1]))
            logs[own] += np.log(part.values[part.value_ptr[f] : part.value_ptr[f + 1]])
    pairs = np.flatnonzero(arity == 2)
    left, right = part.scope_idx[part.scope_ptr[pairs]], part.scope_idx[part.scope_ptr[pairs] + 1]
    bond = np.empty(len(pairs))
    for size in np.unique(c.sizes[left]).tolist():
        rows = np.flatnonzero(c.sizes[left] == size)
        _check(c.sizes[right[rows]] == size, "variables with different numbers of states", rows, left, right, names)
        at = part.value_ptr[pairs[rows]][:, None] + np.arange(size**2)
        table = part.values[at].reshape(-1, size, size)
        same, differ = np.diagonal(table, axis1=1, axis2=2), table[:, ~np.eye(size, dtype=bool)]
        flat = (np.ptp(same, axis=1) <= 1e-9) & (np.ptp(differ, axis=1) <= 1e-9)
        _check(flat, "a table that does not only ask whether two states are equal", rows, left, right, names)
        _check(same[:, 0] >= differ[:, 0], "a repelling coupling", rows, left, right, names)
        bond[rows] = 1.0 - differ[:, 0] / np.maximum(same[:, 0], 1e-300)
    return left, right, bond, np.maximum(logs, -1e30)


def _check(good: Array, what: str, rows: Array, left: IntArray, right: IntArray, names: list[str]) -> None:
    bad = np.flatnonzero(~good)
    if len(bad):
        e = rows[bad[0]]
        raise ModelError(f"{what}: {names[left[e]]} and {names[right[e]]}. {ADVICE}")


class SwendsenWang(ChainEngine):
    """Equal neighbors are joined with probability 1 − f(≠)/f(=); each cluster then draws one state from its fields.

    For attractive Ising and Potts models (tables of two variables that only ask whether the states are equal, equal
    ones weighing more; fields of any kind); others are refused. Mixes in few sweeps even at the critical point, where
    single-site sampling takes thousands. Cost of a sweep: O(variables × states + edges). Options and answers as of
    `engine="gibbs"`.

    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(3, 3, coupling=1.0)
    >>> answer = net.query("x0_0", engine="swendsen_wang", random_state=0, budget=4000)
    >>> answer.details["max_r_hat"] < 1.05, abs(answer["x0_0"].prob("+1") - 0.5) < 0.05
    (True, True)
    """

    name = "swendsen_wang"
    locks = False

    def moves(self, setting: Setting, options: dict[str, Any]) -> Moves:
        """The bonds of one case."""
        return ClusterMoves(setting)
