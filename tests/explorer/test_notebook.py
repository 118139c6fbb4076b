"""The widget in a notebook: the same beliefs, with the same page in one module."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import gramgraph as gg
from gramgraph.explorer import view_of


def test_the_widget_answers_like_the_library():
    if find_spec("anywidget") is None:
        pytest.skip("anywidget is not installed: pip install 'gramgraph[notebook]'")
    from gramgraph.explorer.widget import widget_of

    net = gg.datasets.asia()
    widget = widget_of(view_of(net))
    widget.findings = [{"name": "smoke", "type": "see", "value": "yes"}]
    answer = net.query(None, {"smoke": "yes"})
    assert widget.beliefs["lung"] == pytest.approx(answer["lung"].probabilities, abs=1e-12)
    assert widget.log_evidence == pytest.approx(answer.log_evidence)
    sent = []
    widget.send = sent.append
    widget._answer(None, {"id": "1", "name": "ask", "body": {"case": []}}, [])
    assert sent[0]["id"] == "1" and sent[0]["answer"]["beliefs"]["lung"][1] == pytest.approx(0.055)
    widget._answer(None, {"id": "2", "name": "nothing", "body": {}}, [])
    assert "error" in sent[1]["answer"]
    assert "export default" in str(widget._esm)


def test_a_notebook_shows_the_same_beliefs(monkeypatch):
    missing = [name for name in ("anywidget", "nbclient", "ipykernel") if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install 'gramgraph[browser]'")
    import json

    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(Path(gg.__file__).parent.parent))
    cells = [
        "import gramgraph as gg\nnet = gg.datasets.asia()\nwidget = net.explore()\nwidget",
        "widget.findings = [{'name': 'xray', 'type': 'see', 'value': 'yes'}]\n"
        "import json; print(json.dumps(widget.beliefs))",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(book, timeout=300, kernel_name="python3").execute()
    assert "application/vnd.jupyter.widget-view+json" in book.cells[0].outputs[0]["data"]
    text = "".join(output.get("text", "") for output in book.cells[1].outputs)
    shown = json.loads(text)
    answer = gg.datasets.asia().query(None, {"xray": "yes"})
    for name in answer:
        assert shown[name] == pytest.approx(answer[name].probabilities, abs=1e-12)


def test_the_widget_runs_in_a_browser(tab, tmp_path):
    """The module that the notebook loads, with a stand-in for the notebook's side of the messages."""
    if find_spec("anywidget") is None:
        pytest.skip("anywidget is not installed: pip install 'gramgraph[notebook]'")
    import json

    from gramgraph.explorer.files import page_file
    from gramgraph.explorer.widget import _RENDER, bundle

    view = view_of(gg.datasets.asia())
    page = tab(1000, 700).page
    page.expose_function("answer", lambda name, body: view.request(name, body))
    page.goto("about:blank")
    page.add_style_tag(content=page_file("style.css").decode())
    page.evaluate(
        "async (source) => { const url = URL.createObjectURL(new Blob([source], {type: 'text/javascript'}));"
        "const module = await import(url); const hear = {}; const kept = {height: 640, findings: []};"
        "window.model = { get: (k) => kept[k], set: (k, v) => { kept[k] = v; window[k] = v; hear['change:' + k]?.(); },"
        "save_changes() {}, on: (k, f) => (hear[k] = f),"
        "send: async (m) => hear['msg:custom']({id: m.id, answer: await answer(m.name, m.body)}) };"
        "module.default.render({ model: window.model, el: document.body }); }",
        bundle() + _RENDER,
    )
    page.wait_for_selector("[data-answered]")
    page.locator(".row[data-state=yes]").first.click()
    page.wait_for_function("() => window.findings && window.findings.length === 1")
    name = json.loads(json.dumps(page.evaluate("() => window.findings[0].name")))
    shown = page.evaluate("() => document.querySelector('.gg').explorer.beliefs")
    answer = gg.datasets.asia().query(None, {name: "yes"})
    for other in answer:
        assert shown[other] == pytest.approx(answer[other].probabilities, abs=1e-9)
    # A case that is set from Python is shown.
    page.evaluate("() => window.model.set('findings', [{name: 'smoke', type: 'see', value: 'no'}])")
    page.wait_for_function("() => document.querySelector('.gg').explorer.findings[0].name === 'smoke'")
    shown = page.evaluate("() => document.querySelector('.gg').explorer.beliefs.lung")
    assert shown == pytest.approx(gg.datasets.asia().query("lung", {"smoke": "no"})["lung"].probabilities, abs=1e-9)
