"""Engines by name and by kind of model, and the policy of "auto". One new engine = one file + one line."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import numpy as np

from gramgraph.engines.base import PLAIN, Engine, EngineError, IllConditioned, Run, check_options
from gramgraph.exceptions import BudgetError, ModelError, OptionError, did_you_mean
from gramgraph.models.base import GraphicalModel
from gramgraph.models.layout import layout_of
from gramgraph.models.on_cells import CellModel
from gramgraph.questions.question import Question

__all__ = ["AUTO", "ENGINES", "EngineError", "choose", "engine_names", "get_engine", "next_choice"]

#: The name of the policy that chooses an engine.
AUTO = "auto"
#: Tables of more cases than this are answered by weighted draws instead of quadrature, which refines each by itself.
NODE_CASES = 32
#: The same for sums over the cells of boosted trees, which are faster.
STEP_CASES = 2000
#: So many positive rows take less than a second: with more of them a search is tried first.
QUICK_ROWS = 3e6
_WEIGHTING = "mixed.weighting:LikelihoodWeighting"
_NODES = "nodes.engine:Nodes"
_GIBBS, _LAPLACE, _STRONG = "mixed.gibbs:RealGibbs", "mixed.laplace:Laplace", "mixed.mixture:StrongEngine"

#: Name → kind of model → module and class under `gramgraph.engines`, loaded on first use.
ENGINES: dict[str, dict[str, str]] = {
    "annealed": {"tables": "sampling.annealed:Annealed"},
    "block_gibbs": {"tables": "sampling.block_gibbs:BlockGibbs"},
    "bp": {
        "tables": "propagation.belief_propagation:BeliefPropagation",
        "gaussian": "gaussian.propagation:GaussianBP",
    },
    "cells": {"cells": "cells.engine:Cells"},
    "closed": {"general": "mixed.closing:Closed"},
    "collapsed_gibbs": {"plates": "plates.collapsed_gibbs:CollapsedGibbs", "general": "plates.network:NetworkGibbs"},
    "colored_gibbs": {"tables": "sampling.gibbs:ColoredGibbs"},
    "conjugate": {"plates": "plates.mean_field:Conjugate"},
    "counting": {"tables": "exact.counting:ModelCounting"},
    "dense": {"gaussian": "gaussian.dense:DenseGaussian"},
    "elimination": {"tables": "exact.elimination:Elimination"},
    "enumeration": {
        "tables": "exact.enumeration:Enumeration",
        "mixed": "mixed.mixture:MixtureEngine",
        "plates": "plates.enumeration:PlateEnumeration",
        "general": "plates.network:NetworkEnumeration",
    },
    "factor_tree": {"tables": "exact.factor_tree:FactorTree"},
    "gibbs": {"tables": "sampling.gibbs:Gibbs", "gaussian": _GIBBS, "mixed": _GIBBS, "general": _GIBBS},
    "gram": {"cells": "cells.gram:Gram"},
    "graph_cut": {"tables": "best.graph_cut:GraphCut"},
    "icm": {"tables": "best.search:IteratedModes"},
    "importance": {"tables": "sampling.adaptive:AdaptiveImportance"},
    "join_graph": {"tables": "propagation.join_graph:JoinGraph"},
    "junction_tree": {
        "tables": "exact.junction_tree:JunctionTree",
        "gaussian": "gaussian.tree:GaussianTree",
        "mixed": _STRONG,  # mixed models need a strong one
    },
    "laplace": {"gaussian": _LAPLACE, "mixed": _LAPLACE, "general": _LAPLACE},
    "likelihood_weighting": {
        "tables": "sampling.importance:DiscreteWeighting",
        "gaussian": _WEIGHTING,
        "mixed": _WEIGHTING,
        "general": _WEIGHTING,
    },
    "mean_field": {
        "tables": "propagation.mean_field:MeanField",
        "gaussian": "mixed.mean_field:RealMeanField",
        "mixed": "mixed.mean_field:RealMeanField",
        "plates": "plates.mean_field:PlateMeanField",
    },
    "metropolis": {"tables": "sampling.metropolis:Metropolis"},
    "mixture": {"mixed": "mixed.mixture:MixtureEngine"},
    "nodes": {"gaussian": _NODES, "mixed": _NODES, "general": _NODES},
    "rao_blackwell": {"mixed": "mixed.rao_blackwell:RaoBlackwell"},
    "rejection": {"tables": "sampling.importance:Rejection"},
    "search": {"tables": "best.search:MapSearch"},
    "sparse": {"tables": "exact.sparse:SparseTables", "gaussian": "gaussian.sparse:SparseGaussian"},
    "steps": {"general": "nodes.steps:Steps"},
    "strong_tree": {"gaussian": _STRONG, "mixed": _STRONG},
    "structured_mean_field": {"tables": "propagation.structured_mean_field:StructuredMeanField"},
    "swendsen_wang": {"tables": "sampling.swendsen_wang:SwendsenWang"},
    "tempering": {"tables": "sampling.tempering:Tempering"},
    "trw": {"tables": "propagation.tree_reweighted:TreeReweighted"},
    "trws": {"tables": "best.search:TreeReweightedSequential"},
}
_KINDS = {
    "tables": "discrete",
    "gaussian": "all-Gaussian",
    "mixed": "conditional-Gaussian",
    "general": "general mixed",
    "cells": "kernel",
    "plates": "plate",
}


def engine_class(name: str, kind: str = "tables") -> type[Engine]:
    """The class of an engine; `EngineError` for a name that is not one of this kind of models."""
    known = ENGINES.get(name, {}) if isinstance(name, str) else {}
    kind = _home(name, kind)
    if kind not in known:
        names = engine_names(kind)
        raise EngineError(
            f"{name!r} is not an engine for {_KINDS.get(kind, kind)} models. Engines: {AUTO}, {', '.join(names)}."
            f"{did_you_mean(name, names)}"
        )
    return _loaded(known[kind])


@cache
def _loaded(place: str) -> type[Engine]:
    """The class at `module:class`."""
    module, _, cls = place.partition(":")
    return getattr(importlib.import_module(f"gramgraph.engines.{module}"), cls)  # type: ignore[no-any-return]


def _home(name: Any, kind: str) -> str:
    """The kind of model under which an engine stands: those for tables answer about models on cells too."""
    return "tables" if kind == "cells" and isinstance(name, str) and kind not in ENGINES.get(name, {}) else kind


def get_engine(name: str, kind: str = "tables", **options: Any) -> Any:
    """The engine of this name for a kind of model, made with its options. Engines for tables answer about models on
    cells too, on their tables.

    Parameters
    ----------
    name : of the engine, such as "junction_tree".
    kind : of the model: "tables", "gaussian", "mixed", …
    **options : of the engine.

    Examples
    --------
    >>> get_engine("bp", damping=0.5).name
    'bp'
    """
    made = engine_class(name, kind)
    if options:
        if made.exact and not made.options:
            raise OptionError(
                f"engine {name!r} takes no option {next(iter(options))!r}: it is exact. Options such as damping or "
                'max_iter belong to approximate engines, e.g. engine="bp"'
            )
        check_options(name, list(options), made.options)
    if _home(name, kind) == kind:
        return made(**options)
    from gramgraph.engines.cells.tables import OnTables

    return OnTables(made(**options))


def engine_names(kind: str = "tables", able: str = "", exact: bool | None = None) -> tuple[str, ...]:
    """Names of the engines for a kind of model; those with a method (`able`), exact ones or others.

    >>> engine_names("gaussian", "draw")
    ('dense', 'likelihood_weighting', 'sparse', 'strong_tree')
    """
    names = [name for name, kinds in ENGINES.items() if _home(name, kind) in kinds]
    if able in ("best", "draw"):  # those for tables only answer about cells
        names = [name for name in names if _home(name, kind) == kind]
    if able or exact is not None:
        classes = {name: engine_class(name, kind) for name in names}
        answers = Engine.answer
        names = [
            name
            for name, made in classes.items()
            if (exact is None or made.exact == exact)
            and (not able or (made.answer is not answers if able == "answer" else hasattr(made, able)))
        ]
    return tuple(names)


def choose(model: GraphicalModel, question: Any, run: Run = PLAIN, task: str = "answer") -> tuple[str, str]:
    """The policy of "auto": (name of the engine that is tried first, the reason in words).

    `task` is "answer", "best" (the most probable assignment) or "draw". What comes next, where the first choice turns
    out too large or too inaccurate, says `next_choice`.
    """
    if model.kind == "tables":
        from gramgraph.engines.exact.cold import eliminates
        from gramgraph.engines.exact.enumeration import is_walk

        if task == "answer" and run.memory is None and eliminates(model, question):
            return "elimination", "few targets in a large network, whose junction tree is not compiled yet: exact"
        if task == "answer" and run.memory is None and is_walk(model, question):
            return "enumeration", (
                "one case with few combinations of states: the sum over all of them; a table of cases goes through "
                "a junction tree, which takes no more than this"
            )
        rows = np.inf if run.memory is not None else _rows(model, question, task)
        if rows < (QUICK_ROWS if task == "answer" else np.inf):
            return "sparse", "a large tree of tables with many zeros: exact sums over their positive rows"
        if rows < np.inf:
            return "counting", "a large tree of tables with many zeros: an exact search, every part of which is kept"
        return "junction_tree", "all variables are discrete: exact messages on a compiled junction tree"
    if model.kind == "plates":
        from gramgraph.engines.plates.policy import choose_plates

        return choose_plates(question)
    if isinstance(model, CellModel):
        if task != "answer":
            return "cells", "variables stand on cells: tables at their anchors, values drawn inside them"
        if model.is_balanced_forest:
            return "cells", "density ratios along a forest: messages between cells as matrix products, exact"
        return "junction_tree", "kernel conditionals: exact messages on a compiled junction tree of the tables on cells"
    if model.kind == "gaussian":
        from gramgraph.engines.gaussian.lower import DENSE_LIMIT

        size = layout_of(model).size
        if size <= DENSE_LIMIT:
            return (
                "dense",
                f"linear-Gaussian with {size} components, at most {DENSE_LIMIT}: a dense covariance, exact",
            )
        return "sparse", f"linear-Gaussian with {size} components, more than {DENSE_LIMIT}: a sparse precision, exact"
    if model.kind == "mixed":
        from gramgraph.engines.mixed.mixture import MixtureEngine

        if task == "draw" and not question.seen:
            return "likelihood_weighting", "nothing is observed: draws forward through the network are exact"
        if task == "answer" and MixtureEngine().is_small(model, question):
            return "mixture", "discrete variables choose linear Gaussians, few configurations: all of them, exact"
        return "strong_tree", "discrete variables choose linear Gaussians: a strong junction tree, exact"
    from gramgraph.engines.mixed.closing import closes

    if task == "best":
        return "laplace", "no closed form: the highest mode that Newton's method finds"
    if task == "answer" and _sums(model, question):
        return "enumeration", "Dirichlet parameters are integrated out, few states are hidden: the sum over all, exact"
    if task == "answer" and closes(model, question):
        return "closed", "the evidence leaves a conditional-Gaussian network: exact"
    if task == "answer" and question.n_cases <= STEP_CASES:
        from gramgraph.engines.nodes import steps

        if steps.fits(model, question):
            return "steps", "real variables speak through boosted trees alone: a sum over cells, exact"
    if task == "answer" and question.n_cases <= NODE_CASES:
        from gramgraph.engines.nodes.engine import fits

        if fits(model, question):
            return "nodes", "no closed form: quadrature on nodes that follow the posterior, with a stated error"
    return "likelihood_weighting", "no closed form: weighted draws, or Gibbs sampling where few of them count"


def _rows(model: GraphicalModel, question: Question, task: str) -> float:
    """About how many positive rows of its tables answer one case of a discrete model; inf where trees are better."""
    if task == "draw" or question.n_cases != 1:
        return np.inf
    from gramgraph.engines.exact.sparse import rows_that_pay

    return rows_that_pay(model, question, best=task == "best")


def _sums(model: Any, question: Question) -> bool:
    """Whether a network of families is summed over its states."""
    if not any(getattr(c, "kind", "") == "family" for c in getattr(model, "conditionals", ())):
        return False
    from gramgraph.engines.plates.network import sums

    return sums(model, question)


#: Engines for tables that have something to gain from zeros alone.
_BY_ZEROS = ("counting", "sparse")
#: Where the first choice fails: task, kind of model, first choice (None: any), why, who is asked next.
_NEXT: tuple[tuple[str, str, str | None, type[Exception], str], ...] = (
    ("answer", "tables", "enumeration", IllConditioned, "junction_tree"),
    ("answer", "tables", "junction_tree", BudgetError, "counting"),
    ("answer", "tables", "counting", BudgetError, "sparse"),
    ("answer", "tables", "sparse", BudgetError, "junction_tree"),
    ("answer", "gaussian", "dense", IllConditioned, "strong_tree"),
    ("answer", "mixed", "mixture", IllConditioned, "strong_tree"),
    ("answer", "mixed", "mixture", BudgetError, "rao_blackwell"),
    ("answer", "mixed", "strong_tree", BudgetError, "rao_blackwell"),
    ("answer", "mixed", "strong_tree", ModelError, "mixture"),
    ("answer", "general", "steps", BudgetError, "nodes"),
    ("answer", "general", "nodes", BudgetError, "likelihood_weighting"),
    ("best", "tables", "junction_tree", BudgetError, "sparse"),
    ("best", "tables", "sparse", BudgetError, "junction_tree"),
    ("best", "gaussian", None, IllConditioned, "strong_tree"),
    ("best", "mixed", None, IllConditioned, "strong_tree"),
    ("best", "general", None, ModelError, "likelihood_weighting"),  # no noise, or a density without an inner mode
    ("draw", "gaussian", None, IllConditioned, "strong_tree"),
    ("draw", "mixed", None, IllConditioned, "strong_tree"),
    ("draw", "mixed", None, BudgetError, "likelihood_weighting"),
    ("draw", "mixed", None, ModelError, "likelihood_weighting"),  # no noise
)


def next_choice(task: str, model: GraphicalModel, question: Question, first: str, failure: Exception) -> str | None:
    """The engine that is asked where the first choice fails in this way; None where that is an error."""
    for own, of, engine, why, other in _NEXT:
        if (own, of) == (task, model.kind) and engine in (None, first) and isinstance(failure, why):
            return other if of != "tables" or other not in _BY_ZEROS or _has_zeros(model, question) else None
    return None


def _has_zeros(model: GraphicalModel, question: Question) -> bool:
    """Whether zeros are worth following where the cells of tables do not fit."""
    from gramgraph.engines.exact.shrinking import may_help

    return may_help(model, question)


def choose_engine(name: str, model: Any, question: Any, options: Any) -> Any:
    """The engine of this name, or the one that "auto" takes; options belong to engines that are named."""
    if name == AUTO:
        if options:
            raise OptionError(f"engine {AUTO!r} takes no option {next(iter(options))!r}: name the engine that does")
        name, _ = choose(model, question)
    return get_engine(name, model.kind, **options)
