// The frame of the page: top bar, tools, stage and panel, and what they say about the case.
import { button, iconBox, logText, make, percent, shape } from "./base.js";
import { closePopup, exportDialog, keysDialog, planDialog } from "./dialogs.js";
import { Graph } from "./graph.js";
import { pressKey } from "./keys.js";
import { learnActions } from "./learn.js";

export const MODES = [["observe", "Observe"], ["do", "Intervene"], ["separation", "Separation"], ["compare", "Compare"]];
export const VIEWS = [["graph", "Graph"], ["tree", "Junction tree"], ["messages", "Messages"]];

export function buildFrame(app) {
  const top = make("header", "top", app.root);
  const mark = make("span", "mark", top);
  const logo = shape("svg", { width: 22, height: 22, viewBox: "0 0 22 22", "aria-hidden": "true" }, mark);
  shape("path", { d: "M6 6 16 11 6 16", class: "curve" }, logo);
  for (const [x, y, c] of [[5.5, 5.5, "part p0"], [5.5, 16.5, "part p0"], [16.5, 11, "dot"]]) shape("circle", { cx: x, cy: y, r: 3.5, class: c }, logo);
  app.title = make("h1", "", mark);
  app.sizeText = make("span", "quiet wide", mark);
  const facts = make("span", "facts", top);
  app.logText = make("span", "", facts);
  app.pill = button("", "pill", facts, () => planDialog(app, app.pill));
  app.pill.setAttribute("aria-haspopup", "dialog");
  app.warn = make("span", "pill warn", facts, "Findings disagree");
  make("span", "grow", top);
  app.pythonButton = button("Copy as Python", "line wide", top, () => app.copyPython());
  app.exportButton = button("Export", "line", top, () => exportDialog(app, app.exportButton));
  button("?", "help", top, () => keysDialog(app), "Keys and clicks");
  const theme = button("", "", top, () => app.setTheme(!app.dark), "Light or dark");
  iconBox("theme", theme);
  app.busy = make("div", "busy", top);
  app.busy.hidden = true;
  const tools = make("div", "tools", app.root);
  tools.setAttribute("role", "toolbar");
  tools.setAttribute("aria-label", "Tools");
  app.undoButton = button("", "", tools, () => app.undo(), "Undo");
  iconBox("undo", app.undoButton);
  app.redoButton = button("", "", tools, () => app.redo(), "Redo");
  iconBox("redo", app.redoButton);
  make("span", "gap", tools);
  app.modeButtons = make("div", "seg", tools);
  app.modeButtons.setAttribute("role", "group");
  app.modeButtons.setAttribute("aria-label", "What a click does");
  const search = app.searchButton = button("", "", tools, () => app.search("Go to", (name) => app.goTo(name)), "Search");
  iconBox("search", search);
  app.extra = make("span", "pair", tools);
  app.extra.style.margin = "0";
  make("span", "grow", tools);
  app.viewButtons = make("div", "seg", tools);
  app.viewButtons.setAttribute("role", "group");
  app.viewButtons.setAttribute("aria-label", "View");
  app.stage = make("main", "", app.root);
  app.graph = new Graph(app, app.stage);
  app.legend = make("div", "legend", app.stage);
  app.side = make("aside", "", app.root);
  app.side.setAttribute("aria-label", "Case and explanation");
  app.side.tabIndex = 0;
  app.said = make("div", "said", app.root);
  app.said.setAttribute("role", "status");
  app.said.setAttribute("aria-live", "polite");
  app.root.addEventListener("keydown", (e) => pressKey(app, e));
  app.root.addEventListener("pointerdown", (e) => app.popup && !app.popup.box.contains(e.target) && closePopup(app), true);
  let width = 0;
  new ResizeObserver(() => {
    const box = app.root.getBoundingClientRect();
    app.root.classList.toggle("narrow", box.width < 1100);
    if (app.ready && Math.abs(box.width - width) > 1) app.redraw();
    width = box.width;
  }).observe(app.root);
  learnActions(app);
}

export function drawChrome(app) {
  const set = app.findings.some((f) => f.type === "do");
  app.logText.textContent = set ? "log p(e | do) " : "log p(e) ";
  make("b", "", app.logText, app.logEvidence === undefined ? "" : logText(app.logEvidence));
  if (app.logEvidence !== undefined) {
    const text = app.info.density ? " (density)" : ` (p = ${percent(Math.abs(app.logEvidence) < 1e-12 ? 1 : Math.exp(app.logEvidence))})`;
    make("span", "wide quiet", app.logText, text);
  }
  app.pill.textContent = "";
  make("i", "", app.pill);
  app.pill.append((app.exact === false ? "Approximate · " : "Exact · ") + (app.engine || "").replace(/_/g, " "));
  app.pill.classList.toggle("rough", app.exact === false);
  app.pill.title = app.reason || "";
  app.warn.hidden = !(app.conflict > 0.5);
  app.undoButton.disabled = app.at === 0;
  app.redoButton.disabled = app.at === app.history.length - 1;
  app.pythonButton.hidden = !app.can("python");
  segment(app, app.modeButtons, MODES, app.mode, (m) => app.setMode(m));
  segment(app, app.viewButtons, VIEWS, app.view, (v) => app.setView(v));
  app.modeButtons.hidden = app.view !== "graph";
  drawLegend(app);
}

function segment(app, holder, items, current, run) {
  if (!holder.childElementCount) for (const [key, text] of items) button(text, "", holder, () => holder.run(key)).dataset.key = key;
  holder.run = (key) => !app.info.cannot[key] && run(key);
  for (const b of holder.children) {
    const reason = app.info.cannot[b.dataset.key];
    b.setAttribute("aria-pressed", String(b.dataset.key === current));
    b.disabled = Boolean(reason);
    b.title = reason || "";
  }
}

function drawLegend(app) {
  const list = app.legend;
  list.textContent = "";
  list.hidden = app.view !== "graph";
  const entry = (kind, text) => {
    const s = make("span", "", list);
    make("i", kind, s);
    s.append(text);
  };
  if (app.mode === "separation") for (const e of [["open", "active trail"], ["seen", "observed"], ["dash", "tells nothing more"], ["stop", "trail stops here"]]) entry(...e);
  else if (app.mode === "compare") for (const e of [["open", "more in B"], ["less", "less in B"], ["tick", "case A"]]) entry(...e);
  else {
    entry("belief", "belief");
    entry("seen", "observed");
    if (app.findings.some((f) => f.type === "do")) entry("set", "set");
    if (app.graph.level === "full") entry(app.scene.nodes.some((n) => n.kind !== "discrete") ? "dash" : "tick", "before evidence");
  }
}
