// The asynchronous context of a request reaches every function that answers it, and never another request.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import express from 'express';
import Fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import bodyParser from 'koa-bodyparser';
import { Contents, providers, ResourceServer } from 'mcp-resources';
import { Client } from 'mcp-resources/testing';
import { answer, Caller, META, modern, request } from './web.mjs';

const user = new AsyncLocalStorage();
const PEOPLE = ['alice', 'bob', 'carol', 'dave'];
const who = () => user.getStore() ?? 'nobody';
const given = (headers) => headers['x-user'] ?? 'probe';

/** A server whose functions all say who asks; `redact` adds who it thinks that is. */
function served() {
  const seen = ['w://redacted', 'w://constant', 'memory:///a'];
  const redact = (uri, contents) =>
    seen.includes(uri) ? new Contents(`${contents.body}${who()}`, { mimeType: contents.mimeType }) : contents;
  const server = new ResourceServer(
    { name: 'w', version: '1' },
    { redact, json: () => who(), logger: { ...console, error() {} } },
  );
  server.method('vendor/who', () => ({ who: who() }));
  server.method('vendor/who-async', async () => {
    await turn();
    return { who: who() };
  });
  const later = async () => {
    await turn();
    return who();
  };
  server.resource('w://sync', () => who());
  server.resource('w://async', later);
  server.resource('w://schema/{x}', { parameters: { x: schema() } }, () => who());
  // biome-ignore lint/suspicious/noThenProperty: what a query builder returns
  server.resource('w://thenable', () => ({ then: (resolve) => later().then(resolve) }));
  server.resource('w://chunks', function* () {
    yield '';
    yield who();
  });
  server.resource('w://async-chunks', async function* () {
    yield '';
    await turn();
    yield who();
  });
  server.resource('w://encoded', async () => new Map());
  server.resource('w://redacted', () => '');
  server.addResource({ uri: 'w://constant' }, { text: '' });
  const folder = providers.memory();
  folder.put('a', '');
  server.mount(folder);
  for (const [name, list] of [
    ['a', () => [who()]],
    ['b', async () => [await later()]],
    ['c', () => [who()].values()],
    ['d', async () => [await later()]],
  ]) {
    const handler = server.resource(`w://${name}/{who}`, ({ who }) => who);
    handler.list(list).complete('who', async () => [await later()]);
  }
  return server;
}

/** A schema that answers later. */
function schema() {
  const validate = async (value) => {
    await turn();
    return { value };
  };
  return { '~standard': { version: 1, vendor: 'test', validate } };
}

const READS = ['sync', 'async', 'schema/1', 'thenable', 'chunks', 'async-chunks', 'encoded', 'redacted', 'constant'];
const URIS = [...READS.map((name) => `w://${name}`), 'memory:///a'];
const LISTED = ['w://a/', 'w://b/', 'w://c/', 'w://d/'];

const FRAMEWORKS = {
  'node:http': (server) => {
    const handle = server.nodeHandler();
    return createServer((request, response) => user.run(given(request.headers), () => handle(request, response)));
  },
  enterWith: (server) => {
    const handle = server.nodeHandler();
    return createServer((request, response) => {
      user.enterWith(given(request.headers));
      handle(request, response);
    });
  },
  Express: (server) => {
    const app = express();
    app.use((request, _, next) => user.run(given(request.headers), next));
    app.use(express.json());
    app.use('/mcp', server.nodeHandler());
    return createServer(app);
  },
  Koa: (server) => {
    const [app, handle] = [new Koa(), server.nodeHandler()];
    app.use((context, next) => user.run(given(context.headers), next));
    app.use(bodyParser());
    app.use((context) => {
      context.respond = false;
      handle(context.req, context.res, context.request.body);
    });
    return createServer(app.callback());
  },
  Hono: (server) => {
    const [app, handle] = [new Hono(), server.fetchHandler()];
    app.use((context, next) => user.run(context.req.header('x-user') ?? 'probe', next));
    app.all('/mcp', (context) => handle(context.req.raw));
    return createServer(bridged((request) => app.fetch(request)));
  },
};

/** A handler of `node:http` for one of the Fetch API. */
function bridged(handle) {
  return async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = chunks.length > 0 ? Buffer.concat(chunks) : undefined;
    const url = `http://${request.headers.host}${request.url}`;
    const answered = await handle(new Request(url, { method: request.method, headers: request.headers, body }));
    response.writeHead(answered.status, Object.fromEntries(answered.headers));
    if (answered.body !== null) for await (const chunk of answered.body) response.write(chunk);
    response.end();
  };
}

async function listening(web, body) {
  web.listen(0, '127.0.0.1');
  await once(web, 'listening');
  try {
    return await body(`http://127.0.0.1:${web.address().port}`);
  } finally {
    web.closeAllConnections();
    web.close();
  }
}

/** A caller whose requests name a person. */
function caller(origin, name) {
  return new Caller(`${origin}/mcp`, (url, options) =>
    fetch(url, { ...options, headers: { ...options.headers, 'x-user': name } }),
  );
}

async function everything(origin) {
  await fetch(`${origin}/mcp`).then((response) => response.text());
  const many = [...PEOPLE, ...PEOPLE, ...PEOPLE];
  for (const uri of URIS) {
    const found = await Promise.all(many.map((name) => caller(origin, name).text(uri)));
    assert.deepEqual(
      found.map((text) => text.replaceAll('"', '')),
      many,
      uri,
    );
  }
  const lists = await Promise.all(
    many.map(async (name) => answer(await caller(origin, name).send('resources/list', {}))),
  );
  lists.forEach(({ result }, at) => {
    const uris = result.resources.map(({ uri }) => uri).filter((uri) => LISTED.includes(uri.slice(0, 6)));
    assert.deepEqual(
      uris,
      LISTED.map((uri) => `${uri}${many[at]}`),
    );
  });
  for (const name of PEOPLE) {
    for (const uri of LISTED) {
      const params = { ref: { type: 'ref/resource', uri: `${uri}{who}` }, argument: { name: 'who', value: '' } };
      const { result } = await answer(await caller(origin, name).send('completion/complete', params));
      assert.deepEqual(result.completion.values, [name]);
    }
    for (const method of ['vendor/who', 'vendor/who-async']) {
      const { result } = await answer(await caller(origin, name).send(method, {}));
      assert.equal(result.who, name);
    }
  }
}

for (const [name, framework] of Object.entries(FRAMEWORKS)) {
  test(`${name}: each request has a context of its own`, () => listening(framework(served()), everything));
}

test('Fastify: each request has a context of its own', async () => {
  const [app, handle] = [Fastify(), served().nodeHandler()];
  app.addHook('onRequest', (request, _, done) => user.run(given(request.headers), done));
  app.all('/mcp', (request, reply) => {
    reply.hijack();
    handle(request.raw, reply.raw, request.body);
  });
  const origin = await app.listen({ port: 0, host: '127.0.0.1' });
  try {
    await everything(origin);
  } finally {
    app.server.closeAllConnections();
    await app.close();
  }
});

test('the stream of a session lends its context to no request', async () => {
  await listening(FRAMEWORKS.Express(served()), async (origin) => {
    const session = await caller(origin, 'alice').session();
    const stream = await session.listen({ headers: { ...session.headers } });
    for (const name of ['bob', 'alice']) {
      const other = caller(origin, name);
      const post = (message) =>
        other.ask(other.url, { method: 'POST', headers: session.headers, body: JSON.stringify(message) });
      for (const uri of URIS) {
        const { result } = await answer(await post(request(1, 'resources/read', { uri })));
        assert.equal(result.contents[0].text.replaceAll('"', ''), name, uri);
      }
      const { result } = await answer(await post(request(2, 'resources/list', {})));
      const uris = result.resources.map(({ uri }) => uri).filter((uri) => LISTED.includes(uri.slice(0, 6)));
      assert.deepEqual(
        uris,
        LISTED.map((uri) => `${uri}${name}`),
      );
    }
    await stream.body.cancel();
  });
});

test('what a function enters reaches no other call', async () => {
  const server = new ResourceServer({ name: 'w', version: '1' });
  const take = ({ name }) => {
    const before = who();
    user.enterWith(name);
    return before;
  };
  server.resource('w://sync/{name}', take);
  server.resource('w://async/{name}', async (values) => take(values));
  const client = await Client.connect(server);
  await user.run('test', async () => {
    for (const kind of ['sync', 'async', 'sync']) {
      assert.equal(await client.readText(`w://${kind}/mallory`), 'test');
      assert.equal(who(), 'test');
    }
  });
  client.close();
  await listening(FRAMEWORKS.Express(server), async (origin) => {
    for (const name of PEOPLE) assert.equal(await caller(origin, name).text('w://sync/mallory'), name);
  });
  let url;
  const serving = user.run('start', () =>
    server.run({
      http: {
        port: 0,
        onListening: (found) => {
          url = found;
        },
      },
    }),
  );
  while (url === undefined) await sleep(5);
  const native = new Caller(url);
  try {
    const uris = ['w://sync/a', 'w://async/b', 'w://sync/c', 'w://async/d'];
    assert.deepEqual(await Promise.all(uris.map((uri) => native.text(uri))), ['start', 'start', 'start', 'start']);
  } finally {
    server.close();
    await serving;
  }
});

test('an aborted signal tells its listeners in their own context', async () => {
  const server = new ResourceServer({ name: 'w', version: '1' });
  const heard = [];
  let begun;
  const begins = new Promise((resolve) => {
    begun = resolve;
  });
  server.resource('w://waits', (_, { signal }) => {
    begun();
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        heard.push(who());
        resolve('');
      });
    });
  });
  const client = await Client.connect(server);
  const sent = user.run('alice', () => client.send('read', { uri: 'w://waits' }));
  sent.answer.catch(() => {});
  await begins;
  user.run('bob', () => client.cancel(sent.id));
  assert.deepEqual(heard, ['alice']);
  client.close();
});

test('every lister knows who asks', async () => {
  const server = new ResourceServer({ name: 'w', version: '1' });
  const seen = [];
  for (const name of ['a', 'b', 'c']) {
    const handler = server.resource(`w://${name}/{id}`, ({ id }) => id);
    handler.list((_, ctx) => {
      seen.push([ctx.principal, ctx.revision, ctx.headers['x-user']]);
      return ['1'];
    });
  }
  await listening(createServer(server.nodeHandler()), async (origin) => {
    const { result } = await answer(await caller(origin, 'alice').send('resources/list', {}));
    assert.equal(result.resources.length, 3);
    const expected = ['anonymous', modern(1, 'x', {}).headers['mcp-protocol-version'], 'alice'];
    assert.deepEqual(seen, [expected, expected, expected]);
    assert.ok(META);
  });
});
