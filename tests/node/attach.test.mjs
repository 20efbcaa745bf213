// `ResourceServer.attach`: our resources in servers of both generations of the official SDK, to the official clients.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { InMemoryTransport as Memory1 } from '@modelcontextprotocol/sdk/inMemory.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  ElicitRequestSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { createMcpHandler, InMemoryTransport, McpServer, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { internals } from '../../bindings-node/dist/server.js';
import { attached, factory, ours } from './attached-app.mjs';
import { heard } from './helpers.mjs';
import { MODERN } from './vectors.mjs';

const APP = fileURLToPath(new URL('./attached-app.mjs', import.meta.url));
const ABOUT = { name: 'test', version: '1' };
const CHANGES = {
  updated: 'notifications/resources/updated',
  resources: 'notifications/resources/list_changed',
  tools: 'notifications/tools/list_changed',
};
/** Longer than changes are held back to be sent together. */
const COALESCED = 250;

const two = (mode) => ({
  make: () => new Client(ABOUT, { versionNegotiation: { mode } }),
  stdio: (options) => new StdioClientTransport(options),
  http: (url, options) => new StreamableHTTPClientTransport(url, options),
  memory: InMemoryTransport,
  hear: (client, told) => {
    for (const [name, method] of Object.entries(CHANGES)) {
      client.setNotificationHandler(method, ({ params }) => told.push([name, params?.uri]));
    }
  },
});
const CLIENTS = {
  'client 2, modern': { ...two({ pin: MODERN }), isModern: true },
  'client 2, auto': two('auto'),
  'client 2, legacy': two('legacy'),
  'sdk 1': {
    make: () => new Client1(ABOUT),
    stdio: (options) => new Stdio1(options),
    http: (url, options) => new Http1(url, options),
    memory: Memory1,
    hear: (client, told) => {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) =>
        told.push(['updated', params.uri]),
      );
      client.setNotificationHandler(ResourceListChangedNotificationSchema, () => told.push(['resources', undefined]));
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => told.push(['tools', undefined]));
    },
  },
};

/** The ways to serve: each connects a client's transport to the servers of a factory, or of `resources`. */
const HOSTS = {
  memory: async (generation, { make }, client) => {
    const Memory = generation === 2 ? InMemoryTransport : Memory1;
    const [near, far] = Memory.createLinkedPair();
    if (generation === 2) serveStdio(make, { transport: far });
    else await (await make()).connect(far);
    return { transport: near, client };
  },
  'run, stdio': async (generation, { resources }, { stdio }) => ({
    transport: stdio({
      command: process.execPath,
      args: [APP, `${generation}`, resources ? 'run' : 'plain'],
      stderr: 'inherit',
    }),
  }),
  'own stdio': async (generation, { resources }, { stdio }) => ({
    transport: stdio({
      command: process.execPath,
      args: [APP, `${generation}`, resources ? 'own' : 'plain'],
      stderr: 'inherit',
    }),
  }),
  nodeHandler: async (generation, { make, resources }, { http }) => {
    const handle = resources === undefined ? ownHandler(generation, make) : resources.nodeHandler();
    const { url, close } = await listening(handle);
    return { transport: http(url), close };
  },
  'own http': async (generation, { make, resources }, { http }) => {
    const { url, close } = await listening(ownHandler(generation, make, resources));
    return { transport: http(url), close };
  },
};

/** What the documents of the SDK say how to serve HTTP. */
function ownHandler(generation, make, resources) {
  if (generation === 2) {
    const handler = createMcpHandler(make);
    return toNodeHandler(resources?.wrap(handler) ?? handler);
  }
  const sessions = new Map();
  return async (request, response) => {
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (transport === undefined) {
      const opened = (id) => sessions.set(id, transport);
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: opened });
      await make({ authInfo: request.auth }).connect(transport);
    }
    await transport.handleRequest(request, response);
  };
}

async function listening(handle) {
  const server = createServer((request, response) => {
    const token = request.headers.authorization?.replace('Bearer ', '');
    if (token !== undefined) request.auth = { token, clientId: token, scopes: token === 'root' ? ['admin'] : [] };
    void handle(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: new URL(`http://127.0.0.1:${server.address().port}/mcp`), close };
}

/** Whether a client is told of changes: HTTP without sessions tells nobody. */
const isTold = (generation, host, client) =>
  client.isModern || generation === 1 || !['nodeHandler', 'own http'].includes(host);

async function connected(generation, host, client, resources, body) {
  const make = resources?.factory ?? factory(generation);
  const { transport, close } = await HOSTS[host](generation, { make, resources }, client);
  const connection = client.make();
  const told = [];
  client.hear(connection, told);
  await connection.connect(transport);
  try {
    return await body(connection, told);
  } finally {
    await connection.close();
    close?.();
  }
}

const COMBINATIONS = [2, 1].flatMap((generation) =>
  Object.keys(CLIENTS)
    .filter((name) => name !== (generation === 2 ? 'client 2, auto' : 'client 2, modern'))
    .flatMap((name) => Object.keys(HOSTS).map((host) => ({ generation, name, host }))),
);

/** What a client sees of everything but resources, without attach. */
const PLAIN = new Map();

for (const { generation, name, host } of COMBINATIONS) {
  const client = CLIENTS[name];
  test(`attach to SDK ${generation}: ${name}, ${host}`, async () => {
    const plain = `${generation} ${name} ${isLocal(host)}`;
    if (!PLAIN.has(plain)) {
      PLAIN.set(plain, await connected(generation, isLocal(host) ? 'memory' : 'own http', client, undefined, record));
    }
    await connected(generation, host, client, attached(generation), async (connection, told) => {
      await readsAll(connection);
      assert.deepEqual(await record(connection), PLAIN.get(plain), 'everything else stays as it was');
      if (isTold(generation, host, client)) await hearsOnce(connection, told, client, host);
    });
  });
}

/** Our resources are there, and theirs. */
async function readsAll(connection) {
  assert.equal(connection.getServerVersion().name, 'app');
  assert.equal(connection.getInstructions(), 'Be nice.');
  const { resources, completions, tools } = connection.getServerCapabilities();
  assert.ok(resources && completions && tools);
  const listed = (await connection.listResources()).resources.map(({ uri }) => uri);
  assert.deepEqual(listed.sort(), ['app://own', 'shop://constant', 'shop://live']);
  const templates = (await connection.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate);
  assert.deepEqual(templates.sort(), ['app://items/{id}', 'shop://orders/{id}']);
  const uris = ['shop://constant', 'shop://live', 'shop://orders/7', 'app://own', 'app://items/x'];
  const texts = await Promise.all(uris.map((uri) => text(connection, uri)));
  assert.deepEqual(texts, ['ours', 'live', 'order 7', 'theirs app://own', 'theirs app://items/x']);
  for (const uri of ['shop://nothing', 'app://nothing']) await assert.rejects(text(connection, uri), /not found/i);
  for (const [uri, values] of [
    ['shop://orders/{id}', ['7', '8']],
    ['app://items/{id}', ['a', 'b']],
  ]) {
    const asked = { ref: { type: 'ref/resource', uri }, argument: { name: 'id', value: '' } };
    assert.deepEqual((await connection.complete(asked)).completion.values, values);
  }
}

/** Changes reach those who subscribe, once. */
async function hearsOnce(connection, told, client, host) {
  const change = (name, uri) => connection.callTool({ name, ...(uri && { arguments: { uri } }) });
  await change('rename', 'shop://live');
  await change('tell', 'app://own');
  const uris = ['shop://live', 'app://own'];
  const filter = { resourceSubscriptions: uris, toolsListChanged: true };
  const listen = client.isModern ? await connection.listen(filter) : undefined;
  if (listen === undefined) for (const uri of uris) await connection.subscribeResource({ uri });
  await change('rename', 'shop://live');
  await change('tell', 'app://own');
  await change('tell', 'app://other');
  await until(() => told.length >= 2);
  await sleep(COALESCED);
  assert.deepEqual(told.toSorted(), [
    ['updated', 'app://own'],
    ['updated', 'shop://live'],
  ]);
  told.length = 0;
  // A modern server over HTTP is made for each request: its tools do not change.
  if (isLocal(host) || !client.isModern) {
    await change('grow');
    await until(() => told.length > 0);
  }
  if (listen !== undefined) await listen.close();
  else for (const uri of uris) await connection.unsubscribeResource({ uri });
  await change('rename', 'shop://live');
  await change('tell', 'app://own');
  await sleep(COALESCED);
  assert.deepEqual(told, isLocal(host) || !client.isModern ? [['tools', undefined]] : []);
}

async function until(condition) {
  for (const end = Date.now() + 20_000; !condition(); await sleep(5)) assert.ok(Date.now() < end, 'in time');
}

function isLocal(host) {
  return !['nodeHandler', 'own http'].includes(host);
}

async function text(connection, uri) {
  const [content] = (await connection.readResource({ uri })).contents;
  return content.text;
}

/** What a client sees of everything but resources. */
async function record(connection) {
  const seen = [];
  const onprogress = (progress) => seen.push(['progress', progress]);
  const { tools } = await connection.listTools();
  seen.push(tools, await connection.listPrompts(), await connection.getPrompt({ name: 'greet' }));
  seen.push(
    await connection.callTool({ name: 'echo', arguments: { text: 'hi' } }),
    await connection.callTool({ name: 'fail' }),
  );
  seen.push(
    await connection.callTool({ name: 'steps' }, ...(connection instanceof Client1 ? [undefined] : []), { onprogress }),
  );
  for (const name of ['echo', 'nothing']) {
    seen.push(await connection.callTool({ name, arguments: {} }).catch(({ code, message }) => [code, message]));
  }
  seen.push(await connection.getPrompt({ name: 'nothing' }).catch(({ code, message }) => [code, message]));
  const { resources, completions, ...others } = connection.getServerCapabilities();
  seen.push(others, connection.getServerVersion(), connection.getInstructions());
  return JSON.parse(JSON.stringify(seen));
}

for (const [generation, names] of [
  [2, ['client 2, modern', 'client 2, legacy', 'sdk 1']],
  [1, ['client 2, legacy', 'sdk 1']],
]) {
  for (const name of names) {
    test(`attach to SDK ${generation}: ${name}: two tokens see two lists`, async () => {
      const resources = attached(generation);
      const { url, close } = await listening(ownHandler(generation, resources.factory, resources));
      const lists = {};
      for (const token of ['root', 'guest']) {
        const connection = CLIENTS[name].make();
        const headers = { authorization: `Bearer ${token}` };
        await connection.connect(CLIENTS[name].http(url, { requestInit: { headers } }));
        lists[token] = (await connection.listResources()).resources.map(({ uri }) => uri).sort();
        const secret = text(connection, 'shop://secret');
        if (token === 'root') assert.equal(await secret, 'secret');
        else await assert.rejects(secret, /not found/i);
        await connection.close();
      }
      close();
      const common = ['shop://constant', 'shop://live'];
      assert.deepEqual(lists.root, ['app://of/root', 'app://own', ...common, 'shop://secret']);
      assert.deepEqual(lists.guest, ['app://of/guest', 'app://own', ...common]);
    });
  }

  test(`attach to SDK ${generation}: an instance, without adoption, with a policy`, async () => {
    for (const { how, options, seen } of [
      { how: { adopt: false }, seen: ['shop://constant', 'shop://live'] },
      {
        how: {},
        options: { guard: { deny: ['app://**'] } },
        seen: ['shop://constant', 'shop://live'],
      },
    ]) {
      const app = factory(generation)();
      const resources = ours(options);
      assert.equal(resources.attach(app, how), resources);
      const [near, far] = (generation === 2 ? InMemoryTransport : Memory1).createLinkedPair();
      await app.connect(far);
      const connection = (generation === 2 ? CLIENTS['client 2, legacy'] : CLIENTS['sdk 1']).make();
      await connection.connect(near);
      assert.deepEqual((await connection.listResources()).resources.map(({ uri }) => uri).sort(), seen);
      await assert.rejects(text(connection, 'app://own'), /not found/i);
      await connection.close();
    }
  });

  test(`attach to SDK ${generation}: our tools follow theirs, and give way`, async () => {
    const resources = attached(generation);
    resources.tool('ours', () => 'called');
    const client = CLIENTS['sdk 1'];
    await connected(generation, 'memory', client, resources, async (connection) => {
      const names = async () => (await connection.listTools()).tools.map(({ name }) => name);
      assert.equal((await names()).at(-1), 'ours');
      assert.equal((await connection.callTool({ name: 'ours' })).content[0].text, 'called');
      resources.tool('echo', () => 'ours');
      const { text: warning } = await heard(async () => {
        assert.equal((await names()).filter((name) => name === 'echo').length, 1);
      });
      assert.match(warning, /both servers have a tool echo; that of the ResourceServer is left out/);
      assert.equal((await connection.callTool({ name: 'echo', arguments: { text: 'x' } })).content[0].text, 'x');
    });
    const taken = ours();
    taken.tool('echo', () => 'ours');
    assert.throws(
      () => taken.attach(factory(generation)()),
      /both servers have echo among their tools; rename one of them/,
    );
  });

  test(`attach to SDK ${generation}: a URI that both have is ours, and the log says so`, async () => {
    const resources = attached(generation);
    resources.resource('app://own', () => 'ours');
    await connected(generation, 'memory', CLIENTS['sdk 1'], resources, async (connection) => {
      const { text: warning } = await heard(async () => {
        const uris = (await connection.listResources()).resources.map(({ uri }) => uri);
        assert.equal(uris.filter((uri) => uri === 'app://own').length, 1);
        assert.equal(await text(connection, 'app://own'), 'ours');
      });
      assert.match(warning, /app:\/\/own"? is a resource of both servers; this one serves it/);
    });
  });

  test(`attach to SDK ${generation}: a thousand sessions leave nothing behind`, async () => {
    const resources = attached(generation);
    const watched = watching(resources);
    for (const name of names) {
      const client = CLIENTS[name];
      for (let round = 0; round < 1_000 / names.length; round += 1) {
        await connected(generation, 'memory', client, resources, async (connection) => {
          assert.equal(await text(connection, 'shop://live'), 'live');
          const uri = `shop://seen/${round}`;
          if (client.isModern) await connection.listen({ resourceSubscriptions: [uri] });
          else await connection.subscribeResource({ uri });
          await until(() => watched.has(uri));
        });
      }
    }
    await until(() => watched.size === 0);
    assert.equal(internals(resources).native.waiting, 0);
  });
}

/** The URIs that clients watch now. */
function watching(resources) {
  const watched = new Set();
  const seen = resources.resource('shop://seen/{id}', () => '');
  seen.onWatch((uri, isWatched) => (isWatched ? watched.add(uri) : watched.delete(uri)));
  return watched;
}

test('attach: a client that leaves in a listen, and one that cancels, end what they asked for', async () => {
  const resources = attached(2);
  const gone = new EventEmitter();
  const watched = watching(resources);
  resources.resource('shop://slow', async (_, { signal }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    gone.emit('cancelled');
    return '';
  });
  const { url, close } = await listening(ownHandler(2, resources.factory, resources));
  const connection = CLIENTS['client 2, modern'].make();
  await connection.connect(CLIENTS['client 2, modern'].http(url));
  await connection.listen({ resourceSubscriptions: ['shop://seen/1'] });
  await until(() => watched.size === 1);
  const abort = new AbortController();
  const cancelled = once(gone, 'cancelled');
  const read = connection.readResource({ uri: 'shop://slow' }, { signal: abort.signal });
  await sleep(100);
  abort.abort();
  await assert.rejects(read);
  await cancelled;
  await connection.close();
  close();
  await until(() => watched.size === 0);
});

for (const [generation, name] of [
  [2, 'client 2, modern'],
  [2, 'client 2, legacy'],
  [1, 'sdk 1'],
]) {
  for (const host of ['memory', 'own http']) {
    if (generation === 2 && host === 'own http' && !CLIENTS[name].isModern) continue;

    test(`attach to SDK ${generation}: ${name}, ${host}: close ends listens, and the SDK goes on`, async () => {
      const resources = attached(generation);
      await connected(generation, host, CLIENTS[name], resources, async (connection, told) => {
        if (CLIENTS[name].isModern) {
          const listen = await connection.listen({ resourceSubscriptions: ['shop://live'] });
          resources.close();
          await listen.closed;
        } else {
          await connection.subscribeResource({ uri: 'shop://live' });
          resources.close();
        }
        resources.notifyUpdated('shop://live');
        await sleep(COALESCED);
        assert.deepEqual(told, []);
        assert.equal(await text(connection, 'shop://live'), 'live');
      });
    });
  }
}

test('attach: a handler tells changes on its bus; the log says if nobody has wrapped it', async () => {
  const resources = attached(2);
  const handler = resources.wrap(createMcpHandler(resources.factory));
  const fetched = (url, init) => handler.fetch(new Request(url, init));
  const client = CLIENTS['client 2, modern'];
  const connection = client.make();
  const told = [];
  client.hear(connection, told);
  await connection.connect(client.http(new URL('http://localhost/mcp'), { fetch: fetched }));
  const filter = { resourceSubscriptions: ['app://own'], resourcesListChanged: true, toolsListChanged: true };
  const listen = await connection.listen(filter);
  assert.deepEqual(listen.honoredFilter, filter);
  handler.notify.resourceUpdated('app://own');
  handler.notify.resourceUpdated('app://other');
  handler.notify.toolsChanged();
  resources.notifyListChanged();
  await until(() => told.length >= 3);
  await sleep(COALESCED);
  assert.deepEqual(told.toSorted(), [
    ['resources', undefined],
    ['tools', undefined],
    ['updated', 'app://own'],
  ]);
  await handler.close();
  await connection.close();
  const open = attached(2);
  const bare = createMcpHandler(open.factory);
  const { text: warning } = await heard(async () => {
    for (let round = 0; round < 2; round += 1) {
      const other = client.make();
      const near = { fetch: (url, init) => bare.fetch(new Request(url, init)) };
      await other.connect(client.http(new URL('http://localhost/mcp'), near));
      assert.equal(await text(other, 'shop://live'), 'live');
      await other.close();
    }
  });
  assert.equal(warning.match(/serve resources\.wrap\(createMcpHandler\(resources\.factory\)\)/g).length, 1);
});

for (const [generation, name] of [
  [2, 'client 2, legacy'],
  [1, 'sdk 1'],
]) {
  test(`attach to SDK ${generation}: a tool may ask the client while it tells a change`, async () => {
    const { memory } = CLIENTS[name];
    const [near, far] = memory.createLinkedPair();
    await attached(generation).factory().connect(far);
    const options = { capabilities: { elicitation: {} } };
    const connection = generation === 2 ? new Client(ABOUT, options) : new Client1(ABOUT, options);
    const told = [];
    CLIENTS[name].hear(connection, told);
    const answer = async () => ({ action: 'accept', content: { tea: 'green' } });
    connection.setRequestHandler(generation === 2 ? 'elicitation/create' : ElicitRequestSchema, answer);
    await connection.connect(near);
    await connection.subscribeResource({ uri: 'shop://live' });
    assert.equal((await connection.callTool({ name: 'ask' })).content[0].text, 'green');
    await until(() => told.length > 0);
    assert.deepEqual(told, [['updated', 'shop://live']]);
    await connection.close();
  });

  test(`attach to SDK ${generation}: run serves a program that uses require`, async () => {
    const args = [fileURLToPath(new URL('./attached-app.cjs', import.meta.url)), `${generation}`];
    const connection = CLIENTS[name].make();
    await connection.connect(CLIENTS[name].stdio({ command: process.execPath, args, stderr: 'inherit' }));
    assert.equal(await text(connection, 'shop://live'), 'live');
    await connection.close();
  });
}

test('attach refuses what it cannot do, with a sentence', async () => {
  const app = factory(2)();
  assert.throws(() => ours().attach(McpServer), /not the class McpServer; pass \(\) => new McpServer\(…\)/);
  assert.throws(
    () => ours().attach(new Client(ABOUT)),
    /attach takes a server, not a Client; clients cannot have resources/,
  );
  assert.throws(
    () => ours().attach({}),
    /attach takes a server of the SDK, or a function that makes one, not an object/,
  );
  assert.throws(() => ours().attach(undefined), /not undefined/);
  assert.throws(
    () => ours().attach(createMcpHandler(factory(2))),
    /not an object; give it what you gave to createMcpHandler, and wrap\(\) this/,
  );
  assert.throws(
    () =>
      ours()
        .attach(() => {})
        .factory(),
    /the function that was given to attach must return a server of the SDK, not undefined/,
  );
  assert.throws(() => ours().attach(app, { adopts: false }), /unexpected option "adopts"; did you mean "adopt"\?/);
  const resources = ours().attach(app);
  assert.throws(() => ours().attach(app), /a ResourceServer is attached to this server already/);
  assert.throws(() => resources.attach(factory(2)()), /this ResourceServer is attached already; make another one/);
  const late = factory(1)();
  await late.connect(Memory1.createLinkedPair()[0]);
  assert.throws(() => ours().attach(late), /this server is connected already; attach before connect\(\)/);
  class Old {
    connect() {}
    close() {}
  }
  const version =
    /attach needs Server\.setRequestHandler\(\), which @modelcontextprotocol\/server 2\.\d+\.\d+ and @modelcontextprotocol\/sdk 1\.32\.\d+ does not have; install/;
  assert.throws(() => ours().attach(new Old()), version);
  await assert.rejects(
    resources.run({ http: { port: 0 } }),
    /run\(\{ http \}\) needs a server for each client, and attach got one McpServer/,
  );
  assert.throws(() => resources.nodeHandler(), /nodeHandler\(\) needs a server for each client/);
  assert.throws(() => resources.factory, /attach a function that makes servers/);
  await assert.rejects(attached(2).run({ http: { port: 0, auth: {} } }), /auth/);
  assert.throws(() => attached(2).nodeHandler({ path: '/x' }), /unexpected option "path"; the SDK serves this server/);
  assert.throws(() => ours().wrap({}), /call attach\(\) first/);
  assert.throws(() => attached(2).wrap({}), /wrap takes what createMcpHandler returns/);
});

test('attach: a client that uses one id again and again gets all answers, and leaves nothing behind', async () => {
  const resources = attached(2);
  const [near, far] = InMemoryTransport.createLinkedPair();
  const answers = [];
  near.onmessage = (message) => answers.push(message);
  await near.start();
  serveStdio(resources.factory, { transport: far });
  const send = (method, params) => near.send({ jsonrpc: '2.0', id: 1, method, params });
  await send('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: ABOUT });
  await until(() => answers.length === 1);
  for (let round = 0; round < 2_000; round += 1) await send('resources/templates/list', {});
  await until(() => answers.length === 2_001);
  assert.ok(answers.every(({ id, error }) => id === 1 && error === undefined));
  assert.equal(internals(resources).native.waiting, 0);
  await near.close();
});

test('attach: fetchHandler is that of the second generation', async () => {
  const resources = attached(2);
  const handle = resources.fetchHandler();
  const fetched = { fetch: (url, init) => handle(new Request(url, init)) };
  const connection = CLIENTS['client 2, modern'].make();
  await connection.connect(CLIENTS['client 2, modern'].http(new URL('http://localhost/mcp'), fetched));
  assert.equal(await text(connection, 'shop://live'), 'live');
  await connection.close();
  const first = attached(1).fetchHandler();
  await assert.rejects(first(new Request('http://localhost/mcp')), /needs servers of .*; use nodeHandler\(\)/);
});

test('attach to SDK 1: what is in flight at the end of input is answered', async () => {
  const child = spawn(process.execPath, [APP, '1', 'run'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: ABOUT };
  const lines = [
    { id: 1, method: 'initialize', params },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/call', params: { name: 'steps', arguments: {} } },
    { id: 3, method: 'resources/read', params: { uri: 'shop://live' } },
  ].map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  child.stdin.end(lines.join(''));
  let out = '';
  for await (const chunk of child.stdout) out += chunk;
  const ids = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).id);
  assert.deepEqual(ids.filter((id) => id !== undefined).toSorted(), [1, 2, 3]);
});

test('attach: functions run in the asynchronous context of the request', async () => {
  const storage = new AsyncLocalStorage();
  const resources = attached(2);
  resources.resource('shop://context', async () => {
    await sleep(5);
    return `${storage.getStore()}`;
  });
  const handler = createMcpHandler(resources.factory);
  const fetched = (name) => (url, init) =>
    storage.run(name, () => resources.wrap(handler).fetch(new Request(url, init)));
  const read = async (name) => {
    const connection = CLIENTS['client 2, modern'].make();
    const transport = CLIENTS['client 2, modern'].http(new URL('http://localhost/mcp'), { fetch: fetched(name) });
    await connection.connect(transport);
    const found = await text(connection, 'shop://context');
    await connection.close();
    return found;
  };
  assert.deepEqual(await Promise.all(['a', 'b'].map(read)), ['a', 'b']);
});

test('attach: a low-level Server, and run over HTTP', async () => {
  const make = () => new Server(ABOUT, { capabilities: {} });
  const resources = ours().attach(make);
  const url = await new Promise((resolve) => {
    void resources.run({ http: { port: 0, onListening: resolve } });
  });
  const refused = await fetch(url, { method: 'POST', headers: { origin: 'http://evil.example' } });
  assert.equal(refused.status, 403);
  const connection = CLIENTS['client 2, modern'].make();
  await connection.connect(CLIENTS['client 2, modern'].http(new URL(url)));
  assert.equal(await text(connection, 'shop://live'), 'live');
  await connection.close();
  resources.close();
});
