"""Models of sequences in files: the same answers bit by bit, and clear errors for broken ones."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramgraph as gg
import gramgraph.distributions as dist
from gramgraph.exceptions import ModelError, ParseError
from gramgraph.io import native
from gramgraph.sequences import (
    CategoricalHMM,
    DistributionHMM,
    DurationHMM,
    DynamicBayesianNetwork,
    GaussianHMM,
    GaussianMixtureHMM,
    InputHMM,
    KalmanFilter,
    MultiCategoricalHMM,
    PoissonHMM,
)

ROWS = np.repeat([0.1, 4.2, 0.3], 20)[:, None] + np.random.default_rng(0).normal(size=(60, 1))
COUNTS = np.round(np.abs(ROWS))
LABELS = np.where(ROWS[:, 0] > 2, "high", "low")


NAMES = ("symbols", "numbers", "several", "full", "tied", "mixture", "counts", "angles", "class", "durations",
         "kalman", "learned kalman")  # fmt: skip


@cache
def models() -> dict[str, tuple[Any, Any]]:
    fit = {"random_state": 0, "max_iter": 5}
    return {
        "symbols": (CategoricalHMM(2, **fit).fit(LABELS), LABELS),
        "numbers": (CategoricalHMM(2, symbols=range(9), transition_mask=np.ones((2, 2)), **fit).fit(COUNTS), COUNTS),
        "several": (MultiCategoricalHMM(2, **fit).fit(np.hstack([COUNTS, COUNTS])), np.hstack([COUNTS, COUNTS])),
        "full": (GaussianHMM(2, **fit).fit(ROWS), ROWS),
        "tied": (GaussianHMM(2, covariance_type="tied", fixed=("startprob",), **fit).fit(ROWS), ROWS),
        "mixture": (GaussianMixtureHMM(2, 2, **fit).fit(ROWS), ROWS),
        "counts": (PoissonHMM(2, rate_prior=(2.0, 1.0), **fit).fit(COUNTS), COUNTS),
        "angles": (DistributionHMM(2, families="VonMises", **fit).fit(ROWS), ROWS),
        "class": (DistributionHMM(2, families=[dist.Normal], **fit).fit(ROWS), ROWS),
        "durations": (DurationHMM(GaussianHMM(2, **fit), max_duration=30).fit(ROWS), ROWS),
        "kalman": (KalmanFilter(1.0, 0.1, 1.0, 1.0, 0.0, 1.0), ROWS),
        "learned kalman": (KalmanFilter(1.0, 0.1, 1.0, 1.0, 0.0, 1.0, max_iter=3).fit(ROWS), ROWS),
    }


@pytest.mark.parametrize("name", NAMES)
def test_files_give_the_same_bits(name: str, tmp_path: Path) -> None:
    model, X = models()[name]
    gg.write(model, tmp_path / "model.json.gz")
    again = gg.read(tmp_path / "model.json.gz")
    assert type(again) is type(model)
    assert again.score(X) == model.score(X)
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert native.dumps(again) == native.dumps(model)


def test_inputs_and_networks_in_files(tmp_path: Path) -> None:
    base = CategoricalHMM.from_parameters([0.3, 0.7], [[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.3, 0.7]])
    model = InputHMM.from_parameters(base, [np.eye(2), np.full((2, 2), 0.5)])
    gg.write(model, tmp_path / "a.json")
    assert gg.read(tmp_path / "a.json").score([0, 1, 1], [0, 1, 0]) == model.score([0, 1, 1], [0, 1, 0])
    rain = DynamicBayesianNetwork(
        "rain' -> rain{no|yes} -> umbrella{no|yes}",
        cpds={"rain": [[0.7, 0.3], [0.3, 0.7]], "umbrella": [[0.8, 0.2], [0.1, 0.9]]},
    )
    gg.write(rain, tmp_path / "rain.json")
    assert gg.read(tmp_path / "rain.json") == rain


def test_a_stream_goes_on_with_a_model_from_a_file(tmp_path: Path) -> None:
    """Model and state of the filter through files: the belief is the same, bit by bit."""
    model = models()["full"][0]
    stream = model.filter()
    for x in ROWS[:30]:
        stream.update(x)
    gg.write(model, tmp_path / "model.json")
    (tmp_path / "state.json").write_text(json.dumps(stream.state))
    again = gg.read(tmp_path / "model.json").filter(state=json.loads((tmp_path / "state.json").read_text()))
    for x in ROWS[30:]:
        np.testing.assert_array_equal(again.update(x), stream.update(x))
    assert again.log_likelihood == stream.log_likelihood
    batches = PoissonHMM(2, random_state=0).partial_fit(COUNTS)
    copy = native.loads(native.dumps(batches))
    np.testing.assert_array_equal(copy.partial_fit(COUNTS).rates_, batches.partial_fit(COUNTS).rates_)


@pytest.mark.parametrize(
    "path, value, text",
    [
        (["class"], "BaseEstimator", "is not known"),
        (["class"], "os.system", "is not known"),
        (["parameters", "evil"], 1, "not a parameter"),
        (["attributes", "fit"], 1, "not a parameter or attribute"),
        (["attributes", "__class__"], 1, "not a parameter or attribute"),
        (["attributes", "transmat_", "array"], [[0.5, 0.6], [0.5, 0.5]], "sums to 1.1"),
        (["attributes", "transmat_", "array"], [["a"]], "something else than numbers"),
        (["attributes", "transmat_", "dtype"], "object", "dtype must be one of"),
        (["attributes", "transmat_", "shape"], [7], "GaussianHMM"),
        (["attributes", "means_"], [1.0], "without its type"),
        (["attributes", "means_"], {"odd": 1}, "in the place of a value"),
        (["parameters", "n_states"], 5, "n_states is 5"),
        (["attributes"], 5, "must be an object"),
    ],
)
def test_broken_files(path: list[str], value: Any, text: str) -> None:
    top = json.loads(native.dumps(models()["full"][0]))
    at = top
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(ParseError, match=text):
        native.loads(json.dumps(top).encode())


def test_what_has_no_place_in_a_file() -> None:
    model = CategoricalHMM.from_parameters([1.0], [[1.0]], [[0.5, 0.5]], symbols=np.array(["a", 1], dtype=object))
    with pytest.raises(ModelError, match="holds objects"):
        native.dumps(model)
    generator = GaussianHMM(2, random_state=np.random.default_rng(0)).fit(ROWS)
    assert native.loads(native.dumps(generator)).random_state is None
