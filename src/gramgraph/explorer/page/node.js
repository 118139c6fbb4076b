// One node of the graph: bars, a density curve, a ring, or a compact box. Built once, then only numbers are written.
import { clamp, cutText, degrees, icon, number, percent, points, roughPercent, shape, short, textWidth, visible } from "./base.js";
import { findingOf, valueText } from "./case.js";

export const ROWS = 7;
const HEADER = 30;
const ROW = 24;
const PLOT = { x: 12, y: 36, w: 192, h: 52 };
const RING = { x: 60, y: 82, r: 26, out: 17 };

const LEAST_MOVE = 5e-4; // a twentieth of a point: what one decimal shows

// The rows of a node with many states: the likeliest six and what is known, in the order of the states.
export function rowsOf(node, belief, finding) {
  const all = node.states.map((_, k) => k);
  if (all.length <= ROWS) return all;
  const known = finding ? [].concat(finding.value).map((v) => node.states.indexOf(v)) : [];
  const score = (k) => (known.includes(k) ? 2 : 0) + (belief ? belief[k] : 0);
  return all.sort((a, b) => score(b) - score(a) || a - b).slice(0, ROWS - 1).sort((a, b) => a - b);
}

export function buildNode(parent, node, box, name, labels, level, hands) {
  const [x, y, w, h] = box;
  const g = shape("g", { class: "node " + node.kind + " " + level, transform: `translate(${x},${y})`, tabindex: -1 }, parent);
  const parts = { g, w, h, node, level, rows: [] };
  shape("rect", { class: "ring", x: -5, y: -5, width: w + 10, height: h + 10, rx: 11 }, g);
  shape("rect", { class: "box", width: w, height: h, rx: 8 }, g);
  if (level === "compact") return buildCompact(parts, name, hands);
  const head = shape("path", { class: "head", d: `M1 ${HEADER}V8A7 7 0 0 1 8 1H${w - 8}A7 7 0 0 1 ${w - 1} 8V${HEADER}Z` }, g);
  shape("line", { class: "rule", x1: 1, x2: w - 1, y1: HEADER + 0.5, y2: HEADER + 0.5 }, g);
  parts.inner = shape("rect", { class: "inner", x: 3.5, y: 3.5, width: w - 7, height: h - 7, rx: 5 }, g);
  Object.assign(parts, { name, title: shape("text", { class: "name", x: 12, y: 20 }, g, name) });
  shape("title", {}, head, node.name);
  parts.icons = shape("g", { class: "icons" }, g);
  head.addEventListener("click", (e) => hands.header(node, e));
  if (node.kind === "discrete") buildBars(parts, labels, hands);
  else if (node.kind === "real") buildCurve(parts, hands);
  else if (node.kind === "circle") buildRing(parts, hands);
  else parts.text = shape("text", { class: "state", x: 12, y: HEADER + 18 }, g);
  g.addEventListener("contextmenu", (e) => hands.menu(node, stateAt(parts, e), e));
  longPress(g, (e) => hands.menu(node, stateAt(parts, e), e));
  return parts;
}

function stateAt(parts, e) {
  const row = parts.rows.find((r) => r.g.contains(e.target));
  return row && row.state >= 0 ? parts.node.states[row.state] : null;
}

function longPress(g, run) {
  let timer = 0;
  let at = null;
  g.addEventListener("pointerdown", (e) => {
    if (e.pointerType !== "touch") return;
    at = [e.clientX, e.clientY];
    timer = setTimeout(() => {
      at = null;
      run(e);
    }, 500);
  });
  // A finger is never quite still.
  g.addEventListener("pointermove", (e) => at && Math.hypot(e.clientX - at[0], e.clientY - at[1]) > 10 && clearTimeout(timer));
  for (const end of ["pointerup", "pointercancel"]) g.addEventListener(end, () => clearTimeout(timer));
  // The click that ends a long press is not a click on the state.
  g.addEventListener("click", (e) => {
    if (at !== null || e.pointerType !== "touch") return;
    e.stopPropagation();
    e.preventDefault();
  }, true);
}

function buildBars(parts, labels, hands) {
  const { g, w, node } = parts;
  const [start, texts] = labels;
  const bar = w - start - 60;
  parts.bar = bar;
  parts.texts = texts;
  parts.label = start - 14;
  g.setAttribute("role", "radiogroup");
  const count = Math.min(node.states.length, ROWS);
  const many = node.states.length > ROWS;
  for (let i = 0; i < count; i++) {
    const y = HEADER + 2 + ROW * i;
    const r = shape("g", { class: "row", transform: `translate(0,${y})` }, g);
    const last = many && i === count - 1;
    const row = { g: r, state: last ? -1 : i };
    row.hit = shape("rect", { class: "hit", x: 2, width: w - 4, height: ROW, rx: 4 }, r);
    row.label = shape("text", { class: "state", x: 12, y: 16 }, r);
    if (!last) {
      r.setAttribute("role", "radio");
      r.setAttribute("tabindex", -1);
      shape("rect", { class: "track", x: start, y: 7, width: bar, height: 10, rx: 2 }, r);
      row.fill = shape("rect", { class: "fill", x: start, y: 7, width: 0, height: 10, rx: 2 }, r);
      row.gain = shape("rect", { class: "gain", x: start, y: 7, width: 0, height: 10 }, r);
      row.like = shape("rect", { class: "lik", x: start, y: 19, width: 0, height: 2, rx: 1 }, r);
      row.prior = shape("line", { class: "prior", y1: 5, y2: 19, x1: start, x2: start }, r);
    }
    row.number = shape("text", { class: "num", x: w - 12, y: 16 }, r);
    row.title = shape("title", {}, row.hit);
    r.addEventListener("click", (e) => (row.state < 0 ? hands.more(node, e) : hands.state(node, node.states[row.state], e)));
    parts.rows.push(row);
  }
}

function buildCurve(parts, hands) {
  const { g, node } = parts;
  const p = shape("g", { class: "plot", role: "slider", tabindex: -1, "aria-label": node.name }, g);
  parts.plot = p;
  parts.ghost = shape("path", { class: "ghost" }, p);
  parts.area = shape("path", { class: "area" }, p);
  parts.core = shape("path", { class: "core" }, p);
  parts.curve = shape("path", { class: "curve" }, p);
  parts.mean = shape("line", { class: "mean" }, p);
  shape("line", { class: "axis", x1: PLOT.x, x2: PLOT.x + PLOT.w, y1: PLOT.y + PLOT.h, y2: PLOT.y + PLOT.h }, p);
  const [low, high] = node.range;
  const digits = 3;
  for (const [value, x, anchor] of [[low, PLOT.x, "start"], [(low + high) / 2, PLOT.x + PLOT.w / 2, "middle"], [high, PLOT.x + PLOT.w, "end"]])
    shape("text", { class: "tick", x, y: PLOT.y + PLOT.h + 14, "text-anchor": anchor }, p, short(Number(value.toPrecision(digits)), digits));
  parts.pin = shape("g", { class: "pinned" }, p);
  shape("line", { class: "pin", y1: PLOT.y + 2, y2: PLOT.y + PLOT.h, x1: 0, x2: 0 }, parts.pin);
  shape("circle", { class: "pinhead", cy: PLOT.y + 2, r: 4 }, parts.pin);
  parts.text = shape("text", { class: "figure", x: 12, y: 124 }, g);
  parts.side = shape("text", { class: "tick", x: parts.w - 12, y: 124, "text-anchor": "end" }, g);
  const hit = shape("rect", { class: "hit", x: PLOT.x - 6, y: PLOT.y - 4, width: PLOT.w + 12, height: PLOT.h + 20 }, p);
  const at = (e) => {
    const box = hit.getBoundingClientRect();
    const share = clamp(((e.clientX - box.left) / box.width) * (PLOT.w + 12) - 6, 0, PLOT.w) / PLOT.w;
    return Number((low + ((high - low) * Math.round(share * 200)) / 200).toPrecision(12));
  };
  dragging(hit, (e) => showPin(parts, at(e)), (e) => hands.value(node, at(e), e));
}

function buildRing(parts, hands) {
  const { g, node } = parts;
  const p = shape("g", { class: "plot", role: "slider", tabindex: -1, "aria-label": node.name, "aria-valuemin": 0, "aria-valuemax": 359 }, g);
  parts.plot = p;
  shape("circle", { class: "track-ring", cx: RING.x, cy: RING.y, r: RING.r }, p);
  parts.ghost = shape("path", { class: "ghost" }, p);
  parts.area = shape("path", { class: "core" }, p);
  parts.curve = shape("path", { class: "curve" }, p);
  parts.arc = shape("path", { class: "arc" }, p);
  parts.mean = shape("line", { class: "needle" }, p);
  parts.pin = shape("g", { class: "pinned" }, p);
  shape("line", { class: "pin", x1: RING.x, y1: RING.y, x2: RING.x, y2: RING.y - RING.r }, parts.pin);
  shape("circle", { class: "pinhead", cx: RING.x, cy: RING.y - RING.r, r: 4 }, parts.pin);
  parts.text = shape("text", { class: "figure big", x: 124, y: 76 }, g);
  parts.side = shape("text", { class: "tick", x: 124, y: 96 }, g);
  parts.side2 = shape("text", { class: "tick", x: 124, y: 112 }, g);
  const hit = shape("circle", { class: "hit", cx: RING.x, cy: RING.y, r: RING.r + RING.out + 3 }, p);
  const at = (e) => {
    const box = hit.getBoundingClientRect();
    const turn = Math.atan2(e.clientX - box.left - box.width / 2, box.top + box.height / 2 - e.clientY);
    const whole = Math.round((turn * 180) / Math.PI);
    return ((whole > 180 ? whole - 360 : whole) * Math.PI) / 180;
  };
  dragging(hit, (e) => showPin(parts, at(e)), (e) => hands.value(node, at(e), e));
}

// A drag shows where the pin would stand; letting go observes that value.
function dragging(hit, show, commit) {
  let held = false;
  hit.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    held = true;
    hit.setPointerCapture(e.pointerId);
    show(e);
    e.stopPropagation();
  });
  hit.addEventListener("pointermove", (e) => held && show(e));
  hit.addEventListener("pointerup", (e) => {
    if (held) commit(e);
    held = false;
  });
  hit.addEventListener("pointercancel", () => (held = false));
}

function showPin(parts, value) {
  if (parts.node.kind === "circle") parts.pin.setAttribute("transform", `rotate(${(value * 180) / Math.PI} ${RING.x} ${RING.y})`);
  else parts.pin.setAttribute("transform", `translate(${place(parts.node, value)},0)`);
  parts.pin.classList.add("on");
}

function place(node, value) {
  const [low, high] = node.range;
  return PLOT.x + clamp((value - low) / (high - low), 0, 1) * PLOT.w;
}

function buildCompact(parts, name, hands) {
  const { g, w, node } = parts;
  shape("path", { class: "head", d: `M1 47V8A7 7 0 0 1 8 1H${w - 8}A7 7 0 0 1 ${w - 1} 8V40A7 7 0 0 1 ${w - 8} 47H8A7 7 0 0 1 1 40Z` }, g);
  Object.assign(parts, { name, title: shape("text", { class: "name small", x: 8, y: 17 }, g, name) });
  parts.text = shape("text", { class: "state", x: 8, y: 33 }, g);
  parts.side = shape("text", { class: "num", x: w - 8, y: 33 }, g);
  parts.strip = shape("g", { class: "strip" }, g);
  const hit = shape("rect", { class: "hit", width: w, height: 48, rx: 8 }, g);
  shape("title", {}, hit, node.name);
  parts.icons = shape("g", { class: "icons" }, g);
  parts.warn = shape("g", { class: "icons badge" }, g);
  shape("circle", { cx: w - 2, cy: 2, r: 9 }, parts.warn);
  icon("clash", parts.warn, w - 10, -7);
  hit.addEventListener("click", (e) => hands.open(node, e));
  g.addEventListener("contextmenu", (e) => hands.menu(node, null, e));
  g.setAttribute("role", "button");
  return parts;
}

// ------------------------------------------------------------------------------------------------------- numbers

export function updateNode(parts, now, app) {
  const { g, node } = parts;
  const finding = findingOf(app.findings, node.name);
  const classes = ["node", node.kind, parts.level];
  if (finding) classes.push({ see: "seen", not: "ruled", like: "like", do: "set" }[finding.type]);
  if (app.target === node.name) classes.push("target");
  if (app.against === node.name && app.conflict > 0.5) classes.push("clash");
  if (app.mode === "separation" && app.sep) {
    if (app.sep.source === node.name) classes.push("source");
    else if (app.sep.reached.includes(node.name)) classes.push("open");
    else classes.push("shut");
  }
  g.setAttribute("class", classes.join(" "));
  updateIcons(parts, finding, app);
  const prior = app.mode === "compare" && app.beliefsA ? app.beliefsA[node.name] : app.prior[node.name];
  // What is as it was is not written again: of a large model most of it.
  const aimed = app.target === node.name;
  if (parts.level === "compact" && aimed === parts.aimed && finding === parts.finding && alike(now, parts.now)) return;
  Object.assign(parts, { aimed, finding, now });
  g.setAttribute("aria-label", spoken(node, now, finding, app));
  if (parts.level === "compact") return updateCompact(parts, now, finding);
  if (node.kind === "discrete") updateBars(parts, now, prior, finding, app);
  else if (node.kind === "real") updateCurve(parts, now, prior, finding, app);
  else if (node.kind === "circle") updateRing(parts, now, prior, finding);
  else parts.text.textContent = (now && now.text) || (now && now.value !== undefined ? "= " + number(now.value) : "");
}

function alike(a, b) {
  return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((p, k) => p === b[k]);
}

function updateIcons(parts, finding, app) {
  const { node } = parts;
  const names = [];
  if (finding) names.push(finding.type);
  if (app.target === node.name) names.push("target");
  const pulls = app.against === node.name && app.conflict > 0.5;
  if (pulls && !parts.warn) names.push("clash");
  if (parts.warn) parts.warn.classList.toggle("on", pulls);
  if (parts.level === "compact") names.splice(1);
  const key = names.join() + pulls;
  if (parts.iconKey === key) return;
  parts.iconKey = key;
  parts.icons.textContent = "";
  const top = parts.level === "compact" ? 3 : 7;
  // The name leaves room for them.
  const size = parts.level === "compact" ? 12 : 13;
  const taken = parts.level === "compact" ? (names.length ? 30 : pulls ? 20 : 14) : 24 + 20 * names.length;
  parts.title.textContent = cutText(parts.name, parts.w - taken, size, true);
  names.forEach((name, i) => icon(name, parts.icons, parts.w - 26 - 20 * i + (parts.level === "compact" ? (pulls ? -2 : 6) : 0), top));
}

export function spoken(node, now, finding, app) {
  const words = [node.name];
  if (app.target === node.name) words.push("target");
  if (finding) words.push({ see: "observed ", not: "", like: "uncertain ", do: "" }[finding.type] + valueText(finding, node));
  let text = words.join(", ") + ".";
  if (Array.isArray(now)) text += " " + now.map((p, k) => [p, k]).sort((a, b) => b[0] - a[0]).slice(0, ROWS).map(([p, k]) => `${node.states[k]} ${percent(p)}`).join(", ");
  else if (now && now.mean !== undefined) text += ` mean ${number(now.mean)}, 90% between ${number(now.lo)} and ${number(now.hi)}`;
  else if (now && now.dir !== undefined) text += ` direction ${degrees(now.dir)} degrees`;
  return text;
}

function updateBars(parts, now, prior, finding, app) {
  const { node, bar, texts } = parts;
  const compare = app.mode === "compare" && prior;
  const order = rowsOf(node, now, finding);
  const ruled = finding && finding.type === "not" ? [].concat(finding.value) : [];
  parts.rows.forEach((row, i) => {
    if (row.state < 0) {
      row.label.textContent = `${node.states.length - ROWS + 1} more`;
      const rest = Math.max(0, 1 - order.reduce((sum, k) => sum + (now ? now[k] : 0), 0));
      row.number.textContent = percent(rest < 1e-12 ? 0 : rest);
      return;
    }
    const k = order[i];
    row.state = k;
    const p = now ? now[k] : 0;
    const before = prior ? prior[k] : null;
    const state = node.states[k];
    const start = Number(row.fill.getAttribute("x"));
    const on = finding && (finding.type === "see" || finding.type === "do") && finding.value === state;
    const bold = Boolean(on);
    const text = k + bold;
    if (row.text !== text) row.label.textContent = cutText(texts[k], parts.label, 12, bold);
    row.text = text;
    row.title.textContent = `${visible(state)}: ${percent(p)}` + (before === null ? "" : `, before ${percent(before)}`);
    row.g.dataset.state = state;
    row.g.dataset.p = p;
    const said = (on ? "on" : "") + (ruled.includes(state) ? " no" : "");
    row.g.setAttribute("class", "row " + said);
    row.g.setAttribute("aria-checked", on ? "true" : "false");
    row.g.setAttribute("aria-label", `${state} ${percent(p)}`);
    row.fill.setAttribute("width", Math.max(0, bar * p).toFixed(2));
    const at = start + bar * (before === null ? 0 : before);
    row.prior.setAttribute("x1", at.toFixed(1));
    row.prior.setAttribute("x2", at.toFixed(1));
    row.prior.classList.toggle("hide", before === null || Boolean(on));
    row.gain.setAttribute("width", 0);
    if (compare) {
      const d = p - before;
      row.gain.setAttribute("class", "gain " + (d >= 0 ? "up" : "down"));
      row.gain.setAttribute("x", (start + bar * Math.min(p, before)).toFixed(1));
      row.gain.setAttribute("width", (bar * Math.abs(d)).toFixed(1));
      const moved = Math.abs(d) >= LEAST_MOVE;
      row.number.textContent = moved ? points(d) : percent(p);
      row.number.setAttribute("class", "num" + (moved ? (d > 0 ? " more" : " less") : ""));
    } else {
      row.number.textContent = percent(p);
      row.number.setAttribute("class", "num");
    }
    const top = finding && finding.type === "like" ? Math.max(...finding.w) : 0;
    row.like.setAttribute("width", top ? ((bar * finding.w[k]) / top).toFixed(1) : 0);
  });
}

function curvePath(values, top, close) {
  const step = PLOT.w / (values.length - 1);
  const base = PLOT.y + PLOT.h;
  const points = values.map((v, i) => `${(PLOT.x + i * step).toFixed(1)} ${(base - (PLOT.h * Math.min(v / top, 1))).toFixed(1)}`);
  return close ? `M${PLOT.x} ${base}L${points.join("L")}L${PLOT.x + PLOT.w} ${base}Z` : `M${points.join("L")}`;
}

function updateCurve(parts, now, prior, finding) {
  const { node } = parts;
  const [low, high] = node.range;
  const density = now && now.curve;
  const before = prior && prior.curve;
  const tops = [density, before].filter(Boolean).map((c) => Math.max(...c));
  const top = Math.max(...tops, 1e-300) * 1.04;
  parts.ghost.setAttribute("d", before ? curvePath(before, top) : "");
  for (const key of ["area", "core", "curve"]) parts[key].setAttribute("d", "");
  parts.plot.setAttribute("aria-valuemin", low);
  parts.plot.setAttribute("aria-valuemax", high);
  if (density) {
    parts.area.setAttribute("d", curvePath(density, top, true));
    parts.curve.setAttribute("d", curvePath(density, top));
    const step = (high - low) / (density.length - 1);
    const first = clamp(Math.ceil((now.lo - low) / step), 0, density.length - 1);
    const last = clamp(Math.floor((now.hi - low) / step), 0, density.length - 1);
    if (last > first) {
      const base = PLOT.y + PLOT.h;
      const points = [];
      for (let i = first; i <= last; i++) points.push(`${(PLOT.x + (i * PLOT.w) / (density.length - 1)).toFixed(1)} ${(base - PLOT.h * (density[i] / top)).toFixed(1)}`);
      parts.core.setAttribute("d", `M${points[0].split(" ")[0]} ${base}L${points.join("L")}V${base}Z`);
    }
    const x = place(node, now.mean);
    for (const [key, value] of [["x1", x], ["x2", x], ["y1", PLOT.y + 2], ["y2", PLOT.y + PLOT.h]]) parts.mean.setAttribute(key, value);
    const text = `${short(now.mean)} ± ${short(now.sd, 3)}`;
    const side = `90%: ${short(now.lo, 3)} … ${short(now.hi, 3)}`;
    parts.text.textContent = text;
    parts.side.textContent = textWidth(text, 12, true) + textWidth(side, 11) < parts.w - 34 ? side : "";
    parts.g.dataset.mean = now.mean;
    parts.g.dataset.sd = now.sd;
    parts.plot.setAttribute("aria-valuenow", now.mean);
    parts.plot.setAttribute("aria-valuetext", `mean ${number(now.mean)}, 90% between ${number(now.lo)} and ${number(now.hi)}`);
  }
  parts.mean.classList.toggle("hide", !density);
  const known = now && now.value !== undefined;
  parts.pin.classList.toggle("on", Boolean(known));
  if (known) {
    showPin(parts, now.value);
    parts.text.textContent = "= " + short(now.value, 5);
    parts.side.textContent = now.value < low || now.value > high ? "outside" : "";
    parts.g.dataset.value = now.value;
    parts.plot.setAttribute("aria-valuenow", now.value);
    parts.plot.setAttribute("aria-valuetext", (finding && finding.type === "do" ? "set to " : "observed ") + number(now.value));
  } else delete parts.g.dataset.value;
}

function ringPath(values, top) {
  const n = values.length;
  const points = values.map((v, i) => {
    const turn = -Math.PI + (2 * Math.PI * i) / n;
    const r = RING.r + RING.out * Math.min(v / top, 1);
    return `${(RING.x + r * Math.sin(turn)).toFixed(1)} ${(RING.y - r * Math.cos(turn)).toFixed(1)}`;
  });
  return "M" + points.join("L") + "Z";
}

function updateRing(parts, now, prior, finding) {
  const density = now && now.curve;
  const before = prior && prior.curve;
  const top = Math.max(1e-300, ...[density, before].filter(Boolean).map((c) => Math.max(...c)));
  parts.ghost.setAttribute("d", before ? ringPath(before, top) : "");
  const inner = `M${RING.x + RING.r} ${RING.y}A${RING.r} ${RING.r} 0 1 0 ${RING.x - RING.r} ${RING.y}A${RING.r} ${RING.r} 0 1 0 ${RING.x + RING.r} ${RING.y}Z`;
  parts.area.setAttribute("d", density ? ringPath(density, top) + inner : "");
  parts.area.setAttribute("fill-rule", "evenodd");
  parts.curve.setAttribute("d", density ? ringPath(density, top) : "");
  parts.mean.classList.toggle("hide", !density);
  parts.arc.setAttribute("d", "");
  const known = now && now.value !== undefined;
  parts.pin.classList.toggle("on", Boolean(known));
  parts.side.textContent = parts.side2.textContent = "";
  if (density) {
    const r = RING.r - 3;
    for (const [key, value] of [["x1", RING.x], ["y1", RING.y], ["x2", RING.x + r * Math.sin(now.dir)], ["y2", RING.y - r * Math.cos(now.dir)]]) parts.mean.setAttribute(key, value.toFixed(1));
    const at = (turn) => `${(RING.x + RING.r * Math.sin(turn)).toFixed(1)} ${(RING.y - RING.r * Math.cos(turn)).toFixed(1)}`;
    parts.arc.setAttribute("d", `M${at(now.lo)}A${RING.r} ${RING.r} 0 ${now.hi - now.lo > Math.PI ? 1 : 0} 1 ${at(now.hi)}`);
    parts.text.textContent = degrees(now.dir) + "°";
    if (now.R !== null) parts.side.textContent = "R = " + number(now.R, 2);
    parts.side2.textContent = `${degrees(now.lo)}° … ${degrees(now.hi)}°`;
    parts.g.dataset.dir = now.dir;
    parts.plot.setAttribute("aria-valuenow", degrees(now.dir));
    parts.plot.setAttribute("aria-valuetext", `direction ${degrees(now.dir)} degrees`);
  }
  if (known) {
    showPin(parts, now.value);
    parts.text.textContent = "= " + degrees(now.value) + "°";
    parts.g.dataset.value = now.value;
    parts.plot.setAttribute("aria-valuenow", degrees(now.value));
    parts.plot.setAttribute("aria-valuetext", (finding && finding.type === "do" ? "set to " : "observed ") + degrees(now.value) + " degrees");
  } else delete parts.g.dataset.value;
}

function updateCompact(parts, now, finding) {
  const { node, w } = parts;
  parts.strip.textContent = "";
  if (Array.isArray(now)) {
    let best = 0;
    now.forEach((p, k) => p > now[best] && (best = k));
    const known = finding && (finding.type === "see" || finding.type === "do");
    const number = known ? "" : roughPercent(now[best]);
    parts.text.textContent = cutText(visible(node.states[best]), w - 20 - textWidth(number, 12), 12);
    parts.side.textContent = number;
    parts.g.dataset.p = now[best];
    let x = 8;
    now.forEach((p, k) => {
      const width = (w - 16) * p;
      if (width > 0.3) shape("rect", { class: "part p" + (k === best ? 0 : 1 + (k % 2)), x: x.toFixed(1), y: 38, width: width.toFixed(1), height: 5 }, parts.strip);
      x += width;
    });
  } else if (now) {
    const value = now.value !== undefined ? now.value : now.mean !== undefined ? now.mean : now.dir;
    parts.text.textContent = value === undefined ? now.text || "" : node.kind === "circle" ? degrees(value) + "°" : (now.value !== undefined ? "= " : "") + short(value);
    parts.side.textContent = now.sd !== undefined ? "± " + short(now.sd, 2) : "";
  }
}
