/** Listens over HTTP: `createMcpHandler` of the SDK accepts them and answers them before it asks a server. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Server } from './binding.js';
import { shown } from './check.js';
import { EmbeddedConnection, type EmbeddedDriver } from './embedded-connection.js';
import type { AuthInfo, LowServer, Message, SdkHandler, Transport } from './sdk-types.js';

/** Comments are sent at this interval in milliseconds, as the SDK does, so that proxies keep the stream open. */
const KEEP_ALIVE = 15_000;

/** Where the server that was made for a request over HTTP is kept while the SDK serves it. */
export interface HttpOwner {
  readonly driver: EmbeddedDriver;
  exchange: AsyncLocalStorage<HttpExchange> | undefined;
}

/** What is known of a request over HTTP: the server that was made for it, unless that got the request. */
export interface HttpExchange {
  server?: LowServer | undefined;
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
export function wrapped<H extends SdkHandler>(owner: HttpOwner, native: Server, handler: H): H {
  const { bus } = handler as { bus?: { subscribe?(listener: (event: BusEvent) => void): unknown } };
  if (typeof handler?.fetch !== 'function' || typeof bus?.subscribe !== 'function') {
    throw new TypeError(`wrap takes what createMcpHandler returns, not ${shown(handler)}`);
  }
  bus.subscribe(({ kind, uri }) => {
    if (uri !== undefined) native.notifyUpdated(uri);
    else native.notifyListChanged(kind.split('_')[0] ?? kind);
  });
  owner.exchange ??= new AsyncLocalStorage();
  const { exchange: storage } = owner;
  const open = new Set<Transport>();
  const fetch = async (request: Request, options?: Options): Promise<Response> => {
    const copy = options?.parsedBody === undefined && request.body !== null ? request.clone() : undefined;
    const exchange: HttpExchange = {};
    const response = await storage.run(exchange, () => handler.fetch(request, options as never));
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
    if (exchange.server === undefined || !response.ok || !isStream) {
      copy?.body?.cancel().catch(() => {});
      return response;
    }
    const message = (options?.parsedBody ?? (await copy?.json())) as Message;
    const { transport, body } = listenStream(open);
    const connection = new EmbeddedConnection(owner.driver, exchange.server, transport, true);
    connection.listen();
    if (!connection.take(message, { request, ...(options?.authInfo && { authInfo: options.authInfo }) })) {
      await transport.close();
      return response;
    }
    response.body?.cancel().catch(() => {});
    request.signal.addEventListener('abort', () => void transport.close(), { once: true });
    return new Response(body, { status: response.status, headers: response.headers });
  };
  const close = async (): Promise<void> => {
    await Promise.all([...open].map((transport) => transport.close()));
    await handler.close();
  };
  return { ...handler, fetch, close };
}

/** The transport of one listen: an event stream, which ends with the answer, or when the client leaves. */
function listenStream(open: Set<Transport>): { readonly transport: Transport; readonly body: ReadableStream } {
  const { readable, writable } = new TextEncoderStream();
  const writer = writable.getWriter();
  const transport: Transport = {
    start: async () => {},
    close: () => writer.close().catch(() => {}),
    send: async (message) => {
      await writer.ready.catch(() => {});
      writer.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`).catch(() => {});
      if (message.method === undefined) void transport.close();
    },
  };
  const remind = (): void => {
    if ((writer.desiredSize ?? 0) > 0) writer.write(': keepalive\n\n').catch(() => {});
  };
  const timer = setInterval(remind, KEEP_ALIVE).unref();
  const ended = (): void => {
    clearInterval(timer);
    open.delete(transport);
    transport.onclose?.();
  };
  open.add(transport);
  writer.closed.then(ended, ended);
  return { transport, body: readable };
}
