/** The results that a handler can return besides texts, bytes, streams and JSON values. */
import { isObject, shown, unexpected } from './check.js';
import { type ErrorKind, McpError } from './errors.js';

/** Whether caches may share a result: `public` if it is the same for all users, else `private`. */
export type CacheScope = 'public' | 'private';

/** How long a result may be cached, and whether caches may share it (revision 2026-07-28). */
export interface CacheHint {
  /** How long, in milliseconds. Default 0: not at all. */
  readonly ttlMs?: number;
  /** `public` if the result is the same for all users, else `private`. Default `private`. */
  readonly cacheScope?: CacheScope;
}

/** A JSON object. */
export type JsonObject = { readonly [name: string]: unknown };

/** The options of {@link Contents}. */
export interface ContentsOptions {
  /** The URI of this entry. Default: the URI that was read. */
  readonly uri?: string | undefined;
  /** The media type of this entry. Default: that of the resource. */
  readonly mimeType?: string | undefined;
  /** Members of `_meta`. Default: none. */
  readonly meta?: JsonObject | undefined;
}

const ABOUT = ['uri', 'mimeType', 'meta'];

/** One entry of the contents of a resource: a text, bytes, or a value that is serialized as JSON. */
export class Contents {
  readonly uri: string | undefined;
  readonly mimeType: string | undefined;
  readonly meta: JsonObject | undefined;

  /**
   * @param body - a string, a buffer or view, or a JSON value.
   * @param options - its URI, media type and `_meta`.
   */
  constructor(
    readonly body: unknown,
    options: ContentsOptions = {},
  ) {
    if (!isObject(options as unknown)) {
      const fix = typeof options === 'string' ? `: { mimeType: ${shown(options)} }` : '';
      throw new TypeError(`Contents takes an object of options, not ${shown(options)}${fix}`);
    }
    for (const name in options) if (!ABOUT.includes(name)) throw unexpected('option', name, ABOUT);
    const { uri, mimeType, meta } = options;
    this.uri = uri;
    this.mimeType = mimeType;
    this.meta = meta;
  }
}

/** Contents with a caching hint that replaces the one of the resource. */
export class ReadResult {
  readonly contents: readonly Contents[];
  readonly cache: CacheHint;

  /**
   * @param contents - one or several `Contents`.
   * @param cache - the caching hint. Default: not cached.
   * @throws {TypeError} an argument has the wrong type.
   */
  constructor(contents: Contents | Iterable<Contents>, cache: CacheHint = {}) {
    for (const name in cache) if (!HINTS.includes(name)) throw unexpected('option', name, HINTS);
    const { ttlMs = 0, cacheScope = 'private' } = cache;
    this.contents = contents instanceof Contents ? [contents] : items('ReadResult', contents, 'Contents');
    const wrong = this.contents.find((one) => !(one instanceof Contents));
    if (wrong !== undefined) {
      throw new TypeError(`a ReadResult has ${shown(wrong)}, expected Contents: new ReadResult([new Contents(body)])`);
    }
    this.cache = { ttlMs, cacheScope };
  }
}

const HINTS = ['ttlMs', 'cacheScope'];
const COUNTS = ['total', 'hasMore'];

/** An iterable as an array. A string is refused: it would become an array of its characters. */
function items<T>(what: string, given: Iterable<T>, of: string): T[] {
  if (typeof given === 'object' && given !== null && Symbol.iterator in given) return [...given];
  throw new TypeError(`a ${what} is made with ${shown(given)}, expected an array of ${of}`);
}

/** Suggested values of a variable. */
export class Completion {
  readonly values: readonly string[];
  readonly total: number | undefined;
  readonly hasMore: boolean | undefined;

  /**
   * @param values - the values, best first.
   * @param options - `total`: the number of all values, also of those that are not in `values`; `hasMore`: whether there are
   * more values. Default: computed from `values`.
   * @throws {TypeError} `values` is a string or not iterable.
   */
  constructor(
    values: Iterable<string>,
    options: { readonly total?: number | undefined; readonly hasMore?: boolean | undefined } = {},
  ) {
    for (const name in options) if (!COUNTS.includes(name)) throw unexpected('option', name, COUNTS);
    const { total, hasMore } = options;
    this.values = items('Completion', values, 'strings');
    this.total = total;
    this.hasMore = hasMore;
  }
}

/** One page of a lister that takes a cursor. */
export class ListPage<Item = unknown> {
  readonly items: readonly Item[];

  /**
   * @param given - the items of this page.
   * @param next - the cursor of the next page. Default: this is the last page.
   * @throws {TypeError} the items are a string or not iterable, or `next` is not a string.
   */
  constructor(
    given: Iterable<Item>,
    readonly next?: string | undefined,
  ) {
    this.items = items('ListPage', given, 'resources');
    if (next !== undefined && typeof next !== 'string') {
      throw new TypeError(`next is ${shown(next)}, expected a string: String(${shown(next)})`);
    }
  }
}

/** The result of a custom method, with `_meta` or with a result type. */
export class MethodResult {
  readonly resultType: string | undefined;
  readonly meta: JsonObject | undefined;

  /**
   * @param members - the members of the result.
   * @param options - `resultType`, by default `complete`, and `meta`, members of `_meta`.
   */
  constructor(
    readonly members: JsonObject,
    { resultType, meta }: { readonly resultType?: string | undefined; readonly meta?: JsonObject | undefined } = {},
  ) {
    this.resultType = resultType;
    this.meta = meta;
  }
}

/** Asks the user to fill in a form. */
export class Elicit {
  /**
   * @param message - the text above the form.
   * @param schema - a flat JSON schema of its fields. The answer is checked against it.
   */
  constructor(
    readonly message: string,
    readonly schema: JsonObject,
  ) {}
}

/** Asks the user to open a web page. */
export class ElicitUrl {
  /**
   * @param message - the text for the user.
   * @param url - the URL of the page. It must not contain personal data or secrets.
   */
  constructor(
    readonly message: string,
    readonly url: string,
  ) {}
}

/** Asks the client's model for a completion. `params` are those of `sampling/createMessage`. */
export class Sample {
  constructor(readonly params: JsonObject) {}
}

/** Asks the client for its roots. */
export class ListRoots {}

/** A request for input from the client or its user. */
export type InputRequest = Elicit | ElicitUrl | Sample | ListRoots;

/**
 * Asks the client for input before the read is answered (revision 2026-07-28). Returned or thrown by a handler. The client
 * then repeats the read with its answers, and the handler is called again.
 */
export class InputRequired extends McpError {
  readonly requests: Readonly<Record<string, InputRequest>>;
  readonly state: unknown;

  /**
   * @param requests - the requests to the client, by keys of your choice. The answers are in `ctx.inputs` under these keys.
   * @param options - `state`: any JSON value that the handler needs again, as `ctx.state`. The client gets it sealed.
   */
  constructor(requests: Readonly<Record<string, InputRequest>> = {}, { state }: { readonly state?: unknown } = {}) {
    super('input from the client is required');
    if (QUESTIONS.some((kind) => requests instanceof kind)) {
      throw new TypeError(`InputRequired takes requests by keys, not ${shown(requests)}; write { answer: … }`);
    }
    this.requests = requests;
    this.state = state;
  }

  override get kind(): ErrorKind {
    return 'input_required';
  }
}

const QUESTIONS = [Elicit, ElicitUrl, Sample, ListRoots];

/** The client's answer to one request. */
export class InputResponse {
  constructor(
    /** The answer as it was received. */
    readonly value: JsonObject,
  ) {}

  /** The user's reaction to a form or page: `accept`, `decline` or `cancel`; `undefined` for other requests. */
  get action(): string | undefined {
    return this.value.action as string | undefined;
  }

  /** The values that the user filled in; empty unless the user accepted a form. */
  get content(): JsonObject {
    return (this.value.content as JsonObject | undefined) ?? {};
  }
}
