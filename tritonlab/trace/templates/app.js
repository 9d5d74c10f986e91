/* The page: where the reader is in the trace, and what is drawn for that place. */

const WORDS = {load: "loads", store: "stores", atomic: "updates atomically"};
const PALETTE = ["#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#d55e00", "#f0e442"];
const SEVERAL = "#999999";
const CELLS = {  // by state: colour, pattern, word
  [LOADED]: ["loaded", null, "loaded"],
  [STORED]: ["stored", "dot", "stored"], [ATOMIC]: ["atomic", "plus", "updated atomically"],
  [UNDEFINED]: ["undefined", "corner", "loaded, but undefined: nothing was stored there before"],
  [TWICE]: ["twice", "bars", "stored by several programs"],
};

/* One form for a program everywhere: its number, and its place in a grid of several axes. */
const programText = (launch, program) => {
  const axes = launch.grid.findLastIndex(size => size > 1) + 1;
  return `program ${program}${axes > 1
    ? `, at (${coordinates(launch, program).slice(0, axes).join(", ")})` : ""}`;
};
const capital = text => text[0].toUpperCase() + text.slice(1);

function coordinates(launch, program) {
  const [x, y] = launch.grid;
  return [program % x, Math.floor(program / x) % y, Math.floor(program / (x * y))];
}

// ------------------------------------------------------------------------------- the steps

function App({trace}) {
  const launches = trace.launches.filter(launch => launch.programs.length);
  const [at, setAt] = useState(() => start(trace, launches));
  const [all, setAll] = useState(false);
  const [large, setLarge] = useState(false);
  const [pick, setPick] = useState(() => at.mark == null ? null : picked(trace, trace.marks[at.mark]));
  const [notice, setNotice] = useState("");
  const [width, tints] = useScreen();
  const launch = trace.launches[at.l], {group, row} = launch.where.get(at.p);
  const step = group.steps[at.s];

  const go = place => {
    setNotice("");
    setAt(place);
  };
  const toStep = s => s >= 0 && s < group.steps.length && go({l: at.l, p: at.p, s});
  const toProgram = program => go(sameLine(launch, at, program));
  const byProgram = move => {
    const order = launch.programs, next = order[order.indexOf(at.p) + move];
    if (next !== undefined) toProgram(next);
  };
  const toMark = number => {
    const mark = trace.marks[number];
    if (!mark.at) return setNotice("This finding is at no line of the traced programs.");
    go({...mark.at, mark: number});
    setPick(picked(trace, mark));
  };
  const nextMark = () => {
    const order = trace.marks.filter(mark => mark.at);
    if (!order.length) return setNotice(trace.marks.length
      ? "No finding is at a line of the traced programs." : "There are no findings.");
    const last = order.findIndex(mark => mark.number === at.mark);
    toMark(order[(last + 1) % order.length].number);
  };
  const toLine = line => {
    const start = trace.startOf(line);
    const places = group.steps.map((one, s) => one.line === start ? s : -1).filter(s => s >= 0);
    if (!places.length) return setNotice(`Line ${line} does not run in ${programText(launch, at.p)}.`);
    toStep(places.find(s => s > at.s) ?? places[0]);
  };

  useLayoutEffect(() => {
    const onKey = event => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const {target, key} = event;
      const types = target.matches("select, input[type=number]");
      if (types && key !== "Escape") return;
      const acts = {
        ArrowLeft: () => toStep(at.s - 1), ArrowRight: () => toStep(at.s + 1),
        ArrowUp: () => byProgram(-1), ArrowDown: () => byProgram(1),
        f: nextMark, a: () => setAll(!all), v: () => setLarge(!large),
        "/": () => document.getElementById("line").select(),
        Escape: () => types ? target.blur() : setPick(null),
      };
      if (!acts[key] || target.matches("input[data-axis]") && key.startsWith("Arrow")) return;
      event.preventDefault();
      acts[key]();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  });
  useLayoutEffect(() => {
    const line = document.querySelector(".lines .current"), pane = document.querySelector(".lines");
    if (!line) return;
    const below = innerHeight - pane.getBoundingClientRect().top;  // what the window shows of it
    const high = below < 120 ? pane.clientHeight : Math.min(below, pane.clientHeight);
    if (line.offsetTop < pane.scrollTop + 40 || line.offsetTop > pane.scrollTop + high - 60)
      pane.scrollTop = line.offsetTop - high / 2;
  }, [at]);

  const context = {trace, at, launch, group, row, step, go, toStep, toProgram, byProgram, toMark,
                   nextMark, toLine, all, setAll, large, setLarge, pick, setPick, width, tints,
                   launches, accesses: trace.accesses(launch, at.p, at.s)};
  return html`
    <${Findings} ...${context} />
    <${Notices} ...${context} />
    <${Bar} ...${context} notice=${notice} />
    <div class="split">
      <${Source} ...${context} />
      <div>
        <${Here} ...${context} />
        ${pick && html`<${Why} ...${context} />`}
        <${Tensors} ...${context} />
        <${Variables} ...${context} />
        <${Hardware} ...${context} />
      </div>
    </div>
    <div id="tip" hidden></div><p id="aloud" class="aloud" aria-live="polite"></p>`;
}

/* The first finding, or the first load. */
function start(trace, launches) {
  const mark = trace.marks.find(one => one.at);
  if (mark) return {...mark.at, mark: mark.number};
  const launch = launches[0], program = launch.programs[0];
  const {steps} = launch.where.get(program).group;
  const load = steps.findIndex(step => (step.accesses || []).some(one => one.kind === "load"));
  return {l: launch.number, p: program, s: Math.max(0, load)};
}

function picked(trace, mark) {
  const offset = trace.markedOffset(mark);
  return offset === null ? null : {tensor: mark.tensor, offset};
}

/* The same line of another program, in the same turn of its loop. */
function sameLine(launch, at, program) {
  const steps = launch.where.get(at.p).group.steps, others = launch.where.get(program).group.steps;
  const {line, turn = 0} = steps[at.s];
  let s = steps === others ? at.s
    : others.findIndex(one => one.line === line && (one.turn || 0) === turn);
  if (s < 0) s = others.findIndex(one => one.line === line);
  return {l: at.l, p: program, s: s < 0 ? Math.min(at.s, others.length - 1) : s};
}

function useScreen() {
  const measure = () => [document.getElementById("app").clientWidth, colours()];
  const [screen, setScreen] = useState(measure);
  useEffect(() => {
    const renew = () => setScreen(measure());
    const dark = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("resize", renew);
    dark.addEventListener("change", renew);
    renew();
    return () => (removeEventListener("resize", renew), dark.removeEventListener("change", renew));
  }, []);
  return screen;
}

// ------------------------------------------------------------------------------- the top

function Findings({trace, at, toMark}) {
  if (!trace.marks.length) return null;
  return html`<ul class="findings" aria-label="Findings">${trace.marks.map(mark => html`
    <li class=${`card ${mark.number === at.mark ? "now" : ""}`}>
      <div class="text">${blocksOf(mark.text).map(([picture, text], number) => picture
        ? html`<pre>${text}</pre>` : html`<p>${!number && html`<b>${mark.code}</b> `}${text}</p>`)}
        ${mark.expected && !mark.text.includes(mark.expected) && html`<p class="soft">It is
          ${" "}${mark.got}; ${mark.expected} was expected.</p>`}</div>
      <button disabled=${!mark.at} onClick=${() => toMark(mark.number)}
        aria-label=${`Show finding ${mark.number + 1}`}>
        ${mark.at ? `Show at line ${mark.at.line}` : "Not in this trace"}</button>
    </li>`)}</ul>`;
}

/* The text of a finding in paragraphs and pictures: pairs (is it a picture, text). */
function blocksOf(text) {
  const blocks = [];
  for (const line of text.split("\n")) {
    const picture = /^[.x+ ]+$/.test(line);
    if (blocks.length && blocks.at(-1)[0] === picture) blocks.at(-1)[1] += `\n${line}`;
    else blocks.push([picture, line]);
  }
  return blocks;
}

function Notices({trace, launch}) {
  const whole = product(launch.grid), traced = launch.programs;
  const shown = traced.length > 12
    ? `${traced.slice(0, 8).join(", ")}, …, ${traced[traced.length - 1]}` : traced.join(", ");
  return html`
    ${traced.length < whole && html`<p class="summary warn">${grouped(traced.length)} of
      ${" "}${grouped(whole)} programs are traced, as all would be too many: ${shown}.</p>`}
    ${trace.cut && html`<p class="summary warn">The programs did more than a trace holds: its last
      steps are left out.</p>`}`;
}

function Bar(context) {
  const {trace, at, launch, group, launches, toStep, toProgram, byProgram, toLine, nextMark, go,
         all, setAll, large, setLarge, notice} = context;
  const bar = useRef(null), place = coordinates(launch, at.p);
  useLayoutEffect(() => {
    document.documentElement.style.setProperty("--bar-height", `${bar.current.offsetHeight + 12}px`);
  });
  const onAxis = axis => event => {
    const wanted = place.slice();
    wanted[axis] = Number(event.currentTarget.value);
    const program = wanted[0] + launch.grid[0] * (wanted[1] + launch.grid[1] * wanted[2]);
    toProgram(nearest(launch, program, axis, wanted[axis] - place[axis]));
  };
  return html`<nav class="card bar" ref=${bar} aria-label="Steps">
    <div class="line">
      <button onClick=${() => toStep(at.s - 1)} disabled=${!at.s}
        title="Left arrow" aria-label="Previous line">◀ Line</button>
      <button onClick=${() => toStep(at.s + 1)} disabled=${at.s === group.steps.length - 1}
        title="Right arrow" aria-label="Next line">Line ▶</button>
      <div class="time grow"><${Strip} ...${context} />
        <input type="range" id="time" min="0" max=${group.steps.length - 1} value=${at.s}
          aria-label="Step of this program" onInput=${event => toStep(Number(event.currentTarget.value))} />
      </div>
      <span class="fixed">step ${at.s + 1} of ${group.steps.length}</span>
    </div>
    <div class="line">
      ${launches.length > 1 && html`<label>Launch <select id="launch" value=${at.l}
        onChange=${event => {
          const next = trace.launches[Number(event.currentTarget.value)];
          go(start({marks: []}, [next]));
        }}>${launches.map(one => html`<option value=${one.number} selected=${one.number === at.l}>
          ${one.number + 1}: ${one.kernel}</option>`)}</select></label>`}
      <button onClick=${() => byProgram(-1)} disabled=${at.p === launch.programs[0]}
        title="Up arrow" aria-label="Previous program">▲</button>
      <button onClick=${() => byProgram(1)} title="Down arrow" aria-label="Next program"
        disabled=${at.p === launch.programs[launch.programs.length - 1]}>▼</button>
      <span class="fixed">${capital(programText(launch, at.p))} (${grouped(product(launch.grid))} in all)</span>
      ${launch.grid.map((size, axis) => size > 1 && html`<label>
        <span>axis ${axis}</span><input type="range" data-axis=${axis} min="0" max=${size - 1}
          value=${place[axis]} aria-label=${`Program along axis ${axis}`} onInput=${onAxis(axis)} />
        <span class="fixed">${place[axis]}</span></label>`)}
      <label title="a"><input type="checkbox" id="all" checked=${all}
        onChange=${() => setAll(!all)} />All programs</label>
      <label title="v"><input type="checkbox" id="large" checked=${large}
        onChange=${() => setLarge(!large)} />Values in cells</label>
      <label title="/">Line <input type="number" id="line" min="1" max=${trace.source.length}
        style="width: 5em" onKeyDown=${event => {
          if (event.key !== "Enter") return;
          toLine(Number(event.currentTarget.value));
          event.currentTarget.blur();
        }} /></label>
      ${trace.marks.length > 0 && html`<button id="next" title="f" onClick=${nextMark}>
        Next finding</button>`}
    </div>
    <div class="line soft small"><span><kbd>←</kbd> <kbd>→</kbd> line</span>
      <span><kbd>↑</kbd> <kbd>↓</kbd> program</span>${trace.marks.length > 0
        && html`<span><kbd>f</kbd> next finding</span>`}
      <span><kbd>/</kbd> go to a line</span><span><kbd>a</kbd> all programs</span>
      <span><kbd>v</kbd> values</span><span id="notice" class="bad" role="status">${notice}</span></div>
  </nav>`;
}

/* The traced program next to one, first along the axis that moved. */
function nearest(launch, program, axis, move) {
  if (launch.where.has(program)) return program;
  const wanted = coordinates(launch, program);
  const ahead = launch.programs.filter(
    one => (coordinates(launch, one)[axis] - wanted[axis]) * move >= 0);
  const far = one => coordinates(launch, one).reduce(
    (sum, at, i) => sum + Math.abs(at - wanted[i]) * (i === axis ? 1 : 1e-3), 0);
  return (ahead.length ? ahead : launch.programs).reduce(
    (best, one) => far(one) < far(best) ? one : best);
}

/* The time axis: loads, stores and findings of this program. */
function Strip({trace, at, group, tints, width}) {
  const canvas = useRef(null);
  const marks = trace.marks.filter(mark => mark.at && mark.at.l === at.l && mark.at.p === at.p);
  useLayoutEffect(() => {
    const {current} = canvas, scale = window.devicePixelRatio || 1;
    current.width = current.clientWidth * scale, current.height = 12 * scale;
    const pen = current.getContext("2d"), last = Math.max(1, group.steps.length - 1);
    pen.scale(scale, scale);
    const tick = (s, colour, top, high, wide) => {
      pen.fillStyle = colour;
      pen.fillRect(s / last * (current.clientWidth - wide), top, wide, high);
    };
    group.steps.forEach((step, s) => (step.accesses || []).forEach(({kind}) =>
      tick(s, tints[CELLS[{load: LOADED, store: STORED, atomic: ATOMIC}[kind]][0]],
           kind === "load" ? 6 : 2, kind === "load" ? 6 : 10, 3)));
    marks.forEach(mark => {
      const x = mark.at.s / last * (current.clientWidth - 3) + 1.5;
      pen.fillStyle = tints.outside;
      pen.beginPath();
      pen.moveTo(x - 5, 0), pen.lineTo(x + 5, 0), pen.lineTo(x, 9);
      pen.fill();
    });
  }, [at.l, at.p, group, tints, width]);
  return html`<canvas ref=${canvas} role="img" aria-label=${
    `Time axis of this program, with ${plural(marks.length, "finding")}`}></canvas>`;
}

// ------------------------------------------------------------------------------- the source

function Source({trace, launch, step, toLine}) {
  const counts = trace.lineCounts(launch);
  const flagged = new Set(trace.marks.map(mark => mark.at ? mark.at.line : mark.line));
  const row = (line, current) => {
    const count = counts.get(line);
    const kinds = [counts.has(trace.startOf(line)) && "ran", current && "current", flagged.has(line) && "flagged"];
    return html`<tr key=${line} class=${kinds.filter(Boolean).join(" ")}
      aria-current=${current ? "step" : null}>
      <td class="number">${count ? html`<button data-line=${line} tabindex="-1"
        aria-label=${`Go to line ${line}`}>${line}</button>` : html`<span>${line}</span>`}</td>
      <td class="counts">${count ? `${grouped(count.runs)}×` : ""}</td>
      <td class="counts">${count ? moved(count) : ""}</td>
      <td><code>${trace.code[line - 1].map(([kind, text]) => kind
        ? html`<span class=${kind}>${text}</span>` : text)}</code></td></tr>`;
  };
  // Rows that stay the same object are not compared again.
  const rows = useMemo(() => trace.code.map((_, i) => row(i + 1, false)), [launch]);
  return html`<section class="code-pane"><h2>Source</h2><div class="card lines" tabindex="0"
    role="region" aria-label="Source"><table>
    <thead><tr><th scope="col">line</th><th scope="col">runs</th><th scope="col">moved</th>
      <th scope="col"></th></tr></thead>
    <tbody onClick=${event => {
      const {line} = event.target.dataset;
      if (line) toLine(Number(line));
    }}>${rows.map((one, i) => i + 1 >= step.line && i + 1 <= (step.end || step.line)
      ? row(i + 1, true) : one)}</tbody>
    </table></div></section>`;
}

const moved = ({loaded, stored}) => [loaded && `↓ ${bytesText(loaded)}`,
                                     stored && `↑ ${bytesText(stored)}`].filter(Boolean).join(" ");

// ------------------------------------------------------------------------------- this line

/* One sentence per access. */
function sentences(trace, one) {
  const name = one.tensor ? one.tensor.name : "memory that belongs to no tensor";
  const end = one.tensor ? one.tensor.elements : 0;
  const parts = [];
  if (!one.count) return [`${WORDS[one.kind]} elements of ${name}, which this trace left out.`];
  const box = trace.accessBox(one);
  const whole = box ? ` of ${trace.boxText(one.tensor, box)}` : ` of ${name}`;
  const inside = one.active - one.outside, places = distinct(one);
  const first = one.active === 0
    ? `${WORDS[one.kind]} nothing of ${name}: ${one.count === 1 ? "the mask is off"
        : `all ${grouped(one.count)} elements are masked off`}.`
    : `${WORDS[one.kind]} ${inside === 1 && box ? trace.boxText(one.tensor, box)
        : `${plural(inside, "element")}${whole}`}${
        places < inside ? `, ${grouped(places)} of them distinct` : ""}.`;
  parts.push(first[0].toUpperCase() + first.slice(1));
  if (one.active && one.masked) parts.push(`${plural(one.masked, "element")} masked off${
    one.kind !== "load" ? "." : one.filled ? `, filled with ${otherText(one)}.`
      : "; without `other` their values are undefined."}`);
  if (one.hidden) parts.push(`Without the mask, ${plural(one.hidden, "element")} would be out of bounds.`);
  if (one.outside) {
    const outside = [...one.offset].filter((at, i) =>
      (at < 0 || at >= end) && (!one.mask || one.mask[i])).sort((a, b) => a - b);
    const lo = outside[0], hi = outside[outside.length - 1];
    parts.push({bad: `${plural(one.outside, "element")} out of bounds: ${
      lo === hi ? `element ${grouped(lo)}` : `elements ${grouped(lo)} to ${grouped(hi)}`}, where ${
      name} has ${grouped(end)}.`});
  }
  if (one.undefineds) parts.push({bad: `${plural(one.undefineds,
    "element")} undefined: nothing was stored there before.`});
  return parts;
}

/* How many elements of its tensor an access touches; some of them it may touch several times. */
function distinct({offset, mask, tensor, count}) {
  const places = new Set();
  for (let i = 0; i < count; i++)
    if ((!mask || mask[i]) && offset[i] >= 0 && offset[i] < (tensor ? tensor.elements : Infinity))
      places.add(offset[i]);
  return places.size;
}

/* `other` with the value that the masked-off elements have. */
function otherText({value, mask, tensor}) {
  const at = value && mask ? mask.indexOf(0) : -1;
  const same = at >= 0 && value.every((number, i) => mask[i] || Object.is(number, value[at]));
  return `\`other\`${same ? ` = ${numberText(value[at], tensor ? tensor.dtype : "")}` : ""}`;
}

function Here({trace, at, launch, group, step, accesses}) {
  const [turn, turns] = trace.turnOf(group, at.s);
  return html`<section class="card now-line" aria-live="polite" id="here">
    <p><b>Line ${step.line}</b>, ${programText(launch, at.p)}${
      turns > 1 ? `, iteration ${turn} of ${trace.cut ? `the ${turns} traced` : turns}` : ""}${
      step.depth ? `, in ${step.function}` : ""}</p>
    <p><code>${trace.statement(step.line)}</code></p>
    ${accesses.length > 0 && html`<ul>${accesses.map(one => html`<li>
      ${sentences(trace, one).map(part => part.bad ? html` <span class="bad">${part.bad}</span>`
        : ` ${part}`)}</li>`)}</ul>`}
    ${group.failed && at.s === group.steps.length - 1 && html`<p class="bad">The program stopped at
      this line.</p>`}
  </section>`;
}

// ------------------------------------------------------------------------------- tensors

/* How the elements of a tensor lie in rows and columns; leading axes are in slices. */
function faceOf(tensor, width, slice) {
  const {shape} = tensor, size = product(shape);
  if (shape.length < 2) {
    const wrap = size <= 32 ? Math.max(1, size) : width > 480 ? 128 : width > 240 ? 64 : 32;
    return {rows: Math.ceil(size / wrap), cols: Math.min(wrap, size), wrap, rowText: r => String(r * wrap),
            lastRow: String((Math.ceil(size / wrap) - 1) * wrap),
            at: (r, c) => r * wrap + c < size ? shape.length ? [r * wrap + c] : [] : null};
  }
  return {rows: shape[shape.length - 2], cols: shape[shape.length - 1],
          at: (r, c) => [...slice, r, c]};
}

function spansOf(face, box) {
  if (!box) return [null, null];
  if (!face.wrap) return box.slice(-2);
  if (!box.length) return [null, null];
  const [lo, hi] = box[0];
  return [[Math.floor(lo / face.wrap), Math.floor(hi / face.wrap)],
          [0, face.cols - 1]];
}

function Tensors(context) {
  const {trace, launch} = context;
  const shown = new Set(Object.values(launch.arguments).map(one => one.tensor).filter(n => n != null));
  for (const group of launch.groups) for (const step of group.steps)
    for (const one of step.accesses || []) if (one.tensor >= 0) shown.add(one.tensor);
  return html`<section class="panel"><h2>Tensors</h2><div class="tensors">
    ${[...shown].sort((a, b) => a - b).map(number => html`<${Tensor} key=${number} ...${context}
      tensor=${trace.tensors[number]} count=${shown.size} />`)}</div></section>`;
}

function Tensor(context) {
  const {trace, tensor, count, at, launch, group, accesses, width, large, all, pick, setPick,
         tints} = context;
  const [held, setHeld] = useState({});
  const mine = accesses.filter(one => one.tensor && one.tensor.storage === tensor.storage);
  const direct = mine.find(one => one.tensor === tensor);
  let box = direct ? trace.accessBox(direct) : null;
  const chosen = pick && trace.tensors[pick.tensor] === tensor ? pick.offset : null;
  if (!box && chosen != null) box = (trace.index(tensor, chosen) || []).map(i => [i, i]);
  if (box && !box.length) box = null;
  const lead = tensor.shape.slice(0, -2);
  const held_here = held.at === at ? held.slice : null;
  const wrong = new Set(trace.marks.filter(mark => mark.tensor === tensor.number)
    .map(mark => trace.markedOffset(mark)).filter(offset => offset != null));
  const kept = [...wrong].slice(0, 4).concat(chosen ?? []).map(one => trace.index(tensor, one) || []);
  const sliceOf = axis => (kept.findLast(index => index.length && index[axis] >= box[axis][0]
    && index[axis] <= box[axis][1]) || box.map(([lo]) => lo))[axis];
  const slice = lead.map((size, axis) => held_here ? held_here[axis] : box ? sliceOf(axis)
    : held.slice ? held.slice[axis] : 0);
  const column = width > 780 ? (width - 16) * 0.54 : width;
  const wide = count < 3 && (tensor.shape.length < 2 ? product(tensor.shape) > 64
    : tensor.shape.at(-1) > 60);
  const room = Math.floor(wide || column < 560 ? column - 26 : (column - 12) / 2 - 26);
  const face = faceOf(tensor, room, slice);
  const [rowSpan, colSpan] = spansOf(face, box);
  const places = kept.filter(index => index.length && slice.every((at, axis) => at === index[axis]))
    .map(index => face.wrap ? [Math.floor(index[0] / face.wrap), index[0] % face.wrap]
      : index.slice(-2));
  const shape = plan({rows: face.rows, cols: face.cols, width: room, rowSpan, colSpan, large,
                      keepRows: places.map(([r]) => r), keepCols: places.map(([, c]) => c),
                      lastRow: face.lastRow, height: [300, 280, 220][count] ?? 170, most: 20});
  const states = mine.length ? trace.states(tensor, mine, launch) : null;
  const contents = trace.contents(tensor, launch, at.p, at.s);
  const owners = all ? ownersHere(trace, tensor, launch, mine, context.step.line) : null;
  const textOf = offset => contents && contents.stored[offset] === 1
    ? numberText(contents.values[offset], tensor.dtype) : "";
  const styles = Object.fromEntries(Object.entries(CELLS).map(([state, [fill, pattern]]) => [
    state, {fill: tints[fill], pattern}]));
  const unset = {fill: tints.unset}, empty = {fill: tints.empty};
  // Nothing but this changes a grid that the line does not touch.
  const mark = mine.length || all || shape.w >= 18 ? null
    : [at.l, at.p, slice, chosen, width, large, JSON.stringify(tints),
       stepOfStore(trace, tensor, group, at.s)].join();
  const cell = (r, c) => {
    const index = face.at(r, c);
    if (!index) return null;
    const offset = trace.offset(tensor, index);
    const ring = wrong.has(offset) ? tints.outside : offset === chosen ? tints.text : null;
    if (owners) return {...ownerCell(owners, offset, at.p, tints, shape.w), ring};
    const state = states ? states[offset] || 0 : 0;
    const look = state ? styles[state] : contents && !contents.stored[offset] ? unset : empty;
    if (!ring && shape.w < 18) return look;
    return {...look, ring, text: shape.w >= 18 ? textOf(offset) : ""};
  };
  const describe = (r, c) => {
    const index = face.at(r, c), offset = trace.offset(tensor, index);
    const lines = [trace.elementText(tensor, offset)];
    const after = trace.elementOf(tensor.after, tensor, index);
    if (contents && contents.stored[offset] === 1) lines[0] += ` = ${textOf(offset)}`;
    else if (contents && !contents.stored[offset]) lines.push(
      tensor.undefined ? "not stored so far" : "");
    if (after !== null && numberText(after, tensor.dtype) !== textOf(offset))
      lines.push(`${numberText(after, tensor.dtype)} after the call`);
    if (states && states[offset]) lines.push(CELLS[states[offset]][2]);
    if (wrong.has(offset)) lines.push("a finding is about this element");
    if (owners) {
      const programs = owners.several.get(offset);
      const one = owners.first.get(offset);
      lines.push(programs ? `programs ${[...programs].slice(0, 8).join(", ")}${
        programs.size > 8 ? ", …" : ""}` : one === undefined ? "no traced program" : programText(launch, one));
    }
    return lines.filter(Boolean).join("\n");
  };
  const look = {cell, describe, rowText: face.rowText,
                pick: (r, c) => setPick({tensor: tensor.number,
                                         offset: trace.offset(tensor, face.at(r, c))})};
  const size = tensor.shape.length ? tensor.shape.join(" × ") : "one number";
  const contiguous = tensor.shape.every((length, axis) => length === 1
    || tensor.stride[axis] === product(tensor.shape.slice(axis + 1)));
  return html`<div class=${`card tensor ${mine.length ? "used" : ""}`}
    style=${`max-width: ${room + 26}px`}>
    <h3>${tensor.name} <small>${tensor.dtype} ${size}${contiguous ? ""
      : `, strides ${tensor.stride.join(", ")}`}</small></h3>
    ${lead.map((length, axis) => length > 1 && html`<label class="small">axis ${axis} <input
      type="range" data-axis="slice" min="0" max=${length - 1} value=${slice[axis]}
      aria-label=${`Slice of ${tensor.name} along axis ${axis}`} onInput=${event => {
        const next = slice.slice();
        next[axis] = Number(event.currentTarget.value);
        setHeld({at, slice: next});
      }} /> ${slice[axis]}</label>`)}
    ${product(tensor.shape) === 0 ? html`<p class="soft">It has no elements.</p>` : html`
      <${Beyond} ...${context} mine=${mine} before=${true} room=${room} cell=${shape.w} />
      <${Grid} shape=${shape} look=${look} tints=${tints} mark=${mark}
        name=${`${tensor.name}, ${size}. Arrow keys read elements, Enter explains one.`} />
      <${Beyond} ...${context} mine=${mine} before=${false} room=${room} cell=${shape.w} />`}
    <${Legend} ...${context} mine=${mine} states=${states} owners=${owners} wrong=${wrong}
      unset=${contents && tensor.undefined ? unsetOf(trace, tensor, contents) : 0} />
  </div>`;
}

/* The last step that stored to a tensor before another one. */
function stepOfStore(trace, tensor, group, step) {
  for (let s = step; s >= 0; s--)
    if ((group.steps[s].accesses || []).some(one => one.kind !== "load" && one.tensor >= 0
        && trace.tensors[one.tensor].storage === tensor.storage)) return s;
  return -1;
}

function ownersHere(trace, tensor, launch, mine, line) {
  if (mine.length) return trace.owners(tensor, launch, place => place.line === line, `line ${line}`);
  const stores = trace.allWriters(tensor, launch);
  return stores.first.size ? stores : trace.owners(tensor, launch, () => true, "any");
}

function ownerCell({first, several}, offset, selected, tints, size) {
  const programs = several.get(offset), owner = first.get(offset);
  if (owner === undefined) return {fill: tints.empty};
  const fill = programs ? SEVERAL : owner === selected ? tints.text : PALETTE[owner % PALETTE.length];
  return {fill, pattern: programs && size > 8 ? "bars" : null,
          text: programs ? `${programs.size}×` : String(owner)};
}

/* Accesses out of bounds: the elements that they would have touched. */
function Beyond({trace, tensor, mine, before, room, cell, tints}) {
  const offsets = new Map();
  for (const one of mine) {
    const shift = one.tensor.offset - tensor.offset;
    if (one.outside && one.tensor === tensor) for (let i = 0; i < one.count; i++) {
      const at = one.offset[i] + shift;
      if ((!one.mask || one.mask[i]) && (before ? at < 0 : at >= tensor.elements))
        offsets.set(at, one.kind);
    }
  }
  if (!offsets.size) return null;
  const sorted = [...offsets.keys()].sort((a, b) => a - b);
  const size = Math.max(8, Math.min(cell, 20)), cells = Math.max(8, (room - 60) / size);
  const cols = Math.min(2 ** Math.floor(Math.log2(cells)), sorted.length);
  const rows = Math.ceil(sorted.length / cols);
  const lastRow = String(before ? sorted[0] : sorted[sorted.length - 1]);
  const shape = plan({rows, cols, width: room, height: size * 4, least: size, most: size, lastRow});
  const at = (r, c) => sorted[r * cols + c];
  const describe = (r, c) => {
    const offset = at(r, c), index = trace.index(tensor, offset);
    return `element ${offset}${index ? `: ${trace.elementText(tensor, offset)}` : ""}\n${
      offset < 0 ? `${plural(-offset, "element")} before the first one`
        : `${plural(offset - tensor.elements + 1, "element")} past the last one`}`;
  };
  const look = {cell: (r, c) => at(r, c) === undefined ? null
                  : {fill: tints.outside, pattern: "cross", mark: "#ffffff"},
                describe, rowText: r => String(at(r, 0)), colText: () => ""};
  const ends = [sorted[0], sorted[sorted.length - 1]].map(grouped);
  return html`<div class="beyond"><p class="bad">Out of bounds, ${before
    ? "before the first element" : "past the last element"}: ${ends[0] === ends[1]
      ? `element ${ends[0]}` : `${plural(sorted.length, "element")} from ${ends[0]} to ${ends[1]}`}</p>
    <${Grid} shape=${shape} look=${look} tints=${tints}
      name=${`Elements out of bounds of ${tensor.name}`} /></div>`;
}

function unsetOf(trace, tensor, {stored}) {
  let count = 0;
  for (let at = 0; at < stored.length; at++) count += !stored[at];
  return count - (tensor.elements - Math.min(tensor.elements, product(tensor.shape)));
}

function Legend({trace, launch, tensor, mine, states, owners, wrong, unset, at, tints}) {
  const rows = [];
  if (owners) {
    const touched = owners.first.size, programs = new Set(owners.first.values());
    for (const sharing of owners.several.values()) for (const one of sharing) programs.add(one);
    return html`<p class="small">${touched ? `${mine.length ? "At this line" : "In this launch"} ${
      plural(programs.size, launch.programs.length < product(launch.grid)
        && [...programs].every(one => launch.where.has(one)) ? "traced program" : "program")} ${
      programs.size === 1 ? "touches" : "touch"} ${
      plural(touched, "element")}, ${owners.several.size
        ? `${grouped(owners.several.size)} of them in several programs` : "each in one program only"}. ${inkOn(tints.text) === "#ffffff" ? "Black" : "White"
      } cells belong to ${programText(launch, at.p)}${owners.several.size
        ? "; grey ones to several programs" : ""}.`
      : "No traced program touches it."}</p>`;
  }
  const counts = {};
  if (states) for (let i = 0; i < states.length; i++)
    if (states[i]) counts[states[i]] = (counts[states[i]] || 0) + 1;
  const classes = {[LOADED]: "loaded", [STORED]: "stored", [ATOMIC]: "atomic",
                   [UNDEFINED]: "undefined", [TWICE]: "twice"};
  const short = {...Object.fromEntries(Object.entries(CELLS).map(([key, value]) => [key, value[2]])),
                 [UNDEFINED]: "loaded though undefined"};
  for (const state of [LOADED, STORED, ATOMIC, TWICE, UNDEFINED])
    if (counts[state]) rows.push([classes[state], `${short[state]}: ${grouped(counts[state])}`]);
  const sum = count => mine.filter(one => one.tensor === tensor)
    .reduce((all, one) => all + one[count], 0);
  const outside = sum("outside"), masked = sum("masked");
  if (masked) rows.push(["masked", `masked off: ${grouped(masked)}`]);
  if (outside) rows.push(["outside", `out of bounds: ${grouped(outside)}`]);
  if (unset > 0) rows.push(["unset", `not stored so far: ${grouped(unset)}`]);
  if (wrong.size) rows.push(["wrong", `in a finding: ${grouped(wrong.size)}`]);
  return html`${rows.length > 0 && html`<ul class="legend">${rows.map(([kind, text]) => html`<li>
    <i class=${`sw ${kind}`}></i>${text}</li>`)}</ul>`}`;
}

// ------------------------------------------------------------------------------- variables

function Variables(context) {
  const {trace, at, group, launch, step} = context;
  const own = trace.variables(group, at.s), words = trace.words(step.line);
  const changed = own.filter(one => one.at === at.s);
  const used = own.filter(one => one.at !== at.s && words.includes(one.name.replace(/[[.].*/, "")));
  const rest = own.filter(one => !changed.includes(one) && !used.includes(one));
  const constants = Object.entries(launch.arguments).map(([name, value]) => `${name} = ${
    value.tensor != null ? trace.tensors[value.tensor].name : value.text}`);
  const cards = list => html`<div class="variables">${list.map(one => html`<${Variable}
    key=${one.name} ...${context} one=${one} />`)}</div>`;
  const [open, setOpen] = useState(false);
  return html`<section class="panel"><h2>Variables of ${programText(launch, at.p)}
    ${" "}after this line</h2>
    ${cards([...changed, ...used])}
    ${!changed.length && !used.length && html`<p class="soft small">This line uses no variable.</p>`}
    ${rest.length > 0 && html`<details class="card" style="margin-top: 12px" open=${open}
      onToggle=${event => setOpen(event.currentTarget.open)}>
      <summary>${plural(rest.length, "other variable")}</summary>
      <div style="padding: 10px">${open && cards(rest)}</div></details>`}
    <p class="soft small" style="margin-top: 8px; overflow-wrap: anywhere">Arguments of
      ${" "}${launch.kernel}: ${constants.join(", ")}</p></section>`;
}

function Variable({trace, one, at, row, width, large, tints}) {
  const {name, value, padding} = one, shape = value.shape || [], {dtype = ""} = value;
  const tensor = trace.tensors[value.tensor];
  const numbers = value.array == null ? null : trace.block(value.array, row, shape);
  const head = html`<h3><code>${name}</code> <small>${dtype}${shape.length
    ? ` [${shape.join(", ")}]` : ""}</small>${one.at === at.s && html`
    ${" "}<span class="tag">● changed</span>`}</h3>`;
  const card = body => html`<div class=${`card variable ${one.at === at.s ? "changed" : ""}`}>
    ${head}${body}</div>`;
  if (!numbers) return card(html`<p class="value">${value.text || (value.array != null
    ? "left out of this trace" : "")}${tensor ? ` ${value.text ? "of " : ""}${tensor.name}` : ""}</p>`);
  const pointer = /^pointer/.test(dtype);
  const textOf = i => pointer ? trace.elementText(tensor, numbers[i])
    : (shape.length ? numberText : exactText)(numbers[i], dtype);
  if (!shape.length) {
    const outside = pointer && tensor && (numbers[0] < 0 || numbers[0] >= tensor.elements);
    return card(html`<p class="value"><code>${textOf(0)}</code>${outside && html`
      <span class="soft"> outside the tensor</span>`}</p>`);
  }
  const pad = padding && trace.access(padding.access, row);
  const padded = i => pad && pad.mask && pad.count === numbers.length && !pad.mask[i];
  const facts = trace.keep(`facts ${value.array} ${row} ${shape} ${pad ? "p" : ""}`,
                           () => factsOf(numbers, pointer ? tensor : null, padded));
  const room = Math.min(width - 24, large ? 460 : 300);
  const face = faceOf({shape, stride: []}, Math.min(room, 460), shape.slice(0, -2).map(() => 0));
  const grid = plan({rows: face.rows, cols: face.cols, width: room, height: large ? 200 : 150, large,
                     lastRow: face.lastRow, most: 12});
  const flat = (r, c) => {
    const index = face.at(r, c);
    return index && index.reduce((sum, place, axis) => sum * shape[axis] + place, 0);
  };
  const boolean = /^(int1|bool)$/.test(dtype);
  const shortOf = i => pointer && tensor ? textOf(i).slice(tensor.name.length) : textOf(i);
  const cell = (r, c) => {
    const i = flat(r, c);
    if (i === null) return null;
    const number = numbers[i], text = grid.w >= 18 ? shortOf(i) : "";
    if (pointer && tensor && (number < 0 || number >= tensor.elements))
      return {fill: tints.empty, pattern: "cross", mark: tints.soft, text};
    if (padded(i)) return {fill: tints.empty, text,
                           pattern: "hatch", mark: padding.own && !pad.filled ? tints.outside : tints.soft};
    if (boolean) return {fill: number ? tints.ink : tints.empty, text};
    if (Number.isNaN(number)) return {fill: tints.undefined, pattern: "cross", text};
    if (!Number.isFinite(number)) return {fill: tints.twice, pattern: "bars", text};
    const share = facts.scale ? Math.abs(number - facts.base) / facts.scale : 0;
    return {fill: mixed(tints.empty, number < 0 ? tints.low : tints.high, Math.min(1, share)), text};
  };
  const describe = (r, c) => {
    const index = face.at(r, c), i = flat(r, c);
    return `${name}[${index.join(", ")}] = ${textOf(i)}${padded(i)
      ? `\npadding: masked off${padding.own && !pad.filled ? ", undefined without `other`" : ""}` : ""}`;
  };
  const mark = [value.array, row, room, large, pad ? `${padding.access.mask} ${padding.own}` : "",
                JSON.stringify(tints)].join();
  return card(html`<${Grid} shape=${grid} tints=${tints} mark=${mark} look=${{cell, describe, rowText: face.rowText}}
      name=${`Block ${name}, ${shape.join(" by ")}. Arrow keys read elements.`} />
    <p class="value">${captionOf(trace, {numbers, dtype, tensor, pointer, boolean, facts, textOf})}${
      facts.padded > 0 && ` ${grouped(facts.padded)} of ${grouped(numbers.length)} are padding${
        padding.own ? pad.filled ? `, filled with ${otherText(pad)}` : ", undefined without `other`" : ""}.`}${
      shape.length > 2 ? ` The first slice of ${grouped(product(shape.slice(0, -2)))} is drawn.` : ""}</p>`);
}

function factsOf(numbers, tensor, padded) {
  const facts = {lo: Infinity, hi: -Infinity, nan: 0, inf: 0, yes: 0, outside: 0, padded: 0};
  for (let i = 0; i < numbers.length; i++) {
    const number = numbers[i];
    if (tensor && (number < 0 || number >= tensor.elements)) facts.outside++;
    if (padded(i)) {
      facts.padded++;
      continue;
    }
    if (number) facts.yes++;
    if (Number.isNaN(number)) facts.nan++;
    else if (!Number.isFinite(number)) facts.inf++;
    else facts.lo = Math.min(facts.lo, number), facts.hi = Math.max(facts.hi, number);
  }
  const {lo, hi} = facts;
  facts.base = lo < 0 ? 0 : lo === hi ? 0 : lo;
  facts.scale = hi < lo ? 0 : lo < 0 ? Math.max(-lo, hi) : lo === hi ? lo : hi - lo;
  return facts;
}

function captionOf(trace, {numbers, dtype, tensor, pointer, boolean, facts, textOf}) {
  if (pointer) return `${tensor ? trace.boxText(tensor, trace.box(tensor, numbers, null))
    : `${textOf(0)} …`}${facts.outside ? `; ${grouped(facts.outside)} point outside the tensor` : ""}.`;
  if (boolean) return `${grouped(facts.yes)} of ${grouped(numbers.length)} are True.`;
  const ends = facts.hi < facts.lo ? "" : facts.lo === facts.hi ? `all ${numberText(facts.lo, dtype)}`
    : `${numberText(facts.lo, dtype)} to ${numberText(facts.hi, dtype)}`;
  return [ends, facts.inf && `${grouped(facts.inf)} inf`, facts.nan && `${grouped(facts.nan)} nan`]
    .filter(Boolean).join(", ") + (ends || facts.inf || facts.nan ? "." : "");
}

// ------------------------------------------------------------------------------- one element

function Go({trace, place, go, at}) {
  const launch = trace.launches[place.l];
  const other = place.l === at.l ? "" : `launch ${place.l + 1}, `;
  return html`<button class="go" onClick=${() => go({l: place.l, p: place.p, s: place.s})}>
    ${other}${programText(launch, place.p)}, line ${place.line}</button>`;
}

function Why(context) {
  const {trace, pick, setPick, at} = context, tensor = trace.tensors[pick.tensor];
  const {stores, masked, loads, writer, last} = trace.keep(
    `history ${pick.tensor} ${pick.offset}`, () => trace.history(tensor, pick.offset));
  const index = trace.index(tensor, pick.offset) || [];
  const after = trace.elementOf(tensor.after, tensor, index);
  const before = tensor.undefined ? null : trace.elementOf(tensor.before, tensor, index);
  const marks = trace.marks.filter(mark => mark.tensor === pick.tensor && mark.index
    && mark.index.length === tensor.shape.length
    && trace.offset(tensor, mark.index) === pick.offset);
  const earlier = stores.filter(one => one !== last);
  const padding = last && stores.includes(last) && last.one.kind === "store"
    ? trace.storedPadding(last) : null;
  const several = new Set(stores.map(one => `${one.l} ${one.p}`)).size > 1;
  const link = place => html`<${Go} ...${context} place=${place} />`;
  const list = (entries, word) => html`<ol>${entries.slice(0, 6).map(one => html`<li>${link(one)}
    ${" "}${word(one)}</li>`)}</ol>${entries.length > 6 && html`<p class="soft">and
    ${" "}${grouped(entries.length - 6)} more</p>`}`;
  const value = one => `stored ${exactText(one.value, tensor.dtype)}`;
  return html`<section class="card panel why" aria-label="One element" id="why">
    <h2>${trace.elementText(tensor, pick.offset)}
      ${" "}<button onClick=${() => setPick(null)} aria-label="Close" title="Escape">✕</button></h2>
    <p>${after !== null ? html`It is <b>${exactText(after, tensor.dtype)}</b> after the call`
      : "Its value after the call is not in this trace"}${before !== null
      && html`, and was ${exactText(before, tensor.dtype)} before`}.
      ${marks.map(mark => mark.expected && html` <span class="bad">Expected:
        ${" "}${mark.expected}.</span>`)}</p>
    ${last && stores.includes(last) && html`<p>Stored last by ${link(last)}: ${
      last.one.kind === "atomic" ? `an atomic with ${exactText(last.value, tensor.dtype)}`
        : exactText(last.value, tensor.dtype)}.</p>`}
    ${several && html`<p class="bad">${new Set(stores.map(one => one.p)).size} programs
      ${stores.every(one => one.one.kind === "atomic") ? " update it atomically." : " store it."}</p>`}
    ${!stores.length && html`<p>${writer != null && writer >= 0
      ? trace.cut && context.launch.where.has(writer)
        ? `${capital(programText(context.launch, writer))} stored it; its store lies after the part that was traced.`
        : `${capital(programText(context.launch, writer))} stored it; that program is not traced. Trace it with --program ${writer}.`
      : tensor.undefined && after !== null && writer === -1
        ? "No program stores it: the value is the grader's, which fills undefined memory."
      : loads.length && !tensor.undefined ? "No traced program stores it."
      : writer === -1 ? "No program stores it." : "No traced program stores it."}</p>`}
    ${earlier.length > 0 && html`<h3>Other stores</h3>${list(earlier, value)}`}
    ${masked.length > 0 && html`<h3>Stores that the mask left out</h3>${list(masked, () => "")}`}
    ${padding && html`<p class="bad">The stored value is padding of <code>${padding}</code>, which is
      undefined: its load has a mask and no <code>other</code>. The mask of this store does not leave
      it out.</p>`}
    ${last && stores.includes(last) && !padding && html`<h3>What ${programText(
        trace.launches[last.l], last.p)} had loaded at this position of its blocks</h3>
      <${Loads} ...${context} store=${last} link=${link} />`}
    ${loads.length > 0 && html`<h3>Loads of this element</h3>${list(loads,
      one => one.value === null ? "" : `loaded ${exactText(one.value, tensor.dtype)}`)}`}
  </section>`;
}

function Loads({trace, store, link}) {
  const loads = trace.sources(store), byLine = new Map();
  for (const load of loads) {
    const key = `${load.line} ${load.one.access.tensor}`;
    byLine.set(key, [...(byLine.get(key) || []), load]);
  }
  const textOf = ({one, chosen}) => {
    const kept = chosen.filter(i => !one.mask || one.mask[i]);
    const name = one.tensor ? one.tensor.name : "memory";
    if (!kept.length) return `nothing of ${name} for it: masked off${
      one.filled ? `, filled with ${otherText(one)}` : ", so undefined without `other`"}`;
    const outside = one.tensor ? kept.filter(i => one.offset[i] < 0
      || one.offset[i] >= one.tensor.elements).length : 0;
    const undefineds = kept.filter(i => one.undefined && one.undefined[i]).length;
    const first = kept.length === 1 ? `${trace.elementText(one.tensor, one.offset[kept[0]])} = ${
        numberText(one.value ? one.value[kept[0]] : null, one.tensor ? one.tensor.dtype : "")}`
      : one.tensor ? trace.boxText(one.tensor, trace.box(one.tensor, kept.map(i => one.offset[i])))
        : name;
    const block = kept.length === 1 && one.active > 1 && one.tensor
      ? `, of ${trace.boxText(one.tensor, trace.accessBox(one))}` : "";
    return `${first}${block}${outside ? `; ${grouped(outside)} out of bounds` : ""}${
      undefineds ? `; ${grouped(undefineds)} undefined` : ""}`;
  };
  if (!loads.length) return html`<p class="soft">Nothing.</p>`;
  return html`<ol>${[...byLine.values()].map(turns => html`${turns.slice(0, 3).map(load => html`<li>
    ${link(load)} ${turns.length > 1 ? `iteration ${load.turn + 1}: ` : ""}${textOf(load)}</li>`)}
    ${turns.length > 3 && html`<li class="soft">the same line in ${grouped(turns.length - 3)} more
      iterations</li>`}`)}</ol>`;
}

// ------------------------------------------------------------------------------- hardware

function Hardware({trace, at, launch, accesses}) {
  const list = accesses.filter(one => one.tensor && one.active && one.count);
  const [chosen, setChosen] = useState(0);
  const [request, setRequest] = useState(0);
  if (!list.length) return null;
  const one = list[Math.min(chosen, list.length - 1)];
  one.warps ??= warps(one);
  const {size, width, requests, used, sectors} = one.warps;
  const number = Math.min(request, requests.length - 1), {threads, touched} = requests[number];
  const order = [...touched.keys()].sort((a, b) => a - b);
  const bytes = [...touched.values()].reduce((sum, set) => sum + set.size * size, 0);
  const share = Math.round(100 * bytes / Math.max(1, order.length * 32));
  const whole = Math.round(100 * used / Math.max(1, sectors * 32));
  return html`<section class="panel"><h2>Hardware view</h2><div class="card hardware" id="hardware">
    ${list.length > 1 && html`<label>Access <select value=${chosen} aria-label="Access"
      onChange=${event => setChosen(Number(event.currentTarget.value))}>${list.map((each, i) => html`
      <option value=${i}>${each.kind} of ${each.tensor.name}</option>`)}</select></label>`}
    <p>This ${one.kind} of <b>${one.tensor.name}</b> by ${programText(launch, at.p)}: ${grouped(used)} bytes used in
      ${" "}${plural(sectors, "sector")} of 32 bytes, ${whole} % of the ${grouped(sectors * 32)} bytes
      moved${whole < 100 && html`<span class=${whole < 50 ? "bad" : ""}>; ${
        plural(sectors * 32 - used, "byte")} wasted</span>`}.</p>
    ${requests.length > 1 && html`<label class="small">Warp request <input type="range" data-axis="warp"
      min="0" max=${requests.length - 1} value=${number} aria-label="Warp request"
      onInput=${event => setRequest(Number(event.currentTarget.value))} />
      <span class="fixed">${number + 1} of ${requests.length}</span></label>`}
    <p>The 32 threads of the warp, each with ${plural(width, "element")} (${width * size} bytes):
      the number of the sector that each one touches first, from 0.</p>
    <div class="threads" role="img" aria-label=${`32 threads touch ${plural(order.length, "sector")}`}>
      ${threads.map((thread, i) => {
        const sector = thread.sectors.length ? order.indexOf(thread.sectors[0]) : -1;
        const title = `thread ${i}: ${thread.elements.length ? thread.elements.map(
          offset => trace.elementText(one.tensor, offset)).join(", ") : "masked off"}`;
        return html`<span title=${title} class=${sector < 0 ? "idle" : sector % 2 ? "odd" : ""}>${
          sector < 0 ? "–" : sector}</span>`;
      })}</div>
    <p>${bytes} bytes used in ${plural(order.length, "sector")}: ${share} %.</p>
    <ul class="sectors">${order.slice(0, 32).map((sector, i) => html`<li>
      <i style=${`--used: ${touched.get(sector).size * size / 32 * 100}%`}></i>${i}:
      ${" "}${touched.get(sector).size * size}/32 B</li>`)}</ul>
    ${order.length > 16 && html`<p class="bad">${order.length} sectors for one request of 32 threads:
      the access is not coalesced.</p>`}
    <p class="soft small">An assumption, not the compiled code: consecutive threads own consecutive
      elements along the axis whose elements lie closest, up to 16 bytes each, and the tensor starts
      at a multiple of 32 bytes.</p>
  </div></section>`;
}

// ------------------------------------------------------------------------------- start

(async () => {
  const app = document.getElementById("app");
  if (typeof DecompressionStream === "undefined") {
    app.innerHTML = "<p class='summary warn'>This page needs a browser of 2023 or later.</p>";
    return;
  }
  const described = JSON.parse(new TextDecoder().decode(await inflated("described")));
  const trace = new Trace(described, await inflated("numbers"));
  if (!trace.launches.some(launch => launch.programs.length))
    app.innerHTML = "<p class='summary warn'>No program of this case was traced.</p>";
  else {
    app.textContent = "";
    render(html`<${App} trace=${trace} />`, app);
  }
  document.body.dataset.ready = "yes";
})();
