// The keyboard: between variables, into their states, along arcs, and the letters that do what buttons do.
import { findingOf } from "./case.js";
import { closePopup, exportDialog, keysDialog, likelihoodDialog, nodeMenu, planDialog, valueDialog } from "./dialogs.js";

const MODE_KEYS = ["observe", "do", "separation", "compare"];

export function pressKey(app, e) {
  if (!app.info || e.defaultPrevented) return;
  const few = app.other && !(e.key === "Escape" || e.ctrlKey || e.metaKey || (e.key === "e" && !app.exportButton.hidden));
  if (few) return;
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(e.target.tagName);
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "z") {
    e.preventDefault();
    if (e.shiftKey) app.redo();
    else app.undo();
    return;
  }
  if (typing || e.ctrlKey || e.metaKey) return;
  if (app.popup && app.popup.box.contains(e.target)) return menuKey(app, e);
  if (e.key === "Escape" && (closePopup(app) || app.closePeek())) return;
  const at = e.target.closest ? e.target.closest(".node") : null;
  if (at && nodeKey(app, e, at)) {
    e.preventDefault();
    return;
  }
  const run = {
    "/": () => app.search("Go to", (name) => app.goTo(name)), "?": () => keysDialog(app), f: () => app.graph.fit(true),
    "+": () => app.graph.zoom(1.25), "-": () => app.graph.zoom(0.8), p: () => planDialog(app, app.pill), c: () => app.copyPython(),
    e: () => exportDialog(app, app.exportButton), b: () => app.panels.next && app.panels.next.rows.length && app.goTo(app.panels.next.rows[0][0]),
  }[e.key.length === 1 ? e.key.toLowerCase() : e.key];
  if (run) {
    e.preventDefault();
    run();
  } else if (/^[1-4]$/.test(e.key)) app.modeButtons.run(MODE_KEYS[Number(e.key) - 1]);
}

function menuKey(app, e) {
  if (!["ArrowDown", "ArrowUp"].includes(e.key)) return;
  const all = [...app.popup.box.querySelectorAll("button:not(:disabled), input")];
  const next = all[(all.indexOf(e.target) + (e.key === "ArrowDown" ? 1 : -1) + all.length) % all.length];
  if (next) next.focus();
  e.preventDefault();
}

function nodeKey(app, e, g) {
  const peek = app.graph.peek && app.graph.peek.g === g ? app.graph.peek : null;
  const parts = peek || [...app.graph.parts.values()].find((p) => p.g === g);
  if (!parts) return false;
  const row = parts.rows.find((r) => r.g === e.target);
  if (row || parts.plot === e.target) return stateKey(app, e, parts, row);
  const node = parts.node;
  if (e.key.startsWith("Arrow")) return walk(app, e, node.name);
  if (e.key === "Enter" || (e.key === " " && parts.level === "compact")) {
    if (parts.level === "compact") app.graph.openPeek(node.name);
    else if (parts.rows.length) parts.rows[Math.max(0, parts.rows.findIndex((r) => r.g.classList.contains("on")))].g.focus();
    else if (parts.plot) parts.plot.focus();
    return true;
  }
  if (e.key === "ContextMenu" || (e.key === "F10" && e.shiftKey)) {
    const box = g.getBoundingClientRect();
    nodeMenu(app, node, null, box.left + 20, box.top + 30);
    return true;
  }
  return commonKey(app, e, node, null);
}

function commonKey(app, e, node, state) {
  const key = e.key.toLowerCase();
  const box = e.target.getBoundingClientRect();
  if (key === "t") app.mode === "separation" ? app.setSource(node.name) : app.setTarget(node.name, state);
  else if (key === "u" && node.kind === "discrete") likelihoodDialog(app, node, box.left, box.bottom);
  else if (e.key === "Delete" || e.key === "Backspace") app.takeBack(node.name);
  else return false;
  return true;
}

function stateKey(app, e, parts, row) {
  const node = parts.node;
  const state = row && row.state >= 0 ? node.states[row.state] : null;
  if (e.key === "Escape") parts.g.focus();
  else if (row && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
    const rows = parts.rows.filter((r) => r.state >= 0);
    rows[(rows.indexOf(row) + (e.key === "ArrowDown" ? 1 : -1) + rows.length) % rows.length].g.focus();
  } else if (state && (e.key === " " || e.key === "Enter")) app.observe(node, state, app.mode === "do" ? "do" : "see");
  else if (state && e.key.toLowerCase() === "n") app.observe(node, state, "not");
  else if (state && e.key.toLowerCase() === "d") app.observe(node, state, "do");
  else if (!row) return plotKey(app, e, parts);
  else return commonKey(app, e, node, state);
  return true;
}

// On a curve or ring: arrows move the observed value by 1/200 of the range (1°), Space or Enter types one.
function plotKey(app, e, parts) {
  const node = parts.node;
  const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[e.key];
  const box = parts.g.getBoundingClientRect();
  if (e.key === " " || e.key === "Enter") valueDialog(app, node, box.left, box.bottom);
  else if (way) {
    const now = app.beliefs[node.name];
    const from = now.value !== undefined ? now.value : now.mean !== undefined ? now.mean : now.dir;
    const step = node.kind === "circle" ? Math.PI / 180 : (node.range[1] - node.range[0]) / 200;
    let value = from + way * step;
    if (node.kind === "circle") value = Math.atan2(Math.sin(value), Math.cos(value));
    const old = findingOf(app.findings, node.name);
    app.put({ name: node.name, type: old && old.type === "do" ? "do" : "see", value });
  } else return commonKey(app, e, node, null);
  return true;
}

function walk(app, e, name) {
  const { nodes, edges, order } = app.scene;
  const at = nodes.findIndex((node) => node.name === name);
  if (e.altKey) {
    const up = e.key === "ArrowUp" || e.key === "ArrowLeft";
    const next = edges.filter(([a, b]) => (up ? b : a) === at).map(([a, b]) => (up ? a : b));
    if (next.length) app.focusNode(nodes[next[0]].name);
    return true;
  }
  const step = e.key === "ArrowRight" || e.key === "ArrowDown" ? 1 : -1;
  app.focusNode(nodes[order[(order.indexOf(at) + step + order.length) % order.length]].name);
  return true;
}
