// Other views of the same model: its junction tree, and the messages of sum-product and max-sum one by one.
import { button, make, number, percent, shape, textWidth } from "./base.js";
import { meter, section } from "./panel.js";

function framed(graph, w, h) {
  graph.root.textContent = "";
  graph.parts = new Map();
  graph.edges = [];
  graph.place = { w, h, nodes: [], edges: [] };
  return shape("g", {}, graph.root);
}

export function drawTree(app, graph, found) {
  const g = framed(graph, found.w, found.h);
  const seen = new Set(app.findings.map((f) => f.name));
  for (const edge of found.edges) shape("path", { class: "edge", d: edge.path }, g);
  for (const edge of found.edges) {
    if (!edge.label) continue;
    const width = textWidth(edge.label, 11) + 8;
    const [x, y] = [edge.at[0], edge.at[1] - 14];
    shape("rect", { class: "sepbox", x: x - width / 2, y: y - 8, width, height: 16, rx: 3 }, g);
    shape("text", { class: "sep", x, y: y + 4 }, g, edge.label);
  }
  for (const clique of found.cliques) {
    const [x, y, w, h] = clique.box;
    const hot = clique.names.some((name) => seen.has(name));
    shape("rect", { class: "clique" + (hot ? " hot" : ""), x, y, width: w, height: h, rx: 8 }, g);
    clique.lines.forEach((line, k) => shape("text", { class: "line3", x: x + w / 2, y: y + 15 * (k + 1) + 1 }, g, line));
  }
  graph.fitPlace();
}

export function treePanel(app, side, found) {
  const s = section(side, "Junction tree", `${found.cliques.length} cliques`);
  make("p", "hint", s, "Variables that a clique holds together are summed together; above each clique stands what it shares with the one it hangs on. Cliques with an observed variable are marked.");
}

function decimals(value) {
  return value === null ? "−∞" : number(value, 4);
}

// The tree grows to the right, so that a line belongs to its right end: it bends first, then runs level with it.
const BEND = 24;
function between(a, b) {
  const [left, right] = a[0] < b[0] ? [a, b] : [b, a];
  return { x1: left[0] + left[2], x2: right[0], y1: left[1] + left[3] / 2, y2: right[1] + right[3] / 2 };
}

export function drawMessages(app, graph, found) {
  const g = framed(graph, found.w, found.h + 120);
  const holder = shape("g", { transform: "translate(0,60)" }, g);
  const boxes = new Map(found.nodes.map((node) => [node.name, node.box]));
  const middle = (name) => {
    const [x, y, w, h] = boxes.get(name);
    return [x + w / 2, y + h / 2];
  };
  for (const [a, b] of found.edges) {
    const { x1, x2, y1, y2 } = between(boxes.get(a), boxes.get(b));
    shape("path", { class: "wire", d: `M${x1} ${y1}C${x1 + BEND} ${y1} ${x1} ${y2} ${x1 + BEND} ${y2}H${x2}` }, holder);
  }
  for (const node of found.nodes) {
    const [x, y, w, h] = node.box;
    const round = node.kind === "variable";
    shape("rect", { class: node.value !== null ? "fixed" : round ? "round" : "factor", x, y, width: w, height: h, rx: round ? h / 2 : 4 }, holder);
    const text = shape("text", { class: round ? "name small mid" : "state mid", x: x + w / 2, y: y + h / 2 + (node.value !== null ? -2 : 4) }, holder, node.name);
    if (node.value !== null) {
      text.setAttribute("class", "name small mid");
      shape("text", { class: "tick mid", x: x + w / 2, y: y + h / 2 + 13 }, holder, "= " + node.value);
    }
  }
  found.steps.slice(0, app.shownStep).forEach((step, i) => messageCard(holder, boxes, step, i + 1 === app.shownStep));
  const now = found.steps[app.shownStep - 1];
  graph.fitPlace(now && [now.from, now.to].map((name) => middle(name)).reduce(([a, b], [c, d]) => [(a + c) / 2, (b + d) / 2 + 60]));
}

function messageCard(parent, boxes, step, now) {
  const forward = boxes.get(step.from)[0] < boxes.get(step.to)[0];
  const ends = between(boxes.get(step.from), boxes.get(step.to));
  const [x1, x2, y] = [ends.x1 + BEND, ends.x2, ends.y2];
  const side = forward ? -1 : 1;
  const g = shape("g", { class: "message " + (now ? "now" : "past") }, parent);
  const line = y + side * 12;
  const [from, to] = forward ? [x1 + 4, x2 - 6] : [x2 - 4, x1 + 6];
  shape("line", { class: "msg", x1: from, y1: line, x2: to, y2: line }, g);
  shape("path", { class: "msgtip", d: `M${to + (forward ? 6 : -6)} ${line}L${to} ${line - 4}V${line + 4}Z` }, g);
  const rows = step.values.slice(0, 4);
  const height = 17 * rows.length + 6;
  const width = Math.min(x2 - x1 - 4, 96);
  const cx = (x1 + x2) / 2;
  const top = side < 0 ? line - 8 - height : line + 8;
  shape("rect", { class: "card", x: cx - width / 2, y: top, width, height, rx: 4 }, g);
  rows.forEach(([state, value], k) => {
    const text = decimals(value);
    const room = Math.max(1, Math.floor((width - 20) / 6.6 - text.length));
    shape("text", { class: "tick", x: cx - width / 2 + 8, y: top + 16 + 17 * k }, g, state.length > room ? state.slice(0, Math.max(1, room - 1)) + "…" : state);
    shape("text", { class: "num", x: cx + width / 2 - 8, y: top + 16 + 17 * k }, g, text);
  });
  shape("text", { class: "tick mid", x: cx, y: side < 0 ? top - 6 : top + height + 14 }, g, String(step.n));
}

// 0.7 × 0.1 + 0.3 × 0.75, or the largest of such sums; nothing where a single number is passed on.
const MOST_TERMS = 6;
function arithmetic(terms, max) {
  if (terms.length === 1 && terms[0].length < 2) return "";
  const text = (term) => term.map(decimals).join(max ? " + " : " × ");
  const shown = terms.slice(0, MOST_TERMS).map(text);
  if (terms.length > MOST_TERMS) shown.push("…");
  if (!max) return shown.join(" + ");
  return terms.length > 1 ? `max(${shown.join("; ")})` : shown[0];
}

export function messagePanel(app, side, found) {
  const step = found.steps[app.shownStep - 1];
  const max = found.method === "max_sum";
  let s = section(side, max ? "Max-sum" : "Sum-product", found.steps.length ? `step ${app.shownStep} of ${found.steps.length}` : "no messages", [max ? "Sum-product" : "Max-sum", () => app.setMethod(max ? "sum_product" : "max_sum")]);
  if (step) {
    make("div", "big", s, `${step.from} → ${step.to}`).style.fontSize = "20px";
    const fromFactor = found.nodes.find((n) => n.name === step.from).kind === "factor";
    const words = fromFactor
      ? max ? "The factor plus the messages that came in, maximized over the other variables." : "The factor times the messages that came in, summed over the other variables."
      : max ? "The sum of all messages that came in from the other sides." : "The product of all messages that came in from the other sides.";
    make("p", "hint", s, words);
    step.values.forEach(([state, value], k) => {
      const row = make("div", "story", s);
      make("span", "", row, state).title = state;
      const text = make("span", "", row);
      const how = arithmetic(step.made[k], max);
      if (how) text.append(how + " = ");
      make("b", "", text, decimals(value)).dataset.value = value;
    });
  }
  const row = make("div", "pair", s);
  button("Back", "line", row, () => app.setStep(app.shownStep - 1));
  button("Next", "line", row, () => app.setStep(app.shownStep + 1));
  button(app.playing ? "Stop" : "Play", "line", row, () => app.play());
  s = section(side, "After all messages");
  if (max) {
    const text = make("p", "", s);
    for (const [name, value] of found.assignment) make("span", "chip", text, `${name} = ${value}`);
    make("p", "hint", s, `The best values together, log p = ${number(found.log_prob)}.`);
    return;
  }
  for (const [name, p] of Object.entries(found.beliefs)) {
    const node = app.nodeOf(name);
    const k = p.length - 1;
    meter(s, `${name} = ${node.states[k]}`, p[k], percent(p[k]));
  }
  const fixed = found.nodes.filter((n) => n.value !== null).map((n) => n.name);
  make("p", "hint", s, `p(e) = ${number(Math.exp(found.log_evidence))}: the product of the messages at any variable, summed.` + (fixed.length ? ` ${fixed.join(", ")} ${fixed.length > 1 ? "are" : "is"} observed, so no message is sent there.` : ""));
}
