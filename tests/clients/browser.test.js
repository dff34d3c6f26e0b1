// What a browser demands before it lets a page call another origin.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startBackend } from "./backend.js";

const base = await startBackend();
const origin = "https://app.example";
const url = `${base}/xmtp.backend.v1.PublishService/Publish`;

const list = (response, header) => (response.headers.get(header) ?? "").toLowerCase().split(/\s*,\s*/);

function assertReadable(response) {
  assert.ok(["*", origin].includes(response.headers.get("access-control-allow-origin")));
  const exposed = list(response, "access-control-expose-headers");
  for (const header of ["grpc-status", "grpc-message", "grpc-status-details-bin"]) assert.ok(exposed.includes(header), header);
}

test("API-285 a preflight allows what gRPC-Web clients send", async () => {
  const asked = ["content-type", "x-grpc-web", "x-user-agent", "grpc-timeout", "authorization"];
  const response = await fetch(url, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": asked.join(","),
    },
  });
  assert.equal(response.status, 204);
  assert.ok(["*", origin].includes(response.headers.get("access-control-allow-origin")));
  assert.ok(list(response, "access-control-allow-methods").includes("post"));
  const allowed = list(response, "access-control-allow-headers");
  for (const header of asked) assert.ok(allowed.includes(header), header);
  assert.ok(Number(response.headers.get("access-control-max-age")) > 0);
});

test("API-285 a page may read every answer, whatever went wrong", async () => {
  const frame = (bytes) => new Uint8Array([0, 0, 0, 0, bytes.length, ...bytes]);
  const post = (path, contentType, body) =>
    fetch(base + path, { method: "POST", headers: { origin, "content-type": contentType }, body });
  const publish = "/xmtp.backend.v1.PublishService/Publish";
  for (const response of [
    await post("/grpc.health.v1.Health/Check", "application/grpc-web+proto", frame([])),
    await post(publish, "application/grpc-web+proto", frame([])),
    await post(publish, "application/grpc-web+proto", frame([0xff])),
    await post(publish, "application/grpc-web+proto", new Uint8Array([0])),
    await post("/xmtp.backend.v1.PublishService/Nothing", "application/grpc-web+proto", frame([])),
    await post(publish, "application/json", "{}"),
    await fetch(url, { headers: { origin } }),
  ]) {
    assertReadable(response);
    await response.arrayBuffer();
  }
});
