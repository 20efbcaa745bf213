// Several systems at once, `mcp-resources serve --config` with files of `examples/`, asked by the official TypeScript client in both eras.
// `tests/python/test_systems.py` asks the same with the official Python client.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const COMMAND = fileURLToPath(new URL('../../bindings-node/dist/command.js', import.meta.url));
const EXAMPLES = fileURLToPath(new URL('../../examples', import.meta.url));
const GIT = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false'];
const PATIENCE = 30_000;

const ERAS = [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
];

/** A copy of the examples in a repository with one commit, gone with the test. */
function project(t) {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-systems-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const examples = join(folder, 'examples');
  cpSync(EXAMPLES, examples, { recursive: true, filter: (path) => !path.includes('.db') });
  const git = (...options) => execFileSync('git', [...GIT, ...options], { cwd: folder, stdio: 'ignore' });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'The first');
  return { examples, git };
}

/** A client of the command with a file of the examples. */
async function connected(t, config, mode) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [COMMAND, 'serve', '--config', config],
    env: { ...process.env, LANG: 'C.UTF-8', TZ: 'Asia/Tokyo', SECRET: 'hunter2-canary' },
  });
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  t.after(() => client.close());
  const contents = async (uri) => (await client.readResource({ uri })).contents;
  return { client, contents, text: async (uri) => (await contents(uri))[0].text };
}

/** Watches resources, changes them all, and waits until each was notified. */
async function updated(client, era, watched, change) {
  const missing = new Set(watched);
  const all = Promise.withResolvers?.() ?? withResolvers();
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
    missing.delete(params.uri);
    if (missing.size === 0) all.resolve();
  });
  if (era === 'modern') await client.listen({ resourceSubscriptions: watched });
  else for (const uri of watched) await client.subscribeResource({ uri });
  change();
  const late = setTimeout(() => all.reject(new Error(`no update of ${[...missing]}`)), PATIENCE);
  await all.promise;
  clearTimeout(late);
}

for (const [era, mode] of ERAS) {
  test(`S-01 to S-07: the official client, ${era}, lists, reads, searches and watches seven systems`, async (t) => {
    const { examples, git } = project(t);
    // The program that computes, beside the one that serves.
    const results = providers.results({ scheme: 'wallbounce', file: join(examples, 'wallbounce.db') });
    results.put('analysis-1', '{"verdict":"first"}', { mimeType: 'application/json' });
    const { client, contents, text } = await connected(t, join(examples, 'techsapo.yaml'), mode);

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
    await updated(client, era, watched, () => {
      writeFileSync(join(examples, 'data/project/src/main.ts'), 'export const answer = 43;\n');
      appendFileSync(join(examples, 'data/handbook/ja/サーバー再起動.md'), '\n## 追記\n\n再起動の後に確認します。\n');
      appendFileSync(join(examples, 'data/docs/guide.md'), '\nOne more line.\n');
      writeFileSync(join(examples, 'data/app.json'), '{"server": {"host": "::1", "port": 9090}}');
      git('commit', '--quiet', '--all', '--message', 'The second');
      results.put('analysis-1', '{"verdict":"second"}', { mimeType: 'application/json' });
    });
    assert.equal(await text('config:///app/server/port'), '9090');
    assert.match(await text('git:///techsapo/log'), /The second/);
  });

  test(`S-01, S-02, S-04, S-05, S-50 to S-57: the official client, ${era}, asks for the context of a project`, async (t) => {
    const { examples, git } = project(t);
    const { client, text } = await connected(t, join(examples, 'project.yaml'), mode);
    const { resources } = await client.listResources();
    const uris = resources.map(({ uri }) => uri);
    const schemes = new Set(uris.map((uri) => uri.split(':')[0]));
    assert.deepEqual(schemes, new Set(['file', 'git', 'config', 'env', 'metrics', 'skill']));

    const manifest = join(examples, 'data/skills/git-workflow/SKILL.md');
    const skill = 'skill://git-workflow/SKILL.md';
    assert.equal(await text('file:///project/src/main.ts'), 'export const answer = 42;\n');
    assert.match(await text('git:///project/log'), /The first/);
    assert.equal(JSON.parse(await text('git:///project/status')).clean, true);
    assert.equal(await text('config:///app/server/port'), '8080');
    assert.equal(await text('env:///TZ'), 'Asia/Tokyo');
    assert.equal(await text(skill), readFileSync(manifest, 'utf8'));
    const cpu = uris.find((uri) => uri.startsWith('metrics:///cpu'));
    assert.ok(JSON.parse(await text(cpu)).points.length > 0);

    const host = new SkillsClient(client);
    // The extension is one of 2026-07-28; before, the skills are resources.
    assert.equal(host.supported, era === 'modern');
    const verified = async () => {
      const { skills } = await host.list();
      assert.equal(skills.length, 2);
      for (const entry of skills) {
        assert.deepEqual((await host.get(entry.uri)).skill, entry);
        for (const { uri } of entry.resources) assert.ok((await host.read(entry, uri)).verified);
      }
      const { resources: children } = await host.readDirectory('skill://git-workflow');
      assert.deepEqual(
        children.map(({ uri }) => uri),
        [skill, 'skill://git-workflow/scripts'],
      );
    };
    if (era === 'modern') await verified();

    const watched = [
      'file:///project/src/main.ts',
      'git:///project/log',
      'git:///project/status',
      'config:///app/server/port',
      skill,
      cpu,
    ];
    await updated(client, era, watched, () => {
      writeFileSync(join(examples, 'data/project/src/main.ts'), 'export const answer = 43;\n');
      git('commit', '--quiet', '--all', '--message', 'The second');
      writeFileSync(join(examples, 'data/app.json'), '{"server": {"port": 9090}}');
      appendFileSync(manifest, '\nOne more line.\n');
    });
    assert.equal(await text('config:///app/server/port'), '9090');
    assert.match(await text('git:///project/log'), /The second/);
    assert.match(await text(skill), /One more line\./);
    if (era === 'modern') await verified();
  });
}

/** `Promise.withResolvers`, which Node 20 does not have. */
function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}
