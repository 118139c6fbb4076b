// Exact inference in the page for small networks: factors are multiplied and summed out, variable by variable.

export class Tables {
  constructor(nodes, tables) {
    this.states = new Map(nodes.map((node) => [node.name, node.states]));
    this.tables = tables;
  }

  size(name) {
    return this.states.get(name).length;
  }

  // The factors of a case: what is set is cut from its causes, findings are weights of states.
  factors(findings) {
    const set = new Map(findings.filter((f) => f.type === "do").map((f) => [f.name, f.value]));
    const out = this.tables.map((table) => {
      if (table.child !== null && set.has(table.child)) return { scope: [table.child], values: this.states.get(table.child).map((s) => Number(s === set.get(table.child))) };
      return { scope: table.scope, values: table.values };
    });
    for (const f of findings) {
      if (f.type === "do") continue;
      const states = this.states.get(f.name);
      const values = f.type === "like" ? f.w : f.type === "not" ? states.map((s) => Number(![].concat(f.value).includes(s))) : states.map((s) => Number(s === f.value));
      out.push({ scope: [f.name], values });
    }
    return out;
  }

  product(a, b) {
    const scope = [...a.scope, ...b.scope.filter((name) => !a.scope.includes(name))];
    const sizes = scope.map((name) => this.size(name));
    const strides = (f) => {
      const own = new Map();
      let step = 1;
      for (let i = f.scope.length - 1; i >= 0; i--) {
        own.set(f.scope[i], step);
        step *= this.size(f.scope[i]);
      }
      return scope.map((name) => own.get(name) || 0);
    };
    const [sa, sb] = [strides(a), strides(b)];
    const total = sizes.reduce((x, y) => x * y, 1);
    const values = new Array(total);
    const at = sizes.map(() => 0);
    let i = 0;
    let j = 0;
    for (let k = 0; k < total; k++) {
      values[k] = a.values[i] * b.values[j];
      for (let d = scope.length - 1; d >= 0; d--) {
        at[d]++;
        i += sa[d];
        j += sb[d];
        if (at[d] < sizes[d]) break;
        i -= sa[d] * sizes[d];
        j -= sb[d] * sizes[d];
        at[d] = 0;
      }
    }
    return { scope, values };
  }

  sumOut(f, name) {
    const place = f.scope.indexOf(name);
    const size = this.size(name);
    const inner = f.scope.slice(place + 1).reduce((x, v) => x * this.size(v), 1);
    const outer = f.values.length / (inner * size);
    const values = new Array(outer * inner).fill(0);
    for (let o = 0; o < outer; o++) for (let s = 0; s < size; s++) for (let i = 0; i < inner; i++) values[o * inner + i] += f.values[(o * size + s) * inner + i];
    return { scope: f.scope.filter((v) => v !== name), values };
  }

  // Sum out all but one variable, the cheapest next. Scales are kept apart, so that nothing underflows.
  weights(factors, keep) {
    let rest = factors;
    let log = 0;
    const left = new Set(factors.flatMap((f) => f.scope).filter((name) => name !== keep));
    while (left.size) {
      let best = null;
      let cost = Infinity;
      for (const name of left) {
        const scope = new Set(rest.filter((f) => f.scope.includes(name)).flatMap((f) => f.scope));
        const c = [...scope].reduce((x, v) => x * this.size(v), 1);
        if (c < cost) [best, cost] = [name, c];
      }
      const inside = rest.filter((f) => f.scope.includes(best));
      const made = this.sumOut(inside.reduce((a, b) => this.product(a, b)), best);
      const top = Math.max(...made.values);
      if (top > 0) {
        made.values = made.values.map((v) => v / top);
        log += Math.log(top);
      }
      rest = [...rest.filter((f) => !f.scope.includes(best)), made];
      left.delete(best);
    }
    return { values: rest.reduce((a, b) => this.product(a, b)).values, log };
  }

  logEvidence(findings) {
    const first = this.states.keys().next().value;
    const found = this.weights(this.factors(findings), first);
    const total = found.values.reduce((a, b) => a + b, 0);
    const z = this.directed ? 0 : this.logZ;
    return total > 0 ? Math.log(total) + found.log - (z || 0) : -Infinity;
  }

  answer(findings) {
    const factors = this.factors(findings);
    const beliefs = Object.create(null); // a variable may have any name
    let log = -Infinity;
    for (const name of this.states.keys()) {
      const found = this.weights(factors, name);
      const total = found.values.reduce((a, b) => a + b, 0);
      if (!(total > 0)) return null;
      log = Math.log(total) + found.log;
      beliefs[name] = found.values.map((v) => v / total);
    }
    return { beliefs, log };
  }
}
