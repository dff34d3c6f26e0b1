// Subscribe, by @improbable-eng/grpc-web over its WebSocket: topics may change while the stream runs.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";

const { grpc } = globalThis;

/** Follows one topic. Returns what stops it. */
export function followSubscribe(service, host, query, on) {
  const method = service.method.subscribe;
  const client = grpc.client(
    {
      methodName: method.name,
      service: { serviceName: service.typeName },
      requestStream: true,
      responseStream: true,
      requestType: class {},
      responseType: { deserializeBinary: (bytes) => fromBinary(method.output, bytes) },
    },
    { host, transport: grpc.WebsocketTransport() },
  );
  const send = (request) => {
    const bytes = toBinary(method.input, create(method.input, { request }));
    client.send({ serializeBinary: () => bytes });
  };
  client.onMessage(({ response }) => {
    if (response.case === "started") send({ case: "update", value: { id: 1n, adds: [query] } });
    if (response.case === "applied") on.following(response.value.addedTargets[0].throughSequenceId);
    if (response.case === "messages") on.envelopes(response.value.envelopes);
    // Whoever does not answer is taken for gone.
    if (response.case === "ping") send({ case: "pong", value: { nonce: response.value.nonce } });
  });
  client.onEnd((code, message) =>
    on.ended(code === grpc.Code.OK ? "The backend has ended the stream." : `The stream has failed: ${message}`),
  );
  client.start();
  return () => client.close();
}
