// A client of the benchmark on the official TypeScript SDK.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { measure, revision, server } from './load.mjs';

const mode = revision >= '2026' ? { pin: revision } : 'legacy';
const client = new Client({ name: 'bench', version: '1.0.0' }, { versionNegotiation: { mode } });
const [command, ...args] = server;
await client.connect(new StdioClientTransport({ command, args }));
await measure(async (uri) => (await client.readResource({ uri })).contents[0].text);
await client.close();
