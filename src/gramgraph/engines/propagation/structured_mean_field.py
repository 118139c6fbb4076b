"""Structured mean field: blocks of variables that are forests, exact inside and independent of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramgraph._numerics.messages.loopy import SEQUENTIAL, edges_of, factor_of_edges
from gramgraph._numerics.messages.loopy_run import conclude, first_messages, message_places, propagate
from gramgraph._numerics.messages.structured_field import (
    block_marginals,
    expected_pieces,
    first_marginals,
    forest_blocks,
    is_forest,
    structured_bound,
)
from gramgraph.engines.anytime import Found, How, SweepEngine, never
from gramgraph.engines.approximate import Cases, between, whole
from gramgraph.engines.propagation.mean_field import MAX_ITER, STARTS, TOL, best_start, proved_impossible
from gramgraph.engines.propagation.tree_reweighted import merged
from gramgraph.engines.slices import Sliced, show_observed, slice_case
from gramgraph.exceptions import OptionError
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray, IntArray, RandomState

if TYPE_CHECKING:
    from gramgraph.models.base import GraphicalModel

OPTIONS = ("blocks", "max_iter", "tol", "n_starts")


class Settings(NamedTuple):
    """Options; `groups` numbers of variables, or None for blocks that are found."""

    groups: tuple[tuple[int, ...], ...] | None
    max_iter: int
    tol: float
    n_starts: int


class StructuredMeanField(SweepEngine):
    """q(x) = Π_B q_B(x_B) over blocks of variables, each q_B a forest, nearest to the posterior: log p(e) from below.

    A block takes its own factors as they are and E log ψ of those it shares with others; one pass of messages makes it
    exact. The start is plain mean field, and the bound never falls: it is at least that of plain mean field. Blocks are
    found (forests that hold the strongest factors) or given: `blocks=[["a", "b"], …]`, lists of names, in which the
    factors close no loop; variables that none names are found blocks. `details["bounds"]` holds the bound of every
    sweep, `details["blocks"]` the number of blocks. Cost of a sweep: O(Σ_f cells times blocks of the factor).

    >>> import gramgraph as gg
    >>> net = gg.models.ising_grid(4, 4, coupling=0.5, field=0.1)
    >>> bounds = [net.query("x0_0", engine=e).log_evidence for e in ("mean_field", "structured_mean_field")]
    >>> bounds[0] < bounds[1] < net.log_evidence()
    True
    """

    name = "structured_mean_field"
    options = OPTIONS

    def settings(self, model: GraphicalModel) -> tuple[Any, int]:
        """The options after a check, and how many sweeps there are at most."""
        made = _settings(model, self.given)
        return made, made.max_iter

    def run(self, model: GraphicalModel, question: Question, how: How) -> Found:
        """Beliefs and log p(evidence), or a bound of it, for every case."""
        return _run(model, question, how.settings, how.rng, how.stop)


def structured_lower_bound(
    model: GraphicalModel, question: Question, random_state: RandomState = 0, stop: Array | None = None
) -> FloatArray:
    """A number below log p(evidence) for every case (-inf where none was found), never below that of mean field."""
    rng, flag = np.random.default_rng(random_state), never() if stop is None else stop
    log_z = _run(model, question, Settings(None, MAX_ITER, TOL, STARTS), rng, flag)[2]
    return np.nan_to_num(log_z, nan=-np.inf, neginf=-np.inf)


def _settings(model: GraphicalModel, options: dict[str, Any]) -> Settings:
    blocks, groups = options.get("blocks"), None
    if blocks is not None:
        if isinstance(blocks, str) or not isinstance(blocks, Sequence) or any(isinstance(b, str) for b in blocks):
            raise OptionError(f'blocks is a list of lists of names, such as [["a", "b"], ["c"]], not {blocks!r:.80}')
        groups = tuple(tuple(model.index(name) for name in block) for block in blocks)
        named = [v for group in groups for v in group]
        if len(set(named)) != len(named):
            twice = next(model.vars[v].name for v in named if named.count(v) > 1)
            raise OptionError(f"a variable is in one block, {twice} is named twice")
    return Settings(
        groups,
        whole("max_iter", options.get("max_iter", MAX_ITER)),
        between("tol", options.get("tol", TOL), 0.0, 1.0),
        whole("n_starts", options.get("n_starts", STARTS)),
    )


def _run(model: GraphicalModel, question: Question, settings: Settings, rng: np.random.Generator, stop: Array) -> Found:
    cases = Cases.of(model, question)
    n = question.n_cases
    beliefs, log_z = np.full((n, int(cases.unary_ptr[-1])), np.nan), np.full(n, -np.inf)
    feasible, converged, blocks = np.zeros(n, np.bool_), np.ones(n, np.bool_), np.zeros(n, np.int64)
    bounds = np.zeros(0)
    for case in range(n):
        part = slice_case(cases, case)
        if part.constant == -np.inf:
            continue
        shift = part.constant + cases.low.log_scale
        start = best_start(cases, part, (settings.max_iter, settings.tol, settings.n_starts), rng, stop)
        q, bounds, converged[case], feasible[case] = start[0], start[2], start[3], start[1] > -np.inf
        if not feasible[case] and proved_impossible(cases, part):
            continue
        log_z[case] = start[1] + shift if feasible[case] else np.nan
        if feasible[case]:
            field = _Field.of(model, cases, merged(cases, part), settings.groups)
            blocks[case] = len(field.blocks)
            q, bound, more, converged[case] = field.ascend(q, settings, stop)
            log_z[case], bounds = max(bound, start[1]) + shift, more
        bounds = bounds + shift
        beliefs[case] = q
        show_observed(cases, case, beliefs)
    details: dict[str, Any] = {"lower_bound": log_z, "converged": converged, "feasible": feasible, "blocks": blocks}
    if not question.batched:
        details = {key: value[0].item() for key, value in details.items()} | {"bounds": bounds, "sweeps": len(bounds)}
    return cases, beliefs, log_z, details


class _Block(NamedTuple):
    """The pieces of one block as a factor graph, which is a forest."""

    variables: IntArray
    pieces: IntArray
    cells: IntArray  # where the cells of its pieces stand among those of all pieces
    scope_ptr: IntArray
    scope_idx: IntArray
    value_ptr: IntArray
    var_ptr: IntArray
    var_edge: IntArray
    edge_factor: IntArray
    msg_ptr: IntArray


@dataclass(frozen=True, eq=False)
class _Field:
    """Factors, their pieces and the blocks of one case."""

    cases: Cases
    part: Sliced
    edge_piece: IntArray
    edge_stride: IntArray
    first_piece: IntArray  # (factors + 1,)
    piece_ptr: IntArray  # (pieces + 1,) cells
    piece_factor: IntArray
    blocks: tuple[_Block, ...]

    @classmethod
    def of(
        cls, model: GraphicalModel, cases: Cases, part: Sliced, groups: tuple[tuple[int, ...], ...] | None
    ) -> _Field:
        """Cut each factor into its pieces, one a block that it meets."""
        block, n_blocks = _partition(cases, part, groups)
        ptr, sizes = part.scope_ptr.tolist(), cases.low.sizes.tolist()
        vars_of, block_of = part.scope_idx.tolist(), block.tolist()
        edge_piece, edge_stride = np.zeros(len(vars_of), np.int64), np.ones(len(vars_of), np.int64)
        first, cells = [0], [0]
        factor: list[int] = []
        scopes: list[list[int]] = []
        home: list[int] = []
        for f in range(len(ptr) - 1):
            for b in dict.fromkeys(block_of[v] for v in vars_of[ptr[f] : ptr[f + 1]]):
                edges = [e for e in range(ptr[f], ptr[f + 1]) if block_of[vars_of[e]] == b]
                stride = 1
                for e in reversed(edges):
                    edge_piece[e], edge_stride[e] = len(factor), stride
                    stride *= sizes[vars_of[e]]
                cells.append(cells[-1] + stride)
                factor.append(f)
                scopes.append([vars_of[e] for e in edges])
                home.append(b)
            first.append(len(factor))
        piece_ptr, homes = np.array(cells, np.int64), np.array(home, np.int64)
        made = [
            _block(cases, np.flatnonzero(block == b), np.flatnonzero(homes == b), piece_ptr, scopes)
            for b in range(n_blocks)
        ]
        _check_forests(model, cases, made, groups)
        numbers = [np.array(given, np.int64) for given in (first, factor)]
        return cls(cases, part, edge_piece, edge_stride, numbers[0], piece_ptr, numbers[1], tuple(made))

    def ascend(self, q: FloatArray, settings: Settings, stop: Array) -> tuple[FloatArray, float, FloatArray, bool]:
        """(beliefs, bound, bounds of all sweeps, converged): block after block until the bound stands still."""
        part, sizes, at = self.part, self.cases.low.sizes, self.cases.unary_ptr
        tables = (part.scope_ptr, part.scope_idx, part.value_ptr, part.values, sizes)
        pieces = (self.edge_piece, self.edge_stride, self.first_piece, self.piece_ptr)
        marginal, q, bounds, done = np.empty(int(self.piece_ptr[-1])), q.copy(), [], False
        first_marginals(part.scope_ptr, part.scope_idx, sizes, at, *pieces[:2], self.piece_ptr, q, marginal)
        for _ in range(settings.max_iter):
            for block in self.blocks:
                self._update(block, marginal, q)
            bounds.append(structured_bound(*tables, part.unary, at, part.active, *pieces, marginal, q))
            done = len(bounds) > 1 and bounds[-1] - bounds[-2] <= settings.tol * max(1.0, abs(bounds[-1]))
            if done or stop[0]:
                break
        return q, float(bounds[-1]), np.array(bounds), done

    def _update(self, block: _Block, marginal: FloatArray, q: FloatArray) -> None:
        """The block's best belief given the others; what rounding makes impossible is left as it was."""
        part, sizes, at = self.part, self.cases.low.sizes, self.cases.unary_ptr
        values = np.empty(int(block.value_ptr[-1]))
        expected_pieces(
            block.pieces, self.piece_factor, part.scope_ptr, part.scope_idx, part.value_ptr, part.values, sizes,
            self.edge_piece, self.edge_stride, self.first_piece, self.piece_ptr, marginal, values,
        )  # fmt: skip
        graph, tables = (block.var_ptr, block.var_edge), (block.scope_ptr, block.scope_idx, block.value_ptr, values)
        to_var = first_messages(block.scope_idx, sizes, block.msg_ptr)
        back, beliefs = to_var.copy(), np.empty(len(q))
        messages = (block.msg_ptr, to_var, back)
        given = (sizes, part.unary, at)
        _, _, possible = propagate(
            *tables, *given, *graph, block.edge_factor, *messages, SEQUENTIAL, 0.0, 0.0, 1, 0.0, False, np.empty(1)
        )
        mine = np.zeros(len(sizes), np.bool_)
        mine[block.variables] = True
        if not possible or conclude(*tables, *given, mine, *graph, *messages, False, 0.0, beliefs) == -np.inf:
            return
        found = np.empty(len(values))
        if block_marginals(*tables, *given, *graph, *messages, found):
            marginal[block.cells] = found
            columns = np.repeat(mine, sizes)
            q[columns] = beliefs[columns]


def _block(cases: Cases, variables: IntArray, pieces: IntArray, piece_ptr: IntArray, scopes: list[list[int]]) -> _Block:
    mine = [scopes[p] for p in pieces.tolist()]
    ptr = np.array([0, *np.cumsum([len(scope) for scope in mine])], np.int64)
    idx = np.array([v for scope in mine for v in scope], np.int64)
    counts = piece_ptr[pieces + 1] - piece_ptr[pieces]
    value_ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    cells = np.repeat(piece_ptr[pieces] - value_ptr[:-1], counts) + np.arange(int(value_ptr[-1]))
    var_ptr, var_edge = edges_of(idx, len(cases.low.sizes))
    places = message_places(idx, cases.low.sizes)
    return _Block(
        variables,
        pieces,
        cells,
        ptr,
        scope_idx=idx,
        value_ptr=value_ptr,
        var_ptr=var_ptr,
        var_edge=var_edge,
        edge_factor=factor_of_edges(ptr),
        msg_ptr=places,
    )


def _partition(cases: Cases, part: Sliced, groups: tuple[tuple[int, ...], ...] | None) -> tuple[IntArray, int]:
    """(block of each variable, -2 for those that take no part; number of blocks), the strongest factors first."""
    from gramgraph._numerics.messages.forests import grow_forest, reach

    n_vars, n = len(cases.low.sizes), len(part.scope_ptr) - 1
    block = np.where(part.active, -1, -2)
    given = 0 if groups is None else len(groups)
    for number, group in enumerate(groups or ()):
        members = np.array(group, np.int64)
        block[members[block[members] == -1]] = n_vars + number
    graph = (part.var_ptr, part.var_edge, part.edge_factor)
    logs = np.log(np.maximum(part.values, 1e-30))
    strength = np.array([np.ptp(logs[a:b]) for a, b in zip(part.value_ptr, part.value_ptr[1:], strict=False)])
    inside = np.zeros(n, np.bool_)
    grow_forest(part.scope_ptr, part.scope_idx, np.argsort(-strength, kind="stable"), n_vars, inside)
    order = reach(part.scope_ptr, part.scope_idx, *graph, inside)
    near = [part.scope_idx[part.scope_ptr[f] : part.scope_ptr[f + 1]] for f in order]
    walk = np.array(list(dict.fromkeys(np.concatenate([*near, np.arange(n_vars)]).tolist())), np.int64)
    found = int(forest_blocks(part.scope_ptr, part.scope_idx, *graph, walk, block))
    return np.where(block >= n_vars, block - n_vars + found, block), found + given


def _check_forests(
    model: GraphicalModel, cases: Cases, blocks: list[_Block], groups: tuple[tuple[int, ...], ...] | None
) -> None:
    """`OptionError` for a given block with a loop."""
    for number, block in enumerate(blocks[len(blocks) - len(groups) :] if groups else ()):
        if not is_forest(block.scope_ptr, block.scope_idx, len(cases.low.sizes)):
            names = [model.vars[v].name for v in block.variables.tolist() if v < len(model.vars)]
            raise OptionError(
                f"block {number} ({', '.join(names[:8])}{', …' if len(names) > 8 else ''}) has a loop of factors: a "
                "block must be a forest. Take a variable of the loop out of it, or leave blocks out"
            )
