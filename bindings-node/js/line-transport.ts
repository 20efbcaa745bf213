/** The transport of a server of the SDK behind our pipe: lines that are not ours, and what it answers. */
import type { Message, Receive, Transport } from './sdk-types.js';

/** The pipe before a server of the SDK. */
export interface LinePipe {
  /** Sends a line to the client. Resolved when there is room for the next one. */
  send(line: string): Promise<void>;
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

  async start(): Promise<void> {}

  async send(message: Message): Promise<void> {
    await this.pipe?.send(JSON.stringify(message));
  }

  async close(): Promise<void> {
    this.pipe?.stop();
    this.pipe = undefined;
    this.onclose?.();
  }

  /** Takes a line of the client. */
  receive(line: string): void {
    try {
      this.onmessage?.(JSON.parse(line));
    } catch (error) {
      this.onerror?.(error as Error);
    }
  }
}
