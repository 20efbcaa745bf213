// The server of the tests of providers over stdio: what is put is told over the loop.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'providers', version: '1.0.0' }, { limits: { page: 1_000 } });
const folder = providers.memory();
server.mount(providers.clock(), folder);
folder.put('small', 'a text');
folder.put('large', 'x'.repeat(100_000));
server.resource('change://{to}', ({ to }) => {
  folder.put('small', to);
  return to;
});
await server.run();
