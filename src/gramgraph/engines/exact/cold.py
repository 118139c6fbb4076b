"""Who answers while the code of the junction tree is not in memory: elimination, on NumPy, where that costs little.

A tree for a large network is worth its planning and its compiled code over many questions. One question on a few
targets needs a small part of the network, and elimination finds it in hundredths of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramgraph._numerics.compiling import rent, ripe
from gramgraph.compile.lower import lower
from gramgraph.questions.question import Question

if TYPE_CHECKING:
    from gramgraph.answers import Answer
    from gramgraph.engines.base import Engine, Run
    from gramgraph.models.base import GraphicalModel

#: Networks with fewer variables have their tree in a tenth of a second, compiled or not.
LARGE = 200
#: Every table that is asked for is an elimination of its own.
FEW = 4
#: The most that one case may take: operations, and bytes.
FLOPS, BYTES = 1e8, 1e8
#: With more observations in tables with more zeros, those are followed first.
MANY_SEEN, FEW_ZEROS = 50, 0.1
#: Seconds of one step of elimination and of one operation.
STEP_SECONDS, FLOP_SECONDS = 3e-5, 2e-9


def may_eliminate(model: GraphicalModel) -> bool:
    """Whether it is worth asking, before a question is read."""
    if len(model.vars) < LARGE:
        return False
    from gramgraph._numerics.tree import runner

    return not ripe(runner.sums, 0.0)


def eliminates(model: GraphicalModel, question: Question) -> bool:
    """Whether elimination answers this question of a discrete model, rather than a tree that is not compiled yet."""
    if len(question.targets) + len(question.joints) > FEW or not may_eliminate(model) or not question.n_cases:
        return False
    seen = question.codes >= 0
    if not (seen == seen[0]).all():  # each set of observed variables would need a plan of its own
        return False
    from gramgraph._numerics.tree import runner
    from gramgraph.engines.exact.elimination import Elimination

    if len(question.observed) > MANY_SEEN and lower(model).zeros > FEW_ZEROS:  # zeros leave less than any order
        return False
    plan = Elimination().plan(model, question)
    if plan.flops > FLOPS or plan.bytes > BYTES:
        return False
    each = STEP_SECONDS * len(plan.steps) + FLOP_SECONDS * plan.flops
    return not ripe(runner.sums, question.n_cases * each)


def answer_as_rent(worker: Engine, model: GraphicalModel, question: Question, run: Run) -> Answer:
    """The answer of the engine; what elimination takes counts as rent for the tree's code."""
    from gramgraph.engines.exact.elimination import Elimination

    if not isinstance(worker, Elimination):
        return worker.answer(model, question, run)
    from gramgraph._numerics.tree import runner

    with rent(runner.sums):
        return worker.answer(model, question, run)
