"""The laws of the factor algebra, for every kind of factor over discrete variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.factors import TableFactor
from gramgraph.factors.log_table import LogTable
from gramgraph.testing import check_factor
from gramgraph.variables import Var, discrete

VARIABLES = (discrete("a", 2), discrete("b", 3), discrete("c", 1), discrete("d", 2))
# Linear tables hold ratios up to 1e308 within one table: three factors of 1e90 each are multiplied here.
ENTRIES = st.one_of(st.just(0.0), st.floats(1e-6, 1e6), st.floats(1e-45, 1e-40), st.floats(1e40, 1e45))
MAGNITUDES = st.sampled_from([1.0, 1e-250, 1e250])


@st.composite
def tables(draw: Any, kind: type) -> Any:
    scope = tuple(draw(st.lists(st.sampled_from(VARIABLES), unique=True, max_size=3)))
    shape = tuple(var.size for var in scope)
    size = int(np.prod(shape, dtype=int))
    values = np.array(draw(st.lists(ENTRIES, min_size=size, max_size=size))).reshape(shape)
    table = TableFactor(scope, values * draw(MAGNITUDES), draw(st.sampled_from([0.0, -5000.0, 12.5])))
    return table if kind is TableFactor else LogTable.from_table(table)


@given(st.data())
@pytest.mark.parametrize("kind", [TableFactor, LogTable])
def test_every_kind_of_table_obeys_the_laws(kind: type, data: Any) -> None:
    f, g, h = (data.draw(tables(kind)) for _ in range(3))
    check_factor(f, g, h)


class Broken(TableFactor):
    """Forgets the other factor's scale."""

    def product(self, other: Any, /) -> Any:
        made = super().product(other)
        return type(self)(made.scope, made.values, made.log_scale - other.log_scale)


class Mutating(TableFactor):
    """Normalizes itself in place."""

    def normalize(self) -> Any:
        object.__setattr__(self, "log_scale", self.log_scale + 1.0)
        return super().normalize()


class Swapped(TableFactor):
    """Takes the maximum where the sum is asked."""

    def marginalize(self, out: Any, /) -> Any:
        return self.maximize(out)


@pytest.mark.parametrize("kind", [Broken, Mutating, Swapped])
def test_the_check_finds_a_broken_factor(kind: type) -> None:
    a, b, _, d = VARIABLES
    f = kind((a, b), np.arange(1.0, 7.0).reshape(2, 3), 1.0)
    g = kind((d,), np.array([1.0, 2.0]), 2.0)
    with pytest.raises(AssertionError):
        check_factor(f, g, f)


def test_conditioned_slices_keep_their_scale() -> None:
    a = VARIABLES[0]
    tiny = TableFactor((a,), np.array([1.0, 1e-300]))
    product = tiny.condition({a: 1}).product(tiny.condition({a: 1}))
    assert product.normalize()[1] == pytest.approx(2 * np.log(1e-300))


def test_a_sum_of_huge_entries_does_not_overflow() -> None:
    huge = TableFactor((VARIABLES[0],), np.array([1.5e308, 1.5e308]))
    belief, log_z = huge.normalize()
    assert belief.values.tolist() == [0.5, 0.5]
    assert log_z == pytest.approx(np.log(1.5e308) + np.log(2.0))


def test_log_tables_hold_what_linear_ones_cannot() -> None:
    a: Var = VARIABLES[0]
    f = LogTable((a,), np.array([0.0, -5000.0]))
    g = LogTable((a,), np.array([-np.inf, 0.0]))
    assert f.product(g).normalize()[1] == -5000.0
