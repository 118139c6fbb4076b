"""The factors q of a mean field, one kind for each kind of variable: from natural parameters to moments and entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.models.plated.template import Node
from gramgraph.typing import Array, FloatArray

__all__ = ["KINDS", "kind_of"]


class States:
    """q(z): probabilities of states; natural parameters are their logs."""

    words = ("log",)

    @staticmethod
    def shapes(node: Node) -> dict[str, tuple[int, ...]]:
        return {"log": (node.var.size,)}

    @staticmethod
    def moments(nat: dict[str, FloatArray]) -> dict[str, FloatArray]:
        logs = nat["log"] - nat["log"].max(axis=1, keepdims=True, initial=-np.inf)
        p = np.exp(logs)
        return {"p": p / p.sum(axis=1, keepdims=True)}

    @staticmethod
    def seen(value: Array, node: Node) -> dict[str, FloatArray]:
        return {"p": np.eye(node.var.size)[np.maximum(value, 0)]}

    @staticmethod
    def entropy(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> FloatArray:
        from scipy.special import entr

        return np.asarray(entr(q["p"]).sum(axis=1))

    @staticmethod
    def start(node: Node, n: int, rng: np.random.Generator) -> dict[str, FloatArray]:
        return {"log": np.log(rng.dirichlet(np.full(node.var.size, 0.5), size=n).reshape(n, -1) + 0.02)}

    @staticmethod
    def spread(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> Any:
        return q["p"]


class Simplices:
    """q(θ) = Dirichlet(weights); a Beta variable has the weights of failure and success."""

    words = ("weights",)

    @staticmethod
    def shapes(node: Node) -> dict[str, tuple[int, ...]]:
        return {"weights": (2 if node.form == "beta" else node.var.dimension,)}

    @staticmethod
    def moments(nat: dict[str, FloatArray]) -> dict[str, FloatArray]:
        from scipy.special import digamma

        a = nat["weights"]
        total = a.sum(axis=1, keepdims=True)
        return {"log": digamma(a) - digamma(total), "mean": a / total}

    @staticmethod
    def seen(value: Array, node: Node) -> dict[str, FloatArray]:
        p = np.hstack([1.0 - value, value]) if node.form == "beta" else value
        with np.errstate(divide="ignore", invalid="ignore"):
            return {"log": np.maximum(np.log(p), -1e300), "mean": p}

    @staticmethod
    def entropy(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> FloatArray:
        from scipy.special import gammaln

        a = nat["weights"]
        return np.asarray(gammaln(a).sum(1) - gammaln(a.sum(1)) - ((a - 1.0) * q["log"]).sum(1))

    @staticmethod
    def start(node: Node, n: int, rng: np.random.Generator) -> dict[str, FloatArray]:
        size = Simplices.shapes(node)["weights"][0]
        return {"weights": 1.0 + rng.random((n, size))}

    @staticmethod
    def spread(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> Any:
        a = nat["weights"]
        total = a.sum(axis=1, keepdims=True)
        mean = a / total
        return mean, mean * (1.0 - mean) / (total + 1.0)


class Positives:
    """q(τ) = Gamma(shape, rate)."""

    words = ("shape", "rate")

    @staticmethod
    def shapes(node: Node) -> dict[str, tuple[int, ...]]:
        return {"shape": (), "rate": ()}

    @staticmethod
    def moments(nat: dict[str, FloatArray]) -> dict[str, FloatArray]:
        from scipy.special import digamma

        with np.errstate(divide="ignore", invalid="ignore"):
            inverse = np.where(nat["shape"] > 1.0, nat["rate"] / (nat["shape"] - 1.0), np.inf)
        return {
            "mean": nat["shape"] / nat["rate"],
            "log": digamma(nat["shape"]) - np.log(nat["rate"]),
            "inverse": inverse,
            "square": nat["shape"] * (nat["shape"] + 1.0) / nat["rate"] ** 2,
        }

    @staticmethod
    def seen(value: Array, node: Node) -> dict[str, FloatArray]:
        x = value[:, 0]
        return {"mean": x, "log": np.log(x), "inverse": 1.0 / x, "square": x**2}

    @staticmethod
    def entropy(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> FloatArray:
        from scipy.special import digamma, gammaln

        k = nat["shape"]
        return np.asarray(k - np.log(nat["rate"]) + gammaln(k) + (1.0 - k) * digamma(k))

    @staticmethod
    def start(node: Node, n: int, rng: np.random.Generator) -> dict[str, FloatArray]:
        return {"shape": np.ones(n), "rate": np.ones(n)}

    @staticmethod
    def spread(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> Any:
        return (nat["shape"] / nat["rate"])[:, None], (nat["shape"] / nat["rate"] ** 2)[:, None]


class Vectors:
    """q(x) = N(P⁻¹h, P⁻¹)."""

    words = ("P", "h")

    @staticmethod
    def shapes(node: Node) -> dict[str, tuple[int, ...]]:
        d = node.var.dimension
        return {"P": (d, d), "h": (d,)}

    @staticmethod
    def moments(nat: dict[str, FloatArray]) -> dict[str, FloatArray]:
        S = np.linalg.inv(nat["P"]) if len(nat["P"]) else nat["P"]
        m = np.einsum("nij,nj->ni", S, nat["h"])
        return {"mean": m, "square": S + m[:, :, None] * m[:, None, :]}

    @staticmethod
    def seen(value: Array, node: Node) -> dict[str, FloatArray]:
        return {"mean": value, "square": value[:, :, None] * value[:, None, :]}

    @staticmethod
    def entropy(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> FloatArray:
        d = nat["h"].shape[1]
        return np.asarray(0.5 * (d * (1.0 + LOG_2PI) - np.linalg.slogdet(nat["P"])[1]))

    @staticmethod
    def start(node: Node, n: int, rng: np.random.Generator) -> dict[str, FloatArray]:
        d = node.var.dimension
        return {"P": np.tile(np.eye(d), (n, 1, 1)), "h": rng.standard_normal((n, d))}

    @staticmethod
    def spread(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> Any:
        diagonal = np.diagonal(q["square"], axis1=1, axis2=2)
        return q["mean"], diagonal - q["mean"] ** 2


class Matrices:
    """q(Λ) = Wishart(dof, inverse⁻¹)."""

    words = ("dof", "inverse")

    @staticmethod
    def shapes(node: Node) -> dict[str, tuple[int, ...]]:
        d = node.var.domain.side  # type: ignore[attr-defined]
        return {"dof": (), "inverse": (d, d)}

    @staticmethod
    def moments(nat: dict[str, FloatArray]) -> dict[str, FloatArray]:
        from scipy.special import digamma

        V = np.linalg.inv(nat["inverse"])
        d, dof = V.shape[-1], nat["dof"]
        log = digamma(0.5 * (dof[:, None] - np.arange(d))).sum(axis=1) + d * np.log(2.0) + np.linalg.slogdet(V)[1]
        rest = (dof - d - 1.0)[:, None, None]
        inverse = np.where(rest > 0.0, nat["inverse"] / np.where(rest > 0.0, rest, 1.0), np.inf)
        return {"mean": dof[:, None, None] * V, "log": log, "inverse": inverse}

    @staticmethod
    def seen(value: Array, node: Node) -> dict[str, FloatArray]:
        d = node.var.domain.side  # type: ignore[attr-defined]
        x = np.where(np.isnan(value), np.eye(d).ravel(), value).reshape(-1, d, d)
        return {"mean": x, "log": np.linalg.slogdet(x)[1], "inverse": np.linalg.inv(x)}

    @staticmethod
    def entropy(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> FloatArray:
        from scipy.special import multigammaln

        dof, d = nat["dof"], nat["inverse"].shape[-1]
        log_v = -np.linalg.slogdet(nat["inverse"])[1]
        gammas = np.array([multigammaln(0.5 * v, d) for v in dof])
        log_b = -0.5 * dof * (log_v + d * np.log(2.0)) - gammas
        return np.asarray(-log_b - 0.5 * (dof - d - 1.0) * q["log"] + 0.5 * dof * d)

    @staticmethod
    def start(node: Node, n: int, rng: np.random.Generator) -> dict[str, FloatArray]:
        d = node.var.domain.side  # type: ignore[attr-defined]
        return {"dof": np.full(n, d + 1.0), "inverse": np.tile(np.eye(d), (n, 1, 1))}

    @staticmethod
    def spread(nat: dict[str, FloatArray], q: dict[str, FloatArray]) -> Any:
        n = len(nat["dof"])
        V = np.linalg.inv(nat["inverse"])
        diagonal = np.diagonal(V, axis1=1, axis2=2)
        var = nat["dof"][:, None, None] * (V**2 + diagonal[:, :, None] * diagonal[:, None, :])
        return q["mean"].reshape(n, -1), var.reshape(n, -1)


#: Form of a variable → kind of its factor; counts are observed, or left out.
KINDS: dict[str, Any] = {
    "categorical": States,
    "bernoulli": States,
    "table": States,
    "dirichlet": Simplices,
    "beta": Simplices,
    "gamma": Positives,
    "normal": Vectors,
    "gaussian": Vectors,
    "wishart": Matrices,
}


def kind_of(node: Node) -> Any:
    """The kind of a variable's factor; None for counts. An input is known, as states or as a vector."""
    if node.form == "given":
        return States if node.var.is_discrete else Vectors
    return KINDS.get(node.form)
