// The guard: the shared cases, the option in its forms, and what a client over HTTP is told.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { Contents, Guard, RegistrationError, ResourceServer } from 'mcp-resources';
import guard from './run-guard.js';
import { ROOT } from './vectors.mjs';
import { answer, request, WAYS } from './web.mjs';

const HIDDEN = { deny: ['**/secret', 'hidden://**'] };

for (const [name, least] of [
  ['globs', 60],
  ['decisions', 60],
  ['hostile', 300],
]) {
  test(`the shared cases: ${name} (S-11, S-12, S-18, S-19)`, () => {
    const file = path.join(ROOT, 'tests/fixtures/guard', `${name}.json`);
    const { passed, failures } = guard.run(JSON.parse(readFileSync(file, 'utf8')).cases);
    assert.deepEqual(failures, []);
    assert.ok(passed > least, `${passed}`);
  });
}

test('a wrong expectation is a failure', () => {
  for (const wrong of [{ allow: ['a://b'] }, { never: ['c://b'] }, { known: ['a://{x}'] }, { refused: 'allow' }]) {
    const { passed, failures } = guard.run([{ name: 'x', policy: { allow: 'c://*' }, ...wrong }]);
    assert.deepEqual([passed, failures.length], [0, 1], JSON.stringify(wrong));
  }
});

test('a policy is an object or a file', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'guard-'));
  const file = path.join(folder, 'guard.yaml');
  writeFileSync(file, "deny:\n  - '**/secret'\n  - hidden://**\n");
  for (const policy of [HIDDEN, file]) {
    const made = new ResourceServer({ name: 'guarded' }, { guard: policy });
    made.addResource({ uri: 'x://a/secret' }, { text: 'secret' });
    made.addResource({ uri: 'x://a/open' }, { text: 'open' });
    await WAYS.nodeHandler(made, {}, async (caller) => {
      const { result } = await answer(await caller.send('resources/list', {}));
      assert.deepEqual(
        result.resources.map(({ uri }) => uri),
        ['x://a/open'],
      );
    });
  }
  for (const wrong of [{ allow: ['a b'] }, { alow: '*' }, path.join(folder, 'none.json')]) {
    assert.throws(() => new ResourceServer({ name: 'guarded' }, { guard: wrong }), RegistrationError);
  }
  rmSync(folder, { recursive: true });
});

/** A server under the policy, with what it hides or without. */
function made(hasHidden) {
  const server = new ResourceServer({ name: 'guarded' }, { guard: HIDDEN, cache: true, limits: { page: 2 } });
  for (const uri of ['x://a/1', 'x://b/1', 'x://c/1']) server.addResource({ uri }, { text: uri });
  const extra = hasHidden ? [new Contents('secret', { uri: 'x://b/secret' })] : [];
  const parts = () => (hasHidden ? ['secret', '1', '2'] : ['1', '2']);
  server.resource('x://live/{n}/{part}', { ttlMs: 60_000, complete: { part: parts } }, ({ n, part }) => [
    new Contents(`${n} ${part}`),
    ...extra,
  ]);
  if (hasHidden) {
    server.addResource({ uri: 'x://b/secret' }, { text: 'secret' });
    server.addResource({ uri: 'x://zz/secret' }, { text: 'secret' });
    server.resource('hidden://{n}', { parameters: { n: { type: 'integer' } } }, () => {
      throw new Error('a hidden resource is read');
    });
  }
  return server;
}

function questions() {
  const uris = ['x://b/secret', 'X://b/%73ecret', 'x://live/1/secret', 'hidden://1', 'hidden://x', 'x://none'];
  const completing = (uri, name) => [
    'completion/complete',
    { ref: { type: 'ref/resource', uri }, argument: { name, value: '' } },
  ];
  return [
    ['resources/list', {}],
    ['resources/templates/list', {}],
    ...[...uris, 'x://live/1/2', 'x://live/1/2'].flatMap((uri) => [
      ['resources/read', { uri }],
      ['resources/subscribe', { uri }],
      completing(uri, 'n'),
    ]),
    completing('hidden://{n}', 'n'),
    completing('x://live/{n}/{part}', 'part'),
  ];
}

test('what is hidden is told like what is not there (R-075)', async () => {
  const said = [];
  for (const hasHidden of [true, false]) {
    said.push(
      await WAYS.nodeHandler(made(hasHidden), {}, async (caller) => {
        const told = [];
        const session = await caller.session();
        for (const [method, params] of questions()) {
          for (const response of [await caller.send(method, params), await session.post(request(1, method, params))]) {
            const body = await answer(response);
            // A sealed cursor is another one under the key of another process.
            if (body.result?.nextCursor) body.result.nextCursor = body.result.nextCursor.length;
            // What is left of the time that it may be kept.
            if (body.result?.ttlMs) body.result.ttlMs = true;
            told.push([method, params, response.status, body]);
          }
        }
        return told;
      }),
    );
  }
  assert.equal(said[0].length, questions().length * 2);
  assert.deepEqual(said[0], said[1]);
  assert.ok(said[0].some(([, , , body]) => body.result?.contents));
});

test('a token that lacks scopes is told which (R-199, R-206, DEC-27, R-209)', async () => {
  const server = new ResourceServer(
    { name: 'guarded' },
    { guard: { scopes: { 'db://**': 'db', 'db://h/**': ['audit'] } } },
  );
  server.addResource({ uri: 'db://h/x', scopes: ['root'] }, { text: 'x' });
  server.addResource({ uri: 'a://b' }, { text: 'b' });
  const auth = {
    resource: 'http://localhost/mcp',
    authorizationServers: ['http://localhost:9'],
    requiredScopes: ['mcp'],
    verify: async (token) => ({ subject: 'alice', scopes: token.split('.') }),
  };
  await WAYS.nodeHandler(server, { auth }, async (caller) => {
    const lacking = await caller.send('resources/read', { uri: 'db://h/x' }, { token: 'mcp.db' });
    assert.equal(lacking.status, 403);
    assert.match(lacking.headers.get('www-authenticate'), /error="insufficient_scope".*scope="mcp audit root"/);
    assert.equal((await answer(lacking)).error.data.kind, 'access_denied');
    assert.equal(await caller.text('db://h/x', { token: 'mcp.db.audit.root' }), 'x');
    const { result } = await answer(await caller.send('resources/list', {}, { token: 'mcp' }));
    assert.deepEqual([result.resources.length, result.cacheScope], [1, 'private']);
  });
});

test('the guard on its own', () => {
  const own = new Guard({ allow: 'a://**', scopes: { 'a://s/**': ['s'] } }, { explicitDenials: true });
  assert.equal(own.decide('A://x'), 'allow');
  assert.equal(own.decide('b://x'), 'denied');
  assert.deepEqual(own.missingScopes('a://s/x', { principal: 'alice', scopes: ['t'] }), ['s']);
  assert.equal(own.decide('a://s/x', { scopes: ['s'] }), 'allow');
  assert.equal(own.knowsTemplate('a://{x}'), true);
});
