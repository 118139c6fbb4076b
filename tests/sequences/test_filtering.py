"""One observation at a time."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gramgraph.exceptions import ImpossibleEvidenceError, ModelError
from gramgraph.sequences import BayesFilter, CategoricalHMM, GaussianHMM


def test_the_door() -> None:
    door = BayesFilter([0.5, 0.5])  # open, closed
    assert door.sense([0.6, 0.3])[0] == pytest.approx(2 / 3, abs=1e-15)
    assert door.sense([0.5, 0.6])[0] == pytest.approx(5 / 8, abs=1e-15)
    assert door.act([[0.1, 0.9], [0.0, 1.0]])[0] == pytest.approx(1 / 16, abs=1e-15)
    assert door.log_likelihood == pytest.approx(np.log(0.45 * 0.8 / 1.5), abs=1e-12)


def test_two_envelopes() -> None:
    envelopes = BayesFilter([0.5, 0.5])
    assert envelopes.sense([0.5, 1.0])[0] == pytest.approx(1 / 3)


def test_a_stream_equals_the_batch(rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 2))
    X[5] = np.nan
    X[9, 0] = np.nan
    model = GaussianHMM(3, random_state=0).fit(X)
    stream = model.filter()
    beliefs = np.array([stream.update(x) for x in X])
    np.testing.assert_allclose(beliefs, model.filter_proba(X), rtol=0, atol=1e-12)
    assert stream.log_likelihood == pytest.approx(model.score(X), rel=1e-12)
    assert stream.steps == 60
    np.testing.assert_allclose(stream.predict(2), beliefs[-1] @ model.transmat_ @ model.transmat_, rtol=0, atol=1e-14)


def test_a_saved_filter_goes_on_bit_by_bit(rng: np.random.Generator) -> None:
    model = CategoricalHMM(3, random_state=0).fit(rng.integers(0, 4, 80))
    whole, part = model.filter(), model.filter()
    stream = rng.integers(0, 4, 40).tolist()
    for z in stream[:20]:
        whole.update(z), part.update(z)
    again = model.filter(state=json.loads(json.dumps(part.state)))
    for z in stream[20:]:
        assert (whole.update(z) == again.update(z)).all()
    assert whole.state == again.state
    with pytest.raises(ModelError, match="3 states, not 2"):
        CategoricalHMM.from_parameters([0.5, 0.5], np.eye(2), np.eye(2)).filter(state=part.state)


def test_impossible_and_missing() -> None:
    model = CategoricalHMM.from_parameters([1.0, 0.0], np.eye(2), np.eye(2))
    stream = model.filter()
    stream.update(0)
    with pytest.raises(ImpossibleEvidenceError, match="observation 1 has probability zero"):
        stream.update(1)
    assert stream.update(None).tolist() == [1.0, 0.0] and stream.steps == 2
    with pytest.raises(ModelError, match="one per state"):
        BayesFilter([0.5, 0.5]).sense([1.0])
    with pytest.raises(ModelError, match="shape"):
        BayesFilter([0.5, 0.5]).act(np.eye(3))
