// Pages that follow what happens: a stream says that something has changed, and the page asks for itself again. What a person is doing
// is left alone: nothing is replaced while a field, a link or a selection inside is in use, and it says so.
"use strict";

const followed = document.querySelector("[data-live]:not([data-live=''])");

function isInUse() {
  const selection = getSelection();
  return followed.contains(document.activeElement) || (!selection.isCollapsed && followed.contains(selection.anchorNode));
}

function tell(text) {
  const state = document.querySelector("[data-live-state]");
  if (state) state.textContent = text;
}

let isAsking = false;
let isWanted = false; // something has changed since it was asked
let isStale = false;

async function refresh() {
  if (isAsking) {
    isWanted = true;
    return;
  }
  isAsking = true;
  isWanted = false;
  try {
    isStale = !(await show());
  } catch {
    isStale = true;
  } finally {
    isAsking = false;
  }
  if (isWanted) await refresh();
}

// Whether what is shown is the newest.
async function show() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (answer.redirected) location.reload(); // signed out meanwhile
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById(followed.id);
  if (!answer.ok || !fresh) return false;
  followed.dataset.again = fresh.dataset.again || 0;
  if (fresh.dataset.mark && fresh.dataset.mark === followed.dataset.mark) return true;
  if (isInUse()) {
    tell("something has changed here; it is shown when you leave this part of the page");
    return false;
  }
  followed.replaceChildren(...fresh.childNodes);
  followed.dataset.mark = fresh.dataset.mark || "";
  tell("follows live");
  return true;
}

if (followed) {
  const stream = new EventSource(followed.dataset.live);
  stream.addEventListener("open", () => {
    tell("follows live");
    if (isStale) refresh();
  });
  stream.addEventListener("changed", refresh);
  stream.addEventListener("error", () => {
    isStale = true; // what happens until the stream is back is asked for then
    tell("connection lost; trying again");
  });
  // What comes at a time of its own, and changes nothing that the stream tells of: asked for while it is waited for.
  const again = () => {
    const seconds = Number(followed.dataset.again);
    if (seconds) setTimeout(() => refresh().then(again), seconds * 1000);
  };
  again();
  followed.addEventListener("focusout", () => setTimeout(() => isStale && refresh(), 200));
}
