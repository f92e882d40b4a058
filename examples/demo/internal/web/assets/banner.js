// The banner: polls /pumpkin.json as every client of the app could and shows what is in force. The browser's own cache and
// its conditional requests make a poll that brings nothing new an empty 304; no header is set by hand.

const WORDS = {minor: "Minor problem", major: "Problem", critical: "Outage", maintenance: "Maintenance"};

export class Banner {
  /** politely and urgently are two permanent live regions; onChange is told the document whenever it is a new one. */
  constructor(politely, urgently, onChange) {
    Object.assign(this, {politely, urgently, onChange});
    this.seen = {epoch: "", rev: -1};
    this.failures = 0;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.again(Math.random() * 2000);
    });
  }

  /** Polls now, and from then on as often as the document asks for. */
  async poll() {
    clearTimeout(this.timer);
    let wait;
    try {
      const answer = await fetch("/pumpkin.json", {
        cache: "no-cache", credentials: "omit", signal: AbortSignal.timeout(5000),
      });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const state = await answer.json();
      this.failures = 0;
      wait = Math.min(Math.max(state.poll_after * (0.8 + 0.4 * Math.random()), 5), 600) * 1000;
      this.take(state);
    } catch {
      // The last state stays. The jitter comes after the cap, or all clients would come back at once.
      this.failures++;
      wait = Math.max(Math.random() * Math.min(300, 5 * 2 ** this.failures) * 1000, 1000);
    }
    if (!document.hidden) this.again(wait);
  }

  again(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.poll(), wait);
  }

  take(state) {
    const {epoch, rev} = this.seen;
    // Answers may overtake each other; what is older changes nothing.
    if (state.epoch < epoch || (state.epoch === epoch && state.rev < rev)) return;
    const news = state.epoch !== epoch || state.rev !== rev;
    this.seen = {epoch: state.epoch, rev: state.rev};
    if (!news) return;
    this.state = state;
    this.render();
    this.onChange(state);
  }

  render() {
    const items = (this.state.items ?? []).filter((item) => !this.dismissed(item));
    this.fill(this.politely, items.filter((item) => item.severity !== "critical"));
    this.fill(this.urgently, items.filter((item) => item.severity === "critical"));
  }

  /** Changes the region only where an item came, went or says something new, so that nothing is announced twice. */
  fill(region, items) {
    const wanted = new Map(items.map((item) => [`${item.id}:${item.notice_rev}`, item]));
    for (const shown of [...region.children]) {
      if (!wanted.delete(shown.dataset.key)) shown.remove();
    }
    for (const [key, item] of wanted) region.append(this.element(key, item));
  }

  element(key, item) {
    const box = document.createElement("div");
    box.className = "banner";
    box.dataset.key = key;
    box.dataset.severity = item.severity;
    const word = document.createElement("strong");
    word.textContent = WORDS[item.severity] ?? "Notice";
    const message = document.createElement("span");
    message.className = "message";
    message.dir = "auto";
    [message.lang, message.textContent] = this.words(item.message);
    box.append(word, message);
    const link = safe(item.url);
    if (link) {
      const a = document.createElement("a");
      a.href = link;
      a.textContent = item.link_text || "More";
      box.append(a);
    }
    if (item.dismissible) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Dismiss";
      button.addEventListener("click", () => {
        remember(key);
        this.render();
      });
      box.append(button);
    }
    return box;
  }

  words(message) {
    for (const wish of [...navigator.languages, this.state.default_lang]) {
      for (const lang of [wish, wish.split("-")[0]]) {
        if (message[lang]) return [lang, message[lang]];
      }
    }
    return Object.entries(message)[0] ?? ["", ""];
  }

  dismissed(item) {
    return item.dismissible && remembered().includes(`${item.id}:${item.notice_rev}`);
  }
}

// A dismissal holds for this epoch's notice in this tab; private windows may have no storage at all.
function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem("dismissed") ?? "[]");
  } catch {
    return [];
  }
}

function remember(key) {
  try {
    sessionStorage.setItem("dismissed", JSON.stringify([...remembered(), key].slice(-32)));
  } catch {
    // Then it comes back with the next page.
  }
}

function safe(url) {
  try {
    const parsed = new URL(url);
    return ["http:", "https:"].includes(parsed.protocol) ? parsed.href : "";
  } catch {
    return "";
  }
}
