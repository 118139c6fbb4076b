"""Families of distributions whose parameters are variables: what a plate model consists of when it is unrolled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gramgraph.conditionals.continuous import Draws, RealConditional, draw_states
from gramgraph.exceptions import ModelError, listing
from gramgraph.factors.gaussian import LOG_2PI
from gramgraph.typing import Array, FloatArray
from gramgraph.variables import Var


@dataclass(frozen=True, eq=False, repr=False)
class FromFamily(RealConditional):
    """p(child | parents) = a family of `gramgraph.distributions` with parents as its parameters.

    `arguments` maps each parameter to numbers, to `{"parent": i}` (the i-th parent), to
    `{"choose": [i, …], "by": [j, …], "shape": […]}` (that parent of the list at which the states of the parents j
    point), to `{"dot": [a, b]}` of two of these, or to `{"exp": a}` or `{"logistic": a}` of one. Forms: categorical,
    bernoulli, dirichlet, beta, gamma, normal, gaussian, wishart, poisson, multinomial.

    Parameters
    ----------
    child : the variable, or its name.
    parents : the variables that it depends on, or their names.
    form : which family, by its name.
    arguments : what each parameter of the family is: numbers, parents, or choices among parents.

    Examples
    --------
    >>> from gramgraph.variables import Simplex, Var, discrete
    >>> theta, z = Var("theta", Simplex(2)), discrete("z", 2)
    >>> p = FromFamily(z, (theta,), "categorical", {"probabilities": {"parent": 0}})
    >>> np.exp(p.log_density({theta: np.array([[0.3, 0.7]]), z: np.array([1])})).round(3).tolist()
    [0.7]
    """

    kind: ClassVar[str] = "family"

    child: Var
    parents: tuple[Var, ...]
    form: str
    arguments: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", tuple(self.parents))

    @property
    def n_parameters(self) -> int:
        """Numbers among the arguments."""
        return sum(int(np.size(value)) for value in self.arguments.values() if not isinstance(value, Mapping))

    def faults(self) -> list[str]:
        """Unknown forms and parameters, and parents that are not there."""
        if self.form not in FORMS:
            return [f"{self.form!r} is not a form of {self.child.name}: {listing(FORMS)}"]
        needed = FORMS[self.form].needs
        found = [f"{self.child.name} ({self.form}) has no {word}" for word in needed if word not in self.arguments]
        for word, value in self.arguments.items():
            if any(not 0 <= i < len(self.parents) for i in _positions(value)):
                found.append(f"{self.child.name}: the parameter {word} names a parent that is not there")
        return found

    def argument(self, word: str, values: Draws, n: int) -> FloatArray:
        """A parameter for n cases, (n, …) or broadcasting to it."""
        return self._value(self.arguments[word], values, n)

    def _value(self, given: Any, values: Draws, n: int) -> FloatArray:
        if not isinstance(given, Mapping):
            return np.asarray(given, dtype=np.float64)[None]
        if "parent" in given:
            return self._parent(given["parent"], values, n)
        if "dot" in given:
            left, right = (self._value(side, values, n) for side in given["dot"])
            return np.asarray((left * right).sum(axis=-1, keepdims=True))
        for word, function in LINKS.items():
            if word in given:
                return np.asarray(function(self._value(given[word], values, n)))
        stacked = np.stack([self._parent(i, values, n) for i in given["choose"]])
        codes = [np.broadcast_to(np.asarray(values[self.parents[j]]).reshape(-1), (n,)) for j in given["by"]]
        return np.asarray(stacked[np.ravel_multi_index(codes, given["shape"]), np.arange(n)])

    def _parent(self, i: int, values: Draws, n: int) -> FloatArray:
        return np.broadcast_to(
            np.asarray(values[self.parents[i]], dtype=np.float64).reshape(-1, self.parents[i].dimension),
            (n, self.parents[i].dimension),
        )

    def log_density(self, values: Draws, /) -> FloatArray:
        """log p(child | parents) of every case."""
        x = np.asarray(values[self.child])
        n = len(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.broadcast_to(FORMS[self.form].log_density(self, x, values, n), (n,))

    def draw(self, values: Draws, n: int, rng: np.random.Generator, /) -> Array:
        """A value of the child for each of n cases."""
        return FORMS[self.form].draw(self, values, n, rng)

    def to_fields(self) -> dict[str, Any]:
        """Kind, child, parents, form and arguments."""
        plain = {w: v if isinstance(v, Mapping) else np.asarray(v).tolist() for w, v in self.arguments.items()}
        return {**self._head(), "form": self.form, "arguments": plain}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], variables: Mapping[str, Var]) -> Self:
        """From what `to_fields` wrote; a `ModelError` for anything else."""
        child, parents = cls._family(fields, variables)
        form, arguments = fields.get("form"), fields.get("arguments")
        if form not in FORMS or not isinstance(arguments, Mapping):
            raise ModelError(f"the fields of {child.name} name no family: {form!r}")
        made = {}
        for word, value in arguments.items():
            try:
                _positions(value)
                made[word] = value if isinstance(value, Mapping) else np.asarray(value, dtype=np.float64)
            except (TypeError, ValueError, KeyError):
                raise ModelError(f"the parameter {word!r} of {child.name} is not readable") from None
        out = cls(child, parents, form, made)
        if found := out.faults():
            raise ModelError(found)
        return out


def _logistic(eta: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * eta)))


#: Functions of a number that stand in the place of a parameter.
LINKS: dict[str, Callable[[FloatArray], FloatArray]] = {"exp": np.exp, "logistic": _logistic}


def _positions(value: Any) -> tuple[int, ...]:
    """Positions of the parents that an argument uses."""
    if not isinstance(value, Mapping):
        return ()
    if "parent" in value:
        return (int(value["parent"]),)
    if "dot" in value:
        left, right = value["dot"]
        return (*_positions(left), *_positions(right))
    if link := [word for word in LINKS if word in value]:
        return _positions(value[link[0]])
    of, by, shape = value["choose"], value["by"], value["shape"]
    if int(np.prod(shape)) != len(of) or len(by) != len(shape):
        raise ValueError("shape")
    return (*map(int, of), *map(int, by))


# ------------------------------------------------------------------------------------------------- the forms


@dataclass(frozen=True)
class Form:
    """What a family needs, its log density and its draws."""

    needs: tuple[str, ...]
    log_density: Callable[..., FloatArray]
    draw: Callable[..., Array]


def _probabilities(c: FromFamily, values: Draws, n: int) -> FloatArray:
    p = np.broadcast_to(c.argument("probabilities", values, n), (n, _width(c.argument("probabilities", values, n))))
    return np.concatenate([1.0 - p, p], axis=1) if c.form == "bernoulli" else p


def _width(a: FloatArray) -> int:
    return a.shape[-1] if a.ndim > 1 else 1


def _log_states(c: FromFamily, x: Array, values: Draws, n: int) -> FloatArray:
    return np.log(_probabilities(c, values, n)[np.arange(n), np.asarray(x, dtype=np.int64).reshape(-1)])


def _draw_states(c: FromFamily, values: Draws, n: int, rng: np.random.Generator) -> Array:
    return draw_states(_probabilities(c, values, n), rng)


def _two(c: FromFamily, first: str, second: str, values: Draws, n: int) -> tuple[FloatArray, FloatArray]:
    return c.argument(first, values, n).reshape(-1), c.argument(second, values, n).reshape(-1)


def _alpha(c: FromFamily, values: Draws, n: int) -> FloatArray:
    found = c.argument("alpha", values, n)
    return np.broadcast_to(found.reshape(len(found), -1), (n, c.child.dimension))


def _log_dirichlet(c: FromFamily, x: Array, values: Draws, n: int) -> FloatArray:
    from scipy.special import gammaln

    a = _alpha(c, values, n)
    return np.asarray(gammaln(a.sum(axis=1)) - gammaln(a).sum(axis=1) + ((a - 1.0) * np.log(x)).sum(axis=1))


def _draw_dirichlet(c: FromFamily, values: Draws, n: int, rng: np.random.Generator) -> Array:
    g = rng.standard_gamma(_alpha(c, values, n))
    g = np.maximum(g, np.finfo(np.float64).tiny)
    return np.asarray(g / g.sum(axis=1, keepdims=True))


def _log_beta(c: FromFamily, x: Array, values: Draws, n: int) -> FloatArray:
    from scipy.special import betaln, xlog1py, xlogy

    a, b = _two(c, "a", "b", values, n)
    x = x.reshape(-1)
    return np.asarray(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b))


def _log_gamma(c: FromFamily, x: Array, values: Draws, n: int) -> FloatArray:
    from scipy.special import gammaln

    k, r = _two(c, "shape", "rate", values, n)
    x = x.reshape(-1)
    return np.asarray(k * np.log(r) - gammaln(k) + (k - 1.0) * np.log(x) - r * x)


def _precision(c: FromFamily, values: Draws, n: int) -> FloatArray:
    """Precision matrices, (n or 1, d, d), from a number, a vector or a matrix of precisions or variances."""
    d = c.child.dimension
    word = next(w for w in ("precision", "variance", "cov") if w in c.arguments)
    found = c.argument(word, values, n)
    found = found.reshape(len(found), -1)
    if found.shape[1] == d * d:
        out = found.reshape(-1, d, d)
    else:
        out = np.broadcast_to(found, (len(found), d))[:, :, None] * np.eye(d)
    return np.asarray(out if word == "precision" else np.linalg.inv(out))


def _mean(c: FromFamily, values: Draws, n: int) -> FloatArray:
    found = c.argument("mean", values, n)
    return np.broadcast_to(found.reshape(len(found), -1), (n, c.child.dimension))


def _log_normal(c: FromFamily, x: Array, values: Draws, n: int) -> FloatArray:
    P = _precision(c, values, n)
    r = x.reshape(n, -1) - _mean(c, values, n)
    quadratic = np.einsum("ni,nij,nj->n", r, np.broadcast_to(P, (n, *P.shape[1:])), r)
    return np.asarray(0.5 * (np.linalg.slogdet(P)[1] - quadratic - r.shape[1] * LOG_2PI))


def _draw_normal(c: FromFamily, values: Draws, n: int, rng: np.random.Generator) -> Array:
    root = np.linalg.cholesky(np.linalg.inv(_precision(c, values, n)))
    noise = rng.standard_normal((n, c.child.dimension))
    return np.asarray(_mean(c, values, n) + np.einsum("nij,nj->ni", np.broadcast_to(root, (n, *root.shape[1:])), noise))


def _log_poisson(c: FromFamily, x: Array, values: Draws, n: int) -> FloatArray:
    from scipy.special import gammaln, xlogy

    rate = c.argument("rate", values, n).reshape(-1)
    x = x.reshape(-1)
    return np.asarray(xlogy(x, rate) - rate - gammaln(x + 1.0))


def _log_multinomial(c: FromFamily, x: Array, values: Draws, n: int) -> FloatArray:
    from scipy.special import gammaln, xlogy

    p = c.argument("probabilities", values, n)
    x = x.reshape(n, -1)
    return np.asarray(gammaln(x.sum(axis=1) + 1.0) - gammaln(x + 1.0).sum(axis=1) + xlogy(x, p).sum(axis=1))


def _draw_multinomial(c: FromFamily, values: Draws, n: int, rng: np.random.Generator) -> Array:
    if "n_trials" not in c.arguments:
        raise ModelError(f"{c.child.name}: draws of counts need their total, as in Multinomial(…, n_trials=100)")
    p = np.broadcast_to(c.argument("probabilities", values, n), (n, c.child.dimension))
    return rng.multinomial(int(np.asarray(c.arguments["n_trials"])), p).astype(np.float64)


def _log_wishart(c: FromFamily, x: Array, values: Draws, n: int) -> FloatArray:
    from gramgraph.distributions import Wishart

    d = round(float(np.sqrt(c.child.dimension)))
    dof, scale = c.argument("dof", values, n).reshape(-1), c.argument("scale", values, n).reshape(-1, d, d)
    return np.array(
        [Wishart(float(dof[i % len(dof)]), scale[i % len(scale)]).log_density(x[i].reshape(d, d)) for i in range(n)]
    )


def _draw_wishart(c: FromFamily, values: Draws, n: int, rng: np.random.Generator) -> Array:
    from gramgraph.distributions import Wishart

    d = round(float(np.sqrt(c.child.dimension)))
    dof, scale = c.argument("dof", values, n).reshape(-1), c.argument("scale", values, n).reshape(-1, d, d)
    drawn = [Wishart(float(dof[i % len(dof)]), scale[i % len(scale)]).sample(1, rng)[0].ravel() for i in range(n)]
    return np.array(drawn).reshape(n, d * d)


def _column(x: Any, n: int) -> Array:
    return np.broadcast_to(np.asarray(x, dtype=np.float64).reshape(-1, 1), (n, 1)).copy()


#: Word → what it needs. A new family is its two functions and one line.
FORMS: dict[str, Form] = {
    "categorical": Form(("probabilities",), _log_states, _draw_states),
    "bernoulli": Form(("probabilities",), _log_states, _draw_states),
    "dirichlet": Form(("alpha",), _log_dirichlet, _draw_dirichlet),
    "beta": Form(("a", "b"), _log_beta, lambda c, v, n, rng: _column(rng.beta(*_two(c, "a", "b", v, n), size=n), n)),
    "gamma": Form(
        ("shape", "rate"),
        _log_gamma,
        lambda c, v, n, rng: _column(
            rng.standard_gamma(_two(c, "shape", "rate", v, n)[0], size=n) / _two(c, "shape", "rate", v, n)[1], n
        ),
    ),
    "normal": Form(("mean",), _log_normal, _draw_normal),
    "gaussian": Form(("mean",), _log_normal, _draw_normal),
    "wishart": Form(("dof", "scale"), _log_wishart, _draw_wishart),
    "poisson": Form(
        ("rate",),
        _log_poisson,
        lambda c, v, n, rng: _column(rng.poisson(c.argument("rate", v, n).reshape(-1), size=n), n),
    ),
    "multinomial": Form(("probabilities",), _log_multinomial, _draw_multinomial),
}
