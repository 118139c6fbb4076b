// A file without a server: small networks are answered here, of others the answers to single findings are in the file.

function stillBackend(data) {
  const info = data.info;
  const nodes = info.scene.nodes;
  const tables = data.tables && new Tables(nodes, data.tables);
  const text = (f) => f.name + (f.type === "see" ? " = " : f.type === "do" ? " set to " : f.type === "not" ? " not " : " uncertain") + (f.type === "like" ? "" : [].concat(f.value).join(", "));

  // Findings that cannot all hold, none of which can be left out.
  const clash = (findings) => {
    let found = findings;
    for (const f of findings) {
      const less = found.filter((g) => g !== f);
      if (tables.logEvidence(less) === -Infinity) found = less;
    }
    return found;
  };

  const ask = (findings) => {
    if (!tables) {
      const key = findings.length ? JSON.stringify([findings[0].name, findings[0].value]) : "[]";
      const found = findings.length > 1 || (findings[0] && findings[0].type !== "see") ? null : data.answers[key];
      return found || { error: "This file holds answers to single observations only. Take the other one back first." };
    }
    const found = tables.answer(findings);
    if (!found) {
      const names = clash(findings);
      return { impossible: names.map((f) => f.name), text: `These cannot all hold: ${names.map(text).join(", ")}. Nothing was changed.` };
    }
    const seen = findings.filter((f) => f.type !== "do");
    const set = findings.filter((f) => f.type === "do");
    const pulls = seen.length < 2 ? [] : seen.map((f) => [f.name, tables.logEvidence([f, ...set]) + tables.logEvidence([...seen.filter((g) => g !== f), ...set]) - found.log]);
    const conflict = seen.length < 2 ? 0 : seen.reduce((sum, f) => sum + tables.logEvidence([f, ...set]), 0) - found.log;
    pulls.sort((a, b) => b[1] - a[1]);
    return { beliefs: found.beliefs, log_evidence: found.log, engine: "variable elimination in the page", exact: true, reason: "", conflict, against: conflict > 0 ? pulls[0][0] : null };
  };

  const odds = (p) => Math.log(p) - Math.log1p(-p);
  const explain = ({ case: findings, target, state }) => {
    const out = { target, rows: [], state, measure: "log odds" };
    if (!tables || !state || findings.some((f) => f.name === target && f.type === "see")) return out;
    const k = tables.states.get(target).indexOf(state);
    const p = tables.answer(findings).beliefs[target][k];
    for (const f of findings) {
      if (f.name === target) continue;
      const q = tables.answer(findings.filter((g) => g !== f)).beliefs[target][k];
      out.rows.push([f.name, p === q ? 0 : odds(p) - odds(q), q]);
    }
    out.rows.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    return out;
  };

  const entropy = (p) => -p.reduce((sum, x) => sum + (x > 0 ? x * Math.log(x) : 0), 0);
  const next = ({ case: findings, target }) => {
    const known = new Set(findings.filter((f) => f.type === "see" || f.type === "do").map((f) => f.name));
    if (!tables || known.has(target)) return { rows: [], left: [] };
    const now = tables.answer(findings).beliefs;
    const before = entropy(now[target]);
    const rows = [];
    for (const [name, states] of tables.states) {
      if (name === target || known.has(name)) continue;
      let after = 0;
      states.forEach((value, k) => {
        if (now[name][k] <= 0) return;
        const factors = [...tables.factors(findings), { scope: [name], values: states.map((s) => Number(s === value)) }];
        const w = tables.weights(factors, target).values;
        const total = w.reduce((a, b) => a + b, 0);
        after += now[name][k] * entropy(w.map((v) => v / total));
      });
      const gain = Math.max(before - after, 0);
      rows.push([name, before > 0 ? gain / before : 0, gain]);
    }
    return { rows: rows.sort((a, b) => b[2] - a[2]), left: [] };
  };

  const run = { model: () => info, ask: (body) => ask(body.case), explain, next, separation: (body) => separate(info, body) };
  return { keepsFragment: true, ask: async (name, body) => (run[name] ? { ...run[name](body), n: body.n } : { error: "This is shown while Python runs." }) };
}

// What the source still tells about the others: balls that bounce along the arcs, as d-separation has it.
function separate(info, body) {
  const { nodes, edges } = info.scene;
  const set = new Set(body.case.filter((f) => f.type === "do").map((f) => f.name));
  const given = new Set(body.case.filter((f) => f.type === "see" || f.type === "do").map((f) => f.name));
  const soft = new Set(body.case.filter((f) => f.type === "not" || f.type === "like").map((f) => f.name));
  const parents = new Map(nodes.map((n) => [n.name, new Set()]));
  const near = new Map(nodes.map((n) => [n.name, new Set()]));
  for (const [a, b] of edges.map(([i, j]) => [nodes[i].name, nodes[j].name])) {
    if (set.has(b)) continue;
    if (info.directed) parents.get(b).add(a);
    near.get(a).add(b);
    near.get(b).add(a);
  }
  const opened = new Set([...given, ...soft]);
  for (const name of opened) for (const p of parents.get(name)) opened.add(p);
  const collides = (u, v, w) => parents.get(v).has(u) && parents.get(v).has(w);
  const passes = (u, v, w) => (collides(u, v, w) ? opened.has(v) : !given.has(v));
  const steps = new Map();
  const todo = given.has(body.source) ? [] : [...near.get(body.source)].map((w) => [body.source, w]);
  while (todo.length) {
    const [u, v] = todo.pop();
    const key = JSON.stringify([u, v]);
    if (steps.has(key)) continue;
    const after = [...near.get(v)].filter((w) => w !== u && passes(u, v, w)).map((w) => [v, w]);
    steps.set(key, [u, v, after]);
    todo.push(...after);
  }
  const out = { source: body.source, given: [...given], reached: new Set(), edges: [], observed: new Set(), closed: new Set() };
  const lines = new Set();
  for (const [u, v, after] of steps.values()) {
    if (!given.has(v) && v !== body.source) out.reached.add(v);
    if (!given.has(v) || after.some(([, w]) => !given.has(w))) lines.add(JSON.stringify([u, v].sort()));
    for (const w of near.get(v)) if (w !== u && w !== body.source && !passes(u, v, w)) (collides(u, v, w) ? out.closed : out.observed).add(v);
  }
  for (const [i, j] of edges) if (lines.has(JSON.stringify([nodes[i].name, nodes[j].name].sort()))) out.edges.push([nodes[i].name, nodes[j].name]);
  for (const key of ["reached", "observed", "closed"]) out[key] = nodes.map((n) => n.name).filter((name) => out[key].has(name));
  return out;
}

const stillData = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(document.getElementById("data").textContent), (c) => c.charCodeAt(0))));
mount(document.getElementById("app"), stillBackend(stillData), {});
