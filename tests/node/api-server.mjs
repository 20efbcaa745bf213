// A server of one endpoint of an API on this machine, for api.test.mjs: `api-server.mjs PORT`.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'shop', version: '1' });
const someItem = {
  url: `http://127.0.0.1:${process.argv[2]}/items/{id}`,
  headers: { Authorization: { env: 'SHOP_TOKEN' } },
  pick: '/data',
  ids: ['7'],
};
server.mount(providers.api({ shop: { endpoints: { someItem } } }, { privateNetworks: true, poll: '100ms' }));
await server.run();
