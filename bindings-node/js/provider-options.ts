/** The options of the providers, with their checks. */
import { CALL, COUNT, either, FLAG, isObject, type Kind, oneOf, type Shape, TEXT, TEXTS } from './check.js';

const NULL = { is: (value: unknown) => value === null, expected: 'null' };
const TOOLS = either('true, false, or an array of names of tools', FLAG, TEXT, TEXTS);
export const TIME = either("a time such as '1h', or a whole number of milliseconds", COUNT, TEXT);

/** Documents of Google Drive, for `rag`. */
export interface DriveCollection {
  /** JSON with `client_id`, `client_secret` and `refresh_token`: the path of a file, or an environment variable. */
  readonly credentials: string | { readonly env: string };
  /** The id of the only folder to use. Default: all files that the credentials can see. */
  readonly folder?: string;
  /** The id of the shared drive to use. Default: none. */
  readonly drive?: string;
}

/** A collection of `rag`: a directory, or documents of Google Drive, as options or as a YAML or JSON file with them. */
export type Collection = Root | { readonly folder: Root } | { readonly drive: DriveCollection | string };

/** One vector for each text, all of the same length. */
export type Vectors = readonly ArrayLike<number>[];

/**
 * Makes vectors of passages and of questions. It is called with up to 64 texts at once, and must return within a minute. Errors
 * are logged; passages without a vector are ranked by BM25 only.
 */
export type Embedder = (texts: string[]) => Vectors | PromiseLike<Vectors>;

/** The options of {@link results}. */
export interface ResultsOptions {
  /** The scheme of the URIs `SCHEME:///ID`. Default `results`. */
  readonly scheme?: string;
  /** The most results that are kept; the least recently used one is dropped for a new one. Default 1,000. */
  readonly entries?: number;
  /** The contents of all results together: a text such as `"64 MiB"`, or a number of bytes. Default 64 MiB. */
  readonly bytes?: number | string;
  /**
   * How long a result is kept that is put without its own `ttl`: a text such as `"1h"`, or milliseconds. Default 1 h.
   */
  readonly ttl?: number | string;
  /**
   * The path of an SQLite file that keeps the results; it is created if it does not exist. Default: results are kept in
   * memory.
   */
  readonly file?: string | null;
}

const SIZE = either("a size such as '64 MiB', or a whole number of bytes", COUNT, TEXT);
export const RESULTS_SHAPE: Shape<ResultsOptions> = {
  scheme: TEXT,
  entries: COUNT,
  bytes: SIZE,
  ttl: TIME,
  file: either('a string or null', TEXT, NULL),
};

/** One endpoint of an API. */
export interface ApiEndpoint {
  /** The URL. `{id}` in it stands for the end of the resource's URI, encoded as one path segment. */
  readonly url: string;
  /** Headers to send: their values, or the environment variables that contain them. Default: none. */
  readonly headers?: Readonly<Record<string, string | { readonly env: string }>>;
  /** A JSON pointer to the part of the answer that is served. Default: the whole answer. */
  readonly pick?: string;
  /** The ids that are listed and completed. Default: none. */
  readonly ids?: string | readonly string[];
}

/** One API: its endpoints by name. Each is a URL, or an {@link ApiEndpoint}. */
export interface ApiEndpoints {
  /** The endpoints by name. */
  readonly endpoints: Readonly<Record<string, string | ApiEndpoint>>;
}

/** The options of {@link api}, for all endpoints. */
export interface ApiOptions {
  /** Whether requests may go to addresses that are not public, such as those of this machine. Default `false`. */
  readonly privateNetworks?: boolean;
  /** The most redirects that are followed. Headers are not sent to another origin. Default 0. */
  readonly redirects?: number;
  /** The longest time for an answer: a text such as `"10s"`, or milliseconds. Default 10 s. */
  readonly timeout?: number | string;
  /** The largest answer: a text such as `"1 MiB"`, or a number of bytes. Default 1 MiB. */
  readonly bytes?: number | string;
  /**
   * How often a resource is requested while clients watch it: a text such as `"30s"`, or milliseconds. Default 30 s.
   */
  readonly poll?: number | string;
}

export const API_SHAPE: Shape<ApiOptions> = {
  privateNetworks: FLAG,
  redirects: COUNT,
  timeout: TIME,
  bytes: SIZE,
  poll: TIME,
};

/** The options of {@link files}, for all roots. */
export interface FilesOptions {
  /**
   * Globs: only files whose path within the root matches one of them are served. `*` matches within a path segment,
   * `**` across segments. Default: all.
   */
  readonly include?: string | readonly string[];
  /**
   * Globs: files and directories whose path within the root matches one of them are not served, nor anything below
   * them. Default: none.
   */
  readonly exclude?: string | readonly string[];
  /** Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are not served. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether files and directories whose name begins with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /**
   * Whether symbolic links are followed: `never`, or `inside` for links to a target below the same root. Default
   * `never`.
   */
  readonly symlinks?: 'never' | 'inside';
  /** The most files in `resources/list`; all can be read. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
  /** The most directories that the operating system watches; further ones are checked periodically. Default 8,192. */
  readonly watchDirs?: number;
  /** The largest file that is read, in bytes. Default: `Limits.contents` of the server. */
  readonly maxBytes?: number | null;
}

/** The options of {@link git}, for all repositories. */
export interface GitOptions {
  /**
   * Globs: only files whose path within the repository matches one of them are served. `*` matches within a path
   * segment, `**` across segments. Default: all.
   */
  readonly include?: string | readonly string[];
  /**
   * Globs: files and directories whose path within the repository matches one of them are not served, nor anything
   * below them. Default: none.
   */
  readonly exclude?: string | readonly string[];
  /** Whether files and directories whose name begins with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** The most commits in a log. Default 1,000. */
  readonly logMax?: number;
  /** The largest diff: a text such as `"1 MiB"`, or a number of bytes. Default 1 MiB. */
  readonly diffBytes?: number | string;
  /**
   * The kinds of references that clients can name: `heads` (branches), `tags` and `remotes`. Default `heads` and
   * `tags`.
   */
  readonly refs?: string | readonly string[];
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
  /**
   * The tools that are offered: all of them (`true`), none, or those with these names: `git_log`, `git_diff`, `git_show`.
   * Default: all, if the server has `exposeAsTools`.
   */
  readonly tools?: boolean | string | readonly string[];
}

const GLOBS = either('a glob or an array of globs', TEXT, TEXTS);
const FILE_OR_NULL = either('a file or null', TEXT, NULL);
export const FILES_SHAPE: Shape<FilesOptions> = {
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

export const GIT_SHAPE: Shape<GitOptions> = {
  include: GLOBS,
  exclude: GLOBS,
  hidden: FLAG,
  logMax: COUNT,
  diffBytes: either('a whole number of bytes or a text such as "1 MiB"', COUNT, TEXT),
  refs: either('a folder of refs or an array of them', TEXT, TEXTS),
  watch: FLAG,
  tools: TOOLS,
};

/** The options of {@link rag}, for all collections. */
export interface RagOptions {
  /**
   * Globs: only files of folders whose path matches one of them are used. `*` matches within a path segment, `**`
   * across segments. Default: all.
   */
  readonly include?: string | readonly string[];
  /**
   * Globs: files and directories of folders whose path matches one of them are not used, nor anything below them.
   * Default: none.
   */
  readonly exclude?: string | readonly string[];
  /** The most documents in `resources/list`; all can be read and searched. Default 1,000. */
  readonly listMax?: number;
  /**
   * How often Google Drive is checked for changes while it is in use: a text such as `"30s"`, or milliseconds. Default
   * 30 s.
   */
  readonly poll?: number | string;
  /** The passages that a search returns, at most 100. Default 10. */
  readonly hits?: number;
  /** The path of a file that keeps the search index between runs. Default: the index is kept in memory. */
  readonly index?: string | null;
  /**
   * The tools that are offered: all of them (`true`), none, or those with these names: `rag_search`.
   * Default: all, if the server has `exposeAsTools`.
   */
  readonly tools?: boolean | string | readonly string[];
}

export const RAG_SHAPE: Shape<RagOptions & { readonly embedder?: Embedder }> = {
  include: GLOBS,
  exclude: GLOBS,
  listMax: COUNT,
  poll: TIME,
  hits: COUNT,
  index: FILE_OR_NULL,
  embedder: CALL,
  tools: TOOLS,
};

/** The options of {@link docs}, for all sites. */
export interface DocsOptions {
  /**
   * Globs: only pages whose path within the site matches one of them are served. `*` matches within a path segment,
   * `**` across segments. Default: all.
   */
  readonly include?: string | readonly string[];
  /**
   * Globs: files and directories whose path within the site matches one of them are not served, nor anything below
   * them. Default: none.
   */
  readonly exclude?: string | readonly string[];
  /** Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are not served. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether files and directories whose name begins with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** The most pages in `resources/list`; all can be read and searched. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
  /** The most directories that the operating system watches; further ones are checked periodically. Default 8,192. */
  readonly watchDirs?: number;
  /** The largest page that is read, in bytes. Default: `Limits.contents` of the server. */
  readonly maxBytes?: number | null;
  /** The path of a file that keeps the search index between runs. Default: the index is kept in memory. */
  readonly index?: string | null;
  /**
   * The tools that are offered: all of them (`true`), none, or those with these names: `docs_search`.
   * Default: all, if the server has `exposeAsTools`.
   */
  readonly tools?: boolean | string | readonly string[];
}

export const DOCS_SHAPE: Shape<DocsOptions> = {
  include: GLOBS,
  exclude: GLOBS,
  gitignore: FLAG,
  hidden: FLAG,
  listMax: COUNT,
  watch: FLAG,
  watchDirs: COUNT,
  maxBytes: either('a whole number of bytes or null', COUNT, NULL),
  index: FILE_OR_NULL,
  tools: TOOLS,
};

/** The options of {@link skills}, for all directories. */
export interface SkillsOptions {
  /**
   * Globs: files and directories whose path within the directory matches one of them are not served, nor anything below
   * them. Default: none.
   */
  readonly exclude?: string | readonly string[];
  /** Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are not served. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether files and directories whose name begins with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** The most files in `resources/list`; all can be read. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
}

export const SKILLS_SHAPE: Shape<SkillsOptions> = {
  exclude: GLOBS,
  gitignore: FLAG,
  hidden: FLAG,
  listMax: COUNT,
  watch: FLAG,
};

/** The options of {@link config}, for all files. */
export interface ConfigOptions {
  /**
   * Globs over the paths of keys: only keys that match one of them are served. `server` is one key, `server/**` all keys in
   * it; `*` matches within a path segment.
   */
  readonly allow: string | readonly string[];
  /** Globs: the values of keys that match one of them are never masked. Default: none. */
  readonly reveal?: string | readonly string[];
  /**
   * The detectors of secrets that mask values, by name, or `all`. Keys such as `password` or `api_key` are masked in
   * any case. Default `all`.
   */
  readonly redact?: 'all' | readonly string[];
}

/** The options of {@link clock}. */
export interface ClockOptions {
  /**
   * The time zones in `resources/list`, such as `Asia/Tokyo`; every zone can be read. Default: UTC and the local zone.
   */
  readonly zones?: string | readonly string[];
}

/** The options of {@link env}. */
export interface EnvOptions {
  /** The names of the variables that are served, if they are set. `LC_*` stands for all names that begin with `LC_`. */
  readonly allow: string | readonly string[];
  /** The names of variables whose values are never masked. Default: none. */
  readonly reveal?: string | readonly string[];
  /**
   * The detectors of secrets that mask values, by name, or `all`. Variables such as `PASSWORD` or `API_KEY` are masked
   * in any case. Default `all`.
   */
  readonly redact?: 'all' | readonly string[];
}

/** The options of {@link metrics}. */
export interface MetricsOptions {
  /** The most series, from 1 to 10,000; a push to a further one is refused. Default 256. */
  readonly series?: number;
  /**
   * The samples that each series keeps, from 1 to 1,000,000; a new sample replaces the oldest. A series needs 16 bytes
   * per sample. Default 3,600.
   */
  readonly samples?: number;
  /** The most points of a read that does not choose a `step`, from 2 to 10,000. Default 240. */
  readonly points?: number;
  /**
   * How often this machine is measured, and how often subscribers of a series are notified at most: a text such as
   * `"10s"`, or milliseconds. Default 1 s.
   */
  readonly interval?: string | number;
  /** Whether the CPU, memory, disks and network of this machine are measured. Default `false`. */
  readonly host?: boolean;
}

export const METRICS_SHAPE: Shape<MetricsOptions> = {
  series: COUNT,
  samples: COUNT,
  points: COUNT,
  interval: either('a time such as "1s", or a whole number of milliseconds', TEXT, COUNT),
  host: FLAG,
};

export const NAMES = either('a name or an array of names', TEXT, TEXTS);
const REDACT = either("'all' or an array of detectors", oneOf('all'), TEXTS);
export const CONFIG_SHAPE: Shape<ConfigOptions> = { allow: GLOBS, reveal: GLOBS, redact: REDACT };
export const ENV_SHAPE: Shape<EnvOptions> = { allow: NAMES, reveal: NAMES, redact: REDACT };

/** An environment variable that contains a secret text. */
export interface EnvVariable {
  /** The name of the variable. */
  readonly env: string;
}

/** The tables and views of a {@link Database} that are served. Others are not. */
export interface DbOptions {
  /** The password for Postgres, if the URL does not have it. Default: none. */
  readonly password?: string | EnvVariable | null;
  /** The tables that are served, such as `customers`, or `sales.customers` for a schema of Postgres. Default: none. */
  readonly tables?: string | readonly string[];
  /** The columns that are not served, such as `password`, or `customers.password` for one table. Default: none. */
  readonly columnsDeny?: string | readonly string[];
  /**
   * SQL queries that clients can run, by name. Each is a `SELECT`; clients supply values for parameters such as
   * `:city`. Default: none.
   */
  readonly views?: Readonly<Record<string, string>>;
  /** The rows on one page of a table if the client does not choose, from 1 to 1,000. Default 100. */
  readonly rows?: number;
  /**
   * How often the database is checked for changes while clients watch: a text such as `"200ms"`, or milliseconds, at
   * least 10 ms. Default 200 ms.
   */
  readonly poll?: string | number;
  /**
   * The tools that are offered: all of them (`true`), none, or those with these names: `db_rows`, `db_row`, and
   * `db_NAME_VIEW` for each view.
   * Default: all, if the server has `exposeAsTools`.
   */
  readonly tools?: boolean | string | readonly string[];
}

/** A database for {@link db}. */
export interface Database extends DbOptions {
  /** `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/NAME`, or the environment variable that contains it. */
  readonly url: string | EnvVariable;
}

/** Checked by the core, whose messages do not repeat passwords. */
const SECRET: Kind = { is: () => true, expected: '' };
export const DB_SHAPE: Shape<Database> = {
  url: SECRET,
  password: SECRET,
  tables: NAMES,
  columnsDeny: NAMES,
  views: { is: (value) => isObject(value) && TEXTS.is(Object.values(value)), expected: 'an object of statements' },
  rows: COUNT,
  poll: either('a time such as 200 or "200ms"', COUNT, TEXT),
  tools: TOOLS,
};

/** The path of a directory or file. */
export type Root = string;

/** A directory or file, an array of them, or directories or files by name. */
export type Roots = Root | readonly Root[] | Readonly<Record<string, Root>>;
