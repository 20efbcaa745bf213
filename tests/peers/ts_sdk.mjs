// The fixture of the peers on the official TypeScript SDK, second generation (`@modelcontextprotocol/server`), as its
// documentation would have it written. It lists everything on one page.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const COUNTER = 'peer://counter';
const PLAIN = { mimeType: 'text/plain' };
const WORDS = ['alpha', 'beta', 'gamma'];
let count = 0;

/** Notifies the subscribers of this resource; over HTTP the handler below does. */
let updated = (server, uri) => server.server.sendResourceUpdated({ uri });

/** Called for each connection over stdio, and for each request over HTTP. */
function make({ era }) {
  const server = new McpServer(
    { name: 'peer', version: '1.0.0' },
    { capabilities: { resources: { subscribe: true } } },
  );
  const text = (uri, text, about = PLAIN) => ({ contents: [{ uri: uri.href, ...about, text }] });
  const watched = new Set();
  server.server.setRequestHandler('resources/subscribe', ({ params }) => {
    watched.add(params.uri);
    return {};
  });
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    watched.delete(params.uri);
    return {};
  });
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
    if (era === 'modern' || watched.has(COUNTER)) await updated(server, COUNTER);
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

const [mode, port] = process.argv.slice(2);
if (mode === 'http') {
  const handler = createMcpHandler(make);
  updated = (_, uri) => handler.notify.resourceUpdated(uri);
  const [hostAllowed, originAllowed] = [localhostHostValidation(), localhostOriginValidation()];
  const answer = toNodeHandler(handler);
  const listener = createServer((request, response) => {
    if (hostAllowed(request, response) && originAllowed(request, response)) answer(request, response);
  });
  listener.listen(Number(port), '127.0.0.1', () => console.log('listening', listener.address().port));
} else {
  serveStdio(make);
}
