"""Gibbs sampling of whole trees: forward filter, backward sample, block after block."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph._numerics.sampling.chains import block_sweep, forest_order, tree_blocks
from gramgraph.engines.sampling.chains import ChainEngine, Moves, Setting
from gramgraph.typing import Array


class BlockMoves(Moves):
    """Blocks that are forests given the rest, each drawn as one."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        part, c = setting.part, setting.compiled
        graph = part.scope_ptr, part.scope_idx, part.var_ptr, part.var_edge, part.edge_factor
        self.block, self.n_blocks = tree_blocks(c.variables, *graph, len(c.sizes))
        self.orders = [
            forest_order(np.flatnonzero(self.block == b), self.block, b, *graph) for b in range(self.n_blocks)
        ]

    def move(self, state: Array, rng: np.random.Generator) -> None:
        """Draw every block given the others."""
        c = self.setting.compiled
        weights, pairs = np.empty(len(c.unary)), np.empty(int(c.sizes.max(initial=1)) ** 2)
        for number, (order, above) in enumerate(self.orders):
            block_sweep(order, above, self.block, number, *c[1:], rng.random(len(order)), state, weights, pairs)

    def report(self) -> dict[str, float]:
        """How many blocks there are."""
        return {"n_blocks": self.n_blocks}


class BlockGibbs(ChainEngine):
    """Trees of variables are drawn at once given the rest: weights go up the tree, states come down.

    The variables are cut greedily into few blocks in which the factors, at the states of the other blocks, form a
    forest (a grid: two or three). Strongly coupled neighbors then move together, and zeros between two of a block lock
    nothing. A model that is a tree is drawn independently in every sweep. Cost of a sweep: O(Σ_v factors of v ×
    variables of each, and Σ over edges of a tree of the product of the two numbers of states). Options and answers as
    of `engine="gibbs"`; `details["n_blocks"]`.

    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(3, 3, coupling=0.6)
    >>> answer = net.query("x0_0", engine="block_gibbs", random_state=0, budget=4000)
    >>> answer.details["n_blocks"], abs(answer["x0_0"].prob("+1") - 0.5) < 0.05
    (2, True)
    """

    name = "block_gibbs"

    def moves(self, setting: Setting, options: dict[str, Any]) -> Moves:
        """The blocks of one case."""
        return BlockMoves(setting)
