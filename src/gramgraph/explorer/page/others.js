// Sequences (state ribbons, filtering step by step) and Gaussian processes (click a point, move the parameters).
import { button, logText, make, number, percent, shape } from "./base.js";
import { section } from "./panel.js";

const FRAME = { x: 48, w: 880 };

export function mountOther(app, info) {
  app.info = { cannot: {}, can: [], names: [], formats: [], ...info };
  app.scene = { nodes: [], edges: [], order: [], full: { w: 1, h: 1, nodes: [], edges: [], names: [], labels: [] } };
  app.title.textContent = info.title;
  if (app.backend.keepsFragment) document.title = info.title + " · gramgraph explorer";
  app.modeButtons.hidden = app.viewButtons.hidden = true;
  app.pill.hidden = app.warn.hidden = app.pythonButton.hidden = true;
  app.undoButton.disabled = app.redoButton.disabled = true;
  app.legend.hidden = app.searchButton.hidden = true;
  app.graph.mini.style.display = "none";
  app.graph.zoomBox.hidden = true;
  app.graph.root.removeAttribute("transform");
  if (app.openButton) app.openButton.hidden = !info.learns && info.kind !== "empty";
  if (info.kind === "sequence") new SequencePage(app, info).start();
  else if (info.kind === "process") new ProcessPage(app, info).start();
  else {
    app.exportButton.hidden = true;
    app.side.textContent = "";
    make("p", "hint", section(app.side, "Nothing is open"), "Drop a CSV, Parquet or network file here.");
  }
}

class SequencePage {
  constructor(app, info) {
    Object.assign(this, { app, info, t: Math.min(Number(app.kept.t) || info.steps, info.steps), smooth: true, asked: 0 });
  }

  start() {
    const { app, info } = this;
    app.sizeText.textContent = `${info.words}, ${info.steps} steps`;
    app.side.textContent = "";
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
      this.draw();
    });
    make("p", "hint", s, "Filtered: each step as it was known then. Smoothed: each step with all that is known up to the slider.");
    this.now = section(app.side, "At this step");
    this.go(this.t);
  }

  async go(t) {
    this.t = Math.min(Math.max(t, 1), this.info.steps);
    this.slider.value = this.t;
    const n = ++this.asked;
    const found = await this.app.quietly("ask", { t: this.t, n });
    if (!found || n !== this.asked) return;
    if (found.error) return this.app.toast(found.error);
    this.found = found;
    this.draw();
    this.app.root.dataset.answered = n;
    this.app.root.dataset.panels = n;
  }

  draw() {
    const { app, info, found } = this;
    const shown = this.smooth ? found.smoothed : found.filtered;
    this.way.textContent = this.smooth ? "Show filtered" : "Show smoothed";
    this.text.textContent = String(this.t);
    app.logText.textContent = "log p(e) ";
    make("b", "", app.logText, logText(found.log_evidence));
    app.root.dataset.logEvidence = found.log_evidence;
    app.root.dataset.last = JSON.stringify(shown.map((rows) => (info.ribbons ? rows[rows.length - 1] : rows.map((r) => r[r.length - 1]))));
    const root = app.graph.root;
    root.textContent = "";
    const size = app.stage.getBoundingClientRect();
    const w = size.width - FRAME.x - 32;
    let y = 40;
    const step = w / info.steps;
    for (const [i, ribbon] of (info.ribbons || []).entries()) y = this.ribbon(root, ribbon, shown[i], found.path && found.path[i], step, y);
    if (info.bands) y = this.bands(root, shown, step, w, y, size.height - 140);
    else this.observed(root, step, y);
    shape("line", { class: "cursor", x1: FRAME.x + step * this.t, x2: FRAME.x + step * this.t, y1: 24, y2: y + 30 }, root);
    this.numbers(shown);
  }

  ribbon(root, ribbon, rows, path, step, top) {
    const h = 120;
    shape("text", { class: "name", x: FRAME.x, y: top - 8 }, root, ribbon.name);
    shape("rect", { class: "track", x: FRAME.x, y: top, width: step * this.info.steps, height: h }, root);
    rows.forEach((row, t) => {
      let y = top;
      row.forEach((p, k) => {
        if (p > 1e-4) shape("rect", { class: "ribbon" + (k % 8), x: (FRAME.x + t * step).toFixed(2), y: y.toFixed(2), width: (step + 0.3).toFixed(2), height: (h * p).toFixed(2) }, root);
        y += h * p;
      });
    });
    if (path) {
      const y = (k) => top + (h * (k + 0.5)) / ribbon.states.length;
      shape("path", { class: "path", d: "M" + path.map((k, t) => `${(FRAME.x + (t + 0.5) * step).toFixed(1)} ${y(k).toFixed(1)}`).join("L") }, root);
    }
    return top + h + 44;
  }

  observed(root, step, top) {
    const { observed, numeric } = this.info;
    if (!observed.length) return;
    if (numeric) return this.series(root, observed, step, top);
    const every = Math.max(1, Math.ceil(26 / step));
    observed.forEach((value, t) => t % every === 0 && shape("text", { class: "tick mid" + (t >= this.t ? " later" : ""), x: FRAME.x + (t + 0.5) * step, y: top + 10 }, root, value.length > 4 ? value.slice(0, 3) + "…" : value));
  }

  scale(values, top, h) {
    const known = values.filter((v) => v !== null && Number.isFinite(v));
    const low = Math.min(...known);
    const high = Math.max(...known);
    return (v) => top + h - (h * (v - low)) / (high - low || 1);
  }

  series(root, observed, step, top) {
    const y = this.scale(observed, top, 120);
    observed.forEach((v, t) => v !== null && shape("circle", { class: "dot" + (t >= this.t ? " later" : ""), cx: FRAME.x + (t + 0.5) * step, cy: y(v), r: 3 }, root));
  }

  bands(root, shown, step, w, top, room) {
    const h = Math.max(60, Math.min(180, room / shown.length - 40));
    shown.forEach(([mean, sd], i) => {
      const low = mean.map((m, t) => m - 1.645 * sd[t]);
      const high = mean.map((m, t) => m + 1.645 * sd[t]);
      const seen = i === 0 ? this.info.observed : [];
      const y = this.scale([...low, ...high, ...seen], top, h);
      const x = (t) => (FRAME.x + (t + 0.5) * step).toFixed(1);
      shape("text", { class: "name", x: FRAME.x, y: top - 8 }, root, this.info.bands[i]);
      shape("path", { class: "band", d: "M" + high.map((v, t) => `${x(t)} ${y(v).toFixed(1)}`).join("L") + "L" + low.map((v, t) => `${x(t)} ${y(v).toFixed(1)}`).reverse().join("L") + "Z" }, root);
      shape("path", { class: "curve", d: "M" + mean.map((v, t) => `${x(t)} ${y(v).toFixed(1)}`).join("L") }, root);
      seen.forEach((v, t) => v !== null && shape("circle", { class: "dot" + (t >= this.t ? " later" : ""), cx: x(t), cy: y(v), r: 3 }, root));
      top += h + 44;
    });
    return top - 44;
  }

  numbers(shown) {
    const { info } = this;
    while (this.now.childElementCount > 1) this.now.lastChild.remove();
    const last = this.t - 1;
    if (info.observed[last] !== undefined && info.observed[last] !== null) make("p", "hint", this.now, "Observed: " + (typeof info.observed[last] === "number" ? number(info.observed[last]) : info.observed[last]));
    (info.ribbons || []).forEach((ribbon, i) => ribbon.states.forEach((state, k) => {
      const row = make("div", "line2", this.now);
      make("span", "", row, `${ribbon.name} = ${state}`);
      const bar = make("i", "", make("span", "meter", row));
      bar.style.width = 100 * shown[i][last][k] + "%";
      make("span", "", row, percent(shown[i][last][k]));
    }));
    (info.bands || []).forEach((name, i) => make("p", "", this.now, `${name}: ${number(shown[i][0][last])} ± ${number(shown[i][1][last], 3)}`));
  }
}

class ProcessPage {
  constructor(app, info) {
    const kept = Array.isArray(app.kept.points) ? app.kept.points : null;
    Object.assign(this, { app, info, points: kept || info.points, theta: info.sliders.map((s) => s.theta), asked: 0 });
  }

  start() {
    const { app, info } = this;
    app.sizeText.textContent = "Gaussian process";
    app.side.textContent = "";
    const s = section(app.side, "Points", null, ["Clear all", () => this.set([])]);
    this.count = make("p", "hint", s);
    make("p", "hint", s, "Click to add a point, click a point to take it back.");
    const k = section(app.side, "Kernel");
    this.kernel = make("p", "hint", k, info.kernel);
    info.sliders.forEach((slider, i) => {
      const label = make("label", "field", k);
      make("span", "", label, slider.name).title = slider.name;
      const input = make("input", "", label);
      Object.assign(input, { type: "range", min: slider.low, max: slider.high, step: 0.01, value: slider.theta });
      const text = make("span", "", label, number(Math.exp(slider.theta), 3));
      input.addEventListener("input", () => {
        this.theta[i] = Number(input.value);
        text.textContent = number(Math.exp(this.theta[i]), 3);
        this.ask();
      });
    });
    make("p", "hint", k, "log p(y) rises where the parameters fit the points better.");
    app.graph.canvas.addEventListener("click", (e) => this.click(e));
    app.graph.canvas.setAttribute("aria-label", "The process. Click to add a point.");
    this.ask();
  }

  set(points) {
    this.points = points;
    if (this.app.backend.keepsFragment) {
      this.app.kept.points = points;
    }
    this.ask();
  }

  click(e) {
    const hit = e.target.closest(".dot");
    if (hit) return this.set(this.points.filter((_, i) => i !== Number(hit.dataset.index)));
    const box = this.app.graph.canvas.getBoundingClientRect();
    const x = this.x.inverse(e.clientX - box.left);
    const y = this.y.inverse(e.clientY - box.top);
    this.set([...this.points, [Number(x.toPrecision(6)), Number(y.toPrecision(6))]]);
  }

  async ask() {
    const n = ++this.asked;
    const last = this.points[this.points.length - 1];
    const found = await this.app.quietly("ask", { points: this.points, theta: this.theta, at: last ? [last[0]] : [], n });
    if (!found || n !== this.asked) return;
    if (found.error) return this.app.toast(found.error);
    this.draw(found);
    this.app.root.dataset.answered = n;
    this.app.root.dataset.panels = n;
    this.app.root.dataset.at = JSON.stringify(found.at);
    this.app.root.dataset.points = JSON.stringify(this.points);
  }

  draw(found) {
    const { app, info } = this;
    const size = app.stage.getBoundingClientRect();
    const line = (low, high, a, b) => Object.assign((v) => a + ((b - a) * (v - low)) / (high - low), { inverse: (p) => low + ((high - low) * (p - a)) / (b - a) });
    this.x = line(info.x[0], info.x[1], 56, size.width - 32);
    this.y = line(info.y[0], info.y[1], size.height - 48, 28);
    app.logText.textContent = "log p(y) ";
    make("b", "", app.logText, found.log_evidence === null ? "–" : logText(found.log_evidence));
    this.count.textContent = `${this.points.length} point${this.points.length === 1 ? "" : "s"}`;
    this.kernel.textContent = found.kernel;
    const root = app.graph.root;
    root.textContent = "";
    const path = (values) => found.grid.map((x, i) => `${this.x(x).toFixed(1)} ${this.y(values[i]).toFixed(1)}`).join("L");
    for (let i = 0; i <= 4; i++) {
      const x = info.x[0] + ((info.x[1] - info.x[0]) * i) / 4;
      const y = info.y[0] + ((info.y[1] - info.y[0]) * i) / 4;
      shape("line", { class: "gridline", x1: this.x(x), x2: this.x(x), y1: 28, y2: size.height - 48 }, root);
      shape("text", { class: "tick mid", x: this.x(x), y: size.height - 30 }, root, number(x, 3));
      shape("text", { class: "tick", x: 48, y: this.y(y) + 4, "text-anchor": "end" }, root, number(y, 3));
    }
    const high = found.mean.map((m, i) => m + 1.96 * found.sd[i]);
    const low = found.mean.map((m, i) => m - 1.96 * found.sd[i]);
    shape("path", { class: "band", d: "M" + path(high) + "L" + path(low).split("L").reverse().join("L") + "Z" }, root);
    for (const draw of found.draws) shape("path", { class: "drawn", d: "M" + path(draw) }, root);
    shape("path", { class: "curve", d: "M" + path(found.mean) }, root);
    this.points.forEach(([x, y], i) => (shape("circle", { class: "dot", cx: this.x(x), cy: this.y(y), r: 5 }, root).dataset.index = i));
  }
}
