// A folder of files, as the servers of agents' configurations are: `project_files.mjs --root FOLDER`.
//
// file:///project/{+path}  a file below the folder; subscribers are notified when it changes
import { parseArgs } from 'node:util';
import { providers, ResourceServer } from 'mcp-resources';

const { values } = parseArgs({ options: { root: { type: 'string' } } });

const server = new ResourceServer({ name: 'filesystem', version: '1.0.0' });
server.mount(providers.files({ project: values.root }));
await server.run();
