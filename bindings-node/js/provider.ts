/** The ready-made providers: the functions that make them, and their classes. */
import { binding, type NativeProvider, type PlainValue } from './binding.js';
import { bytesOf } from './bytes.js';
import { COUNT, checkFunction, checkOptions, either, isObject, type Shape, shown, TEXT } from './check.js';
import { translated } from './errors.js';
import type {
  ApiOptions,
  ClockOptions,
  ConfigOptions,
  Database,
  DocsOptions,
  EnvOptions,
  FilesOptions,
  GitOptions,
  MetricsOptions,
  RagOptions,
  ResultsOptions,
  ServerEntry,
  SkillsOptions,
} from './provider-options.js';
import type { ApiEndpoints, Collection, Embedder, Roots } from './provider-values.js';
import { embedded } from './rag.js';

/** The compiled part of a provider. Throws for any other value. */
export let nativeOf: (provider: unknown, call: string) => NativeProvider;

let make: (native: NativeProvider) => Provider;
let makeMemory: (native: NativeProvider) => Memory;
let makeMetrics: (native: NativeProvider) => Metrics;
let makeResults: (native: NativeProvider) => Results;

/**
 * A ready-made source of resources for `ResourceServer.mount`. It answers on threads of its own, so its reads never wait for
 * the event loop. The functions of `providers` make providers.
 */
export class Provider {
  readonly #native: NativeProvider;

  static {
    make = (native) => new Provider(native);
    nativeOf = (provider, call) => {
      if (typeof provider === 'object' && provider !== null && #native in provider) return provider.#native;
      throw new TypeError(
        `${call} takes providers, such as providers.memory(), not ${shown(provider)}${fix(provider)}`,
      );
    };
  }

  /** Called by functions such as {@link clock} and {@link memory} only. */
  protected constructor(native: NativeProvider) {
    if (!(native instanceof binding.NativeProvider)) {
      throw new TypeError('a provider is made by a function, such as providers.memory()');
    }
    this.#native = native;
    Object.freeze(this);
  }
}

/** The options of {@link Memory.put}. */
export interface PutOptions {
  /** The media type. Default: `text/plain` for a text, `application/octet-stream` for bytes. */
  readonly mimeType?: string;
}

/**
 * A folder in memory: `memory:///{+path}`. A program puts entries into it; clients list, read and watch them. Several servers
 * can mount it and then serve the same entries. Entries stay until they are removed. Made by {@link memory}.
 */
export class Memory extends Provider {
  static {
    makeMemory = (native) => new Memory(native);
  }

  /**
   * Stores a text or bytes at a path, and replaces what was there. Clients that watch the entry are notified and, if it is
   * new, those that listen to the list.
   *
   * @param path - a path such as `notes/today.md`. Characters that a URI cannot contain are percent-encoded.
   * @param body - the contents. Bytes are copied.
   * @throws {TypeError} `path` is not a string, `body` is neither a string nor bytes, or an option is wrong.
   */
  put(path: string, body: string | Uint8Array, options: PutOptions = {}): void {
    checkPath(path);
    const content = typeof body === 'string' ? body : bytesOf(body);
    if (content === undefined) {
      const json = 'for a value, pass JSON.stringify(value) and { mimeType: "application/json" }';
      throw new TypeError(`the body at "${path}" is ${shown(body)}, expected a string or bytes; ${json}`);
    }
    checkOptions(`put("${path}", …)`, options, { mimeType: TEXT }, { mime_type: 'did you mean "mimeType"?' });
    const { mimeType } = options;
    translated(() => nativeOf(this, 'put()').put(path, content, mimeType));
  }

  /** Removes the entry at a path. Returns `false` if there is none. Its subscribers and listeners of the list are notified. */
  remove(path: string): boolean {
    checkPath(path);
    return nativeOf(this, 'remove()').remove(path);
  }

  /** The number of entries. */
  get size(): number {
    return nativeOf(this, 'size').size;
  }
}

/**
 * Series of numbers: `metrics:///{name}`. A program pushes samples; clients list, read and watch the series. Mount it in one
 * server at a time; samples can be pushed at any time. Made by {@link metrics}.
 */
export class Metrics extends Provider {
  static {
    makeMetrics = (native) => new Metrics(native);
  }

  /**
   * Adds a sample to a series. The first sample creates the series. Subscribers are notified once per `interval` at most.
   *
   * @param name - the name of the series, such as `queue_length`: 1 to 256 bytes without control characters.
   * @param value - the value. `NaN` becomes `null` in JSON.
   * @param at - the time of the measurement: a `Date`, or milliseconds since 1970. Default: now. A sample that is older than
   * all samples of a full series is dropped.
   * @throws {TypeError} an argument has the wrong type, or the name or the time is not allowed.
   * @throws {Error} there are too many series.
   */
  push(name: string, value: number, at?: Date | number): void {
    if (typeof name !== 'string')
      throw new TypeError(`the name is ${shown(name)}, expected a string such as "queue_length"`);
    if (typeof value !== 'number') throw new TypeError(`${name}: the value is ${shown(value)}, expected a number`);
    const time = at instanceof Date ? at.getTime() : at;
    if (time !== undefined && typeof time !== 'number')
      throw new TypeError(`${name}: the time is ${shown(at)}, expected a Date or milliseconds since 1970`);
    translated(() => nativeOf(this, 'push()').push(name, value, time));
  }

  /** The number of samples that were refused because there were too many series. */
  get refused(): number {
    return nativeOf(this, 'refused').refused;
  }
}

/** The options of {@link Results.put}. */
export interface PutResultOptions {
  /** How long the result is kept: a text such as `"10min"`, or milliseconds. Default: the `ttl` of the cache. */
  readonly ttl?: number | string;
  /** The media type. Default: `text/plain` for a text, `application/octet-stream` for bytes. */
  readonly mimeType?: string;
  /** The only client that sees the result: the subject of its token, or `""` for the client on stdio. Default: all. */
  readonly principal?: string;
}

/** The client that a result belongs to. */
export interface ResultOptions {
  /** The client that the result belongs to: the subject of its token, or `""` for the client on stdio. Default: all. */
  readonly principal?: string;
}

const TIME = either("a time such as '1h', or a whole number of milliseconds", COUNT, TEXT);
const PUT_RESULT_SHAPE: Shape<PutResultOptions> = { ttl: TIME, mimeType: TEXT, principal: TEXT };
const RESULT_SHAPE: Shape<ResultOptions> = { principal: TEXT };

/** A cache of computed results, for one server. Made by {@link results}. */
export class Results extends Provider {
  readonly #computing = new Map<string, Promise<string | Uint8Array>>();

  static {
    makeResults = (native) => new Results(native);
  }

  /**
   * Stores a text or bytes under an id, and replaces what was there. Clients that watch the result are notified and, if it is
   * new, those that listen to the list. The least recently used results are dropped if the cache is full.
   *
   * @param id - any text of 1 to 1,024 bytes. A slash in it becomes `~2F` in the URI.
   * @param body - the contents. Bytes are copied.
   * @throws {TypeError} the id or an option is not allowed, or the body is neither a string nor bytes, or too large.
   * @throws {Error} the file cannot be written.
   */
  put(id: string, body: string | Uint8Array, options: PutResultOptions = {}): void {
    checkId(id);
    const content = typeof body === 'string' ? body : bytesOf(body);
    if (content === undefined) {
      throw new TypeError(`the body of "${id}" is ${shown(body)}, expected a string or bytes`);
    }
    checkOptions(`put("${id}", …)`, options, PUT_RESULT_SHAPE);
    translated(() => nativeOf(this, 'put()').putResult(id, content, given(options) as PlainValue));
  }

  /**
   * Returns the contents under an id, or `undefined`.
   *
   * @throws {Error} the file cannot be read.
   */
  get(id: string, options: ResultOptions = {}): string | Uint8Array | undefined {
    checkId(id);
    checkOptions(`get("${id}", …)`, options, RESULT_SHAPE);
    return translated(() => nativeOf(this, 'get()').getResult(id, options.principal)) ?? undefined;
  }

  /**
   * Returns the contents under an id. If there are none, calls `compute`, and stores and returns its result. Concurrent calls
   * with the same id and principal share one computation and its result or error. Errors are not stored.
   *
   * @param id - see {@link Results.put}.
   * @param compute - a function without arguments that returns the contents; it may be `async`.
   * @throws the errors of `compute` and of {@link Results.put}.
   */
  async getOrCompute<T extends string | Uint8Array>(
    id: string,
    compute: () => T | PromiseLike<T>,
    options: PutResultOptions = {},
  ): Promise<string | Uint8Array> {
    checkOptions(`getOrCompute("${id}", …)`, options, PUT_RESULT_SHAPE);
    if (typeof compute !== 'function') {
      throw new TypeError(`what computes "${id}" is ${shown(compute)}, expected a function that returns the body`);
    }
    const whose = options.principal === undefined ? {} : { principal: options.principal };
    const found = this.get(id, whose);
    if (found !== undefined) return found;
    const key = JSON.stringify([id, options.principal]);
    const other = this.#computing.get(key);
    if (other !== undefined) return other;
    const computed = (async () => {
      const body = await compute();
      this.put(id, body, options);
      return body;
    })().finally(() => this.#computing.delete(key));
    this.#computing.set(key, computed);
    return computed;
  }

  /**
   * Removes the result under an id. Returns `false` if there is none.
   *
   * @throws {Error} the file cannot be written.
   */
  remove(id: string, options: ResultOptions = {}): boolean {
    checkId(id);
    checkOptions(`remove("${id}", …)`, options, RESULT_SHAPE);
    return translated(() => nativeOf(this, 'remove()').removeResult(id, options.principal));
  }

  /** The number of results, those of single clients included. */
  get size(): number {
    return translated(() => nativeOf(this, 'size').countResults());
  }
}

/**
 * Serves endpoints of HTTP APIs: `api:///{name}/{endpoint}/{+id}`. Endpoints are declared one by one, or are operations of an
 * OpenAPI document.
 *
 * Requests go to public addresses only, unless `privateNetworks` is set. Environment variables are read when this function is
 * called.
 *
 * @param apis - the APIs by name, each with its `endpoints` by name, or with `openapi` and `allow`.
 * @throws {TypeError} an endpoint cannot be served, a variable is not set, or an option is wrong.
 */
export function api(apis: Readonly<Record<string, ApiEndpoints>>, options: ApiOptions = {}): Provider {
  if (!isObject(apis)) throw new TypeError(`api() takes APIs by name, not ${shown(apis)}`);
  return declared('api', options, { apis: pairs(apis, endpointsOf) });
}

/** An object as pairs, because its names are not names of options. */
function pairs(named: unknown, value: (value: unknown) => unknown = (same) => same): unknown {
  return isObject(named) ? Object.entries(named).map(([name, one]) => [name, value(one)]) : named;
}

/** An object with one of its members as pairs. */
function withPairs(object: unknown, member: string, value?: (value: unknown) => unknown): unknown {
  if (!isObject(object) || object[member] === undefined) return object;
  return { ...object, [member]: pairs(object[member], value) };
}

function endpointsOf(api: unknown): unknown {
  return withPairs(withPairs(api, 'headers'), 'endpoints', (endpoint) => withPairs(endpoint, 'headers'));
}

/**
 * Serves the current time: `clock:///now`, and `clock:///{+zone}` for a time zone, such as `clock:///Asia/Tokyo`.
 *
 * Subscribers are notified every second. A clock belongs to one server; make another one for each.
 *
 * @throws {TypeError} an option is wrong, or there is no such zone.
 */
export function clock(options: ClockOptions = {}): Provider {
  return declared('clock', options);
}

/**
 * Serves the files of directories: `file:///{root}/{+path}`, with `?lines=10-40` for a part of a text.
 *
 * Subscribers of a file or directory are notified of its changes; the list changes when files are added or removed. Files
 * outside of a directory are never read, also not through links.
 *
 * @param roots - a directory, an array of directories, or directories by name. Without a name, a directory is served under
 * its own.
 * @throws {TypeError} a directory does not exist, two have the same name, or an option is wrong.
 */
export function files(roots: Roots, options: FilesOptions = {}): Provider {
  return declared('files', options, { roots: inPairs('files', roots) });
}

/**
 * Serves the Markdown pages of directories, with full-text search in Japanese and English.
 *
 * The URI of a page is `docs:///handbook/guide/search.md`; `#slug` names a section of it. `docs:///handbook/search/WORDS` is a
 * search. Subscribers of a page, section or search are notified of its changes. The search index of a site is built at the
 * first request.
 *
 * @param sites - a directory, an array of directories, or directories by name. Without a name, a directory is served under
 * its own.
 * @throws {TypeError} a directory does not exist, two have the same name, or an option is wrong.
 */
export function docs(sites: Roots, options: DocsOptions = {}): Provider {
  return declared('docs', options, { sites: inPairs('docs', sites) });
}

/**
 * Serves the values of configuration files: `config:///{app}`, and `config:///{app}/{+key}` for one key.
 *
 * Files are YAML, TOML, JSON or `.env`; the URI of a key is `config:///demo/server/port`. Only keys in `allow` are served, and
 * values that may be secrets are masked. Subscribers of a key or a file are notified when a value that they see changes. While
 * a file is incomplete, its previous values are served.
 *
 * @param apps - a file, an array of files, or files by name. Without a name, a file is served under its own, without the
 * extension.
 * @throws {TypeError} a file does not exist or cannot be parsed, two have the same name, or an option is wrong.
 */
export function config(apps: Roots, options: ConfigOptions): Provider {
  return declared('config', options ?? {}, { apps: inPairs('config', apps) });
}

/**
 * Serves tables and views of databases: `db:///{name}/{table}` and `db:///{name}/{table}/{key}`.
 *
 * Rows and pages are JSON; `next` in a page is the URI of the next one. Clients never send SQL, and nothing is written.
 * Subscribers of a row, page or view are notified of its changes: SQLite is checked for commits, Postgres needs the triggers
 * that `mcp-resources triggers` prints. A server can have only one such provider: name all databases in one call.
 *
 * @param databases - the databases, by their names in URIs.
 * @throws {TypeError} a file does not exist, or a name, URL, table, query or option is not allowed.
 */
export function db(databases: Readonly<Record<string, Database>>): Provider {
  if (!isObject(databases)) {
    throw new TypeError("db() takes databases by their names, such as { shop: { url: 'sqlite:shop.db' } }");
  }
  const pairs = Object.entries(databases).map(([name, database]) => {
    // A URL in its place may have a password: it is not shown.
    if (!isObject(database ?? {})) throw new TypeError(`db(): ${name} takes an object of options, such as { url }`);
    return [name, withPairs(database ?? {}, 'views')];
  });
  return declared('db', {}, { databases: pairs });
}

/**
 * Serves environment variables: `env:///{name}`, and `env:///` for all that are allowed.
 *
 * They are read once, when this function is called; later changes of `process.env` have no effect. Values that may be secrets
 * are masked.
 *
 * @throws {TypeError} an option is wrong.
 */
export function env(options: EnvOptions): Provider {
  return declared('env', options ?? {});
}

/**
 * Serves Git repositories, read-only: status, log, commits, diffs, and files of any revision.
 *
 * The URIs are `git:///{repo}/status`, `/branches`, `/tags`, `/log`, `/log/{ref}`, `/commit/{id}`, `/diff/{from}/{to}`,
 * `/tree/{ref}/{+path}` and `/blob/{ref}/{+path}`. No program of a repository is run: no hook, filter, text converter or file
 * system monitor. Subscribers are notified when a commit, a fetch or an edit changes the resource.
 *
 * @param repos - a repository (the root of a working tree, or a bare repository), an array of them, or repositories by name.
 * Without a name, a repository is served under that of its directory.
 * @throws {TypeError} a directory is not a repository or leads to another one, two have the same name, or an option is wrong.
 */
export function git(repos: Roots, options: GitOptions = {}): Provider {
  return declared('git', options, { repos: inPairs('git', repos) });
}

/**
 * Serves series of numbers: `metrics:///{name}` is the last hour of a series.
 *
 * `?from=-5m&step=10s` reads another part.
 * {@link Metrics.push} adds samples. If there are more samples than `points`, a read combines them: each point has their
 * minimum, maximum and mean, so no spike is lost. With `host`, the CPU, memory, disks and network of this machine are measured
 * while clients read or watch them.
 *
 * @throws {TypeError} an option is wrong.
 */
export function metrics(options: MetricsOptions = {}): Metrics {
  return makeMetrics(native('metrics', options, {}, (all) => binding.NativeProvider.metrics(all)));
}

/**
 * Serves directories of Agent Skills: `skill://{+path}`, with the methods of the skills extension.
 *
 * A directory with a `SKILL.md` is a skill: `skill://acme/billing/refunds/SKILL.md` is in the directory `acme/billing/refunds`.
 * `skills/list` and `skills/get` return the front matter of a skill and the digest of each of its files,
 * `resources/directory/read` the children of a directory. Clients without the extension read the files as resources. Skills
 * that violate the Agent Skills specification are logged and not served.
 *
 * @param paths - a directory that is a skill or contains skills, an array of them, or directories by the prefix of their
 * paths, such as `acme/billing`.
 * @throws {TypeError} a directory does not exist, or an option is wrong.
 */
export function skills(paths: Roots, options: SkillsOptions = {}): Provider {
  return declared('skills', options, { paths: inPairs('skills', paths) });
}

/** Directories or files as the compiled part takes them: names are passed as pairs. */
function inPairs(kind: string, roots: unknown): unknown {
  if (roots instanceof URL) {
    throw new TypeError(`${kind}(): the path is a URL, expected a string; pass fileURLToPath(url)`);
  }
  return pairs(roots);
}

/** The members that are not `undefined`. */
function given(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** A value as the compiled part takes it. One that it cannot take becomes bytes, which no option takes. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (isObject(value)) return Object.fromEntries(Object.entries(given(value)).map(([name, own]) => [name, plain(own)]));
  return ['boolean', 'number', 'string'].includes(typeof value) || value === null ? value : new Uint8Array();
}

/** A provider of the core. `own` are the arguments beside the options. The core refuses what is wrong. */
function declared(kind: string, options: unknown, own: object = {}): Provider {
  return make(native(kind, options, own, (all) => binding.NativeProvider.declared(kind, all)));
}

function native(
  kind: string,
  options: unknown,
  own: object,
  call: (options: PlainValue) => NativeProvider,
): NativeProvider {
  if (!isObject(options)) throw new TypeError(`${kind}() takes an object of options, not ${shown(options)}`);
  const all = { ...options, ...own };
  return translated(() => call(plain(all) as PlainValue), { [kind]: all });
}

/** Makes an empty folder in memory: `memory:///{+path}`. */
export function memory(): Memory {
  return makeMemory(binding.NativeProvider.memory());
}

/**
 * Serves passages of documents for retrieval, from folders and Google Drive.
 *
 * `rag:///kb/search/QUESTION` returns passages, each with the URI of its document, `rag:///kb/doc/ID`, and with its score and
 * position in `_meta`. The ranking is BM25, which compares words, not meanings. With an `embedder`, it is combined with the
 * nearest vectors.
 *
 * @param collections - the collections by name: each a directory, or documents of Google Drive.
 * @param options - `embedder`: makes vectors of passages and questions. Default: the ranking is BM25 only.
 * @throws {TypeError} a directory or file does not exist, or an option is wrong.
 */
export function rag(
  collections: Readonly<Record<string, Collection>>,
  options: RagOptions & { readonly embedder?: Embedder } = {},
): Provider {
  if (!isObject(collections)) {
    throw new TypeError(
      `rag() takes collections by their names, such as { kb: { folder: 'notes' } }, not ${shown(collections)}`,
    );
  }
  const { embedder, ...rest } = options;
  const own = { collections: Object.entries(collections) };
  if (embedder === undefined) return declared('rag', rest, own);
  checkFunction('embedder', embedder);
  return make(native('rag', rest, own, (all) => embedded(all, embedder)));
}

/**
 * Serves a cache of computed results: `results:///{analysisId}`, and `results:///` for all of them.
 *
 * A program puts its results into the cache; clients list, read and watch them until they expire. Reads carry the remaining
 * time as a caching hint. A result is visible to all clients or to one principal; to others it does not exist.
 *
 * @throws {TypeError} an option is wrong, or the file cannot be used.
 */
export function results(options: ResultsOptions = {}): Results {
  return makeResults(native('results', options, {}, (all) => binding.NativeProvider.results(all)));
}

/**
 * Serves what other MCP servers have: their resources, templates, tools and prompts.
 *
 * The servers may use any SDK, stdio or HTTP, and any protocol revision. URIs and names stay as they are, unless two servers
 * have the same, or a server has a `prefix`. A server is started when it is first needed. One that fails does not affect the
 * others. Updates of theirs reach the subscribers of this server. A server can have only one such provider: name all servers
 * in one call.
 *
 * @param servers - the servers by name: each a URL, or an object with `command` or `url`.
 * @throws {TypeError} an entry has neither or both of `command` and `url`, a variable is not set, or an option is wrong.
 */
export function upstream(servers: Readonly<Record<string, string | ServerEntry>>): Provider {
  if (!isObject(servers)) {
    throw new TypeError("upstream() takes servers by their names, such as { wiki: 'https://wiki.example/mcp' }");
  }
  const entry = (one: unknown) => withPairs(withPairs(one, 'headers'), 'env');
  return declared('upstream', {}, { servers: pairs(servers, entry) });
}

function checkId(id: unknown): void {
  if (typeof id !== 'string') throw new TypeError(`the id is ${shown(id)}, expected a string`);
}

function checkPath(path: unknown): void {
  if (typeof path !== 'string')
    throw new TypeError(`the path is ${shown(path)}, expected a string such as "notes/a.md"`);
}

/** Advice for a value that is not a provider. */
function fix(given: unknown): string {
  if (shown(given) === 'a ResourceServer') return '; register its resources on this server instead';
  if (typeof given === 'function') return '; call it, and mount what it returns';
  if (Array.isArray(given)) return '; spread it: mount(...list)';
  if (typeof (given as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function')
    return '; await it first';
  if (typeof given === 'string') return '; for what stands in a file, use resource() with a function that reads it';
  return '';
}
