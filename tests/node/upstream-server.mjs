// A server of other servers, for test_upstream.py: `upstream-server.mjs SERVERS`, a JSON object.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'upstream', version: '1' });
try {
  server.mount(providers.upstream(JSON.parse(process.argv[2])));
} catch (error) {
  console.error(error.message);
  process.exit(2);
}
await server.run();
