// Configuration and environment, asked by the official TypeScript client in both eras (S-04).
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const SERVER = fileURLToPath(new URL('./config-server.mjs', import.meta.url));
const PLANTED = 'hunter2-canary';
const toml = (port) =>
  `hidden = "${PLANTED}"\n[server]\nport = ${port}\nhost = "a"\npassword = "${PLANTED}"\npublic_key = "shown"\n`;

/** A folder of the test's own. */
function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'mcp-config-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-04: the official client, ${era}, lists, reads, completes and watches`, async (t) => {
    const file = join(folder(t), 'app.toml');
    writeFileSync(file, toml(8080));
    const env = { ...process.env, TZ: 'Asia/Tokyo', PLANTED_TOKEN: PLANTED, PLANTED_OTHER: PLANTED };
    const transport = new StdioClientTransport({ command: process.execPath, args: [SERVER, file], env });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const heard = new EventEmitter();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.emit('updated', params.uri));
    await client.connect(transport);
    t.after(() => client.close());
    const text = async (uri) => (await client.readResource({ uri })).contents[0].text;

    const keys = ['host', 'password', 'port', 'public_key'].map((key) => `config:///demo/server/${key}`);
    const { resources } = await client.listResources();
    const uris = resources.map(({ uri }) => uri);
    assert.deepEqual(
      new Set(uris),
      new Set([
        'config:///',
        'config:///demo',
        'config:///demo/server',
        ...keys,
        'env:///',
        'env:///PLANTED_TOKEN',
        'env:///TZ',
      ]),
    );
    const texts = await Promise.all(uris.map(text));
    assert.ok(!JSON.stringify([resources, texts]).includes(PLANTED));
    assert.equal(await text('config:///demo/server/public_key'), 'shown');
    assert.equal(await text('config:///demo/server/password'), '[redacted:key-name]');
    assert.equal(await text('env:///TZ'), 'Asia/Tokyo');
    for (const uri of ['config:///demo/hidden', 'config:///demo/none', 'env:///PLANTED_OTHER', 'env:///PATH']) {
      await assert.rejects(text(uri), { code: -32602 });
    }
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'config:///{app}/{+key}' },
      argument: { name: 'key', value: 'server/p' },
    });
    assert.deepEqual(completion.values, ['server/password', 'server/port', 'server/public_key']);

    const watched = ['config:///demo/server/host', 'config:///demo/server/port'];
    if (era === 'modern') await client.listen({ resourceSubscriptions: watched });
    else for (const uri of watched) await client.subscribeResource({ uri });
    const updated = once(heard, 'updated');
    writeFileSync(file, toml(9090));
    assert.deepEqual(await updated, [watched[1]]);
    assert.equal(await text(watched[1]), '9090');
  });
}

test('S-04: wrong options are named with what would be right', (t) => {
  const file = join(folder(t), 'app.toml');
  writeFileSync(file, toml(1));
  for (const [call, message] of [
    [() => providers.config(file, { allow: ['a'], reveals: [] }), /reveals/],
    [() => providers.config(file), /nothing of .* is allowed/],
    [() => providers.config(5, { allow: ['a'] }), /config.apps is 5, expected a file, a list of them/],
    [() => providers.config({ a: 'none.toml' }, { allow: 'a' }), /does not exist/],
    [() => providers.env({ allow: 5 }), /env.allow is 5, expected a name or a list of names/],
    [() => providers.env(), /nothing is allowed/],
    [() => providers.env({ allow: ['A'], redact: ['jwtt'] }), /did you mean "jwt"/],
  ]) {
    assert.throws(call, (error) => error instanceof TypeError && message.test(error.message), String(call));
  }
});
