// <pumpkin-banner> and window.pumpkin: polls the pumpkin's document, shows what it says, and answers what not to call.
// How to use them stands in docs/pumpkin.md. What is served is pumpkin.min.js; make it anew with: go generate ./pumpkin
(() => {
	if (globalThis.pumpkin) return; // a page may carry the script twice
	const script = document.currentScript, data = script?.dataset ?? {};
	const src = data.src ?? new URL("pumpkin.json", script?.src ?? location.origin).href;
	const { random, min, max } = Math;
	const now = () => performance.now() / 1e3;

	// Storage may be full, forbidden or in disorder: then the page remembers nothing, and that is all.
	const recall = store => { try { return JSON.parse(window[store]["pumpkin " + src]); } catch { } };
	const remember = (store, value) => { try { window[store]["pumpkin " + src] = JSON.stringify(value); } catch { } };

	// ---- What is known ----

	let state = null, text;
	let heard = { epoch: "" }; // the newest that was heard of
	const back = {}; // until when a feature that is on again stays off here, so that not everybody comes back at once
	const session = recall("sessionStorage");
	const place = session?.place < 1 ? session.place : random(); // where this client stands in a share: one draw for a session

	const order = (a, b) => a.epoch == b.epoch ? a.rev - b.rev : a.epoch > b.epoch ? 1 : -1;
	const isOff = (d, name) => d.items.some(i => place < i.features[name]?.off || place < i.features["*"]?.off);

	// apply takes a document over. It throws at what is none, and ignores what is older than what is known. Other words
	// under the same rev count: items begin and end without a write.
	const apply = d => {
		if (d.schema != 1 || !d.epoch || !(d.rev >= 0 && d.poll_after > 0) || !d.items.every(i => i.id && i.message && i.features)) throw d;
		const was = text, part = random();
		if (state && order(d, state) < 0 || (text = JSON.stringify(d)) == was) return;
		for (const i of state?.items ?? []) {
			for (const name in i.features) {
				if (place < i.features[name].off && !isOff(d, name) && i.recover_spread) {
					back[name] = max(back[name] ?? 0, now() + part * i.recover_spread);
					setTimeout(changed, part * i.recover_spread * 1e3);
				}
			}
		}
		state = d;
		if (order(d, heard) > 0) heard = d;
		remember("sessionStorage", { place, state });
		changed();
	};

	const changed = () => {
		document.dispatchEvent(new CustomEvent("pumpkin", { bubbles: true, detail: state })); // the banners listen, too
	};

	// ---- When to poll: Schedule of the Go package, in seconds ----

	let timer, polling, due, last = -600, quiet = 0, failures = 0;
	const after = () => min(600, max(5, state?.poll_after ?? 15));

	const plan = at => {
		due = at;
		clearTimeout(timer);
		if (!document.hidden && !polling) timer = setTimeout(poll, (at - now()) * 1e3);
	};

	const poll = async () => {
		let retry = 0;
		polling = 1;
		last = now();
		try {
			// The browser itself asks with If-None-Match; set by hand it would cost a preflight.
			const r = await fetch(src, { cache: "no-cache", credentials: "omit", signal: AbortSignal.timeout?.(5e3) });
			if (r.status != 200) {
				const h = r.headers.get("Retry-After"); // seconds, or a date
				retry = min(600, max(0, (h > 0 ? h : (Date.parse(h) - Date.now()) / 1e3) || 0));
				throw r;
			}
			apply(await r.json());
			failures = 0;
		} catch {
			failures++; // and the last state stays
		}
		polling = 0;
		const p = after(), least = max(5, .8 * p);
		quiet = now() + retry;
		// The jitter comes after the caps, or everybody would meet there.
		plan(quiet + (failures ? random() * max(2 * p, min(300, p * 2 ** failures)) : least + random() * (min(600, 1.2 * p) - least)));
	};

	document.addEventListener("visibilitychange", () => plan(max(quiet, last + after(), now() + 2 * random())));

	window.pumpkin = {
		get state() { return state; },
		blocked: name => !!name && (!!state && isOff(state, name) || now() < back[name] || now() < back["*"]),
		// seen takes the header Pumpkin-Rev of any response: news there brings the next poll forward, once.
		seen(header) {
			const [epoch, rev] = header.split("."), a = { epoch, rev };
			if (order(a, heard) > 0) {
				heard = a;
				plan(max(quiet, min(due, now() + random() * after())));
			}
		},
	};

	try { apply(session.state); } catch { } // the first paint, without waiting for the network
	plan(now() + 5 * random());

	// ---- The banner: nothing in it moves, whatever motion a person prefers ----

	const sheet = new CSSStyleSheet();
	sheet.replaceSync(`:host{all:initial;color-scheme:light dark;display:block;position:sticky;top:0;z-index:var(--pumpkin-z,9999);max-height:50vh;overflow:auto;font:1rem/1.4 system-ui,sans-serif}
:host([overlay]){position:fixed;inset:auto 0 0;padding-bottom:env(safe-area-inset-bottom)}
[part]{--c:#36c;display:flex;flex-wrap:wrap;align-items:center;gap:.3em .8em;padding:.4em 1em;color:CanvasText;background:Canvas;background:color-mix(in srgb,var(--c) 15%,Canvas);border:1px solid var(--c);border-inline-start-width:.5em}
[part~=major]{--c:#d80}
[part~=maintenance]{--c:#84c}
[part~=critical]{--c:#a01;color:#fff;background:var(--c)}
b,button{text-transform:capitalize}
span{flex:1 1 12em;overflow-wrap:anywhere}
a,button{color:inherit;font:inherit}
button{min-height:2em;background:none;border:1px solid}`);

	let gone = []; // the notices that were dismissed; an edited one has another name, and comes back
	const name = i => [state.epoch, i.notice_rev, i.id].join();
	const looks = i => JSON.stringify({ ...i, notice_rev: 0, features: 0, recover_spread: 0 });
	const make = (tag, attributes, ...kids) => {
		const e = document.createElement(tag);
		for (const a in attributes) e.setAttribute(a, attributes[a]);
		e.append(...kids);
		return e;
	};

	class Banner extends HTMLElement {
		constructor() {
			super();
			const root = this.attachShadow({ mode: "open" });
			root.adoptedStyleSheets = [sheet];
			// The regions stay for good and only what is in them changes: screen readers miss a new region.
			root.append(...["alert", "status"].map(role => make("div", { role, "aria-atomic": false })));
		}
		connectedCallback() {
			if (this != own) own.remove(); // the author's own place for it
			document.addEventListener("pumpkin", this);
			this.handleEvent();
		}
		disconnectedCallback() {
			document.removeEventListener("pumpkin", this);
		}
		handleEvent() {
			gone = [].concat(recall("localStorage") ?? gone);
			for (const region of this.shadowRoot.children) {
				const alert = region == this.shadowRoot.firstChild;
				const items = (state?.items ?? []).filter(i => (i.severity == "critical") == alert && !gone.includes(name(i)));
				// What looks the same keeps its element, so that nothing is read out twice.
				const want = items.map(i => {
					const e = [...region.children].find(e => looks(e.item) == looks(i)) ?? this.element(i);
					e.item = i;
					return e;
				});
				for (const e of [...region.children]) if (!want.includes(e)) e.remove();
				want.forEach((e, n) => e == region.children[n] || region.insertBefore(e, region.children[n]));
			}
		}
		element(i) {
			const word = w => this.getAttribute(w) ?? w; // an attribute of that name has it in the page's language
			const base = l => l.split("-")[0], have = Object.keys(i.message);
			const lang = [this.lang, ...navigator.languages, state.default_lang]
				.map(l => have.find(h => h == l) ?? have.find(h => base(h) == base(l))).find(l => l) ?? have[0];
			const e = make("div", { part: "item " + i.severity }, make("b", {}, word(i.severity)), make("span", { lang, dir: "auto" }, i.message[lang]));
			// Everything is text; a link leads to the web or there is none.
			if (/^https?:\/\//i.test(i.url)) e.append(make("a", { href: i.url, target: "_blank", rel: "noopener noreferrer" }, i.link_text || i.url));
			if (i.dismissible) {
				e.append(make("button", {}, word("dismiss")));
				e.lastChild.onclick = () => {
					gone = [...state.items.map(name).filter(n => gone.includes(n)), name(e.item)];
					remember("localStorage", gone);
					changed();
				};
			}
			return e;
		}
	}
	const own = make("pumpkin-banner", { overlay: "" });
	customElements.define("pumpkin-banner", Banner);
	const start = () => {
		// Without a place of the author's: over the bottom of the page, where it shifts nothing.
		if (data.banner != "none" && !document.querySelector("pumpkin-banner")) document.body.append(own);
	};
	if (document.readyState == "loading") document.addEventListener("DOMContentLoaded", start);
	else start();
})();
