// The fixture of the peers on this package.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ResourceServer } from 'mcp-resources';

const TEXT = { mimeType: 'text/plain' };
const WORDS = ['alpha', 'beta', 'gamma'];
let count = 0;
const server = new ResourceServer({ name: 'peer', version: '1.0.0' }, { limits: { page: 100 } });

server.resource('peer://static', { ...TEXT, name: 'static' }, () => 'static text');
server.resource('peer://blob', { name: 'blob', mimeType: 'application/octet-stream' }, () =>
  Uint8Array.from({ length: 256 }, (_, at) => at),
);
server.resource('peer://json', { name: 'json', mimeType: 'application/json' }, () => ({ a: 1, b: [true, null] }));
server.resource('peer://counter', { ...TEXT, name: 'counter' }, () => String(count));
server.resource('peer://touch', { ...TEXT, name: 'touch' }, () => {
  count += 1;
  server.notifyUpdated('peer://counter');
  return 'touched';
});
server.resource('peer://slow', { ...TEXT, name: 'slow' }, async (_, ctx) => {
  count += 1;
  await sleep(30_000, undefined, { signal: ctx.signal });
  return 'slow';
});
server
  .resource('peer://item/{id}', { ...TEXT, name: 'item' }, ({ id }) => `item ${id}`)
  .complete('id', (value) => WORDS.filter((word) => word.startsWith(value)));
for (let number = 0; number < 250; number += 1) {
  server.resource(`peer://r/${number}`, { ...TEXT, name: `r-${number}` }, () => `resource ${number}`);
}

const [mode, port] = process.argv.slice(2);
if (mode === 'http') {
  const listener = createServer(server.nodeHandler());
  listener.listen(Number(port), '127.0.0.1', () => console.log('listening', listener.address().port));
} else {
  await server.run();
}
