// Sequences (state ribbons, filtering step by step) and Gaussian processes (click a point, move the parameters).
import { button, clamp, cutText, logText, make, number, percent, shape, textWidth, visible } from "./base.js";
import { section } from "./panel.js";

const LEFT = 56;
const RIGHT = 32;
const COLORS = 8;

export function mountOther(app, info) {
  app.info = { cannot: {}, can: [], names: [], formats: [], ...info };
  app.scene = { nodes: [], edges: [], order: [], full: { w: 1, h: 1, nodes: [], edges: [], names: [], labels: [] } };
  app.title.textContent = visible(info.title);
  if (app.backend.keepsFragment) document.title = info.title + " · gramgraph explorer";
  app.modeButtons.hidden = app.viewButtons.hidden = true;
  app.pill.hidden = app.warn.hidden = app.pythonButton.hidden = true;
  app.undoButton.disabled = app.redoButton.disabled = true;
  app.legend.hidden = app.searchButton.hidden = true;
  app.graph.mini.style.display = "none";
  app.graph.zoomBox.hidden = true;
  app.graph.root.removeAttribute("transform");
  app.graph.root.textContent = "";
  if (app.openButton) app.openButton.hidden = !info.learns && info.kind !== "empty";
  app.side.textContent = "";
  app.ready = true;
  if (info.kind === "sequence") app.other = new SequencePage(app, info);
  else if (info.kind === "process") app.other = new ProcessPage(app, info);
  else app.other = new EmptyPage(app);
  app.other.start();
}

// Round numbers inside a range, about as many as wanted.
export function ticks(low, high, count = 6) {
  const rough = (high - low) / count || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * ([1, 2, 5].find((m) => m * size >= rough) || 10);
  const out = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k++) out.push(Number((k * step).toPrecision(12)));
  return out;
}

class EmptyPage {
  constructor(app) {
    this.app = app;
  }

  start() {
    const { app } = this;
    app.exportButton.hidden = true;
    this.box = make("div", "drop still", app.stage);
    const inner = make("div", "", this.box);
    make("p", "", inner, "Drop a CSV, Parquet or network file here.");
    if (app.openButton) button("Open a file…", "line main", inner, () => app.openButton.click());
    make("p", "hint", section(app.side, "Nothing is open"), "A network opens as it is. From a table, a network is learned: you choose how its columns are taken, and which arcs must or must not be.");
  }

  kept() {
    return {};
  }

  end() {
    this.box.remove();
  }
}

class SequencePage {
  constructor(app, info) {
    Object.assign(this, { app, info, t: Math.min(Number(app.kept.t) || info.steps, info.steps), smooth: app.kept.way !== "filtered", asked: 0 });
  }

  kept() {
    return { t: this.t, way: this.smooth ? "smoothed" : "filtered" };
  }

  start() {
    const { app, info } = this;
    app.sizeText.textContent = `${info.words}, ${info.steps} steps`;
    const s = section(app.side, "Step", `of ${info.steps}`);
    const label = make("label", "field", s);
    make("span", "", label, "Known up to");
    this.slider = make("input", "", label);
    Object.assign(this.slider, { type: "range", min: 1, max: info.steps, step: 1, value: this.t });
    this.slider.setAttribute("aria-label", "Known up to step");
    this.text = make("span", "", label, String(this.t));
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    const row = make("div", "pair", s);
    button("Back", "line", row, () => this.go(this.t - 1));
    button("Next", "line", row, () => this.go(this.t + 1));
    this.way = button("Filtered", "line", row, () => {
      this.smooth = !this.smooth;
      app.keep();
      this.draw();
    });
    make("p", "hint", s, "Filtered: each step as it was known then. Smoothed: each step with all that is known up to the slider. Click a step in the drawing to go there.");
    this.now = section(app.side, "At this step");
    const { canvas } = app.graph;
    this.name = canvas.getAttribute("aria-label");
    canvas.setAttribute("aria-label", "The sequence. The numbers of a step stand in the panel.");
    this.click = (e) => this.go(Math.floor((e.clientX - canvas.getBoundingClientRect().left - LEFT) / this.width()) + 1);
    canvas.addEventListener("click", this.click);
    this.go(this.t);
  }

  end() {
    this.app.graph.canvas.removeEventListener("click", this.click);
    this.app.graph.canvas.setAttribute("aria-label", this.name);
  }

  width() {
    return (this.app.stage.getBoundingClientRect().width - LEFT - RIGHT) / this.info.steps;
  }

  async go(t) {
    this.t = clamp(t, 1, this.info.steps);
    this.slider.value = this.t;
    const n = ++this.asked;
    const found = await this.app.quietly("ask", { t: this.t, n });
    if (!found || n !== this.asked) return;
    if (found.error) return this.app.toast(found.error);
    this.found = found;
    this.draw();
    this.app.keep();
    this.app.root.dataset.answered = n;
    this.app.root.dataset.panels = n;
  }

  draw() {
    const { app, info, found } = this;
    if (!found) return;
    const shown = this.smooth ? found.smoothed : found.filtered;
    this.way.textContent = this.smooth ? "Show filtered" : "Show smoothed";
    this.text.textContent = String(this.t);
    app.logText.textContent = "log p(e) ";
    make("b", "", app.logText, logText(found.log_evidence));
    app.root.dataset.logEvidence = found.log_evidence;
    app.root.dataset.last = JSON.stringify(shown.map((rows) => (info.ribbons ? rows[rows.length - 1] : rows.map((r) => r[r.length - 1]))));
    const root = app.graph.root;
    root.textContent = "";
    const step = this.width();
    const room = app.stage.getBoundingClientRect().height - 64;
    const parts = info.ribbons || info.bands;
    const more = info.ribbons && info.observed.length ? (info.numeric ? 1 : 0.4) : 0;
    const h = clamp(room / (parts.length + more) - 48, 56, 200);
    let y = 44;
    parts.forEach((part, i) => {
      if (info.ribbons) this.ribbon(root, part, shown[i], found.path && found.path[i], step, y, h);
      else this.band(root, part, shown[i], i === 0 ? info.observed : [], step, y, h);
      y += h + 48;
    });
    if (more) y = this.observed(root, step, y, h) + 24;
    this.steps(root, step, y - 24);
    shape("line", { class: "cursor", x1: LEFT + step * this.t, x2: LEFT + step * this.t, y1: 36, y2: y - 28 }, root);
    this.numbers(shown);
  }

  // The name, what the colors mean, and the line of the best path.
  heading(root, name, states, path, y) {
    shape("text", { class: "name", x: LEFT, y }, root, name);
    let x = LEFT + textWidth(name, 13, true) + 20;
    const most = LEFT + this.width() * this.info.steps;
    const entry = (mark, text) => {
      const shownText = cutText(text, 120, 12);
      if (x + 20 + textWidth(shownText, 12) > most) return;
      mark(x);
      shape("text", { class: "state", x: x + 18, y }, root, shownText);
      x += 18 + textWidth(shownText, 12) + 16;
    };
    (states || []).forEach((state, k) => entry((at) => shape("rect", { class: "ribbon" + (k % COLORS), x: at, y: y - 9, width: 12, height: 10, rx: 2 }, root), state));
    if (path) entry((at) => shape("line", { class: "path", x1: at, x2: at + 12, y1: y - 4, y2: y - 4 }, root), "most probable path");
  }

  ribbon(root, ribbon, rows, path, step, top, h) {
    this.heading(root, ribbon.name, ribbon.states, path, top - 12);
    shape("rect", { class: "track", x: LEFT, y: top, width: step * this.info.steps, height: h }, root);
    rows.forEach((row, t) => {
      let y = top;
      row.forEach((p, k) => {
        if (p > 1e-4) shape("rect", { class: "ribbon" + (k % COLORS), x: (LEFT + t * step).toFixed(2), y: y.toFixed(2), width: (step + 0.3).toFixed(2), height: (h * p).toFixed(2) }, root);
        y += h * p;
      });
    });
    shape("text", { class: "tick end", x: LEFT - 8, y: top + 10 }, root, "100%");
    shape("text", { class: "tick end", x: LEFT - 8, y: top + h }, root, "0");
    if (path) {
      const y = (k) => top + (h * (k + 0.5)) / ribbon.states.length;
      const d = "M" + path.map((k, t) => `${(LEFT + (t + 0.5) * step).toFixed(1)} ${y(k).toFixed(1)}`).join("L");
      for (const kind of ["path under", "path"]) shape("path", { class: kind, d }, root);
    }
  }

  observed(root, step, top, h) {
    const { observed, numeric } = this.info;
    this.heading(root, "observed", null, null, top - 12);
    if (numeric) {
      const y = this.scale(root, observed, top, h);
      observed.forEach((v, t) => v !== null && shape("circle", { class: "dot" + (t >= this.t ? " later" : ""), cx: LEFT + (t + 0.5) * step, cy: y(v), r: 3 }, root));
      return top + h + 12;
    }
    const wide = Math.min(Math.max(...observed.map((v) => textWidth(v, 11))), 48);
    const every = Math.max(1, Math.ceil((wide + 6) / step));
    observed.forEach((value, t) => t % every === 0 && shape("text", { class: t >= this.t ? "tick mid" : "tick mid known", x: LEFT + (t + 0.5) * step, y: top + 6 }, root, cutText(value, 48, 11)));
    return top + 24;
  }

  steps(root, step, y) {
    const { steps } = this.info;
    for (const t of ticks(1, steps, Math.min(10, steps)).filter((v) => Number.isInteger(v))) {
      shape("text", { class: "tick mid", x: LEFT + (t - 0.5) * step, y: y + 14 }, root, t);
    }
    shape("text", { class: "tick end", x: LEFT - 8, y: y + 14 }, root, "step");
  }

  // Where values stand, with round numbers at the left.
  scale(root, values, top, h) {
    const known = values.filter((v) => v !== null && Number.isFinite(v));
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const y = (v) => top + h - (h * (v - low)) / (high - low || 1);
    for (const v of ticks(low, high, 4)) {
      shape("line", { class: "gridline", x1: LEFT, x2: LEFT + this.width() * this.info.steps, y1: y(v), y2: y(v) }, root);
      shape("text", { class: "tick end", x: LEFT - 8, y: y(v) + 4 }, root, number(v, 3));
    }
    return y;
  }

  band(root, name, [mean, sd], seen, step, top, h) {
    const low = mean.map((m, t) => m - 1.645 * sd[t]);
    const high = mean.map((m, t) => m + 1.645 * sd[t]);
    const y = this.scale(root, [...low, ...high, ...seen], top, h);
    const x = (t) => (LEFT + (t + 0.5) * step).toFixed(1);
    const line = (values) => values.map((v, t) => `${x(t)} ${y(v).toFixed(1)}`);
    this.heading(root, seen.length ? name + ", with what was observed; 90 % band" : name + ", 90 % band", null, null, top - 12);
    shape("path", { class: "band", d: "M" + [...line(high), ...line(low).reverse()].join("L") + "Z" }, root);
    shape("path", { class: "curve", d: "M" + line(mean).join("L") }, root);
    seen.forEach((v, t) => v !== null && shape("circle", { class: "dot" + (t >= this.t ? " later" : ""), cx: x(t), cy: y(v), r: 3 }, root));
  }

  numbers(shown) {
    const { info } = this;
    while (this.now.childElementCount > 1) this.now.lastChild.remove();
    const last = this.t - 1;
    const seen = info.observed[last];
    if (seen !== undefined && seen !== null) make("p", "hint", this.now, "Observed: " + (typeof seen === "number" ? number(seen) : seen));
    (info.ribbons || []).forEach((ribbon, i) => ribbon.states.forEach((state, k) => {
      const row = make("div", "line2", this.now);
      make("span", "", row, `${ribbon.name} = ${state}`).title = `${ribbon.name} = ${state}`;
      const bar = make("i", "ribbon" + (k % COLORS), make("span", "meter", row));
      bar.style.width = 100 * shown[i][last][k] + "%";
      make("span", "", row, percent(shown[i][last][k]));
    }));
    (info.bands || []).forEach((name, i) => make("p", "", this.now, `${name}: ${number(shown[i][0][last])} ± ${number(shown[i][1][last], 3)}`));
  }
}

let clips = 0;

class ProcessPage {
  constructor(app, info) {
    const { points, theta } = app.kept;
    const known = Array.isArray(points) && points.every((p) => Array.isArray(p) && p.length === 2 && p.every(Number.isFinite));
    const same = Array.isArray(theta) && theta.length === info.sliders.length && theta.every(Number.isFinite);
    Object.assign(this, { app, info, points: known ? points : info.points, theta: same ? theta : info.sliders.map((s) => s.theta), asked: 0, clip: "gg-clip-" + ++clips });
    this.history = [this.points];
    this.at = 0;
  }

  kept() {
    return { points: this.points, theta: this.theta };
  }

  start() {
    const { app, info } = this;
    app.sizeText.textContent = "Gaussian process";
    const s = section(app.side, "Points", null, ["Clear all", () => this.set([])]);
    this.count = make("p", "hint", s);
    make("p", "hint", s, "Click to add a point, click a point to take it back.");
    this.form(s);
    const k = section(app.side, "Kernel");
    this.kernel = make("p", "hint", k, info.kernel);
    info.sliders.forEach((slider, i) => this.slider(k, slider, i));
    make("p", "hint", k, "log p(y) rises where the parameters fit the points better.");
    const about = section(app.side, "What is drawn");
    make("p", "hint", about, "The line is the mean, the band holds 95 % at each place, and the thin lines are three functions drawn from the process.");
    const { canvas } = app.graph;
    this.name = canvas.getAttribute("aria-label");
    this.press = (e) => this.click(e);
    canvas.addEventListener("click", this.press);
    canvas.setAttribute("aria-label", "The process. Click to add a point, or type one in the panel.");
    this.ask();
  }

  end() {
    this.app.graph.canvas.removeEventListener("click", this.press);
    this.app.graph.canvas.setAttribute("aria-label", this.name);
  }

  // A point by its numbers: for those who do not click, and for those who know the numbers.
  form(parent) {
    const row = make("div", "pair", parent);
    const inputs = ["x", "y"].map((text) => {
      const input = make("input", "short", row);
      input.setAttribute("aria-label", text + " of a point");
      input.placeholder = text;
      input.inputMode = "decimal";
      return input;
    });
    const add = () => {
      const point = inputs.map((input) => (input.value.trim() === "" ? NaN : Number(input.value.replace(",", ".").replace("−", "-"))));
      if (!point.every(Number.isFinite)) return this.app.toast("A point is two numbers.");
      inputs.forEach((input) => (input.value = ""));
      this.set([...this.points, point]);
      inputs[0].focus();
    };
    for (const input of inputs) input.addEventListener("keydown", (e) => e.key === "Enter" && add());
    button("Add", "line", row, add);
  }

  slider(parent, slider, i) {
    const label = make("label", "field", parent);
    make("span", "", label, slider.label || slider.name).title = slider.name;
    const input = make("input", "", label);
    Object.assign(input, { type: "range", min: slider.low, max: slider.high, step: 0.01, value: this.theta[i] });
    const text = make("span", "", label, number(Math.exp(this.theta[i]), 3));
    input.addEventListener("input", () => {
      this.theta[i] = Number(input.value);
      text.textContent = number(Math.exp(this.theta[i]), 3);
      this.ask();
    });
  }

  set(points) {
    this.history = [...this.history.slice(0, this.at + 1), points];
    this.at++;
    this.points = points;
    this.ask();
  }

  undo(way) {
    if (this.at + way < 0 || this.at + way >= this.history.length) return;
    this.at += way;
    this.points = this.history[this.at];
    this.ask();
  }

  click(e) {
    const hit = e.target.closest(".dot");
    if (hit) return this.set(this.points.filter((_, i) => i !== Number(hit.dataset.index)));
    if (!this.x) return;
    const box = this.app.graph.canvas.getBoundingClientRect();
    const x = this.x.inverse(e.clientX - box.left);
    const y = this.y.inverse(e.clientY - box.top);
    this.set([...this.points, [Number(x.toPrecision(6)), Number(y.toPrecision(6))]]);
  }

  async ask() {
    const n = ++this.asked;
    const last = this.points[this.points.length - 1];
    const { app } = this;
    app.undoButton.disabled = this.at === 0;
    app.redoButton.disabled = this.at === this.history.length - 1;
    const found = await app.quietly("ask", { points: this.points, theta: this.theta, at: last ? [last[0]] : [], n });
    if (!found || n !== this.asked) return;
    if (found.error) return app.toast(found.error);
    this.found = found;
    this.draw();
    app.keep();
    Object.assign(app.root.dataset, { answered: n, panels: n, at: JSON.stringify(found.at), points: JSON.stringify(this.points) });
  }

  draw() {
    const { app, info, found } = this;
    if (!found) return;
    const size = app.stage.getBoundingClientRect();
    const [left, right, top, bottom] = [LEFT, size.width - RIGHT, 28, size.height - 48];
    const line = (low, high, a, b) => Object.assign((v) => a + ((b - a) * (v - low)) / (high - low), { inverse: (p) => low + ((high - low) * (clamp(p, Math.min(a, b), Math.max(a, b)) - a)) / (b - a) });
    this.x = line(info.x[0], info.x[1], left, right);
    this.y = line(info.y[0], info.y[1], bottom, top);
    app.logText.textContent = "log p(y) ";
    make("b", "", app.logText, found.log_evidence === null ? "–" : logText(found.log_evidence));
    this.count.textContent = `${this.points.length} point${this.points.length === 1 ? "" : "s"}`;
    this.kernel.textContent = found.kernel;
    const root = app.graph.root;
    root.textContent = "";
    shape("rect", { x: left, y: top, width: right - left, height: bottom - top }, shape("clipPath", { id: this.clip }, root));
    for (const v of ticks(info.x[0], info.x[1], 8)) {
      shape("line", { class: "gridline", x1: this.x(v), x2: this.x(v), y1: top, y2: bottom }, root);
      shape("text", { class: "tick mid", x: this.x(v), y: bottom + 18 }, root, number(v, 3));
    }
    for (const v of ticks(info.y[0], info.y[1], 6)) {
      shape("line", { class: "gridline", x1: left, x2: right, y1: this.y(v), y2: this.y(v) }, root);
      shape("text", { class: "tick end", x: left - 8, y: this.y(v) + 4 }, root, number(v, 3));
    }
    const inside = shape("g", { "clip-path": `url(#${this.clip})` }, root);
    const path = (values) => found.grid.map((x, i) => `${this.x(x).toFixed(1)} ${this.y(values[i]).toFixed(1)}`);
    const high = found.mean.map((m, i) => m + 1.96 * found.sd[i]);
    const low = found.mean.map((m, i) => m - 1.96 * found.sd[i]);
    shape("path", { class: "band", d: "M" + [...path(high), ...path(low).reverse()].join("L") + "Z" }, inside);
    for (const draw of found.draws) shape("path", { class: "drawn", d: "M" + path(draw).join("L") }, inside);
    shape("path", { class: "curve", d: "M" + path(found.mean).join("L") }, inside);
    this.points.forEach(([x, y], i) => (shape("circle", { class: "dot", cx: this.x(x), cy: this.y(y), r: 5 }, inside).dataset.index = i));
  }
}
