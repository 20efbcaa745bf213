/**
 * Standard input and output on the event loop. libuv reads into one buffer, the compiled part answers and writes. Here
 * is only what happens now and then: waiting for room, time, and the end.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import tty from 'node:tty';
import type { Channel, Embedding, Server } from './binding.js';
import { bunStream, isBun } from './bun.js';
import { type Peers, PipeDriver } from './driver.js';
import { type LinePipe, LineTransport } from './line-transport.js';
import { type Ending, exitAfter, onSignals } from './signals.js';

const CHUNK = 65_536;

/** A server of the SDK, of which ours is a part. */
interface Behind {
  readonly native: Embedding;
  readonly connect: (transport: LineTransport) => Promise<{ close(): Promise<void> }>;
}

interface StdioOptions {
  readonly signals: boolean;
  readonly ending: Ending;
  readonly signal?: AbortSignal;
  readonly behind?: Behind | undefined;
}

/** Serves until the end of input, a signal, or `signal`; then lets open requests finish. */
export async function serve(
  server: Server,
  peers: Peers,
  { signals, ending, signal, behind }: StdioOptions,
): Promise<void> {
  if (isRead(process.stdin)) {
    throw new Error(
      'something else reads process.stdin, which belongs to the client now; remove its listeners, pipe() or readline, or serve HTTP',
    );
  }
  const transport = new LineTransport();
  const other = await behind?.connect(transport);
  const driver = new Stdio(server, peers, behind && { before: behind.native, transport });
  let mayLinger = true;
  const interrupt = (): void => {
    mayLinger = false;
    driver.stop();
  };
  const stop = (): void => driver.stop();
  const leave = ending(stop);
  const release = signals ? onSignals(interrupt) : undefined;
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop);
  try {
    await driver.stopping;
    behind?.native.shutdown();
    const isOver = await driver.close(server.grace, other);
    if (signals && !isOver) mayLinger = false;
  } finally {
    signal?.removeEventListener('abort', stop);
    release?.();
    leave();
    if (!mayLinger) exitAfter(server.grace);
  }
}

/** Whether bytes of the client may go there: libuv ends the process if a descriptor that it polls is taken away. */
function isRead(stream: Readable): boolean {
  return stream.readableFlowing === true || stream.listenerCount('readable') > 0;
}

class Stdio extends PipeDriver implements LinePipe {
  /** Resolved when no further input is wanted. */
  readonly stopping: Promise<void>;
  readonly #idle: Promise<void>;
  readonly #input: Input;
  #writer: Writable | undefined;
  #stop = (): void => {};
  #rest = (): void => {};
  readonly #other: LineTransport | undefined;
  #isPassing = false;
  /** Called when there is room for what the SDK sends. */
  readonly #waiting: (() => void)[] = [];

  constructor(server: Server, peers: Peers, other?: { readonly before: Embedding; readonly transport: LineTransport }) {
    const buffer = Buffer.allocUnsafeSlow(CHUNK);
    super(server, peers, { stdio: true, buffer, ...(other && { before: other.before }) });
    this.#other = other?.transport;
    if (this.#other !== undefined) this.#other.pipe = this;
    this.stopping = new Promise((resolve) => {
      this.#stop = resolve;
    });
    this.#idle = new Promise((resolve) => {
      this.#rest = resolve;
    });
    this.#input = new Input(this.channel, this.input.received, buffer);
  }

  /** No further input is wanted. */
  stop(): void {
    this.#stop();
  }

  /**
   * Ends open listens with their results, lets what is in flight finish within the grace, also in the SDK's server, cancels the
   * rest, and writes what the client still takes. Returns whether every handler has come to its end.
   */
  async close(grace: number, other?: { close(): Promise<void> }): Promise<boolean> {
    this.#input.pause(true);
    try {
      this.channel.stop();
      if (await this.#rests(grace)) return true;
      this.channel.cancelAll();
      return await this.#rests(grace);
    } finally {
      await other?.close();
      this.release();
      this.#input.close();
      this.#writer?.destroy();
    }
  }

  /** Sends lines of the SDK's server. Resolved when there is room for the next ones. */
  async send(lines: string): Promise<void> {
    if (this.isReleased || this.channel.send(lines)) return;
    await turn();
    if (!this.isReleased && this.channel.unwritten > 0) await new Promise<void>((room) => this.#waiting.push(room));
  }

  /** Taking some lets more be read, which comes here again. */
  protected override lines(): void {
    if (this.#isPassing) return;
    this.#isPassing = true;
    try {
      for (let lines = this.channel.lines(); lines !== ''; lines = this.channel.lines()) this.#other?.receive(lines);
    } finally {
      this.#isPassing = false;
    }
  }

  protected override read(wanted: boolean): void {
    this.#input.pause(!wanted);
  }

  /** The client takes no more now: libuv waits for room. */
  protected override output(): void {
    this.#writer ??= openWriter(this.channel.openOutput(), () => this.#gone());
    this.#writer.write(this.channel.take(), (error) => {
      if (!error && !this.isReleased) this.channel.drained();
      for (const room of this.#waiting.splice(0)) room();
    });
  }

  protected override ended(): void {
    this.#stop();
  }

  protected override idle(): void {
    this.#rest();
  }

  /** Nobody reads any longer: nothing is kept for them. */
  #gone(): void {
    if (!this.isReleased) this.channel.drained();
    this.#stop();
  }

  /** Whether all is answered and written within the time. The timer keeps the process alive. */
  async #rests(milliseconds: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, milliseconds, false);
    });
    const rests = await Promise.race([this.#idle.then(() => true), late]);
    clearTimeout(timer);
    return rests;
  }
}

/** Where requests come from: a pipe, a socket, a terminal or a file. */
class Input {
  readonly #stream: Readable;
  #paused = false;

  constructor(channel: Channel, received: (count: number) => void, buffer: Buffer) {
    const fd = channel.openInput();
    this.#stream = this.#openSocket(fd, received, buffer) ?? openReader(fd, channel);
    this.#stream.on('end', () => channel.end());
    this.#stream.on('error', () => channel.end());
  }

  /** Reads no more for now, or goes on. */
  pause(paused: boolean): void {
    this.#paused = paused;
    if (paused) this.#stream.pause();
    else this.#stream.resume();
  }

  close(): void {
    this.#stream.destroy();
  }

  /** libuv reads into one buffer, and only a length crosses. `undefined` where it has no such handle: for a file. */
  #openSocket(fd: number, received: (count: number) => void, buffer: Buffer): Socket | undefined {
    const callback = (count: number): boolean => {
      received(count);
      return !this.#paused;
    };
    if (tty.isatty(fd) || isBun()) return undefined;
    try {
      const options: SocketConstructorOpts & { onread: OnReadOpts } = {
        fd,
        readable: true,
        writable: false,
        allowHalfOpen: true,
        onread: { buffer, callback },
      };
      return new Socket(options);
    } catch {
      return undefined;
    }
  }
}

function openReader(fd: number, channel: Channel): Readable {
  return openStream(fd).on('data', (chunk: Buffer) => channel.feed(chunk));
}

function openStream(fd: number): Readable {
  if (tty.isatty(fd)) return new tty.ReadStream(fd);
  return isBun() ? bunStream(fd, { reads: true, writes: false }) : createReadStream('', { fd, highWaterMark: CHUNK });
}

function openWriter(fd: number, gone: () => void): Writable {
  let stream: Writable;
  try {
    if (tty.isatty(fd)) stream = new tty.WriteStream(fd);
    else if (isBun()) stream = bunStream(fd, { reads: false, writes: true });
    else stream = new Socket({ fd, readable: false, writable: true });
  } catch {
    stream = createWriteStream('', { fd });
  }
  return stream.on('error', gone);
}
