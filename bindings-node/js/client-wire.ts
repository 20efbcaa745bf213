/**
 * Numbers the calls of the compiled client and resolves them as answers arrive. An open call keeps the process alive; an idle
 * client does not, and is closed when it is garbage-collected.
 */
import {
  type Arrival,
  ArrivalKind,
  binding,
  type NativeClient,
  type QuickClient,
  type ScopeFields,
} from './binding.js';
import { isBun } from './bun.js';
import { isObject, shown } from './check.js';
import type { Callbacks, CallOptions, ClientFields } from './client-options.js';
import { LentOutputs } from './client-output.js';
import { Progress, Question } from './client-values.js';
import {
  AccessDeniedError,
  type FailureKind,
  InvalidUriError,
  ReadFailedError,
  ResourceNotFoundError,
  translated,
} from './errors.js';
import { jsonText } from './json.js';
import { failed } from './log.js';

interface Call {
  readonly end: (arrival: Arrival) => void;
  readonly reject: (reason: unknown) => void;
  readonly onProgress: CallOptions['onProgress'];
  /** Whether an iteration waits for it, which ends with the client. */
  readonly isNext: boolean;
}

/** The calls of one client. */
export class Wire {
  readonly native: NativeClient;
  readonly quick: QuickClient;
  readonly #callbacks: Callbacks;
  readonly #calls = new Map<number, Call>();
  readonly #reports = new Map<number, NonNullable<CallOptions['onProgress']>>();
  readonly #asked = new Map<number, AbortController>();
  readonly #outputs: LentOutputs;
  /** The name of the server, if there is only one. */
  readonly #server: string | undefined;
  #last = 0;

  constructor(fields: ClientFields, callbacks: Callbacks) {
    this.#callbacks = callbacks;
    this.native = translated(() => new binding.NativeClient(fields, Wire.#looking(new WeakRef(this))));
    this.#outputs = new LentOutputs({
      received: (loan, count) => this.#arrived(this.quick.received(loan, count)),
      returned: (loan) => this.native.returned(loan),
    });
    this.quick = this.native.quick(this.#outputs.buffer, !isBun());
    const { servers } = this.native;
    this.#server = servers.length === 1 ? servers[0] : undefined;
  }

  /** A static method, so that the closure does not keep the client alive. */
  static #looking(own: WeakRef<Wire>): () => void {
    return () => {
      const wire = own.deref();
      if (wire !== undefined) wire.#look();
    };
  }

  /** Makes a call: `start` passes it to the compiled part, `value` converts what arrives to the result. */
  call<T>(
    start: (call: number, scope: ScopeFields | undefined) => void,
    value: (arrival: Arrival) => T,
    options: CallOptions | undefined,
    isNext = false,
  ): Promise<T> {
    this.#last += 1;
    const call = this.#last;
    return new Promise<T>((resolve, reject) => {
      const signal = options?.signal;
      if (signal?.aborted) throw signal.reason;
      translated(() => start(call, options && scopeOf(options)));
      const server = options?.server ?? this.#server;
      const abort = (): void => this.cancel(call, signal?.reason);
      signal?.addEventListener('abort', abort, { once: true });
      const end = (arrival: Arrival): void => {
        signal?.removeEventListener('abort', abort);
        if (arrival.kind === ArrivalKind.Failed) reject(failure(arrival, server));
        else resolve(value(arrival));
      };
      this.#hold(call, { end, reject, onProgress: options?.onProgress, isNext });
    });
  }

  /** Cancels a call, which rejects with `reason`. */
  cancel(call: number, reason: unknown): void {
    const found = this.#release(call);
    if (found === undefined) return;
    this.native.cancel(call);
    found.reject(reason);
  }

  /** Ends the wait of an iteration. */
  done(call: number): void {
    const found = this.#release(call);
    if (found === undefined) return;
    this.native.cancel(call);
    found.end({ id: call, kind: ArrivalKind.Done });
  }

  /** Ends all calls after the client was closed. */
  closed(why: Error): void {
    for (const [call, { isNext }] of this.#calls) {
      if (isNext) this.done(call);
      else this.cancel(call, why);
    }
  }

  /** A number under which progress reports arrive during an iteration. */
  report(onProgress: NonNullable<CallOptions['onProgress']>): number {
    this.#last += 1;
    this.#reports.set(this.#last, onProgress);
    return this.#last;
  }

  /** Removes the number of an iteration that has ended. */
  reported(number: number): void {
    this.#reports.delete(number);
  }

  /** Keeps the process and this object alive during the call. */
  #hold(number: number, call: Call): void {
    if (this.#calls.size === 0) hold(this);
    this.#calls.set(number, call);
  }

  #release(number: number): Call | undefined {
    const call = this.#calls.get(number);
    if (this.#calls.delete(number) && this.#calls.size === 0) release(this);
    return call;
  }

  #look(): void {
    this.#arrived(this.quick.take());
  }

  #arrived(arrivals: readonly Arrival[]): void {
    for (const arrival of arrivals) {
      switch (arrival.kind) {
        case ArrivalKind.Progress:
          this.#progressed(arrival);
          break;
        case ArrivalKind.Question:
          this.#answer(arrival);
          break;
        case ArrivalKind.Withdrawn:
          this.#asked.get(arrival.id)?.abort();
          break;
        case ArrivalKind.Note:
          this.#noted(arrival);
          break;
        case ArrivalKind.Lent:
          this.#outputs.lend(arrival.id, arrival.count ?? -1);
          break;
        case ArrivalKind.Recalled:
          this.#outputs.giveBack(arrival.id);
          break;
        default:
          this.#end(arrival);
      }
    }
  }

  #end(arrival: Arrival): void {
    const call = this.#release(arrival.id);
    try {
      call?.end(arrival);
    } catch (error) {
      call?.reject(error);
    }
  }

  #progressed({ id, count = 0, total, text }: Arrival): void {
    const report = this.#calls.get(id)?.onProgress ?? this.#reports.get(id);
    this.#tell('onProgress', () => report?.(new Progress(count, total, text)));
  }

  #noted({ server = '', text = '' }: Arrival): void {
    this.#tell('onNote', () => this.#callbacks.onNote?.(server, text));
  }

  /** Calls a function of the options whose result is not used. */
  async #tell(name: string, call: () => unknown): Promise<void> {
    try {
      await call();
    } catch (error) {
      failed(this.#callbacks.logger, name, 'the call continues', error);
    }
  }

  async #answer({ id, server = '', word = '', text = '{}', details: [capability = ''] = [] }: Arrival): Promise<void> {
    const controller = new AbortController();
    this.#asked.set(id, controller);
    const question = new Question(server, word, JSON.parse(text), controller.signal);
    try {
      const result = await this.#callbacks.answers.get(capability)?.(question);
      if (!isObject(result)) throw new TypeError(`it is ${shown(result)}, expected an object: the result`);
      this.native.answer(id, jsonText(result), '');
    } catch (error) {
      failed(this.#callbacks.logger, `the answer to ${word}`, `the server "${server}" gets an error`, error);
      this.native.answer(id, undefined, 'the client could not answer');
    } finally {
      this.#asked.delete(id);
    }
  }
}

/** The clients with open calls; while there are some, a timer keeps the process alive. */
const BUSY = new Set<Wire>();
const LONGEST = 2 ** 31 - 1;
let alive: NodeJS.Timeout | undefined;

function hold(wire: Wire): void {
  if (BUSY.size === 0) {
    alive ??= setInterval(() => {}, LONGEST);
    alive.ref();
  }
  BUSY.add(wire);
}

function release(wire: Wire): void {
  BUSY.delete(wire);
  if (BUSY.size === 0) alive?.unref();
}

/** The options of a call as the compiled part takes them. */
export function scopeOf({ server, timeout, onProgress }: CallOptions): ScopeFields {
  return {
    ...(server !== undefined && { server }),
    ...(timeout !== undefined && { timeout }),
    ...(onProgress !== undefined && { progress: true }),
  };
}

/** The error for an arrival. */
export function failure(arrival: Arrival, server: string | undefined): Error {
  const { text = '', word, uri, count, details } = arrival;
  switch (word) {
    case 'not_found':
      return Object.assign(new ResourceNotFoundError(text), { uri });
    case 'access_denied':
      return Object.assign(new AccessDeniedError(text), { uri });
    case 'invalid_uri':
      return Object.assign(new InvalidUriError(text), { uri });
    default:
      return new ReadFailedError(text, word as FailureKind, {
        ...(count !== undefined && { code: count }),
        ...(details?.[0] !== undefined && { data: JSON.parse(details[0]) }),
        ...(server !== undefined && { server }),
      });
  }
}
