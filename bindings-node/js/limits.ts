/** The limits of a server. `make options` writes this file from the rows in Rust. */

/** The limits of a server, to protect it and its clients. Limits that are not given keep their defaults. */
export interface Limits {
  /** The longest line on stdio and the largest HTTP body, in bytes. Default 4 MiB. */
  readonly message?: number;
  /** The deepest nesting of arrays and objects in one member of `params` or of its `_meta`. Default 128. */
  readonly nesting?: number;
  /** The longest request id or progress token, in bytes as written. Default 1 KiB. */
  readonly id?: number;
  /** The longest `clientInfo`, in bytes of JSON text. A session keeps it. Default 32 KiB. */
  readonly clientInfo?: number;
  /** The most elements of a JSON-RPC batch. Default 256. */
  readonly batch?: number;
  /**
   * The responses of one batch together, and of all incomplete batches of one connection, in bytes. A request whose
   * response exceeds the limit gets an error instead. Default 64 MiB.
   */
  readonly batchBytes?: number;
  /** The longest URI, in bytes. Default 64 KiB. */
  readonly uri?: number;
  /** The most registered resources. Default 1,000,000. */
  readonly resources?: number;
  /** The most registered templates, with those of other servers and list sources without a template. Default 10,000. */
  readonly templates?: number;
  /** The most registered tools, and the most registered prompts. Default 10,000. */
  readonly tools?: number;
  /**
   * The most unanswered requests of one connection; cancelled ones count until their handler returns. Python and Node
   * allow at most 1,048,576. Default 1,024.
   */
  readonly inFlight?: number;
  /** The items on one page of a list. Default 100. */
  readonly page?: number;
  /** The most items that one page of a list may examine when some are skipped. Default 10,000. */
  readonly listScan?: number;
  /** The most items that a lister without paging may return. Default 100,000. */
  readonly listSource?: number;
  /**
   * The longest entry of a list that another server describes and a provider passes on, in bytes of JSON text. Default
   * 64 KiB.
   */
  readonly listItem?: number;
  /**
   * The time for which the items of a lister without paging are reused for further pages, in milliseconds; with 0 each
   * page calls the lister. A reported change drops the items; an unreported one becomes visible after this time.
   * Default 0.
   */
  readonly listTtl?: number;
  /** The most results of listers that are kept for `listTtl`, over all principals. Default 256. */
  readonly listCache?: number;
  /** The results of listers that are kept for `listTtl`, in bytes. Default 16 MiB. */
  readonly listCacheBytes?: number;
  /** The most results in the read cache (option `cache`), over all principals. Default 10,000. */
  readonly cacheEntries?: number;
  /** The encoded results in the read cache, in bytes. Default 64 MiB. */
  readonly cacheBytes?: number;
  /** The most answers of functions about access that are kept, over all principals. Default 100,000. */
  readonly accessAnswers?: number;
  /**
   * The time after which a function about access is asked again, in milliseconds; with 0 each request asks. A person
   * who loses access may read, and is notified, for this long, unless `regrant` is called. Default 30,000.
   */
  readonly accessTtl?: number;
  /** The most questions that a function about access gets at once. Default 1,000. */
  readonly accessBatch?: number;
  /**
   * The most principals whose rates and open requests are counted separately; all others share a count. Default 10,000.
   */
  readonly principals?: number;
  /** The most subscriptions of one connection: `resources/subscribe` and open listens together. Default 10,000. */
  readonly subscriptions?: number;
  /** The most URIs of one `subscriptions/listen`. Default 10,000. */
  readonly filterUris?: number;
  /** The most URIs in all subscriptions and listens of one connection. Default 100,000. */
  readonly watchedUris?: number;
  /** The URIs that one connection watches, with the client's own spellings, in bytes. Default 16 MiB. */
  readonly watchedBytes?: number;
  /**
   * The URIs that all connections watch, each counted once, with the clients' own spellings, in bytes. Default 256 MiB.
   */
  readonly watchedTotal?: number;
  /** The largest contents of one read, in bytes before encoding. Default 16 MiB. */
  readonly contents?: number;
  /** The contents of all reads that are being collected from generators and streams, in bytes. Default 256 MiB. */
  readonly contentsTotal?: number;
  /**
   * The unsent output of one client, in bytes, above which no further request of it is read or started. Default 1 MiB.
   */
  readonly output?: number;
  /**
   * The most characters of text that the tools of `exposeAsTools` return at once; the text then says how to get the
   * rest. Default 40,000.
   */
  readonly toolText?: number;
  /** The longest time for a tool or prompt, in milliseconds; 0 for any time. Default 0. */
  readonly callTimeout?: number;
  /** The longest time for a read, a list or a custom method, in milliseconds. Default 30,000. */
  readonly readTimeout?: number;
  /** The longest time for a completion, in milliseconds. Default 5,000. */
  readonly completionTimeout?: number;
  /** The longest `context.arguments` of a completion, in bytes of JSON text. Default 64 KiB. */
  readonly arguments?: number;
  /** The most values of one completion; further ones are cut off. The protocol allows 100. Default 100. */
  readonly completionValues?: number;
  /** The shortest time between two notifications about one URI, in milliseconds. Default 50. */
  readonly coalesce?: number;
  /**
   * The shortest time between two progress notifications of one request, in milliseconds. The first one, and any that
   * reaches `total`, are always sent. Default 50.
   */
  readonly progressInterval?: number;
  /** The most log messages of one request. Default 1,000. */
  readonly logMessages?: number;
  /** The longest request state or cursor that a client may send back, in bytes. Default 64 KiB. */
  readonly state?: number;
  /** The time for which a request state is valid, in milliseconds. Default 600,000. */
  readonly stateTtl?: number;
  /** The most unanswered `ctx.ask` of one connection; a further one fails. Default 64. */
  readonly asks?: number;
  /** The time for open requests to finish after a shutdown begins, in milliseconds. Default 1,000. */
  readonly grace?: number;
  /**
   * The request line and headers of an HTTP request together, in bytes. One header repeats the URI. Default 256 KiB.
   */
  readonly head?: number;
  /** The most header lines of an HTTP request. Default 128. */
  readonly headers?: number;
  /** The most open HTTP sessions; further ones are refused. Default 10,000. */
  readonly sessions?: number;
  /**
   * The most HTTP sessions of one principal or, without tokens, of one client address (64 bits of an IPv6 address);
   * `initialize` is then answered with 429. Behind a proxy all clients may have the same address. Default 1,000.
   */
  readonly sessionsPerClient?: number;
  /** The time for which an unused HTTP session is kept, in milliseconds. Default 1,800,000. */
  readonly sessionIdle?: number;
  /**
   * The longest time that a new HTTP session waits for `notifications/initialized`, in milliseconds. Default 60,000.
   */
  readonly handshakeTimeout?: number;
  /** The most event streams that one HTTP session keeps for resumption. Default 16. */
  readonly streams?: number;
  /** The events of one stream that are kept for resumption, in bytes. Default 1 MiB. */
  readonly replay?: number;
  /** The time after which an idle event stream gets a comment, in milliseconds. Default 15,000. */
  readonly keepAlive?: number;
  /** The most open HTTP connections; further ones wait in the system's queue. Default 20,000. */
  readonly connections?: number;
  /**
   * The most open HTTP connections from one client address (64 bits of an IPv6 address), where `run` serves; further
   * ones are closed at once. Behind a proxy all clients may have the same address. Default 5,000.
   */
  readonly connectionsPerClient?: number;
  /**
   * The longest time for the head of an HTTP request, in milliseconds from the first byte or, for the first request,
   * from the start of the connection. It applies to the TLS handshake too. Default 10,000.
   */
  readonly headTimeout?: number;
  /** The longest time that an idle HTTP connection stays open, in milliseconds. Default 60,000. */
  readonly idleTimeout?: number;
  /**
   * The longest time for the body of an HTTP request, in milliseconds; the request is then answered with 408. Default
   * 30,000.
   */
  readonly bodyTimeout?: number;
  /**
   * All HTTP request bodies that are still incomplete, in bytes; a further one is answered with 503. Default 256 MiB.
   */
  readonly bodiesTotal?: number;
  /**
   * The longest time that a client may accept no data before its connection is closed, in milliseconds. Default 30,000.
   */
  readonly writeTimeout?: number;
  /** The most verified tokens in the cache, by their digests. Default 10,000. */
  readonly tokenCache?: number;
  /** The longest time before a token is verified again, in milliseconds. Default 300,000. */
  readonly tokenTtl?: number;
  /** The most audit records that wait to be written; a further one is dropped and counted. Default 10,000. */
  readonly auditQueue?: number;
  /**
   * The time after which an HTTP request without an answer gets an event stream, if the client accepts one, in
   * milliseconds. Default 1,000.
   */
  readonly sseAfter?: number;
}
