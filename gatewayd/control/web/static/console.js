// The script of the console. Every page works without it; it adds what only a browser can do: passkeys, and copying.
"use strict";

const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const text = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

async function post(path, body) {
  const answer = await fetch(path, { method: "POST", body, headers: { "content-type": "application/json" } });
  if (answer.redirected) {
    location.assign(answer.url); // a fresh sign-in comes first
    throw new Error("sign in again");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

function withIds(options) {
  options.challenge = bytes(options.challenge);
  if (options.user) options.user.id = bytes(options.user.id);
  for (const list of [options.excludeCredentials, options.allowCredentials])
    for (const each of list || []) each.id = bytes(each.id);
  return options;
}

async function addPasskey() {
  const options = withIds(await post("/account/passkeys/options"));
  const made = await navigator.credentials.create({ publicKey: options });
  const response = { clientDataJSON: text(made.response.clientDataJSON), attestationObject: text(made.response.attestationObject) };
  await post("/account/passkeys", JSON.stringify({ id: made.id, rawId: text(made.rawId), type: made.type, response }));
  location.reload();
}

async function signInWithPasskey(next) {
  const options = withIds(await post("/sign-in/passkey/options"));
  const found = await navigator.credentials.get({ publicKey: options });
  const { clientDataJSON, authenticatorData, signature, userHandle } = found.response;
  const response = { clientDataJSON: text(clientDataJSON), authenticatorData: text(authenticatorData), signature: text(signature) };
  if (userHandle) response.userHandle = text(userHandle);
  await post("/sign-in/passkey", JSON.stringify({ id: found.id, rawId: text(found.rawId), type: found.type, response }));
  location.assign(next);
}

function offer(selector, act) {
  const place = document.querySelector(selector);
  if (!place || !window.PublicKeyCredential) return;
  place.hidden = false;
  place.querySelector("button").addEventListener("click", async () => {
    const status = place.querySelector("[role=status]");
    status.textContent = "";
    try {
      await act(place);
    } catch (error) {
      status.textContent = error.name === "NotAllowedError" ? "cancelled, or not possible with this device" : error.message;
    }
  });
}

offer("[data-passkey-add]", addPasskey);
offer("[data-passkey-sign-in]", (place) => signInWithPasskey(place.dataset.next));

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}
