// A real browser: the topic viewer of examples/browser, and Google's grpc-web, whose streams need a real XMLHttpRequest. Both pages
// are of another origin than the backend.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { startBackend } from "./backend.js";
import { startChromium } from "./chromium.js";
import { randomBytes, welcome, welcomeTopic } from "./envelopes.js";
import { Publish, Subscription } from "./schema.js";
import { describeSubscribeStatic } from "./streams.js";

const base = await startBackend();
const viewer = await startViewer();
const chromium = await startChromium();
const { publish } = createClient(Publish, createGrpcWebTransport({ baseUrl: base }));

async function startViewer() {
  const script = fileURLToPath(new URL("../../examples/browser/serve.js", import.meta.url));
  const server = spawn(process.execPath, [script, "0"], { stdio: ["ignore", "pipe", "inherit"] });
  after(() => server.kill());
  for await (const line of createInterface({ input: server.stdout })) {
    const match = /(http:\S+)$/.exec(line);
    if (match) return match[1];
  }
  throw new Error("the viewer ended before it was ready");
}

/** Asks the page until it says so. */
async function eventually(page, expression, expected) {
  let seen;
  for (let tries = 0; tries < 200; tries += 1) {
    seen = await page(expression);
    if (seen === expected) return;
    await sleep(100);
  }
  assert.equal(seen, expected, `${expression}; the page says: ${await page('document.getElementById("status").textContent')}`);
}

for (const stream of ["subscribe", "static"]) {
  test(`Chromium: API-285 API-254 a page of another origin follows a topic, over ${stream}`, async () => {
    const key = randomBytes(32);
    const store = async () => (await publish({ envelopes: [welcome(key)] })).envelopeMetas[0].cursor.sequenceId;
    const first = await store();
    const topic = Buffer.from(welcomeTopic(key).topic).toString("hex");
    const page = await chromium.open(`${viewer}/?backend=${encodeURIComponent(base)}&topic=${topic}&stream=${stream}`);
    const shown = 'Array.from(document.querySelectorAll("#envelopes tr"), (row) => row.cells[0].textContent).join()';
    await eventually(page, shown, `${first}`);
    assert.equal(await page('document.getElementById("status").textContent'), `Following; the history ends at ${first}.`);
    const second = await store();
    await eventually(page, shown, `${first},${second}`);
    assert.equal(await page('document.querySelector("#envelopes tr").cells[2].textContent'), "welcomeMessage");
  });
}

// Google's grpc-web streams in its text mode only. It runs in the page; the test hands it bytes and takes bytes.
const method = Subscription.method.subscribeStatic;
const library = readFileSync(createRequire(import.meta.url).resolve("grpc-web"), "utf8");
const page = await chromium.open(`${viewer}/api.js`);
await page(`globalThis.grpcWeb = ((exports) => { ${library}; return exports; })({}); undefined`);
await page(`
  const base64 = (bytes) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  const bytes = (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const client = new grpcWeb.GrpcWebClientBase({ format: "text" });
  const descriptor = new grpcWeb.MethodDescriptor(
    "/${method.parent.typeName}/${method.name}", grpcWeb.MethodType.SERVER_STREAMING, Object, Object, (request) => request, base64,
  );
  globalThis.streams = [];
  globalThis.openStream = (request) => {
    const items = [], waiting = [];
    const push = (item) => (waiting.length > 0 ? waiting.shift()(item) : items.push(item));
    const call = client.serverStreaming("${base}" + descriptor.getName(), bytes(request), {}, descriptor);
    call.on("data", (message) => push({ message }));
    call.on("error", ({ code, message }) => push({ code, text: message }));
    call.on("end", () => push({ code: 0 }));
    const next = () => (items.length > 0 ? items.shift() : new Promise((resolve) => waiting.push(resolve)));
    return streams.push({ next, cancel: () => call.cancel() }) - 1;
  };
  undefined`);

async function open(topics) {
  const request = Buffer.from(toBinary(method.input, create(method.input, { topics }))).toString("base64");
  const index = await page(`openStream("${request}")`);
  return {
    next: async () => {
      const { message, code, text } = await page(`streams[${index}].next()`);
      return message === undefined ? { case: "end", code, text } : fromBinary(method.output, Buffer.from(message, "base64")).response;
    },
    cancel: () => page(`streams[${index}].cancel()`),
  };
}

describeSubscribeStatic("grpc-web in Chromium", publish, open);
