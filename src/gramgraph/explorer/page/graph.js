// The graph: nodes and edges where Python placed them, pan and zoom, a small map while part of it is outside.
import { button, clamp, make, shape } from "./base.js";
import { findingOf } from "./case.js";
import { arcMenu, arcState } from "./learn.js";
import { buildNode, updateNode } from "./node.js";

const EDGE_TIP = 4;

export class Graph {
  constructor(app, stage) {
    this.app = app;
    this.stage = stage;
    this.canvas = shape("svg", { class: "canvas", role: "group", "aria-label": "The network. Arrow keys move between variables, Enter opens one." }, stage);
    this.root = shape("g", { class: "root" }, this.canvas);
    this.view = { k: 1, x: 0, y: 0 };
    this.level = "full";
    this.parts = new Map();
    this.buildControls();
    this.listen();
  }

  buildControls() {
    this.mini = shape("svg", { class: "mini", "aria-hidden": "true" }, this.stage);
    const zoom = make("div", "zoom", this.stage);
    button("−", "", zoom, () => this.zoom(0.8), "Zoom out");
    this.zoomText = make("span", "", zoom);
    button("+", "", zoom, () => this.zoom(1.25), "Zoom in");
    button("Fit", "", zoom, () => this.fit(true));
    this.zoomBox = zoom;
  }

  listen() {
    this.canvas.addEventListener("wheel", (e) => {
      e.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      this.zoom(Math.exp(-e.deltaY / 500), e.clientX - box.left, e.clientY - box.top);
    }, { passive: false });
    let held = null;
    this.canvas.addEventListener("pointerdown", (e) => {
      if (e.target === this.canvas || e.target.classList.contains("edge")) held = [e.clientX - this.view.x, e.clientY - this.view.y];
    });
    this.canvas.addEventListener("pointermove", (e) => {
      if (!held) return;
      this.view.x = e.clientX - held[0];
      this.view.y = e.clientY - held[1];
      this.move();
    });
    for (const end of ["pointerup", "pointerleave"]) this.canvas.addEventListener(end, () => (held = null));
    this.canvas.addEventListener("click", (e) => e.target === this.canvas && this.app.closePeek());
  }

  room() {
    const box = this.stage.getBoundingClientRect();
    return [Math.max(box.width - 64, 100), Math.max(box.height - 96, 100)];
  }

  // Bars where they fit at 80 %, else compact: a first view that can be read.
  choose() {
    const { full, compact } = this.app.scene;
    if (!full) return "compact";
    const [w, h] = this.room();
    return Math.min(w / full.w, h / full.h) >= 0.8 || !compact ? "full" : "compact";
  }

  draw() {
    this.level = this.app.level || this.choose();
    this.place = this.app.scene[this.level];
    this.build();
    this.fit(false);
    this.update();
  }

  build() {
    const { app, place } = this;
    const scene = app.scene;
    this.root.textContent = "";
    this.parts = new Map();
    this.root.classList.toggle("still", scene.nodes.length > 100);
    const under = shape("g", { class: "edges" }, this.root);
    this.edges = scene.edges.map(([a, b], i) => this.buildEdge(under, scene.nodes[a].name, scene.nodes[b].name, place.edges[i]));
    const over = shape("g", { class: "nodes" }, this.root);
    // In topological order: that is how arrow keys and screen readers walk.
    for (const i of scene.order) {
      const node = scene.nodes[i];
      const parts = buildNode(over, node, place.nodes[i], place.names[i], this.level === "full" ? place.labels[i] : [], this.level, app.hands);
      parts.box = place.nodes[i];
      this.listenNode(parts);
      this.parts.set(node.name, parts);
    }
    const first = this.parts.get(app.focus) || this.parts.get(app.target) || this.parts.values().next().value;
    if (first) first.g.setAttribute("tabindex", 0);
    this.marks = shape("g", { class: "marks" }, this.root);
    this.over = shape("g", { class: "over" }, this.root);
  }

  buildEdge(parent, from, to, [path, x, y, down, x0, y0]) {
    const g = shape("g", { class: "arc2" }, parent);
    shape("path", { class: "edge", d: path }, g);
    const edge = { g, from, to, x, y, x0, y0, down, path };
    if (this.app.arcs && path) {
      const grip = shape("path", { class: "grip", d: path }, g);
      shape("title", {}, grip, `${from} → ${to}: click to require or forbid it`);
      for (const kind of ["click", "contextmenu"]) grip.addEventListener(kind, (e) => {
        e.preventDefault();
        arcMenu(this.app, edge, e.clientX, e.clientY);
      });
    }
    if (this.app.info.directed && path) {
      const back = y - down * 8;
      shape("path", { class: "tip", d: `M${x} ${y}L${x - EDGE_TIP} ${back}L${x + EDGE_TIP} ${back}Z` }, g);
    }
    return edge;
  }

  listenNode(parts) {
    const name = parts.node.name;
    const mark = (on) => this.edges.forEach((e) => (e.from === name || e.to === name) && e.g.classList.toggle("near", on));
    parts.g.addEventListener("pointerenter", () => mark(true));
    parts.g.addEventListener("pointerleave", () => mark(false));
    parts.g.addEventListener("focus", () => this.app.setFocus(name));
    parts.g.addEventListener("click", () => this.app.setFocus(name));
  }

  update() {
    const { app } = this;
    const now = app.beliefs;
    this.root.classList.toggle("dsep", app.mode === "separation" && Boolean(app.sep));
    this.root.classList.toggle("cmp", app.mode === "compare" && Boolean(app.beliefsA));
    for (const parts of this.parts.values()) updateNode(parts, now[parts.node.name], app);
    if (this.peek) updateNode(this.peek, now[this.peek.node.name], app);
    this.updateEdges();
    this.miniMap();
  }

  updateEdges() {
    const { app } = this;
    const set = new Set(app.findings.filter((f) => f.type === "do").map((f) => f.name));
    const active = new Set((app.mode === "separation" && app.sep ? app.sep.edges : []).map(([a, b]) => JSON.stringify([a, b].sort())));
    const stops = this.stops();
    this.marks.textContent = "";
    for (const edge of this.edges) {
      const cut = app.info.directed && set.has(edge.to);
      const on = active.has(JSON.stringify([edge.from, edge.to].sort()));
      edge.g.setAttribute("class", ["arc2", cut ? "cut" : "", on ? "active" : "", arcState(app.arcs, edge.from, edge.to) || ""].join(" ").trim());
      if (cut) for (const k of [0, 1]) {
        const y = edge.y - edge.down * (13 + 5 * k);
        shape("line", { class: "slash", x1: edge.x - 5, x2: edge.x + 5, y1: y + 2.5, y2: y - 2.5 }, this.marks);
      }
      if (!on) for (const end of ["from", "to"]) if (stops(edge, end)) this.stopAt(edge, end);
    }
    const blanket = app.blanket ? new Set(app.blanket) : null;
    for (const parts of this.parts.values()) parts.g.classList.toggle("blanket", Boolean(blanket && blanket.has(parts.node.name)));
  }

  // Where trails stop: at an observed variable that one arrives at, and at a common effect before its other causes.
  stops() {
    const { sep, mode } = this.app;
    if (mode !== "separation" || !sep) return () => false;
    const [reached, observed, closed] = [new Set([...sep.reached, sep.source]), new Set(sep.observed), new Set(sep.closed)];
    return (edge, end) => {
      const other = edge[end === "to" ? "from" : "to"];
      return (observed.has(edge[end]) && reached.has(other)) || (end === "to" && closed.has(edge.to) && !reached.has(other));
    };
  }

  stopAt(edge, end) {
    const [x, y] = end === "to" ? [edge.x, edge.y - edge.down * 13] : [edge.x0, edge.y0 + edge.down * 8];
    shape("line", { class: "stop", x1: x - 6, x2: x + 6, y1: y, y2: y }, this.marks);
  }

  // ------------------------------------------------------------------------------------------ pan and zoom

  fit(all) {
    const { place } = this;
    const [w, h] = this.room();
    const whole = Math.min(1.15, w / place.w, h / place.h);
    const k = all ? Math.max(whole, 0.2) : Math.max(whole, 0.8);
    this.view = { k, x: 32 + (w - place.w * k) / 2, y: 28 + (h - place.h * k) / 2 };
    if (k > whole && !all) this.center(this.app.target);
    this.move();
  }

  // A drawing that is no graph: whole where it can be read, else at 80 % with this point in the middle.
  fitPlace(at) {
    this.fit(true);
    if (this.view.k >= 0.8) return;
    const [w, h] = this.room();
    const [x, y] = at || [this.place.w / 2, 0];
    const k = 0.8;
    const along = (mid, size, room, off) => (size <= room ? off + (room - size) / 2 : clamp(off + room / 2 - mid, off + room - size, off));
    this.view = { k, x: along(x * k, this.place.w * k, w, 32), y: along(y * k, this.place.h * k, h, 28) };
    this.move();
  }

  center(name) {
    const parts = this.parts.get(name);
    if (!parts) return;
    const [w, h] = this.room();
    const [x, y, bw, bh] = parts.box;
    const at = (mid, size, room, off) => (size <= room ? off + (room - size) / 2 : clamp(off + room / 2 - mid, off + room - size, off));
    const k = this.view.k;
    this.view.x = at((x + bw / 2) * k, this.place.w * k, w, 32);
    this.view.y = at((y + bh / 2) * k, this.place.h * k, h, 28);
  }

  // Bring a node into sight when it is outside.
  show(name) {
    const parts = this.parts.get(name);
    if (!parts) return;
    const [x, y, w, h] = parts.box;
    const box = this.stage.getBoundingClientRect();
    const { k } = this.view;
    const left = this.view.x + x * k;
    const top = this.view.y + y * k;
    if (left >= 8 && top >= 8 && left + w * k <= box.width - 8 && top + h * k <= box.height - 8) return;
    this.view.x = box.width / 2 - (x + w / 2) * k;
    this.view.y = box.height / 2 - (y + h / 2) * k;
    this.move();
  }

  zoom(factor, x, y) {
    const box = this.canvas.getBoundingClientRect();
    const cx = x === undefined ? box.width / 2 : x;
    const cy = y === undefined ? box.height / 2 : y;
    const k = clamp(this.view.k * factor, 0.2, 2);
    this.view.x = cx - ((cx - this.view.x) * k) / this.view.k;
    this.view.y = cy - ((cy - this.view.y) * k) / this.view.k;
    this.view.k = k;
    this.move();
  }

  move() {
    const { k, x, y } = this.view;
    this.root.setAttribute("transform", `translate(${x.toFixed(1)},${y.toFixed(1)}) scale(${k.toFixed(4)})`);
    this.root.classList.toggle("far", this.level === "compact" && k < 0.72);
    this.zoomText.textContent = Math.round(100 * k) + "%";
    this.miniMap();
  }

  miniMap() {
    const { place, mini } = this;
    const box = this.stage.getBoundingClientRect();
    const { k, x, y } = this.view;
    const outside = this.app.view === "graph" && (x < -1 || y < -1 || x + place.w * k > box.width + 1 || y + place.h * k > box.height + 1);
    mini.style.display = outside ? "block" : "none";
    if (!outside) return;
    const z = Math.min(128 / place.w, 112 / place.h);
    mini.textContent = "";
    mini.setAttribute("width", place.w * z + 16);
    mini.setAttribute("height", place.h * z + 16);
    const g = shape("g", { transform: "translate(8,8)" }, mini);
    for (const parts of this.parts.values()) {
      const finding = findingOf(this.app.findings, parts.node.name);
      const [bx, by, bw, bh] = parts.box;
      shape("rect", { class: finding ? (finding.type === "do" ? "set" : "seen") : "", x: bx * z, y: by * z, width: Math.max(bw * z, 1), height: Math.max(bh * z, 1) }, g);
    }
    const left = clamp((-x / k) * z, -6, place.w * z);
    const top = clamp((-y / k) * z, -6, place.h * z);
    shape("rect", { class: "frame", x: left, y: top, rx: 3, width: Math.min((box.width / k) * z, place.w * z + 6 - left), height: Math.min((box.height / k) * z, place.h * z + 6 - top) }, g);
  }

  // ------------------------------------------------------------------------------------------ a compact node opened

  openPeek(name) {
    this.closePeek();
    const parts = this.parts.get(name);
    const node = parts.node;
    const [w, h] = node.size;
    const scale = 1 / this.view.k;
    const box = this.stage.getBoundingClientRect();
    const left = clamp(this.view.x + (parts.box[0] + parts.box[2] / 2) * this.view.k - w / 2, 8, Math.max(8, box.width - w - 8));
    const top = clamp(this.view.y + parts.box[1] * this.view.k - 12, 8, Math.max(8, box.height - h - 8));
    const holder = shape("g", { class: "peek", transform: `translate(${(left - this.view.x) * scale},${(top - this.view.y) * scale}) scale(${scale})` }, this.over);
    this.peek = buildNode(holder, node, [0, 0, w, h], node.name.length > 24 ? node.name.slice(0, 23) + "…" : node.name, node.labels || [], "full", this.app.hands);
    this.peek.box = parts.box;
    this.update();
    this.peek.g.setAttribute("tabindex", 0);
    this.peek.g.focus({ preventScroll: true });
  }

  closePeek() {
    if (!this.peek) return false;
    this.peek = null;
    this.over.textContent = "";
    return true;
  }
}
