// Our server under the adapters of the official SDK for Express and Hono, with tokens, read by its client. It needs those packages:
// `attach-versions.test.mjs` runs it in a folder that has them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createMcpExpressApp, requireBearerAuth } from '@modelcontextprotocol/express';
import { createMcpHonoApp } from '@modelcontextprotocol/hono';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { ResourceServer } from 'mcp-resources';

const resources = new ResourceServer({ name: 'shop' }).attach(() => new McpServer({ name: 'app', version: '1' }));
resources.resource('shop://who', async (_, { principal }) => principal);
const handler = resources.wrap(createMcpHandler(resources.factory));

async function who(url, options, mode) {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(url, options));
  const { contents } = await client.readResource({ uri: 'shop://who' });
  await client.close();
  return contents[0].text;
}

const verifyAccessToken = async (token) => ({ token, clientId: token, scopes: [], expiresAt: Date.now() / 1000 + 60 });
const handle = toNodeHandler(handler);
const web = createMcpExpressApp();
web.use('/mcp', requireBearerAuth({ verifier: { verifyAccessToken } }));
web.all('/mcp', (request, response) => void handle(request, response, request.body));
const server = web.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = new URL(`http://127.0.0.1:${server.address().port}/mcp`);

const hono = createMcpHonoApp();
hono.all('/mcp', (context) => {
  const token = context.req.header('authorization')?.replace('Bearer ', '') ?? '';
  const authInfo = { token, clientId: token, scopes: [] };
  return handler.fetch(context.req.raw, { parsedBody: context.get('parsedBody'), authInfo });
});
const fetched = async (address, init) => {
  const request = new Request(address, init);
  request.headers.set('host', 'localhost');
  return hono.fetch(request);
};

const requestInit = { headers: { authorization: 'Bearer ada' } };
for (const mode of ['auto', 'legacy']) {
  assert.equal(await who(url, { requestInit }, mode), 'ada');
  assert.equal(await who(new URL('http://localhost/mcp'), { requestInit, fetch: fetched }, mode), 'ada');
}
await handler.close();
server.close();
server.closeAllConnections();
console.log('ok');
