// Follows one topic, and shows what it brings. Nothing is decrypted here: the page sees what the backend sees.
import { toBinary } from "@bufbuild/protobuf";
import { loadApi } from "./api.js";
import { followStatic } from "./static.js";
import { followSubscribe } from "./subscribe.js";

const form = document.querySelector("form");
const element = (id) => document.getElementById(id);
const say = (text) => (element("status").textContent = text);
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));

const api = await loadApi("/descriptors.bin").catch((error) => {
  say(`This page does not know the API (${error.message}). Build the backend first: scripts/dev does.`);
  throw error;
});
let stop = () => {};

function show({ meta, envelope }) {
  const row = element("envelopes").insertRow();
  row.insertCell().textContent = meta.cursor.sequenceId;
  row.insertCell().textContent = new Date(Number(meta.serverNs / 1_000_000n)).toISOString();
  row.insertCell().textContent = envelope.payload.case;
  row.insertCell().textContent = toBinary(api.envelope, envelope).length;
  row.insertCell().textContent = hex(meta.messageHash.hash.value);
}

function follow({ backend, topic, after, stream }) {
  stop();
  element("envelopes").replaceChildren();
  element("stop").disabled = false;
  say("Connecting …");
  const query = { topic: { topic: bytes(topic) }, cursor: { sequenceId: BigInt(after) } };
  const start = stream === "static" ? followStatic : followSubscribe;
  stop = start(api.subscription, backend, query, {
    following: (target) => say(`Following; the history ends at ${target}.`),
    envelopes: (all) => all.forEach(show),
    ended: (why) => {
      element("stop").disabled = true;
      say(why);
    },
  });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  try {
    follow(Object.fromEntries(new FormData(form)));
  } catch (error) {
    element("stop").disabled = true;
    say(`The form cannot be followed: ${error.message}`);
  }
});
element("stop").addEventListener("click", () => {
  stop();
  element("stop").disabled = true;
  say("Not following.");
});

// A link can carry the whole form: ?topic=…&stream=static follows at once.
const link = new URLSearchParams(location.search);
for (const [name, value] of link) if (form.elements[name]) form.elements[name].value = value;
if (link.has("topic")) form.requestSubmit();
