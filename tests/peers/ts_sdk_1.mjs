// The fixture of the peers on the official TypeScript SDK, first generation (`@modelcontextprotocol/sdk`), as its
// documentation would have it written: legacy alone, with sessions over HTTP. It lists everything on one page.
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { serve } from './sdk_1.mjs';

const COUNTER = 'peer://counter';
const PLAIN = { mimeType: 'text/plain' };
const WORDS = ['alpha', 'beta', 'gamma'];
const watchers = new Set();
let count = 0;

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

await serve(make);
