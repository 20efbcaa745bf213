// A folder of Agent Skills, for hosts that load skills over MCP and for clients that only know resources.
//
// skill://{+path}                                     a file of a skill
// skills/list, skills/get, resources/directory/read   the methods of the skills extension
import { fileURLToPath } from 'node:url';
import { providers, ResourceServer } from 'mcp-resources';

const FOLDER = fileURLToPath(new URL('../data/skills', import.meta.url));

const server = new ResourceServer({ name: 'team-skills', version: '1.0.0' });
server.mount(providers.skills(FOLDER));
await server.run();
