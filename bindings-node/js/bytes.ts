/** Which buffers and views are bytes, and which are arrays of numbers. */

/** An array of numbers over a buffer. */
export type Numbers = Exclude<NodeJS.TypedArray, Uint8Array | Uint8ClampedArray>;

/**
 * The bytes of a buffer or of a view on bytes, where they lie; those of shared memory are copied, as they may change.
 * `undefined` for anything else: the memory of a `Float64Array` is no contents that a client expects.
 */
export function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return isShared(value.buffer) ? new Uint8Array(value) : value;
  if (value instanceof Uint8ClampedArray || value instanceof DataView) {
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return isShared(value.buffer) ? new Uint8Array(bytes) : bytes;
  }
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return isShared(value) ? new Uint8Array(new Uint8Array(value)) : undefined;
}

/** Whether it is an array of numbers, whose JSON is that of an array. */
export function isNumbers(value: unknown): value is Numbers {
  return ArrayBuffer.isView(value) && bytesOf(value) === undefined;
}

function isShared(value: unknown): value is SharedArrayBuffer {
  return typeof SharedArrayBuffer !== 'undefined' && value instanceof SharedArrayBuffer;
}
