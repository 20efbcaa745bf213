// A cache of results, asked by the official TypeScript client in both eras (S-06).
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const SERVER = fileURLToPath(new URL('./results-server.mjs', import.meta.url));
const RISK = 'wallbounce:///risk';

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-06: the official client, ${era}, lists, reads, completes and watches results`, async (t) => {
    const transport = new StdioClientTransport({ command: process.execPath, args: [SERVER] });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const heard = new EventEmitter();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.emit('updated', params.uri));
    await client.connect(transport);
    t.after(() => client.close());
    const read = async (uri) => (await client.readResource({ uri })).contents[0];

    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      ['wallbounce:///', 'wallbounce:///bytes', RISK],
    );
    assert.deepEqual(JSON.parse((await read(RISK)).text), { risk: 'low' });
    assert.equal((await read('wallbounce:///bytes')).blob, 'AP8=');
    await assert.rejects(read("wallbounce:///alice's"), { code: -32602 });
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'wallbounce:///{analysisId}' },
      argument: { name: 'analysisId', value: 'r' },
    });
    assert.deepEqual(completion.values, ['risk']);

    if (era === 'modern') await client.listen({ resourceSubscriptions: [RISK] });
    else await client.subscribeResource({ uri: RISK });
    const updated = once(heard, 'updated');
    await read('change:///risk');
    assert.deepEqual(await updated, [RISK]);
    assert.deepEqual(JSON.parse((await read(RISK)).text), { risk: 'high' });
  });
}

test('S-06: 64 calls at once run one computation, whether it succeeds or fails', async () => {
  const results = providers.results();
  let runs = 0;
  const slow = (end) => async () => {
    runs += 1;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return end();
  };
  const all = (id, compute) =>
    Promise.allSettled(Array.from({ length: 64 }, () => results.getOrCompute(id, compute, { ttl: '1min' })));
  const good = await all(
    'a',
    slow(() => 'computed'),
  );
  assert.deepEqual([new Set(good.map(({ value }) => value)), runs], [new Set(['computed']), 1]);
  const bad = await all(
    'b',
    slow(() => {
      throw new RangeError('broken');
    }),
  );
  assert.deepEqual([new Set(bad.map(({ reason }) => reason.message)), runs], [new Set(['broken']), 2]);
  assert.equal(results.get('b'), undefined);
  assert.equal(await results.getOrCompute('b', () => 'plain'), 'plain');
});

test('S-06: results outlive the cache in a file, and wrong values are named', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-results-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'results.db');
  const results = providers.results({ file });
  results.put('a', 'one');
  results.put('a', new Uint8Array([1]), { principal: 'alice' });
  const again = providers.results({ file });
  assert.equal(again.get('a'), 'one');
  assert.deepEqual(again.get('a', { principal: 'alice' }), new Uint8Array([1]));
  assert.equal(again.size, 2);
  assert.equal(again.remove('a', { principal: 'bob' }), false);
  assert.equal(again.remove('a'), true);
  assert.equal(results.get('a'), undefined);
  for (const [call, message] of [
    [() => results.put('', 'x'), /an id has 0 bytes/],
    [() => results.put('a', 5), /the body of "a" is 5/],
    [() => results.put(5, 'x'), /the id is 5/],
    [() => results.put('a', 'x', { ttl: 'soon' }), /a time such as/],
    [() => results.put('a', 'x', { mime: 'x' }), /unexpected option "mime"/],
    [() => providers.results({ entrys: 1 }), /did you mean "entries"/],
    [() => providers.results({ bytes: 'many' }), /a size such as/],
    [() => providers.results({ scheme: 'Wall Bounce' }), /is no scheme/],
    [() => providers.results({ file: join(folder, 'none', 'x') }), /its directory does not exist/],
  ]) {
    assert.throws(call, (error) => error instanceof TypeError && message.test(error.message), String(call));
  }
});
