"""Every kind of factor that the package defines obeys the laws of the algebra: classes are found, not listed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramgraph import factors as F
from gramgraph.testing import check_factor, find_classes
from gramgraph.variables import Var, discrete, real

A, B, C = discrete("a", 2), discrete("b", 3), discrete("c", 2)
X, Y, Z = real("x"), real("y"), real("z")
Draw = Callable[[np.random.Generator, tuple[Var, ...]], Any]


def _table(rng: np.random.Generator, scope: tuple[Var, ...]) -> F.TableFactor:
    return F.TableFactor(scope, rng.random([v.size for v in scope]), float(rng.normal()))


def _gaussian(rng: np.random.Generator, scope: tuple[Var, ...]) -> F.GaussianFactor:
    L = rng.normal(size=(len(scope), len(scope)))
    return F.GaussianFactor(scope, L @ L.T + np.eye(len(scope)), rng.normal(size=len(scope)))


#: How to draw one, and its variables.
EXAMPLES: dict[type, tuple[Draw, tuple[Var, Var, Var]]] = {
    F.GaussianFactor: (_gaussian, (X, Y, Z)),
    F.LogTable: (lambda rng, scope: F.LogTable.from_table(_table(rng, scope)), (A, B, C)),
    F.TableFactor: (_table, (A, B, C)),
}
PROTOCOL = ("product", "marginalize", "condition", "normalize")


def found() -> set[type]:
    kinds = find_classes(object, "factors")
    return {k for k in kinds if k is not F.Factor and all(inspect.isfunction(getattr(k, m, None)) for m in PROTOCOL)}


def check(kind: type) -> None:
    """The laws for a class of factors, whoever wrote it."""
    assert kind in EXAMPLES, f"write how to draw a {kind.__name__} in {__file__}"
    draw, (a, b, c) = EXAMPLES[kind]
    rng = np.random.default_rng(0)
    for _ in range(3):
        f, g, h = draw(rng, (a, b)), draw(rng, (b, c)), draw(rng, (c,))
        assert type(f) is kind
        probes = None if a.is_discrete else [{v: rng.normal(size=1) for v in (a, b, c)} for _ in range(3)]
        check_factor(f, g, h, probes=probes, rtol=1e-7)


@pytest.mark.parametrize("kind", sorted(found(), key=lambda kind: kind.__name__), ids=lambda kind: kind.__name__)
def test_contract(kind: type) -> None:
    check(kind)


def test_every_factor_is_public() -> None:
    hidden = {kind.__name__ for kind in found()} - set(F.__all__)
    assert not hidden, f"add a line in factors/__init__.py for {hidden}"


def test_the_contract_finds_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = found()
    (tmp_path / "loose.py").write_text(
        "from gramgraph.factors.table import TableFactor\n\n\nclass Loose(TableFactor): ...\n"
    )
    monkeypatch.setattr(F, "__path__", [*F.__path__, str(tmp_path)])
    [kind] = found() - before
    with pytest.raises(AssertionError, match="write how to draw a Loose"):
        check(kind)
    with pytest.raises(AssertionError, match="Loose"):
        test_every_factor_is_public()
