// The fixture of the peers on the official TypeScript SDK, first generation (`@modelcontextprotocol/sdk`), as its
// documentation would have it written: legacy alone, with sessions over HTTP. It lists everything on one page.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  isInitializeRequest,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

const COUNTER = 'peer://counter';
const PLAIN = { mimeType: 'text/plain' };
const WORDS = ['alpha', 'beta', 'gamma'];
const watchers = new Set();
let count = 0;

/** Called for each connection over stdio, and for each session over HTTP. */
function make() {
  const server = new McpServer(
    { name: 'peer', version: '1.0.0' },
    { capabilities: { resources: { subscribe: true } } },
  );
  server.server.onclose = () => watchers.delete(server.server);
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    if (params.uri === COUNTER) watchers.add(server.server);
    return {};
  });
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    if (params.uri === COUNTER) watchers.delete(server.server);
    return {};
  });
  const text = (uri, text, about = PLAIN) => ({ contents: [{ uri: uri.href, ...about, text }] });
  server.registerResource('static', 'peer://static', PLAIN, (uri) => text(uri, 'static text'));
  const octets = { mimeType: 'application/octet-stream' };
  const blob = Buffer.from(Uint8Array.from({ length: 256 }, (_, at) => at)).toString('base64');
  server.registerResource('blob', 'peer://blob', octets, (uri) => ({
    contents: [{ uri: uri.href, ...octets, blob }],
  }));
  const json = { mimeType: 'application/json' };
  server.registerResource('json', 'peer://json', json, (uri) => text(uri, '{"a":1,"b":[true,null]}', json));
  server.registerResource('counter', COUNTER, PLAIN, (uri) => text(uri, String(count)));
  server.registerResource('touch', 'peer://touch', PLAIN, async (uri) => {
    count += 1;
    for (const watcher of watchers) await watcher.sendResourceUpdated({ uri: COUNTER });
    return text(uri, 'touched');
  });
  server.registerResource('slow', 'peer://slow', PLAIN, async (uri) => {
    count += 1;
    await sleep(30_000, undefined, { ref: false });
    return text(uri, 'slow');
  });
  const complete = { id: (value) => WORDS.filter((word) => word.startsWith(value)) };
  const item = new ResourceTemplate('peer://item/{id}', { list: undefined, complete });
  server.registerResource('item', item, PLAIN, (uri, { id }) => text(uri, `item ${id}`));
  for (let number = 0; number < 250; number += 1) {
    server.registerResource(`r-${number}`, `peer://r/${number}`, PLAIN, (uri) => text(uri, `resource ${number}`));
  }
  return server;
}

const sessions = new Map();

/** Hands a request to its session's transport; a handshake without a session begins one. */
async function answer(request, response) {
  const id = request.headers['mcp-session-id'];
  let transport = sessions.get(id);
  if (!transport && !id && isInitializeRequest(request.body)) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await make().connect(transport);
  }
  if (transport) return transport.handleRequest(request, response, request.body);
  const error = { code: -32000, message: 'Bad Request: No valid session ID provided' };
  response.status(id ? 404 : 400).json({ jsonrpc: '2.0', error, id: null });
}

const [mode, port] = process.argv.slice(2);
if (mode === 'http') {
  const app = createMcpExpressApp();
  app.all('/mcp', answer);
  const listener = app.listen(Number(port), '127.0.0.1', () => console.log('listening', listener.address().port));
} else {
  await make().connect(new StdioServerTransport());
}
