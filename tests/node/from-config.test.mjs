// `ResourceServer.fromConfig`: a server from the file of `mcp-resources serve`, and further registrations in code.
import assert from 'node:assert/strict';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { providers, RegistrationError, ResourceServer, StaticTokens } from 'mcp-resources';
import { Client } from 'mcp-resources/testing';
import { failure } from './helpers.mjs';
import { answer, Caller, WAYS } from './web.mjs';

const FIXTURES = fileURLToPath(new URL('../fixtures/serve/', import.meta.url));
const fixture = (name) => JSON.parse(readFileSync(join(FIXTURES, name), 'utf8'));
const TEAM = fixture('team.json');
const WRONG = fixture('wrong.json');
const PATIENCE = 20_000;

/** A folder of the test's own. */
function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'mcp-from-config-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** A copy of the shared file. */
function team(t) {
  const path = join(folder(t), 'team');
  cpSync(join(FIXTURES, 'team'), path, { recursive: true });
  chmodSync(join(path, 'tokens.yaml'), 0o600);
  return join(path, 'team.yaml');
}

/** A client of a person. */
async function person(t, server, name) {
  const groups = { alice: ['operations'], bob: [] }[name];
  const client = await Client.connect(server, { principal: name, claims: { groups } });
  t.after(() => client.close());
  return client;
}

const uris = async (client) => (await client.listResources()).map(({ uri }) => uri).sort();

/** Waits until something is so. */
async function becomes(wanted, look) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await look();
    if (JSON.stringify(found) === JSON.stringify(wanted)) return;
    assert.ok(Date.now() < end, JSON.stringify(found));
    await sleep(50);
  }
}

/** What the holder of a token sees, or the status. */
async function lists(caller, token) {
  const response = await caller.send('resources/list', {}, { token });
  const { result } = await answer(response);
  return response.status === 200 ? result.resources.map(({ uri }) => uri).sort() : response.status;
}

for (const [name, way] of Object.entries(WAYS)) {
  test(`S-20: sources, for, guard, tokens and paths are those of the file: ${name}`, async (t) => {
    const server = ResourceServer.fromConfig(team(t));
    assert.equal(server.name, TEAM.name);
    await way(server, {}, async (served) => {
      const caller = new Caller(served.url.replace(/\/mcp$/, '/team'), served.ask);
      for (const [who, wanted] of Object.entries(TEAM.sees)) {
        assert.deepEqual(await lists(caller, TEAM.tokens[who]), wanted);
      }
      assert.equal(await lists(caller, 'mcpr_another'), 401);
    });
  });
}

test('S-20: resources, tools, providers and the lifespan in code stand beside the sources of the file', async (t) => {
  const server = ResourceServer.fromConfig(team(t), { onStart: async () => 'started' });
  server
    .resource('note://{owner}/{id}', ({ owner, id }, ctx) => `${id} of ${owner}, ${ctx.lifespan}`)
    .access((principal, { owner }) => principal === owner);
  server.resource('x://drafts/one', () => 'not for bob');
  server.tool('add', ({ a, b }) => String(a + b));
  const memory = providers.memory();
  memory.put('today.md', 'Rain');
  server.mount(memory);
  const alice = await person(t, server, 'alice');
  const bob = await person(t, server, 'bob');
  assert.equal(await alice.readText('note://alice/7'), '7 of alice, started');
  assert.equal(await alice.readText('memory:///today.md'), 'Rain');
  assert.equal(await alice.readText('config:///app/server/port'), '8080');
  assert.equal(await alice.readText('x://drafts/one'), 'not for bob');
  for (const hidden of ['note://alice/7', 'config:///app/server/port', 'x://drafts/one']) {
    assert.match((await failure(bob.read(hidden))).message, /not found/);
  }
  const { content } = await bob.request('tools/call', { name: 'add', arguments: { a: 1, b: 2 } });
  assert.equal(content[0].text, '3');
});

test('S-20: a change of the file takes effect in open sessions, and a mistake changes nothing', async (t) => {
  const path = team(t);
  const warned = [];
  const logger = { warn: (text) => warned.push(text), error: (text) => warned.push(text) };
  const server = ResourceServer.fromConfig(path, { logger });
  const alice = await person(t, server, 'alice');
  const bob = await person(t, server, 'bob');
  assert.deepEqual([await uris(alice), await uris(bob)], [TEAM.sees.alice, TEAM.sees.bob]);
  const text = readFileSync(path, 'utf8');
  const changed = text.replace(TEAM.change.from, TEAM.change.to);
  assert.notEqual(changed, text);
  writeFileSync(path, changed);
  await becomes(TEAM.sees_then.alice, () => uris(alice));
  await becomes(TEAM.sees_then.bob, () => uris(bob));
  writeFileSync(path, changed.replace('guard:', 'gard:'));
  await becomes(1, async () => {
    await uris(bob); // messages go to the runtime of a client
    return warned.filter((one) => one.includes('unexpected key "gard"')).length;
  });
  assert.deepEqual(await uris(bob), TEAM.sees_then.bob);
});

test('S-20: the file of tokens is read again, whether or not the document is watched', async (t) => {
  const path = team(t);
  const tokens = path.replace('team.yaml', 'tokens.yaml');
  const server = ResourceServer.fromConfig(path, { watch: false });
  await WAYS.run(server, {}, async (served) => {
    const caller = new Caller(served.url, served.ask);
    assert.deepEqual(await lists(caller, TEAM.tokens.bob), TEAM.sees.bob);
    writeFileSync(path, readFileSync(path, 'utf8').replace(TEAM.change.from, TEAM.change.to));
    const lines = readFileSync(tokens, 'utf8').split('\n');
    writeFileSync(tokens, lines.filter((line) => !line.includes('"bob"')).join('\n'));
    await becomes(401, () => lists(caller, TEAM.tokens.bob));
    assert.deepEqual(await lists(caller, TEAM.tokens.alice), TEAM.sees.alice);
  });
});

for (const [name, way] of Object.entries(WAYS)) {
  test(`options of a call replace those of the file: ${name}`, async (t) => {
    const server = ResourceServer.fromConfig(team(t), { limits: { page: 2 } });
    const verify = new StaticTokens({ own: { subject: 'bob' } });
    const auth = { resource: 'http://localhost/own', authorizationServers: ['https://id.example.com'], verify };
    await way(server, { auth, path: '/own' }, async (served) => {
      const caller = new Caller(served.url.replace(/\/mcp$/, '/own'), served.ask);
      assert.deepEqual(await lists(caller, 'own'), TEAM.sees.bob.slice(0, 2));
      assert.equal(await lists(caller, TEAM.tokens.bob), 401);
    });
  });
}

test('some options stand in the file alone', (t) => {
  const path = team(t);
  for (const options of [{ guard: { deny: '**' } }, { instructions: 'x' }, { title: 'x' }]) {
    const [name] = Object.keys(options);
    const said = new RegExp(`${name} stands in the configuration file`);
    assert.throws(() => ResourceServer.fromConfig(path, options), said);
  }
  assert.throws(() => ResourceServer.fromConfig(path, { limit: {} }), /did you mean "limits"/);
  assert.throws(() => ResourceServer.fromConfig(path, { watch: 1 }), /watch is 1, expected/);
  assert.throws(() => ResourceServer.fromConfig(7), /path is 7, expected a string/);
  assert.throws(() => ResourceServer.fromConfig(join(path, 'none')), RegistrationError);
});

for (const { file, message } of WRONG.files) {
  test(`S-20: a wrong file is the sentence of serve --check: ${message.slice(0, 40)}`, (t) => {
    const own = folder(t);
    mkdirSync(join(own, 'project'));
    writeFileSync(join(own, 'tokens.yaml'), '- {name: alice, token: secret}\n');
    const path = join(own, 'serve.json');
    writeFileSync(path, JSON.stringify({ providers: WRONG.providers, ...file }));
    const said = `${path}: ${message.replace('FOLDER', own)}`;
    assert.throws(() => ResourceServer.fromConfig(path), { name: 'RegistrationError', message: said });
  });
}

test('S-20: identity needs the sockets of the server itself', async (t) => {
  const path = team(t);
  const text = readFileSync(path, 'utf8').replace(
    'tokens: tokens.yaml',
    'identity: {header: X-User, from: ["127.0.0.1"]}',
  );
  writeFileSync(path, text);
  const server = ResourceServer.fromConfig(path);
  for (const make of ['nodeHandler', 'fetchHandler']) {
    assert.throws(() => server[make](), /team.yaml: auth.identity needs a server with sockets of its own/);
  }
  await WAYS.run(server, {}, async (served) => {
    assert.equal(await lists(new Caller(served.url, served.ask)), 401);
  });
});
