"""Random networks of seven variables with every kind of arrow, for comparisons of engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import gramgraph as gg
from gramgraph.conditionals import (
    ConditionalLinearGaussian,
    GaussianCopula,
    LinearGaussian,
    Margin,
    Predictor,
    Softmax,
    Table,
)
from gramgraph.variables import Circle, Real, Var, discrete

DOMAINS = (Real(), Real(), Real(), Circle(), None, None)


def random_network(seed: int, rows: int = 800, *, boosted: bool = False) -> tuple[Any, dict[str, Any]]:
    """(a network, a full draw of it): conditionals given or learned from draws of what stands above them; half of the
    families in which that is possible have boosted trees, if asked for."""
    rng = np.random.default_rng(seed)
    variables = []
    for i in range(7):
        domain = DOMAINS[rng.integers(len(DOMAINS))] if i else Real()
        name = f"v{i}"
        variables.append(discrete(name, int(rng.integers(2, 4))) if domain is None else Var(name, domain))
    made: list[Any] = []
    draws: dict[Var, Any] = {}
    for i, var in enumerate(variables):
        k = int(rng.integers(0, min(i, 3) + 1)) if i else 0
        parents = tuple(variables[p] for p in sorted(rng.choice(i, size=k, replace=False))) if k else ()
        trees = boosted and _may_be_boosted(var, parents) and rng.random() < 0.5
        c = (_boosted if trees else random_conditional)(var, parents, draws, rows, rng)
        made.append(c)
        values = {p: draws[p] for p in parents}
        draws[var] = _draw(c, values, rows, rng)
    net = gg.BayesianNetwork.from_parts(variables, made)
    row = int(rng.integers(rows))
    point = {var.name: (var.states[x[row]] if var.is_discrete else float(x[row, 0])) for var, x in draws.items()}
    return net, point


def _draw(c: Any, values: dict[Var, Any], n: int, rng: Any) -> Any:
    from gramgraph.conditionals.continuous import draw

    return draw(c, values, n, rng)


def random_conditional(var: Var, parents: tuple[Var, ...], draws: dict[Var, Any], n: int, rng: Any) -> Any:
    """One of the kinds that fit a family."""
    real = [p for p in parents if not p.is_discrete]
    circle = any(isinstance(p.domain, Circle) for p in parents)
    if var.is_discrete and not real:
        return Table(var, parents, rng.dirichlet(np.ones(var.size), size=[p.size for p in parents]))
    kinds = ["kernel"]
    if var.is_discrete:
        kinds += ["softmax"]
    elif not isinstance(var.domain, Circle):
        kinds += [] if circle else ["linear", "linear"]
        kinds += ["predictor"] if real else []
        kinds += ["copula"] if real and len(real) == len(parents) and not circle else []
    kind = kinds[rng.integers(len(kinds))]
    if kind == "softmax":
        sizes = [p.size for p in parents if p.is_discrete]
        m = sum(2 if isinstance(p.domain, Circle) else 1 for p in real)
        return Softmax(var, parents, rng.normal(size=(*sizes, var.size, m)), rng.normal(size=(*sizes, var.size)))
    if kind == "linear":
        sizes = [p.size for p in parents if p.is_discrete]
        numbers = (0.8 * rng.normal(size=(*sizes, 1, len(real))), rng.normal(size=(*sizes, 1)))
        sd = rng.uniform(0.3, 1.0, size=sizes)
        made = ConditionalLinearGaussian if sizes else LinearGaussian
        return made(var, parents, *numbers, sd=sd if sizes else float(sd))
    frame = _learned_from(var, parents, draws, n, rng)
    if kind == "kernel":
        return gg.KernelConditional.fit(var, parents, frame)
    if kind == "copula":
        margins = {p.name: Margin.of(frame[p.name]) for p in parents} | {var.name: Margin("gumbel_r")}
        return GaussianCopula(var, parents, GaussianCopula.fit(var, parents, frame).correlation, margins)
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return Predictor.fit(var, parents, make_pipeline(PolynomialFeatures(2), LinearRegression()), frame)


def _may_be_boosted(var: Var, parents: tuple[Var, ...]) -> bool:
    circle = any(isinstance(v.domain, Circle) for v in (var, *parents))
    return not circle and any(not p.is_discrete for p in parents)


def _boosted(var: Var, parents: tuple[Var, ...], draws: dict[Var, Any], n: int, rng: Any) -> Any:
    return gg.Boosted(n_estimators=30).fit(var, parents, _learned_from(var, parents, draws, n, rng))


def _learned_from(var: Var, parents: tuple[Var, ...], draws: dict[Var, Any], n: int, rng: Any) -> pd.DataFrame:
    frame = pd.DataFrame({var.name: _function(var, parents, draws, n, rng)})
    for p in parents:
        frame[p.name] = np.array(p.states)[draws[p]] if p.is_discrete else draws[p][:, 0]
    return frame


def _function(var: Var, parents: tuple[Var, ...], draws: dict[Var, Any], n: int, rng: Any) -> Any:
    """Values of the child that depend on the parents in a nonlinear way."""
    total = np.zeros(n)
    for p in parents:
        x = draws[p]
        total += rng.normal(size=p.size)[x] if p.is_discrete else rng.normal() * np.sin(x[:, 0] + rng.normal())
    total += rng.uniform(0.2, 0.6) * rng.normal(size=n)
    if var.is_discrete:
        cuts = np.quantile(total, np.linspace(0, 1, var.size + 1)[1:-1])
        return np.array(var.states)[np.searchsorted(cuts, total)]
    return np.mod(2.0 * total + np.pi, 2.0 * np.pi) - np.pi if isinstance(var.domain, Circle) else total
