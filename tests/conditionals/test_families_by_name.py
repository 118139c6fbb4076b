"""Families with parents as parameters: densities against the distributions, draws against the densities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gramgraph import distributions as D
from gramgraph.conditionals import FromFamily, from_fields
from gramgraph.exceptions import ModelError
from gramgraph.variables import Counts, Matrix, Positive, Real, Simplex, Unit, Var, discrete

P2 = np.array([[0.2, 0.8], [0.6, 0.4]])
#: Child, parents, form, arguments, values of the parents, points of the child, the distribution in the second case.
CASES: list[Any] = [
    (Var("t", Simplex(3)), (), "dirichlet", {"alpha": np.array([1.0, 2.0, 0.5])}, {},
     np.array([[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]]), D.Dirichlet([1.0, 2.0, 0.5])),
    (Var("p", Unit()), (), "beta", {"a": 2.0, "b": 3.0}, {}, np.array([[0.2], [0.7]]), D.Beta(2.0, 3.0)),
    (Var("r", Positive()), (), "gamma", {"shape": 2.0, "rate": 3.0}, {}, np.array([[0.5], [1.5]]), D.Gamma(2.0, 3.0)),
    (Var("n", Counts()), (Var("r", Positive()),), "poisson", {"rate": {"parent": 0}}, {"r": np.array([[1.0], [4.0]])},
     np.array([[2.0], [3.0]]), D.Poisson(4.0)),
    (Var("m", Counts(2)), (Var("t", Simplex(2)),), "multinomial", {"probabilities": {"parent": 0}, "n_trials": 5},
     {"t": P2}, np.array([[1.0, 4.0], [3.0, 2.0]]), D.Multinomial([0.6, 0.4], 5)),
    (Var("x", Real(2)), (Var("u", Real(2)), Var("s", Positive())), "gaussian",
     {"mean": {"parent": 0}, "precision": {"parent": 1}},
     {"u": np.array([[0.0, 0.0], [1.0, -1.0]]), "s": np.array([[1.0], [4.0]])},
     np.array([[0.5, 0.5], [0.8, -0.7]]), D.Gaussian([1.0, -1.0], np.eye(2) / 4.0)),
    (Var("y", Real()), (Var("w", Real(2)), Var("x", Real(2))), "normal",
     {"mean": {"dot": [{"parent": 0}, {"parent": 1}]}, "variance": 0.5},
     {"w": np.array([[0.0, 0.0], [1.0, 2.0]]), "x": np.array([[0.0, 0.0], [3.0, 0.5]])},
     np.array([[0.0], [4.4]]), D.Normal(4.0, 0.5)),
    (Var("L", Matrix(side=2)), (), "wishart", {"dof": 4.0, "scale": np.eye(2)}, {},
     np.array([[2.0, 0.5, 0.5, 1.0], [3.0, 1.0, 1.0, 2.0]]), D.Wishart(4.0, np.eye(2))),
]  # fmt: skip


def value_of(point: np.ndarray, form: str) -> Any:
    if form == "wishart":
        return point.reshape(2, 2)
    return float(point[0]) if len(point) == 1 else point


@pytest.mark.parametrize("case", CASES, ids=[case[2] for case in CASES])
def test_density_draws_and_fields(case: Any) -> None:
    child, parents, form, arguments, given, points, truth = case
    made = FromFamily(child, parents, form, arguments)
    values = {var: given[var.name] for var in parents}
    logs = made.log_density({**values, child: points})
    assert made.faults() == [] and logs[1] == pytest.approx(truth.log_density(value_of(points[1], form)), abs=1e-9)
    n = 3000
    many = {var: np.repeat(value[1:], n, axis=0) for var, value in values.items()}
    drawn = made.draw(many, n, np.random.default_rng(0)).reshape(n, -1)
    mean = np.ravel(truth.mean)
    error = drawn.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5.0 * error + 1e-12)  # the seed is fixed
    again = from_fields(made.to_fields(), {var.name: var for var in (child, *parents)})
    assert again.equals(made)


def test_a_choice_takes_the_member_that_the_state_names() -> None:
    z, w = discrete("z", 2), discrete("w", 2)
    a, b = Var("a", Simplex(2)), Var("b", Simplex(2))
    made = FromFamily(w, (z, a, b), "categorical", {"probabilities": {"choose": [1, 2], "by": [0], "shape": [2]}})
    values = {z: np.array([0, 1]), a: P2, b: P2[::-1], w: np.array([1, 1])}
    assert np.exp(made.log_density(values)).tolist() == pytest.approx([0.8, 0.8])
    drawn = made.draw({z: np.ones(2000, dtype=int), a: P2[:1], b: P2[1:]}, 2000, np.random.default_rng(0))
    assert np.mean(drawn) == pytest.approx(0.4, abs=0.06)


@pytest.mark.parametrize(
    "fields",
    [
        {"form": "nothing", "arguments": {}},
        {"form": "beta", "arguments": {"a": 1.0}},
        {"form": "beta", "arguments": {"a": {"parent": 3}, "b": 1.0}},
        {"form": "beta", "arguments": {"a": {"choose": [0], "by": [], "shape": [2]}, "b": 1.0}},
        {"form": "beta", "arguments": {"a": "x", "b": 1.0}},
        {"form": "beta"},
    ],
)
def test_bad_fields(fields: dict[str, Any]) -> None:
    head = {"kind": "family", "child": "p", "parents": []}
    with pytest.raises(ModelError):
        from_fields({**head, **fields}, {"p": Var("p", Unit())})
