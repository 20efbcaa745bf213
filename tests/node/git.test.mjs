// Git repositories, asked by the official TypeScript client in both eras (S-02). They are made with the git program.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
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

const SERVER = fileURLToPath(new URL('./git-server.mjs', import.meta.url));
const IDENTITY = {
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'a@b',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'a@b',
};
const env = { ...process.env, ...IDENTITY, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };

/** A repository of the test's own. */
function repository(t) {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-git-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const git = (...words) => execFileSync('git', words, { cwd: folder, env, encoding: 'utf8' });
  const commit = (text, message) => {
    writeFileSync(join(folder, 'a.txt'), text);
    writeFileSync(join(folder, 'secret'), `CANARY ${text}`);
    git('add', '-A');
    git('commit', '-q', '-m', message);
  };
  git('init', '-q', '-b', 'main');
  commit('one\n', 'First');
  git('branch', 'feature/x');
  commit('two\n', 'Second');
  return { folder, commit };
}

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-02: the official client, ${era}, lists, reads, completes and watches`, async (t) => {
    const { folder, commit } = repository(t);
    const transport = new StdioClientTransport({ command: process.execPath, args: [SERVER, folder], env });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const heard = new EventEmitter();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.emit('updated', params.uri));
    await client.connect(transport);
    t.after(() => client.close());
    const text = async (uri) => (await client.readResource({ uri })).contents[0].text;

    const { resources } = await client.listResources();
    const uris = resources.map(({ uri }) => uri);
    for (const rest of ['status', 'branches', 'tags', 'log', 'log/feature~2Fx', 'tree/HEAD/']) {
      assert.ok(uris.includes(`git:///app/${rest}`), rest);
    }
    const texts = await Promise.all(uris.map(text));
    const diff = await text('git:///app/diff/feature~2Fx/main');
    assert.match(diff, /-one\n\+two\n/);
    assert.ok(!JSON.stringify([resources, texts, diff]).includes('secret'));
    const subjects = async () => JSON.parse(await text('git:///app/log')).commits.map(({ subject }) => subject);
    assert.deepEqual(await subjects(), ['Second', 'First']);
    assert.equal(await text('git:///app/blob/HEAD~1/a.txt'), 'one\n');
    for (const rest of ['blob/main/secret', 'blob/main/none', 'log/none', 'log/--output=x']) {
      await assert.rejects(text(`git:///app/${rest}`), { code: -32602 });
    }
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'git:///{repo}/blob/{ref}/{+path}' },
      argument: { name: 'path', value: '' },
      context: { arguments: { repo: 'app', ref: 'feature~2Fx' } },
    });
    assert.deepEqual(completion.values, ['a.txt']);

    const watched = ['git:///app/tags', 'git:///app/log'];
    await Promise.all(watched.map(text));
    if (era === 'modern') await client.listen({ resourceSubscriptions: watched });
    else for (const uri of watched) await client.subscribeResource({ uri });
    const updated = once(heard, 'updated');
    commit('three\n', 'Third');
    assert.deepEqual(await updated, [watched[1]]);
    assert.deepEqual(await subjects(), ['Third', 'Second', 'First']);
  });
}

test('S-02: wrong options are named with what would be right', (t) => {
  const { folder } = repository(t);
  for (const [call, message] of [
    [() => providers.git(folder, { log_max: 5 }), /logMax/],
    [
      () => providers.git(folder, { diffBytes: true }),
      /git.diffBytes is true, expected a size such as "64 MiB", or a whole number of bytes/,
    ],
    [() => providers.git(folder, { refs: ['../x'] }), /no folder of refs/],
    [() => providers.git(5), /git.repos is 5, expected a directory, a list of them/],
    [() => providers.git({ a: tmpdir() }), /is not the root of a git repository/],
  ]) {
    assert.throws(call, (error) => error instanceof TypeError && message.test(error.message), String(call));
  }
});
