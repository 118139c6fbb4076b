"""The explorer in a real browser: what is clicked equals the Python API, and nothing is lost."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import gramgraph as gg
from gramgraph import explorer
from gramgraph.explorer.workbench import Workbench


@pytest.fixture(scope="module")
def asia():
    with explorer.serve(gg.datasets.asia(), title="asia", source="gg.datasets.asia()") as server:
        yield server


def read_findings(findings):
    """Findings of the page as evidence and interventions."""
    evidence, do = {}, {}
    for f in findings:
        if f["type"] == "do":
            do[f["name"]] = f["value"]
        elif f["type"] == "like":
            evidence[f["name"]] = gg.Likelihood(f["w"])
        elif f["type"] == "not":
            evidence[f["name"]] = gg.Not(*np.atleast_1d(f["value"]).tolist())
        else:
            evidence[f["name"]] = f["value"]
    return evidence, do


def check_shown(net, findings, log, shown):
    """What the page shows after these findings is what the API answers."""
    evidence, do = read_findings(findings)
    model = net.do(do) if do else net
    answer = model.query(None, evidence)
    assert log == pytest.approx(answer.log_evidence, abs=1e-9)
    known = {f["name"]: f["value"] for f in findings if f["type"] in ("see", "do")}
    for name, rows in shown.items():
        for state, p in rows.items():
            wanted = answer[name].prob(state) if name not in known else float(known[name] == state)
            assert abs(p - wanted) <= 1e-9, (name, state, findings)


def check_against_api(net, page):
    check_shown(net, page.app("app.findings"), page.app("app.logEvidence"), page.beliefs())


#: Does what a list of actions says, one after the other, and tells after each what the page shows.
PLAY = """async (actions) => {
  const app = document.getElementById("app").explorer;
  const titled = (name) => (g) => g.querySelector("title").textContent === name;
  const node = (name) => [...document.querySelectorAll(".nodes .node")].find(titled(name));
  const row = (name, state) => [...node(name).querySelectorAll(".row")].find((r) => r.dataset.state === state);
  const out = [];
  for (const { way, name, state, w } of actions) {
    const before = JSON.stringify(app.findings);
    if (way === "like") app.put({ name, type: "like", value: null, w });
    else if (way === "back") app.takeBack(name);
    else if (way === "undo" || way === "redo") app[way]();
    else {
      const keys = { shiftKey: way === "Shift", altKey: way === "Alt" };
      row(name, state).dispatchEvent(new MouseEvent("click", { bubbles: true, ...keys }));
    }
    while (app.wanted) await new Promise((done) => setTimeout(done, 1));
    const shown = {};
    for (const g of document.querySelectorAll(".nodes .node.discrete")) {
      const rows = [...g.querySelectorAll(".row[data-state]")];
      const numbers = Object.fromEntries(rows.map((r) => [r.dataset.state, Number(r.dataset.p)]));
      shown[g.querySelector("title").textContent] = numbers;
    }
    out.push({ findings: app.findings, log: app.logEvidence, shown, changed: before !== JSON.stringify(app.findings) });
  }
  return out;
}"""


def random_actions(net, count, rng):
    """Clicks of all kinds, likelihoods, taking back, undo and redo."""
    for _ in range(count):
        name = str(rng.choice(net.variables))
        way = str(rng.choice(["click", "click", "Shift", "Alt", "like", "undo", "redo", "back"]))
        w = rng.uniform(0.05, 1.0, len(net.states(name))).round(3).tolist()
        yield {"way": way, "name": name, "state": str(rng.choice(net.states(name))), "w": w}


def play_randomly(net, page, count, seed):
    """How many of the actions changed the case; after each the page shows what the API answers."""
    actions = list(random_actions(net, count, np.random.default_rng(seed)))
    changed = 0
    for start in range(0, count, 50):
        for after in page.page.evaluate(PLAY, actions[start : start + 50]):
            check_shown(net, after["findings"], after["log"], after["shown"])
            changed += after["changed"]
    page.settled()
    return changed


@pytest.mark.parametrize("count", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_random_clicks_of_all_kinds_equal_the_api(asia, tab, count):
    net, page = gg.datasets.asia(), tab().open(asia.url)
    assert play_randomly(net, page, count, seed=count) > count // 2


def test_steps_back_are_not_lost_when_they_come_fast(asia, tab):
    page = tab().open(asia.url)
    for name in ("smoke", "xray", "asia"):
        page.click(name, "yes")
    page.app("(app.undo(), app.undo(), 0)")
    page.page.wait_for_function("() => !document.getElementById('app').explorer.wanted")
    assert [f["name"] for f in page.app("app.findings")] == ["smoke"]
    page.app("(app.redo(), app.redo(), app.redo(), 0)")
    page.page.wait_for_function("() => !document.getElementById('app').explorer.wanted")
    assert [f["name"] for f in page.app("app.findings")] == ["smoke", "xray", "asia"]


def test_impossible_evidence_is_named_and_changes_nothing(asia, tab):
    page = tab().open(asia.url)
    page.click("either", "no")
    before = page.app("app.findings"), page.beliefs()
    page.row("lung", "yes").click()
    toast = page.page.locator(".toast")
    toast.wait_for()
    assert toast.text_content() == "These cannot all hold: either = no, lung = yes. Nothing was changed."
    assert (page.app("app.findings"), page.beliefs()) == before
    page.panels()  # they were stopped by the click, and come again


def test_undo_redo_reload_and_two_tabs(asia, tab):
    page, other = tab().open(asia.url), tab().open(asia.url)
    page.click("smoke", "yes")
    page.click("xray", "yes")
    other.click("asia", "yes")
    assert [f["name"] for f in page.app("app.findings")] == ["smoke", "xray"]
    page.page.keyboard.press("Control+z")
    page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 1")
    page.page.keyboard.press("Control+Shift+Z")
    page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 2")
    page.settled()
    shown = page.beliefs()
    page.page.reload()
    page.page.wait_for_selector("[data-answered]")
    page.settled()
    assert page.beliefs() == shown
    assert [f["name"] for f in other.app("app.findings")] == ["asia"]
    check_against_api(gg.datasets.asia(), other)


def test_the_keyboard_alone_is_enough(asia, tab):
    page = tab(permissions=["clipboard-read", "clipboard-write"]).open(asia.url)
    keys = page.page.keyboard
    for _ in range(40):
        keys.press("Tab")
        if page.page.evaluate("() => document.activeElement.classList.contains('node')"):
            break
    else:
        raise AssertionError("Tab never enters the graph")
    first = page.page.evaluate("() => document.activeElement.getAttribute('aria-label')")
    keys.press("ArrowRight")
    assert page.page.evaluate("() => document.activeElement.getAttribute('aria-label')") != first
    for _ in range(10):
        if page.page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith("xray"):
            break
        keys.press("ArrowRight")
    keys.press("Enter")
    keys.press("ArrowDown")
    keys.press("Space")
    page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 1")
    assert page.app("app.findings") == [{"name": "xray", "type": "see", "value": "yes"}]
    page.settled()
    said = page.page.locator(".said").text_content()
    assert said.startswith("xray observed yes. ") and "now" in said and "was" in said
    keys.press("Control+z")
    page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 0")
    page.panels()
    keys.press("Escape")
    keys.press("b")
    best = page.app("app.panels.next.rows[0][0]")
    assert page.page.evaluate("() => document.activeElement.getAttribute('aria-label')").startswith(best)
    keys.press("Enter")
    keys.press("d")
    page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 1")
    assert page.app("app.findings[0].type") == "do"
    page.settled()
    keys.press("Escape")
    keys.press("c")
    page.page.wait_for_function("() => document.getElementById('app').explorer.copied")
    assert "net.do(" in page.app("app.copied")
    keys.press("e")
    page.page.get_by_role("dialog", name="Export").wait_for()
    with page.page.expect_download() as saved:
        keys.press("ArrowDown")
        keys.press("ArrowDown")
        keys.press("Enter")
    assert saved.value.suggested_filename == "asia-case.json"
    keys.press("Escape")
    keys.press("?")
    page.page.get_by_role("dialog", name="Keys and clicks").wait_for()


def test_curves_and_rings(tab, rng):
    phi = rng.vonmises(np.pi, 2.0, 400)
    tree = gg.learn_tree({"phi": phi, "w": np.cos(phi) + 0.3 * rng.normal(size=400)}, domains={"phi": "circle"})
    with explorer.serve(tree, title="angles") as server:
        page = tab().open(server.url)
        hit = page.node("w").locator(".hit")
        box = hit.bounding_box()
        page.page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 20)
        page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 1")
        page.settled()
        value = page.app("app.findings[0].value")
        shown = float(page.node("phi").get_attribute("data-dir"))
        assert shown == pytest.approx(tree.query("phi", {"w": value})["phi"].mean_direction(), abs=1e-9)
        page.page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 20)
        page.page.mouse.down()
        page.page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 20, steps=4)
        assert page.app("app.findings[0].value") == value  # a drag commits when it ends
        page.page.mouse.up()
        page.page.wait_for_function(f"() => document.getElementById('app').explorer.findings[0].value !== {value}")
        page.settled()
        ring = page.node("phi").locator(".hit").bounding_box()
        middle = ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2
        page.page.mouse.click(middle[0] - 2, middle[1] + 25)  # just beyond 180°
        page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 2")
        page.settled()
        angle = page.app("app.findings.find((f) => f.name === 'phi').value")
        assert -np.pi <= angle < -np.pi + 0.2  # 185° is −175°
        assert page.node("phi").locator(".figure").text_content() == f"= {round(np.degrees(angle)) % 360}°"
        page.node("phi").click(button="right", position={"x": 20, "y": 15})
        page.page.get_by_role("menuitem", name="Type a value…").click()
        page.page.get_by_role("dialog").locator("input").fill("190")
        page.page.keyboard.press("Enter")
        page.page.wait_for_function(
            "() => Math.abs(document.getElementById('app').explorer.findings.find((f) => f.name === 'phi').value"
            " + 170 * Math.PI / 180) < 1e-9"
        )
        page.settled()
        assert page.app("app.logEvidence") == pytest.approx(
            tree.log_evidence({f["name"]: f["value"] for f in page.app("app.findings")}), abs=1e-9
        )


def test_separation_equals_d_connection(asia, tab):
    net, page = gg.datasets.asia(), tab().open(asia.url)
    page.page.get_by_role("button", name="Separation").click()
    page.page.wait_for_function("() => document.getElementById('app').explorer.sep")
    rng = np.random.default_rng(3)
    sets = [[str(v) for v in rng.permutation(net.variables)[: rng.integers(0, 4)]] for _ in range(100)]
    cases = [[{"name": v, "type": "see", "value": net.states(v)[1]} for v in given] for given in sets]
    found = page.page.evaluate(
        "async ([cases, names]) => { const app = document.getElementById('app').explorer; const out = [];"
        "for (const findings of cases) { const row = {}; await Promise.all(names.map(async (source) => {"
        "row[source] = (await app.backend.ask('separation', {case: findings, source})).reached; })); out.push(row); }"
        "return out; }",
        [cases, list(net.variables)],
    )
    for given, row in zip(sets, found, strict=True):
        for a in net.variables:
            for b in net.variables:
                if a != b and a not in given and b not in given:
                    assert (b in row[a]) == net.is_dconnected(a, b, given=given)
    page.app("app.commit([{name: 'lung', type: 'do', value: 'yes'}]) && 0")
    page.settled()
    page.app("app.setSource('smoke') && 0")
    page.page.wait_for_function("() => document.getElementById('app').explorer.sep.source === 'smoke'")
    assert page.page.locator(".cut").count() == 1
    assert "either" not in page.app("app.sep.reached")
    active = page.page.locator(".arc2.active").count()
    assert active == len(page.app("app.sep.edges"))


def test_comparison_and_contributions_equal_the_api(asia, tab):
    net, page = gg.datasets.asia(), tab().open(asia.url, target="lung", state="yes")
    page.click("dysp", "yes")
    page.panels()
    page.page.get_by_role("button", name="Compare").click()
    page.page.wait_for_function("() => document.getElementById('app').explorer.beliefsA")
    page.click("xray", "yes")
    page.panels()
    a, b = net.query(None, {"dysp": "yes"}), net.query(None, {"dysp": "yes", "xray": "yes"})
    moved = b["lung"].prob("yes") - a["lung"].prob("yes")
    assert page.row("lung", "yes").locator(".num").text_content() == f"+{100 * moved:.1f}"
    page.page.get_by_role("button", name="Observe").click()
    page.panels()
    wanted = net.explain("lung", {"dysp": "yes", "xray": "yes"}, state="yes").set_index("finding")["contribution"]
    for row in page.page.locator("[data-adds]").all():
        assert float(row.get_attribute("data-adds")) == pytest.approx(wanted[row.get_attribute("data-name")], abs=1e-9)
    assert page.page.locator("[data-adds]").count() == 2
    page.page.evaluate("() => Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.page.get_by_role("button", name="Copy as Python").click()
    assert page.page.get_by_role("dialog").locator("textarea").input_value() == page.app("app.copied")


def test_hostile_names_server_gone_and_offline(tab):
    from gramgraph.variables import discrete

    name, state = "<img src=x onerror=window.hit=1>", '"><script>window.hit=1</script>'
    a, b = discrete(name, [state, "ok"]), discrete("b", ["0", "1"])
    net = gg.BayesianNetwork(cpds=[gg.Table(a, (), [0.2, 0.8]), gg.Table(b, (a,), [[0.1, 0.9], [0.5, 0.5]])])
    server = explorer.serve(net, title=name)
    page = tab()
    asked = []
    page.page.on("request", lambda request: asked.append(request.url))
    page.open(server.url)
    page.click("b", "1")
    page.panels()
    assert name in page.page.locator("h1").text_content()
    assert page.page.evaluate("() => window.hit") is None
    assert page.page.locator("img, script:not([src])").count() == 0
    assert all(url.startswith((f"http://127.0.0.1:{server.port}/", "data:")) for url in asked)
    assert not any(server.token in url for url in asked)
    server.close()
    page.row("b", "0").click()
    gone = page.page.get_by_role("alert")
    gone.wait_for()
    assert "The Python process has ended. What you see is its last answer." in gone.text_content()
    assert page.app("app.findings.length") == 1


def test_late_answers_are_dropped(asia, tab):
    page = tab().open(asia.url)
    page.page.evaluate(
        "() => { const app = document.getElementById('app').explorer; const ask = app.backend.ask; let late = true;"
        "const held = new Promise((done) => (window.release = done));"
        "app.backend.ask = async (name, body) => { const mine = late && name === 'ask'; late = late && !mine;"
        "const found = await ask(name, body); if (mine) await held; return found; };"
        "window.first = app.observe(app.nodeOf('smoke'), 'yes', 'see');"
        "app.observe(app.nodeOf('xray'), 'yes', 'see'); }"
    )
    page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 2")
    assert page.page.evaluate("async () => { window.release(); return window.first; }") is False  # it came too late
    assert [f["name"] for f in page.app("app.findings")] == ["smoke", "xray"]
    page.settled()
    check_against_api(gg.datasets.asia(), page)


def wait_for_model(page, old):
    """Until another model than this one is open and drawn."""
    page.page.wait_for_function(
        "(old) => { const app = document.getElementById('app').explorer; return app.modelKey !== old && app.ready; }",
        arg=old,
    )
    page.settled()


def test_a_table_is_dropped_learned_refitted_saved_and_read(tab, tmp_path):
    data = tmp_path / "survey.csv"
    gg.datasets.asia().sample(800, random_state=0).to_csv(data, index=False)
    with explorer.serve(Workbench()) as server:
        page = tab()
        page.page.goto(server.url)
        page.page.locator("input[type=file]").wait_for(state="attached")
        page.page.wait_for_function("() => document.getElementById('app').explorer.info")
        page.page.locator("input[type=file]").set_input_files(str(data))
        dialog = page.page.get_by_role("dialog")
        dialog.wait_for()
        dialog.get_by_label("From").select_option("smoke")
        dialog.get_by_label("To", exact=True).select_option("bronc")
        dialog.get_by_role("button", name="Forbid arc").click()
        dialog.get_by_role("button", name="Learn").click()
        page.page.wait_for_selector("[data-answered]")
        page.settled()
        assert page.page.locator("h1").text_content() == "survey"
        page.page.get_by_role("button", name="Learned…").click()
        learned = page.app("app.modelKey")
        page.page.get_by_role("button", name="Refit, smoothed").click()
        wait_for_model(page, learned)
        page.page.get_by_role("button", name="Export").click()
        with page.page.expect_download() as saved:
            page.page.get_by_role("button", name="Model as BIF", exact=True).click()
        path = tmp_path / "learned.bif"
        saved.value.save_as(path)
        net = gg.read(path)
        assert ("smoke", "bronc") not in net.edges
        assert set(net.variables) == set(gg.datasets.asia().variables)
        check_against_api(net, page)


def test_an_arc_is_forbidden_by_a_click_and_a_table_is_edited(tab, tmp_path):
    data = tmp_path / "survey.csv"
    gg.datasets.asia().sample(800, random_state=0).to_csv(data, index=False)
    bench = Workbench()
    bench.load_table(data, data.name)
    bench.learn_now()
    arc = list(bench.first.model.edges[0])
    with explorer.serve(bench) as server:
        page = tab().open(server.url)
        first = page.app("app.modelKey")
        grip = page.page.locator(f".grip:has(title:text('{arc[0]} → {arc[1]}:'))")
        for name in (f"Forbid {arc[0]} → {arc[1]}", "Learn again"):
            grip.dispatch_event("click")
            page.page.get_by_role("menuitem", name=name).click()
            if name != "Learn again":
                assert page.page.locator(".arc2.forbidden").count() == 1
        wait_for_model(page, first)
        net = bench._views[page.app("app.modelKey")].model
        assert tuple(arc) not in net.edges
        page.page.reload()
        page.page.wait_for_selector("[data-answered]")
        page.page.get_by_role("button", name="Learned…").click()
        assert f"must not be: {arc[0]} → {arc[1]}" in page.page.get_by_role("dialog").text_content()
        page.page.keyboard.press("Escape")
        root = net.roots[0]
        other = next(name for name in net.variables if name != root)
        page.click(other, "yes")
        page.node(root).click(button="right", position={"x": 20, "y": 15})
        page.page.get_by_role("menuitem", name="Show table").click()
        page.page.get_by_role("button", name="Edit").click()
        for state, number in zip(net.states(root), ("3", "1"), strict=True):
            page.page.get_by_role("dialog").get_by_label(state, exact=True).fill(number)
        old = page.app("app.modelKey")
        page.page.get_by_role("button", name="Apply").click()
        wait_for_model(page, old)
        edited = bench._views[page.app("app.modelKey")].model
        assert edited.query(root)[root].probabilities == pytest.approx([0.75, 0.25])
        assert [f["name"] for f in page.app("app.findings")] == [other]
        check_against_api(edited, page)


def test_a_point_of_a_process_equals_predict(tab):
    x = np.array([-3.0, -1.0, 0.5, 2.0])
    gp = gg.GaussianProcessRegressor(1.0 * gg.kernels.RBF(1.0), alpha=0.01, optimizer=None).fit(x[:, None], np.sin(x))
    with explorer.serve(gp, title="sine") as server:
        page = tab().open(server.url)
        before = page.app("app.root.dataset.answered")
        box = page.page.locator("svg.canvas").bounding_box()
        page.page.mouse.click(box["x"] + 0.7 * box["width"], box["y"] + 0.4 * box["height"])
        page.page.wait_for_function(f"() => document.getElementById('app').dataset.answered !== {json.dumps(before)}")
        points = np.array(json.loads(page.app("app.root.dataset.points")))
        assert len(points) == 5
        wanted = gg.GaussianProcessRegressor(gp.kernel_, alpha=0.01, optimizer=None).fit(points[:, :1], points[:, 1])
        mean, sd = wanted.predict(points[-1:, :1], return_std=True)
        assert json.loads(page.app("app.root.dataset.at"))[0] == pytest.approx([mean[0], sd[0]], abs=1e-9)
        page.page.reload()
        page.page.wait_for_selector("[data-answered]")
        assert json.loads(page.app("app.root.dataset.points")) == points.tolist()
        page.page.get_by_label("x of a point").fill("1.25")
        page.page.get_by_label("y of a point").fill("0.5")
        page.page.keyboard.press("Enter")
        page.page.wait_for_function("() => JSON.parse(document.getElementById('app').dataset.points).length === 6")
        page.page.get_by_role("button", name="Undo").click()
        page.page.wait_for_function("() => JSON.parse(document.getElementById('app').dataset.points).length === 5")


def test_a_sequence_is_filtered_step_by_step(tab):
    casino = gg.CategoricalHMM.from_parameters([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]])
    X = casino.sample(30, random_state=0)[0]
    with explorer.serve(casino, title="casino", data=X) as server:
        page = tab().open(server.url)
        page.page.get_by_role("button", name="Back").click()
        page.page.wait_for_function("() => document.getElementById('app').dataset.answered === '2'")
        shown = json.loads(page.app("app.root.dataset.last"))[0]
        assert shown == pytest.approx(casino.predict_proba(X[:29])[-1], abs=1e-9)
        box = page.page.locator("svg.canvas .track").bounding_box()
        page.page.mouse.click(box["x"] + box["width"] * 6.5 / 30, box["y"] + 10)
        page.page.wait_for_function("() => document.getElementById('app').dataset.answered === '3'")
        shown = json.loads(page.app("app.root.dataset.last"))[0]
        assert shown == pytest.approx(casino.predict_proba(X[:7])[-1], abs=1e-9)
        page.page.reload()
        page.page.wait_for_selector("[data-answered]")
        assert json.loads(page.app("app.root.dataset.last"))[0] == shown


def test_messages_step_by_step(tab):
    net = gg.BayesianNetwork("cloudy -> rain -> wet").random_tables(1)
    with explorer.serve(net, title="rain") as server:
        page = tab().open(server.url, ev=[{"name": "wet", "type": "see", "value": "yes"}], view="messages")
        page.page.wait_for_selector(".message.now")
        frame = net.sum_product({"wet": "yes"}, normalized=False).to_frame()
        for step, rows in frame.groupby("step"):
            values = [
                float(v)
                for v in page.page.locator("aside [data-value]").evaluate_all("(e) => e.map((b) => b.dataset.value)")
            ]
            assert values == pytest.approx(rows["value"].tolist(), abs=1e-9)
            assert page.page.locator(".message").count() == step
            if step < frame["step"].max():
                page.page.get_by_role("button", name="Next").click()
                page.page.wait_for_selector(f"[data-view^=messages{step + 1}]")


def test_the_static_file_answers_without_a_server(tab, tmp_path):
    net = gg.datasets.asia()
    path = tmp_path / "asia.html"
    assert net.explore(static=path) == str(path)
    page = tab(offline=True)
    asked = []
    page.page.on("request", lambda request: asked.append(request.url))
    page.open(path.as_uri())
    assert play_randomly(net, page, 40, seed=5) > 20
    assert all(re.match(r"file:|data:", url) for url in asked)
    page.app("app.commit([{name: 'either', type: 'see', value: 'no'}]) && 0")
    page.settled()
    page.row("lung", "yes").click()
    assert "either = no, lung = yes" in page.page.locator(".toast").text_content()


@pytest.mark.slow
def test_munin_opens_by_its_neighborhood_and_answers(tab, shared_data):
    net = gg.read(shared_data / "bn" / "munin.bif.gz")
    with explorer.serve(net, title="munin") as server:
        page = tab().open(server.url)
        assert page.app("app.info.large") and page.app("app.graph.view.k") >= 0.8
        assert page.app("app.scene.nodes.length") <= 150
        name = net.variables[700]
        page.page.keyboard.press("/")
        page.page.locator(".node").first.focus()
        page.page.keyboard.press("/")
        page.page.get_by_role("dialog").locator("input").fill(name)
        page.page.keyboard.press("Enter")
        page.page.wait_for_function(f"() => document.getElementById('app').explorer.target === {json.dumps(name)}")
        page.page.wait_for_function(
            f"() => document.getElementById('app').explorer.scene.nodes.some((n) => n.name === {json.dumps(name)})"
        )
        page.settled()
        seen = page.app("app.scene.nodes.find((n) => n.name !== app.target).name")
        state = net.states(seen)[0]
        page.app(f"app.commit([{{name: {json.dumps(seen)}, type: 'see', value: {json.dumps(state)}}}]) && 0")
        page.page.wait_for_function("() => document.getElementById('app').explorer.findings.length === 1")
        page.settled()
        shown = page.app(f"app.beliefs[{json.dumps(name)}]")
        assert shown == pytest.approx(net.query(name, {seen: state})[name].probabilities, abs=1e-9)
