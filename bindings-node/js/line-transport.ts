/** The transport of a server of the SDK behind our pipe: lines that are not ours, and what it answers. */
import type { Message, Receive, Transport } from './sdk-types.js';

/** The pipe before a server of the SDK. */
export interface LinePipe {
  /** Sends lines to the client. Resolved when there is room for the next ones. */
  send(lines: string): Promise<void>;
  /** No further input is wanted. */
  stop(): void;
}

/** The transport of a server of the SDK behind our pipe. */
export class LineTransport implements Transport {
  onmessage?: Receive | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  /** Set once the server is connected: then lines are read. */
  pipe: LinePipe | undefined;
  /** Lines that are sent once settled promises have added theirs. */
  #lines = '';
  #sent = Promise.resolve();

  async start(): Promise<void> {}

  send(message: Message): Promise<void> {
    if (this.#lines === '') this.#sent = Promise.resolve().then(() => this.#flush());
    this.#lines += `${JSON.stringify(message)}\n`;
    return this.#sent;
  }

  async close(): Promise<void> {
    void this.#flush();
    this.pipe?.stop();
    this.pipe = undefined;
    this.onclose?.();
  }

  /** Takes lines of the client. */
  receive(lines: string): void {
    for (const line of lines.split('\n')) {
      try {
        if (line !== '') this.onmessage?.(JSON.parse(line));
      } catch (error) {
        this.onerror?.(error as Error);
      }
    }
  }

  async #flush(): Promise<void> {
    const lines = this.#lines;
    this.#lines = '';
    if (lines !== '') await this.pipe?.send(lines);
  }
}
