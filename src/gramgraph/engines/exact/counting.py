"""Exact inference by search: states are chosen, their consequences followed, and the sum of every part kept."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gramgraph.answers import Answer
from gramgraph.compile.budget import budget_of, check_memory, readable
from gramgraph.compile.clauses import Encoded, encode, leading
from gramgraph.compile.lower import lower
from gramgraph.engines.anytime import anytime
from gramgraph.engines.base import Run
from gramgraph.engines.exact.outputs import Outputs
from gramgraph.engines.exact.shrinking import Shrinking, listed
from gramgraph.engines.exact.smaller import rough_tree
from gramgraph.exceptions import BudgetError
from gramgraph.models.base import GraphicalModel
from gramgraph.questions.question import Question
from gramgraph.typing import Array, FloatArray

#: Seconds of a step of the search: a literal that is looked at.
STEP_SECONDS = 1.3e-8
#: Steps that "auto" takes before it tries something else: some seconds. The part of a time budget that it may take.
MOST_STEPS, SHARE = 4e8, 0.25
#: Searches in so many literals are over before anybody could interrupt them, where each is looked at so often.
LONG = 1000
#: Sums for which there is room at first, and how much more there is each time that it was not enough.
FIRST_NODES, GROWTH = 20_000, 8
#: Room for learned clauses, by sums and beside them, and for their literals.
LEARNED_PER_NODE, LEARNED, LITERALS_EACH = 4, 10_000, 30
#: Bytes of a literal of a clause while the tables are written as such.
BYTES_PER_LITERAL = 60.0
#: Joint tables with more states than this are not asked for here.
MOST_JOINT = 4096


class ModelCounting(Shrinking):
    """Exact inference by weighted model counting: search with cached components.

    Tables are written as clauses: what is forbidden, and what has another weight than usual. A state is chosen, and
    what the clauses imply is followed; what falls apart by that is summed by itself, and the sum of every part is
    remembered, so that a part that is met again costs nothing. Conflicts teach new clauses. Time goes with the number
    of different parts, which structure inside the tables (zeros, equal rows) keeps small where the graph is wide:
    circuits, plans, puzzles. Beliefs are read from the sums in one pass backward.

    Parameters
    ----------
    **given : it takes no options.

    Examples
    --------
    >>> import gramgraph as gg
    >>> differ = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]  # three neighbors, no two of one color
    >>> net = gg.MarkovNetwork(
    ...     states={name: ["red", "blue", "green"] for name in "abc"},
    ...     potentials={("a", "b"): differ, ("b", "c"): differ, ("a", "c"): differ},
    ... )
    >>> answer = net.query("c", {"a": "red"}, engine="counting")
    >>> answer["c"].probabilities.tolist(), round(float(np.exp(answer.log_evidence)))
    ([0.0, 0.5, 0.5], 2)
    """

    name = "counting"

    def about_smaller(self, model: GraphicalModel, question: Question, run: Run) -> Answer:
        """The answer to a question in which nothing is observed."""
        check_memory(run.memory)
        low = lower(model)
        if self.strict and low.zeros == 0.0:
            raise BudgetError("no zeros are left that a search could make use of", bytes=8.0 * len(low.values))
        shapes = [tuple(int(low.sizes[v]) for v in members) for members in question.joints]
        if any(prod(shape) > MOST_JOINT for shape in shapes):
            raise BudgetError(f"joint tables of more than {MOST_JOINT} states", bytes=8.0 * max(map(prod, shapes)))
        outputs = Outputs.of(model, question.targets, question.joints, ())
        out, log_z = np.full((1, outputs.width), np.nan), np.full(1, -np.inf)
        blocks = {tag: np.full((1, *shape), np.nan) for tag, shape in enumerate(shapes)}
        encoded = encode(low, question.joints)
        lead = np.zeros(encoded.n)
        rough = rough_tree(model, memory=run.memory)
        if rough is not None:
            by_variable = leading(rough.tree, len(low.sizes))
            lead[: encoded.place[-1]] = np.repeat(by_variable, np.diff(encoded.place))
        log_total, p = self._searched(encoded, lead, run, bool(question.targets or question.joints))
        if log_total > -np.inf:
            log_z[0] = log_total + encoded.log_scale
            out[0, : outputs.n_marginals] = listed([encoded.belief(v, p) for v in question.targets], low, question)
            blocks = {
                tag: p[2 * encoded.joints[tag] + 1].reshape(1, *shape) for tag, shape in enumerate(shapes)
            }  # fmt: skip
        return outputs.answer(model, question, out, log_z, blocks, engine=self.name)

    def _searched(self, encoded: Encoded, lead: FloatArray, run: Run, keep: bool) -> tuple[float, FloatArray]:
        """log Z of the clauses and the probabilities of all literals (with `keep`), within the run's limits."""
        from gramgraph._numerics.clauses import search as numerics
        from gramgraph._numerics.clauses.arrays import bytes_for
        from gramgraph._numerics.clauses.memory import beliefs
        from gramgraph._numerics.clauses.propagation import CHOICES, NODES, STEPS

        room, most, seconds = budget_of(run.memory), np.inf, None
        if run.seconds is not None:
            seconds = SHARE * run.seconds
            most = seconds / STEP_SECONDS
        elif self.strict:
            most = MOST_STEPS
        fixed, each = bytes_for(encoded.n, encoded.n_clauses)
        fixed += BYTES_PER_LITERAL * len(encoded.literals)
        if run.memory is not None and fixed > room:
            raise BudgetError(f"the clauses of the tables alone need {readable(fixed)}", bytes=fixed)
        limit = max(int((room - fixed) / each), 1)
        nodes = min(FIRST_NODES, limit)
        while True:
            ended, log_z, clauses, arrays = _search(encoded, lead, nodes, most, keep, seconds)
            if ended != numerics.OUT_OF_ROOM or nodes == limit:
                break
            nodes = min(GROWTH * nodes, limit)
        at, _, _, depths, sums = arrays
        if ended in (numerics.OUT_OF_ROOM, numerics.OUT_OF_STEPS):
            steps, choices = int(at[STEPS]), int(at[CHOICES])
            needed = fixed + each * float(at[NODES])
            raise BudgetError(
                f"exact inference by search has not come to its end after {choices:,} choices "
                f"({steps * STEP_SECONDS:.2g} s) and {readable(needed)}",
                bytes=needed,
                remedies=("raise the budget: memory=… (bytes)", "take an approximate answer: engine='bp'"),
            )
        if ended == numerics.IMPOSSIBLE or not keep:
            return float(log_z), np.zeros(0)
        tape = sums.share, sums.branches, sums.items, sums.links
        return float(log_z), beliefs(at, depths.branch[0], clauses.log_literal, *tape)


def _search(
    encoded: Encoded, lead: FloatArray, nodes: int, most: float, keep: bool, seconds: float | None
) -> tuple[int, float, Any, Any]:
    """How the search ended that has room for so many sums, log Z, the clauses and the arrays it has used."""
    from gramgraph._numerics.clauses.arrays import room_for
    from gramgraph._numerics.clauses.search import search

    clauses = _with_room(encoded, lead, nodes)
    arrays = room_for(clauses, encoded.n_clauses, encoded.n_all, nodes)

    def work(stop: Array) -> tuple[int, float]:
        found: tuple[int, float] = search(
            encoded.n_clauses, encoded.n_all, most, keep, stop, arrays[0], clauses, *arrays[1:]
        )
        return found

    (ended, log_z), early = anytime(work, seconds, len(encoded.literals) * LONG)
    if early.get("stopped") == "interrupt":
        raise KeyboardInterrupt
    return ended, log_z, clauses, arrays


def _with_room(encoded: Encoded, lead: FloatArray, nodes: int) -> Any:
    """The clauses, with room for those that are learned."""
    from gramgraph._numerics.clauses.arrays import Clauses

    more = nodes // LEARNED_PER_NODE + LEARNED
    first = np.empty(encoded.n_all + 1 + more, np.int32)
    first[: encoded.n_all + 1] = encoded.first
    literals = np.empty(int(encoded.first[-1]) + LITERALS_EACH * more, np.int32)
    literals[: encoded.first[-1]] = encoded.literals
    marks = np.random.default_rng(0).integers(0, 2**64, (encoded.n + encoded.n_clauses, 2), np.uint64)
    return Clauses(first, literals, encoded.log_weight, encoded.log_literal, lead, marks)
