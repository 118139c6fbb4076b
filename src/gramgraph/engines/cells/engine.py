"""Models on cells, for all cases at once: messages as matrix products along a forest, else the tables on cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.answers import RealAnswer
from gramgraph.cells.axes import LineAxis
from gramgraph.cells.drawing import inside
from gramgraph.compile.plan import Plan
from gramgraph.engines.base import PLAIN, Best, Drawn, Engine, Run
from gramgraph.engines.cells.answers import Masses, answer_of, check_beliefs
from gramgraph.engines.cells.best import best_cells, rows_of
from gramgraph.engines.cells.conditioning import asked_on_tables
from gramgraph.engines.cells.drawing import draw_forest
from gramgraph.engines.cells.evidence import Seen, blocks
from gramgraph.engines.cells.joints import joint_masses, with_likelihoods
from gramgraph.engines.cells.log_p import log_p_of_forest
from gramgraph.engines.cells.messages import propagate
from gramgraph.engines.cells.tables import by_tables
from gramgraph.engines.exact.junction_tree import JunctionTree
from gramgraph.engines.fallback import automatic, automatic_draw
from gramgraph.exceptions import BudgetError
from gramgraph.questions.question import Question


class Cells(Engine):
    """Sum-product between cells, 2 m² operations for each case and edge; a network that is not a forest of balanced
    ratios is asked on its tables. Exact for the densities that were learned, which are linear between cells."""

    name = "cells"
    exact = True
    kinds = ("cells",)

    def answer(self, model: Any, question: Question, run: Run = PLAIN) -> RealAnswer:
        """Posterior masses of cells, and log p(evidence)."""
        seen = Seen.of(model, question)
        if not model.is_balanced_forest or seen.differ:
            return by_tables(model, question, run, lambda cells, asked: automatic(cells, asked, run))
        if not question.wanted and not question.joints:
            return answer_of(model, question, seen, Masses({}, {}, log_p_of_forest(model, seen), self.name))
        tree, heard, log_virtual = with_likelihoods(model, seen)
        check_beliefs(model, question, run.memory, np.dtype(tree.dtype).itemsize)
        n = seen.n_cases
        masses = {v: np.empty((n, model.cell_axes[v].m), dtype=tree.dtype) for v in question.wanted}
        log_p = seen.log_base + log_virtual
        for block in blocks(model, n):
            part = {v: p.take(block) for v, p in heard.items()}
            found, more = propagate(tree, part, block.stop - block.start, question.wanted)
            log_p[block] += more
            for v, values in found.items():
                masses[v][block] = values
        joint = {group: joint_masses(model, tree, heard, n, group, run.memory) for group in question.joints}
        return answer_of(model, question, seen, Masses(masses, joint, log_p, self.name))

    def plan(self, model: Any, question: Question) -> Plan:
        """What the messages would cost."""
        sizes = [axis.m for axis in model.cell_axes]
        entries = [float(np.prod([sizes[v] for v in positions])) for positions, _ in model.ratios]
        largest = model.ratios[int(np.argmax(entries))][0] if entries else (int(np.argmax(sizes)),)
        needed = 8.0 * question.n_cases * 2.0 * sum(sizes)
        return Plan(
            self.name, self.exact, "", len(largest) - 1, model.names_of(largest), needed,
            flops=4.0 * question.n_cases * sum(entries), parts=max(len(entries), 1),
        )  # fmt: skip

    def best(self, model: Any, question: Question, run: Run = PLAIN) -> Best:
        """The values at anchors of cells with the largest joint density."""
        return best_cells(model, question, run)

    def draw(self, model: Any, question: Question, n: int, run: Run = PLAIN) -> Drawn:
        """n draws of all variables given one case; values stand inside their cells by the density there."""
        seen, rng = Seen.of(model, question), run.generator
        log_p = float(self.answer(model, replace(question, targets=(), joints=()), run).log_evidence)
        if model.is_balanced_forest:
            drawn = draw_forest(model, n, seen, rng)
        else:
            asked = replace(asked_on_tables(model, seen, np.arange(1))[0], batched=False)
            again = replace(run, random_state=rng)
            try:
                cells = JunctionTree().draw(model.cells, asked, n, again).states
            except BudgetError:
                cells = automatic_draw(model.cells, asked, n, again).states
            drawn = {
                v: inside(axis, cells[:, v], rng)[0] if isinstance(axis, LineAxis) else cells[:, v]
                for v, axis in enumerate(model.cell_axes)
            }
        states, X = rows_of(model, seen, np.zeros(n, np.int64), drawn)
        return Drawn(states, log_p, X)
