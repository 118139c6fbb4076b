"""A browser for all tests of the explorer, where there is one."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from urllib.parse import quote

import pytest

SPEC = importlib.util.spec_from_file_location("explorer_needs", Path(__file__).with_name("needs.py"))
needs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(needs)


@pytest.fixture(scope="session")
def chromium():
    if missing := needs.missing():
        pytest.skip("; ".join(missing))
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(
                executable_path=needs.browser(), args=["--no-sandbox", "--disable-dev-shm-usage"], timeout=180_000
            )
        except Error as error:  # such as a library of the system that it misses
            pytest.skip(f"{needs.browser()} could not be started: {str(error).splitlines()[0]}")
        yield browser
        browser.close()


class Tab:
    """A page of the explorer, with the words that tests use."""

    def __init__(self, page):
        self.page = page
        self.faults = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.set_default_timeout(180_000)  # of conditions: a busy machine may take its time

    def open(self, url, **kept):
        join = "&" if "#" in url else "#"
        self.page.goto(url + (f"{join}c={quote(json.dumps(kept))}" if kept else ""))
        self.page.wait_for_selector("[data-answered]")
        return self

    def app(self, script):
        """A value of the page's application."""
        return self.page.evaluate(
            f"(() => {{ const app = document.getElementById('app').explorer; return {script}; }})()"
        )

    def settled(self):
        """Wait until the last question is answered and painted."""
        self.page.wait_for_function(
            "() => { const a = document.getElementById('app').explorer; "
            "return !a.wanted && Number(a.root.dataset.painted) === a.asked; }"
        )

    def painted(self):
        """Wait until what was changed stands on the screen, at its full width."""
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(async () => {"
            "await Promise.all(document.getAnimations().map((a) => a.finished.catch(() => null))); done(); })))"
        )

    def panels(self):
        self.page.wait_for_function(
            "() => { const a = document.getElementById('app').explorer; "
            "return Number(a.root.dataset.panels) === (a.other || a).asked; }"
        )

    def node(self, name):
        return self.page.locator(f".nodes .node:has(> .head > title:text-is({json.dumps(name)}))")

    def row(self, name, state):
        return self.node(name).locator(f".row[data-state={json.dumps(state)}]")

    def click(self, name, state, modifiers=()):
        before = self.app("app.asked")
        self.row(name, state).click(modifiers=list(modifiers))
        self.page.wait_for_function(f"() => document.getElementById('app').explorer.asked > {before}")
        self.settled()

    def beliefs(self):
        """Probabilities as the page shows them, from the attributes of the rows."""
        return self.page.evaluate(
            "() => Object.fromEntries([...document.querySelectorAll('.nodes .node.discrete')].map((g) => "
            "[g.querySelector('.head title').textContent, "
            "Object.fromEntries([...g.querySelectorAll('.row[data-state]')].map((r) => "
            "[r.dataset.state, Number(r.dataset.p)]))]))"
        )


@pytest.fixture
def tab(chromium):
    """A function that opens a tab of a size; all are closed afterwards, and must have run without a fault."""
    opened = []

    def make(width=1440, height=900, **options):
        context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        opened.append(Tab(context.new_page()))
        return opened[-1]

    yield make
    for one in opened:
        one.page.context.close()
        assert not one.faults, one.faults
