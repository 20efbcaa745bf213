// The server of the stdio and stress tests.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { ResourceServer } from 'mcp-resources';

const MIB = 1 << 20;
const TEXT = 'ab\n'.repeat(MIB / 3);
const MILLISECONDS = { parameters: { ms: { type: 'integer' } } };

const output = process.argv.includes('--narrow') ? { output: 1 } : {};
const server = new ResourceServer({ name: 'stdio', version: '1.0.0' }, { limits: { grace: 500, ...output } });
let added = 0;
let longest = 0;

server.resource('s://sync/{x}', ({ x }) => x);
server.resource('s://async/{x}', async ({ x }) => x);
server.resource('s://later/{x}', async ({ x }) => {
  await sleep(1);
  return x;
});
server.resource('s://turn/{x}', ({ x }) => new Promise((resolve) => setImmediate(resolve, x)));
server.resource('s://sleep/{ms}', MILLISECONDS, async ({ ms }, { signal }) => {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    console.error(`sleep ended: ${signal.reason?.name}`);
    throw error;
  }
  return `slept ${ms}`;
});
// Hears of nothing: what it returns comes too late.
server.resource('s://deaf/{ms}', MILLISECONDS, async ({ ms }) => {
  await sleep(ms);
  return `slept ${ms}`;
});
server.resource('s://big/{x}', () => TEXT);
server.resource('s://bytes/{x}', async () => Buffer.from(TEXT));
server.resource('s://chunks/{x}', async function* ({ x }) {
  for (let round = 0; round < 16; round += 1) {
    await null;
    yield x.repeat(1000);
  }
});
server.resource('s://change/{x}', ({ x }, ctx) => {
  const uri = `s://added/${added}`;
  added += 1;
  server.addResource({ uri }, { text: x });
  ctx.progress(1, 2);
  server.notifyUpdated('s://watched');
  server.removeResource(uri);
  return uri;
});
server.resource('s://hold/{ms}', MILLISECONDS, function hold({ ms }) {
  const until = performance.now() + ms;
  while (performance.now() < until);
  return 'held';
});
server.resource('s://print', () => {
  console.log('a stray print');
  process.stdout.write('written\n');
  writeSync(1, 'to the descriptor\n');
  const child = ['-e', "console.log('from a process', require('node:fs').readFileSync(0).length)"];
  spawnSync(process.execPath, child, { stdio: ['inherit', 'inherit', 'ignore'] });
  console.error('Grüße');
  return 'quiet';
});
server.resource('s://exit', () => process.exit(7));
server.resource('s://state', () => {
  const status = readFileSync('/proc/self/status', 'utf8');
  return {
    peak: Number(/VmHWM:\s+(\d+)/.exec(status)[1]) * 1024,
    threads: Number(/Threads:\s+(\d+)/.exec(status)[1]),
  };
});
server.resource('s://longest', () => {
  const milliseconds = longest;
  longest = 0;
  return { milliseconds };
});
server.addResource({ uri: 's://watched' }, { text: '' });

if (process.argv.includes('--watch')) watch();
await server.run();
console.error('came back');

/** The longest time for which the loop was held. */
function watch() {
  let before = performance.now();
  setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - before - 5);
    before = now;
  }, 5).unref();
}
