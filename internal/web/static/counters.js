// Graphs of counters: the chosen ones are read each second from the management interface and kept for ten minutes.
const get = (id) => document.getElementById(id);
const [chart, chosen, state] = [get("chart"), get("chosen"), get("state")];
const space = "http://www.w3.org/2000/svg";
const kept = 600, most = 8;
let sets = [];
let series = []; // { set, instance, counter, color, last, value, row }
let samples = []; // { time, at in milliseconds, values by series }
let paused = false;

function fill(select, options) {
  select.replaceChildren(...options.map(([value, text]) => {
    const o = document.createElement("option");
    o.value = value;
    o.textContent = text;
    return o;
  }));
}

const set = () => sets[get("set").value];
const counter = () => set().counters.find((c) => c.short === get("counter").value);

function describe() { get("about").textContent = counter()?.description ?? ""; }

function chooseSet() {
  fill(get("instance"), set().instances.map((i) => [i, i]));
  fill(get("counter"), set().counters.filter((c) => c.counted).map((c) => [c.short, c.name]));
  describe();
}

function cell(row, name, text, kind) {
  const td = row.insertCell();
  if (name) td.dataset.name = name;
  td.textContent = text;
  if (kind) td.className = kind;
  return td;
}

function add(s, instance, c) {
  if (series.some((x) => x.set === s && x.instance === instance && x.counter === c)) return;
  if (series.length === most) { state.textContent = `At most ${most} lines.`; return; }
  const used = new Set(series.map((x) => x.color));
  const one = { set: s, instance, counter: c, color: [...Array(most).keys()].find((n) => !used.has(n)), last: null, value: null };
  const row = chosen.insertRow();
  const line = document.createElement("span");
  line.className = "line s" + one.color;
  cell(row, "Line", "").append(line);
  cell(row, "Set", s.name);
  cell(row, "Instance", instance);
  cell(row, "Counter", c.name, "wide");
  one.cell = cell(row, "Value", "", "number");
  one.unit = cell(row, "Unit", c.unit);
  const remove = document.createElement("button");
  remove.type = "button";
  remove.textContent = "Remove";
  remove.setAttribute("aria-label", `Remove ${c.name} of ${instance}`);
  remove.addEventListener("click", () => { series = series.filter((x) => x !== one); row.remove(); draw(); get("add").focus(); });
  cell(row, "", "").append(remove);
  series.push(one);
  draw();
}

// A rate is of the time between two readings; there is none where the counter was set back between them.
function value(one, reading, uptime) {
  if (!reading || reading.raw === null) return null;
  const before = one.last;
  one.last = { raw: reading.raw, epoch: reading.epoch, uptime };
  if (one.counter.kind !== "rate") return reading.raw;
  if (!before || before.epoch !== reading.epoch || reading.raw < before.raw || uptime <= before.uptime) return null;
  const each = one.counter.unit === "KB/s" ? 1e-3 : 1; // such rates are of totals in bytes
  return each * (reading.raw - before.raw) / ((uptime - before.uptime) / 1e9);
}

async function understood(answer) {
  if (answer.status === 401) throw new Error("The session has ended. Load the page again.");
  if (!answer.ok) throw new Error(`The driver answers ${answer.status}.`);
  return answer.json();
}

async function read() {
  if (series.length === 0) return;
  const query = new URLSearchParams(series.map((s) => ["path", `\\${s.set.name}(${s.instance})\\${s.counter.name}`]));
  const answer = await fetch("/web/api/counters?" + query, { redirect: "error" });
  const snapshot = await understood(answer);
  const found = new Map();
  for (const i of snapshot.instances) for (const v of i.values) found.set(`${i.set}\n${i.instance}\n${v.counter}`, { raw: v.raw, epoch: i.epoch });
  const sample = { time: snapshot.time, at: Date.parse(snapshot.time), values: new Map() };
  for (const s of series) {
    s.value = value(s, found.get(`${s.set.short}\n${s.instance}\n${s.counter.short}`), snapshot.uptime_ns);
    sample.values.set(s, s.value);
    [s.cell.textContent, s.unit.textContent] = readable(s.value, s.counter.unit);
    s.cell.title = s.value === null ? "" : `${s.value.toLocaleString(undefined, { maximumFractionDigits: 1 })} ${s.counter.unit}`;
  }
  samples.push(sample);
  if (samples.length > kept) samples.shift();
}

function part(svg, name, attributes, text) {
  const e = document.createElementNS(space, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  svg.append(e);
  return e;
}

// Counters of one unit share a panel: their values can be compared.
function draw() {
  const units = [...new Set(series.map((s) => s.counter.unit))];
  const width = chart.clientWidth - 20;
  if (units.length === 0) {
    const p = document.createElement("p");
    p.className = "none";
    p.textContent = sets.length > 0 ? "Choose a counter above, and add it." : "";
    chart.replaceChildren(p);
    return;
  }
  const height = units.length === 1 ? Math.max(200, Math.min(340, width * 0.4)) : 180;
  chart.replaceChildren(...units.map((unit) => panel(unit, width, height)));
}

// What a person reads: bytes and bits with a prefix, as GB/s, and large numbers of other things in thousands and millions.
const short = { bytes: "B", "bytes/s": "B/s", "bits/s": "bit/s" };
const prefixes = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

// scale returns by what values up to the largest are divided in a unit, and the unit's name then.
function scale(largest, unit) {
  const at = unit === "KB/s" ? 1e3 : 1; // of a unit that has a prefix already
  const name = unit === "KB/s" ? "B/s" : short[unit] ?? unit;
  const [by, prefix] = prefixes.find(([n]) => largest * at >= n) ?? [1, ""];
  if (prefix && !(unit in short) && unit !== "KB/s") {
    const words = { k: "thousand", M: "million", G: "billion", T: "trillion" };
    return largest < 1e6 ? [1, unit] : [by, `${words[prefix]} ${unit}`.trim()];
  }
  return [by / at, prefix === "k" && name.startsWith("B") ? "KB" + name.slice(1) : prefix + name];
}

// readable returns a value and its unit.
function readable(v, unit) {
  if (v === null) return ["-", unit];
  const [by, name] = scale(Math.abs(v), unit);
  return [(v / by).toLocaleString(undefined, { maximumFractionDigits: by === 1 ? 1 : 2 }), name];
}

const plain = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });

// ceiling is the least of 1, 2, 2.5 and 5 times a power of ten that is not below a value.
function ceiling(value) {
  const step = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].find((n) => n * step >= value) * step;
}

function panel(unit, width, height) {
  const svg = document.createElementNS(space, "svg");
  const lines = series.filter((s) => s.counter.unit === unit);
  for (const [k, v] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Graph of ${lines.map((s) => `${s.counter.name} of ${s.instance}`).join(", ")} in ${unit}` })) svg.setAttribute(k, v);
  const span = Number(get("span").value) * 1000;
  const [left, right, top, bottom] = [54, width - 8, 26, height - 24];
  const newest = samples.at(-1)?.at ?? 0;
  const seen = samples.filter((x) => x.at >= newest - span);
  const limit = ceiling(Math.max(1, ...seen.flatMap((x) => lines.map((s) => x.values.get(s) ?? 0))));
  const [by, name] = scale(limit, unit);
  part(svg, "text", { x: 4, y: 14, class: "tick" }, name);
  for (let i = 0; i <= 4; i++) {
    const y = bottom - (bottom - top) * i / 4;
    part(svg, "line", { x1: left, x2: right, y1: y, y2: y, class: "grid" });
    part(svg, "text", { x: left - 6, y: y + 4, class: "tick end" }, plain.format(limit * i / 4 / by));
  }
  part(svg, "text", { x: left, y: height - 6, class: "tick" }, `${span / 60000} minutes ago`);
  part(svg, "text", { x: right, y: height - 6, class: "tick end" }, "now");
  for (const s of lines) {
    let path = "", pen = "M", before = 0;
    for (const x of seen) {
      const v = x.values.get(s);
      if (v === null || v === undefined) { pen = "M"; continue; }
      if (x.at - before > 5000) pen = "M"; // nobody looked in between
      path += `${pen}${(right - (right - left) * (newest - x.at) / span).toFixed(1)} ${(bottom - (bottom - top) * v / limit).toFixed(1)}`;
      pen = "L";
      before = x.at;
    }
    if (path) part(svg, "path", { d: path, class: "line s" + s.color });
  }
  return svg;
}

function save() {
  const quote = (text) => `"${String(text).replaceAll('"', '""')}"`;
  const head = ["time", ...series.map((s) => `\\${s.set.name}(${s.instance})\\${s.counter.name}`)];
  const lines = samples.map((x) => [x.time, ...series.map((s) => x.values.get(s) ?? "")]);
  const blob = new Blob([[head, ...lines].map((l) => l.map(quote).join(",")).join("\r\n") + "\r\n"], { type: "text/csv" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = "counters.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function turn() {
  const began = performance.now();
  if (!paused) {
    try {
      await read();
      draw();
      if (state.textContent.startsWith("Not read")) state.textContent = "";
      chart.classList.remove("stale");
    } catch (e) {
      state.textContent = `Not read: ${e.message}`;
      chart.classList.add("stale");
    }
  }
  setTimeout(turn, Math.max(100, 1000 - (performance.now() - began)));
}

get("choose").addEventListener("submit", (e) => { e.preventDefault(); if (counter()) add(set(), get("instance").value, counter()); });
get("set").addEventListener("change", chooseSet);
get("counter").addEventListener("change", describe);
get("csv").addEventListener("click", save);
get("pause").addEventListener("click", () => {
  paused = !paused;
  for (const s of series) s.last = null;
  get("pause").setAttribute("aria-pressed", String(paused));
  get("pause").textContent = paused ? "Go on" : "Pause";
});

get("span").addEventListener("change", draw);
new ResizeObserver(draw).observe(chart);

async function begin() {
  const answer = await fetch("/web/api/counters/sets", { redirect: "error" });
  sets = (await understood(answer)).filter((s) => s.instances.length > 0 && s.counters.some((c) => c.counted));
  fill(get("set"), sets.map((s, i) => [i, s.name]));
  if (sets.length === 0) { state.textContent = "The driver counts nothing: it has no adapter."; return; }
  // Activity counts what moves without packets too.
  const first = sets.find((s) => s.short === "rdma_activity") ?? sets[0];
  get("set").value = sets.indexOf(first);
  chooseSet();
  const rates = first.counters.filter((c) => c.counted && c.kind === "rate" && c.unit === "bytes/s").slice(0, 2);
  for (const c of rates) add(first, first.instances[0], c);
}

try {
  await begin();
  turn();
} catch (e) {
  state.textContent = `Not read: ${e.message} Load the page again.`;
}
