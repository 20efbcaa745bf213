// One server over HTTP in its three ways: on threads of its own, in `node:http`, and as a function of the Fetch API.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { AskFailedError, InvalidTokenError, RegistrationError } from 'mcp-resources';
import { internals } from '../../bindings-node/dist/server.js';
import { heard, server } from './helpers.mjs';
import { answer, Caller, messages, next, request, resolvers, WAYS } from './web.mjs';

for (const [way, serving] of Object.entries(WAYS)) {
  test(`${way}: concurrent reads make one call, each answered on its own response (R-219)`, async () => {
    const made = server({ cache: true, metrics: true });
    let calls = 0;
    made.resource('slow://x', { ttlMs: 60_000 }, async () => {
      calls += 1;
      // Until the other four wait for this one.
      while (!/^mcp_resources_cache_reads_total\{result="shared"\} 4$/m.test(made.metricsText())) await sleep(1);
      return `call ${calls}`;
    });
    await serving(made, {}, async (caller) => {
      const texts = await Promise.all(Array.from({ length: 5 }, () => caller.text('slow://x')));
      assert.deepEqual(texts, Array(5).fill('call 1'));
      assert.equal(await caller.text('slow://x'), 'call 1');
    });
  });

  test(`${way}: handlers answer both eras on one endpoint (R-027, R-169, R-179)`, async () => {
    const made = server();
    made.resource('late://{x}', async ({ x }) => {
      await sleep(5);
      return `late ${x}`;
    });
    made.resource('soon://{x}', ({ x }) => `soon ${x}`);
    made.addResource({ uri: 'text://x', name: 'x' }, { text: 'constant' });
    await serving(made, {}, async (caller) => {
      const uris = Array.from({ length: 20 }, (_, at) => `${at % 2 ? 'late' : 'soon'}://${at}`);
      const texts = await Promise.all(uris.map((uri) => caller.text(uri)));
      assert.deepEqual(
        texts,
        uris.map((uri) => uri.replace('://', ' ')),
      );
      assert.equal(await caller.text('text://x'), 'constant');
      const session = await caller.session();
      const { result } = await answer(await session.post(request(1, 'resources/read', { uri: 'late://a' })));
      assert.equal(result.contents[0].text, 'late a');
      const refused = await answer(await session.post(request(2, 'resources/read', { uri: 'none://x' })));
      assert.equal(refused.error.code, -32002);
    });
  });

  test(`${way}: one update reaches both eras (R-083, R-092, R-173)`, async () => {
    const made = server();
    made.resource('note://a', () => 'x');
    await serving(made, {}, async (caller) => {
      const leaving = new AbortController();
      const { signal } = leaving;
      const session = await caller.session();
      const stream = messages(await session.listen({ signal }));
      await answer(await session.post(request(1, 'resources/subscribe', { uri: 'note://a' })));
      const notifications = { resourceSubscriptions: ['note://a'] };
      const listen = messages(await caller.send('subscriptions/listen', { notifications }, { signal }));
      assert.equal((await next(listen)).method, 'notifications/subscriptions/acknowledged');
      made.notifyUpdated('note://a');
      for (const one of [stream, listen]) {
        const { method, params } = await next(one);
        assert.deepEqual([method, params.uri], ['notifications/resources/updated', 'note://a']);
      }
      const ends = [stream, listen].map((one) => assert.rejects(next(one)));
      leaving.abort();
      await Promise.all(ends);
    });
  });

  test(`${way}: a handler notifies its own session (R-083)`, async () => {
    const made = server();
    made.resource('note://a', () => 'x');
    made.resource('tell://now', () => {
      made.notifyUpdated('note://a');
      return 'told';
    });
    made.resource('tell://later', async () => {
      await sleep(1);
      made.notifyUpdated('note://a');
      return 'told';
    });
    await serving(made, {}, async (caller) => {
      const leaving = new AbortController();
      const session = await caller.session();
      const stream = messages(await session.listen({ signal: leaving.signal }));
      await answer(await session.post(request(1, 'resources/subscribe', { uri: 'note://a' })));
      for (const uri of ['tell://now', 'tell://later']) {
        const read = await answer(await session.post(request(2, 'resources/read', { uri })));
        assert.equal(read.result.contents[0].text, 'told');
        assert.equal((await next(stream)).params.uri, 'note://a');
      }
      const end = assert.rejects(next(stream));
      leaving.abort();
      await end;
    });
  });

  test(`${way}: leaving cancels a modern request only (R-129, R-130)`, async () => {
    const made = server();
    const started = resolvers();
    const cancelled = resolvers();
    let goOn;
    let signalOfLegacy;
    made.resource('slow://modern', async (_, { signal }) => {
      signal.addEventListener('abort', () => cancelled.resolve('aborted'));
      started.resolve();
      await cancelled.promise;
      return 'too late';
    });
    const legacyStarted = resolvers();
    made.resource('slow://legacy', async (_, { signal }) => {
      signalOfLegacy = signal;
      legacyStarted.resolve();
      return new Promise((resolve) => {
        goOn = () => resolve('x');
      });
    });
    await serving(made, {}, async (caller) => {
      const session = await caller.session();
      const gone = new AbortController();
      const legacy = session.post(request(1, 'resources/read', { uri: 'slow://legacy' }), { signal: gone.signal });
      const left = assert.rejects(legacy);
      await legacyStarted.promise;
      gone.abort();
      await left;
      // The server has seen the end of the later one, so it has seen that of the earlier one too.
      const leaving = new AbortController();
      const reading = caller.send('resources/read', { uri: 'slow://modern' }, { signal: leaving.signal });
      const refused = assert.rejects(reading);
      await started.promise;
      leaving.abort();
      await refused;
      assert.equal(await cancelled.promise, 'aborted');
      assert.equal(signalOfLegacy.aborted, false);
      goOn();
    });
  });

  test(`${way}: tokens are verified by the author's function (R-195, R-198, R-202)`, async () => {
    const made = server();
    made.resource('me://x', (_, ctx) => ctx.principal);
    const asked = [];
    const verify = async (token) => {
      asked.push(token);
      await sleep(1);
      if (token === 'bad') throw new InvalidTokenError('unknown');
      if (token === 'broken') throw new Error('the key store does not answer');
      return { subject: `user of ${token}`, scopes: [token === 'weak' ? 'none' : 'read'] };
    };
    const auth = {
      resource: 'https://api.example.com/mcp',
      authorizationServers: ['https://login.example.com'],
      requiredScopes: ['read'],
      verify,
    };
    const { text } = await heard(() =>
      serving(made, { auth }, async (caller) => {
        assert.equal(await caller.text('me://x', { token: 'good' }), 'user of good');
        for (const [token, status] of [
          [undefined, 401],
          ['bad', 401],
          ['weak', 403],
          ['broken', 503],
        ]) {
          const response = await caller.send('resources/read', { uri: 'me://x' }, { token });
          assert.equal(response.status, status, token);
          const challenge = response.headers.get('www-authenticate') ?? '';
          if (status < 500) assert.match(challenge, /resource_metadata=/);
          await response.text();
        }
        const document = new URL('/.well-known/oauth-protected-resource/mcp', caller.url);
        const response = await caller.ask(document, { method: 'GET' });
        assert.deepEqual((await response.json()).authorization_servers, ['https://login.example.com']);
      }),
    );
    assert.deepEqual(asked, ['good', 'bad', 'weak', 'broken']);
    assert.match(text, /a token could not be verified.*key store/s);
  });

  test(`${way}: reports come before the answer (R-124, R-162)`, async () => {
    const made = server();
    made.resource('work://x', async (_, ctx) => {
      ctx.progress(1, 2);
      await sleep(1);
      return 'done';
    });
    await serving(made, {}, async (caller) => {
      const response = await caller.send('resources/read', { uri: 'work://x' }, { meta: { progressToken: 't' } });
      const stream = messages(response);
      assert.deepEqual((await next(stream)).params, { progressToken: 't', progress: 1, total: 2 });
      assert.equal((await next(stream)).result.contents[0].text, 'done');
    });
  });

  test(`${way}: large contents, and a client that reads late`, async () => {
    const made = server();
    const text = 'abcdefghij'.repeat(300_000);
    made.resource('large://x', async () => text);
    await serving(made, { answers: 'events' }, async (caller) => {
      const response = await caller.send('resources/read', { uri: 'large://x' });
      await sleep(20);
      assert.equal((await answer(response)).result.contents[0].text, text);
    });
  });

  test(`${way}: a body that is too large is refused (R-190)`, async () => {
    const made = server({ limits: { message: 1000 } });
    await serving(made, {}, async (caller) => {
      const response = await caller.send('resources/read', { uri: `x://${'x'.repeat(2000)}` });
      assert.equal(response.status, 413);
    });
  });

  test(`${way}: a handler asks a legacy client (R-144)`, async () => {
    const made = server();
    made.resource('roots://x', async (_, ctx) => {
      try {
        return JSON.stringify(await ctx.ask('roots/list'));
      } catch (error) {
        assert.ok(error instanceof AskFailedError);
        return `${error.code}`;
      }
    });
    await serving(made, {}, async (caller) => {
      const session = await caller.session({ roots: {} });
      for (const [reply, text] of [
        [{ result: { roots: [] } }, '{"roots":[]}'],
        [{ error: { code: 7, message: 'no' } }, '7'],
      ]) {
        const stream = messages(await session.post(request(1, 'resources/read', { uri: 'roots://x' })));
        const { id, method } = await next(stream);
        assert.equal(method, 'roots/list');
        assert.equal((await session.post({ jsonrpc: '2.0', id, ...reply })).status, 202);
        assert.equal((await next(stream)).result.contents[0].text, text);
      }
      assert.equal(await caller.text('roots://x'), 'undefined');
    });
  });

  test(`${way}: the end ends listens with their results (R-096)`, async () => {
    const made = server();
    made.resource('note://a', () => 'x');
    await serving(made, {}, async (caller) => {
      const notifications = { resourceSubscriptions: ['note://a'] };
      const listen = messages(await caller.send('subscriptions/listen', { notifications }));
      await next(listen);
      made.close();
      assert.ok((await next(listen)).result);
    });
  });

  test(`${way}: wrong options are refused`, async () => {
    for (const [options, error] of [
      [{ path: 'mcp' }, RegistrationError],
      [{ hosts: 'example.com' }, TypeError],
      [{ answers: 'xml' }, TypeError],
      [{ nonsense: true }, TypeError],
    ]) {
      await assert.rejects(
        serving(server(), options, () => {}),
        error,
      );
    }
  });
}

test('what the engine knows does not wait for the event loop', async () => {
  const made = server();
  made.addResource({ uri: 'text://x', name: 'x' }, { text: 'constant' });
  const read = `
    import { modern } from ${JSON.stringify(new URL('web.mjs', import.meta.url))};
    const response = await fetch(process.argv[1], modern(1, 'resources/read', { uri: 'text://x' }));
    console.log((await response.json()).result.contents[0].text);
    process.exit();`;
  made.resource('hold://x', () => held());
  let held;
  await WAYS.run(made, {}, async (caller) => {
    const { spawnSync } = await import('node:child_process');
    held = () => {
      const options = { encoding: 'utf8', timeout: 60_000 };
      return spawnSync(process.execPath, ['--input-type=module', '-e', read, caller.url], options).stdout.trim();
    };
    const { result } = await heard(() => caller.text('hold://x'));
    assert.equal(result, 'constant');
  });
});

test('by default only this machine is served (R-158)', async () => {
  await WAYS.run(server(), {}, async ({ url }) => {
    assert.equal(new URL(url).hostname, '127.0.0.1');
    const elsewhere = connect({ host: '127.0.0.2', port: Number(new URL(url).port) });
    const [error] = await once(elsewhere, 'error');
    assert.equal(error.code, 'ECONNREFUSED');
  });
});

test('an address that is taken', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  await assert.rejects(server().run({ http: { port: taken.address().port } }), { code: 'EADDRINUSE' });
  taken.close();
});

test('a handler behind a framework: mounted, and with a body that was read', async () => {
  const made = server();
  made.resource('note://a', () => 'x');
  const handle = made.nodeHandler();
  const web = createServer(async (incoming, response) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    incoming.body = JSON.parse(Buffer.concat(chunks));
    incoming.url = incoming.url.slice('/api'.length);
    handle(incoming, response);
  }).listen(0, '127.0.0.1');
  await once(web, 'listening');
  try {
    assert.equal(await new Caller(`http://127.0.0.1:${web.address().port}/api/mcp`).text('note://a'), 'x');
  } finally {
    web.closeAllConnections();
    web.close();
  }
});

const PROGRAM = `
import { setTimeout as sleep } from 'node:timers/promises';
import { ResourceServer } from 'mcp-resources';
const server = new ResourceServer({ name: 'end' });
server.resource('slow://x', async () => {
  console.error('started');
  await sleep(300);
  return 'finished';
});
await server.run({ http: { port: 0 } });
`;

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`${signal} ends the process: what is in flight is answered, and the code is 0`, async () => {
    const options = { stdio: ['ignore', 'ignore', 'pipe'], cwd: new URL('.', import.meta.url) };
    const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], options);
    const exit = once(child, 'exit');
    const lines = createInterface(child.stderr)[Symbol.asyncIterator]();
    const [, url] = (await lines.next()).value.split(' ');
    const reading = new Caller(url).text('slow://x');
    assert.equal((await lines.next()).value, 'started');
    child.kill(signal);
    assert.equal(await reading, 'finished');
    assert.deepEqual(await exit, [0, null]);
    assert.equal((await lines.next()).done, true);
  });
}

test('a server that nobody holds any longer is freed, and so is a handler of it', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const left = new Set();
  const freed = new FinalizationRegistry((number) => left.delete(number));
  for (let number = 0; number < 20; number += 1) {
    const made = server();
    made.resource('note://{x}', ({ x }) => `${x} of ${made.name}`);
    const handle = made.fetchHandler();
    const caller = new Caller('http://localhost/mcp', (url, init) => handle(new Request(url, init)));
    assert.equal(await caller.text('note://a'), `a of ${made.name}`);
    left.add(number);
    freed.register(made, number);
  }
  for (let round = 0; left.size > 1 && round < 50; round += 1) {
    collect();
    await sleep(10);
  }
  // The last one may still be on the stack.
  assert.ok(left.size <= 1, `${left.size} of 20 are left`);
});

test('handlers that never answer are not kept for ever', async () => {
  const made = server();
  made.resource('never://x', () => new Promise(() => {}));
  made.resource('note://a', () => 'x');
  await WAYS.fetch(made, {}, async (caller) => {
    for (let number = 0; number < 1_100; number += 1) {
      const leaving = new AbortController();
      const asked = caller.send('resources/read', { uri: 'never://x' }, { signal: leaving.signal });
      await sleep(0);
      leaving.abort();
      await Promise.allSettled([asked]);
    }
    assert.ok(internals(made).native.waiting <= 1_024, `${internals(made).native.waiting} wait`);
    assert.equal(await caller.text('note://a'), 'x');
  });
});
