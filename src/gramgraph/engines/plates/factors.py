"""The factors p(child | arguments) of a plate model under a factorized q: expected logs, and messages to each variable.

Everything is an array over the members n of the child and the configurations M of the variables that choose among the
members of its arguments. Arguments enter by their moments under q, gathered to (n, M, …).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramgraph.engines.plates import links
from gramgraph.exceptions import ModelError
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.models.plated.layout import PlateLayout
from gramgraph.models.plated.template import Link, Node, Product, Ref, refs_of
from gramgraph.typing import FloatArray, IntArray

#: Variable → name of a moment → array over its members.
Moments = Mapping[str, Mapping[str, FloatArray]]


@dataclass(frozen=True, eq=False)
class Factor:
    """One template node as a factor: who chooses, and where each argument is found."""

    node: Node
    n: int
    active: FloatArray  # (n,) 1 where the member takes part, 0 where nothing observed depends on it
    selectors: tuple[tuple[str, IntArray, int], ...]  # variable, its member for each of ours, number of states
    places: Mapping[tuple[str, tuple[str, ...]], IntArray]  # variable → its member, (n, M)

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of states of the selectors."""
        return tuple(size for _, _, size in self.selectors)

    def touches(self, name: str) -> bool:
        """Whether a variable takes part in it."""
        return (
            name == self.node.name
            or any(own == name for own, _, _ in self.selectors)
            or any(own == name for own, _ in self.places)
        )

    def weights(self, q: Moments) -> FloatArray:
        """q(configuration) of each member, (n, M)."""
        out = self.active.reshape(self.n, *(1,) * len(self.shape))
        for axis, (name, at, size) in enumerate(self.selectors):
            p = q[name]["p"][at]
            out = out * p.reshape(self.n, *(size if j == axis else 1 for j in range(len(self.shape))))
        return np.broadcast_to(out, (self.n, *self.shape)).reshape(self.n, int(np.prod(self.shape)))

    def get(self, q: Moments, ref: Ref, word: str) -> FloatArray:
        """A moment of an argument, (n, M, …)."""
        return q[ref.name][word][self.places[ref.name, ref.by]]

    def to_selector(self, q: Moments, which: int, logs: FloatArray) -> tuple[str, IntArray, FloatArray]:
        """Expected logs for each state of one selector, averaged over the others, (n, states)."""
        out = logs.reshape(self.n, *self.shape) * self.active.reshape(self.n, *(1,) * len(self.shape))
        for axis in range(len(self.shape) - 1, -1, -1):
            if axis != which:
                name, at, size = self.selectors[axis]
                p = q[name]["p"][at].reshape(self.n, *(size if j == axis else 1 for j in range(out.ndim - 1)))
                out = (out * p).sum(axis=axis + 1, keepdims=True)
        name, at, size = self.selectors[which]
        return name, at, out.reshape(self.n, size)


def make_factor(layout: PlateLayout, node: Node, active: FloatArray) -> Factor:
    """The factor of a node: the selectors of all its arguments together, and members of arguments by configuration."""
    if node.form == "table":
        names = [ref.name for ref in node.refs]
    else:
        names = list(dict.fromkeys(by for ref in node.refs for by in ref.by))
    nodes = layout.template.nodes
    n = layout.count(node.name)
    selectors = tuple((name, layout.parent(node, Ref(name)), nodes[name].var.size) for name in names)
    shape = tuple(size for _, _, size in selectors)
    places = {}
    for ref in node.refs if node.form != "table" else ():
        at = layout.parent(node, ref)
        axes = [names.index(by) for by in ref.by]
        grid = np.moveaxis(at, range(1, at.ndim), [1 + int(np.argsort(np.argsort(axes))[i]) for i in range(len(axes))])
        full = [n, *(shape[j] if j in axes else 1 for j in range(len(shape)))]
        places[ref.name, ref.by] = np.broadcast_to(grid.reshape(full), (n, *shape)).reshape(n, int(np.prod(shape)))
    return Factor(node, n, active, selectors, places)


# ------------------------------------------------------------------------------------------------- expected logs


def expected_log(f: Factor, q: Moments) -> FloatArray:
    """E log p(child | arguments) for every configuration, (n, M)."""
    return np.asarray(_LOGS[f.node.form](f, q))


def _log_probabilities(f: Factor, q: Moments) -> FloatArray:
    """E log p(state) for every configuration, (n or 1, M, states)."""
    node = f.node
    if node.form == "table":
        with np.errstate(divide="ignore"):
            table = np.log(np.asarray(node.arguments["table"]))
        return np.maximum(table, -1e300).reshape(1, -1, table.shape[-1])
    given = node.arguments["probabilities"]
    if isinstance(given, Ref):
        return f.get(q, given, "log")
    if isinstance(given, Link):
        return links.log_states(f, q, given)
    p = np.atleast_1d(np.asarray(given))
    p = np.array([1.0 - p[0], p[0]]) if node.form == "bernoulli" else p
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(p), -1e300)[None, None]


def _categorical(f: Factor, q: Moments) -> FloatArray:
    return np.einsum(
        "nk,nmk->nm", q[f.node.name]["p"], np.broadcast_to(logs := _log_probabilities(f, q), (f.n, *logs.shape[1:]))
    )


def _multinomial(f: Factor, q: Moments) -> FloatArray:
    from scipy.special import gammaln

    x = q[f.node.name]["x"]
    constant = gammaln(x.sum(axis=1) + 1.0) - gammaln(x + 1.0).sum(axis=1)
    logs = _log_probabilities(f, q)
    return np.einsum("nk,nmk->nm", x, np.broadcast_to(logs, (f.n, *logs.shape[1:]))) + constant[:, None]


def _dirichlet(f: Factor, q: Moments) -> FloatArray:
    from scipy.special import gammaln

    from gramgraph.engines.plates.counts import prior_weights

    a = prior_weights(f.node, f.n)
    constant = gammaln(a.sum(axis=1)) - gammaln(a).sum(axis=1)
    return (((a - 1.0) * q[f.node.name]["log"]).sum(axis=1) + constant)[:, None]


def rate_of(f: Factor, q: Moments) -> tuple[FloatArray, FloatArray]:
    """E rate and E log rate, (n, M) or broadcasting."""
    given = f.node.arguments["rate"]
    if isinstance(given, Ref):
        return f.get(q, given, "mean"), f.get(q, given, "log")
    if isinstance(given, Link):
        found = links.exp_moments(f, q, given)
        return found["mean"], found["log"]
    return np.asarray(given).reshape(1, 1), np.log(np.asarray(given)).reshape(1, 1)


def _gamma(f: Factor, q: Moments) -> FloatArray:
    from scipy.special import gammaln

    k = constant(f.node, "shape")
    rate, log_rate = rate_of(f, q)
    x, log_x = q[f.node.name]["mean"][:, None], q[f.node.name]["log"][:, None]
    return k * log_rate - gammaln(k) + (k - 1.0) * log_x - rate * x


def _poisson(f: Factor, q: Moments) -> FloatArray:
    from scipy.special import gammaln

    rate, log_rate = rate_of(f, q)
    x = q[f.node.name]["x"]
    return x * log_rate - rate - gammaln(x + 1.0)


def _wishart(f: Factor, q: Moments) -> FloatArray:
    from scipy.special import multigammaln

    dof, V = wishart_prior(f.node)
    d = len(V)
    q_mean, log_det = q[f.node.name]["mean"], q[f.node.name]["log"]
    constant_ = -0.5 * dof * (d * np.log(2.0) + np.linalg.slogdet(V)[1]) - multigammaln(0.5 * dof, d)
    trace = np.einsum("ij,nji->n", np.linalg.inv(V), q_mean)
    return (constant_ + 0.5 * (dof - d - 1.0) * log_det - 0.5 * trace)[:, None]


def _normal(f: Factor, q: Moments) -> FloatArray:
    P, log_det = precision_of(f, q)
    d = P.shape[-1]
    quadratic = np.einsum("nmij,nmij->nm", *np.broadcast_arrays(P, residual(f, q)))
    return 0.5 * (log_det - d * LOG_2PI - quadratic)


def precision_of(f: Factor, q: Moments) -> tuple[FloatArray, FloatArray]:
    """E precision, (n or 1, M or 1, d, d), and E log of its determinant."""
    d = f.node.var.dimension
    word = next((w for w in ("precision", "variance", "cov") if w in f.node.arguments), "")
    given = f.node.arguments[word]
    if isinstance(given, Ref):
        if word != "precision":
            raise ModelError(f"{f.node.name}: a variance that is a variable is not conjugate; write precision=")
        mean, log = f.get(q, given, "mean"), f.get(q, given, "log")
        if mean.ndim == 2:
            return mean[..., None, None] * np.eye(d), d * log
        return mean, log
    if isinstance(given, Link):
        found = links.exp_moments(f, q, given)
        return found["mean"][..., None, None] * np.eye(d), d * found["log"]
    if isinstance(given, Product):
        raise ModelError(f"{f.node.name}: a precision is a number or a variable, not a product")
    value = np.asarray(given, dtype=np.float64)
    value = value.reshape(d, d) if value.size == d * d else np.broadcast_to(value.reshape(-1), (d,)) * np.eye(d)
    P: FloatArray = np.asarray(value if word == "precision" else np.linalg.inv(value))
    if not (np.linalg.eigvalsh(P) > 0.0).all():
        raise ModelError(f"{f.node.name}: the {word} must be positive; it is {np.asarray(given).tolist()}")
    return P[None, None], np.full((1, 1), float(np.linalg.slogdet(P)[1]))


def mean_of(f: Factor, q: Moments) -> tuple[FloatArray, FloatArray]:
    """E mean, (n, M, d) or broadcasting, and its second moments, (n, M, d, d)."""
    given = f.node.arguments["mean"]
    d = f.node.var.dimension
    if isinstance(given, Ref):
        return f.get(q, given, "mean"), f.get(q, given, "square")
    if isinstance(given, Product):
        a, b = f.get(q, given.left, "mean"), f.get(q, given.right, "mean")
        aa, bb = f.get(q, given.left, "square"), f.get(q, given.right, "square")
        return (a * b).sum(axis=-1)[..., None], np.einsum("nmij,nmij->nm", aa, bb)[..., None, None]
    m = np.broadcast_to(np.asarray(given, dtype=np.float64).reshape(-1), (d,))
    return m[None, None], np.outer(m, m)[None, None]


def residual(f: Factor, q: Moments) -> FloatArray:
    """E (x − mean)(x − mean)ᵀ, (n, M, d, d)."""
    x, xx = q[f.node.name]["mean"][:, None], q[f.node.name]["square"][:, None]
    m, mm = mean_of(f, q)
    cross = x[..., :, None] * m[..., None, :]
    return np.asarray(xx - cross - np.swapaxes(cross, -1, -2) + mm)


def constant(node: Node, word: str) -> float:
    """A parameter that must be a number."""
    value = node.arguments[word]
    if isinstance(value, (Ref, Product, Link)):
        raise ModelError(f"{node.name}: the {word} of its family must be a number or a hyper-parameter")
    return float(np.asarray(value))


def wishart_prior(node: Node) -> tuple[float, FloatArray]:
    """Degrees of freedom and scale of a Wishart variable."""
    d = node.var.domain.side  # type: ignore[attr-defined]
    scale = node.arguments["scale"]
    if isinstance(scale, (Ref, Product, Link)):
        raise ModelError(f"{node.name}: the scale of its family must be numbers")
    V = np.asarray(scale, dtype=np.float64)
    return constant(node, "dof"), V.reshape(d, d) if V.size == d * d else np.broadcast_to(V, (d,)) * np.eye(d)


_LOGS: dict[str, Any] = {
    "categorical": _categorical,
    "bernoulli": _categorical,
    "table": _categorical,
    "multinomial": _multinomial,
    "dirichlet": _dirichlet,
    "beta": _dirichlet,
    "gamma": _gamma,
    "poisson": _poisson,
    "wishart": _wishart,
    "normal": _normal,
    "gaussian": _normal,
    "given": lambda f, q: np.zeros((f.n, 1)),
}


# ------------------------------------------------------------------------------------------------- messages

#: Variable, its member for each row, and natural parameters by word, a row each.
Message = tuple[str, IntArray, dict[str, FloatArray]]


def messages(f: Factor, q: Moments, name: str) -> list[Message]:
    """What the factor says about one of its variables, in the words of that variable's natural parameters."""
    out: list[Message] = []
    W = f.weights(q)
    if name == f.node.name:
        out.append((name, np.arange(f.n), _to_child(f, q, W)))
    which = [i for i, (own, _, _) in enumerate(f.selectors) if own == name]
    if which:
        logs = expected_log(f, q)
        out += [(own, at, {"log": part}) for i in which for own, at, part in [f.to_selector(q, i, logs)]]
    if f.node.form != "table":
        for word, value in f.node.arguments.items():
            out += _to_argument(f, q, W, word, value, name)
    return out


def _to_child(f: Factor, q: Moments, W: FloatArray) -> dict[str, FloatArray]:
    form = f.node.form
    if form in ("categorical", "bernoulli", "table"):
        logs = _log_probabilities(f, q)
        return {"log": np.einsum("nm,nmk->nk", W, np.broadcast_to(logs, (f.n, *logs.shape[1:])))}
    if form in ("dirichlet", "beta"):
        from gramgraph.engines.plates.counts import prior_weights

        return {"weights": prior_weights(f.node, f.n)}
    if form == "gamma":
        rate, _ = rate_of(f, q)
        return {"shape": np.full(f.n, constant(f.node, "shape")), "rate": (W * rate).sum(axis=1)}
    if form == "wishart":
        dof, V = wishart_prior(f.node)
        return {"dof": np.full(f.n, dof), "inverse": np.tile(np.linalg.inv(V), (f.n, 1, 1))}
    P, _ = precision_of(f, q)
    m, _ = mean_of(f, q)
    return {
        "P": np.einsum("nm,nmij->nij", W, np.broadcast_to(P, (f.n, W.shape[1], *P.shape[2:]))),
        "h": np.einsum(
            "nm,nmi->ni", W, np.broadcast_to(np.einsum("nmij,nmj->nmi", P, m), (f.n, W.shape[1], P.shape[-1]))
        ),
    }


def _to_argument(f: Factor, q: Moments, W: FloatArray, word: str, value: Any, name: str) -> list[Message]:
    out: list[Message] = []
    for ref in refs_of(value):
        if ref.name != name:
            continue
        at = f.places[ref.name, ref.by]
        if isinstance(value, Link):
            made = links.link_message(f, q, W, value, ref, lambda: residual(f, q))
        else:
            made = _ARGUMENTS[f.node.form](f, q, W, word, value, ref)
        flat = {
            key: np.broadcast_to(part, (*W.shape, *part.shape[2:])).reshape(W.size, *part.shape[2:])
            for key, part in made.items()
        }
        out.append((name, at.ravel(), flat))
    return out


def _to_probabilities(f: Factor, q: Moments, W: FloatArray, word: str, value: Any, ref: Ref) -> dict[str, FloatArray]:
    x = q[f.node.name]["x" if f.node.form == "multinomial" else "p"]
    return {"weights": W[..., None] * x[:, None]}


def _to_rate(f: Factor, q: Moments, W: FloatArray, word: str, value: Any, ref: Ref) -> dict[str, FloatArray]:
    if word != "rate":
        raise ModelError(f"{f.node.name}: a {word} that is a variable is not conjugate")
    if f.node.form == "poisson":
        return {"shape": W * q[f.node.name]["x"], "rate": W}
    return {"shape": W * constant(f.node, "shape"), "rate": W * q[f.node.name]["mean"][:, None]}


def _to_normal(f: Factor, q: Moments, W: FloatArray, word: str, value: Any, ref: Ref) -> dict[str, FloatArray]:
    d = f.node.var.dimension
    if word == "precision":
        Q = residual(f, q)
        if q[ref.name]["mean"].ndim == 1:
            return {"shape": 0.5 * d * W, "rate": 0.5 * W * np.trace(Q, axis1=-2, axis2=-1)}
        return {"dof": W, "inverse": W[..., None, None] * Q}
    P, _ = precision_of(f, q)
    x = q[f.node.name]["mean"][:, None]
    if not isinstance(value, Product):
        h = np.einsum("nmij,nmj->nmi", *_wide(P, x, W))
        return {"P": W[..., None, None] * P, "h": W[..., None] * h}
    other = value.right if ref is value.left else value.left
    b, bb = f.get(q, other, "mean"), f.get(q, other, "square")
    tau = W * P[..., 0, 0]
    return {"P": tau[..., None, None] * bb, "h": (tau * x[..., 0])[..., None] * b}


def _wide(P: FloatArray, x: FloatArray, W: FloatArray) -> tuple[FloatArray, FloatArray]:
    n, m = W.shape
    return np.broadcast_to(P, (n, m, *P.shape[2:])), np.broadcast_to(x, (n, m, x.shape[-1]))


_ARGUMENTS: dict[str, Any] = {
    "categorical": _to_probabilities,
    "bernoulli": _to_probabilities,
    "multinomial": _to_probabilities,
    "gamma": _to_rate,
    "poisson": _to_rate,
    "normal": _to_normal,
    "gaussian": _to_normal,
}
