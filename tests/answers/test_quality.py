"""Every answer says how far it can be trusted, and why."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import gramgraph as gg
from gramgraph.answers import Assignment
from gramgraph.answers.quality import Quality, judge

ASIA = gg.datasets.asia()


def test_exact_answers_say_so() -> None:
    real = gg.BayesianNetwork("x{real} -> y{real}", cpds={"x": (0, 1), "y": {"coefficients": 2.0, "sd": 1.0}})
    for answer in (ASIA.query("lung"), ASIA.query("lung", [{"smoke": "yes"}]), real.query("x", {"y": 1.0})):
        assert answer.quality == "exact" and answer.exact
        assert answer.engine in answer.reason and answer.quality.reason == answer.reason


def test_messages_are_checked_when_they_settle() -> None:
    settled = ASIA.query("lung", {"xray": "yes"}, engine="bp")
    assert settled.quality == "checked" and "converged" in settled.reason and not settled.exact
    with pytest.warns(gg.ConvergenceWarning):
        early = ASIA.query("lung", {"xray": "yes"}, engine="bp", max_iter=1)
    assert early.quality == "unreliable" and "NOT converged" in early.reason
    with pytest.warns(gg.ConvergenceWarning):
        many = ASIA.query("lung", [{"xray": "yes"}, {"dysp": "no"}], engine="bp", max_iter=1)
    assert many.quality == "unreliable" and "of 2 cases" in many.reason


def test_samplers_are_judged_by_their_draws() -> None:
    enough = ASIA.query("lung", {"smoke": "yes"}, engine="importance", random_state=0)
    assert enough.quality == "checked" and "effective draws" in enough.reason
    few = ASIA.query("lung", {"smoke": "yes"}, engine="importance", budget=20, random_state=0)
    assert few.quality == "unreliable" and "only" in few.reason


@pytest.mark.parametrize(
    ("details", "log_p", "word", "text"),
    [
        ({"max_r_hat": 1.4, "min_effective_draws": 900.0}, -1.0, "unreliable", "R-hat up to 1.4"),
        ({"max_r_hat": np.array([1.0, 1.02])}, -1.0, "checked", "R-hat up to 1.02"),
        ({"effective_draws": np.array([800.0, 12.0])}, -1.0, "unreliable", "only 12 effective draws"),
        ({"converged": True, "log_evidence_interval": (-3.0, -1.0)}, -2.0, "checked", "within proved bounds"),
        ({"converged": True, "log_evidence_interval": (-3.0, -1.0)}, -3.0, "unreliable", "outside of proved bounds"),
        ({"converged": True, "log_evidence_interval": (-30.0, -1.0)}, -2.0, "unreliable", "at most 29 apart"),
        ({"stopped": "budget"}, -1.0, "unreliable", "stopped early"),
        ({"soft_evidence_gap": 1e-10}, -1.0, "checked", "soft evidence met"),
        ({}, -1.0, "unreliable", "tells nothing"),
    ],
)
def test_diagnostics_decide(details: dict[str, Any], log_p: float, word: str, text: str) -> None:
    found = judge("some_engine", False, details, log_p)
    assert found == word and text in found.reason and found.reason.startswith("some_engine")


def test_evidence_far_from_the_data_is_unreliable_however_exact() -> None:
    assert judge("cells", True, {"support": {"x": np.array([1.0, 0.0])}}, -1.0) == "unreliable"
    assert judge("cells", True, {"support": {"x": np.array([1.0, 0.9])}}, -1.0) == "exact"


def test_assignments_tell_what_was_proved() -> None:
    assert ASIA.map_query({"smoke": "yes"}).quality == "exact"
    bounded = Assignment({"a": "x"}, -2.0, exact=False, bound=-1.5)
    assert bounded.quality == "checked" and "0.5" in bounded.reason
    assert Assignment({"a": "x"}, -2.0, exact=False, bound=np.inf).quality == "unreliable"


def test_a_quality_is_a_word_that_keeps_its_reason() -> None:
    quality = Quality("checked", "because")
    assert pickle.loads(pickle.dumps(quality)).reason == "because" and repr(quality) == "checked: because"
    assert quality == "checked" and quality in ("exact", "checked") and f"{quality}" == "checked"
    with pytest.raises(AttributeError):
        quality.reason = "other"  # type: ignore[misc]
