"""Every kind of conditional that the package defines holds to the contract: classes are found, not listed.

Kinds with a table are drawn at random in test_kinds.py; those with real-valued variables have an example here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import gramgraph as gg
from gramgraph import conditionals as C
from gramgraph.conditionals import KINDS, Conditional, RealConditional, from_fields
from gramgraph.exceptions import ModelError
from gramgraph.testing import find_classes
from gramgraph.tree_sum import Node, TreeSum
from gramgraph.variables import binary
from tests.conditionals.test_kinds import some

X, Y, D = gg.real("x"), gg.real("y"), binary("d")
LINE = LinearRegression().fit([[0.0], [1.0]], [0.5, 1.3])


def kernel_example() -> Conditional:
    """y given x, learned from draws."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    return C.KernelConditional.fit(Y, (X,), {"x": x, "y": np.sin(x) + 0.3 * rng.normal(size=300)}, cells=24)


#: A child with one number, or with two states, given x and d.
EXAMPLES: dict[type[Conditional], Callable[[], Conditional]] = {
    C.Blend: lambda: C.Blend(
        Y,
        (X,),
        (C.LinearGaussian(Y, (X,), [[0.7]], 1.0, sd=0.8), C.LinearGaussian(Y, (X,), [[-1.0]], 0.0, sd=2.0)),
        [0.3, 0.7],
    ),
    C.Boosted: lambda: C.Boosted(
        Y, (D, X), TreeSum.of([[Node(1, 0.1, 1, 2), Node(value=-0.5), Node(value=0.7)]], base=0.2, n_features=2), 0.6
    ),
    C.ConditionalLinearGaussian: lambda: C.ConditionalLinearGaussian(
        Y, (D, X), {"x": [1.0, 2.0]}, [0.0, 5.0], sd=[1.0, 0.5]
    ),
    C.FromFamily: lambda: C.FromFamily(Y, (X,), "normal", {"mean": {"parent": 0}, "variance": 0.6}),
    C.GaussianCopula: lambda: C.GaussianCopula(Y, (X,), 0.8, {"x": C.Margin("norm"), "y": C.Margin("gumbel_r")}),
    C.KernelConditional: lambda: kernel_example(),
    C.LinearGaussian: lambda: C.LinearGaussian(Y, (X,), [[0.7]], 1.0, sd=0.8),
    C.Predictor: lambda: C.Predictor(Y, (X,), LINE, 0.6),
    C.Grouped: lambda: C.Grouped(X, (D,), "gamma", [[5.0, 2.0], [6.0, 1.5]]),
    C.Softmax: lambda: C.Softmax.logistic(D, (X,), weights=[-2.0], bias=1.0),
}
#: A fitted estimator of anybody's has no place in a file.
WITHOUT_FILES = (C.Predictor,)


def found() -> list[type[Conditional]]:
    return find_classes(Conditional, "conditionals")


def check(kind: type[Conditional]) -> None:
    """The contract for a class of conditionals, whoever wrote it."""
    assert KINDS.get(kind.kind) is kind, f"add {kind.__name__} in conditionals/__init__.py, with a `kind` of its own"
    if not issubclass(kind, RealConditional):
        conditional = some(kind.kind, np.random.default_rng(0))
        table = conditional.table()
        assert np.allclose(table.sum(axis=-1), 1.0) and (table >= 0).all(), f"{kind.__name__}: rows are distributions"
    else:
        assert kind in EXAMPLES, f"write an example of {kind.__name__} in {__file__}"
        conditional = EXAMPLES[kind]()
        check_density(conditional)
    assert type(conditional) is kind
    assert conditional.faults() == []
    if kind not in WITHOUT_FILES:
        fields = json.loads(json.dumps(conditional.to_fields()))
        assert from_fields(fields, {v.name: v for v in conditional.scope}).equals(conditional), (
            f"{kind.__name__}: fields"
        )


def check_density(conditional: Any) -> None:
    """The density sums to 1 over the child for several parents, and draws have its mean."""
    child = conditional.child
    grid = np.arange(2) if child.is_discrete else np.linspace(-40.0, 40.0, 64001)
    width = 1.0 if child.is_discrete else grid[1] - grid[0]
    rng = np.random.default_rng(0)
    for x, d in ((0.3, 0), (-1.1, 1)):
        n = len(grid)
        values = {X: np.full((n, 1), x), D: np.full(n, d), child: grid if child.is_discrete else grid[:, None]}
        p = np.exp(conditional.log_density(values)) * width
        assert p.sum() == pytest.approx(1.0, abs=1e-6), f"{type(conditional).__name__}: the density sums to {p.sum()}"
        mean = float(p @ grid)
        spread = float(np.sqrt(p @ (grid - mean) ** 2))
        drawn = conditional.draw({X: np.full((4000, 1), x), D: np.full(4000, d)}, 4000, rng)
        # five deviations of a mean: one false alarm in two million draws, and the seed is fixed
        assert abs(np.mean(drawn) - mean) < 5.0 * spread / np.sqrt(4000) + 1e-12, f"{type(conditional).__name__}: draws"


@pytest.mark.parametrize("kind", found(), ids=lambda kind: kind.__name__)
def test_contract(kind: type[Conditional]) -> None:
    check(kind)


def test_a_predictor_says_why_it_cannot_be_saved() -> None:
    with pytest.raises(ModelError, match="file"):
        EXAMPLES[C.Predictor]().to_fields()


def test_the_contract_finds_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set(found())
    parent = "from gramgraph.conditionals.linear_gaussian import LinearGaussian"
    (tmp_path / "line.py").write_text(f"{parent}\n\n\nclass Line(LinearGaussian):\n    kind = 'line'\n")
    monkeypatch.setattr(C, "__path__", [*C.__path__, str(tmp_path)])
    [kind] = set(found()) - before
    with pytest.raises(AssertionError, match="add Line in"):
        check(kind)
    monkeypatch.setitem(KINDS, "line", kind)
    with pytest.raises(AssertionError, match="write an example of Line"):
        check(kind)
