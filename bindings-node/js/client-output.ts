/**
 * The output of servers while the loop reads it: libuv reads into one buffer, and the compiled part takes the bytes. Without it,
 * another thread would read each answer and wake the loop.
 */
import { closeSync } from 'node:fs';
import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';

const CHUNK = 65_536;

interface Reader {
  /** Takes bytes that are in the buffer. */
  readonly received: (loan: number, count: number) => void;
  /** Nothing more is read. */
  readonly returned: (loan: number) => void;
}

/** The loans of one client, by their numbers. */
export class LentOutputs {
  /** One for all: what is in it is taken before libuv reads again. */
  readonly buffer = Buffer.allocUnsafeSlow(CHUNK);
  readonly #reader: Reader;
  readonly #open = new Map<number, Socket>();

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** Reads a descriptor until its end, or until the loan is given back. That does not keep the process alive. */
  lend(loan: number, fd: number): void {
    let socket: Socket;
    try {
      socket = new Socket(this.#options(loan, fd));
    } catch {
      closeSync(fd);
      this.#reader.returned(loan);
      return;
    }
    const end = (): void => this.giveBack(loan);
    this.#open.set(loan, socket.unref().on('end', end).on('error', end).resume());
  }

  /** Reads no more, if it still does. */
  giveBack(loan: number): void {
    const socket = this.#open.get(loan);
    if (socket === undefined) return;
    this.#open.delete(loan);
    socket.destroy();
    this.#reader.returned(loan);
  }

  #options(loan: number, fd: number): SocketConstructorOpts & { onread: OnReadOpts } {
    const callback = (count: number): boolean => {
      this.#reader.received(loan, count);
      return true;
    };
    return { fd, readable: true, writable: false, allowHalfOpen: true, onread: { buffer: this.buffer, callback } };
  }
}
