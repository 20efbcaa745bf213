/**
 * Runs a server of the SDK by the SDK's own means, from the caller's own copy of it: its two builds, for `import` and for
 * `require`, do not know each other's objects.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { pathToFileURL } from 'node:url';
import type { Attachment } from './attach.js';
import type { ListenOptions } from './options.js';
import type { SdkFactory, SdkHandler, SdkServer } from './sdk-types.js';
import { FIRST, program, SECOND, unsupported } from './sdk-version.js';
import { type Ending, exitAfter, onSignals } from './signals.js';

const NODE = '@modelcontextprotocol/node';
/** Most sessions of a handler for the first generation: the one that was used least recently ends. */
const SESSIONS = 10_000;
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
const BOUND = ['host', 'port', 'path', 'onListening'];

/** A request handler for `node:http`. */
export type SdkNodeHandler = (request: IncomingMessage, response: ServerResponse, body?: unknown) => void;

// biome-ignore lint/suspicious/noExplicitAny: a module of the SDK, which is not a dependency
type Module = Record<string, any>;
/** `wrap` of the `ResourceServer`. */
type Wrap = (handler: SdkHandler) => SdkHandler;

/** Serves standard input and output until the client closes its end, a signal, or `ending`. */
export async function serveStdio(
  attached: Attachment,
  ending: Ending,
  { signals, grace }: { readonly signals: boolean; readonly grace: number },
): Promise<void> {
  const { app, factory } = attached;
  const server = factory === undefined ? (app as SdkServer) : await factory({ era: 'legacy' } as never);
  const isSecond = isSecondGeneration(server);
  const { StdioServerTransport, serveStdio } = await load(
    isSecond ? `${SECOND}/stdio` : [FIRST, 'server', 'stdio.js'].join('/'),
  );
  let stop = (): void => {};
  const stopping = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const transport = new StdioServerTransport();
  transport.onclose = stop;
  process.stdin.once('end', stop);
  let isInterrupted = false;
  const interrupt = (): void => {
    isInterrupted = true;
    stop();
  };
  const release = signals ? onSignals(interrupt) : undefined;
  const leave = ending(stop);
  const onerror = (error: unknown): void => attached.driver.logger.error('mcp-resources: the SDK:', error);
  let handle: { close(): Promise<void> } = server;
  if (isSecond) {
    // The one that was made to find its generation was asked for in one era only.
    if (factory !== undefined) await server.close();
    handle = serveStdio(factory ?? (() => server), { transport, onerror });
    const { onclose } = transport;
    transport.onclose = () => {
      onclose?.();
      stop();
    };
  } else {
    await server.connect(transport as never);
  }
  try {
    await stopping;
  } finally {
    process.stdin.removeListener('end', stop);
    release?.();
    leave();
    // After the end of input the first generation still answers what is in flight.
    if (isSecond || isInterrupted || !process.stdin.readableEnded) await handle.close();
    else setTimeout(() => void handle.close(), grace).unref();
    if (isInterrupted) exitAfter(0);
  }
}

/** Serves HTTP until a signal or `ending`. */
export async function serveHttp(
  wrap: Wrap,
  attached: Attachment,
  options: ListenOptions,
  ending: Ending,
): Promise<void> {
  const other = Object.keys(options).find((name) => !BOUND.includes(name));
  if (other !== undefined) {
    throw new TypeError(
      `${other} belongs to a server without attach: the SDK serves this one; use nodeHandler() behind your own middleware`,
    );
  }
  const { host = '127.0.0.1', port = 8000, path: at = '/mcp', onListening } = options;
  const handle = nodeHandler(wrap, attached, 'run({ http })');
  const allowed = [...LOOPBACK, host.includes(':') ? `[${host}]` : host];
  const server = createServer((request, response) => {
    const { host: named, origin } = request.headers;
    const isAllowed = [`http://${named}`, origin ?? `http://${named}`].every((url) => allowed.includes(hostname(url)));
    const isThere = new URL(request.url ?? '/', 'http://localhost').pathname === at;
    if (isAllowed && isThere) handle(request, response);
    else response.writeHead(isAllowed ? 404 : 403).end();
  });
  await listening(server, host, port);
  let stop = (): void => {};
  const stopping = new Promise<void>((resolve) => {
    stop = resolve;
  });
  let isInterrupted = false;
  const release = onSignals(() => {
    isInterrupted = true;
    stop();
  });
  const leave = ending(stop);
  const address = server.address();
  const bound = typeof address === 'object' ? address?.port : port;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${bound}${at}`;
  if (onListening === undefined) console.error(`serving ${url} (end with Ctrl-C)`);
  else onListening(url);
  try {
    await stopping;
  } finally {
    release();
    leave();
    server.close();
    server.closeAllConnections();
    if (isInterrupted) exitAfter(0);
  }
}

/** A request handler for `node:http`, made of the SDK's own. `what` names the call for errors. */
export function nodeHandler(wrap: Wrap, attached: Attachment, what: string): SdkNodeHandler {
  const factory = factoryOf(attached, what);
  let made: Promise<SdkNodeHandler> | undefined;
  const make = async (): Promise<SdkNodeHandler> => {
    const probe = await factory({ era: 'legacy' } as never);
    await probe.close();
    if (!isSecondGeneration(probe)) return sessions(factory);
    const { toNodeHandler } = await load(NODE);
    return toNodeHandler(await handlerOf(wrap, factory));
  };
  return (request, response, body) => {
    made ??= make();
    const serve = async (): Promise<void> =>
      (await made)?.(request, response, typeof body === 'function' ? undefined : body);
    serve().catch((error) => {
      attached.driver.logger.error('mcp-resources: the SDK:', error);
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end();
    });
  };
}

/** A request handler for the Fetch API: the `createMcpHandler` of the SDK. */
export function fetchHandler(wrap: Wrap, attached: Attachment): (request: Request) => Promise<Response> {
  const factory = factoryOf(attached, 'fetchHandler()');
  let made: Promise<SdkHandler> | undefined;
  return async (request) => {
    made ??= handlerOf(wrap, factory);
    return (await made).fetch(request);
  };
}

async function handlerOf(wrap: Wrap, factory: SdkFactory): Promise<SdkHandler> {
  const probe = await factory({ era: 'legacy' } as never);
  if (!isSecondGeneration(probe)) {
    throw new Error(`fetchHandler() needs servers of ${SECOND}, and attach got those of ${FIRST}; use nodeHandler()`);
  }
  await probe.close();
  const { createMcpHandler } = await load(SECOND);
  if (createMcpHandler === undefined) throw unsupported('createMcpHandler()');
  return wrap(createMcpHandler(factory));
}

/** The first generation has transports alone: one for each session. */
async function sessions(factory: SdkFactory): Promise<SdkNodeHandler> {
  const { StreamableHTTPServerTransport } = await load([FIRST, 'server', 'streamableHttp.js'].join('/'));
  const open = new Map<string, Module>();
  return async (request, response, body) => {
    const id = request.headers['mcp-session-id'];
    const known = typeof id === 'string' ? open.get(id) : undefined;
    if (id !== undefined && known === undefined) {
      response.writeHead(404).end();
      return;
    }
    if (typeof id === 'string' && known !== undefined) {
      open.delete(id);
      open.set(id, known);
      await known.handleRequest(request, response, body);
      return;
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session: string) => {
        open.set(session, transport);
        const [oldest] = open.values();
        if (open.size > SESSIONS) void oldest?.close();
      },
    });
    transport.onclose = () => open.delete(transport.sessionId);
    await (await factory({} as never)).connect(transport as never);
    await transport.handleRequest(request, response, body);
    if (transport.sessionId === undefined) await transport.close();
  };
}

function factoryOf({ app, factory }: Attachment, what: string): SdkFactory {
  if (factory !== undefined) return factory;
  const name = app.constructor.name;
  throw new Error(
    `${what} needs a server for each client, and attach got one ${name}; attach a function that makes it: attach(() => new ${name}(…))`,
  );
}

function isSecondGeneration(server: SdkServer): boolean {
  const low = (server as { server?: object }).server ?? server;
  return 'getNegotiatedProtocolVersion' in low;
}

/** A module of the caller's copy of the SDK: of the build that the program has loaded. */
async function load(name: string): Promise<Module> {
  const from = program();
  let required: string;
  try {
    required = from.resolve(name);
  } catch {
    const scoped = name.split('/').slice(0, 2).join('/');
    throw new Error(`${name} is not installed beside ${process.argv[1] ?? process.cwd()}: npm install ${scoped}`);
  }
  if (from.cache[required] !== undefined) return from(name);
  const imported = required.replace(/\.cjs$/, '.mjs').replace('/dist/cjs/', '/dist/esm/');
  return import(pathToFileURL(existsSync(imported) ? imported : required).href);
}

function hostname(url: string): string {
  try {
    return new URL(url).hostname;
  } catch {
    return '';
  }
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve());
  });
}
