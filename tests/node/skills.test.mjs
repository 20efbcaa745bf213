// Folders of skills, asked and verified by the official TypeScript client of the skills extension, in both eras.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { SkillsClient, SkillVerificationError } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers, ResourceServer } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const SERVER = fileURLToPath(new URL('./skills-server.mjs', import.meta.url));
const DATA = fileURLToPath(new URL('../../examples/data/skills', import.meta.url));
const REFUNDS = 'skill://acme/billing/refunds';

/** A copy of the skills of the examples, gone with the test. */
function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'mcp-skills-'));
  t.after(() => rmSync(path, { recursive: true }));
  cpSync(DATA, path, { recursive: true });
  return path;
}

async function connected(t, path, mode) {
  const transport = new StdioClientTransport({ command: process.execPath, args: [SERVER, path] });
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  t.after(() => client.close());
  return client;
}

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-50, S-51, S-52, S-54, S-56: the official client, ${era}, lists, gets, reads and verifies`, async (t) => {
    const path = folder(t);
    mkdirSync(join(path, 'git-workflow', 'empty'));
    const client = await connected(t, path, mode);
    const host = new SkillsClient(client);
    const { resources } = await client.listResources();
    assert.ok(resources.some(({ uri, name }) => uri === `${REFUNDS}/SKILL.md` && name === 'refunds'));
    // The extension is one of 2026-07-28; before, the skills are resources.
    assert.equal(host.supported, era === 'modern');
    if (era === 'legacy') return;
    assert.ok(host.directoryRead);
    const { skills } = await host.list();
    assert.deepEqual(
      skills.map(({ uri }) => uri),
      [`${REFUNDS}/SKILL.md`, 'skill://git-workflow/SKILL.md'],
    );
    for (const skill of skills) {
      assert.deepEqual((await host.get(skill.uri)).skill, skill);
      const manifest = await host.read(skill);
      assert.deepEqual(manifest.frontmatter, skill.frontmatter);
      for (const { uri, digest, size } of skill.resources) {
        const file = await host.read(skill, uri);
        assert.ok(file.verified);
        const bytes = readFileSync(join(path, decodeURIComponent(uri.slice('skill://'.length))));
        assert.equal(digest, `sha256:${createHash('sha256').update(bytes).digest('hex')}`);
        assert.equal(size, bytes.length);
        assert.deepEqual(Buffer.from(file.bytes), bytes);
      }
    }
    const names = async (uri) => (await host.readDirectory(uri)).resources.map(({ uri }) => uri);
    assert.deepEqual(await names(`${REFUNDS}/templates`), [
      `${REFUNDS}/templates/default.md`,
      `${REFUNDS}/templates/regional`,
    ]);
    assert.deepEqual(await names('skill://git-workflow/empty'), []);
    await assert.rejects(names(`${REFUNDS}/SKILL.md`), { code: -32602 });
    await assert.rejects(host.get('skill://none/SKILL.md'), { code: -32602 });
  });
}

test('S-54: a file that changes after its entry fails verification until the entry is asked for again', async (t) => {
  const path = folder(t);
  const host = new SkillsClient(await connected(t, path, { pin: MODERN }));
  const { skill } = await host.get(`${REFUNDS}/SKILL.md`);
  writeFileSync(join(path, 'acme/billing/refunds/examples/email.md'), 'changed');
  writeFileSync(join(path, 'acme/billing/refunds/new.md'), 'new');
  await assert.rejects(host.read(skill, 'examples/email.md'), SkillVerificationError);
  await assert.rejects(host.read(skill, 'new.md'), { reason: 'unlisted' });
  const { skill: again } = await host.get(skill.uri);
  assert.equal((await host.read(again, 'examples/email.md')).text, 'changed');
  assert.equal((await host.read(again, 'new.md')).text, 'new');
});

test('S-59: the official client hears that the list has changed', async (t) => {
  const path = folder(t);
  const client = await connected(t, path, { pin: MODERN });
  const heard = new EventTarget();
  client.setNotificationHandler('notifications/resources/list_changed', () => heard.dispatchEvent(new Event('list')));
  const first = once(heard, 'list');
  await client.listen({ resourcesListChanged: true });
  await first;
  const changed = once(heard, 'list');
  mkdirSync(join(path, 'late'));
  writeFileSync(join(path, 'late', 'SKILL.md'), '---\nname: late\ndescription: Late\n---\n');
  await changed;
  assert.equal((await new SkillsClient(client).list()).skills.length, 3);
});

test('S-50: wrong options are refused with the fix', () => {
  const { skills } = providers;
  assert.throws(() => skills('none'), /skills: the directory none does not exist/);
  assert.throws(() => skills(7), /skills.paths is 7, expected a directory, a list of them/);
  assert.throws(() => skills(DATA, { list_max: 1 }), /listMax/);
  assert.throws(() => skills({ 'a//b': DATA }), /"a\/\/b" is no prefix/);
  const server = new ResourceServer({ name: 'skills', version: '1' });
  const provider = skills({ 'acme/x': DATA }, { exclude: ['git-workflow'], listMax: 1, watch: false });
  server.mount(provider);
  assert.throws(() => server.mount(skills(DATA)), /the mount skills has it/);
  server.unmount(provider);
  server.mount(skills(DATA));
});
