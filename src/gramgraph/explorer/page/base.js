// Elements, numbers and icons. Names of variables and states are always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

// A text whose control characters are written out: none can hide, or turn the direction of what stands beside it.
export function visible(text) {
  return String(text).replace(/[\u0000-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g, (c) => (c === "\n" ? "\\n" : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")));
}

export function make(tag, className, parent, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = visible(text);
  if (parent) parent.append(e);
  return e;
}

export function shape(tag, attributes, parent, text) {
  const e = document.createElementNS(SVG, tag);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text !== undefined) e.textContent = text;
  if (parent) parent.append(e);
  return e;
}

export function button(text, className, parent, run, label) {
  const b = make("button", className, parent, text);
  b.type = "button";
  if (label) b.setAttribute("aria-label", label);
  if (label && !text) b.title = label;
  if (run) b.addEventListener("click", run);
  return b;
}

const PATHS = {
  see: "M5.5 2h5M6 2v4L4.500 8.500h7L10 6V2M8 8.500V14",
  not: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2M4 12 12 4",
  like: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2M8 2v12",
  do: "M4 7.500h8V14H4ZM5.500 7.500V5a2.500 2.500 0 0 1 5 0v2.500",
  target: "M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2M8 6.500a1.500 1.500 0 1 0 0 3 1.500 1.500 0 1 0 0-3",
  clash: "M8 2.500 14.500 13.500H1.500ZM8 6.500v3.500M8 11.800v.4",
  undo: "M5.500 3 2.500 6l3 3M2.500 6h7a4 4 0 0 1 0 8H7",
  redo: "m10.500 3 3 3-3 3M13.500 6h-7a4 4 0 0 0 0 8H9",
  theme: "M13 9.500A5.500 5.500 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500Z",
  search: "M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 1 0 0-9M10.500 10.500 14 14",
};

export function icon(name, parent, x, y) {
  const g = shape("g", { class: "icon " + name, transform: `translate(${x},${y})` }, parent);
  shape("path", { d: PATHS[name] }, g);
  return g;
}

export function iconBox(name, parent) {
  const box = shape("svg", { viewBox: "0 0 16 16", width: 16, height: 16, class: "glyph " + name, "aria-hidden": "true" }, parent);
  shape("path", { d: PATHS[name] }, box);
  return box;
}

export function percent(p) {
  if (p === null || p === undefined || Number.isNaN(p)) return "–";
  if (p === 0 || p === 1) return 100 * p + "%";
  if (p < 0.0005) return "<0.1%";
  if (p >= 0.9995) return ">99.9%";
  return (100 * p).toFixed(1) + "%";
}

// Whole percents, where there is little room.
export function roughPercent(p) {
  if (p === 0 || p === 1) return 100 * p + "%";
  return p >= 0.995 ? ">99%" : p < 0.005 ? "<1%" : Math.round(100 * p) + "%";
}

// A difference of probabilities in points: +7.9.
export function points(d) {
  return (d < 0 ? "−" : "+") + (100 * Math.abs(d)).toFixed(1);
}

export function number(x, digits = 4) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e15 || size < 1e-4) return x.toExponential(Math.max(digits - 2, 1)).replace("-", "−");
  const places = Math.max(0, Math.min(8, digits - 1 - Math.floor(Math.log10(size))));
  const rounded = places === 0 ? Number(x.toPrecision(digits)) : x;
  const text = rounded.toLocaleString("en-US", { maximumFractionDigits: places });
  return text.replace("-", "−");
}

export function short(x, digits = 4) {
  return Math.abs(x) >= 10000 ? number(x / 1000, digits) + "k" : number(x, digits);
}

export function signed(x, digits = 3) {
  if (x === null || Math.abs(x) < 0.005) return "0";
  if (Math.abs(x) > 1e200) return x < 0 ? "−∞" : "+∞";
  return (x < 0 ? "−" : "+") + number(Math.abs(x), digits);
}

export function degrees(radians) {
  return Math.round((((radians * 180) / Math.PI) % 360) + 360) % 360;
}

export function ratio(weights) {
  const least = Math.min(...weights.filter((w) => w > 0));
  return weights.map((w) => number(w / least, 3)).join(" : ");
}

export function clamp(x, low, high) {
  return Math.min(Math.max(x, low), high);
}

// Pixels that a text takes, measured without touching the page.
let pen = null;
let penStyle = "";
export function textWidth(text, size, bold) {
  pen = pen || document.createElement("canvas").getContext("2d");
  const style = (bold ? 600 : 400) + " " + size;
  if (style !== penStyle) pen.font = style + 'px Inter, system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
  penStyle = style;
  return pen.measureText(text).width;
}

export function cutText(text, room, size, bold) {
  let cut = text.slice(0, Math.ceil(room)); // of a name without end, what could fit at all
  if (textWidth(cut, size, bold) <= room) return cut;
  cut = cut.replace(/…$/, "");
  while (cut && textWidth(cut + "…", size, bold) > room) cut = cut.slice(0, -1);
  return cut + "…";
}

export function logText(x) {
  return (Math.abs(x) < 5e-4 ? 0 : x).toFixed(3).replace("-", "−");
}
