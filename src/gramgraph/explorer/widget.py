"""The same view in a notebook: an anywidget that talks to the Python process by messages."""

from __future__ import annotations

from typing import Any

from gramgraph._numerics.aside import Aside
from gramgraph.explorer.files import bundle, page_file

_RENDER = """
function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "gg";
  root.style.height = model.get("height") + "px";
  el.append(root);
  const waiting = new Map();
  let count = 0;
  model.on("msg:custom", (message) => {
    const done = waiting.get(message.id);
    waiting.delete(message.id);
    if (done) done(message.answer);
  });
  const backend = {
    ask: (name, body, signal) => new Promise((resolve, reject) => {
      const id = ++count + ":" + Math.random();
      waiting.set(id, resolve);
      if (signal) signal.addEventListener("abort", () => {
        waiting.delete(id);
        reject(new DOMException("cancelled", "AbortError"));
      });
      model.send({ id, name, body });
    }),
  };
  const dark = document.body.dataset.jpThemeLight === "false" || document.body.classList.contains("vscode-dark");
  const app = mount(root, backend, { dark, findings: model.get("findings") });
  const same = (findings) => JSON.stringify(findings) === JSON.stringify(model.get("findings"));
  app.onCase = (findings) => {
    if (same(findings)) return;
    model.set("findings", findings);
    model.save_changes();
  };
  // A case that was set from Python is shown.
  model.on("change:findings", () => {
    if (app.info && !app.other && !same(app.current())) app.commit(model.get("findings"));
  });
}
export default { render };
"""


def widget_of(view: Any, pixels: int = 640) -> Any:
    """A widget about the view: `findings` is the case, `beliefs` and `log_evidence` what follows from it.

    Setting `findings` from Python asks anew; clicking in the notebook does the same.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError("the explorer in a notebook needs anywidget: pip install gramgraph[notebook]") from None

    aside = Aside()  # a click does not wait for the compiler

    class Explorer(anywidget.AnyWidget):  # type: ignore[misc]
        """The explorer as a widget."""

        _esm = bundle() + _RENDER
        _css = page_file("style.css").decode()
        height = traitlets.Int(pixels).tag(sync=True)
        findings = traitlets.List([]).tag(sync=True)  # type: ignore[var-annotated]
        beliefs = traitlets.Dict({}).tag(sync=True)
        log_evidence = traitlets.Float(0.0, allow_none=True).tag(sync=True)

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.on_msg(self._answer)
            self.observe(self._asked, "findings")
            self._asked(None)

        def _answer(self, _: Any, message: Any, __: Any) -> None:
            if not isinstance(message, dict):
                return
            try:
                with aside.here():
                    answer = view.request(str(message.get("name")), message.get("body") or {})
            except KeyError:
                answer = {"error": "There is no such question."}
            self.send({"id": message.get("id"), "answer": answer})

        def _asked(self, _: Any) -> None:
            if view.kind != "network":
                return
            with aside.here():
                answer = view.request("ask", {"case": self.findings})
            if "beliefs" in answer:
                self.beliefs = answer["beliefs"]
                self.log_evidence = answer["log_evidence"]

    return Explorer()
