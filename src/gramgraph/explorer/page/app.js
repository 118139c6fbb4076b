// The explorer: what is shown, what was asked, and what the hands do. Everything that is computed comes from the backend.
import { button, make, number, percent } from "./base.js";
import { clicked, findingOf, readFragment, saidOf, withFinding, writeFragment } from "./case.js";
import { nameDialog, nodeMenu, searchDialog, statesDialog, textDialog } from "./dialogs.js";
import { buildFrame, drawChrome, MODES, VIEWS } from "./frame.js";
import { drawPanel } from "./panel.js";
import { mountOther } from "./others.js";
import { drawMessages, drawTree, messagePanel, treePanel } from "./views.js";

export class App {
  constructor(root, backend, options) {
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

  // ------------------------------------------------------------------------------------------ frame

  async start() {
    this.root.textContent = "";
    this.root.classList.add("gg");
    this.root.classList.toggle("dark", this.dark);
    buildFrame(this);
    let info;
    try {
      info = await this.backend.ask("model", { center: this.target });
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
    this.title.textContent = info.title;
    this.sizeText.textContent = `${info.size[0].toLocaleString("en-US")} variables, ${info.size[1].toLocaleString("en-US")} ${info.directed ? "arcs" : "edges"}`;
    this.graph.draw();
    drawChrome(this);
    this.refresh();
    this.ready = true;
  }

  can(name) {
    return this.info.can.includes(name) || (name === "table" && this.info.can.includes("python"));
  }

  nodeOf(name) {
    return this.scene.nodes.find((node) => node.name === name) || { name, kind: "other" };
  }

  redraw() {
    if (this.other) return this.other.draw && this.other.draw();
    if (this.view === "graph") this.graph.draw();
    else this.drawView();
  }

  // ------------------------------------------------------------------------------------------ asking

  // One click, one question with the whole case. Answers carry a number; late ones are dropped.
  // `at` is the place in the history of a case that is undone or redone.
  async commit(findings, { at = null } = {}) {
    const n = ++this.asked;
    this.wantedAt = at === null ? this.at : at;
    const before = this.wanted || this.findings;
    this.wanted = findings;
    if (this.waiting) this.waiting.abort();
    this.waiting = new AbortController();
    this.stopPanels();
    let found;
    try {
      found = await this.question("ask", { case: findings, show: this.info.large ? this.shown() : null, n }, this.waiting.signal);
    } catch (error) {
      if (error.name === "AbortError" || n !== this.asked) return false;
      this.wanted = null;
      this.wantedAt = this.at;
      return this.failed(error, () => this.commit(findings));
    }
    if (n !== this.asked) return false;
    if (found.impossible || found.error || found.budget) {
      this.wanted = null;
      this.wantedAt = this.at;
      this.toast(found.text || found.error || "Too large for an exact answer: " + found.budget);
      if (before !== this.findings && before !== findings) return this.commit(before);
      this.graph.update();
      this.painted();
      return false;
    }
    if (at !== null) this.at = at;
    else if (JSON.stringify(findings) !== JSON.stringify(this.findings)) {
      this.history = [...this.history.slice(0, this.at + 1), findings];
      this.at++;
    }
    this.wantedAt = this.at;
    this.adopt(findings, found);
    return true;
  }

  shown() {
    return [...new Set([...this.scene.nodes.map((node) => node.name), this.target])];
  }

  adopt(findings, found) {
    const news = findings.find((f) => JSON.stringify(findingOf(this.findings, f.name)) !== JSON.stringify(f));
    const was = this.beliefs[this.target];
    this.findings = findings;
    this.wanted = null;
    this.beliefs = found.beliefs;
    this.logEvidence = found.log_evidence;
    this.engine = found.engine;
    this.exact = found.exact;
    this.reason = found.reason;
    this.conflict = found.conflict || 0;
    this.against = found.against || null;
    this.answered = found.n;
    // Whether there are messages to be shown depends on what was observed.
    if (found.no_messages) this.info.cannot.messages = found.no_messages;
    else if (found.no_messages === null) delete this.info.cannot.messages;
    drawChrome(this);
    if (this.view === "graph") {
      this.graph.update();
      drawPanel(this, this.side);
    }
    this.keep();
    this.say(news, was);
    this.painted();
    this.askPanels();
  }

  // Which question was answered last, and which one is on the screen: for those who measure.
  painted() {
    this.root.dataset.answered = this.asked;
    requestAnimationFrame(() => requestAnimationFrame(() => (this.root.dataset.painted = this.asked)));
  }

  say(news, was) {
    const now = this.beliefs[this.target];
    const node = this.nodeOf(this.target);
    let text = news ? news.name + saidOf(news, this.nodeOf(news.name)) + ". " : "";
    if (Array.isArray(now) && node.states) {
      const k = Math.max(0, node.states.indexOf(this.targetState));
      text += `${this.target} = ${node.states[k]} now ${percent(now[k])}` + (Array.isArray(was) ? `, was ${percent(was[k])}` : "");
    } else if (now && now.mean !== undefined) text += `${this.target} now ${number(now.mean)}` + (was && was.mean !== undefined ? `, was ${number(was.mean)}` : "");
    this.said.textContent = text;
  }

  async question(name, body, signal) {
    const slow = setTimeout(() => (this.busy.hidden = false), 150);
    const slower = setTimeout(() => this.stage.classList.add("slow"), 1000);
    try {
      const found = await this.backend.ask(name, body, signal);
      if (this.goneNote) this.goneNote.remove();
      return found;
    } finally {
      clearTimeout(slow);
      clearTimeout(slower);
      this.busy.hidden = true;
      this.stage.classList.remove("slow");
    }
  }

  // A question whose failure is told in a line.
  async quietly(name, body) {
    try {
      return await this.question(name, body);
    } catch (error) {
      this.failed(error, () => {});
      return null;
    }
  }

  failed(error, again) {
    if (error.status === 403) return this.toast(error.message, true) || false;
    if (this.goneNote) this.goneNote.remove();
    this.goneNote = make("div", "gone", this.stage);
    this.goneNote.setAttribute("role", "alert");
    const text = error.status ? "This question failed." : "The Python process has ended. What you see is its last answer.";
    make("span", "", this.goneNote, text);
    button("Try again", "line", this.goneNote, () => {
      this.goneNote.remove();
      again();
    });
    return false;
  }

  stopPanels() {
    if (this.panelAbort) this.panelAbort.abort();
    this.panelAbort = null;
  }

  // Panels come after the beliefs, each when it is ready; the next click cancels them.
  async askPanels() {
    this.stopPanels();
    const abort = (this.panelAbort = new AbortController());
    const body = { case: this.findings, target: this.target, state: this.targetState, log_evidence: this.logEvidence };
    const ask = async (name, extra) => {
      try {
        const found = await this.backend.ask(name, { ...body, ...extra }, abort.signal);
        return abort.signal.aborted ? null : found;
      } catch {
        return null;
      }
    };
    const fill = (key, found) => {
      if (!found) return;
      this.panels[key] = found;
      if (key === "explain" && found.conflict !== undefined) {
        this.conflict = found.conflict;
        this.against = found.against;
        drawChrome(this);
        if (this.view === "graph") this.graph.update();
      }
      if (this.view === "graph") drawPanel(this, this.side);
    };
    if (this.view !== "graph") await this.drawView();
    else if (this.mode === "separation") await this.askSeparation(abort.signal);
    else if (this.mode === "compare") await this.askCompare(abort.signal);
    else {
      fill("explain", await ask("explain"));
      if (!abort.signal.aborted && this.can("next")) fill("next", await ask("next"));
      if (!abort.signal.aborted && this.can("story")) fill("story", await ask("story"));
    }
    if (!abort.signal.aborted) this.root.dataset.panels = this.asked;
  }

  async lookOn() {
    const left = this.panels.next.left;
    const found = await this.quietly("next", { case: this.findings, target: this.target, candidates: left, seconds: 3 });
    if (!found || found.error) return;
    this.panels.next.rows = [...this.panels.next.rows, ...found.rows].sort((a, b) => b[2] - a[2]);
    this.panels.next.left = found.left;
    drawPanel(this, this.side);
  }

  async askSeparation(signal) {
    this.source = this.source || this.target;
    const found = await this.backend.ask("separation", { case: this.findings, source: this.source }, signal).catch(() => null);
    if (!found || found.error) return;
    this.sep = found;
    this.graph.update();
    drawPanel(this, this.side);
  }

  async askCompare(signal) {
    this.findingsA = this.findingsA || [];
    const found = await this.backend.ask("ask", { case: this.findingsA, show: this.info.large ? this.shown() : null }, signal).catch(() => null);
    if (!found || !found.beliefs) return;
    this.beliefsA = found.beliefs;
    this.logA = found.log_evidence;
    this.graph.update();
    drawPanel(this, this.side);
  }

  refresh() {
    return this.commit(this.findings);
  }

  // ------------------------------------------------------------------------------------------ hands

  makeHands() {
    const type = (e) => (e.shiftKey ? "not" : e.altKey || this.mode === "do" ? "do" : "see");
    return {
      state: (node, state, e) => this.observe(node, state, type(e)),
      header: (node) => (this.mode === "separation" ? this.setSource(node.name) : this.setTarget(node.name)),
      value: (node, value, e) => {
        const finding = findingOf(this.current(), node.name);
        const same = finding && finding.value === value;
        if (same) this.takeBack(node.name);
        else this.put({ name: node.name, type: type(e) === "do" ? "do" : "see", value });
      },
      menu: (node, state, e) => {
        e.preventDefault();
        nodeMenu(this, node, state, e.clientX, e.clientY);
      },
      more: (node, e) => statesDialog(this, node, e.clientX, e.clientY),
      open: (node) => (this.mode === "separation" ? this.setSource(node.name) : this.graph.openPeek(node.name)),
    };
  }

  current() {
    return this.wanted || this.findings;
  }

  observe(node, state, type) {
    if (type === "do" && this.info.cannot.do) return this.toast(this.info.cannot.do);
    return this.commit(clicked(this.current(), node, state, type));
  }

  put(finding) {
    if (finding.type === "do" && this.info.cannot.do) return this.toast(this.info.cannot.do);
    return this.commit(withFinding(this.current(), finding.name, finding));
  }

  takeBack(name) {
    return this.commit(withFinding(this.current(), name, null));
  }

  undo() {
    return this.step(-1);
  }

  redo() {
    return this.step(1);
  }

  // Two steps while the first is still asked for are two steps.
  async step(way) {
    if (this.other) return this.other.undo && this.other.undo(way);
    const at = this.wantedAt + way;
    if (at >= 0 && at < this.history.length) await this.commit(this.history[at], { at });
  }

  saveCase() {
    nameDialog(this, "Name of this case", (name) => {
      this.cases = { ...this.cases, [name]: this.findings };
      this.keep();
      drawPanel(this, this.side);
    });
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

  pickState() {
    const node = this.nodeOf(this.target);
    if (!node.states) this.targetState = null;
    else if (!node.states.includes(this.targetState)) this.targetState = node.states[node.states.length - 1];
  }

  async setTarget(name, state) {
    this.target = name;
    this.targetState = state || this.targetState;
    if (!this.scene.nodes.some((node) => node.name === name)) await this.loadScene(name);
    this.pickState();
    this.panels = {};
    this.keep();
    this.graph.update();
    drawPanel(this, this.side);
    if (this.beliefs[name] === undefined) return this.refresh();
    return this.askPanels();
  }

  async loadScene(center) {
    const scene = await this.quietly("scene", { center });
    if (!scene || scene.error) return;
    this.scene = scene;
    this.prior = scene.prior;
    this.focus = center;
    this.graph.closePeek();
    this.graph.draw();
    await this.refresh();
  }

  setSource(name) {
    this.source = name;
    this.keep();
    return this.askPanels();
  }

  setMode(mode) {
    this.mode = mode;
    this.sep = null;
    if (mode === "compare" && !this.findingsA) this.startCompare();
    if (mode !== "compare") this.beliefsA = null;
    this.keep();
    drawChrome(this);
    this.graph.update();
    drawPanel(this, this.side);
    this.askPanels();
  }

  startCompare() {
    this.findingsA = this.findings;
    this.keep();
    if (this.ready && this.mode === "compare") this.askPanels();
  }

  setView(view) {
    this.view = view;
    this.shownStep = 1;
    this.viewData = null;
    this.graph.closePeek();
    this.keep();
    drawChrome(this);
    if (view === "graph") {
      this.graph.draw();
      drawPanel(this, this.side);
    }
    return this.askPanels();
  }

  async drawView() {
    const view = this.view;
    const body = { case: this.findings, method: this.method };
    const key = JSON.stringify([view, body]);
    if (!this.viewData || this.viewKey !== key) {
      const found = await this.quietly(view, body);
      if (!found || this.view !== view || JSON.stringify(this.findings) !== JSON.stringify(body.case)) return;
      if (found.error) {
        this.toast(found.error);
        return this.setView("graph");
      }
      this.viewData = found;
      this.viewKey = key;
    }
    this.side.textContent = "";
    this.graph.mini.style.display = "none";
    if (view === "tree") {
      drawTree(this, this.graph, this.viewData);
      treePanel(this, this.side, this.viewData);
    } else {
      drawMessages(this, this.graph, this.viewData);
      messagePanel(this, this.side, this.viewData);
    }
    this.root.dataset.view = view + this.shownStep + this.method;
  }

  setStep(step) {
    this.shownStep = Math.min(Math.max(step, 1), this.viewData.steps.length);
    this.drawView();
  }

  setMethod(method) {
    this.method = method;
    this.shownStep = 1;
    this.drawView();
  }

  play() {
    if (this.playing) {
      clearInterval(this.playing);
      this.playing = null;
      return this.drawView();
    }
    this.playing = setInterval(() => {
      if (this.view !== "messages" || this.shownStep >= this.viewData.steps.length) {
        clearInterval(this.playing);
        this.playing = null;
        if (this.view === "messages") this.drawView();
      } else this.setStep(this.shownStep + 1);
    }, 900);
    this.drawView();
  }

  showBlanket(node) {
    this.blanket = this.blanket && this.blanketOf === node.name ? null : node.blanket;
    this.blanketOf = node.name;
    this.graph.update();
    if (this.blanket) this.toast(`Given ${node.blanket.join(", ") || "nothing"}, nothing else tells about ${node.name}.`);
  }

  setTheme(dark) {
    this.dark = dark;
    this.root.classList.toggle("dark", dark);
    this.keep();
  }

  search(title, run) {
    searchDialog(this, title, run);
  }

  async goTo(name) {
    if (!this.scene.nodes.some((node) => node.name === name)) await this.setTarget(name);
    if (this.view !== "graph") this.setView("graph");
    this.focusNode(name);
  }

  async copyPython() {
    const found = await this.quietly("python", { case: this.findings, target: this.target });
    if (!found) return;
    if (found.error) return this.toast(found.error);
    this.copied = found.text;
    try {
      await navigator.clipboard.writeText(found.text);
      this.toast("Copied.");
    } catch {
      textDialog(this, "Copy as Python", found.text); // no clipboard without permission
    }
  }

  toast(text, stay) {
    if (this.toastNote) this.toastNote.remove();
    this.toastNote = make("div", "toast", this.stage, text);
    this.toastNote.setAttribute("role", "alert");
    clearTimeout(this.toastTimer);
    if (!stay) this.toastTimer = setTimeout(() => this.toastNote && this.toastNote.remove(), 6000);
  }

  closePeek() {
    const had = this.graph.peek && this.graph.peek.node.name;
    if (!this.graph.closePeek()) return false;
    this.focusNode(had);
    return true;
  }

  // ------------------------------------------------------------------------------------------ keys

  setFocus(name) {
    const old = this.graph.parts.get(this.focus);
    if (old) old.g.setAttribute("tabindex", -1);
    this.focus = name;
    const parts = this.graph.parts.get(name);
    if (parts) parts.g.setAttribute("tabindex", 0);
  }

  focusNode(name) {
    const parts = this.graph.parts.get(name);
    if (!parts) return;
    this.setFocus(name);
    this.graph.show(name);
    parts.g.focus({ preventScroll: true });
  }
}

export function mount(root, backend, options = {}) {
  const app = new App(root, backend, options);
  root.explorer = app;
  app.start();
  return app;
}
