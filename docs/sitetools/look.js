// Faults of a page as it is shown: it scrolls sideways, a text is pale or tiny, an image is bent or shrunk.
// Wide tables, code and figures may scroll in a box of their own. Figures are drawn with texts of at least `smallest`
// pixels (sitetools/figures.py), so that one shown at its own size can be read; thumbnails are links to such figures.
({ smallest, contrast }) => {
  const faults = [];
  const fault = (kind, example) => faults.push([kind, example]);
  const own = 'pre, table, math, nav, .sig, .full-size, .output_html, [class*=sidebar]'; // may scroll by themselves
  const page = document.documentElement, root = document.body || page;
  const place = (e) => {
    const own = (x) => x.tagName.toLowerCase() + (x.classList.length ? '.' + x.classList[0] : '');
    return e.parentElement && e.parentElement !== root ? `${own(e.parentElement)} > ${own(e)}` : own(e);
  };
  const widest = (box) => { // what is wider than the box that holds it
    const edge = box.getBoundingClientRect().left + box.clientWidth + 1;
    const wide = [...box.querySelectorAll('*')].filter((e) => e.getBoundingClientRect().right > edge && shown(e));
    const free = wide.filter((e) => !e.parentElement.closest(own));
    return `${box.scrollWidth} px in ${box.clientWidth}: ${free.slice(-2).map(place)}`;
  };
  const shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  // ------------------------------------------------------------------------------------------------ colors
  const canvas = document.createElementNS('http://www.w3.org/1999/xhtml', 'canvas').getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const color = (text) => {
    if (!known.has(text)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = text;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((c, i) => c * a + under[i] * (1 - a)).concat(1);
  const faded = ([r, g, b, a], by) => [r, g, b, a * by];
  const light = (c) => {
    const [r, g, b] = c.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  };
  const grounds = new Map();
  const ground = (e) => { // what an element stands on, its own background included; and how far it is faded
    if (!e) return [over(color(getComputedStyle(document.documentElement).colorScheme.includes('dark') ? '#121212' : '#fff'), [255, 255, 255]), 1];
    if (!grounds.has(e)) {
      const [under, fade] = ground(e.parentElement), style = getComputedStyle(e), all = fade * style.opacity;
      grounds.set(e, [e instanceof SVGElement && !(e instanceof SVGSVGElement) ? under : over(faded(color(style.backgroundColor), all), under), all]);
    }
    return grounds.get(e);
  };
  const below = (text) => { // the shapes of a drawing that are painted before this text and hold its middle
    const svg = text.ownerSVGElement, box = text.getBoundingClientRect();
    let [under] = ground(svg);
    for (const shape of svg.querySelectorAll('rect, circle, ellipse, path, polygon')) {
      if (!(shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
      const style = getComputedStyle(shape);
      if (style.fill === 'none' || shape.closest('defs, marker, clipPath') || !shown(shape)) continue;
      const point = new DOMPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
      if (shape.isPointInFill(point.matrixTransform(shape.getScreenCTM().inverse())))
        under = over(faded(color(style.fill), style.fillOpacity * ground(shape)[1]), under);
    }
    return under;
  };

  // ------------------------------------------------------------------------------------------------- texts
  const seen = new Set();
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (seen.has(e) || !walk.currentNode.data.trim() || e.closest('script, style, noscript, template, title, desc')) continue;
    seen.add(e);
    const box = e.getBoundingClientRect();
    if (box.width < 2 || box.height < 2 || !shown(e)) continue;
    const style = getComputedStyle(e), drawn = e instanceof SVGElement && e.ownerSVGElement;
    const under = drawn ? below(e.closest('text') || e) : ground(e)[0];
    const ink = faded(color(drawn ? style.fill : style.color), ground(e)[1] * (drawn ? style.fillOpacity : 1));
    const r = ratio(over(ink, under), under);
    if (r < contrast - 0.005) fault(`contrast ${r.toFixed(1)}: ${place(e)}`, e.textContent.trim().slice(0, 30));
    if (drawn && (!e.closest('a') || e.closest('a') === drawn.closest('a'))) {
      const m = e.getScreenCTM(), size = parseFloat(style.fontSize) * Math.hypot(m.a, m.b);
      if (size < smallest - 0.05) fault(`${size.toFixed(1)} px in a drawing`, e.textContent.trim().slice(0, 30));
    }
  }
  for (const e of root.querySelectorAll('*')) {
    for (const part of ['::before', '::after']) {
      const style = getComputedStyle(e, part);
      if (!/^"[^"]*[a-z]/i.test(style.content) || !shown(e)) continue;
      const [under, fade] = ground(e), on = over(faded(color(style.backgroundColor), fade), under);
      const r = ratio(over(faded(color(style.color), fade * style.opacity), on), on);
      if (r < contrast - 0.005) fault(`contrast ${r.toFixed(1)}: ${place(e)}${part}`, style.content);
    }
  }

  // ------------------------------------------------------------------------------------------------ images
  for (const image of document.images) {
    const box = image.getBoundingClientRect();
    if (!shown(image)) continue;
    const name = image.currentSrc.split('/').pop();
    if (!image.complete) image.loading = 'eager';
    else if (!image.naturalWidth) fault('no image', name);
    else {
      const across = box.width / image.naturalWidth, down = box.height / image.naturalHeight;
      if (Math.abs(across / down - 1) > 0.02) fault(`bent: ${across.toFixed(2)} × ${down.toFixed(2)}`, name);
      if (across < 0.995 && !image.closest('a, .sphx-glr-thumbcontainer')) fault(`shrunk to ${across.toFixed(1)}`, name);
    }
  }

  // ------------------------------------------------------------------------------------------------- width
  for (const box of root.querySelectorAll('*')) {
    if (box.scrollWidth <= box.clientWidth + 1 || box.closest(own) || !shown(box)) continue;
    if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) fault(`scrolls sideways: ${place(box)}`, widest(box));
  }
  if (page instanceof SVGSVGElement) page.hasAttribute('width') || fault('a drawing without a size of its own', '');
  else if (page.scrollWidth > page.clientWidth) fault('the page scrolls sideways', widest(page));
  return faults;
}
