/** The event loop as the compiled part uses it, for one client or for all clients of an HTTP endpoint. */
import type { AsyncResource } from 'node:async_hooks';
import {
  type Answers,
  binding,
  type Channel,
  type Embedding,
  LoopTask,
  type Quick,
  type QuickInput,
  type SenderFields,
  type Server,
} from './binding.js';
import { AskFailedError } from './errors.js';
import type { ToJson } from './json.js';
import type { Lifespan } from './lifespan.js';
import { held, type Logger, misused, refused } from './log.js';
import type { Redact } from './options.js';
import { RequestScopes, scopeFrom, scopeHere } from './request-scopes.js';
import { Watchdog, type Work } from './watchdog.js';

/** Called by the compiled part with an action, a number and a text. */
export type Drive = (task: LoopTask, value: number, text: string | null) => void;

/** Who waits for the answer of a client. */
interface QuestionSource {
  readonly resolve: (result: unknown) => void;
  readonly reject: (why: AskFailedError) => void;
}

/** Functions that the compiled part no longer holds, and their owners. */
const RELEASED = new FinalizationRegistry<{ readonly peers: WeakRef<Peers>; readonly number: number }>(
  ({ peers, number }) => peers.deref()?.forget(number),
);

/** The drivers of one server, by the numbers that functions are called with, and these functions. */
export class Peers {
  /** Looks at contents before they are encoded. */
  redact: Redact | undefined;
  /** Converts values without a JSON form. */
  json: ToJson | undefined;
  /** Takes log messages. */
  logger: Logger = console;
  /** What `onStart` returned. */
  lifespan: unknown;
  readonly #drivers: (Driver | undefined)[] = [];
  readonly #functions = new Map<number, unknown>();
  #last = 0;

  /** Keeps a function alive as long as the compiled part holds `run` and this object is alive. */
  keep(called: unknown, run: object): void {
    this.#last += 1;
    this.#functions.set(this.#last, called);
    RELEASED.register(run, { peers: new WeakRef(this), number: this.#last });
  }

  /** Keeps it no longer. */
  forget(number: number): void {
    this.#functions.delete(number);
  }

  /** The driver with this number; `undefined` if it was closed. */
  at(number: number): Driver | undefined {
    return this.#drivers[number];
  }

  /** Takes the first number that is free. */
  join(driver: Driver): number {
    const free = this.#drivers.indexOf(undefined);
    const number = free < 0 ? this.#drivers.length : free;
    this.#drivers[number] = driver;
    return number;
  }

  /** Frees a number. */
  leave(number: number): void {
    this.#drivers[number] = undefined;
  }
}

/** The internal parts of a server. */
export interface ServerParts {
  readonly native: Server;
  readonly peers: Peers;
  readonly lifespan: Lifespan;
}

/** The answers of handlers, and the events that they wait for. */
export abstract class Driver {
  /** Takes the answers of handlers. */
  abstract readonly answers: Answers;
  /** The functions of `answers` that are called for each message. */
  abstract readonly quick: Quick;
  /** Whether it is closed. */
  isReleased = false;
  protected readonly watchdog: Watchdog;
  readonly #peers: Peers;
  readonly #number: number;
  readonly #cancelled = new Map<number, (() => void)[]>();
  readonly #questions = new Map<number, QuestionSource>();
  /** The asynchronous context in which serving began. */
  readonly #scope = scopeHere();
  #timer: NodeJS.Timeout | undefined;

  constructor(peers: Peers) {
    this.#peers = peers;
    this.watchdog = new Watchdog(peers);
    this.#number = peers.join(this);
  }

  /** The `redact` function. */
  get redact(): Redact | undefined {
    return this.#peers.redact;
  }

  /** The function that converts values without a JSON form. */
  get json(): ToJson | undefined {
    return this.#peers.json;
  }

  /** Takes log messages. */
  get logger(): Logger {
    return this.#peers.logger;
  }

  /** What `onStart` returned. */
  get lifespan(): unknown {
    return this.#peers.lifespan;
  }

  /** The asynchronous context for the functions that answer a request. */
  scope(_request: number): AsyncResource {
    return scopeFrom(this.#scope);
  }

  /** The same for what a provider has read for the response with this number. */
  scopeOf(_response: number | null): AsyncResource {
    return scopeFrom(this.#scope);
  }

  /** A handler is at work that has not answered. */
  suspended(work: Work): void {
    this.watchdog.watch(work);
  }

  /** A suspended handler is done. */
  resumed(request: number, work: Work): void {
    this.watchdog.done(work);
    if (this.#cancelled.size > 0) this.#cancelled.delete(request);
  }

  /** Calls back when the answer is no longer needed, unless the handler has finished before. */
  whenCancelled(request: number, callback: () => void): void {
    const before = this.#cancelled.get(request);
    if (before === undefined) this.#cancelled.set(request, [callback]);
    else before.push(callback);
  }

  /** The client's answer to a request of a handler. */
  replied(ask: number): Promise<unknown> {
    return new Promise((resolve, reject) => this.#questions.set(ask, { resolve, reject }));
  }

  /** Ends serving. Subclasses close their channel or endpoint. */
  release(): void {
    this.isReleased = true;
    clearTimeout(this.#timer);
    this.watchdog.stop();
    this.#cancelled.clear();
    for (const ask of [...this.#questions.keys()]) this.#reply(ask, null);
    this.#peers.leave(this.#number);
  }

  /**
   * Connects the compiled part, with the number of this driver; it is not to be left behind if that fails. One that is
   * `held` is kept by the compiled part until it is released; any other by the code that has requests for it.
   */
  protected connect<T>(make: (number: number, drive: Drive) => T, { held = true } = {}): T {
    try {
      return make(this.#number, held ? this.#driven() : Driver.#weaklyDriven(new WeakRef(this)));
    } catch (error) {
      this.#peers.leave(this.#number);
      throw error;
    }
  }

  #driven(): Drive {
    return (task, value, text) => this.#drive(task, value, text);
  }

  /** A separate scope, so that the closure does not keep the driver alive. */
  static #weaklyDriven(own: WeakRef<Driver>): Drive {
    return (task, value, text) => {
      const driver = own.deref();
      if (driver !== undefined) driver.#drive(task, value, text);
    };
  }

  /** Actions that only some drivers have. */
  protected abstract task(task: LoopTask, value: number, text: string): void;

  /** It is time. */
  protected abstract onTimer(): void;

  /** Rings after a while, instead of when it was asked to before. */
  protected alarm(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.onTimer(), milliseconds).unref();
  }

  #drive(task: LoopTask, value: number, text: string | null): void {
    switch (task) {
      case LoopTask.Alarm:
        this.alarm(value);
        break;
      case LoopTask.Cancelled:
        for (const callback of this.#cancelled.get(value) ?? []) callback();
        this.#cancelled.delete(value);
        break;
      case LoopTask.LogHeld:
        this.watchdog.excuse();
        held(this.logger, text ?? '', value);
        break;
      case LoopTask.LogMisuse:
        misused(this.logger, text ?? '');
        break;
      case LoopTask.LogRefused:
        refused(this.logger, text ?? '');
        break;
      case LoopTask.Replied:
        this.#reply(value, text);
        break;
      case LoopTask.Refused:
        this.#refuse(value, text ?? '{}');
        break;
      default:
        this.task(task, value, text ?? '');
    }
  }

  #reply(ask: number, result: string | null): void {
    const source = this.#source(ask);
    if (result === null) source?.reject(new AskFailedError('the client did not answer'));
    else source?.resolve(JSON.parse(result));
  }

  #refuse(ask: number, error: string): void {
    const { message, code } = JSON.parse(error) as { message?: string; code?: number };
    this.#source(ask)?.reject(new AskFailedError(`the client refused: ${message}`, code));
  }

  #source(ask: number): QuestionSource | undefined {
    const source = this.#questions.get(ask);
    this.#questions.delete(ask);
    return source;
  }
}

/** How a pipe is served: `sender` sends its messages, `before`: it is in front of a server of an SDK. */
interface PipeOptions {
  readonly stdio?: boolean;
  readonly delivers?: boolean;
  readonly buffer?: Uint8Array;
  readonly sender?: SenderFields | undefined;
  readonly before?: Embedding;
}

/** One client. Subclasses say where input comes from and where output goes. */
export class PipeDriver extends Driver {
  readonly channel: Channel;
  readonly answers: Answers;
  readonly quick: Quick;
  /** The functions that are called for each message. */
  readonly input: QuickInput;

  /** `buffer` takes the input, for `input.received`. */
  constructor(
    server: Server,
    peers: Peers,
    { stdio = false, delivers = true, buffer = new Uint8Array(), sender, before }: PipeOptions = {},
  ) {
    super(peers);
    this.channel = this.connect(
      (number, drive) => new binding.Channel(server, number, drive, stdio, delivers, sender, before),
    );
    this.answers = this.channel.answers;
    this.quick = this.answers.quick();
    this.input = this.channel.quick(buffer);
  }

  /** Closes the channel and cancels open requests. */
  override release(): void {
    this.isReleased = true;
    this.watchdog.stop();
    this.channel.close();
    super.release();
  }

  /** Reads input, or no longer. */
  protected read(_wanted: boolean): void {}

  /** There is something to take. */
  protected output(): void {}

  protected override onTimer(): void {
    this.channel.timer();
  }

  /** Flushes: once this turn of the loop has done its work, or already once settled promises have answered. */
  protected soon(thisTurn: boolean): void {
    if (thisTurn) queueMicrotask(this.#flush);
    else setImmediate(this.#flush);
  }

  /** The client has closed its end, or is gone. */
  protected ended(): void {}

  /** After the end: nothing is in flight, and all is written. */
  protected idle(): void {}

  /** Lines wait for the server of the SDK behind the pipe. */
  protected lines(): void {}

  protected override task(task: LoopTask, value: number): void {
    if (task === LoopTask.Read) this.read(value === 1);
    else if (task === LoopTask.Output) this.output();
    else if (task === LoopTask.Flush) this.soon(value === 1);
    else if (task === LoopTask.Ended) this.ended();
    else if (task === LoopTask.Idle) this.idle();
    else if (task === LoopTask.Lines) this.lines();
  }

  readonly #flush = (): void => this.input.flush();
}

/** All clients of an HTTP endpoint. */
export abstract class WebDriver extends Driver {
  protected override task(task: LoopTask, value: number, text: string): void {
    if (task === LoopTask.Deliver) this.onDeliver(value);
    else if (task === LoopTask.Work) queueMicrotask(() => this.work());
    else if (task === LoopTask.Verify) this.verify(value, text);
    else if (task === LoopTask.Ended) this.ended();
  }

  /** Does the work that other threads have queued for the loop. */
  protected abstract work(): void;

  /** There is something to deliver on this response. */
  protected onDeliver(_response: number): void {}

  /** A token is to be verified. */
  protected verify(_asked: number, _token: string): void {}

  /** The server has stopped. */
  protected ended(): void {}
}

/** All clients of an endpoint, or of another server: each request is answered in its own asynchronous context. */
export abstract class ScopedDriver extends WebDriver {
  /** The asynchronous contexts, by the numbers of responses. */
  readonly scopes = new RequestScopes();
  /** The functions to call when there is something to deliver, by the numbers of responses. */
  readonly bells = new Map<number, () => void>();

  override scope(request: number): AsyncResource {
    return this.scopes.of(this.answers.responseOf(request));
  }

  override scopeOf(response: number | null): AsyncResource {
    return this.scopes.of(response);
  }

  protected override onDeliver(response: number): void {
    this.bells.get(response)?.();
  }
}
