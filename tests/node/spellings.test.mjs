// A value of a typed variable has one spelling: the shared cases, schemas, and integers beyond 2^53 (S-11, S-16).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { type } from 'arktype';
import { RegistrationError, ResourceServer, UriTemplate } from 'mcp-resources';
import { Client } from 'mcp-resources/testing';
import * as v from 'valibot';
import { z } from 'zod';
import { ROOT } from './vectors.mjs';

const { types, queries } = JSON.parse(readFileSync(path.join(ROOT, 'tests/fixtures/guard/spellings.json'), 'utf8'));

/** The text of a read, or `refused`. */
async function outcome(client, uri) {
  try {
    return await client.readText(uri);
  } catch (error) {
    return error.code === -32602 ? 'refused' : `another error: ${error}`;
  }
}

async function reads(server, expected) {
  const client = await Client.connect(server);
  for (const [uri, text] of Object.entries(expected)) assert.equal(await outcome(client, uri), text, uri);
  client.close();
}

/** Schemas for a type, those of zod, valibot and arktype. */
const SCHEMAS = {
  integer: [
    z.coerce.number().int(),
    z.coerce.number(),
    v.pipe(v.string(), v.transform(Number), v.integer()),
    type('string.integer.parse'),
    type('string.numeric.parse'),
  ],
  number: [z.coerce.number(), v.pipe(v.string(), v.transform(Number), v.finite()), type('string.numeric.parse')],
  boolean: [
    z.stringbool(),
    v.pipe(
      v.picklist(['true', 'false']),
      v.transform((text) => text === 'true'),
    ),
  ],
  uuid: [z.uuid()],
  date: [z.coerce.date(), v.pipe(v.string(), v.isoDate())],
  'date-time': [
    z.iso.datetime().pipe(z.coerce.date()),
    v.pipe(
      v.string(),
      v.isoTimestamp(),
      v.transform((text) => new Date(text)),
    ),
  ],
  values: [
    z.enum(['eu', 'us']),
    z
      .string()
      .toLowerCase()
      .pipe(z.enum(['eu', 'us'])),
    v.picklist(['eu', 'us']),
    type("'eu' | 'us'"),
  ],
};

for (const one of types) {
  const name = one.type ?? 'values';
  const declared = one.type === undefined ? { values: one.values } : { type: one.type };
  test(`no spelling of ${name} avoids a rule (S-11, S-16)`, async () => {
    for (const parameter of [declared, ...SCHEMAS[name]]) {
      const serve = async (guard) => {
        const server = new ResourceServer({ name: 'spelled' }, { guard });
        server.resource('doc://x/{n}', { parameters: { n: parameter } }, ({ n }) => `document ${+n || n}`);
        return await Client.connect(server);
      };
      const open = await serve({});
      const denied = await outcome(open, `doc://x/${one.value}`);
      open.close();
      assert.match(denied, /^document /);
      const globs = [`doc://x/${one.value}`];
      for (const guard of [
        { deny: globs },
        { principals: { '': { deny: globs } } },
        { scopes: { [globs[0]]: 'secret' } },
      ]) {
        const client = await serve(guard);
        for (const spelling of [one.value, ...one.refused]) {
          const found = await outcome(client, `doc://x/${spelling}`);
          if (parameter === declared) assert.equal(found, 'refused', spelling);
          else assert.notEqual(found, denied, spelling);
        }
        if (parameter === declared) {
          for (const spelling of one.open) {
            assert.match(await outcome(client, `doc://x/${spelling}`), /^document /, spelling);
          }
        }
        client.close();
      }
    }
  });

  test(`no other spelling of ${name} is watched, listed or completed (S-16)`, async () => {
    const server = new ResourceServer({ name: 'spelled' });
    server
      .resource('doc://x/{n}', { parameters: { n: declared } }, () => 'document')
      .list(() => [one.value, ...one.refused.map(decodeURIComponent)]);
    const legacy = await Client.connect(server, { revision: '2025-11-25' });
    await legacy.subscribe(`doc://x/${one.value}`);
    if (one.type !== undefined) {
      const [item, ...others] = await legacy.listResources();
      assert.deepEqual([item.uri, others], [new UriTemplate('doc://x/{n}').expand({ n: one.value }), []]);
    }
    for (const spelling of one.refused) {
      await assert.rejects(legacy.subscribe(`doc://x/${spelling}`), spelling);
      await assert.rejects(legacy.complete(`doc://x/${spelling}`, 'n', ''), spelling);
      if (one.type !== undefined && !spelling.includes('%0B')) {
        assert.throws(() => server.notifyUpdated(`doc://x/${spelling}`), RegistrationError, spelling);
      }
    }
    legacy.close();
  });
}

for (const { template, deny, hidden, open } of queries) {
  test(`no encoding or order avoids the rule ${deny} (S-11)`, async () => {
    const server = new ResourceServer({ name: 'spelled' }, { guard: { deny } });
    server.resource(template, (values) => JSON.stringify(values));
    const client = await Client.connect(server);
    for (const uri of hidden) assert.equal(await outcome(client, uri), 'refused', uri);
    for (const uri of open) assert.notEqual(await outcome(client, uri), 'refused', uri);
    client.close();
  });
}

test('an integer that a number does not hold is refused (S-16)', async () => {
  for (const integer of [{ type: 'integer' }, z.coerce.number().int(), v.pipe(v.string(), v.toNumber(), v.integer())]) {
    const server = new ResourceServer({ name: 'spelled' }, { guard: { deny: 'doc://x/9007199254740992' } });
    server.resource('doc://x/{n}', { parameters: { n: integer } }, ({ n }) => `document ${n}`);
    await reads(server, {
      'doc://x/9007199254740991': 'document 9007199254740991',
      'doc://x/-9007199254740991': 'document -9007199254740991',
      'doc://x/9007199254740992': 'refused',
      'doc://x/9007199254740993': 'refused',
      'doc://x/-9007199254740993': 'refused',
      'doc://x/1234567890123456789': 'refused',
    });
  }
  const server = new ResourceServer({ name: 'spelled' });
  const parameters = { n: { type: 'integer' } };
  server.resource('list://x{?n*}', { parameters }, ({ n }) => `documents ${n}`);
  server.resource('map://x{?n*}', { parameters, vars: { n: { kind: 'map' } } }, ({ n }) => JSON.stringify(n));
  server.resource('big://{n}', { parameters: { n: z.coerce.bigint() } }, ({ n }) => `document ${n}`);
  server.resource('number://{n}', { parameters: { n: { type: 'number' } } }, ({ n }) => `document ${n}`);
  await reads(server, {
    'list://x?n=1&n=2': 'documents 1,2',
    'list://x?n=1&n=9007199254740993': 'refused',
    'map://x?a=1': '{"a":1}',
    'map://x?a=9007199254740993': 'refused',
    'big://9007199254740993': 'document 9007199254740993',
    'big://09007199254740993': 'refused',
    'big://0x7': 'refused',
    'number://9007199254740992': 'document 9007199254740992',
    'number://9007199254740993': 'refused',
  });
});

test('a schema that converts gives a value whose text the client has sent (S-16)', async () => {
  const cases = [
    [z.string().trim(), ['a'], [' a', 'a ']],
    [z.string().toLowerCase(), ['a'], ['A']],
    [z.string().transform(async (text) => text.toLowerCase()), ['a'], ['A']],
    [
      z.coerce.date(),
      ['2026-01-31', '2026-01-31T12:00:00Z'],
      ['2026-01-31T00:00:00Z', '2026-1-31', '2026-01-31T12:00:00.000Z', 'Jan 31 2026'],
    ],
    [
      z.iso.datetime({ offset: true }).pipe(z.coerce.date()),
      ['2026-01-31T00:00:00Z'],
      ['2026-01-31T00:00:00.000Z', '2026-01-31T01:00:00+01:00'],
    ],
    [z.coerce.boolean(), ['true'], ['false', '1', 'yes']],
    [v.pipe(v.string(), v.trim()), ['a'], [' a']],
    [
      v.pipe(
        v.string(),
        v.transform((text) => new URL(text)),
      ),
      ['http://a.example/'],
      ['HTTP://a.example/', 'http://a.example'],
    ],
    [type('string.trim'), ['a'], [' a']],
    [type('string.date.parse'), ['2026-01-31'], ['2026-01-31T00:00:00Z']],
    // An object has no text of its own: it is the schema's own affair.
    [z.string().transform((text) => ({ text })), ['a', 'A'], []],
  ];
  for (const [schema, good, bad] of cases) {
    const server = new ResourceServer({ name: 'spelled' });
    server.resource('doc://x{?n}', { parameters: { n: schema } }, () => 'document');
    const template = new UriTemplate('doc://x{?n}');
    await reads(server, {
      ...Object.fromEntries(good.map((n) => [template.expand({ n }), 'document'])),
      ...Object.fromEntries(bad.map((n) => [template.expand({ n }), 'refused'])),
    });
  }
  const server = new ResourceServer({ name: 'spelled' });
  const list = { parameters: { n: z.array(z.coerce.number()) } };
  server.resource('list://x{?n*}', list, ({ n }) => JSON.stringify(n));
  await reads(server, { 'list://x?n=1&n=2': '[1,2]', 'list://x?n=1&n=02': 'refused' });
});

test('a lister may return values of the one required variable (S-16)', async () => {
  const server = new ResourceServer({ name: 'spelled' });
  server
    .resource('doc://x/{n}{?q,r}', { parameters: { n: { type: 'integer' } } }, ({ n }) => `${n}`)
    .list(() => [7, 8n]);
  const client = await Client.connect(server);
  assert.deepEqual(
    (await client.listResources()).map(({ uri }) => uri),
    ['doc://x/7', 'doc://x/8'],
  );
  client.close();
});

test('what is accepted is the text of its value, by JavaScript itself (S-16)', async () => {
  const rounds = Number(process.env.MCP_RESOURCES_SPELLINGS ?? 100);
  let seed = 20261125;
  const below = (most) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed % most;
  };
  const server = new ResourceServer({ name: 'spelled' });
  for (const [name, n] of [
    ['integer', { type: 'integer' }],
    ['number', { type: 'number' }],
    ['coerced', z.coerce.number()],
  ]) {
    server.resource(`${name}://x{?n}`, { parameters: { n } }, ({ n: value }) => `${value}`);
  }
  const template = new UriTemplate('{+kind}://x{?n}');
  const client = await Client.connect(server);
  for (let round = 0; round < rounds; round += 1) {
    const value = (below(2 ** 20) - 2 ** 19) / [1, 8, 1000, 1e-20, 1e30][below(5)];
    const kinds = Number.isSafeInteger(value) ? ['integer', 'number', 'coerced'] : ['number', 'coerced'];
    for (const kind of kinds) {
      assert.equal(await outcome(client, template.expand({ kind, n: value })), `${value}`, `${kind} ${value}`);
      const text = `${value}`;
      const at = below(text.length + 1);
      const other = [
        text.slice(0, at) + '0_+- .eE'[below(8)] + text.slice(at),
        text.slice(0, at) + text.slice(at + 1),
        `+${text}`,
        `${text}.0`,
        value.toExponential(),
      ][below(5)];
      const found = await outcome(client, template.expand({ kind, n: other }));
      if (found !== 'refused') assert.equal(found, other, kind);
    }
  }
  client.close();
});
