/** What a server and its resources are described with. */
import type { AuditFunction } from './audit.js';
import { type Auth, authFields } from './auth.js';
import type { PlainValue, TlsFields } from './binding.js';
import { checkOptions, TEXT } from './check.js';
import type { AnyFunction } from './functions.js';
import type { Policy } from './guard.js';
import { jsonText, type ToJson } from './json.js';
import type { Logger } from './log.js';
import { checkHttp, DETAILS } from './option-checks.js';
import type { CacheHint, CacheScope, Contents, JsonObject } from './results.js';
import type { StandardSchema } from './schema.js';

/** A picture of a resource or a server. */
export interface Icon {
  /** Where it is: an `http:`, `https:` or `data:` URI. */
  readonly src: string;
  /** Its media type, where `src` does not say it. */
  readonly mimeType?: string;
  /** The sizes it is made for: `48x48`, or `any`. */
  readonly sizes?: readonly string[];
  /** The theme it is made for. Default: either. */
  readonly theme?: 'light' | 'dark';
}

/** How a server presents itself. */
export interface ServerInfo {
  /** Its name, for programs. */
  readonly name: string;
  /** Its own version. Default `0.0.0`. */
  readonly version?: string;
  /** A name for people. */
  readonly title?: string;
  /** What it is. */
  readonly description?: string;
  /** Where to read more. */
  readonly websiteUrl?: string;
  /** Pictures of it. */
  readonly icons?: readonly Icon[];
}

/** The bounds of a server: sizes in bytes, times in milliseconds. What is left out keeps its default. */
export interface Limits {
  /** Longest line on stdio. Default 4 MiB. */
  readonly message?: number;
  /** Deepest nesting of arrays and objects in one member of `params`, or of `_meta` in it. Default 128. */
  readonly nesting?: number;
  /** Longest request id, and longest progress token, as written. Default 1 KiB. */
  readonly id?: number;
  /** Longest `clientInfo`, as JSON text; a session keeps it. Default 32 KiB. */
  readonly clientInfo?: number;
  /** Most elements of a batch. Default 256. */
  readonly batch?: number;
  /** Answers of all batches of one connection that are not complete. Default 64 MiB. */
  readonly batchBytes?: number;
  /** Longest URI. Default 64 KiB. */
  readonly uri?: number;
  /** Most resources that may be registered. Default 1,000,000. */
  readonly resources?: number;
  /** Most templates that may be registered. Default 10,000. */
  readonly templates?: number;
  /** Most unanswered requests of one connection. Default 1,024, at most 1,048,576. */
  readonly inFlight?: number;
  /** Items on a page of a list. Default 100. */
  readonly page?: number;
  /** Items that one list call may examine. Default 10,000. */
  readonly listScan?: number;
  /** Items that a lister without paging may return. Default 100,000. */
  readonly listSource?: number;
  /** Bytes of one resource or template that another server describes and a list passes on. Default 64 KiB. */
  readonly listItem?: number;
  /** How long its answer is kept, so that a walk over its pages asks it once. Default 0 ms: it is asked for each page. */
  readonly listTtl?: number;
  /** How many such answers are kept. Default 256. */
  readonly listCache?: number;
  /** Bytes that they take. Default 16 MiB. */
  readonly listCacheBytes?: number;
  /** Results that the read cache keeps. Default 10,000. */
  readonly cacheEntries?: number;
  /** Bytes that they take, encoded. Default 64 MiB. */
  readonly cacheBytes?: number;
  /** Principals whose rates and requests in flight are counted apart. Default 10,000. */
  readonly principals?: number;
  /** Subscriptions of one connection. Default 10,000. */
  readonly subscriptions?: number;
  /** URIs that one listen may name. Default 10,000. */
  readonly filterUris?: number;
  /** URIs that all subscriptions of one connection may name together. Default 100,000. */
  readonly watchedUris?: number;
  /** Bytes of the URIs that one connection watches. Default 16 MiB. */
  readonly watchedBytes?: number;
  /** Bytes of the URIs that all connections watch. Default 256 MiB. */
  readonly watchedTotal?: number;
  /** Contents of one reply before encoding. Default 16 MiB. */
  readonly contents?: number;
  /** Contents of all replies that are being gathered. Default 256 MiB. */
  readonly contentsTotal?: number;
  /** Above this no further request is read until the output has drained. Default 1 MiB. */
  readonly output?: number;
  /** When a read that is unanswered fails. Default 30,000 ms. */
  readonly readTimeout?: number;
  /** The same for a completion. Default 5,000 ms. */
  readonly completionTimeout?: number;
  /** The JSON text of a completion's `context.arguments`. Default 64 KiB. */
  readonly arguments?: number;
  /** Values of one completion. Default 100. */
  readonly completionValues?: number;
  /** Least time between two updates of one URI. Default 50 ms. */
  readonly coalesce?: number;
  /** Least time between two progress notifications of one request. Default 50 ms. */
  readonly progressInterval?: number;
  /** Log messages of one request. Default 1,000. */
  readonly logMessages?: number;
  /** Longest request state or cursor. Default 64 KiB. */
  readonly state?: number;
  /** How long a request state is accepted. Default 600,000 ms. */
  readonly stateTtl?: number;
  /** Questions to a client that wait for an answer. Default 64. */
  readonly asks?: number;
  /** How long what is in flight may still finish after the end of input. Default 1,000 ms. */
  readonly grace?: number;
  /** All headers of an HTTP request together. Default 256 KiB. */
  readonly head?: number;
  /** Header lines of an HTTP request. Default 128. */
  readonly headers?: number;
  /** Open HTTP sessions. Default 10,000. */
  readonly sessions?: number;
  /**
   * HTTP sessions of one principal; without tokens, of one client address. Behind a proxy all clients may have one.
   * Default 1,000.
   */
  readonly sessionsPerClient?: number;
  /** How long an unused HTTP session is kept. Default 1,800,000 ms. */
  readonly sessionIdle?: number;
  /** When such a session ends if its client has not sent `notifications/initialized`. Default 60,000 ms. */
  readonly handshakeTimeout?: number;
  /** Streams of events that one session keeps. Default 16. */
  readonly streams?: number;
  /** What is kept of each of them to be sent again. Default 1 MiB. */
  readonly replay?: number;
  /** After so long without anything to send, a stream of events gets a comment. Default 15,000 ms. */
  readonly keepAlive?: number;
  /** Open HTTP connections. Default 20,000. */
  readonly connections?: number;
  /**
   * Open HTTP connections from one address, where `run` serves. Behind a proxy all clients may have one. Default 5,000.
   */
  readonly connectionsPerClient?: number;
  /**
   * How long the head of an HTTP request may take, from the opening of the connection or its first byte.
   * Default 10,000 ms.
   */
  readonly headTimeout?: number;
  /** After so long without a further request an HTTP connection is closed. Default 60,000 ms. */
  readonly idleTimeout?: number;
  /** How long the body of an HTTP request may take. Default 30,000 ms. */
  readonly bodyTimeout?: number;
  /** All HTTP bodies that have come in part. Default 256 MiB. */
  readonly bodiesTotal?: number;
  /** A client that takes nothing of what is sent to it for so long is gone. Default 30,000 ms. */
  readonly writeTimeout?: number;
  /** Verified tokens that are kept. Default 10,000. */
  readonly tokenCache?: number;
  /** How long a verified token is believed at most. Default 300,000 ms. */
  readonly tokenTtl?: number;
  /** Records of requests that wait to be taken; above it the newest is dropped. Default 10,000. */
  readonly auditQueue?: number;
  /** When a slow answer becomes a stream of events. Default 1,000 ms. */
  readonly sseAfter?: number;
}

/** Looks at contents before they are sent. */
export type Redact = (uri: string, contents: Contents) => Contents;

/** How a server behaves. */
export interface ServerOptions {
  /** How a model is to use it. */
  readonly instructions?: string;
  /** The bounds. */
  readonly limits?: Limits;
  /** The revisions of the protocol to serve. Default: all five. */
  readonly revisions?: Iterable<string>;
  /** Whether clients may subscribe. Default `true`. */
  readonly subscribe?: boolean;
  /** Whether changes of the lists are announced. Default `true`. */
  readonly listChanged?: boolean;
  /** Whether completion is offered. Default: when something completes. */
  readonly completions?: boolean;
  /** Whether `ctx.log` reaches clients. Default `true`. */
  readonly logging?: boolean;
  /** Whether each result names the server. Default `true`. */
  readonly serverInfoInResults?: boolean;
  /** Whether a client is told that it may not see a resource, rather than that there is none. Default `false`. */
  readonly explicitDenials?: boolean;
  /**
   * Where each request is recorded: a file that gets a JSON object on a line, or a function that gets the same. Default:
   * nothing is recorded.
   */
  readonly audit?: string | AuditFunction;
  /** Whether requests are counted, for `metricsText`. Default `false`. */
  readonly metrics?: boolean;
  /** Who may see what: a policy, or the path of a JSON or YAML file. Default: everybody everything. */
  readonly guard?: Policy | string;
  /**
   * Whether the contents of reads are kept for their `ttlMs` and given again, and concurrent reads make one call. What is
   * private is given to the principal that read it alone. `notifyUpdated` ends what is kept. Default `false`.
   */
  readonly cache?: boolean;
  /**
   * Called with the URI and the contents of each read before they are sent, constants included: returns what may be. Its
   * exception fails the read, and nothing is sent.
   */
  readonly redact?: Redact;
  /**
   * Called with each value in a JSON result that has no JSON form, such as a `Map` or a `BigInt`: returns one that has.
   * Default: such a value is an error, which names its place.
   */
  readonly json?: ToJson;
  /** Where messages to the author go: failed handlers, warnings. Default: `console`, on standard error. */
  readonly logger?: Logger;
  /**
   * Called before the server takes its first request, in every way to serve it; the request waits for it. If it fails,
   * nothing is served.
   */
  readonly onStart?: () => unknown;
  /** Called when the server has ended everywhere, if it was started. What serves waits for it. */
  readonly onStop?: () => unknown;
  /** How long lists may be kept. Default: not at all. */
  readonly listCache?: CacheHint;
  /** How long the server's description may be kept. Default: not at all. */
  readonly discoverCache?: CacheHint;
  /**
   * Secrets of at least 16 bytes, shared by all processes of a deployment, for cursors and states. The first seals,
   * all open.
   */
  readonly keys?: Iterable<Uint8Array>;
  /** Capabilities of extensions to declare, with their settings. */
  readonly extensions?: Readonly<Record<string, JsonObject>>;
}

/** What resources and templates have in common. */
export interface Details {
  /** A name for programs. Default: the function's, else the URI or template. */
  readonly name?: string;
  /** A label for people. */
  readonly title?: string;
  /** What it is. */
  readonly description?: string;
  /** Its media type; of a template, that of all its resources. */
  readonly mimeType?: string;
  /** Pictures of it. */
  readonly icons?: readonly Icon[];
  /** For whom it is. */
  readonly audience?: readonly ('user' | 'assistant')[];
  /** How important it is, from 0 to 1. */
  readonly priority?: number;
  /** When it was changed: a `Date`, or an ISO 8601 text with its zone. */
  readonly lastModified?: Date | string;
  /** Members of `_meta`. */
  readonly meta?: JsonObject;
  /** For how many milliseconds its contents may be kept. Default 0 ms: they are not. */
  readonly ttlMs?: number;
  /** By whom: `public` only if they are the same for everyone. Default `private`. */
  readonly cacheScope?: CacheScope;
  /** The scopes that a token must have to see it, all of them. Default: none. */
  readonly scopes?: readonly string[];
  /** Whether a subscription to it also hears of the resources beneath it. Default `false`. */
  readonly children?: boolean;
  /** Its size in bytes before base64, for a resource without variables. Default: that of a constant. */
  readonly size?: number;
}

/** One resource, at one URI. */
export interface Resource extends Details {
  /** Its URI. */
  readonly uri: string;
}

/** What is known of a template's variable. The core checks values against it, publishes it, and completes `values`. */
export interface Param {
  /** The type of the value, which becomes a number or a boolean. Default: any text. */
  readonly type?: 'string' | 'integer' | 'number' | 'boolean' | 'date' | 'date-time' | 'uuid';
  /** The values that are allowed. */
  readonly values?: readonly string[];
  /** A regular expression that the whole value must match. */
  readonly pattern?: string;
  /** What it is, for people and models. */
  readonly description?: string;
}

/** What is known of a variable: in our words, or a schema of zod, valibot, arktype or any library of that interface. */
export type AnyParameter = Param | StandardSchema;

/** The options of an HTTP endpoint. The defaults are those of a server for this machine alone. */
export interface HttpOptions {
  /** Where the endpoint is. Default `/mcp`. */
  readonly path?: string;
  /** A path that answers 200 while the server lives. Default: none. */
  readonly health?: string | null;
  /** A path that shows what is counted, for Prometheus; `true` is `/metrics`. Asks as the endpoint does. Default: none. */
  readonly metrics?: boolean | string | null;
  /** Which `Host` headers are accepted: names, or names with ports. Default `loopback`. */
  readonly hosts?: 'loopback' | '*' | readonly string[];
  /** Which `Origin` headers are accepted, such as `https://app.example.com`. Default `loopback`. */
  readonly origins?: 'loopback' | '*' | readonly string[];
  /** Whether pages of the accepted origins may ask from a browser. Default `false`. */
  readonly cors?: boolean;
  /** Whether requests are answered with JSON, with a stream of events, or with what fits. Default `either`. */
  readonly answers?: 'either' | 'json' | 'events';
  /** After how many milliseconds a stream is broken off, and when the client is to come back. Default: never. */
  readonly polling?: readonly [afterMs: number, retryMs: number] | null;
  /**
   * Whether clients before 2026-07-28 get sessions. Without them each of their requests stands alone: nothing can be
   * subscribed to, and any process of a deployment can answer. Default `true`.
   */
  readonly sessions?: boolean;
  /**
   * Whether the transport of 2024-11-05 is served too, which was replaced in 2025-03-26: its paths for events and for
   * messages, or `true` for `/sse` and `/messages`. Clients take these paths from the root. Default `false`.
   */
  readonly sse24?: boolean | readonly [events: string, messages: string];
  /** What bearer tokens must be. Default: nobody is asked for one. */
  readonly auth?: Auth;
}

/** What a server shows to serve `https`: paths of PEM files. */
export interface Tls {
  /** The certificates, the server's own first. */
  readonly cert: string;
  /** Its private key. */
  readonly key: string;
}

/** How `ResourceServer.run` serves HTTP. */
export interface ListenOptions extends HttpOptions {
  /** The address to listen at. Default: this machine alone. */
  readonly host?: string;
  /** The port; 0 is any free one. Default 8000. */
  readonly port?: number;
  /** The files of certificate and key to serve `https` with. Default: `http`. */
  readonly tls?: Tls;
  /** Called with the URL when connections are taken. Default: the URL is told on standard error. */
  readonly onListening?: (url: string) => void;
}

/** The options of an HTTP endpoint as the compiled part takes them. */
export function httpFields(options: HttpOptions): PlainValue {
  checkHttp(options);
  const { auth, sse24, ...rest } = options;
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined && value !== null));
  return {
    ...given,
    ...(sse24 && { sse24: sse24 === true ? true : [...sse24] }),
    ...(auth && { auth: authFields(auth) }),
  } as PlainValue;
}

/** The files to serve `https` with, as the compiled part takes them. */
export function tlsFields(tls: Tls): TlsFields {
  checkOptions('tls', tls, { cert: TEXT, key: TEXT });
  if (typeof tls.cert !== 'string' || typeof tls.key !== 'string') {
    throw new TypeError('tls: expected { cert, key }, each the path of a PEM file');
  }
  return { cert: tls.cert, key: tls.key };
}

/** A resource, or the details of a template, as the compiled part takes them. */
export function describe(resource: Details & { readonly uri?: string }): Record<string, PlainValue> {
  const { lastModified, meta } = resource;
  const fields: Record<string, unknown> = { uri: resource.uri };
  for (const name of DETAILS) fields[name] = resource[name];
  if (lastModified instanceof Date) fields.lastModified = lastModified.toISOString();
  if (meta !== undefined) fields.meta = jsonText(meta, undefined, 'meta');
  return fields as Record<string, PlainValue>;
}

/** The name of a function, if it has one that says something. */
export function nameOf(call: AnyFunction): string | undefined {
  return call.name === '' || call.name === 'anonymous' ? undefined : call.name;
}
