/** What the compiled part asks of an event loop, for one client. */
import { binding, type Channel, type Quick, type Server } from './binding.js';
import { AskFailed, translated } from './errors.js';
import { held, misused } from './log.js';
import type { JsonObject } from './results.js';
import { Watchdog, type Work } from './watchdog.js';

/** What the event loop must do: the numbers of `bindings-node/src/link.rs`. */
const READ = 0;
const OUTPUT = 1;
const ALARM = 2;
const FLUSH = 3;
const ENDED = 4;
const IDLE = 5;
const CANCELLED = 6;
const LOG_HELD = 7;
const LOG_MISUSE = 8;
const REPLIED = 9;

/** The clients of one server, by the numbers that functions are called with. */
export class Peers {
  readonly #drivers: (Driver | undefined)[] = [];

  /** The driver with this number; one that is closed serves nobody. */
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

/** One client. Subclasses say where input comes from and where output goes. */
export class Driver {
  readonly channel: Channel;
  /** What is called with each message. */
  readonly quick: Quick;
  /** Whether the channel is closed. */
  isReleased = false;
  readonly #peers: Peers;
  readonly #number: number;
  readonly #watchdog = new Watchdog();
  readonly #cancelled = new Map<number, (() => void)[]>();
  readonly #asks = new Map<number, { resolve: (result: JsonObject) => void; reject: (error: AskFailed) => void }>();
  #timer: NodeJS.Timeout | undefined;

  /** `buffer` is what input is read into, for `quick.received`. */
  constructor(server: Server, peers: Peers, { stdio = false, delivers = true, buffer = new Uint8Array() } = {}) {
    this.#peers = peers;
    this.#number = peers.join(this);
    try {
      const drive = (need: number, value: number, text: string | null) => this.#drive(need, value, text);
      this.channel = new binding.Channel(server, this.#number, drive, stdio, delivers);
      this.quick = this.channel.quick(buffer);
    } catch (error) {
      peers.leave(this.#number);
      throw error;
    }
  }

  /** A handler is at work that has not answered. */
  suspended(work: Work): void {
    this.#watchdog.watch(work);
  }

  /** A suspended handler is done. */
  resumed(request: number, work: Work): void {
    this.#watchdog.done(work);
    if (this.#cancelled.size > 0) this.#cancelled.delete(request);
  }

  /** Calls back when nobody waits for the answer any longer, unless the handler is done before. */
  whenCancelled(request: number, callback: () => void): void {
    const before = this.#cancelled.get(request);
    if (before === undefined) this.#cancelled.set(request, [callback]);
    else before.push(callback);
  }

  /** Asks a client of a legacy revision: its result, or `AskFailed`. */
  ask(method: string, params: string): Promise<JsonObject> {
    return new Promise((resolve, reject) => {
      const ask = translated(() => this.channel.request(method, params));
      this.#asks.set(ask, { resolve, reject });
    });
  }

  /** Closes the channel: what is in flight is cancelled. */
  release(): void {
    this.isReleased = true;
    clearTimeout(this.#timer);
    this.#watchdog.stop();
    this.channel.close();
    this.#cancelled.clear();
    this.#peers.leave(this.#number);
  }

  /** Reads input, or no longer. */
  protected read(_wanted: boolean): void {}

  /** There is something to take. */
  protected output(): void {}

  /** Calls `timer` after a while, instead of when it was asked to before. */
  protected alarm(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.channel.timer(), milliseconds).unref();
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

  readonly #flush = (): void => this.quick.flush();

  #reply(isResult: boolean, ask: number, text: string | null): void {
    const waiting = this.#asks.get(ask);
    this.#asks.delete(ask);
    if (text === null) waiting?.reject(new AskFailed('the client did not answer'));
    else if (isResult) waiting?.resolve(JSON.parse(text));
    else {
      const { message, code } = JSON.parse(text);
      waiting?.reject(new AskFailed(`the client refused: ${message}`, code));
    }
  }

  #drive(need: number, value: number, text: string | null): void {
    switch (need) {
      case READ:
        this.read(value === 1);
        break;
      case OUTPUT:
        this.output();
        break;
      case ALARM:
        this.alarm(value);
        break;
      case FLUSH:
        this.soon(value === 1);
        break;
      case ENDED:
        this.ended();
        break;
      case IDLE:
        this.idle();
        break;
      case CANCELLED:
        for (const callback of this.#cancelled.get(value) ?? []) callback();
        this.#cancelled.delete(value);
        break;
      case LOG_HELD:
        this.#watchdog.excuse();
        held(text ?? '', value);
        break;
      case LOG_MISUSE:
        misused(text ?? '');
        break;
      default:
        this.#reply(need === REPLIED, value, text);
    }
  }
}
