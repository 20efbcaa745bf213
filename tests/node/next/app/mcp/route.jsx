// A route of Next.js that serves an attached server: `attach-next.test.mjs` copies it into a folder that has Next.
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { ResourceServer } from 'mcp-resources';
import { z } from 'zod';

const stock = new Map([['1', 4]]);

function makeServer() {
  const app = new McpServer({ name: 'shop', version: '1.0.0' });
  app.registerTool('sell', { inputSchema: z.object({ id: z.string() }) }, async ({ id }) => {
    stock.set(id, (stock.get(id) ?? 0) - 1);
    resources.notifyUpdated(`stock://${id}`);
    return { content: [{ type: 'text', text: 'sold' }] };
  });
  return app;
}

const resources = new ResourceServer({ name: 'shop' }).attach(makeServer);
resources.resource('stock://{id}', ({ id }) => `${stock.get(id) ?? 0}`);

const { fetch: handle } = resources.wrap(createMcpHandler(resources.factory));
export const GET = (request) => handle(request);
export const POST = (request) => handle(request);
