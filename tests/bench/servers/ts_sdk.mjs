// The fixture of the benchmark on the official TypeScript SDK (`@modelcontextprotocol/server`), as its documentation
// would have it written. Copied beside its installation before it is run.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const TEXT = readFileSync(new URL('static.txt', import.meta.url), 'utf8');
const LARGE = 1 << 20;
const LARGE_TEXT = 'resource contents 1\n'.repeat(LARGE / 20 + 1).slice(0, LARGE);
const RUN = Uint8Array.from({ length: 256 }, (_, at) => (at * 167 + 13) % 256);
const LARGE_BLOB = Buffer.alloc(LARGE, RUN);
const PLAIN = { mimeType: 'text/plain' };
/** Only for servers with tools: it takes time to load. */
const z = process.env.TOOLS === undefined ? undefined : (await import('zod')).z;

/** Notifies the subscribers of this resource; over HTTP the handler below does. */
let updated = (server, uri) => server.server.sendResourceUpdated({ uri });

/** Called for each connection over stdio, and for each request over HTTP. */
function make({ era }) {
  const server = new McpServer(
    { name: 'bench', version: '1.0.0' },
    { capabilities: { resources: { subscribe: true } } },
  );
  const text = (uri, text) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text }] });
  server.registerResource('static', 'bench://static', PLAIN, (uri) => text(uri, TEXT));
  const item = new ResourceTemplate('bench://item/{id}', { list: undefined });
  if (process.env.ATTACH === undefined)
    server.registerResource('item', item, PLAIN, (uri, { id }) => text(uri, `item ${id}`));
  const aitem = new ResourceTemplate('bench://aitem/{id}', { list: undefined });
  server.registerResource('aitem', aitem, PLAIN, async (uri, { id }) => text(uri, `item ${id}`));
  server.registerResource('text1m', 'bench://text1m', PLAIN, (uri) => text(uri, LARGE_TEXT));
  const octets = { mimeType: 'application/octet-stream' };
  server.registerResource('blob1m', 'bench://blob1m', octets, (uri) => ({
    contents: [{ uri: uri.href, ...octets, blob: LARGE_BLOB.toString('base64') }],
  }));
  const watched = new Set();
  server.server.setRequestHandler('resources/subscribe', ({ params }) => {
    watched.add(params.uri);
    return {};
  });
  const sub = new ResourceTemplate('bench://sub/{n}', { list: undefined });
  server.registerResource('sub', sub, PLAIN, (uri, { n }) => text(uri, n));
  const touch = new ResourceTemplate('bench://touch/{n}', { list: undefined });
  server.registerResource('touch', touch, PLAIN, async (uri, { n }) => {
    if (era === 'modern' || watched.has(`bench://sub/${n}`)) await updated(server, `bench://sub/${n}`);
    return text(uri, 'ok');
  });
  for (let number = 0; number < Number(process.env.STATIC ?? 1000); number += 1) {
    server.registerResource(`r-${number}`, `bench://r/${number}`, PLAIN, (uri) => text(uri, `resource ${number}`));
  }
  for (let number = 0; number < Number(process.env.TEMPLATES ?? 0); number += 1) {
    const template = new ResourceTemplate(`bench://t${number}/{a}/{b}`, { list: undefined });
    server.registerResource(`t-${number}`, template, PLAIN, (uri, { a, b }) => text(uri, `${a} ${b}`));
  }
  if (z !== undefined) {
    const about = { description: 'Returns a text.', inputSchema: z.object({ text: z.string() }) };
    const echo = async ({ text }) => ({ content: [{ type: 'text', text }] });
    server.registerTool('echo', about, echo);
    for (let number = 0; number < Number(process.env.TOOLS); number += 1)
      server.registerTool(`t${number}`, about, echo);
  }
  return server;
}

const [mode, port] = process.argv.slice(2);
if (mode === '--http') {
  const handler = createMcpHandler(make, { maxSubscriptions: 20_000 });
  updated = (_, uri) => handler.notify.resourceUpdated(uri);
  const [hostAllowed, originAllowed] = [localhostHostValidation(), localhostOriginValidation()];
  const answer = toNodeHandler(handler);
  createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    if (hostAllowed(request, response) && originAllowed(request, response)) answer(request, response);
  }).listen(Number(port), '127.0.0.1');
} else if (process.env.ATTACH === undefined) {
  serveStdio(make);
} else {
  const { ResourceServer } = await import('mcp-resources');
  const resources = new ResourceServer({ name: 'bench', version: '1.0.0' }).attach(make);
  resources.resource('bench://item/{id}', { mimeType: 'text/plain' }, ({ id }) => `item ${id}`);
  if (process.env.ATTACH === 'run') await resources.run();
  else serveStdio(resources.factory);
}
