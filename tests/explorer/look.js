// Faults of the drawing: texts outside their place or over each other, edges through boxes, scroll bars.
() => {
  const faults = [];
  const inside = (a, b, room) => a.left >= b.left - room && a.right <= b.right + room && a.top >= b.top - room && a.bottom <= b.bottom + room;
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  const written = (parts) => parts.filter((t) => t.textContent && t.getBoundingClientRect().width).map((t) => [t.textContent, t.getBoundingClientRect()]);
  const apart = (texts) => texts.forEach(([t, a], i) => texts.slice(i + 1).forEach(([u, b]) => over(a, b) && faults.push(`over: ${t} / ${u}`)));
  const nodes = [...document.querySelectorAll('.nodes .node')];
  for (const g of nodes) {
    const box = g.querySelector('.box').getBoundingClientRect();
    const texts = written([...g.querySelectorAll('text')]);
    texts.forEach(([t, own]) => inside(own, box, 1) || faults.push('outside: ' + t));
    apart(texts);
  }
  const boxes = nodes.map((g) => g.querySelector('.box').getBoundingClientRect());
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => over(a, b) && faults.push('boxes overlap')));
  for (const path of document.querySelectorAll('.edges .edge')) {
    const m = path.getScreenCTM(), n = path.getTotalLength();
    for (let s = 4; s < n - 4; s += 6) {
      const p = path.getPointAtLength(s).matrixTransform(m);
      if (boxes.some((b) => p.x > b.left + 2 && p.x < b.right - 2 && p.y > b.top + 2 && p.y < b.bottom - 2)) { faults.push('edge through a box'); break; }
    }
  }
  // What is no graph: junction trees and messages, which may be larger than the page, sequences and processes.
  const canvas = document.querySelector('svg.canvas');
  const other = written([...canvas.querySelectorAll('text')].filter((t) => !t.closest('.nodes, .over')));
  apart(other);
  if (document.getElementById('app').explorer.other) other.forEach(([t, own]) => inside(own, canvas.getBoundingClientRect(), 1) || faults.push('outside: ' + t));
  const blocks = [...canvas.querySelectorAll('.clique, .factor, .round, .fixed, .card')].map((e) => e.getBoundingClientRect());
  blocks.forEach((a, i) => blocks.slice(i + 1).forEach((b) => over(a, b) && faults.push('blocks overlap')));
  const labels = [...canvas.querySelectorAll('.sep')].map((e) => e.getBoundingClientRect());
  labels.forEach((a) => blocks.some((b) => over(a, b)) && faults.push('a label over a clique'));
  for (const part of ['.top', '.tools']) {
    const own = written([...document.querySelectorAll(part + ' *')].filter((e) => e.childElementCount === 0 && e.textContent.trim()));
    apart(own);
    const bar = document.querySelector(part).getBoundingClientRect();
    own.forEach(([t, a]) => (a.right > bar.right + 1 || a.left < bar.left - 1) && faults.push('outside the bar: ' + t));
  }
  // Headings of the panel are shown whole.
  for (const e of document.querySelectorAll('aside h2 span')) if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline') faults.push('cut: ' + e.textContent);
  apart(written([...document.querySelectorAll('aside h2 > *, aside .field > span')]));
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth || page.scrollHeight > page.clientHeight) faults.push('scroll bars');
  const side = document.querySelector('aside');
  if (side.scrollWidth > side.clientWidth) faults.push('panel scrolls sideways');
  return [...new Set(faults)];
}
