/** Results in the shape of the official SDK: `{ contents: [{ uri, text }] }`. */
import { isObject, shown } from './check.js';
import { type CacheHint, type CacheScope, Contents, type JsonObject } from './results.js';

/** One of the contents in the protocol's own shape. */
export interface WireContents {
  readonly uri: string;
  readonly mimeType?: string | undefined;
  readonly text?: string;
  /** Bytes in base64. */
  readonly blob?: string;
  readonly _meta?: JsonObject | undefined;
}

/** A result of a read in the protocol's own shape. */
export interface WireResult {
  readonly contents: readonly WireContents[];
  readonly ttlMs?: number;
  readonly cacheScope?: CacheScope;
}

/** The same as values of this library. */
export interface Shaped {
  readonly contents: readonly Contents[];
  readonly cache: CacheHint | undefined;
}

const ENTRY = ['uri', 'mimeType', 'text', 'blob', '_meta'];
/** Bytes in base64. */
export const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * The contents of a result with that shape; `undefined` for any other object.
 *
 * @throws {TypeError} it has the shape, and a member with a value that cannot be sent.
 */
export function shaped(value: unknown): Shaped | undefined {
  if (!isPlain(value) || !Array.isArray(value.contents) || value.contents.length === 0) return undefined;
  if (!value.contents.every(isEntry)) return undefined;
  const { contents, ttlMs, cacheScope, _meta, resultType, ...rest } = value;
  if (Object.keys(rest).length > 0) return undefined;
  if (isObject(_meta) && Object.keys(_meta).length > 0) {
    throw new TypeError('the result has _meta, which a read cannot send; put it into the _meta of one of its contents');
  }
  const cache = { ttlMs: (ttlMs ?? 0) as number, cacheScope: (cacheScope ?? 'private') as CacheScope };
  return {
    contents: value.contents.map(contentsOf),
    cache: ttlMs === undefined && cacheScope === undefined ? undefined : cache,
  };
}

/** Whether it was meant as one of the contents. An object with further members is data: they would be lost. */
function isEntry(value: unknown): value is WireContents {
  if (!isPlain(value) || typeof value.uri !== 'string' || 'text' in value === 'blob' in value) return false;
  return Object.keys(value).every((name) => ENTRY.includes(name));
}

/** Whether it is an object without a class of its own. */
export function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** One of the contents as a value of this library; `at` is its place, for errors. */
export function contentsOf({ uri, text, blob, mimeType, _meta }: WireContents, at: number): Contents {
  const about = { uri, mimeType, meta: _meta };
  if (typeof text === 'string') return new Contents(text, about);
  if (text !== undefined) throw new TypeError(`contents[${at}].text is ${shown(text)}, expected a string`);
  if (typeof blob === 'string' && BASE64.test(blob)) return new Contents(Buffer.from(blob, 'base64'), about);
  throw new TypeError(`contents[${at}].blob is ${shown(blob)}, expected bytes in base64`);
}
