// What every client must be able to do, whatever transport it speaks. A client under test is a set of functions that call one
// method each and resolve to its answer, or reject with { code, text, statusDetails }: the gRPC status, its message as the client
// shows it, and the bytes of the trailer grpc-status-details-bin.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { toBinary } from "@bufbuild/protobuf";
import { Reason, message, publishError } from "./schema.js";
import { commitLogEntry, commitLogTopic, randomBytes, welcome, welcomeTopic } from "./envelopes.js";

const INVALID_ARGUMENT = 3;
const OUT_OF_RANGE = 11;

async function failure(promise) {
  return promise.then(
    () => assert.fail("the call succeeded"),
    (error) => error,
  );
}

export function describeClient(name, client) {
  test(`${name}: the health service answers SERVING`, async () => {
    assert.equal((await client.check({ service: "" })).status, 1);
  });

  test(`${name}: API-202 API-211 API-212 API-221 a published envelope is read back whole, with its metadata`, async () => {
    const [first, second] = [randomBytes(32), randomBytes(32)];
    const envelopes = [welcome(first), welcome(second), welcome(first)];
    const { envelopeMetas } = await client.publish({ envelopes });
    assert.deepEqual(
      envelopeMetas.map((meta) => meta.topic),
      [first, second, first].map(welcomeTopic),
    );
    const topic = welcomeTopic(first);
    const page = await client.query({ queries: [{ topic }] });
    assert.deepEqual(
      page.envelopes.map((stored) => stored.meta),
      [envelopeMetas[0], envelopeMetas[2]],
    );
    assert.deepEqual(
      page.envelopes.map((stored) => stored.envelope),
      [envelopes[0], envelopes[2]],
    );
    assert.equal(page.continuation.hasMore, false);
    const digest = createHash("sha256").update(toBinary(message("ClientEnvelope"), envelopes[0])).digest();
    assert.deepEqual(Buffer.from(envelopeMetas[0].messageHash.hash.value), digest);
  });

  test(`${name}: API-222 a repeated publish gets the stored metadata`, async () => {
    const request = { envelopes: [welcome()] };
    assert.deepEqual(await client.publish(request), await client.publish(request));
  });

  test(`${name}: API-240 a page starts above the cursor and says whether more follows`, async () => {
    const key = randomBytes(32);
    const { envelopeMetas } = await client.publish({ envelopes: [welcome(key), welcome(key), welcome(key)] });
    const queries = [{ topic: welcomeTopic(key), cursor: envelopeMetas[0].cursor }];
    const page = await client.query({ queries, limit: 1 });
    assert.deepEqual(
      page.envelopes.map((stored) => stored.meta),
      [envelopeMetas[1]],
    );
    assert.equal(page.continuation.hasMore, true);
  });

  test(`${name}: API-244 API-245 QueryNewest finds the newest envelope of each topic`, async () => {
    const key = randomBytes(32);
    const newest = welcome(key);
    const { envelopeMetas } = await client.publish({ envelopes: [welcome(key), newest] });
    const topics = [welcomeTopic(key), welcomeTopic(randomBytes(32))];
    const full = await client.queryNewest({ topics, includeFullEnvelope: true });
    const found = full.results.filter((result) => result.meta);
    assert.equal(found.length, 1);
    assert.deepEqual(found[0].topic, topics[0]);
    assert.deepEqual(found[0].meta, envelopeMetas[1]);
    assert.deepEqual(found[0].envelope, newest);
    const brief = await client.queryNewest({ topics, includeFullEnvelope: false });
    assert.ok(brief.results.every((result) => !result.envelope));
  });

  test(`${name}: API-223 API-230 a refused envelope is named in the PublishError`, async () => {
    const error = await failure(client.publish({ envelopes: [welcome(), welcome(randomBytes(31))] }));
    assert.equal(error.code, INVALID_ARGUMENT);
    const detail = publishError(error.statusDetails);
    assert.equal(detail.code, INVALID_ARGUMENT);
    assert.equal(detail.index, 1);
    assert.equal(detail.reason, Reason.MALFORMED_PAYLOAD);
    assert.match(detail.message, /\w+ \w+/);
    assert.equal(error.text, detail.message, "the client decodes grpc-message");
  });

  test(`${name}: API-223 a request of more topics than max_publish_topics fails as a whole`, async () => {
    const error = await failure(client.publish({ envelopes: Array.from({ length: 1001 }, () => welcome()) }));
    assert.equal(error.code, INVALID_ARGUMENT);
    const { index, reason } = publishError(error.statusDetails);
    assert.deepEqual({ index, reason }, { index: undefined, reason: Reason.TOO_LARGE });
  });

  test(`${name}: API-210 API-230 a commit-log entry goes to the commit log of its group`, async () => {
    const groupId = randomBytes(16);
    const envelope = commitLogEntry(groupId);
    const { envelopeMetas } = await client.publish({ envelopes: [envelope] });
    assert.deepEqual(envelopeMetas[0].topic, commitLogTopic(groupId));
    assert.equal(envelopeMetas[0].expiryNs, 0n);
    const page = await client.query({ queries: [{ topic: commitLogTopic(groupId) }] });
    assert.deepEqual(page.envelopes[0].envelope, envelope);
  });

  test(`${name}: API-281 API-282 a request over the ceiling is OUT_OF_RANGE, one of 25 envelopes of 1 MB is stored`, async () => {
    const envelopes = Array.from({ length: 25 }, () => welcome(randomBytes(32), new Uint8Array(1_000_000)));
    assert.equal((await client.publish({ envelopes })).envelopeMetas.length, 25);
    const error = await failure(client.publish({ envelopes: [...envelopes, ...envelopes.slice(0, 2)] }));
    assert.equal(error.code, OUT_OF_RANGE);
  });
}
