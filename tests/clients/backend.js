// Starts the built backend for one suite, as a person does: with `cargo xtask serve`.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Gives the base address of a backend with fresh state; it is stopped after the suite's last test. */
export async function startBackend() {
  const state = mkdtempSync(join(tmpdir(), "sealog-clients-"));
  const args = ["run", "--quiet", "--package", "xtask", "--", "serve", "--release", "--port", "0", "--state", state];
  // scripts/test runs the suites over one partition, and over as many as the production example has.
  const partitions = process.env.SEALOG_TEST_LOG_PARTITIONS;
  if (partitions) args.push("--var", `LOG_PARTITIONS=${partitions}`);
  const server = spawn("cargo", args, { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  const exited = new Promise((resolve) => server.once("exit", resolve));
  after(async () => {
    server.kill("SIGTERM");
    await exited;
    rmSync(state, { recursive: true });
  });
  const ready = (async () => {
    for await (const line of createInterface({ input: server.stdout })) {
      const match = /^sealog ready on (\S+)$/.exec(line);
      if (match) return match[1];
    }
    throw new Error("the backend ended before it was ready: see its output above");
  })();
  return ready;
}
