/**
 * A client of one or many servers: it lists, reads, completes and watches what an allow-list allows.
 *
 * ```ts
 * await using client = Client.fromConfig('agents.yaml', { agent: 'frontend' });
 * for await (const resource of client.list()) console.log(resource.uri);
 * const text = await client.read('file:///project/src/main.rs');
 * for await (const change of client.watch('metrics://cpu/usage')) console.log(change.contents);
 * ```
 */
import type { Arrival, NativeStream, ScopeFields } from './binding.js';
import { isObject, shown } from './check.js';
import { MemoryServer } from './client-memory.js';
import {
  type ClientOptions,
  type ClientTarget,
  ConfigFile,
  type ConfigOptions,
  callbacksOf,
  checkCall,
  checkConfig,
  fieldsOf,
} from './client-options.js';
import { Stream } from './client-stream.js';
import {
  aboutOf,
  allContents,
  type Change,
  changeOf,
  completionOf,
  type ListedResource,
  type ListedTemplate,
  type ReadValue,
  readValue,
  resourcesOf,
  type ServerAbout,
  templatesOf,
} from './client-values.js';
import { type CallOptions, failure, Wire } from './client-wire.js';
import { ReadFailedError } from './errors.js';
import { jsonText } from './json.js';
import type { Completion, Contents, JsonObject } from './results.js';
import { ResourceServer } from './server.js';

/** How a resource is watched. */
export type WatchOptions = Pick<CallOptions, 'server' | 'signal'>;

/**
 * A client of one or many servers.
 *
 * A server is started, or connected to, when it is first needed, and again after a loss. What is not in its allow-list is
 * refused before anything is sent, and left out of what comes back. Contents are kept for the time that the server allows
 * (`ttlMs`), and read again after a change. A call that waits, and an iteration that waits for its next value, keep the
 * process alive; a client that is idle does not. The servers that it has started end with it.
 */
export class Client {
  readonly #wire: Wire;
  readonly #memory: MemoryServer | undefined;
  #closed: Promise<void> | undefined;

  /**
   * A client of one server. Nothing is started or connected to yet.
   *
   * @param server - a command with its arguments, such as `['my-server', '--all']`; a URL, `http://…` or `https://…`; or a
   * `ResourceServer` of this process.
   * @throws {TypeError} an option has a value that it cannot have.
   * @throws {ConfigError} a glob is none, or an option is for another kind of server.
   */
  constructor(server: ClientTarget, options: ClientOptions = {}) {
    this.#wire = new Wire(fieldsOf(server, options), callbacksOf(options));
    if (!(server instanceof ResourceServer)) return;
    const { native } = this.#wire;
    this.#memory = new MemoryServer(server, () => native.openSocket());
  }

  /**
   * A client of the servers of a configuration file (JSON or YAML) with `mcpServers` and `agents`.
   *
   * A server without the key `resources` shows nothing. With `agent`, only the servers that the agent names are there, and
   * its own `resources` alone decide.
   *
   * @throws {ConfigError} the file cannot be read, or says something that cannot be; the message names the key.
   */
  static fromConfig(path: string, options: ConfigOptions = {}): Client {
    checkConfig(path, options);
    const { agent, ...others } = options;
    return new Client(new ConfigFile(path, agent) as never, others);
  }

  /** The names of the servers, in order. */
  get servers(): string[] {
    return this.#wire.native.servers;
  }

  /** The servers that could not be asked for their last list, each with its error. */
  get failures(): ReadonlyMap<string, Error> {
    return new Map(
      this.#wire.native.failures.map((arrival) => [arrival.server ?? '', failure(arrival, arrival.server)]),
    );
  }

  /** Whether it was closed. */
  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /**
   * The resources of all servers, from all pages: those that the allow-lists have. A server that fails does not end the
   * list of many; it is in `failures`. If all fail, the first error is thrown at the end.
   */
  list(options: CallOptions = {}): AsyncIterableIterator<ListedResource> {
    return this.#listed('list()', false, options, resourcesOf);
  }

  /** Lists the templates of all servers that can expand to an allowed URI. Walks all pages, as `list` does. */
  listTemplates(options: CallOptions = {}): AsyncIterableIterator<ListedTemplate> {
    return this.#listed('listTemplates()', true, options, templatesOf);
  }

  /**
   * Reads a resource: the text if it has one text, the bytes if it has one blob, else all contents. Of several servers, those
   * that do not have it are passed over, in the order of their names.
   *
   * @throws {AccessDeniedError} the allow-list does not have the URI; nothing was sent. Or the server refuses it.
   * @throws {ResourceNotFoundError} no server has it.
   * @throws {InvalidUriError} it is not a URI.
   * @throws {ReadFailedError} anything else: see its `kind`.
   */
  read(uri: string, options?: CallOptions): Promise<ReadValue> {
    return this.#read(uri, false, readValue, options);
  }

  /**
   * Reads a resource: all its contents, with their URIs, media types and `_meta`.
   *
   * @throws as `read`.
   */
  readContents(uri: string, options?: CallOptions): Promise<Contents[]> {
    return this.#read(uri, true, allContents, options);
  }

  /**
   * Values for a variable of a template.
   *
   * @param template - the text of the template.
   * @param argument - the name of the variable.
   * @param value - what is typed so far.
   * @param context - values that were chosen for other variables; revisions before 2025-06-18 do not have them.
   * @throws as `read`.
   */
  complete(
    template: string,
    argument: string,
    value = '',
    context: Readonly<Record<string, string>> = {},
    options?: CallOptions,
  ): Promise<Completion> {
    const chosen = Object.entries(context);
    const start = (call: number, scope: ScopeFields | undefined): void =>
      this.#wire.native.complete(call, template, argument, value, chosen, scope);
    return this.#call('complete()', start, completionOf, options);
  }

  /**
   * Watches a resource: first its contents, then its contents after each change; `null` when it is gone, and the watch goes
   * on. A slow reader gets the newest contents, and contents that are as before are not reported again. Ending the iteration
   * ends the subscription. After a loss of the connection the resource is watched and read again.
   *
   * @throws as `read`, from the iteration.
   */
  watch(uri: string, options: WatchOptions = {}): AsyncIterableIterator<Change> {
    checkUri(uri);
    const open = (scope: ScopeFields): NativeStream => this.#wire.native.watch(uri, scope);
    return this.#stream('watch()', open, (arrival) => [changeOf(arrival)], options);
  }

  /** The names of servers whose lists have changed, from now on. */
  listChanges({ signal }: Pick<CallOptions, 'signal'> = {}): AsyncIterableIterator<string> {
    // From now on, and not from the first `next`.
    const native = this.isClosed ? undefined : this.#wire.native.listChanges();
    const open = (): NativeStream => native ?? this.#wire.native.listChanges();
    return this.#stream('listChanges()', open, ({ text = '' }) => [text], signal ? { signal } : {});
  }

  /**
   * Makes a request with any method to one server: its result. With several servers, `server` names it. A method about
   * resources is refused unless everything of the server may be seen.
   *
   * @throws as `read`.
   */
  request(method: string, params: JsonObject = {}, options?: CallOptions): Promise<JsonObject> {
    if (!isObject(params)) throw new TypeError(`the params are ${shown(params)}, expected an object`);
    const text = jsonText(params);
    const start = (call: number, scope: ScopeFields | undefined): void =>
      this.#wire.native.request(call, method, text, scope);
    return this.#call('request()', start, ({ text = '{}' }) => JSON.parse(text), options);
  }

  /**
   * What a server says of itself. With several servers, `server` names it.
   *
   * @throws {ReadFailedError} it cannot be reached.
   */
  about(options?: Pick<CallOptions, 'server' | 'signal'>): Promise<ServerAbout> {
    const start = (call: number, scope: ScopeFields | undefined): void => this.#wire.native.about(call, scope);
    return this.#call('about()', start, aboutOf, options);
  }

  /**
   * Ends the client: calls reject, iterations end, and servers that it has started are ended as the protocol wants, which
   * takes up to 4 s with one that does not end. Resolved when all is over. A second call does nothing more.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** The same as `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#wire.call(
      (call) => this.#wire.native.close(call),
      () => undefined,
      undefined,
    );
    this.#wire.closed(closed());
    await this.#memory?.stop();
  }

  #read<T>(uri: string, whole: boolean, value: (arrival: Arrival) => T, options?: CallOptions): Promise<T> {
    checkUri(uri);
    const { read } = this.#wire.quick;
    const start = (call: number, scope: ScopeFields | undefined): void => read(call, uri, whole, scope);
    return this.#call('read()', start, value, options);
  }

  #call<T>(
    method: string,
    start: (call: number, scope: ScopeFields | undefined) => void,
    value: (arrival: Arrival) => T,
    options: CallOptions | undefined,
  ): Promise<T> {
    checkCall(method, options);
    if (this.isClosed) return Promise.reject(closed());
    const memory = this.#memory;
    if (memory === undefined || memory.isStarted) return this.#wire.call(start, value, options);
    return memory.start().then(() => this.#wire.call(start, value, options));
  }

  #listed<T>(
    method: string,
    templates: boolean,
    options: CallOptions,
    values: (arrival: Arrival) => T[],
  ): AsyncIterableIterator<T> {
    const open = (scope: ScopeFields, number: number): NativeStream => this.#wire.native.list(number, templates, scope);
    return this.#stream(method, open, values, options);
  }

  #stream<T>(
    method: string,
    make: (scope: ScopeFields, number: number) => NativeStream,
    values: (arrival: Arrival) => T[],
    options: CallOptions,
  ): AsyncIterableIterator<T> {
    checkCall(method, options);
    return new Stream(this.#wire, {
      open: (scope, number) => {
        if (this.isClosed) throw closed();
        const memory = this.#memory;
        const isReady = memory === undefined || memory.isStarted;
        return isReady ? make(scope, number) : memory.start().then(() => make(scope, number));
      },
      values,
      options,
    });
  }
}

function closed(): ReadFailedError {
  return new ReadFailedError('Failed to read resource: the client is closed; make another', 'cancelled');
}

function checkUri(uri: unknown): void {
  if (typeof uri === 'string') return;
  const fix = uri instanceof URL ? '; pass uri.href' : '';
  throw new TypeError(`the URI is ${shown(uri)}, expected a string such as "note://1"${fix}`);
}
