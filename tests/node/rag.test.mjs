// Documents through retrieval, asked by the official TypeScript client in both eras (S-03).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const SERVER = fileURLToPath(new URL('./rag-server.mjs', import.meta.url));

/** A folder of the test's own. */
function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'mcp-rag-'));
  t.after(() => rmSync(path, { recursive: true }));
  writeFileSync(
    join(path, 'backup.md'),
    '# Backups\n\nEvery Sunday.\n\n## Restore\n\nRestore into an empty cluster.\n',
  );
  return path;
}

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-03: the official client, ${era}, lists, reads and finds passages`, async (t) => {
    const transport = new StdioClientTransport({ command: process.execPath, args: [SERVER, folder(t)] });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    await client.connect(transport);
    t.after(() => client.close());
    const { resources } = await client.listResources();
    const uri = 'rag:///kb/doc/backup.md';
    assert.deepEqual(
      resources.map((resource) => resource.uri),
      ['rag:///', 'rag:///kb/', uri],
    );
    const { contents } = await client.readResource({ uri: 'rag:///kb/search/cluster' });
    assert.deepEqual(
      contents.map((content) => [content.uri, content.text, content._meta.position, content._meta.ranking]),
      [[uri, 'Restore into an empty cluster.', 1, 'bm25']],
    );
    await assert.rejects(client.readResource({ uri: 'rag:///kb/doc/none.md' }), { code: -32602 });
  });
}

test('S-03: wrong options are named with what would be right', (t) => {
  const path = folder(t);
  for (const [call, message] of [
    [() => providers.rag({ kb: path }, { includes: ['a'] }), /includes/],
    [() => providers.rag(path), /rag\(\) takes collections by their names/],
    [() => providers.rag({ kb: { folder: 'none' } }), /does not exist/],
    [() => providers.rag({ kb: { folders: path } }), /did you mean "folder"/],
    [() => providers.rag({ kb: path }, { hits: 0 }), /hits is 0/],
  ]) {
    assert.throws(call, (error) => error instanceof TypeError && message.test(error.message), String(call));
  }
});
