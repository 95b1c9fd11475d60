"use strict";

// The width of a chart in seconds, and its height: the view box of the drawing in page.html.
const WIDTH_SECONDS = 600;
const HEIGHT = 48;

// The increase of a counter per second, for each sample.
function rates(history, counts) {
  return counts.map((one, at) => one * 1000 / Math.max(history.at_ms[at] - (history.at_ms[at - 1] ?? history.since_ms), 1));
}

// The SVG path through all samples that have a value.
function path(history, values, max) {
  const newest = history.at_ms[history.at_ms.length - 1];
  let path = "";
  let joined = false;
  for (const [at, value] of values.entries()) {
    const x = WIDTH_SECONDS - (newest - history.at_ms[at]) / 1000;
    if (value === null || x < 0) {
      joined = false;
      continue;
    }
    const y = HEIGHT - 2 - (HEIGHT - 4) * value / (max || 1);
    // A line of length 0 shows a single sample as a dot, because lines have round ends.
    path += joined ? `L${x.toFixed(1)} ${y.toFixed(1)}` : `M${x.toFixed(1)} ${y.toFixed(1)}h0`;
    joined = true;
  }
  return path;
}

function chart(history, { name, values, text }) {
  const known = values.filter(value => value !== null);
  const max = known.reduce((max, value) => Math.max(max, value), 0);
  const last = values[values.length - 1];
  const now = last === null ? "none" : text(last);
  const figure = byId("chart").content.firstElementChild.cloneNode(true);
  const [label, value, top] = figure.querySelectorAll("span, b, small");
  [label.textContent, value.textContent, top.textContent] = [name, now, `at most ${text(max)}`];
  const image = figure.querySelector("svg");
  image.setAttribute("aria-label", `${name}: ${now}, at most ${text(max)} in the last 10 minutes`);
  image.lastElementChild.setAttribute("d", path(history, values, max));
  return figure;
}

function showHistory(history) {
  const element = byId("history");
  if (history.at_ms.length === 0) {
    element.textContent = "The first sample is taken 5 seconds after the start.";
    return;
  }
  const perSecond = value => value < 10 ? value.toFixed(1) : count(value);
  const bytesPerSecond = value => `${bytes(value)}/s`;
  const calls = (side, title) => [
    { name: `${title}: calls/s`, values: rates(history, side.calls), text: perSecond },
    { name: `${title}: failures/s`, values: rates(history, side.failures), text: perSecond },
    { name: `${title}: p99`, values: side.p99_us, text: time },
  ];
  const charts = [
    ...calls(history.served, "served"),
    // Most servers make no calls themselves.
    ...(history.made.calls.some(one => one > 0) ? calls(history.made, "made") : []),
    { name: "connections", values: history.connections, text: count },
    { name: "received", values: rates(history, history.received_bytes), text: bytesPerSecond },
    { name: "sent", values: rates(history, history.sent_bytes), text: bytesPerSecond },
  ];
  element.replaceChildren(...charts.map(one => chart(history, one)));
}
