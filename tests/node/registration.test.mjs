// What an author registers: names, details, typed variables, and the refusals that say what is wrong.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { type } from 'arktype';
import {
  InvalidTemplateError,
  InvalidUriError,
  McpError,
  RegistrationError,
  ResourceServer,
  TemplateConflictError,
} from 'mcp-resources';
import * as v from 'valibot';
import { z } from 'zod';
import { failure, readText, refusal, server, talk } from './helpers.mjs';
import { ROOT } from './vectors.mjs';

const PARAMETERS = 'io.github.mcp-resources/parameters';

async function listed(from, uri) {
  const items = await talk(from, (client) => client.listResources());
  return items.find((item) => item.uri === uri);
}

/** Reads `uri` of a template, and gives the variables that the handler was given. */
async function given(template, options, uri) {
  const made = server();
  const got = [];
  made.resource(template, options, (variables) => {
    got.push({ ...variables });
    return 'ok';
  });
  assert.equal(await readText(made, uri), 'ok');
  return got[0];
}

test('the name comes from the function', async () => {
  const made = server();
  function appConfig() {
    return 'x';
  }
  made.resource('config://app', appConfig);
  made.resource('a://arrow', () => 'x');
  assert.equal((await listed(made, 'config://app')).name, 'appConfig');
  assert.equal((await listed(made, 'a://arrow')).name, 'a://arrow');
});

test('every detail is listed', async () => {
  const made = server();
  const icons = [{ src: 'https://example.com/i.png', mimeType: 'image/png', sizes: ['48x48'], theme: 'dark' }];
  made.resource(
    'a://all',
    {
      name: 'n',
      title: 'T',
      description: 'D',
      mimeType: 'text/markdown',
      size: 3,
      icons,
      audience: ['user'],
      priority: 0.5,
      lastModified: new Date('2025-01-12T15:00:58Z'),
      meta: { 'com.example/tag': [1, { a: null }] },
      ttlMs: 60_000,
      cacheScope: 'public',
    },
    () => 'abc',
  );
  const { annotations, ...item } = await listed(made, 'a://all');
  assert.deepEqual(item, {
    uri: 'a://all',
    name: 'n',
    title: 'T',
    description: 'D',
    mimeType: 'text/markdown',
    size: 3,
    icons,
    _meta: { 'com.example/tag': [1, { a: null }] },
  });
  assert.deepEqual(
    { ...annotations, lastModified: Date.parse(annotations.lastModified) },
    {
      audience: ['user'],
      priority: 0.5,
      lastModified: Date.parse('2025-01-12T15:00:58Z'),
    },
  );
  const result = await talk(made, (client) => client.request('read', { uri: 'a://all' }));
  assert.deepEqual([result.ttlMs, result.cacheScope], [60_000, 'public']);
});

test('the handle of a registration removes it', async () => {
  const made = server();
  const handler = made.resource('a://{x}', ({ x }) => x);
  await talk(made, async (client) => {
    assert.equal(await client.readText('a://b'), 'b');
    handler.remove();
    await assert.rejects(client.read('a://b'), { kind: 'not_found' });
  });
});

for (const [what, param, text, value] of [
  ['integer', { type: 'integer' }, '-12', -12],
  ['number', { type: 'number' }, '1500.5', 1500.5],
  ['boolean', { type: 'boolean' }, 'false', false],
  ['string', { type: 'string', pattern: '[a-z]+' }, 'abc', 'abc'],
  ['values', { values: ['red', 'blue'] }, 'blue', 'blue'],
  ['date', { type: 'date' }, '2025-02-28', '2025-02-28'],
  ['uuid', { type: 'uuid' }, '017f22e2-79b0-7cc3-98c4-dc0c0c07398f', '017f22e2-79b0-7cc3-98c4-dc0c0c07398f'],
]) {
  test(`a value is typed by its parameter: ${what}`, async () => {
    assert.deepEqual(await given('a://h/{x}', { parameters: { x: param } }, `a://h/${text}`), { x: value });
  });
}

for (const [param, text, expected] of [
  [{ type: 'integer' }, 'x', 'an integer'],
  [{ type: 'integer' }, '1_000', 'an integer'],
  [{ type: 'number' }, 'nan', 'a number'],
  [{ type: 'boolean' }, 'True', 'true or false'],
  [{ values: ['red', 'blue'] }, 'green', 'one of: red, blue'],
  [{ type: 'date' }, '2025-02-29', 'a date, YYYY-MM-DD'],
  [{ pattern: '[a-z]+' }, 'A1', 'a text matching [a-z]+'],
]) {
  test(`a bad value names its parameter: ${text} is not ${expected}`, async () => {
    const made = server();
    made.resource('a://h/{x}', { parameters: { x: param } }, () => assert.fail('called'));
    const error = await refusal(made, `a://h/${text}`);
    assert.deepEqual([error.code, error.kind, error.data.parameter], [-32602, 'invalid_parameter', 'x']);
    assert.ok(error.message.includes(expected), error.message);
  });
}

for (const [library, schemas, bad] of [
  ['zod', { port: z.coerce.number().int().max(65535), tags: z.array(z.coerce.number()).max(2).optional() }, '99999'],
  [
    'valibot',
    {
      port: v.pipe(v.string(), v.transform(Number), v.maxValue(65535)),
      tags: v.optional(v.pipe(v.array(v.pipe(v.string(), v.transform(Number))), v.maxLength(2))),
    },
    '99999',
  ],
  ['arktype', { port: type('string.integer.parse').to('number <= 65535'), tags: type('string[]') }, '99999'],
]) {
  test(`a schema of ${library} checks and converts`, async () => {
    const template = 'a://h/{port}{?tags*}';
    const { port, tags } = await given(template, { parameters: schemas }, 'a://h/80?tags=1&tags=2');
    assert.equal(port, 80);
    assert.deepEqual(tags.map(Number), [1, 2]);
    const made = server();
    made.resource(template, { parameters: schemas }, () => assert.fail('called'));
    const error = await refusal(made, `a://h/${bad}?tags=1`);
    assert.deepEqual([error.code, error.kind, error.data.parameter], [-32602, 'invalid_parameter', 'port']);
    assert.ok(error.message.length < 400 && !error.message.includes('\n'), error.message);
  });
}

test('a schema answers for a variable that is left out', async () => {
  const options = { parameters: { days: z.coerce.number().default(3) } };
  assert.deepEqual(await given('a://h{?days,other}', options, 'a://h'), { days: 3 });
  assert.deepEqual(await given('a://h{?days,other}', options, 'a://h?days=7'), { days: 7 });
  const made = server();
  made.resource('a://h{?q}', { parameters: { q: z.string() } }, () => assert.fail('called'));
  assert.equal((await refusal(made, 'a://h')).data.parameter, 'q');
});

test('an asynchronous schema is waited for', async () => {
  const taken = z.string().refine(async (name) => name !== 'taken', 'a name that is free');
  const options = { parameters: { name: taken } };
  assert.deepEqual(await given('a://h/{name}', options, 'a://h/free'), { name: 'free' });
  const made = server();
  made.resource('a://h/{name}', options, () => assert.fail('called'));
  const error = await refusal(made, 'a://h/taken');
  assert.equal(error.kind, 'invalid_parameter');
  assert.ok(error.message.includes('a name that is free'), error.message);
});

test('lists, maps, and variables that are left out', async () => {
  const options = {
    vars: { ids: { kind: 'list' }, map: { kind: 'map' } },
    parameters: { ids: { type: 'integer' }, page: { type: 'integer' } },
  };
  const template = 'a://h{/path*}{?ids,page,map*}';
  assert.deepEqual(await given(template, options, 'a://h'), {});
  assert.deepEqual(await given(template, options, 'a://h/a/b?ids=1,2&page=3&z=1.5'), {
    path: ['a', 'b'],
    ids: [1, 2],
    page: 3,
    map: { z: '1.5' },
  });
});

test('parameters are published and complete (S-16)', async () => {
  const made = server();
  made.resource(
    'a://h/{color}{?days}',
    { parameters: { color: { values: ['red', 'blue'] }, days: { type: 'integer', description: 'How many' } } },
    () => 'x',
  );
  await talk(made, async (client) => {
    const [template] = await client.listTemplates();
    const parameters = template._meta[PARAMETERS];
    assert.deepEqual(parameters.color.enum, ['red', 'blue']);
    assert.deepEqual(parameters.days, { type: 'integer', description: 'How many' });
    assert.deepEqual((await client.complete('a://h/{color}{?days}', 'color', 'b')).values, ['blue']);
  });
});

test('what a schema tells is published and completes, where its library tells it (S-16)', async () => {
  for (const [color, days, description] of [
    [z.enum(['red', 'blue']).describe('Which'), z.coerce.number().int().optional(), 'Which'],
    [type("'red' | 'blue'").describe('red or blue'), type('string.integer.parse').or('undefined'), 'red or blue'],
  ]) {
    const made = server();
    made.resource('a://h/{color}{?days}', { parameters: { color, days } }, ({ color }) => color);
    await talk(made, async (client) => {
      const [template] = await client.listTemplates();
      const parameters = template._meta[PARAMETERS];
      assert.deepEqual([...parameters.color.enum].sort(), ['blue', 'red']);
      assert.equal(parameters.color.description, description);
      assert.deepEqual((await client.complete('a://h/{color}{?days}', 'color', 'b')).values, ['blue']);
      assert.equal(await client.readText('a://h/red'), 'red');
      assert.equal((await failure(client.read('a://h/green'))).kind, 'invalid_parameter');
    });
  }
  const made = server();
  made.resource('a://h{?days}', { parameters: { days: z.coerce.number().int().default(3) } }, ({ days }) => `${days}`);
  const [template] = await talk(made, (client) => client.listTemplates());
  assert.equal(template._meta[PARAMETERS].days.type, 'integer');
  assert.equal(await readText(made, 'a://h'), '3');
});

test('refusals are one tree and say where', () => {
  const made = server();
  made.resource('a://h/{x}', () => '');
  assert.throws(() => made.resource('a://{x', () => ''), { template: 'a://{x', offset: 4 });
  assert.throws(
    () => made.resource('a://h/{y}', () => ''),
    (error) => {
      assert.ok(error instanceof TemplateConflictError);
      assert.deepEqual([error.template, error.other].sort(), ['a://h/{x}', 'a://h/{y}']);
      return true;
    },
  );
  assert.throws(() => made.resource('no uri', () => ''), InvalidUriError);
  for (const kind of [InvalidTemplateError, TemplateConflictError, RegistrationError, InvalidUriError]) {
    assert.ok(kind.prototype instanceof McpError);
  }
});

for (const [details, message] of [
  [{ priority: 2 }, /priority/],
  [{ audience: ['nobody'] }, /user or assistant/],
  [{ lastModified: 'yesterday' }, /lastModified/],
  [{ mimeType: 'text' }, /mimeType/],
  [{ cacheScope: 'all' }, /cacheScope is "all", expected "public" or "private"/],
  [{ meta: { progressToken: 1 } }, /reserved/],
  [{ vars: { x: {} } }, /vars/],
  [{ colour: 'red' }, /colour/],
  [{ parameters: { x: { type: 'integer' } } }, /no variable/],
]) {
  test(`bad details are refused: ${Object.keys(details)}`, () => {
    assert.throws(() => server().resource('a://b', details, () => ''), message);
  });
}

test('a refused registration leaves nothing behind', async () => {
  const made = server();
  made.resource('a://b', () => 'first');
  assert.throws(() => made.resource('A://b', () => 'second'), /registered already/);
  assert.equal(await readText(made, 'a://b'), 'first');
});

test('a batch is all or nothing', async () => {
  const made = server();
  assert.throws(
    () =>
      made.batch(() => {
        made.resource('a://b', () => '');
        made.resource('a://b', () => '');
      }),
    RegistrationError,
  );
  made.batch(() => {
    for (let number = 0; number < 50; number += 1) {
      const handler = made.resource(`a://${number}/{x}`, ({ x }) => x);
      handler.complete('x', (value) => [`${value}!`]);
    }
  });
  await talk(made, async (client) => {
    assert.deepEqual(await client.listResources(), []);
    assert.equal((await client.listTemplates()).length, 50);
    assert.deepEqual((await client.complete('a://49/{x}', 'x', 'a')).values, ['a!']);
  });
});

test('constants and removal', async () => {
  const made = server();
  made.addResource({ uri: 'a://text', mimeType: 'text/csv' }, { text: 'a,b' });
  made.addResource({ uri: 'a://data' }, { bytes: Uint8Array.of(0, 255) });
  made.addResource({ uri: 'a://read' }, { read: () => ({ a: 1 }) });
  assert.throws(() => made.addResource({ uri: 'a://none' }, {}), /one of/);
  await talk(made, async (client) => {
    const contents = async (uri) => (await client.read(uri)).map(({ body, mimeType }) => [body, mimeType]);
    assert.deepEqual(await contents('a://text'), [['a,b', 'text/csv']]);
    assert.deepEqual(Buffer.from((await contents('a://data'))[0][0]), Buffer.of(0, 255));
    assert.deepEqual(await contents('a://read'), [['{"a":1}', 'application/json']]);
    for (const uri of ['a://text', 'A://data', 'a://read', 'a://never']) made.removeResource(uri);
    assert.deepEqual(await client.listResources(), []);
  });
});

for (const [options, message] of [
  [{ colour: 'red' }, /colour/],
  [{ limits: { patience: 1 } }, /patience/],
  [{ revisions: ['2020-01-01'] }, /is no revision/],
  [{ keys: [Buffer.from('short')] }, /at least 16 bytes/],
  [{ listCache: { ttlMs: 1, cacheScope: 'all' } }, /public or private/],
]) {
  test(`bad options of a server are refused: ${Object.keys(options)}`, () => {
    assert.throws(() => server(options).addResource({ uri: 'a://b' }, { text: '' }), message);
  });
}

test('the options of a server reach the client', async () => {
  const made = new ResourceServer(
    {
      name: 'x',
      version: '2',
      title: 'T',
      description: 'D',
      websiteUrl: 'https://example.com',
      icons: [{ src: 'https://example.com/i.png' }],
    },
    {
      instructions: 'Read.',
      subscribe: false,
      listChanged: false,
      logging: true,
      completions: true,
      listCache: { ttlMs: 5, cacheScope: 'public' },
      extensions: { 'com.example/feature': { on: true } },
      serverInfoInResults: true,
    },
  );
  await talk(made, async (client) => {
    const { capabilities, instructions, _meta: meta } = client.serverInfo;
    assert.deepEqual(capabilities, {
      resources: {},
      completions: {},
      logging: {},
      extensions: { 'com.example/feature': { on: true } },
    });
    assert.equal(instructions, 'Read.');
    const about = meta['io.modelcontextprotocol/serverInfo'];
    assert.deepEqual([about.version, about.title, about.description], ['2', 'T', 'D']);
    const result = await client.request('list');
    assert.deepEqual([result.ttlMs, result.cacheScope], [5, 'public']);
  });
});

test('the limits are those of the core', () => {
  const source = readFileSync(path.join(ROOT, 'core/engine/src/limits.rs'), 'utf8');
  const [, rows] = source.split('\nlimits! {');
  const names = [...rows.matchAll(/^ {4}pub (\w+):/gm)].map(([, name]) => name);
  assert.ok(names.length > 20);
  const limits = Object.fromEntries(names.map((name) => [name.replace(/_(.)/g, (_, at) => at.toUpperCase()), 1_000]));
  server({ limits }).addResource({ uri: 'a://b' }, { text: '' });
});
