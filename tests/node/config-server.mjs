// A server of one configuration file and the environment, for config.test.mjs: `config-server.mjs FILE`.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'settings', version: '1' });
server.mount(
  providers.config({ demo: process.argv[2] }, { allow: ['server', 'server/**'], reveal: ['server/public_key'] }),
  providers.env({ allow: ['TZ', 'PLANTED_TOKEN'] }),
);
await server.run();
