"""Distributions written to JSON and read again, bit for bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph import distributions as D
from gramgraph.distributions.files import dumps, loads
from tests.distributions.test_families import MEMBERS

OTHERS = [
    D.BetaBernoulli(2.0, 3.0).update([1, 0, 1]),
    D.DirichletCategorical([1.0, 2.0, 0.5]),
    D.GammaPoisson(2.0, 1.0),
    D.NormalNormal(0.0, 1.0, 2.0),
    D.NormalGamma(0.0, 1.0, 2.0, 2.0).update([0.1, 0.7]),
    D.NormalInverseWishart([0.0, 1.0], 1.0, 4.0, np.eye(2)),
    D.VonMisesMean(0.1, 2.0, 3.0),
    D.ConjugatePrior(D.Laplace, 2.0, 1.0, {"center": 0.5}),
    D.NormalGamma(0.0, 1.0, 2.0, 2.0).predictive,
    D.GammaPoisson(2.0, 1.0).predictive,
]


@pytest.mark.parametrize("value", [*MEMBERS, *OTHERS], ids=lambda p: type(p).__name__)
def test_there_and_back(value: Any, tmp_path: Any) -> None:
    """The text is the same again, hence every number; `gg.write` and `gg.read` take the same files."""
    text = dumps(value)
    again = loads(text)
    assert type(again) is type(value) and dumps(again) == text
    D.save(value, tmp_path / "p.json")
    assert dumps(D.load(tmp_path / "p.json")) == text
    gg.write(value, tmp_path / "q.json")
    assert dumps(gg.read(tmp_path / "q.json")) == text
    if hasattr(value, "log_density") and hasattr(value, "sample"):
        x = value.sample(3, random_state=0)
        np.testing.assert_array_equal(again.log_density(x), value.log_density(x))


GOOD = {"format": "gramgraph", "version": 1, "kind": "distribution", "family": "Gamma"}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{", "not JSON"),
        ("[]", "expected"),
        (json.dumps({**GOOD, "version": 9}), "version 9"),
        (json.dumps({**GOOD, "family": "Gama"}), "Did you mean .?Gamma"),
        (json.dumps({**GOOD, "family": "os.system"}), "not a family"),
        (json.dumps({**GOOD, "fields": {"shape": 1.0, "scale": 2.0}}), "fields rate, shape"),
        (json.dumps({**GOOD, "fields": {"shape": -1.0, "rate": 2.0}}), "Gamma: "),
        (json.dumps({**GOOD, "fields": {"shape": {"x": 1}, "rate": 2.0}}), "an object in the place"),
        (json.dumps({**GOOD, "fields": {"shape": "a", "rate": 2.0}}), "Gamma: "),
    ],
)
def test_damaged_files_say_what_is_wrong(text: str, match: str) -> None:
    with pytest.raises(gg.ParseError, match=match):
        loads(text)


def test_what_has_no_file_is_said(tmp_path: Any) -> None:
    made = D.change_of_variables(D.Normal(0, 1), np.exp, np.log)
    with pytest.raises(gg.ModelError, match="has no file"):
        D.save(made, tmp_path / "p.json")
    assert not (tmp_path / "p.json").exists()
    (tmp_path / "q.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(gg.ParseError, match="UTF-8"):
        D.load(tmp_path / "q.json")
