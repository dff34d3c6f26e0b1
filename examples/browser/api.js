// The messages and services of the API, from the descriptors that the backend's build leaves: no code is generated.
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

export async function loadApi(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  const descriptors = new Uint8Array(await response.arrayBuffer());
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors));
  return {
    envelope: registry.getMessage("xmtp.backend.v1.ClientEnvelope"),
    subscription: registry.getService("xmtp.backend.v1.SubscriptionService"),
  };
}
