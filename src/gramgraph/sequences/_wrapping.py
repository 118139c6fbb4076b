"""Models that take the emissions of a hidden Markov model and give them another chain."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from gramgraph.exceptions import ModelError
from gramgraph.sequences.hmm import HiddenMarkovModel
from gramgraph.sequences.recursions import refuse_impossible
from gramgraph.typing import FloatArray, IntArray


def logs_of(p: Any) -> FloatArray:
    """Logarithms, −inf for zeros."""
    with np.errstate(divide="ignore"):
        return np.log(np.ascontiguousarray(p, dtype=np.float64))


class WrappedModel(BaseEstimator):
    """Reads X and makes emissions with the model that it wraps; `model_` is the fitted copy that holds them."""

    model: Any
    model_: HiddenMarkovModel

    def _copy(self) -> HiddenMarkovModel:
        if not isinstance(self.model, HiddenMarkovModel):
            raise ModelError(
                f"model must be a hidden Markov model, whose emissions are taken, such as GaussianHMM(3); it is "
                f"{type(self.model).__name__}."
            )
        model: HiddenMarkovModel = clone(self.model)
        model._check_parameters()
        return model

    def _wrapped(self) -> HiddenMarkovModel:
        """A copy of a model that is given fitted."""
        if not isinstance(self.model, HiddenMarkovModel):
            raise ModelError(f"model must be a fitted hidden Markov model; it is {type(self.model).__name__}.")
        check_is_fitted(self.model, "transmat_")
        return deepcopy(self.model)

    def _read(self, X: Any, lengths: Any) -> tuple[Any, IntArray, FloatArray]:
        """(data, offsets, log p(x_t | state))."""
        check_is_fitted(self, "model_")
        data, offsets = self.model_._read(X, lengths, reset=False)
        return data, offsets, self.model_._emission().logs(data)

    @property
    def n_states(self) -> int:
        """Hidden states."""
        model = getattr(self, "model_", self.model)
        return int(model.n_states)

    def _refuse(self, s: int, row: int, offsets: IntArray) -> None:
        bad = np.full(len(offsets) - 1, -1)
        bad[s] = offsets[s] + max(row, 0)
        refuse_impossible(bad, offsets, row=row >= 0)

    def _learned(self, history: list[float], converged: bool) -> Self:
        self.history_, self.n_iter_, self.converged_ = np.array(history), len(history), converged
        return self
