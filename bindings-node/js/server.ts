/** The server: what an author registers, and how it is run. */
import { randomBytes } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import { audited } from './audit.js';
import { binding, type Edit, type NativeFunction, type PlainValue, type Server } from './binding.js';
import { CALL, checkOptions, isObject, shown, TEXT } from './check.js';
import type { Context } from './context.js';
import { Peers } from './driver.js';
import { Endpoint } from './endpoint.js';
import { translated } from './errors.js';
import { type FetchHandler, fetchHandler } from './fetch.js';
import { type AnyFunction, method, reader } from './functions.js';
import { policySource } from './guard.js';
import { type Reader, type Registrar, ResourceHandler, type ResourceOptions } from './handler.js';
import { jsonText } from './json.js';
import { Lifespan } from './lifespan.js';
import { warned } from './log.js';
import { type NodeHandler, nodeHandler } from './node-handler.js';
import { checkInfo, checkItem, checkMethod, checkRun, checkServerOptions } from './option-checks.js';
import {
  type AnyParameter,
  describe,
  type HttpOptions,
  type ListenOptions,
  nameOf,
  type Resource,
  type ServerInfo,
  type ServerOptions,
} from './options.js';
import { nativeOf, type Provider } from './provider.js';
import { redactor } from './redact.js';
import type { JsonObject, MethodResult } from './results.js';
import type { Ending } from './signals.js';
import type { Variables } from './template-types.js';
import type { Variable } from './templates.js';
import { Watches } from './watches.js';

/** The lists of which changes can be told. */
export type Lists = 'resources' | 'tools' | 'prompts';

/** Where the contents of an added resource come from: one of the three. */
export type ResourceSource = TextSource | BytesSource | ReadSource;
/** A text that never changes. */
export interface TextSource {
  readonly text: string;
  readonly bytes?: never;
  readonly read?: never;
}
/** Bytes that never change. */
export interface BytesSource {
  readonly bytes: Uint8Array;
  readonly text?: never;
  readonly read?: never;
}
/** A function that reads it. */
export interface ReadSource {
  readonly read: Reader<Record<string, never>>;
  readonly text?: never;
  readonly bytes?: never;
}

/** How a method that is not ours is declared. */
export interface MethodOptions {
  /** The member of the params that the HTTP header `Mcp-Name` repeats. */
  readonly nameParam?: string;
  /** A capability to declare: its name and settings. */
  readonly capability?: readonly [name: string, settings: JsonObject];
  /** What it lists, if clients may listen to changes of that. */
  readonly lists?: 'tools' | 'prompts';
}

/** What `ResourceServer.run` serves. */
export interface RunOptions {
  /** Streamable HTTP. Default: standard input and output. */
  readonly http?: ListenOptions;
}

/** Answers a method that is not ours: called with its params, returns the members of the result. */
export type Method = (params: JsonObject, ctx: Context) => MethodAnswer | PromiseLike<MethodAnswer>;
/** What a method may return: nothing is an empty object. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function without a return statement
export type MethodAnswer = MethodResult | object | null | undefined | void;

/** The parts of a server that `mcp-resources/testing` and the tests of this library need. */
export interface Internals {
  readonly native: Server;
  readonly peers: Peers;
  readonly lifespan: Lifespan;
}

/** Gives these parts of a server. */
export let internals: (server: ResourceServer) => Internals;

/** A server of resources. */
export class ResourceServer {
  /** Its name, for programs. */
  readonly name: string;
  readonly #native: Server;
  readonly #peers = new Peers();
  readonly #lifespan: Lifespan;
  readonly #readers = new WeakMap<AnyFunction, Map<boolean, NativeFunction>>();
  readonly #warned = new Set<string>();
  /** What ends what serves. */
  readonly #stops = new Set<() => void>();
  #batch: Edit[] | undefined;
  readonly #watches: Watches;
  /** Gives what is recorded to the author's function. */
  #take: (() => void) | undefined;
  #isServing = false;

  static {
    internals = (server) => ({ native: server.#native, peers: server.#peers, lifespan: server.#lifespan });
  }

  /**
   * @param info - how it presents itself.
   * @param options - how it behaves.
   * @throws {TypeError} an option has a value that it cannot have.
   */
  constructor(info: ServerInfo, options: ServerOptions = {}) {
    checkInfo(info);
    checkServerOptions(options);
    const { name, version = '0.0.0', ...about } = info;
    const { extensions = {}, guard, keys, revisions, limits, audit, ...others } = options;
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
      processKey: randomBytes(32),
      ...(guard !== undefined && { guard: policySource(guard) }),
      ...(audit !== undefined && { audit: typeof audit === 'function' ? true : audit }),
    };
    this.name = name;
    Object.assign(this.#peers, { redact, json, logger });
    this.#lifespan = new Lifespan(onStart, onStop);
    this.#native = translated(() => new binding.Server(name, version, fields as unknown as PlainValue, host));
    this.#watches = new Watches(this.#native, logger);
    if (redact !== undefined) translated(() => this.#native.redactWith(redactor(new WeakRef(this.#peers))));
    if (typeof audit === 'function') this.#take = audited(this.#native, audit, logger);
  }

  /**
   * Registers the reader of a resource or, if `uri` has variables, of a template.
   *
   * The reader is called with the variables by name, typed by the template's text, `vars` and `parameters`, and with a
   * `Context`.
   *
   * Clients see resources in the order of their URIs, whatever the order of registration: a cursor then survives every
   * insertion and removal. Number with leading zeros where the order matters (`r02` before `r10`).
   *
   * @throws {RegistrationError} the URI, a detail or an option is wrong.
   */
  resource<const T extends string>(uri: T, read: Reader<Variables<T>>): ResourceHandler<T>;
  resource<
    const T extends string,
    const V extends Readonly<Record<string, Variable>> = {},
    const P extends Readonly<Record<string, AnyParameter>> = {},
  >(uri: T, options: ResourceOptions<T, V, P>, read: Reader<Variables<T, V, P>>): ResourceHandler<T>;
  resource(uri: string, options: ResourceOptions | AnyFunction, read?: AnyFunction): ResourceHandler {
    const [given, call] = typeof options === 'function' ? [{}, options] : [options, read];
    checkCall(uri, options, read);
    return new ResourceHandler(this.#registrar, uri, given, call as AnyFunction);
  }

  /**
   * Adds a resource: with a constant `text` or constant `bytes`, or a function that reads it. Also while the server
   * runs; clients are told that the list has changed.
   *
   * @throws {RegistrationError} the URI is registered already, or a field is wrong.
   */
  addResource(resource: Resource, source: ResourceSource): void {
    const { text, bytes, read }: { text?: string; bytes?: Uint8Array; read?: AnyFunction } = Object(source);
    const given = [text, bytes, read].filter((source) => source !== undefined);
    checkItem(resource);
    checkSource(resource.uri, source, given.length);
    const constant = text ?? bytes;
    const isSeen = constant !== undefined && this.#peers.redact !== undefined;
    const kept = isSeen
      ? this.#reader(() => constant, resource)
      : (constant ?? this.#reader(read as AnyFunction, resource));
    this.#publish([translated(() => binding.Edit.addResource(describe(resource), kept))]);
  }

  /**
   * Removes the resource with this URI, in any spelling; nothing if there is none.
   * @throws {InvalidUriError} it is not a URI.
   */
  removeResource(uri: string): void {
    this.#publish([translated(() => binding.Edit.removeResource(uri))]);
  }

  /** Removes the template with exactly this text; nothing if there is none. */
  removeTemplate(uriTemplate: string): void {
    this.#publish([translated(() => binding.Edit.removeTemplate(uriTemplate))]);
  }

  /**
   * Publishes what `body` adds and removes all at once, or not at all if something is wrong. Much faster for many
   * templates. `body` is not to wait for anything.
   */
  batch<R>(body: () => R): R {
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
   * Mounts providers, all or none: what they have is listed, read, completed and watched like any resource. Also while the
   * server runs, and at once in a batch; clients are notified that the list has changed. `redact` is called with what they
   * read; it must return within `readTimeout`.
   *
   * @param mounted - providers, such as `providers.clock()`.
   * @throws {RegistrationError} one is mounted already, or what it has is registered already.
   */
  mount(...mounted: readonly Provider[]): void {
    const natives = mounted.map((provider) => nativeOf(provider, 'mount()'));
    translated(() => this.#native.mount(natives));
  }

  /**
   * Ends the mount of a provider: what it has is gone, and clients that watch it are told. `false` if it is not mounted here.
   */
  unmount(provider: Provider): boolean {
    return this.#native.unmount(nativeOf(provider, 'unmount()'));
  }

  /**
   * Answers a method that is not ours. To be declared before the first resource is registered.
   *
   * @param name - its name, such as `vendor/thing`.
   * @throws {RegistrationError} it is a method of ours, or too late.
   */
  method(name: string, call: Method): void;
  method(name: string, options: MethodOptions, call: Method): void;
  method(name: string, options: MethodOptions | AnyFunction, call?: AnyFunction): void {
    const [given, own] = typeof options === 'function' ? [{}, options] : [options, call];
    if (typeof own !== 'function') {
      throw new TypeError(`the method "${name}" needs a function that answers it, not ${shown(own)}`);
    }
    checkMethod(given);
    const { nameParam, capability, lists }: MethodOptions = given;
    const about = {
      ...(nameParam !== undefined && { nameParam }),
      ...(lists !== undefined && { lists }),
      ...(capability && { capability: [capability[0], jsonText(capability[1])] as [string, string] }),
    };
    translated(() => this.#native.extend(name, method(this.#peers, nameOf(own) ?? name, own), about));
  }

  /**
   * Tells those who watch this URI that its contents have changed.
   * @throws {InvalidUriError} it is not a URI.
   */
  notifyUpdated(uri: string): void {
    translated(() => this.#native.notifyUpdated(uri));
  }

  /** Tells clients that what listers give has changed. */
  notifyListChanged(lists: Lists = 'resources'): void {
    translated(() => this.#native.notifyListChanged(lists));
  }

  /**
   * Serves until SIGTERM or SIGINT comes, `close` is called or, on standard input and output, the client closes its end.
   * What is in flight may finish within `Limits.grace`.
   *
   * Without `http` it serves standard input and output, and takes descriptors 0 and 1 away from everything else in the
   * process. What else keeps the process alive then is the program's own affair after the end of input; after a signal, or
   * with a handler that does not hear that it was cancelled, the process ends.
   *
   * @param options - `http`: serves Streamable HTTP, on threads of its own; handlers run on the event loop.
   * @throws {RegistrationError} an option has a value that is not allowed.
   */
  async run(options: RunOptions = {}): Promise<void> {
    checkRun(options);
    const { http } = options;
    if (http === undefined) {
      await this.#serveStdio({ signals: true });
      return;
    }
    const { serve } = await import('./http.js');
    await this.#hosted(() => serve(this.#native, this.#peers, http, this.#ending));
  }

  /**
   * Standard input and output without signals. When `signal` is aborted, it ends as if the client had closed its end.
   */
  async serveStdio({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    await this.#serveStdio({ signals: false, ...(signal && { signal }) });
  }

  /**
   * A handler of requests for `node:http` and what is built on it, such as Express.
   *
   * `path` is what follows the path that the handler is mounted at. A body that was read before is taken from
   * `request.body`.
   *
   * @throws {RegistrationError} an option has a value that is not allowed.
   */
  nodeHandler(options: HttpOptions = {}): NodeHandler {
    if (options instanceof IncomingMessage) throw madeFor('nodeHandler', 'request, response');
    return nodeHandler(...this.#endpoint(options));
  }

  /**
   * A handler of requests of the Fetch API, such as Hono, Bun and Deno take. Make it once, and call it with each request.
   *
   * @throws {RegistrationError} an option has a value that is not allowed.
   */
  fetchHandler(options: HttpOptions = {}): FetchHandler {
    if (options instanceof Request) throw madeFor('fetchHandler', 'request');
    return fetchHandler(...this.#endpoint(options));
  }

  /** @deprecated the earlier name of `fetchHandler`. */
  fetch(options: HttpOptions = {}): FetchHandler {
    return this.fetchHandler(options);
  }

  /**
   * Ends what serves: listens end with their results, `run` as after a signal; the sessions of handlers end, what is in
   * flight there is cancelled, and what comes later is answered with 503. What is made afterwards serves again.
   */
  close(): void {
    this.#native.shutdown();
    for (const stop of [...this.#stops]) stop();
    this.flushAudit();
  }

  /**
   * Ends the listens and the streams of notifications of a subject whose tokens are no longer valid. Tokens of this subject
   * that were verified before are verified again at their next use, also in a session: refuse them in `verify` of `Auth`.
   */
  revoke(subject: string): void {
    translated(() => this.#native.revoke(subject));
  }

  /**
   * What was counted, in the text format of Prometheus, for a page of your own; `undefined` unless the option `metrics`
   * is on, or an HTTP endpoint shows metrics.
   */
  metricsText(): string | undefined {
    return translated(() => this.#native.metricsText()) ?? undefined;
  }

  /** Gives what is recorded now to what `audit` names. What serves does so when it ends. */
  flushAudit(): void {
    this.#take?.();
    this.#native.flushAudit();
  }

  /** An endpoint, and what ends it. */
  #endpoint(options: HttpOptions): [Endpoint, () => void] {
    const lifespan = this.#lifespan;
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
      const { serve } = await import('./stdio.js');
      await this.#hosted(() => serve(this.#native, this.#peers, { ...options, ending: this.#ending }));
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
      await this.#lifespan.leave();
    }
  }

  get #registrar(): Registrar {
    return { publish: (edits) => this.#publish(edits), peers: this.#peers, watches: this.#watches };
  }

  /** What is called for a function, made once for all resources that it reads. */
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

/** The error for a handler's factory that was called as if it were the handler. */
function madeFor(factory: string, given: string): TypeError {
  return new TypeError(
    `${factory}() makes a handler and answers no request: const handle = server.${factory}() once, then handle(${given})`,
  );
}

/** Checks what a registration is called with. */
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
