/**
 * `Client`: lists, reads, completes and watches the resources of one or many servers, within an allow-list.
 *
 * ```ts
 * await using client = Client.fromConfig('agents.yaml', { agent: 'frontend' });
 * for await (const resource of client.list()) console.log(resource.uri);
 * const text = await client.read('file:///project/src/main.rs');
 * for await (const change of client.watch('metrics://cpu/usage')) console.log(change.contents);
 * ```
 */
import type { Arrival, NativeStream, ScopeFields } from './binding.js';
import { checkText, isObject, shown } from './check.js';
import type { MemoryServer } from './client-memory.js';
import {
  type CallOptions,
  type ClientOptions,
  type ClientTarget,
  ConfigFile,
  type ConfigOptions,
  callbacksOf,
  checkCall,
  checkConfig,
  fieldsOf,
} from './client-options.js';
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
import type { Wire } from './client-wire.js';
import { ReadFailedError } from './errors.js';
import { jsonText } from './json.js';
import { lateClient } from './late-client.js';
import type { Completion, Contents, JsonObject } from './results.js';
import { ResourceServer } from './server.js';

/** The options of {@link Client.watch}. */
export type WatchOptions = Pick<CallOptions, 'server' | 'signal'>;

/**
 * A client of one server or, made with `fromConfig`, of several.
 *
 * The client starts or connects to a server at the first request for it, and again after the connection is lost. A URI that
 * is not in the allow-list is refused before anything is sent, and left out of results. Contents are cached for the time
 * that the server allows (`ttlMs`), and read again after a change. Open calls and iterations keep the process alive; an idle
 * client does not. The servers that it started end with it.
 */
export class Client {
  readonly #wire: Wire;
  readonly #memory: MemoryServer | undefined;
  #closed: Promise<void> | undefined;

  /**
   * Makes a client of one server. Does not start or connect to it yet.
   *
   * @param server - a command with its arguments, such as `['my-server', '--all']`; the URL of an endpoint; or a
   * `ResourceServer` of this process.
   * @throws {TypeError} an option does not exist, or its value has the wrong type.
   * @throws {ConfigError} a glob is not valid, or an option is for another kind of server; the message names it.
   */
  constructor(server: ClientTarget, options: ClientOptions = {}) {
    const { Wire } = lateClient.wire();
    this.#wire = new Wire(fieldsOf(server, options), callbacksOf(options));
    if (!(server instanceof ResourceServer)) return;
    const { native } = this.#wire;
    // With its sockets, which a client of another process does without.
    const { MemoryServer } = require('./client-memory.js') as typeof import('./client-memory.js');
    this.#memory = new MemoryServer(server, () => native.openSocket());
  }

  /**
   * Makes a client of the `mcpServers` of a configuration file, JSON or YAML.
   *
   * Nothing is visible of a server without the key `resources`.
   *
   * @param path - the file.
   * @throws {ConfigError} the file cannot be read, or a key or an option is wrong; the message names it.
   */
  static fromConfig(path: string, options: ConfigOptions = {}): Client {
    checkConfig(path, options);
    const { agent, ...others } = options;
    return new Client(new ConfigFile(path, agent) as never, others);
  }

  /** The names of the servers, sorted. */
  get servers(): string[] {
    return this.#wire.native.servers;
  }

  /** The servers that failed in the last list, by name, each with its error. */
  get failures(): ReadonlyMap<string, Error> {
    const { failure } = lateClient.wire();
    return new Map(
      this.#wire.native.failures.map((arrival) => [arrival.server ?? '', failure(arrival, arrival.server)]),
    );
  }

  /** Whether the client was closed. */
  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /**
   * Lists the resources of all servers that the allow-lists allow. Fetches all pages.
   *
   * Returns an async iterator: `for await (const resource of client.list())`. A server that fails does not end the
   * iteration; its error is in `failures`. If all servers fail, the first error is thrown.
   */
  list(options: CallOptions = {}): AsyncIterableIterator<ListedResource> {
    return this.#listed('list()', false, options, resourcesOf);
  }

  /** Lists the templates of all servers that can expand to an allowed URI. Fetches all pages, like `list`. */
  listTemplates(options: CallOptions = {}): AsyncIterableIterator<ListedTemplate> {
    return this.#listed('listTemplates()', true, options, templatesOf);
  }

  /**
   * Reads a resource. Returns one text as a string, one blob as bytes, anything else as an array of `Contents`.
   *
   * With several servers, those that do not have the resource are skipped, in the order of their names. Contents whose own
   * URI is not allowed are left out.
   *
   * @param uri - the URI of the resource.
   * @throws {ResourceNotFoundError} no server has the resource.
   * @throws {AccessDeniedError} the allow-list does not have the URI, and nothing was sent; or the server denied access.
   * @throws {InvalidUriError} `uri` is not a URI.
   * @throws {ReadFailedError} any other failure; `kind` says which.
   */
  read(uri: string, options?: CallOptions): Promise<ReadValue> {
    return this.#read(uri, false, readValue, options);
  }

  /**
   * Reads a resource. Returns always an array of `Contents`, each with its URI, media type and `_meta`.
   *
   * @throws the errors of `read`.
   */
  readContents(uri: string, options?: CallOptions): Promise<Contents[]> {
    return this.#read(uri, true, allContents, options);
  }

  /**
   * Completes a variable of a template. Returns the suggested values, best first.
   *
   * @param template - the text of the template, such as `note://{id}`.
   * @param argument - the name of the variable.
   * @param value - the text typed so far. Default: empty.
   * @param context - the values of other variables that are chosen already. Servers with a revision before 2025-06-18 do not
   * get it. Default: none.
   * @throws {AccessDeniedError} the allow-list allows no URI of the template.
   * @throws {ReadFailedError} any other failure; `kind` says which.
   */
  complete(
    template: string,
    argument: string,
    value = '',
    context: Readonly<Record<string, string>> = {},
    options?: CallOptions,
  ): Promise<Completion> {
    checkText('template', template, 'note://{id}');
    checkText('argument', argument, 'id');
    checkText('value', value);
    const chosen = Object.entries(context);
    const start = (call: number, scope: ScopeFields | undefined): void =>
      this.#wire.native.complete(call, template, argument, value, chosen, scope);
    return this.#call('complete()', start, completionOf, options);
  }

  /**
   * Watches a resource: yields its contents now and after each change.
   *
   * Returns an async iterator: `for await (const change of client.watch(uri))`. Ending the iteration ends the subscription.
   * A slow reader skips intermediate contents and gets the newest. Unchanged contents are not repeated. If the resource is
   * removed, the contents are `null`, and the watch continues. It also continues after the connection to the server is lost
   * and restored.
   *
   * @throws the errors of `read`, while iterating.
   */
  watch(uri: string, options: WatchOptions = {}): AsyncIterableIterator<Change> {
    checkUri(uri);
    const open = (scope: ScopeFields): NativeStream => this.#wire.native.watch(uri, scope);
    return this.#stream('watch()', open, (arrival) => [changeOf(arrival)], options);
  }

  /**
   * Yields the name of a server each time its lists change, until the client is closed. A server with revision 2026-07-28
   * reports changes of its lists only while one of its resources is watched.
   */
  listChanges({ signal }: Pick<CallOptions, 'signal'> = {}): AsyncIterableIterator<string> {
    // Opened now and not at the first `next`, so that no change is missed.
    const native = this.isClosed ? undefined : this.#wire.native.listChanges();
    const open = (): NativeStream => native ?? this.#wire.native.listChanges();
    return this.#stream('listChanges()', open, ({ text = '' }) => [text], signal ? { signal } : {});
  }

  /**
   * Sends a request with any method to one server. Returns its result. The option `server` is required if the client has
   * several.
   *
   * @param method - the method, such as `vendor/thing`.
   * @param params - the params, an object. Default: empty.
   * @throws {AccessDeniedError} the method concerns resources, and the allow-list does not allow all of them.
   * @throws {ReadFailedError} any other failure; `kind` says which.
   */
  request(method: string, params: JsonObject = {}, options?: CallOptions): Promise<JsonObject> {
    checkText('method', method, 'vendor/thing');
    if (!isObject(params)) throw new TypeError(`the params are ${shown(params)}, expected an object`);
    const text = jsonText(params);
    const start = (call: number, scope: ScopeFields | undefined): void =>
      this.#wire.native.request(call, method, text, scope);
    return this.#call('request()', start, ({ text = '{}' }) => JSON.parse(text), options);
  }

  /**
   * Returns the self-description of a server. Connects to it if necessary. The option `server` is required if the client has
   * several.
   *
   * @throws {ReadFailedError} the server cannot be reached.
   */
  about(options?: Pick<CallOptions, 'server' | 'signal'>): Promise<ServerAbout> {
    const start = (call: number, scope: ScopeFields | undefined): void => this.#wire.native.about(call, scope);
    return this.#call('about()', start, aboutOf, options);
  }

  /**
   * Closes the client: cancels its calls, ends its iterations, and stops the servers that it started. Stopping takes up to
   * 4 s for a server that does not exit by itself. Further calls do nothing.
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
    const { Stream } = lateClient.stream();
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
  checkText('uri', uri, 'note://1');
}
