// A server of `@modelcontextprotocol/sdk`, the first generation, with a tool, a prompt and tokens. Two lines add resources to it;
// `onStart` fills the database. It serves stdio or, with a port as the argument, HTTP under Express with the tokens `ada` and `bob`;
// bob may not see the second order.
import { randomUUID } from 'node:crypto';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import { ResourceNotFoundError, ResourceServer } from 'mcp-resources';
import { z } from 'zod';

const orders = new Map();
const TOKENS = ['ada', 'bob'];

function make() {
  const server = new McpServer({ name: 'shop', version: '1.0.0' });
  const inputSchema = { id: z.string(), name: z.string() };
  server.registerTool('rename', { description: 'Changes the name of an order.', inputSchema }, async ({ id, name }) => {
    orders.set(id, name);
    resources.notifyUpdated(`shop://orders/${id}`);
    return { content: [{ type: 'text', text: `Order ${id} is ${name} now.` }] };
  });
  const argsSchema = { taste: z.string() };
  server.registerPrompt('recommend', { description: 'Asks for a recommendation.', argsSchema }, ({ taste }) => {
    const text = `Which of the orders is for somebody who likes ${taste}?`;
    return { messages: [{ role: 'user', content: { type: 'text', text } }] };
  });
  return server;
}

const guard = { principals: { bob: { deny: ['shop://orders/2'] } } };
const onStart = () => {
  orders.set('1', 'tea').set('2', 'mate');
};
const resources = new ResourceServer({ name: 'shop' }, { guard, onStart }).attach(make);

resources.resource('shop://orders/{id}', { list: () => [...orders.keys()] }, ({ id }) => {
  const name = orders.get(id);
  if (name === undefined) throw new ResourceNotFoundError();
  return { id, name };
});

const port = process.argv[2];
if (port === undefined) {
  await resources.factory().connect(new StdioServerTransport());
} else {
  const verifier = {
    async verifyAccessToken(token) {
      if (!TOKENS.includes(token)) throw new Error('unknown token');
      return { token, clientId: token, scopes: [], expiresAt: Date.now() / 1000 + 60 };
    },
  };
  const sessions = new Map();
  const app = express();
  app.use('/mcp', requireBearerAuth({ verifier }), express.json());
  app.all('/mcp', async (request, response) => {
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (transport === undefined) {
      const onsessioninitialized = (id) => sessions.set(id, transport);
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
      await resources.factory().connect(transport);
    }
    await transport.handleRequest(request, response, request.body);
  });
  app.listen(Number(port), '127.0.0.1');
}
