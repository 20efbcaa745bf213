/**
 * Logs the handlers that may have blocked the event loop after their first wait: a timer checks whether it is late, as long
 * as handlers are suspended. The time before the first wait is measured where the handler is called.
 */
import { type Logger, stalled } from './log.js';

const INTERVAL = 100;
/** The most suspended handlers that are named. */
const NAMED = 3;

/** One function, and its suspended calls. */
export class Work {
  /** How many of its calls are suspended. */
  suspended = 0;

  constructor(readonly name: string) {}
}

/** Watches the handlers of one client. */
export class Watchdog {
  /** The functions that were suspended since checking began. */
  readonly #seen = new Set<Work>();
  #suspended = 0;
  #timer: NodeJS.Timeout | undefined;
  #due = 0;
  readonly #log: { readonly logger: Logger };

  /** `log` has the logger. */
  constructor(log: { readonly logger: Logger }) {
    this.#log = log;
  }

  /** Starts checking, after a handler was suspended. */
  watch(work: Work): void {
    work.suspended += 1;
    this.#suspended += 1;
    this.#seen.add(work);
    if (this.#timer !== undefined) return;
    this.#due = performance.now() + INTERVAL;
    this.#timer = setInterval(() => this.#look(), INTERVAL).unref();
  }

  /** Ends the suspension of a handler. */
  done(work: Work): void {
    work.suspended -= 1;
    this.#suspended -= 1;
  }

  /** Restarts the interval after a handler was logged, so that no other one is blamed. */
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
