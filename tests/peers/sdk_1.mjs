// A server on the official TypeScript SDK, first generation, over the transport that the command line names:
// `FILE stdio`, or `FILE http PORT`, which prints `listening PORT`. Over HTTP it has sessions.
import { randomUUID } from 'node:crypto';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';

/** Serves what `make` returns: it is called for each connection over stdio, and for each session over HTTP. */
export async function serve(make) {
  const [mode, port] = process.argv.slice(2);
  if (mode !== 'http') return make().connect(new StdioServerTransport());
  const sessions = new Map();
  const app = createMcpExpressApp();
  // Hands a request to its session's transport; a handshake without a session begins one.
  app.all('/mcp', async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (!transport && !id && isInitializeRequest(request.body)) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await make().connect(transport);
    }
    if (transport) return transport.handleRequest(request, response, request.body);
    const error = { code: -32000, message: 'Bad Request: No valid session ID provided' };
    response.status(id ? 404 : 400).json({ jsonrpc: '2.0', error, id: null });
  });
  const listener = app.listen(Number(port), '127.0.0.1', () => console.log('listening', listener.address().port));
}
