"""Messages on a forest of ratios: joint beliefs, and observations that are likelihoods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramgraph.answers.joint_belief import outer
from gramgraph.cells.axes import Placed
from gramgraph.compile.cache import remember
from gramgraph.engines.cells.evidence import Seen
from gramgraph.engines.cells.messages import Branches, branches_of, propagate
from gramgraph.exceptions import BudgetError
from gramgraph.models.on_cells import CellModel
from gramgraph.typing import FloatArray

_MEMORY = 2e9
_CASES = 20_000  # configurations that are propagated at a time


def joint_masses(
    net: CellModel,
    tree: Branches,
    placed: Mapping[int, Placed],
    cases: int,
    targets: Sequence[int],
    memory: float | None = None,
) -> FloatArray:
    """p(cells of the targets | e), (cases, m_1, …, m_k): all but the last are set to each of their combinations.

    Cost: one propagation of Π m_i cases, over all targets but the last that are not observed, for every case.
    """
    sizes = [net.cell_axes[v].m for v in targets]
    need = 8.0 * cases * float(np.prod(sizes, dtype=float))
    limit = _MEMORY if memory is None else float(memory)
    if need > limit:
        raise BudgetError(
            f"the joint of {len(targets)} variables takes {need / 1e9:.3g} GB; allowed are {limit / 1e9:.3g}.",
            bytes=need,
            remedies=["fewer variables or cases at a time", "learn_tree(…, cells=…)", "net.sample(n, evidence)"],
        )
    out = np.empty((cases, *sizes))
    for i in range(cases):
        here = {v: p.take([i]) for v, p in placed.items()}
        free = [v for v in targets if v not in here or not here[v].known[0]]
        own = _free_masses(net, tree, here, free) if free else np.ones(())
        parts = [np.ones(m) if v in free else here[v].shares(net.cell_axes[v].m)[0]
                 for v, m in zip(targets, sizes, strict=True)]  # fmt: skip
        out[i] = outer(parts) * own.reshape([m if v in free else 1 for v, m in zip(targets, sizes, strict=True)])
    return out


def _free_masses(net: CellModel, tree: Branches, placed: Mapping[int, Placed], targets: Sequence[int]) -> FloatArray:
    """The joint masses of one case, of targets that it does not observe."""
    sizes = [net.cell_axes[v].m for v in targets]
    given, last = targets[:-1], targets[-1]
    every = np.indices(sizes[:-1]).reshape(len(given), -1) if given else np.zeros((0, 1), dtype=np.int64)
    out, logs = np.empty((every.shape[1], sizes[-1])), np.empty(every.shape[1])
    for start in range(0, every.shape[1], _CASES):
        block = every[:, start : start + _CASES]
        n = block.shape[1]
        here = {v: p.take(np.zeros(n, dtype=np.int64)) for v, p in placed.items()}
        for v, cells in zip(given, block, strict=True):
            here[v] = Placed(cells, cells, np.zeros(n), np.ones(n), np.ones(n, dtype=bool))
        found, logs[start : start + n] = propagate(tree, here, n, [last])
        out[start : start + n] = np.nan_to_num(found[last])
    out *= (np.exp(logs - logs.max()) * outer([net.cell_axes[v].q for v in given]).ravel())[:, None]
    return np.asarray(out / max(float(out.sum()), 1e-300)).reshape(sizes)


# ------------------------------------------------------------------------------------------ likelihoods


def with_likelihoods(net: CellModel, seen: Seen) -> tuple[Branches, dict[int, Placed], float]:
    """The tree with one observed leaf for each likelihood, its evidence, and the log probability of the leaves alone.

    A leaf has two cells, heard and not heard; p(heard | x) is the likelihood, so that all messages stay the same.
    """
    if not seen.weights:
        return branches(net), seen.placed, 0.0
    q = [np.asarray(axis.q) for axis in net.cell_axes]
    links = _links(net)
    observed, log_p, n = dict(seen.placed), 0.0, seen.n_cases
    zero = np.zeros(n, dtype=np.int64)
    for v, weights in seen.weights.items():
        p = float(q[v] @ weights)
        heard = np.stack([weights / p, np.zeros(len(q[v]))], axis=1)  # the second cell is never asked for
        links.append((v, len(q), heard))
        observed[len(q)] = Placed(zero, zero, np.zeros(n), np.ones(n), np.ones(n, dtype=bool))
        q.append(np.array([p, 1.0 - p]))
        log_p += float(np.log(p))
    return branches_of(q, links), observed, log_p


def branches(net: CellModel) -> Branches:
    """The forest of a model, made once."""
    found: Branches | None = net.plans.get(("lowered", "branches"))
    if found is None:
        found = branches_of([axis.q for axis in net.cell_axes], _links(net))
        remember(net, ("lowered", "branches"), found)
    return found


def _links(net: CellModel) -> list[tuple[int, int, Any]]:
    return [(*positions, table) for positions, table in net.ratios]  # type: ignore[misc]
