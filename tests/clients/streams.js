// What every client of streams must be able to do. A stream under test has next(), which resolves to what came next: a response,
// { case, value }, or the end, { case: "end", code, text }.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { randomBytes, welcome, welcomeTopic } from "./envelopes.js";

const OK = 0;
const INVALID_ARGUMENT = 3;
/** Words with spaces between them: the client decodes grpc-message. */
const READABLE = /^\w+( \S+)+$/;

const ids = (metas) => metas.map((meta) => meta.cursor.sequenceId);
const entry = (key, sequenceId = 0n) => ({ topic: welcomeTopic(key), cursor: { sequenceId } });

async function expect(stream, what) {
  const next = await stream.next();
  assert.equal(next.case, what, JSON.stringify(next, (_, value) => (typeof value === "bigint" ? `${value}` : value)));
  return next.value;
}

/** Sequence ids of so many envelopes, however they were put into frames. */
async function received(stream, count) {
  const all = [];
  while (all.length < count) all.push(...ids((await expect(stream, "messages")).envelopes.map((stored) => stored.meta)));
  return all;
}

const targets = (list) => list.map((target) => target.throughSequenceId);

/** `publish` makes a Publish by any client. `open` gives a stream with send(request), halfClose() and cancel(). */
export function describeSubscribe(name, publish, open) {
  const store = async (...keys) => ids((await publish({ envelopes: keys.map((key) => welcome(key)) })).envelopeMetas);

  test(`${name}: API-250 API-252 API-254 a stream starts, applies an update, and delivers history and what comes`, async () => {
    const [full, empty] = [randomBytes(32), randomBytes(32)];
    const history = await store(full, full);
    const stream = open();
    assert.equal((await expect(stream, "started")).keepaliveIntervalMs, 30_000);
    stream.send({ case: "update", value: { id: 1n, adds: [entry(full), entry(empty)] } });
    const applied = await expect(stream, "applied");
    assert.equal(applied.id, 1n);
    assert.deepEqual(targets(applied.addedTargets), [history[1], 0n]);
    assert.deepEqual(await received(stream, 2), history);
    const live = [...(await store(empty)), ...(await store(full))];
    assert.deepEqual(await received(stream, 2), live);
    stream.cancel();
  });

  test(`${name}: API-253 a removed topic is silent, and starts anew from its cursor when it is added again`, async () => {
    const [key, other] = [randomBytes(32), randomBytes(32)];
    const [first, second] = await store(key, key);
    const stream = open();
    await expect(stream, "started");
    stream.send({ case: "update", value: { id: 1n, adds: [entry(key, second), entry(other)] } });
    await expect(stream, "applied");
    stream.send({ case: "update", value: { id: 2n, removes: [welcomeTopic(key)] } });
    assert.deepEqual((await expect(stream, "applied")).addedTargets, []);
    const [third] = await store(key);
    const stored = await store(other);
    assert.deepEqual(await received(stream, 1), stored);
    stream.send({ case: "update", value: { id: 3n, adds: [entry(key, first)] } });
    assert.deepEqual(targets((await expect(stream, "applied")).addedTargets), [third]);
    assert.deepEqual(await received(stream, 2), [second, third]);
    stream.cancel();
  });

  test(`${name}: API-256 API-259 a Ping is answered, and a half-close ends the stream well`, async () => {
    const stream = open();
    await expect(stream, "started");
    stream.send({ case: "ping", value: { nonce: 2n ** 64n - 1n } });
    assert.equal((await expect(stream, "pong")).nonce, 2n ** 64n - 1n);
    stream.send({ case: "update", value: { id: 1n } });
    stream.halfClose();
    assert.equal((await expect(stream, "applied")).id, 1n);
    assert.equal((await stream.next()).code, OK);
  });

  test(`${name}: API-251 an invalid update fails the stream`, async () => {
    const stream = open();
    await expect(stream, "started");
    stream.send({ case: "update", value: { id: 0n } });
    const { code, text } = await stream.next();
    assert.equal(code, INVALID_ARGUMENT);
    assert.match(text, READABLE);
  });
}

/** `publish` as above. `open` takes the topics of the request and gives a stream with cancel(). */
export function describeSubscribeStatic(name, publish, open) {
  const store = async (...keys) => ids((await publish({ envelopes: keys.map((key) => welcome(key)) })).envelopeMetas);

  test(`${name}: API-254 API-260 a static stream starts with its targets, and delivers history and what comes`, async () => {
    const [full, empty] = [randomBytes(32), randomBytes(32)];
    const history = await store(full, full, full);
    const stream = await open([entry(empty), entry(full, history[0])]);
    const started = await expect(stream, "started");
    assert.equal(started.keepaliveIntervalMs, 30_000);
    assert.deepEqual(targets(started.targets), [0n, history[2]]);
    assert.deepEqual(await received(stream, 2), history.slice(1));
    const live = [...(await store(empty)), ...(await store(full))];
    assert.deepEqual(await received(stream, 2), live);
    await stream.cancel();
  });

  test(`${name}: API-260 a static stream of no topic, or of one named twice, is refused`, async () => {
    const key = randomBytes(32);
    for (const topics of [[], [entry(key), entry(key)]]) {
      const { code, text } = await (await open(topics)).next();
      assert.equal(code, INVALID_ARGUMENT);
      assert.match(text, READABLE);
    }
  });

  test(`${name}: API-259 a static stream stays open after a pause`, async () => {
    const key = randomBytes(32);
    const stream = await open([entry(key)]);
    await expect(stream, "started");
    await sleep(2_000);
    const stored = await store(key);
    assert.deepEqual(await received(stream, 1), stored);
    await stream.cancel();
  });
}
