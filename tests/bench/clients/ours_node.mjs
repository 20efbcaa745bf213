// A client of the benchmark on `mcp-resources`.
import { Client } from 'mcp-resources';
import { measure, revision, server } from './load.mjs';

const client = new Client(server, { revision });
await measure((uri) => client.read(uri));
await client.close();
