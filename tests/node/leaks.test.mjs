// What is left of servers that are gone: no descriptor, no thread, no object; and what many requests leave: no memory.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { Agent, request as ask, createServer } from 'node:http';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { internals } from '../../bindings-node/dist/server.js';
import { readText, server } from './helpers.mjs';
import { Caller, modern } from './web.mjs';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const MIB = 1 << 20;
const SERVERS = 100;

/** Makes a server whose handler holds it, as an author's may. */
function made() {
  const own = server();
  own.resource('a://{x}', ({ x }) => `${x} of ${own.name}`);
  return own;
}

/** Each way to serve: reads once, and ends. */
const WAYS = {
  memory: async (own) => assert.equal(await readText(own, 'a://b'), 'b of test'),
  async run(own) {
    let listening;
    const url = new Promise((resolve) => {
      listening = resolve;
    });
    const ended = own.run({ http: { port: 0, onListening: listening } });
    await readOver(await url);
    own.close();
    await ended;
  },
  async nodeHandler(own) {
    const web = createServer(own.nodeHandler()).listen(0, '127.0.0.1');
    await once(web, 'listening');
    await readOver(`http://127.0.0.1:${web.address().port}/mcp`);
    own.close();
    web.closeAllConnections();
    web.close();
    await once(web, 'close');
  },
  async fetchHandler(own) {
    const handle = own.fetchHandler();
    const caller = new Caller('http://localhost/mcp', (url, options) => handle(new Request(url, options)));
    assert.equal(await caller.text('a://b'), 'b of test');
    own.close();
  },
};

/** Reads on a connection that is closed afterwards: the pool of `fetch` would keep it. */
async function readOver(url, uri = 'a://b', agent = false) {
  const { method, headers, body } = modern(1, 'resources/read', { uri });
  const sent = ask(url, { method, headers, agent });
  sent.end(body);
  const [response] = await once(sent, 'response');
  const { result } = JSON.parse((await response.toArray()).join(''));
  assert.ok(result.contents[0].text);
}

const count = (folder) => readdirSync(`/proc/self/${folder}`).length;

/** Collects garbage until the condition holds; the compiled part lets go when a later turn finalizes it. */
async function settled(condition) {
  for (let round = 0; round < 500 && !condition(); round += 1) {
    collect();
    await turn();
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

for (const [way, serve] of Object.entries(WAYS)) {
  test(`${SERVERS} servers leave nothing: ${way}`, { skip: process.platform !== 'linux' }, async () => {
    const held = new Set();
    const gone = new FinalizationRegistry((number) => held.delete(number));
    const round = async (number) => {
      const own = made();
      held.add(number);
      gone.register(own, number);
      held.add(-number);
      gone.register(internals(own).native, -number);
      await serve(own);
    };
    for (let number = 1; number <= 5; number += 1) await round(number);
    await settled(() => held.size === 0);
    const [descriptors, threads] = [count('fd'), count('task')];
    for (let number = 1; number <= SERVERS; number += 1) await round(number);
    await settled(() => held.size === 0 && count('fd') <= descriptors && count('task') <= threads);
    assert.deepEqual([...held], [], 'servers that are held');
    assert.ok(count('fd') <= descriptors, `${count('fd')} descriptors after ${descriptors}`);
    assert.ok(count('task') <= threads, `${count('task')} threads after ${threads}`);
  });
}

test('20,000 requests over HTTP leave the memory as it was', { skip: process.platform !== 'linux' }, async () => {
  const own = made();
  let listening;
  const url = new Promise((resolve) => {
    listening = resolve;
  });
  const ended = own.run({ http: { port: 0, onListening: listening } });
  const to = await url;
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const many = async (times) => {
    for (let done = 0; done < times; done += 16) {
      await Promise.all(Array.from({ length: 16 }, (_, at) => readOver(to, `a://${(done + at) % 50}`, agent)));
    }
    for (let round = 0; round < 3; round += 1) {
      collect();
      await turn();
    }
    return process.memoryUsage();
  };
  try {
    const before = await many(4_000);
    const after = await many(20_000);
    const grown = (name) => (after[name] - before[name]) / MIB;
    assert.ok(grown('heapUsed') < 8, `${grown('heapUsed')} MiB of heap`);
    assert.ok(grown('rss') < 64, `${grown('rss')} MiB in all`);
    assert.equal(internals(own).native.waiting, 0);
  } finally {
    agent.destroy();
    own.close();
    await ended;
  }
});
