// The page for the person on call. It knows nothing that the admin endpoint does not say, and writes text only as text.

const $ = (id) => document.getElementById(id);
const STORE = "pumpkin-token";
const EVERY = 5000; // ms between two looks

let token = "";
let list = null;      // the last answer of items
let templates = [];
let lang = "en";
let skew = 0;         // server's clock minus ours, ms
let timer = 0;

try { token = sessionStorage.getItem(STORE) ?? ""; } catch { /* a browser that keeps nothing asks again */ }

// make builds an element of text, attributes and children.
function make(name, props = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key in e) e[key] = value;
    else e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

function say(text) { $("wrong").textContent = ""; $("said").textContent = text; }
function complain(text) { $("said").textContent = ""; $("wrong").textContent = text; }

// ask talks to the endpoint and returns {status, body, text, etag}; it throws what a person should read.
async function ask(method, path, body, headers = {}) {
  let response;
  try {
    response = await fetch(path, {
      method, cache: "no-store", credentials: "omit", redirect: "error",
      headers: { Authorization: "Bearer " + token, ...(body ? { "Content-Type": "application/json" } : {}), ...headers },
      body: body && JSON.stringify(body),
    });
  } catch {
    throw new Error("The server does not answer.");
  }
  const text = await response.text();
  let parsed = null;
  try { parsed = JSON.parse(text); } catch { /* 204 has no body */ }
  if (response.status === 401 || response.status === 429) {
    leave();
    throw new Error("That token is not known here.");
  }
  if (!response.ok) throw Object.assign(new Error(parsed?.detail ?? "The server answers " + response.status + "."), { reason: parsed?.reason });
  return { status: response.status, body: parsed, text };
}

// local says that only this instance has it yet.
function outcome(done, answer) {
  say(answer.status === 202 ? done + " Only this instance has it yet: the shared store does not answer." : done);
}

// ---- looking

async function look() {
  clearTimeout(timer);
  if (!token) return;
  try {
    const [items, audit, mode] = await Promise.all([ask("GET", "items"), ask("GET", "audit?limit=50"), ask("GET", "mode")]);
    skew = Date.parse(items.body.now) - Date.now();
    const before = list && JSON.stringify({ ...list, now: 0 });
    list = items.body;
    if (before !== JSON.stringify({ ...list, now: 0 })) showItems();
    showTimes();
    showAudit(audit.body.records);
    showMode(mode.body);
    if (stale) { stale = false; $("wrong").textContent = ""; }
  } catch (e) {
    if (token) { stale = true; complain(e.message + " What you see may be old."); } else complain(e.message);
  }
  if (token && !document.hidden) timer = setTimeout(look, EVERY);
}
let stale = false;

document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });

async function come() {
  const t = await ask("GET", "templates");
  templates = t.body.templates;
  lang = t.body.default_lang;
  $("enter").hidden = true;
  $("inside").hidden = false;
  fillTemplates();
  useTemplate();
  await look();
}

function leave() {
  token = "";
  list = null;
  clearTimeout(timer);
  try { sessionStorage.removeItem(STORE); } catch { /* nothing was kept */ }
  $("token").value = "";
  $("inside").hidden = true;
  $("enter").hidden = false;
  $("summary").textContent = "Who is on call?";
  $("items").replaceChildren();
  $("audit").replaceChildren();
}

// ---- what is in force

const words = (item) => item.message[lang] ?? Object.values(item.message)[0] ?? "";

function offText(features) {
  return Object.entries(features).map(([name, f]) => (name === "*" ? "everything" : name) + (f.off < 1 ? " for " + +(f.off * 100).toFixed(2) + " %" : "")).join(", ");
}

function clock(text) {
  const t = new Date(text);
  const day = t.toDateString() === new Date().toDateString() ? {} : { weekday: "short", day: "numeric", month: "short" };
  return t.toLocaleString(undefined, { hour: "2-digit", minute: "2-digit", ...day });
}

function left(text) {
  const s = Math.max(0, Math.round((Date.parse(text) - Date.now() - skew) / 1000));
  if (s < 90) return s + " s";
  if (s < 5400) return Math.round(s / 60) + " min";
  return (s / 3600).toFixed(1) + " h";
}

const waiting = (item) => item.notice_rev === 0;

function showItems() {
  const focus = document.activeElement?.closest?.("[data-key]")?.dataset.key;
  $("items").replaceChildren(...list.items.map(card));
  $("nothing").hidden = list.items.length > 0;
  $("file").hidden = !list.file;
  if (list.file) {
    $("file").textContent = list.file.length
      ? "The break-glass file rules. People read: " + list.file.map(words).join(" / ")
      : "The break-glass file rules: it shows people nothing. Remove it to bring back what is listed here.";
  }
  $("holds").replaceChildren(...list.force_off.map((h) => make("li", {},
    make("p", {}, (h.id === "*" ? "All items" : h.id) + " until " + clock(h.until) + ": " + h.reason + " (" + h.actor + ")"),
    make("button", { type: "button", "data-key": "hold " + h.id, onclick: () => act(async () => {
      outcome("Automation may use it again.", await ask("DELETE", "force_off/" + encodeURIComponent(h.id)));
    }) }, "End this"))));
  const now = list.items.filter((i) => !waiting(i)).length;
  $("summary").textContent = (now ? now + " in force" : "nothing in force") + ", you are " + list.actor;
  if (focus) [...document.querySelectorAll("[data-key]")].find((b) => b.dataset.key === focus)?.focus();
}

function card(item) {
  const off = offText(item.features);
  const langs = Object.keys(item.message).join(", ");
  const clear = make("button", { type: "button", "data-key": "clear " + item.id }, "Clear");
  clear.addEventListener("click", () => {
    if (!clear.classList.contains("sure")) { // the second press does it, so that a slip does not
      clear.classList.add("sure");
      clear.textContent = "Yes, clear " + item.id;
      return;
    }
    act(async () => { outcome("Cleared " + item.id + ".", await ask("DELETE", path(item.id))); $("now-title").focus(); });
  });
  clear.addEventListener("blur", () => { clear.classList.remove("sure"); clear.textContent = "Clear"; });
  const howLong = make("select", { "data-key": "for " + item.id, "aria-label": "Keep " + item.id + " for" },
    ...["15m", "30m", "1h", "4h", "24h"].map((t) => make("option", { value: t, selected: t === "1h" }, t + " from now")));
  return make("li", { "data-severity": item.severity },
    make("h3", {}, item.severity + ": " + item.id + (waiting(item) ? " (scheduled)" : "")),
    make("p", { className: "words", dir: "auto", lang }, words(item)),
    make("p", { className: "hint" }, (off ? "Off: " + off + ". " : "Nothing is off. ") + "Languages: " + langs + "."),
    make("p", { className: "hint", "data-ends": item.expires_at, "data-starts": waiting(item) ? item.starts_at : "" }),
    make("p", { className: "hint" }, (item.origin === "auto" ? "automation, " : "") + item.actor + ": " + item.reason + (item.ticket ? " (" + item.ticket + ")" : "")),
    make("div", { className: "pair" },
      // What has not begun is edited: to extend it would begin it.
      ...(waiting(item) ? [] : [make("div", {}, howLong),
        make("button", { type: "button", "data-key": "extend " + item.id, onclick: () => act(() => extend(item, howLong.value)) }, "Extend")]),
      make("button", { type: "button", "data-key": "edit " + item.id, onclick: () => edit(item) }, "Edit"),
      clear));
}

function showTimes() {
  for (const p of document.querySelectorAll("[data-ends]")) {
    const { starts, ends } = p.dataset;
    p.textContent = starts ? "From " + clock(starts) + " until " + clock(ends) : "Until " + clock(ends) + ", " + left(ends) + " left";
  }
}

function showAudit(records) {
  $("audit").replaceChildren(...records.map((r) => make("tr", { className: r.applied === "no" ? "refused" : "" },
    make("td", {}, clock(r.ts)),
    make("td", {}, r.actor || r.remote || "?"),
    make("td", {}, r.action.replaceAll("_", " ") + " " + (r.id ?? "") + (r.refused ? ": refused, " + r.refused.replaceAll("_", " ") : "") + (r.applied === "local" ? " (here only)" : "")),
    make("td", {}, r.reason ?? ""))));
}

function showMode(mode) {
  $("mode-state").textContent = mode.on ? "On: " + (mode.template || "own words") + ", until " + clock(mode.item.expires_at) + "." : "Off.";
}

// ---- writing

const path = (id, query = "") => "items/" + encodeURIComponent(id) + query;

// act runs a write and looks again, whatever came of it.
async function act(f) {
  try { await f(); } catch (e) {
    complain(e.reason === "stale_rev" ? "Somebody changed something meanwhile. Look again, then repeat." : e.message);
  }
  await look();
}

function bodyOf(item, ttl) {
  const body = {
    severity: item.severity, message: item.message, dismissible: item.dismissible, recover_spread: item.recover_spread,
    features: item.features, ttl, reason: item.reason,
  };
  for (const key of ["url", "link_text", "ticket"]) if (item[key]) body[key] = item[key];
  return body;
}

async function extend(item, ttl) {
  const tag = { "If-Match": '"' + list.epoch + "." + list.rev + '"' };
  const answer = item.id === "mode" && item.template
    ? await ask("PUT", "mode", { on: true, template: item.template, ttl, reason: item.reason }, tag)
    : await ask("PUT", path(item.id, "?confirm=all"), bodyOf(item, ttl), tag); // it is in force: nothing more is switched off
  outcome(item.id + " stays until " + clock(answer.body.item.expires_at) + ".", answer);
}

function edit(item) {
  $("template").value = "";
  fill(item);
  $("id").value = item.id;
  $("reason").value = item.reason;
  $("ticket").value = item.ticket ?? "";
  if (waiting(item)) {
    const t = new Date(item.starts_at);
    $("starts").value = new Date(t - t.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
  }
  $("raise-title").focus();
}

function fillTemplates() {
  const options = templates.map((t) => make("option", { value: t.name }, t.name + ": " + words(t)));
  $("template").replaceChildren(make("option", { value: "" }, "my own words"), ...options);
  $("mode-template").replaceChildren(...options.map((o) => o.cloneNode(true)));
  const down = templates.find((t) => t.name === "site-down");
  if (down) $("mode-template").value = down.name;
}

function useTemplate() {
  const t = templates.find((t) => t.name === $("template").value);
  fill(t ?? { severity: "minor", message: {}, features: {}, dismissible: true, recover_spread: 0 });
  $("id").value = t?.name ?? "";
  if (t?.ttl && [...$("ttl").options].some((o) => o.value === short(t.ttl))) $("ttl").value = short(t.ttl);
}

// short is how the page writes a duration: Go says 30m0s and 1h0m0s.
const short = (ttl) => ttl.replace(/(?<=[hm])0s$/, "").replace(/(?<=h)0m$/, "");

function fill(item) {
  $("severity").value = item.severity;
  $("texts").replaceChildren();
  for (const l of [lang, ...Object.keys(item.message).filter((l) => l !== lang)]) addText(l, item.message[l] ?? "");
  $("features").value = Object.entries(item.features).map(([n, f]) => n + (f.off < 1 ? " " + +(f.off * 100).toFixed(4) + "%" : "")).join(", ");
  $("url").value = item.url ?? "";
  $("link-text").value = item.link_text ?? "";
  $("dismissible").checked = item.dismissible;
  $("spread").value = item.recover_spread;
  $("starts").value = "";
  $("document").hidden = true;
  everything();
}

function addText(l, text) {
  if ([...$("texts").querySelectorAll("textarea")].some((t) => t.dataset.lang === l)) return;
  const area = make("textarea", { id: "text-" + l, dir: "auto", lang: l, required: l === lang, maxLength: 280, value: text, "data-lang": l });
  $("texts").append(make("label", { htmlFor: area.id }, "What people read (" + l + ")"), area);
}

// features reads "search, reports 50%".
function features() {
  const all = {};
  for (const part of $("features").value.split(",").map((s) => s.trim()).filter(Boolean)) {
    const m = /^(\S+)(?:\s+([0-9.]+)\s*%)?$/.exec(part);
    if (!m) throw new Error("What is off: “" + part + "” is not a name, or a name and a share such as 50%.");
    all[m[1]] = { off: m[2] === undefined ? 1 : +m[2] / 100 };
  }
  return all;
}

const needsConfirmation = () => /(^|,)\s*\*/.test($("features").value);

function everything() {
  $("all-label").hidden = !needsConfirmation();
  $("all").checked = false;
}

function composed() {
  const message = {};
  for (const t of $("texts").querySelectorAll("textarea")) if (t.value.trim()) message[t.dataset.lang] = t.value.trim();
  const body = {
    severity: $("severity").value, message, dismissible: $("dismissible").checked,
    recover_spread: +$("spread").value, features: features(), ttl: $("ttl").value, reason: $("reason").value,
  };
  if ($("url").value) body.url = $("url").value;
  if ($("link-text").value) body.link_text = $("link-text").value;
  if ($("ticket").value) body.ticket = $("ticket").value;
  if ($("starts").value) body.starts_at = new Date($("starts").value).toISOString();
  return body;
}

$("template").addEventListener("change", useTemplate);
$("features").addEventListener("input", everything);
$("add-language").addEventListener("click", () => {
  const l = $("language").value.trim();
  if (!l) return;
  addText(l, "");
  $("language").value = "";
  $("text-" + l)?.focus();
});
$("raise").addEventListener("submit", (e) => {
  e.preventDefault();
  act(async () => {
    if (needsConfirmation() && !$("all").checked) {
      $("all").focus();
      throw new Error("This switches everything off. Tick the box to confirm it.");
    }
    const id = $("id").value;
    const answer = await ask("PUT", path(id, needsConfirmation() ? "?confirm=all" : ""), composed());
    outcome((waiting(answer.body.item) ? "People will read " + id + " from " + clock(answer.body.item.starts_at) : "People read " + id) +
      " until " + clock(answer.body.item.expires_at) + ".", answer);
    $("document").hidden = true;
    $("all").checked = false;
  });
});
$("preview").addEventListener("click", () => {
  if (!$("raise").reportValidity()) return;
  act(async () => {
    const answer = await ask("PUT", path($("id").value, "?dry_run=1"), composed());
    $("document").textContent = JSON.stringify(answer.body, null, 1);
    $("document").hidden = false;
    say("That is how it would be. Nothing has changed.");
    $("document").focus();
  });
});
$("mode").addEventListener("submit", (e) => {
  e.preventDefault();
  act(async () => {
    const answer = await ask("PUT", "mode", { on: true, template: $("mode-template").value, ttl: $("mode-ttl").value, reason: $("mode-reason").value });
    outcome("The big switch is on until " + clock(answer.body.item.expires_at) + ".", answer);
  });
});
$("mode-off").addEventListener("click", () => act(async () => outcome("The big switch is off.", await ask("DELETE", "mode"))));
$("hold").addEventListener("submit", (e) => {
  e.preventDefault();
  act(async () => outcome("Automation keeps away.", await ask("PUT", "force_off/" + encodeURIComponent($("hold-id").value),
    { ttl: $("hold-ttl").value, reason: $("hold-reason").value })));
});
$("leave").addEventListener("click", () => { leave(); say("Forgotten."); $("token").focus(); });
$("enter").addEventListener("submit", (e) => {
  e.preventDefault();
  token = $("token").value.trim();
  come().then(() => {
    try { sessionStorage.setItem(STORE, token); } catch { /* then it is in memory only */ }
    $("now-title").focus();
    say("");
  }).catch((e) => { complain(e.message); $("token").focus(); });
});

if (token) come().catch((e) => complain(e.message));
