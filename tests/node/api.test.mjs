// Endpoints of an HTTP API, asked by the official TypeScript client in both eras (S-20).
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const SERVER = fileURLToPath(new URL('./api-server.mjs', import.meta.url));
const PLANTED = 'hunter2-canary';
const ITEM = 'api:///shop/someItem/7';

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-20: the official client, ${era}, lists, reads, completes and watches`, async (t) => {
    const upstream = { price: 1, asked: [] };
    const http = createServer((request, response) => {
      upstream.asked.push(request.headers.authorization);
      response.writeHead(request.url === '/items/7' ? 200 : 404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ data: { price: upstream.price }, debug: PLANTED }));
    });
    await once(http.listen(0, '127.0.0.1'), 'listening');
    t.after(() => http.close());
    const env = { ...process.env, SHOP_TOKEN: PLANTED };
    const args = [SERVER, String(http.address().port)];
    const transport = new StdioClientTransport({ command: process.execPath, args, env });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const heard = new EventEmitter();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.emit('updated', params.uri));
    await client.connect(transport);
    t.after(() => client.close());

    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      ['api:///', 'api:///shop/someItem', ITEM],
    );
    const text = async (uri) => (await client.readResource({ uri })).contents[0].text;
    assert.deepEqual(JSON.parse(await text(ITEM)), { price: 1 });
    await assert.rejects(text('api:///shop/someItem/8'), (error) => !String(error.message).includes(PLANTED));
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'api:///{name}/{endpoint}/{+id}' },
      argument: { name: 'endpoint', value: 's' },
    });
    assert.deepEqual(completion.values, ['someItem']);
    if (era === 'modern') await client.listen({ resourceSubscriptions: [ITEM] });
    else await client.subscribeResource({ uri: ITEM });
    const updated = once(heard, 'updated');
    await setTimeout(1000);
    upstream.price = 2;
    assert.deepEqual(await updated, [ITEM]);
    assert.deepEqual(JSON.parse(await text(ITEM)), { price: 2 });
    assert.deepEqual(new Set(upstream.asked), new Set([PLANTED]));
  });
}

test('S-20: wrong options are named with what would be right', () => {
  const item = { url: 'https://host/{id}' };
  const api = (endpoint, options) => () => providers.api({ shop: { endpoints: { item: endpoint } } }, options);
  for (const [call, message] of [
    [api('ftp://host/'), /begins neither with https/],
    [api({ ...item, pic: '/a' }), /did you mean "pick"/],
    [api({ ...item, headers: { 'X-Key': { env: 'NO_SUCH_VARIABLE' } } }), /the header X-Key comes from .* not set/],
    [api(item, { poll: {} }), /a time such as/],
    [api(item, { redirect: 1 }), /did you mean "redirects"/],
    [() => providers.api('shop'), /api\(\) takes APIs by name/],
    [() => providers.api({}), /there is no endpoint/],
    [() => providers.api({ shop: { baseUrl: 'https://h' } }), /it has allow, base_url or headers without a document/],
    [() => providers.api({ shop: { opnapi: 'shop.yaml' } }), /did you mean "openapi"/],
    [() => providers.api({ shop: { openapi: 'none.yaml', allow: 'GET /a' } }), /none\.yaml does not exist/],
    [() => providers.api({ shop: { openapi: 'none.yaml', headers: { 'X-Key': 1 } } }), /the header X-Key has neither/],
  ]) {
    assert.throws(call, (error) => error instanceof TypeError && message.test(error.message), String(call));
  }
});
