// The client reads the output of a server on the thread of the loop while it is used: what begins and ends that, and what
// happens in between.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from 'mcp-resources';
import { LONG } from './client_lines.mjs';
import { ROOT } from './vectors.mjs';

const SERVER = [process.execPath, fileURLToPath(new URL('client_lines.mjs', import.meta.url)), 'serve'];
const pause = (time) => new Promise((resolve) => setTimeout(resolve, time));

/** A test with a client that is closed at its end. */
function using(name, body) {
  test(name, async () => {
    const client = new Client(SERVER);
    try {
      await body(client);
    } finally {
      await client.close();
    }
  });
}

/** The number of pipes that this process has open; `undefined` where the system does not show it. */
const pipes = () => {
  if (process.platform !== 'linux') return undefined;
  const target = (fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  };
  return readdirSync('/proc/self/fd').filter((fd) => target(fd).startsWith('pipe:')).length;
};

/** Reads until the loop has the output, which is one descriptor more. */
async function lent(client) {
  assert.equal(await client.read('text://first'), 'first');
  const before = pipes();
  for (let at = 0; at < 2_000; at += 1) {
    assert.equal(await client.read(`text://${at}`), String(at));
    if (before === undefined ? at > 100 : pipes() > before) return before;
  }
  return assert.fail('the loop does not read');
}

/** Waits until the loop has given it back. */
async function returned(before) {
  const end = Date.now() + 10_000;
  while (pipes() !== before) {
    assert.ok(Date.now() < end, 'it was not given back');
    await pause(10);
  }
}

using('an output that is not used goes back, and comes again', async (client) => {
  const before = await lent(client);
  await returned(before);
  assert.equal(await client.read('text://a'), 'a');
  await returned(await lent(client));
});

using('many reads at once, lists and long answers between reads that are alone', async (client) => {
  for (let round = 0; round < 5; round += 1) {
    await lent(client);
    const ids = Array.from({ length: 200 }, (_, at) => `${round}-${at}`);
    assert.deepEqual(await Promise.all(ids.map((id) => client.read(`text://${id}`))), ids);
    const mixed = [client.read('long://x'), client.read('text://b'), client.about(), client.read('long://y')];
    const [x, b, about, y] = await Promise.all(mixed);
    assert.equal(b, 'b');
    assert.equal(about.serverInfo.name, 'lines');
    assert.ok(x === 'x'.repeat(LONG) && y === 'y'.repeat(LONG));
    let templates = 0;
    for await (const _ of client.listTemplates()) templates += 1;
    assert.equal(templates, 4);
  }
});

using('a loop that is blocked loses nothing', async (client) => {
  for (let round = 0; round < 3; round += 1) {
    await lent(client);
    const reads = [client.read('text://a'), client.read('long://b')];
    const end = Date.now() + 200;
    while (Date.now() < end);
    const [short, long] = await Promise.all(reads);
    assert.equal(short, 'a');
    assert.ok(long === 'b'.repeat(LONG));
  }
});

using('a server that ends is started again, and what was asked of it fails', async (client) => {
  const before = await lent(client);
  const first = await client.read('pid://1');
  await assert.rejects(client.read('end://1'), { name: 'ReadFailedError', kind: 'unreachable' });
  assert.notEqual(await client.read('pid://1'), first);
  await returned(before);
  await lent(client);
});

using('reads can be taken back', async (client) => {
  await lent(client);
  for (let round = 0; round < 50; round += 1) {
    const controller = new AbortController();
    const reads = Array.from({ length: 3 }, () => client.read('text://a', { signal: controller.signal }));
    const other = client.read('text://b');
    controller.abort(new Error('no more'));
    for (const read of reads) await assert.rejects(read, { message: 'no more' });
    assert.equal(await other, 'b');
  }
});

test('close ends it at once', async () => {
  const client = new Client(SERVER);
  const before = await lent(client);
  const read = client.read('text://a').catch((error) => error.kind);
  await client.close();
  assert.ok(['a', 'cancelled'].includes(await read));
  if (before !== undefined) assert.ok(pipes() <= before);
});

for (const [how, end] of Object.entries({
  'a process': '',
  'a process that exits': 'process.exit(0);',
  'a worker': 'parentPort?.postMessage("done");',
  'a worker that is terminated': 'parentPort?.postMessage("end"); for (;;) await client.read("text://a");',
})) {
  test(`${how} ends while the loop reads`, () => {
    const body = `
      const { Client } = require('mcp-resources');
      const { parentPort } = require('node:worker_threads');
      (async () => {
        const client = new Client(${JSON.stringify(SERVER)});
        for (let at = 0; at < 200; at += 1) await client.read('text://a');
        ${end}
      })();`;
    const code = how.includes('worker')
      ? `const { Worker } = require('node:worker_threads');
         const worker = new Worker(${JSON.stringify(body)}, { eval: true, execArgv: [] });
         worker.on('message', (what) => what === 'end' && setTimeout(() => worker.terminate(), 20));
         worker.on('error', (error) => { throw error; });`
      : body;
    const options = { cwd: ROOT, encoding: 'utf8', timeout: 60_000 };
    assert.equal(execFileSync(process.execPath, ['-e', code], options), '');
  });
}
