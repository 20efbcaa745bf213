/** Calls the `onWatch` functions when clients begin or cease to watch, on the event loop, in batches. */
import type { Server } from './binding.js';
import { translated } from './errors.js';
import { failed, type Logger } from './log.js';

/** Is called with a URI in canonical form and `true` when its first client watches it, with `false` after the last. */
export type Watcher = (uri: string, isWatched: boolean) => void | PromiseLike<void>;

/** The `onWatch` functions of one server, by the URI or template that they are registered for. */
export class Watches {
  readonly #native: Server;
  readonly #logger: Logger;
  readonly #calls = new Map<string, [name: string, call: Watcher][]>();
  readonly #names = new Map<string, string>();
  readonly #bell: () => void;

  constructor(native: Server, logger: Logger) {
    this.#native = native;
    this.#logger = logger;
    // The function is held for ever, so it must not hold the server.
    const own = new WeakRef(this);
    this.#bell = () => {
      const watches = own.deref();
      if (watches !== undefined) watches.#take();
    };
  }

  /** Registers a function for the resource or template `uri`. */
  add(uri: string, name: string, call: Watcher): void {
    const key = translated(() => this.#native.watch(uri, this.#bell));
    this.#names.set(uri, key);
    this.#calls.set(key, [...(this.#calls.get(key) ?? []), [name, call]]);
  }

  /** Removes the functions of a resource or template that was removed. */
  remove(uri: string): void {
    this.#calls.delete(this.#names.get(uri) ?? '');
    this.#names.delete(uri);
  }

  #take(): void {
    for (const { name: key, uri, isWatched } of this.#native.takeWatches()) {
      for (const [name, call] of this.#calls.get(key) ?? []) void this.#tell(name, call, uri, isWatched);
    }
  }

  async #tell(name: string, call: Watcher, uri: string, isWatched: boolean): Promise<void> {
    try {
      await call(uri, isWatched);
    } catch (error) {
      failed(this.#logger, name, uri, error);
    }
  }
}
