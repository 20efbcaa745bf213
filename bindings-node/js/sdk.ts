/**
 * Runs a server of the SDK by the SDK's own means, from the caller's own copy of it: its two builds, for `import` and for
 * `require`, do not know each other's objects.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Embedding } from './binding.js';
import type { Logger } from './log.js';
import type { ListenOptions } from './options.js';
import type { SdkFactory, SdkHandler, SdkServer, Transport } from './sdk-types.js';
import { type Ending, exitAfter, until } from './signals.js';

/** The packages of the SDK: the second generation, its handlers for Node, and the first generation. */
const SECOND = '@modelcontextprotocol/server';
const NODE = '@modelcontextprotocol/node';
const FIRST = '@modelcontextprotocol/sdk';
/** Most sessions of a handler for the first generation: the one that was used least recently ends. */
const SESSIONS = 10_000;
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
const BOUND = ['host', 'port', 'path', 'onListening'];

/** A request handler for `node:http`. */
export type SdkNodeHandler = (request: IncomingMessage, response: ServerResponse, body?: unknown) => void;

/** A server of the SDK, or a function that makes them, with our resources. */
interface AttachedServer {
  readonly app: SdkServer | SdkFactory;
  readonly factory: SdkFactory | undefined;
  readonly driver: { readonly logger: Logger; readonly native: Embedding };
}

// biome-ignore lint/suspicious/noExplicitAny: a module of the SDK, which is not a dependency
type Module = Record<string, any>;
/** `wrap` of the `ResourceServer`. */
type Wrap = (handler: SdkHandler) => SdkHandler;

/** Connects the server to a pipe of ours. */
export async function connected(attached: AttachedServer, transport: Transport): Promise<{ close(): Promise<void> }> {
  const { app, factory, driver } = attached;
  const server = factory === undefined ? (app as SdkServer) : await factory({ era: 'legacy' } as never);
  if (!isSecondGeneration(server)) {
    await server.connect(transport as never);
    return server;
  }
  // The one that was made to find its generation was asked for in one era only.
  if (factory !== undefined) await server.close();
  const { serveStdio } = await load(`${SECOND}/stdio`);
  const onerror = (error: unknown): void => driver.logger.error('mcp-resources: the SDK:', error);
  return serveStdio(factory ?? (() => server), { transport, onerror });
}

/** Serves HTTP until a signal or `ending`. */
export async function serveHttp(
  wrap: Wrap,
  attached: AttachedServer,
  options: ListenOptions,
  ending: Ending,
): Promise<void> {
  const other = Object.keys(options).find((name) => !BOUND.includes(name));
  if (other !== undefined) {
    const fix = 'the SDK serves this one; use nodeHandler() behind your own middleware';
    throw new TypeError(`${other} belongs to a server without attach: ${fix}`);
  }
  const { host = '127.0.0.1', port = 8000, path: at = '/mcp', onListening } = options;
  const handle = nodeHandler(wrap, attached, 'run({ http })');
  const shownHost = host.includes(':') ? `[${host}]` : host;
  const isAllowed = (url: string): boolean =>
    URL.canParse(url) && [...LOOPBACK, shownHost].includes(new URL(url).hostname);
  const server = createServer((request, response) => {
    const own = `http://${request.headers.host}`;
    if (!isAllowed(own) || !isAllowed(request.headers.origin ?? own)) response.writeHead(403).end();
    else if (new URL(request.url ?? '/', own).pathname !== at) response.writeHead(404).end();
    else handle(request, response);
  });
  await once(server.listen(port, host), 'listening');
  const end = until(ending);
  const url = `http://${shownHost}:${Object(server.address()).port}${at}`;
  if (onListening === undefined) console.error(`serving ${url} (end with Ctrl-C)`);
  else onListening(url);
  const isInterrupted = await end;
  server.close();
  server.closeAllConnections();
  if (isInterrupted) exitAfter(0);
}

/** A request handler for `node:http`, made of the SDK's own. `what` names the call for errors. */
export function nodeHandler(wrap: Wrap, attached: AttachedServer, what: string): SdkNodeHandler {
  const factory = factoryOf(attached, what);
  let made: Promise<SdkNodeHandler> | undefined;
  const make = async (): Promise<SdkNodeHandler> => {
    if (!(await isOfSecond(factory))) return sessions(factory, attached.driver.native.sessionHeader);
    const { toNodeHandler } = await load(NODE);
    return toNodeHandler(await handlerOf(wrap, factory));
  };
  return async (request, response, body) => {
    try {
      made ??= make();
      await (await made)(request, response, typeof body === 'function' ? undefined : body);
    } catch (error) {
      attached.driver.logger.error('mcp-resources: the SDK:', error);
      if (response.headersSent) response.destroy();
      else response.writeHead(500).end();
    }
  };
}

/** A request handler for the Fetch API: the `createMcpHandler` of the SDK. */
export function fetchHandler(wrap: Wrap, attached: AttachedServer): (request: Request) => Promise<Response> {
  const factory = factoryOf(attached, 'fetchHandler()');
  let made: Promise<SdkHandler> | undefined;
  const make = async (): Promise<SdkHandler> => {
    if (await isOfSecond(factory)) return handlerOf(wrap, factory);
    throw new Error(`fetchHandler() needs servers of ${SECOND}, and attach got those of ${FIRST}; use nodeHandler()`);
  };
  return async (request) => {
    made ??= make();
    return (await made).fetch(request);
  };
}

/** The error for a version of the SDK without something that is needed. */
export function unsupported(missing: string): Error {
  const found = [SECOND, FIRST].map((name) => [name, versionOf(name)]).filter(([, version]) => version !== undefined);
  const has = found.map((pair) => pair.join(' ')).join(' and ') || 'the SDK of this server';
  return new Error(
    `attach needs ${missing}, which ${has} does not have; install ${SECOND}@2, ${FIRST}@1.32 or a newer mcp-resources`,
  );
}

async function handlerOf(wrap: Wrap, factory: SdkFactory): Promise<SdkHandler> {
  const { createMcpHandler } = await load(SECOND);
  if (createMcpHandler === undefined) throw unsupported('createMcpHandler()');
  return wrap(createMcpHandler(factory));
}

/** The first generation has transports alone: one for each session. */
async function sessions(factory: SdkFactory, header: string): Promise<SdkNodeHandler> {
  const { StreamableHTTPServerTransport } = await load([FIRST, 'server', 'streamableHttp.js'].join('/'));
  const open = new Map<string, Module>();
  return async (request, response, body) => {
    const id = request.headers[header];
    let transport = open.get(`${id}`);
    if (transport !== undefined) {
      open.delete(`${id}`);
      open.set(`${id}`, transport);
      await transport.handleRequest(request, response, body);
      return;
    }
    if (id !== undefined) {
      response.writeHead(404).end();
      return;
    }
    const onsessioninitialized = (session: string): void => {
      open.set(session, transport as Module);
      const [oldest] = open.values();
      if (open.size > SESSIONS) void oldest?.close();
    };
    transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized }) as Module;
    transport.onclose = () => open.delete(transport?.sessionId);
    await (await factory({} as never)).connect(transport as never);
    await transport.handleRequest(request, response, body);
    if (transport.sessionId === undefined) await transport.close();
  };
}

function factoryOf({ app, factory }: AttachedServer, what: string): SdkFactory {
  if (factory !== undefined) return factory;
  const name = app.constructor.name;
  const fix = `attach a function that makes it: attach(() => new ${name}(…))`;
  throw new Error(`${what} needs a server for each client, and attach got one ${name}; ${fix}`);
}

async function isOfSecond(factory: SdkFactory): Promise<boolean> {
  const probe = await factory({ era: 'legacy' } as never);
  await probe.close();
  return isSecondGeneration(probe);
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

/** Resolves names as the program does. */
function program(): NodeJS.Require {
  return createRequire(process.argv[1] ?? path.join(process.cwd(), 'index.js'));
}

function versionOf(name: string): string | undefined {
  const folders = program().resolve.paths(name) ?? [];
  const file = folders.map((folder) => path.join(folder, name, 'package.json')).find((file) => existsSync(file));
  return file && JSON.parse(readFileSync(file, 'utf8')).version;
}
