/**
 * One transport of a server of the SDK: what its client sends goes to the core or to the SDK.
 *
 * Law: this module carries messages between the SDK and the core.
 */
import {
  type Answers,
  binding,
  type EmbeddedTransport,
  type Embedding,
  OutputSide,
  type Quick,
  type Server,
  TakenBy,
} from './binding.js';
import { type Peers, ScopedDriver } from './driver.js';
import { translated } from './errors.js';
import { failed } from './log.js';
import type { Extra, LowServer, Message, Receive, Send, Transport } from './sdk-types.js';

/** The event loop of all clients of a server of the SDK, as the compiled part uses it. */
export class EmbeddedDriver extends ScopedDriver {
  readonly native: Embedding;
  readonly answers: Answers;
  readonly quick: Quick;
  #last = 0;

  /** @throws {RegistrationError} the server is part of another one already. */
  constructor(server: Server, peers: Peers, adopt: boolean) {
    super(peers);
    const make = () =>
      this.connect((number, drive) => new binding.Embedding(server, number, drive, adopt), { held: false });
    this.native = translated(make);
    this.answers = this.native.answers;
    this.quick = this.answers.quick();
  }

  /** A number for a request or a session. */
  number(): number {
    this.#last += 1;
    return this.#last;
  }

  protected override work(): void {
    this.native.work();
  }

  protected override onTimer(): void {
    this.native.timer();
  }
}

/** What all transports of attached servers share. */
export interface ConnectionOwner {
  readonly driver: EmbeddedDriver;
  /** Logs what the core has found. */
  warn(): void;
}

/** A request that the core answers. */
interface Call {
  readonly message: Message;
  readonly extra: Extra | undefined;
  isRunning: boolean;
}

/** One transport of a server of the SDK. */
export class EmbeddedConnection {
  readonly #owner: ConnectionOwner;
  readonly #server: LowServer;
  readonly #transport: Transport;
  readonly #native: EmbeddedTransport;
  readonly #send: Send;
  /** Sends what no channel of `serveStdio` may sort. */
  readonly #notify: Send;
  readonly #calls = new Map<number, Call>();
  readonly #session: number;
  #theirs: Receive | undefined;
  #isDelivering = false;
  #isClosed = false;

  /** `isModern`: each request stands for itself, although the server has not agreed on a revision. */
  constructor(owner: ConnectionOwner, server: LowServer, transport: Transport, isModern = false) {
    this.#owner = owner;
    this.#server = server;
    this.#transport = transport;
    this.#session = owner.driver.number();
    this.#native = new binding.EmbeddedTransport(owner.driver.native, this.#session, isModern);
    owner.driver.bells.set(this.#session, () => void this.#deliver());
    this.#send = transport.send.bind(transport);
    const wire = transport._wire;
    this.#notify = wire === undefined ? this.#send : wire.send.bind(wire);
    transport.send = (message, options) => this.#sent(message, options);
    const receive: Receive = (message, extra) => {
      if (!this.take(message, extra)) this.#theirs?.(message, extra);
    };
    const took = (theirs: Receive | undefined): void => {
      this.#theirs = theirs;
    };
    slot(transport, 'onmessage', () => this.#theirs && receive, took);
    let closed = transport.onclose;
    const closes = (theirs: (() => void) | undefined): void => {
      closed = () => {
        this.close();
        theirs?.();
      };
    };
    slot(transport, 'onclose', () => closed, closes);
    const before = wire?.onmessage;
    if (wire === undefined || before === undefined) return;
    wire.onmessage = (message, extra) => {
      if (!this.take(message, extra, true)) before.call(wire, message, extra);
    };
  }

  /** Answers a message, or returns `false`: then it goes to the SDK. `isEarly`: it comes again if it is not ours. */
  take(message: Message, extra?: Extra, isEarly = false): boolean {
    const { id, method } = message;
    if (method === undefined || this.#isClosed) return false;
    const { driver } = this.#owner;
    const number = driver.number();
    const fields = {
      method,
      isRequest: id !== undefined,
      isEarly,
      isHttp: (extra?.requestInfo ?? extra?.request) !== undefined,
      hasSession: this.#transport.sessionId !== undefined,
      version: this.#server.getNegotiatedProtocolVersion?.() ?? '',
      ...sender(extra),
    };
    const { by, cancelled } = this.#native.take(fields, number, () => JSON.stringify(message));
    if (cancelled !== undefined) void this.#run(cancelled);
    if (by === TakenBy.Theirs) return false;
    this.#calls.set(number, { message, extra, isRunning: false });
    // The context in which the SDK received it.
    driver.scopes.keep(number);
    if (by === TakenBy.Both) return false;
    void this.#run(number);
    return true;
  }

  /** Ends with the transport: requests are cancelled, and nothing is kept. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const number of [this.#session, ...this.#calls.keys()]) this.#end(number);
    this.#native.close();
  }

  /** Sends what there is to send for a request, as fast as the client takes it. */
  async #run(number: number): Promise<void> {
    const call = this.#calls.get(number);
    if (call === undefined || call.isRunning) return;
    call.isRunning = true;
    try {
      for (let out = this.#native.next(number); out !== null && !this.#isClosed; out = this.#native.next(number)) {
        if (out.isLast) this.#end(number);
        if (typeof out.text !== 'string') continue;
        const message: Message = JSON.parse(out.text);
        if (out.to === OutputSide.Server) this.#theirs?.(message, call.extra);
        else if (out.isLast) await this.#send(message);
        else await this.#notify(message, { relatedRequestId: call.message.id ?? '' });
      }
      if (this.#calls.has(number)) this.#owner.driver.bells.set(number, () => void this.#run(number));
    } catch (error) {
      this.#end(number);
      this.#native.end(number);
      if (!this.#isClosed) failed(this.#owner.driver.logger, 'attach', call.message.method ?? '', error);
    } finally {
      call.isRunning = false;
    }
  }

  #end(number: number): void {
    this.#calls.delete(number);
    this.#owner.driver.bells.delete(number);
    this.#owner.driver.scopes.ended(number);
    this.#owner.warn();
  }

  /** Sends notifications of the session as fast as the client reads: what waits meanwhile is one mark for each resource. */
  async #deliver(): Promise<void> {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    try {
      for (let texts = this.#native.deliver(); texts.length > 0 && !this.#isClosed; texts = this.#native.deliver()) {
        for (const text of texts) await this.#notify(JSON.parse(text));
      }
    } catch {
      // The client is gone.
    } finally {
      this.#isDelivering = false;
    }
  }

  /** Sends a message of the SDK's server, unless it is meant for this server. */
  async #sent(message: Message, options?: Parameters<Send>[1]): Promise<void> {
    const { id, method, params } = message;
    if (method !== undefined) {
      if (id === undefined && this.#native.changed(method, () => JSON.stringify(params ?? {}))) return;
    } else if (id !== undefined && this.#calls.size > 0) {
      const number = this.#native.answered(JSON.stringify(id), () => JSON.stringify(message));
      if (number !== null) {
        void this.#run(number);
        return;
      }
    }
    const related = this.#calls.size === 0 ? undefined : options?.relatedRequestId;
    const own = related === undefined ? null : this.#native.related(JSON.stringify(related));
    await this.#send(message, own === null ? options : { ...options, relatedRequestId: JSON.parse(own) });
  }
}

/** The owner of the token of a message. */
function sender(extra: Extra | undefined): { readonly owner?: string; readonly scopes?: string[] } {
  const info = extra?.authInfo;
  if (info === undefined) return {};
  const subject = info.extra?.sub;
  return { owner: typeof subject === 'string' ? subject : String(info.clientId), scopes: [...(info.scopes ?? [])] };
}

/** Puts a property before the one that a transport has, which still sees what is set. */
function slot<K extends 'onmessage' | 'onclose'>(
  transport: Transport,
  name: K,
  get: () => Transport[K],
  set: (value: Transport[K]) => void,
): void {
  let owner: object | null = transport;
  let below: PropertyDescriptor | undefined;
  while (owner !== null && below === undefined) {
    below = Object.getOwnPropertyDescriptor(owner, name);
    owner = Object.getPrototypeOf(owner);
  }
  const replaced = (value: Transport[K]): void => {
    set(value);
    below?.set?.call(transport, get());
  };
  Object.defineProperty(transport, name, { configurable: true, enumerable: true, get, set: replaced });
  if (name === 'onclose') replaced(get());
}
