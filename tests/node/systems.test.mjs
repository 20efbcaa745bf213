// Seven systems at once, `mcp-resources serve --config examples/techsapo.yaml`, asked by the official TypeScript client in both eras.
// `tests/python/test_systems.py` asks the same with the official Python client.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const COMMAND = fileURLToPath(new URL('../../bindings-node/dist/command.js', import.meta.url));
const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));
const GIT = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false'];
const PATIENCE = 30_000;

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-01 to S-07: the official client, ${era}, lists, reads, searches and watches seven systems`, async (t) => {
    const project = mkdtempSync(join(tmpdir(), 'mcp-systems-'));
    t.after(() => rmSync(project, { recursive: true }));
    const examples = join(project, 'examples');
    cpSync(EXAMPLES, examples, { recursive: true, filter: (path) => !path.includes('.db') });
    const git = (...options) => execFileSync('git', [...GIT, ...options], { cwd: project, stdio: 'ignore' });
    git('init', '--quiet', '--initial-branch=main');
    git('add', '--all');
    git('commit', '--quiet', '--message', 'The first');
    // The program that computes, beside the one that serves.
    const results = providers.results({ scheme: 'wallbounce', file: join(examples, 'wallbounce.db') });
    results.put('analysis-1', '{"verdict":"first"}', { mimeType: 'application/json' });

    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [COMMAND, 'serve', '--config', join(examples, 'techsapo.yaml')],
      env: { ...process.env, LANG: 'C.UTF-8', TZ: 'Asia/Tokyo', SECRET: 'hunter2-canary' },
    });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const missing = new Set();
    const all = Promise.withResolvers?.() ?? withResolvers();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
      missing.delete(params.uri);
      if (missing.size === 0) all.resolve();
    });
    await client.connect(transport);
    t.after(() => client.close());
    const contents = async (uri) => (await client.readResource({ uri })).contents;
    const text = async (uri) => (await contents(uri))[0].text;

    const { resources } = await client.listResources();
    const uris = resources.map(({ uri }) => uri);
    const schemes = new Set(uris.map((uri) => uri.split(':')[0]));
    assert.deepEqual(schemes, new Set(['file', 'git', 'rag', 'config', 'env', 'metrics', 'wallbounce', 'docs']));
    const pages = resources.filter(({ uri }) => uri.startsWith('docs:///handbook/'));
    // A page without a priority is in the middle.
    const priorities = pages.map(({ annotations }) => annotations?.priority ?? 0.5);
    assert.deepEqual(
      priorities,
      priorities.toSorted((a, b) => b - a),
    );

    assert.equal(await text('file:///project/src/main.ts'), 'export const answer = 42;\n');
    assert.match(await text('git:///techsapo/log'), /The first/);
    assert.equal(await text('config:///app/server/port'), '8080');
    assert.equal(await text('env:///TZ'), 'Asia/Tokyo');
    assert.deepEqual(JSON.parse(await text('wallbounce:///analysis-1')), { verdict: 'first' });
    const cpu = uris.find((uri) => uri.startsWith('metrics:///cpu'));
    assert.ok(JSON.parse(await text(cpu)).points.length > 0);

    const { hits } = JSON.parse(await text('docs:///handbook/search/再起動'));
    assert.ok(hits.length > 0);
    const chunks = await contents('rag:///kb/search/用語');
    assert.ok(chunks.some(({ uri }) => uri.startsWith('rag:///kb/doc/')));

    const page = pages.find(({ title }) => title === 'サーバーの再起動').uri;
    const document = uris.find((uri) => uri.startsWith('rag:///kb/doc/') && uri.includes('guide'));
    const watched = [
      'file:///project/src/main.ts',
      'git:///techsapo/log',
      document,
      'config:///app/server/port',
      cpu,
      'wallbounce:///analysis-1',
      page,
    ];
    for (const uri of watched) missing.add(uri);
    if (era === 'modern') await client.listen({ resourceSubscriptions: watched });
    else for (const uri of watched) await client.subscribeResource({ uri });
    writeFileSync(join(examples, 'data/project/src/main.ts'), 'export const answer = 43;\n');
    appendFileSync(join(examples, 'data/handbook/ja/サーバー再起動.md'), '\n## 追記\n\n再起動の後に確認します。\n');
    appendFileSync(join(examples, 'data/docs/guide.md'), '\nOne more line.\n');
    writeFileSync(join(examples, 'data/app.json'), '{"server": {"host": "::1", "port": 9090}}');
    git('commit', '--quiet', '--all', '--message', 'The second');
    results.put('analysis-1', '{"verdict":"second"}', { mimeType: 'application/json' });
    const late = setTimeout(() => all.reject(new Error(`no update of ${[...missing]}`)), PATIENCE);
    await all.promise;
    clearTimeout(late);
    assert.equal(await text('config:///app/server/port'), '9090');
    assert.match(await text('git:///techsapo/log'), /The second/);
  });
}

/** `Promise.withResolvers`, which Node 20 does not have. */
function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}
