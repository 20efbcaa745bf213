/**
 * HTTP on threads of the core, which read, write, and answer requests without handlers. Handlers run on the event loop.
 * This module handles the rest: tokens, the start and the end.
 */
import { type Auth, compiled, verdict } from './auth.js';
import {
  type Answers,
  binding,
  type HttpServer,
  type PlainValue,
  type Quick,
  type Server,
  type TlsFields,
} from './binding.js';
import { type Peers, WebDriver } from './driver.js';
import { translated } from './errors.js';
import { httpFields, tlsFields } from './option-fields.js';
import type { ListenOptions } from './options.js';
import { type Ending, exitAfter, onSignals } from './signals.js';

/** Serves until a signal or `ending`; then lets open requests finish. */
export async function serve(
  server: Server,
  peers: Peers,
  { host = '127.0.0.1', port = 8000, onListening = announce, tls, ...options }: ListenOptions,
  ending: Ending,
): Promise<void> {
  const files = tls && tlsFields(tls);
  const driver = translated(() => new Http(server, peers, [httpFields(options), files], options.auth));
  let isInterrupted = false;
  const release = onSignals(() => {
    isInterrupted = true;
    driver.stop();
  });
  const leave = ending(() => driver.stop());
  try {
    onListening(driver.listen(host, port));
    await driver.stopping;
  } finally {
    release();
    leave();
    await driver.close();
    if (isInterrupted) exitAfter(server.grace);
  }
}

/** Listens. Adds the address and a remedy to the message of an error. */
function listening(host: string, port: number, listen: () => number): number {
  try {
    return listen();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
    const fix = isTaken ? '; choose another port, or 0 for any that is free' : '';
    error.message = `cannot listen at ${host}:${port}: ${error.message}${fix}`;
    throw error;
  }
}

function announce(url: string): void {
  console.error(`serving ${url} (end with Ctrl-C)`);
}

/** The event loop behind the server's threads. */
class Http extends WebDriver {
  readonly answers: Answers;
  readonly quick: Quick;
  /** Resolved when no further request is wanted. */
  readonly stopping: Promise<void>;
  readonly #http: HttpServer;
  readonly #auth: Auth | undefined;
  readonly #end: Promise<void>;
  #stop = (): void => {};
  #ended = (): void => {};
  #listens = false;

  constructor(
    server: Server,
    peers: Peers,
    [fields, tls]: [PlainValue, TlsFields | undefined],
    auth: Auth | undefined,
  ) {
    super(peers);
    this.#auth = auth;
    this.stopping = new Promise((resolve) => {
      this.#stop = resolve;
    });
    this.#end = new Promise((resolve) => {
      this.#ended = resolve;
    });
    const bell = (): void => this.work();
    this.#http = this.connect((number, drive) => new binding.HttpServer(server, number, drive, fields, tls, bell));
    const verifier = compiled(auth);
    if (verifier !== null) this.#http.verifyWith(verifier);
    this.answers = this.#http.answers;
    this.quick = this.answers.quick();
  }

  /** Starts to listen. Returns the URL. */
  listen(host: string, port: number): string {
    const bound = translated(() => listening(host, port, () => this.#http.listen(host, port)));
    this.#listens = true;
    return `${this.#http.scheme}://${host.includes(':') ? `[${host}]` : host}:${bound}${this.#http.path}`;
  }

  /** No further request is wanted. */
  stop(): void {
    this.#stop();
  }

  /** Lets open requests finish within `Limits.grace`, and cancels the rest. */
  async close(): Promise<void> {
    if (this.#listens) {
      this.#http.shutdown();
      await this.#end;
    }
    this.#http.close();
    this.release();
  }

  protected override work(): void {
    this.#http.work();
  }

  protected override onTimer(): void {}

  protected override ended(): void {
    this.#ended();
  }

  protected override async verify(asked: number, token: string): Promise<void> {
    const found = this.#auth === undefined ? true : await verdict(this.#auth.verify, token, this.logger);
    if (typeof found === 'boolean') this.#http.refuse(asked, found);
    else this.#http.accept(asked, found);
  }
}
