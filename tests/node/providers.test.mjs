// Providers: mounted in a server of JavaScript, they answer on threads of their own, over each transport.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { Contents, providers, RegistrationError } from 'mcp-resources';
import { Client, ServerError } from 'mcp-resources/testing';
import { internals } from '../../bindings-node/dist/server.js';
import { failure, heard, server, talk } from './helpers.mjs';
import { read, request } from './process.mjs';
import { answer, request as message, messages, modern, next, WAYS } from './web.mjs';

const ERAS = ['2024-11-05', '2025-11-25', '2026-07-28'];
const SCRIPT = fileURLToPath(new URL('providers-server.mjs', import.meta.url));
/** Larger than what is read on the thread of the loop. */
const LARGE = 'x'.repeat(100_000);
const ZONE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+09:00\[Asia\/Tokyo\]$/;

/** A server with both, and what is put into one. */
function mounted(options) {
  const made = server(options);
  const folder = providers.memory();
  made.mount(providers.clock(), folder);
  folder.put('notes/today', 'a text', { mimeType: 'text/markdown' });
  folder.put('bytes', Uint8Array.of(1, 2, 3));
  folder.put('large', LARGE);
  return { made, folder };
}

/** The URI that a stream tells of next. The clock changes the list each second. */
async function updated(stream) {
  for (;;) {
    const { method, params } = await next(stream);
    if (method !== 'notifications/resources/list_changed') return params.uri;
  }
}

for (const revision of ERAS) {
  test(`the testing client reads, lists and completes what providers have: ${revision}`, async () => {
    const { made } = mounted();
    await talk(
      made,
      async (client) => {
        assert.match(await client.readText('clock:///now'), /^\d{4}-.*Z$/);
        assert.match(await client.readText('clock:///Asia/Tokyo'), ZONE);
        const [note] = await client.read('memory:///notes/today');
        assert.deepEqual([note.body, note.mimeType], ['a text', 'text/markdown']);
        const [bytes] = await client.read('memory:///bytes');
        assert.deepEqual([...bytes.body], [1, 2, 3]);
        assert.equal(await client.readText('memory:///large'), LARGE);
        const uris = (await client.listResources()).map(({ uri }) => uri);
        assert.ok(uris.includes('memory:///notes/today') && uris.includes('clock:///UTC'), uris.join(' '));
        const { values } = await client.complete('memory:///{+path}', 'path', 'no');
        assert.deepEqual(values, ['notes/today']);
        const zones = await client.complete('clock:///{+zone}', 'zone', 'toky');
        assert.deepEqual(zones.values, ['Asia/Tokyo']);
        assert.equal((await failure(client.read('memory:///missing'))).kind, 'not_found');
        assert.equal((await failure(client.read('clock:///No/Where'))).kind, 'not_found');
      },
      { revision },
    );
  });
}

for (const [way, serve] of Object.entries(WAYS)) {
  test(`providers over HTTP, both eras: ${way}`, async () => {
    const { made, folder } = mounted({ limits: { page: 1_000 } });
    made.resource('a://b', () => 'from a function');
    await serve(made, {}, async (caller) => {
      assert.equal(await caller.text('memory:///notes/today'), 'a text');
      const both = await Promise.all(
        ['memory:///large', 'a://b', 'clock:///Asia/Tokyo'].map((uri) => caller.text(uri)),
      );
      assert.deepEqual(both.slice(0, 2), [LARGE, 'from a function']);
      assert.match(both[2], ZONE);
      const { result } = await answer(await caller.send('resources/list', {}));
      assert.ok(result.resources.some(({ uri }) => uri === 'memory:///notes/today'));
      const session = await caller.session();
      const response = await session.post(message(7, 'resources/read', { uri: 'memory:///large' }));
      assert.equal((await answer(response)).result.contents[0].text, LARGE);
      await session.post(message(8, 'resources/subscribe', { uri: 'memory:///notes/today' }));
      const told = messages(await session.listen());
      folder.put('notes/today', 'another');
      assert.equal(await updated(told), 'memory:///notes/today');
      await told.return?.();
      const wanted = { notifications: { resourceSubscriptions: ['memory:///notes/today'] } };
      const listen = messages(await caller.ask(caller.url, modern(9, 'subscriptions/listen', wanted)));
      await next(listen);
      folder.put('notes/today', 'a third');
      assert.equal(await updated(listen), 'memory:///notes/today');
      await listen.return?.();
    });
  });
}

test('providers over stdio: at once, on a worker, and told of what is put', () => {
  const listen = { notifications: { resourceSubscriptions: ['memory:///small'] } };
  const lines = [
    request(1, 'subscriptions/listen', listen),
    read(2, 'memory:///small'),
    read(3, 'memory:///large'),
    read(4, 'clock:///Asia/Tokyo'),
    request(5, 'resources/list', {}),
    read(6, 'change://another'),
  ];
  // The end of input follows at once: what workers have is still answered.
  const output = execFileSync(process.execPath, [SCRIPT], { input: lines.join(''), encoding: 'utf8' });
  const messages = output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const results = new Map(messages.filter(({ result }) => result).map(({ id, result }) => [id, result]));
  assert.deepEqual([...results.keys()].sort(), [1, 2, 3, 4, 5, 6]);
  assert.equal(results.get(2).contents[0].text, 'a text');
  assert.equal(results.get(3).contents[0].text, LARGE);
  assert.match(results.get(4).contents[0].text, ZONE);
  assert.ok(results.get(5).resources.some(({ uri }) => uri === 'memory:///small'));
  const updated = messages.filter(({ params }) => params?.uri === 'memory:///small');
  assert.equal(updated.length, 1, output);
});

test('the process does not end before a worker has answered', () => {
  const script = `
    const { ResourceServer, providers } = await import('mcp-resources');
    const { Client } = await import('mcp-resources/testing');
    const { Caller } = await import('./web.mjs');
    const server = new ResourceServer({ name: 'x' });
    server.mount(providers.clock());
    const client = await Client.connect(server);
    for (let round = 0; round < 20; round += 1) await client.readText('clock:///Asia/Tokyo');
    client.close();
    const handle = server.fetchHandler();
    const caller = new Caller('http://localhost/mcp', (url, options) => handle(new Request(url, options)));
    for (let round = 0; round < 20; round += 1) await caller.text('clock:///Asia/Tokyo');
    console.log(await caller.text('clock:///Asia/Tokyo'));
  `;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('.', import.meta.url)),
  });
  assert.deepEqual([status, stderr], [0, '']);
  assert.match(stdout.trim(), ZONE);
});

test('a list of 10,000 entries comes in pages, between those of functions', async () => {
  const made = server({ limits: { page: 1_000 } });
  const folder = providers.memory();
  for (let entry = 0; entry < 10_000; entry += 1) folder.put(`${entry}`, 'x');
  assert.equal(folder.size, 10_000);
  made.mount(folder);
  for (const scheme of ['a', 'z']) {
    made.resource(`${scheme}://{x}`, { list: () => [{ uri: `${scheme}://1`, name: '1' }] }, ({ x }) => x);
  }
  await talk(made, async (client) => {
    const uris = (await client.listResources()).map(({ uri }) => uri);
    assert.equal(uris.length, 10_002);
    assert.equal(new Set(uris).size, 10_002);
  });
});

for (const revision of ['2025-11-25', '2026-07-28']) {
  test(`clients hear of what is put, removed and unmounted: ${revision}`, async () => {
    // Without the clock, which changes the list each second.
    const [made, folder] = [server(), providers.memory()];
    made.mount(folder);
    folder.put('notes/today', 'a text');
    const uri = 'memory:///notes/today';
    await talk(
      made,
      async (client) => {
        let heardOf = () => client.notification();
        if (revision === '2025-11-25') await client.subscribe(uri);
        else {
          const listen = await client.listen([uri], { listChanged: true });
          heardOf = () => listen.next();
        }
        const changes = async (change, sorts) => {
          change();
          const found = [];
          while (found.length < sorts.length) found.push((await heardOf()).kind);
          assert.deepEqual(found.sort(), sorts);
        };
        await changes(() => folder.put('notes/today', 'another'), ['updated']);
        assert.equal(await client.readText(uri), 'another');
        await changes(() => folder.put('new', 'x'), ['list_changed']);
        await changes(() => assert.ok(folder.remove('notes/today')), ['list_changed', 'updated']);
        assert.equal(folder.remove('notes/today'), false);
        folder.put('notes/today', 'again');
        assert.deepEqual([(await heardOf()).kind, (await heardOf()).kind].sort(), ['list_changed', 'updated']);
        assert.equal(made.unmount(folder), true);
        assert.equal((await heardOf()).kind, 'list_changed');
        assert.equal((await failure(client.read(uri))).kind, 'not_found');
        assert.equal(made.unmount(folder), false);
        made.mount(folder);
        assert.equal(await client.readText(uri), 'again');
      },
      { revision },
    );
  });
}

test('what the guard hides is in no list, read, completion or notification', async () => {
  const { made, folder } = mounted({ guard: { deny: ['memory:///secret/**'] } });
  folder.put('secret/key', 'x');
  folder.put('secret-not', 'x');
  await talk(made, async (client) => {
    const uris = (await client.listResources()).map(({ uri }) => uri);
    assert.ok(uris.includes('memory:///secret-not') && !uris.includes('memory:///secret/key'));
    assert.equal((await failure(client.read('memory:///secret/key'))).kind, 'not_found');
    const { values } = await client.complete('memory:///{+path}', 'path', 'secret');
    assert.ok(!values.includes('secret/key'), values.join(' '));
    const listen = await client.listen(['memory:///secret/key', 'memory:///secret-not']);
    folder.put('secret/key', 'y');
    folder.put('secret-not', 'y');
    assert.equal((await listen.next()).params.uri, 'memory:///secret-not');
  });
});

test('redact sees what providers give, at once and on a worker (S-19)', async () => {
  const seen = [];
  const made = server({
    redact: (uri, contents) => {
      seen.push([uri, contents.mimeType]);
      if (uri.endsWith('large')) throw new Error('it cannot be redacted');
      const { body, mimeType } = contents;
      return new Contents(typeof body === 'string' ? body.replaceAll('secret', '*') : Uint8Array.of(0), { mimeType });
    },
  });
  made.method('vendor/thing', () => ({})); // mounts work beside methods
  const folder = providers.memory();
  made.mount(providers.clock(), folder);
  folder.put('bytes', Uint8Array.of(1, 2, 3));
  folder.put('large', LARGE);
  folder.put('small', 'a secret', { mimeType: 'text/x' });
  const { text } = await heard(() =>
    talk(made, async (client) => {
      const [small] = await client.read('memory:///small');
      assert.deepEqual([small.body, small.mimeType], ['a *', 'text/x']);
      const [bytes] = await client.read('memory:///bytes');
      assert.deepEqual([...bytes.body], [0]);
      assert.match(await client.readText('clock:///Asia/Tokyo'), ZONE);
      const error = await failure(client.read('memory:///large'));
      assert.equal(error.message.includes('redacted'), false);
    }),
  );
  assert.match(text, /redact failed: memory:\/\/\/large/);
  assert.deepEqual(seen.slice(0, 2), [
    ['memory:///small', 'text/x'],
    ['memory:///bytes', undefined],
  ]);
});

test('a redact that is asked too late sends nothing that it has not seen (S-19)', async () => {
  const redact = (_uri, { body }) => {
    const until = performance.now() + 50;
    while (performance.now() < until);
    return new Contents(body.replaceAll('secret', '*'));
  };
  const made = server({ redact, limits: { readTimeout: 10 } });
  const folder = providers.memory();
  made.mount(folder);
  folder.put('small', 'a secret');
  await heard(() =>
    talk(made, async (client) => {
      const reads = Array.from({ length: 8 }, () => client.readText('memory:///small').catch((error) => error));
      for (const found of await Promise.all(reads))
        assert.ok(found instanceof ServerError || found === 'a *', `${found}`);
    }),
  );
});

test('a thread of Node may end while providers are at work', async () => {
  for (let round = 0; round < 5; round += 1) {
    const worker = new Worker(new URL('providers-worker.mjs', import.meta.url));
    await once(worker, 'message');
    assert.equal(await worker.terminate(), 1);
  }
});

test('many reads at once are each answered once', async () => {
  const { made } = mounted();
  made.resource('a://{x}', async ({ x }) => x);
  await talk(made, async (client) => {
    const reads = Array.from({ length: 200 }, (_, at) => {
      if (at % 3 === 0) return client.readText('memory:///large').then((text) => text.length);
      if (at % 3 === 1) return client.readText('memory:///notes/today');
      return client.readText(`a://${at}`);
    });
    for (const [at, found] of (await Promise.all(reads)).entries()) {
      assert.equal(found, [LARGE.length, 'a text', `${at}`][at % 3]);
    }
    assert.equal(client.inFlight, 0);
  });
});

test('S-01: an option that the core refuses is shown as it was written, with its place', () => {
  const { files } = providers;
  const show = () => true;
  const size = 'expected a size such as "64 MiB", or a whole number of bytes';
  for (const [call, message] of [
    [() => files('.', { list_max: 1 }), 'unexpected option "list_max"; did you mean "listMax"?'],
    [() => files('.', { hiden: true }), 'unexpected option "hiden"; did you mean "hidden"?'],
    [() => files('.', { hidden: show }), 'files.hidden is the function show, expected true or false'],
    [() => files('.', { hidden: null }), 'files.hidden is null, expected true or false'],
    [() => files('.', { listMax: 5n }), 'files.listMax is 5n, expected a whole number'],
    [() => files('.', { listMax: -1 }), 'files.listMax is -1, expected a whole number from 0'],
    [() => files('.', { symlinks: 'always' }), 'files.symlinks is "always", expected never or inside'],
    [() => files('.', { include: new Date(0) }), 'files.include is a Date, expected a glob or a list of globs'],
    [() => files('.', { exclude: ['a', Symbol('b')] }), 'files.exclude has the item a symbol, expected a text'],
    [() => files(['.', 5]), 'files.roots has the item 5, expected a text'],
    [() => files({ app: 5 }), 'files.roots.app is 5, expected a text'],
    [() => files('.', 'hidden'), 'files() takes an object of options, not "hidden"'],
    [() => files(new URL('file:///srv')), 'files(): the path is a URL, expected a string; pass fileURLToPath(url)'],
    [() => files(), 'files: there is no root; name a directory'],
    [() => providers.git('.', { diffBytes: [] }), `git.diffBytes is an empty array, ${size}`],
    [() => providers.db({ shop: { url: 'sqlite:x', views: { a: 5 } } }), 'views.a is 5, expected a text'],
    [() => providers.api({ a: { endpoints: { b: { url: 5 } } } }), 'api.apis.a.endpoints.b.url is 5, expected a text'],
    [() => providers.rag({}, { poll: '1ms' }), 'rag.poll is "1ms", expected a time from 10ms to 1d'],
  ]) {
    assert.throws(call, (error) => {
      assert.ok(error instanceof TypeError && error.message.includes(message), error.message);
      return true;
    });
  }
  assert.ok(files('.', { hidden: undefined }) instanceof providers.Provider);
});

test('a mistake says what is wrong and what to do', () => {
  const made = server();
  const takes = 'mount() takes providers, such as providers.memory(), not ';
  for (const [given, says] of [
    ['./docs', 'mount() takes providers, such as providers.memory(), not "./docs"; for what stands in a file,'],
    [providers.clock, `${takes}the function clock; call it, and mount what it returns`],
    [providers.Memory, `${takes}the function Memory; call it, and mount what it returns`],
    [[providers.clock()], `${takes}an array; spread it: mount(...list)`],
    [Promise.resolve(), `${takes}a Promise; await it first`],
    [undefined, `${takes}undefined`],
    [{}, `${takes}an object`],
  ]) {
    assert.throws(
      () => made.mount(given),
      (error) => error instanceof TypeError && error.message.startsWith(says),
    );
  }
  assert.throws(() => made.unmount('x'), /^TypeError: unmount\(\) takes providers/);
  assert.throws(() => new providers.Memory(), /^TypeError: a provider is made by a function/);
  const folder = providers.memory();
  assert.throws(() => folder.put(1, 'x'), /^TypeError: the path is 1, expected a string/);
  assert.throws(
    () => folder.put('x', { a: 1 }),
    /^TypeError: the body at "x" is an object, expected a string or bytes/,
  );
  assert.throws(
    () => folder.put('x', 'x', { mime_type: 'x' }),
    /unexpected option "mime_type"; did you mean "mimeType"\?/,
  );
  assert.equal(folder.size, 0);
  assert.ok(Object.isFrozen(folder));
});

test('all are mounted or none, each once; the clock in one server', async () => {
  const [one, other] = [server(), server()];
  const [clock, folder] = [providers.clock(), providers.memory()];
  folder.put('x', 'in both');
  one.mount(clock, folder);
  assert.throws(
    () => one.mount(folder),
    (error) => error instanceof RegistrationError && error.message.startsWith('memory: it is mounted already'),
  );
  assert.throws(
    () => other.mount(folder, clock),
    /^RegistrationError: clock: it is mounted already; make another for each/,
  );
  await talk(other, async (client) => assert.deepEqual(await client.listTemplates(), []));
  assert.throws(() => one.mount(providers.memory()), /^RegistrationError: memory: .*the mount memory has it/);
  other.mount(folder);
  for (const made of [one, other]) {
    await talk(made, async (client) => assert.equal(await client.readText('memory:///x'), 'in both'));
  }
  assert.equal(other.unmount(clock), false);
  assert.equal(one.unmount(clock), true);
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

test('50 servers with providers leave no thread and no object', { skip: process.platform !== 'linux' }, async () => {
  const held = new Set();
  const gone = new FinalizationRegistry((number) => held.delete(number));
  const threads = () => readdirSync('/proc/self/task').length;
  const round = async (number) => {
    const { made, folder } = mounted(number % 2 ? {} : { redact: (_uri, contents) => made && contents });
    for (const [kind, one] of [made, internals(made).native, folder].entries()) {
      held.add(number * 3 + kind);
      gone.register(one, number * 3 + kind);
    }
    const client = await Client.connect(made);
    const listen = await client.listen(['clock:///now']);
    assert.equal((await client.readText('memory:///large')).length, LARGE.length);
    assert.match(await client.readText('clock:///Asia/Tokyo'), ZONE);
    listen.close();
    client.close();
  };
  const settled = async (condition) => {
    for (let turns = 0; turns < 1_000 && !condition(); turns += 1) {
      collect();
      await turn();
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  };
  await round(0);
  await settled(() => held.size === 0);
  const before = threads();
  for (let number = 1; number <= 50; number += 1) await round(number);
  await settled(() => held.size === 0 && threads() <= before);
  assert.deepEqual([...held], [], 'what is held');
  assert.ok(threads() <= before, `${threads()} threads after ${before}`);
});
