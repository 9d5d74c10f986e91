"use strict";
/* Reads a trace: its arrays, programs, accesses and findings. Nothing here draws. */

const TYPES = {f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array};
const LARGEST = 1 << 22;  // elements of a tensor whose states are kept one by one
// What happened to an element at a line; the largest one is shown.
const LOADED = 1, STORED = 2, ATOMIC = 3, UNDEFINED = 4, TWICE = 5;

async function inflated(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const product = sizes => sizes.reduce((all, size) => all * size, 1);
const isFloat = dtype => /^(fp|bf|float|bfloat)/.test(dtype);
const itemsize = dtype => Math.ceil(Number((/\d+/.exec(dtype) || [8])[0]) / 8);
const GROUPS = new Intl.NumberFormat("en-US");
const EXACT = new Intl.NumberFormat("en-US", {  // rounds as Python's ``.7g``
  maximumSignificantDigits: 7, useGrouping: false, roundingMode: "halfEven"});
const grouped = number => GROUPS.format(number);
const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

function bytesText(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  let unit = 0;
  while (bytes >= 1000 && unit < 3) bytes /= 1000, unit++;
  return `${unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

/* A number as NumPy prints it, short enough for a cell. */
function numberText(value, dtype = "") {
  if (value === null || value === undefined) return "";
  if (/^(int1|bool|i1)$/.test(dtype)) return value ? "True" : "False";
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  if (!isFloat(dtype)) return String(value);
  const size = Math.abs(value);
  if (size && (size < 1e-3 || size >= 1e5)) return value.toExponential(1).replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}

/* A number with the digits of a finding. */
function exactText(value, dtype = "") {
  if (!Number.isFinite(value) || !isFloat(dtype)) return numberText(value, dtype);
  return String(Number(EXACT.format(value))).replace("e+", "e");
}

class Trace {
  constructor(described, bytes) {
    Object.assign(this, described);
    this.bytes = bytes;
    this.kept = new Map();
    this.launches.forEach((launch, number) => {
      launch.number = number;
      launch.where = new Map();
      for (const group of launch.groups)
        group.programs.forEach((program, row) => launch.where.set(program, {group, row}));
      launch.programs = [...launch.where.keys()].sort((a, b) => a - b);
    });
    this.tensors.forEach((tensor, number) => {
      tensor.number = number;
      tensor.name = this.names[number];
      tensor.axes = tensor.shape.map((size, axis) => axis)
        .filter(axis => tensor.shape[axis] > 1 && tensor.stride[axis] > 0)
        .sort((a, b) => tensor.stride[b] - tensor.stride[a]);
    });
    this.starts = new Map();  // the first line of a statement by each of its lines
    for (const launch of this.launches)
      for (const group of launch.groups)
        for (const {line, end = 0} of group.steps)
          for (let at = line; at <= Math.max(line, end); at++) this.starts.set(at, line);
    this.marks.forEach((mark, number) => {
      mark.number = number;
      mark.at = this.locate(mark);
    });
  }

  keep(key, make) {
    if (!this.kept.has(key)) {
      if (this.kept.size > 2000) this.kept.clear();
      this.kept.set(key, make());
    }
    return this.kept.get(key);
  }

  // -- arrays ------------------------------------------------------------------------------

  numbers(number) {
    const array = this.arrays[number];
    if (!array.numbers) {
      const type = TYPES[array.dtype], size = product(array.shape) * type.BYTES_PER_ELEMENT;
      array.numbers = new type(this.bytes.slice(array.start, array.start + size).buffer);
    }
    return array;
  }

  /* The numbers of one program, in the whole shape; null where the trace left them out. */
  block(number, row, shape) {
    const {shape: stored, numbers} = this.numbers(number);
    if (!numbers.length) return product(shape) ? null : numbers;
    const own = stored.slice(1);
    while (own.length < shape.length) own.unshift(1);
    const size = product(own), start = stored[0] === 1 ? 0 : row * size;
    if (size === product(shape)) return numbers.subarray(start, start + size);
    return this.keep(`block ${number} ${start} ${shape}`, () => {
      const whole = new numbers.constructor(product(shape));
      const steps = own.map((length, axis) => length === 1 ? 0 : product(own.slice(axis + 1)));
      const index = shape.map(() => 0);
      for (let i = 0, at = start; i < whole.length; i++) {
        whole[i] = numbers[at];
        for (let axis = shape.length - 1; axis >= 0; axis--) {
          at += steps[axis];
          if (++index[axis] < shape[axis]) break;
          at -= steps[axis] * shape[axis];
          index[axis] = 0;
        }
      }
      return whole;
    });
  }

  // -- accesses ----------------------------------------------------------------------------

  /* An access of one program: its block's shape, offsets, mask and values, and their counts. */
  access(access, row) {
    access.rows ??= new Map();
    if (access.rows.has(row)) return access.rows.get(row);
    const parts = [access.offset, access.mask, access.value].filter(part => part != null)
      .map(part => this.arrays[part].shape.slice(1));
    const rank = Math.max(...parts.map(part => part.length));
    const shape = Array.from({length: rank}, (_, axis) =>
      Math.max(...parts.map(part => part[axis - rank + part.length] ?? 1)));
    const block = part => part == null ? null : this.block(part, row, shape);
    const one = {
      access, kind: access.kind, tensor: this.tensors[access.tensor], shape, filled: access.filled,
      offset: block(access.offset), mask: block(access.mask), value: block(access.value),
      undefined: block(access.undefined), count: product(shape),
      active: 0, masked: 0, outside: 0, hidden: 0, undefineds: 0, lo: null, hi: null,
    };
    if (!one.offset || (access.mask != null && !one.mask)) one.count = 0;
    const end = one.tensor ? one.tensor.elements : Infinity;
    for (let i = 0; i < one.count; i++) {
      const out = one.offset[i] < 0 || one.offset[i] >= end;
      if (one.mask && !one.mask[i]) one.masked++, one.hidden += out;
      else {
        one.active++;
        if (out) one.outside++;
        else if (one.undefined && one.undefined[i]) one.undefineds++;
      }
    }
    access.rows.set(row, one);
    return one;
  }

  accesses(launch, program, step) {
    const {group, row} = launch.where.get(program);
    return (group.steps[step].accesses || []).map(access => this.access(access, row));
  }

  /* Calls visit(place, access) for each access to the storage of a tensor. */
  eachAccess(tensor, visit, launches = this.launches) {
    for (const launch of launches)
      for (const group of launch.groups)
        group.steps.forEach((step, s) => {
          for (const access of step.accesses || []) {
            const other = this.tensors[access.tensor];
            if (!other || other.storage !== tensor.storage) continue;
            group.programs.forEach((program, row) => visit(
              {l: launch.number, p: program, s, line: step.line}, this.access(access, row),
              other.offset - tensor.offset));
          }
        });
  }

  // -- elements ----------------------------------------------------------------------------

  /* The index of an element that lies so many elements from the first; null between elements. */
  index(tensor, offset) {
    const index = tensor.shape.map(() => 0);
    let rest = offset;
    tensor.axes.forEach((axis, order) => {
      const at = Math.floor(rest / tensor.stride[axis]);
      index[axis] = order ? Math.min(at, tensor.shape[axis] - 1) : at;
      rest -= index[axis] * tensor.stride[axis];
    });
    if (rest && tensor.shape.length === 1 && !tensor.axes.length) index[0] = rest, rest = 0;
    return rest ? null : index;
  }

  offset(tensor, index) {
    return index.reduce((sum, at, axis) => sum + at * tensor.stride[axis], 0);
  }

  elementText(tensor, offset) {
    if (!tensor) return `address ${grouped(offset)}`;
    const index = this.index(tensor, offset);
    if (!index) return `${tensor.name}, element ${grouped(offset)}`;
    return index.length ? `${tensor.name}[${index.join(", ")}]` : tensor.name;
  }

  /* Per axis the least and the largest index of the elements that are touched, or null. */
  box(tensor, offsets, mask) {
    let box = null;
    for (let i = 0; i < offsets.length; i++) {
      if (mask && !mask[i] || offsets[i] < 0 || offsets[i] >= tensor.elements) continue;
      const index = this.index(tensor, offsets[i]);
      if (!index) continue;
      if (!box) box = index.map(at => [at, at]);
      else for (let axis = 0; axis < index.length; axis++) {
        if (index[axis] < box[axis][0]) box[axis][0] = index[axis];
        if (index[axis] > box[axis][1]) box[axis][1] = index[axis];
      }
    }
    return box;
  }

  accessBox(one) {
    if (one.box === undefined) one.box = one.tensor && one.count
      ? this.box(one.tensor, one.offset, one.mask) : null;
    return one.box;
  }

  boxText(tensor, box) {
    if (!box) return tensor.name;
    if (!box.length) return tensor.name;
    return `${tensor.name}[${box.map(([lo, hi]) => lo === hi ? lo : `${lo}:${hi + 1}`)
      .join(", ")}]`;
  }

  /* What the accesses of a line did to each element; index it by offset. */
  states(tensor, accesses, launch) {
    const states = tensor.elements <= LARGEST ? new Uint8Array(tensor.elements) : [];
    const set = (at, state) => { if ((states[at] || 0) < state) states[at] = state; };
    for (const one of accesses) {
      if (!one.tensor || one.tensor.storage !== tensor.storage) continue;
      const shift = one.tensor.offset - tensor.offset;
      const stored = one.kind === "store" ? this.writers(tensor, launch) : null;
      for (let i = 0; i < one.count; i++) {
        const at = one.offset[i] + shift;
        if (at < 0 || at >= tensor.elements) continue;
        if (one.mask && !one.mask[i]) continue;
        if (one.undefined && one.undefined[i]) set(at, UNDEFINED);
        else if (stored && stored.several.has(at)) set(at, TWICE);
        else set(at, one.kind === "load" ? LOADED : one.kind === "store" ? STORED : ATOMIC);
      }
    }
    return states;
  }

  /* Which program of a launch touches each element, and which elements several programs touch. */
  owners(tensor, launch, wanted, key) {
    return this.keep(`owners ${tensor.number} ${launch.number} ${key}`, () => {
      const first = new Map(), several = new Map();
      this.eachAccess(tensor, (place, one, shift) => {
        if (!wanted(place, one)) return;
        for (let i = 0; i < one.count; i++) {
          const at = one.offset[i] + shift;
          if (one.mask && !one.mask[i] || at < 0 || at >= tensor.elements) continue;
          const owner = first.get(at);
          if (owner === undefined) first.set(at, place.p);
          else if (owner !== place.p) {
            if (!several.has(at)) several.set(at, new Set([owner]));
            several.get(at).add(place.p);
          }
        }
      }, [launch]);
      return {first, several};
    });
  }

  /* Owners by stores; where programs are not traced, the element says which one stored it last. */
  allWriters(tensor, launch) {
    const traced = this.owners(tensor, launch, (_, one) => one.kind !== "load", "writes");
    if (tensor.writers == null || this.launches.length > 1) return traced;
    return this.keep(`all writers ${tensor.number}`, () => {
      const first = new Map(traced.first), {numbers} = this.numbers(tensor.writers);
      this.eachElement(tensor, (at, flat) => {
        if (numbers[flat] >= 0 && !first.has(at)) first.set(at, numbers[flat]);
      });
      return {first, several: traced.several};
    });
  }

  writers(tensor, launch) {
    return this.owners(tensor, launch, (place, one) => one.kind === "store", "stores");
  }

  /* Values of a tensor as one program has them after a step; other programs' stores of the same
     launch are not in them. Null where the tensor is too large. */
  contents(tensor, launch, program, step) {
    if (tensor.elements > LARGEST) return null;
    const store = (into, one, shift) => {
      if (one.kind === "load" || !one.value) return;
      for (let i = 0; i < one.count; i++) {
        const at = one.offset[i] + shift;
        if (one.mask && !one.mask[i] || at < 0 || at >= tensor.elements) continue;
        into.values[at] = one.value[i];
        into.stored[at] = one.kind === "store" ? 1 : 2;
      }
    };
    const base = this.keep(`contents ${tensor.number} ${launch.number}`, () => {
      const into = {values: new Float64Array(tensor.elements),
                    stored: new Uint8Array(tensor.elements)};
      if (!tensor.undefined && tensor.before != null) this.eachElement(tensor, (at, flat) => {
        into.values[at] = this.numbers(tensor.before).numbers[flat];
        into.stored[at] = 1;
      });
      this.eachAccess(tensor, (place, one, shift) => store(into, one, shift),
                      this.launches.slice(0, launch.number));
      return into;
    });
    const into = {values: base.values.slice(), stored: base.stored.slice()};
    const {group, row} = launch.where.get(program);
    for (let s = 0; s <= step; s++)
      for (const access of group.steps[s].accesses || []) {
        const other = this.tensors[access.tensor];
        if (access.kind !== "load" && other && other.storage === tensor.storage)
          store(into, this.access(access, row), other.offset - tensor.offset);
      }
    return into;
  }

  eachElement(tensor, visit) {
    const size = product(tensor.shape), index = tensor.shape.map(() => 0);
    for (let flat = 0, at = 0; flat < size; flat++) {
      visit(at, flat);
      for (let axis = index.length - 1; axis >= 0; axis--) {
        at += tensor.stride[axis];
        if (++index[axis] < tensor.shape[axis]) break;
        at -= tensor.stride[axis] * tensor.shape[axis];
        index[axis] = 0;
      }
    }
  }

  /* The number that an array [1, *shape] holds for an element; null where there is none. */
  elementOf(array, tensor, index) {
    if (array == null) return null;
    const flat = index.reduce((sum, at, axis) => sum * tensor.shape[axis] + at, 0);
    const {numbers} = this.numbers(array);
    return flat < numbers.length ? numbers[flat] : null;
  }

  // -- lines -------------------------------------------------------------------------------

  startOf(line) {
    return this.starts.get(line) ?? line;
  }

  /* A whole statement: its lines up to the one that closes its brackets. */
  statement(line) {
    let text = "", depth = 0;
    for (let at = line - 1; at < this.source.length && at < line + 11; at++) {
      const part = this.source[at].replace(/#.*$/, "");
      text += ` ${part.trim()}`;
      depth += (part.match(/[([{]/g) || []).length - (part.match(/[)\]}]/g) || []).length;
      if (depth <= 0) break;
    }
    return text.trim();
  }

  /* Per line of a launch: how often it ran, in how many programs, and the bytes it moved. */
  lineCounts(launch) {
    return this.keep(`lines ${launch.number}`, () => {
      const lines = new Map();
      for (const group of launch.groups)
        for (const step of group.steps) {
          if (!lines.has(step.line)) lines.set(step.line, {runs: 0, loaded: 0, stored: 0});
          const line = lines.get(step.line);
          line.runs += group.programs.length;
          for (const access of step.accesses || [])
            group.programs.forEach((_, row) => {
              const one = this.access(access, row);
              const bytes = one.active * (one.tensor ? itemsize(one.tensor.dtype) : 0);
              line[one.kind === "load" ? "loaded" : "stored"] += bytes;
            });
        }
      return lines;
    });
  }

  /* How often the line of a step runs in the same call, and which of these runs it is. */
  turnOf(group, s) {
    const {line, depth = 0, turn = 0} = group.steps[s];
    let turns = turn + 1;
    for (let at = s + 1; at < group.steps.length; at++) {
      const step = group.steps[at];
      if ((step.depth || 0) < depth) break;
      if ((step.depth || 0) === depth && step.line === line) {
        if ((step.turn || 0) < turns) break;
        turns = step.turn + 1;
      }
    }
    return [turn + 1, turns];
  }

  /* The variables of the function that runs at a step, each with the step that changed it. */
  variables(group, s) {
    const calls = [];
    for (let at = 0; at <= s; at++) {
      const step = group.steps[at], depth = step.depth || 0;
      calls.length = Math.min(calls.length, depth + 1);
      let call = calls[depth];
      if (!call || call.name !== step.function || !step.turn && call.lines.has(step.line))
        call = calls[depth] = {name: step.function, lines: new Set(), values: new Map()};
      call.lines.add(step.line);
      for (const [name, value] of Object.entries(step.values || {})) {
        const shape = String(value.shape || []);
        const load = (step.accesses || []).find(access =>
          access.kind === "load" && access.mask != null && access.value === value.array);
        let padding = load ? {access: load, own: true} : null;
        if (!load && depth && !step.turn)  // a parameter
          for (const passed of calls[depth - 1].values.values())
            if (passed.padding && passed.value.array === value.array) padding = passed.padding;
        if (!load && value.array != null && value.shape)
          for (const word of this.words(step.line)) {
            const used = call.values.get(word);
            if (used && used.padding && String(used.value.shape || []) === shape)
              padding ??= {access: used.padding.access, own: false};
          }
        if (/^(int1|pointer)/.test(value.dtype || "") && !load) padding = null;
        call.values.set(name, {name, value, at, padding});
      }
    }
    return [...calls[calls.length - 1].values.values()];
  }

  words(line) {
    return this.keep(`words ${line}`, () =>
      [...new Set(this.statement(line).match(/[A-Za-z_]\w*/g) || [])]);
  }

  // -- findings ----------------------------------------------------------------------------

  /* The offset of the element that a finding is about; null where that is no element. */
  markedOffset(mark) {
    const tensor = this.tensors[mark.tensor];
    if (!tensor) return null;
    if (mark.index && mark.index.length === tensor.shape.length)
      return this.offset(tensor, mark.index);
    return mark.offset >= 0 && mark.offset < tensor.elements ? mark.offset : null;
  }

  /* Where a finding happened: launch, program, step; null where the trace does not hold it. */
  locate(mark) {
    const tensor = this.tensors[mark.tensor], line = this.startOf(mark.line);
    const byLine = () => {
      for (const launch of line == null ? [] : this.launches)
        for (const program of mark.program == null ? launch.programs : [mark.program]) {
          const steps = launch.where.get(program)?.group.steps || [];
          const s = steps.findIndex(step => step.line === line);
          if (s >= 0) return {l: launch.number, p: program, s, line};
        }
      return null;
    };
    const byElement = () => tensor && mark.index && mark.index.length === tensor.shape.length
      ? this.history(tensor, this.offset(tensor, mark.index)).last : null;
    const byOffset = anyLine => {
      let place = null;
      if (tensor && mark.offset != null) this.eachAccess(tensor, (at, one, shift) => {
        if (place || mark.program != null && at.p !== mark.program) return;
        if (!anyLine && line != null && at.line !== line) return;
        for (let i = 0; i < one.count; i++)
          if (one.offset[i] + shift === mark.offset && (!one.mask || one.mask[i])) {
            place = at;
            return;
          }
      });
      return place;
    };
    // The line of undefined values is their load, not the store of the element.
    return mark.code === "M06" && mark.index && byLine() || byElement() || byOffset(false)
      || byOffset(true) || byLine();
  }

  /* Stores of an element in order, stores that a mask left out, and loads. */
  history(tensor, offset) {
    const stores = [], masked = [], loads = [];
    this.eachAccess(tensor, (place, one, shift) => {
      for (let i = 0; i < one.count; i++) {
        if (one.offset[i] + shift !== offset) continue;
        const entry = {...place, one, element: i, value: one.value ? one.value[i] : null};
        if (one.kind === "load") {
          if (!one.mask || one.mask[i]) loads.push(entry);
        } else (one.mask && !one.mask[i] ? masked : stores).push(entry);
        break;
      }
    });
    const index = this.index(tensor, offset);
    const writer = index && tensor.writers != null
      ? this.elementOf(tensor.writers, tensor, index) : null;
    const last = [...stores].reverse().find(entry => writer == null || entry.p === writer)
      || (writer == null || writer < 0 ? masked[0] : null) || null;
    return {stores, masked, loads, writer, last};
  }

  /* The variable whose undefined padding a program stored in an element, or null. */
  storedPadding({l, p, s, line, value}) {
    const {group, row} = this.launches[l].where.get(p), words = this.words(line);
    for (const {name, padding} of this.variables(group, s)) {
      if (!padding || !padding.own || !words.includes(name)) continue;
      const one = this.access(padding.access, row);
      if (one.filled || !one.value || !one.mask) continue;
      const places = [...one.value.keys()].filter(i => Object.is(one.value[i], value));
      if (places.length && places.every(i => !one.mask[i])) return name;
    }
    return null;
  }

  /* What a program loaded before it stored an element, and which of it belongs to the element. */
  sources(store) {
    const launch = this.launches[store.l], {group, row} = launch.where.get(store.p);
    const dots = new Map();
    group.steps.slice(0, store.s).forEach(({line}) => {
      const dot = /tl\.dot\(\s*(\w+)\s*,\s*(\w+)/.exec(this.statement(line));
      if (dot) dots.set(dot[1], 0).set(dot[2], 1);
    });
    const position = unravel(store.element, store.one.shape);
    const loads = [];
    group.steps.slice(0, store.s + 1).forEach((step, s) => {
      for (const access of step.accesses || []) {
        if (access.kind !== "load") continue;
        const one = this.access(access, row);
        if (!one.count) continue;
        const name = Object.keys(step.values || {}).find(
          key => step.values[key].array === access.value);
        let fixed = one.shape.map(() => null);  // which place along each axis belongs to it
        if (dots.has(name) && one.shape.length === 2 && position.length === 2)
          fixed[dots.get(name)] = position[dots.get(name)];
        else if (one.shape.length === position.length)
          fixed = one.shape.map((size, axis) =>
            size === store.one.shape[axis] ? position[axis] : null);
        const chosen = [];
        for (let i = 0; i < one.count; i++) {
          const at = unravel(i, one.shape);
          if (fixed.every((place, axis) => place === null || place === at[axis])) chosen.push(i);
        }
        loads.push({l: store.l, p: store.p, s, line: step.line, one, chosen, name,
                    turn: step.turn || 0});
      }
    });
    return loads;
  }
}

function unravel(flat, shape) {
  const index = new Array(shape.length);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return index;
}

/* How a warp accesses memory: which elements each thread owns, and the sectors that they touch. */
function warps(one) {
  const size = itemsize(one.tensor.dtype), {shape, offset, count} = one;
  const steps = shape.map((length, axis) => {
    const step = product(shape.slice(axis + 1));
    return length > 1 ? Math.abs(offset[step] - offset[0]) || Infinity : Infinity;
  });
  let fastest = shape.length - 1;
  steps.forEach((step, axis) => { if (step < steps[fastest]) fastest = axis; });
  const axes = shape.map((_, axis) => axis).filter(axis => axis !== fastest);
  if (shape.length) axes.push(fastest);
  const order = new Int32Array(count);  // elements in the order in which threads own them
  const index = axes.map(() => 0), strides = axes.map(axis => product(shape.slice(axis + 1)));
  for (let i = 0, at = 0; i < count; i++) {
    order[i] = at;
    for (let axis = axes.length - 1; axis >= 0; axis--) {
      at += strides[axis];
      if (++index[axis] < shape[axes[axis]]) break;
      at -= strides[axis] * shape[axes[axis]];
      index[axis] = 0;
    }
  }
  const start = one.tensor.offset;
  let width = Math.max(1, Math.min(16 / size, 2 ** Math.floor(Math.log2(Math.max(1, count / 32)))));
  const fits = () => {
    for (let i = 0; i < count; i += width) {
      if ((offset[order[i]] + start) % width) return false;
      for (let k = 1; k < width; k++)
        if (offset[order[i + k]] !== offset[order[i]] + k
            || one.mask && one.mask[order[i + k]] !== one.mask[order[i]]) return false;
    }
    return true;
  };
  while (width > 1 && (count % width || !fits())) width /= 2;
  const requests = [];
  let used = 0, sectors = 0;
  for (let first = 0; first < count; first += 32 * width) {
    const touched = new Map();  // sector -> its bytes that are used
    const threads = [];
    for (let thread = 0; thread < 32; thread++) {
      const own = {elements: [], sectors: []};
      for (let k = 0; k < width; k++) {
        const i = order[first + thread * width + k];
        if (i === undefined || one.mask && !one.mask[i]) continue;
        const byte = (offset[i] + start) * size, sector = Math.floor(byte / 32);
        if (!touched.has(sector)) touched.set(sector, new Set());
        touched.get(sector).add(byte - sector * 32);
        own.elements.push(offset[i]);
        if (!own.sectors.includes(sector)) own.sectors.push(sector);
      }
      threads.push(own);
    }
    for (const bytes of touched.values()) used += bytes.size * size;
    sectors += touched.size;
    requests.push({threads, touched});
  }
  return {size, width, requests, used, sectors};
}
