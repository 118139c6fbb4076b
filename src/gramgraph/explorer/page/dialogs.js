// What opens over the page: the menu of a node, likelihoods, typed values, tables, the plan, keys, search, export.
import { button, clamp, make, number, percent } from "./base.js";
import { findingOf } from "./case.js";

// A dialog that takes the keyboard, gives it back, and closes with Escape.
export function popup(app, title, x, y, className) {
  closePopup(app);
  const box = make("div", "pop " + (className || ""), app.root);
  const before = document.activeElement;
  box.setAttribute("role", className === "menu" ? "menu" : "dialog");
  box.setAttribute("aria-label", title);
  box.tabIndex = -1;
  if (className !== "menu") make("h3", "", box, title);
  app.popup = { box, before };
  box.addEventListener("keydown", (e) => {
    if (e.key === "Escape") {
      e.stopPropagation();
      closePopup(app);
    }
  });
  const settle = () => {
    const room = app.root.getBoundingClientRect();
    box.style.left = clamp(x - room.left, 8, Math.max(8, room.width - box.offsetWidth - 8)) + "px";
    box.style.top = clamp(y - room.top, 8, Math.max(8, room.height - box.offsetHeight - 8)) + "px";
  };
  requestAnimationFrame(() => {
    settle();
    if (!box.contains(document.activeElement)) (box.querySelector("input, button, select") || box).focus();
  });
  box.settle = settle;
  return box;
}

export function closePopup(app) {
  if (!app.popup) return false;
  const { box, before } = app.popup;
  app.popup = null;
  const inside = box.contains(document.activeElement);
  box.remove();
  if (inside && before && before.isConnected) before.focus({ preventScroll: true });
  return true;
}

function centered(app) {
  const box = app.root.getBoundingClientRect();
  return [box.left + box.width / 2 - 160, box.top + 120];
}

export function nodeMenu(app, node, state, x, y) {
  const box = popup(app, "Menu of " + node.name, x, y, "menu");
  const entry = (text, run, disabled) => {
    const b = button(text, "", box, () => {
      closePopup(app);
      run();
    });
    b.setAttribute("role", "menuitem");
    if (disabled) {
      b.disabled = true;
      b.title = disabled;
    }
  };
  const cannotSet = app.info.cannot.do;
  const finding = findingOf(app.findings, node.name);
  if (app.graph.level === "compact" && app.graph.parts.has(node.name) && !app.graph.peek) entry("Open", () => app.graph.openPeek(node.name));
  if (state) {
    entry("Observe " + state, () => app.observe(node, state, "see"));
    entry("Not " + state, () => app.observe(node, state, "not"));
    entry("Set to " + state, () => app.observe(node, state, "do"), cannotSet);
  }
  if (node.kind === "discrete") entry("Uncertain…", () => likelihoodDialog(app, node, x, y));
  if (node.kind === "real" || node.kind === "circle") entry("Type a value…", () => valueDialog(app, node, x, y));
  if (finding) entry("Take back", () => app.takeBack(node.name));
  if (app.mode === "separation") entry("Ask what tells about it", () => app.setSource(node.name));
  else entry("Make target", () => app.setTarget(node.name, state));
  if (app.info.directed) entry("Show table", () => tableDialog(app, node, x, y), app.can("table") ? "" : "Tables are shown while Python runs.");
  entry("Markov blanket", () => app.showBlanket(node));
}

export function likelihoodDialog(app, node, x, y) {
  const box = popup(app, "How likely is what you saw, if " + node.name + " is\u00a0…", x, y);
  const old = findingOf(app.findings, node.name);
  const start = old && old.type === "like" ? old.w : node.states.map(() => 1);
  const inputs = node.states.map((state, k) => {
    const label = make("label", "field", box);
    make("span", "", label, state).title = state;
    const input = make("input", "", label);
    input.type = "range";
    input.min = 0;
    input.max = 1;
    input.step = 0.01;
    input.value = start[k] / Math.max(...start);
    const text = make("span", "", label, Number(input.value).toFixed(2));
    input.addEventListener("input", () => (text.textContent = Number(input.value).toFixed(2)));
    return input;
  });
  const row = make("div", "pair", box);
  button("Apply", "line main", row, () => {
    const w = inputs.map((input) => Number(input.value));
    closePopup(app);
    if (w.some((v) => v > 0)) app.put({ name: node.name, type: "like", value: null, w });
  });
  button("Cancel", "line", row, () => closePopup(app));
}

export function valueDialog(app, node, x, y) {
  const box = popup(app, node.kind === "circle" ? `${node.name}, in degrees` : node.name, x, y);
  const label = make("label", "field", box);
  make("span", "", label, "Value");
  const input = make("input", "", label);
  input.inputMode = "decimal";
  const hint = make("p", "hint", box, "");
  const take = (type) => {
    const value = Number(input.value.replace(",", ".").replace("−", "-"));
    if (input.value.trim() === "" || !Number.isFinite(value)) {
      hint.textContent = "This is not a number.";
      return;
    }
    closePopup(app);
    app.put({ name: node.name, type, value: node.kind === "circle" ? turned(value) : value });
  };
  input.addEventListener("keydown", (e) => e.key === "Enter" && take("see"));
  const row = make("div", "pair", box);
  button("Observe", "line main", row, () => take("see"));
  const set = button("Set", "line", row, () => take("do"));
  set.disabled = Boolean(app.info.cannot.do);
}

// Degrees as radians between −π and π: 190 and −170 are one direction.
export function turned(value) {
  const whole = (((value + 180) % 360) + 360) % 360 - 180;
  return ((whole === -180 ? 180 : whole) * Math.PI) / 180;
}

export async function tableDialog(app, node, x, y) {
  const found = await app.quietly("table", { name: node.name });
  if (!found) return;
  const box = popup(app, "Table of " + node.name, x, y);
  box.style.width = "auto";
  if (found.error || found.text) {
    make("p", "", box, found.error || found.text);
    return;
  }
  const table = make("table", "", box);
  const head = make("tr", "", make("thead", "", table));
  for (const name of [...found.parents, ...found.states]) make("th", "", head, name).scope = "col";
  const body = make("tbody", "", table);
  const cells = [];
  for (const [given, row] of found.rows.slice(0, 400)) {
    const line = make("tr", "", body);
    for (const state of given) make("th", "", line, state).scope = "row";
    cells.push(row.map((p) => {
      const cell = make("td", "heat", line, percent(p));
      cell.title = String(p);
      cell.style.background = `color-mix(in srgb, var(--belief3) ${Math.round(100 * p)}%, var(--surface))`;
      return cell;
    }));
  }
  if (found.rows.length > 400) make("p", "", box, `${found.rows.length - 400} more rows`);
  else if (app.info.edits) {
    const pair = make("div", "pair", box);
    const begin = button("Edit", "line", pair, () => {
      begin.remove();
      editTable(app, found, cells, box, pair);
    });
  }
  box.settle();
}

// The numbers become fields. What is applied is another model, with the same case.
function editTable(app, found, cells, box, pair) {
  const inputs = cells.map((row, i) => row.map((cell, k) => {
    cell.textContent = "";
    const input = make("input", "", cell);
    input.value = String(Number(found.rows[i][1][k].toPrecision(12)));
    input.inputMode = "decimal";
    input.setAttribute("aria-label", [...found.rows[i][0], found.states[k]].join(", "));
    return input;
  }));
  make("p", "hint", box, "Rows are scaled to sum to one.");
  button("Apply", "line main", pair, async () => {
    const rows = inputs.map((row) => row.map((input) => (input.value.trim() === "" ? 0 : Number(input.value.replace(",", ".")))));
    if (rows.flat().some((x) => !Number.isFinite(x))) return app.toast("A table holds numbers.");
    const made = await app.quietly("edit", { name: found.name, rows });
    if (!made) return;
    if (made.error) return app.toast(made.error);
    closePopup(app);
    app.openModel(made.model, app.findings);
  });
  button("Cancel", "line", pair, () => closePopup(app));
  inputs[0][0].focus();
  box.settle();
}

export function statesDialog(app, node, x, y) {
  const box = popup(app, node.name, x, y);
  const list = make("div", "list", box);
  node.states.forEach((state, k) => {
    const b = button("", "", list, (e) => {
      closePopup(app);
      app.hands.state(node, state, e);
    });
    make("span", "", b, state);
    make("span", "", b, percent((app.beliefs[node.name] || [])[k]));
  });
}

export async function planDialog(app, anchor) {
  const found = await app.quietly("plan", { case: app.findings });
  if (!found) return;
  const at = anchor.getBoundingClientRect();
  const box = popup(app, "How this was answered", at.left, at.bottom + 4);
  make("p", "", box, (found.error || found.reason || "").replace(/^./, (c) => c.toUpperCase()) + ".");
  if (app.engine) make("p", "", box, `Engine: ${app.engine.replace(/_/g, " ")}${app.exact ? ", exact" : ", approximate: " + (app.reason || "")}.`);
  const list = make("dl", "", box);
  for (const [key, value] of found.rows || []) {
    make("dt", "", list, key);
    make("dd", "", list, value);
  }
}

export const KEYS = [
  ["Tab", "into the graph"], ["← ↑ → ↓", "next variable"], ["Alt + arrows", "along the arcs"], ["Enter", "into the states"], ["Esc", "out again"],
  ["Space", "observe"], ["N", "not this"], ["D", "set (do)"], ["U", "uncertain"], ["T", "make target"], ["Delete", "take back"],
  ["Ctrl Z", "undo"], ["Ctrl Shift Z", "redo"], ["/", "search"], ["F", "fit"], ["+ −", "zoom"], ["1 – 4", "modes"], ["P", "plan"], ["C", "copy as Python"], ["E", "export"], ["B", "best to observe next"], ["?", "this list"],
];

const CLICKS = [
  ["click", "observe a state; again, take it back"], ["Shift + click", "not this state"], ["Alt + click", "set the variable (do)"],
  ["right click", "menu: uncertain, table, …"], ["click a name", "make it the target"], ["drag, wheel", "move and zoom the drawing"],
];

export function keysDialog(app) {
  const [x] = centered(app);
  const box = popup(app, "Keys and clicks", x, app.root.getBoundingClientRect().top + 56);
  const list = make("dl", "", box);
  for (const [key, text] of app.other ? KEYS.filter(([key]) => key.startsWith("Ctrl")) : [...CLICKS, ...KEYS]) {
    make("kbd", "", make("dt", "", list), key);
    make("dd", "", list, text);
  }
}

export function searchDialog(app, title, run) {
  const [x, y] = centered(app);
  const box = popup(app, title, x, y);
  const input = make("input", "", box);
  input.placeholder = "Name of a variable";
  input.setAttribute("aria-label", title);
  input.style.width = "100%";
  const list = make("div", "list", box);
  const fill = () => {
    const wanted = input.value.trim().toLowerCase();
    const names = app.info.names.filter((name) => name.toLowerCase().includes(wanted));
    names.sort((a, b) => (b.toLowerCase().startsWith(wanted) ? 1 : 0) - (a.toLowerCase().startsWith(wanted) ? 1 : 0));
    list.textContent = "";
    for (const name of names.slice(0, 50)) button(name, "", list, () => {
      closePopup(app);
      run(name);
    });
    if (!names.length) make("p", "hint", list, "No variable has this name.");
  };
  input.addEventListener("input", fill);
  input.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && list.firstChild && list.firstChild.click) list.firstChild.click();
  });
  fill();
  input.focus();
}

export function textDialog(app, title, text) {
  const [x, y] = centered(app);
  const box = popup(app, title, x, y);
  const area = make("textarea", "", box);
  area.value = text;
  area.readOnly = true;
  area.rows = Math.min(12, text.split("\n").length);
  area.setAttribute("aria-label", title);
  area.focus();
  area.select();
}

export function nameDialog(app, title, run) {
  const [x, y] = centered(app);
  const box = popup(app, title, x, y);
  const input = make("input", "", box);
  input.setAttribute("aria-label", title);
  input.style.width = "100%";
  const done = () => {
    const name = input.value.trim();
    closePopup(app);
    if (name) run(name);
  };
  input.addEventListener("keydown", (e) => e.key === "Enter" && done());
  button("Save", "line main", make("div", "pair", box), done);
}

export function download(name, data, type) {
  const url = URL.createObjectURL(new Blob([data], { type }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// The drawing as it stands, with the colors written in: a picture that needs no style sheet.
export function drawingText(canvas, root) {
  const copy = canvas.cloneNode(true);
  const keys = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "stroke-opacity", "font-size", "font-weight", "font-family", "text-anchor", "display", "text-decoration"];
  const from = [canvas, ...canvas.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((e, i) => {
    const style = getComputedStyle(from[i]);
    for (const key of keys) {
      const value = style.getPropertyValue(key);
      if (value && value !== "normal" && !(key === "opacity" && value === "1")) e.setAttribute(key, value);
    }
    e.removeAttribute("class");
    e.removeAttribute("tabindex");
  });
  const box = canvas.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", Math.round(box.width));
  copy.setAttribute("height", Math.round(box.height));
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", getComputedStyle(root).backgroundColor);
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

export function exportDialog(app, anchor) {
  const at = anchor.getBoundingClientRect();
  const box = popup(app, "Export", at.left - 120, at.bottom + 4);
  const list = make("div", "list", box);
  const title = app.info.title.replace(/[^\w.-]+/g, "_") || "model";
  const canvas = app.root.querySelector("svg.canvas");
  button("Drawing as SVG", "", list, () => download(title + ".svg", drawingText(canvas, app.root), "image/svg+xml"));
  button("Drawing as PNG", "", list, () => picture(canvas, app.root, title));
  button("Case as JSON", "", list, () => download(title + "-case.json", JSON.stringify(app.other ? { model: app.info.title, ...app.other.kept() } : { model: app.info.title, findings: app.findings, log_evidence: app.logEvidence, beliefs: app.beliefs }, null, 2), "application/json"));
  if (app.can("save")) for (const [suffix, name] of app.info.formats) {
    button("Model as " + name, "", list, async () => {
      const found = await app.quietly("save", { format: suffix });
      if (!found) return;
      if (found.error) return app.toast(found.error);
      const bytes = Uint8Array.from(atob(found.data), (c) => c.charCodeAt(0));
      download(`${title}.${found.suffix}`, bytes, "application/octet-stream");
    });
  }
}

function picture(canvas, root, title) {
  const text = drawingText(canvas, root);
  const image = new Image();
  image.onload = () => {
    const paper = document.createElement("canvas");
    paper.width = 2 * image.width;
    paper.height = 2 * image.height;
    paper.getContext("2d").drawImage(image, 0, 0, paper.width, paper.height);
    paper.toBlob((blob) => download(title + ".png", blob, "image/png"));
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
}

export function numberText(x) {
  return number(x);
}
