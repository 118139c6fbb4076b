"""How many hidden states?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.sequences._reading import check_count
from gramgraph.sequences.hmm import HiddenMarkovModel

__all__ = ["StateChoice", "choose_n_states"]


@dataclass(frozen=True)
class StateChoice:
    """The criterion of every number of states, lower being better, and the fitted model with the lowest."""

    n_states: int
    values: dict[int, float]
    criterion: str
    model: Any


def choose_n_states(
    model: HiddenMarkovModel,
    X: Any,
    lengths: Any = None,
    *,
    candidates: Iterable[int] = range(1, 9),
    criterion: str = "bic",
) -> StateChoice:
    """Fit clones of `model` with each number of states and take the one of lowest BIC or AIC.

    >>> import numpy as np
    >>> from gramgraph.sequences import GaussianHMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([0.0, 5.0, 0.0, 5.0], 50)[:, None] + rng.normal(size=(200, 1))
    >>> choose_n_states(GaussianHMM(random_state=0), X, candidates=(1, 2, 3)).n_states
    2
    """
    from sklearn.base import clone

    if criterion not in ("bic", "aic"):
        raise ModelError(
            f"criterion must be 'bic' or 'aic'; it is {criterion!r}.{did_you_mean(criterion, ('bic', 'aic'))}"
        )
    counts = [check_count("a candidate", count) for count in candidates]
    if not counts:
        raise ModelError("candidates must name at least one number of states.")
    values: dict[int, float] = {}
    best: HiddenMarkovModel | None = None
    for count in counts:
        fitted = clone(model).set_params(n_states=count).fit(X, lengths)
        values[count] = getattr(fitted, criterion)(X, lengths)
        if best is None or values[count] < values[best.n_states]:
            best = fitted
    assert best is not None
    return StateChoice(best.n_states, values, criterion, best)
