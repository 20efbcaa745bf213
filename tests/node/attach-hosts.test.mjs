// `attach` in the hosts that programs of the SDK use: Express, Hono, a fetch route as Next has it, and a bus of the program.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import {
  createMcpHandler,
  InMemoryServerEventBus,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import express from 'express';
import { Hono } from 'hono';
import { attached } from './attached-app.mjs';
import { MODERN } from './vectors.mjs';

const ABOUT = { name: 'test', version: '1' };
const UPDATED = 'notifications/resources/updated';

/** A client of the second generation. `mode`: how it chooses the era. */
function client(mode) {
  const made = new Client(ABOUT, { versionNegotiation: { mode } });
  const told = [];
  made.setNotificationHandler(UPDATED, ({ params }) => told.push(params.uri));
  return { made, told };
}

/** Their tool, our resource and theirs; a modern client watches a resource that a tool changes. */
async function check(transport, mode) {
  const { made, told } = client(mode);
  await made.connect(transport);
  try {
    const { content } = await made.callTool({ name: 'echo', arguments: { text: 'hi' } });
    assert.equal(content[0].text, 'hi');
    const listed = (await made.listResources()).resources.map(({ uri }) => uri);
    for (const uri of ['shop://live', 'app://own']) assert.ok(listed.includes(uri), uri);
    assert.equal(await text(made, 'shop://orders/7'), 'order 7');
    assert.equal(await text(made, 'app://own'), 'theirs app://own');
    await assert.rejects(text(made, 'shop://nothing'), /not found/i);
    if (mode === 'legacy') return;
    const listen = await made.listen({ resourceSubscriptions: ['shop://live'] });
    await made.callTool({ name: 'rename', arguments: { uri: 'shop://live' } });
    await until(() => told.length > 0);
    assert.deepEqual(told, ['shop://live']);
    await listen.close();
  } finally {
    await made.close();
  }
}

async function text(connection, uri) {
  return (await connection.readResource({ uri })).contents[0].text;
}

async function until(condition) {
  for (const end = Date.now() + 20_000; !condition(); await sleep(5)) assert.ok(Date.now() < end, 'in time');
}

async function listening(app, body) {
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await body(new URL(`http://127.0.0.1:${server.address().port}/mcp`));
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

for (const mode of [{ pin: MODERN }, 'legacy']) {
  const era = mode === 'legacy' ? mode : MODERN;

  for (const parses of [false, true]) {
    test(`attach to SDK 2: ${era}, Express${parses ? ' with express.json()' : ''}`, async () => {
      const resources = attached(2);
      const handle = toNodeHandler(resources.wrap(createMcpHandler(resources.factory)));
      const app = express();
      if (parses) app.use(express.json());
      app.all('/mcp', (request, response) => void handle(request, response, request.body));
      await listening(app, (url) => check(new StreamableHTTPClientTransport(url), mode));
    });
  }

  test(`attach to SDK 2: ${era}, Express with nodeHandler`, async () => {
    const app = express();
    app.use('/mcp', express.json(), attachedHandler());
    await listening(app, (url) => check(new StreamableHTTPClientTransport(url), mode));
  });

  test(`attach to SDK 2: ${era}, Hono`, async () => {
    const resources = attached(2);
    const handler = resources.wrap(createMcpHandler(resources.factory));
    const app = new Hono();
    app.all('/mcp', (context) => handler.fetch(context.req.raw));
    const fetched = async (url, init) => app.fetch(new Request(url, init));
    await check(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: fetched }), mode);
  });

  test(`attach to SDK 2: ${era}, a route of functions by verb, as Next has them`, async () => {
    const resources = attached(2);
    const { fetch } = resources.wrap(createMcpHandler(resources.factory));
    const route = { GET: (request) => fetch(request), POST: (request) => fetch(request) };
    const fetched = async (url, init) => {
      const request = new Request(url, init);
      return route[request.method]?.(request) ?? new Response(null, { status: 405 });
    };
    await check(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: fetched }), mode);
  });
}

/** The request handler of `attach`, behind a parser of bodies. */
function attachedHandler() {
  const handle = attached(2).nodeHandler();
  return (request, response) => handle(request, response, request.body);
}

test('attach to SDK 2: changes that another process tells on the bus of the program reach listens', async () => {
  const resources = attached(2);
  const bus = new InMemoryServerEventBus();
  const handler = resources.wrap(createMcpHandler(resources.factory, { bus }));
  const { made, told } = client({ pin: MODERN });
  const fetched = (url, init) => handler.fetch(new Request(url, init));
  await made.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: fetched }));
  const listen = await made.listen({ resourceSubscriptions: ['shop://live', 'app://own'] });
  for (const uri of ['shop://live', 'app://other', 'app://own']) bus.publish({ kind: 'resource_updated', uri });
  await until(() => told.length >= 2);
  await sleep(50);
  assert.deepEqual(told.toSorted(), ['app://own', 'shop://live']);
  await listen.close();
  await made.close();
});

test('attach to SDK 2: a transport for each session, or for each request, that the program keeps', async () => {
  const resources = attached(2);
  const sessions = new Map();
  const app = express();
  app.use(express.json());
  app.all('/mcp', async (request, response) => {
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (transport === undefined) {
      const onsessioninitialized = (id) => sessions.set(id, transport);
      transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
      await resources.factory().connect(transport);
    }
    await transport.handleRequest(request, response, request.body);
  });
  await listening(app, async (url) => {
    await check(new StreamableHTTPClientTransport(url), 'legacy');
    const { made, told } = client('legacy');
    await made.connect(new StreamableHTTPClientTransport(url));
    await made.subscribeResource({ uri: 'shop://live' });
    await made.callTool({ name: 'rename', arguments: { uri: 'shop://live' } });
    await until(() => told.length > 0);
    assert.deepEqual(told, ['shop://live']);
    await made.close();
  });
  const fetched = async (url, init) => {
    const transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    await resources.factory().connect(transport);
    return transport.handleRequest(new Request(url, init));
  };
  const { made } = client('legacy');
  await made.connect(new StreamableHTTPClientTransport(new URL('http://localhost/mcp'), { fetch: fetched }));
  assert.equal(await text(made, 'shop://orders/7'), 'order 7');
  assert.equal(await text(made, 'app://own'), 'theirs app://own');
  await made.close();
});

test('attach to SDK 1: StreamableHTTPServerTransport under Express', async () => {
  const resources = attached(1);
  const sessions = new Map();
  const app = express();
  app.use(express.json());
  app.all('/mcp', async (request, response) => {
    let transport = sessions.get(request.headers['mcp-session-id']);
    if (transport === undefined) {
      assert.ok(isInitializeRequest(request.body));
      const onsessioninitialized = (id) => sessions.set(id, transport);
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized });
      await resources.factory().connect(transport);
    }
    await transport.handleRequest(request, response, request.body);
  });
  await listening(app, async (url) => {
    await check(new StreamableHTTPClientTransport(url), 'legacy');
    const connection = new Client1(ABOUT);
    const told = [];
    connection.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => told.push(params.uri));
    await connection.connect(new Http1(url));
    await connection.subscribeResource({ uri: 'shop://live' });
    await connection.callTool({ name: 'rename', arguments: { uri: 'shop://live' } });
    await until(() => told.length > 0);
    assert.deepEqual(told, ['shop://live']);
    await connection.close();
  });
});
