// A server of documents, for rag.test.mjs and drive.test.mjs: `rag-server.mjs DIR`, or `rag-server.mjs COLLECTIONS POLL` with the
// collections as JSON.
import { providers, ResourceServer } from 'mcp-resources';

const [given, poll] = process.argv.slice(2);
const collections = poll === undefined ? { kb: { folder: given } } : JSON.parse(given);
const server = new ResourceServer({ name: 'rag', version: '1' });
server.mount(providers.rag(collections, poll === undefined ? {} : { poll }));
await server.run();
