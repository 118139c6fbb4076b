"""The rules of probability on embeddings: sum, product and Bayes, and a filter made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gramgraph._validation import check_choice, check_positive
from gramgraph.embeddings.composition import Operator
from gramgraph.embeddings.conditional import ConditionalOperator
from gramgraph.embeddings.features import RidgeSpectrum
from gramgraph.embeddings.mean import MeanEmbedding
from gramgraph.embeddings.operators import CovarianceOperator
from gramgraph.exceptions import ModelError
from gramgraph.kernels.inputs import count
from gramgraph.rkhs import SpaceError
from gramgraph.typing import FloatArray


def _prior_weights(conditional: ConditionalOperator, prior: MeanEmbedding) -> FloatArray:
    """Σⱼ γⱼ β(x̃ⱼ): weights of the pairs of the sample under the prior of x."""
    if prior.kernel != conditional.kernel_x:
        raise SpaceError(
            f"The prior lives in the space of {prior.kernel!r}, the conditional takes points of "
            f"{conditional.kernel_x!r}. Try: MeanEmbedding.of(X, kernel=conditional.kernel_x)."
        )
    found = conditional._coordinates(prior.points)
    out = conditional.spectrum.U @ (prior.weights @ found)
    return out + prior.weights.sum() / conditional.n if conditional.centered else out


def sum_rule(conditional: ConditionalOperator, prior: MeanEmbedding) -> MeanEmbedding:
    """p(y) = Σ_x p(y | x) π(x): the embedding of Y when x has the distribution `prior`. O(n q) beyond the features.

    Parameters
    ----------
    conditional : the operator of p(y | x).
    prior : the embedding of x before.

    Examples
    --------
    >>> from gramgraph.embeddings import conditional_operator
    >>> C = conditional_operator(["a", "a", "b", "b"], ["u", "v", "v", "v"], reg=0.0)
    >>> sum_rule(C, MeanEmbedding.of(["a", "b", "b", "b"]))(["u", "v"]).round(6)
    array([0.125, 0.875])
    """
    return MeanEmbedding(conditional.kernel_y, conditional.Y, _prior_weights(conditional, prior))


def chain_rule(
    conditional: ConditionalOperator, prior: MeanEmbedding, *, form: str = "sample"
) -> CovarianceOperator | Operator:
    """p(x, y) = p(y | x) π(x), an uncentered covariance operator C_XY.

    Two estimates of one operator:

    - form="sample": Φ Diag(w) Ψᵀ with w from the sum rule, written on the pairs that were learned from;
    - form="text": Φ̃ Diag(γ) K̃ᵀ (K + λN I)⁻¹ Ψᵀ, the product C_XX C_{Y|X}ᵀ with C_XX that of the prior's points x̃.

    They agree for delta kernels (reg=0) and differ otherwise, as the first smooths the prior as well.

    Parameters
    ----------
    conditional : the operator of p(y | x).
    prior : the embedding of x before.
    form : "sample" or "text".

    Examples
    --------
    >>> from gramgraph.embeddings import conditional_operator
    >>> C = conditional_operator(["a", "a", "b", "b"], ["u", "v", "v", "v"], reg=0.0)
    >>> chain_rule(C, MeanEmbedding.of(["a", "b", "b", "b"])).table(["a", "b"], ["u", "v"]).round(6) + 0.0
    array([[0.125, 0.125],
           [0.   , 0.75 ]])
    """
    check_choice("form", form, ("sample", "text"))
    w = _prior_weights(conditional, prior)  # looks at the spaces
    if form == "sample":
        kernel_x, kernel_y = conditional.kernel_x, conditional.kernel_y
        return CovarianceOperator(conditional.X, conditional.Y, kernel_x=kernel_x, kernel_y=kernel_y, weights=w)
    return CovarianceOperator(prior.points, kernel_x=prior.kernel, weights=prior.weights) @ conditional.T


def bayes_rule(
    likelihood: ConditionalOperator, prior: MeanEmbedding, observed: Any, *, reg: float | None = None
) -> MeanEmbedding:
    """p(x | y) ∝ p(y | x) π(x): the embedding of x after y was observed (a list of one point).

    The sample of pairs gets the weights D = max(w, 0) / sum, w from the sum rule; then x is regressed on y with these
    weights: β = D + D Ψ̃(Ψ̃ᵀDΨ̃ + δ)⁻¹(ψ(y) − mean), centered as the likelihood is. It sums to one and falls back to
    the prior where y is far from all data. δ is `reg`, by default the likelihood's λ. O(n r²).

    Parameters
    ----------
    likelihood : the operator of p(y | x).
    prior : the embedding of x before.
    observed : the value of y, as a list of one point.
    reg : the penalty λ of the regression.

    Examples
    --------
    >>> from gramgraph.embeddings import conditional_operator
    >>> C = conditional_operator(["a", "a", "b", "b"], ["u", "v", "v", "v"], reg=0.0)
    >>> bayes_rule(C, MeanEmbedding.of(["a", "b"]), ["v"])(["a", "b"]).round(6)
    array([0.333333, 0.666667])
    """
    delta = likelihood.reg if reg is None else reg
    check_positive("reg", delta, zero=True)
    observed = likelihood.kernel_y.prepare(observed)
    if count(observed) != 1:
        raise ModelError(f"observed is one point, written as a list of one; got {count(observed)} points.")
    features = _outcome_features(likelihood)
    Psi, psi = features.transform(likelihood.Y), features.transform(observed)[0]
    return _posterior(likelihood, _positive(_prior_weights(likelihood, prior)), Psi, psi, delta)


def _positive(w: FloatArray) -> FloatArray:
    w = np.maximum(w, 0.0)
    total = w.sum()
    return w / total if total > 0.0 else np.full(len(w), 1.0 / len(w))


def _outcome_features(likelihood: ConditionalOperator) -> Any:
    """Features of the outcome: incomplete Cholesky, as many as 1e-9 of the trace or 300 need."""
    from gramgraph.embeddings.features import feature_map

    return feature_map(likelihood.kernel_y, likelihood.Y, "cholesky")


def _posterior(
    likelihood: ConditionalOperator, D: FloatArray, Psi: FloatArray, psi: FloatArray, delta: float
) -> MeanEmbedding:
    s = RidgeSpectrum.of(Psi, center=likelihood.centered, weights=D)
    n = len(D)
    along = ((psi - s.mean) @ s.V) * np.sqrt(s.values) / (s.values + n * delta)
    w = np.sqrt(n * D) * (s.U @ along)  # U are singular vectors of √(n D) Ψ̃
    if likelihood.centered:
        w = w + D
    return MeanEmbedding(likelihood.kernel_x, likelihood.X, w)


def kernel_filter(
    transition: ConditionalOperator,
    likelihood: ConditionalOperator,
    prior: MeanEmbedding,
    observations: Iterable[Any],
    *,
    reg: float | None = None,
) -> list[MeanEmbedding]:
    """p(x_t | y_1 … y_t) for every t, without a parametric model: Bayes' rule, then the sum rule to the next time.

    `transition` is learned from pairs (x_t, x_t+1), `likelihood` from pairs (x_t, y_t), both with the same kernel of x;
    `prior` is the embedding of x_1. Each observation is one point; None is a missing one. O(n r²) a step.

    Parameters
    ----------
    transition : the operator of p(next x | x).
    likelihood : the operator of p(y | x).
    prior : the embedding of x before.
    observations : one for each time; None where there is none.
    reg : the penalty λ of the regression.

    Examples
    --------
    >>> from gramgraph.embeddings import conditional_operator
    >>> move = conditional_operator(["dry", "dry", "wet", "wet"], ["dry", "dry", "dry", "wet"], reg=0.0)
    >>> see = conditional_operator(["dry", "dry", "wet", "wet"], ["sun", "rain", "rain", "rain"], reg=0.0)
    >>> beliefs = kernel_filter(move, see, MeanEmbedding.of(["dry", "wet"]), ["rain", None])
    >>> [belief(["dry", "wet"]).round(4).tolist() for belief in beliefs]
    [[0.3333, 0.6667], [0.6667, 0.3333]]
    """
    if transition.kernel_x != transition.kernel_y or transition.kernel_x != likelihood.kernel_x:
        raise SpaceError(
            "transition and likelihood must speak of x with one kernel. Try: pass the same kernel value as "
            "kernel_x and kernel_y of the transition and as kernel_x of the likelihood."
        )
    delta = likelihood.reg if reg is None else reg
    features = _outcome_features(likelihood)
    Psi = features.transform(likelihood.Y)
    found: list[MeanEmbedding] = []
    current = prior
    for t, y in enumerate(observations):
        if t:
            current = sum_rule(transition, current)
        if y is not None:
            points = likelihood.kernel_y.prepare(y if np.ndim(y) else [y])
            if count(points) != 1:
                raise ModelError(f"observation {t} must be one point; it has {count(points)}.")
            D = _positive(_prior_weights(likelihood, current))
            current = _posterior(likelihood, D, Psi, features.transform(points)[0], delta)
        found.append(current)
    return found
