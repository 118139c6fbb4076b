"""The junction tree as a plan: structure only, made once, printable, costed before anything is allocated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, chain
from math import exp
from typing import Any, NamedTuple

import numpy as np

from gramgraph._numerics.tree.columns import C_COLUMNS, C_OFF, C_SIZE, P_CLIQUES, P_WORK, W_TABLES
from gramgraph._show import counted
from gramgraph.compile.budget import check_budget, check_memory, readable
from gramgraph.compile.lower import Lowered
from gramgraph.compile.ordering import FEW_NODES, Order, TreeOrder, sparse_order
from gramgraph.compile.seen_orders import Part, Size
from gramgraph.exceptions import listing
from gramgraph.questions.question import Singles
from gramgraph.typing import Array, FloatArray, IntArray

#: Seconds per table cell and case, measured on one core; for estimates only.
SECONDS_PER_CELL = 4e-9
#: Up to this many cells the memory of a plan is counted to the byte.
EXACT_CELLS = 3e8
#: Trees and models of fewer cells than this fit everywhere.
SMALL_CELLS = 1e5
#: Numbers that the program of a tree takes while it is made, beside its tables: for each clique, for each term that is
#: multiplied into one, for each wanted set (and what it takes in the answer), and for each variable.
PER_CLIQUE, PER_TERM, PER_WANT, PER_VARIABLE = 28, 34, 34, 8
PER_NAMED_WANT = 30
#: Numbers that the program holds for a factor that enters anew for each case, beside its scope and its values, which it
#: holds twice.
PER_ENTERED = 100
#: Trees with more cells than exp(this) are compared with the order that was found with nothing observed.
UNSEEN_LOG_CELLS = 9.9
#: A search does not save more than a factor of exp(this): where observed variables have saved more, the tree is not
#: compared with the one that a search finds with nothing observed.
MOST_GAINED = 2.0
#: That search takes this share of the time of others: a first answer has to wait for it.
UNSEEN_SHARE = 0.35
NO_SETS = np.zeros(1, np.int64), np.zeros(0, np.int64)
RULES = ("min-fill", "min-weight", "weighted min-fill")


class Tree(NamedTuple):
    """What `tree_program.structure` finds: cliques in CSR, the forest, the layout of the tables, where factors live."""

    clique_ptr: IntArray
    clique_idx: IntArray
    parent: IntArray
    topo: IntArray
    log_cells: float
    rule: int
    restarted: bool
    ordered: IntArray
    n_sep: IntArray
    table_size: IntArray
    sep_size: IntArray
    child_ptr: IntArray
    children: IntArray
    home: IntArray
    mask_home: IntArray
    is_static: Array
    mask_offset: IntArray


class Program(NamedTuple):
    """The packed integers for the runner (see `_numerics.tree.program`) and the numbers multiplied in beforehand."""

    ints: IntArray
    static: FloatArray
    log_scale: float

    def section(self, number: int, columns: int | None = None) -> IntArray:
        """A section of the packed integers, as rows where it has columns."""
        part = self.ints[self.ints[number] : self.ints[number + 1]]
        return part if columns is None else part.reshape(-1, columns)

    def in_turn(self, alone: int) -> Program:
        """The same program with the tables up to `alone` cells in one place, each made anew when it is needed again."""
        found = Program(self.ints.copy(), self.static, self.log_scale)
        cliques, work = found.section(P_CLIQUES, C_COLUMNS), found.section(P_WORK)
        sizes = cliques[:, C_SIZE]
        room = sizes[sizes <= alone].max(initial=1)
        own = np.where(sizes > alone, sizes, 0)
        cliques[:, C_OFF] = np.where(sizes > alone, room + np.cumsum(own) - own, 0)
        work[W_TABLES] = room + own.sum()
        return found


@dataclass(frozen=True, eq=False)
class TreePlan:
    """A junction tree for given observed variables and wanted tables.

    `sliced` variables are observed in every case and leave the tree; `masked` ones may carry evidence in some
    cases. `wants` are the sets whose joint tables are read; `columns[i]` is the first output column of wants[i].
    """

    lowered: Lowered
    sliced: tuple[int, ...]
    masked: tuple[int, ...]
    wants: Sequence[tuple[int, ...]]
    columns: Sequence[int] | IntArray
    keep: Array
    use: Array
    tree: Tree
    _made: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def log_cells(self) -> float:
        """Logarithm of the number of cells of all clique tables."""
        return self.tree.log_cells

    @cached_property
    def cells(self) -> float:
        """Number of cells of all clique tables."""
        return float(round(exp(min(self.tree.log_cells, 700.0))))

    @property
    def n_cliques(self) -> int:
        """Number of cliques."""
        return len(self.tree.parent)

    @property
    def heuristic(self) -> str:
        """The rule that found the elimination order."""
        return RULES[self.tree.rule] + (", restarted" if self.tree.restarted else "")

    @cached_property
    def _clique_logs(self) -> FloatArray:
        logs = np.append(self.lowered.log_sizes[self.tree.clique_idx], 0.0)
        sums = np.add.reduceat(logs, self.tree.clique_ptr[:-1]) if self.n_cliques else np.zeros(0)
        return np.asarray(sums)

    @property
    def width(self) -> int:
        """Induced width: size of the largest clique minus one."""
        return int(np.diff(self.tree.clique_ptr).max(initial=1)) - 1

    @property
    def largest_clique(self) -> tuple[str, ...]:
        """Names of the variables of the largest table."""
        if not self.n_cliques:
            return ()
        at = int(self._clique_logs.argmax())
        members = self.tree.clique_idx[self.tree.clique_ptr[at] : self.tree.clique_ptr[at + 1]]
        return tuple(self.lowered.variables[v].name for v in members)

    @property
    def largest_cells(self) -> float:
        """Number of cells of the largest table."""
        return float(np.exp(min(float(self._clique_logs.max(initial=0.0)), 700.0)))

    @property
    def bytes(self) -> float:
        """Memory for one case: the tables, the numbers multiplied in beforehand, messages and maps.

        Where the trees of a model are compared, it is counted as if each factor entered anew for each case, as those of
        observed variables do, and is never more than a plan with less observed has told, as far as that is remembered.
        """
        needed = self.bytes_for(1)
        if not self.is_compared:
            return needed
        seen, part = self.lowered.seen_orders, Part(self.keep, self.use)
        told = max(needed, min(self._most_bytes(needed), seen.least_told(part, self.wants).bytes))
        seen.tell(part, self.wants, Size(self.log_cells, told))
        return told

    @property
    def is_compared(self) -> bool:
        """Whether the tree is remembered, and is not larger than those that are and have less observed."""
        return "seen orders" in self._made

    def _most_bytes(self, needed: float) -> float:
        """The bytes that are needed, and those that static factors would take if they entered anew for each case."""
        entered = self.entered_bytes[self.tree.is_static > 0].sum()
        return max(needed + float(entered), self._building_bytes(int(np.count_nonzero(self.use))))

    @property
    def entered_bytes(self) -> FloatArray:
        """What the program takes for each factor, if it enters anew for each case."""
        low = self.lowered
        return 8.0 * (PER_ENTERED + 2.0 * np.diff(low.scope_ptr) + 2.0 * np.diff(low.value_ptr))

    @property
    def building_bytes(self) -> float:
        """About how much memory making the program takes, counted without making it."""
        return self._building_bytes(int(np.count_nonzero(self.use & (1 - self.tree.is_static))))

    def _building_bytes(self, entered: int) -> float:
        """The same with so many factors that enter anew for each case."""
        low = self.lowered
        terms = self.n_cliques + len(self.masked) + 2 * entered
        wants = len(self.wants) * (PER_WANT if isinstance(self.wants, Singles) else PER_WANT + PER_NAMED_WANT)
        numbers = PER_CLIQUE * self.n_cliques + PER_TERM * terms + wants + PER_VARIABLE * len(low.sizes)
        return 8.0 * numbers + self._held

    @property
    def _held(self) -> float:
        """Bytes of the model's factors in flat arrays and of the tree."""
        low = self.lowered
        arrays = (low.values, low.scope_idx, low.scope_ptr, low.value_ptr, low.owner, low.sizes, low.log_sizes)
        return float(sum(a.nbytes for a in (*arrays, self.keep, self.use, *self.tree) if isinstance(a, np.ndarray)))

    def bytes_for(self, lanes: int) -> float:
        """Memory when `lanes` cases run side by side."""
        if self.cells > EXACT_CELLS:  # tables are all that counts, and index maps would be large themselves
            separators = float(self.tree.sep_size.sum()) if self.log_cells < 40 else 0.0
            return 8.0 * lanes * (self.cells + 2.0 * separators)
        ints, static_size = self.integers
        work = float(ints[ints[P_WORK] : ints[P_WORK + 1]].sum())
        named = 0 if isinstance(self.wants, Singles) else PER_NAMED_WANT * len(self.wants)
        return max(8.0 * (static_size + lanes * work + len(ints) + named) + self._held, self.building_bytes)

    @property
    def flops(self) -> float:
        """Multiplications and additions for one case: a pass over a clique for each message in and out."""
        if not self.n_cliques:
            return 0.0
        parent = self.tree.parent
        neighbors = np.bincount(parent[parent >= 0], minlength=self.n_cliques) + (parent >= 0)
        return float(round(float((np.exp(np.minimum(self._clique_logs, 700.0)) * (2.0 + 2.0 * neighbors)).sum())))

    @property
    def seconds(self) -> float:
        """Estimated time for one case."""
        return SECONDS_PER_CELL * self.cells + 1e-7 * self.n_cliques

    def is_worth_a_search(self, cases: int) -> bool:
        """Whether `_numerics.tree.search.search_order` would look for a better order, for so many cases."""
        n = len(self.lowered.sizes)
        return 0.2 * SECONDS_PER_CELL * self.cells * cases > 0.5e-6 * (n + 1) + 1.5e-10 * n * n

    def check_budget(self, memory: float | None, lanes: int = 1) -> None:
        """`BudgetError`, before anything is allocated, when the tables would not fit."""
        check_memory(memory)
        low = self.lowered
        if memory is None and len(low.sizes) < FEW_NODES and self.cells < SMALL_CELLS and len(low.values) < SMALL_CELLS:
            return  # some megabytes at most, and counting them takes longer than a question
        building = self.building_bytes
        if self.cells * 16 + building > (memory if memory is not None else 32e6):
            check_budget(building, memory, self.largest_clique, self.largest_cells)
            check_budget(self.bytes_for(lanes), memory, self.largest_clique, self.largest_cells)

    @property
    def serves_all(self) -> bool:
        """Whether any of the variables may be observed, in each case others."""
        several = int(np.count_nonzero(self.lowered.sizes[: self.lowered.n_visible] > 1))
        return not self.sliced and 0 < len(self.masked) == several

    @cached_property
    def slot_of(self) -> dict[int, int]:
        """Variable → its place among the masked ones."""
        return {v: i for i, v in enumerate(self.masked)}

    @cached_property
    def in_tree(self) -> tuple[tuple[int, ...], ...]:
        """The wanted sets that are read from tables (not those of observed variables)."""
        kept = self.keep.tolist()
        return tuple(want for want in self.wants if all(kept[v] for v in want))

    @property
    def integers(self) -> tuple[IntArray, int]:
        """The packed integers of the program, and the number of cells of its static tables."""
        found: tuple[IntArray, int] | None = self._made.get("integers")
        if found is None:
            found = self._made["integers"] = _build(self)
        return found

    @property
    def program(self) -> Program:
        """The compiled program with the model's numbers; made at the first call."""
        found: Program | None = self._made.get("program")
        if found is None:
            found = self._made["program"] = _fill(self)
        return found

    def __str__(self) -> str:
        lines = [
            f"junction tree ({self.heuristic}): {counted(clique=self.n_cliques)}, induced width {self.width}, "
            f"{self.cells:.4g} cells",
            f"largest clique: {self.largest_cells:.4g} cells over {listing(self.largest_clique) or 'no variable'}",
            f"memory: {readable(self.bytes)}   work: {self.flops:.3g} flops   "
            f"time: about {self.seconds:.2g} s per case",
        ]
        if self.serves_all:
            lines.append("one tree for every set of observed variables")
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
    columns: Sequence[int] | IntArray = (),
    prune: bool = False,
    cases: int = 1,
    memory: float | None = None,
    keep_order: bool = True,
) -> TreePlan:
    """Choose an elimination order and make the tree. `cases` says how much a better order would pay.

    With `prune`, nodes of a Bayesian network that are not ancestors of a wanted, sliced or masked one are left out:
    they sum to one. `BudgetError` where planning alone would take more than `memory` bytes. Without `keep_order` the
    tree leaves no trace, and is compared with that of nothing observed alone, so that trees of several cases can be
    planned in any order, or at the same time.
    """
    keep = (lowered.sizes > 1).view(np.uint8)
    use = np.ones(lowered.n_factors, np.uint8)
    if prune and lowered.parents is not None:
        _prune(lowered, {v for want in wants for v in want}.union(sliced, masked), keep, use)
    if sliced:
        keep[list(sliced)] = 0
    joints = [] if isinstance(wants, Singles) else [want for want in wants if len(want) > 1]
    slots = np.array(masked, np.int64)
    found = _structure(lowered, keep, use, *(_csr(joints) if joints else NO_SETS), slots, cases, memory)
    made: dict[str, Any] = {}
    seen, part = lowered.seen_orders, Part(keep, use)
    is_large = found.log_cells > UNSEEN_LOG_CELLS
    if not joints and (is_large or (seen.every and keep_order)):
        orders = seen.of_less_seen(part) if keep_order else []
        if is_large and not keep.all():
            unseen = [lowered.unseen_order(memory=memory)]
            if cases and found.log_cells > unseen[0].log_cells(lowered.log_sizes) - MOST_GAINED:
                unseen.append(lowered.unseen_order(UNSEEN_SHARE * SECONDS_PER_CELL, memory))
            orders = [*(order for order in orders if all(order is not other for other in unseen)), *unseen]
        found = not_larger(lowered, keep, use, slots, found, orders)
        if keep_order:
            own = TreeOrder(found.clique_ptr, found.clique_idx, found.parent, found.topo)
            seen.add(part, own)
            made["seen orders"] = seen.count
            if cases <= 1 and use.all() and np.array_equal(keep, lowered.sizes > 1):
                lowered.keep_unseen_order(own, searched=cases == 1)
    return TreePlan(lowered, tuple(sliced), tuple(masked), wants, columns, keep, use, found, _made=made)


def laid_out(low: Lowered, keep: Array, use: Array, masked: Sequence[int] | IntArray, order: Order) -> Tree:
    """The tree of an order of some of the variables."""
    from gramgraph._numerics.tree.structure import lay_out

    slots = np.asarray(masked, np.int64)
    return Tree._make(lay_out(low.sizes, low.log_sizes, keep, low.scope_ptr, low.scope_idx, use, slots, *order))


def _structure(
    low: Lowered,
    keep: Array,
    use: Array,
    joint_ptr: IntArray,
    joint_idx: IntArray,
    masked: IntArray,
    cases: int,
    memory: float | None,
) -> Tree:
    """The tree and the layout of its tables: small graphs in one call, large ones step by step."""
    from gramgraph._numerics.tree.structure import lay_out, scopes_in_use, structure

    sizes, log_sizes, scopes = low.sizes, low.log_sizes, (low.scope_ptr, low.scope_idx, use)
    if len(sizes) <= FEW_NODES:
        return Tree._make(
            structure(sizes, log_sizes, keep, *scopes, joint_ptr, joint_idx, masked, cases, SECONDS_PER_CELL)
        )
    in_use_ptr, in_use_idx = scopes_in_use(*scopes, joint_ptr, joint_idx)
    order = sparse_order(in_use_ptr, in_use_idx, log_sizes, keep, cases, SECONDS_PER_CELL, memory)
    return Tree._make(lay_out(sizes, log_sizes, keep, *scopes, masked, *order))


def not_larger(low: Lowered, keep: Array, use: Array, masked: IntArray, found: Tree, orders: Sequence[Order]) -> Tree:
    """The tree, or where that is smaller one whose order was found with nothing, or less, observed: a greedy order for
    what observations leave may be worse, by many orders of magnitude where no tree is small.

    An order restricted to some of its variables never has more cells. So a tree is not larger than the one with nothing
    observed (searched for like any other, where it comes near enough), nor than any other with less observed, as far as
    those are remembered: one that was planned before is compared again when it is next asked for (`compile.compared`).
    What no memory rules out is that of two sets of observations, the larger asked about first, the search does a little
    better for the smaller one. Orders of the whole model alone would rule that out, and are worse by large factors
    where much is observed.
    """
    among = [order.among(keep) for order in orders]
    sizes = [order.log_cells(low.log_sizes) for order in among]
    best = int(np.argmin(sizes)) if sizes else -1
    if sizes and sizes[best] < found.log_cells - 1e-9:
        return laid_out(low, keep, use, masked, among[best])
    return found


def _prune(lowered: Lowered, touched: set[int], keep: Array, use: Array) -> None:
    """Take out of `keep` and `use` what is not an ancestor of a touched node; hidden variables follow their factors."""
    ancestral = lowered.ancestors(touched)
    keep[: lowered.n_visible] &= ancestral[: lowered.n_visible]
    use[ancestral[lowered.owner] == 0] = 0
    if lowered.n_visible < len(lowered.sizes):
        keep[lowered.n_visible :] = 0
        in_use = np.repeat(use, np.diff(lowered.scope_ptr)) == 1
        keep[lowered.scope_idx[in_use & (lowered.scope_idx >= lowered.n_visible)]] = 1


def _csr(sets: Sequence[tuple[int, ...]]) -> tuple[IntArray, IntArray]:
    """Sets of variables as pointers and members."""
    if isinstance(sets, Singles):
        return np.arange(len(sets) + 1), np.arange(len(sets))
    return np.array([0, *accumulate(map(len, sets))], np.int64), np.array([*chain.from_iterable(sets)], np.int64)


def _places(members: tuple[int, ...], n: int) -> IntArray:
    """For each of n variables its place among the members, or -1."""
    place = np.full(n, -1, np.int64)
    if members:
        place[list(members)] = np.arange(len(members))
    return place


def _build(plan: TreePlan) -> tuple[IntArray, int]:
    from gramgraph._numerics.tree.program import build

    low, tree = plan.lowered, plan.tree
    column, slot = _places(plan.sliced, len(low.sizes)), _places(plan.masked, len(low.sizes))
    want_ptr, want_idx = _csr(plan.wants)
    made: tuple[IntArray, int] = build(
        low.sizes, plan.keep, column, slot, tree.mask_offset, low.scope_ptr, low.scope_idx, low.value_ptr, tree.home,
        tree.is_static, plan.use, tree.mask_home, tree.clique_ptr, tree.ordered, tree.n_sep, tree.table_size,
        tree.sep_size, tree.parent, tree.topo, tree.child_ptr, tree.children, want_ptr, want_idx,
        np.array(plan.columns, np.int64),
    )  # fmt: skip
    return made


def _fill(plan: TreePlan) -> Program:
    from gramgraph._numerics.tree.runner import fill_static

    low, tree = plan.lowered, plan.tree
    ints, static_size = plan.integers
    static = np.empty(max(static_size, 1))
    scale = fill_static(
        static, ints, tree.home, tree.is_static, low.scope_ptr, low.scope_idx, low.value_ptr, low.values
    )  # fmt: skip
    return Program(ints, static, low.log_scale + scale)
