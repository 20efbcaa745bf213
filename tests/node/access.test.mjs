// Access that depends on data: a function decides who may use a resource.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { RegistrationError, StaticTokens } from 'mcp-resources';
import { Client } from 'mcp-resources/testing';
import { failure, heard, server } from './helpers.mjs';
import { LEGACY, MODERN } from './vectors.mjs';
import { answer, messages, next, request, WAYS } from './web.mjs';

const ROWS = [
  { owner: 'alice', id: 1 },
  { owner: 'alice', id: 2 },
  { owner: 'bob', id: 1 },
];
const ERAS = [LEGACY, MODERN];

/** A server of rows, and what its function was asked. */
function rows(kind, options) {
  const made = server({ logger: { warn() {}, error() {} }, ...options });
  const state = { made, calls: [], shared: new Set(), fails: false };
  const may = (principal, { owner, id }) => {
    assert.equal(typeof id, 'number', 'as the handler gets it');
    if (state.fails) throw new Error('the database is gone');
    return owner === principal || state.shared.has(principal);
  };
  const one = (principal, variables) => {
    state.calls.push([principal, 1]);
    return may(principal, variables);
  };
  const many = (principal, all) => {
    state.calls.push([principal, all.length]);
    return all.map((variables) => may(principal, variables));
  };
  const parameters = { id: { type: 'integer' } };
  const row = made.resource('row://{owner}/{id}', { parameters }, ({ owner, id }) => `row ${id} of ${owner}`);
  row.list(() => ROWS).complete('owner', () => ['alice', 'bob']);
  if (kind === 'plain') row.access(one);
  if (kind === 'async') row.access(async (...given) => sleep(1).then(() => one(...given)));
  if (kind === 'batch') row.access(many, { batch: true });
  if (kind === 'async batch') row.access(async (...given) => sleep(1).then(() => many(...given)), { batch: true });
  return state;
}

/** Clients of several people. */
async function people(made, options, body) {
  const clients = await Promise.all(
    Object.entries(options).map(([principal, own]) => Client.connect(made, { principal, ...own })),
  );
  try {
    return await body(...clients);
  } finally {
    for (const client of clients) client.close();
  }
}

const shape = ({ code, message, data }) => JSON.stringify([code, message, Object.keys(data)]).replace(data.uri, 'URI');
const refused = async (client, uri) => shape(await failure(client.read(uri)));

/** What has arrived until nothing came for a while. */
async function quiet(client) {
  const kinds = [];
  for (;;) {
    try {
      kinds.push((await client.notification(150)).kind);
    } catch {
      return kinds.filter((kind) => kind !== 'acknowledged');
    }
  }
}

async function watch(client, revision, ...uris) {
  if (revision === MODERN) return client.listen(uris);
  for (const uri of uris) {
    await client.subscribe(uri).catch(({ kind }) => assert.equal(kind, 'not_found'));
  }
}

for (const revision of ERAS) {
  for (const kind of ['plain', 'async', 'batch', 'async batch']) {
    test(`${revision}, ${kind}: what one may not see does not exist`, async () => {
      const { made, calls } = rows(kind, { exposeAsTools: true });
      await people(made, { alice: { revision }, bob: { revision } }, async (alice, bob) => {
        const uris = async (client) => (await client.listResources()).map(({ uri }) => uri);
        assert.deepEqual(await uris(alice), ['row://alice/1', 'row://alice/2']);
        assert.deepEqual(await uris(bob), ['row://bob/1']);
        assert.equal(await bob.readText('row://bob/1'), 'row 1 of bob');
        const absent = await refused(bob, 'gone://x');
        for (const uri of ['row://alice/1', 'ROW://alice/1', 'row://%61lice/1', 'row://alice/3']) {
          assert.equal(await refused(bob, uri), absent, uri);
        }
        const { values } = await bob.complete('row://{owner}/{id}', 'owner', '', { id: '1' });
        assert.deepEqual(values, ['bob']);
        const call = { name: 'read_resource', arguments: { uri: 'row://alice/1' } };
        assert.equal((await bob.request('tools/call', call)).isError, true);
      });
      if (kind.endsWith('batch')) {
        assert.deepEqual(calls.slice(0, 2), [
          ['alice', 3],
          ['bob', 3],
        ]);
      }
    });
  }

  for (const kind of ['plain', 'async batch']) {
    test(`${revision}, ${kind}: bob is not told of a row of alice`, async () => {
      const { made } = rows(kind);
      await people(made, { alice: { revision }, bob: { revision } }, async (alice, bob) => {
        await watch(alice, revision, 'row://alice/1');
        await watch(bob, revision, 'row://alice/1', 'ROW://alice/1');
        made.notifyUpdated('row://alice/1');
        assert.deepEqual([await quiet(alice), await quiet(bob)], [['updated'], []]);
      });
    });
  }

  test(`${revision}: an update for one person`, async () => {
    const made = server();
    made.resource('note://{id}', ({ id }) => id);
    await people(made, { alice: { revision }, bob: { revision } }, async (alice, bob) => {
      await watch(alice, revision, 'note://1');
      await watch(bob, revision, 'note://1');
      made.notifyUpdated('NOTE://1', { principal: 'alice' });
      assert.deepEqual([await quiet(alice), await quiet(bob)], [['updated'], []]);
    });
    assert.throws(() => made.notifyUpdated('note://1', { principle: 'alice' }), /did you mean "principal"/);
  });

  test(`${revision}: a regrant ends what is no longer allowed`, async () => {
    const state = rows('plain');
    state.shared.add('bob');
    await people(state.made, { bob: { revision } }, async (bob) => {
      await watch(bob, revision, 'row://alice/1');
      await watch(bob, revision, 'row://bob/1');
      state.made.notifyUpdated('row://alice/1');
      assert.deepEqual(await quiet(bob), ['updated']);
      state.shared.clear();
      state.made.regrant('bob');
      await quiet(bob);
      assert.equal(await refused(bob, 'row://alice/1'), await refused(bob, 'gone://x'));
      state.made.notifyUpdated('row://alice/1');
      state.made.notifyUpdated('row://bob/1');
      assert.deepEqual(await quiet(bob), ['updated']);
    });
  });
}

test('an old answer is asked for again before an update', async () => {
  const state = rows('plain', { limits: { accessTtl: 1, coalesce: 1 } });
  state.shared.add('bob');
  await people(state.made, { bob: {} }, async (bob) => {
    await watch(bob, MODERN, 'row://alice/1');
    state.made.notifyUpdated('row://alice/1');
    assert.deepEqual(await quiet(bob), ['updated']);
    state.shared.clear();
    state.made.notifyUpdated('row://alice/1');
    assert.deepEqual(await quiet(bob), []);
  });
});

for (const kind of ['plain', 'async', 'batch', 'async batch']) {
  test(`${kind}: a failure is no and is logged`, async () => {
    const state = rows(kind, { logger: undefined });
    state.fails = true;
    const { text } = await heard(() =>
      people(state.made, { bob: {} }, async (bob) => {
        assert.equal(await refused(bob, 'row://bob/1'), await refused(bob, 'gone://x'));
        state.fails = false;
        assert.equal(await bob.readText('row://bob/1'), 'row 1 of bob');
      }),
    );
    assert.match(text, /the database is gone\n\s+at may/);
  });
}

test('a function that never answers', async () => {
  const made = server({ limits: { readTimeout: 50 }, logger: { warn() {}, error() {} } });
  made.resource('row://{id}', ({ id }) => id).access(() => new Promise(() => {}));
  await people(made, { bob: {} }, async (bob) => {
    assert.equal((await failure(bob.read('row://1'))).kind, 'timeout');
  });
});

test('an option is the same as the method, and takes any resource', async () => {
  const made = server();
  made.resource('note://secret', { access: (principal) => principal === 'alice' }, () => 'for alice');
  await people(made, { alice: {}, bob: {} }, async (alice, bob) => {
    assert.equal(await alice.readText('note://secret'), 'for alice');
    assert.deepEqual(await bob.listResources(), []);
    await refused(bob, 'note://secret');
  });
});

test('an answer that is no boolean is no', async () => {
  const lines = [];
  const made = server({ logger: { warn() {}, error: (...said) => lines.push(said.join(' ')) } });
  made.resource('row://{id}', ({ id }) => id).access(() => 'yes');
  await people(made, { bob: {} }, (bob) => refused(bob, 'row://1'));
  assert.match(lines.join('\n'), /it returned "yes", expected true or false/);
});

test('a function that cannot be called is refused', () => {
  const row = server().resource('row://{id}', ({ id }) => id);
  assert.throws(() => row.access(5), TypeError);
  assert.throws(() => row.access((_a, _b, _c, _d) => true), RegistrationError);
  assert.throws(() => row.access(() => true, { bacth: true }), /did you mean "batch"/);
});

test('a test client is who it says', async () => {
  const made = server();
  made.resource('me://x', (_, ctx) =>
    JSON.stringify([ctx.principal, ctx.scopes, ctx.claims, ctx.headers?.['x-tenant']]),
  );
  const options = { scopes: ['a'], claims: { n: 1 }, headers: { 'X-Tenant': 'red' } };
  await people(made, { bob: options }, async (bob) => {
    assert.deepEqual(JSON.parse(await bob.readText('me://x')), ['bob', ['a'], { n: 1 }, 'red']);
  });
  await assert.rejects(Client.connect(made, { principle: 'bob' }), /did you mean "principal"/);
  await assert.rejects(Client.connect(made, { scopes: 'a b' }), /scopes is "a b", expected an array of strings/);
  await assert.rejects(Client.connect(made, { headers: ['a'] }), /headers is an array, expected an object/);
});

const auth = () => ({
  auth: {
    resource: 'http://localhost/mcp',
    authorizationServers: ['https://id.example.com'],
    verify: new StaticTokens({ a: { subject: 'alice' }, b: { subject: 'bob' } }),
  },
});

for (const [way, serving] of Object.entries(WAYS)) {
  test(`${way}: over HTTP bob is not told of a row of alice`, async () => {
    const { made } = rows('async');
    await serving(made, auth(), async (caller) => {
      const wanted = { notifications: { resourceSubscriptions: ['row://alice/1', 'row://bob/1'] } };
      const ends = new AbortController();
      const listen = async (token) => {
        const response = await caller.send('subscriptions/listen', wanted, { token, signal: ends.signal });
        return messages(response);
      };
      const [alice, bob] = await Promise.all([listen('a'), listen('b')]);
      const granted = async (stream) => (await next(stream)).params.notifications.resourceSubscriptions;
      assert.deepEqual(await granted(alice), ['row://alice/1']);
      assert.deepEqual(await granted(bob), ['row://bob/1']);
      made.notifyUpdated('row://alice/1');
      assert.equal((await next(alice)).method, 'notifications/resources/updated');
      const silent = await Promise.race([next(bob).catch(() => 'ended'), sleep(300, 'silent')]);
      assert.equal(silent, 'silent');
      ends.abort();
    });
  });
}

test('run: a legacy subscription of bob to a row of alice is refused, and silent', async () => {
  const { made } = rows('plain');
  await WAYS.run(made, auth(), async (caller) => {
    const session = async (token) => {
      const asking = Object.assign(Object.create(Object.getPrototypeOf(caller)), caller);
      asking.ask = (url, options) =>
        caller.ask(url, { ...options, headers: { ...options.headers, authorization: `Bearer ${token}` } });
      return asking.session();
    };
    const [alice, bob] = [await session('a'), await session('b')];
    const ends = new AbortController();
    const streams = [];
    for (const one of [alice, bob]) streams.push(messages(await one.listen({ signal: ends.signal })));
    const ask = request(1, 'resources/subscribe', { uri: 'row://alice/1' });
    assert.ok((await answer(await alice.post(ask))).result);
    assert.equal((await answer(await bob.post(ask))).error.data.kind, 'not_found');
    made.notifyUpdated('row://alice/1');
    assert.equal((await next(streams[0])).method, 'notifications/resources/updated');
    const silent = await Promise.race([next(streams[1]).catch(() => 'ended'), sleep(300, 'silent')]);
    assert.equal(silent, 'silent');
    ends.abort();
  });
});
