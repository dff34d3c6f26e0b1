// @connectrpc/connect-web, the client of most TypeScript applications: binary gRPC-Web over fetch.
import { createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { startBackend } from "./backend.js";
import { Queue } from "./queue.js";
import { Health, Publish, Query, Subscription } from "./schema.js";
import { describeSubscribeStatic } from "./streams.js";
import { describeClient } from "./suite.js";

const transport = createGrpcWebTransport({ baseUrl: await startBackend() });
const [publish, query, health] = [Publish, Query, Health].map((service) => createClient(service, transport));

/** A call whose error has the form that the suite knows. */
function call(method) {
  return (request) =>
    method(request).catch((error) => {
      const details = error.metadata?.get("grpc-status-details-bin");
      throw { code: error.code, statusDetails: details && Buffer.from(details, "base64"), cause: error };
    });
}

describeClient("connect-web", {
  check: call(health.check),
  publish: call(publish.publish),
  query: call(query.query),
  queryNewest: call(query.queryNewest),
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
  read().catch((error) => queue.push({ case: "end", code: error.code }));
  return { next: () => queue.next(), cancel: () => cancelled.abort() };
}

describeSubscribeStatic("connect-web", publish.publish, open);
