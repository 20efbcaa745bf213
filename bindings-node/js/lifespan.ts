/** `onStart` and `onStop`: once for the server, however many transports serve it at the same time. */
import type { Logger } from './log.js';
import { failed } from './log.js';

/** Runs `start` when the first transport begins, and `stop` when the last has ended. */
export class Lifespan {
  readonly #start: (() => unknown) | undefined;
  readonly #stop: (() => unknown) | undefined;
  readonly #given: (value: unknown) => void;
  #users = 0;
  /** The last start or stop; the next one waits for it. */
  #turn: Promise<unknown> = Promise.resolve();

  /** `given` gets what `start` returns, and `undefined` after the last transport has ended. */
  constructor(start: (() => unknown) | undefined, stop: (() => unknown) | undefined, given: (value: unknown) => void) {
    this.#start = start;
    this.#stop = stop;
    this.#given = given;
  }

  /** Whether there is anything to run. */
  get isEmpty(): boolean {
    return this.#start === undefined && this.#stop === undefined;
  }

  /** A transport begins: resolved when the server has started. Rejects with the error of `start`; then nothing began. */
  async enter(): Promise<void> {
    this.#users += 1;
    if (this.#users === 1)
      this.#turn = this.#turn
        .catch(() => {})
        .then(() => this.#start?.())
        .then(this.#given);
    try {
      await this.#turn;
    } catch (error) {
      this.#users -= 1;
      throw error;
    }
  }

  /** A transport has ended: resolved when the server has stopped, if it was the last. Rejects with the error of `stop`. */
  async leave(): Promise<void> {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#turn = this.#turn
      .catch(() => {})
      .then(() => this.#stop?.())
      .finally(() => this.#given(undefined));
    await this.#turn;
  }

  /** The same, without waiting; errors are logged. */
  left(logger: Logger): void {
    this.leave().catch((error) => failed(logger, 'onStop', 'the server ends', error));
  }
}
