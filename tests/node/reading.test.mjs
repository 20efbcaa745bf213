// What handlers return and throw, and what the client gets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AccessDeniedError,
  Contents,
  CustomError,
  InputDeclinedError,
  InvalidParameterError,
  InvalidUriError,
  McpError,
  RateLimitedError,
  ReadResult,
  ReadTimeoutError,
  ResourceNotFoundError,
  SizeExceededError,
} from 'mcp-resources';
import { failure, heard, read, refusal, server, talk } from './helpers.mjs';
import { LEGACY, MODERN } from './vectors.mjs';

function plain({ body, ...rest }) {
  return { body: typeof body === 'string' ? body : Buffer.from(body), ...rest };
}

const OCTETS = 'application/octet-stream';
const RETURNS = [
  ['text', 'Grüße 世界 🦀', 'Grüße 世界 🦀', 'text/plain'],
  ['the empty text', '', '', 'text/plain'],
  ['Buffer', Buffer.of(0, 255), Buffer.of(0, 255), OCTETS],
  ['Uint8Array', Uint8Array.of(1, 2), Buffer.of(1, 2), OCTETS],
  ['no bytes', new Uint8Array(), Buffer.of(), OCTETS],
  ['ArrayBuffer', Uint8Array.of(1, 2).buffer, Buffer.of(1, 2), OCTETS],
  ['a part of a buffer', Buffer.from('abcd').subarray(1, 3), Buffer.from('bc'), OCTETS],
  ['numbers', new Uint16Array([1, 2]), '[1,2]', 'application/json'],
  ['DataView', new DataView(Uint8Array.of(9, 8, 7).buffer, 1), Buffer.of(8, 7), OCTETS],
  ['object', { ä: [1, null, true] }, '{"ä":[1,null,true]}', 'application/json'],
  ['array', [], '[]', 'application/json'],
  ['number', 1.5, '1.5', 'application/json'],
  ['boolean', false, 'false', 'application/json'],
  ['an object with dates', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}', 'application/json'],
];

for (const [what, value, body, mimeType] of RETURNS) {
  test(`a handler returns ${what}`, async () => {
    for (const handler of [() => value, async () => value, () => new Promise((done) => setTimeout(done, 1, value))]) {
      const [contents] = await read(handler);
      assert.deepEqual(plain(contents), plain({ ...contents, body }));
      assert.deepEqual([contents.mimeType, contents.uri], [mimeType, 'a://b']);
    }
  });
}

test('a resource says its own media type', async () => {
  const [contents] = await read(() => ({ type: 'Point' }), { mimeType: 'application/geo+json' });
  assert.equal(contents.mimeType, 'application/geo+json');
});

test('contents say more', async () => {
  const found = await read(() => [
    new Contents('one', { uri: 'a://b/1', mimeType: 'text/x-one', meta: { 'com.example/n': 1 } }),
    new Contents(Buffer.from('two')),
    new Contents({ three: 3 }),
    new Contents(Uint8Array.of(4)),
  ]);
  assert.deepEqual(
    found.map(({ body, uri, mimeType }) => [String(Buffer.from(body)), uri, mimeType]),
    [
      ['one', 'a://b/1', 'text/x-one'],
      ['two', 'a://b', OCTETS],
      ['{"three":3}', 'a://b', 'application/json'],
      ['\u0004', 'a://b', OCTETS],
    ],
  );
  assert.deepEqual(found[0].meta, { 'com.example/n': 1 });
});

test('a result carries its own caching hint (R-113, R-116): but what is registered as private stays so', async () => {
  const own = () => new ReadResult(new Contents('x'), { ttlMs: 5, cacheScope: 'public' });
  const made = server();
  made.resource('a://b', { ttlMs: 1 }, own);
  made.resource('a://c', { cacheScope: 'public' }, own);
  await talk(made, async (client) => {
    for (const [uri, scope] of [
      ['a://b', 'private'],
      ['a://c', 'public'],
    ]) {
      const result = await client.request('read', { uri });
      assert.deepEqual([result.ttlMs, result.cacheScope], [5, scope]);
    }
  });
});

test('no contents at all are not found (R-067)', async () => {
  const made = server();
  made.resource('a://b', () => new ReadResult([]));
  assert.equal((await refusal(made, 'a://b')).kind, 'not_found');
});

/** Every sort of source of chunks. */
const STREAMS = {
  generator: (chunks) =>
    function* () {
      yield* chunks;
    },
  'async generator': (chunks) =>
    async function* () {
      for (const chunk of chunks) {
        await null;
        yield chunk;
      }
    },
  iterator: (chunks) => () => chunks[Symbol.iterator](),
  ReadableStream: (chunks) => () => ReadableStream.from(chunks),
  'a promise of a stream': (chunks) => async () => ReadableStream.from(chunks),
};

for (const [sort, make] of Object.entries(STREAMS)) {
  test(`chunks are gathered: ${sort}`, async () => {
    const [text] = await read(make(['a', 'ß', 'c']), { mimeType: 'text/x' });
    assert.deepEqual([text.body, text.mimeType], ['aßc', 'text/x']);
    const [bytes] = await read(make([Buffer.of(0), Uint8Array.of(1, 2), Buffer.of(3)]));
    assert.deepEqual(Buffer.from(bytes.body), Buffer.of(0, 1, 2, 3));
  });

  test(`chunks that are of both sorts are the author's mistake: ${sort}`, async () => {
    const made = server();
    made.resource('a://b', make(['a', Buffer.from('b')]));
    const { result, text } = await heard(() => refusal(made, 'a://b'));
    assert.equal(result.kind, 'read_error');
    assert.match(text, /either text or bytes/);
  });
}

test('a stream is bounded, and ended', async () => {
  const made = server({ limits: { contents: 1000 } });
  const ended = [];
  made.resource('a://sync', function* () {
    try {
      for (;;) yield 'x'.repeat(100);
    } finally {
      ended.push('sync');
    }
  });
  made.resource('a://async', async function* () {
    try {
      for (;;) yield 'x'.repeat(100);
    } finally {
      ended.push('async');
    }
  });
  const endless = { pull: (to) => to.enqueue('x'.repeat(100)), cancel: () => void ended.push('stream') };
  made.resource('a://stream', () => new ReadableStream(endless));
  for (const uri of ['a://sync', 'a://async', 'a://stream']) {
    const error = await refusal(made, uri);
    assert.deepEqual([error.kind, error.data.limit], ['size_exceeded', 1000]);
  }
  assert.deepEqual(ended, ['sync', 'async', 'stream']);
});

test('a stream that fails late is an error', async () => {
  const made = server();
  made.resource('a://b', async function* () {
    yield 'begun';
    throw new Error('secret');
  });
  const { result, text } = await heard(() => refusal(made, 'a://b'));
  assert.equal(result.kind, 'read_error');
  assert.match(text, /secret/);
});

const ERRORS = [
  [new ResourceNotFoundError(), 'not_found', -32602, -32002, {}],
  [new AccessDeniedError(), 'not_found', -32602, -32002, {}],
  [new InvalidUriError('no'), 'invalid_uri', -32602, -32602, {}],
  [new InvalidParameterError('x', 'a word'), 'invalid_parameter', -32602, -32602, { parameter: 'x' }],
  [new SizeExceededError(10, 11), 'size_exceeded', -31013, -32603, { limit: 10, size: 11 }],
  [new ReadTimeoutError(5), 'timeout', -31008, -32603, { timeoutMs: 5 }],
  [new RateLimitedError(7), 'rate_limited', -31029, -32603, { retryAfterMs: 7 }],
  [new InputDeclinedError(), 'input_declined', -32602, -32603, {}],
  [new Error('secret'), 'read_error', -32603, -32603, {}],
  [new TypeError('secret'), 'read_error', -32603, -32603, {}],
  [new McpError('secret'), 'read_error', -32603, -32603, {}],
  [new DOMException('secret', 'AbortError'), 'read_error', -32603, -32603, {}],
  ['secret', 'read_error', -32603, -32603, {}],
  [undefined, 'read_error', -32603, -32603, {}],
  [new CustomError(4711, 'Own', { a: 1 }), undefined, 4711, 4711, { a: 1 }],
];

for (const [thrown, kind, modern, legacy, data] of ERRORS) {
  test(`${thrown?.constructor?.name} becomes an error (DEC-20)`, async () => {
    for (const [revision, code] of [
      [MODERN, modern],
      [LEGACY, legacy],
    ]) {
      for (const handler of [
        () => {
          throw thrown;
        },
        () => Promise.reject(thrown),
      ]) {
        const made = server();
        made.resource('a://b', handler);
        const { result: error } = await heard(() => refusal(made, 'a://b', { revision }));
        assert.deepEqual([error.code, error.kind], [code, kind]);
        for (const [name, value] of Object.entries(data)) assert.deepEqual(error.data[name], value);
        assert.ok(!JSON.stringify([error.message, error.data]).includes('secret'));
        if (kind !== undefined) assert.equal(error.data.uri, 'a://b');
      }
    }
  });
}

test('denials may be explicit', async () => {
  const made = server({ explicitDenials: true });
  made.resource('a://b', async () => {
    throw new AccessDeniedError();
  });
  const error = await refusal(made, 'a://b');
  assert.deepEqual([error.code, error.kind], [-31003, 'access_denied']);
});

const circular = {};
circular.self = circular;
for (const value of [undefined, null, 1n, Symbol('s'), () => 'x', { a: 1n }, circular]) {
  test(`what cannot be answered is logged for the author: ${typeof value}`, async () => {
    const made = server();
    made.resource('a://b', () => value);
    const { result, text } = await heard(() => refusal(made, 'a://b'));
    assert.deepEqual([result.code, result.kind], [-32603, 'read_error']);
    assert.match(text, /a:\/\/b/);
  });
}

test('an error is logged with its stack', async () => {
  const made = server();
  made.resource('a://b', async function broken() {
    throw new Error('for the author');
  });
  const { text } = await heard(() => refusal(made, 'a://b'));
  assert.match(text, /broken/);
  assert.match(text, /for the author/);
  assert.match(text, /reading\.test\.mjs/);
});

test('reserved codes are refused (R-023)', async () => {
  const made = server();
  made.resource('a://b', () => {
    throw new CustomError(-32001, 'mine');
  });
  const { result, text } = await heard(() => refusal(made, 'a://b'));
  assert.equal(result.code, -32603);
  assert.match(text, /-32001 is reserved/);
});

test('big contents are exact and bounded', async () => {
  const made = server({ limits: { contents: 3 << 20 } });
  const text = 'Zeile “1”\t\\\n'.repeat(100_000);
  const blob = Buffer.alloc(
    1 << 20,
    Uint8Array.from({ length: 256 }, (_, at) => at),
  );
  made.resource('a://text', () => text);
  made.resource('a://late', async () => text);
  made.resource('a://blob', () => blob);
  made.resource('a://large', () => Buffer.alloc((3 << 20) + 1));
  await talk(made, async (client) => {
    assert.ok((await client.readText('a://text')) === text);
    assert.ok((await client.readText('a://late')) === text);
    assert.ok(blob.equals((await client.read('a://blob'))[0].body));
    assert.equal((await failure(client.read('a://large'))).kind, 'size_exceeded');
  });
});
