// Servers of both generations of the official SDK, with and without our resources. As a program it serves stdio:
// node attached-app.mjs GENERATION plain|run|own
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { McpServer as First, ResourceTemplate as Template1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { McpServer as Second, ResourceTemplate as Template2 } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { ResourceServer } from 'mcp-resources';
import { z } from 'zod';

/** A function that makes servers. `ours` is the server that is attached, once there is one. */
export function factory(generation, ours = () => undefined) {
  const [Server, Template] = generation === 2 ? [Second, Template2] : [First, Template1];
  const shape = (fields) => (generation === 2 ? z.object(fields) : fields);
  return (context) => {
    const app = new Server(
      { name: 'app', version: '1.2.3' },
      { instructions: 'Be nice.', capabilities: { logging: {} } },
    );
    const said = (text) => ({ content: [{ type: 'text', text }] });
    app.registerTool('echo', { inputSchema: shape({ text: z.string() }) }, async ({ text }) => said(text));
    app.registerTool('fail', {}, async () => {
      throw new Error('out of tea');
    });
    app.registerTool('steps', {}, async (extra) => {
      const { mcpReq, sendNotification } = extra;
      const notify = mcpReq ? (note) => mcpReq.notify(note) : sendNotification;
      const { progressToken } = (mcpReq ?? extra)._meta ?? {};
      for (const progress of [1, 2]) {
        await notify({ method: 'notifications/progress', params: { progressToken, progress, total: 2 } });
        await sleep(50); // a client may drop what comes together with the result
      }
      return said('done');
    });
    app.registerTool('rename', { inputSchema: shape({ uri: z.string() }) }, async ({ uri }) => {
      ours()?.notifyUpdated(uri);
      return said('renamed');
    });
    app.registerTool('tell', { inputSchema: shape({ uri: z.string() }) }, async ({ uri }) => {
      await app.server.sendResourceUpdated({ uri });
      return said('told');
    });
    app.registerTool('ask', {}, async () => {
      await app.server.sendResourceUpdated({ uri: 'shop://live' });
      const requestedSchema = { type: 'object', properties: { tea: { type: 'string' } } };
      const { content } = await app.server.elicitInput({ message: 'Which tea?', requestedSchema });
      return said(content.tea);
    });
    app.registerTool('grow', {}, async () => {
      app.registerTool(`grown-${Math.random()}`, {}, async () => said('new'));
      return said('grown');
    });
    app.registerPrompt('greet', {}, async () => ({
      messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }],
    }));
    const read = async (uri) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: `theirs ${uri.href}` }] });
    app.registerResource('own', 'app://own', {}, read);
    const user = context?.authInfo?.clientId;
    if (user !== undefined) app.registerResource('mine', `app://of/${user}`, {}, read);
    app.registerResource(
      'item',
      new Template('app://items/{id}', { list: undefined, complete: { id: () => ['a', 'b'] } }),
      {},
      read,
    );
    return app;
  };
}

/** Our server. */
export function ours(options) {
  const resources = new ResourceServer({ name: 'shop', version: '9.9.9' }, options);
  resources.resource('shop://constant', () => 'ours');
  resources.resource('shop://live', async () => 'live');
  resources.resource('shop://orders/{id}', { complete: { id: () => ['7', '8'] } }, async ({ id }) => `order ${id}`);
  resources.resource('shop://secret', { scopes: ['admin'] }, () => 'secret');
  return resources;
}

/** Our server, attached to a factory. */
export function attached(generation, { options, ...how } = {}) {
  const resources = ours(options);
  return resources.attach(
    factory(generation, () => resources),
    how,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const generation = Number(process.argv[2]);
  const how = process.argv[3];
  if (how === 'run') {
    await attached(generation).run();
  } else {
    const make = how === 'plain' ? factory(generation) : attached(generation).factory;
    if (generation === 2) serveStdio(make);
    else await make().connect(new StdioServerTransport());
  }
}
