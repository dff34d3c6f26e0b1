// Google's grpc-web, in its default text mode and in its binary mode, over XMLHttpRequest.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import grpcWeb from "grpc-web";
import xhr2 from "xhr2";
import { startBackend } from "./backend.js";
import { Health, Publish, Query } from "./schema.js";
import { describeClient } from "./suite.js";

globalThis.XMLHttpRequest = xhr2.XMLHttpRequest;
const { GrpcWebClientBase, MethodDescriptor, MethodType } = grpcWeb;

const base = await startBackend();

function caller(client) {
  return (method) => {
    const path = `/${method.parent.typeName}/${method.name}`;
    const descriptor = new MethodDescriptor(
      path,
      MethodType.UNARY,
      Object,
      Object,
      (request) => toBinary(method.input, request),
      (bytes) => fromBinary(method.output, bytes),
    );
    return (request) =>
      client.unaryCall(base + path, create(method.input, request), {}, descriptor).catch((error) => {
        const details = error.metadata?.["grpc-status-details-bin"];
        throw { code: error.code, text: error.message, statusDetails: details && Buffer.from(details, "base64"), cause: error };
      });
  };
}

for (const format of ["text", "binary"]) {
  const call = caller(new GrpcWebClientBase({ format, maxReceiveMessageSize: 0 }));
  describeClient(`grpc-web ${format}`, {
    check: call(Health.method.check),
    publish: call(Publish.method.publish),
    query: call(Query.method.query),
    queryNewest: call(Query.method.queryNewest),
  });
}
