"""Real variables that enter a family through a link, rate = exp η or p = 1/(1 + e^−η): moments and Gaussian messages.

η is a number, or an inner product with known numbers, so that it is Gaussian under q with mean μ and variance v. The
factor of a variable stays Gaussian where it is not conjugate: log p as a function of η speaks through its expected
slope g = E ℓ′(η) and curvature λ = −E ℓ″(η) as the message P = λ bbᵀ, h = (g + λμ) b, b the numbers that η multiplies.
That is a natural-gradient step on the bound, which `variational.Field` shortens until the bound does not fall.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gramgraph.exceptions import ModelError
from gramgraph.models.plated.template import Link, Node, Product, Ref
from gramgraph.typing import Array, FloatArray

#: Largest exponent: what is beyond would overflow.
_MOST = 600.0
_NODES = 64
#: Which link an argument of a form takes.
_ALLOWED = {
    ("bernoulli", "probabilities"): "logistic",
    ("poisson", "rate"): "exp",
    ("gamma", "rate"): "exp",
    ("normal", "precision"): "exp",
    ("gaussian", "precision"): "exp",
}


def check_link(node: Node, word: str, link: Link, nodes: Any) -> None:
    """A `ModelError` where a link does not belong to a parameter, or does not hold a real number."""
    wanted = _ALLOWED.get((node.form, word))
    if link.kind != wanted:
        said = f"takes gg.{wanted.capitalize()}(…)" if wanted else "takes no link"
        raise ModelError(f"{node.name}: its {word} {said}, not gg.{link.kind.capitalize()}(…)")
    for ref in link.refs:
        parent = nodes[ref.name]
        if parent.form not in ("normal", "gaussian", "given") or not parent.var.is_real:
            raise ModelError(f"{node.name}: a link holds real variables; {ref.name} is {parent.var!r}")
        if isinstance(link.of, Ref) and parent.var.dimension != 1:
            raise ModelError(f"{node.name}: a link holds one number; {ref.name} is a vector. Use gg.Dot(…)")


def hidden_links(f: Any, hidden: dict[str, Array]) -> bool:
    """Whether something hidden stands in a link of a factor; a `ModelError` where both sides of a product do."""
    for value in f.node.arguments.values():
        if not isinstance(value, Link):
            continue
        on = f.active > 0
        seen = [(hidden[ref.name][f.places[ref.name, ref.by]][on]).any() for ref in value.refs]
        if len(seen) == 2 and all(seen):
            names = " and ".join(ref.name for ref in value.refs)
            raise ModelError(
                f"{f.node.name}: one side of a product inside a link must be observed, or the product is not Gaussian; "
                f"{names} are both hidden"
            )
        if any(seen):
            return True
    return False


def predictor(f: Any, q: Any, of: Ref | Product) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of η, (n, M)."""
    if isinstance(of, Ref):
        mean, square = f.get(q, of, "mean")[..., 0], f.get(q, of, "square")[..., 0, 0]
    else:
        a, b = (f.get(q, ref, "mean") for ref in (of.left, of.right))
        aa, bb = (f.get(q, ref, "square") for ref in (of.left, of.right))
        mean, square = (a * b).sum(axis=-1), np.einsum("nmij,nmij->nm", aa, bb)
    return mean, np.maximum(square - mean**2, 0.0)


def exp_moments(f: Any, q: Any, link: Link) -> dict[str, FloatArray]:
    """Moments of exp η, which is log-normal: mean, log, inverse, square, (n, M)."""
    mu, v = predictor(f, q, link.of)
    return {
        "mean": _exp(mu + 0.5 * v),
        "log": mu,
        "inverse": _exp(0.5 * v - mu),
        "square": _exp(2.0 * mu + 2.0 * v),
    }


def _exp(x: FloatArray) -> FloatArray:
    return np.asarray(np.exp(np.minimum(x, _MOST)))


@cache
def _normal_nodes() -> tuple[FloatArray, FloatArray]:
    """Points and weights under which sums are means of N(0, 1)."""
    x, w = np.polynomial.hermite_e.hermegauss(_NODES)
    return x, w / w.sum()


def _logistic_means(f: Any, q: Any, link: Link) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E log(1 + e^η), E σ(η), E σ(η)(1 − σ(η)), by quadrature, (n, M)."""
    from scipy.special import expit

    mu, v = predictor(f, q, link.of)
    z, w = _normal_nodes()
    eta = mu[..., None] + np.sqrt(v)[..., None] * z
    p = expit(eta)
    return np.logaddexp(0.0, eta) @ w, p @ w, (p * (1.0 - p)) @ w


def log_states(f: Any, q: Any, link: Link) -> FloatArray:
    """E log p(no), E log p(yes) of a logistic variable, (n, M, 2)."""
    soft, _, _ = _logistic_means(f, q, link)
    mu, _ = predictor(f, q, link.of)
    return np.stack([-soft, mu - soft], axis=-1)


def mean_states(f: Any, q: Any, link: Link) -> FloatArray:
    """E p(no), E p(yes), (n, M, 2)."""
    _, p, _ = _logistic_means(f, q, link)
    return np.stack([1.0 - p, p], axis=-1)


def link_message(f: Any, q: Any, W: FloatArray, link: Link, ref: Ref, residual: Any) -> dict[str, FloatArray]:
    """P (n, M, d, d) and h (n, M, d) for the variable inside a link; `residual()` gives E (x − mean)(x − mean)ᵀ."""
    mu, _ = predictor(f, q, link.of)
    slope, curvature = _slopes(f, q, link, residual)
    g, lam = W * (slope + curvature * mu), W * curvature
    if isinstance(link.of, Ref):
        return {"P": lam[..., None, None], "h": g[..., None]}
    other = link.of.right if ref is link.of.left else link.of.left
    b, bb = f.get(q, other, "mean"), f.get(q, other, "square")
    return {"P": lam[..., None, None] * bb, "h": g[..., None] * b}


def _slopes(f: Any, q: Any, link: Link, residual: Any) -> tuple[FloatArray, FloatArray]:
    """E ℓ′(η) and −E ℓ″(η) of log p as a function of η: aη − b e^η, or yη − log(1 + e^η)."""
    node, own = f.node, q[f.node.name]
    if node.form == "bernoulli":
        _, p, spread = _logistic_means(f, q, link)
        return own["p"][:, 1:] - p, spread
    if node.form == "poisson":
        a, b = own["x"], np.ones(1)
    elif node.form == "gamma":
        a, b = np.asarray(node.arguments["shape"], dtype=np.float64).reshape(1, 1), own["mean"][:, None]
    else:
        a, b = 0.5 * node.var.dimension, 0.5 * np.trace(residual(), axis1=-2, axis2=-1)
    rate = exp_moments(f, q, link)["mean"]
    return a - b * rate, b * rate
