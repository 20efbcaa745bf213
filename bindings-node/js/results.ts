/** What a handler may return besides texts, bytes, streams and values that become JSON. */
import { shown, unexpected } from './check.js';
import { type ErrorKind, McpError } from './errors.js';

/** By whom a result may be kept: `public` only if it is the same for everyone. */
export type CacheScope = 'public' | 'private';

/** How long a result may be kept, in milliseconds, and by whom (revision 2026-07-28). */
export interface CacheHint {
  /** Milliseconds. Default 0 ms: it is not kept. */
  readonly ttlMs?: number;
  /** By whom. Default `private`. */
  readonly cacheScope?: CacheScope;
}

/** A JSON object. */
export type JsonObject = { readonly [name: string]: unknown };

/** What one of the contents has besides its body. */
export interface ContentsOptions {
  /** Its own URI, if it is not the one that was asked for. */
  readonly uri?: string | undefined;
  /** Its media type; left out, the resource's own. */
  readonly mimeType?: string | undefined;
  /** Members of `_meta`. */
  readonly meta?: JsonObject | undefined;
}

const ABOUT = ['uri', 'mimeType', 'meta'];

/** One of the contents of a resource: a text, bytes (any buffer or view), or a value that becomes JSON. */
export class Contents {
  readonly uri: string | undefined;
  readonly mimeType: string | undefined;
  readonly meta: JsonObject | undefined;

  constructor(
    readonly body: unknown,
    options: ContentsOptions = {},
  ) {
    for (const name in options) if (!ABOUT.includes(name)) throw unexpected('option', name, ABOUT);
    const { uri, mimeType, meta } = options;
    this.uri = uri;
    this.mimeType = mimeType;
    this.meta = meta;
  }
}

/** Contents with a caching hint of their own; else the resource's counts. */
export class ReadResult {
  readonly contents: readonly Contents[];
  readonly cache: CacheHint;

  constructor(contents: Contents | Iterable<Contents>, { ttlMs = 0, cacheScope = 'private' }: CacheHint = {}) {
    this.contents = contents instanceof Contents ? [contents] : items('ReadResult', contents, 'Contents');
    const wrong = this.contents.find((one) => !(one instanceof Contents));
    if (wrong !== undefined) {
      throw new TypeError(`a ReadResult has ${shown(wrong)}, expected Contents: new ReadResult([new Contents(body)])`);
    }
    this.cache = { ttlMs, cacheScope };
  }
}

/** What can be iterated as an array. A string is one value, not its letters. */
function items<T>(what: string, given: Iterable<T>, of: string): T[] {
  if (typeof given === 'object' && given !== null && Symbol.iterator in given) return [...given];
  throw new TypeError(`a ${what} is made with ${shown(given)}, expected an array of ${of}`);
}

/** Values for a variable, best first. `total` and `hasMore` are worked out from `values` if they are not given. */
export class Completion {
  readonly values: readonly string[];
  readonly total: number | undefined;
  readonly hasMore: boolean | undefined;

  constructor(
    values: Iterable<string>,
    { total, hasMore }: { readonly total?: number | undefined; readonly hasMore?: boolean | undefined } = {},
  ) {
    this.values = items('Completion', values, 'strings');
    this.total = total;
    this.hasMore = hasMore;
  }
}

/** A page of a lister that takes a cursor; `next` is where the next page begins, left out at the end. */
export class ListPage<Item = unknown> {
  readonly items: readonly Item[];

  constructor(
    given: Iterable<Item>,
    readonly next?: string | undefined,
  ) {
    this.items = items('ListPage', given, 'resources');
  }
}

/** The result of a custom method with `_meta`, or with a type other than `complete`. */
export class MethodResult {
  readonly resultType: string | undefined;
  readonly meta: JsonObject | undefined;

  constructor(
    readonly members: JsonObject,
    { resultType, meta }: { readonly resultType?: string | undefined; readonly meta?: JsonObject | undefined } = {},
  ) {
    this.resultType = resultType;
    this.meta = meta;
  }
}

/** A form for the user. `schema` is a flat JSON schema; the answer is checked against it. */
export class Elicit {
  constructor(
    readonly message: string,
    readonly schema: JsonObject,
  ) {}
}

/** A page for the user to visit; its URL carries nothing about them. */
export class ElicitUrl {
  constructor(
    readonly message: string,
    readonly url: string,
  ) {}
}

/** A completion by the client's model: the params of the request. */
export class Sample {
  constructor(readonly params: JsonObject) {}
}

/** The client's roots. */
export class ListRoots {}

/** A question to the client. */
export type InputRequest = Elicit | ElicitUrl | Sample | ListRoots;

/**
 * What the client must give before the read can be answered (revision 2026-07-28). Returned or thrown.
 *
 * @param requests - what to ask; the client's answers come back as `ctx.inputs` under the same keys.
 * @param options - `state`, any JSON value, comes back as `ctx.state`, sealed on its way through the client.
 */
export class InputRequired extends McpError {
  readonly requests: Readonly<Record<string, InputRequest>>;
  readonly state: unknown;

  constructor(requests: Readonly<Record<string, InputRequest>> = {}, { state }: { readonly state?: unknown } = {}) {
    super('input from the client is required');
    this.requests = requests;
    this.state = state;
  }

  override get kind(): ErrorKind {
    return 'input_required';
  }
}

/** The client's answer to one request: of a form, `action` is accept, decline or cancel. */
export class InputResponse {
  constructor(
    /** The answer as it came. */
    readonly value: JsonObject,
  ) {}

  /** What the user did, if they were asked. */
  get action(): string | undefined {
    return this.value.action as string | undefined;
  }

  /** What the user filled in; empty unless they accepted a form. */
  get content(): JsonObject {
    return (this.value.content as JsonObject | undefined) ?? {};
  }
}
