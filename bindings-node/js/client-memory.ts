/** A server of this process, for a client of this process: on a pair of sockets, as if it were another process. */
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Server } from './binding.js';
import { bunStream, isBun } from './bun.js';
import { type Peers, PipeDriver, type ServerParts } from './driver.js';
import { failed } from './log.js';
import { internals, type ResourceServer } from './server.js';

/** Serves the client at the other end of a pipe. */
export class MemoryServer {
  readonly #internals: ServerParts;
  /** Set until it serves: the function holds the client, which must be collectable afterwards. */
  #open: (() => number | null) | undefined;
  #started: Promise<void> | undefined;
  #left: Promise<void> | undefined;
  #driver: SocketDriver | undefined;
  /** Whether it serves. */
  isStarted = false;

  /** `open` gives the descriptor of the server's end of the pipe, once. */
  constructor(server: ResourceServer, open: () => number | null) {
    this.#internals = internals(server);
    this.#open = open;
  }

  /** Serves, once `onStart` has. Rejects with its error. */
  start(): Promise<void> {
    this.#started ??= this.#start();
    return this.#started;
  }

  async #start(): Promise<void> {
    const { native, peers, lifespan } = this.#internals;
    await lifespan.enter();
    const fd = this.#open?.() ?? null;
    this.#open = undefined;
    if (fd !== null) this.#driver = new SocketDriver(native, peers, fd, () => this.#gone());
    this.isStarted = true;
  }

  /** Ends it; resolved when `onStop` has. */
  stop(): Promise<void> {
    this.#left ??= this.#stop();
    return this.#left;
  }

  async #stop(): Promise<void> {
    await this.#started?.catch(() => {});
    this.#driver?.release();
    if (this.isStarted) await this.#internals.lifespan.leave();
  }

  /** Called when the client was closed or garbage-collected. */
  #gone(): void {
    const { logger } = this.#internals.peers;
    this.stop().catch((error) => failed(logger, 'onStop', 'the server ends', error));
  }
}

/** One client behind a socket, which does not keep the process alive. */
class SocketDriver extends PipeDriver {
  readonly #socket: Duplex;

  constructor(server: Server, peers: Peers, fd: number, gone: () => void) {
    super(server, peers);
    const socket = isBun() ? undefined : new Socket({ fd, readable: true, writable: true });
    this.#socket = socket ?? bunStream(fd, { reads: true, writes: true });
    this.#socket.on('data', (chunk) => this.channel.feed(chunk));
    this.#socket.on('drain', () => this.#socket.resume());
    this.#socket.on('error', () => this.release());
    this.#socket.on('close', gone);
    socket?.unref();
  }

  override release(): void {
    if (this.isReleased) return;
    super.release();
    this.#socket.destroy();
  }

  /** A client that does not read is not read from. */
  protected override output(): void {
    const bytes = this.channel.take();
    if (bytes.length > 0 && !this.#socket.write(bytes)) this.#socket.pause();
  }
}
