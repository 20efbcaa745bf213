// What a handler's value is: bytes, numbers, contents or data.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import Fastify from 'fastify';
import Koa from 'koa';
import bodyParser from 'koa-bodyparser';
import { Client as AnyClient, Contents, ResourceServer } from 'mcp-resources';
import { Client, Connection } from 'mcp-resources/testing';
import { failure, heard, read, server, talk } from './helpers.mjs';
import { answer, Caller, modern } from './web.mjs';

const shared = new SharedArrayBuffer(2);
new Uint8Array(shared).set([1, 2]);

const BYTES = [
  Buffer.from([1, 2]),
  new Uint8Array([1, 2]),
  new Uint8ClampedArray([1, 2]),
  new Uint8Array([0, 1, 2, 0]).subarray(1, 3),
  new DataView(new Uint8Array([1, 2]).buffer),
  new Uint8Array([1, 2]).buffer,
  shared,
  new Uint8Array(shared),
  new DataView(shared),
  new Blob([new Uint8Array([1, 2])]),
];

test('buffers and views on bytes are bytes', async () => {
  for (const value of BYTES) {
    const [found] = await read(() => value);
    assert.deepEqual([...found.body], [1, 2], value.constructor.name);
    if (value instanceof Blob) continue;
    const [inner] = await read(() => new Contents(value));
    assert.deepEqual([...inner.body], [1, 2], value.constructor.name);
    const [streamed] = await read(function* () {
      yield value;
      yield value;
    });
    assert.deepEqual([...streamed.body], [1, 2, 1, 2], value.constructor.name);
  }
});

const NUMBERS = [Int8Array, Uint16Array, Int16Array, Uint32Array, Int32Array, Float32Array, Float64Array];
if (globalThis.Float16Array !== undefined) NUMBERS.push(globalThis.Float16Array);

test('the memory of numbers is not served', async () => {
  for (const Numbers of NUMBERS) {
    const value = Numbers.from([1, 2]);
    for (const [given, expected] of [
      [value, [1, 2]],
      [new Contents(value), [1, 2]],
      [{ a: value }, { a: [1, 2] }],
      [[value], [[1, 2]]],
      [new Numbers(0), []],
    ]) {
      const [found] = await read(() => given);
      assert.deepEqual(JSON.parse(found.body), expected, Numbers.name);
      assert.equal(found.mimeType, 'application/json');
    }
    const { text: said } = await heard(() => talk(chunked(value), (client) => failure(client.read('a://b'))));
    assert.match(said, new RegExp(`the stream yields an? ${Numbers.name}, expected a string or bytes`));
  }
  const [text] = await read(() => new Float64Array([0.5, -1]));
  assert.equal(text.body, '[0.5,-1]');
});

function chunked(value) {
  const made = server();
  made.resource('a://b', function* () {
    yield value;
  });
  return made;
}

test('numbers without a JSON form are named', async () => {
  for (const [value, message] of [
    [new Float64Array([1, Number.NaN]), /the value at \[1\] is NaN, which JSON does not have/],
    [{ a: new BigInt64Array([1n]) }, /the value at a\[0\] is the BigInt 1n/],
  ]) {
    const made = server();
    made.resource('a://b', () => value);
    const { text: said } = await heard(() => talk(made, (client) => failure(client.read('a://b'))));
    assert.match(said, message);
  }
  const made = server({ json: (value) => (typeof value === 'bigint' ? String(value) : undefined) });
  made.resource('a://b', () => new BigUint64Array([1n, 2n]));
  assert.deepEqual(JSON.parse(await talk(made, (client) => client.readText('a://b'))), ['1', '2']);
});

class Mail {
  uri = 'mailto:a@b';
  mimeType = 'text/plain';
  text = 'hi';
}

class Folder {
  contents = [new Mail()];
}

test('objects are data, whatever their members are called', async () => {
  const wire = { uri: 'a://x', mimeType: 'text/markdown', text: 't' };
  for (const value of [
    new Mail(),
    [new Mail()],
    new Folder(),
    { contents: [new Mail()] },
    { contents: [{ ...wire, score: 0.5 }] },
    { contents: [wire, { ...wire, title: 'T' }] },
    { contents: [wire], author: 'me' },
    { contents: [{ ...wire, blob: 'aGk=' }] },
    { contents: [{ uri: 'a://x' }] },
    { contents: [] },
    [wire],
    Object.assign(Object.create({ inherited: true }), { contents: [wire] }),
  ]) {
    const [found] = await read(() => value);
    assert.deepEqual([found.uri, found.mimeType], ['a://b', 'application/json'], JSON.stringify(value));
    assert.equal(found.body, JSON.stringify(value));
  }
  const [text, blob] = await read(() => ({
    contents: [
      { ...wire, _meta: { a: 1 } },
      { uri: 'a://y', blob: 'aGk=' },
    ],
  }));
  assert.deepEqual([text.body, text.mimeType, text.meta, String(blob.body)], ['t', 'text/markdown', { a: 1 }, 'hi']);
});

async function listening(handle, body) {
  const web = createServer(handle).listen(0, '127.0.0.1');
  await once(web, 'listening');
  try {
    return await body(`http://127.0.0.1:${web.address().port}/mcp`);
  } finally {
    web.closeAllConnections();
    web.close();
  }
}

function greeting() {
  const made = server();
  made.resource('a://b', () => 'hello');
  return made;
}

async function drained(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

test('a body that was read is passed on as bytes, as text or parsed', async () => {
  const handle = greeting().nodeHandler();
  for (const made of [(body) => body, String, JSON.parse, (body) => new Uint8Array(body)]) {
    const third = async (request, response) => handle(request, response, made(await drained(request)));
    const member = async (request, response) => {
      request.body = made(await drained(request));
      handle(request, response, () => {});
    };
    for (const host of [third, member]) {
      await listening(host, async (url) => assert.equal(await new Caller(url).text('a://b'), 'hello'));
    }
  }
  // What a parser leaves where it has read nothing.
  for (const nothing of [{}, undefined, null, '']) {
    await listening(
      (request, response) => handle(request, response, nothing),
      async (url) => assert.equal(await new Caller(url).text('a://b'), 'hello'),
    );
  }
});

test('a body that was read and not passed on is said to be', async () => {
  const logged = [];
  const made = new ResourceServer(
    { name: 'x', version: '1' },
    { logger: { ...console, warn: (what) => logged.push(what) } },
  );
  made.resource('a://b', () => 'hello');
  const [node, web] = [made.nodeHandler(), made.fetchHandler()];
  const consumed = async (request, response) => {
    await drained(request);
    node(request, response);
  };
  await listening(consumed, async (url) => {
    for (let times = 0; times < 2; times += 1) {
      const response = await fetch(url, modern(1, 'resources/read', { uri: 'a://b' }));
      const { error } = await answer(response);
      assert.deepEqual([response.status, error.code], [400, -32600]);
      assert.match(error.message, /^The body of the request was read before/);
    }
  });
  const request = new Request('http://localhost/mcp', modern(1, 'resources/read', { uri: 'a://b' }));
  const copy = request.clone();
  await request.text();
  assert.equal((await web(request)).status, 400);
  assert.equal((await answer(await web(copy))).result.contents[0].text, 'hello');
  assert.equal(logged.length, 2, 'once a minute for each handler');
  assert.match(logged[0], /third argument of nodeHandler: handle\(request, response, body\)/);
  assert.match(logged[1], /handle\(request\.clone\(\)\)/);
});

test('Fastify and Koa pass on what they have read', async () => {
  const fastify = Fastify();
  const handle = greeting().nodeHandler();
  fastify.all('/mcp', (request, reply) => {
    reply.hijack();
    handle(request.raw, reply.raw, request.body);
  });
  const origin = await fastify.listen({ port: 0, host: '127.0.0.1' });
  try {
    const caller = new Caller(`${origin}/mcp`);
    assert.equal(await caller.text('a://b'), 'hello');
    assert.ok(await caller.session());
  } finally {
    fastify.server.closeAllConnections();
    await fastify.close();
  }
  for (const parses of [true, false]) {
    const koa = new Koa();
    if (parses) koa.use(bodyParser());
    koa.use((context) => {
      context.respond = false;
      handle(context.req, context.res, context.request.body);
    });
    await listening(koa.callback(), async (url) => {
      assert.equal(await new Caller(url).text('a://b'), 'hello');
      assert.ok(await new Caller(url).session());
    });
  }
});

test('a test client refuses options that it does not have', async () => {
  const made = greeting();
  for (const [options, message] of [
    [{ revison: '2025-11-25' }, /unexpected option "revison"; did you mean "revision"\?/],
    [{ principle: 'bob' }, /unexpected option "principle"; did you mean "principal"/],
    [{ auth: 'bob' }, /unexpected option "auth"; no token is verified here/],
    [{ revision: 7 }, /revision is 7, expected a string/],
    [{ capabilities: [] }, /capabilities is an empty array, expected an object/],
    ['2025-11-25', /connect takes an object of options, not "2025-11-25"/],
  ]) {
    await assert.rejects(Client.connect(made, options), { name: 'TypeError', message });
  }
  const client = await Client.connect(made);
  for (const [call, name] of [
    [() => client.read('a://b', { input: {} }), 'input'],
    [() => client.listen([], { listchanged: true }), 'listchanged'],
    [() => client.notification(1, { off: 1 }), 'off'],
    [() => client.request('read', { uri: 'a://b' }, { _meta: {} }), '_meta'],
    [() => client.send('read', { uri: 'a://b' }, { _meta: {} }), '_meta'],
    [() => new Connection(made, { time: [0, 0] }), 'time'],
  ]) {
    await assert.rejects(async () => call(), { name: 'TypeError', message: new RegExp(`unexpected option "${name}"`) });
  }
  client.close();
});

const BUN = process.env.BUN ?? (spawnSync('bun', ['--version']).status === 0 ? 'bun' : undefined);

test('Bun serves stdio and a client of its own process', {
  skip: BUN === undefined && 'Bun is not installed',
}, async () => {
  const program = `
    import { Client, ResourceServer } from 'mcp-resources';
    const server = new ResourceServer({ name: 'b', version: '1' });
    server.resource('b://big', async () => 'x'.repeat(3_000_000));
    const client = new Client(server);
    if ((await client.read('b://big')).length !== 3_000_000) process.exit(7);
    await client.close();
    await server.run();
  `;
  const client = new AnyClient([BUN, '--eval', program]);
  assert.equal((await client.read('b://big')).length, 3_000_000);
  assert.equal((await client.read('b://big')).length, 3_000_000);
  await client.close();
  const child = spawn(BUN, ['--eval', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  const [text] = await Promise.all([drained(child.stdout), once(child, 'exit')]);
  assert.deepEqual(JSON.parse(text), { jsonrpc: '2.0', id: 1, result: {} });
});
