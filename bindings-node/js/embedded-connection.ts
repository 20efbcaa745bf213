/**
 * One transport of a server of the SDK: what its client sends goes to the core or to the SDK.
 *
 * Law: this module carries values between the SDK and the core.
 */
import { binding, type EmbeddedSession, type MessageSender, SortedBy, type StepFields, StepKind } from './binding.js';
import type { EmbeddedDriver } from './embedded.js';
import { failed } from './log.js';
import type { Extra, LowServer, Message, Receive, Send, Transport } from './sdk-types.js';

/** What all transports of attached servers share. */
export interface ConnectionOwner {
  readonly driver: EmbeddedDriver;
  /** The sender of a message. */
  sender(extra: Extra | undefined, isLocal: boolean): MessageSender;
  /** Logs what the core has found. */
  warn(): void;
}

/** A request that the core answers. */
interface Call {
  readonly number: number;
  readonly id: string | number;
  /** The ids of questions to the SDK, with the functions that take their answers. */
  readonly asked: Map<string | number, (answer: Message | undefined) => void>;
  isOver: boolean;
}

/** One transport of a server of the SDK. */
export class EmbeddedConnection {
  readonly #attached: ConnectionOwner;
  readonly #driver: EmbeddedDriver;
  readonly #server: LowServer;
  readonly #transport: Transport;
  readonly #send: Send;
  /** Sends what no channel may sort. */
  readonly #notify: Send;
  /** The calls by the ids of their questions to the SDK, and by those of the client (JSON text). */
  readonly #asked = new Map<string | number, Call>();
  readonly #calls = new Map<string, Call>();
  #theirs: Receive | undefined;
  #session: { readonly core: EmbeddedSession; readonly number: number } | undefined;
  readonly #mustBeModern: boolean;
  #questions = 0;
  #isClosed = false;

  /** `isModern`: each request stands for itself, although the server has not agreed on a revision. */
  constructor(attached: ConnectionOwner, server: LowServer, transport: Transport, isModern = false) {
    this.#mustBeModern = isModern;
    this.#attached = attached;
    this.#driver = attached.driver;
    this.#server = server;
    this.#transport = transport;
    this.#send = transport.send.bind(transport);
    const wire = transport._wire;
    this.#notify = wire === undefined ? this.#send : wire.send.bind(wire);
    transport.send = (message, options) => this.#sent(message, options);
    const receive: Receive = (message, extra) => this.receive(message, extra);
    slot(
      transport,
      'onmessage',
      () => this.#theirs && receive,
      (theirs) => {
        this.#theirs = theirs;
      },
    );
    let closed = transport.onclose;
    slot(
      transport,
      'onclose',
      () => closed,
      (theirs) => {
        closed = () => {
          this.close();
          theirs?.();
        };
      },
    );
    if (wire?.onmessage !== undefined) this.#hookWire(wire, wire.onmessage);
  }

  /** Takes a message of the client. */
  receive(message: Message, extra?: Extra): void {
    if (message.method === undefined || this.#isClosed || !this.take(message, extra)) this.#theirs?.(message, extra);
  }

  /** Ends with the transport: requests are cancelled, and nothing is kept. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const call of [...this.#calls.values()]) this.#cancel(call);
    if (this.#session !== undefined) this.#driver.forget(this.#session.number);
    this.#session?.core.close();
  }

  /** Listens on a pipe that `serveStdio` answers itself. */
  #hookWire(wire: Transport, before: Receive): void {
    wire.onmessage = (message, extra) => {
      const isOurs =
        message.method !== undefined && !this.#isClosed && this.#isModern && this.take(message, extra, true);
      if (!isOurs) before.call(wire, message, extra);
    };
  }

  /** Answers a message, or returns `false`: then it goes to the SDK. `early`: it comes here again if it is not ours. */
  take(message: Message, extra?: Extra, early = false): boolean {
    const { method = '', params } = message;
    const isHttp = (extra?.requestInfo ?? extra?.request) !== undefined;
    const isLocal = !isHttp && this.#transport.sessionId === undefined;
    const sender = this.#attached.sender(extra, isLocal);
    const isRequest = message.id !== undefined;
    const { by, cancels } = this.#driver.native.sort(method, isRequest, sender, () => text(params));
    if (early && (by !== SortedBy.Ours || !isRequest)) return false;
    const cancelled = this.#calls.get(cancels ?? '');
    if (cancelled !== undefined) this.#cancel(cancelled, message);
    if (by === SortedBy.Theirs) return false;
    if (!this.#isModern) this.#session ??= this.#begin(!isHttp || this.#transport.sessionId !== undefined, message);
    if (by === SortedBy.Told) {
      this.#session?.core.tell(method, text(params), sender);
      return false;
    }
    this.#answer(message, extra, sender, by === SortedBy.Both).catch((error) => {
      if (!this.#isClosed) failed(this.#driver.logger, 'attach', method, error);
    });
    return true;
  }

  get #isModern(): boolean {
    return this.#mustBeModern || binding.Embedding.isModern(this.#server.getNegotiatedProtocolVersion?.() ?? '');
  }

  #begin(lasts: boolean, { id: _, method: __, params: ___, ...envelope }: Message) {
    const number = this.#driver.open();
    const version = this.#server.getNegotiatedProtocolVersion?.() ?? '';
    const core = this.#driver.native.connect(version, lasts, lasts ? number : null);
    let isSending = false;
    this.#driver.onBell(number, async () => {
      if (isSending) return;
      isSending = true;
      try {
        // As fast as the client reads: what waits meanwhile is one mark for each resource.
        for (let notices = core.deliver(); notices.length > 0 && !this.#isClosed; notices = core.deliver()) {
          for (const { method, params } of notices) await this.#notify({ ...envelope, method, ...paramsOf(params) });
        }
      } catch {
        // The client is gone.
      } finally {
        isSending = false;
      }
    });
    return { core, number };
  }

  /** Answers a request, in the context in which the SDK received it. */
  async #answer(message: Message, extra: Extra | undefined, sender: MessageSender, both: boolean): Promise<void> {
    const { method = '', params, ...envelope } = message;
    const { id = '', ...bare } = envelope;
    const driver = this.#driver;
    const key = JSON.stringify(id);
    const call: Call = { number: driver.open(), id, asked: new Map(), isOver: false };
    this.#calls.set(key, call);
    const answered = (): void => {
      call.isOver = true;
      if (this.#calls.get(key) === call) this.#calls.delete(key);
    };
    let latest = both ? await this.#ask(call, message, extra) : undefined;
    if (call.isOver) return;
    const session =
      this.#session?.core ?? driver.native.connect(this.#server.getNegotiatedProtocolVersion?.() ?? '', true, null);
    const start = () => session.start(method, text(params), key, sender, call.number, latest && theirs(latest));
    let begun = 0;
    try {
      begun = driver.scopes.arrives(call.number, start);
      driver.scopes.keep(call.number);
      while (!call.isOver) {
        const step = session.next(begun);
        if (step === null) {
          await driver.bell(call.number, () => session.register(begun, call.number));
        } else if (step.kind === StepKind.Send) {
          await this.#notify({ ...bare, method: step.name ?? '', ...paramsOf(step.text) }, { relatedRequestId: id });
        } else if (step.kind === StepKind.Ask) {
          const own = `mcp-resources:${id}:${++this.#questions}`;
          const question = { ...bare, id: own, method: step.name ?? '', ...paramsOf(step.text) };
          latest = await this.#ask(call, question, extra);
          if (latest !== undefined) session.answer(begun, call.number, theirs(latest));
        } else {
          answered();
          await this.#send(step.kind === StepKind.Theirs ? { ...latest, id } : { ...envelope, ...outcome(step) });
        }
      }
    } finally {
      answered();
      session.end(begun);
      if (session !== this.#session?.core) session.close();
      driver.scopes.ended(call.number);
      this.#attached.warn();
    }
  }

  /** Asks the SDK's server on behalf of the client. `undefined` if the request was cancelled. */
  #ask(call: Call, question: Message, extra: Extra | undefined): Promise<Message | undefined> {
    const { id = '' } = question;
    return new Promise((resolve) => {
      this.#asked.set(id, call);
      call.asked.set(id, (answer) => {
        this.#asked.delete(id);
        call.asked.delete(id);
        resolve(answer);
      });
      this.#theirs?.(question, extra);
    });
  }

  /** The client has cancelled a request, by `message`, or is gone. */
  #cancel(call: Call, message?: Message): void {
    call.isOver = true;
    this.#calls.delete(JSON.stringify(call.id));
    for (const [id, take] of [...call.asked]) {
      if (message !== undefined && id !== call.id)
        this.#theirs?.({ ...message, params: renamed(message.params, call.id, id) });
      take(undefined);
    }
    this.#driver.ring(call.number);
  }

  /** Sends a message of the SDK's server, unless it is meant for this server. */
  async #sent(message: Message, options?: Parameters<Send>[1]): Promise<void> {
    const { id, method } = message;
    if (method === undefined) {
      const take = id === undefined ? undefined : this.#asked.get(id)?.asked.get(id);
      return take === undefined ? this.#send(message, options) : take(message);
    }
    if (id === undefined && binding.Embedding.isChange(method)) {
      const isTold = this.#driver.native.changed(method, text(message.params), this.#session?.core ?? null);
      if (isTold) return;
    }
    const call = this.#asked.get(options?.relatedRequestId ?? '');
    return this.#send(message, call === undefined ? options : { ...options, relatedRequestId: call.id });
  }
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

function text(params: unknown): string {
  return params === undefined ? '{}' : JSON.stringify(params);
}

function paramsOf(text: string | null | undefined): { params?: Record<string, unknown> } {
  return typeof text === 'string' ? { params: JSON.parse(text) } : {};
}

/** The answer that a request ends with. */
function outcome({ kind, name, text, code }: StepFields): Pick<Message, 'result' | 'error'> {
  const data = typeof text === 'string' ? JSON.parse(text) : undefined;
  if (kind === StepKind.Result) return { result: data };
  return { error: { code: code ?? 0, message: name ?? '', ...(data !== undefined && { data }) } };
}

/** The SDK's answer as the core takes it. */
function theirs({ result, error }: Message) {
  if (error === undefined) return { result: JSON.stringify(result ?? {}) };
  const { code, message, data } = error;
  return { code, message, ...(data !== undefined && { data: JSON.stringify(data) }) };
}

/** The params with the id of another request. */
function renamed(params: Message['params'], from: string | number, to: string | number): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params ?? {}).map(([name, value]) => [name, value === from ? to : value]));
}
