// What a stream brought, in order, for a test that asks one by one.

/** How long a test waits for what must come, in milliseconds. */
const PATIENCE = 20_000;

export class Queue {
  #items = [];
  #waiting = [];

  push(item) {
    const waiting = this.#waiting.shift();
    if (waiting) waiting(item);
    else this.#items.push(item);
  }

  /** The next item; fails when none comes in time. */
  next() {
    if (this.#items.length > 0) return Promise.resolve(this.#items.shift());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("the stream brought nothing in time")), PATIENCE);
      this.#waiting.push((item) => {
        clearTimeout(timer);
        resolve(item);
      });
    });
  }
}
