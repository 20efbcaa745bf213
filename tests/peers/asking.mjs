// A server on the official TypeScript SDK, first generation, whose tool asks its client three questions and logs:
// `asking.mjs stdio`, or `asking.mjs http PORT`, which prints `listening PORT`.
import { randomUUID } from 'node:crypto';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

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

const sessions = new Map();

async function answer(request, response) {
  let transport = sessions.get(request.headers['mcp-session-id']);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await make().connect(transport);
  }
  return transport.handleRequest(request, response, request.body);
}

const [mode, port] = process.argv.slice(2);
if (mode === 'http') {
  const app = createMcpExpressApp();
  app.all('/mcp', answer);
  const listener = app.listen(Number(port), '127.0.0.1', () => console.log('listening', listener.address().port));
} else {
  await make().connect(new StdioServerTransport());
}
