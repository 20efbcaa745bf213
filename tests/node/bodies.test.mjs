// Bodies that have a type of their own, results in the official shape, and values without a JSON form.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Contents } from 'mcp-resources';
import { heard, read, readText, refusal, server, talk } from './helpers.mjs';

const PNG = Uint8Array.of(0x89, 0x50);

for (const [what, value, body, mimeType] of [
  ['Blob of text', () => new Blob(['grüß'], { type: 'text/html' }), 'grüß', 'text/html'],
  ['Blob of bytes', () => new Blob([PNG], { type: 'image/png' }), PNG, 'image/png'],
  ['Blob without a type', () => new Blob([PNG]), PNG, 'application/octet-stream'],
  ['empty Blob of text', () => new Blob([], { type: 'text/csv' }), '', 'text/csv'],
  ['Response of text', () => new Response('grüß'), 'grüß', 'text/plain'],
  ['Response of JSON', () => Response.json({ a: 1 }), '{"a":1}', 'application/json'],
  [
    'Response of another JSON',
    () => new Response('{}', { headers: { 'content-type': 'application/geo+json; charset=utf-8' } }),
    '{}',
    'application/geo+json',
  ],
  [
    'Response of another charset',
    () => new Response(Uint8Array.of(0xe4), { headers: { 'content-type': 'text/plain; charset="latin1"' } }),
    'ä',
    'text/plain',
  ],
  ['Response of bytes', () => new Response(PNG, { headers: { 'content-type': 'image/png' } }), PNG, 'image/png'],
  ['Response without a body', () => new Response(null, { status: 200 }), new Uint8Array(), 'application/octet-stream'],
]) {
  test(`a handler returns a ${what}`, async () => {
    for (const handler of [value, async () => value()]) {
      const [contents] = await read(handler);
      assert.deepEqual(
        [typeof contents.body === 'string' ? contents.body : [...contents.body], contents.mimeType],
        [typeof body === 'string' ? body : [...body], mimeType],
      );
    }
    const [contents] = await read(value, { mimeType: 'text/x-own' });
    assert.equal(contents.mimeType, 'text/x-own');
  });
}

test('a body is bounded as other streams are, and seen by redact', async () => {
  const small = server({ limits: { contents: 100 } });
  small.resource('a://b', () => new Blob(['x'.repeat(200)], { type: 'text/plain' }));
  assert.equal((await refusal(small, 'a://b')).kind, 'size_exceeded');
  const redacting = server({ redact: (_, { body }) => new Contents(body.replace('secret', '*')) });
  redacting.resource('a://b', () => new Response('a secret'));
  redacting.resource('a://c', () => ({ contents: [{ uri: 'a://c', text: 'a secret' }] }));
  assert.equal(await readText(redacting, 'a://b'), 'a *');
  assert.equal(await readText(redacting, 'a://c'), 'a *');
});

test("a result in the protocol's own shape is what it says, not JSON", async () => {
  const contents = [
    { uri: 'a://b/1', mimeType: 'text/markdown', text: '# one', _meta: { 'com.example/n': 1 } },
    { uri: 'a://b/2', blob: Buffer.from('two').toString('base64') },
  ];
  const made = server();
  made.resource('a://b', () => ({ contents, ttlMs: 7, cacheScope: 'private' }));
  await talk(made, async (client) => {
    const result = await client.request('read', { uri: 'a://b' });
    assert.equal(result.ttlMs, 7);
    assert.deepEqual(result.contents, [
      contents[0],
      { uri: 'a://b/2', mimeType: 'application/octet-stream', blob: Buffer.from('two').toString('base64') },
    ]);
  });
});

for (const value of [
  { contents: [] },
  { contents: 'of a drawer' },
  { contents: [{ uri: 'a://b', size: 3 }] },
  { contents: [{ uri: 'a://b', text: 'x' }], title: 'a list of mine' },
]) {
  test(`what is not of that shape stays JSON: ${JSON.stringify(value)}`, async () => {
    const [{ body, mimeType }] = await read(() => value);
    assert.deepEqual([JSON.parse(body), mimeType], [value, 'application/json']);
  });
}

class Money {
  constructor(amount) {
    this.amount = amount;
  }
}

test('every value that has a JSON form is served', async () => {
  const shared = { x: 1 };
  const value = {
    date: new Date(0),
    url: new URL('https://example.com/'),
    money: new Money(5),
    boxed: new String('text'),
    twice: [shared, shared],
    nothing: null,
    left: undefined,
    bare: Object.assign(Object.create(null), { a: true }),
  };
  const [{ body }] = await read(() => value);
  assert.equal(body, JSON.stringify(value));
});

test('the option json converts what has no JSON form', async () => {
  const json = (value) => {
    if (typeof value === 'bigint') return `${value}`;
    if (value instanceof Map) return Object.fromEntries(value);
    return value instanceof Set ? [...value] : undefined;
  };
  const made = server({ json });
  made.resource('a://b', () => ({ users: new Map([['ada', { id: 12n, tags: new Set(['x']) }]]), left: undefined }));
  made.resource('a://c', () => new Contents(new Set([1n])));
  made.resource('a://d', () => ({ at: [Symbol('s')] }));
  assert.equal(await readText(made, 'a://b'), '{"users":{"ada":{"id":"12","tags":["x"]}}}');
  assert.equal(await readText(made, 'a://c'), '["1"]');
  const { text } = await heard(() => refusal(made, 'a://d'));
  assert.match(text, /the value at at\[0\] is a symbol/);
});

test('deep nesting is refused, not overflowed', async () => {
  let deep = {};
  for (let level = 0; level < 50_000; level += 1) deep = { deep };
  const made = server();
  made.resource('a://b', () => deep);
  const { result, text } = await heard(() => refusal(made, 'a://b'));
  assert.equal(result.kind, 'read_error');
  assert.match(text, /nested deeper than 1000 levels/);
});
