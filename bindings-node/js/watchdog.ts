/**
 * Names the handlers that may have held the event loop after they waited: a timer looks whether it comes late, as long
 * as handlers are suspended. What a handler does before it first waits is measured where it is called.
 */
import { type Logger, stalled } from './log.js';

const INTERVAL = 100;
/** How many of several suspended handlers are named. */
const NAMED = 3;

/** What one function of the author's is doing, for one client after another. */
export class Work {
  /** How many of its calls are suspended. */
  suspended = 0;

  constructor(readonly name: string) {}
}

/** Watches the handlers of one client. */
export class Watchdog {
  /** Those that were suspended since the watch began. */
  readonly #seen = new Set<Work>();
  #suspended = 0;
  #timer: NodeJS.Timeout | undefined;
  #due = 0;
  readonly #log: { readonly logger: Logger };

  /** `log` has where the author's messages go. */
  constructor(log: { readonly logger: Logger }) {
    this.#log = log;
  }

  /** A handler was suspended. */
  watch(work: Work): void {
    work.suspended += 1;
    this.#suspended += 1;
    this.#seen.add(work);
    if (this.#timer !== undefined) return;
    this.#due = performance.now() + INTERVAL;
    this.#timer = setInterval(() => this.#look(), INTERVAL).unref();
  }

  /** It is done. */
  done(work: Work): void {
    work.suspended -= 1;
    this.#suspended -= 1;
  }

  /** Who held the loop until now is known: nobody else is to be named for it. */
  excuse(): void {
    this.#due = performance.now() + INTERVAL;
  }

  /** Ends the watch. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#seen.clear();
  }

  #look(): void {
    const now = performance.now();
    const late = now - this.#due;
    this.#due = now + INTERVAL;
    if (this.#suspended === 0) this.stop();
    else if (late > INTERVAL) stalled(this.#log.logger, this.#names(), late);
  }

  #names(): string {
    const names = [...this.#seen].filter((work) => work.suspended > 0).map((work) => work.name);
    const rest = names.length > NAMED ? `, or one of ${names.length - NAMED} more` : '';
    return names.slice(0, NAMED).join(' or ') + rest;
  }
}
