"""The straight roads of `query` and `map_query` give what the general road gives; equal cases share one answer."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gramgraph as gg
from gramgraph._numerics.counts.rows import distinct_rows
from gramgraph.compile.lower import lower
from gramgraph.conditionals import Table
from gramgraph.engines.exact import junction_tree
from gramgraph.engines.exact.enumeration import JOINT_CELLS
from gramgraph.testing.random_models import random_bayesian_network
from gramgraph.variables import discrete
from tests.portions import examples


def _case(net: gg.BayesianNetwork, rng: np.random.Generator) -> dict[str, str]:
    draw = net.sample(1, random_state=rng).iloc[0]
    return {v: draw[v] for v in net.variables if rng.random() < 0.4}


@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 7))
def test_small_joints_and_the_tree_agree(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, n, zeros=0.2, single=0.1, noisy=0.2)
    case = _case(net, rng)
    quick, tree = net.query(None, case), net.query(None, case, engine="junction_tree")
    small = math.prod(lower(net).sizes.tolist()) <= JOINT_CELLS
    assert quick.engine == ("enumeration" if small else "junction_tree")
    assert list(quick) == list(tree)
    assert quick.log_evidence == pytest.approx(tree.log_evidence, abs=1e-12)
    for v in tree:
        np.testing.assert_allclose(quick[v].probabilities, tree[v].probabilities, atol=1e-13)
    assert quick[next(iter(case))].probabilities.max() == 1.0 if case else True


@pytest.mark.parametrize("seed", range(12))
def test_a_tree_without_the_observed_variables_is_used_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one tree for all sets of observed variables is too large: asked again and again, with other states."""
    monkeypatch.setattr(junction_tree, "GENERAL_CELLS", 0)
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, 9, zeros=0.1, single=0.1, noisy=0.2)
    targets = None if seed % 2 else list(rng.choice(net.variables, 3, replace=False))
    seen = rng.choice(net.variables, 3, replace=False)
    for draw in net.sample(4, random_state=rng).to_dict("records"):
        case = {str(v): draw[v] for v in seen}
        quick, plain = net.query(targets, case), net.query(targets, case, engine="elimination")
        assert list(quick) == list(plain)
        assert quick.log_evidence == pytest.approx(plain.log_evidence, abs=1e-12)
        for v in plain:
            np.testing.assert_allclose(quick[v].probabilities, plain[v].probabilities, atol=1e-13)
        best = net.map_query(evidence=case)
        assert best.log_prob == pytest.approx(net.log_evidence({**case, **best.assignment}), abs=1e-12)
        assert best.log_prob == pytest.approx(net.map_query(evidence=case, engine="factor_tree").log_prob, abs=1e-12)
        pair = tuple(net.variables[:2])
        for asked in ([pair, net.variables[2]], [pair[:1]], pair):
            quick, plain = net.query(asked, case), net.query(asked, case, engine="elimination")
            assert list(quick) == list(plain)
            for key in plain:
                np.testing.assert_allclose(quick[key].probabilities, plain[key].probabilities, atol=1e-13)


def test_named_targets_leave_the_others_out() -> None:
    net = gg.datasets.asia()
    answer = net.query(["lung", "smoke"], {"xray": "yes", "smoke": "no"})
    assert list(answer) == ["lung", "smoke"]
    assert answer["lung"].probabilities == pytest.approx(
        net.query("lung", {"xray": "yes", "smoke": "no"}, engine="junction_tree")["lung"].probabilities, abs=1e-15
    )


def test_sums_too_small_to_trust_go_to_the_tree() -> None:
    chain = [discrete(f"x{i}", ("a", "b")) for i in range(6)]
    row = [1 - 1e-60, 1e-60]
    tables = [Table(chain[0], (), row), *(Table(chain[i], (chain[i - 1],), [row, row]) for i in range(1, 6))]
    net = gg.BayesianNetwork.from_parts(chain, tables)
    case = {f"x{i}": "b" for i in range(1, 6)}
    answer = net.query("x0", case)
    assert answer.engine == "junction_tree"
    assert answer.log_evidence == pytest.approx(5 * math.log(1e-60))
    assert answer["x0"].probabilities[1] == pytest.approx(1e-60)


def test_impossible_evidence_is_named_by_the_general_road() -> None:
    net = gg.datasets.asia()
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.query("lung", {"tub": "yes", "either": "no"})


@given(st.lists(st.lists(st.integers(-1, 2), min_size=3, max_size=3), max_size=60))
def test_distinct_rows_match_a_dictionary(rows: list[list[int]]) -> None:
    codes = np.array(rows, np.int64).reshape(-1, 3)
    first, kind = distinct_rows(codes, len(codes))
    seen: dict[tuple[int, ...], int] = {}
    expected = [seen.setdefault(tuple(row), len(seen)) for row in rows]
    assert kind.tolist() == expected
    assert [tuple(codes[i]) for i in first] == list(seen)
    if seen:
        assert len(distinct_rows(codes, len(seen))[0]) == len(seen)
        assert not len(distinct_rows(codes, len(seen) - 1)[0])  # more than are wanted


def test_equal_cases_get_the_answers_of_single_cases() -> None:
    net = random_bayesian_network(np.random.default_rng(3), 12)
    names = list(net.variables[:3])
    cases = net.sample(200, random_state=1)[names]
    assert len(cases.drop_duplicates()) < 100, "the cases should repeat each other"
    many = net.query(None, cases)
    best = net.map_query(cases)
    told: list[int] = []
    for i in (0, 57, 199):
        one = net.query(None, dict(cases.iloc[i]))
        assert many.log_evidence[i] == pytest.approx(one.log_evidence, abs=1e-12)
        for v in one:
            np.testing.assert_allclose(many[v].probabilities[i], one[v].probabilities, atol=1e-13)
        assert best["log_prob"][i] == pytest.approx(net.map_query(dict(cases.iloc[i])).log_prob, abs=1e-12)
    net.query(None, pd.concat([cases] * 3, ignore_index=True), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (600, 600)


def test_likelihoods_of_equal_cases_stay_their_own() -> None:
    net = gg.datasets.asia()
    cases = pd.DataFrame({"smoke": ["yes"] * 40})
    answer = net.query("lung", cases, virtual_evidence={"xray": [1.0, 3.0]})
    one = net.query("lung", {"smoke": "yes", "xray": gg.Likelihood([1.0, 3.0])})
    np.testing.assert_allclose(answer["lung"].probabilities, np.tile(one["lung"].probabilities, (40, 1)), atol=1e-13)


# ------------------------------------------------------------------------------------- questions that are prepared


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 8))
def test_prepared_best_assignments_are_those_of_the_general_road(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, n, zeros=0.2, single=0.1, noisy=0.2)
    for _ in range(3):
        case = _case(net, rng)
        quick, tree = net.map_query(case), net.map_query(case, engine="junction_tree")
        assert quick.assignment == tree.assignment
        assert (quick.log_prob, quick.bound, quick.exact) == (tree.log_prob, tree.bound, True)
        assert quick.log_prob == pytest.approx(net.map_query(case, engine="enumeration").log_prob, abs=1e-12)


@settings(max_examples=examples(25), deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 8), rows=st.sampled_from([2, 7, 8, 40]))
def test_prepared_tables_are_those_of_the_general_road(seed: int, n: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    net = random_bayesian_network(rng, n, zeros=0.2, single=0.1, noisy=0.2)
    names = [v for v in net.variables if rng.random() < 0.5] or [net.variables[0]]
    for cases in (net.sample(rows, random_state=seed + i)[names[::-1]].astype(str) for i in range(4)):
        cases.index = pd.Index([f"case {i}" for i in range(rows)], name="number")
        quick, tree = net.query(None, cases), net.query(None, cases, engine="junction_tree")
        assert list(quick) == list(tree)
        np.testing.assert_allclose(quick.log_evidence, tree.log_evidence, atol=1e-12)
        pd.testing.assert_frame_equal(quick.to_frame(), tree.to_frame(), atol=1e-13)
        pd.testing.assert_frame_equal(net.map_query(cases), net.map_query(cases, engine="junction_tree"))


def _warm(net: gg.BayesianNetwork, cases: pd.DataFrame) -> None:
    for _ in range(3):
        net.query(None, cases)
        net.map_query(cases)
        net.map_query(dict(cases.iloc[0]))


def test_prepared_questions_leave_what_is_unusual_to_the_general_road() -> None:
    net, cases = gg.datasets.asia(), pd.DataFrame({"tub": ["yes", "no"], "either": ["yes", "no"]})
    _warm(net, cases)
    impossible = pd.DataFrame({"tub": ["yes", "no"], "either": ["no", "no"]})
    assert np.isneginf(net.query("lung", impossible).log_evidence).tolist() == [True, False]
    assert net.map_query(impossible)["lung"].isna().tolist() == [True, False]
    with pytest.raises(gg.ImpossibleEvidenceError):
        net.map_query({"tub": "yes", "either": "no"})
    gaps = pd.DataFrame({"tub": ["yes", None], "either": ["yes", "no"]})
    assert net.query("tub", gaps)["tub"].probabilities[1, 1] < 0.5
    assert net.map_query({"tub": None}).assignment["tub"] == "no"
    with pytest.raises(gg.StateError, match="yess"):
        net.query(None, pd.DataFrame({"tub": ["yes", "yess"], "either": ["yes", "no"]}))
    with pytest.raises(gg.StateError, match="yess"):
        net.map_query({"tub": "yess"})
    with pytest.raises(gg.VariableError, match="tuber"):
        net.map_query({"tuber": "yes"})
    with pytest.raises(gg.VariableError, match="lungs"):
        net.query(["lungs"], cases)


@pytest.mark.parametrize("wrong", [{"n_jobs": 0}, {"gap": True}, {"gap": -1.0}, {"time_limit": 0}, {"k": 0}])
def test_prepared_questions_refuse_what_the_general_road_refuses(wrong: dict[str, float]) -> None:
    net, cases = gg.datasets.asia(), pd.DataFrame({"tub": ["yes", "no"]})
    _warm(net, cases)
    for evidence in (cases, {"tub": "yes"}):
        with pytest.raises(gg.OptionError):
            net.map_query(evidence, **wrong)


def test_frames_of_prepared_questions_are_the_users_own() -> None:
    net, cases = gg.datasets.asia(), pd.DataFrame({"tub": ["yes", "no"]})
    _warm(net, cases)
    first = net.map_query(cases)
    first.columns.name, first.index.name = "mine", "mine"
    first.loc[0, "lung"], first.loc[0, "log_prob"] = "yes", 1.0
    second = net.map_query(cases)
    assert (second.columns.name, second.index.name, cases.index.name) == (None, None, None)
    assert second.loc[0, "lung"] == "no"
    assert second.loc[0, "log_prob"] < 0.0
    assert net.map_query(cases.rename(columns={"tub": "lung"}))["lung"].tolist() == ["yes", "no"]


def _calls(question: Callable[[], object]) -> int:
    """Python calls inside the package, loops of numbers left out."""
    found: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        place = frame.f_code.co_filename
        if event == "call" and f"{os.sep}gramgraph{os.sep}" in place and "_numerics" not in place:
            found.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        question()
    finally:
        sys.setprofile(None)
    return len(found)


def test_warm_questions_about_one_case_take_few_calls(shared_data: Path) -> None:
    asia, alarm = gg.datasets.asia(), gg.read(shared_data / "bn" / "alarm.bif.gz")
    for net, case, most in ((asia, {"smoke": "yes"}, 6), (alarm, {"HR": "LOW"}, 8)):
        for _ in range(3):
            net.query(None, case)
            net.map_query(case)
        assert _calls(lambda net=net, case=case: net.query(None, case)) <= most
        assert _calls(lambda net=net, case=case: net.map_query(case)) <= 10


@given(seed=st.integers(0, 10_000))
@settings(max_examples=examples(20), deadline=None)
def test_the_rough_reach_is_never_below_the_exact_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = lower(random_bayesian_network(rng, int(rng.integers(1, 8)), zeros=0.3, noisy=0.3))
    assert low.rough_reach >= low.reach[0] - 1e-9
