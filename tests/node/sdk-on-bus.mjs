// A process of a server of the official SDK on a bus, for `tests/python/test_bus_languages.py`. Arguments: port, URL of the bus.
// It announces each URI of its input as changed.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { ServerEventBus } from 'mcp-resources';

const [port, url] = process.argv.slice(2);
const bus = new ServerEventBus(url, { name: 'notes', keys: [Buffer.from('0f1e2d3c4b5a69788796a5b4c3d2e1f0')] });

function make() {
  const server = new McpServer(
    { name: 'notes', version: '1.0.0' },
    { capabilities: { resources: { subscribe: true } } },
  );
  server.registerResource('one', 'note://1', {}, (uri) => ({ contents: [{ uri: uri.href, text: 'one' }] }));
  return server;
}

const handler = createMcpHandler(make, { bus });
createInterface({ input: process.stdin }).on('line', (line) => handler.notify.resourceUpdated(line.trim()));
createServer(toNodeHandler(handler)).listen(Number(port), '127.0.0.1');
