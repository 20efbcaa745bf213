/**
 * Pipes and sockets under Bun. Its `net.Socket` reads and writes nothing of a descriptor that is passed to it, and its
 * streams of `fs` fail where a descriptor has nothing to read or no room: Bun's own files wait.
 */
import { Duplex, type DuplexOptions } from 'node:stream';

/** What is used of the global `Bun`. */
interface Bun {
  file(fd: number): {
    stream(): ReadableStream<Uint8Array>;
    writer(): { write(chunk: Uint8Array): unknown; flush(): unknown; end(): unknown };
  };
}

/** Whether this is Bun. */
export function isBun(): boolean {
  return process.versions.bun !== undefined;
}

/** A stream over a descriptor that can be read, or written, or both. */
export function bunStream(
  fd: number,
  { reads, writes }: { readonly reads: boolean; readonly writes: boolean },
): Duplex {
  const file = (globalThis as unknown as { readonly Bun: Bun }).Bun.file(fd);
  const reader = reads ? file.stream().getReader() : undefined;
  const sink = writes ? file.writer() : undefined;
  const sides: DuplexOptions = { allowHalfOpen: true, ...{ readable: reads, writable: writes } };
  return new Duplex({
    ...sides,
    read() {
      reader?.read().then(
        ({ done, value }) => this.push(done ? null : value),
        (error) => this.destroy(error),
      );
    },
    write(chunk: Uint8Array, _encoding, done) {
      sink?.write(chunk);
      Promise.resolve(sink?.flush()).then(() => done(), done);
    },
    destroy(error, done) {
      reader?.cancel().catch(() => {});
      sink?.end();
      done(error);
    },
  });
}
