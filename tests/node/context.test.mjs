// What a handler is told about its request, what it can report, how it ends early, and reads in several rounds.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  AskFailedError,
  Elicit,
  ElicitUrl,
  InputDeclinedError,
  InputRequired,
  ListRoots,
  MethodResult,
  RegistrationError,
  Sample,
} from 'mcp-resources';
import { Client, Connection, InputNeeded } from 'mcp-resources/testing';
import { failure, heard, refusal, server, talk } from './helpers.mjs';
import { LEGACY } from './vectors.mjs';

const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const ACCEPT = { action: 'accept', content: { name: 'Ada' } };

test('the request is told', async () => {
  const made = server();
  const seen = [];
  made.resource('a://{x}', ({ x }, ctx) => {
    const { uri, principal, revision, cancelled, clientInfo, meta, inputs, state } = ctx;
    seen.push({ uri, principal, revision, cancelled, name: clientInfo.name, meta, inputs, state });
    return x;
  });
  const meta = { traceparent: '00-1-2-00', 'com.example/a': [1] };
  await talk(made, (client) => client.request('read', { uri: 'A://%62' }, { meta }));
  const [told] = seen;
  assert.equal(told.meta.traceparent, '00-1-2-00');
  assert.deepEqual(told.meta['com.example/a'], [1]);
  assert.deepEqual(
    { ...told, meta: undefined, inputs: { ...told.inputs } },
    {
      uri: 'A://%62',
      principal: '',
      revision: '2026-07-28',
      cancelled: false,
      name: 'mcp-resources-testing',
      meta: undefined,
      inputs: {},
      state: undefined,
    },
  );
});

test('a legacy session is told', async () => {
  const made = server();
  made.resource('a://b', (_, ctx) => ({
    revision: ctx.revision,
    client: ctx.clientInfo,
    hasMeta: ctx.meta !== undefined,
  }));
  const told = JSON.parse(await talk(made, (client) => client.readText('a://b'), { revision: LEGACY }));
  assert.deepEqual([told.revision, told.client.name, told.hasMeta], [LEGACY, 'mcp-resources-testing', false]);
});

test('progress precedes the answer (R-124, R-125)', async () => {
  const made = server();
  const report = (_, ctx) => {
    ctx.progress(0.5, 2);
    ctx.progress(0.25, 2);
    ctx.progress(2, 2, 'done');
    return 'x';
  };
  made.resource('a://sync', report);
  made.resource('a://async', async (...given) => {
    await null;
    return report(...given);
  });
  for (const uri of ['a://sync', 'a://async']) {
    await talk(made, async (client) => {
      await client.request('read', { uri }, { meta: { progressToken: 7 } });
      const first = await client.notification();
      const second = await client.notification();
      assert.deepEqual([first.kind, first.params], ['progress', { progressToken: 7, progress: 0.5, total: 2 }]);
      assert.deepEqual(second.params, { progressToken: 7, progress: 2, total: 2, message: 'done' });
      await client.read(uri);
      await assert.rejects(client.notification(50), { name: 'TimeoutError' });
    });
  }
});

test('nothing is reported after the answer', async () => {
  const made = server();
  const kept = [];
  made.resource('a://b', (_, ctx) => {
    kept.push(ctx);
    return 'x';
  });
  await talk(made, async (client) => {
    await client.request('read', { uri: 'a://b' }, { meta: { progressToken: 't' } });
    kept[0].progress(1);
    kept[0].log.info('late');
    await assert.rejects(client.notification(50), { name: 'TimeoutError' });
  });
});

test('logs go to those who want them (R-122)', async () => {
  const made = server({ logging: true });
  made.resource('a://b', async (_, ctx) => {
    ctx.log.debug('not wanted');
    ctx.log.warning({ free: 3, password: 'secret' }, 'disk');
    ctx.log('error', 'plain');
    return 'x';
  });
  await talk(made, async (client) => {
    await client.request('read', { uri: 'a://b' }, { meta: { 'io.modelcontextprotocol/logLevel': 'info' } });
    const [first, second] = [await client.notification(), await client.notification()];
    assert.deepEqual([first.params.level, first.params.logger, first.params.data.free], ['warning', 'disk', 3]);
    assert.ok(!JSON.stringify(first.params).includes('secret'));
    assert.deepEqual(second.params, { level: 'error', data: 'plain' });
    await client.read('a://b');
    await assert.rejects(client.notification(50), { name: 'TimeoutError' });
  });
  await talk(
    made,
    async (client) => {
      await client.request('set_level', { level: 'error' });
      await client.read('a://b');
      assert.equal((await client.notification()).params.level, 'error');
    },
    { revision: LEGACY },
  );
});

test("an unknown level is the author's mistake", async () => {
  const made = server({ logging: true });
  made.resource('a://b', (_, ctx) => {
    assert.throws(() => ctx.log('loud', 'x'), /unexpected level "loud"/);
    return 'x';
  });
  assert.equal(await talk(made, (client) => client.readText('a://b')), 'x');
});

test('cancelling a request aborts its signal (R-127)', async () => {
  const made = server();
  const { promise: started, resolve: start } = deferred();
  const { promise: ended, resolve: end } = deferred();
  made.resource('a://slow', async (_, ctx) => {
    start();
    await sleep(60_000, undefined, { signal: ctx.signal }).catch((error) => end([error.name, ctx.cancelled]));
    return 'late';
  });
  await talk(made, async (client) => {
    const { id, answer } = client.send('read', { uri: 'a://slow' });
    answer.catch(() => {});
    await started;
    client.cancel(id);
    assert.deepEqual(await ended, ['AbortError', true]);
    await sleep(1);
    assert.equal(client.inFlight, 0);
  });
});

test('a handler that takes too long is timed out (R-214)', async () => {
  const made = server({ limits: { readTimeout: 50 } });
  const { promise: over, resolve } = deferred();
  made.resource('a://slow', async (_, ctx) => {
    await sleep(60_000, undefined, { signal: ctx.signal }).catch(() => resolve(ctx.signal.reason));
    return '';
  });
  const error = await refusal(made, 'a://slow');
  assert.deepEqual([error.kind, error.data.timeoutMs], ['timeout', 50]);
  assert.ok((await over) instanceof Error);
});

test('input is asked for and comes back (R-134 to R-139)', async () => {
  const made = server();
  made.resource('a://hello', async (_, ctx) => {
    const answer = ctx.inputs.name;
    if (answer === undefined) {
      return new InputRequired({ name: new Elicit('Your name?', FORM) }, { state: { round: 1, ä: [null] } });
    }
    if (answer.action !== 'accept') throw new InputDeclinedError();
    return `Hello, ${answer.content.name} ${ctx.state.round} ${JSON.stringify(ctx.state.ä)}`;
  });
  const capabilities = { elicitation: {} };
  await talk(
    made,
    async (client) => {
      const [contents] = await client.read('a://hello', { inputs: { name: ACCEPT } });
      assert.equal(contents.body, 'Hello, Ada 1 [null]');
      const declined = await failure(client.read('a://hello', { inputs: { name: { action: 'decline' } } }));
      assert.equal(declined.kind, 'input_declined');
      await assert.rejects(client.read('a://hello'), (error) => {
        assert.ok(error instanceof InputNeeded);
        assert.equal(error.requests.name.params.message, 'Your name?');
        return true;
      });
      const forged = await failure(client.read('a://hello', { inputs: { name: ACCEPT }, state: 'v1.forged' }));
      assert.equal(forged.code, -32602);
    },
    { capabilities },
  );
  const undeclared = await refusal(made, 'a://hello');
  assert.deepEqual([undeclared.code, undeclared.data], [-32021, { requiredCapabilities: { elicitation: {} } }]);
  assert.equal((await refusal(made, 'a://hello', { revision: LEGACY })).kind, 'input_required');
});

test('every sort of question', async () => {
  const made = server();
  made.resource('a://ask', (_, ctx) => {
    if (Object.keys(ctx.inputs).length > 0) return Object.keys(ctx.inputs).sort().join();
    throw new InputRequired({
      page: new ElicitUrl('Look', 'https://example.com'),
      model: new Sample({ messages: [], maxTokens: 1 }),
      roots: new ListRoots(),
    });
  });
  const capabilities = { elicitation: { url: {} }, sampling: {}, roots: {} };
  const inputs = { page: { action: 'accept' }, model: { role: 'assistant' }, roots: { roots: [] } };
  const [contents] = await talk(made, (client) => client.read('a://ask', { inputs }), { capabilities });
  assert.equal(contents.body, 'model,page,roots');
});

test('keys let another server go on (R-136): two processes of one deployment', async () => {
  const make = (key) => {
    const made = server({ keys: [Buffer.from(key)] });
    made.resource('a://b', (_, ctx) => {
      if (ctx.state === undefined) throw new InputRequired({}, { state: 'kept' });
      return String(ctx.state);
    });
    return made;
  };
  const shared = '0123456789abcdef';
  const needed = await talk(make(shared), (client) => client.read('a://b').catch((error) => error));
  assert.ok(needed instanceof InputNeeded);
  const { state } = needed;
  const [contents] = await talk(make(shared), (client) => client.read('a://b', { state }));
  assert.equal(contents.body, 'kept');
  await talk(make('fedcba9876543210'), (client) => failure(client.read('a://b', { state })));
});

test('a handler sees the async context that it made itself', async () => {
  const made = server();
  const storage = new AsyncLocalStorage();
  made.resource('a://{x}', ({ x }) =>
    storage.run(x, async () => {
      await sleep(1);
      return storage.getStore();
    }),
  );
  await talk(made, async (client) => {
    assert.deepEqual(await Promise.all(['a', 'b'].map((x) => client.readText(`a://${x}`))), ['a', 'b']);
  });
});

test('a legacy client is asked by a handler, a modern one is not', async () => {
  const made = server();
  made.resource('a://roots', async (_, ctx) => {
    try {
      return (await ctx.ask('roots/list', {})).roots[0].uri;
    } catch (error) {
      assert.ok(error instanceof AskFailedError, String(error));
      return `failed ${error.code}`;
    }
  });
  assert.equal(await talk(made, (client) => client.readText('a://roots')), 'failed undefined');
  const connection = new Connection(made);
  const send = (message) => connection.receive(Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`));
  const clientInfo = { name: 'test', version: '1' };
  const params = { protocolVersion: LEGACY, capabilities: { roots: {} }, clientInfo };
  await send({ id: 'i', method: 'initialize', params });
  await send({ method: 'notifications/initialized' });
  const answers = [
    [{ result: { roots: [{ uri: 'file:///here' }] } }, 'file:///here'],
    [{ error: { code: -1, message: 'no' } }, 'failed -1'],
  ];
  for (const [id, [answer, expected]] of answers.entries()) {
    const asked = JSON.parse(String(await send({ id, method: 'resources/read', params: { uri: 'a://roots' } })));
    assert.equal(asked.method, 'roots/list');
    const { result } = JSON.parse(String(await send({ id: asked.id, ...answer })));
    assert.equal(result.contents[0].text, expected);
  }
  await connection.close();
});

test('custom methods', async () => {
  const made = server();
  made.method('vendor/add', { capability: ['vendor', { version: 1 }] }, async (params, ctx) => {
    ctx.progress(1, 1);
    return { sum: params.a + params.b };
  });
  made.method('vendor/meta', () => new MethodResult({ a: 1 }, { meta: { 'com.example/x': 2 } }));
  made.method('vendor/fails', () => {
    throw new Error('for the author');
  });
  made.addResource({ uri: 'a://b' }, { text: '' });
  await talk(made, async (client) => {
    assert.deepEqual(client.serverInfo.capabilities.vendor, { version: 1 });
    const added = await client.request('vendor/add', { a: 1, b: 2 }, { meta: { progressToken: 1 } });
    assert.equal(added.sum, 3);
    assert.equal((await client.notification()).params.progress, 1);
    const told = await client.request('vendor/meta');
    assert.deepEqual([told.a, told._meta['com.example/x']], [1, 2]);
    const { result } = await heard(() => failure(client.request('vendor/fails', {})));
    assert.equal(result.code, -32603);
    assert.equal((await failure(client.request('vendor/none'))).code, -32601);
  });
  made.method('vendor/late', { timeout: 0 }, () => ({ late: true })); // at any time
  await talk(made, async (client) => assert.equal((await client.request('vendor/late', {})).late, true));
});

test('a method of ours cannot be taken', () => {
  const made = server();
  assert.throws(() => {
    made.method('resources/read', () => ({}));
    made.addResource({ uri: 'a://b' }, { text: '' });
  }, RegistrationError);
});

test('closed connections are freed', async () => {
  const collect = collector();
  const made = server();
  made.resource('a://b', async (_, ctx) => (ctx.uri ? 'x' : ''));
  const references = [];
  for (let round = 0; round < 10; round += 1) {
    const client = await Client.connect(made);
    await client.read('a://b');
    client.close();
    references.push(new WeakRef(client));
  }
  await sleep(10);
  collect();
  await sleep(10);
  collect();
  assert.ok(references.filter((reference) => reference.deref() !== undefined).length <= 1);
});

/** The garbage collector, which Node hides unless it is asked for. */
function collector() {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
}

function deferred() {
  let resolve;
  const promise = new Promise((given) => {
    resolve = given;
  });
  return { promise, resolve };
}
