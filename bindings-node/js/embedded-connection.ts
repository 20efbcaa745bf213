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
  type OutputFields,
  type Quick,
  TakenBy,
} from './binding.js';
import { ScopedDriver, type ServerParts } from './driver.js';
import { translated } from './errors.js';
import { failed, warned } from './log.js';
import type { Extra, LowServer, Message, Receive, Send, Transport } from './sdk-types.js';

/** The event loop of all clients of a server of the SDK, as the compiled part uses it. */
export class EmbeddedDriver extends ScopedDriver {
  readonly native: Embedding;
  readonly answers: Answers;
  readonly quick: Quick;
  readonly #name: string;
  #last = 0;

  /** @throws {RegistrationError} the server is part of another one already. */
  constructor(name: string, { native, peers }: ServerParts, adopt: boolean) {
    super(peers);
    this.#name = name;
    this.native = translated(() =>
      this.connect((number, drive) => new binding.Embedding(native, number, drive, adopt), { held: false }),
    );
    this.answers = this.native.answers;
    this.quick = this.answers.quick();
  }

  /** A number for a request or a transport. */
  number(): number {
    this.#last += 1;
    return this.#last;
  }

  /** Logs a sentence, and what the core has found. */
  warn(...sentences: string[]): void {
    for (const text of [...sentences, ...this.native.warnings()]) warned(this.logger, this.#name, text);
  }

  protected override work(): void {
    this.native.work();
  }

  protected override onTimer(): void {
    this.native.timer();
  }
}

/** One transport of a server of the SDK. */
export class EmbeddedConnection {
  readonly #driver: EmbeddedDriver;
  readonly #server: LowServer;
  readonly #transport: Transport;
  readonly #native: EmbeddedTransport;
  readonly #send: Send;
  /** Sends what no channel of `serveStdio` may sort. */
  readonly #notify: Send;
  readonly #number: number;
  /** What the transport said of the requests that the core answers, by their numbers. */
  readonly #calls = new Map<number, Extra | undefined>();
  #theirs: Receive | undefined;
  #isSending = false;
  #isClosed = false;

  /** `isModern`: each request stands for itself, although the server has not agreed on a revision. */
  constructor(driver: EmbeddedDriver, server: LowServer, transport: Transport, isModern = false) {
    this.#driver = driver;
    this.#server = server;
    this.#transport = transport;
    this.#number = driver.number();
    this.#native = new binding.EmbeddedTransport(driver.native, this.#number, isModern);
    driver.bells.set(this.#number, () => void this.#flush());
    this.#send = transport.send.bind(transport);
    this.#notify = transport._wire?.send.bind(transport._wire) ?? this.#send;
    transport.send = (message, options) => this.#sent(message, options);
  }

  /** Takes the place of the server, which listens to its transport and is about to start it. */
  listen(): void {
    const { _wire: wire, onmessage, onclose } = this.#transport;
    this.#theirs = onmessage;
    this.#transport.onmessage = (message, extra) => {
      if (!this.take(message, extra)) onmessage?.(message, extra);
    };
    this.#transport.onclose = () => {
      this.close();
      onclose?.();
    };
    const before = wire?.onmessage;
    if (wire === undefined || before === undefined) return;
    // `serveStdio` answers listens before a server gets them.
    wire.onmessage = (message, extra) => {
      if (!this.take(message, extra, true)) before.call(wire, message, extra);
    };
  }

  /** Answers a message, or returns `false`: then it goes to the SDK. `isEarly`: it comes again if it is not ours. */
  take(message: Message, extra?: Extra, isEarly = false): boolean {
    const { id, method } = message;
    if (method === undefined || this.#isClosed) return false;
    if (!this.#driver.native.concerns(method, id !== undefined)) return false;
    const number = this.#driver.number();
    const fields = {
      method,
      isRequest: id !== undefined,
      isEarly,
      isHttp: (extra?.requestInfo ?? extra?.request) !== undefined,
      hasSession: this.#transport.sessionId !== undefined,
      version: this.#server.getNegotiatedProtocolVersion?.() ?? '',
      ...sender(extra),
    };
    const by = this.#native.take(fields, number, () => JSON.stringify(message));
    if (by !== TakenBy.Theirs) {
      this.#calls.set(number, extra);
      // The context in which the SDK received it.
      this.#driver.scopes.keep(number);
    }
    // A notification may have cancelled a request.
    if (by === TakenBy.Ours || id === undefined) void this.#flush();
    return by === TakenBy.Ours;
  }

  /** Ends with the transport: requests are cancelled, and nothing is kept. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const number of this.#calls.keys()) this.#end(number);
    this.#driver.bells.delete(this.#number);
    this.#native.close();
  }

  /** Sends what there is to send, as fast as the client takes it: of changes that wait meanwhile, one mark is kept. */
  async #flush(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (let out = this.#native.next(); out !== null && !this.#isClosed; out = this.#native.next()) {
        const extra = this.#calls.get(out.call);
        if (out.isLast) this.#end(out.call);
        if (typeof out.text === 'string') await this.#output(out, extra);
      }
    } finally {
      this.#isSending = false;
    }
  }

  async #output(out: OutputFields, extra: Extra | undefined): Promise<void> {
    try {
      const message: Message = JSON.parse(out.text ?? '');
      if (out.isForServer) this.#theirs?.(message, extra);
      else if (out.isLast) await this.#send(message);
      else await this.#notify(message, related(out.related));
    } catch (error) {
      this.#end(out.call);
      this.#native.end(out.call);
      if (!this.#isClosed && out.call !== this.#number) failed(this.#driver.logger, 'attach', 'an answer', error);
    }
  }

  #end(number: number): void {
    this.#calls.delete(number);
    this.#driver.scopes.ended(number);
    this.#driver.warn();
  }

  /** Sends a message of the SDK's server, unless it is meant for this server. */
  #sent(message: Message, options?: Parameters<Send>[1]): Promise<void> {
    const { id, method } = message;
    // Neither a change, nor for a question of ours.
    if (this.#calls.size === 0 && (method === undefined || id !== undefined)) return this.#send(message, options);
    const text = (): string => JSON.stringify(message);
    const sent = this.#native.sent(method, json(id), json(options?.relatedRequestId), text);
    if (!sent.isTaken) return this.#send(message, { ...options, ...related(sent.related) });
    void this.#flush();
    return Promise.resolve();
  }
}

function json(id: string | number | undefined): string | undefined {
  return id === undefined ? undefined : JSON.stringify(id);
}

/** The options to send a message in the stream of the request with this id, as JSON text. */
function related(id: string | null | undefined): Parameters<Send>[1] {
  return typeof id === 'string' ? { relatedRequestId: JSON.parse(id) } : undefined;
}

/** The owner of the token of a message. */
function sender(extra: Extra | undefined): { readonly owner?: string; readonly scopes?: string[] } {
  const info = extra?.authInfo;
  if (info === undefined) return {};
  const subject = info.extra?.sub;
  return { owner: typeof subject === 'string' ? subject : String(info.clientId), scopes: [...(info.scopes ?? [])] };
}
