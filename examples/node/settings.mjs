// Keys of a configuration file, and variables of the environment: no function is written, and secrets are masked.
//
// config:///app          what is allowed of the file, as JSON
// config:///app/{+key}   one key, such as config:///app/server/port; completes the keys, is watched
// env:///{name}          one variable
import { fileURLToPath } from 'node:url';
import { providers, ResourceServer } from 'mcp-resources';

const FILE = fileURLToPath(new URL('../data/app.json', import.meta.url));

const server = new ResourceServer({ name: 'settings', version: '1.0.0' });
server.mount(
  providers.config({ app: process.argv[2] ?? FILE }, { allow: ['server', 'server/*', 'theme/**'] }),
  providers.env({ allow: ['TZ', 'APP_*'] }),
);
await server.run();
