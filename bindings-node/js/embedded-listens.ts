/** Listens over HTTP: `createMcpHandler` of the SDK accepts them and answers them before it asks a server. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Server } from './binding.js';
import { shown } from './check.js';
import { type ConnectionOwner, EmbeddedConnection } from './embedded-connection.js';
import type { AuthInfo, LowServer, Message, SdkHandler } from './sdk-types.js';

/** Comments are sent at this interval in milliseconds, as the SDK does, so that proxies keep the stream open. */
const KEEP_ALIVE = 15_000;

/** What is known of a request while the SDK serves it. */
export interface HttpExchange {
  /** The server that was made for it. */
  server?: LowServer;
  /** Whether that server got the request. */
  isConnected?: boolean;
}

/** Where the request over HTTP is kept while the SDK serves it. */
export interface HttpOwner {
  exchange: AsyncLocalStorage<HttpExchange> | undefined;
}

interface Options {
  readonly parsedBody?: unknown;
  readonly authInfo?: AuthInfo;
}
interface BusEvent {
  readonly kind: string;
  readonly uri?: string;
}

/** A handler that answers the listens which `handler` accepts. */
export function wrapped<H extends SdkHandler>(attached: ConnectionOwner & HttpOwner, native: Server, handler: H): H {
  const { bus } = handler as { bus?: { subscribe?(listener: (event: BusEvent) => void): unknown } };
  if (typeof handler?.fetch !== 'function' || typeof bus?.subscribe !== 'function') {
    throw new TypeError(`wrap takes what createMcpHandler returns, not ${shown(handler)}`);
  }
  bus.subscribe(({ kind, uri }) => {
    if (uri !== undefined) native.notifyUpdated(uri);
    else native.notifyListChanged(kind.split('_')[0] ?? kind);
  });
  attached.exchange ??= new AsyncLocalStorage();
  const { exchange: storage } = attached;
  const open = new Set<() => void>();
  const fetch = async (request: Request, options?: Options): Promise<Response> => {
    const copy = options?.parsedBody === undefined && request.body !== null ? request.clone() : undefined;
    const exchange: HttpExchange = {};
    const response = await storage.run(exchange, () => handler.fetch(request, options as never));
    const { server } = exchange;
    if (server === undefined || exchange.isConnected || !response.ok || !isStream(response)) {
      copy?.body?.cancel().catch(() => {});
      return response;
    }
    const message = (options?.parsedBody ?? (await copy?.json())) as Message;
    const stream = new ListenStream(open);
    const connection = new EmbeddedConnection(attached, server, stream, true);
    if (!connection.take(message, { request, ...(options?.authInfo && { authInfo: options.authInfo }) })) {
      stream.close();
      return response;
    }
    response.body?.cancel().catch(() => {});
    request.signal.addEventListener('abort', () => stream.close(), { once: true });
    return new Response(stream.body, { status: response.status, headers: response.headers });
  };
  const close = async (): Promise<void> => {
    for (const end of [...open]) end();
    await handler.close();
  };
  return { ...handler, fetch, close };
}

/** The transport of one listen: an event stream, which ends with the answer. */
class ListenStream {
  readonly body: ReadableStream<Uint8Array>;
  onclose: (() => void) | undefined;
  readonly #open: Set<() => void>;
  readonly #end = (): void => this.close();
  readonly #timer: NodeJS.Timeout;
  readonly #encoder = new TextEncoder();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #taken = (): void => {};

  constructor(open: Set<() => void>) {
    this.#open = open;
    open.add(this.#end);
    this.body = new ReadableStream({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => this.#taken(),
      cancel: () => {
        this.#controller = undefined;
        this.close();
      },
    });
    this.#timer = setInterval(() => this.#write(': keepalive\n\n'), KEEP_ALIVE).unref();
  }

  /** Sends a message, and waits while the client takes no more. */
  async send(message: Message): Promise<void> {
    this.#write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
    if (message.method === undefined) {
      this.close();
    } else if ((this.#controller?.desiredSize ?? 1) <= 0) {
      await new Promise<void>((resolve) => {
        this.#taken = resolve;
      });
    }
  }

  /** Ends the stream. */
  close(): void {
    clearInterval(this.#timer);
    if (!this.#open.delete(this.#end)) return;
    this.#controller?.close();
    this.#controller = undefined;
    this.#taken();
    this.onclose?.();
  }

  #write(text: string): void {
    this.#controller?.enqueue(this.#encoder.encode(text));
  }
}

function isStream(response: Response): boolean {
  return response.headers.get('content-type')?.startsWith('text/event-stream') ?? false;
}
