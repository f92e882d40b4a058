// The page: asks for the ticks it does not have yet, keeps the last minute of them, and shows them as numbers, a sentence,
// charts and tables. Each answer is also dispatched on the document as the event "spillway:stats", for scripts of a page that
// has more to show.

import {Chart} from "./chart.js";

const SPAN = 300; // ticks in the charts' width: a minute of fifths of a second
const PER_SECOND = 5;
const POLL = 250; // ms between polls
const FRAME = 80; // ms between frames; the charts move by about a pixel in that time
const BEHIND = 3; // ticks between the newest data and the right edge, so that the edge is never empty

const KINDS = ["offered", "served", "delayed", "over", "full", "off"];
const NAMES = {
  offered: "offered", served: "served at once", delayed: "served after a wait", over: "refused for their quota",
  full: "refused because we are full", off: "refused because it is switched off",
};
const STATES = {
  lost: "No answer – is the program still running?",
  full: "Full: what fits is served, the rest is refused at once",
  quota: "A client is over its quota and was told so",
  waiting: "Busy: some wait a moment for their turn",
  calm: "Calm: everything is served at once",
  idle: "Idle: nobody asks",
};

const $ = (id) => document.getElementById(id);
const number = (n) => Math.round(n).toLocaleString("en");
const ms = (n) => n < 10 ? n.toLocaleString("en", {maximumFractionDigits: 1}) : number(n);
const still = matchMedia("(prefers-reduced-motion: reduce)");

let capacity = 0; // requests per second, if the page was told
const points = []; // one for each tick, oldest first, with rates over the second up to it
let received = 0; // when the newest came, on performance.now()'s clock
let failures = 0;

const charts = [
  new Chart($("flow-chart"), {
    stacked: true,
    least: 40,
    lines: 4,
    marks: [],
    series: [
      ...["served", "delayed", "over", "off", "full"].map((kind) => ({of: (p) => p.rate[kind], ink: kind, fill: true})),
      {of: (p) => p.rate.offered, ink: "offered", fill: false},
    ],
  }),
  new Chart($("time-chart"), {
    least: 50,
    series: [{of: (p) => known(p.p99), ink: "full", fill: false}, {of: (p) => known(p.p50), ink: "served", fill: true}],
  }),
  new Chart($("room-chart"), {
    least: 25,
    series: [
      {of: (p) => p.waiting, ink: "delayed", fill: true},
      {of: (p) => p.in_flight, ink: "served", fill: true},
      {of: (p) => p.limit, ink: "offered", fill: false},
    ],
  }),
  new Chart($("pressure-chart"), {
    least: 100,
    fixed: true,
    series: [{of: (p) => known(p.pressure) * 100, ink: "full", fill: true}],
  }),
];

function known(value) {
  return value < 0 ? NaN : value;
}

// ---- data ----

async function poll() {
  try {
    const after = points.at(-1)?.seq ?? 0;
    const answer = await fetch(`${document.body.dataset.stats}?after=${after}`, {cache: "no-store", signal: AbortSignal.timeout(5000)});
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    take(await answer.json());
    failures = 0;
  } catch {
    failures++;
    if (failures > 4) say("lost");
  }
  setTimeout(poll, document.hidden ? 2000 : POLL * Math.min(1 + failures, 8));
}

function take(answer) {
  const {ticks, total, state} = answer;
  if (answer.capacity && answer.capacity !== capacity) {
    capacity = answer.capacity;
    charts[0].marks = [{at: capacity, text: `capacity ${number(capacity)}/s`}];
  }
  for (const tick of ticks) {
    if (tick.seq <= (points.at(-1)?.seq ?? 0)) points.length = 0; // the program was started anew
    const window = [...points.slice(-(PER_SECOND - 1)), tick];
    tick.rate = Object.fromEntries(KINDS.map((kind) => [kind, sum(window, kind)]));
    tick.goodput = sum(window, "good");
    points.push(tick);
  }
  points.splice(0, points.length - SPAN - 2 * BEHIND);
  if (ticks.length > 0) received = performance.now();
  for (const kind of KINDS) $(`total-${kind}`).textContent = number(total[kind]);
  showTables(state);
  const last = points.at(-1);
  if (last) showNumbers(last);
  if (still.matches) draw();
  document.dispatchEvent(new CustomEvent("spillway:stats", {detail: answer}));
}

function sum(window, kind) {
  return window.reduce((total, tick) => total + tick[kind], 0);
}

// ---- words and numbers ----

function showNumbers(last) {
  for (const kind of KINDS) $(`rate-${kind}`).textContent = number(last.rate[kind]);
  $("goodput").textContent = number(last.goodput);
  $("p50").textContent = last.p50 < 0 ? "–" : ms(last.p50);
  $("p99").textContent = last.p99 < 0 ? "–" : ms(last.p99);
  $("in-flight").textContent = number(last.in_flight);
  $("limit").textContent = number(last.limit);
  $("waiting").textContent = number(last.waiting);
  $("pressure").textContent = last.pressure < 0 ? "–" : number(last.pressure * 100);
  say(stateOf(last));
}

/** Shows rows in a table body; the text that stands there without any is kept. */
function fill(body, rows) {
  if (rows.length === 0) return;
  const key = JSON.stringify(rows);
  if (body.dataset.shown === key) return;
  body.dataset.shown = key;
  body.replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    cells.forEach((text, i) => {
      const cell = document.createElement(i === 0 ? "th" : "td");
      if (i === 0) cell.scope = "row";
      cell.textContent = text;
      row.append(cell);
    });
    return row;
  }));
}

function showTables({rules, refused, signals}) {
  fill($("rules"), (rules ?? []).map((r) => [
    r.shadow ? `${r.name} (only watches)` : r.name, r.rule, number(r.admitted), number(r.delayed), number(r.shadow ? r.would_refuse : r.refused),
  ]));
  fill($("reasons"), Object.entries(refused ?? {}).sort((a, b) => b[1] - a[1]).map(([reason, n]) => [reason, number(n)]));
  fill($("signals"), (signals ?? []).filter((s) => s.state !== "absent").map((s) => [
    s.signal, s.state, s.state === "ok" || s.state === "stale" ? `${number(s.pressure * 100)} %` : "–",
  ]));
}

function stateOf({rate, waiting}) {
  if (rate.full > 0) return "full";
  if (rate.over > 0) return "quota";
  if (waiting > 0 || rate.delayed > 0) return "waiting";
  return rate.offered > 0 ? "calm" : "idle";
}

let saidAt = -Infinity;

/** Says the state, when it is another one and has not just changed: a live region that flickers cannot be listened to. */
function say(state) {
  const line = $("state");
  if (line.dataset.state === state || performance.now() - saidAt < 1500) return;
  saidAt = performance.now();
  line.dataset.state = state;
  line.textContent = STATES[state];
}

function describe() {
  const last = points.at(-1);
  if (!last) return;
  const flows = KINDS.map((kind) => `${number(last.rate[kind])} ${NAMES[kind]}`).join(", ");
  $("flow-chart").ariaLabel = `Requests per second, now: ${flows}.${capacity ? ` Capacity ${number(capacity)}.` : ""}`;
  $("time-chart").ariaLabel = last.p99 < 0 ? "Answer times: nothing served in the last second."
    : `Answer times of the served, now: half within ${ms(last.p50)} ms, 99 percent within ${ms(last.p99)} ms.`;
  $("room-chart").ariaLabel = `Now ${last.in_flight} in flight of ${last.limit} allowed, ${last.waiting} waiting.`;
  $("pressure-chart").ariaLabel = last.pressure < 0 ? "Pressure: not known yet."
    : `Pressure, now: ${number(last.pressure * 100)} percent.`;
}

// ---- pictures ----

function draw() {
  const newest = points.at(-1)?.seq ?? 0;
  const since = Math.min((performance.now() - received) * PER_SECOND / 1000, BEHIND);
  const position = still.matches ? newest : newest - BEHIND + since;
  for (const chart of charts) chart.draw(points, position, SPAN);
}

let drawnAt = 0;

function frame(now) {
  if (now - drawnAt >= FRAME && !still.matches) {
    drawnAt = now;
    draw();
  }
  requestAnimationFrame(frame);
}

poll();
setInterval(describe, 5000);
requestAnimationFrame(frame);
