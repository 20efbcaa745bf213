/** The endpoint for whoever has a `Request` and wants a `Response`: Hono, Bun, Deno, workers. */
import type { Turned } from './binding.js';
import { type Endpoint, type Incoming, Outgoing } from './endpoint.js';

/** Serves one request of the Fetch API. */
export type FetchHandler = (request: Request) => Promise<Response>;

/** The handler of an endpoint. */
export function fetchHandler(endpoint: Endpoint): FetchHandler {
  return async (request) => {
    const taken = await endpoint.take(incoming(request));
    if (!(taken instanceof Outgoing)) return whole(taken.head, taken.body);
    const leave = (): void => taken.closed();
    request.signal.addEventListener('abort', leave);
    if (request.signal.aborted) leave();
    const turn = await taken.head();
    if (turn === undefined) throw request.signal.reason;
    if (!turn.end) return new Response(stream(taken, turn.body), init(turn.head));
    request.signal.removeEventListener('abort', leave);
    return whole(turn.head, turn.body);
  };
}

function whole(head: NonNullable<Turned['head']>, body: Uint8Array): Response {
  return new Response(body.length > 0 ? (body as Uint8Array<ArrayBuffer>) : null, init(head));
}

function init({ status, headers }: NonNullable<Turned['head']>): ResponseInit {
  return { status, headers: headers as [string, string][] };
}

/** What follows the head: read from the endpoint when it is asked for. */
function stream(outgoing: Outgoing, first: Uint8Array): ReadableStream<Uint8Array> {
  let begin: Uint8Array | undefined = first.length > 0 ? first : undefined;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (begin !== undefined) {
          controller.enqueue(begin);
          begin = undefined;
          return;
        }
        const turn = await outgoing.next();
        if (turn !== undefined && turn.body.length > 0) controller.enqueue(turn.body);
        if (turn === undefined || turn.end) controller.close();
      },
      cancel: () => outgoing.closed(),
    },
    { highWaterMark: 0 },
  );
}

function incoming(request: Request): Incoming {
  const headers = [...request.headers].flat();
  if (!request.headers.has('host')) headers.push('host', new URL(request.url).host);
  return { verb: request.method, target: request.url, headers, body: (limit) => collect(request, limit) };
}

async function collect(request: Request, limit: number): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (request.body === null || limit === 0) return new Uint8Array();
  for await (const chunk of request.body as ReadableStream<Uint8Array>) {
    size += chunk.length;
    if (size > limit) return undefined;
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
}
