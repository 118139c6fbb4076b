// Faults of the drawing: texts outside their node or over each other, edges through boxes, scroll bars.
() => {
  const faults = [];
  const inside = (a, b, room) => a.left >= b.left - room && a.right <= b.right + room && a.top >= b.top - room && a.bottom <= b.bottom + room;
  const over = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  const nodes = [...document.querySelectorAll('.nodes .node')];
  for (const g of nodes) {
    const box = g.querySelector('.box').getBoundingClientRect();
    const texts = [...g.querySelectorAll('text')].filter((t) => t.textContent && t.getBoundingClientRect().width);
    texts.forEach((t, i) => {
      const own = t.getBoundingClientRect();
      if (!inside(own, box, 1)) faults.push('outside: ' + t.textContent);
      texts.slice(i + 1).forEach((u) => over(own, u.getBoundingClientRect()) && faults.push(`over: ${t.textContent} / ${u.textContent}`));
    });
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
  const html = [...document.querySelectorAll('.top *, .tools *, aside *')].filter((e) => e.childElementCount === 0 && e.textContent.trim() && e.getBoundingClientRect().width);
  const rects = html.map((e) => [e, e.getBoundingClientRect()]);
  for (const part of ['.top', '.tools']) {
    const own = rects.filter(([e]) => e.closest(part));
    own.forEach(([e, a], i) => own.slice(i + 1).forEach(([f, b]) => over(a, b) && faults.push(`over: ${e.textContent} / ${f.textContent}`)));
    const bar = document.querySelector(part).getBoundingClientRect();
    own.forEach(([e, a]) => (a.right > bar.right + 1 || a.left < bar.left - 1) && faults.push('outside the bar: ' + e.textContent));
  }
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth || page.scrollHeight > page.clientHeight) faults.push('scroll bars');
  const side = document.querySelector('aside');
  if (side.scrollWidth > side.clientWidth) faults.push('panel scrolls sideways');
  return [...new Set(faults)];
}
