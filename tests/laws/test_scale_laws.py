"""Machines whose bandwidth follows the data do not see the unit of the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gramgraph import estimators
from tests.portions import examples

MACHINES = (
    estimators.KernelRidge(0.1),
    estimators.KernelNeighborsRegressor(3),
    estimators.KernelPCA(2),
    estimators.SVR(C=2.0),
    estimators.NadarayaWatson(),
)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: type(machine).__name__)
@settings(max_examples=examples(12))
@given(power=st.integers(-400, 450), seed=st.integers(0, 2**16))
def test_answers_do_not_depend_on_the_unit(machine, power, seed):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(14, 2)), rng.normal(size=(4, 2))
    y, unit = X[:, 0] - X[:, 1] ** 2, 2.0**power
    ask = "transform" if hasattr(machine, "transform") else "predict"
    plain = getattr(machine.fit(X, y), ask)(new)
    scaled = getattr(machine.fit(X * unit, y), ask)(new * unit)
    np.testing.assert_allclose(scaled, plain, rtol=1e-4, atol=1e-6)  # searches stop there
