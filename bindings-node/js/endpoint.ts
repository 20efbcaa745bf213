/**
 * An HTTP endpoint for requests that another server reads and writes. The core decides on every status, header and byte;
 * this module passes them on, and verifies the token.
 */
import { type Auth, fileVerifier, verdict } from './auth.js';
import {
  type Answers,
  binding,
  type Exchange,
  type Identified,
  type Endpoint as Native,
  type Quick,
  type Receiving,
  type Refusal,
  type ResponseHead,
  type Server,
  type Turned,
} from './binding.js';
import { type Peers, ScopedDriver } from './driver.js';
import { translated } from './errors.js';
import { refused } from './log.js';
import { httpFields } from './option-fields.js';
import type { HttpOptions } from './options.js';
import type { RequestScopes } from './request-scopes.js';

/** The most bytes that are taken from a response at a time. */
const ROOM = 256 * 1024;
const NOTHING = new Uint8Array();
const MINUTE = 60_000;
/** The response to requests after the end. */
const CLOSED = {
  head: { status: 503, headers: [['content-length', '0']] },
  body: NOTHING as Buffer,
} as const satisfies Refusal;

/** A request, as its server knows it. */
export interface Incoming {
  readonly verb: string;
  readonly target: string;
  /** Names and values in turn; each byte of a value is a character. */
  readonly headers: string[];
  /** The path that the endpoint is mounted below. */
  readonly mount?: string;
  /** The address of the client, where it is known. */
  readonly client?: string | undefined;
  /** The body, if it was read already. */
  readonly body?: Uint8Array | undefined;
  /** Whether other code has read the body, and has not passed it on; `fix` says in the log what to do. */
  readonly consumed?: { readonly fix: string } | undefined;
  /** The body in chunks, as they arrive. */
  chunks(): AsyncIterator<Uint8Array>;
  /** Whether all of it is here, where that is known. */
  isComplete?(): boolean;
}

/** The event loop behind an endpoint. */
export class Endpoint extends ScopedDriver {
  readonly answers: Answers;
  readonly quick: Quick;
  readonly #native: Native;
  readonly #verify: Auth['verify'] | undefined;
  readonly #open = new Set<Outgoing>();
  #responses = 0;
  #warned = Number.NEGATIVE_INFINITY;
  #started: Promise<void> | undefined;
  #isClosed = false;

  /** @throws {RegistrationError} an option has a value that is not allowed. */
  constructor(server: Server, peers: Peers, options: HttpOptions) {
    const fields = httpFields(options);
    super(peers);
    this.#verify = options.auth?.verify ?? fileVerifier(server);
    this.#native = translated(() =>
      this.connect((number, drive) => new binding.Endpoint(server, number, drive, fields), { held: false }),
    );
    this.answers = this.#native.answers;
    this.quick = this.answers.quick();
  }

  /** Has the first requests wait until the server has started. */
  startsWith(started: Promise<void>): void {
    this.#started = started.then(() => {
      this.#started = undefined;
    });
    this.#started.catch(() => {}); // reported to the requests that wait for it
  }

  /**
   * Ends every listen with its result, and every session and response: what is in flight is cancelled, what comes later is
   * refused. Other endpoints of the server go on.
   */
  close(): void {
    this.#isClosed = true;
    this.#native.shutdown();
    this.#native.close();
    for (const outgoing of [...this.#open]) outgoing.finish();
  }

  /** Takes a request: the response that is being made, or one that is complete. */
  async take(request: Incoming): Promise<Outgoing | Refusal> {
    if (this.#started !== undefined) await this.#started;
    if (this.#isClosed) return CLOSED;
    const { verb, target, headers, mount = '', client } = request;
    const admitted = this.#native.admit(verb, target, headers, mount, client);
    if ('body' in admitted) return admitted;
    const { token } = admitted;
    const found =
      token === null || this.#verify === undefined ? undefined : await verdict(this.#verify, token, this.logger);
    const identified = typeof found === 'object' ? admitted.identify(found) : admitted.identify(null, found);
    if ('body' in identified) return identified;
    if (identified.bodyLimit > 0 && request.body === undefined && request.consumed !== undefined) {
      this.#warnConsumed(request.consumed.fix);
      return identified.alreadyRead();
    }
    const body = await received(request, identified);
    if ('head' in body) return body;
    if (this.#isClosed) return CLOSED; // while the token was verified, or the body came
    this.#responses += 1;
    const number = this.#responses;
    const [exchange, turn] = this.scopes.arrives(number, () => this.#native.open(identified, body, number));
    const shared = { bells: this.bells, open: this.#open, scopes: this.scopes };
    const outgoing = new Outgoing(exchange, turn, number, shared);
    if (turn.end) {
      this.scopes.ended(number);
    } else {
      this.scopes.keep(number);
      this.#open.add(outgoing);
    }
    return outgoing;
  }

  /** Once a minute at most. */
  #warnConsumed(fix: string): void {
    const now = performance.now();
    if (now - this.#warned < MINUTE) return;
    this.#warned = now;
    refused(this.logger, `refused a request whose body other code had read: ${fix}`);
  }

  protected override work(): void {
    this.#native.work();
  }

  protected override onTimer(): void {
    this.#native.timer();
  }
}

/** The body of a request, or the response if it is too large or too late. */
async function received(request: Incoming, identified: Identified): Promise<Uint8Array | Refusal> {
  if (identified.bodyLimit === 0) return NOTHING;
  if (request.body !== undefined) {
    return request.body.length > identified.bodyLimit ? identified.tooLarge() : request.body;
  }
  const source = request.chunks();
  const chunks: Uint8Array[] = [];
  const late = new Late(identified.bodyTimeout);
  let receiving: Receiving | undefined;
  try {
    for (;;) {
      const next = await Promise.race([source.next(), late.come]);
      if (next === undefined) return identified.tooLate();
      if (next.done) return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks);
      // One that came at once is not counted with those that wait for their rest.
      const isWhole = chunks.length === 0 && next.value.length <= identified.bodyLimit && request.isComplete?.();
      if (!isWhole) receiving ??= identified.receiving();
      const refused = receiving?.take(next.value.length) ?? null;
      if (refused !== null) return refused;
      chunks.push(next.value);
    }
  } finally {
    late.cancel();
    receiving?.close();
    Promise.resolve(source.return?.()).catch(() => {});
  }
}

/** A promise that is resolved after so many milliseconds. */
class Late {
  readonly come: Promise<undefined>;
  #timer: NodeJS.Timeout | undefined;

  constructor(milliseconds: number) {
    this.come = new Promise((resolve) => {
      this.#timer = setTimeout(resolve, milliseconds, undefined);
    });
  }

  cancel(): void {
    clearTimeout(this.#timer);
  }
}

/** What the responses of one endpoint share, by their numbers. */
interface Responses {
  readonly bells: Map<number, () => void>;
  readonly open: Set<Outgoing>;
  readonly scopes: RequestScopes;
}

/** A response that is being made: turns to write, until one has `end`. */
export class Outgoing {
  readonly #exchange: Exchange;
  readonly #number: number;
  readonly #bells: Map<number, () => void>;
  readonly #open: Set<Outgoing>;
  readonly #scopes: RequestScopes;
  #first: Turned | undefined;
  #isOver = false;
  #isLast = false;

  /** Made by {@link Endpoint.take} alone. */
  constructor(exchange: Exchange, first: Turned, number: number, { bells, open, scopes }: Responses) {
    this.#exchange = exchange;
    this.#first = first;
    this.#number = number;
    this.#bells = bells;
    this.#open = open;
    this.#scopes = scopes;
  }

  /** The server is closed: what is there to be written is the last. */
  finish(): void {
    this.#isLast = true;
    this.#bells.get(this.#number)?.();
  }

  /** What is to be written next; `undefined` once the client has left, or the server was closed. */
  async next(): Promise<Turned | undefined> {
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined && isSomething(first)) return this.#noted(first);
    while (!this.#isOver) {
      this.#exchange.register(this.#number);
      // Asked first: once another thread has answered there is none, and no timer would keep the loop alive for the answer.
      const { deadline } = this.#exchange;
      const turn = this.#exchange.deliver(ROOM);
      if (isSomething(turn)) return this.#noted(turn);
      if (this.#isLast) {
        this.closed();
        return undefined;
      }
      await this.#woken(deadline);
    }
    return undefined;
  }

  /** What is to be written next, with the head. */
  async head(): Promise<(Turned & { head: ResponseHead }) | undefined> {
    const turn = await this.next();
    return turn as (Turned & { head: ResponseHead }) | undefined; // the head comes first
  }

  /** The client is gone. */
  closed(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#open.delete(this);
    this.#scopes.left(this.#number);
    this.#exchange.closed();
    this.#bells.get(this.#number)?.();
  }

  #noted(turn: Turned): Turned {
    if (turn.end) {
      this.#isOver = true;
      this.#open.delete(this);
      this.#scopes.ended(this.#number);
    }
    return turn;
  }

  async #woken(deadline: number | null): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#bells.set(this.#number, resolve);
      if (deadline !== null) timer = setTimeout(resolve, deadline);
    });
    clearTimeout(timer);
    this.#bells.delete(this.#number);
  }
}

function isSomething({ head, body, end }: Turned): boolean {
  return end || body.length > 0 || (head ?? null) !== null;
}
