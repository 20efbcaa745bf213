// A thread of Node's with providers at work, until it is terminated.
import { parentPort } from 'node:worker_threads';
import { providers, ResourceServer } from 'mcp-resources';
import { Client } from 'mcp-resources/testing';

const server = new ResourceServer({ name: 'worker' }, { redact: (_uri, contents) => contents });
const folder = providers.memory();
server.mount(providers.clock(), folder);
folder.put('large', 'x'.repeat(1 << 20));
const client = await Client.connect(server);
await client.listen(['clock:///now']);
for (;;) {
  await Promise.all(Array.from({ length: 8 }, () => client.readText('memory:///large')));
  parentPort.postMessage('it reads');
}
