"""Every variable of a function is given a value in one place: Numba's step, on the parts that name the variable.

Numba rewrites the whole function once for every variable that is given a value in several places. Here only those
blocks are rewritten in which the variable occurs; the result is the same.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from numba.core import ir, ssa
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.compiler_machinery import register_pass
from numba.core.ir_utils import build_definitions
from numba.core.untyped_passes import ReconstructSSA

__all__ = ["Renaming"]


def _renamed(blocks: dict[int, Any]) -> dict[int, Any]:
    """The blocks with a name of its own for every place where a variable is given a value."""
    graph = compute_cfg_from_blocks(blocks)
    fronts = ssa._iterated_domfronts(graph)
    used = ssa._CacheListVars()
    naming = _blocks_naming(blocks)
    found = dict(blocks)
    for name in ssa._find_defs_violators(blocks, graph):
        part, places = ssa._fresh_vars({at: found[at] for at in found if at in naming[name]}, name)
        joins: dict[int, list[Any]] = defaultdict(list)
        states = {
            "scope": next(iter(blocks.values())).scope,
            "varname": name,
            "defmap": places,
            "phimap": joins,
            "cfg": graph,
            "phi_locations": ssa._compute_phi_locations(fronts, places),
        }
        found.update(ssa._run_block_rewrite(part, states, ssa._FixSSAVars(used)))
        for at, made in joins.items():
            found[at] = _with_first(made, found[at])
    return found


def _blocks_naming(blocks: dict[int, Any]) -> dict[str, set[int]]:
    """Name → the blocks in which it occurs."""
    naming: dict[str, set[int]] = defaultdict(set)
    for at, block in blocks.items():
        for statement in block.body:
            for variable in statement.list_vars():
                naming[variable.name].add(at)
    return naming


def _with_first(statements: list[Any], block: Any) -> Any:
    made = ir.Block(scope=block.scope, loc=block.loc)
    made.body = statements + block.body
    return made


@register_pass(mutates_CFG=True, analysis_only=False)
class Renaming(ReconstructSSA):  # type: ignore[misc]
    """Numba's step of that name."""

    _name = "reconstruct_ssa_where_named"

    def run_pass(self, state: Any) -> bool:
        """Rename the variables."""
        if state.func_ir.is_generator:
            return bool(super().run_pass(state))
        state.func_ir.blocks = _renamed(state.func_ir.blocks)
        self._patch_locals(state)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True
