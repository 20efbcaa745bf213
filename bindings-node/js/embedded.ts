/** The event loop of the clients of a server of the SDK, as the compiled part uses it. */
import type { AsyncResource } from 'node:async_hooks';
import { type Answers, binding, type Embedding, type Quick, type Server } from './binding.js';
import { type Peers, WebDriver } from './driver.js';
import { translated } from './errors.js';
import { RequestScopes } from './request-scopes.js';

/** All clients of a server of the SDK. */
export class EmbeddedDriver extends WebDriver {
  readonly native: Embedding;
  readonly answers: Answers;
  readonly quick: Quick;
  /** The asynchronous contexts of calls, by their numbers. */
  readonly scopes = new RequestScopes();
  readonly #bells = new Map<number, () => void>();
  #last = 0;

  /** @throws {RegistrationError} the server is part of another one already. */
  constructor(server: Server, peers: Peers, adopt: boolean) {
    super(peers);
    const make = () =>
      this.connect((number, drive) => new binding.Embedding(server, number, drive, adopt), { held: false });
    this.native = translated(make);
    this.answers = this.native.answers;
    this.quick = this.answers.quick();
  }

  /** A number for a call or a session. */
  open(): number {
    this.#last += 1;
    return this.#last;
  }

  /** Has a function called whenever there is something to deliver. */
  onBell(number: number, bell: () => void): void {
    this.#bells.set(number, bell);
  }

  /** Waits for the next step of a call. `register` asks for it. */
  async bell(number: number, register: () => void): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#bells.set(number, resolve);
      register();
    });
    this.#bells.delete(number);
  }

  /** Ends the wait of a call. */
  ring(number: number): void {
    this.#bells.get(number)?.();
  }

  /** There is nothing more to deliver. */
  forget(number: number): void {
    this.#bells.delete(number);
  }

  override scope(request: number): AsyncResource {
    return this.scopes.of(this.answers.responseOf(request));
  }

  override scopeOf(response: number | null): AsyncResource {
    return this.scopes.of(response);
  }

  protected override work(): void {
    this.native.work();
  }

  protected override onTimer(): void {
    this.native.timer();
  }

  protected override onDeliver(number: number): void {
    this.ring(number);
  }
}
