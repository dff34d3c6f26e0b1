// @improbable-eng/grpc-web: unary calls over fetch, Subscribe over its WebSocket transport.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import improbable from "@improbable-eng/grpc-web";
import { startBackend } from "./backend.js";
import { Queue } from "./queue.js";
import { Publish, Subscription } from "./schema.js";
import { describeSubscribe } from "./streams.js";

const { grpc } = improbable;
const base = await startBackend();
const { publish } = createClient(Publish, createGrpcWebTransport({ baseUrl: base }));

/** A method as this client wants it: with classes that know how to read and write themselves. */
function descriptor(method) {
  return {
    methodName: method.name,
    service: { serviceName: method.parent.typeName },
    requestStream: true,
    responseStream: true,
    requestType: class {},
    responseType: { deserializeBinary: (bytes) => fromBinary(method.output, bytes) },
  };
}

function open() {
  const method = Subscription.method.subscribe;
  const queue = new Queue();
  const client = grpc.client(descriptor(method), { host: base, transport: grpc.WebsocketTransport() });
  client.onMessage((message) => queue.push(message.response));
  client.onEnd((code, text) => queue.push({ case: "end", code, text }));
  client.start(new grpc.Metadata({ "x-test": "yes" }));
  return {
    next: () => queue.next(),
    send: (request) => {
      const bytes = toBinary(method.input, create(method.input, { request }));
      client.send({ serializeBinary: () => bytes });
    },
    halfClose: () => client.finishSend(),
    cancel: () => client.close(),
  };
}

describeSubscribe("improbable-eng", publish, open);
