"use strict";

const byId = id => document.getElementById(id);
const count = number => Math.round(number).toLocaleString("en");

function bytes(number) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (number < 1024) return `${number < 10 && unit !== "B" ? number.toFixed(1) : Math.round(number)} ${unit}`;
    number /= 1024;
  }
  return `${number.toFixed(1)} TiB`;
}

function time(us) {
  if (us === null) return "";
  if (us < 1000) return `${us < 10 ? us.toFixed(1) : Math.round(us)} µs`;
  return us < 1e6 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toPrecision(3)} s`;
}

function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  const two = number => String(number).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  const clock = `${Math.floor(seconds / 3600) % 24}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return days > 0 ? `${days} d ${clock}` : clock;
}

// The calls that were added to each bucket.
function since(buckets, before) {
  const known = new Map(before);
  return buckets.map(([at, calls]) => [at, calls - (known.get(at) ?? 0)]).filter(([, calls]) => calls > 0);
}

// The latency that this fraction of the calls did not exceed, as the middle of its bucket.
function quantile(buckets, bounds, longest, fraction) {
  const all = buckets.reduce((sum, [, calls]) => sum + calls, 0);
  let seen = 0;
  for (const [at, calls] of buckets) {
    seen += calls;
    if (seen < all * fraction) continue;
    const lower = bounds[at - 1] ?? 0;
    return Math.min((lower + (bounds[at] ?? lower)) / 2, longest);
  }
  return null;
}

// Cells are set as text, never as markup, because names come from peers.
function table(id, heads, rows, emptyText) {
  const body = document.createElement("tbody");
  for (const cells of rows) {
    const row = body.insertRow();
    for (const cell of cells) {
      const element = row.insertCell();
      element.textContent = cell.text ?? cell;
      if (cell.bad) element.className = "bad";
    }
  }
  const head = document.createElement("thead");
  const row = head.insertRow();
  for (const name of rows.length ? heads : [emptyText]) {
    const element = document.createElement("th");
    element.scope = "col";
    element.textContent = name;
    row.append(element);
  }
  byId(id).replaceChildren(head, body);
}

function calls(id, rows, before, seconds, bounds) {
  const known = new Map(before.map(row => [`${row.interface} ${row.operation}`, row]));
  const shown = rows.map(row => {
    const was = known.get(`${row.interface} ${row.operation}`) ?? { calls: 0, buckets: [] };
    const buckets = row.calls > was.calls ? since(row.buckets, was.buckets) : row.buckets;
    const times = [0.5, 0.9, 0.99].map(fraction => time(quantile(buckets, bounds, row.max_us, fraction)));
    return { row, rate: (row.calls - was.calls) / seconds, times };
  });
  shown.sort((a, b) => b.rate - a.rate || b.row.calls - a.row.calls);
  const cells = shown.map(({ row, rate, times }) => [
    row.operation, row.interface, count(rate), count(row.calls), count(row.user_exceptions),
    { text: count(row.failures), bad: row.failures > 0 }, ...times, time(row.max_us),
  ]);
  const heads = ["operation", "interface", "calls/s", "calls", "user exceptions", "failures", "p50", "p90", "p99", "max"];
  table(id, heads, cells, "none yet");
}

let last = null;

function show(status) {
  const before = last && last.pid === status.pid && last.uptime_ms < status.uptime_ms ? last : null;
  const seconds = before ? (status.uptime_ms - before.uptime_ms) / 1000 : Math.max(status.uptime_ms / 1000, 0.001);
  const state = byId("state");
  state.textContent = status.ready ? "ready" : "not ready";
  state.className = status.ready ? "good" : "bad";
  byId("version").textContent = status.zorb;
  document.title = `zorb ${status.endpoints[0] ?? ""}`;
  const figures = {
    "listens on": status.endpoints.join(", ") || "no address",
    "started": new Date(status.started_ms).toLocaleString(),
    "uptime": duration(status.uptime_ms),
    "process": String(status.pid),
    objects: count(status.objects),
    connections: count(status.open_connections),
    "received": bytes(status.messages.received_bytes),
    "sent": bytes(status.messages.sent_bytes),
    "receive buffers": `${bytes(status.pool.held)} of ${bytes(status.pool.cap)}`,
    "queued": bytes(status.pool.queued),
    "refused requests": count(status.messages.refused),
    "failed oneways": count(status.messages.failed_oneways),
  };
  byId("figures").replaceChildren(...Object.entries(figures).map(([name, value]) => {
    const [pair, term, text] = ["div", "dt", "dd"].map(kind => document.createElement(kind));
    [term.textContent, text.textContent] = [name, value];
    pair.append(term, text);
    return pair;
  }));
  for (const side of ["served", "made"]) {
    calls(side, status[side], before ? before[side] : [], seconds, status.bounds_us);
  }
  showHistory(status.history);
  const adapters = status.adapters.map(one => [
    one.path.join("/"), count(one.objects), { text: one.state, bad: one.state !== "active" }, one.manager, one.policies.join(", "),
  ]);
  if (status.more_adapters) adapters.push(["and more", "", "", "", ""]);
  table("adapters", ["adapter", "objects", "state", "manager", "policies"], adapters, "none");
  table("limits", ["limit", "hits"], Object.entries(status.limits).map(([name, hits]) => [name, { text: count(hits), bad: true }]), "none");
  table("connections", ["peer", "direction", "received", "sent", "messages"], status.connections.map(one => [
    one.peer, one.incoming ? "in" : "out", bytes(one.received_bytes), bytes(one.sent_bytes),
    `${count(one.received_messages)} / ${count(one.sent_messages)}`,
  ]), "none");
  last = status;
}

async function ask() {
  try {
    const answer = await fetch("status.json", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(String(answer.status));
    show(await answer.json());
  } catch (error) {
    byId("state").textContent = `no answer (${error.message})`;
    byId("state").className = "bad";
  }
  setTimeout(ask, 1000);
}

ask();
