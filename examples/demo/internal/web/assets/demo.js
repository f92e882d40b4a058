// What the demo adds to the live page: its buttons, its banner, and commands to copy.

import {Banner} from "./banner.js";

const $ = (id) => document.getElementById(id);

// ---- buttons ----

const plays = [...document.querySelectorAll("[data-play]")];
const pumpkin = $("pumpkin");
let usable = true;

function showControls(controls, play) {
  if (controls !== usable) {
    usable = controls;
    for (const button of [...plays, pumpkin]) button.disabled = !controls;
    if (!controls) tell("The buttons work only when the demo listens on a loopback address.");
  }
  // Not disabled, or who has just pressed a button with the keyboard would lose the place. The demo refuses a second one.
  for (const button of plays) button.ariaDisabled = String(play.running !== "");
  if (play.text) tell(play.text);
}

function tell(text) {
  if ($("result").textContent !== text) $("result").textContent = text;
}

async function press(path, body) {
  try {
    const answer = await fetch(path, {method: "POST", body});
    if (!answer.ok) tell((await answer.json()).detail ?? `The demo answered ${answer.status}.`);
    return answer.ok;
  } catch {
    tell("The demo does not answer.");
    return false;
  }
}

for (const button of plays) {
  button.addEventListener("click", () => {
    if (button.ariaDisabled === "true") tell("Something is running already; wait until it is done.");
    else press(`/demo/${button.dataset.play}`);
  });
}

const banner = new Banner($("banner-status"), $("banner-alert"), (state) => {
  const on = (state.items ?? []).some((item) => item.id === "demo");
  pumpkin.ariaPressed = String(on);
  pumpkin.textContent = on ? "Pumpkin off" : "Pumpkin on";
});

pumpkin.addEventListener("click", async () => {
  const on = pumpkin.ariaPressed !== "true";
  if (await press("/demo/pumpkin", new URLSearchParams({on}))) banner.poll();
});

for (const item of document.querySelectorAll("#commands li")) {
  const code = item.querySelector("code");
  code.textContent = code.dataset.command.replaceAll("ORIGIN", location.origin);
  const button = item.querySelector("button");
  button.ariaLabel = `Copy: ${code.textContent}`;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

document.addEventListener("spillway:stats", ({detail: {extra}}) => showControls(extra.controls, extra.play));
banner.poll();
