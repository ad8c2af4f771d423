// Graphs of counters: the chosen ones are read each second from the management interface and kept for ten minutes.
const get = (id) => document.getElementById(id);
const [chart, chosen, state] = [get("chart"), get("chosen"), get("state")];
const space = "http://www.w3.org/2000/svg";
const kept = 600, shown = 120, most = 8;
let sets = [];
let series = []; // { set, instance, counter, color, last, value, row }
let samples = []; // { time, values by series }
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

function cell(row, text, kind) {
  const td = row.insertCell();
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
  cell(row, "").append(line);
  cell(row, s.name);
  cell(row, instance);
  cell(row, c.name);
  one.cell = cell(row, "", "number");
  cell(row, c.unit);
  const remove = document.createElement("button");
  remove.type = "button";
  remove.textContent = "Remove";
  remove.setAttribute("aria-label", `Remove ${c.name} of ${instance}`);
  remove.addEventListener("click", () => { series = series.filter((x) => x !== one); row.remove(); draw(); });
  cell(row, "").append(remove);
  series.push(one);
}

// A rate is of the time between two readings; there is none where the counter was set back between them.
function value(one, reading, uptime) {
  if (!reading || reading.raw === null) return null;
  const before = one.last;
  one.last = { raw: reading.raw, epoch: reading.epoch, uptime };
  if (one.counter.kind !== "rate") return reading.raw;
  if (!before || before.epoch !== reading.epoch || reading.raw < before.raw || uptime <= before.uptime) return null;
  return (reading.raw - before.raw) / ((uptime - before.uptime) / 1e9);
}

async function read() {
  if (series.length === 0) return;
  const query = new URLSearchParams(series.map((s) => ["path", `\\${s.set.name}(${s.instance})\\${s.counter.name}`]));
  const answer = await fetch("/web/api/counters?" + query, { redirect: "error" });
  if (!answer.ok) throw new Error(`The driver answers ${answer.status}.`);
  const snapshot = await answer.json();
  const found = new Map();
  for (const i of snapshot.instances) for (const v of i.values) found.set(`${i.set}\n${i.instance}\n${v.counter}`, { raw: v.raw, epoch: i.epoch });
  const sample = { time: snapshot.time, values: new Map() };
  for (const s of series) {
    s.value = value(s, found.get(`${s.set.short}\n${s.instance}\n${s.counter.short}`), snapshot.uptime_ns);
    sample.values.set(s, s.value);
    s.cell.textContent = s.value === null ? "-" : s.value.toLocaleString(undefined, { maximumFractionDigits: 1 });
  }
  samples.push(sample);
  if (samples.length > kept) samples.shift();
}

function part(name, attributes, text) {
  const e = document.createElementNS(space, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  chart.append(e);
}

function draw() {
  chart.replaceChildren();
  const [left, right, top, bottom] = [80, 890, 12, 290];
  const seen = samples.slice(-shown);
  const high = Math.max(1, ...seen.flatMap((x) => series.map((s) => x.values.get(s) ?? 0)));
  const step = 10 ** Math.floor(Math.log10(high));
  const limit = Math.ceil(high / step) * step;
  for (let i = 0; i <= 4; i++) {
    const y = bottom - (bottom - top) * i / 4;
    part("line", { x1: left, x2: right, y1: y, y2: y, class: "grid" });
    part("text", { x: left - 8, y: y + 4, class: "tick end" }, new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 2 }).format(limit * i / 4));
  }
  part("text", { x: left, y: 312, class: "tick" }, `${shown} s ago`);
  part("text", { x: right, y: 312, class: "tick end" }, "now");
  for (const s of series) {
    let path = "", pen = "M";
    seen.forEach((x, i) => {
      const v = x.values.get(s);
      if (v === null || v === undefined) { pen = "M"; return; }
      path += `${pen}${(right - (right - left) * (seen.length - 1 - i) / (shown - 1)).toFixed(1)} ${(bottom - (bottom - top) * v / limit).toFixed(1)}`;
      pen = "L";
    });
    if (path) part("path", { d: path, class: "line s" + s.color });
  }
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
    } catch (e) {
      state.textContent = `Not read: ${e.message}`;
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

const answer = await fetch("/web/api/counters/sets", { redirect: "error" });
sets = (await answer.json()).filter((s) => s.instances.length > 0 && s.counters.some((c) => c.counted));
fill(get("set"), sets.map((s, i) => [i, s.name]));
if (sets.length > 0) {
  // Activity counts what moves without packets too.
  const first = sets.find((s) => s.short === "rdma_activity") ?? sets[0];
  get("set").value = sets.indexOf(first);
  chooseSet();
  const rates = first.counters.filter((c) => c.counted && c.kind === "rate" && c.unit === "bytes/s").slice(0, 2);
  for (const c of rates) add(first, first.instances[0], c);
}
turn();
