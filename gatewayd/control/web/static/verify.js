// The page that checks a proof: what is put there goes to proof.js and to nobody else.
"use strict";

const checking = document.querySelector("[data-verify]");
const [proofField, keysField, fileField] = ["proof", "keys", "file"].map((id) => document.getElementById(id));
const outcome = document.getElementById("outcome");
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;

// Text of strangers, as web/shown_text.py shows it: characters that nobody sees are marks that say their code.
function shown(value) {
  const whole = document.createElement("bdi");
  for (const each of value) {
    if (each === " " || each === "\n" || each === "\t" || !HIDDEN.test(each)) {
      whole.append(each);
      continue;
    }
    const mark = document.createElement("span");
    mark.className = "odd";
    mark.textContent = `U+${each.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
    whole.append(mark);
  }
  whole.normalize();
  return whole;
}

function element(name, className, ...inside) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...inside);
  return made;
}

function facts(pairs) {
  const list = element("dl", "facts");
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    const said = typeof value === "string" ? value : JSON.stringify(value);
    list.append(element("dt", "", shown(name)), element("dd", name === "sql_raw" ? "sql" : "", shown(said)));
  }
  return list;
}

function card(proved) {
  const { payload, event_type, ts, ...columns } = proved.row;
  const heading = element("h3", "", shown(event_type));
  const when = `${new Date(ts).toISOString().replace("T", " ").replace("Z", "")} UTC`;
  const gone = proved.isErased ? [element("p", "hint", "Its texts were erased; that they were recorded is proved all the same.")] : [];
  const pairs = [["time", when], ...Object.entries(JSON.parse(payload)), ...Object.entries(columns), ["seq", proved.seq]];
  return element("section", "card", heading, ...gone, facts(pairs));
}

function say(tone, title, text, ...rest) {
  outcome.replaceChildren(element("div", `notice ${tone}`, element("h2", "", title), element("p", "", shown(text))), ...rest);
}

async function check() {
  const keys = keysField.value.split("\n").map((each) => each.trim()).filter(Boolean);
  outcome.replaceChildren();
  try {
    const proved = await checkProof(proofField.value, keys);
    const [{ row, size, keyId, instance }] = proved;
    const rows = proved.length === 1 ? "1 row" : `${proved.length} rows`;
    const text = `${rows} of query ${row.query_id} stand in the log ${instance}, under a head of ${size} rows that key ${keyId} has signed.`;
    say("good", "Proved", text, ...proved.map(card));
  } catch (failure) {
    if (failure instanceof ProofRefused) say("bad", "Not proved", `${failure.message}.`);
    else say("warn", "Not checked", failure.message);
  }
}

checking.hidden = false;
checking.addEventListener("submit", (event) => {
  event.preventDefault();
  check();
});
fileField.addEventListener("change", async () => {
  if (fileField.files[0]) proofField.value = await fileField.files[0].text();
});
if (proofField.value && keysField.value) check();
