// A case is a list of findings {name, type: see | not | like | do, value, w}; it travels in the fragment of the address.
import { degrees, number, ratio } from "./base.js";

export function readFragment(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  let kept = {};
  try {
    kept = JSON.parse(parts.get("c") || "{}") || {};
  } catch {
    kept = {};
  }
  return { token: parts.get("token") || "", kept };
}

export function writeFragment(token, kept) {
  const parts = new URLSearchParams();
  if (token) parts.set("token", token);
  parts.set("c", JSON.stringify(kept));
  return "#" + parts.toString();
}

export function findingOf(findings, name) {
  return findings.find((f) => f.name === name) || null;
}

export function withFinding(findings, name, finding) {
  const at = findings.findIndex((f) => f.name === name);
  const out = findings.filter((f) => f.name !== name);
  if (finding) out.splice(at < 0 ? out.length : at, 0, finding);
  return out;
}

// A click on a state: observe it (or "not", or "do"); the same click again takes it back.
export function clicked(findings, node, state, type) {
  const old = findingOf(findings, node.name);
  if (type === "not") {
    const ruled = old && old.type === "not" ? [].concat(old.value) : [];
    const next = ruled.includes(state) ? ruled.filter((v) => v !== state) : [...ruled, state];
    if (next.length >= node.states.length) return findings;
    return withFinding(findings, node.name, next.length ? { name: node.name, type, value: next } : null);
  }
  const same = old && old.type === type && old.value === state;
  return withFinding(findings, node.name, same ? null : { name: node.name, type, value: state });
}

export function valueText(finding, node) {
  if (finding.type === "like") return ratio(finding.w);
  const value = Array.isArray(finding.value) ? finding.value.join(", ") : finding.value;
  const text = typeof value === "number" ? (node && node.kind === "circle" ? degrees(value) + "°" : number(value)) : value;
  return (finding.type === "not" ? "not " : finding.type === "do" ? "set to " : "") + text;
}

export function saidOf(finding, node) {
  const text = valueText(finding, node);
  return { see: " observed ", not: " ", like: " uncertain, ", do: " " }[finding.type] + text;
}
