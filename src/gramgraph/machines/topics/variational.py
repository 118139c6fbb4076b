"""Variational topics: q(θ) q(φ) q(z) by coordinate ascent on all documents, or by steps on a few at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramgraph._numerics.topics.expectations import expect
from gramgraph.machines.topics.collection import Documents, padded
from gramgraph.machines.topics.priors import from_mean_logs
from gramgraph.typing import FloatArray

#: Rounds of a document in one E step, and the mean change of γ at which it ends.
_ROUNDS, _STILL = 100, 1e-3
#: Rounds in which documents also begin anew, while topics still take shape.
_FRESH = 20


def mean_logs(lam: FloatArray) -> FloatArray:
    """E log φ under Dir(λ_t) for every topic, (T, W)."""
    from scipy.special import psi

    return np.asarray(psi(lam) - psi(lam.sum(axis=1, keepdims=True)))


def first_gamma(documents: Documents, alpha: FloatArray) -> FloatArray:
    """Where a document begins: its words spread evenly over the topics, (D, T)."""
    before = np.concatenate([[0.0], np.cumsum(documents.count)])
    lengths = np.diff(before[documents.ptr])
    return np.asarray(alpha + lengths[:, None] / len(alpha))


def variational_shares(documents: Documents, components: FloatArray, alpha: FloatArray) -> FloatArray:
    """E θ_d = γ_d/Σγ_d under q, for topics q(φ_t) = Dir(λ_t), (D, T)."""
    gamma = first_gamma(documents, alpha)
    document_step(documents, mean_logs(components), alpha, gamma)
    return np.asarray(gamma / gamma.sum(axis=1, keepdims=True))


def document_step(
    documents: Documents,
    logs: FloatArray,
    alpha: FloatArray,
    gamma: FloatArray,
    *,
    rounds: int = _ROUNDS,
    fresh: bool = False,
) -> tuple[FloatArray, float]:
    """The E step from `gamma` (D, T) on, which is changed: Σ_d c r (T, W), and the documents' part of the bound."""
    n_topics = len(alpha)
    tops = logs.max(axis=0)
    inner, given = padded(logs.T), padded(np.exp(logs - tops).T)
    stats = np.zeros_like(inner)
    bound = expect(
        documents.ptr, documents.index, documents.count, given.ravel(), inner.ravel(), tops, padded(alpha), n_topics,
        gamma, fresh, stats.ravel(), rounds, _STILL,
    )  # fmt: skip
    return np.ascontiguousarray(stats[:, :n_topics].T), float(bound)


class VariationalFit:
    """Coordinate ascent; `trace` holds the bound on log p(w) after every round, and it never falls.

    r ∝ exp(E log θ + E log φ), γ = α + Σ r, λ = prior + Σ r. Documents go on from the γ of the round before. `prior`
    (T, W) holds β, or the λ of earlier documents.
    """

    def __init__(
        self,
        documents: Documents,
        alpha: FloatArray,
        prior: FloatArray,
        start: FloatArray,
        *,
        learn: tuple[str, bool] = ("", False),
    ) -> None:
        self.documents, self.alpha, self.prior, self.components = documents, alpha, prior, start
        self._learn, self._asymmetric = learn
        self.gamma = first_gamma(documents, alpha)
        self.trace: list[float] = []

    @property
    def done(self) -> int:
        """Rounds so far."""
        return len(self.trace)

    def advance(self) -> None:
        """One round: all documents, then all topics, then the priors if they are learned."""
        fresh = 0 < self.done < _FRESH
        stats, _ = document_step(self.documents, mean_logs(self.components), self.alpha, self.gamma, fresh=fresh)
        self.components = self.prior + stats
        if self._learn:
            self._learn_priors()
        self.trace.append(self.bound())

    def bound(self) -> float:
        """log p(w) ≥ Σ_d (…) − Σ_t KL(q(φ_t) | p(φ_t)) with the best r for the present γ and λ."""
        from scipy.special import gammaln

        logs = mean_logs(self.components)
        lam, prior = self.components, self.prior
        inside = ((prior - lam) * logs + gammaln(lam) - gammaln(prior)).sum()
        inside += (gammaln(prior.sum(axis=1)) - gammaln(lam.sum(axis=1))).sum()
        _, documents = document_step(self.documents, logs, self.alpha, self.gamma, rounds=0)
        return documents + float(inside)

    def _learn_priors(self) -> None:
        if self._learn in ("both", "doc_topic"):
            self.alpha = from_mean_logs(mean_logs(self.gamma).mean(axis=0), self.alpha)
        if self._learn in ("both", "topic_word"):
            self.prior = _learned_beta(self.components, self.prior, self._asymmetric)

    # ------------------------------------------------------------------------------------------ files

    def state(self) -> dict[str, Any]:
        """All that `resume` needs."""
        return {
            "components": self.components, "gamma": self.gamma, "alpha": self.alpha, "prior": np.array(self.prior),
            "trace": np.array(self.trace),
        }  # fmt: skip

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name in ("components", "gamma", "alpha", "prior"):
            if state[name].shape != getattr(self, name).shape or not (state[name] > 0.0).all():
                raise ValueError("the state is one of other documents")
            setattr(self, name, np.array(state[name]))
        self.trace = state["trace"].tolist()


def _learned_beta(lam: FloatArray, prior: FloatArray, asymmetric: bool) -> FloatArray:
    mean = mean_logs(lam).mean(axis=0)
    if asymmetric:
        found = from_mean_logs(mean, prior[0])
    else:
        found = from_mean_logs(mean.mean(keepdims=True), prior[0, :1], times=prior.shape[1])
    return np.broadcast_to(found, prior.shape)


class OnlineFit:
    """Stochastic steps on a few documents at a time: λ ← (1 − ρ) λ + ρ (prior + D/|batch| Σ r), ρ = (τ + t)^−κ.

    Only the words of a batch are looked at in its E step.
    """

    def __init__(
        self,
        alpha: FloatArray,
        prior: FloatArray,
        start: FloatArray,
        *,
        offset: float,
        decay: float,
        steps: int = 0,
        learn: tuple[str, bool] = ("", False),
    ) -> None:
        self.alpha, self.prior, self.components = alpha, prior, start
        self.offset, self.decay, self.steps = offset, decay, steps
        self._learn, self._asymmetric = learn
        self.trace: list[float] = []

    def step(self, batch: Documents, n_documents: float) -> float:
        """One step of a collection of so many documents; the documents' part of the bound, for each token."""
        from scipy.special import psi

        if not len(batch.index):
            return 0.0
        rho = (self.offset + self.steps) ** -self.decay
        words, index = np.unique(batch.index, return_inverse=True)
        whole = psi(self.components.sum(axis=1, keepdims=True))
        logs = np.asarray(psi(self.components[:, words]) - whole)
        small = Documents(batch.ptr, index.astype(np.int32), batch.count, len(words))
        gamma = first_gamma(small, self.alpha)
        stats, bound = document_step(small, logs, self.alpha, gamma)
        self.components *= 1.0 - rho
        self.components += rho * self.prior
        self.components[:, words] += rho * (n_documents / batch.n_documents) * stats
        self.steps += 1
        if self._learn in ("both", "doc_topic"):
            found = from_mean_logs(mean_logs(gamma).mean(axis=0), self.alpha)
            self.alpha = (1.0 - rho) * self.alpha + rho * found
        if self._learn in ("both", "topic_word"):
            found = _learned_beta(self.components, self.prior, self._asymmetric)
            self.prior = (1.0 - rho) * self.prior + rho * found
        return bound / max(batch.n_tokens, 1)

    def state(self) -> dict[str, Any]:
        """All that `resume` needs."""
        return {
            "components": self.components, "alpha": self.alpha, "prior": np.array(self.prior), "steps": self.steps,
            "trace": np.array(self.trace),
        }  # fmt: skip

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name in ("components", "alpha", "prior"):
            if state[name].shape != getattr(self, name).shape or not (state[name] > 0.0).all():
                raise ValueError("the state is one of other documents")
            setattr(self, name, np.array(state[name]))
        self.steps, self.trace = int(state["steps"]), state["trace"].tolist()
