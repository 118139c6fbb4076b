"""Networks of published studies against answers that other software computed."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.io import native

STUDIES = ("algorithms1", "algorithms2", "cachexia1", "cachexia2", "expenditure", "foodsecurity", "liquefaction")
STUDIES += ("stocks", "turbine1", "turbine2")
GAUSSIAN = ["arth150", "magic-irri", "magic-niab", *(f"bnrep-{name}" for name in STUDIES)]
MIXED = ["bnrep-algorithms5", "bnrep-darktriad", "bnrep-healthinsurance"]


def _load(shared_data, folder, name):
    with gzip.open(shared_data / "bn_ref" / folder / f"{name}.json.gz", "rt") as file:
        reference = json.load(file)
    return gg.read(shared_data / f"bn_{folder}" / f"{name}.json"), reference


def _close(found, truth, what):
    assert found == pytest.approx(truth, rel=1e-8, abs=1e-8 * max(1.0, abs(truth))), what


@pytest.mark.parametrize("engine", ["auto", "sparse", "junction_tree"])
@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_networks(shared_data, name, engine):
    net, reference = _load(shared_data, "gaussian", name)
    if engine == "auto":
        assert native.loads(native.dumps(net)) == net
    cases = [(reference["prior"], {})] + [(case, case["evidence"]) for case in reference["evidence_sets"]]
    for case, evidence in cases:
        answer = net.query(None, evidence, engine=engine)
        assert answer.exact
        for variable, mean in case["mean"].items():
            _close(answer[variable].mean(), mean, f"mean of {variable} in {case.get('id')}")
            _close(answer[variable].var(), case["var"][variable], f"variance of {variable}")
        if "log_density" in case:
            _close(answer.log_evidence, case["log_density"], case["id"])
            _close(net.log_evidence(evidence), case["log_density"], case["id"])


@pytest.mark.parametrize("engine", ["auto", "strong_tree", "mixture"])
@pytest.mark.parametrize("name", MIXED)
def test_conditional_gaussian_networks(shared_data, name, engine):
    net, reference = _load(shared_data, "clg", name)
    if engine == "auto":
        assert native.loads(native.dumps(net)) == net
    cases = [(reference["prior"], {})] + [(case, case["evidence"]) for case in reference["evidence_sets"]]
    for case, evidence in cases:
        answer = net.query(None, evidence, engine=engine)
        assert answer.exact
        for variable, mean in case["mean"].items():
            _close(answer[variable].mean(), mean, f"mean of {variable} in {case.get('id')}")
            _close(answer[variable].var(), case["var"][variable], f"variance of {variable}")
        for variable, p in case["discrete"].items():
            np.testing.assert_allclose(answer[variable].probabilities, p, atol=1e-8)
        _close(answer.log_evidence, case["log_evidence"], case.get("id"))
