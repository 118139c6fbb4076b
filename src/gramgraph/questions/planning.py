"""What a question would cost, and which engine would answer it, before it is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gramgraph.compile.budget import readable
from gramgraph.compile.plan import Plan
from gramgraph.engines.base import Run
from gramgraph.engines.prepare import prepared
from gramgraph.engines.registry import AUTO, choose, get_engine, next_choice
from gramgraph.exceptions import BudgetError, OptionError
from gramgraph.models.base import GraphicalModel
from gramgraph.models.layout import layout_of
from gramgraph.questions.question import Question
from gramgraph.questions.reading import read_targets
from gramgraph.variables import Points


def plan(
    model: GraphicalModel, targets: Any = None, given: Any = (), *, engine: str = AUTO, memory: float | None = None
) -> Plan:
    """What a query would cost, and which engine would answer it, for every kind of model. Nothing is allocated.

    With `memory` (bytes), a plan that would not fit raises `BudgetError`, as the query would.

    More evidence never gives a larger plan of a junction tree, in cells and in bytes. Small models have one tree for
    every set of observed variables. Of others, the observed variables are cut out of the tree, and its plan is compared
    with those of the same model that have less observed: with one of nothing observed, always (in cells), and with the
    last 16 that were asked for. Plans of separate models are not compared: the search for an order may do a little
    better for the smaller set. All this holds where the same part of the model matters: in a Bayesian network with
    `targets`, a finding among their descendants brings the part above it in. `width` and `flops` are those of the tree
    that is chosen, and may be larger.

    Parameters
    ----------
    model : any graphical model.
    targets : names, as in `query`; None for all.
    given : names of the variables that will be observed.
    engine : a name, or "auto".
    memory : bytes.

    Examples
    --------
    >>> import gramgraph as gg
    >>> plan = gg.plan(gg.datasets.asia(), given=["smoke"])
    >>> plan.width, plan.engine, plan.reason  # doctest: +ELLIPSIS
    (2, 'enumeration', 'one case with few combinations of states: the sum over all of them; ...')
    """
    if not isinstance(model, GraphicalModel):
        raise OptionError(f"plan takes a model, such as gg.datasets.asia(), not {model!r}")
    question = _question(model, targets, given)
    model, question = prepared(model, question)
    name, reason = choose(model, question, Run(memory)) if engine == AUTO else (engine, "asked for by name")
    worker = get_engine(name, model.kind)
    worker.strict = engine == AUTO
    if not hasattr(worker, "plan"):
        raise OptionError(f"engine {name!r} makes no plan")
    made: Any = worker.plan(model, question)
    found = made if isinstance(made, Plan) else Plan.of(name, worker.exact, reason, made)
    found = replace(found, reason=reason, compile_seconds=_compile_seconds(found) if worker.runs_tree_code else 0.0)
    if memory is not None:
        found.check_budget(memory)
    elif engine == AUTO and model.kind in ("tables", "cells"):
        try:
            found.check_budget(None)
        except BudgetError as error:
            reason = f"an exact answer needs {readable(error.bytes)}, more than is free: "
            if (other := next_choice("answer", model, question, name, error)) is not None:
                reason += f"engine {other!r} is tried, which makes use of zeros and is exact; if that takes too long, "
            reason += "propagation with bounds of log p(evidence), or sampling, would answer instead"
            found = replace(found, exact=False, reason=reason)
    return found


def _compile_seconds(found: Plan) -> float:
    """What a junction tree of so many cells would spend on compiling, if it is large enough for that."""
    from gramgraph._numerics.compiling import ahead
    from gramgraph._numerics.tree import program, runner

    cells = float(getattr(found.structure, "cells", 0.0))
    return ahead(runner.sums, 2 * cells) + ahead(program.build, cells)


def _question(model: GraphicalModel, targets: Any, given: Any) -> Question:
    """The question of one case in which these variables are observed, whatever their values."""
    singles, joints = read_targets(model, targets)
    names = [given] if isinstance(given, str) else list(() if given is None else given)
    seen = [model.index(name) for name in names]
    labelled = tuple(v for v in seen if model.vars[v].is_discrete)
    points = {v: (0,) for v in seen if isinstance(model.vars[v].domain, Points)}
    layout = layout_of(model)
    columns = layout.of([v for v in seen if v not in labelled and v not in points])
    return Question(
        range(len(model.vars)) if singles is None else singles, joints, labelled,
        np.zeros((1, len(labelled)), np.int64), everything=singles is None and not model.is_discrete,
        columns=columns, owners=layout.owner[columns], X=np.zeros((1, len(columns))), points=points,
    )  # fmt: skip
