// A git repository, read-only, without a function of one's own: `repository.mjs DIR`.
//
// git:///project/status            what is staged, changed and untracked
// git:///project/log{?n,path}      the newest commits; `/branches`, `/tags` and `/commit/{id}` beside it
// git:///project/diff/{from}/{to}  a patch; `/tree/{ref}/{+path}` and `/blob/{ref}/{+path}` are the files of any revision
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'repository', version: '1.0.0' });
server.mount(providers.git({ project: process.argv[2] }, { exclude: ['secret'] }));
await server.run();
