// Drop a table: kinds of columns, required and forbidden arcs, progress and cancel, refitting, strengths of edges.
import { button, make, number } from "./base.js";
import { closePopup, popup } from "./dialogs.js";

export function learnActions(app) {
  if (!app.backend.upload) return;
  const pick = make("input", "", app.extra);
  pick.type = "file";
  pick.hidden = true;
  pick.setAttribute("aria-label", "Table or network to open");
  pick.addEventListener("change", async () => {
    if (pick.files[0]) await uploadFile(app, pick.files[0]);
    pick.value = ""; // the same file may be chosen again
  });
  app.openButton = button("Open…", "", app.extra, () => pick.click());
  app.openButton.hidden = true;
  app.learnedButton = button("Learned…", "", app.extra, () => learnedDialog(app));
  app.learnedButton.hidden = true;
  let note = null;
  const over = (e) => {
    if (!e.dataTransfer || ![...e.dataTransfer.types].includes("Files")) return;
    e.preventDefault();
    note = note || make("div", "drop", app.stage, "Drop a CSV, Parquet or network file here.");
  };
  const leave = () => {
    if (note) note.remove();
    note = null;
  };
  app.root.addEventListener("dragover", over);
  app.root.addEventListener("dragleave", (e) => !app.root.contains(e.relatedTarget) && leave());
  app.root.addEventListener("drop", (e) => {
    leave();
    if (!e.dataTransfer || !e.dataTransfer.files.length) return;
    e.preventDefault();
    uploadFile(app, e.dataTransfer.files[0]);
  });
}

export async function uploadFile(app, file) {
  if (app.maxUpload && file.size > app.maxUpload) return app.toast(`This file is too large: up to ${number(app.maxUpload / 1e6)} MB are taken (--max-upload allows more).`);
  let found;
  try {
    found = await app.backend.upload(file);
  } catch (error) {
    return error.status ? app.toast(error.message) : app.failed(error, () => uploadFile(app, file));
  }
  if (found.error) return app.toast(found.error);
  if (found.model) return app.openModel(found.model);
  tableDialogOf(app, found);
}

function tableDialogOf(app, table) {
  const box = popup(app, `${table.name}: ${table.rows.toLocaleString("en-US")} rows`, 200, 120);
  box.style.width = "560px";
  box.classList.add("learning");
  const kinds = {};
  const list = make("table", "", box);
  const head = make("tr", "", make("thead", "", list));
  for (const text of ["Column", "Taken as", "Gaps", "Take it"]) make("th", "", head, text).scope = "col";
  const body = make("tbody", "", list);
  for (const column of table.columns) {
    const row = make("tr", "", body);
    make("th", "", row, column.column).scope = "row";
    make("td", "", row, column.kind + (column.states ? `, ${column.states} states` : "")).title = column.why;
    make("td", "", row, column.missing ? String(column.missing) : "none");
    const choose = make("select", "", make("td", "", row));
    choose.setAttribute("aria-label", "How to take " + column.column);
    for (const kind of table.kinds) make("option", "", choose, kind).value = kind;
    choose.addEventListener("change", () => (kinds[column.column] = choose.value));
  }
  const arcs = { required: [], forbidden: [] };
  arcPicker(box, table.columns.map((column) => column.column), arcs);
  const foot = make("div", "pair", box);
  button("Learn", "line main", foot, async () => {
    const found = await app.quietly("learn", { table: table.table, kinds, ...arcs });
    if (!found) return;
    if (found.error) return app.toast(found.error);
    closePopup(app);
    const result = await watchJob(app, found.job, "Learning structure");
    if (result && result.model) app.openModel(result.model);
  });
  button("Cancel", "line", foot, () => closePopup(app));
  box.settle();
}

// Arcs that must be there, or must not be.
function arcPicker(box, names, arcs, changed = () => {}) {
  const row = make("div", "pair", box);
  const ends = ["From", "To"].map((text) => {
    const s = make("select", "", row);
    s.setAttribute("aria-label", text);
    names.forEach((name) => (make("option", "", s, name).value = name));
    return s;
  });
  if (names.length > 1) ends[1].value = names[1];
  const chips = make("div", "chips", box);
  const fill = () => {
    chips.textContent = "";
    for (const [key, words] of [["required", "must be"], ["forbidden", "must not be"]])
      for (const pair of arcs[key]) {
        const chip = make("span", "chip " + key, chips, `${words}: ${pair[0]} → ${pair[1]}`);
        button("×", "", chip, () => {
          arcs[key] = arcs[key].filter((p) => p !== pair);
          fill();
          changed();
        }, `Take back ${pair[0]} → ${pair[1]}`);
      }
  };
  for (const [key, text] of [["required", "Require arc"], ["forbidden", "Forbid arc"]])
    button(text, "line", row, () => {
      const [from, to] = ends.map((s) => s.value);
      if (from === to) return;
      setArc(arcs, key, from, to);
      fill();
      changed();
    });
  fill();
}

// An arc is required, or forbidden, or neither (key null).
export function setArc(arcs, key, from, to) {
  for (const k of ["required", "forbidden"]) arcs[k] = arcs[k].filter((p) => p[0] !== from || p[1] !== to);
  if (key) arcs[key].push([from, to]);
}

export function arcState(arcs, from, to) {
  return ["required", "forbidden"].find((key) => arcs && arcs[key].some((p) => p[0] === from && p[1] === to)) || null;
}

// What can be said about an arc of a learned network.
export function arcMenu(app, edge, x, y) {
  const box = popup(app, `Arc ${edge.from} → ${edge.to}`, x, y, "menu");
  const entry = (text, run) => {
    const b = button(text, "", box, () => {
      closePopup(app);
      run();
      app.graph.update();
    });
    b.setAttribute("role", "menuitem");
  };
  const now = arcState(app.arcs, edge.from, edge.to);
  const name = `${edge.from} → ${edge.to}`;
  for (const [key, text] of [["required", "Require "], ["forbidden", "Forbid "]]) if (now !== key) entry(text + name, () => setArc(app.arcs, key, edge.from, edge.to));
  if (now) entry("Leave it to the data", () => setArc(app.arcs, null, edge.from, edge.to));
  entry("Learn again", () => learnAgain(app));
}

async function learnAgain(app) {
  const found = await app.quietly("learn", { again: true, required: app.arcs.required, forbidden: app.arcs.forbidden });
  if (!found) return;
  if (found.error) return app.toast(found.error);
  const result = await watchJob(app, found.job, "Learning structure");
  if (result && result.model) app.openModel(result.model);
}

// Progress in a line with a button that stops the work.
export async function watchJob(app, job, words) {
  const note = make("div", "toast", app.stage);
  note.setAttribute("role", "status");
  const text = make("span", "", note, words);
  const stop = button("Cancel", "line", note, () => app.quietly("cancel", { job }));
  stop.style.color = "inherit";
  for (let wait = 60; ; wait = Math.min(wait * 1.5, 500)) {
    await new Promise((done) => setTimeout(done, wait));
    const found = await app.quietly("job", { job });
    if (!found || found.error) {
      note.remove();
      return null;
    }
    if (found.result) {
      note.remove();
      if (found.result.error) app.toast(found.result.error);
      else if (found.result.notes && found.result.notes.length) app.toast(found.result.notes.join(" "));
      else if (found.result.cancelled) app.toast("Cancelled. Nothing was changed.");
      return found.result.error || found.result.cancelled ? null : found.result;
    }
    text.textContent = found.total > 0 ? `${words}: ${Math.round((100 * found.done) / found.total)} %` : words + " …";
  }
}

function learnedDialog(app) {
  const box = popup(app, "Learned from a table", 260, 100);
  box.style.width = "400px";
  make("p", "", box, "Refit keeps the arcs and learns the numbers again; strengths tell how often an arc is found in samples of the rows. Arcs that you require or forbid, here or by clicking them, hold when the network is learned again.");
  arcPicker(box, app.info.names, app.arcs, () => app.graph.update());
  button("Learn again", "line main", make("div", "pair", box), () => {
    closePopup(app);
    learnAgain(app);
  });
  const row = make("div", "pair", box);
  for (const [prior, text] of [[null, "Refit"], ["bdeu", "Refit, smoothed"]])
    button(text, "line", row, async () => {
      closePopup(app);
      const found = await app.quietly("refit", { prior });
      if (!found || found.error) return found && app.toast(found.error);
      const result = await watchJob(app, found.job, "Learning the numbers");
      if (result && result.model) app.openModel(result.model);
    });
  button("Strengths", "line", row, async () => {
    const found = await app.quietly("strengths", {});
    if (!found || found.error) return found && app.toast(found.error);
    closePopup(app);
    const result = await watchJob(app, found.job, "Learning from samples");
    if (result) strengthDialog(app, result.rows);
  });
}

function strengthDialog(app, rows) {
  const box = popup(app, "Strength of the arcs", 260, 100);
  const label = make("label", "field", box);
  make("span", "", label, "At least");
  const slider = make("input", "", label);
  Object.assign(slider, { type: "range", min: 0.1, max: 1, step: 0.05, value: 0.5 });
  const text = make("span", "", label, "50%");
  const list = make("div", "list", box);
  const fill = () => {
    text.textContent = Math.round(100 * slider.value) + "%";
    list.textContent = "";
    for (const [a, b, strength] of rows.filter((r) => r[2] >= Number(slider.value))) {
      const line = make("div", "line2", list);
      make("span", "", line, `${a} → ${b}`);
      make("i", "", make("span", "meter", line)).style.width = 100 * strength + "%";
      make("span", "", line, number(strength, 2));
    }
  };
  slider.addEventListener("input", fill);
  fill();
  button("Draw these", "line main", make("div", "pair", box), async () => {
    const found = await app.quietly("average", { threshold: Number(slider.value) });
    closePopup(app);
    if (found && found.error) app.toast(found.error);
    else if (found) app.openModel(found.model);
  });
}
