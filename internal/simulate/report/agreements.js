// portName names a port by its node, and by its number if others of that lead to the same one.
function portName(x, p) {
  const several = x.ports.some(o => o.node === p.node && o.peer === p.peer && o.port !== p.port);
  return several ? `${p.node}[${p.port + 1}]` : p.node;
}

// joins says when a port of a bundle has begun or ceased to send, as the summary does.
function joins(changes) {
  const out = [];
  let sends = changes.length > 0 && !changes[0].sends; // some changes are of what it takes alone
  for (const c of changes) {
    if (c.sends === sends) continue;
    sends = c.sends;
    out.push((sends ? "joins at " : "leaves at ") + time(c.at_us));
  }
  return out.length > 4 ? out.slice(0, 4).join(", ") + `, ${out.length - 4} times more` : out.join(", ");
}

// agreements are tables of what links have agreed, by LACP and by DCBX.
function agreements(x) {
  const out = [], some = rows => rows.length > 100 ? `; 100 of ${rows.length}` : "";
  const bundled = [...x.lacp || []].sort((a, b) => (b.changes || []).length - (a.changes || []).length ||
    (a.state === "distributing") - (b.state === "distributing"));
  if (bundled.length) out.push(table("Link aggregation (LACP)", "Ports of bundles at the end, at both ends: those first that have left or joined one" + some(bundled),
    ["port", "to", "state", "partner", "since the run began", "data units sent", "heard", "timed out"],
    bundled.slice(0, 100).map(a => [`${a.node}[${a.port + 1}]`, a.peer, a.state, a.partner || "silent", joins(a.changes || []) || "–", number(a.sent), number(a.heard), number(a.timeouts)]), 5));
  const agreed = x.dcbx || [];
  if (agreed.length) out.push(table("Agreed by DCBX", "What adapters do as their switches say, and where it is from" + some(agreed),
    ["host", "switch", "state", "protocol", "PFC", "PFC from", "shares from"],
    agreed.slice(0, 100).map(a => [a.host, a.switch, a.state, a.protocol, a.pfc.join(", ") || "none", a.pfc_from, a.ets_from]), 7));
  return out;
}
