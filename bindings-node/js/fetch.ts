/** The endpoint as a function from a `Request` to a `Response`: Hono, Bun, Deno, workers. */
import type { Turned } from './binding.js';
import { type Endpoint, type Incoming, Outgoing } from './endpoint.js';

/** What to do about a body that was read before. */
const READ = 'call the handler before anything reads the body, or with a copy of the request: handle(request.clone())';

/** Serves one request of the Fetch API. */
export type FetchHandler = ((request: Request) => Promise<Response>) & {
  /** Stops this handler, like `ResourceServer.close`. Other handlers of the server continue. */
  readonly close: () => void;
};

/** The handler of an endpoint; `close` ends it. */
export function fetchHandler(endpoint: Endpoint, close: () => void): FetchHandler {
  const handle = async (request: Request): Promise<Response> => {
    const taken = await endpoint.take(incoming(request));
    if (!(taken instanceof Outgoing)) return whole(taken.head, taken.body);
    const leave = (): void => taken.closed();
    request.signal.addEventListener('abort', leave);
    if (request.signal.aborted) leave();
    const turn = await taken.head();
    if (turn === undefined && request.signal.aborted) throw request.signal.reason;
    if (turn === undefined) return new Response(null, { status: 503 });
    if (!turn.end) return new Response(stream(taken, turn.body), init(turn.head));
    request.signal.removeEventListener('abort', leave);
    return whole(turn.head, turn.body);
  };
  return Object.assign(handle, { close });
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
        if (turn === undefined) controller.error(new Error('the server was closed'));
        else if (turn.end) controller.close();
      },
      cancel: () => outgoing.closed(),
    },
    { highWaterMark: 0 },
  );
}

function incoming(request: Request): Incoming {
  const headers = [...request.headers].flat();
  if (!request.headers.has('host')) headers.push('host', new URL(request.url).host);
  const consumed = request.bodyUsed ? { fix: READ } : undefined;
  return { verb: request.method, target: request.url, headers, consumed, chunks: () => chunks(request.body) };
}

/** The chunks of a body. Leaving the loop cancels it. */
async function* chunks(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  if (body !== null) yield* body as unknown as AsyncIterable<Uint8Array>;
}
