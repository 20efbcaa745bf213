// Lists, completion, and what clients hear of changes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { Completion, InvalidUriError, ListPage, RegistrationError, ResourceNotFoundError } from 'mcp-resources';
import { Connection } from 'mcp-resources/testing';
import { failure, heard, server, talk } from './helpers.mjs';
import { LEGACY } from './vectors.mjs';

const uris = (items) => items.map(({ uri }) => uri);
const padded = (number) => String(number).padStart(2, '0');
const count = (to, from = 0) => Array.from({ length: to - from }, (_, at) => from + at);

test('pages are walked', async () => {
  const made = server({ limits: { page: 7 } });
  for (const number of count(30)) made.addResource({ uri: `a://${padded(number)}` }, { text: '' });
  const items = await talk(made, (client) => client.listResources());
  assert.deepEqual(
    uris(items),
    count(30).map((number) => `a://${padded(number)}`),
  );
});

const items = [...'cab'].map((x) => ({ uri: `a://${x}`, name: x, size: 1 }));
for (const [sort, list] of Object.entries({
  sync: () => items,
  async: async () => items,
  generator: function* () {
    yield* items;
  },
})) {
  test(`a template lists its resources: ${sort}`, async () => {
    const made = server();
    made.addResource({ uri: 'z://last' }, { text: '' });
    made.resource('a://{x}', ({ x }) => x).list(list);
    const listed = await talk(made, (client) => client.listResources());
    assert.deepEqual(uris(listed).sort(), ['a://a', 'a://b', 'a://c', 'z://last']);
    assert.equal(listed.find(({ uri }) => uri === 'a://a').size, 1);
  });
}

test('a callback that takes a cursor pages itself', async () => {
  const made = server({ limits: { page: 10 } });
  const asked = [];
  const list = async (cursor) => {
    asked.push(cursor);
    const start = Number(cursor ?? 0);
    const end = Math.min(start + 10, 25);
    const page = count(end, start).map((number) => ({ uri: `a://${padded(number)}` }));
    return new ListPage(page, end < 25 ? String(end) : undefined);
  };
  made.resource('a://{x}', { list }, ({ x }) => x);
  const listed = await talk(made, (client) => client.listResources());
  assert.equal(listed.length, 25);
  assert.deepEqual(
    asked.map((cursor) => cursor ?? null),
    [null, '10', '20'],
  );
});

test('many sources one after the other: the walk does not recurse', async () => {
  const made = server();
  made.batch(() => {
    for (const number of count(2_000)) {
      made.resource(`a://${number}/{x}`, { list: () => [{ uri: `a://${number}/x` }] }, ({ x }) => x);
    }
  });
  assert.equal((await talk(made, (client) => client.listResources())).length, 2_000);
});

test('plain values are of the only variable (R-058)', async () => {
  const made = server();
  made.resource('a://{x}', { mimeType: 'text/plain', list: () => ['b c', 7] }, ({ x }) => x);
  const listed = await talk(made, (client) => client.listResources());
  const mimeType = 'text/plain';
  assert.deepEqual(
    listed.map(({ uri, name, mimeType }) => ({ uri, name, mimeType })),
    [
      { uri: 'a://7', name: '7', mimeType },
      { uri: 'a://b%20c', name: 'b c', mimeType },
    ],
  );
  const several = server();
  several.resource('a://{x}/{y}', { list: () => ['b'] }, ({ x }) => x);
  const { text } = await heard(() => talk(several, (client) => failure(client.listResources())));
  assert.match(text, /item 0 of the list: it is "b", expected an object with a uri or values of x, y/);
});

test('a listed resource is named after its values, unless it has a name (R-058)', async () => {
  const made = server();
  const list = () => [{ y: 2, x: 'b' }, { x: 'c', y: '', name: 'mine' }, { x: 'd' }];
  made.resource('a://{x}{?y}', { list }, ({ x }) => x);
  made.resource('b://{x*}', { list: () => [{ x: ['c', 'd'] }] }, () => '');
  const listed = await talk(made, (client) => client.listResources());
  assert.deepEqual(
    listed.map(({ uri, name }) => [uri, name]),
    [
      ['a://b?y=2', 'b/2'],
      ['a://c?y=', 'mine'],
      ['a://d', 'd'],
      ['b://c,d', 'b://c,d'],
    ],
  );
});

test('a failing source fails the list', async () => {
  const made = server();
  const list = () => {
    throw new Error('secret');
  };
  made.resource('a://{x}', { list }, ({ x }) => x);
  const { result, text } = await heard(() => talk(made, (client) => failure(client.listResources())));
  assert.deepEqual([result.code, result.message.includes('secret')], [-32603, false]);
  assert.match(text, /secret/);
});

test('a list of something else is logged', async () => {
  const made = server();
  made.resource('a://{x}', { list: () => [['a']] }, ({ x }) => x);
  const { result, text } = await heard(() => talk(made, (client) => failure(client.listResources())));
  assert.equal(result.code, -32603);
  assert.match(text, /list/);
});

test('only templates list and complete', () => {
  const handler = server().resource('a://b', () => '');
  assert.throws(() => handler.list(() => []), /has no variables/);
  assert.throws(() => handler.complete('x', () => []), RegistrationError);
  const template = server().resource('a://{x}', () => '');
  assert.throws(() => template.complete('y', () => []), /no variable/);
});

test('completion', async () => {
  const made = server();
  const file = async (value, chosen, ctx) => [`${chosen.user ?? '?'}-${value}-${ctx.revision}`];
  const user = () => new Completion(['a', 'b'], { total: 10 });
  const template = 'a://{user}/{file}';
  made.resource(template, { complete: { file, user } }, ({ user, file }) => user + file);
  await talk(made, async (client) => {
    const files = await client.complete(template, 'file', 'f', { user: 'u' });
    assert.deepEqual(files.values, ['u-f-2026-07-28']);
    const users = await client.complete(template, 'user', '');
    assert.deepEqual([users.values, users.total, users.hasMore], [['a', 'b'], 10, true]);
    assert.equal((await failure(client.complete(template, 'none', ''))).code, -32602);
  });
});

test('more values than fit are cut (R-108)', async () => {
  const made = server();
  made.resource('a://{x}', { complete: { x: () => count(250).map(String) } }, ({ x }) => x);
  const found = await talk(made, (client) => client.complete('a://{x}', 'x', ''));
  assert.deepEqual([found.values.length, found.total, found.hasMore], [100, 250, true]);
});

for (const value of ['text', [1], 5]) {
  test(`a bad completion is logged: ${JSON.stringify(value)}`, async () => {
    const made = server();
    made.resource('a://{x}', { complete: { x: () => value } }, ({ x }) => x);
    const ask = () => talk(made, (client) => failure(client.complete('a://{x}', 'x', '')));
    const { result, text } = await heard(ask);
    assert.equal(result.code, -32603);
    assert.match(text, /x/);
  });
}

test('updates reach subscribers', async () => {
  const made = server();
  made.addResource({ uri: 'a://b' }, { text: '' });
  await talk(made, (modern) =>
    talk(
      made,
      async (legacy) => {
        await legacy.subscribe('A://b');
        const listen = await modern.listen(['a://%62']);
        assert.deepEqual(listen.honoured, { resourceSubscriptions: ['a://%62'] });
        made.notifyUpdated('a://b');
        assert.equal((await listen.next()).params.uri, 'a://%62');
        assert.equal((await legacy.notification()).params.uri, 'A://b');
        await legacy.unsubscribe('a://b');
        listen.close();
        made.notifyUpdated('a://b');
        for (const client of [modern, legacy]) await assert.rejects(client.notification(100), { name: 'TimeoutError' });
      },
      { revision: LEGACY },
    ),
  );
});

test('a burst of updates is coalesced', async () => {
  const made = server();
  made.addResource({ uri: 'a://b' }, { text: '' });
  await talk(made, async (client) => {
    const listen = await client.listen(['a://b']);
    for (let number = 0; number < 100; number += 1) made.notifyUpdated('a://b');
    await listen.next();
    await listen.next();
    await assert.rejects(listen.next(150), { name: 'TimeoutError' });
  });
});

test('a handler hears who watches: over all clients, on the event loop', async () => {
  const made = server();
  const seen = [];
  const watcher = (uri, isWatched) => {
    seen.push([uri, isWatched]);
    if (uri === 'a://bad') throw new Error('not this one');
  };
  const changes = async (count) => {
    // The bell alone does not keep the process alive.
    while (seen.length < count) await sleep(5);
    return seen.splice(0).sort();
  };
  const template = made.resource('a://{x}', ({ x }) => x).onWatch(watcher);
  made.resource('A://fixed', () => '').onWatch((uri, isWatched) => watcher(`fixed ${uri}`, isWatched));
  made.resource('b://{x}', ({ x }) => x);
  const { text } = await heard(() =>
    talk(made, (modern) =>
      talk(
        made,
        async (legacy) => {
          const listen = await modern.listen(['a://1', 'a://fixed', 'b://1', 'a://bad']);
          assert.deepEqual(await changes(3), [
            ['a://1', true],
            ['a://bad', true],
            ['fixed a://fixed', true],
          ]);
          await legacy.subscribe('a://%31');
          listen.close();
          assert.deepEqual(await changes(2), [
            ['a://bad', false],
            ['fixed a://fixed', false],
          ]);
          await legacy.unsubscribe('a://1');
          assert.deepEqual(await changes(1), [['a://1', false]]);
        },
        { revision: LEGACY },
      ),
    ),
  );
  assert.match(text, /watcher failed: a:\/\/bad/);
  assert.throws(() => template.onWatch('x'), /onWatch takes a function, not "x"/);
});

test('changes of the list are told', async () => {
  const made = server();
  const changes = [
    () => made.addResource({ uri: 'a://b' }, { text: '' }),
    () => made.removeResource('a://b'),
    () => made.notifyListChanged(),
  ];
  await talk(
    made,
    async (client) => {
      for (const change of changes) {
        change();
        assert.equal((await client.notification()).kind, 'list_changed');
      }
    },
    { revision: LEGACY },
  );
});

test('a handler may notify and register', async () => {
  const made = server();
  const change = (name) => (_, ctx) => {
    made.addResource({ uri: `a://new/${name}/${ctx.revision}` }, { text: 'new' });
    made.notifyUpdated('a://watched');
    return 'ok';
  };
  made.resource('a://sync', change('sync'));
  made.resource('a://async', async (...given) => change('async')(...given));
  made.addResource({ uri: 'a://watched' }, { text: '' });
  for (const name of ['sync', 'async']) {
    await talk(
      made,
      async (client) => {
        await client.subscribe('a://watched');
        assert.equal(await client.readText(`a://${name}`), 'ok');
        const sorts = [await client.notification(), await client.notification()].map(({ kind }) => kind);
        assert.deepEqual(sorts.sort(), ['list_changed', 'updated']);
        assert.equal(await client.readText(`a://new/${name}/${LEGACY}`), 'new');
      },
      { revision: LEGACY },
    );
  }
});

test('notifying of no URI is an error', () => {
  assert.throws(() => server().notifyUpdated('no uri'), InvalidUriError);
});

const META =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}';

function line(id, method, params) {
  return Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params},${META}}}\n`);
}

test('a connection without time or I/O', async () => {
  const made = server();
  const waiting = [];
  const signals = [];
  made.resource('a://wait', (_, ctx) => {
    signals.push(ctx.signal);
    return new Promise((resolve) => waiting.push(resolve));
  });
  made.resource('a://missing', () => {
    throw new ResourceNotFoundError();
  });
  made.resource('a://def', () => 'def');
  const connection = new Connection(made, { now: [1000, 5] });
  const read = (id, uri) => connection.receive(line(id, 'resources/read', `"uri":"${uri}"`));
  let out = Buffer.alloc(0);
  for (const byte of line(1, 'resources/read', '"uri":"a://def"')) {
    out = Buffer.concat([out, await connection.receive(Uint8Array.of(byte))]);
  }
  assert.ok(out.toString().endsWith('\n'));
  assert.match(String(await read(2, 'a://missing')), /-32602/);
  assert.equal(String(await read(3, 'a://wait')), '');
  assert.equal(connection.inFlight, 1);
  waiting[0]('done');
  assert.match(String(await connection.settle()), /"text":"done"/);
  await read(4, 'a://wait');
  assert.equal(String(await connection.tick(29_999)), '');
  assert.match(String(await connection.tick(1)), /timeoutMs/);
  assert.ok(signals[1].aborted);
  waiting[1]('late');
  await turn();
  assert.equal(String(await connection.settle()), '');
  assert.equal(connection.inFlight, 0);
  const filter = '"notifications":{"resourceSubscriptions":["a://def"]}';
  assert.match(String(await connection.receive(line(5, 'subscriptions/listen', filter))), /acknowledged/);
  made.notifyUpdated('a://def');
  assert.equal(String(await connection.settle()), '');
  assert.equal(String(connection.deliver(0)), '');
  assert.match(String(connection.deliver()), /"uri":"a:\/\/def"/);
  await connection.close();
});
