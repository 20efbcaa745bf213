/** Contents that arrive in chunks. They are collected up to `Limits.contents`, and sent after the last one. */

import { bytesOf } from './bytes.js';
import { shown } from './check.js';
import type { Driver } from './driver.js';
import { translated } from './errors.js';
import { Work } from './watchdog.js';

/** A chunk of a stream. */
export type Chunk = string | ArrayBufferView | ArrayBufferLike;

/** A stream that a handler can return. */
export type Stream = AsyncIterable<Chunk> | AsyncIterator<Chunk> | Iterator<Chunk> | ReadableStream<Chunk>;

/** The handler of a stream, and a function that answers with the whole contents if they must be redacted. */
export interface Gathering {
  readonly name: string;
  readonly whole?: (body: string | Uint8Array) => void;
  /** Its media type, if it has one of its own. */
  readonly mimeType?: string | undefined;
  /** Whether it is text or bytes, if that is known before the first chunk. */
  readonly isText?: boolean;
}

/** A stream, ready: `stop` ends it while it waits for a chunk. */
interface Source {
  readonly chunks: AsyncIterable<Chunk>;
  readonly stop: () => unknown;
}

/** Whether it is an iterator or can be iterated asynchronously. */
export function isStream(value: unknown): value is Stream {
  if (value === null || typeof value !== 'object') return false;
  return Symbol.asyncIterator in value || typeof (value as Partial<Iterator<Chunk>>).next === 'function';
}

/** Takes all chunks as long as the answer is needed, and answers. Throws or rejects with the error of the stream. */
export function gather(
  driver: Driver,
  request: number,
  stream: Stream,
  { name, whole, mimeType, isText }: Gathering,
): Promise<void> | undefined {
  const { answers } = driver;
  const gathered = answers.gather(request, mimeType);
  const push = (chunk: Chunk) => translated(() => gathered?.push(bytes(chunk)));
  if (isText !== undefined) push(isText ? '' : new Uint8Array());
  const finish = (): void => {
    if (gathered === null) answers.fail(request, null, {});
    else if (whole === undefined) answers.gathered(request, gathered);
    else {
      const { text, bytes: blob } = gathered.whole();
      whole(text ?? blob ?? '');
    }
  };
  if (Symbol.iterator in stream) {
    for (const chunk of stream as Iterable<Chunk>) push(chunk);
    finish();
    return undefined;
  }
  const source = open(stream);
  const work = new Work(name);
  let isWanted = gathered !== null;
  const take = async (): Promise<void> => {
    try {
      for await (const chunk of source.chunks) {
        if (!isWanted) break;
        push(chunk);
      }
    } finally {
      driver.resumed(request, work);
    }
    finish();
  };
  driver.suspended(work);
  driver.whenCancelled(request, () => {
    isWanted = false;
    source.stop();
  });
  return take();
}

function bytes(chunk: Chunk): string | Uint8Array {
  const found = typeof chunk === 'string' ? chunk : bytesOf(chunk);
  if (found === undefined) throw new TypeError(`the stream yields ${shown(chunk)}, expected a string or bytes`);
  return found;
}

function open(stream: Stream): Source {
  if (stream instanceof ReadableStream) return openWeb(stream);
  if (Symbol.asyncIterator in stream) {
    const iterator = stream[Symbol.asyncIterator]();
    const { destroy } = stream as { destroy?: () => void };
    const stop = () => (destroy === undefined ? iterator.return?.() : destroy.call(stream));
    return { chunks: { [Symbol.asyncIterator]: () => iterator }, stop };
  }
  // Works for both kinds of iterators, because `await` also accepts values that are not promises.
  const iterator = stream as AsyncIterator<Chunk>;
  return { chunks: { [Symbol.asyncIterator]: () => iterator }, stop: () => iterator.return?.() };
}

/** Its own iterator cannot be stopped while it waits. */
function openWeb(stream: ReadableStream<Chunk>): Source {
  const reader = stream.getReader();
  const stop = async (): Promise<IteratorReturnResult<undefined>> => {
    await reader.cancel();
    return { done: true, value: undefined };
  };
  const next = () => reader.read() as Promise<IteratorResult<Chunk>>;
  return { chunks: { [Symbol.asyncIterator]: () => ({ next, return: stop }) }, stop };
}
