// The fixture of the benchmark on the official TypeScript SDK (`@modelcontextprotocol/server`), as its documentation
// would have it written. Copied beside its installation before it is run.
import { readFileSync } from 'node:fs';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const TEXT = readFileSync(new URL('static.txt', import.meta.url), 'utf8');
const LARGE = 1 << 20;
const LARGE_TEXT = 'resource contents 1\n'.repeat(LARGE / 20 + 1).slice(0, LARGE);
const LARGE_BLOB = Buffer.from(Uint8Array.from({ length: LARGE }, (_, at) => (at * 167 + 13) % 256));
const PLAIN = { mimeType: 'text/plain' };

function make() {
  const server = new McpServer({ name: 'bench', version: '1.0.0' });
  const text = (uri, text) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text }] });
  server.registerResource('static', 'bench://static', PLAIN, (uri) => text(uri, TEXT));
  const item = new ResourceTemplate('bench://item/{id}', { list: undefined });
  server.registerResource('item', item, PLAIN, (uri, { id }) => text(uri, `item ${id}`));
  const aitem = new ResourceTemplate('bench://aitem/{id}', { list: undefined });
  server.registerResource('aitem', aitem, PLAIN, async (uri, { id }) => text(uri, `item ${id}`));
  server.registerResource('text1m', 'bench://text1m', PLAIN, (uri) => text(uri, LARGE_TEXT));
  const octets = { mimeType: 'application/octet-stream' };
  server.registerResource('blob1m', 'bench://blob1m', octets, (uri) => ({
    contents: [{ uri: uri.href, ...octets, blob: LARGE_BLOB.toString('base64') }],
  }));
  for (let number = 0; number < Number(process.env.STATIC ?? 1000); number += 1) {
    server.registerResource(`r-${number}`, `bench://r/${number}`, PLAIN, (uri) => text(uri, `resource ${number}`));
  }
  for (let number = 0; number < Number(process.env.TEMPLATES ?? 0); number += 1) {
    const template = new ResourceTemplate(`bench://t${number}/{a}/{b}`, { list: undefined });
    server.registerResource(`t-${number}`, template, PLAIN, (uri, { a, b }) => text(uri, `${a} ${b}`));
  }
  return server;
}

serveStdio(make);
