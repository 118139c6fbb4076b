"""The Fisher kernel of a fitted model, and the score of a discrete Bayesian network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gramgraph.data.frames import read_frame
from gramgraph.exceptions import did_you_mean, listing
from gramgraph.kernels.base import Kernel, KernelError, Pull
from gramgraph.kernels.generative import as_sequence, features_pullback, same_rows
from gramgraph.typing import FloatArray


@runtime_checkable
class ScoreModel(Protocol):
    """A fitted model whose log-likelihood can be differentiated by its parameters.

    Parameters
    ----------
    *args, **kwargs : of a protocol: none.

    Examples
    --------
    >>> class Bernoulli:
    ...     def fisher_score(self, X):  # of log p = x log θ + (1 − x) log(1 − θ), at θ = ½
    ...         return 4.0 * np.asarray(X, dtype=float) - 2.0
    >>> isinstance(Bernoulli(), ScoreModel)
    True
    """

    def fisher_score(self, X: Any, /) -> FloatArray:
        """∂ log p(x_i) / ∂ parameters, one row per sample: (n, p)."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Fisher(Kernel):
    """k(x, x′) = s(x)ᵀ I⁻¹ s(x′), s(x) = ∂ log p(x) / ∂ parameters of a fitted model, I its information matrix.

    `model` has a method `fisher_score(X)` giving (n, p); a discrete Bayesian network becomes `NetworkScore(network)`.
    `information` is None for the identity, a vector (p,) for a diagonal, or a matrix (p, p); "model" asks the model
    (`model.fisher_information()`). `Fisher.from_sample(model, X)` estimates it by the mean of s sᵀ over a sample.
    Directions in which the information is 0 are left out. Cost: the scores, O(n m p), and O(p³) once for a matrix.

    Parameters
    ----------
    model : what gives scores.
    information : None, a vector, a matrix, or "model".
    fixed : names of parameters that are not learned.
    limits : (name, lowest, highest) of parameters, where they differ from the usual ones.

    Examples
    --------
    >>> class Coin:  # p(x) = θ^x (1 − θ)^(1 − x)
    ...     def fisher_score(self, X):
    ...         x = np.asarray(X, dtype=float)[:, None]
    ...         return x / 0.25 - (1 - x) / 0.75
    >>> Fisher(Coin(), information=[1 / (0.25 * 0.75)]).gram([1, 0]).round(4)
    array([[ 3.    , -1.    ],
           [-1.    ,  0.3333]])
    """

    model: Any
    information: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.model, ScoreModel):
            if not all(hasattr(self.model, name) for name in ("query", "conditional", "variables")):
                raise KernelError(
                    f"Fisher.model: expected an object with fisher_score(X) → (n, p), or a Bayesian network; got "
                    f"{type(self.model).__name__}."
                )
            object.__setattr__(self, "model", NetworkScore(self.model))
        given = self.information
        if isinstance(given, str):
            if given != "model" or not hasattr(self.model, "fisher_information"):
                raise KernelError(
                    f"Fisher.information: expected None, a vector, a matrix, or 'model' for a model with "
                    f"fisher_information(); got {given!r} and {type(self.model).__name__}."
                )
            given = self.model.fisher_information()
        if given is not None:
            given = np.array(given, dtype=np.float64)
            if given.ndim not in (1, 2) or (given.ndim == 2 and given.shape[0] != given.shape[1]):
                raise KernelError(f"Fisher.information: expected shape (p,) or (p, p), got {given.shape}.")
        object.__setattr__(self, "information", given)
        object.__setattr__(self, "_whitening", None if given is None else _inverse_root(given))

    @classmethod
    def from_sample(cls, model: Any, X: Any, *, diagonal: bool = False) -> Fisher:
        """With the information estimated by (1/n) Σ s sᵀ over a sample X, or by its diagonal."""
        scored = cls(model)
        S = scored._scores(scored.prepare(X))
        return cls(scored.model, np.square(S).mean(0) if diagonal else S.T @ S / len(S))

    def prepare(self, X: Any) -> Any:
        """Samples as the model takes them."""
        return as_sequence(X)

    def _scores(self, X: Any) -> FloatArray:
        return same_rows("fisher_score(X)", np.asarray(self.model.fisher_score(X), dtype=np.float64), len(X))

    def _features(self, X: Any) -> FloatArray:
        S, W = self._scores(X), self._whitening  # type: ignore[attr-defined]
        if W is None:
            return S
        if S.shape[1] != len(W):
            raise KernelError(f"Fisher: the information has {len(W)} rows, the scores have {S.shape[1]} columns.")
        return S * W if W.ndim == 1 else S @ W

    def _diag(self, X: Any) -> FloatArray:
        return np.square(self._features(X)).sum(1)

    def _gram(self, X: Any, Y: Any | None) -> FloatArray:
        F = self._features(X)
        return F @ (F if Y is None else self._features(Y)).T

    def _pullback(self, X: Any, Y: Any | None, inputs: bool) -> tuple[FloatArray, Pull]:
        return features_pullback(self, self._features, X, Y, inputs)


def _inverse_root(information: FloatArray) -> FloatArray:
    """W with W Wᵀ = I⁺: a vector for a diagonal, else (p, r) with r the rank."""
    values, vectors = (information, None) if information.ndim == 1 else np.linalg.eigh(information)
    largest = float(values.max(initial=0.0))
    if (values < -1e-8 * largest).any() or not np.isfinite(values).all():
        raise KernelError("Fisher.information: expected a positive semi-definite matrix; it has negative eigenvalues.")
    keep = values > 1e-12 * largest
    roots = np.where(keep, 1.0 / np.sqrt(np.where(keep, values, 1.0)), 0.0)
    return roots if vectors is None else vectors[:, keep] * roots[keep]


class NetworkScore:
    """Scores of a discrete Bayesian network: ∂ log p(e) / ∂ the logits of its tables, for cases with gaps.

    A row of a table is p(x | u) = softmax of logits, and ∂ log p(e)/∂ logit(x, u) = p(x, u | e) − p(x | u) p(u | e):
    one joint posterior per family, all cases in one batched pass. The parameters are the families in the order of the
    variables, each with its axes (parents …, child) flattened. Entries with p(x | u) = 0 have score 0. A case of
    probability 0 is an error, as in `network.query`.

    Parameters
    ----------
    network : a discrete Bayesian network.

    Examples
    --------
    >>> from gramgraph import BayesianNetwork
    >>> NetworkScore(BayesianNetwork("A", cpds={"A": 0.25})).fisher_score([{"A": "yes"}, {}]) + 0.0
    array([[-0.75,  0.75],
           [ 0.  ,  0.  ]])
    """

    def __init__(self, network: Any) -> None:
        self.network = network
        self._families = [
            (tuple(var.name for var in net_c.scope), np.asarray(net_c.table(), dtype=np.float64))
            for net_c in (network.conditional(name) for name in network.variables)
        ]

    def fisher_score(self, X: Any, /) -> FloatArray:
        """(n, p) for a frame of cases, or a list of dicts {variable: state}; None or NaN is not observed."""
        frame = self._frame(X)
        if len(frame) == 0:
            return np.zeros((0, sum(table.size for _, table in self._families)))
        answer = self.network.query([scope for scope, _ in self._families], evidence=frame)
        blocks = []
        for scope, table in self._families:
            joint = np.asarray(answer[scope].probabilities, dtype=np.float64).reshape(len(frame), *table.shape)
            blocks.append((joint - table * joint.sum(-1, keepdims=True)).reshape(len(frame), -1))
        return np.concatenate(blocks, axis=1)

    def _frame(self, X: Any) -> Any:
        names = list(self.network.variables)
        frame = read_frame(X, what="X")
        for column in frame.names:
            if column not in names:
                hint = did_you_mean(column, names)
                raise KernelError(f"{column!r} is not a variable of the network. Variables: {listing(names)}.{hint}")
        return frame.table

    def fisher_information(self) -> FloatArray:
        """p(u) p(x | u), a vector (p,): for scores of complete cases, s I⁺ s′ = Σ s s′ / (p(u) p(x | u)).

        The true block of a row is p(u)(diag θ − θθᵀ); on scores, which sum to 0 over x, its pseudo-inverse acts as
        that of its diagonal part p(u) diag θ. With gaps in the cases it is the information of the complete cases.
        """
        answer = self.network.query([scope for scope, _ in self._families])
        return np.concatenate([np.asarray(answer[scope].probabilities).ravel() for scope, _ in self._families])
