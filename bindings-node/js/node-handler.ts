/** The endpoint for `node:http` and whatever is built on it: Express, Fastify, Connect. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Turned } from './binding.js';
import { type Endpoint, type Incoming, Outgoing } from './endpoint.js';
import { failed } from './log.js';

/**
 * Serves one request of `node:http`. `body` is the body if a framework has read it already: as bytes, as text, or parsed. It is
 * not needed where the framework sets `request.body`, as Express does. A function in its place, such as `next` of Express, is
 * ignored.
 */
export type NodeHandler = ((request: IncomingMessage, response: ServerResponse, body?: unknown) => void) & {
  /** Stops this handler, like `ResourceServer.close`. Other handlers of the server continue. */
  readonly close: () => void;
};

/** What to do about a body that was read before. */
const READ =
  'pass what the framework has made of it as the third argument of nodeHandler: handle(request, response, body), or let nothing read it for this path';

/** A request, whose body a framework may have read. */
type NodeRequest = IncomingMessage & { readonly body?: unknown; readonly baseUrl?: unknown };

/** The handler of an endpoint; `close` ends it. */
export function nodeHandler(endpoint: Endpoint, close: () => void): NodeHandler {
  const handle = (request: IncomingMessage, response: ServerResponse, body?: unknown): void => {
    serve(endpoint, request, response, body).catch((error) => {
      if (!request.destroyed) failed(endpoint.logger, 'nodeHandler', request.url ?? '', error);
      response.destroy();
    });
  };
  return Object.assign(handle, { close });
}

async function serve(
  endpoint: Endpoint,
  request: NodeRequest,
  response: ServerResponse,
  given: unknown,
): Promise<void> {
  const taken = await endpoint.take(incoming(request, given));
  if (!(taken instanceof Outgoing)) {
    // Bytes that are not read would block the next request.
    if (!request.complete && request.httpVersionMajor < 2) response.setHeader('connection', 'close');
    response.writeHead(taken.head.status, taken.head.headers.flat());
    response.end(taken.body);
    return;
  }
  const leave = (): void => taken.closed();
  let isEnded = false;
  response.once('close', leave);
  if (response.destroyed) leave();
  try {
    for (let turn = await taken.next(); turn !== undefined; turn = await taken.next()) {
      await write(response, turn);
      isEnded = turn.end;
      if (isEnded) return;
    }
  } finally {
    taken.closed();
    response.removeListener('close', leave);
    if (!isEnded) end(response);
  }
}

/** Ends a response that has no more to say: the server was closed. */
function end(response: ServerResponse): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(503, { connection: 'close', 'content-length': 0 }).end();
}

/** Writes a turn, and waits while the client takes no more. */
async function write(response: ServerResponse, { head, body, end }: Turned): Promise<void> {
  if (head) response.writeHead(head.status, head.headers.flat());
  if (end) {
    response.end(body);
    return;
  }
  if (head && body.length === 0) response.flushHeaders();
  else if (!response.write(body)) await drained(response);
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.removeListener('drain', done).removeListener('close', done);
      resolve();
    };
    response.once('drain', done).once('close', done);
    if (response.destroyed) done();
  });
}

function incoming(request: NodeRequest, given: unknown): Incoming {
  const body = parsed(request, given);
  return {
    verb: request.method ?? '',
    target: request.url ?? '',
    headers: body === undefined ? lines(request.rawHeaders) : decoded(lines(request.rawHeaders)),
    mount: typeof request.baseUrl === 'string' ? request.baseUrl : '',
    client: request.socket.remoteAddress,
    body,
    consumed: body === undefined && request.readableEnded ? { fix: READ } : undefined,
    chunks: () => request.iterator({ destroyOnReturn: false }),
    isComplete: () => request.complete,
  };
}

/** The header lines. HTTP/2 has the host in a pseudo-header. */
function lines(raw: readonly string[]): string[] {
  if (!raw[0]?.startsWith(':')) return raw as string[];
  const found: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] as string;
    if (name === ':authority') found.push('host', raw[at + 1] as string);
    else if (!name.startsWith(':')) found.push(name, raw[at + 1] as string);
  }
  return found;
}

/** The header lines of a request whose body a framework has read, and decompressed. */
function decoded(lines: readonly string[]): string[] {
  return lines.filter((_, at) => lines[at - (at % 2)]?.toLowerCase() !== 'content-encoding');
}

/** A body that a framework has read already: the one that was passed on, else that of `request.body`. */
function parsed(request: NodeRequest, given: unknown): Uint8Array | undefined {
  const body = given === undefined || typeof given === 'function' ? request.body : given;
  // Parsers leave an empty object where they have read nothing.
  if (body === undefined || (!request.readableEnded && (body === request.body || isEmpty(body)))) return undefined;
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function isEmpty(body: unknown): boolean {
  return body === null || body === '' || (typeof body === 'object' && Object.keys(body).length === 0);
}
