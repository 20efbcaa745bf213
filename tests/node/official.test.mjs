// The official TypeScript clients against the fixture servers: 2.x in both eras, and 1.x.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as SseTransport1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpTransport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { MODERN } from './vectors.mjs';

const LANGUAGE = process.env.LANGUAGE ?? 'node';
const SERVER = {
  command: fileURLToPath(new URL('../conformance/run-server', import.meta.url)),
  args: [LANGUAGE, '--stdio'],
  env: { ...process.env, NODE: process.execPath },
  stderr: 'ignore',
};
const PYTHON = fileURLToPath(new URL('../../.venv/bin/python', import.meta.url));
const PORTS = fileURLToPath(new URL('../python/ports.py', import.meta.url));
const ABOUT = { name: 'test', version: '1' };
const WATCHED = 'test://watched-resource';
const UPDATED = 'notifications/resources/updated';
const LIST_CHANGED = 'notifications/resources/list_changed';

/** One client: how it is made and listens, whether it is modern, and which code it tells for what is not found. */
const CLIENTS = {
  'client 2, modern': {
    isModern: true,
    notFound: -32602,
    make: () => new Client(ABOUT, { versionNegotiation: { mode: { pin: MODERN } } }),
    stdio: () => new StdioClientTransport(SERVER),
    http: (url) => new StreamableHTTPClientTransport(url),
    hear: hear2,
  },
  'client 2, legacy': {
    isModern: false,
    notFound: -32602, // it words the older code as the newer one
    make: () => new Client(ABOUT, { versionNegotiation: { mode: 'legacy' } }),
    stdio: () => new StdioClientTransport(SERVER),
    http: (url) => new StreamableHTTPClientTransport(url),
    sse: (url) => new SSEClientTransport(url),
    hear: hear2,
  },
  'sdk 1': {
    isModern: false,
    notFound: -32002,
    make: () => new Client1(ABOUT),
    stdio: () => new Transport1(SERVER),
    http: (url) => new HttpTransport1(url),
    sse: (url) => new SseTransport1(url),
    hear: hear1,
  },
};

function hear2(client, heard) {
  client.setNotificationHandler(UPDATED, ({ params }) => void heard.emit('updated', params.uri));
  client.setNotificationHandler(LIST_CHANGED, () => void heard.emit('list changed'));
}

function hear1(client, heard) {
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => heard.emit('updated', params.uri));
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => heard.emit('list changed'));
}

const WAYS = {
  stdio: (client, body) => body(client.stdio()),
  http: (client, body) => serving('--http', (url) => body(client.http(url))),
  // The transport of 2024-11-05, which the clients still have.
  sse: (client, body) => serving('--sse', (url) => body(client.sse(new URL('/sse', url)))),
};
const PAIRS = Object.entries(CLIENTS).flatMap(([name, client]) =>
  Object.entries(WAYS)
    .filter(([way]) => way in client)
    .map(([way, reach]) => ({ ...client, name: `${name}, ${way}`, reach })),
);

for (const { name, isModern, notFound, make, hear, reach, ...transports } of PAIRS) {
  const connected = (what, body) =>
    test(`${name} ${what}`, () =>
      reach(transports, async (transport) => {
        const client = make();
        const heard = new EventEmitter();
        hear(client, heard);
        await client.connect(transport);
        try {
          await body(client, heard);
        } finally {
          await client.close();
        }
      }));
  connected('walks the lists', async (client) => {
    const resources = await walk('resources', (cursor) => client.listResources({ cursor }));
    assert.equal(resources.filter(({ uri }) => uri.startsWith('test://page/')).length, 60);
    const annotated = resources.find(({ uri }) => uri === 'test://annotated');
    const { title, size, annotations } = annotated;
    assert.deepEqual([title, size, annotations.priority], ['Annotated Resource', 11, 0.8]);
    const templates = await walk('resourceTemplates', (cursor) => client.listResourceTemplates({ cursor }));
    assert.equal(new Set(templates.map(({ uriTemplate }) => uriTemplate)).size, 35);
  });

  connected('reads', async (client) => {
    assert.ok((await text(client, 'test://unicode')).includes('世界! 🦀'));
    assert.equal(await text(client, 'test://empty-text'), '');
    assert.equal(await text(client, 'test://large-text'), 'abcdefghij'.repeat(100_000));
    const [{ blob }] = await read(client, 'test://all-bytes');
    assert.deepEqual(
      [...Buffer.from(blob, 'base64')],
      Array.from({ length: 256 }, (_, at) => at),
    );
    const uris = (await read(client, 'test://multi')).map(({ uri }) => uri);
    assert.deepEqual(uris, ['test://multi/a', 'test://multi/b']);
    assert.equal(await text(client, 'test://users/alice/files/a1.txt'), 'alice:a1.txt');
    assert.equal(await text(client, 'test://path/a/b/c'), 'a/b/c');
    const slow = [120, 80, 40].map((ms) => text(client, `test://slow/${ms}`));
    assert.deepEqual(await Promise.all(slow), ['slept 120', 'slept 80', 'slept 40']);
  });

  connected('is told what is wrong', async (client) => {
    for (const [uri, code] of [
      ['test://nothing', notFound],
      ['test://slow/soon', -32602],
      ['test://error', -32603],
    ]) {
      await assert.rejects(client.readResource({ uri }), (error) => {
        assert.equal(error.code, code, uri);
        assert.ok(!`${error.message}${JSON.stringify(error.data)}`.includes('secret'));
        return true;
      });
    }
  });

  connected('completes', async (client) => {
    const ref = { type: 'ref/resource', uri: 'test://users/{user}/files/{file}' };
    const users = await client.complete({ ref, argument: { name: 'user', value: 'b' } });
    assert.deepEqual(users.completion.values, ['bob']);
    const context = { arguments: { user: 'alice' } };
    const files = await client.complete({ ref, argument: { name: 'file', value: 'a' }, context });
    assert.deepEqual(files.completion.values, ['a1.txt', 'a2.txt']);
  });

  connected('hears of changes', async (client, heard) => {
    const before = await text(client, WATCHED);
    const listening = isModern
      ? await client.listen({ resourceSubscriptions: [WATCHED], resourcesListChanged: true })
      : await client.subscribeResource({ uri: WATCHED });
    const updated = once(heard, 'updated');
    assert.equal(await text(client, 'test://trigger/updated'), 'ok');
    assert.deepEqual(await updated, [WATCHED]);
    assert.notEqual(await text(client, WATCHED), before);
    if (isModern) assert.deepEqual(listening.honoredFilter.resourceSubscriptions, [WATCHED]);
    else await client.unsubscribeResource({ uri: WATCHED });
    const changed = once(heard, 'list changed');
    await text(client, 'test://trigger/list-changed');
    await changed;
    assert.equal(await text(client, 'test://dynamic'), 'dynamic');
    if (isModern) await listening.close();
  });
}

async function read(client, uri) {
  return (await client.readResource({ uri })).contents;
}

async function text(client, uri) {
  const [content] = await read(client, uri);
  return content.text;
}

/** Changes the watched resource, and hears of it. */
async function hears(client, heard) {
  const updated = once(heard, 'updated');
  assert.equal(await text(client, 'test://trigger/updated'), 'ok');
  assert.deepEqual(await updated, [WATCHED]);
}

test(`${LANGUAGE}: after a restart the same modern client listens again (R-094, R-096, R-099)`, async () => {
  const { make, http } = CLIENTS['client 2, modern'];
  const [reserved, client, heard] = [await reservePort(), make(), new EventEmitter()];
  hear2(client, heard);
  try {
    await serving(
      '--http',
      async (url) => {
        await client.connect(http(url));
        await client.listen({ resourceSubscriptions: [WATCHED] });
        await hears(client, heard);
      },
      reserved,
    );
    await serving(
      '--http',
      async () => {
        const listening = await client.listen({ resourceSubscriptions: [WATCHED] });
        await hears(client, heard);
        await listening.close();
      },
      reserved,
    );
  } finally {
    await client.close();
    reserved.release();
  }
});

for (const name of ['client 2, legacy', 'sdk 1']) {
  test(`${LANGUAGE}: after a restart the session of ${name} is unknown, and a new one subscribes (R-084, R-171)`, async (context) => {
    const { make, http, hear } = CLIENTS[name];
    const reserved = await reservePort();
    context.after(reserved.release);
    const heard = new EventEmitter();
    const watching = async (url) => {
      const client = make();
      hear(client, heard);
      await client.connect(http(url));
      await client.subscribeResource({ uri: WATCHED });
      await hears(client, heard);
      return client;
    };
    let older;
    await serving(
      '--http',
      async (url) => {
        older = await watching(url);
      },
      reserved,
    );
    await serving(
      '--http',
      async (url) => {
        await assert.rejects(text(older, WATCHED), /404|session/i);
        await older.close();
        await (await watching(url)).close();
      },
      reserved,
    );
  });
}

/** A server of its own over HTTP, while `body` runs. */
async function serving(way, body, given) {
  const reserved = given ?? (await reservePort());
  const { port } = reserved;
  const child = spawn(SERVER.command, [LANGUAGE, way, `${port}`], { env: SERVER.env, stdio: 'ignore' });
  const ended = once(child, 'exit');
  try {
    while (!(await takes(port))) {
      assert.equal(child.exitCode, null, 'the server has ended');
      await sleep(20);
    }
    await body(new URL(`http://127.0.0.1:${port}/mcp`));
  } finally {
    child.kill();
    await ended;
    if (reserved !== given) reserved.release();
  }
}

async function takes(port) {
  const socket = connect(port, '127.0.0.1');
  const taken = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'close').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return taken;
}

/** A port that no other process is given until it is released: Node cannot bind one without listening on it. */
async function reservePort() {
  const holder = spawn(PYTHON, [PORTS], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(holder.stdout, 'data');
  return { port: Number(line), release: () => holder.stdin.end() };
}

/** All items of a list, from its pages of at most 20. */
async function walk(member, page) {
  const items = [];
  for (let cursor; ; ) {
    const found = await page(cursor);
    assert.ok(found[member].length <= 20 || cursor === undefined);
    items.push(...found[member]);
    cursor = found.nextCursor;
    if (cursor === undefined) return items;
  }
}
