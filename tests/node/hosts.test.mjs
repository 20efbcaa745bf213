// The handlers inside real hosts: Express and Hono below a path, node:http with hostile clients, and the end of a server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import express from 'express';
import { Hono } from 'hono';
import { Client } from 'mcp-resources/testing';
import { heard, readText, server } from './helpers.mjs';
import { answer, Caller, messages, modern, next } from './web.mjs';

/** Gives `body` the origin of a `node:http` server while it listens. */
async function listening(handle, body) {
  const web = createServer(handle).listen(0, '127.0.0.1');
  await once(web, 'listening');
  try {
    return await body(`http://127.0.0.1:${web.address().port}`, web);
  } finally {
    web.closeAllConnections();
    web.close();
  }
}

function deferred() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function notes(options) {
  const made = server(options);
  made.resource('note://a', () => 'x');
  return made;
}

const AUTH = {
  resource: 'http://localhost/auth/mcp',
  authorizationServers: ['https://login.example.com'],
  verify: (token) => ({ subject: token }),
};

test('Express: the endpoint is the mount, and what follows it', async () => {
  for (const [prefix, path] of [
    ['/mcp', '/mcp'],
    ['/mcp', '/mcp/'],
    ['/api', '/api/mcp'],
    ['/api', '/api/mcp/'],
    ['/api', '/api'],
  ]) {
    const app = express();
    app.use(express.json());
    app.use(prefix, notes().nodeHandler());
    await listening(app, async (origin) => {
      assert.equal(await new Caller(`${origin}${path}`).text('note://a'), 'x', `${prefix} ${path}`);
    });
  }
});

test('node:http: one final slash makes no difference, and a body that Express has decompressed is read (R-155)', async () => {
  await listening(notes().nodeHandler({ health: '/health' }), async (origin) => {
    assert.equal(await new Caller(`${origin}/mcp/`).text('note://a'), 'x');
    for (const path of ['/mcp//', '/mcp%2F', '/mcp/x']) {
      assert.equal((await fetch(`${origin}${path}`, { redirect: 'manual' })).status, 404, path);
    }
    for (const method of ['GET', 'HEAD']) {
      const health = await fetch(`${origin}/health/`, { method, headers: { origin: 'https://a.example' } });
      assert.equal(health.status, 200);
      assert.equal(await health.text(), method === 'GET' ? 'ok\n' : '');
    }
  });
  const zipped = async (origin) => {
    const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', accept: 'application/json' };
    return fetch(`${origin}/mcp`, { method: 'POST', headers, body: gzipSync(message) });
  };
  await listening(notes().nodeHandler(), async (origin) => {
    const refused = await zipped(origin);
    assert.equal(refused.status, 415);
    assert.equal(refused.headers.get('accept-encoding'), 'identity');
  });
  const app = express()
    .use(express.json())
    .use('/mcp', notes().nodeHandler({ sessions: false }));
  await listening(app, async (origin) => assert.equal((await zipped(origin)).status, 200));
});

test('Express: the challenge names a document that answers below the mount (R-196, R-198)', async () => {
  const app = express().use('/auth', notes().nodeHandler({ auth: AUTH }));
  await listening(app, async (origin) => {
    const refused = await new Caller(`${origin}/auth/mcp`).send('resources/read', { uri: 'note://a' });
    assert.equal(refused.status, 401);
    const [, url] = /resource_metadata="http:\/\/localhost([^"]+)"/.exec(refused.headers.get('www-authenticate'));
    const document = await fetch(`${origin}${url}`);
    assert.equal((await document.json()).resource, 'http://localhost/auth/mcp');
  });
});

test('Hono: at a path of its own, with the metadata (R-196)', async () => {
  const handle = notes().fetchHandler({ path: '/api/mcp', auth: { ...AUTH, resource: 'http://localhost/api/mcp' } });
  const app = new Hono();
  app.all('/api/mcp', (context) => handle(context.req.raw));
  app.all('/.well-known/*', (context) => handle(context.req.raw));
  const ask = (url, init) => app.request(url, init);
  assert.equal(await new Caller('http://localhost/api/mcp', ask).text('note://a', { token: 'ada' }), 'x');
  const refused = await new Caller('http://localhost/api/mcp', ask).send('resources/read', { uri: 'note://a' });
  const [, url] = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate'));
  assert.equal((await (await ask(url)).json()).resource, 'http://localhost/api/mcp');
});

test('a refusal names the option, in the answer and once in the log (R-156, R-157)', async () => {
  const handle = notes().nodeHandler();
  const { text } = await heard(() =>
    listening(handle, async (origin) => {
      for (let count = 0; count < 3; count += 1) {
        const wrong = await answer(await fetch(`${origin}/mpc?key=secret`));
        assert.match(wrong.error.message, /"\/mpc".*"\/mcp"/);
        const headers = { origin: 'https://a.example' };
        const refused = await answer(await fetch(`${origin}/mcp`, { headers }));
        assert.match(refused.error.message, /"https:\/\/a\.example".*"origins"/);
      }
    }),
  );
  assert.equal(text.split('/mpc').length, 2, text);
  assert.equal(text.split('a.example').length, 2, text);
  assert.doesNotMatch(text, /secret/);
});

test('node:http: what may be smuggled is refused (RFC 9112, section 11.2)', async () => {
  const start = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  const hidden = 'GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n';
  await listening(notes().nodeHandler(), async (origin) => {
    for (const bad of [
      `${start}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
      `${start}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n${hidden}`,
      `${start}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}${hidden}`,
      `${start}X: a\u0001b\r\nContent-Length: 2\r\n\r\n{}`,
      `${start}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n${hidden}`,
      `${start}Transfer-Encoding: gzip\r\n\r\n${hidden}`,
      `${start}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n${hidden}`,
    ]) {
      const client = connect(Number(new URL(origin).port), '127.0.0.1');
      client.write(bad);
      let received = '';
      for await (const chunk of client) received += chunk;
      assert.match(received, /^HTTP\/1\.1 (400|501)/, bad);
      assert.equal(received.split('HTTP/1.1 ').length, 2, received);
    }
  });
});

test('nodeHandler: half a body is not waited for (R-190)', async () => {
  const made = notes({ limits: { bodyTimeout: 50 } });
  await listening(made.nodeHandler(), async (origin) => {
    const client = connect(Number(new URL(origin).port), '127.0.0.1');
    client.write(
      'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    );
    let received = '';
    for await (const chunk of client) received += chunk;
    assert.match(received, /^HTTP\/1\.1 408/);
  });
});

test('fetch: half a body is not waited for (R-190)', async () => {
  const handle = notes({ limits: { bodyTimeout: 50 } }).fetchHandler();
  let isCancelled = false;
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{')),
    cancel: () => {
      isCancelled = true;
    },
  });
  const given = modern(1, 'ping', {});
  const response = await handle(new Request('http://localhost/mcp', { ...given, body, duplex: 'half' }));
  assert.equal(response.status, 408);
  assert.equal(isCancelled, false);
});

test('bodies that wait for their rest have a bound together', async () => {
  const made = notes({ limits: { bodiesTotal: 100, bodyTimeout: 1000 } });
  const handle = made.fetchHandler();
  const stuck = () =>
    new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(' '.repeat(80))) });
  const post = () =>
    handle(new Request('http://localhost/mcp', { ...modern(1, 'ping', {}), body: stuck(), duplex: 'half' }));
  assert.equal((await Promise.race([post(), post()])).status, 503);
});

test('sessions of one address have a bound (R-169)', async () => {
  const made = notes({ limits: { sessionsPerClient: 1 } });
  await listening(made.nodeHandler(), async (origin) => {
    const caller = new Caller(`${origin}/mcp`);
    await caller.session();
    await assert.rejects(caller.session());
  });
});

test('anonymous clients are not the local process (R-204)', async () => {
  const made = server({ guard: { scopes: { 'secret://**': 'admin' }, principals: { '': { scopes: 'admin' } } } });
  made.resource('secret://a', () => 'secret');
  made.resource('me://a', (_, ctx) => ctx.principal);
  const handle = made.fetchHandler();
  const caller = new Caller('http://localhost/mcp', (url, init) => handle(new Request(url, init)));
  assert.equal(await caller.text('me://a'), 'anonymous');
  await assert.rejects(caller.text('secret://a'));
});

test('handlers see the headers of their request, without credentials (R-208)', async () => {
  const made = server();
  made.resource('me://a', (_, ctx) => JSON.stringify(ctx.headers));
  const handle = made.fetchHandler();
  const ask = (url, init) => {
    const headers = { ...init.headers, 'X-Tenant': 'acme', cookie: 'secret', authorization: 'Bearer secret' };
    return handle(new Request(url, { ...init, headers }));
  };
  const text = await new Caller('http://localhost/mcp', ask).text('me://a');
  assert.equal(JSON.parse(text)['x-tenant'], 'acme');
  assert.doesNotMatch(text, /secret/);
  assert.equal(await readText(made, 'me://a'), '{}');
});

for (const way of ['nodeHandler', 'fetch']) {
  test(`${way}: close() cancels a read, and ends a listen with its result (R-096)`, async () => {
    const made = notes();
    let signal;
    let started;
    const isStarted = new Promise((resolve) => {
      started = resolve;
    });
    made.resource('slow://x', async (_, ctx) => {
      signal = ctx.signal;
      started();
      await sleep(20_000, undefined, { signal });
      return 'late';
    });
    const body = async (caller) => {
      const listen = messages(
        await caller.send('subscriptions/listen', { notifications: { resourceSubscriptions: ['note://a'] } }),
      );
      await next(listen);
      const reading = caller.send('resources/read', { uri: 'slow://x' });
      await isStarted;
      made.close();
      assert.equal((await reading).status, 503);
      assert.ok((await next(listen)).result);
      assert.equal(signal.aborted, true);
    };
    if (way === 'fetch') {
      const handle = made.fetchHandler();
      await body(new Caller('http://localhost/mcp', (url, init) => handle(new Request(url, init))));
    } else {
      await listening(made.nodeHandler(), (origin) => body(new Caller(`${origin}/mcp`)));
    }
  });
}

/** Calls with `caller` while a handler of its own serves. */
const HANDLERS = {
  nodeHandler: (made, body) => {
    const handle = made.nodeHandler();
    return listening(handle, (origin) => body(new Caller(`${origin}/mcp`), handle));
  },
  fetch: (made, body) => {
    const handle = made.fetchHandler();
    return body(new Caller('http://localhost/mcp', (url, init) => handle(new Request(url, init))), handle);
  },
};

for (const [way, serving] of Object.entries(HANDLERS)) {
  test(`${way}: after close() requests are refused, and what is made later serves`, async () => {
    const made = notes();
    await serving(made, async (caller) => {
      assert.equal(await caller.text('note://a'), 'x');
      made.close();
      assert.equal((await caller.send('resources/read', { uri: 'note://a' })).status, 503);
    });
    await serving(made, async (caller) => assert.equal(await caller.text('note://a'), 'x'));
    made.close();
  });

  test(`${way}: a token that is verified while close() is called opens nothing`, async () => {
    const made = notes();
    const verifying = deferred();
    const verified = deferred();
    const auth = {
      resource: 'http://localhost/mcp',
      authorizationServers: ['https://login.example.com'],
      verify: () => {
        verifying.resolve();
        return verified.promise;
      },
    };
    const own = { nodeHandler: () => made.nodeHandler({ auth }), fetchHandler: () => made.fetchHandler({ auth }) };
    await serving(own, async (caller) => {
      const reading = caller.send('resources/read', { uri: 'note://a' }, { token: 'x' });
      await verifying.promise;
      made.close();
      verified.resolve({ subject: 'alice' });
      assert.equal((await reading).status, 503);
    });
  });

  test(`${way}: one handler ends, and the other of the same server goes on (R-096)`, async () => {
    const made = notes();
    const filter = { notifications: { resourceSubscriptions: ['note://a'] } };
    await serving(made, (ending, { close }) =>
      serving(made, async (caller) => {
        const [left, stayed] = [ending, caller].map(async (one) =>
          messages(await one.send('subscriptions/listen', filter)),
        );
        await next(await left);
        await next(await stayed);
        close();
        close();
        assert.ok((await next(await left)).result);
        assert.equal((await ending.send('resources/read', { uri: 'note://a' })).status, 503);
        assert.equal(await caller.text('note://a'), 'x');
        made.notifyUpdated('note://a');
        assert.equal((await next(await stayed)).params.uri, 'note://a');
        made.close();
        assert.ok((await next(await stayed)).result);
      }),
    );
  });
}

test('a client of tests listens after another one has gone (R-096)', async () => {
  const made = notes();
  for (const _ of [1, 2]) {
    const client = await Client.connect(made);
    const listen = await client.listen(['note://a']);
    made.notifyUpdated('note://a');
    assert.equal((await listen.next()).params.uri, 'note://a');
    client.close();
  }
});

const PROGRAM = `
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ResourceServer } from 'mcp-resources';
const server = new ResourceServer({ name: 'end' });
server.resource('slow://x', async (_, ctx) => {
  console.error('started');
  await sleep(20_000, undefined, { signal: ctx.signal });
  return 'late';
});
const web = createServer(server.nodeHandler()).listen(0, '127.0.0.1', () => console.error(web.address().port));
process.once('SIGTERM', () => {
  server.close();
  web.close();
});
`;

test('a read that takes long does not keep a process alive whose server was closed', async () => {
  const options = { stdio: ['ignore', 'ignore', 'pipe'], cwd: new URL('.', import.meta.url) };
  const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], options);
  const exit = once(child, 'exit');
  const lines = createInterface(child.stderr)[Symbol.asyncIterator]();
  const port = (await lines.next()).value;
  const reading = new Caller(`http://127.0.0.1:${port}/mcp`).send('resources/read', { uri: 'slow://x' });
  assert.equal((await lines.next()).value, 'started');
  const start = Date.now();
  child.kill('SIGTERM');
  assert.equal((await reading).status, 503);
  assert.deepEqual(await exit, [0, null]);
  assert.ok(Date.now() - start < 10_000);
});
