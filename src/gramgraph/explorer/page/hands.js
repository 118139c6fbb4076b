// What the hands do: clicks, undo and redo, target and mode, where the keyboard stands.
import { clicked, findingOf, withFinding } from "./case.js";
import { nameDialog, nodeMenu, searchDialog, statesDialog, textDialog } from "./dialogs.js";
import { drawChrome } from "./frame.js";
import { drawPanel } from "./panel.js";
import { Showing } from "./showing.js";

export class Hands extends Showing {
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

  setTheme(dark) {
    this.dark = dark;
    this.root.classList.toggle("dark", dark);
    this.keep();
  }

  showBlanket(node) {
    this.blanket = this.blanket && this.blanketOf === node.name ? null : node.blanket;
    this.blanketOf = node.name;
    this.graph.update();
    if (this.blanket) this.toast(`Given ${node.blanket.join(", ") || "nothing"}, nothing else tells about ${node.name}.`);
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

  pickState() {
    const node = this.nodeOf(this.target);
    if (!node.states) this.targetState = null;
    else if (!node.states.includes(this.targetState)) this.targetState = node.states[node.states.length - 1];
  }

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

  closePeek() {
    const had = this.graph.peek && this.graph.peek.node.name;
    if (!this.graph.closePeek()) return false;
    this.focusNode(had);
    return true;
  }
}
