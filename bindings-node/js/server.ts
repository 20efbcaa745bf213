/** `ResourceServer`: registers resources, templates, tools, prompts, providers and methods, and serves them. */
import type { Attachment, AttachOptions } from './attach.js';
import { audited } from './audit.js';
import { binding, type Config, type Edit, type NativeFunction, type PlainValue, type Server } from './binding.js';
import { CALL, checkFunction, checkOptions, checkText, FLAG, isObject, shown, TEXT } from './check.js';
import type { Context } from './context.js';
import { Peers, type ServerParts } from './driver.js';
import type { Endpoint } from './endpoint.js';
import { translated } from './errors.js';
import type { FetchHandler } from './fetch.js';
import { type AnyFunction, method, nameOf, reader } from './functions.js';
import { policySource } from './guard.js';
import { type Registrar, ResourceHandler } from './handler.js';
import type { Reader, ResourceOptions } from './handler-types.js';
import { jsonText } from './json.js';
import { late } from './late.js';
import { Lifespan } from './lifespan.js';
import type { LineTransport } from './line-transport.js';
import { warned } from './log.js';
import type { NodeHandler } from './node-handler.js';
import { checkInfo, checkItem, checkMethod, checkRun, checkServerOptions } from './option-checks.js';
import { describe } from './option-fields.js';
import type {
  AnyParameter,
  ConfigServerOptions,
  HttpOptions,
  MethodOptions,
  Resource,
  RunOptions,
  ServerInfo,
  ServerOptions,
} from './options.js';
import { nativeOf, type Provider } from './provider.js';
import { redactor } from './redact.js';
import type { JsonObject, MethodResult } from './results.js';
import type { SdkFactory, SdkHandler, SdkServer } from './sdk-types.js';
import type { Ending } from './signals.js';
import type { Variable, Variables } from './template-types.js';
import type {
  PromptArguments,
  PromptFunction,
  PromptOptions,
  ToolFunction,
  ToolOptions,
  ToolSchema,
} from './tool-types.js';
import type { UiOptions } from './ui.js';
import { Watches } from './watches.js';

/** The lists whose changes clients can be notified of. */
export type Lists = 'resources' | 'tools' | 'prompts';

/** The contents of an added resource: a constant text, constant bytes, or a function. */
export type ResourceSource<S = unknown> = TextSource | BytesSource | ReadSource<S>;
/** A constant text. */
export interface TextSource {
  readonly text: string;
  readonly bytes?: never;
  readonly read?: never;
}
/** Constant bytes. */
export interface BytesSource {
  readonly bytes: Uint8Array;
  readonly text?: never;
  readonly read?: never;
}
/** A function that returns the contents, called for each read. */
export interface ReadSource<S = unknown> {
  readonly read: Reader<Record<string, never>, S>;
  readonly text?: never;
  readonly bytes?: never;
}

/** Answers a custom method: called with its params, returns the members of the result. */
export type Method<S = unknown> = (params: JsonObject, ctx: Context<S>) => MethodAnswer | PromiseLike<MethodAnswer>;
/** The result of a custom method: its members, a `MethodResult`, or nothing for an empty result. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement
export type MethodAnswer = MethodResult | object | null | undefined | void;

/** Returns the internal parts of a server, for `mcp-resources/testing` and the tests of this library. */
export let internals: (server: ResourceServer) => ServerParts;

/**
 * An MCP server: register functions with `resource`, `tool` and `prompt`, then serve them with `run`. `State` is the type of
 * `Context.lifespan`; it follows from what the option `onStart` returns.
 */
export class ResourceServer<State = unknown> {
  /** The name of the server, for programs. */
  readonly name: string;
  readonly #native: Server;
  readonly #peers = new Peers();
  readonly #lifespan: Lifespan;
  readonly #readers = new WeakMap<AnyFunction, Map<boolean, NativeFunction>>();
  readonly #warned = new Set<string>();
  /** Functions that stop the transports that are serving. */
  readonly #stops = new Set<() => void>();
  #batch: Edit[] | undefined;
  readonly #watches: Watches;
  /** Passes the audit records to the audit function. */
  #take: (() => void) | undefined;
  #isServing = false;
  #attachment: Attachment | undefined;

  static {
    internals = (server) => ({ native: server.#native, peers: server.#peers, lifespan: server.#lifespan });
  }

  /**
   * @param info - the name and the description of the server.
   * @param options - its behaviour.
   * @throws {TypeError} an option does not exist, or its value has the wrong type.
   * @throws {RegistrationError} the protocol does not allow the value of an option.
   */
  constructor(info: ServerInfo, options: ServerOptions<State> = {}) {
    const config = (info as unknown) instanceof binding.Config ? (info as unknown as Config) : null;
    if (config === null) checkInfo(info);
    checkServerOptions(options);
    const { name, version = '0.0.0', ...about } = config === null ? info : { name: config.name };
    const { extensions = {}, guard, keys, revisions, limits, audit, bus, ...others } = options;
    const { redact, json, logger = console, onStart, onStop, ...rest } = others;
    const fields = {
      ...about,
      ...rest,
      redact: redact !== undefined,
      extensions: Object.entries(extensions).map(([id, settings]) => [id, jsonText(settings)]),
      ...(keys && { keys: [...keys] }),
      ...(revisions && { revisions: [...revisions] }),
      ...(limits && { limits: { ...limits } }),
    };
    const host = {
      ...(guard !== undefined && { guard: policySource(guard) }),
      ...(bus != null && { bus }),
      ...(audit !== undefined && { audit: typeof audit === 'function' ? true : audit }),
    };
    this.name = name;
    Object.assign(this.#peers, { redact, json, logger });
    this.#lifespan = new Lifespan(onStart, onStop, (value) => {
      this.#peers.lifespan = value;
    });
    this.#native = translated(() => new binding.Server(name, version, fields as unknown as PlainValue, host, config));
    this.#watches = new Watches(this.#native, logger);
    if (redact !== undefined) translated(() => this.#native.redactWith(redactor(new WeakRef(this.#peers))));
    if (typeof audit === 'function') this.#take = audited(this.#native, audit, logger);
  }

  /**
   * Makes a server from the configuration file of `mcp-resources serve`, with its sources mounted. It has the file's guard,
   * limits and audit log. `run({ http })`, `nodeHandler` and `fetchHandler` begin with its paths and tokens, `run` with its
   * TLS too; their own options replace those of the file. Register further resources and tools as ever.
   *
   * A changed guard, `for`, name, entry or file of tokens takes effect without ending sessions. A file with a mistake is
   * logged, and changes nothing.
   *
   * @param path - the file, in YAML or JSON. Its relative paths begin at its folder.
   * @param options - the behaviour of the server. It replaces what the file says.
   * @throws {TypeError} an option does not exist, stands in the file alone, or its value has the wrong type.
   * @throws {RegistrationError} the file has a mistake. The message is that of `mcp-resources serve --check`.
   */
  static fromConfig<State = unknown>(path: string, options: ConfigServerOptions<State> = {}): ResourceServer<State> {
    checkText('path', path, 'team.yaml');
    const { watch = true, ...rest } = options;
    checkOptions('fromConfig', { watch }, { watch: FLAG });
    const own = Object.keys(rest).find((name) => binding.Config.options().includes(name));
    if (own !== undefined) {
      throw new TypeError(`${own} stands in the configuration file, whose changes take effect; write it there`);
    }
    const config = translated(() => new binding.Config(path, watch));
    return new ResourceServer<State>(config as unknown as ServerInfo, rest);
  }

  /**
   * Registers a function: it reads one resource or, if `uri` has variables, those of a template.
   *
   * The function is called with the variables of the template by name, and with a `Context`. The types of the variables
   * follow from the text of the template, `vars` and `parameters`.
   *
   * Clients list resources sorted by URI, not in the order of registration, so that a cursor stays valid when resources
   * are added or removed. Use leading zeros where the order matters: `r02` before `r10`.
   *
   * @param uri - the URI, such as `config://app`, or a URI template (RFC 6570), such as `note://{id}`.
   * @param read - the function.
   * @throws {TypeError} an option does not exist, or its value has the wrong type.
   * @throws {RegistrationError} the URI is not valid or is registered already, or an option is not allowed.
   */
  resource<const T extends string>(uri: T, read: Reader<Variables<T>, State>): ResourceHandler<T, State>;
  resource<
    const T extends string,
    const V extends Readonly<Record<string, Variable>> = {},
    const P extends Readonly<Record<string, AnyParameter>> = {},
  >(
    uri: T,
    options: ResourceOptions<T, V, P, State>,
    read: Reader<Variables<T, V, P>, State>,
  ): ResourceHandler<T, State>;
  resource(uri: string, options: Options<State> | AnyFunction, read?: AnyFunction): ResourceHandler<string, State> {
    const [given, call] = typeof options === 'function' ? [{}, options] : [options, read];
    checkCall(uri, options, read);
    return new ResourceHandler(this.#registrar, uri, given as ResourceOptions, call as AnyFunction);
  }

  /**
   * Adds a resource with a constant `text`, constant `bytes`, or a function that reads it. Can be called while the server
   * runs; clients are notified that the list has changed.
   *
   * @param resource - the URI and its details.
   * @param source - exactly one of `text`, `bytes` and `read`.
   * @throws {TypeError} not exactly one of `text`, `bytes` and `read` is given, or one has the wrong type.
   * @throws {RegistrationError} the URI is registered already, or a detail is not allowed.
   */
  addResource(resource: Resource, source: ResourceSource<State>): void {
    if (typeof resource === 'string') {
      throw new TypeError(`addResource takes an object, not ${shown(resource)}: { uri: ${shown(resource)} }`);
    }
    const { text, bytes, read }: { text?: string; bytes?: Uint8Array; read?: AnyFunction } = Object(source);
    const given = [text, bytes, read].filter((source) => source !== undefined);
    checkItem(resource);
    checkSource(resource.uri, source, given.length);
    const constant = text ?? bytes;
    const kept =
      constant === undefined ? this.#reader(read as AnyFunction, resource) : this.#constant(constant, resource);
    this.#publish([translated(() => binding.Edit.addResource(describe(resource), kept))]);
  }

  /**
   * Registers an HTML page that a host with MCP Apps shows beside the results of a tool. A tool names it with the option
   * `ui`; to other clients it is an ordinary resource. Can be called while the server runs; clients are notified that the
   * list has changed.
   *
   * @param uri - the URI, such as `ui://shop/order`.
   * @param options - the document, and what it needs.
   * @returns `uri`.
   * @throws {TypeError} an option does not exist, or its value has the wrong type.
   * @throws {RegistrationError} the URI is registered already or has another scheme, or an option is not allowed.
   */
  ui(uri: string, options: UiOptions): string {
    this.#publish(late.ui().pageEdits(uri, options, (html) => this.#constant(html, { uri })));
    return uri;
  }

  /**
   * Removes the resource with this URI, in any spelling. Does nothing if there is none. Can be called while the server
   * runs; clients are notified that the list has changed.
   *
   * @throws {InvalidUriError} `uri` is not a URI.
   */
  removeResource(uri: string): void {
    checkText('uri', uri, 'note://1');
    this.#publish([translated(() => binding.Edit.removeResource(uri))]);
  }

  /**
   * Removes the template with exactly this text. Does nothing if there is none. Can be called while the server runs;
   * clients are notified that the list has changed.
   */
  removeTemplate(uriTemplate: string): void {
    checkText('uriTemplate', uriTemplate, 'note://{id}');
    this.#publish([translated(() => binding.Edit.removeTemplate(uriTemplate))]);
  }

  /**
   * Publishes all registrations and removals of `body` at its end, all of them or, after an error, none. Much faster than
   * single registrations if there are many templates.
   *
   * @param body - a function that is not `async`.
   * @returns what `body` returns.
   */
  batch<R>(body: () => R): R {
    checkFunction('body', body);
    if (this.#batch !== undefined) throw new Error('a batch is open already; register everything in one');
    this.#batch = [];
    try {
      const result = body();
      if (typeof (result as Partial<PromiseLike<unknown>> | undefined)?.then === 'function') {
        throw new TypeError('the function of a batch returned a promise; await first, then register in a batch');
      }
      const edits = this.#batch;
      this.#batch = undefined;
      this.#publish(edits);
      return result;
    } finally {
      this.#batch = undefined;
    }
  }

  /**
   * Mounts providers, all of them or none: clients list, read and watch their resources like any other.
   *
   * Can be called while the server runs; clients are notified that the list has changed. Takes effect at once, also inside
   * a batch. A provider can be mounted in several servers unless its documentation says otherwise. `redact` is called with
   * the contents that providers read, and must return within `Limits.readTimeout`.
   *
   * @param mounted - made by the functions of `providers`, such as `providers.clock()`.
   * @throws {TypeError} an argument is not a provider.
   * @throws {RegistrationError} a provider is mounted already, or serves a URI that is registered already.
   */
  mount(...mounted: readonly Provider[]): void {
    const natives = mounted.map((provider) => nativeOf(provider, 'mount()'));
    translated(() => this.#native.mount(natives));
  }

  /**
   * Unmounts a provider. Returns `false` if it is not mounted in this server. Requests that it has begun to answer are
   * still answered; clients are notified that its resources are gone.
   */
  unmount(provider: Provider): boolean {
    return this.#native.unmount(nativeOf(provider, 'unmount()'));
  }

  /**
   * Registers a tool: a function that a model can call by name. Can be called while the server runs; clients are notified
   * that the list has changed.
   *
   * The function is called with its arguments, once `input` has checked them, and a `Context`. It returns a text, one or
   * several of `Image`, `Audio`, `ResourceLink`, `Embedded` and `Text`, nothing, or another value, which becomes JSON and
   * a structured result. A `ToolError` tells the model what went wrong; other errors are logged, and their text is not sent.
   *
   * @param name - the name: 1 to 128 ASCII letters, digits, `_`, `-` and `.`.
   * @param options - its description, schemas and hints.
   * @param call - the function.
   * @throws {TypeError} an option does not exist, its value has the wrong type, or a schema gives no JSON schema.
   * @throws {RegistrationError} a tool has this name already, or the protocol does not allow a name or schema.
   */
  tool(name: string, call: ToolFunction<undefined, undefined, State>): void;
  tool<I extends ToolSchema | undefined = undefined, O extends ToolSchema | undefined = undefined>(
    name: string,
    options: ToolOptions<I, O>,
    call: ToolFunction<I, O, State>,
  ): void;
  tool(name: string, options: ToolOptions | AnyFunction, call?: AnyFunction): void {
    this.#publish(late.tools().toolEdits(this.#peers, name, options, call));
  }

  /** Removes the tool with this name. Does nothing if there is none. Clients are notified that the list has changed. */
  removeTool(name: string): void {
    checkText('the name of the tool', name, 'search');
    this.#publish([translated(() => binding.Edit.removeTool(name))]);
  }

  /**
   * Registers a prompt: a text or conversation that a person can choose by name. Can be called while the server runs;
   * clients are notified that the list has changed.
   *
   * The function is called with the values of its arguments, and a `Context`. It returns a text or block, which the user
   * says, or messages.
   *
   * @param name - the name.
   * @param options - its description and arguments.
   * @param call - the function.
   * @throws {TypeError} an option does not exist, or its value has the wrong type.
   * @throws {RegistrationError} a prompt has this name already, or the protocol does not allow a name.
   */
  prompt(name: string, call: PromptFunction<{}, State>): void;
  prompt<const A extends PromptArguments = {}>(
    name: string,
    options: PromptOptions<A, State>,
    call: PromptFunction<A, State>,
  ): void;
  prompt(name: string, options: PromptOptions | AnyFunction, call?: AnyFunction): void {
    this.#publish(late.tools().promptEdits(this.#peers, name, options, call));
  }

  /** Removes the prompt with this name. Does nothing if there is none. Clients are notified that the list has changed. */
  removePrompt(name: string): void {
    checkText('the name of the prompt', name, 'greeting');
    this.#publish([translated(() => binding.Edit.removePrompt(name))]);
  }

  /**
   * Registers a function for a custom method. It gets the params as an object, and a `Context`. Tools and prompts have
   * `tool` and `prompt`.
   *
   * The function returns the members of the result: an object, a `MethodResult`, or nothing for an empty result.
   *
   * @param name - the name of the method, such as `vendor/thing`.
   * @param call - the function.
   * @throws {RegistrationError} the library serves this method itself, or it is registered already.
   */
  method(name: string, call: Method<State>): void;
  method(name: string, options: MethodOptions, call: Method<State>): void;
  method(name: string, options: MethodOptions | AnyFunction, call?: AnyFunction): void {
    const [given, own] = typeof options === 'function' ? [{}, options] : [options, call];
    checkText('the name of the method', name, 'vendor/thing');
    if (typeof own !== 'function') {
      throw new TypeError(`the method "${name}" needs a function that answers it, not ${shown(own)}`);
    }
    checkMethod(given);
    const { nameParam, capability, lists, timeout }: MethodOptions = given;
    const about = {
      ...(nameParam !== undefined && { nameParam }),
      ...(lists !== undefined && { lists }),
      ...(timeout !== undefined && { timeout }),
      ...(capability && { capability: [capability[0], jsonText(capability[1])] as [string, string] }),
    };
    translated(() => this.#native.extend(name, method(this.#peers, nameOf(own) ?? name, own), about));
  }

  /**
   * Notifies the clients that watch this URI that its contents have changed. Does nothing if no client watches it.
   *
   * @param options - `principal`: the identity of the one person whose clients are notified. Default: all.
   * @throws {InvalidUriError} `uri` is not a URI.
   * @throws {RegistrationError} a typed variable of its template has another spelling, such as `07` for an integer.
   */
  notifyUpdated(uri: string, options: { readonly principal?: string } = {}): void {
    checkText('uri', uri, 'note://1');
    checkOptions('notifyUpdated', options, { principal: TEXT });
    translated(() => this.#native.notifyUpdated(uri, options.principal));
  }

  /**
   * Notifies clients that a list has changed, such as the items of a lister. Registrations and removals notify by
   * themselves.
   */
  notifyListChanged(lists: Lists = 'resources'): void {
    checkText('the list', lists, 'resources');
    translated(() => this.#native.notifyListChanged(lists));
  }

  /**
   * Serves inside a server of the official SDK, whose tools, prompts, errors and transports stay as they are. Call it before
   * the first client connects. `run`, `nodeHandler` and `fetchHandler` then serve the SDK's server, by its own means.
   *
   * @param app - an `McpServer` or `Server` of `@modelcontextprotocol/server` 2.x or `@modelcontextprotocol/sdk` 1.32, or a
   *   function that makes one for each connection.
   * @param options - `adopt`: whether its own resources are served too.
   * @returns this server.
   * @throws {TypeError} `app` is no server of the SDK, or an option does not exist.
   * @throws {RegistrationError} a provider serves every URI, so that nothing can be adopted.
   * @throws {Error} one of the servers is attached already, the SDK's is connected, its version lacks something, or both have
   *   a tool of one name.
   */
  attach<A extends SdkServer | SdkFactory>(
    app: A,
    options: AttachOptions = {},
  ): this & { readonly factory: A extends SdkFactory ? A : SdkFactory } {
    checkOptions('attach', options, { adopt: FLAG });
    if (this.#attachment !== undefined) throw new Error('this ResourceServer is attached already; make another one');
    const { Attachment } = late.attach();
    this.#attachment = new Attachment(this.name, internals(this), app, options.adopt ?? true);
    return this as this & { readonly factory: A extends SdkFactory ? A : SdkFactory };
  }

  /**
   * The function that was attached, whose servers have our resources: for `serveStdio`, `createMcpHandler` and adapters.
   *
   * @throws {Error} no function was attached.
   */
  get factory(): SdkFactory {
    const factory = this.#attachment?.factory;
    if (factory === undefined)
      throw new Error('there is no factory: attach a function that makes servers, attach(() => …)');
    return factory;
  }

  /**
   * Has listens of clients answered here, for a handler made by `createMcpHandler(resources.factory)` of the SDK.
   *
   * @returns the handler to serve.
   * @throws {Error} no server is attached.
   */
  wrap<H extends SdkHandler>(handler: H): H {
    if (this.#attachment === undefined) throw new Error('wrap() is for a server with attach(); call attach() first');
    return late.embeddedListens().wrapped(this.#attachment, this.#native, handler);
  }

  /**
   * Serves until SIGTERM, SIGINT, `close` or, on stdio, the end of input. Open requests may finish within `Limits.grace`.
   *
   * Without `http` it serves standard input and output; other code of the process can no longer use them. After the end of
   * input the process exits as soon as nothing else keeps it alive. After a signal, or if a handler ignores that its
   * request was cancelled, the process is ended.
   *
   * @param options - `http`: serves Streamable HTTP instead, on threads of its own; handlers run on the event loop.
   * @throws {RegistrationError} the value of an option is not allowed.
   * @throws {Error} the server cannot listen at the address.
   */
  async run(options: RunOptions = {}): Promise<void> {
    checkRun(options);
    const { http } = options;
    if (http === undefined) {
      await this.#serveStdio({ signals: true });
      return;
    }
    const attached = this.#attachment;
    if (attached !== undefined) {
      await this.#hosted(() => late.sdk().serveHttp(this.#wrap, attached, http, this.#ending));
      return;
    }
    const { serve } = late.http();
    await this.#hosted(() => serve(this.#native, this.#peers, http, this.#ending));
  }

  /**
   * Serves standard input and output until the client closes its end, without handlers for SIGTERM and SIGINT.
   *
   * @param options - `signal`: aborting it has the same effect as the end of input.
   */
  async serveStdio({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new TypeError(`signal is ${shown(signal)}, expected an AbortSignal`);
    }
    await this.#serveStdio({ signals: false, ...(signal && { signal }) });
  }

  /**
   * Returns a request handler for `node:http` and libraries on it, such as Express.
   *
   * `path` is relative to the path where the handler is mounted. If a middleware has read the body already, it is taken
   * from `request.body`.
   *
   * @throws {RegistrationError} the value of an option is not allowed.
   */
  nodeHandler(options: HttpOptions = {}): NodeHandler {
    if (options instanceof late.nodeHttp().IncomingMessage) throw madeFor('nodeHandler', 'request, response');
    if (this.#attachment !== undefined)
      return this.#attachedHandler(late.sdk().nodeHandler(this.#wrap, this.#attachment, 'nodeHandler()'), options);
    return late.nodeHandler().nodeHandler(...this.#endpoint(options));
  }

  /**
   * Returns a request handler for the Fetch API, as Hono, Bun and Deno take it. Make it once, and call it with each request.
   *
   * @throws {RegistrationError} the value of an option is not allowed.
   */
  fetchHandler(options: HttpOptions = {}): FetchHandler {
    if (options instanceof Request) throw madeFor('fetchHandler', 'request');
    if (this.#attachment !== undefined)
      return this.#attachedHandler(late.sdk().fetchHandler(this.#wrap, this.#attachment), options);
    return late.fetch().fetchHandler(...this.#endpoint(options));
  }

  /**
   * Stops serving: ends all listens, and `run` as after a signal. Requests in flight at a `nodeHandler` or `fetchHandler`
   * are cancelled, and later ones get status 503. Handlers that are made afterwards serve again.
   */
  close(): void {
    this.#native.shutdown();
    for (const stop of [...this.#stops]) stop();
    this.#attachment?.stop();
    this.flushAudit();
  }

  /**
   * Ends all listens and notification streams of a subject whose tokens are no longer valid. Tokens of this subject that
   * are cached as verified are verified again at their next use, also within a session: `Auth.verify` must refuse them.
   */
  revoke(subject: string): void {
    checkText('subject', subject);
    translated(() => this.#native.revoke(subject));
  }

  /**
   * Looks again at what a person may see: call it when their rights have changed.
   *
   * Their tokens are verified again at their next use, functions of `ResourceHandler.access` are asked again, and
   * subscriptions and listens to what they may no longer see end at once; others go on. The streams of a token that came with
   * scopes, claims or globs end, so that the client sends it again.
   *
   * @param principal - the identity that `Auth.verify` returns, as `Context.principal` has it.
   */
  regrant(principal: string): void {
    checkText('principal', principal);
    translated(() => this.#native.regrant(principal));
  }

  /**
   * Returns the counters of the server in the text format of Prometheus, for a metrics page of your own; `undefined` if
   * nothing is counted: neither the option `metrics` of the server nor that of an HTTP endpoint is on.
   */
  metricsText(): string | undefined {
    return translated(() => this.#native.metricsText()) ?? undefined;
  }

  /** Passes all audit records so far to the file or function of the option `audit`. `run` calls it when it ends. */
  flushAudit(): void {
    this.#take?.();
    this.#native.flushAudit();
  }

  readonly #wrap = (handler: SdkHandler): SdkHandler => this.wrap(handler);

  /** A handler of the SDK's, which has options of its own. */
  #attachedHandler<H extends object>(handler: H, options: HttpOptions): H & { readonly close: () => void } {
    const [name] = Object.keys(options);
    if (name !== undefined) {
      throw new TypeError(
        `unexpected option "${name}"; the SDK serves this server: put a middleware before the handler`,
      );
    }
    return Object.assign(handler, { close: () => this.#attachment?.stop() });
  }

  /** An endpoint, and the function that ends it. */
  #endpoint(options: HttpOptions): [Endpoint, () => void] {
    const lifespan = this.#lifespan;
    const { Endpoint } = late.endpoint();
    const endpoint = new Endpoint(this.#native, this.#peers, options);
    if (!lifespan.isEmpty) endpoint.startsWith(lifespan.enter());
    const stop = (): void => {
      if (!this.#stops.delete(stop)) return;
      endpoint.close();
      if (!lifespan.isEmpty) lifespan.left(this.#peers.logger);
    };
    this.#stops.add(stop);
    return [endpoint, stop];
  }

  get #ending(): Ending {
    return (stop) => {
      this.#stops.add(stop);
      return () => void this.#stops.delete(stop);
    };
  }

  async #serveStdio(options: { readonly signals: boolean; readonly signal?: AbortSignal }): Promise<void> {
    if (this.#isServing) throw new Error('standard input and output are being served already; call run() once');
    this.#isServing = true;
    try {
      const attached = this.#attachment;
      const behind = attached && {
        native: attached.driver.native,
        connect: (transport: LineTransport) => late.sdk().connected(attached, transport),
      };
      const { serve } = late.stdio();
      const all = { ...options, ending: this.#ending, ...(behind && { behind }) };
      await this.#hosted(() => serve(this.#native, this.#peers, all));
    } finally {
      this.#isServing = false;
    }
  }

  /** Serves between `onStart` and `onStop`. */
  async #hosted(serve: () => Promise<void>): Promise<void> {
    await this.#lifespan.enter();
    try {
      await serve();
    } finally {
      this.flushAudit();
      this.#attachment?.stop();
      await this.#lifespan.leave();
    }
  }

  get #registrar(): Registrar {
    return {
      publish: (edits) => this.#publish(edits),
      peers: this.#peers,
      watches: this.#watches,
      checkLink: (registered, uri) => this.#native.checkLink(registered, uri),
    };
  }

  /** The source of constant contents. A function that changes contents sees them as it sees those of a function. */
  #constant<C extends string | Uint8Array>(contents: C, resource: Resource): C | NativeFunction {
    return this.#peers.redact === undefined ? contents : this.#reader(() => contents, resource);
  }

  /** The native function for a reader, made once for all resources that it reads. */
  #reader(call: AnyFunction, { uri, mimeType }: Resource): NativeFunction {
    const isTyped = mimeType === undefined;
    const made = this.#readers.get(call) ?? new Map<boolean, NativeFunction>();
    let found = made.get(isTyped);
    if (found === undefined) {
      found = reader(this.#peers, nameOf(call) ?? uri, call, { json: isTyped ? 'application/json' : undefined });
      made.set(isTyped, found);
      this.#readers.set(call, made);
    }
    return found;
  }

  #publish(edits: Edit[]): void {
    if (this.#batch !== undefined) {
      this.#batch.push(...edits);
      return;
    }
    for (const warning of translated(() => this.#native.publish(edits))) {
      if (this.#warned.has(warning)) continue;
      this.#warned.add(warning);
      warned(this.#peers.logger, this.name, warning);
    }
  }
}

/** The options of a resource or of any template. */
type Options<State> = ResourceOptions<
  string,
  Readonly<Record<string, Variable>>,
  Readonly<Record<string, AnyParameter>>,
  State
>;

/** The error for a factory of handlers that was called as if it were the handler. */
function madeFor(factory: string, given: string): TypeError {
  return new TypeError(
    `${factory}() makes a handler and answers no request: const handle = server.${factory}() once, then handle(${given})`,
  );
}

/** Checks the arguments of a registration. */
function checkCall(uri: unknown, options: unknown, read: unknown): void {
  if (typeof uri !== 'string') {
    const fix = uri instanceof URL ? '; pass uri.href' : '';
    throw new TypeError(`the URI is ${shown(uri)}, expected a string such as "note://{id}"${fix}`);
  }
  if (typeof options === 'function') {
    if (read === undefined) return;
    throw new TypeError(`"${uri}": the options come before the function: resource(uri, options, read)`);
  }
  if (typeof read === 'function') return;
  if (typeof options === 'string' || ArrayBuffer.isView(options)) {
    const source = typeof options === 'string' ? 'text' : 'bytes';
    throw new TypeError(`"${uri}" is constant: use addResource({ uri: "${uri}" }, { ${source}: … })`);
  }
  throw new TypeError(`"${uri}" needs a function that reads it: resource(uri, ({ id }, ctx) => …)`);
}

/** Checks the source of an added resource. */
function checkSource(uri: string, source: unknown, given: number): void {
  if (!isObject(source)) throw new TypeError(`"${uri}" has no source: give one of { text }, { bytes } and { read }`);
  checkOptions(`"${uri}"`, source, SOURCES, CONTENT);
  if (given !== 1) throw new TypeError(`"${uri}" has ${given} sources: give one of { text }, { bytes } and { read }`);
}

const SOURCES = {
  text: TEXT,
  bytes: { is: (value: unknown) => value instanceof Uint8Array, expected: 'a Buffer or Uint8Array' },
  read: CALL,
};
const CONTENT = { content: 'did you mean "text"?', blob: 'did you mean "bytes"?', data: 'did you mean "bytes"?' };
