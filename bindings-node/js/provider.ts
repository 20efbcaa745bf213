/** Sources of resources that are ready to serve, and what is asked of them here. */
import { binding, type NativeProvider, type PlainValue } from './binding.js';
import { bytesOf } from './bytes.js';
import {
  CALL,
  COUNT,
  checkOptions,
  either,
  FLAG,
  isObject,
  type Kind,
  oneOf,
  type Shape,
  shown,
  TEXT,
  TEXTS,
} from './check.js';
import { translated } from './errors.js';
import { type Collection, type Embedder, embedded } from './rag.js';

/** The compiled part of what `ResourceServer.mount` is given. */
export let nativeOf: (provider: unknown, call: string) => NativeProvider;

let make: (native: NativeProvider) => Provider;
let makeMemory: (native: NativeProvider) => Memory;
let makeMetrics: (native: NativeProvider) => Metrics;
let makeResults: (native: NativeProvider) => Results;

/**
 * A source of resources that is not a function of yours: see `ResourceServer.mount`. Its own threads answer: a read of it
 * never waits for the event loop. Made by a function of `providers`.
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

  /** Made by functions such as {@link clock} and {@link memory} alone. */
  protected constructor(native: NativeProvider) {
    if (!(native instanceof binding.NativeProvider)) {
      throw new TypeError('a provider is made by a function, such as providers.memory()');
    }
    this.#native = native;
    Object.freeze(this);
  }
}

/** What is said of an entry that is put into a {@link Memory}. */
export interface PutOptions {
  /** Its media type. Default: `text/plain` for a text, `application/octet-stream` for bytes. */
  readonly mimeType?: string;
}

/**
 * A folder in memory, at `memory:///{+path}`: a program puts entries in and takes them out, clients list, read and watch
 * them. Every server that mounts it serves the same entries. Made by {@link memory}.
 */
export class Memory extends Provider {
  static {
    makeMemory = (native) => new Memory(native);
  }

  /**
   * Puts a text or bytes at a path, such as `notes/today.md`, in the place of what was there. Clients that watch it are
   * told, and those that listen to the list if it is new. The bytes are copied.
   *
   * @throws {TypeError} the path is no string, the body neither a text nor bytes, or an option is wrong.
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

  /** Takes out what is at a path; `false` if nothing is. Subscribers are notified, and that the list has changed. */
  remove(path: string): boolean {
    checkPath(path);
    return nativeOf(this, 'remove()').remove(path);
  }

  /** How many entries there are. */
  get size(): number {
    return nativeOf(this, 'size').size;
  }
}

/**
 * Series of numbers: `metrics:///{name}`. A program pushes samples; clients list, read and watch the series. It is in one server
 * at a time, and can be pushed to before, during and after that. Made by {@link metrics}.
 */
export class Metrics extends Provider {
  static {
    makeMetrics = (native) => new Metrics(native);
  }

  /**
   * Adds a sample to the series `name`, which begins with its first sample. Subscribers are notified once for each `interval`.
   *
   * @param name - 1 to 256 bytes without control characters, such as `queue_length`.
   * @param value - a number. `NaN` is kept, and is `null` in JSON.
   * @param at - when it was measured: a `Date`, or milliseconds since 1970. Default: now. A sample that is older than all that a
   * full series keeps is dropped.
   * @throws {TypeError} an argument has a wrong type, or the name or the time is not allowed.
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

  /** How many samples were refused because there were too many series. */
  get refused(): number {
    return nativeOf(this, 'refused').refused;
  }
}

/** How a result is put into {@link Results}. */
export interface PutResultOptions {
  /** How long it is kept: `'10min'`, or milliseconds. Default: the `ttl` of the cache. */
  readonly ttl?: number | string;
  /** Its media type. Default: `text/plain` for a text, `application/octet-stream` for bytes. */
  readonly mimeType?: string;
  /** The subject of the only tokens that see it; `''` is the client on stdio. Default: everybody sees it. */
  readonly principal?: string;
}

/** Whose result it is. */
export interface ResultOptions {
  /** The subject of a token; `''` is the client on stdio. Default: everybody. */
  readonly principal?: string;
}

const NULL = { is: (value: unknown) => value === null, expected: 'null' };
const TIME = either("a time such as '1h', or a whole number of milliseconds", COUNT, TEXT);
const PUT_RESULT_SHAPE: Shape<PutResultOptions> = { ttl: TIME, mimeType: TEXT, principal: TEXT };
const RESULT_SHAPE: Shape<ResultOptions> = { principal: TEXT };

/** A cache of results, for one server. Made by {@link results}. */
export class Results extends Provider {
  readonly #computing = new Map<string, Promise<string | Uint8Array>>();

  static {
    makeResults = (native) => new Results(native);
  }

  /**
   * Puts a text or bytes under an id, in the place of what was there. Clients that watch it are notified, and those that listen
   * to the lists if it is new. Results that were used least recently make room. The bytes are copied.
   *
   * @param id - 1 to 1,024 bytes of any text; a slash is `~2F` in its URI.
   * @throws {TypeError} the id or an option is wrong, the body is neither a text nor bytes, or larger than the cache.
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
   * The contents under an id that everybody sees, or that this principal sees; `undefined` if there are none.
   *
   * @throws {Error} the file cannot be read.
   */
  get(id: string, options: ResultOptions = {}): string | Uint8Array | undefined {
    checkId(id);
    checkOptions(`get("${id}", …)`, options, RESULT_SHAPE);
    return translated(() => nativeOf(this, 'get()').getResult(id, options.principal)) ?? undefined;
  }

  /**
   * The contents under an id, or what `compute` gives, which is put. Concurrent calls with the same id and principal run one
   * computation, and have the same end. Nothing is kept of a computation that fails.
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
   * Takes out what everybody, or this principal, has under an id; `false` if nothing is.
   *
   * @throws {Error} the file cannot be written.
   */
  remove(id: string, options: ResultOptions = {}): boolean {
    checkId(id);
    checkOptions(`remove("${id}", …)`, options, RESULT_SHAPE);
    return translated(() => nativeOf(this, 'remove()').removeResult(id, options.principal));
  }

  /** How many results there are, of everybody and of all principals. */
  get size(): number {
    return translated(() => nativeOf(this, 'size').countResults());
  }
}

/** What is set for {@link results}. */
export interface ResultsOptions {
  /** The results are served as `SCHEME:///ID`. Default `results`. */
  readonly scheme?: string;
  /** How many results are kept at most; the one that was used least recently makes room. Default 1,000. */
  readonly entries?: number;
  /** How many bytes of contents are kept at most: `'64 MiB'`, or a number. Default 64 MiB. */
  readonly bytes?: number | string;
  /** How long a result is kept that is put without a time of its own: `'1h'`, or milliseconds. Default an hour. */
  readonly ttl?: number | string;
  /** Keeps the results in this SQLite file, which is made if it does not exist. Default: in memory. */
  readonly file?: string | null;
}

const SIZE = either("a size such as '64 MiB', or a whole number of bytes", COUNT, TEXT);
const RESULTS_SHAPE: Shape<ResultsOptions> = {
  scheme: TEXT,
  entries: COUNT,
  bytes: SIZE,
  ttl: TIME,
  file: either('a string or null', TEXT, NULL),
};

/** One endpoint of an API. */
export interface ApiEndpoint {
  /** The URL, with `{id}` where the end of the resource's URI stands, encoded as one segment. */
  readonly url: string;
  /** Headers to send: values, or the variables of the environment that have them when this is called. */
  readonly headers?: Readonly<Record<string, string | { readonly env: string }>>;
  /** A JSON pointer to the part of the answer that is served. Default: the whole answer. */
  readonly pick?: string;
  /** Ids that are listed and completed. Default: none. */
  readonly ids?: string | readonly string[];
}

/** The endpoints of one API, by name: each a URL, or more of it. */
export interface ApiEndpoints {
  readonly endpoints: Readonly<Record<string, string | ApiEndpoint>>;
}

/** What is set for all endpoints of {@link api}. */
export interface ApiOptions {
  /** Whether requests may go to addresses that are not public, such as those of this machine. Default `false`. */
  readonly privateNetworks?: boolean;
  /** How many redirects are followed; headers are not sent to another origin. Default none. */
  readonly redirects?: number;
  /** How long an answer may take: `'10s'`, or milliseconds. Default 10 s. */
  readonly timeout?: number | string;
  /** The largest answer: `'1 MiB'`, or a number of bytes. Default 1 MiB. */
  readonly bytes?: number | string;
  /** How often a resource is requested while clients watch it: `'30s'`, or milliseconds. Default 30 s. */
  readonly poll?: number | string;
}

const API_SHAPE: Shape<ApiOptions> = {
  privateNetworks: FLAG,
  redirects: COUNT,
  timeout: TIME,
  bytes: SIZE,
  poll: TIME,
};

/** What is set for all roots of {@link files}. */
export interface FilesOptions {
  /** Globs: only files whose path within their root matches one of them are served; `*` is within a segment, `**` over segments. Default: all. */
  readonly include?: string | readonly string[];
  /** Globs: nothing whose path within its root matches one of them is served, nor what is beneath it. Default: none. */
  readonly exclude?: string | readonly string[];
  /** Whether what `.gitignore`, `.ignore` and `.git/info/exclude` name is not served. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether names that begin with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** Whether symbolic links are followed that lead to a place beneath the same root. Default `never`. */
  readonly symlinks?: 'never' | 'inside';
  /** How many files are listed at most; all can be read. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
  /** How many directories the system watches at most; beyond it they are looked at from time to time. Default 8,192. */
  readonly watchDirs?: number;
  /** The largest file that is read, in bytes. Default: what an answer of the server may have. */
  readonly maxBytes?: number | null;
}

/** What is set for all repositories of {@link git}. */
export interface GitOptions {
  /** Globs: only files whose path within the repository matches one of them are served; `*` is within a segment, `**` over segments. Default: all. */
  readonly include?: string | readonly string[];
  /** Globs: nothing whose path within the repository matches one of them is served, nor what is beneath it. Default: none. */
  readonly exclude?: string | readonly string[];
  /** Whether names that begin with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** How many commits a log has at most. Default 1,000. */
  readonly logMax?: number;
  /** The largest diff, in bytes or as a text such as `'1 MiB'`. Default 1 MiB. */
  readonly diffBytes?: number | string;
  /** Which references can be named, as folders of `refs`: `remotes` is allowed too. Default `['heads', 'tags']`: branches and tags. */
  readonly refs?: string | readonly string[];
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
}

const GLOBS = either('a glob or an array of globs', TEXT, TEXTS);
const FILE_OR_NULL = either('a file or null', TEXT, NULL);
const FILES_SHAPE: Shape<FilesOptions> = {
  include: GLOBS,
  exclude: GLOBS,
  gitignore: FLAG,
  hidden: FLAG,
  symlinks: oneOf('never', 'inside'),
  listMax: COUNT,
  watch: FLAG,
  watchDirs: COUNT,
  maxBytes: either('a whole number of bytes or null', COUNT, { is: (value) => value === null, expected: '' }),
};

const GIT_SHAPE: Shape<GitOptions> = {
  include: GLOBS,
  exclude: GLOBS,
  hidden: FLAG,
  logMax: COUNT,
  diffBytes: either('a whole number of bytes or a text such as "1 MiB"', COUNT, TEXT),
  refs: either('a folder of refs or an array of them', TEXT, TEXTS),
  watch: FLAG,
};

/** What is set for all collections of {@link rag}. */
export interface RagOptions {
  /** Globs: only files of folders whose path matches one of them are taken; `*` is within a segment, `**` over segments. Default: all. */
  readonly include?: string | readonly string[];
  /** Globs: no file of folders whose path matches one of them is taken, nor what is beneath it. Default: none. */
  readonly exclude?: string | readonly string[];
  /** How many documents are listed at most; all can be read and searched. Default 1,000. */
  readonly listMax?: number;
  /** How often Drive is asked for changes, while it is used: `'30s'`, or milliseconds. Default 30 s. */
  readonly poll?: number | string;
  /** How many passages a search gives, at most 100. Default 10. */
  readonly hits?: number;
  /** The file that keeps the search index between two runs. Default: the index is in memory. */
  readonly index?: string | null;
}

const RAG_SHAPE: Shape<RagOptions & { readonly embedder?: Embedder }> = {
  include: GLOBS,
  exclude: GLOBS,
  listMax: COUNT,
  poll: TIME,
  hits: COUNT,
  index: FILE_OR_NULL,
  embedder: CALL,
};

/** What is set for all sites of {@link docs}. */
export interface DocsOptions {
  /** Globs: only pages whose path within their site matches one of them are served; `*` is within a segment, `**` over segments. Default: all. */
  readonly include?: string | readonly string[];
  /** Globs: no page whose path within its site matches one of them is served, nor what is beneath it. Default: none. */
  readonly exclude?: string | readonly string[];
  /** Whether what `.gitignore`, `.ignore` and `.git/info/exclude` name is not served. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether names that begin with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** How many pages are listed at most; all can be read and searched. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
  /** How many directories the system watches at most; beyond it they are checked periodically. Default 8,192. */
  readonly watchDirs?: number;
  /** The largest page that is read, in bytes. Default: what an answer of the server may have. */
  readonly maxBytes?: number | null;
  /** The file that keeps the search index between two runs. Default: the index is in memory. */
  readonly index?: string | null;
}

const DOCS_SHAPE: Shape<DocsOptions> = {
  include: GLOBS,
  exclude: GLOBS,
  gitignore: FLAG,
  hidden: FLAG,
  listMax: COUNT,
  watch: FLAG,
  watchDirs: COUNT,
  maxBytes: either('a whole number of bytes or null', COUNT, NULL),
  index: FILE_OR_NULL,
};

/** What is set for all directories of {@link skills}. */
export interface SkillsOptions {
  /** Globs: nothing whose path within its directory matches one of them is served, nor what is beneath it. Default: none. */
  readonly exclude?: string | readonly string[];
  /** Whether what `.gitignore`, `.ignore` and `.git/info/exclude` name is not served. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether names that begin with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** How many files `resources/list` has at most; all can be read. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
}

const SKILLS_SHAPE: Shape<SkillsOptions> = {
  exclude: GLOBS,
  gitignore: FLAG,
  hidden: FLAG,
  listMax: COUNT,
  watch: FLAG,
};

/** What is set for all files of {@link config}. */
export interface ConfigOptions {
  /** Globs over the paths of keys: only keys that match one of them exist. `server` is that key, `server/**` all in it, `*` is within a segment. */
  readonly allow: string | readonly string[];
  /** Globs: values whose path matches one of them are never masked. Default: none. */
  readonly reveal?: string | readonly string[];
  /** Which detectors of the guard look for secrets in values; names such as `password` mask a value in any case. Default `all`. */
  readonly redact?: 'all' | readonly string[];
}

/** What is set for {@link clock}. */
export interface ClockOptions {
  /** Which zones are listed, such as `Asia/Tokyo`; every zone can be read. Default: UTC and the local zone. */
  readonly zones?: string | readonly string[];
}

/** What is set for {@link env}. */
export interface EnvOptions {
  /** The names of the variables that exist, as far as they are set; `LC_*` is all that begin so. */
  readonly allow: string | readonly string[];
  /** Variables whose values are never masked. Default: none. */
  readonly reveal?: string | readonly string[];
  /** Which detectors of the guard look for secrets in values; names such as `API_KEY` mask a value in any case. Default `all`. */
  readonly redact?: 'all' | readonly string[];
}

/** What is set for {@link metrics}. */
export interface MetricsOptions {
  /** How many series there may be, from 1 to 10,000; a push to another one is refused. Default 256. */
  readonly series?: number;
  /** How many samples each series keeps, from 1 to 1,000,000; a new one takes the place of the oldest. A series takes 16 bytes for each that it may keep. Default 3,600. */
  readonly samples?: number;
  /** How many points a read has at most if it does not choose a `step`, from 2 to 10,000. Default 240. */
  readonly points?: number;
  /** How often this machine is measured, and how often subscribers of a series are notified at most: a text such as `500ms` or `10s`, or milliseconds. Default one second. */
  readonly interval?: string | number;
  /** Whether the CPU, memory, disks and network of this machine are measured. Default `false`. */
  readonly host?: boolean;
}

const METRICS_SHAPE: Shape<MetricsOptions> = {
  series: COUNT,
  samples: COUNT,
  points: COUNT,
  interval: either('a time such as "1s", or a whole number of milliseconds', TEXT, COUNT),
  host: FLAG,
};

const NAMES = either('a name or an array of names', TEXT, TEXTS);
const REDACT = either("'all' or an array of detectors", oneOf('all'), TEXTS);
const CONFIG_SHAPE: Shape<ConfigOptions> = { allow: GLOBS, reveal: GLOBS, redact: REDACT };
const ENV_SHAPE: Shape<EnvOptions> = { allow: NAMES, reveal: NAMES, redact: REDACT };

/** A variable of the environment, in the place of a text that is secret. */
export interface EnvVariable {
  /** Its name. */
  readonly env: string;
}

/** What is served of a {@link Database}, and how. Nothing of it is served but what this names. */
export interface DbOptions {
  /** The password for Postgres, if the URL does not have it. */
  readonly password?: string | EnvVariable | null;
  /** The tables that are served: `customers`, or `sales.customers` in a schema of Postgres. Default: none. */
  readonly tables?: string | readonly string[];
  /** Columns that are not served: `password`, or `customers.password` in that table alone. Default: none. */
  readonly columnsDeny?: string | readonly string[];
  /** Statements that clients may have run, by their names: each a `SELECT`, with parameters such as `:city` that the client gives values to. Default: none. */
  readonly views?: Readonly<Record<string, string>>;
  /** How many rows a page of a table has if the client does not say: from 1 to 1,000. Default 100. */
  readonly rows?: number;
  /** How often the database is asked for changes while a client watches: `'200ms'`, or milliseconds. Default 200 ms, at least 10 ms. */
  readonly poll?: string | number;
}

/** A database for {@link db}. */
export interface Database extends DbOptions {
  /** `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/NAME`, or the variable of the environment that has it. */
  readonly url: string | EnvVariable;
}

/** The core checks it: its messages do not repeat what may be a password. */
const SECRET: Kind = { is: () => true, expected: '' };
const DB_SHAPE: Shape<Database> = {
  url: SECRET,
  password: SECRET,
  tables: NAMES,
  columnsDeny: NAMES,
  views: { is: (value) => isObject(value) && TEXTS.is(Object.values(value)), expected: 'an object of statements' },
  rows: COUNT,
  poll: either('a time such as 200 or "200ms"', COUNT, TEXT),
};

/** A directory, or a file. */
export type Root = string;

/** One directory or file, several, or directories or files by the names that they are to have. */
type Roots = Root | readonly Root[] | Readonly<Record<string, Root>>;

/**
 * Declared endpoints of HTTP APIs: `api:///{name}/{endpoint}/{+id}` (S-20). Requests go to public addresses alone, unless
 * `privateNetworks` is set. Variables of the environment are read when this is called.
 *
 * @param apis - by name, each with its endpoints by name.
 * @throws {TypeError} an endpoint cannot be served, a variable is not set, or an option is wrong.
 */
export function api(apis: Readonly<Record<string, ApiEndpoints>>, options: ApiOptions = {}): Provider {
  if (!isObject(apis)) throw new TypeError(`api() takes APIs by name, not ${shown(apis)}`);
  checkOptions('api()', options, API_SHAPE);
  return declared('api', { ...given(options), apis: pairs(apis, endpointsOf) });
}

/** Names with a value each, as pairs: what an author names is no name of an option. */
function pairs(named: unknown, value: (value: unknown) => unknown): unknown {
  return isObject(named) ? Object.entries(named).map(([name, one]) => [name, value(one)]) : named;
}

/** The members of an object, with names that an author chose as pairs. */
function withPairs(object: unknown, member: string, value: (value: unknown) => unknown): unknown {
  if (!isObject(object) || object[member] === undefined) return object;
  return { ...given(object), [member]: pairs(object[member], value) };
}

function endpointsOf(api: unknown): unknown {
  return withPairs(api, 'endpoints', (endpoint) => withPairs(endpoint, 'headers', (header) => header));
}

/**
 * The time: `clock:///now`, and `clock:///{+zone}` for a zone of the IANA database, such as `clock:///Asia/Tokyo`. Clients
 * that subscribe to it are notified every second. A server can mount one clock.
 *
 * @throws {TypeError} an option is wrong, or there is no such zone.
 */
export function clock(options: ClockOptions = {}): Provider {
  checkOptions('clock()', options, { zones: NAMES });
  return declared('clock', given(options));
}

/**
 * The files of directories: `file:///NAME/`, `file:///{root}/{+path}`, and `?lines=10-40` for a part of a text (S-01).
 * Subscribers of a file or directory are notified when it changes, and clients are notified that the list has changed when
 * files are added or removed. Nothing outside a directory is read, wherever its links lead.
 *
 * @param roots - a directory, which has its own name, several, or directories by the names that they are to have.
 * @throws {TypeError} a directory is not there, two have one name, or an option is wrong.
 */
export function files(roots: Roots, options: FilesOptions = {}): Provider {
  const pairs = inPairs(
    'files()',
    roots,
    "a directory, an array of them, or names with a directory each, such as { app: '.' }",
  );
  checkOptions('files()', options, FILES_SHAPE);
  return declared('files', { ...given(options), roots: pairs });
}

/**
 * The Markdown pages of directories, with full-text search in Japanese and English: `docs:///{site}/{+page}`, a section of a
 * page as `#slug`, and `docs:///{site}/search/{+query}` (S-07). Subscribers of a page, a section or a search are notified when
 * it changes. Searches of a site share an index that is built with the first request.
 *
 * @param sites - a directory, which has its own name, several, or directories by the names that they are to have.
 * @throws {TypeError} a directory is not there, two have one name, or an option is wrong.
 */
export function docs(sites: Roots, options: DocsOptions = {}): Provider {
  const pairs = inPairs(
    'docs()',
    sites,
    "a directory, an array of them, or names with a directory each, such as { handbook: 'docs' }",
  );
  checkOptions('docs()', options, DOCS_SHAPE);
  return declared('docs', { ...given(options), sites: pairs });
}

/**
 * The keys of configuration files: `config:///{app}`, and `config:///{app}/{+key}`, as `config:///demo/server/port` (S-04).
 * Files are YAML, TOML, JSON or `.env`. Only the keys that `allow` names are served, and values that may be secrets are masked.
 * Subscribers of a key or a whole file are notified when the value that is served changes. While a file is half-written, its
 * last good values are served.
 *
 * @param apps - a file without a name has its own, without the extension.
 * @throws {TypeError} a file is not there or makes no sense, two have one name, or an option is wrong.
 */
export function config(apps: Roots, options: ConfigOptions): Provider {
  const pairs = inPairs(
    'config()',
    apps,
    "a file, an array of them, or names with a file each, such as { app: 'app.yaml' }",
  );
  checkOptions('config()', options ?? {}, CONFIG_SHAPE);
  return declared('config', { ...given(options ?? {}), apps: pairs });
}

/**
 * The tables and views of databases: `db:///{name}/{table}` and `db:///{name}/{table}/{key}` (S-20). Rows and pages are JSON;
 * `next` in a page is the URI of the next one. Clients never send SQL, and nothing is written. Subscribers of a row, a page or a
 * view are notified when it changes: SQLite is asked for commits, Postgres tells of them once it has the triggers that
 * `mcp-resources triggers` prints. A server has one such provider: name all databases in one call.
 *
 * @param databases - the databases, by the names that they are to have in URIs.
 * @throws {TypeError} a file is not there, or a name, a URL, a table, a statement or an option cannot be served.
 */
export function db(databases: Readonly<Record<string, Database>>): Provider {
  if (!isObject(databases)) {
    throw new TypeError("db() takes databases by their names, such as { shop: { url: 'sqlite:shop.db' } }");
  }
  const pairs = Object.entries(databases).map(([name, database]): [string, object] => {
    // A URL in its place may have a password: it is not shown.
    if (!isObject(database ?? {})) throw new TypeError(`db(): ${name} takes an object of options, such as { url }`);
    checkOptions(`db(): ${name}`, database ?? {}, DB_SHAPE);
    const { views, ...options } = database ?? {};
    return [name, { ...given(options), ...(views && { views: Object.entries(views) }) }];
  });
  return declared('db', { databases: pairs });
}

/**
 * Variables of the environment: `env:///{name}`, and `env:///` for all that are allowed (S-04). They are read once, when this is
 * called: what `process.env` is given later is not seen. Values that may be secrets are masked.
 *
 * @throws {TypeError} an option is wrong.
 */
export function env(options: EnvOptions): Provider {
  checkOptions('env()', options ?? {}, ENV_SHAPE);
  return declared('env', given(options ?? {}));
}

/**
 * Git repositories, read-only: `git:///{repo}/status`, `/branches`, `/tags`, `/log`, `/commit/{id}`, `/diff/{from}/{to}`,
 * `/tree/{ref}/{+path}` and `/blob/{ref}/{+path}` (S-02). Nothing of a repository is run: no hook, filter, text converter or file
 * system monitor. Clients that watch a resource are notified when a commit, a fetch or an edit changes what they see of it.
 *
 * @param repos - the root of a working tree or a bare repository, which has the name of its directory, several, or directories
 * by the names that they are to have.
 * @throws {TypeError} a directory is not a repository, or leads to another one; two have one name; or an option is wrong.
 */
export function git(repos: Roots, options: GitOptions = {}): Provider {
  const pairs = inPairs(
    'git()',
    repos,
    "a directory, an array of them, or names with a directory each, such as { app: '.' }",
  );
  checkOptions('git()', options, GIT_SHAPE);
  return declared('git', { ...given(options), repos: pairs });
}

/**
 * Series of numbers: `metrics:///{name}` is the last hour of one, `?from=-5m&step=10s` another part of it (S-05). {@link Metrics.push}
 * adds samples. Where there are more samples than `points`, a read combines them: each point has their least, greatest and mean
 * value, so no spike is lost. With `host`, the CPU, memory, disks and network of this machine are measured while clients watch
 * or read.
 *
 * @throws {TypeError} an option is wrong.
 */
export function metrics(options: MetricsOptions = {}): Metrics {
  checkOptions('metrics()', options, METRICS_SHAPE);
  return makeMetrics(translated(() => binding.NativeProvider.metrics(given(options) as PlainValue)));
}

/**
 * Folders of Agent Skills: `skill://{+path}`, with the methods of the skills extension. A directory with a `SKILL.md` is a skill:
 * `skill://acme/billing/refunds/SKILL.md` is in the directory `acme/billing/refunds`. `skills/list` and `skills/get` give the front
 * matter of a skill and the digest of each of its files, `resources/directory/read` the children of a directory. Clients without
 * the extension read the files as resources. What does not follow the Agent Skills specification is logged and not served.
 *
 * @param paths - a directory that is a skill or holds skills, several, or directories by the prefixes that stand before the paths
 * of their skills, such as `acme/billing`.
 * @throws {TypeError} a directory is not there, or an option is wrong.
 */
export function skills(paths: Roots, options: SkillsOptions = {}): Provider {
  const pairs = inPairs(
    'skills()',
    paths,
    "a directory, an array of them, or prefixes with a directory each, such as { acme: 'skills' }",
  );
  checkOptions('skills()', options, SKILLS_SHAPE);
  return declared('skills', { ...given(options), paths: pairs });
}

/** What is served, with names in pairs: what an author names is no name of an option. */
function inPairs(call: string, roots: Roots, expected: string): Roots | [string, string][] {
  const named = isObject(roots);
  const all = named ? Object.values(roots) : typeof roots === 'string' ? [roots] : roots;
  if (!TEXTS.is(all)) throw new TypeError(`${call} takes what it is to serve: ${shown(roots)}, expected ${expected}`);
  return named ? Object.entries(roots) : roots;
}

/** The members that have a value. */
function given(options: object): object {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function declared(kind: string, options: unknown): Provider {
  return make(translated(() => binding.NativeProvider.declared(kind, options as PlainValue)));
}

/** A folder in memory, empty. */
export function memory(): Memory {
  return makeMemory(binding.NativeProvider.memory());
}

/**
 * Documents of folders and of Google Drive, found by questions (S-03). `rag:///kb/search/QUESTION` gives passages, each with the
 * URI of its document, `rag:///kb/doc/ID`, and with its score and position in `_meta`. The ranking is BM25: it knows words,
 * not meanings. With an `embedder` it is fused with the order of the nearest vectors.
 *
 * @param collections - by their names.
 * @throws {TypeError} a directory or file is not there, or an option is wrong.
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
  checkOptions('rag()', options, RAG_SHAPE);
  const { embedder, ...own } = options;
  const all = { ...given(own), collections: Object.entries(collections) };
  return embedder === undefined ? declared('rag', all) : make(embedded(all, embedder));
}

/**
 * A cache of results: `results:///{analysisId}`, and `results:///` for all that a client may see (S-06). A program puts what it has
 * computed; clients list, read and watch it until it expires. A read says how long it may be kept. A result is for everybody, or
 * for one principal: for others it is not there.
 *
 * @throws {TypeError} an option is wrong, or the file cannot be used.
 */
export function results(options: ResultsOptions = {}): Results {
  checkOptions('results()', options, RESULTS_SHAPE);
  return makeResults(translated(() => binding.NativeProvider.results(given(options) as PlainValue)));
}

function checkId(id: unknown): void {
  if (typeof id !== 'string') throw new TypeError(`the id is ${shown(id)}, expected a string`);
}

function checkPath(path: unknown): void {
  if (typeof path !== 'string')
    throw new TypeError(`the path is ${shown(path)}, expected a string such as "notes/a.md"`);
}

/** What was probably meant. */
function fix(given: unknown): string {
  if (typeof given === 'function') return '; call it, and mount what it returns';
  if (Array.isArray(given)) return '; spread it: mount(...list)';
  if (typeof (given as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function')
    return '; await it first';
  if (typeof given === 'string') return '; for what stands in a file, use resource() with a function that reads it';
  return '';
}
