// A server of results, for results.test.mjs. A read of `change:///ID` puts a result anew.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'results', version: '1' });
const results = providers.results({ scheme: 'wallbounce', ttl: '10min' });
server.mount(results);
results.put('risk', '{"risk":"low"}', { mimeType: 'application/json' });
results.put('bytes', new Uint8Array([0, 255]), { ttl: 5000 });
results.put("alice's", 'hidden', { principal: 'alice' });
server.resource('change:///{id}', ({ id }) => {
  results.put(id, '{"risk":"high"}', { mimeType: 'application/json' });
  return 'changed';
});
await server.run();
