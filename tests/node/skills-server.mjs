// A server of one folder of skills, for skills.test.mjs: `skills-server.mjs FOLDER`.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'skills', version: '1' });
server.mount(providers.skills(process.argv[2]));
await server.run();
