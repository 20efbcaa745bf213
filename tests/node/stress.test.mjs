// Answers off the loop's turn without a stall, a deadlock or unbounded memory.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { cancel, read, request, running } from './process.mjs';

const MIB = 1 << 20;
/** Generous: the machine may be busy. A deadlock or a wait for a client would be longer. */
const LONGEST_HOLD = 10_000;
const count = (to) => Array.from({ length: to }, (_, at) => at + 1);

/** The server's state once nothing but the question is at work, and that the loop was never held for long. */
async function settled(server) {
  assert.ok((await server.value('s://longest')).milliseconds < LONGEST_HOLD);
  return server.value('s://state');
}

/** Reads what is left of answers, up to one that is asked for now. */
async function drain(server) {
  server.write(read('marker', 's://sync/marker'));
  for (;;) {
    const [message] = await server.messages(1);
    if (message.id === 'marker') return;
  }
}

for (const sort of ['big', 'bytes']) {
  test(`64 in flight with a mebibyte each: ${sort}`, () =>
    running(async (server) => {
      const before = (await settled(server)).peak;
      for (const round of count(4)) {
        server.write(...count(64).map((id) => read(round * 64 + id, `s://${sort}/${id}`)));
        const answers = await server.answers(64);
        assert.equal(answers.size, 64);
      }
      const { peak } = await settled(server);
      // 64 answers may wait at once when the client is slower than the handlers, and V8 frees their buffers late.
      assert.ok(peak - before < 64 * 4 * MIB, `${(peak - before) / MIB} MiB`);
      assert.deepEqual(await server.end(), { status: 0, rest: [] });
    }, '--watch'));
}

test('handlers that change the server', () =>
  running(async (server) => {
    const filter = { resourceSubscriptions: ['s://watched'], resourcesListChanged: true };
    server.write(request(9_000, 'subscriptions/listen', { notifications: filter }));
    await server.messages(1);
    server.write(...count(400).map((id) => read(id, `s://change/${id}`, { progressToken: id })));
    const answered = new Set();
    let updated = 0;
    while (answered.size < 400) {
      const [message] = await server.messages(1);
      if ('id' in message) {
        assert.ok(message.result, JSON.stringify(message));
        answered.add(message.id);
      } else if (message.method.endsWith('updated')) updated += 1;
    }
    assert.ok(updated > 0);
    server.write(cancel(9_000));
    await drain(server);
    await settled(server);
  }, '--watch'));

test('a flood of reads and cancels against sleeping handlers', () =>
  running(async (server) => {
    const sorts = ['sleep/2', 'deaf/2', 'sync/x', 'async/x', 'later/x', 'turn/x'];
    const expected = new Set();
    const answered = new Set();
    const random = generator(4711);
    for (let start = 0; start < 5_000; start += 100) {
      const lines = [];
      for (const id of count(100).map((at) => start + at)) {
        lines.push(read(id, `s://${sorts[Math.floor(random() * sorts.length)]}`));
        if (random() < 0.7) lines.push(cancel(id));
        else expected.add(id);
      }
      server.write(...lines);
    }
    while ([...expected].some((id) => !answered.has(id))) {
      const [message] = await server.messages(1);
      answered.add(message.id);
      // A full table is told, never waited for.
      assert.ok(message.result ?? /in flight/.test(message.error.message), JSON.stringify(message));
    }
    await drain(server);
    const { threads } = await settled(server);
    assert.ok(threads < 45, `${threads} threads`);
  }, '--watch'));

test('a client that never reads costs bounded memory (DEC-17)', () =>
  running(async (server) => {
    const before = (await settled(server)).peak;
    server.pause(true);
    const sorts = ['sync', 'async', 'later', 'big'];
    let id = 0;
    const until = performance.now() + 2_000;
    while (performance.now() < until) {
      id += 1;
      // What the pipe does not take waits in this process: the server has stopped reading.
      if (!server.write(read(id, `s://${sorts[id % 4]}/${id}`))) await sleep(5);
      if (server.process.stdin.writableLength > 8 * MIB) break;
    }
    const peak = peakOf(server);
    assert.ok(peak - before < 400 * MIB, `${(peak - before) / MIB} MiB`);
    await sleep(1_000);
    assert.ok(peakOf(server) - peak < 8 * MIB);
  }, '--watch'));

test('long conversations keep nothing', () =>
  running(async (server) => {
    const round = async (sorts) => {
      server.write(...count(1_000).map((id) => read(id, `s://${sorts[id % sorts.length]}/${id}`)));
      await server.answers(1_000);
    };
    for (const _ of count(4)) await round(['sync', 'async', 'later', 'turn']);
    const first = await settled(server);
    for (const _ of count(10)) await round(['sync', 'later']);
    const last = await settled(server);
    assert.ok(last.peak - first.peak < 32 * MIB, `${(last.peak - first.peak) / MIB} MiB`);
  }, '--watch'));

function peakOf({ process: { pid } }) {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;
}

/** Numbers from 0 to 1 that are the same in each run. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
