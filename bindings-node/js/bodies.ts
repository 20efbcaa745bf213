/** Bodies with a type of their own, as the platform has them: `Response` and `Blob`. */

/** A body with a media type. */
export type WebBody = Blob | Response;

/** Media types other than `text/…` whose bytes are text. */
const TEXTUAL =
  /^(?:text\/|application\/(?:json|xml|javascript|ecmascript|yaml|x-yaml|toml|sql|graphql)$)|\+(?:json|xml|yaml)$/;

/** Whether it is one. */
export function isWebBody(value: unknown): value is WebBody {
  return value instanceof Blob || value instanceof Response;
}

/** A body, ready to be taken. */
export interface Opened {
  /** Texts, or bytes. */
  readonly chunks: ReadableStream<string | Uint8Array>;
  readonly isText: boolean;
  /** Its media type, without parameters; `undefined` if it has none. */
  readonly mimeType: string | undefined;
}

/**
 * Opens a body: by its type it is text, in any charset, or bytes.
 *
 * @throws {TypeError} the response has an error status, its body was read already, or its charset is unknown.
 */
export function open(body: WebBody): Opened {
  const bytes = bytesOf(body);
  const type = body instanceof Blob ? body.type : (body.headers.get('content-type') ?? '');
  const [essence = '', ...parameters] = type.split(';').map((part) => part.trim().toLowerCase());
  const mimeType = essence === '' ? undefined : essence;
  if (!TEXTUAL.test(essence)) return { chunks: bytes, isText: false, mimeType };
  const charset = parameters.find((one) => one.startsWith('charset='))?.slice('charset='.length);
  return { chunks: bytes.pipeThrough(decoder(charset?.replaceAll('"', ''))), isText: true, mimeType };
}

function bytesOf(body: WebBody): ReadableStream<Uint8Array> {
  if (body instanceof Blob) return body.stream() as ReadableStream<Uint8Array>;
  if (!body.ok) {
    body.body?.cancel().catch(() => {});
    const status = `${body.status} ${body.statusText}`.trim();
    throw new TypeError(
      `the handler returned a Response with status ${status}${from(body.url)}; check response.ok, or throw ResourceNotFoundError`,
    );
  }
  if (body.bodyUsed || body.body?.locked) {
    throw new TypeError('the handler returned a Response whose body was read already; return what was read');
  }
  return (body.body ?? new Blob([]).stream()) as ReadableStream<Uint8Array>;
}

function decoder(charset = 'utf-8'): TransformStream<Uint8Array, string> {
  try {
    return new TextDecoderStream(charset) as unknown as TransformStream<Uint8Array, string>;
  } catch {
    throw new TypeError(`the charset "${charset}" of the returned body is not known; return text or bytes`);
  }
}

/** Where a response came from, without a query, which may hold a secret. */
function from(url: string): string {
  return url === '' ? '' : ` from ${url.replace(/[?#].*$/s, '')}`;
}
