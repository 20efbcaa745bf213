// Documentation, asked by the official TypeScript client in both eras (S-07).
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const SERVER = fileURLToPath(new URL('./docs-server.mjs', import.meta.url));
const page = (text) =>
  `---\ntitle: 検索\npriority: 0.9\nlang: ja\n---\n# 検索\n\n## 設定\n\n${text}\n\n## API\n\nJSON\n`;

/** A site of the test's own. */
function site(t) {
  const path = mkdtempSync(join(tmpdir(), 'mcp-docs-'));
  t.after(() => rmSync(path, { recursive: true }));
  mkdirSync(join(path, 'drafts'));
  writeFileSync(join(path, 'search.md'), page('one'));
  writeFileSync(join(path, 'drafts', 'x.md'), '# Draft\n\nJSON\n');
  return path;
}

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-07: the official client, ${era}, lists, reads, completes, searches and watches`, async (t) => {
    const path = site(t);
    const transport = new StdioClientTransport({ command: process.execPath, args: [SERVER, path] });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const heard = new EventEmitter();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.emit('updated', params.uri));
    await client.connect(transport);
    t.after(() => client.close());
    const text = async (uri) => (await client.readResource({ uri })).contents[0].text;

    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      ['docs:///', 'docs:///book/', 'docs:///book/search.md'],
    );
    assert.equal(resources[2].title, '検索');
    const section = `docs:///book/search.md#${encodeURIComponent('設定')}`;
    assert.equal(await text(section), '## 設定\n\none\n\n');
    const { hits } = JSON.parse(await text('docs:///book/search/json'));
    assert.deepEqual(
      hits.map(({ uri, title, snippet }) => [uri, title, snippet]),
      [['docs:///book/search.md#api', '検索', '**JSON**']],
    );
    await assert.rejects(text('docs:///book/drafts/x.md'), { code: -32602 });
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'docs:///{site}/{+page}' },
      argument: { name: 'page', value: 's' },
    });
    assert.deepEqual(completion.values, ['search.md']);

    if (era === 'modern') await client.listen({ resourceSubscriptions: [section] });
    else await client.subscribeResource({ uri: section });
    const updated = once(heard, 'updated');
    writeFileSync(join(path, 'search.md'), page('changed'));
    assert.deepEqual(await updated, [section]);
    assert.equal(await text(section), '## 設定\n\nchanged\n\n');
  });
}

test('S-07: wrong options are named with what would be right', (t) => {
  const path = site(t);
  for (const [call, message] of [
    [() => providers.docs(path, { includes: ['a'] }), /includes/],
    [() => providers.docs(5), /docs.sites is 5, expected a directory, a list of them/],
    [() => providers.docs({ a: 'none' }), /does not exist/],
    [() => providers.docs(path, { listMax: 'many' }), /many/],
    [() => providers.docs(path, { index: path }), /is no file/],
  ]) {
    assert.throws(call, (error) => error instanceof TypeError && message.test(error.message), String(call));
  }
});
