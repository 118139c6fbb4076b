"""EM on a network of 37 variables with a fifth of the cells missing."""

from __future__ import annotations

import numpy as np

import gramgraph as gg


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
