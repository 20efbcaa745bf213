// What the author's `redact` sees of contents, and what the server keeps of reads.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Contents, ReadResult } from 'mcp-resources';
import { failure, heard, readText, server, talk } from './helpers.mjs';

/** A server whose contents lose what is secret. */
function redacting(seen = [], options = {}) {
  return server({
    ...options,
    redact: (uri, contents) => {
      seen.push([uri, contents.body, contents.mimeType]);
      const { body, mimeType, meta } = contents;
      if (typeof body === 'string') return new Contents(body.replaceAll('secret', '*'), { mimeType, meta });
      return new Contents(new Uint8Array(body.length), { mimeType });
    },
  });
}

const FUNCTIONS = {
  'a function': () => 'a secret',
  'an async function': async () => 'a secret',
  'one that waits': () => sleep(1, 'a secret'),
  'a generator': function* () {
    yield 'a sec';
    yield 'ret';
  },
  'an async generator': async function* () {
    yield 'a sec';
    await sleep(1);
    yield 'ret';
  },
};

for (const [what, call] of Object.entries(FUNCTIONS)) {
  test(`what ${what} returns is redacted (S-19)`, async () => {
    const seen = [];
    const made = redacting(seen);
    made.resource('a://b', { mimeType: 'text/x' }, call);
    const [contents] = await talk(made, (client) => client.read('a://b'));
    assert.deepEqual([contents.body, contents.mimeType], ['a *', 'text/x']);
    assert.deepEqual(seen, [['a://b', 'a secret', undefined]]);
  });
}

test('constants, JSON and bytes are redacted, each entry with its own URI (S-19)', async () => {
  const seen = [];
  const made = redacting(seen);
  made.addResource({ uri: 'a://text' }, { text: 'secret' });
  made.addResource({ uri: 'a://bytes' }, { bytes: Buffer.from('secret') });
  made.resource('a://json', () => ({ is: 'secret' }));
  made.resource('a://two', () => [new Contents('secret', { uri: 'a://two/2' }), new Contents(Uint8Array.of(1))]);
  made.resource('a://chunks', () => [Uint8Array.of(1), Uint8Array.of(2)].values());
  await talk(made, async (client) => {
    const bodies = [];
    for (const uri of ['a://text', 'a://bytes', 'a://json', 'a://two', 'a://chunks']) {
      const result = await client.read(uri);
      bodies.push(result.map(({ body }) => (typeof body === 'string' ? body : body.length)));
    }
    assert.deepEqual(bodies, [['*'], [6], ['{"is":"*"}'], ['*', 1], [2]]);
  });
  assert.deepEqual(
    seen.map(([uri, , mimeType]) => [uri, mimeType]),
    [
      ['a://text', undefined],
      ['a://bytes', undefined],
      ['a://json', 'application/json'],
      ['a://two/2', undefined],
      ['a://two', undefined],
      ['a://chunks', undefined],
    ],
  );
});

const WRONG = {
  throws: () => {
    throw new Error('it is broken');
  },
  'returns nothing': () => undefined,
  'returns a text': () => 'text',
};
for (const [what, redact] of Object.entries(WRONG)) {
  test(`a redact that ${what} sends nothing (S-19)`, async () => {
    const made = server({ redact });
    made.resource('a://live', () => 'a secret');
    made.addResource({ uri: 'a://text' }, { text: 'a secret' });
    const { text } = await heard(() =>
      talk(made, async (client) => {
        for (const uri of ['a://live', 'a://text']) {
          const error = await failure(client.read(uri));
          assert.equal(error.kind, 'read_error');
          assert.ok(!JSON.stringify([error.message, error.data]).includes('secret'));
        }
      }),
    );
    assert.ok(text.includes(what === 'throws' ? 'it is broken' : 'expected Contents'));
  });
}

test('a result keeps its hint', async () => {
  const made = redacting();
  made.resource('a://b', { ttlMs: 5 }, () => new ReadResult(new Contents('secret'), { ttlMs: 7 }));
  assert.equal(await readText(made, 'a://b'), '*');
});

test('concurrent reads of several clients make one call, which is kept until an update (R-219, R-220)', async () => {
  const made = server({ cache: true });
  let calls = 0;
  let open;
  const gate = new Promise((resolve) => {
    open = resolve;
  });
  made.resource('a://slow', { ttlMs: 60_000 }, async () => {
    calls += 1;
    await gate;
    return `call ${calls}`;
  });
  await talk(made, (one) =>
    talk(made, async (two) => {
      const reads = [one, one, two, two].map((client) => client.readText('a://slow'));
      await sleep(10);
      open();
      assert.deepEqual(await Promise.all(reads), Array(4).fill('call 1'));
      assert.equal(await two.readText('a://slow'), 'call 1');
      made.notifyUpdated('A://slow');
      assert.equal(await one.readText('a://slow'), 'call 2');
    }),
  );
});
