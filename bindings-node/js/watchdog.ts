/**
 * Names the handlers that may have held the event loop after they waited: a timer looks whether it comes late, as long
 * as handlers are suspended. What a handler does before it first waits is measured where it is called.
 */
import { stalled } from './log.js';

const INTERVAL = 100;
/** How many of several suspended handlers are named. */
const NAMED = 3;

/** Watches the handlers of one client. */
export class Watchdog {
  readonly #suspended = new Map<number, string>();
  #timer: NodeJS.Timeout | undefined;
  #due = 0;

  /** A handler was suspended. */
  watch(request: number, name: string): void {
    this.#suspended.set(request, name);
    if (this.#timer !== undefined) return;
    this.#due = performance.now() + INTERVAL;
    this.#timer = setInterval(() => this.#look(), INTERVAL).unref();
  }

  /** It is done. */
  done(request: number): void {
    this.#suspended.delete(request);
  }

  /** Who held the loop until now is known: nobody else is to be named for it. */
  excuse(): void {
    this.#due = performance.now() + INTERVAL;
  }

  /** Ends the watch. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    const now = performance.now();
    const late = now - this.#due;
    this.#due = now + INTERVAL;
    if (this.#suspended.size === 0) {
      this.stop();
      return;
    }
    if (late > INTERVAL) stalled(this.#names(), late);
  }

  #names(): string {
    const names = [...new Set(this.#suspended.values())];
    const rest = names.length > NAMED ? `, or one of ${names.length - NAMED} more` : '';
    return names.slice(0, NAMED).join(' or ') + rest;
  }
}
