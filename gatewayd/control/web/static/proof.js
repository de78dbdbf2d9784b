// Checks a proof of audit rows as `gatewayd audit verify-proof` does (docs/audit-format.md, Proofs). No page, no network: text and
// keys in, rows out, or a ProofRefused that says which part is wrong. Nothing of a proof is believed before its signature holds.
"use strict";

class ProofRefused extends Error {}
const refuse = (text) => {
  throw new ProofRefused(text);
};

const COLUMNS = "agent_intent agent_name agent_version database event_type id mcp_token_id payload query_id schema_version tenant_id ts".split(" ");
const DETAIL_KEYS = ["error_message", "masking_reason", "reason", "sql_raw"];
const FIRST_LINE = "c2sp.org/tlog-proof@v1";
const BLOCK = /^c2sp\.org\/tlog-proof@v1\nextra ([A-Za-z0-9+/=]+)\nindex (0|[1-9][0-9]{0,18})\n((?:[A-Za-z0-9+/]{43}=\n){0,64})\n([^]+)$/;
const HEAD = /^gatewayd\/([0-9a-f]{32})\/([0-9A-HJKMNP-TV-Z]{26})\n(0|[1-9][0-9]{0,18})\n([A-Za-z0-9+/]{43}=)\n(?:[^\n]+\n)*$/;
const SIGNATURE = /^— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})$/u;
const MOST_CHARACTERS = 64 * 1024 * 1024;
const NOTE_CHARACTERS = 64 * 1024;

// -- bytes

const encoder = new TextEncoder();
const utf8 = (text) => encoder.encode(text);
const hex = (data) => Array.from(data, (each) => each.toString(16).padStart(2, "0")).join("");
const sha256 = async (...parts) => new Uint8Array(await crypto.subtle.digest("SHA-256", joined(...parts)));

function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function big64(number) {
  const data = new Uint8Array(8);
  new DataView(data.buffer).setBigUint64(0, BigInt(number));
  return data;
}

function same(one, other) {
  return one.length === other.length && one.every((each, at) => each === other[at]);
}

function base64(text) {
  let data = "";
  try {
    data = atob(text);
  } catch {
    refuse("expected base64");
  }
  if (btoa(data) !== text) refuse("expected base64 in its canonical form");
  return Uint8Array.from(data, (each) => each.charCodeAt(0));
}

// -- JSON as rows hold it: keys sorted by their bytes, no white space. Numbers keep the characters that they are written with, because
// a number of JavaScript loses what a row may hold. Strings, null, true and false are as JavaScript has them.

class JsonNumber {
  constructor(raw) {
    this.raw = raw;
    this.isInteger = /^-?[0-9]+$/.test(raw);
  }
}

const TOKEN = /[{}[\],:"]|null|true|false|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
const DEPTH_MOST = 500;

function parseJson(text) {
  let at = 0;
  let token = null;
  const next = () => {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(text);
    token = found && found[0];
    if (token === '"') token = text.slice(at, endOfString(text, at));
    at += found ? token.length : 0;
    if (token === null && at < text.length) refuse("it is no JSON in the form that gatewayd writes");
    return token;
  };
  const take = (depth) => {
    if (depth > DEPTH_MOST) refuse("it is nested too deeply");
    let value;
    if (token === "{") {
      value = new Map();
      if (next() !== "}")
        for (;;) {
          if (token === null || token[0] !== '"') refuse("it is no JSON");
          const key = string(token);
          if (next() !== ":") refuse("it is no JSON");
          next();
          value.set(key, take(depth + 1));
          if (token === "}") break;
          if (token !== ",") refuse("it is no JSON");
          next();
        }
      next();
    } else if (token === "[") {
      value = [];
      if (next() !== "]")
        for (;;) {
          value.push(take(depth + 1));
          if (token === "]") break;
          if (token !== ",") refuse("it is no JSON");
          next();
        }
      next();
    } else if (token === null || "}],:".includes(token)) refuse("it is no JSON");
    else {
      const words = { null: null, true: true, false: false };
      value = token[0] === '"' ? string(token) : token in words ? words[token] : new JsonNumber(token);
      next();
    }
    return value;
  };
  next();
  const value = take(0);
  if (token !== null || at !== text.length) refuse("it is no JSON");
  return value;
}

// After the closing quote; a statement of a megabyte is too long for a regular expression.
function endOfString(text, start) {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '"') return at + 1;
    if (text[at] === "\\") at++;
  }
  return text.length;
}

function string(token) {
  let value = "";
  try {
    value = JSON.parse(token);
  } catch {
    refuse("it is no JSON");
  }
  if (/[\ud800-\udfff]/u.test(value)) refuse("it holds half a character");
  return value;
}

// `floats`: how a number that is no integer is written.
function encodeJson(value, floats = exactly) {
  if (value instanceof Map) {
    const keys = [...value.keys()].sort(byBytes);
    return `{${keys.map((key) => `${encodeJson(key)}:${encodeJson(value.get(key), floats)}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map((each) => encodeJson(each, floats)).join(",")}]`;
  if (value instanceof JsonNumber) return value.isInteger ? String(BigInt(value.raw)) : floats(value.raw);
  return JSON.stringify(value); // strings: the escapes are the same
}

// UTF-8 sorts as code points do, strings of JavaScript by their halves.
function byBytes(one, other) {
  const [left, right] = [Array.from(one), Array.from(other)];
  for (let at = 0; at < Math.min(left.length, right.length); at++)
    if (left[at] !== right[at]) return left[at].codePointAt(0) - right[at].codePointAt(0);
  return left.length - right.length;
}

function exactly(raw) {
  const number = Number(raw);
  if (!Number.isFinite(number)) refuse("it holds a number that is too large");
  if (number === 0) return Object.is(number, -0) ? "-0.0" : "0.0";
  const [digits, exponent] = number.toExponential().split("e");
  if (Number(exponent) < -5 || Number(exponent) >= 16) return `${digits}e${Number(exponent)}`;
  if (Number(exponent) === -5) return number.toFixed(5 + digits.replace(/\D/g, "").length - 1);
  return Number.isInteger(number) ? `${number}.0` : String(number);
}

// -- keys: WebCrypto takes points of small order and encodings that are not canonical; under such a key anybody can sign.

const P = 2n ** 255n - 19n;
const SMALL_ORDER_Y = new Set([
  0n,
  1n,
  P - 1n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd83d3d706a17c7n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
]);

async function verifierKey(text) {
  const [name, hash, ...rest] = text.trim().split("+");
  const encoded = rest.join("+");
  if (!/^[^\s+]+$/u.test(name) || !encoded) refuse("expected a verifier key such as name+0123abcd+AQ…, the output of `gatewayd audit identity`");
  const data = base64(encoded);
  if (data[0] !== 1 || data.length !== 33) refuse("the verifier key is not an Ed25519 key (type 1, 32 bytes)");
  const raw = data.slice(1);
  const y = BigInt(`0x${hex(raw.slice().reverse())}`) & (2n ** 255n - 1n);
  if (y >= P) refuse("found a public key whose encoding is not canonical");
  if (SMALL_ORDER_Y.has(y)) refuse("found a public key of small order");
  const found = hex((await sha256(utf8(`${name}\n`), data)).slice(0, 4));
  if (found !== hash) refuse("the verifier key's hash is not that of its name and key");
  const keyId = hex(await sha256(raw)).slice(0, 32);
  return { name, hash, keyId, key: await imported(raw) };
}

async function imported(raw) {
  try {
    return await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  } catch (failure) {
    if (failure.name !== "NotSupportedError") return null; // no point of the curve: nothing is signed with it
    throw new Error("this browser cannot check Ed25519 signatures; use a newer one, or gatewayd audit verify-proof");
  }
}

// -- a signed note: text, a blank line, signature lines. Lines of unknown keys are ignored; one of a known key that does not verify
// refuses the note.

async function openNote(note, keys) {
  if (note.length > NOTE_CHARACTERS) refuse("its head is too long");
  if (/[\u0000-\u0009\u000b-\u001f]/.test(note) || /[\ud800-\udfff]/u.test(note)) refuse("it holds control characters");
  const blank = note.lastIndexOf("\n\n");
  if (blank < 1 || !note.endsWith("\n")) refuse("it is no signed note: expected text, a blank line, and signature lines");
  const text = note.slice(0, blank + 1);
  const lines = note.slice(blank + 2, -1).split("\n");
  if (lines.length > 64) refuse("it has more than 64 signature lines");
  let signer = null;
  for (const [name, data] of lines.map(signatureLine)) {
    const key = keys.find((each) => each.name === name && each.hash === hex(data.slice(0, 4)));
    if (!key) continue;
    const holds = key.key && data.length === 68 && (await crypto.subtle.verify("Ed25519", key.key, data.slice(4), utf8(text)));
    if (!holds) refuse(`the signature of ${name} does not verify`);
    signer = signer || key;
  }
  return signer ? { text, signer } : refuse("no known key has signed it");
}

function signatureLine(line) {
  const found = SIGNATURE.exec(line) || refuse("expected signature lines of the form `— name base64`");
  const data = base64(found[2]);
  if (data.length <= 4) refuse("a signature line has no signature");
  return [found[1], data];
}

// -- a row, its leaf, and the way from there to the root

async function leafOf(extra) {
  const row = extra.get("row");
  const payload = row.get("payload");
  if (typeof payload !== "string") refuse("its payload is no JSON object");
  const fields = parseJson(payload);
  if (!(fields instanceof Map)) refuse("its payload is no JSON object");
  if (encodeJson(fields) !== payload) refuse("its payload is not in the form that gatewayd writes");
  const details = new Map();
  const intent = row.get("agent_intent");
  if (intent !== null) details.set("agent_intent", intent);
  for (const key of DETAIL_KEYS)
    if (typeof fields.get(key) === "string") {
      details.set(key, fields.get(key));
      fields.set(key, "");
    }
  const isErased = fields.get("erased") === true;
  fields.delete("erased");
  const blanked = encodeJson(fields, (raw) => `"${raw}"`);
  const parts = COLUMNS.map((name) => {
    const value = name === "payload" ? blanked : encodeJson(name === "agent_intent" && intent !== null ? "" : row.get(name));
    return `"${name}":${value}`;
  });
  const envelope = await sha256(utf8(`{${parts.join(",")}}`));
  const seq = BigInt(extra.get("seq").raw);
  const prefix = joined(new Uint8Array([0]), utf8("gatewayd audit 2\n"), big64(seq));
  return { leaf: await sha256(prefix, envelope, await commitment(extra, details, isErased)), isErased: !extra.has("salt"), seq };
}

async function commitment(extra, details, isErased) {
  if (extra.has("salt")) {
    if (isErased) refuse("its row says that it was erased, and has its salt");
    const text = utf8(encodeJson(details));
    const padding = new Uint8Array((256 - ((8 + text.length) % 256)) % 256);
    return sha256(base64(extra.get("salt")), big64(text.length), text, padding);
  }
  const isEmpty = [...details.values()].every((each) => each === "" || (each instanceof JsonNumber && BigInt(each.raw) === 0n));
  if (!extra.has("commitment") || !isErased || !isEmpty) refuse("its row has details, and no salt");
  return base64(extra.get("commitment"));
}

async function rootFrom(leaf, index, size, proof) {
  if (index >= size) return null;
  let [number, last, root] = [index, size - 1n, leaf];
  const node = (left, right) => sha256(new Uint8Array([1]), left, right);
  for (const each of proof) {
    if (last === 0n) return null;
    if (number & 1n || number === last) {
      root = await node(each, root);
      while (!(number & 1n) && number) {
        number >>= 1n;
        last >>= 1n;
      }
    } else root = await node(root, each);
    number >>= 1n;
    last >>= 1n;
  }
  return last === 0n ? root : null;
}

function readExtra(encoded) {
  let text = "";
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(encoded);
  } catch {
    refuse("its row is not UTF-8");
  }
  const extra = parseJson(text);
  const row = extra instanceof Map ? extra.get("row") : null;
  const [seq, texts] = [row && extra.get("seq"), ["salt", "commitment"].filter((name) => row && extra.has(name))];
  const isShaped = row instanceof Map && seq instanceof JsonNumber && seq.isInteger && [...extra.keys()].every((key) => ["row", "seq", "salt", "commitment"].includes(key));
  if (!isShaped || !texts.every((name) => typeof extra.get(name) === "string")) refuse("its row does not have the form that gatewayd writes");
  const columns = [...row.keys()].sort(byBytes);
  const isValue = (value) => value === null || typeof value === "string" || (value instanceof JsonNumber && value.isInteger);
  if (columns.join() !== COLUMNS.join() || ![...row.values()].every(isValue)) refuse("its row does not have the columns of an audit row");
  if (!(BigInt(seq.raw) > 0n && BigInt(seq.raw) < 1n << 63n)) refuse("its seq is no place in a file");
  if (encodeJson(extra) !== text) refuse("its row is not in the form that gatewayd writes");
  return extra;
}

async function checkedBlock(block, keys) {
  const found = BLOCK.exec(block) || refuse("it is not in the form of a tlog-proof");
  const { text, signer } = await openNote(found[4], keys);
  const head = HEAD.exec(text) || refuse("it is no head of an audit file: expected origin gatewayd/<key id>/<instance>, size and root");
  const root = base64(head[4]);
  if (head[1] !== signer.keyId) refuse("its origin names another key than the one that signed it");
  const extra = readExtra(base64(found[1]));
  const { leaf, isErased, seq } = await leafOf(extra);
  const proof = found[3].split("\n").filter(Boolean).map(base64);
  const reached = await rootFrom(leaf, BigInt(found[2]), BigInt(head[3]), proof);
  if (!reached || !same(reached, root)) refuse("its row is not the one that the head is over");
  const row = {};
  for (const [name, value] of extra.get("row")) row[name] = value instanceof JsonNumber ? Number(value.raw) : value;
  return { row, seq: String(seq), isErased, instance: head[2], size: head[3], keyId: head[1] };
}

function startsOf(text) {
  const starts = [];
  for (let at = 0; at !== -1 && at < text.length; at = text.indexOf("\n", at) + 1 || -1) {
    const end = at + FIRST_LINE.length;
    if (text.startsWith(FIRST_LINE, at) && (end === text.length || text[end] === "\n")) starts.push(at);
  }
  return starts;
}

// The rows that `text` proves under a head that one of `keys` (verifier keys, as text) has signed.
async function checkProof(text, keys) {
  if (text.length > MOST_CHARACTERS) refuse("it is too long");
  const trusted = await Promise.all(keys.map(verifierKey));
  if (!trusted.length) refuse("no key: name the one that you trust");
  const starts = startsOf(text);
  if (starts[0] !== 0) refuse(`expected a text that begins with \`${FIRST_LINE}\``);
  const proved = [];
  for (const [at, start] of starts.entries()) {
    try {
      proved.push(await checkedBlock(text.slice(start, starts[at + 1] ?? text.length), trusted));
    } catch (failure) {
      if (!(failure instanceof ProofRefused)) throw failure;
      refuse(`part ${at + 1} of ${starts.length}: ${failure.message}`);
    }
  }
  if (new Set(proved.map((each) => `${each.row.query_id} ${each.instance}`)).size > 1) refuse("its parts are of several queries or instances");
  return proved;
}
