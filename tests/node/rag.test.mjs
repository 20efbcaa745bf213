// Documents through retrieval, asked by the official TypeScript client in both eras (S-03).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers, ResourceServer } from 'mcp-resources';
import { Client as TestClient } from 'mcp-resources/testing';
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

/** Asks a server in this process. */
async function ranked(t, embedder, question) {
  const logged = [];
  const keep = (...values) => logged.push(values.join(' '));
  const logger = { ...console, warn: keep, error: keep };
  const server = new ResourceServer({ name: 'rag', version: '1' }, { logger });
  server.mount(providers.rag({ kb: folder(t) }, { embedder }));
  const client = await TestClient.connect(server);
  const contents = await client.read(`rag:///kb/search/${question}`);
  await client.close();
  const hits = contents.filter(({ meta }) => 'score' in meta);
  return { hits: hits.map(({ body, meta }) => [body, meta.ranking]), logged: logged.join('\n') };
}

/** Words that begin alike are alike. */
function vector(text) {
  const made = new Float32Array(64);
  for (const word of text.toLowerCase().match(/\w+/g)) {
    const place = [...word.slice(0, 4)].reduce((sum, char) => sum * 31 + char.charCodeAt(0), 0);
    made[place % 64] += 1;
  }
  return made;
}

test('S-03: an embedder finds what has no word of the question', async (t) => {
  const restore = ['Restore into an empty cluster.', 'bm25+vectors'];
  for (const embedder of [(texts) => texts.map(vector), async (texts) => texts.map((text) => [...vector(text)])]) {
    assert.deepEqual((await ranked(t, embedder, 'restoring')).hits[0], restore);
  }
  assert.deepEqual((await ranked(t, undefined, 'restoring')).hits, []);
});

test('S-03: an embedder that fails leaves the words', async (t) => {
  for (const [embedder, message] of [
    [() => Promise.reject(new Error('the model is away')), /a question has no vector: Error: the model is away/],
    [() => 5, /the embedder returned 5, expected an array of vectors/],
  ]) {
    const { hits, logged } = await ranked(t, embedder, 'cluster');
    assert.deepEqual(hits, [['Restore into an empty cluster.', 'bm25']]);
    assert.match(logged, message);
  }
  assert.throws(() => providers.rag({}, { embedder: 5 }), /embedder/);
});
