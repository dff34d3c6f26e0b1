// @connectrpc/connect-web, the client of most TypeScript applications: binary gRPC-Web over fetch.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { startBackend } from "./backend.js";
import { randomBytes, welcome } from "./envelopes.js";
import { Queue } from "./queue.js";
import { Health, Publish, Query, Reason, Subscription, message } from "./schema.js";
import { describeSubscribeStatic } from "./streams.js";
import { describeClient } from "./suite.js";

const transport = createGrpcWebTransport({ baseUrl: await startBackend() });
const [publish, query, health] = [Publish, Query, Health].map((service) => createClient(service, transport));

/** A call whose error has the form that the suite knows. */
function call(method) {
  return (request) =>
    method(request).catch((error) => {
      const details = error.metadata?.get("grpc-status-details-bin");
      throw { code: error.code, text: error.rawMessage, statusDetails: details && Buffer.from(details, "base64"), cause: error };
    });
}

describeClient("connect-web", {
  check: call(health.check),
  publish: call(publish.publish),
  query: call(query.query),
  queryNewest: call(query.queryNewest),
});

test("connect-web: API-223 an application finds the PublishError among the details of its error", async () => {
  const refused = publish.publish({ envelopes: [welcome(), welcome(randomBytes(31))] });
  const error = await refused.then(() => assert.fail("the call succeeded"), ConnectError.from);
  const [{ index, reason }, ...others] = error.findDetails(message("PublishError"));
  assert.deepEqual({ index, reason, others }, { index: 1, reason: Reason.MALFORMED_PAYLOAD, others: [] });
});

/** A static stream, read as far as the test asks. */
async function open(topics) {
  const cancelled = new AbortController();
  const queue = new Queue();
  const { subscribeStatic } = createClient(Subscription, transport);
  const read = async () => {
    for await (const message of subscribeStatic({ topics }, { signal: cancelled.signal })) queue.push(message.response);
    queue.push({ case: "end", code: 0 });
  };
  read().catch((error) => queue.push({ case: "end", code: error.code, text: error.rawMessage }));
  return { next: () => queue.next(), cancel: () => cancelled.abort() };
}

describeSubscribeStatic("connect-web", publish.publish, open);
