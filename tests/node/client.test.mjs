// The client: the same script over memory, stdio and HTTP, in both eras; and servers that break, misbehave or are gone.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  AccessDeniedError,
  Client,
  ConfigError,
  InvalidUriError,
  McpError,
  ReadFailedError,
  ResourceNotFoundError,
  ResourceServer,
} from 'mcp-resources';
import { FIXED, make, NOTES } from './client_server.mjs';
import { ROOT } from './vectors.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const OURS = [process.execPath, path.join(HERE, 'client_server.mjs')];
const fake = (mode) => [process.execPath, path.join(HERE, 'client_fake.mjs'), mode];
const folder = mkdtempSync(path.join(os.tmpdir(), 'mcp-resources-client-'));
let http;
let url;
before(async () => {
  http = spawn(OURS[0], [...OURS.slice(1), '--http'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(http.stdout.setEncoding('utf8'), 'data');
  url = line.trim();
});
after(() => {
  http.kill();
  rmSync(folder, { recursive: true });
});

/** The error that a promise is rejected with. */
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail('it was fulfilled');
}

async function all(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}

/** Waits until it is so. */
async function until(holds) {
  const end = Date.now() + 30_000;
  while (!(await holds())) {
    assert.ok(Date.now() < end, 'it did not come about');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A test with a client that is closed at its end. */
function using(name, target, options, body) {
  test(name, async () => {
    const client = new Client(typeof target === 'function' ? target() : target, options);
    try {
      await body(client);
    } finally {
      await client.close();
    }
  });
}

const TARGETS = { memory: () => make(), stdio: () => OURS, http: () => url };
const ERAS = { modern: undefined, legacy: '2025-11-25' };

for (const [where, target] of Object.entries(TARGETS)) {
  for (const [era, revision] of Object.entries(ERAS)) {
    const options = revision === undefined ? {} : { revision };
    describe(`over ${where}, ${era}`, () => script(target, options, where));
  }
}

function script(target, options, where) {
  using('lists resources and templates over all pages (S-12)', target, options, async (client) => {
    const items = await all(client.list());
    assert.equal(items.length, NOTES + FIXED);
    const [note] = items.filter(({ uri }) => uri === 'note://07');
    const { name, title, mimeType, server, raw } = note;
    assert.deepEqual([title, mimeType, server, raw.uri], ['Note 07', 'text/plain', 'server', 'note://07']);
    assert.equal(raw.name, name);
    const templates = (await all(client.listTemplates())).map(({ uriTemplate }) => uriTemplate);
    assert.ok(templates.includes('note://{id}') && templates.includes('ask://{sort}'), String(templates));
    assert.deepEqual(client.failures, new Map());
  });

  using('reads a text, bytes and several contents', target, options, async (client) => {
    assert.equal(await client.read('note://03'), 'note 3');
    assert.deepEqual(await client.read('bytes://7'), Buffer.from([0, 255, 7]));
    const [one, two, ...others] = await client.read('many://x');
    assert.deepEqual([one.uri, one.mimeType, one.body, one.meta], ['many://1', 'text/x-one', 'one x', { a: 1 }]);
    assert.deepEqual([two.uri, two.body, others.length], ['many://2', Buffer.from('two'), 0]);
    const [note] = await client.readContents('note://03');
    assert.deepEqual([note.uri, note.body], ['note://03', 'note 3']);
    const many = await Promise.all(Array.from({ length: 200 }, (_, at) => client.read(`note://0${at % 10}`)));
    assert.deepEqual(many.slice(0, 2), ['note 0', 'note 1']);
  });

  using('the texts of errors (S-14)', target, options, async (client) => {
    const cases = [
      ['note://99', ResourceNotFoundError, 'Resource not found: note://99'],
      ['nothing://at/all', ResourceNotFoundError, 'Resource not found: nothing://at/all'],
      ['not a uri', InvalidUriError, 'Invalid URI: not a uri'],
    ];
    for (const [uri, type, message] of cases) {
      const error = await failure(client.read(uri));
      assert.ok(error instanceof type && error instanceof McpError, String(error));
      assert.deepEqual([error.message, error.uri], [message, uri]);
    }
  });

  using(
    'what is not allowed is refused in every way (S-10, S-11, S-12)',
    target,
    { ...options, resources: ['file:///project/src/**/*.rs'] },
    async (client) => {
      const uris = (await all(client.list())).map(({ uri }) => uri);
      assert.deepEqual(uris, ['file:///project/src/deep/lib.rs', 'file:///project/src/main.rs']);
      assert.deepEqual(await all(client.listTemplates()), []);
      assert.equal(await client.read('file:///project/src/main.rs'), 'src/main.rs');
      const denied = 'file:///project/config.json';
      for (const call of [
        () => client.read(denied),
        () => client.readContents(denied),
        () => client.watch(denied).next(),
      ]) {
        const error = await failure(call());
        assert.ok(error instanceof AccessDeniedError, String(error));
        assert.deepEqual([error.message, error.uri], [`Access denied: ${denied}`, denied]);
      }
      assert.ok((await failure(client.complete('note://{id}', 'id', ''))) instanceof AccessDeniedError);
      assert.ok((await failure(client.request('resources/read', { uri: denied }))) instanceof McpError);
    },
  );

  using('completes a variable', target, options, async (client) => {
    const found = await client.complete('note://{id}', 'id', '1');
    assert.deepEqual(found.values, ['10', '11', '12', '13', '14', '15', '16', '17', '18', '19']);
  });

  using('watches: at first, after a change, gone, back (S-13)', target, options, async (client) => {
    const id = `w${process.pid}${where}${options.revision ?? ''}`.replaceAll('-', '');
    await client.read(`control://set/${id}/one`);
    const changes = client.watch(`note://${id}`);
    const next = async () => {
      const { value } = await changes.next();
      return [value.uri, value.contents, value.server];
    };
    assert.deepEqual(await next(), [`note://${id}`, 'one', 'server']);
    await client.read(`control://set/${id}/two`);
    assert.deepEqual(await next(), [`note://${id}`, 'two', 'server']);
    await client.read(`control://remove/${id}`);
    assert.deepEqual(await next(), [`note://${id}`, null, 'server']);
    await client.read(`control://set/${id}/three`);
    assert.deepEqual(await next(), [`note://${id}`, 'three', 'server']);
    assert.deepEqual(await changes.return(), { done: true, value: undefined });
    assert.deepEqual(await changes.next(), { done: true, value: undefined });
    await client.read(`control://remove/${id}`);
  });

  using('hears of a change of the lists', target, options, async (client) => {
    // A connection that listens: what is watched makes one.
    const watch = client.watch('note://01');
    await watch.next();
    const changes = client.listChanges();
    const next = changes.next();
    await client.read('control://set/lists/x');
    await client.read('control://remove/lists');
    assert.deepEqual(await next, { done: false, value: 'server' });
    await changes.return();
    await watch.return();
  });

  using('a time-out and a signal take a request back', target, options, async (client) => {
    const counts = async () => JSON.parse(await client.read('control://counts'));
    const earlier = await counts();
    const late = await failure(client.read('slow://1', { timeout: 50 }));
    assert.ok(late instanceof ReadFailedError, String(late));
    assert.deepEqual([late.kind, late.server], ['timeout', 'server']);
    assert.equal(late.message, 'Failed to read resource: no answer within 50 ms');
    const controller = new AbortController();
    const reading = client.read('slow://2', { signal: controller.signal });
    await until(async () => (await counts()).slow === earlier.slow + 2);
    controller.abort(new Error('enough'));
    assert.equal((await failure(reading)).message, 'enough');
    assert.equal((await failure(client.read('note://01', { signal: controller.signal }))).message, 'enough');
    await until(async () => (await counts()).cancelled === earlier.cancelled + 2);
  });

  using('reports progress', target, options, async (client) => {
    const reports = [];
    const onProgress = (report) => reports.push(report);
    assert.equal(await client.read('work://1', { onProgress }), 'worked');
    assert.deepEqual(
      reports.map(({ progress, total, message }) => [progress, total, message]),
      [[1, 2, options.revision === '2024-11-05' ? undefined : 'half']],
    );
  });

  const asked = [];
  const answers = {
    elicitation: async (question) => {
      asked.push(question);
      return { action: 'accept', content: { name: 'Ann' } };
    },
    sampling: () => ({ role: 'assistant', content: { type: 'text', text: 'hm' }, model: 'm' }),
    roots: () => ({ roots: [{ uri: 'file:///here' }] }),
  };
  using('answers the questions of a server', target, { ...options, answers }, async (client) => {
    assert.deepEqual(JSON.parse(await client.read('ask://elicitation')), {
      action: 'accept',
      content: { name: 'Ann' },
    });
    assert.equal(JSON.parse(await client.read('ask://sampling')).model, 'm');
    assert.deepEqual(JSON.parse(await client.read('ask://roots')), { roots: [{ uri: 'file:///here' }] });
    const [question] = asked;
    assert.deepEqual(
      [question.server, question.method, question.params.message],
      ['server', 'elicitation/create', 'Who?'],
    );
  });

  using('without answers a question fails the read', target, options, async (client) => {
    const error = await failure(client.read('ask://elicitation'));
    assert.ok(error instanceof ReadFailedError, String(error));
  });

  using('other methods, and what the server says of itself', target, options, async (client) => {
    const { resources } = await client.request('resources/list');
    assert.equal(resources.length, 10);
    const unknown = await failure(client.request('no/such'));
    assert.deepEqual([unknown.constructor, unknown.kind, unknown.code], [ReadFailedError, 'server', -32601]);
    const about = await client.about();
    assert.equal(about.revision, options.revision ?? '2026-07-28');
    assert.deepEqual([about.serverInfo.name, about.serverInfo.version], ['notes', '1.2.3']);
    assert.deepEqual([about.instructions, typeof about.capabilities.resources], ['Read.', 'object']);
  });
}

using('contents are kept for as long as the server says, and read again after an update', make, {}, async (client) => {
  assert.deepEqual([await client.read('kept://1'), await client.read('kept://1')], ['kept 1', 'kept 1']);
});

for (const mode of ['modern', 'legacy']) {
  using(`the end of an iteration ends the subscription, ${mode} (S-13)`, fake(mode), {}, async (client) => {
    const told = async () => JSON.parse(await client.read('told://all'));
    for await (const change of client.watch('text://1')) {
      assert.equal(change.contents, 'here');
      break;
    }
    const [begin, end] =
      mode === 'modern'
        ? ['subscriptions/listen', 'notifications/cancelled']
        : ['resources/subscribe', 'resources/unsubscribe'];
    assert.ok((await told()).includes(begin));
    await until(async () => (await told()).includes(end));
  });
}

using('an iteration that waits can be ended', fake('modern'), {}, async (client) => {
  const changes = client.watch('text://1');
  await changes.next();
  const next = changes.next();
  await changes.return();
  assert.deepEqual(await next, { done: true, value: undefined });
  const controller = new AbortController();
  const others = client.watch('text://1', { signal: controller.signal });
  await others.next();
  const aborted = failure(others.next());
  controller.abort(new Error('enough'));
  assert.equal((await aborted).message, 'enough');
  assert.deepEqual(await others.next(), { done: true, value: undefined });
});

test('odd entries and garbage stop nothing, and are noted', async () => {
  const notes = [];
  const client = new Client(fake('garbage'), { onNote: (server, note) => notes.push([server, note]) });
  const items = await all(client.list());
  assert.deepEqual(
    items.map(({ uri, title, size, meta }) => [uri, title, size, meta]),
    // The second page lists the same resource once more.
    [['text://1', undefined, undefined, undefined]],
  );
  assert.equal(await client.read('text://1'), 'here');
  await until(() => notes.length > 2);
  assert.ok(
    notes.every(([server, note]) => server === 'server' && note.length > 3),
    JSON.stringify(notes),
  );
  await client.close();
});

using('the progress of each page of a list is reported', fake('legacy'), {}, async (client) => {
  const messages = [];
  await all(client.list({ onProgress: ({ message }) => messages.push(message) }));
  assert.deepEqual(messages, [undefined, 'two']);
});

using('a list without an end fails', fake('endless'), {}, async (client) => {
  const error = await failure(all(client.list()));
  assert.ok(error instanceof ReadFailedError, String(error));
  assert.equal(error.kind, 'bad_answer');
});

using('an error of a server has its code, its data and a safe message', fake('modern'), {}, async (client) => {
  const error = await failure(client.read('big://1'));
  assert.deepEqual([error.kind, error.code, error.data, error.server], ['server', -32099, { more: [1] }, 'server']);
  assert.match(error.message, /^Failed to read resource: a.?b \(-32099\)$/);
  assert.doesNotMatch(error.message, /\p{Cc}/u);
  assert.equal((await failure(client.read('odd://1'))).kind, 'bad_answer');
});

using(
  'contents that are not allowed are left out (S-12)',
  fake('modern'),
  { resources: ['other://*'] },
  async (client) => {
    assert.equal(await client.read('other://1'), 'shown');
  },
);

using('a server that is killed while it is watched is started and read again (S-13)', OURS, {}, async (client) => {
  const changes = client.watch('note://01');
  assert.equal((await changes.next()).value.contents, 'note 1');
  const pid = Number(await client.read('control://pid'));
  await client.read('control://set/01/other');
  assert.equal((await changes.next()).value.contents, 'other');
  process.kill(pid, 'SIGKILL');
  assert.equal((await changes.next()).value.contents, 'note 1');
  assert.notEqual(Number(await client.read('control://pid')), pid);
});

test('of two servers one is broken: the other serves, and the failure is known (S-10)', async () => {
  const file = path.join(folder, 'two.json');
  const [command, ...args] = OURS;
  const broken = { command: path.join(folder, 'no-such-program'), resources: '*' };
  const mcpServers = { broken, works: { command, args, resources: '*' } };
  writeFileSync(file, JSON.stringify({ mcpServers }));
  const client = Client.fromConfig(file);
  assert.deepEqual(client.servers, ['broken', 'works']);
  assert.equal((await all(client.list())).length, NOTES + FIXED);
  const failed = client.failures.get('broken');
  assert.deepEqual([failed.constructor, failed.kind, failed.server], [ReadFailedError, 'unreachable', 'broken']);
  assert.equal(await client.read('note://02'), 'note 2');
  assert.equal((await failure(client.read('note://02', { server: 'broken' }))).kind, 'unreachable');
  assert.equal((await failure(client.read('note://02', { server: 'third' }))).kind, 'no_server');
  assert.ok((await failure(client.request('ping'))) instanceof ReadFailedError);
  await client.close();
});

test('an agent sees what its entry allows, and nothing else (S-10)', async () => {
  const file = path.join(folder, 'agents.yaml');
  const server = (resources) => `{command: ${JSON.stringify(OURS[0])}, args: [${JSON.stringify(OURS[1])}]${resources}}`;
  writeFileSync(
    file,
    `mcpServers:\n  notes: ${server('')}\nagents:\n  one:\n    mcpServers:\n      notes: {resources: ["note://0*"]}\n  none:\n    mcpServers:\n      notes: {}\n`,
  );
  const one = Client.fromConfig(file, { agent: 'one' });
  assert.equal((await all(one.list())).length, 10);
  assert.ok((await failure(one.read('note://11'))) instanceof AccessDeniedError);
  const none = Client.fromConfig(file, { agent: 'none' });
  assert.deepEqual(await all(none.list()), []);
  assert.ok((await failure(none.read('note://01'))) instanceof AccessDeniedError);
  await Promise.all([one.close(), none.close()]);
  assert.throws(
    () => Client.fromConfig(file, { agent: 'on' }),
    (error) => error instanceof ConfigError && /unexpected agent "on"/.test(error.message),
  );
  assert.throws(() => Client.fromConfig(path.join(folder, 'none.yaml')), ConfigError);
});

test('options and arguments that cannot be', async () => {
  const cases = [
    [() => new Client('ls -l'), /which is no http URL; give a command as an array/],
    [() => new Client([]), /the server is an empty array/],
    [() => new Client(7), /the server is 7/],
    [() => new Client(['x'], { resource: '*' }), /unexpected option "resource"; did you mean "resources"\?/],
    [() => new Client(['x'], { timeout: -1 }), /timeout is -1/],
    [() => new Client(['x'], { revision: '2020-01-01' }), /2020-01-01/],
    [() => new Client(['x'], { answers: { tools: () => {} } }), /unexpected option "tools"/],
    [() => new Client(['x']).read(new URL('a://b')), /pass uri.href/],
    [() => new Client(['x']).read('a://b', { time: 1 }), /unexpected option "time"/],
    [() => new Client(['x']).request('a', 7), /the params are 7/],
  ];
  for (const [call, message] of cases)
    assert.throws(call, (error) => error instanceof TypeError && message.test(error.message), String(message));
  assert.throws(() => new Client(['x'], { headers: { a: 'b' } }), ConfigError);
  assert.throws(() => new Client('http://127.0.0.1:1/mcp', { cwd: '/' }), ConfigError);
  assert.throws(() => new Client(['x'], { resources: ['file:///{a'] }), ConfigError);
});

test('after the end, calls and iterations say so; a second end does nothing', async () => {
  const client = new Client(OURS);
  const changes = client.watch('note://01');
  await changes.next();
  const pid = Number(await client.read('control://pid'));
  const [waiting, listed, reading] = [changes.next(), client.listChanges().next(), failure(client.read('slow://1'))];
  await client.close();
  assert.equal(client.isClosed, true);
  assert.deepEqual([await waiting, await listed], Array(2).fill({ done: true, value: undefined }));
  assert.equal((await reading).kind, 'cancelled');
  for (const call of [
    () => client.read('note://01'),
    () => client.about(),
    () => client.list().next(),
    () => client.watch('note://01').next(),
    () => client.listChanges().next(),
  ]) {
    const error = await failure(call());
    assert.deepEqual([error.constructor, error.kind], [ReadFailedError, 'cancelled']);
  }
  await client.close();
  assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
});

test('what the functions of a client throw is reported, and stops nothing', async () => {
  const told = [];
  const logger = { warn() {}, error: (message) => told.push(message) };
  const fail = () => {
    throw new Error('mine');
  };
  const client = new Client(make(), { logger, answers: { elicitation: fail, roots: () => 7 } });
  assert.equal(await client.read('work://1', { onProgress: fail }), 'worked');
  assert.ok((await failure(client.read('ask://elicitation'))) instanceof ReadFailedError);
  assert.ok((await failure(client.read('ask://roots'))) instanceof ReadFailedError);
  assert.equal(told.length, 3, String(told));
  await client.close();
});

test('a server in this process starts and stops with its client', async () => {
  const told = [];
  const server = make({ onStart: () => told.push('start'), onStop: () => told.push('stop') });
  const client = new Client(server);
  assert.deepEqual(told, []);
  await client.read('note://01');
  assert.deepEqual(told, ['start']);
  await client[Symbol.asyncDispose]();
  assert.deepEqual(told, ['start', 'stop']);
  const failing = new Client(make({ onStart: () => Promise.reject(new Error('no')) }));
  assert.equal((await failure(failing.read('note://01'))).message, 'no');
  await failing.close();
});

/** What a script prints, as a process of its own. */
function printed(body, ...flags) {
  const server = JSON.stringify(path.join(HERE, 'client_server.mjs'));
  const code = `
    import { Client } from 'mcp-resources';
    import { Worker } from 'node:worker_threads';
    import { make } from ${server};
    const ours = ${JSON.stringify(OURS)};
    const isGone = (pid) => { try { process.kill(Number(pid), 0); return false; } catch { return true; } };
    const until = async (holds) => { while (!holds()) { globalThis.gc?.(); await new Promise((resolve) => setTimeout(resolve, 10)); } };
    ${body}`;
  const options = { cwd: ROOT, encoding: 'utf8', timeout: 60_000 };
  return execFileSync(process.execPath, [...flags, '--input-type=module', '-e', code], options);
}

test('a client that is idle does not keep the process alive; a call and a watch that waits do', () => {
  for (const target of ['ours', 'make()']) {
    assert.equal(printed(`console.log(await new Client(${target}).read('note://01'));`), 'note 1\n');
  }
  const watched = printed(`
    const client = new Client(ours);
    const changes = client.watch('note://01');
    await changes.next();
    setTimeout(() => client.read('control://set/01/new'), 50).unref();
    console.log((await changes.next()).value.contents);
  `);
  assert.equal(watched, 'new\n');
});

test('a client that nobody holds is ended with its server', () => {
  const started = printed(
    `
    const pid = await (() => new Client(ours).read('control://pid'))();
    await until(() => isGone(pid));
    console.log('gone');
  `,
    '--expose-gc',
  );
  assert.equal(started, 'gone\n');
  const within = printed(
    `
    let isStopped = false;
    await (() => new Client(make({ onStop: () => { isStopped = true; } })).read('note://01'))();
    await until(() => isStopped);
    console.log('stopped');
  `,
    '--expose-gc',
  );
  assert.equal(within, 'stopped\n');
});

test('an iteration that nobody holds ends its subscription (S-13)', () => {
  const out = printed(
    `
    const client = new Client(${JSON.stringify(fake('modern'))});
    await (() => client.watch('text://1').next())();
    let told = [];
    while (!told.includes('notifications/cancelled')) {
      globalThis.gc();
      told = JSON.parse(await client.read('told://all'));
    }
    console.log('cancelled');
  `,
    '--expose-gc',
  );
  assert.equal(out, 'cancelled\n');
});

test('the servers of a worker end with the worker, also while they are asked', () => {
  const out = printed(`
    const code = \`
      const { Client } = require('mcp-resources');
      const client = new Client(\${JSON.stringify(ours)});
      client.read('slow://1').catch(() => {});
      client.read('control://pid').then((pid) => require('node:worker_threads').parentPort.postMessage(pid));
    \`;
    const worker = new Worker(code, { eval: true, execArgv: [] });
    const pid = await new Promise((resolve) => worker.on('message', resolve));
    await worker.terminate();
    await until(() => isGone(pid));
    console.log('gone');
  `);
  assert.equal(out, 'gone\n');
});

test('a process that exits in the middle of a call leaves no server behind', async () => {
  const pid = Number(
    printed(`
      const client = new Client(ours);
      console.log(await client.read('control://pid'));
      client.read('slow://1');
      client.watch('note://01').next();
      process.exit(0);
    `),
  );
  await until(() => {
    try {
      return !process.kill(pid, 0);
    } catch {
      return true;
    }
  });
});

using('the time of each request is an option of the client', make, { timeout: 200 }, async (client) => {
  const error = await failure(client.read('slow://1'));
  assert.deepEqual([error.kind, error.message], ['timeout', 'Failed to read resource: no answer within 200 ms']);
});

using('a server that says nothing is not reached', fake('silent'), { timeout: 200 }, async (client) => {
  // What runs out first: the time of the handshake, or that of the call.
  assert.ok(['timeout', 'unreachable'].includes((await failure(client.read('text://1'))).kind));
});

test('a URL that nothing listens at', async () => {
  const client = new Client(new URL('http://127.0.0.1:1/mcp'), { name: 'far', headers: { Authorization: 'Bearer x' } });
  const error = await failure(client.read('a://b'));
  assert.deepEqual([error.kind, error.server], ['unreachable', 'far']);
  await client.close();
  assert.ok(new ResourceServer({ name: 'x' }));
});
