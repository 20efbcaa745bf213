// A server of one site of documentation, for docs.test.mjs: `docs-server.mjs DIR`.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'docs', version: '1' });
server.mount(providers.docs({ book: process.argv[2] }, { exclude: ['drafts'] }));
await server.run();
