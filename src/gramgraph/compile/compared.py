"""Plans of one model beside each other: one with more observed takes no more cells and bytes than those before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramgraph.compile.ordering import TreeOrder
from gramgraph.compile.seen_orders import Part
from gramgraph.compile.tree import TreePlan, laid_out, not_larger


def with_later_orders(plan: TreePlan) -> TreePlan:
    """The plan, or a smaller one where an order that was found later, with less observed, has fewer cells."""
    seen = plan.lowered.seen_orders
    since = plan._made.get("seen orders")
    if since is None or since == seen.count:
        return plan
    plan._made["seen orders"] = seen.count
    orders = seen.of_less_seen(Part(plan.keep, plan.use), since)
    tree = not_larger(plan.lowered, plan.keep, plan.use, np.array(plan.masked, np.int64), plan.tree, orders)
    return plan if tree is plan.tree else replace(plan, tree=tree, _made={"seen orders": seen.count})


def within_told_bytes(plan: TreePlan) -> TreePlan:
    """The plan, or one in its place that takes no more memory than those with less observed have told.

    First the same tree with fewer numbers multiplied in beforehand, which are not needed; then, as a tree of fewer
    cells may have larger messages and maps, those whose orders were found with less observed.
    """
    if not plan.is_compared:
        return plan
    low, part = plan.lowered, Part(plan.keep, plan.use)
    told = low.seen_orders.least_told(part, plan.wants)
    if plan.bytes_for(1) <= told.bytes:
        return plan
    smaller = _with_fewer_static(plan, told.bytes)
    if smaller.bytes_for(1) <= told.bytes:
        return smaller
    for order in low.seen_orders.of_less_seen(part, every=True):
        among = order.among(plan.keep)
        if among.log_cells(low.log_sizes) > told.log_cells + 1e-9:
            continue
        tree = laid_out(low, plan.keep, plan.use, plan.masked, among)
        other = replace(plan, tree=tree, _made={"seen orders": low.seen_orders.count})
        other = _with_fewer_static(other, told.bytes)
        if other.bytes_for(1) <= told.bytes:
            low.seen_orders.add(part, TreeOrder(tree.clique_ptr, tree.clique_idx, tree.parent, tree.topo))
            other._made["seen orders"] = low.seen_orders.count
            return other
    return plan


def _with_fewer_static(plan: TreePlan, most: float) -> TreePlan:
    """The plan without some of the tables that are multiplied in beforehand, the largest first, until `most` bytes are
    enough."""
    tree = plan.tree
    excess = plan.bytes_for(1) - most
    if excess <= 0.0 or not tree.is_static.any():
        return plan
    static = np.flatnonzero((tree.is_static > 0) & (tree.home >= 0))
    gain = np.zeros(plan.n_cliques)
    gain[tree.home[static]] = 8.0 * tree.table_size[tree.home[static]]
    np.subtract.at(gain, tree.home[static], plan.entered_bytes[static])
    largest = np.argsort(-gain, kind="stable")
    gained = np.cumsum(gain[largest])
    gone = np.zeros(plan.n_cliques, np.bool_)
    gone[largest[: int(np.searchsorted(np.maximum.accumulate(gained), excess)) + 1]] = True
    is_static = tree.is_static.copy()
    is_static[static[gone[tree.home[static]]]] = 0
    return replace(plan, tree=tree._replace(is_static=is_static), _made={"seen orders": plan._made["seen orders"]})
