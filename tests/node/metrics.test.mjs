// Metrics, asked by the official TypeScript client in both eras (S-05).
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const SERVER = fileURLToPath(new URL('./metrics-server.mjs', import.meta.url));

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-05: the official client, ${era}, lists, reads, completes and watches metrics`, async (t) => {
    const transport = new StdioClientTransport({ command: process.execPath, args: [SERVER] });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const heard = new EventEmitter();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.emit('updated', params.uri));
    await client.connect(transport);
    t.after(() => client.close());
    const text = async (uri) => (await client.readResource({ uri })).contents[0].text;

    const { resources } = await client.listResources();
    const names = resources.map(({ name }) => name);
    for (const name of ['metrics', 'jobs', 'cpu_usage_percent', 'memory_used_bytes']) assert.ok(names.includes(name));
    const { points } = JSON.parse(await text('metrics:///jobs'));
    assert.deepEqual([points[0].value, points[1].value], [1, null]);
    assert.match(await text('metrics:///jobs?from=-2m&to=-45s&format=csv'), /^time,value,min,max,count\n.*,1\.0,1\n$/);
    const { series } = JSON.parse(await text('metrics:///'));
    assert.ok(series.find(({ name }) => name === 'memory_total_bytes').value > 1e6);
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'metrics:///{name}{?from,to,step,format}' },
      argument: { name: 'name', value: 'jo' },
    });
    assert.deepEqual(completion.values, ['jobs']);
    await assert.rejects(text('metrics:///none'), { code: -32602 });
    await assert.rejects(text('metrics:///jobs?format=xml'), { code: -32602, message: /format/ });

    if (era === 'modern') await client.listen({ resourceSubscriptions: ['metrics:///jobs'] });
    else await client.subscribeResource({ uri: 'metrics:///jobs' });
    assert.deepEqual(await once(heard, 'updated'), ['metrics:///jobs']);
  });
}

test('S-05: what cannot be pushed is named with what would be right', () => {
  const metrics = providers.metrics({ series: 1, interval: '1s' });
  metrics.push('a', 1);
  metrics.push('a', Number.POSITIVE_INFINITY, new Date());
  for (const [call, message] of [
    [() => metrics.push(5, 1), /the name is 5, expected a string/],
    [() => metrics.push('a', '1'), /a: the value is "1", expected a number/],
    [() => metrics.push('a', 1, 'now'), /a: the time is "now", expected a Date or milliseconds/],
    [() => metrics.push('a', 1, new Date('never')), /years 1 to 9999/],
    [() => metrics.push('', 1), /1 to 256 bytes/],
    [() => providers.metrics({ sample: 1 }), /did you mean "samples"/],
    [() => providers.metrics({ interval: true }), /interval is true, expected a time/],
    [() => providers.metrics({ interval: '1 fortnight' }), /interval is "1 fortnight"/],
    [() => providers.metrics({ points: 1 }), /points is 1, expected a whole number from 2/],
    [() => new providers.Metrics(), /made by a function/],
  ]) {
    assert.throws(call, (error) => error instanceof TypeError && message.test(error.message), String(call));
  }
  assert.throws(() => metrics.push('b', 1), /there are 1 series already; raise the option `series`/);
  assert.equal(metrics.refused, 1);
});
