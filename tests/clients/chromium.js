// A headless Chromium, spoken to in its DevTools protocol over Node's own WebSocket.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

const FLAGS = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--remote-debugging-port=0"];

/** Starts a browser for one suite; it is stopped after the suite's last test. */
export async function startChromium() {
  const profile = mkdtempSync(join(tmpdir(), "sealog-chromium-"));
  // Chromium refuses to run as root inside its sandbox; containers often are root.
  const flags = process.getuid?.() === 0 ? [...FLAGS, "--no-sandbox"] : FLAGS;
  const browser = spawn("chromium", [...flags, `--user-data-dir=${profile}`, "about:blank"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = new Promise((resolve) => browser.once("exit", resolve));
  after(async () => {
    browser.kill("SIGKILL");
    await exited;
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  return new Browser(await connect(await address(browser)));
}

async function address(browser) {
  const failed = new Promise((_, reject) => browser.once("error", reject));
  const listening = (async () => {
    for await (const line of createInterface({ input: browser.stderr })) {
      const match = /^DevTools listening on (ws:\S+)$/.exec(line);
      if (match) return match[1];
    }
    throw new Error("Chromium ended before it was ready");
  })();
  return Promise.race([failed, listening]);
}

async function connect(url) {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  return socket;
}

class Browser {
  #socket;
  #answers = new Map();
  #last = 0;

  constructor(socket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const { id, result, error } = JSON.parse(data);
      const { resolve, reject } = this.#answers.get(id) ?? {};
      if (error) reject?.(new Error(error.message));
      else resolve?.(result);
      this.#answers.delete(id);
    };
  }

  command(method, params, sessionId) {
    const id = ++this.#last;
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    return new Promise((resolve, reject) => this.#answers.set(id, { resolve, reject }));
  }

  /** Opens a page, and gives a function that evaluates an expression in it, promises awaited. */
  async open(url) {
    const { targetId } = await this.command("Target.createTarget", { url });
    const { sessionId } = await this.command("Target.attachToTarget", { targetId, flatten: true });
    const evaluate = async (expression) => {
      const params = { expression, awaitPromise: true, returnByValue: true };
      const { result, exceptionDetails } = await this.command("Runtime.evaluate", params, sessionId);
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    };
    // The target begins with an empty page, and forgets what was done in it.
    const loaded = 'location.href !== "about:blank" && document.readyState === "complete"';
    while (!(await evaluate(loaded).catch(() => false))) await sleep(20);
    return evaluate;
  }
}
