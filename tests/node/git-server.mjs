// A server of one git repository, for git.test.mjs: `git-server.mjs DIR`.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'git', version: '1' });
server.mount(providers.git({ app: process.argv[2] }, { exclude: ['secret'], logMax: 50, diffBytes: '1 MiB' }));
await server.run();
