// The explorer: its state, the model that is open, and what a reload keeps. Everything computed comes from the backend.
import { make, visible } from "./base.js";
import { readFragment, writeFragment } from "./case.js";
import { buildFrame, drawChrome, MODES, VIEWS } from "./frame.js";
import { Hands } from "./hands.js";
import { mountOther } from "./others.js";
import { drawPanel } from "./panel.js";

export class App extends Hands {
  constructor(root, backend, options) {
    super();
    const kept = backend.keepsFragment ? readFragment(location.hash).kept : {};
    this.modelKey = kept.model || null;
    const ask = (name, body, signal) => backend.ask(name, { ...body, model: this.modelKey }, signal);
    Object.assign(this, { root, backend: { ...backend, ask }, token: options.token || "", kept });
    this.findings = Array.isArray(kept.ev) ? kept.ev : options.findings || [];
    this.findingsA = Array.isArray(kept.a) ? kept.a : null;
    this.cases = kept.cases && typeof kept.cases === "object" ? kept.cases : {};
    this.target = kept.target || null;
    this.targetState = kept.state || null;
    this.mode = MODES.some(([m]) => m === kept.mode) ? kept.mode : "observe";
    this.view = VIEWS.some(([v]) => v === kept.view) ? kept.view : "graph";
    this.source = kept.source || null;
    this.dark = kept.theme ? kept.theme === "dark" : Boolean(options.dark);
    this.history = [this.findings];
    this.at = this.wantedAt = 0;
    this.beliefs = {};
    this.prior = {};
    this.panels = {};
    this.sep = null;
    this.beliefsA = null;
    this.conflict = 0;
    this.against = null;
    this.asked = 0;
    this.shownStep = 1;
    this.method = "sum_product";
    this.wanted = null;
    this.hands = this.makeHands();
  }

  async start() {
    this.root.textContent = "";
    this.root.classList.add("gg");
    this.root.classList.toggle("dark", this.dark);
    buildFrame(this);
    let info;
    try {
      info = await this.backend.ask("model", { center: this.target, case: this.findings });
    } catch (error) {
      return this.failed(error, () => this.start());
    }
    if (info.error) return this.toast(info.error, true);
    this.open(info);
  }

  // Another model in this tab: a new case.
  async openModel(key, findings = []) {
    this.modelKey = key;
    this.kept = {};
    const target = findings.length ? this.target : null;
    Object.assign(this, { findings, history: [findings], at: 0, wantedAt: 0, findingsA: null, beliefsA: null, sep: null, panels: {}, target, source: null, mode: "observe", view: "graph", ready: false });
    this.graph.closePeek();
    const info = await this.quietly("model", {});
    if (!info) return;
    if (info.error) return this.toast(info.error);
    this.open(info);
  }

  open(info) {
    if (info.key) this.modelKey = info.key;
    this.maxUpload = info.max_upload;
    if (this.other && this.other.end) this.other.end();
    this.other = null;
    this.searchButton.hidden = this.legend.hidden = false;
    for (const part of [this.modeButtons, this.viewButtons, this.pill, this.exportButton, this.graph.zoomBox]) part.hidden = false;
    if (this.openButton) {
      this.openButton.hidden = !info.learns;
      this.learnedButton.hidden = !info.learned;
    }
    // Arcs that are required or forbidden when the network is learned again.
    this.arcs = info.learned || null;
    if (info.kind !== "network") return mountOther(this, info);
    this.info = info;
    this.scene = info.scene;
    this.prior = info.scene.prior;
    const known = new Set(info.names);
    const asked = this.findings.length;
    this.findings = this.findings.filter((f) => known.has(f.name));
    if (this.history.length === 1) this.history = [this.findings];
    if (!known.has(this.target)) {
      this.target = info.target;
      this.targetState = null;
    }
    if (!known.has(this.source)) this.source = null;
    this.pickState();
    this.beliefs = this.prior;
    if (this.backend.keepsFragment) document.title = info.title + " · gramgraph explorer";
    this.title.textContent = visible(info.title);
    this.sizeText.textContent = `${info.size[0].toLocaleString("en-US")} variables, ${info.size[1].toLocaleString("en-US")} ${info.directed ? "arcs" : "edges"}`;
    const first = info.answer && info.answer.beliefs && this.findings.length === asked ? info.answer : null;
    if (first) {
      this.asked++;
      this.take(this.findings, first);
    }
    this.graph.draw();
    drawChrome(this);
    this.ready = true;
    if (!first) return this.refresh();
    if (this.view === "graph") drawPanel(this, this.side);
    this.tell(null, null);
  }

  can(name) {
    return this.info.can.includes(name) || (name === "table" && this.info.can.includes("python"));
  }

  nodeOf(name) {
    return this.scene.nodes.find((node) => node.name === name) || { name, kind: "other" };
  }

  keep() {
    if (this.onCase) this.onCase(this.findings);
    if (!this.backend.keepsFragment) return;
    if (this.other) {
      const kept = { theme: this.dark ? "dark" : "light", ...this.other.kept() };
      if (this.modelKey) kept.model = this.modelKey;
      return history.replaceState(null, "", writeFragment(this.token, kept));
    }
    const kept = { ev: this.findings, target: this.target, state: this.targetState, mode: this.mode, view: this.view, theme: this.dark ? "dark" : "light", source: this.source };
    if (this.modelKey) kept.model = this.modelKey;
    if (this.findingsA) kept.a = this.findingsA;
    if (Object.keys(this.cases).length) kept.cases = this.cases;
    history.replaceState(null, "", writeFragment(this.token, kept));
  }

  toast(text, stay) {
    if (this.toastNote) this.toastNote.remove();
    this.toastNote = make("div", "toast", this.stage, text);
    this.toastNote.setAttribute("role", "alert");
    clearTimeout(this.toastTimer);
    if (!stay) this.toastTimer = setTimeout(() => this.toastNote && this.toastNote.remove(), 6000);
  }
}

export function mount(root, backend, options = {}) {
  const app = new App(root, backend, options);
  root.explorer = app;
  app.start();
  return app;
}
