"use strict";
const runs = JSON.parse(document.getElementById("data").textContent);
const NS = "http://www.w3.org/2000/svg";
const colors = [0, 1, 2, 3, 4, 5, 6, 7].map(i => `var(--s${i})`);
const most = { lines: 32, legend: 12, points: 800 };

// el makes an element with attributes and children.
function el(name, attrs, ...children) {
  const svg = /^(svg|g|path|line|rect|circle|text|title|polyline)$/.test(name) && !(attrs && attrs.html);
  const e = svg ? document.createElementNS(NS, name) : document.createElement(name);
  for (const k in attrs || {}) if (k !== "html") e.setAttribute(k, attrs[k]);
  for (const c of children) if (c != null) e.append(c);
  return e;
}

function number(x, digits = 3) {
  if (x === 0 || x == null) return "0";
  const a = Math.abs(x);
  if (a >= 1e4) return Math.round(x).toLocaleString("en");
  return String(+x.toPrecision(a >= 1000 ? 4 : digits));
}

function time(us) {
  if (us == null) return "–";
  if (us < 1) return number(us * 1000) + " ns";
  if (us < 1000) return number(us) + " µs";
  if (us < 1e6) return number(us / 1000) + " ms";
  return number(us / 1e6) + " s";
}

// ticks returns round numbers between two, about n.
function ticks(low, high, n) {
  const span = high - low || 1, rough = span / n, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough);
  const out = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) out.push(+v.toPrecision(12));
  return out;
}

// thin leaves so many points of a line that a plot has room for: the mean of neighbours.
function thin(x, y) {
  const k = Math.ceil(x.length / most.points);
  if (k <= 1) return [x, y];
  const a = [], b = [];
  for (let i = 0; i < x.length; i += k) {
    const n = Math.min(k, x.length - i);
    let s = 0;
    for (let j = 0; j < n; j++) s += y[i + j];
    a.push(x[i + n - 1]);
    b.push(s / n);
  }
  return [a, b];
}

// plot draws lines {name, x, y, color} and returns a card.
function plot(o) {
  const lines = o.lines.slice(0, most.lines).map((l, i) => {
    const [x, y] = o.whole ? [l.x, l.y] : thin(l.x, l.y);
    return { name: l.name, x, y, color: l.color || colors[i % colors.length] };
  });
  const W = o.wide ? 1160 : 560, H = 230, left = 52, right = 14, top = 10, bottom = 34;
  const xs = lines.flatMap(l => l.x), ys = lines.flatMap(l => l.y);
  const log = o.log && Math.min(...xs.filter(v => v > 0)) > 0;
  let x0 = o.x0 ?? 0, x1 = xs.reduce((a, b) => Math.max(a, b), 0) || 1;
  if (log) { x0 = xs.reduce((a, b) => b > 0 ? Math.min(a, b) : a, Infinity); if (x1 / x0 < 1.01) x1 = x0 * 1.5; }
  const y1 = o.y1 ?? ((ys.reduce((a, b) => Math.max(a, b), 0) || 1) * 1.06);
  const fx = v => log ? Math.log(Math.max(v, x0) / x0) / Math.log(x1 / x0) : (v - x0) / (x1 - x0);
  const X = v => left + fx(v) * (W - left - right), Y = v => H - bottom - v / y1 * (H - top - bottom);
  const svg = el("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": o.title });
  for (const v of ticks(0, y1, 4)) {
    svg.append(el("line", { class: "gridline", x1: left, x2: W - right, y1: Y(v), y2: Y(v) }),
      el("text", { x: left - 6, y: Y(v) + 4, "text-anchor": "end" }, number(v)));
  }
  let at = log ? [] : ticks(x0, x1, 7);
  if (log) {
    for (let p = Math.floor(Math.log10(x0)); p <= Math.log10(x1); p++) for (const m of [1, 2, 5]) {
      const v = m * 10 ** p;
      if (v >= x0 && v <= x1) at.push(v);
    }
    if (at.length < 2) at = [x0, x1];
  }
  const unit = o.time ? (x1 > 2e6 ? ["s", 1e6] : x1 > 2000 ? ["ms", 1000] : ["µs", 1]) : [o.xunit || "", 1];
  for (const v of at) {
    svg.append(el("text", { x: X(v), y: H - bottom + 16, "text-anchor": "middle" }, number(v / unit[1])));
    if (log) svg.append(el("line", { class: "gridline", x1: X(v), x2: X(v), y1: top, y2: H - bottom }));
  }
  svg.append(el("line", { class: "axis", x1: left, x2: W - right, y1: Y(0), y2: Y(0) }),
    el("text", { x: W - right, y: H - 4, "text-anchor": "end" }, (o.xlabel ? o.xlabel + " " : "") + unit[0]),
    el("text", { x: left - 44, y: top + 1 }, o.yunit || ""));
  for (const f of o.time && o.faults || []) {
    const end = Math.min(f.until_us ?? x1, x1);
    if (f.at_us > x1) continue;
    const mark = el("rect", { class: "fault", x: X(f.at_us), y: top, width: Math.max(X(end) - X(f.at_us), 1), height: H - bottom - top });
    mark.append(el("title", {}, `${f.what}, from ${time(f.at_us)}` + (f.until_us == null ? "" : ` to ${time(f.until_us)}`)));
    svg.append(mark);
  }
  const faint = lines.length > 8 ? 0.75 : 1;
  for (const l of lines) {
    let d = "";
    for (let i = 0; i < l.x.length; i++) {
      if (o.steps && i > 0) d += `H${X(l.x[i]).toFixed(1)}`;
      d += (i ? "L" : "M") + X(l.x[i]).toFixed(1) + " " + Y(Math.min(l.y[i], y1)).toFixed(1);
    }
    svg.append(el("path", { class: "series", d, stroke: l.color, "stroke-opacity": faint }));
  }
  const cursor = el("line", { class: "axis", y1: top, y2: H - bottom, x1: left, x2: left, visibility: "hidden" });
  svg.append(cursor);
  const tip = el("div", { class: "tip" });
  const box = el("div", { class: "plot" }, svg, tip);
  const hide = () => { tip.style.display = "none"; cursor.setAttribute("visibility", "hidden"); };
  box.addEventListener("pointermove", e => {
    const r = svg.getBoundingClientRect(), px = (e.clientX - r.left) / r.width * W, f = (px - left) / (W - left - right);
    if (f < 0 || f > 1) { hide(); return; }
    const v = log ? x0 * (x1 / x0) ** f : x0 + f * (x1 - x0);
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x1", px);
    cursor.setAttribute("x2", px);
    tip.replaceChildren(el("div", {}, o.time ? time(v) : number(v) + " " + unit[0]));
    const found = lines.map(l => {
      let i = l.x.findIndex(t => t >= v);
      if (i < 0) i = l.x.length - 1;
      return { l, y: l.y[i] };
    }).sort((a, b) => b.y - a.y);
    for (const { l, y } of found.slice(0, 8)) {
      const i = el("i", {});
      i.style.background = l.color;
      tip.append(el("div", {}, i, `${l.name}: ${number(y)} ${o.yunit || ""}`));
    }
    tip.style.display = "block";
    const bx = e.clientX - r.left;
    tip.style.left = Math.min(bx + 14, r.width - tip.offsetWidth - 4) + "px";
    tip.style.top = "8px";
  });
  box.addEventListener("pointerleave", hide);
  const card = el("section", { class: o.wide ? "card wide" : "card" }, el("h2", {}, o.title), el("p", { class: "note" }, o.note || ""), box);
  if (lines.length > 1 || o.name) {
    const legend = el("ul", { class: "legend" });
    for (const l of lines.slice(0, most.legend)) {
      const i = el("i", {});
      i.style.background = l.color;
      legend.append(el("li", {}, i, l.name));
    }
    const more = o.lines.length - Math.min(lines.length, most.legend);
    if (more > 0) legend.append(el("li", {}, `and ${more} more`));
    card.append(legend);
  }
  return card;
}

// distribution returns the points of a cumulative distribution.
function distribution(values) {
  const v = values.filter(x => x != null).sort((a, b) => a - b);
  return { x: v.length ? [v[0], ...v] : [], y: v.length ? [0, ...v.map((_, i) => (i + 1) / v.length * 100)] : [] };
}

const use = [[0.05, "u0", "under 5 %"], [0.4, "u1", "to 40 %"], [0.7, "u2", "to 70 %"], [0.9, "u3", "to 90 %"], [Infinity, "u4", "over 90 %"]];

// Above so many links to the switches at the top, which are few enough for a row each, links are cells of a grid: lines would lie over
// each other, and hide which of them is hot.
const mostLines = 200, mostRows = 64;

// gridded reports whether the links to the top tier are drawn as a grid.
function gridded(t, top) {
  const rows = t.nodes.filter(n => n.tier === top).length;
  const links = t.links.filter(l => Math.max(t.nodes[l.a].tier, t.nodes[l.b].tier) === top && t.nodes[l.a].tier !== t.nodes[l.b].tier);
  return top > 1 && rows <= mostRows && links.length > mostLines;
}

// place gives the nodes of a topology their places: rows by tier, or switches in a circle. With a grid the switches at the top are its rows,
// at the left.
function place(t) {
  const top = Math.max(...t.nodes.map(n => n.tier)), at = [];
  const switches = t.nodes.map((n, i) => i).filter(i => t.nodes[i].tier > 0);
  const near = t.nodes.map(() => []);
  for (const l of t.links) { near[l.a].push(l.b); near[l.b].push(l.a); }
  const circle = top === 1 && switches.length > 2;
  if (circle) {
    const W = 1160, H = 460, R = 140;
    switches.forEach((s, i) => {
      const a = i / switches.length * 2 * Math.PI - Math.PI / 2;
      at[s] = [W / 2 + R * 1.5 * Math.cos(a), H / 2 + R * Math.sin(a)];
      const hosts = near[s].filter(h => t.nodes[h].tier === 0);
      hosts.forEach((h, k) => {
        const b = a + (k - (hosts.length - 1) / 2) * 0.25;
        at[h] = [W / 2 + (R + 75) * 1.5 * Math.cos(b), H / 2 + (R + 60) * Math.sin(b)];
      });
    });
    return { W, H, at, many: t.nodes.length > 80 };
  }
  const grid = gridded(t, top), rows = t.nodes.filter(n => n.tier === top).length, pitch = rows > 24 ? 9 : 16, left = grid ? 90 : 0;
  const W = 1160, gap = top > 2 ? 105 : 130, H = top * gap + 70 + (grid ? rows * pitch - gap + 40 : 0);
  let order = t.nodes.map((n, i) => i);
  const x = [];
  for (let tier = 0; tier <= top; tier++) {
    const row = order.filter(i => t.nodes[i].tier === tier);
    if (tier > 0) {
      const mean = i => { const b = near[i].filter(j => t.nodes[j].tier < tier && x[j] != null); return b.length ? b.reduce((s, j) => s + x[j], 0) / b.length : 0; };
      const m = new Map(row.map(i => [i, mean(i)]));
      row.sort((a, b) => m.get(a) - m.get(b) || a - b);
    } else {
      row.sort((a, b) => near[a][0] - near[b][0] || a - b);
    }
    row.forEach((i, k) => {
      x[i] = left + (W - left) * (k + 0.5) / row.length;
      at[i] = grid && tier === top ? [20, 24 + (k + 0.5) * pitch] : [x[i], H - 40 - tier * gap];
    });
  }
  const below = t.nodes.filter(n => n.tier === top - 1).length;
  return { W, H, at, top: grid ? top : -1, pitch, column: (W - left) / below, many: t.nodes.filter(n => n.tier === 0).length > 40 };
}

// cell draws a link to a switch at the top in the row of that and the column of the other; parallel ones share its width.
function cell(t, l, upper, at, { pitch, column, colour, paused, cells }) {
  const lower = upper === l.a ? l.b : l.a, key = upper + " " + lower, k = cells.get(key) || 0;
  cells.set(key, k + 1);
  const n = t.links.filter(o => (o.a === upper && o.b === lower) || (o.a === lower && o.b === upper)).length;
  const width = Math.max((column - 1.5) / n, 0.5);
  return el("rect", { class: "link", x: at[lower][0] - column / 2 + 0.75 + k * width, y: at[upper][1] - pitch / 2 + 1, width, height: pitch - 2,
    fill: colour, stroke: paused ? "var(--bad)" : "none", "stroke-dasharray": paused ? "3 2" : "none" });
}

function drawTopology(x) {
  const t = x.topology, { W, H, at, many, top, pitch, column } = place(t);
  const cells = new Map(); // links of two nodes that are in a grid: how many are drawn
  const svg = el("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Topology" });
  const fastest = Math.max(...t.links.map(l => l.rate_gbps));
  const order = t.links.map((l, i) => i).sort((a, b) => t.links[a].used - t.links[b].used);
  for (const i of order) {
    const l = t.links[i], u = use.find(([limit]) => l.used < limit)[1];
    const [a, b] = [at[l.a], at[l.b]];
    const colour = l.paused > 0.2 ? "var(--bad)" : `var(--${u})`, dashes = l.paused > 0.02 ? "7 4" : "none";
    const upper = t.nodes[l.a].tier === top ? l.a : t.nodes[l.b].tier === top ? l.b : -1;
    const line = upper < 0 || t.nodes[l.a].tier === t.nodes[l.b].tier
      ? el("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1], stroke: colour, "stroke-width": (l.used < 0.05 ? 1 : 1.6) + 2.4 * l.rate_gbps / fastest * Math.max(l.used, 0.1),
        "stroke-dasharray": dashes, "stroke-opacity": l.used < 0.05 && l.paused < 0.02 ? 0.6 : 1 })
      : cell(t, l, upper, at, { pitch, column, colour, paused: l.paused > 0.02, cells });
    line.append(el("title", {}, `${t.nodes[l.a].name} – ${t.nodes[l.b].name}: ${number(l.rate_gbps)} Gb/s, ${number(l.used * 100)} % used, paused ${number(l.paused * 100)} % of the time`));
    svg.append(line);
  }
  t.nodes.forEach((n, i) => {
    const [px, py] = at[i], host = n.tier === 0, r = many ? (host ? 3 : 6) : (host ? 6 : 9);
    const mark = host ? el("circle", { class: "node", cx: px, cy: py, r }) : el("rect", { class: "node switch", x: px - r * 1.6, y: py - r * 0.8, width: r * 3.2, height: r * 1.6, rx: 3 });
    mark.append(el("title", {}, n.name));
    svg.append(mark);
    if (n.tier === top) {
      if (pitch > 12) svg.append(el("text", { x: px + 14, y: py + 4 }, n.name));
    } else if (!many || (!host && t.nodes.length < 200)) {
      const below = host ? (py > H / 2 ? 20 : -12) : (n.tier === Math.max(...t.nodes.map(m => m.tier)) ? -13 : 4);
      const beside = !host && below === 4;
      const crowded = host && t.nodes.filter(m => m.tier === 0).length > 20;
      svg.append(el("text", { x: beside ? px + 20 : px, y: py + below, "text-anchor": beside ? "start" : "middle" }, crowded ? n.name.replace(/^\D+0*(?=\d)/, "") : n.name));
    }
  });
  const legend = el("ul", { class: "legend" });
  for (const [, u, text] of use) {
    const i = el("i", {});
    i.style.background = `var(--${u})`;
    legend.append(el("li", {}, i, text));
  }
  legend.append(el("li", {}, "- - -  paused for more than 2 % of the time, red: more than 20 %"));
  return el("section", { class: "card wide" }, el("h2", {}, "Topology"),
    el("p", { class: "note" }, "Links by how much of the rate of their busier direction was used, over the whole run" +
      (top < 0 ? "" : ". Those to the switches at the left are cells: a row for each of these, and a column for each switch below")), svg, legend);
}

function table(title, note, heads, rows, left = 1) {
  const tr = (cells, kind) => {
    const r = el("tr", {});
    cells.forEach((c, i) => r.append(el(kind, i < left ? { class: "left" } : {}, c)));
    return r;
  };
  return el("section", { class: "card wide" }, el("h2", {}, title), el("p", { class: "note" }, note),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, tr(heads, "th")), el("tbody", {}, ...rows.map(r => tr(r, "td"))))));
}

function tiles(x) {
  const s = x.summary, out = [];
  const tile = (value, label, kind) => out.push(el("div", { class: "tile " + (kind || "") }, el("b", {}, value), el("span", {}, label)));
  tile(`${number(s.goodput_late_gbps, 4)} Gb/s`, "goodput, second half of the run");
  tile(s.jain.toFixed(3), "Jain's fairness index", !s.goodput_late_gbps ? "" : s.jain > 0.95 ? "good" : s.jain < 0.7 ? "bad" : "");
  if (s.complete > 0) {
    tile(`${s.complete} / ${s.flows}`, "flows complete", s.complete === s.flows ? "good" : "");
    tile(time(s.fct_us.p50), "completion time, median");
    tile(time(s.fct_us.p99), "completion time, 99 %");
    tile("× " + number(s.slowdown.p99), "slowdown, 99 %");
  } else {
    tile(String(s.flows), x.flows.some((f) => f.bytes > 0) ? "flows, none of them complete" : "flows without an end");
  }
  tile(number(s.queue_kb.p50) + " KB", `longest queue, median; 99 %: ${number(s.queue_kb.p99)} KB`);
  tile(number(s.marks), "packets marked (ECN)");
  tile(number(s.cnps), "CNPs");
  tile(number(s.pauses), "pauses, " + time(s.pause_us) + " together");
  tile(number(s.drops), "frames dropped", s.drops ? "bad" : "good");
  document.getElementById("tiles").replaceChildren(...out);
}

function alarms(x) {
  const out = [];
  const alarm = (title, ...lines) => out.push(el("section", { class: "card alarm", style: "margin: 1rem 0" }, el("h2", {}, title), ...lines.map(l => el("p", { class: "note" }, l))));
  for (const d of x.deadlocks || []) alarm("Deadlock at " + time(d.at_us), "Each of these queues is paused until the next one moves: " + d.queues.join(" → ") + " → " + d.queues[0]);
  if ((x.storms || []).length) alarm("Pause storm", ...x.storms.slice(0, 8).map(s => `${s.node} > ${s.peer}, priority ${s.priority}: paused since ${time(s.since_us)}`));
  if (x.summary.failed) alarm(`${x.summary.failed} flows failed`, "A write ended with an error: it was sent again too often.");
  if ((x.faults || []).length) alarm("Faults of the scenario", ...x.faults.slice(0, 16).map(f => f.what + ", from " + time(f.at_us) + (f.until_us == null ? "" : " to " + time(f.until_us))));
  document.getElementById("alarms").replaceChildren(...out);
}

function show(x) {
  document.getElementById("about").textContent = (x.description ? x.description + " " : "") +
    `${x.hosts} hosts, ${x.switches} switches, ${x.links} links; ${x.lean ? "lean senders" : "RC queue pairs"}; ${time(x.duration_us)} of virtual time; seed ${x.seed}.`;
  alarms(x);
  tiles(x);
  const part = x.flows.length < x.summary.flows ? `, of ${x.flows.length} of ${x.summary.flows} flows` : "";
  const s = x.series, out = [drawTopology(x)], name = i => `${x.flows[i].from} → ${x.flows[i].to}`;
  const flows = [...s.flows].sort((a, b) => x.flows[b.flow].received_bytes - x.flows[a.flow].received_bytes || a.flow - b.flow);
  out.push(plot({ title: "Throughput of flows", note: flows.length > most.lines ? `The ${most.lines} with the most bytes of ${x.summary.flows}` : "What arrives at the receivers", yunit: "Gb/s", time: true, faults: x.faults,
    lines: flows.map(f => ({ name: name(f.flow), x: s.time_us, y: f.gbps })) }));
  out.push(plot({ title: "Queues", note: "Bytes that wait at the ports with the longest queues", yunit: "KB", time: true, faults: x.faults, name: true,
    lines: s.queues.slice(0, 8).map(q => ({ name: q.port.replace(">", " → "), x: s.time_us, y: q.kb })) }));
  out.push(plot({ title: "Throughput of all flows", note: "Together", yunit: "Gb/s", time: true, faults: x.faults, lines: [{ name: "all", x: s.time_us, y: s.sum_gbps }] }));
  out.push(plot({ title: "Fairness", note: "Jain's index of the flows that are under way", y1: 1.05, time: true, faults: x.faults, lines: [{ name: "Jain", x: s.time_us, y: s.jain }] }));
  if (x.summary.marks) out.push(plot({ title: "Marks and notifications", note: "In each sample of " + time(x.sample_us), time: true, faults: x.faults,
    lines: [{ name: "packets marked", x: s.time_us, y: s.marks }, { name: "CNPs received", x: s.time_us, y: s.cnps }] }));
  if (x.summary.pauses) out.push(plot({ title: "Pauses", note: "Sent by all switches, in each sample of " + time(x.sample_us), time: true, faults: x.faults, lines: [{ name: "pauses", x: s.time_us, y: s.pauses, color: "var(--s5)" }] }));
  if (x.summary.complete > 1) {
    const fct = distribution(x.flows.map(f => f.fct_us)), slow = distribution(x.flows.map(f => f.slowdown));
    out.push(plot({ title: "Flow completion times", note: "Share of flows that took no longer" + part, yunit: "%", y1: 100, log: true, time: true, whole: true, steps: true, lines: [{ name: "flows", ...fct }] }));
    out.push(plot({ title: "Slowdown", note: "Completion time by that in an idle network; share of flows up to it", yunit: "%", y1: 100, log: true, whole: true, steps: true, lines: [{ name: "flows", ...slow }] }));
  }
  const busy = x.ports.flatMap(p => p.priorities.map(q => ({ p, q }))).filter(({ q }) => q.frames + q.pauses_sent + q.pauses_received > 0)
    .sort((a, b) => (b.q.paused_us + b.q.pause_sent_us + b.q.peak_kb) - (a.q.paused_us + a.q.pause_sent_us + a.q.peak_kb));
  out.push(table("Ports and priorities", "Those with the most pauses and the longest queues first" + (busy.length > 100 ? `; 100 of ${busy.length}` : ""),
    ["port", "to", "priority", "used", "frames", "marked", "dropped", "longest queue", "pauses sent", "paused the other", "pauses received", "was paused"],
    busy.slice(0, 100).map(({ p, q }) => [portName(x, p), p.peer, q.priority, number(p.used * 100) + " %", number(q.frames), number(q.marked), number(q.drops), number(q.peak_kb) + " KB",
      number(q.pauses_sent), time(q.pause_sent_us || 0), number(q.pauses_received), time(q.paused_us || 0)]), 2));
  out.push(...agreements(x));
  const slowest = [...x.flows].sort((a, b) => (b.slowdown || 0) - (a.slowdown || 0) || a.goodput_gbps - b.goodput_gbps || a.flow - b.flow);
  out.push(table("Flows", "The slowest first" + part + (slowest.length > 100 ? `; 100 of ${slowest.length}` : ""),
    ["from", "to", "bytes", "start", "time", "slowdown", "Gb/s", "packets", "sent again", "marked", "CNPs"],
    slowest.slice(0, 100).map(f => [f.from, f.to, f.bytes ? number(f.bytes) : "no end", time(f.start_us), time(f.fct_us), f.slowdown ? "× " + number(f.slowdown) : "–", number(f.goodput_gbps),
      number(f.packets), number(f.sent_again), number(f.marked), number(f.cnps)]), 2));
  document.getElementById("plots").replaceChildren(...out);
}

// compare shows all runs beside each other.
function compare() {
  const box = document.getElementById("compare"), sets = runs.map(r => r.result.summary);
  const columns = [["Gb/s late", s => s.goodput_late_gbps, 1, v => number(v, 4)], ["Jain", s => s.jain, 1], ["queue p50 KB", s => s.queue_kb.p50, -1], ["queue p99 KB", s => s.queue_kb.p99, -1],
    ["marks", s => s.marks, 0], ["CNPs", s => s.cnps, 0], ["pauses", s => s.pauses, -1], ["paused", s => s.pause_us, -1, time], ["drops", s => s.drops, -1]];
  if (sets.some(s => s.complete > 0)) columns.unshift(["complete", s => s.complete, 1], ["FCT p50", s => s.fct_us.p50, -1, time], ["FCT p99", s => s.fct_us.p99, -1, time], ["slowdown p99", s => s.slowdown.p99, -1]);
  const head = el("tr", {}, el("th", { class: "left" }, "run"), ...columns.map(c => el("th", {}, c[0])));
  const best = columns.map(([, get, sign]) => { const v = sets.map(get); return sign && Math.max(...v) !== Math.min(...v) ? (sign > 0 ? Math.max(...v) : Math.min(...v)) : null; });
  const body = runs.map((r, k) => {
    const a = el("a", { href: "#" }, r.run);
    a.style.color = colors[k % colors.length];
    a.addEventListener("click", e => { e.preventDefault(); pick(k); });
    return el("tr", { class: "best" }, el("td", { class: "left" }, a), ...columns.map(([, get, , text], i) =>
      el("td", get(sets[k]) === best[i] ? { class: "mark" } : {}, (text || number)(get(sets[k])))));
  });
  const grid = el("div", { class: "grid", style: "margin: 1rem 0 1.5rem" });
  const over = (title, note, yunit, get, extra) => grid.append(plot({ title, note, yunit, time: true, ...extra, lines: runs.map((r, i) => ({ name: r.run, ...get(r.result), color: colors[i % colors.length] })) }));
  over("Throughput of all flows", "Of each run", "Gb/s", x => ({ x: x.series.time_us, y: x.series.sum_gbps }));
  over("Longest queue", "The port where most waits in the mean, of each run", "KB", x => ({ x: x.series.time_us, y: x.series.queues[0].kb }));
  if (sets.some(s => s.complete > 1)) {
    over("Flow completion times", "Share of flows that took no longer", "%", x => distribution(x.flows.map(f => f.fct_us)), { y1: 100, log: true, whole: true, steps: true });
    over("Slowdown", "Share of flows up to it", "%", x => distribution(x.flows.map(f => f.slowdown)), { y1: 100, log: true, whole: true, steps: true, time: false });
  } else {
    over("Fairness", "Jain's index of the flows under way", "", x => ({ x: x.series.time_us, y: x.series.jain }), { y1: 1.05 });
    over("Marks", "In each sample", "", x => ({ x: x.series.time_us, y: x.series.marks }));
  }
  box.replaceChildren(el("section", { class: "card" }, el("h2", {}, `${runs.length} runs`), el("p", { class: "note" }, "The best of each column is marked. Choose a run to see it below."),
    el("div", { class: "scroll" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)))), grid);
  box.hidden = false;
}

const menu = document.getElementById("run");
function pick(k) {
  menu.value = k;
  show(runs[k].result);
}
if (runs.length > 1) {
  runs.forEach((r, k) => menu.append(el("option", { value: k }, r.run)));
  menu.addEventListener("change", () => show(runs[+menu.value].result));
  document.getElementById("choose").hidden = false;
  compare();
}
show(runs[0].result);
