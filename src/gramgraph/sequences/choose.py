"""How many hidden states?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph._validation import check_count
from gramgraph.exceptions import ModelError, did_you_mean
from gramgraph.sequences._reading import joined, offsets_of
from gramgraph.sequences.hmm import HiddenMarkovModel

_CRITERIA = ("bic", "aic", "cv")


@dataclass(frozen=True)
class StateChoice:
    """The criterion of every number of states, lower being better, and the fitted model with the lowest.

    Parameters
    ----------
    n_states : the numbers of states that were tried.
    values : the criterion of each.
    criterion : "bic", "aic" or "cv".
    model : the fitted model with the lowest.

    Examples
    --------
    >>> import gramgraph as gg
    >>> rng = np.random.default_rng(0)
    >>> x = np.repeat([0.0, 5.0, 0.0], 20)[:, None] + rng.normal(size=(60, 1))
    >>> choose_n_states(gg.GaussianHMM(random_state=0), x, candidates=(1, 2)).n_states
    2
    """

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
    """Fit clones of `model` with each number of states and take the one with the lowest criterion.

    "bic", "aic", or "cv": −log p of sequences that were left out, in five parts (fewer, if there are fewer sequences).

    Parameters
    ----------
    model : an unfitted hidden Markov model.
    X : one sequence, or several behind each other with their `lengths`.
    lengths : of the sequences; None for one.
    candidates : numbers of states.
    criterion : "bic", "aic" or "cv".

    Examples
    --------
    >>> import numpy as np
    >>> from gramgraph.sequences import GaussianHMM
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([0.0, 5.0, 0.0, 5.0], 50)[:, None] + rng.normal(size=(200, 1))
    >>> choose_n_states(GaussianHMM(random_state=0), X, candidates=(1, 2, 3)).n_states
    2
    """
    from sklearn.base import clone

    if criterion not in _CRITERIA:
        hint = did_you_mean(criterion, _CRITERIA)
        raise ModelError(f"criterion must be 'bic', 'aic' or 'cv'; it is {criterion!r}.{hint}")
    counts = [check_count("a candidate", count) for count in candidates]
    if not counts:
        raise ModelError("candidates must name at least one number of states.")
    values: dict[int, float] = {}
    best: HiddenMarkovModel | None = None
    for count in counts:
        candidate = clone(model).set_params(n_states=count)
        fitted = clone(candidate).fit(X, lengths)
        if criterion == "cv":
            values[count] = _left_out(candidate, X, lengths)
        else:
            values[count] = getattr(fitted, criterion)(X, lengths)
        if best is None or values[count] < values[best.n_states]:
            best = fitted
    assert best is not None
    return StateChoice(best.n_states, values, criterion, best)


def _left_out(model: HiddenMarkovModel, X: Any, lengths: Any, parts: int = 5) -> float:
    """−Σ log p of every sequence under a model that did not see it."""
    from sklearn.base import clone

    rows, sizes = joined(X, lengths)
    rows = np.asarray(rows)
    offsets = offsets_of(len(rows), sizes)
    S = len(offsets) - 1
    if S < 2:
        raise ModelError("criterion='cv' leaves sequences out: it needs several sequences (lengths, or a list).")
    sequences = [rows[offsets[s] : offsets[s + 1]] for s in range(S)]
    total = 0.0
    for part in range(min(parts, S)):
        out = range(part, S, min(parts, S))
        kept = [seq for s, seq in enumerate(sequences) if s not in out]
        fitted = clone(model).fit(np.concatenate(kept), [len(seq) for seq in kept])
        total -= sum(fitted.score(sequences[s]) for s in out)
    return total
