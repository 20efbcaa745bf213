/**
 * A client in the same process, for your own tests. It sends the same messages to a server as a real client.
 *
 * ```ts
 * const client = await Client.connect(server)
 * assert.equal(await client.readText('greeting://world'), 'Hello, world!')
 * client.close()
 * ```
 */
import type { AsyncResource } from 'node:async_hooks';
import { binding, type SenderFields, type Server } from './binding.js';
import {
  checkOptions,
  checkText,
  FLAG,
  isObject,
  LIST,
  NUMBER,
  OBJECT,
  type Shape,
  said,
  shown,
  TEXT,
  TEXTS,
} from './check.js';
import { type Peers, PipeDriver } from './driver.js';
import { translated } from './errors.js';
import type { Lifespan } from './lifespan.js';
import { scopeHere } from './request-scopes.js';
import { Completion, Contents } from './results.js';
import { internals, ResourceServer } from './server.js';

const { TestClient } = binding;

const CLIENT: Shape<ClientOptions> = {
  revision: TEXT,
  capabilities: OBJECT,
  principal: TEXT,
  scopes: said(TEXTS, 'an array of strings such as ["notes:read"]'),
  claims: OBJECT,
  headers: {
    is: (value) => isObject(value) && Object.values(value).every((text) => typeof text === 'string'),
    expected: 'an object of strings by name such as { "x-tenant": "red" }',
  },
};
const CLIENT_HINTS = {
  auth: 'no token is verified here: say who the client is with `principal`, `scopes` and `claims`',
};

/** The newest revision of the protocol: the one without a handshake. */
const MODERN = '2026-07-28';
/** How long to wait for a notification, in milliseconds. */
const PATIENCE = 5_000;

/** A JSON object of the server, as it was received. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into it as it likes, and fails where it is mistaken
export type Json = { [name: string]: any };

/** The options of {@link Client.connect}. */
export interface ClientOptions {
  /** The protocol revision to use. One before 2026-07-28 begins with a handshake. Default: the newest. */
  revision?: string;
  /** The capabilities that the client declares. Default: none. */
  capabilities?: Json;
  /** The identity that a verified token would have. Default: the local process, as on stdio. */
  principal?: string;
  /** The scopes of the token. Default: none. */
  scopes?: readonly string[];
  /** The claims of the token. Default: none. */
  claims?: Json;
  /** The headers of an HTTP request. Default: none. */
  headers?: Readonly<Record<string, string>>;
}

/** An error response of the server, with its `code`, `message` and `data`. */
export class ServerError extends Error {
  override name = 'ServerError';
  /** The word for the error in its data, such as `not_found`; `undefined` if there is none. */
  readonly kind: string | undefined;

  constructor(
    readonly code: number,
    message: string,
    readonly data: Json,
  ) {
    super(`${message} (${code})`);
    this.kind = data.kind;
  }
}

/** The server asks for input before it answers a read. Repeat the read with `inputs` for these `requests`, and `state`. */
export class InputNeeded extends Error {
  override name = 'InputNeeded';

  constructor(
    readonly requests: Json,
    readonly state: string | undefined,
  ) {
    super(Object.keys(requests).join(', '));
  }
}

/** The kind of a notification. */
export type NotificationKind = 'updated' | 'list_changed' | 'acknowledged' | 'progress' | 'log' | 'cancelled' | 'other';

/** A notification of the server: its kind, the id of the request that it belongs to, and its params. */
export class Notification {
  constructor(
    readonly kind: NotificationKind,
    readonly id: number | undefined,
    readonly params: Json,
  ) {}
}

/** An open listen: the `id` of its request, and `honoured`, the subscriptions that the server accepted. */
export class Listen {
  readonly #client: Client;

  /** Made by {@link Client.listen}. */
  constructor(
    client: Client,
    readonly id: number,
    readonly honoured: Json,
  ) {
    this.#client = client;
  }

  /**
   * Returns the next notification of this listen.
   *
   * @param timeout - how long to wait, in milliseconds. Default 5,000.
   * @throws a `TimeoutError` if none came.
   */
  next(timeout = PATIENCE): Promise<Notification> {
    return this.#client.notification(timeout, { of: this.id });
  }

  /** Ends the listen. */
  close(): void {
    this.#client.cancel(this.id);
  }
}

interface Answer {
  resolve(result: Json): void;
  reject(error: Error): void;
}

interface Waiting {
  of: number | undefined;
  resolve(notification: Notification): void;
}

/** A client of one server, in the same process. Made by {@link Client.connect}. */
export class Client {
  /** The self-description of the server: the result of the handshake or of discovery. */
  serverInfo: Json = {};
  readonly #client: InstanceType<typeof TestClient>;
  readonly #driver: PipeDriver;
  readonly #lifespan: Lifespan;
  #isClosed = false;
  readonly #answers = new Map<number, Answer>();
  readonly #waiting = new Set<Waiting>();
  #notifications: Notification[] = [];

  private constructor(server: ResourceServer, options: ClientOptions) {
    if (!(server instanceof ResourceServer)) {
      const others = 'the Client of mcp-resources takes commands and URLs';
      throw new TypeError(`the server is ${shown(server)}, expected a ResourceServer; ${others}`);
    }
    if (options === undefined) throw new TypeError('write await Client.connect(server) instead of new Client(server)');
    checkOptions('connect', options, CLIENT, CLIENT_HINTS);
    const { revision = MODERN, capabilities = {}, principal = '', scopes = [], claims, headers = {} } = options;
    this.#client = translated(() => new TestClient(revision, JSON.stringify(capabilities)));
    const { native, peers, lifespan } = internals(server);
    this.#lifespan = lifespan;
    const sender = {
      principal,
      scopes: [...scopes],
      headers: Object.entries(headers),
      ...(claims && { claims: JSON.stringify(claims) }),
    };
    this.#driver = new Memory(native, peers, sender, () => this.#receive());
  }

  /**
   * Connects to a server; with a revision before 2026-07-28, performs the handshake.
   *
   * @throws {TypeError} the server is not a `ResourceServer`, or an option is wrong.
   * @throws {ServerError} the server refuses the connection.
   */
  static async connect(server: ResourceServer, options: ClientOptions = {}): Promise<Client> {
    const client = new Client(server, options);
    await client.#begin();
    return client;
  }

  async #begin(): Promise<void> {
    try {
      await this.#lifespan.enter();
    } catch (error) {
      this.#release();
      throw error;
    }
    try {
      const { handshake } = this.#client;
      this.serverInfo = await (handshake == null ? this.request('discover') : this.#answer(handshake));
    } catch (error) {
      this.close();
      throw error;
    }
    this.#write();
  }

  /** Closes the connection: open requests are cancelled, and reject. */
  close(): void {
    this.#release();
    if (!this.#isClosed) this.#lifespan.left(this.#driver.logger);
    this.#isClosed = true;
  }

  /** The same as `close`, for `await using`; waits for `onStop`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#release();
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#lifespan.leave();
  }

  #release(): void {
    this.#driver.release();
    for (const answer of this.#answers.values()) answer.reject(gone());
    this.#answers.clear();
  }

  /** The number of requests that wait for a handler. */
  get inFlight(): number {
    return this.#driver.channel.inFlight;
  }

  /** Lists all resources, from all pages, as the server sent them. */
  listResources(): Promise<Json[]> {
    return this.#pages('list', 'resources');
  }

  /** Lists all templates, from all pages, as the server sent them. */
  listTemplates(): Promise<Json[]> {
    return this.#pages('list_templates', 'resourceTemplates');
  }

  /**
   * Reads a resource. Returns all its contents.
   *
   * @param options - `inputs`: the answers to requests of the server, by their keys; `state`: the state that came with the
   * requests, if the first read was made before.
   * @throws {InputNeeded} the server asks for something that `inputs` does not have.
   * @throws {ServerError} the server answered with an error.
   */
  async read(uri: string, options: { inputs?: Json; state?: string | undefined } = {}): Promise<Contents[]> {
    checkOptions('read', options, { inputs: OBJECT, state: TEXT });
    const { inputs, state } = options;
    const again = state === undefined ? {} : { inputResponses: inputs ?? {}, requestState: state };
    const result = await this.request('read', { uri, ...again });
    if (Array.isArray(result.contents)) return result.contents.map(contents);
    const needed = new InputNeeded(result.inputRequests ?? {}, result.requestState);
    const isAnswered = inputs !== undefined && Object.keys(needed.requests).every((key) => key in inputs);
    if (!isAnswered || state === needed.state) throw needed;
    return this.read(uri, { inputs, state: needed.state });
  }

  /**
   * Reads a resource whose contents are one text. Returns the text.
   *
   * @throws {TypeError} the contents are not one text.
   * @throws {ServerError} the server answered with an error.
   */
  async readText(uri: string): Promise<string> {
    const [only, ...others] = await this.read(uri);
    if (others.length > 0)
      throw new TypeError(`${uri} has ${others.length + 1} contents, expected one text; use read()`);
    if (typeof only?.body !== 'string') throw new TypeError(`${uri} is bytes, not a text; use read()`);
    return only.body;
  }

  /**
   * Completes a variable of a template. Returns the suggested values, best first.
   *
   * @param template - the text of the template.
   * @param variable - the name of the variable.
   * @param value - the text typed so far.
   * @param chosen - the values of other variables that are chosen already. Default: none.
   * @throws {ServerError} the server answered with an error.
   */
  async complete(
    template: string,
    variable: string,
    value: string,
    chosen?: Record<string, string>,
  ): Promise<Completion> {
    const { completion } = await this.request('complete', {
      ref: { type: 'ref/resource', uri: template },
      argument: { name: variable, value },
      ...(chosen === undefined ? {} : { context: { arguments: chosen } }),
    });
    return new Completion(completion.values, { total: completion.total, hasMore: completion.hasMore });
  }

  /** Subscribes to a resource (revisions before 2026-07-28; use {@link Client.listen} for others). */
  async subscribe(uri: string): Promise<void> {
    if (this.#client.handshake == null) {
      throw new Error(`subscribe belongs to revisions before ${MODERN}, which this client uses; use listen([uri])`);
    }
    await this.request('subscribe', { uri });
  }

  /** Ends a subscription (revisions before 2026-07-28). */
  async unsubscribe(uri: string): Promise<void> {
    await this.request('unsubscribe', { uri });
  }

  /**
   * Listens to changes of resources and of the list (revision 2026-07-28; use {@link Client.subscribe} for others).
   *
   * @param uris - the URIs of the resources. Default: none.
   * @param options - `listChanged`: whether to listen to changes of the list. Default `false`.
   * @throws {ServerError} the server refuses.
   */
  async listen(uris: Iterable<string> = [], options: { listChanged?: boolean } = {}): Promise<Listen> {
    checkOptions('listen', options, { listChanged: FLAG });
    const { listChanged = false } = options;
    if (typeof uris === 'string') {
      throw new TypeError(`listen takes an array of URIs, not ${shown(uris)}; write [${shown(uris)}]`);
    }
    if (this.#client.handshake != null) {
      throw new Error(`listen belongs to revision ${MODERN}, and this client uses an older one; use subscribe(uri)`);
    }
    const wanted = { resourceSubscriptions: [...uris], resourcesListChanged: listChanged };
    const { id, answer } = this.send('listen', { notifications: wanted });
    // The answer comes first only if the server refuses. Later it is the end of the listen, and not awaited.
    const refused = answer.then(() => Promise.reject(new Error('the listen has ended')));
    refused.catch(() => {});
    const acknowledged = await Promise.race([this.notification(PATIENCE, { of: id }), refused]);
    return new Listen(this, id, acknowledged.params.notifications);
  }

  /**
   * Returns the next notification.
   *
   * @param timeout - how long to wait, in milliseconds. Default 5,000.
   * @param options - `of`: the id of the request that it must belong to. Default: any.
   * @throws a `TimeoutError` if none came.
   */
  notification(timeout = PATIENCE, options: { of?: number } = {}): Promise<Notification> {
    checkOptions('notification', options, { of: NUMBER });
    const { of } = options;
    const at = this.#notifications.findIndex(({ id }) => of === undefined || id === of);
    const [found] = at < 0 ? [] : this.#notifications.splice(at, 1);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        of,
        resolve: (notification) => {
          clearTimeout(timer);
          resolve(notification);
        },
      };
      const timer = setTimeout(() => {
        this.#waiting.delete(waiting);
        reject(new DOMException(`no notification within ${timeout} ms`, 'TimeoutError'));
      }, timeout);
      this.#waiting.add(waiting);
    });
  }

  /**
   * Sends a request. Returns its result.
   *
   * @param method - a method, or the short name of a method of this library, such as `read`, `list` or `set_level`.
   * @param params - its params. Default: empty.
   * @param options - `meta`: members of `_meta`. Default: none.
   * @throws {ServerError} the server answered with an error.
   */
  request(method: string, params: Json = {}, options: { meta?: Json } = {}): Promise<Json> {
    const { answer } = this.send(method, params, options);
    // The server's timers do not keep the process alive. A test that waits for a handler's time-out must see it.
    const alive = setInterval(() => {}, PATIENCE);
    return answer.finally(() => clearInterval(alive));
  }

  /** Sends a request. Returns its id, and a promise of its result. */
  send(method: string, params: Json = {}, options: { meta?: Json } = {}): { id: number; answer: Promise<Json> } {
    checkOptions('send', options, { meta: OBJECT });
    const { meta = {} } = options;
    if (this.#isClosed) throw gone();
    checkText('method', method, 'read');
    const id = translated(() => this.#client.send(method, JSON.stringify(params), JSON.stringify(meta)));
    return { id, answer: this.#answer(id) };
  }

  /** Cancels a request. Its promise stays pending. */
  cancel(id: number): void {
    if (this.#isClosed) return;
    this.#answers.delete(id);
    this.#client.cancel(id);
    this.#write();
  }

  async #pages(ask: string, member: string): Promise<Json[]> {
    const items: Json[] = [];
    for (let cursor: string | undefined; ; ) {
      const page = await this.request(ask, cursor === undefined ? {} : { cursor });
      items.push(...page[member]);
      cursor = page.nextCursor;
      if (cursor === undefined) return items;
    }
  }

  #answer(id: number): Promise<Json> {
    const answer = new Promise<Json>((resolve, reject) => this.#answers.set(id, { resolve, reject }));
    this.#write();
    return answer;
  }

  #write(): void {
    this.#driver.channel.feed(this.#client.output());
  }

  #receive(): void {
    for (const { kind, id, body } of this.#client.received(this.#driver.channel.take())) {
      this.#take(kind, id ?? undefined, JSON.parse(body));
    }
  }

  #take(kind: string, id: number | undefined, content: Json): void {
    if (kind !== 'result' && kind !== 'error') {
      this.#tell(new Notification(kind as NotificationKind, id, content));
      return;
    }
    const answer = id === undefined ? undefined : this.#answers.get(id);
    if (id !== undefined) this.#answers.delete(id);
    if (kind === 'result') answer?.resolve(content);
    else answer?.reject(new ServerError(content.code, content.message, content.data ?? {}));
  }

  #tell(notification: Notification): void {
    for (const waiting of this.#waiting) {
      if (waiting.of !== undefined && waiting.of !== notification.id) continue;
      this.#waiting.delete(waiting);
      waiting.resolve(notification);
      return;
    }
    this.#notifications.push(notification);
  }
}

/** The error for a call after `close`. */
function gone(): Error {
  return new Error('the client is closed; make another with Client.connect(server)');
}

/**
 * The bytes of one connection, without I/O or a clock, for tests of the exact bytes.
 *
 * Time passes only with `tick`. Handlers that wait continue during `settle`.
 */
export class Connection {
  readonly #server: Server;
  readonly #driver: PipeDriver;
  #now: readonly [tick: number, unix: number];
  #isClosed = false;

  /**
   * @param server - the server. Its clock is replaced.
   * @param options - `now`: the time of its clock, as milliseconds of a steady clock and since 1970. Default: both 0.
   */
  constructor(server: ResourceServer, options: { now?: readonly [tick: number, unix: number] } = {}) {
    checkOptions('Connection', options, { now: LIST });
    const { now = [0, 0] } = options;
    const { native, peers } = internals(server);
    this.#server = native;
    this.#now = now;
    this.#server.setTime(...now);
    this.#driver = new Still(native, peers, { delivers: false });
  }

  /** Passes bytes of the client to the server, in any chunks. Returns the bytes that the server writes. */
  receive(data: Uint8Array): Promise<Buffer> {
    this.#driver.channel.feed(data);
    return this.settle();
  }

  /** Lets handlers continue as far as they can. Returns the bytes that the server writes. */
  async settle(): Promise<Buffer> {
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
    return this.#isClosed ? Buffer.alloc(0) : this.#driver.channel.take();
  }

  /** Lets time pass, in milliseconds. Returns the bytes that the server writes. */
  tick(milliseconds: number): Promise<Buffer> {
    const [tick, unix] = this.#now;
    this.#now = [tick + milliseconds, unix + milliseconds];
    this.#server.setTime(...this.#now);
    this.#driver.channel.timer();
    return this.settle();
  }

  /** Returns pending notifications: a further one is added while there are fewer than `room` bytes. */
  deliver(room = 1 << 20): Buffer {
    this.#driver.channel.deliver(room);
    return this.#driver.channel.take();
  }

  /** Ends the input. Returns the bytes that the server writes. */
  end(): Promise<Buffer> {
    this.#driver.channel.end();
    return this.settle();
  }

  /** Closes the connection: open requests are cancelled. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#driver.release();
    await this.settle();
  }

  /** Whether the connection was closed. */
  get closed(): boolean {
    return this.#isClosed;
  }

  /** The number of requests that wait for a handler. */
  get inFlight(): number {
    return this.#driver.channel.inFlight;
  }
}

/** The loop behind a channel whose output is taken in the same process. */
class Memory extends PipeDriver {
  /** That of the test, where it sends a request. */
  override scope(): AsyncResource {
    return scopeHere();
  }

  readonly #output: () => void;

  constructor(server: Server, peers: Peers, sender: SenderFields, output: () => void) {
    super(server, peers, { sender });
    this.#output = output;
  }

  protected override output(): void {
    this.#output();
  }
}

/** The same, where time stands still and output waits to be taken. */
class Still extends PipeDriver {
  protected override alarm(): void {}

  protected override soon(): void {}
}

function contents(entry: Json): Contents {
  const body = 'text' in entry ? entry.text : Buffer.from(entry.blob, 'base64');
  return new Contents(body, { uri: entry.uri, mimeType: entry.mimeType, meta: entry._meta });
}
