// The benchmark's fixture server in Node (tests/bench/README.md).
import { readFileSync } from 'node:fs';
import { ResourceServer } from 'mcp-resources';

const MIB = 1 << 20;
const STATIC = readFileSync(new URL('static.txt', import.meta.url), 'utf8');
const LINE = 'resource contents 1\n';
const LARGE_TEXT = LINE.repeat(MIB / LINE.length + 1).slice(0, MIB);
const RUN = Uint8Array.from({ length: 256 }, (_, at) => (167 * at + 13) % 256);
const LARGE_BLOB = new Uint8Array(Buffer.alloc(MIB, RUN));
const TEXT = { mimeType: 'text/plain' };

const server = new ResourceServer(
  { name: 'bench-node', version: '1.0.0' },
  {
    limits: {
      page: 1000,
      templates: 100_000,
      sessions: 20_000,
      sessionsPerClient: 20_000,
      connectionsPerClient: 20_000,
    },
  },
);

server.resource('bench://static', TEXT, () => STATIC);
server.resource('bench://item/{id}', TEXT, ({ id }) => `item ${id}`);
server.resource('bench://aitem/{id}', TEXT, async ({ id }) => `item ${id}`);
server.resource('bench://text1m', TEXT, () => LARGE_TEXT);
server.resource('bench://blob1m', { mimeType: 'application/octet-stream' }, () => LARGE_BLOB);
server.resource('bench://sub/{n}', TEXT, ({ n }) => n);
server.resource('bench://touch/{n}', TEXT, ({ n }) => {
  server.notifyUpdated(`bench://sub/${n}`);
  return 'ok';
});
server.addResource({ uri: 'bench://const', ...TEXT }, { text: STATIC });

server.batch(() => {
  for (let number = 0; number < Number(process.env.STATIC ?? 1000); number += 1) {
    server.addResource({ uri: `bench://r/${number}`, ...TEXT }, { text: `r ${number}` });
  }
  for (let number = 0; number < Number(process.env.TEMPLATES ?? 0); number += 1) {
    server.resource(`bench://t${number}/{a}/{b}`, TEXT, ({ a, b }) => `${a} ${b}`);
  }
});

if (process.env.TOOLS !== undefined) {
  const { z } = await import('zod');
  const about = { description: 'Returns a text.', input: z.object({ text: z.string() }) };
  server.tool('echo', about, ({ text }) => text);
  for (let number = 0; number < Number(process.env.TOOLS); number += 1) {
    server.tool(`t${number}`, about, ({ text }) => text);
  }
}

const [mode, port] = process.argv.slice(2);
await server.run(mode === '--http' ? { http: { port: Number(port) } } : {});
