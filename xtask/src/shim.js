// The entry module of the worker, in front of the glue that wasm-bindgen generates.
//
// One wasm instance serves every request and every Durable Object of the isolate. A Rust panic traps it; a JavaScript exception
// that nobody caught skips the destructors of the frames that it passes. Either way its memory is not to be trusted again. So
//   - every call in flight fails at once (left alone, the promise of a trapped future never settles),
//   - every object with a call in flight is aborted: the platform then rolls back what the broken event wrote and had not yet
//     committed, which it does not do for an ordinary exception,
//   - the next call gets a fresh instance, and an idle object rebuilds its Rust half from its constructor's arguments.
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import * as glue from "./glue.js";

/** `criticalError` is set by the panic hook of the `worker` crate, `instanceId` raised by its start function. */
const state = glue.__worker_init_state();

/** One function for each call in flight, which fails it. */
const inFlight = new Set();

/** Fails the calls in flight when the instance that serves them is gone. */
class InstanceReset extends Error {
  constructor(cause) {
    super(`the wasm instance was reset: ${cause?.message ?? cause}`);
    this.name = "InstanceReset";
  }
}

function reset(cause) {
  state.criticalError = true;
  const error = new InstanceReset(cause);
  for (const fail of inFlight) fail(error);
  inFlight.clear();
  return error;
}

// What escapes from a future that was woken later surfaces here: no caller of ours is on its stack.
addEventListener("error", (event) => reset(event.error));

/** Runs `enter`, which calls into a sound instance. What it returns settles, whatever happens to that instance. */
function call(enter) {
  if (state.criticalError) {
    reset("it panicked"); // whatever a trap left in flight that nobody saw, for example in the executor of a promise
    glue.__wbg_reset_state();
    state.criticalError = false;
  }
  let result;
  try {
    result = enter();
  } catch (error) {
    throw reset(error);
  }
  if (typeof result?.then !== "function") return result;
  return new Promise((resolve, reject) => {
    inFlight.add(reject);
    const settle = (how) => (outcome) => {
      inFlight.delete(reject);
      how(outcome);
    };
    result.then(settle(resolve), settle(reject));
  });
}

/** Methods of the Rust types that nobody calls from outside. */
const NOT_EXPOSED = new Set(["constructor", "free", "finished"]);

/** The Durable Object class around the Rust type `Inner`. */
function durableObject(Inner) {
  class Outer extends DurableObject {
    #inner;
    #instanceId;

    constructor(ctx, env) {
      super(ctx, env);
      call(() => this.#current());
    }

    /** The Rust half, made anew when the instance that held it is gone. */
    #current() {
      if (this.#instanceId !== state.instanceId) {
        this.#inner = new Inner(this.ctx, this.env);
        this.#instanceId = state.instanceId;
      }
      return this.#inner;
    }

    async #call(method, args) {
      try {
        return await call(() => this.#current()[method](...args));
      } catch (error) {
        if (error instanceof InstanceReset) this.ctx.abort(error.message);
        throw error;
      }
    }

    static expose(method) {
      this.prototype[method] = function (...args) {
        const result = this.#call(method, args);
        // An answer may go on after it was given: then the object is in flight until it has `finished`.
        if (method === "fetch" && Inner.prototype.finished) {
          result.then(() => this.#call("finished", [])).catch(() => {}); // who called hears of a failure of `fetch` itself
        }
        return result;
      };
    }
  }
  for (const method of Object.getOwnPropertyNames(Inner.prototype)) {
    if (!NOT_EXPOSED.has(method) && !method.startsWith("__")) Outer.expose(method);
  }
  return Outer;
}

/** The answer to a call that was lost with its instance, for a gRPC-Web client of any origin. It may call again. */
function unavailable(request) {
  return new Response(null, {
    headers: {
      "content-type": request.headers.get("content-type") ?? "application/grpc-web+proto",
      "grpc-status": "14",
      "grpc-message": "the backend was reset; call again",
      "access-control-allow-origin": "*",
      "access-control-expose-headers": "grpc-status, grpc-message",
    },
  });
}

export default class extends WorkerEntrypoint {
  async fetch(request) {
    try {
      return await call(() => glue.fetch(request, this.env, this.ctx));
    } catch (error) {
      if (error instanceof InstanceReset) return unavailable(request);
      throw error;
    }
  }
}

export const Sequencer = durableObject(glue.Sequencer);
export const LogPartition = durableObject(glue.LogPartition);
export const Directory = durableObject(glue.Directory);
export const Session = durableObject(glue.Session);
