// What is asked of the backend: the whole case with each click, then the panels; what comes late is dropped.
import { button, make, number, percent } from "./base.js";
import { findingOf, saidOf } from "./case.js";
import { drawChrome } from "./frame.js";
import { drawPanel } from "./panel.js";

export class Asking {
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
    const began = performance.now();
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
      this.askPanels();
      return false;
    }
    if (at !== null) this.at = at;
    else if (JSON.stringify(findings) !== JSON.stringify(this.findings)) {
      this.history = [...this.history.slice(0, this.at + 1), findings];
      this.at++;
    }
    this.wantedAt = this.at;
    this.took = performance.now() - began;
    this.adopt(findings, found);
    return true;
  }

  shown() {
    return [...new Set([...this.scene.nodes.map((node) => node.name), this.target])];
  }

  adopt(findings, found) {
    const news = findings.find((f) => JSON.stringify(findingOf(this.findings, f.name)) !== JSON.stringify(f));
    const was = this.beliefs[this.target];
    this.take(findings, found);
    drawChrome(this);
    if (this.view === "graph") {
      this.graph.update();
      drawPanel(this, this.side);
    }
    this.tell(news, was);
  }

  take(findings, found) {
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
  }

  tell(news, was) {
    this.keep();
    this.say(news, was);
    this.painted();
    this.askPanels({ rest: true });
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

  // Panels come after the beliefs, each when it is ready; the next click cancels them. Where an answer takes long, they
  // wait until the hand rests.
  async askPanels({ rest = false } = {}) {
    this.stopPanels();
    delete this.root.dataset.panels;
    const abort = (this.panelAbort = new AbortController());
    if (rest && this.took > 100) await new Promise((done) => setTimeout(done, 300));
    if (abort.signal.aborted) return;
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

  current() {
    return this.wanted || this.findings;
  }
}
