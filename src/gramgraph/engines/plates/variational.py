"""Mean field over a plate model: coordinate ascent on the bound, and what follows for idle members."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramgraph.engines.plates import factors as terms
from gramgraph.engines.plates import links
from gramgraph.engines.plates.factors import Factor, make_factor
from gramgraph.engines.plates.posteriors import kind_of
from gramgraph.exceptions import ModelError
from gramgraph.models.plated.template import Link, Node, Product, Ref, refs_of
from gramgraph.questions.plate_question import PlateQuestion
from gramgraph.typing import Array, FloatArray

#: A step that would have to be shorter than this is not made.
_SHORTEST = 1e-6


class Field:
    """q = Π q(member), with the moments of all variables; `ascend` is one sweep, `bound` the ELBO.

    Members on which nothing observed depends take no part; `complete` fills in what is expected of them.
    """

    def __init__(self, question: PlateQuestion, rng: np.random.Generator) -> None:
        model = question.model
        self.question, self.layout = question, question.layout
        self.order = [model.template.nodes[n] for n in model.topological_order() if n in model.template.nodes]
        for node in self.order:
            _check(node, model.template.nodes)
        self.hidden = {node.name: question.hidden(node.name) for node in self.order}
        self.factors: dict[str, Factor] = {}
        self.active = self._active()
        for f in self.factors.values():
            links.hidden_links(f, self.hidden)
        self.near = {node.name: [f for f in self.factors.values() if f.touches(node.name)] for node in self.order}
        self.nat: dict[str, dict[str, FloatArray]] = {}
        self.q: dict[str, dict[str, FloatArray]] = {}
        for node in self.order:
            self._start(node, rng)
        states = [n for n in self.order if kind_of(n) is not None and n.var.is_discrete and n.form != "given"]
        others = [n for n in self.order if kind_of(n) is not None and n not in states and n.form != "given"]
        self.sweeps = [n for n in (*others, *states) if (self.hidden[n.name] & self.active[n.name]).any()]

    # ------------------------------------------------------------------------------------------ setting out

    def _active(self) -> dict[str, Array]:
        """Members that are observed, or on which something observed depends."""
        active = {name: ~hidden for name, hidden in self.hidden.items()}
        for node in reversed(self.order):
            f = make_factor(self.layout, node, np.ones(self.layout.count(node.name)))
            own = active[node.name]
            for name, at, _ in f.selectors:
                active[name][at[own]] = True
            for (name, _), at in f.places.items():
                active[name][at[own].ravel()] = True
        for node in self.order:
            self.factors[node.name] = make_factor(self.layout, node, active[node.name].astype(np.float64))
        return active

    def _start(self, node: Node, rng: np.random.Generator) -> None:
        n, kind = self.layout.count(node.name), kind_of(node)
        seen = self.question.observed.get(node.name)
        if kind is None:
            x = np.zeros((n, node.var.dimension)) if seen is None else np.nan_to_num(seen)
            self.q[node.name] = {"x": x}
            return
        if node.form != "given":
            self.nat[node.name] = kind.start(node, n, rng)
            self.q[node.name] = kind.moments(self.nat[node.name])
        if seen is not None:
            known = ~self.hidden[node.name]
            values = kind.seen(seen, node)
            if node.form == "given":
                self.q[node.name] = values
                return
            for word, value in self.q[node.name].items():
                if word in values:
                    value[known] = values[word][known]

    # ------------------------------------------------------------------------------------------ ascent

    def update(self, node: Node) -> None:
        """The best factor of a variable's hidden members, given all others."""
        kind, name = kind_of(node), node.name
        n = self.layout.count(name)
        total = {word: np.zeros((n, *shape)) for word, shape in kind.shapes(node).items()}
        for f in self.near[name]:
            for _, at, parts in terms.messages(f, self.q, name):
                for word, part in parts.items():
                    total[word] += _gathered(at, part, n)
        free = self.hidden[name] & self.active[name]
        found = {word: value[free] for word, value in total.items()}
        if any(_in_link(f.node, name) for f in self.near[name]):
            self._step(node, free, found)
        else:
            self._set(node, free, found)

    def _set(self, node: Node, free: Array, nat: dict[str, FloatArray]) -> None:
        for word, value in nat.items():
            self.nat[node.name][word][free] = value
        for word, value in kind_of(node).moments(nat).items():
            self.q[node.name][word][free] = value

    def _step(self, node: Node, free: Array, goal: dict[str, FloatArray]) -> None:
        """As far towards `goal` as the bound does not fall: it rises at first, and may fall again farther on."""
        start = {word: self.nat[node.name][word][free] for word in goal}
        before, share = self._around(node), 1.0
        while share > _SHORTEST:
            self._set(node, free, {word: start[word] + share * (goal[word] - start[word]) for word in goal})
            if self._around(node) >= before:
                return
            share *= 0.5
        self._set(node, free, start)

    def _around(self, node: Node) -> float:
        """The part of the bound in which a variable takes part."""
        return sum(self._expected(f) for f in self.near[node.name]) + self._entropy(node)

    def ascend(self) -> None:
        """Every variable once; the bound does not fall."""
        for node in self.sweeps:
            self.update(node)

    def bound(self) -> float:
        """E log p − E log q ≤ log p(evidence)."""
        total = sum(self._expected(f) for f in self.factors.values())
        return total + sum(self._entropy(node) for node in self.sweeps)

    def _expected(self, f: Factor) -> float:
        if not (f.n and f.active.any()):
            return 0.0
        logs = terms.expected_log(f, self.q)
        return float((f.weights(self.q) * np.where(f.active[:, None] > 0, logs, 0.0)).sum())

    def _entropy(self, node: Node) -> float:
        free = self.hidden[node.name] & self.active[node.name]
        nat = {word: value[free] for word, value in self.nat[node.name].items()}
        own = {word: value[free] for word, value in self.q[node.name].items()}
        return float(kind_of(node).entropy(nat, own).sum())

    def is_exact(self) -> bool:
        """Whether no factor joins two hidden members: q is then the posterior, after one sweep."""
        for f in self.factors.values():
            if links.hidden_links(f, self.hidden):
                return False  # not conjugate
            on = f.active > 0
            number = (self.hidden[f.node.name] & on).astype(np.int64)
            chosen = f.weights(self.q) > 0.0
            for name, at, _ in f.selectors:
                number += self.hidden[name][at]
            for (name, _), at in f.places.items():
                number += (self.hidden[name][at] & chosen).sum(axis=1)
            if (number[on] > 1).any():
                return False
        return True

    # ------------------------------------------------------------------------------------------ the others

    def complete(self) -> None:
        """Moments of members that took no part, in topological order: what their parents let expect."""
        for node in self.order:
            idle = self.hidden[node.name] & ~self.active[node.name]
            if idle.any():
                f = make_factor(self.layout, node, np.ones(self.layout.count(node.name)))
                _expect(node, f, self.q, self.nat, idle)

    def spread(self, name: str) -> Any:
        """Probabilities of states, or means and variances, of all members."""
        node = self.question.model.template.nodes[name]
        kind = kind_of(node)
        if kind is None:
            q = self.q[name]
            return q["x"], q.get("variance", np.zeros_like(q["x"]))
        if node.form == "given":
            seen = self.question.observed[name]
            return self.q[name]["p"] if node.var.is_discrete else (seen, np.zeros_like(seen))
        found = kind.spread(self.nat[name], self.q[name])
        if node.form == "beta":
            found = tuple(part[:, 1:] for part in found)
        known = ~self.hidden[name]
        if isinstance(found, tuple) and known.any():
            mean, var = (part.copy() for part in found)
            mean[known], var[known] = self.question.observed[name][known], 0.0
            return mean, var
        return found


def _gathered(at: Array, part: FloatArray, n: int) -> FloatArray:
    """Rows of `part` added up by the member that they belong to."""
    rest = part.shape[1:]
    flat = part.reshape(len(part), -1)
    if len(at) == n and np.array_equal(at, np.arange(n)):
        return part
    columns = [np.bincount(at, flat[:, j], minlength=n) for j in range(flat.shape[1])]
    return np.asarray(np.column_stack(columns).reshape(n, *rest) if columns else np.zeros((n, *rest)))


def _in_link(node: Node, name: str) -> bool:
    return any(isinstance(v, Link) and name in {ref.name for ref in v.refs} for v in node.arguments.values())


def _check(node: Node, nodes: Any) -> None:
    """A `ModelError` where a family and its arguments are not conjugate."""
    if node.form in ("dirichlet", "beta", "wishart") and node.refs:
        raise ModelError(f"{node.name}: weights that are variables ({node.refs[0].name}) are not conjugate")
    for word, value in node.arguments.items():
        if isinstance(value, Link):
            links.check_link(node, word, value, nodes)
            continue
        if isinstance(value, Product) and (word != "mean" or node.var.dimension != 1):
            raise ModelError(f"{node.name}: an inner product is the mean of a number")
        if isinstance(value, Product) and value.left.name == value.right.name:
            raise ModelError(f"{node.name}: an inner product is one of two variables")
        for ref in refs_of(value) if node.form != "table" else ():
            _check_argument(node, word, nodes[ref.name])


_WANTED = {
    "probabilities": ("dirichlet", "beta"),
    "rate": ("gamma",),
    "precision": ("gamma", "wishart"),
    "mean": ("normal", "gaussian", "given"),
}


def _check_argument(node: Node, word: str, parent: Node) -> None:
    wanted = _WANTED.get(word, ())
    if parent.form not in wanted:
        words = " or ".join(wanted) or "a number"
        raise ModelError(
            f"{node.name}: its {word} is {parent.name} ({parent.form}), which is not conjugate; {words} is expected"
        )


def _expect(node: Node, f: Factor, q: Any, nat: Any, idle: Array) -> None:
    """What is expected of members that nothing observed depends on."""
    W = f.weights(q)
    if node.form in ("categorical", "bernoulli", "table"):
        q[node.name]["p"][idle] = np.einsum("nm,nmk->nk", W, _expected_probabilities(f, q))[idle]
    elif node.form in ("normal", "gaussian"):
        m, mm = terms.mean_of(f, q)
        mean = np.einsum("nm,nmi->ni", W, np.broadcast_to(m, (*W.shape, m.shape[-1])))
        noise = _expected_covariance(f, q)
        square = np.einsum("nm,nmij->nij", W, np.broadcast_to(mm + noise, (*W.shape, *mm.shape[2:])))
        q[node.name]["mean"][idle], q[node.name]["square"][idle] = mean[idle], square[idle]
    elif node.form == "poisson":
        rate, _ = terms.rate_of(f, q)
        given = node.arguments["rate"]
        square = f.get(q, given, "square") if isinstance(given, Ref) else rate**2
        square = links.exp_moments(f, q, given)["square"] if isinstance(given, Link) else square
        mean = (W * rate).sum(axis=1)
        q[node.name].setdefault("variance", np.zeros_like(q[node.name]["x"]))
        q[node.name]["x"][idle, 0] = mean[idle]
        q[node.name]["variance"][idle, 0] = ((W * (square + rate)).sum(axis=1) - mean**2)[idle]
    elif node.form == "multinomial":
        raise ModelError(f"{node.name}: counts that are not observed have no known total")
    else:
        from gramgraph.engines.plates.posteriors import kind_of

        made = terms.messages(f, q, node.name)[0][2]
        for word, value in made.items():
            nat[node.name][word][idle] = value[idle]
        fresh = kind_of(node).moments({word: value[idle] for word, value in made.items()})
        for word, value in fresh.items():
            q[node.name][word][idle] = value


def _expected_probabilities(f: Factor, q: Any) -> FloatArray:
    if f.node.form == "table":
        table = np.asarray(f.node.arguments["table"])
        out = table.reshape(1, -1, table.shape[-1])
    else:
        given = f.node.arguments["probabilities"]
        if isinstance(given, Ref):
            return f.get(q, given, "mean")
        if isinstance(given, Link):
            return links.mean_states(f, q, given)
        p = np.atleast_1d(np.asarray(given))
        out = (np.array([1.0 - p[0], p[0]]) if f.node.form == "bernoulli" else p)[None, None]
    return np.broadcast_to(out, (f.n, *out.shape[1:]))


def _expected_covariance(f: Factor, q: Any) -> FloatArray:
    """E precision⁻¹, (n or 1, M or 1, d, d)."""
    given = f.node.arguments.get("precision")
    if isinstance(given, Ref):
        inverse = f.get(q, given, "inverse")
        return inverse[..., None, None] * np.eye(f.node.var.dimension) if inverse.ndim == 2 else inverse
    if isinstance(given, Link):
        return links.exp_moments(f, q, given)["inverse"][..., None, None] * np.eye(f.node.var.dimension)
    return np.asarray(np.linalg.inv(terms.precision_of(f, q)[0]))
