/** The options of `ResourceServer`, its resources, its methods and its HTTP endpoints: types only. */
import type { AuditFunction } from './audit.js';
import type { Auth } from './auth.js';
import type { Policy } from './guard.js';
import type { ToJson } from './json.js';
import type { Limits } from './limits.js';
import type { Logger } from './log.js';
import type { CacheHint, CacheScope, Contents, JsonObject } from './results.js';
import type { StandardSchema } from './schema.js';

export type { Limits } from './limits.js';

/** An icon of a resource or a server. */
export interface Icon {
  /** The URI of the image: `http:`, `https:` or `data:`. */
  readonly src: string;
  /** The media type, such as `image/png`. Default: not stated. */
  readonly mimeType?: string;
  /** The sizes that it is made for, such as `48x48`, or `any`. Default: not stated. */
  readonly sizes?: readonly string[];
  /** The theme that it is made for. Default: both. */
  readonly theme?: 'light' | 'dark';
}

/** The name and the description of a server. */
export interface ServerInfo {
  /** The name of the server, for programs. */
  readonly name: string;
  /** The version of the server itself. Default `0.0.0`. */
  readonly version?: string;
  /** The name of the server for people. Default: none. */
  readonly title?: string;
  /** A description of the server. Default: none. */
  readonly description?: string;
  /** The URL of a page about the server, `http` or `https`. Default: none. */
  readonly websiteUrl?: string;
  /** Icons of the server. Default: none. */
  readonly icons?: readonly Icon[];
}

/** Gets the URI and the contents of a read, and returns the contents that may be sent. */
export type Redact = (uri: string, contents: Contents) => Contents;

/** The behaviour of a server. */
export interface ServerOptions<State = unknown> {
  /** Instructions for the model that uses the server. Default: none. */
  readonly instructions?: string;
  /** Limits that differ from the defaults. */
  readonly limits?: Limits;
  /** The protocol revisions to serve, such as `2025-11-25`. Default: all five. */
  readonly revisions?: Iterable<string>;
  /** Whether clients can subscribe to resources. Default `true`. */
  readonly subscribe?: boolean;
  /** Whether clients are notified of changes of the lists. Default `true`. */
  readonly listChanged?: boolean;
  /**
   * Whether the server declares the capability `completions`. Default: if a variable has a completer or known values.
   */
  readonly completions?: boolean;
  /** Whether tools are offered before the first one is added, so that clients hear of later ones. Default `false`. */
  readonly tools?: boolean;
  /** As `tools`, for prompts. Default `false`. */
  readonly prompts?: boolean;
  /**
   * Whether the tools `list_resources` and `read_resource` give the resources to hosts that show a model nothing but
   * tools. Default `false`.
   */
  readonly exposeAsTools?: boolean;
  /** Whether `ctx.log` is sent to clients that asked for log messages. Default `true`. */
  readonly logging?: boolean;
  /** Whether each result has the name and version of the server in its `_meta`. Default `true`. */
  readonly serverInfoInResults?: boolean;
  /** Whether clients are told that access is denied, instead of that the resource does not exist. Default `false`. */
  readonly explicitDenials?: boolean;
  /**
   * Where requests are recorded: the path of a file that gets one JSON object per line, or a function that gets each
   * record. Default: nowhere.
   */
  readonly audit?: string | AuditFunction;
  /** Whether requests are counted, for `metricsText`. Default `false`. */
  readonly metrics?: boolean;
  /** The access policy, or the path of a JSON or YAML file with it. Default: every client sees everything. */
  readonly guard?: Policy | string;
  /**
   * Whether results of reads are reused for their `ttlMs`, and concurrent reads of one resource share one call. Private
   * results are reused for the same principal only. `notifyUpdated` discards them. Default `false`.
   */
  readonly cache?: boolean;
  /**
   * Called with the URI and the contents of each read, also of constants. Returns the contents that may be sent. It must
   * not be `async`. If it throws, the read fails, and nothing is sent. Default: contents are sent unchanged.
   */
  readonly redact?: Redact;
  /**
   * Called with each value in a result that has no JSON form, such as a `Map` or a `BigInt`. Returns a value that has one.
   * Default: such a value fails the read; the error names its place.
   */
  readonly json?: ToJson;
  /** Takes the log messages of the library, such as failed handlers and warnings. Default: `console`, on standard error. */
  readonly logger?: Logger;
  /**
   * Opens resources that handlers share, such as a database pool. Called once, before the first request, for all
   * transports; requests wait until it has resolved. What it returns is `ctx.lifespan`. If it fails, nothing is served.
   * Default: none.
   */
  readonly onStart?: () => State | PromiseLike<State>;
  /** Closes these resources: called after all transports have ended, if `onStart` was called. Default: none. */
  readonly onStop?: () => unknown;
  /** How long clients may keep lists. Default: not at all. */
  readonly listCache?: CacheHint;
  /** How long clients may keep the description of the server. Default: not at all. */
  readonly discoverCache?: CacheHint;
  /**
   * Secrets of at least 16 bytes that all processes of a deployment share, for cursors and request states. The first
   * one seals; all of them open. Default: a random secret of this process.
   */
  readonly keys?: Iterable<Uint8Array>;
  /**
   * The URL of a bus between the processes of the server: `notifyUpdated`, `notifyListChanged`, `revoke` and `regrant` in
   * one reach the clients of all. `redis://HOST:PORT/DB`, `rediss://…`, `nats://HOST:PORT`, `tls://…`, or `unix:PATH` for
   * the processes of one machine. `${NAME}` in its credentials is a variable of the environment. Needs `keys`. Default:
   * none.
   */
  readonly bus?: string | null;
  /** Protocol extensions to declare, by name, with their settings. Default: none. */
  readonly extensions?: Readonly<Record<string, JsonObject>>;
}

/** The options of a server that is made from a configuration file, which has its guard and its instructions. */
export interface ConfigServerOptions<State = unknown> extends Omit<ServerOptions<State>, 'guard' | 'instructions'> {
  /**
   * Whether changes of the file take effect while the server runs. Tokens and certificates are read again in any case.
   * Default `true`.
   */
  readonly watch?: boolean;
}

/** The description of a resource, or of all resources of a template. */
export interface Details {
  /** The name for programs. Default: the name of the function, else the URI or template. */
  readonly name?: string;
  /** The name for people. Default: none. */
  readonly title?: string;
  /** The description, for people and models. Default: none. */
  readonly description?: string;
  /**
   * The media type, such as `text/markdown`; for a template, that of all its resources. Default: `application/json` for
   * a value that becomes JSON, else none.
   */
  readonly mimeType?: string;
  /** Icons for user interfaces. Default: none. */
  readonly icons?: readonly Icon[];
  /** Who the contents are meant for: `user`, `assistant` or both. Default: not stated. */
  readonly audience?: readonly ('user' | 'assistant')[];
  /** The importance, from 0 (optional) to 1 (required). Default: not stated. */
  readonly priority?: number;
  /** The time of the last change: a `Date`, or ISO 8601 text with a time zone. Default: not stated. */
  readonly lastModified?: Date | string;
  /** Members of `_meta`. Default: none. */
  readonly meta?: JsonObject;
  /** How long clients and the option `cache` may keep the contents, in milliseconds. Default 0: not at all. */
  readonly ttlMs?: number;
  /**
   * Whether caches may share the contents between users: `public`, or `private` for contents that depend on the user.
   * Default `private`.
   */
  readonly cacheScope?: CacheScope;
  /** The scopes that a token must have to see it, all of them. Default: none. */
  readonly scopes?: readonly string[];
  /** Whether its subscribers are also notified about resources under its URI. Default `false`. */
  readonly children?: boolean;
  /**
   * The size in bytes before base64, for a resource without variables. Default: that of a constant, else not stated.
   */
  readonly size?: number;
}

/** The URI and the description of a resource. */
export interface Resource extends Details {
  /** The URI. */
  readonly uri: string;
}

/**
 * The type and the description of a variable. The server refuses other values, completes `values`, and publishes all of it
 * with the template.
 */
export interface Param {
  /**
   * The type: `integer` (up to 2⁵³ − 1) and `number` become a number, `boolean` a boolean, others stay strings. A value has
   * one spelling: `7`, not `07`. Default: any string.
   */
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'date' | 'date-time' | 'uuid';
  /** The values that are allowed. Default: all. */
  readonly values?: readonly string[];
  /** A regular expression that the whole value must match. Default: none. */
  readonly pattern?: string;
  /** A description of the variable, for people and models. Default: none. */
  readonly description?: string;
}

/** The type and the description of a variable, or a schema of zod, valibot, arktype or any Standard Schema library. */
export type AnyParameter = Param | StandardSchema;

/** The options of an HTTP endpoint. With the defaults, only this machine can use it. */
export interface HttpOptions {
  /** The path of the endpoint. Default `/mcp`. */
  readonly path?: string;
  /**
   * A path that answers `GET` and `HEAD` with 200 while the server runs, for health checks. `Host`, `Origin` and token are
   * not checked there. Default: none.
   */
  readonly health?: string | null;
  /**
   * A path for Prometheus metrics; `true` stands for `/metrics`. It checks `Host`, `Origin` and the token like the
   * endpoint. Default: none.
   */
  readonly metrics?: boolean | string | null;
  /**
   * The `Host` headers that are accepted: names, or names with ports. Default `loopback`: local names and addresses only.
   */
  readonly hosts?: 'loopback' | '*' | readonly string[];
  /**
   * The `Origin` headers that are accepted, such as `https://app.example.com`, or `vscode-webview://*` for all pages of an
   * application. Default `loopback`: local pages only.
   */
  readonly origins?: 'loopback' | '*' | readonly string[];
  /** Whether browsers may send requests from pages of the accepted origins. Default `false`. */
  readonly cors?: boolean;
  /**
   * Addresses of reverse proxies, such as `10.0.0.0/8`, or `unix`. A request from one of them comes from the client that its header
   * `X-Forwarded-For` names: in the audit log, and where anonymous clients are counted. Default: none.
   */
  readonly trustedProxies?: readonly string[];
  /**
   * Further headers that such pages may send, such as `X-Team`. The headers of the protocol, `Authorization`, `traceparent`,
   * `tracestate` and `baggage` are always among them. Default: none.
   */
  readonly corsHeaders?: readonly string[];
  /**
   * The form of answers: `json`, `events` (a stream of events), or `either`, which chooses for each request. Default
   * `either`.
   */
  readonly answers?: 'either' | 'json' | 'events';
  /**
   * Two times in milliseconds: when an event stream is closed, and when the client should reconnect. Default: streams
   * stay open.
   */
  readonly polling?: readonly [afterMs: number, retryMs: number] | null;
  /**
   * Whether clients before 2026-07-28 get sessions. Without sessions they cannot subscribe, but any process of a
   * deployment can answer each request. Default `true`.
   */
  readonly sessions?: boolean;
  /**
   * The name of this process, which begins its session ids, as `a` in `a.Xk3…`, so that a proxy finds the process of a
   * session. At most 32 letters, digits, `-` and `_`. Default: none.
   */
  readonly instance?: string | null;
  /**
   * Whether the HTTP+SSE transport of 2024-11-05 is served too: its two paths, for events and for messages, or `true`
   * for `/sse` and `/messages`. The paths are absolute, so this does not work in an application that is mounted below
   * another path. Default `false`.
   */
  readonly sse24?: boolean | readonly [events: string, messages: string];
  /** How bearer tokens are verified. Default: no token is required. */
  readonly auth?: Auth;
}

/** The files for `https`. */
export interface Tls {
  /** The path of a PEM file with the certificate chain, the server's own certificate first. */
  readonly cert: string;
  /** The path of a PEM file with the private key. */
  readonly key: string;
}

/** The options of an HTTP server. */
export interface ListenOptions extends HttpOptions {
  /** The address to listen at. Default `127.0.0.1`: only this machine can connect. */
  readonly host?: string;
  /** The TCP port; 0 takes any free one. Default 8,000. */
  readonly port?: number;
  /** The certificate and key for `https`. Default: `http`. */
  readonly tls?: Tls;
  /** Called with the URL as soon as the server accepts connections. Default: the URL is printed on standard error. */
  readonly onListening?: (url: string) => void;
}

/** The options of a custom method. */
export interface MethodOptions {
  /** The member of the params that the HTTP header `Mcp-Name` repeats. Default: none. */
  readonly nameParam?: string;
  /** A capability to declare, as its name and its settings. Default: none. */
  readonly capability?: readonly [name: string, settings: JsonObject];
  /**
   * `tools` or `prompts` if the method returns that list, so that clients can subscribe to its changes. Default: none.
   */
  readonly lists?: 'tools' | 'prompts';
  /** The longest time for a call, in milliseconds; 0 for any time. Default: `Limits.readTimeout`. */
  readonly timeout?: number;
}

/** The options of `ResourceServer.run`. */
export interface RunOptions {
  /** Serves Streamable HTTP with these options. Default: standard input and output are served. */
  readonly http?: ListenOptions;
}
