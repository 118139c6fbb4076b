"""The site is whole: a page for every public name, a table of systems that holds, figures from result files."""

from __future__ import annotations

import ast
import itertools
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from sitetools import benchmark_pages, check_site, gallery_pages, reference, systems

import gramgraph as gg
from tests.surface.test_public_names import surface

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = systems.systems()
SCRIPTS = systems.gallery_scripts()

# ------------------------------------------------------------------------------------------------ reference


def test_every_public_name_has_a_page():
    pages = reference.pages()
    missing = [name for name in surface() if f"names/{reference.page_of(name)}.rst" not in pages]
    assert missing == []


def test_every_page_of_the_reference_stands_in_the_tree():
    pages = reference.pages()
    listed = re.findall(r"^   (?:\S+ <)?([\w./]+)>?$", "\n".join(pages.values()), flags=re.MULTILINE)
    assert [name for name in pages if name != "index.rst" and name.removesuffix(".rst") not in listed] == []


def test_pages_describe_members_of_private_bases_and_link_those_of_public_ones():
    page = reference.pages()["names/gramgraph.models.BayesianNetwork.rst"]
    assert ".. automethod:: fit" in page and ".. automethod:: query" in page
    assert ":meth:`~gramgraph.models.GraphicalModel.states`" in page
    assert ".. automethod:: predict" in reference.pages()["names/gramgraph.estimators.KernelRidge.rst"]


def test_text_of_docstrings_holds_no_marks():
    assert reference.plain("a_ * b | `c_*` x") == "a\\_ \\* b \\| ``c_*`` x"


def test_texts_of_parameters_stand_below_their_names():
    pytest.importorskip("sphinx")
    from sitetools.sphinx_parts import described

    lines = [
        "One : not here",
        "",
        "Parameters",
        "----------",
        "a, b : numbers,",
        "      or none",
        "c : one of",
        "  * x",
    ]
    lines += ["d : last", "", "Returns", "-------", "e : stays"]
    assert described(lines)[4:] == [
        *("a, b", "      numbers,", "      or none", "c", "  one of", "", "  * x", "d", "    last"),
        *("", "Returns", "-------", "e : stays"),
    ]


def test_writing_twice_changes_nothing(tmp_path):
    reference.write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.rst")}
    (tmp_path / "names" / "gramgraph.gone.rst").write_text("old")
    reference.write(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.rst")} == before


# -------------------------------------------------------------------------------------------------- systems


def test_the_table_has_the_52_systems():
    counts = {"A": 5, "B": 9, "C": 8, "D": 6, "E": 5, "F": 10, "G": 6, "H": 3}
    assert [row.id for row in SYSTEMS] == [f"{letter}{i + 1}" for letter, n in counts.items() for i in range(n)]


@pytest.mark.parametrize("row", SYSTEMS, ids=lambda row: row.id)
def test_pages_names_and_tests_of_a_row_exist(row):
    assert row.gallery and row.reference and row.tests
    assert [path for path in row.tests if not (ROOT / path).is_file()] == []
    pages = reference.pages()
    assert [name for name in row.reference if f"names/{reference.page_of(name)}.rst" not in pages] == []
    if not SCRIPTS:
        pytest.skip("no gallery in this tree")
    assert [number for number in row.gallery if number not in SCRIPTS] == []


def asserted(path: Path) -> set[float]:
    """Numbers in assertions of a file, and in its tables of cases; small sums such as 5 / 8 count with their value."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    holders = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
        or (isinstance(node, ast.Call) and any(word in ast.unparse(node.func) for word in ("parametrize", "assert_")))
    ]
    values = (value_of(part) for holder in holders for part in ast.walk(holder))
    return {value for value in values if value is not None}


def value_of(node: ast.AST) -> float | None:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        left, right = value_of(node.left), value_of(node.right)
        return None if left is None or not right else left / right
    return None


@pytest.mark.parametrize("row", [row for row in SYSTEMS if row.numbers], ids=lambda row: row.id)
def test_worked_numbers_of_a_row_are_asserted(row):
    files = [ROOT / test for test in row.tests] + [SCRIPTS[number] for number in row.gallery if number in SCRIPTS]
    found = set().union(*(asserted(file) for file in files))
    for text in row.numbers:
        number = float(Fraction(text))
        there = any(math.isclose(number, value, rel_tol=1e-12) for value in found)
        if not there and not SCRIPTS:
            pytest.skip("no gallery in this tree")
        assert there, f"{text} is asserted nowhere"


def test_numbers_outside_of_assertions_do_not_count(tmp_path):
    file = tmp_path / "test_x.py"
    file.write_text("x = 0.25\nassert x == 5 / 8\nassert -0.3 < x\n")
    assert asserted(file) == {5.0, 8.0, 5 / 8, 0.3, -0.3}


def test_the_page_of_systems_names_them_all():
    text = systems.page()
    assert all(f"| {row.id} | " in text for row in SYSTEMS)


# ------------------------------------------------------------------------------------- figures, built pages


def test_figures_come_from_result_files():
    results = benchmark_pages.results()
    text = benchmark_pages.page()
    for result in results:
        assert {"machine", "versions", "method", "cells", "report"} <= set(result)
        assert result["machine"]["processor"] in text and f"`python -m benchmarks {result['module']}`" in text


def test_many_result_files_make_one_page(tmp_path):
    """With contents, unique targets, and headings that do not skip a level."""
    one = benchmark_pages.results()[0]
    reports = ["text alone", "### deep first\n\n# then high\n\n### deep", "## a\n\n#### b\n\n## a"]
    found = [one | {"module": f"part_{i}", "report": report, "cells": []} for i, report in enumerate(reports)]
    text = benchmark_pages.page(found)
    for i in range(3):
        assert text.count(f"(measured-part_{i})=") == 1 and f"[Part {i}](#measured-part_{i})" in text
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, flags=re.MULTILINE)]
    assert levels[0] == 1 and all(b - a <= 1 for a, b in itertools.pairwise(levels)) and max(levels) == 4
    (tmp_path / "old.json").write_text(json.dumps(one | {"format": 0}))
    with pytest.raises(ValueError, match=r"old\.json has format 0"):
        benchmark_pages.results(tmp_path)


def test_the_scan_of_built_pages_finds_loads_and_broken_links(tmp_path):
    good = '<link rel="canonical" href="https://x.org/"><a href="https://x.org">x</a><a href="b.html#here">b</a>'
    (tmp_path / "a.html").write_text(good)
    (tmp_path / "b.html").write_text('<p id="here">')
    assert check_site.check(tmp_path) == []
    (tmp_path / "b.html").write_text('<p id="there"><script src="//cdn.org/x.js"></script><a href="c.html">c</a>')
    (tmp_path / "s.css").write_text('@import url("https://fonts.org/a.css");')
    faults = check_site.check(tmp_path)
    assert len(faults) == 4
    assert any("cdn.org" in f for f in faults) and any("fonts.org" in f for f in faults)


def test_every_page_of_the_gallery_stands_under_its_texts():
    text = gallery_pages.by_text()
    assert [script.stem for script in SCRIPTS.values() if f"/{script.stem}`" not in text] == []
    parts = dict(re.findall(r"^(\w+).*\n-{3,}\n\n((?:\* .*\n)+)", text, flags=re.MULTILINE))
    assert list(parts) == [*systems.LETTERS.values(), "Beyond"]
    assert "plot_01_envelopes" in parts["Zhu"] and "plot_01_envelopes" not in parts["Triebel"]


def test_all_figures_stand_on_one_sheet(tmp_path):
    images = tmp_path / "graphs" / "images"
    images.mkdir(parents=True)
    for name in ("sphx_glr_plot_11_burglary_001.png", "sphx_glr_plot_11_burglary_002.png", "thumb.png"):
        (images / name).touch()
    sheet = gallery_pages.figure_sheet(tmp_path)
    assert sheet.count("<img") == 2 and sheet.count('href="graphs/plot_11_burglary.html"') == 2


def test_small_networks_of_the_gallery_open_in_the_explorer(tmp_path):
    script = {"src_file": "plot_11_burglary.py", "example_globals": {}}

    def link():
        return gallery_pages.network_link(None, script, {"src_dir": str(tmp_path)})

    assert link() == ""
    script["example_globals"]["net"] = gg.BayesianNetwork("a -> b")  # no tables so far
    assert link() == ""
    script["example_globals"]["net"] = gg.BayesianNetwork("x{real}", cpds={"x": {"sd": 1}})
    assert link() == ""
    script["example_globals"]["net"] = gg.datasets.burglary()
    assert "../explorer/plot_11_burglary.html" in link() and link() == ""  # once a page
    gallery_pages.copy_networks(tmp_path, tmp_path / "site")
    assert (tmp_path / "site" / "auto_gallery" / "explorer" / "plot_11_burglary.html").stat().st_size > 50_000


# ---------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("word", "ours"), [("get_cpds", "net.cpt"), ("nodes", "net.variables"), ("predict", "map_query"), ("arcs", "edges")]
)
def test_words_of_other_networks_are_answered_with_ours(word, ours):
    with pytest.raises(AttributeError, match=f"no attribute '{word}'. Here it is .*{ours}"):
        getattr(gg.datasets.asia(), word)


def test_words_that_are_answered_do_not_exist():
    from gramgraph import _other_words
    from gramgraph.sequences.hmm import HiddenMarkovModel

    net = gg.datasets.asia()
    assert [word for word in _other_words.WORDS["GraphicalModel"] if word in dir(net)] == []
    assert [word for word in _other_words.WORDS["HiddenMarkovModel"] if word in dir(HiddenMarkovModel)] == []
    assert [word for word in _other_words.NAMES if word in dir(gg)] == []
    for name in ("TabularCPD", "HillClimbSearch", "CRF"):
        with pytest.raises(AttributeError, match="Here it is"):
            getattr(gg, name)


def test_options_of_other_libraries_are_answered_with_ours():
    with pytest.raises(TypeError, match="'n_components': it is n_states"):
        gg.GaussianHMM(n_components=3)
    with pytest.raises(TypeError, match="pre_image"):
        gg.KernelPCA(2, fit_inverse_transform=True)


def test_a_default_that_differs_is_told_once(monkeypatch):
    import warnings

    import sklearn.kernel_ridge  # noqa: F401

    from gramgraph import _other_words

    monkeypatch.setattr(_other_words, "_TOLD", set())
    with pytest.warns(gg.ModelWarning, match='"rbf" by default, in scikit-learn "linear"') as caught:
        gg.KernelRidge()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gg.KernelRidge()
        monkeypatch.setattr(_other_words, "_TOLD", set())
        gg.KernelRidge(kernel="rbf")


def test_a_property_that_fails_keeps_its_error():
    from gramgraph._other_words import OtherWords

    class Thing(OtherWords):
        @property
        def broken(self):
            raise AttributeError("the reason")

    with pytest.raises(AttributeError, match="the reason"):
        Thing().broken  # noqa: B018


def test_the_citation_names_the_version_of_the_changelog():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version = citation.split("\nversion: ")[1].split("\n")[0]
    heads = [
        line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line.startswith("## ")
    ]
    assert version in heads[0]


def test_another_name_of_a_class_leads_to_it():
    entry = next(each for each in reference.entries() if each.name == "NodeBelief")
    text = reference.page(entry)
    assert "Another name of :class:`~gramgraph.answers.DensityBelief`" in text and ":: cdf" not in text
    assert ":: cdf" in reference.page(next(each for each in reference.entries() if each.name == "DensityBelief"))
