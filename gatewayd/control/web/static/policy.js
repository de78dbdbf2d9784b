// The two views of a policy in step: a choice in the tables is written into the text at once, and what is typed shows in the tables
// when the hand rests. Both ask the page itself, as its buttons would.
"use strict";

const policy = document.getElementById("policy");
const yaml = document.getElementById("yaml");
const ANSWER = ["answer"];
const TYPED = ["note", "find"]; // in what an answer replaces; what was typed since it was asked for stays
let asked = 0;
let resting = null;
let writing = null;

async function ask(what) {
  const mine = ++asked;
  const body = new URLSearchParams(new FormData(policy));
  body.set("do", what);
  const answer = await fetch(policy.action, { method: "POST", body });
  if (answer.redirected) return location.reload(); // signed out meanwhile
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (mine !== asked) return; // something newer is on its way
  const typed = TYPED.map((id) => [id, document.getElementById(id)?.value]);
  const focused = document.activeElement && document.activeElement.id;
  for (const id of ANSWER) {
    const fresh = page.getElementById(id);
    if (fresh) document.getElementById(id).replaceChildren(...fresh.childNodes);
  }
  const text = page.getElementById("yaml");
  if (what === "tables" && text) yaml.value = text.value;
  const changes = page.getElementById("publish");
  if (changes) document.getElementById("publish").parentElement.replaceChildren(...changes.parentElement.childNodes);
  for (const [id, value] of typed) {
    const field = document.getElementById(id);
    if (field && value !== undefined) field.value = value;
  }
  if (focused && focused !== "yaml") document.getElementById(focused)?.focus();
}

policy.addEventListener("change", (event) => {
  if (event.target.name !== "choices") return;
  const mine = ask("tables").finally(() => {
    if (writing === mine) writing = null;
  });
  writing = mine;
});
// A button that is quicker than the choice before it would ask about, or publish, a text without that choice: it waits.
policy.addEventListener("submit", async (event) => {
  if (!writing) return;
  event.preventDefault();
  const pressed = event.submitter && event.submitter.value;
  while (writing) await writing;
  const button = policy.querySelector(`button[name="do"][value="${pressed}"]`); // the answer may have put another in its place
  if (button) policy.requestSubmit(button);
});
yaml.addEventListener("input", () => {
  clearTimeout(resting);
  resting = setTimeout(ask, 600, "check");
});
policy.addEventListener("click", (event) => {
  const line = Number(event.target.dataset && event.target.dataset.line);
  if (!line) return;
  const lines = yaml.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  yaml.focus();
  yaml.setSelectionRange(start, start + (lines[line - 1] || "").length);
});
