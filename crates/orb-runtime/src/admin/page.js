"use strict";

const byId = id => document.getElementById(id);
const count = number => Math.round(number).toLocaleString("en");

function octets(number) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (number < 1024) return `${number < 10 && unit !== "B" ? number.toFixed(1) : Math.round(number)} ${unit}`;
    number /= 1024;
  }
  return `${number.toFixed(1)} TiB`;
}

function time(us) {
  if (us === null) return "";
  if (us < 1000) return `${Math.round(us)} µs`;
  return us < 1e6 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toPrecision(3)} s`;
}

// The bound that so much of the calls took no longer than.
function quantile(buckets, bounds, part) {
  const all = buckets.reduce((sum, one) => sum + one, 0);
  if (all === 0) return null;
  let seen = 0;
  for (const [at, one] of buckets.entries()) {
    seen += one;
    if (seen >= all * part) return bounds[Math.min(at, bounds.length - 1)];
  }
  return bounds[bounds.length - 1];
}

// Names come from peers: they are text, never markup.
function table(id, heads, rows, nothing) {
  const body = document.createElement("tbody");
  for (const cells of rows) {
    const row = body.insertRow();
    for (const cell of cells) {
      const place = row.insertCell();
      place.textContent = cell.text ?? cell;
      if (cell.bad) place.className = "bad";
    }
  }
  const head = document.createElement("thead");
  const row = head.insertRow();
  for (const name of rows.length ? heads : [nothing]) {
    const place = document.createElement("th");
    place.scope = "col";
    place.textContent = name;
    row.append(place);
  }
  byId(id).replaceChildren(head, body);
}

function calls(id, rows, before, seconds, bounds) {
  const known = new Map(before.map(row => [`${row.interface} ${row.operation}`, row]));
  const shown = rows.map(row => {
    const was = known.get(`${row.interface} ${row.operation}`) ?? { calls: 0, failures: 0, buckets: row.buckets.map(() => 0) };
    const now = row.buckets.map((one, at) => one - was.buckets[at]);
    const buckets = row.calls > was.calls ? now : row.buckets;
    return { row, rate: (row.calls - was.calls) / seconds, p50: quantile(buckets, bounds, 0.5), p99: quantile(buckets, bounds, 0.99) };
  });
  shown.sort((a, b) => b.rate - a.rate || b.row.calls - a.row.calls);
  const cells = shown.map(({ row, rate, p50, p99 }) => [
    row.operation, row.interface, count(rate), count(row.calls), { text: count(row.failures), bad: row.failures > 0 }, time(p50), time(p99),
  ]);
  table(id, ["operation", "interface", "calls/s", "calls", "failed", "half within", "99 % within"], cells, "none yet");
}

let last = null;

function show(status) {
  const before = last && last.pid === status.pid && last.uptime_ms < status.uptime_ms ? last : null;
  const seconds = before ? (status.uptime_ms - before.uptime_ms) / 1000 : Math.max(status.uptime_ms / 1000, 0.001);
  const state = byId("state");
  state.textContent = status.ready ? "ready" : "not ready";
  state.className = status.ready ? "good" : "bad";
  document.title = `zorb ${status.endpoints[0] ?? ""}`;
  const figures = {
    "listens at": status.endpoints.join(", ") || "nowhere",
    "runs for": time(status.uptime_ms * 1000),
    objects: count(status.objects),
    connections: count(status.open_connections),
    "received": octets(status.messages.received_bytes),
    "sent": octets(status.messages.sent_bytes),
    "receive buffers": `${octets(status.pool.held)} of ${octets(status.pool.cap)}`,
    "queued": octets(status.pool.queued),
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
  table("limits", ["limit", "hits"], Object.entries(status.limits).map(([name, hits]) => [name, { text: count(hits), bad: true }]), "none");
  table("connections", ["peer", "way", "received", "sent", "messages"], status.connections.map(one => [
    one.peer, one.incoming ? "in" : "out", octets(one.received_bytes), octets(one.sent_bytes),
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
