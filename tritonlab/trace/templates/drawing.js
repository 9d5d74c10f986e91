/* Draws grids of elements on canvases that the mouse and the keyboard can read. */

const {html, render, useEffect, useLayoutEffect, useMemo, useRef, useState} = htmPreact;

/* Indices along an axis that are shown, about so many and all of keep; -1 stands where some are
   left out. */
function folded(size, most, span = null, keep = []) {
  if (size <= most) return Array.from({length: size}, (_, at) => at);
  const shown = new Set(), edge = Math.max(1, Math.min(3, Math.floor(most / 8)));
  const add = (from, to) => {
    for (let at = Math.max(0, from); at < Math.min(size, to); at++) shown.add(at);
  };
  const inner = new Set(keep.filter(at => at >= edge && at < size - edge));
  const room = Math.max(2, most - 2 * edge - 2 - inner.size);
  if (!span) add(0, Math.ceil(room / 2)), add(size - Math.floor(room / 2), size);
  else {
    const [lo, hi] = span, length = hi - lo + 3;
    if (length <= room) {
      const from = Math.max(0, lo - 1 - Math.floor((room - length) / 2));
      add(from, from + room);
    } else add(lo - 1, lo - 1 + Math.ceil(room / 2)), add(hi + 2 - Math.floor(room / 2), hi + 2);
  }
  add(0, edge), add(size - edge, size);
  for (const at of keep) add(at, at + 1);
  const indices = [];
  let last = -1;
  for (const at of [...shown].sort((a, b) => a - b)) {
    if (at > last + 2) indices.push(-1);
    else if (at === last + 2) indices.push(at - 1);
    indices.push(at);
    last = at;
  }
  return indices;
}

const GAP = 12, WIDE = 50, HIGH = 20;

/* Where the cells of a grid lie: rows and columns that are shown, their places and their size. */
function plan({rows, cols, width, height, large, rowSpan = null, colSpan = null, least = 4,
               keepRows = [], keepCols = [], most = 16, lastRow = String(rows - 1)}) {
  const label = Math.max(16, lastRow.length * 7 + 8);
  const room = Math.max(60, width - label - 2);
  const fits = cols * WIDE <= room && rows * HIGH <= height;
  const big = large || fits;
  const shownCols = folded(cols, Math.floor((room - (big ? GAP * (2 + keepCols.length) : 0)) / (big ? WIDE : least)),
                           colSpan, keepCols);
  const gaps = shownCols.filter(at => at < 0).length;
  const w = big ? WIDE : Math.max(
    least - 1, Math.min(most, Math.floor((room - gaps * GAP) / (shownCols.length - gaps))));
  const h = big ? HIGH : w;
  const shownRows = folded(rows, Math.max(3, Math.floor(height / h)), rowSpan, keepRows);
  const places = (indices, size, start) => {
    let at = start;
    return indices.map(index => {
      const place = at;
      at += index < 0 ? GAP : size;
      return place;
    }).concat([at]);
  };
  const x = places(shownCols, w, label), y = places(shownRows, h, 16);
  return {rows: shownRows, cols: shownCols, x, y, w, h, big, label,
          width: x[x.length - 1] + 1, height: y[y.length - 1] + (h < 12 ? 6 : 1)};
}

/* Colours of the page, for canvases. */
function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = name => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(
    ["card", "text", "soft", "rule", "empty", "unset", "loaded", "stored", "atomic", "undefined", "twice",
     "outside", "low", "high", "ink"].map(name => [name, of(name)]));
}

function channels(hex) {
  return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
}

const scales = new Map(), inks = new Map();

/* One of 33 colours between two. */
function mixed(from, to, share) {
  const key = from + to;
  if (!scales.has(key)) {
    const a = channels(from), b = channels(to);
    scales.set(key, Array.from({length: 33}, (_, step) => `#${a.map((one, i) =>
      Math.round(one + (b[i] - one) * step / 32).toString(16).padStart(2, "0")).join("")}`));
  }
  return scales.get(key)[Math.round(share * 32)];
}

function inkOn(hex) {
  if (!inks.has(hex)) {
    const [r, g, b] = channels(hex);
    inks.set(hex, 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111417" : "#ffffff");
  }
  return inks.get(hex);
}

/* Patterns say in shape what colours say: a dot, lines, a cross. */
const PATTERNS = {
  hatch(pen, x, y, w, h) { pen.moveTo(x, y + h), pen.lineTo(x + w, y); },
  dot(pen, x, y, w, h) {
    const size = Math.max(1.5, Math.min(w, h) / 3.2);
    pen.rect(x + (w - size) / 2, y + (h - size) / 2, size, size);
  },
  cross(pen, x, y, w, h) {
    pen.moveTo(x, y), pen.lineTo(x + w, y + h), pen.moveTo(x, y + h), pen.lineTo(x + w, y);
  },
  bars(pen, x, y, w, h) {
    for (const part of [0.3, 0.7]) pen.moveTo(x, y + h * part), pen.lineTo(x + w, y + h * part);
  },
  plus(pen, x, y, w, h) {
    pen.moveTo(x + w / 2, y), pen.lineTo(x + w / 2, y + h);
    pen.moveTo(x, y + h / 2), pen.lineTo(x + w, y + h / 2);
  },
  corner(pen, x, y, w, h) {
    const size = Math.min(w, h) / 2;
    pen.moveTo(x, y), pen.lineTo(x + size, y), pen.lineTo(x, y + size), pen.closePath();
  },
};

function drawGrid(canvas, shape, look, cursor, tints) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.ceil(shape.width * scale);
  canvas.height = Math.ceil(shape.height * scale);
  canvas.style.width = `${shape.width}px`;
  canvas.style.height = `${shape.height}px`;
  const pen = canvas.getContext("2d"), {w, h, x, y} = shape;
  const gap = Math.min(w, h) >= 4 ? 1 : 0, rings = [];
  pen.scale(scale, scale);
  pen.lineWidth = 1;
  pen.textBaseline = "middle";
  pen.font = "11px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
  pen.fillStyle = tints.soft;
  let free = -1;
  shape.cols.forEach((at, c) => {
    if (at < 0) return;
    const text = look.colText ? look.colText(at) : String(at);
    const start = c === 0 || shape.cols[c - 1] < 0;
    const length = text.length * 6.7 + 6;
    const every = 2 ** Math.ceil(Math.log2(Math.max(1, 40 / w)));
    if ((start || at % every === 0) && x[c] > free && x[c] + length <= shape.width + 8) {
      pen.fillText(text, x[c] + 1, 8);
      free = x[c] + length;
    }
  });
  free = 0;
  pen.textAlign = "right";
  shape.rows.forEach((at, r) => {
    if (at < 0) {
      pen.fillText("⋯", shape.label - 4, y[r] + GAP / 2);
      return;
    }
    if (y[r] + h / 2 < free) return;
    pen.fillText(look.rowText ? look.rowText(at) : String(at), shape.label - 4,
                 y[r] + Math.max(h / 2, 5));
    free = y[r] + h / 2 + 14;
  });
  pen.textAlign = "center";
  const patterns = new Map(), texts = [];
  shape.rows.forEach((row, r) => {
    if (row < 0) return;
    const top = y[r], wide = w - gap, high = h - gap;
    let fill = null, from = 0, to = 0;  // cells of one colour are one rectangle
    const flush = () => {
      if (fill) pen.fillStyle = fill, pen.fillRect(from, top, to - from, high);
    };
    shape.cols.forEach((col, c) => {
      const left = x[c], cell = col < 0 ? null : look.cell(row, col);
      if (col < 0 && (h >= 10 || r % 4 === 1)) texts.push(["⋯", left + 6, top + h / 2, tints.soft]);
      if (!cell || cell.fill !== fill || left - gap !== to) {
        flush();
        fill = cell ? cell.fill : null;
        from = left;
      }
      to = left + wide;
      if (!cell) return;
      if (cell.pattern) {
        const key = `${cell.pattern} ${cell.mark || inkOn(cell.fill)}`;
        if (!patterns.has(key)) patterns.set(key, new Path2D());
        PATTERNS[cell.pattern](patterns.get(key), left, top, wide, high);
      }
      if (cell.ring) rings.push([left, top, wide, high, cell.ring]);
      if (cell.text && w >= 18 && cell.text.length * 6.7 <= wide)
        texts.push([cell.text, left + wide / 2, top + high / 2 + 0.5, inkOn(cell.fill)]);
    });
    flush();
  });
  if (gap) {
    pen.fillStyle = tints.card;
    shape.cols.forEach((at, c) => {
      if (at >= 0) pen.fillRect(x[c] + w - gap, 16, gap, shape.height);
    });
  }
  if (shape.big) pen.globalAlpha = 0.35;
  for (const [key, path] of patterns) {
    const [pattern, colour] = key.split(" ");
    pen.strokeStyle = pen.fillStyle = colour;
    if (/dot|corner/.test(pattern)) pen.fill(path); else pen.stroke(path);
  }
  pen.globalAlpha = 1;
  for (const [text, left, top, colour] of texts)
    pen.fillStyle = colour, pen.fillText(text, left, top);
  if (cursor) rings.push([x[cursor.c], y[cursor.r], w - gap, h - gap, tints.text]);
  for (const [left, top, wide, high, colour] of rings) {
    pen.lineWidth = 2;
    pen.strokeStyle = colour;
    pen.strokeRect(left - 1, top - 1, wide + 2, high + 2);
  }
}

const tip = {
  show(text, x, y) {
    const element = document.getElementById("tip");
    element.textContent = text;
    element.hidden = !text;
    if (!text) return;
    const {width, height} = element.getBoundingClientRect();
    element.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
    element.style.top = `${y + 18 + height > innerHeight ? Math.max(0, y - height - 10) : y + 18}px`;
  },
  hide() { document.getElementById("tip").hidden = true; },
};

/* A grid. look: cell(row, col), describe(row, col), pick(row, col), rowText, colText. mark: what
   the drawing depends on; it is drawn anew where this differs, or where it is null. */
function Grid({shape, look, name, tints, mark = null}) {
  const canvas = useRef(null), cursor = useRef(null), drawn = useRef(null);
  const redraw = () => drawGrid(canvas.current, shape, look, cursor.current, tints);
  useLayoutEffect(() => {
    if (drawn.current === mark && mark !== null) return;
    drawn.current = mark;
    if (cursor.current && !(shape.rows[cursor.current.r] >= 0 && shape.cols[cursor.current.c] >= 0))
      cursor.current = null;
    redraw();
  });
  const cellAt = event => {
    const box = canvas.current.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    const c = shape.cols.findIndex((at, i) => at >= 0 && px >= shape.x[i] && px < shape.x[i] + shape.w);
    const r = shape.rows.findIndex((at, i) => at >= 0 && py >= shape.y[i] && py < shape.y[i] + shape.h);
    return r >= 0 && c >= 0 && look.cell(shape.rows[r], shape.cols[c]) ? {r, c} : null;
  };
  const textAt = ({r, c}) => look.describe(shape.rows[r], shape.cols[c]);
  const hover = event => {
    const at = cellAt(event);
    tip.show(at ? textAt(at) : "", event.clientX, event.clientY);
  };
  const click = event => {
    const at = cellAt(event);
    if (at && look.pick) look.pick(shape.rows[at.r], shape.cols[at.c]);
  };
  const key = event => {
    const moves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
    const move = moves[event.key], choose = event.key === "Enter" || event.key === " ";
    if (!move && !choose || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const now = cursor.current;
    if (choose) {
      if (now && look.pick) look.pick(shape.rows[now.r], shape.cols[now.c]);
      return;
    }
    let {r, c} = now || {r: -move[0], c: -move[1]};
    do r += move[0], c += move[1];
    while (shape.rows[r] < 0 || shape.cols[c] < 0);
    if (shape.rows[r] === undefined || shape.cols[c] === undefined
        || !look.cell(shape.rows[r], shape.cols[c])) return;
    cursor.current = {r, c};
    redraw();
    const box = canvas.current.getBoundingClientRect();
    tip.show(textAt({r, c}), box.left + shape.x[c], box.top + shape.y[r]);
    document.getElementById("aloud").textContent = textAt({r, c});
  };
  const leave = () => {
    cursor.current = null;
    tip.hide();
    redraw();
  };
  return html`<canvas ref=${canvas} tabindex="0" role="application" aria-label=${name}
    class=${look.pick ? "picks" : ""} onMouseMove=${hover} onMouseLeave=${tip.hide}
    onMouseDown=${event => event.preventDefault()} onClick=${click} onKeyDown=${key}
    onBlur=${leave}></canvas>`;
}
