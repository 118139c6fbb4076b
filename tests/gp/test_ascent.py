from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.gp.ascent import curvature_at, quasi_newton
from gramgraph.gp.hyper import ascend

WIDE = np.array([[-9.0, 9.0], [-9.0, 9.0]])


def banana(t, gradient):
    """−(1 − x)² − 5 (y − x²)², the top at (1, 1)."""
    x, y = t
    value = -((1 - x) ** 2) - 5 * (y - x * x) ** 2
    return value, np.array([2 * (1 - x) + 20 * x * (y - x * x), -10 * (y - x * x)])


@given(st.floats(-2, 2), st.floats(-2, 2))
def test_reaches_the_top_from_anywhere(x, y):
    found = quasi_newton(banana, np.array([x, y]), WIDE, np.eye(2), tol=1e-14)
    assert found.converged
    assert found.theta == pytest.approx([1.0, 1.0], abs=1e-4)


def test_bounds_hold_and_agree_with_l_bfgs():
    bounds = np.array([[-9.0, 0.5], [-0.2, 9.0]])
    found = quasi_newton(banana, np.array([-1.0, 3.0]), bounds, np.eye(2), tol=1e-14)
    other = ascend(banana, np.array([-1.0, 3.0]), bounds, tol=1e-14)
    assert found.theta[0] == 0.5
    assert found.theta == pytest.approx(other.theta, abs=1e-4)
    assert found.value == pytest.approx(other.value, abs=1e-8)


def test_a_known_curvature_saves_evaluations():
    H = curvature_at(banana, np.array([0.9, 0.8]), WIDE)
    known = quasi_newton(banana, np.array([0.9, 0.8]), WIDE, H)
    blind = quasi_newton(banana, np.array([0.9, 0.8]), WIDE, np.eye(2))
    assert known.value == pytest.approx(0.0, abs=1e-6)
    assert known.evaluations < blind.evaluations


def test_curvature_is_positive_definite_where_the_function_is_not_concave():
    H = curvature_at(lambda t, g: (float(t[0] ** 2 - t[1] ** 2), np.array([2 * t[0], -2 * t[1]])), np.zeros(2), WIDE)
    assert np.linalg.eigvalsh(H) == pytest.approx([2.0, 2.0], abs=1e-6)
    at_bound = curvature_at(banana, np.array([9.0, 9.0]), WIDE)
    assert np.isfinite(at_bound).all() and (np.linalg.eigvalsh(at_bound) > 0).all()


def test_places_where_the_objective_fails_are_avoided():
    def broken(t, gradient):
        return (-np.inf, np.zeros(2)) if t[0] > 1.5 else banana(t, gradient)

    found = quasi_newton(broken, np.array([1.4, 1.0]), WIDE, 1e-3 * np.eye(2), tol=1e-14)
    assert found.theta == pytest.approx([1.0, 1.0], abs=1e-4)
    nowhere = quasi_newton(lambda t, g: (-np.inf, np.zeros(2)), np.zeros(2), WIDE, np.eye(2))
    assert not nowhere.converged and nowhere.value == -np.inf
