// A server of one collection, for rag.test.mjs: `rag-server.mjs DIR`.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'rag', version: '1' });
server.mount(providers.rag({ kb: { folder: process.argv[2] } }));
await server.run();
