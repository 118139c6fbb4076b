// The panel on the right: evidence, target, what findings add, what to observe next, stories; separation; comparison.
import { button, degrees, iconBox, logText, make, number, percent, points, signed, textWidth } from "./base.js";
import { valueText } from "./case.js";

export function section(side, title, note, ...actions) {
  const s = make("section", "", side);
  const h = make("h2", "", s, title);
  if (note) make("span", "", h, note);
  for (const [text, run, label] of actions) button(text, "", h, run, label);
  return s;
}

export function meter(parent, label, share, text, className, mid) {
  const row = make("div", "line2", parent);
  const name = make("span", "", row, label);
  name.title = label;
  if (textWidth(label, 12) > 100) parent.classList.add("tall");
  const m = make("span", "meter" + (mid ? " mid" : ""), row);
  const bar = make("i", className || "", m);
  bar.style.width = 100 * Math.min(Math.abs(share), 1) + "%";
  make("span", "", row, text);
  return { row, bar };
}

export function drawPanel(app, side) {
  side.textContent = "";
  evidenceSection(app, side);
  if (app.mode === "separation") return separationSections(app, side);
  if (app.mode === "compare") return compareSections(app, side);
  targetSection(app, side);
  addsSection(app, side);
  nextSection(app, side);
  storySection(app, side);
}

function evidenceSection(app, side) {
  const count = app.findings.length;
  const actions = [];
  if (count) actions.push(["Save", () => app.saveCase(), "Save this case under a name"], ["Clear all", () => app.commit([])]);
  const s = section(side, "Evidence", `${count} finding${count === 1 ? "" : "s"}`, ...actions);
  for (const finding of app.findings) {
    const row = make("div", "find " + finding.type, s);
    iconBox(finding.type, row);
    make("span", "", row, finding.name).title = finding.name;
    const text = valueText(finding, app.nodeOf(finding.name));
    make("span", "v", row, text).title = text;
    button("×", "", row, () => app.takeBack(finding.name), "Take back " + finding.name);
  }
  if (!count) make("p", "hint", s, "Nothing observed yet. Click a state in the graph.");
  if (app.conflict > 0.5) {
    const note = make("div", "note", s);
    make("b", "", note, "These findings disagree. ");
    note.append(`Together they are ${number(Math.exp(Math.min(app.conflict, 700)), 2)} times less likely than if they were independent.`);
  }
  const names = Object.keys(app.cases);
  if (names.length) {
    const row = make("div", "pair", s);
    for (const name of names) button(name, "line", row, () => app.commit(app.cases[name]), name);
  }
}

function targetSection(app, side) {
  const s = section(side, "Target", null, ["Change", () => app.search("Target", (name) => app.setTarget(name)), "Change the target"]);
  const now = app.beliefs[app.target];
  const before = app.prior[app.target];
  const node = app.nodeOf(app.target);
  if (Array.isArray(now) && node.states) {
    const k = Math.max(0, node.states.indexOf(app.targetState));
    const b = make("div", "big", s, percent(now[k]));
    make("small", "", b, `${app.target} = ${node.states[k]}, before ${percent(before ? before[k] : null)}`);
    if (node.states.length > 1) {
      const row = make("div", "pair", s);
      const pick = make("select", "", row);
      pick.setAttribute("aria-label", "State of the target");
      node.states.forEach((state) => (make("option", "", pick, state).value = state));
      pick.value = node.states[k];
      pick.addEventListener("change", () => app.setTarget(app.target, pick.value));
    }
  } else if (now && now.value !== undefined) {
    const text = node.kind === "circle" ? degrees(now.value) + "°" : number(now.value);
    make("small", "", make("div", "big", s, text), `${app.target}, known`);
  } else if (now && now.mean !== undefined) {
    const b = make("div", "big", s, number(now.mean));
    make("small", "", b, `${app.target}, before ${number(before && before.mean)}`);
    make("p", "hint", s, `90 % between ${number(now.lo, 3)} and ${number(now.hi, 3)}`);
  } else if (now && now.dir !== undefined) {
    const b = make("div", "big", s, degrees(now.dir) + "°");
    make("small", "", b, `${app.target}, before ${before ? degrees(before.dir) + "°" : "–"}`);
  } else make("p", "hint", s, app.target);
}

function addsSection(app, side) {
  const found = app.panels.explain;
  if (!found || !found.rows || !found.rows.length) return;
  const odds = found.measure === "log odds";
  const s = section(side, "What each finding adds", found.state ? `${found.target} = ${found.state}` : found.target);
  const shown = found.rows.filter((row) => row[1] !== null && Math.abs(row[1]) >= 1e-9 && !(odds && Math.abs(row[1]) < 0.005));
  const none = found.rows.filter((row) => !shown.includes(row));
  const list = none.length === 1 ? found.rows : shown;
  const top = Math.max(odds ? 2 : 0, ...list.map((row) => Math.min(Math.abs(row[1] || 0), 1e6))) || 1;
  for (const [name, moved, without] of list) {
    const share = (0.5 * Math.abs(moved || 0)) / top;
    const text = found.measure === "direction" ? signed((moved * 180) / Math.PI, 3) + "°" : odds && Math.abs(moved) >= 0.005 && Math.abs(moved) < 1e6 ? (moved < 0 ? "−" : "+") + Math.abs(moved).toFixed(2) : signed(moved);
    const { row, bar } = meter(s, name, share, text, moved < 0 ? "down" : "", true);
    bar.style.left = moved >= 0 ? "50%" : 50 - 100 * Math.min(share, 0.5) + "%";
    row.dataset.adds = moved;
    row.dataset.name = name;
    if (without !== null) row.title = "Without it: " + (odds ? percent(without) : number(without));
  }
  if (none.length > 1) make("p", "hint", s, `Nothing, given the others: ${none.map((row) => row[0]).join(", ")}.`);
  make("p", "hint", s, odds ? "Change of the log odds when the finding comes last." : "How far the mean moves when the finding comes last.");
}

function nextSection(app, side) {
  const found = app.panels.next;
  if (!found) return;
  if (found.error) {
    make("p", "hint", section(side, "Best to observe next"), found.error);
    return;
  }
  if (!found.rows.length) return;
  const s = section(side, "Best to observe next", "uncertainty it removes");
  const top = Math.max(...found.rows.map((row) => row[2]), 1e-12);
  for (const [name, share, gain] of found.rows.slice(0, 4)) {
    const b = button("", "line2", s, () => app.goTo(name));
    make("span", "", b, name);
    if (textWidth(name, 12) > 100) s.classList.add("tall");
    make("i", "", make("span", "meter", b)).style.width = 100 * Math.min(share > 0 ? share : gain / top, 1) + "%";
    make("span", "", b, share > 0 ? percent(share) : number(gain, 2));
    b.dataset.name = name;
    b.dataset.gain = gain;
    b.title = "Go to " + name;
  }
  if (found.left.length) {
    const row = make("div", "pair", s);
    make("span", "hint", row, `${found.left.length} not looked at yet.`);
    button("Look on", "line", row, () => app.lookOn());
  }
}

function storySection(app, side) {
  const found = app.panels.story;
  if (!found || found.error || !found.stories) return;
  const s = section(side, "Most probable story");
  found.stories.forEach((story, k) => {
    const row = make("div", "story", s);
    make("span", "", row, story.p !== null ? percent(story.p) : k ? "" : "best");
    const text = make("span", "", row);
    if (k) text.append("the same, but ");
    for (const [name, value] of story.rows) make("span", "chip", text, `${name} = ${typeof value !== "number" ? value : app.nodeOf(name).kind === "circle" ? degrees(value) + "°" : number(value)}`);
    if (story.more) text.append(`and ${story.more} more `);
    if (!k && story.p !== null) text.append(story.rows.length ? "and the rest as usual" : "everything as usual");
  });
}

function chips(parent, names, className, run) {
  const box = make("div", "", parent);
  for (const name of names) {
    button(name, "chip " + className, box, () => run(name));
  }
}

function separationSections(app, side) {
  const sep = app.sep;
  if (!sep) return;
  let s = section(side, "Separation", null, ["Change", () => app.search("Source", (name) => app.setSource(name)), "Change the source"]);
  make("div", "big", s, sep.source);
  make("p", "hint", s, sep.given.length ? "given " + sep.given.join(", ") : "given nothing");
  const reached = new Set(sep.reached);
  s = section(side, "Still tells about " + sep.source, String(sep.reached.length));
  chips(s, sep.reached, "open", (name) => app.setSource(name));
  const off = app.info.names.filter((name) => name !== sep.source && !reached.has(name) && !sep.given.includes(name));
  s = section(side, "Tells nothing more about " + sep.source, String(off.length));
  chips(s, off.slice(0, 60), "off", (name) => app.setSource(name));
  for (const name of sep.observed) make("p", "hint", s, `${name} is observed, so nothing passes through it.`);
  for (const name of sep.closed) make("p", "hint", s, `${name} is a common effect, and neither it nor anything below it is observed: nothing passes between its causes.`);
  make("p", "hint", s, app.graph.level === "full" ? "Click a name to ask about that variable, a state to observe it: trails open and close." : "Click another variable to ask about it. Observe one to open or close trails.");
}

function compareSections(app, side) {
  let s = section(side, "Compare", null, ["Use B as A", () => app.startCompare()]);
  for (const [name, list] of [["A", app.findingsA || []], ["B", app.findings]]) {
    const row = make("div", "story", s);
    make("b", "", row, "Case " + name);
    make("span", "", row, list.map((f) => `${f.name} ${f.type === "see" ? "= " : ""}${valueText(f, app.nodeOf(f.name))}`).join(", ") || "nothing observed");
  }
  if (!app.beliefsA) return;
  const moved = [];
  for (const node of app.scene.nodes) {
    const a = app.beliefsA[node.name];
    const b = app.beliefs[node.name];
    if (!Array.isArray(a) || !Array.isArray(b)) continue;
    let best = 0;
    b.forEach((p, k) => Math.abs(p - a[k]) > Math.abs(b[best] - a[best]) + 1e-12 && (best = k));
    if (b[best] < a[best]) b.forEach((p, k) => p - a[k] > b[best] - a[best] && p > a[k] && Math.abs(p - a[k]) >= Math.abs(b[best] - a[best]) - 1e-9 && (best = k));
    moved.push([`${node.name} = ${node.states[best]}`, b[best] - a[best]]);
  }
  moved.sort((x, y) => Math.abs(y[1]) - Math.abs(x[1]));
  s = section(side, "What changed most", "from A to B, in points");
  for (const [label, d] of moved.slice(0, 6)) {
    if (Math.abs(d) < 5e-4) continue;
    const { row } = meter(s, label, d, points(d), d < 0 ? "less" : "up2");
    row.dataset.moved = d;
  }
  make("p", "hint", s, `log p(e): A ${logText(app.logA)}, B ${logText(app.logEvidence)}`);
}
