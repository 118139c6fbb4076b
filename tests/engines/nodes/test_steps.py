"""Boosted arrows on cells: exact against integrals, and within the errors of weighted draws on random networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.answers import DensityBelief
from gramgraph.answers.pieces import Pieces
from gramgraph.exceptions import BudgetError, ModelError
from gramgraph.tree_sum import Node, TreeSum
from gramgraph.variables import Var, binary, discrete, real


def random_trees(rng: np.random.Generator, sizes: list[int], outputs: int, n_trees: int = 8) -> TreeSum:
    """Trees of depth two over features with so many categories (0: a number)."""

    def split(j: int) -> dict[str, Any]:
        if sizes[j]:
            return {"feature": int(j), "goes_left": [bool(b) for b in rng.random(sizes[j]) < 0.5]}
        return {"feature": int(j), "threshold": float(rng.normal(scale=1.2))}

    trees, owners = [], []
    for _ in range(n_trees):
        for output in range(outputs):
            j, v = rng.integers(len(sizes), size=3), rng.normal(scale=0.6, size=4)
            inner = [Node(left=2 * k + 1, right=2 * k + 2, **split(j[k])) for k in range(3)]
            trees.append([*inner, *(Node(value=float(a)) for a in v)])
            owners.append(output)
    return TreeSum.of(trees, outputs=owners, base=np.zeros(outputs), n_features=len(sizes))


def random_network(seed: int, n: int = 6) -> tuple[Any, dict[str, Any]]:
    """A network whose arrows are boosted, and evidence that it drew itself."""
    rng = np.random.default_rng(seed)
    made: list[Var] = []
    parts: list[Any] = []
    for i in range(n):
        is_real = rng.random() < 0.5
        var = real(f"v{i}") if is_real else discrete(f"v{i}", int(rng.integers(2, 4)))
        count = min(len(made), int(rng.integers(0, 3)))
        parents = tuple(made[j] for j in sorted(rng.choice(len(made), size=count, replace=False))) if made else ()
        if parents:
            sizes = [p.size if p.is_discrete else 0 for p in parents]
            trees = random_trees(rng, sizes, 1 if is_real or var.size == 2 else var.size)
            parts.append(gg.Boosted(var, parents, trees, noise=float(rng.uniform(0.3, 1.0)) if is_real else None))
        else:
            parts.append(gg.LinearGaussian(var) if is_real else gg.Table(var, (), rng.dirichlet(np.ones(var.size))))
        made.append(var)
    net = gg.BayesianNetwork(cpds=parts)
    drawn = net.sample(1, random_state=seed + 1000).iloc[0]
    return net, {var.name: drawn[var.name] for var in made if rng.random() < 0.3}


def compare(seeds: range, draws: int) -> tuple[int, int, float]:
    """(variables, how many lie beyond 3 standard errors, the farthest)."""
    total, beyond, worst = 0, 0, 0.0
    for seed in seeds:
        net, evidence = random_network(seed)
        found = net.query(evidence=evidence)
        assert found.exact
        drawn = net.query(evidence=evidence, engine="likelihood_weighting", budget=draws, random_state=1)
        for name in (v for v in net.variables if v not in evidence):
            a, b = (
                np.atleast_1d(one[name].mean() if hasattr(one[name], "cdf") else one[name].probabilities)
                for one in (found, drawn)
            )
            error = np.asarray(drawn.details["standard_error"][name]).ravel()
            z = float(np.max(np.abs(a - b) / np.maximum(error, 1e-12)))
            total, beyond, worst = total + 1, beyond + (z > 3.0), max(worst, z)
    return total, beyond, worst


def test_row_h2_boosted_arrows_agree_with_draws() -> None:
    total, beyond, worst = compare(range(4), 30_000)
    assert total > 10 and beyond <= 1 and worst < 5.0


@pytest.mark.slow
def test_row_h2_boosted_arrows_agree_with_a_million_draws() -> None:
    """Above 3 standard errors at most one variable in a hundred; expected by chance: about one in two hundred."""
    total, beyond, worst = compare(range(20), 1_000_000)
    assert total > 80 and beyond <= 0.01 * total + 1 and worst < 5.0


def chain() -> tuple[Any, Any, Any]:
    """x → y → s with boosted arrows, and the two arrows."""
    rng = np.random.default_rng(3)
    x, y, s = real("x"), real("y"), binary("s")
    first = gg.Boosted(y, (x,), random_trees(rng, [0], 1), noise=0.4)
    second = gg.Boosted(s, (y,), random_trees(rng, [0], 1))
    return gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), first, second]), first, second


def test_a_chain_is_its_double_integral() -> None:
    net, first, second = chain()
    grid = np.linspace(-9.0, 9.0, 4001)
    h = grid[1] - grid[0]
    prior = np.exp(-0.5 * grid**2) / np.sqrt(2.0 * np.pi) * h
    mean = first.predict(grid[:, None])
    p_y = (np.exp(-0.5 * ((grid - mean[:, None]) / 0.4) ** 2) / (0.4 * np.sqrt(2.0 * np.pi)) * h).T @ prior
    yes = second.predict_proba(grid[:, None])[:, 1]
    answer = net.query(["x", "y"], {"s": "yes"})
    assert answer.engine == "steps" and answer.exact and answer.quality == "exact"
    wanted = p_y * yes / (p_y @ yes)
    # The grid does not stand on the thresholds: it is the one with an error.
    assert answer.log_evidence == pytest.approx(np.log(p_y @ yes), abs=2e-3)
    belief = answer["y"]
    assert isinstance(belief, DensityBelief) and isinstance(belief.cases[0], Pieces)
    assert belief.mean() == pytest.approx(wanted @ grid, abs=5e-3)
    assert belief.var() == pytest.approx(wanted @ (grid - wanted @ grid) ** 2, abs=5e-3)
    nodes = net.query(["x", "y"], {"s": "yes"}, engine="nodes")
    for name in ("x", "y"):
        off = abs(nodes[name].mean() - answer[name].mean())
        assert off <= np.max(nodes.details["standard_error"][name]) + 1e-3


def test_beliefs_are_one_density() -> None:
    belief = chain()[0].query("y", {"s": "yes"})["y"]
    grid = np.linspace(-8.0, 8.0, 200_001)
    d, h = belief.density(grid), grid[1] - grid[0]
    assert d.sum() * h == pytest.approx(1.0, abs=1e-4)
    assert belief.mean() == pytest.approx((d * grid).sum() * h, abs=1e-4)
    assert belief.expect(np.square) == pytest.approx(belief.var() + belief.mean() ** 2, rel=1e-6)
    logs = np.log(np.where(d > 0.0, d, 1.0))
    assert belief.entropy() == pytest.approx(-(d * logs).sum() * h, abs=1e-3)
    levels = np.array([0.01, 0.3, 0.5, 0.99])
    np.testing.assert_allclose(belief.cdf(belief.quantile(levels)), levels, atol=1e-12)
    draws = belief.sample(20_000, random_state=0)
    assert abs(draws.mean() - belief.mean()) < 4.0 * belief.sd() / np.sqrt(20_000)
    assert belief.density(belief.mode()) >= 0.99 * d.max()


@pytest.mark.parametrize(("low", "high"), [(8.0, 9.0), (-40.0, -39.9), (0.2, 0.2001), (-np.inf, -6.0), (3.0, np.inf)])
def test_pieces_in_the_tails_keep_their_digits(low: float, high: float) -> None:
    from scipy.integrate import quad

    piece = Pieces(np.ones(1), np.zeros(1), np.ones(1), np.array([low]), np.array([high]))
    near = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    ends = (max(low, -near - 9.0), min(high, near + 9.0))

    def f(x: float) -> float:
        return float(np.exp(-0.5 * (x * x - near * near)))

    mass = quad(f, *ends, epsabs=0.0, epsrel=1e-12)[0]
    mean = quad(lambda x: (x - near) * f(x), *ends, epsabs=0.0, epsrel=1e-12)[0] / mass + near
    spread = quad(lambda x: (x - mean) ** 2 * f(x), *ends, epsabs=0.0, epsrel=1e-12)[0] / mass
    found = piece.moments()
    assert found[0] == pytest.approx(mean, rel=1e-8)
    assert found[1] == pytest.approx(spread, rel=1e-5)


def test_tables_of_cases_and_files(tmp_path: Any) -> None:
    net, _ = random_network(11)
    rows = net.sample(5, random_state=0)[["v0", "v1"]]
    rows.loc[0, "v1"] = np.nan
    many = net.query(evidence=rows)
    assert many.engine == "steps"
    for i in range(5):
        seen = {k: v for k, v in rows.iloc[i].items() if v == v}
        one = net.query(evidence=seen)
        assert one.log_evidence == pytest.approx(many.log_evidence[i], abs=1e-12)
        for name in (v for v in net.variables if v not in seen and v in many):
            kind = "mean" if hasattr(one[name], "cdf") else "probabilities"
            a, b = (getattr(part, kind) for part in (one[name], many[name]))
            np.testing.assert_allclose(a() if callable(a) else a, (b() if callable(b) else b)[i], atol=1e-12)
    gg.write(net, tmp_path / "net.json")
    again = gg.read(tmp_path / "net.json").query()
    here = net.query()
    assert again.log_evidence == here.log_evidence
    for name in net.variables:
        if hasattr(here[name], "cdf"):
            assert again[name].mean() == here[name].mean()
        else:
            np.testing.assert_array_equal(again[name].probabilities, here[name].probabilities)


def test_what_is_no_step_function_goes_elsewhere() -> None:
    x, y, s = real("x"), real("y"), binary("s")
    arrow = gg.Boosted(s, (x,), random_trees(np.random.default_rng(0), [0], 1))
    net = gg.BayesianNetwork(cpds=[gg.LinearGaussian(x), arrow, gg.LinearGaussian(y, (x,), 1.0, 0.0, 0.5)])
    assert net.query("s", {"y": 0.3}).engine == "nodes"
    with pytest.raises(ModelError, match="boosted trees"):
        net.query("s", {"y": 0.3}, engine="steps")
    exact = net.query("s", {"y": 0.3}, engine="nodes")
    grid = np.linspace(-8.0, 8.0, 100_001)
    w = np.exp(-0.5 * grid**2 - (0.3 - grid) ** 2)  # variance one half
    p = float(w @ arrow.predict_proba(grid[:, None])[:, 1] / w.sum())
    assert abs(exact["s"].prob("yes") - p) <= np.max(exact.details["standard_error"]["s"]) + 1e-6


def test_too_many_cells_are_refused_before_memory_is_taken() -> None:
    rng = np.random.default_rng(0)
    parents = tuple(real(f"x{i}") for i in range(4))
    trees = random_trees(rng, [0] * 4, 1, 300)
    net = gg.BayesianNetwork(cpds=[*(gg.LinearGaussian(x) for x in parents), gg.Boosted(binary("s"), parents, trees)])
    with pytest.raises(BudgetError, match="entries"):
        net.query("s", engine="steps")
