// A process of a server on a bus, for `tests/python/test_bus_languages.py`. Arguments: port, URL of the bus, policy as JSON.
// It announces each URI of its input as changed.
import { createInterface } from 'node:readline';
import { ResourceServer } from 'mcp-resources';

const [port, bus, policy] = process.argv.slice(2);
const keys = [Buffer.from('0f1e2d3c4b5a69788796a5b4c3d2e1f0')];
const server = new ResourceServer({ name: 'notes' }, { keys, bus, guard: JSON.parse(policy) });
server.resource('note://{id}', (_, ctx) => ctx.uri);
createInterface({ input: process.stdin }).on('line', (line) => server.notifyUpdated(line.trim()));
await server.run({ http: { port: Number(port) } });
