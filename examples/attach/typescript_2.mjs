// A server of `@modelcontextprotocol/server` with a tool, a prompt and tokens. Two lines add resources to it; `onStart` fills the
// database. It serves stdio or, with a port as the argument, HTTP with the tokens `ada` and `bob`; bob may not see the second order.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { ResourceNotFoundError, ResourceServer } from 'mcp-resources';
import { z } from 'zod';

const orders = new Map();
const TOKENS = ['ada', 'bob'];

function make() {
  const server = new McpServer({ name: 'shop', version: '1.0.0' });
  const inputSchema = z.object({ id: z.string(), name: z.string() });
  server.registerTool('rename', { description: 'Changes the name of an order.', inputSchema }, async ({ id, name }) => {
    orders.set(id, name);
    resources.notifyUpdated(`shop://orders/${id}`);
    return { content: [{ type: 'text', text: `Order ${id} is ${name} now.` }] };
  });
  const argsSchema = z.object({ taste: z.string() });
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
  serveStdio(resources.factory);
} else {
  const handle = toNodeHandler(resources.wrap(createMcpHandler(resources.factory)));
  const app = createServer((request, response) => {
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    if (!TOKENS.includes(token)) {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
      return;
    }
    request.auth = { token, clientId: token, scopes: [] };
    handle(request, response);
  });
  app.listen(Number(port), '127.0.0.1');
}
