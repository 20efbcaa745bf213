/** The bytes of any buffer or view, where they lie; those of shared memory are copied, as they may change. */
export function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return isShared(value.buffer) ? new Uint8Array(value) : value;
  if (ArrayBuffer.isView(value)) {
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return isShared(value.buffer) ? new Uint8Array(bytes) : bytes;
  }
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return isShared(value) ? new Uint8Array(new Uint8Array(value)) : undefined;
}

function isShared(value: unknown): value is SharedArrayBuffer {
  return typeof SharedArrayBuffer !== 'undefined' && value instanceof SharedArrayBuffer;
}
