"""EM on a network of 37 variables with a fifth of the cells missing, and what becomes of entries that no row needs."""

from __future__ import annotations

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.learn import em


def test_em_is_closer_to_the_truth_than_complete_rows(shared_data) -> None:
    truth = gg.read(shared_data / "bn" / "alarm.bif.gz")
    frame = truth.sample(10_000, random_state=0)
    gaps = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.2)

    def error(net) -> float:
        return float(np.mean([np.abs(net.conditional(v).table() - truth.conditional(v).table()).mean()
                              for v in truth.variables]))  # fmt: skip

    fitted = truth.fit(gaps, max_iter=6, tol=0.0)
    trace = np.array(fitted.fit_report.trace)
    assert (np.diff(trace) >= -1e-8 * abs(trace[0])).all()
    whole = gaps.dropna()
    assert len(whole) < 20
    assert error(fitted) < 0.25 * error(truth.fit(whole, prior=1e-3))
    assert error(fitted) < error(truth.fit(frame.iloc[:2000]))


def test_entries_that_no_row_needs_become_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    net = gg.BayesianNetwork("a{x|y|z} -> b{x|y|z} -> c{x|y|z}; a -> c").random_tables(4, concentration=0.3)
    rows = net.sample(60, random_state=2).astype(object)
    rows.iloc[::2, 1] = None

    def entries() -> np.ndarray:
        fitted = net.fit(rows, max_iter=200, tol=0.0)
        assert (np.diff(fitted.fit_report.trace) >= -1e-9).all()
        return np.concatenate([fitted.conditional(v).table().ravel() for v in "abc"])

    dropped = entries()
    monkeypatch.setattr(em, "TRACE", 0.0)
    kept = entries()
    assert 0.0 < kept[kept > 0.0].min() < 1e-25  # they would shrink for ever
    assert not ((dropped > 0.0) & (dropped < 1e-20)).any()
    np.testing.assert_allclose(dropped, kept, atol=1e-9)
