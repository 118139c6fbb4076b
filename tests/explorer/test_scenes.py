"""Every scene, light and dark, wide and narrow: nothing stands over anything, and all of it can be read."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

import gramgraph as gg
from gramgraph import explorer
from gramgraph.explorer.files import page_file

XRAY = {"name": "xray", "type": "see", "value": "yes"}
CASE = [
    XRAY,
    {"name": "asia", "type": "like", "value": None, "w": [0.25, 1]},
    {"name": "bronc", "type": "do", "value": "no"},
]
SCENES = {
    "asia": {"ev": CASE, "target": "lung", "state": "yes"},
    "ruled out": {"ev": [{"name": "smoke", "type": "not", "value": ["no"]}], "target": "lung"},
    "separation": {"ev": [XRAY], "mode": "separation", "source": "tub"},
    "compare": {"ev": [XRAY], "a": [{"name": "dysp", "type": "see", "value": "yes"}], "mode": "compare"},
    "tree": {"view": "tree"},
}

#: Faults of the drawing: texts outside their node or over each other, edges through boxes, scroll bars.
LOOK = Path(__file__).with_name("look.js").read_text()


@pytest.fixture(scope="module")
def asia():
    with explorer.serve(gg.datasets.asia(), title="asia") as server:
        yield server


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    n = 400
    phi = rng.vonmises(3.0, 2.0, n)
    frame = {
        "direction": phi,
        "income": 12_000.0 + 30_000.0 * rng.random(n) + 8000.0 * np.cos(phi),
        "a rather long name of a category": rng.choice(["an uncommonly long label", "b"], n),
    }
    tree = gg.learn_tree(frame, domains={"direction": "circle"})
    with explorer.serve(tree, title="numbers and angles") as server:
        yield server


@pytest.fixture(scope="module")
def served(asia, mixed):
    """Servers of all models that scenes are made of, by name."""
    drawn = gg.BayesianNetwork("cause{no|yes} -> a{low|mid|high}; cause -> b{no|yes} -> c{0|1|2|3}; cause -> e{no|yes}")
    casino = gg.CategoricalHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]])
    filtered = gg.KalmanFilter([[1.0, 1.0], [0.0, 1.0]], 0.01 * np.eye(2), [[1.0, 0.0]], [[0.5]], [0.0, 0.0], np.eye(2))
    process = gg.GaussianProcessRegressor(1.0 * gg.kernels.RBF(1.0) + gg.kernels.White(0.05), optimizer=None)
    process.fit(np.array([[-3.0], [-1.0], [0.5]]), [0.1, -0.8, 0.4])
    more = {"tree": drawn.random_tables(0), "casino": casino, "filter": filtered, "process": process}
    running = {name: explorer.serve(model, title=name) for name, model in more.items()}
    yield {"asia": asia, "mixed": mixed} | running
    for server in running.values():
        server.close()


SCENES_BY_MODEL = [
    *(("asia", name, scene) for name, scene in SCENES.items()),
    ("mixed", "mixed", {}),
    ("tree", "messages", {"ev": [{"name": "e", "type": "see", "value": "yes"}], "view": "messages"}),
    ("casino", "states", {}),
    ("filter", "bands", {}),
    ("process", "process", {}),
]


@pytest.mark.parametrize("model, name, scene", SCENES_BY_MODEL, ids=[name for _, name, _ in SCENES_BY_MODEL])
def test_nothing_stands_over_anything(served, tab, model, name, scene):
    page = tab(1440, 900).open(served[model].url, **scene)
    page.panels()
    if name == "messages":  # all cards are there after the last step
        page.app("app.setStep(100)")
        page.page.wait_for_selector(".message.now")
    for width in (1440, 900):
        page.page.set_viewport_size({"width": width, "height": 900})
        page.page.wait_for_function(
            "(w) => document.getElementById('app').classList.contains('narrow') === (w < 1100)", arg=width
        )
        for dark in (False, True):
            page.page.evaluate("(dark) => document.getElementById('app').explorer.setTheme(dark)", dark)
            page.painted()
            assert page.page.evaluate(LOOK) == [], (name, width, dark)


def test_alarm_is_readable_at_first_sight(tab, shared_data):
    net = gg.read(shared_data / "bn" / "alarm.bif.gz")
    with explorer.serve(net, title="alarm") as server:
        for width in (1440, 900):
            page = tab(width, 900).open(server.url, ev=[{"name": "HRBP", "type": "see", "value": "HIGH"}])
            assert page.app("app.graph.view.k") >= 0.8
            assert page.app("app.graph.level") == "compact"
            assert page.page.evaluate(LOOK) == []
        page.page.locator(".node.compact .hit").nth(5).click()
        page.page.wait_for_selector(".peek")
        page.page.locator(".peek .row").first.click()
        page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 2")


def axe_source():
    """The text of axe-core: GRAMGRAPH_AXE is the path of axe.min.js."""
    path = os.environ.get("GRAMGRAPH_AXE")
    if not path or not Path(path).is_file():
        pytest.skip("axe-core not found: npm install axe-core, and set GRAMGRAPH_AXE to its axe.min.js")
    return Path(path).read_text()


def test_an_accessibility_checker_finds_nothing_serious(served, tab):
    source = axe_source()
    page = tab(bypass_csp=True)
    for model, name, scene in SCENES_BY_MODEL:
        page.page.goto("about:blank")
        page.open(served[model].url, **scene)
        page.panels()
        page.page.evaluate(source)
        for dark in (False, True):
            page.page.evaluate("(dark) => document.getElementById('app').explorer.setTheme(dark)", dark)
            page.painted()
            found = page.page.evaluate(
                "async () => (await axe.run()).violations.map((v) => "
                "[v.impact, v.id, v.nodes.map((n) => n.html).slice(0, 3)])"
            )
            assert [v for v in found if v[0] in ("serious", "critical")] == [], (name, dark)


# ------------------------------------------------------------------------------------------------------- contrast


def luminance(color):
    parts = (
        [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        if len(color) == 7
        else [int(c * 2, 16) / 255 for c in color[1:]]
    )
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [".gg {", ".gg.dark {"])
def test_the_colors_are_told_apart(theme):
    style = page_file("style.css").decode()
    start = style.index(theme)
    tokens = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", style[start : style.index("}", start)]))
    for ink in ("ink", "ink2", "ink3"):
        for paper in ("canvas", "surface", "sunken"):
            assert contrast(tokens[ink], tokens[paper]) >= 4.5, (ink, paper)
    for ink, papers in {
        "seen-ink": ("surface", "seen-tint"),
        "set-ink": ("surface", "set-tint"),
        "clash-ink": ("surface", "clash-tint"),
        "open": ("surface", "open-tint"),
    }.items():
        for paper in papers:
            assert contrast(tokens[ink], tokens[paper]) >= 4.5, (ink, paper)
    for mark in ("belief", "seen", "set", "clash", "open", "edge", "focus"):
        assert contrast(tokens[mark], tokens["surface"]) >= 3.0, mark
