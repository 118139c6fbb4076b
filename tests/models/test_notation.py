from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramgraph.exceptions import GramGraphError, ModelError, ParseError
from gramgraph.models.notation import read_structure


def edges_of(text: str) -> list[tuple[str, str]]:
    s = read_structure(text)
    return [(p, c) for c, row in s.parents.items() for p in row]


def test_chains_and_both_directions() -> None:
    s = read_structure("A->B<-C; C->D{low|mid|high}")
    assert list(s.names) == ["A", "B", "C", "D"]
    assert {c: list(row) for c, row in s.parents.items()} == {"A": [], "B": ["A", "C"], "C": [], "D": ["C"]}
    assert s.states == {"D": ("low", "mid", "high")}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A -> B -> C", [("A", "B"), ("B", "C")]),
        ("A <- B <- C", [("B", "A"), ("C", "B")]),
        ("A → B ← C", [("A", "B"), ("C", "B")]),
        ("A\nB\n\n;;C -> A", [("C", "A")]),
        ("A -> B; A -> B", [("A", "B")]),
        ('"lung cancer" -> "x-ray"', [("lung cancer", "x-ray")]),
        ("A[3] -> B{x | y}", [("A", "B")]),
        ("", []),
    ],
)
def test_edges(text: str, expected: list[tuple[str, str]]) -> None:
    assert edges_of(text) == expected


def test_states_by_number_and_by_label() -> None:
    s = read_structure("A[3] -> B{ x | y }; A -> C; A[3]")
    assert s.states == {"A": ("0", "1", "2"), "B": ("x", "y")}


@pytest.mark.parametrize(
    "text, column, words",
    [
        ("A -> -> B", 6, "missing before"),
        ("A -> B ->", 10, "missing after"),
        ("-> A", 1, "missing before"),
        ("A -> B C", 8, "expected"),
        ("A - B", 3, "direction"),
        ("A, B -> C", 2, "parted by ';'"),
        ("A{x|y -> B", 2, "not closed"),
        ("A[0]", 2, "number of states"),
        ("A[99999999999999999999]", 2, "number of states"),
        ("A{x||y}", 2, "empty label"),
        ("A{x|y}; A{x|z}", 10, "already has the states"),
        ("{x|y}", 1, "follow the name"),
        ('"" -> A', 1, "empty"),
        ('"A -> B', 1, "not closed"),
        ("A -> <B>", 6, "not expected"),
    ],
)
def test_errors_show_the_place(text: str, column: int, words: str) -> None:
    with pytest.raises(ParseError, match=words) as caught:
        read_structure(text)
    assert (caught.value.line, caught.value.column) == (1, column)
    *_, line, caret = str(caught.value).split("\n")
    assert line.strip() == text.strip()
    assert caret.index("^") - line.index(text[0]) == column - 1


def test_the_line_of_a_fault_is_counted() -> None:
    with pytest.raises(ParseError) as caught:
        read_structure("A -> B\nC -> \nD")
    assert caught.value.line == 2


def test_long_lines_are_shown_around_the_place() -> None:
    with pytest.raises(ParseError) as caught:
        read_structure("; ".join(f"A{i} -> B{i}" for i in range(100)) + "; C ->")
    assert max(map(len, str(caught.value).split("\n"))) < 120


def test_dicts_and_pairs() -> None:
    s = read_structure({"W": ["S", "R"], "S": [], "X": "W"})
    assert list(s.names) == ["W", "S", "R", "X"]
    assert list(s.parents["W"]) == ["S", "R"]
    assert list(s.parents["X"]) == ["W"]
    assert list(read_structure(None, [("A", "B")]).names) == ["A", "B"]
    with pytest.raises(ModelError, match="pair"):
        read_structure(None, ["AB"])
    with pytest.raises(ModelError, match="a structure is"):
        read_structure(42)
    with pytest.raises(ModelError, match="list of names"):
        read_structure({"W": 3})


def test_edges_without_direction() -> None:
    s = read_structure("A - B -- C; B - A", directed=False)
    assert list(s.links) == [("A", "B"), ("B", "C")]
    with pytest.raises(ParseError, match="written '-'"):
        read_structure("A -> B", directed=False)


@given(st.text(alphabet="AB ->{}[]|;\n\"'<-→1,x", max_size=40))
def test_any_text_gives_a_structure_or_our_error(text: str) -> None:
    try:
        s = read_structure(text)
    except GramGraphError:
        return
    assert all(parent in s.names for row in s.parents.values() for parent in row)
    assert list(s.names) == list(s.parents)
