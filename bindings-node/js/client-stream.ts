/** The iterators of a client: lists, changes of a resource, changes of lists. */
import { type Arrival, ArrivalKind, type NativeStream, type ScopeFields } from './binding.js';
import type { CallOptions } from './client-options.js';
import { scopeOf, type Wire } from './client-wire.js';

/** Where a stream comes from. */
export interface Origin<T> {
  /** Makes the compiled half, when the first value is asked for; progress is to arrive under `number`. */
  readonly open: (scope: ScopeFields, number: number) => NativeStream | Promise<NativeStream>;
  /** Converts an arrival to values. */
  readonly values: (arrival: Arrival) => readonly T[];
  readonly options: CallOptions;
}

/**
 * Values as they come. Begins with the first `next`; `return`, which `break` in a `for await` calls, ends it, also while
 * somebody waits for `next`. While somebody does, the process stays alive.
 */
export class Stream<T> implements AsyncIterableIterator<T> {
  readonly #wire: Wire;
  readonly #origin: Origin<T>;
  #native: NativeStream | undefined;
  #ready: T[] = [];
  /** The last `next` that had to wait. */
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #call: number | undefined;
  #report: number | undefined;
  #isOver = false;

  constructor(wire: Wire, origin: Origin<T>) {
    this.#wire = wire;
    this.#origin = origin;
  }

  /** The next value. */
  next(): Promise<IteratorResult<T, undefined>> {
    if (this.#waiting === 0 && this.#ready.length > 0) return Promise.resolve(this.#take());
    if (this.#isOver) return Promise.resolve({ done: true, value: undefined });
    this.#waiting += 1;
    const next = this.#waiting === 1 ? this.#wait() : this.#turn.then(() => this.#wait());
    this.#turn = next.catch(() => {});
    return next;
  }

  /** Ends it. */
  async return(): Promise<IteratorResult<T, undefined>> {
    this.#end();
    return { done: true, value: undefined };
  }

  /** Ends it, and rejects. */
  async throw(error?: unknown): Promise<never> {
    this.#end();
    throw error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Ends it, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end();
  }

  async #wait(): Promise<IteratorResult<T, undefined>> {
    try {
      while (this.#ready.length === 0 && !this.#isOver) await this.#fetch();
      return this.#ready.length > 0 ? this.#take() : { done: true, value: undefined };
    } catch (error) {
      this.#end();
      throw error;
    } finally {
      this.#waiting -= 1;
    }
  }

  async #fetch(): Promise<void> {
    const { values, options } = this.#origin;
    options.signal?.throwIfAborted();
    const native = this.#native ?? (await this.#open());
    if (this.#isOver) {
      native.close();
      return;
    }
    this.#native = native;
    const start = (call: number): void => {
      this.#call = call;
      native.next(call);
    };
    try {
      const arrival = await this.#wire.call(start, (arrival) => arrival, options, true);
      if (arrival.kind === ArrivalKind.Done) this.#end();
      // In turn from the end, as each is taken from there.
      else this.#ready = [...values(arrival)].reverse();
    } finally {
      this.#call = undefined;
    }
  }

  #open(): NativeStream | Promise<NativeStream> {
    const { open, options } = this.#origin;
    const { onProgress } = options;
    if (onProgress !== undefined) this.#report = this.#wire.report(onProgress);
    return open(scopeOf(options), this.#report ?? 0);
  }

  #take(): IteratorResult<T, undefined> {
    return { done: false, value: this.#ready.pop() as T };
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#ready = [];
    if (this.#call !== undefined) this.#wire.done(this.#call);
    if (this.#report !== undefined) this.#wire.reported(this.#report);
    this.#native?.close();
  }
}
