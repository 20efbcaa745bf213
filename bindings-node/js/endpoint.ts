/**
 * An HTTP endpoint whose bytes somebody else reads and writes. The core decides every status, header and byte; here they
 * are moved, and the token is verified.
 */
import { type Auth, verdict } from './auth.js';
import {
  type Answers,
  binding,
  type Exchange,
  type Endpoint as Native,
  type Quick,
  type Refusal,
  type ResponseHead,
  type Server,
  type Turned,
} from './binding.js';
import { type Peers, WebDriver } from './driver.js';
import { translated } from './errors.js';
import { type HttpOptions, httpFields } from './options.js';

/** How much is taken at a time for a client that reads. */
const ROOM = 256 * 1024;

/** A request, as its server knows it. */
export interface Incoming {
  readonly verb: string;
  readonly target: string;
  /** Names and values in turn; each byte of a value is a character. */
  readonly headers: string[];
  /** The body; `undefined` if it is longer than `limit` bytes. */
  body(limit: number): Promise<Uint8Array | undefined>;
}

/** The event loop behind an endpoint. */
export class Endpoint extends WebDriver {
  readonly answers: Answers;
  readonly quick: Quick;
  readonly #native: Native;
  readonly #auth: Auth | undefined;
  readonly #bells = new Map<number, () => void>();
  #responses = 0;
  #started: Promise<void> | undefined;

  /** @throws {RegistrationError} an option has a value that is not allowed. */
  constructor(server: Server, peers: Peers, options: HttpOptions) {
    const fields = httpFields(options);
    super(peers);
    this.#auth = options.auth;
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
    this.#started.catch(() => {}); // the requests that wait are told
  }

  /** Ends every session: what is in flight is cancelled. */
  close(): void {
    this.#native.close();
  }

  /** Takes a request: the response that is being made, or one that is complete. */
  async take(request: Incoming): Promise<Outgoing | Refusal> {
    if (this.#started !== undefined) await this.#started;
    const admitted = this.#native.admit(request.verb, request.target, request.headers);
    if ('body' in admitted) return admitted;
    const { token } = admitted;
    const found =
      token === null || this.#auth === undefined ? undefined : await verdict(this.#auth, token, this.logger);
    const identified = typeof found === 'object' ? admitted.identify(found) : admitted.identify(null, found);
    if ('body' in identified) return identified;
    const body = await request.body(identified.bodyLimit);
    if (body === undefined) return identified.tooLarge();
    const [exchange, turn] = this.#native.open(identified, body);
    this.#responses += 1;
    return new Outgoing(exchange, turn, this.#responses, this.#bells);
  }

  protected override work(): void {
    this.#native.work();
  }

  protected override ring(): void {
    this.#native.timer();
  }

  protected override rung(response: number): void {
    this.#bells.get(response)?.();
  }
}

/** A response that is being made: turns to write, until one has `end`. */
export class Outgoing {
  readonly #exchange: Exchange;
  readonly #number: number;
  readonly #bells: Map<number, () => void>;
  #first: Turned | undefined;
  #isOver = false;

  /** Made by {@link Endpoint.take} alone. */
  constructor(exchange: Exchange, first: Turned, number: number, bells: Map<number, () => void>) {
    this.#exchange = exchange;
    this.#first = first;
    this.#number = number;
    this.#bells = bells;
  }

  /** What is to be written next; `undefined` once the client has left. */
  async next(): Promise<Turned | undefined> {
    const first = this.#first;
    this.#first = undefined;
    if (first !== undefined && isSomething(first)) return this.#noted(first);
    while (!this.#isOver) {
      this.#exchange.register(this.#number);
      const turn = this.#exchange.deliver(ROOM);
      if (isSomething(turn)) return this.#noted(turn);
      await this.#rung(this.#exchange.deadline);
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
    this.#exchange.closed();
    this.#bells.get(this.#number)?.();
  }

  #noted(turn: Turned): Turned {
    if (turn.end) this.#isOver = true;
    return turn;
  }

  async #rung(deadline: number | null): Promise<void> {
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
