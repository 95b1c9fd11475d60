"use strict";

// Seconds that a line shows, and its height: the units of its drawing, which page.html has.
const SPAN = 600;
const HEIGHT = 48;

// A value for each point: what was counted, by second.
function rates(history, counts) {
  return counts.map((one, at) => one * 1000 / Math.max(history.at_ms[at] - (history.at_ms[at - 1] ?? history.since_ms), 1));
}

// Through all points that have a value.
function path(history, values, most) {
  const newest = history.at_ms[history.at_ms.length - 1];
  let path = "";
  let joined = false;
  for (const [at, value] of values.entries()) {
    const x = SPAN - (newest - history.at_ms[at]) / 1000;
    if (value === null || x < 0) {
      joined = false;
      continue;
    }
    const y = HEIGHT - 2 - (HEIGHT - 4) * value / (most || 1);
    // A point alone is a line of no length, with round ends.
    path += joined ? `L${x.toFixed(1)} ${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
    joined = true;
  }
  return path;
}

function line(history, { name, values, text }) {
  const known = values.filter(value => value !== null);
  const most = known.reduce((most, value) => Math.max(most, value), 0);
  const last = values[values.length - 1];
  const now = last === null ? "none" : text(last);
  const figure = byId("line").content.firstElementChild.cloneNode(true);
  const [label, value, top] = figure.querySelectorAll("span, b, small");
  [label.textContent, value.textContent, top.textContent] = [name, now, `at most ${text(most)}`];
  const image = figure.querySelector("svg");
  image.setAttribute("aria-label", `${name}: ${now}, at most ${text(most)} in the last 10 minutes`);
  image.lastElementChild.setAttribute("d", path(history, values, most));
  return figure;
}

function showHistory(history) {
  const place = byId("history");
  if (history.at_ms.length === 0) {
    place.textContent = "The first point comes 5 seconds after the start.";
    return;
  }
  const perSecond = value => value < 10 ? value.toFixed(1) : count(value);
  const bytes = value => `${octets(value)}/s`;
  const calls = (side, title) => [
    { name: `${title}: calls/s`, values: rates(history, side.calls), text: perSecond },
    { name: `${title}: failures/s`, values: rates(history, side.failures), text: perSecond },
    { name: `${title}: p99`, values: side.p99_us, text: time },
  ];
  const lines = [
    ...calls(history.served, "served"),
    // Most servers make none.
    ...(history.made.calls.some(one => one > 0) ? calls(history.made, "made") : []),
    { name: "connections", values: history.connections, text: count },
    { name: "received", values: rates(history, history.received_bytes), text: bytes },
    { name: "sent", values: rates(history, history.sent_bytes), text: bytes },
  ];
  place.replaceChildren(...lines.map(one => line(history, one)));
}
