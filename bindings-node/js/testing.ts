/**
 * A client in the same process, for an author's own tests: it talks to a server as any client does, in either era.
 *
 * ```ts
 * const client = await Client.connect(server)
 * assert.equal(await client.readText('greeting://world'), 'Hello, world!')
 * client.close()
 * ```
 */
import { binding, type Server } from './binding.js';
import { type Peers, PipeDriver } from './driver.js';
import { translated } from './errors.js';
import type { Lifespan } from './lifespan.js';
import { Completion, Contents } from './results.js';
import { internals, type ResourceServer } from './server.js';

const { TestClient } = binding;

/** The newest revision of the protocol: the one without a handshake. */
const MODERN = '2026-07-28';
const PATIENCE = 5_000;

/** A JSON object of the server's, as it came. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into it as it likes, and fails where it is mistaken
export type Json = { [name: string]: any };

/** How a client is made. */
export interface ClientOptions {
  /** The revision of the protocol to speak; a legacy one begins with its handshake. Default: the newest. */
  revision?: string;
  /** What the client declares. Default: nothing. */
  capabilities?: Json;
}

/** An error that the server answered. */
export class ServerError extends Error {
  override name = 'ServerError';
  /** Its word for what went wrong, if it has one. */
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

/** The server asks for input: `requests` by key. Read again with `inputs` and this `state`. */
export class InputNeeded extends Error {
  override name = 'InputNeeded';

  constructor(
    readonly requests: Json,
    readonly state: string | undefined,
  ) {
    super(Object.keys(requests).join(', '));
  }
}

/** What a notification is. */
export type NotificationKind = 'updated' | 'list_changed' | 'acknowledged' | 'progress' | 'log' | 'cancelled' | 'other';

/** A notification: its kind, the request that it belongs to, and its params. */
export class Notification {
  constructor(
    readonly kind: NotificationKind,
    readonly id: number | undefined,
    readonly params: Json,
  ) {}
}

/** An open listen: the id of its request, and what the server honours of it. */
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
   * The next notification of this listen.
   *
   * @param timeout - milliseconds. Default 5,000.
   * @throws a `TimeoutError`: none came.
   */
  next(timeout = PATIENCE): Promise<Notification> {
    return this.#client.notification(timeout, { of: this.id });
  }

  /** Ends it. */
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

/** A client of one server. */
export class Client {
  /** What the server says of itself: the result of the handshake, or of discovery. */
  serverInfo: Json = {};
  readonly #client: InstanceType<typeof TestClient>;
  readonly #driver: PipeDriver;
  readonly #lifespan: Lifespan;
  #isClosed = false;
  readonly #answers = new Map<number, Answer>();
  readonly #waiting = new Set<Waiting>();
  #notifications: Notification[] = [];

  private constructor(server: ResourceServer, { revision = MODERN, capabilities = {} }: ClientOptions) {
    this.#client = translated(() => new TestClient(revision, JSON.stringify(capabilities)));
    const { native, peers, lifespan } = internals(server);
    this.#lifespan = lifespan;
    this.#driver = new Memory(native, peers, () => this.#receive());
  }

  /**
   * Connects to a server; with a legacy revision, shakes hands.
   *
   * @throws {ServerError} the server refuses.
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

  /** Ends the connection: what is in flight is cancelled, and what waits for an answer fails. */
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
    const gone = new Error('the connection is closed');
    for (const answer of this.#answers.values()) answer.reject(gone);
    this.#answers.clear();
  }

  /** How many requests wait for a handler. */
  get inFlight(): number {
    return this.#driver.channel.inFlight;
  }

  /** All resources, from all pages, with the members that the revision has. */
  listResources(): Promise<Json[]> {
    return this.#pages('list', 'resources');
  }

  /** All templates, from all pages. */
  listTemplates(): Promise<Json[]> {
    return this.#pages('list_templates', 'resourceTemplates');
  }

  /**
   * The contents of a resource. `inputs` are answers by key, given when the server asks for them.
   *
   * @throws {InputNeeded} the server asks for something that `inputs` does not have.
   * @throws {ServerError} the server answered with an error.
   */
  async read(uri: string, { inputs, state }: { inputs?: Json; state?: string | undefined } = {}): Promise<Contents[]> {
    const again = state === undefined ? {} : { inputResponses: inputs ?? {}, requestState: state };
    const result = await this.request('read', { uri, ...again });
    if (Array.isArray(result.contents)) return result.contents.map(contents);
    const needed = new InputNeeded(result.inputRequests ?? {}, result.requestState);
    const isAnswered = inputs !== undefined && Object.keys(needed.requests).every((key) => key in inputs);
    if (!isAnswered || state === needed.state) throw needed;
    return this.read(uri, { inputs, state: needed.state });
  }

  /**
   * The text of a resource that is one text.
   *
   * @throws {ServerError} the server answered with an error.
   */
  async readText(uri: string): Promise<string> {
    const [only, ...others] = await this.read(uri);
    if (typeof only?.body !== 'string' || others.length > 0) throw new TypeError(`${uri} is not a text`);
    return only.body;
  }

  /**
   * Values for a variable of a template. `chosen` are the values of other variables.
   *
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

  /** Asks to hear of changes (legacy revisions). */
  async subscribe(uri: string): Promise<void> {
    await this.request('subscribe', { uri });
  }

  /** Asks to hear of them no longer (legacy revisions). */
  async unsubscribe(uri: string): Promise<void> {
    await this.request('unsubscribe', { uri });
  }

  /**
   * Listens to changes of resources and of the list (revision 2026-07-28).
   *
   * @throws {ServerError} the server refuses.
   */
  async listen(uris: Iterable<string> = [], { listChanged = false } = {}): Promise<Listen> {
    const wanted = { resourceSubscriptions: [...uris], resourcesListChanged: listChanged };
    const { id, answer } = this.send('listen', { notifications: wanted });
    // Its answer comes first only if the server refuses; later it is the end, and nobody waits for it.
    const refused = answer.then(() => Promise.reject(new Error('the listen has ended')));
    refused.catch(() => {});
    const acknowledged = await Promise.race([this.notification(PATIENCE, { of: id }), refused]);
    return new Listen(this, id, acknowledged.params.notifications);
  }

  /**
   * The next notification: of one request, or any.
   *
   * @param timeout - milliseconds. Default 5,000.
   * @throws a `TimeoutError`: none came.
   */
  notification(timeout = PATIENCE, { of }: { of?: number } = {}): Promise<Notification> {
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
   * Sends a request and waits for its result.
   *
   * @param method - a method, or one of ours by its short name, such as `read`, `list` or `set_level`.
   * @throws {ServerError} the server answered with an error.
   */
  request(method: string, params: Json = {}, options: { meta?: Json } = {}): Promise<Json> {
    const { answer } = this.send(method, params, options);
    // The server's timers do not keep the process alive. A test that waits for a handler's time-out must see it.
    const alive = setInterval(() => {}, PATIENCE);
    return answer.finally(() => clearInterval(alive));
  }

  /** Sends a request: its id, and a promise of its result. */
  send(method: string, params: Json = {}, { meta = {} }: { meta?: Json } = {}): { id: number; answer: Promise<Json> } {
    const id = translated(() => this.#client.send(method, JSON.stringify(params), JSON.stringify(meta)));
    return { id, answer: this.#answer(id) };
  }

  /** Takes a request back: it is not answered. */
  cancel(id: number): void {
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

/**
 * The bytes of one connection, without I/O or a clock: for tests of what is said, byte for byte.
 *
 * Its time stands still until `tick`. A handler that waits goes on while `settle` does.
 */
export class Connection {
  readonly #server: Server;
  readonly #driver: PipeDriver;
  #now: readonly [tick: number, unix: number];
  #isClosed = false;

  /**
   * @param server - the server. Its clock is set.
   * @param options - `now`: milliseconds of its clock, and since 1970.
   */
  constructor(server: ResourceServer, { now = [0, 0] }: { now?: readonly [tick: number, unix: number] } = {}) {
    const { native, peers } = internals(server);
    this.#server = native;
    this.#now = now;
    this.#server.setTime(...now);
    this.#driver = new Still(native, peers, { delivers: false });
  }

  /** Takes bytes of the client's, in any chunks. What the server has to write. */
  receive(data: Uint8Array): Promise<Buffer> {
    this.#driver.channel.feed(data);
    return this.settle();
  }

  /** Lets handlers go on as far as they can. What the server has to write. */
  async settle(): Promise<Buffer> {
    for (let turn = 0; turn < 3; turn += 1) await new Promise(setImmediate);
    return this.#isClosed ? Buffer.alloc(0) : this.#driver.channel.take();
  }

  /** Lets so many milliseconds pass. What the server has to write. */
  tick(milliseconds: number): Promise<Buffer> {
    const [tick, unix] = this.#now;
    this.#now = [tick + milliseconds, unix + milliseconds];
    this.#server.setTime(...this.#now);
    this.#driver.channel.timer();
    return this.settle();
  }

  /** Notifications that wait: a message is begun while fewer than `room` bytes are taken. */
  deliver(room = 1 << 20): Buffer {
    this.#driver.channel.deliver(room);
    return this.#driver.channel.take();
  }

  /** The end of input. What the server has to write. */
  end(): Promise<Buffer> {
    this.#driver.channel.end();
    return this.settle();
  }

  /** Ends the connection: what is in flight is cancelled. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#driver.release();
    await this.settle();
  }

  /** Whether it was closed. */
  get closed(): boolean {
    return this.#isClosed;
  }

  /** How many requests wait for a handler. */
  get inFlight(): number {
    return this.#driver.channel.inFlight;
  }
}

/** The loop behind a channel whose output is taken in the same process. */
class Memory extends PipeDriver {
  readonly #output: () => void;

  constructor(server: Server, peers: Peers, output: () => void) {
    super(server, peers);
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
