"""Networks with real-valued variables from data: regressions for complete rows, EM for missing cells."""

from __future__ import annotations

from typing import Any

from gramgraph._progress import Progress
from gramgraph._validation import generator
from gramgraph.conditionals import Conditional
from gramgraph.exceptions import VariableError
from gramgraph.learn.continuous_learner import Learner
from gramgraph.learn.em import EMReport
from gramgraph.learn.real_rows import as_frame, read_real, take_weights
from gramgraph.models import BayesianNetwork
from gramgraph.typing import RandomState


def fit_mixed(
    net: BayesianNetwork,
    data: Any,
    *,
    prior: Any = None,
    equivalent_sample_size: float = 10.0,
    weights: Any = None,
    max_iter: int = 200,
    tol: float = 1e-5,
    restarts: int = 1,
    random_state: RandomState = None,
    progress: Progress = False,
) -> tuple[BayesianNetwork, EMReport | None]:
    """A network with the same graph and conditionals learned from `data`; see `BayesianNetwork.fit`."""
    learner = _learner(net, data, prior, equivalent_sample_size, weights)
    if learner.complete:
        return learner.from_complete(learner.question.X, learner.question.codes), None
    from gramgraph.learn.continuous_em import fit_em

    return fit_em(learner, max_iter, tol, restarts, generator(random_state), progress)


def fit_family_of(
    net: BayesianNetwork, v: int, data: Any, *, prior: Any = None, equivalent_sample_size: float = 10.0
) -> Conditional:
    """The conditional of one variable from rows without gaps; the others, of any domain, are not learned."""
    learner = _learner(net, data, prior, equivalent_sample_size, None)
    return learner.conditional(v, learner.question.X, learner.question.codes)


def _learner(net: BayesianNetwork, data: Any, prior: Any, ess: float, weights: Any) -> Learner:
    frame = as_frame(net, data, weights)
    w, frame = take_weights(frame, weights)
    question = read_real(net, frame)
    if not question.n_cases or not w.sum() > 0:
        raise VariableError("there are no rows to learn from")
    return Learner(net, question, w, prior, ess, frame)
