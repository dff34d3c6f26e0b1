// The messages and services of the API, from the descriptors that the backend's own build leaves: no code is generated.
import { readFileSync } from "node:fs";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const descriptors = readFileSync(new URL("../../build/descriptors.bin", import.meta.url));
const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors));

/** The schema of a message of the backend's package, or of another. */
export function message(name, package_ = "xmtp.backend.v1") {
  const schema = registry.getMessage(`${package_}.${name}`);
  if (!schema) throw new Error(`no message ${name}`);
  return schema;
}

function service(name) {
  const schema = registry.getService(name);
  if (!schema) throw new Error(`no service ${name}`);
  return schema;
}

export const Publish = service("xmtp.backend.v1.PublishService");
export const Query = service("xmtp.backend.v1.QueryService");
export const Subscription = service("xmtp.backend.v1.SubscriptionService");
export const Health = service("grpc.health.v1.Health");

/** PublishError.Reason */
export const Reason = { MALFORMED_PAYLOAD: 1, TOO_LARGE: 5 };

/** The message of the first detail in a google.rpc.Status, a PublishError. */
export function publishError(statusBytes) {
  const status = fromBinary(message("Status", "google.rpc"), statusBytes);
  const schema = message("PublishError");
  if (status.details[0]?.typeUrl !== `type.googleapis.com/${schema.typeName}`) {
    throw new Error(`the first detail is ${status.details[0]?.typeUrl}`);
  }
  return { code: status.code, ...fromBinary(schema, status.details[0].value) };
}
