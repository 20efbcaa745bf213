// A server on the official TypeScript SDK, first generation, whose tool asks its client three questions and logs.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { serve } from './sdk_1.mjs';

function make() {
  const server = new McpServer({ name: 'asking', version: '1.0.0' }, { capabilities: { logging: {} } });
  server.registerTool('ask', { description: 'Asks its client.' }, async () => {
    const inner = server.server;
    await inner.sendLoggingMessage({ level: 'warning', logger: 'asking', data: 'I ask' });
    const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    const said = await inner.elicitInput({ message: 'Who are you?', requestedSchema: schema });
    const messages = [{ role: 'user', content: { type: 'text', text: 'Hi' } }];
    const sampled = await inner.createMessage({ messages, maxTokens: 5 });
    const { roots } = await inner.listRoots();
    const found = [said.content?.name, sampled.content.text, roots.map((root) => root.uri)];
    return { content: [{ type: 'text', text: JSON.stringify(found) }] };
  });
  return server;
}

await serve(make);
