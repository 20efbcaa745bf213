/** The options of the providers. `make options` writes this file from the rows in Rust. */

/** An environment variable that contains a secret text. */
export interface EnvVariable {
  /** The name of the variable. */
  readonly env: string;
}

/** The operations of an OpenAPI document that are endpoints of an API. */
export interface ApiDocument {
  /**
   * An OpenAPI document of version 3.0 or 3.1, in YAML or JSON, whose GET operations are endpoints: a file, or a URL
   * that is requested at the start.
   */
  readonly openapi?: string;
  /**
   * The operations of the document that are served, such as `GET /items/*`: `*` is one segment, `**` any. Default:
   * none.
   */
  readonly allow?: string | readonly string[];
  /** The URL that the document's paths are behind. Default: the first of its `servers`. */
  readonly baseUrl?: string;
  /** Headers to send to the operations: their values, or the environment variables that contain them. Default: none. */
  readonly headers?: Readonly<Record<string, string | EnvVariable>>;
}

/** One endpoint of an API. */
export interface ApiEndpoint {
  /**
   * The URL. `{id}` in it stands for the end of the resource's URI, encoded as one path segment. Any other template of
   * RFC 6570, such as `https://host/items/{id}/reviews{?page}`, has resources such as `…/7?page=2`.
   */
  readonly url: string;
  /** Headers to send: their values, or the environment variables that contain them. Default: none. */
  readonly headers?: Readonly<Record<string, string | EnvVariable>>;
  /** A JSON pointer to the part of the answer that is served. Default: the whole answer. */
  readonly pick?: string;
  /** The ids that are listed and completed. Others can be read too. Default: none. */
  readonly ids?: string | readonly string[];
  /** A description for clients. */
  readonly description?: string;
}

/** The options of {@link api}, for all endpoints. */
export interface ApiOptions {
  /** Whether requests may go to addresses that are not public, such as those of this machine. Default `false`. */
  readonly privateNetworks?: boolean;
  /** The maximum number of redirects that are followed. Headers are not sent to another origin. Default 0. */
  readonly redirects?: number;
  /** The maximum time for an answer, with redirects. A text such as `"10s"`, or milliseconds. Default `10s`. */
  readonly timeout?: number | string;
  /** The largest answer. A text such as `"1 MiB"`, or a number of bytes. Default `1 MiB`. */
  readonly bytes?: number | string;
  /**
   * The interval at which a resource is requested while clients watch it: at least 100 ms. A text such as `"30s"`, or
   * milliseconds. Default `30s`.
   */
  readonly poll?: number | string;
}

/** The options of {@link clock}. */
export interface ClockOptions {
  /**
   * The time zones in `resources/list`, such as `Asia/Tokyo`; every zone can be read. Default: UTC and the local zone.
   */
  readonly zones?: string | readonly string[];
}

/** The options of {@link config}, for all files. */
export interface ConfigOptions {
  /**
   * Globs over the paths of keys: only keys that match one of them are served. `server` is one key, `server/**` all
   * keys in it; `*` matches within a path segment.
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

/** A database for {@link db}. */
export interface Database extends DbOptions {
  /** `sqlite:PATH` or `postgres://USER:PASSWORD@HOST:PORT/NAME`, or the environment variable that has it. */
  readonly url: string | EnvVariable;
}

/** The tables and views of a {@link Database} that are served. Others are not. */
export interface DbOptions {
  /** The password for Postgres, if the URL does not have it. */
  readonly password?: string | EnvVariable | null;
  /** The use of TLS with Postgres, as libpq names it. Default: that of the URL, or `prefer`. */
  readonly sslmode?: 'disable' | 'allow' | 'prefer' | 'require' | 'verify-ca' | 'verify-full';
  /**
   * The certificates of the authorities that may sign that of the Postgres server, in PEM. Default: those of the
   * system.
   */
  readonly sslrootcert?: string | null;
  /** The certificate that a Postgres server is shown, in PEM. */
  readonly sslcert?: string | null;
  /** The private key of `sslcert`, in PEM. Only its owner may be able to read it. */
  readonly sslkey?: string | null;
  /**
   * The most connections to the database for requests. One more reports changes while a client watches. From 1 to 32.
   * Default 4.
   */
  readonly connections?: number;
  /** The tables that are served, such as `customers`, or `sales.customers` for a schema of Postgres. Default: none. */
  readonly tables?: string | readonly string[];
  /** The columns that are not served, such as `password`, or `customers.password` for one table. Default: none. */
  readonly columnsDeny?: string | readonly string[];
  /**
   * SQL queries that clients can run, by name. Each is a `SELECT`; clients supply values for parameters such as
   * `:city`. Default: none.
   */
  readonly views?: Readonly<Record<string, string>>;
  /** The number of rows on a page of a table unless the client chooses one. From 1 to 1000. Default 100. */
  readonly rows?: number;
  /**
   * The interval of checks for changes while a client watches. A text such as `"200ms"`, or milliseconds. From 10ms to
   * 1d. Default `200ms`.
   */
  readonly poll?: number | string;
  /**
   * The tools that are offered, out of `db_rows`, `db_row`, and `db_NAME_VIEW` for each view. Default: all, if the
   * server offers its resources as tools.
   */
  readonly tools?: boolean | string | readonly string[];
}

/** The options of {@link docs}, for all sites. */
export interface DocsOptions {
  /**
   * Globs: only pages whose path within the site matches one of them are served. `*` matches within a path segment,
   * `**` across segments. Default: all.
   */
  readonly include?: string | readonly string[];
  /**
   * Globs: pages and directories whose path within the site matches one of them are not served, nor anything in them.
   * Default: none.
   */
  readonly exclude?: string | readonly string[];
  /** Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are left out. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether files and directories whose name begins with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** The maximum number of pages in `resources/list`; all can be read and searched. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
  /**
   * The maximum number of directories that the operating system watches; further ones are checked periodically. Default
   * 8,192.
   */
  readonly watchDirs?: number;
  /** The largest page that is read, in bytes. Default: the server's limit `contents`. */
  readonly maxBytes?: number | null;
  /** The path of a file that keeps the search index between two runs. Default: the index is in memory. */
  readonly index?: string | null;
  /** The tools that are offered, out of `docs_search`. Default: all, if the server offers its resources as tools. */
  readonly tools?: boolean | string | readonly string[];
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

/** The options of {@link files}, for all roots. */
export interface FilesOptions {
  /**
   * Globs: only files whose path within the root matches one of them are served. `*` matches within a path segment,
   * `**` across segments. Default: all.
   */
  readonly include?: string | readonly string[];
  /**
   * Globs: files and directories whose path within the root matches one of them are not served, nor anything in them.
   * Default: none.
   */
  readonly exclude?: string | readonly string[];
  /** Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are left out. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether files and directories whose name begins with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /**
   * Whether symbolic links are followed: `never`, or `inside` for links to a target within the same root. Default
   * `never`.
   */
  readonly symlinks?: 'never' | 'inside';
  /** The maximum number of files in `resources/list`; all can be read. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
  /**
   * The maximum number of directories that the operating system watches; further ones are checked periodically. Default
   * 8,192.
   */
  readonly watchDirs?: number;
  /** The largest file that is read, in bytes. Default: the server's limit `contents`. */
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
   * Globs: files and directories whose path within the repository matches one of them are not served, nor anything in
   * them. Default: none.
   */
  readonly exclude?: string | readonly string[];
  /** Whether files and directories whose name begins with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** The maximum number of commits in a log. Default 1,000. */
  readonly logMax?: number;
  /** The largest diff; a larger one is an error. A text such as `"1 MiB"`, or a number of bytes. Default `1 MiB`. */
  readonly diffBytes?: number | string;
  /**
   * The references that clients can name, as folders of `refs`: `heads` (branches), `tags`, `remotes`, or one such as
   * `remotes/origin`. Default `heads` and `tags`.
   */
  readonly refs?: string | readonly string[];
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
  /**
   * The tools that are offered, out of `git_log`, `git_diff` and `git_show`. Default: all, if the server offers its
   * resources as tools.
   */
  readonly tools?: boolean | string | readonly string[];
}

/** The options of {@link metrics}. */
export interface MetricsOptions {
  /** The maximum number of series; a push to a further one is refused. From 1 to 10000. Default 256. */
  readonly series?: number;
  /**
   * The samples that each series keeps; a new sample replaces the oldest. The first sample of a series reserves 16
   * bytes for each. From 1 to 1000000. Default 3,600.
   */
  readonly samples?: number;
  /** The maximum number of points of a read without a `step`. From 2 to 10000. Default 240. */
  readonly points?: number;
  /**
   * The interval at which this machine is measured, and the shortest time between two notifications about a series. A
   * text such as `"1s"`, or milliseconds. From 10ms to 1d. Default `1s`.
   */
  readonly interval?: number | string;
  /** Whether the CPU, memory, disks and network of this machine are measured. Default `false`. */
  readonly host?: boolean;
}

/** The options of {@link rag}, for all collections. */
export interface RagOptions {
  /**
   * Globs: only files of folders whose path matches one of them are used. `*` matches within a path segment, `**`
   * across segments. Default: all.
   */
  readonly include?: string | readonly string[];
  /**
   * Globs: files and directories of folders whose path matches one of them are not used, nor anything in them. Default:
   * none.
   */
  readonly exclude?: string | readonly string[];
  /** The maximum number of documents in `resources/list`; all can be read and searched. Default 1,000. */
  readonly listMax?: number;
  /**
   * The interval at which Google Drive is asked for changes while it is in use. A text such as `"30s"`, or
   * milliseconds. From 10ms to 1d. Default `30s`.
   */
  readonly poll?: number | string;
  /** The number of passages that a search returns. From 1 to 100. Default 10. */
  readonly hits?: number;
  /** The path of a file that keeps the search index between two runs. Default: the index is in memory. */
  readonly index?: string | null;
  /** The tools that are offered, out of `rag_search`. Default: all, if the server offers its resources as tools. */
  readonly tools?: boolean | string | readonly string[];
}

/** The options of {@link results}. */
export interface ResultsOptions {
  /** The scheme of the URIs `SCHEME:///ID`. Default `results`. */
  readonly scheme?: string;
  /** The maximum number of results; a new one replaces the least recently used. Default 1,000. */
  readonly entries?: number;
  /**
   * The maximum size of the contents of all results. A text such as `"64 MiB"`, or a number of bytes. Default `64 MiB`.
   */
  readonly bytes?: number | string;
  /**
   * The time for which a result is kept if it is put without one of its own. A text such as `"1h"`, or milliseconds.
   * Default `1h`.
   */
  readonly ttl?: number | string;
  /**
   * The path of an SQLite file that keeps the results; it is created if it does not exist. Default: results are in
   * memory.
   */
  readonly file?: string | null;
}

/** A server for {@link upstream}: a `command` or a `url`, and what is served of it. */
export interface ServerEntry {
  /** The program of the server, which is started when it is first needed, and used over its stdin and stdout. */
  readonly command?: string;
  /** The arguments of `command`. Default: none. */
  readonly args?: string | readonly string[];
  /**
   * Environment variables of `command`, in addition to those of this process: their values, or the variables that
   * contain them. Default: none.
   */
  readonly env?: Readonly<Record<string, string | EnvVariable>>;
  /** The working directory of `command`. Default: that of this process. */
  readonly cwd?: string | null;
  /** The URL of a server over HTTP, instead of `command`. */
  readonly url?: string;
  /** Headers of every request to `url`: their values, or the environment variables that contain them. Default: none. */
  readonly headers?: Readonly<Record<string, string | EnvVariable>>;
  /** The URIs that are served. Others do not exist for clients. `*` is all. Default `*`. */
  readonly resources?: string | readonly string[];
  /** The names of the tools and prompts that are served. `*` is all. Default `*`. */
  readonly tools?: string | readonly string[];
  /**
   * The prefix of all URIs, tools and prompts of the server, such as `wiki`: `wiki+note://x` and `wiki_search`.
   * Default: only names that two servers have get one.
   */
  readonly prefix?: string;
  /**
   * The maximum time for an answer of the server. No time ends the call of a tool. A text such as `"30s"`, or
   * milliseconds. From 1ms to 1d. Default `30s`.
   */
  readonly timeout?: number | string;
  /**
   * The time without requests and subscriptions after which the server is ended. Default: it is never ended. A text
   * such as `"10min"`, or milliseconds.
   */
  readonly idle?: number | string;
  /**
   * Whether each client has a process of `command`, or a connection to `url`, of its own for its calls, so that a
   * server from before 2026-07-28 can ask it for input, and log to it. At a `url`, clients that can be asked always
   * have one. Default `false`.
   */
  readonly perClient?: boolean;
}

/** The options of {@link skills}, for all directories. */
export interface SkillsOptions {
  /**
   * Globs: files and directories whose path within the directory matches one of them are not served, nor anything in
   * them. Default: none.
   */
  readonly exclude?: string | readonly string[];
  /** Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are left out. Default `true`. */
  readonly gitignore?: boolean;
  /** Whether files and directories whose name begins with a dot are served. Default `false`. */
  readonly hidden?: boolean;
  /** The maximum number of files in `resources/list`; all can be read. Default 1,000. */
  readonly listMax?: number;
  /** Whether clients are notified of changes. Default `true`. */
  readonly watch?: boolean;
}
