"""The laws of the factor algebra, checked on three given factors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar

import numpy as np

from gramgraph.factors import Factor
from gramgraph.variables import Discrete, Var, join

F = TypeVar("F", bound=Factor)
Point = Mapping[Var, Any]


def check_factor(f: F, g: F, h: F, *, probes: Sequence[Point] | None = None, rtol: float = 1e-9) -> None:
    """Assert the laws that `gramgraph.factors.Factor` states, on three factors of one kind.

    Two factors count as equal when their logarithms agree at every probe (a value for each variable); the value at a
    point is read through the algebra itself: condition on all variables, normalize, take log Z. Without `probes`, all
    assignments of discrete variables are tried. Costs some thirty operations per probe.

    Parameters
    ----------
    f : the first factor.
    g : the second factor.
    h : the third factor.
    probes : assignments at which factors are compared; None for all.
    rtol : how far logarithms may be off.

    Examples
    --------
    >>> from gramgraph.factors import TableFactor
    >>> from gramgraph.variables import binary
    >>> a, b = binary("a"), binary("b")
    >>> f, g = TableFactor((a,), np.array([1.0, 2.0])), TableFactor((b, a), np.array([[1.0, 0.0], [2.0, 5.0]]))
    >>> check_factor(f, g, f.product(g))
    """
    points = list(probes) if probes is not None else _all_points(join(f.scope, g.scope, h.scope))
    same = _Comparison(points, rtol)
    before = [same.values(factor) for factor in (f, g, h)]
    _check_product(f, g, h, same)
    _check_sums(f, g, same)
    _check_maxima(f, g, same)
    _check_condition(f, g, same)
    _check_normalize(f, g, same)
    for factor, old in zip((f, g, h), before, strict=True):
        assert np.array_equal(same.values(factor), old), "an operation changed its operand in place"


class _Comparison:
    """Equality of factors at a list of points."""

    def __init__(self, points: Sequence[Point], rtol: float) -> None:
        self.points, self.rtol = points, rtol

    def values(self, factor: Factor) -> np.ndarray[Any, Any]:
        """log f at every point."""
        return np.array([factor.condition({v: p[v] for v in factor.scope}).normalize()[1] for p in self.points])

    def __call__(self, a: Factor, b: Factor, law: str) -> None:
        assert set(a.scope) == set(b.scope), f"{law}: scopes {a.scope} and {b.scope} differ"
        left, right = self.values(a), self.values(b)
        assert not np.isnan(left).any(), f"{law}: not a number"
        assert np.allclose(left, right, rtol=self.rtol, atol=self.rtol), f"{law}: {left} is not {right}"


def _all_points(scope: tuple[Var, ...]) -> list[Point]:
    for var in scope:
        assert isinstance(var.domain, Discrete), f"give probes: {var.name} is not discrete"
    return [dict(zip(scope, states, strict=True)) for states in product(*(range(var.size) for var in scope))]


def _subsets(scope: Iterable[Var]) -> list[tuple[Var, ...]]:
    """The empty set, each variable, and all of them."""
    every = tuple(scope)
    return list(dict.fromkeys([(), *((var,) for var in every), every]))


def _check_product(f: F, g: F, h: F, same: _Comparison) -> None:
    assert f.product(g).scope == join(f.scope, g.scope), "the scope of a product is the first-seen union of the scopes"
    same(f.product(g), g.product(f), "product is commutative")
    same(f.product(g).product(h), f.product(g.product(h)), "product is associative")
    pointwise = same.values(f) + same.values(g)
    assert np.allclose(same.values(f.product(g)), pointwise, rtol=same.rtol, atol=same.rtol), "product is pointwise"


def _check_sums(f: F, g: F, same: _Comparison) -> None:
    for out in _subsets(f.scope):
        summed = f.marginalize(out)
        assert summed.scope == tuple(v for v in f.scope if v not in out), "the other variables keep their order"
        one_by_one = f
        for var in reversed(out):
            one_by_one = one_by_one.marginalize((var,))
        same(summed, one_by_one, "the order of sums does not matter")
        total, parts = f.normalize()[1], summed.normalize()[1]
        assert np.isclose(total, parts, rtol=same.rtol, atol=same.rtol) or total == parts, "a sum keeps the total"
        if not set(out) & set(g.scope):
            same(f.product(g).marginalize(out), f.marginalize(out).product(g), "sum distributes over product")


def _check_maxima(f: F, g: F, same: _Comparison) -> None:
    for out in _subsets(f.scope):
        largest = f.maximize(out)
        one_by_one = f
        for var in reversed(out):
            one_by_one = one_by_one.maximize((var,))
        same(largest, one_by_one, "the order of maxima does not matter")
        top, own = same.values(largest), same.values(f)
        low = own > top  # -inf where the factor is zero
        slack = same.rtol * (1.0 + np.abs(own[low]))
        assert (own[low] - top[low] <= slack).all(), "a maximum is not below the factor"
        if not set(out) & set(g.scope):
            same(f.product(g).maximize(out), f.maximize(out).product(g), "max distributes over product")


def _check_condition(f: F, g: F, same: _Comparison) -> None:
    for point in (same.points[0], same.points[-1]):
        for seen in _subsets(f.scope):
            at = {var: point[var] for var in seen}
            same(f.product(g).condition(at), f.condition(at).product(g.condition(at)), "condition before product")
            out = tuple(var for var in f.scope if var not in at)[:1]
            same(f.condition(at).marginalize(out), f.marginalize(out).condition(at), "condition commutes with sum")
            for var in f.scope:
                assert var not in at or var not in f.condition(at).scope, "observed variables leave the scope"


def _check_normalize(f: F, g: F, same: _Comparison) -> None:
    normal, log_z = f.normalize()
    assert normal.scope == f.scope, "normalize keeps the scope"
    if log_z == -np.inf:
        return
    again, zero = normal.normalize()
    assert abs(zero) < 1e-9, f"normalize is idempotent, but log Z of a normalized factor is {zero}"
    same(again, normal, "normalize is idempotent")
    assert np.allclose(same.values(normal) + log_z, same.values(f), rtol=same.rtol, atol=same.rtol), "f = Z · (f / Z)"
    constant = g.marginalize(g.scope)
    scale = constant.normalize()[1]
    if scale > -np.inf:
        scaled = f.product(constant).normalize()[1]
        assert np.isclose(scaled, log_z + scale, rtol=same.rtol, atol=same.rtol), "log Z adds under a change of scale"
