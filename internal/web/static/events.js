// Follows the event log while the box is checked: new events come on top of the table.
const box = document.getElementById("follow");
const state = document.getElementById("follow-state");
const rows = document.getElementById("events");
const most = 1000;
let stream = null;
let after = box?.dataset.after;

function cell(row, name, text, kind) {
  const td = document.createElement("td");
  td.dataset.name = name;
  if (kind) td.className = kind;
  td.textContent = text;
  row.append(td);
  return td;
}

function two(n) { return String(n).padStart(2, "0"); }

function moment(text) {
  const t = new Date(text);
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
}

function add(e) {
  const row = document.createElement("tr");
  cell(row, "No.", e.sequence, "number");
  cell(row, "Time", moment(e.time), "time");
  const badge = document.createElement("span");
  badge.className = "badge " + e.severity;
  badge.textContent = e.severity;
  cell(row, "Severity", "").append(badge);
  cell(row, "Source", e.source);
  cell(row, "ID", "0x" + e.id.toString(16), "number mono");
  cell(row, "Adapter", e.adapter ?? "");
  cell(row, "Event", e.message, "text wide");
  rows.prepend(row);
  while (rows.rows.length > most) rows.lastElementChild.remove();
  document.getElementById("no-events")?.remove();
  after = e.sequence;
}

function follow() {
  const query = new URLSearchParams(box.dataset.query);
  for (const name of ["since", "until"]) if (query.has(name)) query.set(name, new Date(query.get(name)).toISOString());
  query.set("after", after);
  stream = new EventSource("/web/api/events/follow?" + query);
  stream.onopen = () => { state.textContent = "New events appear on top."; };
  stream.onerror = () => { state.textContent = "The driver does not answer; trying again."; };
  stream.addEventListener("event", (m) => add(JSON.parse(m.data)));
  stream.addEventListener("missed", (m) => { state.textContent = m.data + " events are no more in the log."; });
}

box?.addEventListener("change", () => {
  if (box.checked) { follow(); return; }
  stream?.close();
  stream = null;
  state.textContent = "";
});
