"""Tables as text and HTML, and how answers show themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph import _show
from gramgraph.answers import Answer, Assignment, Belief
from gramgraph.variables import discrete

A = discrete("A", ["x", "y"])
B = discrete("B", ["u", "v", "w"])


def single():
    joint = Belief((A, B), np.arange(6.0).reshape(2, 3) / 15)
    columns = {"A": (A, 0, 2), "B": (B, 2, 5)}
    values = np.array([0.25, 0.75, 1e-7, 0.5, 0.4999999])
    return Answer(columns, values, -1.25, engine="test", joints={("A", "B"): joint})


def batch(n=4):
    joint = Belief((A, B), np.tile(np.arange(6.0).reshape(2, 3) / 15, (n, 1, 1)), batched=True)
    values = np.tile([0.25, 0.75, 0.1, 0.2, 0.7], (n, 1))
    return Answer({"A": (A, 0, 2), "B": (B, 2, 5)}, values, np.full(n, -1.0), engine="test", joints={("A", "B"): joint})


@given(st.floats(0, 1), st.integers(1, 40))
def test_bar_has_its_width_and_grows(p, width):
    bar = _show.bar(p, width)
    assert len(bar) == width
    full = bar.count("█")
    assert full <= p * width + 0.5
    assert full >= p * width - 1
    assert (bar.strip() == "") == (p == 0)


def test_bar_of_nan_is_empty():
    assert _show.bar(math.nan, 5) == " " * 5


@given(st.floats(0, 1))
def test_probability_text_never_shows_a_positive_number_as_zero(p):
    text = _show.probability_text(p)
    assert (float(text) == 0) == (p == 0)
    assert float(text) == pytest.approx(p, rel=0.1, abs=1e-4)


@given(st.text())
def test_clean_text_is_printable(text):
    assert _show.clean(text).isprintable()


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_html_table_holds_no_foreign_tag(rows):
    text = _show.html_table(("a", "b"), rows)
    for tag in ("table", "thead", "tbody", "tr", "th", "td"):
        text = text.replace(f"<{tag}>", "").replace(f"</{tag}>", "")
    assert "<" not in text
    assert ">" not in text


def test_text_table_aligns_wide_letters():
    lines = _show.text_table(("n", "v"), [["日本", "1"], ["ab", "22"]], right=[1]).splitlines()
    assert [_show.text_width(line) for line in lines] == [8, 8, 8]


def test_answer_as_text():
    text = str(single())
    assert text.splitlines()[0] == "log p(evidence) = -1.25 (test, exact)"
    assert "1.0e-07" in text
    assert "x, w" in text
    assert repr(single()["A"]).splitlines() == ["A  x  ███           0.2500", "   y  █████████     0.7500"]


def test_long_answers_are_cut():
    many = {f"V{i}": (discrete(f"V{i}", 2), 2 * i, 2 * i + 2) for i in range(100)}
    text = str(Answer(many, np.full(200, 0.5), 0.0, engine="test"))
    assert text.endswith("… and 76 more variables")
    assert len(text.splitlines()) == 1 + 2 * 24 + 1


def test_many_states_are_folded_without_losing_mass():
    v = discrete("V", 100)
    text = str(Belief((v,), np.full(100, 0.01)))
    assert len(text.splitlines()) == 12
    assert "… 89 more" in text
    assert "0.8900" in text


def test_answer_as_html_is_escaped():
    v = discrete("<i>", ["<b>", "&"])
    text = Answer({"<i>": (v, 0, 2)}, np.array([0.5, 0.5]), 0.0, engine="test")._repr_html_()
    assert "<i>" not in text
    assert "<b>" not in text
    assert "&lt;b&gt;" in text
    assert "&amp;" in text


def test_single_frame_is_long():
    frame = single().to_frame()
    assert list(frame.columns) == ["variable", "state", "probability"]
    assert frame["variable"].tolist() == ["A"] * 2 + ["B"] * 3 + ["A, B"] * 6
    assert frame["probability"].tolist()[:2] == [0.25, 0.75]
    assert frame["state"].tolist()[-1] == "y, w"


def test_batch_frame_has_a_row_a_case():
    frame = batch().to_frame()
    assert frame.shape == (4, 11)
    assert frame["A"]["y"].tolist() == [0.75] * 4
    assert frame["A, B"]["y, w"].tolist() == pytest.approx([1 / 3] * 4)
    assert "4 cases, 3 beliefs each" in repr(batch())
    assert "<table" in batch()._repr_html_()


def test_belief_frames():
    joint = single()[("A", "B")].to_frame()
    assert list(joint.columns) == ["A", "B", "probability"]
    assert joint.loc[(joint["A"] == "y") & (joint["B"] == "w"), "probability"].item() == pytest.approx(1 / 3)
    assert batch()["A"].to_frame()["y"].tolist() == [0.75] * 4
    assert batch()[("A", "B")].to_frame()["y"]["w"].tolist() == pytest.approx([1 / 3] * 4)


def test_equality_is_by_value():
    assert single() == single()
    assert single()["A"] == single()["A"]
    assert single()["A"] != single()["B"]
    assert batch() != single()
    assert Belief((A,), np.array([np.nan, np.nan])) == Belief((A,), np.array([np.nan, np.nan]))
    assert Assignment({"A": "x"}, -1.0) == Assignment({"A": "x"}, -1.0)
    assert Assignment({"A": "x"}, -1.0) != Assignment({"A": "y"}, -1.0)


def test_assignment_shows_itself():
    best = Assignment({"A": "x", "B": "<w>"}, -1.5)
    assert repr(best) == "Assignment(A=x, B=<w>; log p = -1.5)"
    assert str(best).splitlines() == ["log p = -1.5", "A  x", "B  <w>"]
    assert best.to_frame().to_dict("list") == {"variable": ["A", "B"], "state": ["x", "<w>"]}
    assert "&lt;w&gt;" in best._repr_html_()
    assert "bound -1" in str(Assignment({}, -1.5, exact=False, bound=-1.0))
