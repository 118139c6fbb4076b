"""The junction tree as a plan: structure only, made once, printable, costed before anything is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gramgraph.compile.budget import check_budget, readable
from gramgraph.compile.lower import Lowered
from gramgraph.exceptions import listing
from gramgraph.typing import Array, FloatArray, IntArray

__all__ = ["Program", "TreePlan", "plan_tree"]

#: Seconds per table cell and case, measured on one core; for estimates only.
SECONDS_PER_CELL = 4e-9
#: Noise of randomized restarts, in the unit of each heuristic (fill edges, log weight).
NOISE = ((0.5, 1.5, 3.0), (0.2, 0.7, 1.5))
MAX_TRIES = 200
MAX_SEARCH_SECONDS = 0.3
#: Restarts save a factor, not orders of magnitude: beyond this no tree will fit in memory.
HOPELESS_LOG_CELLS = 28.0


class Program(NamedTuple):
    """Integer tables for the runner (see `_numerics.tree_program`) and the numbers multiplied in beforehand."""

    collect: IntArray
    distribute: IntArray
    roots: IntArray
    needed: Array
    cliques: Array
    terms: Array
    members: Array
    maps_table: Array
    maps: Array
    slices: Array
    keys: Array
    constants: IntArray
    outputs: Array
    onehot: Array
    static: FloatArray
    ordered: IntArray
    n_sep: IntArray
    mask_home: IntArray
    log_scale: float


@dataclass(frozen=True, eq=False)
class TreePlan:
    """A junction tree for given observed variables and wanted tables.

    `sliced` variables are observed in every case and leave the tree; `masked` ones may carry evidence in some
    cases. `wants` are the sets whose joint tables are read; `columns[i]` is the first output column of wants[i].
    """

    lowered: Lowered
    sliced: tuple[int, ...]
    masked: tuple[int, ...]
    wants: tuple[tuple[int, ...], ...]
    columns: tuple[int, ...]
    keep: Array
    use: Array
    clique_ptr: IntArray
    clique_idx: IntArray
    parent: IntArray
    topo: IntArray
    log_cells: float
    heuristic: str
    _made: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def cells(self) -> float:
        """Number of cells of all clique tables."""
        return float(np.exp(min(self.log_cells, 700.0)))

    @property
    def n_cliques(self) -> int:
        """Number of cliques."""
        return len(self.parent)

    @cached_property
    def _clique_logs(self) -> FloatArray:
        logs = np.append(self.lowered.log_sizes[self.clique_idx], 0.0)
        sums = np.add.reduceat(logs, self.clique_ptr[:-1]) if self.n_cliques else np.zeros(0)
        return np.asarray(sums)

    @property
    def width(self) -> int:
        """Induced width: size of the largest clique minus one."""
        return int(np.diff(self.clique_ptr).max(initial=1)) - 1

    @property
    def largest_clique(self) -> tuple[str, ...]:
        """Names of the variables of the largest table."""
        if not self.n_cliques:
            return ()
        at = int(self._clique_logs.argmax())
        members = self.clique_idx[self.clique_ptr[at] : self.clique_ptr[at + 1]]
        return tuple(self.lowered.variables[v].name for v in members)

    @property
    def largest_cells(self) -> float:
        """Number of cells of the largest table."""
        return float(np.exp(min(float(self._clique_logs.max(initial=0.0)), 700.0)))

    @property
    def bytes(self) -> float:
        """Memory for one case: the tables, the numbers multiplied in beforehand, messages and maps."""
        return self.bytes_for(1)

    def bytes_for(self, lanes: int) -> float:
        """Memory when `lanes` cases run side by side."""
        if self.log_cells > 40:
            return 16.0 * self.cells * (1 + lanes) / 2
        _, _, table_size, sep_size, _, _ = self._layout
        home = self._homes
        used = np.unique(home[(home >= 0) & (self._is_static == 1)])
        per_case = table_size.sum() + 2 * sep_size.sum() + sep_size.max(initial=0)
        return 8.0 * (float(table_size[used].sum()) + lanes * float(per_case) + len(self.lowered.values))

    @property
    def flops(self) -> float:
        """Multiplications and additions for one case: a pass over a clique for each message in and out."""
        if not self.n_cliques:
            return 0.0
        inside = self.parent[self.parent >= 0]
        neighbors = np.bincount(inside, minlength=self.n_cliques) + (self.parent >= 0)
        return float((np.exp(np.minimum(self._clique_logs, 700.0)) * (2.0 + 2.0 * neighbors)).sum())

    @property
    def seconds(self) -> float:
        """Estimated time for one case."""
        return SECONDS_PER_CELL * self.cells + 1e-7 * self.n_cliques

    @cached_property
    def _layout(self) -> Any:
        from gramgraph._numerics.tree_program import layout

        return layout(self.clique_ptr, self.clique_idx, self.parent, self.topo, self.lowered.sizes)

    @cached_property
    def _homes(self) -> IntArray:
        from gramgraph._numerics.tree_program import homes

        low, table_size = self.lowered, self._layout[2]
        n = len(low.sizes)
        return homes(self.clique_ptr, self.clique_idx, table_size, low.scope_ptr, low.scope_idx, self.keep, self.use, n)

    @cached_property
    def _is_static(self) -> Array:
        """Factors none of whose variables are sliced: they are multiplied in beforehand."""
        low = self.lowered
        gone = (self.keep[low.scope_idx] == 0).astype(np.int64)
        any_gone = np.add.reduceat(np.append(gone, 0), low.scope_ptr[:-1]) if low.n_factors else np.zeros(0)
        return ((any_gone == 0) & (self.use == 1)).astype(np.uint8)

    def check_budget(self, memory: float | None, lanes: int = 1) -> None:
        """`BudgetError`, before anything is allocated, when the tables would not fit."""
        if self.cells * 16 > (memory if memory is not None else 32e6):
            check_budget(self.bytes_for(lanes), memory, self.largest_clique, self.largest_cells)

    @cached_property
    def mask_offset(self) -> IntArray:
        """First cell of each likelihood in its buffer."""
        out = np.zeros(len(self.masked) + 1, np.int64)
        np.cumsum(self.lowered.sizes[list(self.masked)], out=out[1:])
        return out

    @cached_property
    def slot_of(self) -> dict[int, int]:
        """Variable → its place among the masked ones."""
        return {v: i for i, v in enumerate(self.masked)}

    @cached_property
    def in_tree(self) -> tuple[tuple[int, ...], ...]:
        """The wanted sets that are read from tables (not those of observed variables)."""
        kept = self.keep.tolist()
        return tuple(want for want in self.wants if all(kept[v] for v in want))

    @cached_property
    def program(self) -> Program:
        """The compiled program with the model's numbers."""
        return _build_program(self)

    @cached_property
    def work_sizes(self) -> tuple[int, ...]:
        """Lengths, per lane, of the runner's buffers."""
        program = self.program
        tables, separators, buffer, combined, _ = self._made["sizes"]
        biggest_term = int(program.terms[:, 2].max(initial=1))
        biggest_sep = int(program.cliques[:, 3].max(initial=1)) if self.n_cliques else 1
        scratch = 1 + max(biggest_sep, int(program.outputs[:, 4].max(initial=1)) if len(program.outputs) else 1)
        n = max(self.n_cliques, 1)
        likelihood = int(self.mask_offset[-1])
        return (
            tables,
            separators,
            separators,
            buffer,
            likelihood,
            combined,
            biggest_term,
            len(self.masked),
            n,
            n,
            scratch,
        )

    def __str__(self) -> str:
        lines = [
            f"junction tree ({self.heuristic}): {self.n_cliques} cliques, induced width {self.width}, "
            f"{self.cells:.4g} cells",
            f"largest clique: {self.largest_cells:.4g} cells over {listing(self.largest_clique)}",
            f"memory: {readable(self.bytes)}   work: {self.flops:.3g} flops   time: about {self.seconds:.2g} s a case",
        ]
        if self.sliced:
            lines.append(f"observed and sliced out: {listing(self.lowered.variables[v].name for v in self.sliced)}")
        return "\n".join(lines)

    __repr__ = __str__


def plan_tree(
    lowered: Lowered,
    *,
    sliced: Sequence[int] = (),
    masked: Sequence[int] = (),
    wants: Sequence[tuple[int, ...]] = (),
    columns: Sequence[int] = (),
    prune: bool = False,
    cases: int = 1,
) -> TreePlan:
    """Choose an elimination order and make the tree. `cases` says how much a better order would pay.

    With `prune`, nodes of a Bayesian network that are no ancestor of a wanted, sliced or masked one are left out:
    they sum to one.
    """
    from gramgraph._numerics.triangulation import build_adjacency, junction_forest, maximal_cliques, total_log_size

    n = len(lowered.sizes)
    keep = (lowered.sizes > 1).astype(np.uint8)
    use = np.ones(lowered.n_factors, np.uint8)
    if prune and lowered.parents is not None:
        touched = {v for want in wants for v in want}.union(sliced, masked)
        ancestral = lowered.ancestors(touched)
        keep[: lowered.n_visible] &= ancestral[: lowered.n_visible]
        use[ancestral[lowered.owner] == 0] = 0
        if lowered.n_visible < n:
            keep[lowered.n_visible :] = 0
            in_use = np.repeat(use, np.diff(lowered.scope_ptr)) == 1
            hidden = lowered.scope_idx[in_use & (lowered.scope_idx >= lowered.n_visible)]
            keep[hidden] = 1
    if sliced:
        keep[list(sliced)] = 0
    scope_ptr, scope_idx = _with_joints(lowered, use, wants)
    adjacency = build_adjacency(n, scope_ptr, scope_idx, keep)
    order, ptr, idx, _, heuristic = _best_order(adjacency, lowered.log_sizes, keep, cases)
    clique_ptr, clique_idx = maximal_cliques(order, ptr, idx)
    parent, topo = junction_forest(clique_ptr, clique_idx, n, lowered.log_sizes)
    return TreePlan(
        lowered=lowered,
        sliced=tuple(sliced),
        masked=tuple(masked),
        wants=tuple(wants),
        columns=tuple(columns),
        keep=keep,
        use=use,
        clique_ptr=clique_ptr,
        clique_idx=clique_idx,
        parent=parent,
        topo=topo,
        log_cells=total_log_size(clique_ptr, clique_idx, lowered.log_sizes),
        heuristic=heuristic,
    )


def _with_joints(lowered: Lowered, use: Array, wants: Sequence[tuple[int, ...]]) -> tuple[IntArray, IntArray]:
    """The scopes that must lie inside a clique: factors in use, and sets wanted jointly."""
    scope_ptr, scope_idx = lowered.scope_ptr, lowered.scope_idx
    if not use.all():
        lengths = np.diff(scope_ptr)
        scope_idx = scope_idx[np.repeat(use, lengths) == 1]
        scope_ptr = np.concatenate([[0], np.cumsum(lengths[use == 1])]).astype(np.int64)
    joint = [want for want in wants if len(want) > 1]
    if joint:
        ends = scope_ptr[-1] + np.cumsum([len(want) for want in joint])
        scope_ptr = np.concatenate([scope_ptr, ends])
        scope_idx = np.concatenate([scope_idx, *[np.array(want, np.int64) for want in joint]])
    return scope_ptr, scope_idx


def _best_order(adjacency: Array, log_sizes: FloatArray, keep: Array, cases: int) -> tuple[Any, Any, Any, float, str]:
    """Min-fill against min-weight, and randomized restarts as many as the saved work can pay for.

    The number of restarts follows from sizes alone, never from a clock: the same model gives the same tree.
    """
    from gramgraph._numerics.triangulation import eliminate, total_log_size

    n = len(log_sizes)
    still = np.zeros(n)
    best: tuple[Any, Any, Any, float, str] | None = None
    for mode, label in ((0, "min-fill"), (1, "min-weight"), (2, "weighted min-fill")):
        order, ptr, idx = eliminate(adjacency, log_sizes, keep, mode, still)
        size = total_log_size(ptr, idx, log_sizes)
        if best is None or size < best[3] - 1e-9:
            best = (order, ptr, idx, size, label)
    assert best is not None
    run = SECONDS_PER_CELL * float(np.exp(min(best[3], 50.0))) * min(cases, 1000)
    one_try = 1e-6 * n + 3e-10 * n * n
    hopeless = best[3] > HOPELESS_LOG_CELLS
    tries = 0 if hopeless else int(min(MAX_TRIES, 0.2 * run / one_try, MAX_SEARCH_SECONDS / one_try))
    rng = np.random.default_rng(0)
    for attempt in range(tries):
        mode = attempt % 2
        noise = rng.random(n) * NOISE[mode][(attempt // 2) % 3]
        order, ptr, idx = eliminate(adjacency, log_sizes, keep, mode, noise)
        size = total_log_size(ptr, idx, log_sizes)
        if size < best[3] - 1e-9:
            best = (order, ptr, idx, size, ("min-fill", "min-weight")[mode] + ", restarted")
    return best


def _build_program(plan: TreePlan) -> Program:
    from gramgraph._numerics import tree_program as tp
    from gramgraph._numerics.tree_runner import fill_static

    low = plan.lowered
    n = len(low.sizes)
    ordered, n_sep, table_size, sep_size, child_ptr, children = plan._layout
    home, is_static = plan._homes, plan._is_static
    column = np.full(n, -1, np.int64)
    column[list(plan.sliced)] = np.arange(len(plan.sliced))
    slot = np.full(n, -1, np.int64)
    slot[list(plan.masked)] = np.arange(len(plan.masked))
    in_tree = plan.in_tree
    column_of = dict(zip(plan.wants, plan.columns, strict=True))
    want_ptr = np.zeros(len(in_tree) + 1, np.int64)
    np.cumsum([len(w) for w in in_tree], out=want_ptr[1:])
    want_idx = np.array([v for w in in_tree for v in w], np.int64)
    want_column = np.array([column_of[w] for w in in_tree], np.int64)
    mask_ptr = np.arange(len(plan.masked) + 1)
    mask_home = tp.homes(
        plan.clique_ptr, plan.clique_idx, table_size, mask_ptr, np.array(plan.masked, np.int64), plan.keep,
        np.ones(len(plan.masked), np.uint8), n,
    )  # fmt: skip
    (
        cliques, terms, members, maps_table, maps, slices, _, slice_home, keys, outputs, needed, sizes,
    ) = tp.build(
        low.sizes, plan.keep, column, slot, plan.mask_offset, low.scope_ptr, low.scope_idx, low.value_ptr, home,
        plan.use, mask_home, plan.clique_ptr, ordered, n_sep, table_size, sep_size, plan.parent, child_ptr, children,
        want_ptr, want_idx, want_column,
    )  # fmt: skip
    plan._made["sizes"] = tuple(int(x) for x in sizes)
    static = np.empty(max(int(sizes[4]), 1))
    scale = fill_static(
        static, cliques, plan.clique_ptr, ordered, low.sizes, home, is_static, low.scope_ptr, low.scope_idx,
        low.value_ptr, low.values,
    )  # fmt: skip
    observed = [
        (int(column[w[0]]), c, int(low.sizes[w[0]]))
        for w, c in zip(plan.wants, plan.columns, strict=True)
        if len(w) == 1 and not plan.keep[w[0]]
    ]
    down = plan.topo[(plan.parent[plan.topo] >= 0) & (needed[plan.topo] > 0)]
    return Program(
        collect=plan.topo[::-1].copy(),
        distribute=down,
        roots=plan.topo[plan.parent[plan.topo] < 0],
        needed=needed,
        cliques=cliques,
        terms=terms,
        members=members,
        maps_table=maps_table,
        maps=maps,
        slices=slices,
        keys=keys,
        constants=np.flatnonzero(slice_home < 0),
        outputs=outputs,
        onehot=np.array(observed, np.int64).reshape(-1, 3),
        static=static,
        ordered=ordered,
        n_sep=n_sep,
        mask_home=mask_home,
        log_scale=low.log_scale + scale,
    )
