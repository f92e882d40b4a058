// Virtual time for the widget: its clock, its timers, its draws and its network, driven by the test.
(() => {
	let id = 0;
	const v = window.virtual = { now: 0, u: 0.5, hidden: false, polls: [], timers: [], answer: null, events: 0 };
	performance.now = () => v.now * 1e3;
	Math.random = () => v.u;
	window.setTimeout = (f, ms) => {
		v.timers.push({ id: ++id, at: v.now + Math.max(0, ms || 0) / 1e3, f });
		return id;
	};
	window.clearTimeout = old => { v.timers = v.timers.filter(t => t.id != old); };
	Object.defineProperty(document, "hidden", { get: () => v.hidden });
	window.fetch = async (src, options) => {
		v.polls.push(v.now);
		v.asked = { src: String(src), options };
		if (v.hang) await v.hang;
		if (!v.answer) throw new TypeError("no connection");
		const { status, body, header } = v.answer;
		return { status, headers: new Headers(header ?? {}), json: async () => JSON.parse(body) };
	};
	document.addEventListener("pumpkin", () => v.events++);
	const settle = async () => { for (let i = 0; i < 50; i++) await null; };
	const next = () => v.timers.toSorted((a, b) => a.at - b.at || a.id - b.id)[0];
	// step lets the next timer go off, and returns how long it will be until the one after that.
	v.step = async () => {
		const timer = next();
		v.timers = v.timers.filter(t => t != timer);
		v.now = Math.max(v.now, timer.at);
		timer.f();
		await settle();
		return v.wait();
	};
	// run lets time pass until the end, and what is due happen in its order.
	v.run = async end => {
		while (next()?.at <= end) await v.step();
		v.now = end;
		return v.polls;
	};
	v.wait = () => Math.min(...v.timers.map(t => t.at)) - v.now;
	v.see = hidden => {
		v.hidden = hidden;
		document.dispatchEvent(new Event("visibilitychange"));
	};
	v.says = (rev, more, item) => {
		v.answer = {
			status: 200, body: JSON.stringify({
				schema: 1, epoch: "B", rev, active: true, poll_after: 15, default_lang: "en", items: item ? [{
					id: "i", severity: "minor", message: { en: "x" }, dismissible: true, notice_rev: 1, recover_spread: 0, features: {}, ...item
				}] : [], ...more
			})
		};
	};
	v.fails = (status, header) => { v.answer = { status, body: "", header }; };
})();
