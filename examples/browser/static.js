// SubscribeStatic, by @connectrpc/connect-web: one request, and an answer that goes on.
import { createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";

/** Follows one topic. Returns what stops it. */
export function followStatic(service, baseUrl, query, on) {
  const stopped = new AbortController();
  const client = createClient(service, createGrpcWebTransport({ baseUrl }));
  const read = async () => {
    for await (const { response } of client.subscribeStatic({ topics: [query] }, { signal: stopped.signal })) {
      if (response.case === "started") on.following(response.value.targets[0].throughSequenceId);
      if (response.case === "messages") on.envelopes(response.value.envelopes);
      // A keepalive says that the silence is only silence.
    }
    on.ended("The backend has ended the stream.");
  };
  read().catch((error) => {
    if (!stopped.signal.aborted) on.ended(`The stream has failed: ${error.message}`);
  });
  return () => stopped.abort();
}
