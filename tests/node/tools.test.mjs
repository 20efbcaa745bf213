// Tools and prompts of Node: what a function gets and returns, what an author gets wrong, and the official clients (S-60).
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { type } from 'arktype';
import {
  Audio,
  Contents,
  Elicit,
  Embedded,
  Image,
  InputRequired,
  InvalidParameterError,
  MethodResult,
  PromptMessage,
  PromptResult,
  providers,
  ResourceLink,
  Text,
  ToolError,
  ToolResult,
} from 'mcp-resources';
import { Client as TestClient } from 'mcp-resources/testing';
import * as valibot from 'valibot';
import { z } from 'zod';
import { failure, heard, server, talk } from './helpers.mjs';
import { MODERN } from './vectors.mjs';

const SERVER = fileURLToPath(new URL('./tools-server.mjs', import.meta.url));

const LEGACY = { revision: '2025-11-25' };

/** The result of one call of a tool that does this. */
async function called(call, { options = {}, args = {}, ...client } = {}) {
  const made = server();
  made.tool('it', options, call);
  const { _meta, resultType, ...result } = await talk(
    made,
    (one) => one.request('tools/call', { name: 'it', arguments: args }),
    client,
  );
  return result;
}

/** The sentence of a result that is an error. */
async function sentence(call, how) {
  const { content, isError } = await called(call, how);
  assert.equal(isError, true);
  return content[0].text;
}

test('what a tool returns is content', async () => {
  const text = (value) => ({ type: 'text', text: value });
  assert.deepEqual(await called(() => 'hi'), { content: [text('hi')] });
  assert.deepEqual(await called(async () => 'later'), { content: [text('later')] });
  assert.deepEqual(await called(() => undefined), { content: [] });
  assert.deepEqual(await called(() => null), { content: [] });
  assert.deepEqual(await called(() => 7), { content: [text('7')], structuredContent: 7 });
  const value = { a: [1, null], b: 'x' };
  assert.deepEqual(await called(() => value), { content: [text(JSON.stringify(value))], structuredContent: value });
  assert.deepEqual(await called(() => ['a', 'b']), { content: [text('["a","b"]')], structuredContent: ['a', 'b'] });
  const image = { type: 'image', data: 'AQI=', mimeType: 'image/png' };
  assert.deepEqual(await called(() => new Image(Uint8Array.of(1, 2), 'image/png')), { content: [image] });
  assert.deepEqual(await called(() => new Image(Uint8Array.of(1, 2))), { content: [image] });
  assert.deepEqual(await called(() => ['see', new Image(Uint8Array.of(1, 2), 'image/png')]), {
    content: [text('see'), image],
  });
  assert.deepEqual(await called(() => new Audio(new ArrayBuffer(1), 'audio/wav', { priority: 1 })), {
    content: [{ type: 'audio', data: 'AA==', mimeType: 'audio/wav', annotations: { priority: 1 } }],
  });
  const sound = { type: 'audio', data: 'AA==', mimeType: 'audio/wav' };
  assert.deepEqual(await called(() => new Audio(new ArrayBuffer(1))), { content: [sound] });
  const embedded = new Embedded(new Contents({ x: 1 }, { uri: 'a://b' }), { audience: ['user'] });
  assert.deepEqual(await called(() => embedded), {
    content: [
      {
        type: 'resource',
        resource: { uri: 'a://b', mimeType: 'application/json', text: '{"x":1}' },
        annotations: { audience: ['user'] },
      },
    ],
  });
  const dated = new Text('t', { lastModified: new Date(0), meta: { 'com.example/a': 1 } });
  assert.deepEqual(await called(() => dated), {
    content: [
      { ...text('t'), annotations: { lastModified: '1970-01-01T00:00:00.000Z' }, _meta: { 'com.example/a': 1 } },
    ],
  });
  assert.deepEqual(await called(() => new ToolResult('no', { isError: true, structured: { left: 0 } })), {
    content: [text('no')],
    structuredContent: { left: 0 },
    isError: true,
  });
  assert.deepEqual(await called(() => new MethodResult({ content: [] })), { content: [] });
  // The protocol's own shape works too; what only resembles it is data.
  const link = { type: 'resource_link', uri: 'a://b', name: 'b', annotations: { priority: 1 } };
  const wire = { content: [text('hi'), image, link], structuredContent: { a: 1 }, isError: true };
  assert.deepEqual(await called(() => wire), wire);
  const older = await called(() => wire, { revision: '2024-11-05' });
  assert.deepEqual(older.content[2], text('a://b | b'));
  for (const data of [{ content: [] }, { content: [{ type: 'video' }] }, { content: [text('x')], more: 1 }]) {
    assert.deepEqual((await called(() => data)).structuredContent, data);
  }
});

test('a link has the details of what is registered', async () => {
  const made = server();
  const note = made.resource(
    'note://{day}',
    { title: 'A note', description: 'Of a day', mimeType: 'text/plain', scopes: [], ttlMs: 5 },
    ({ day }) => day,
  );
  const app = made.resource('config://app', { name: 'app' }, () => ({}));
  made.tool('links', () => [note.link({ day: 'monday' }), app.link(), note.link({ day: 'x' }, { title: 'Own' })]);
  const { content } = await talk(made, (client) => client.request('tools/call', { name: 'links' }));
  const shared = { type: 'resource_link', description: 'Of a day', mimeType: 'text/plain' };
  assert.deepEqual(content, [
    { ...shared, uri: 'note://monday', name: 'monday', title: 'A note' },
    { type: 'resource_link', uri: 'config://app', name: 'app' },
    { ...shared, uri: 'note://x', name: 'x', title: 'Own' },
  ]);
  assert.throws(() => note.link({}), /note:\/\/\{day\} needs a value for "day"/);
  assert.throws(() => note.link({ day: '' }), /note:\/\/ is no URI of note:\/\/\{day\}; a link must lead to/);
  assert.throws(() => note.link({ dya: 'x' }), /"dya" is no variable of note:\/\/\{day\}/);
  assert.throws(() => new ResourceLink('a://b', { colour: 'red' }), /unexpected option "colour"/);
});

test('a link is checked against the types of variables, and must lead to what is registered', () => {
  const note = server().resource('note://{number}', { parameters: { number: { type: 'integer' } } }, () => '');
  assert.equal(note.link({ number: 7 }).uri, 'note://7');
  assert.throws(() => note.link({ number: 'x' }), /the variable number is "x", expected an integer/);
  note.remove();
  assert.throws(() => note.link({ number: 7 }), /is not registered now/);
});

test('a tool names its page (S-63)', async () => {
  const made = server();
  assert.throws(() => made.tool('order', { ui: 'ui://shop/order' }, () => ''), /register the page first/);
  const page = made.ui('ui://shop/order', {
    html: '<p>',
    csp: { connectDomains: ['https://a.example'] },
    permissions: ['clipboardWrite'],
    prefersBorder: true,
  });
  made.tool('order', { ui: page, uiVisibility: ['app'] }, () => 'paid');
  await talk(made, async (client) => {
    const { tools } = await client.request('tools/list', {});
    assert.deepEqual(tools[0]._meta.ui, { resourceUri: page, visibility: ['app'] });
    const { contents } = await client.request('resources/read', { uri: page });
    assert.equal(contents[0].mimeType, 'text/html;profile=mcp-app');
    const about = {
      csp: { connectDomains: ['https://a.example'] },
      permissions: { clipboardWrite: {} },
      prefersBorder: true,
    };
    assert.deepEqual(contents[0]._meta.ui, about);
  });
  assert.throws(() => made.ui(page, { html: '' }), /registered already/);
  made.ui(page, { html: '<b>', replace: true });
});

test('a mounted source has tools of its own (S-64)', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'mcp-tools-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(path.join(folder, 'refunds.md'), '# Refunds\n\nMoney back.\n');
  const names = async (options, chosen) => {
    const made = server(options);
    made.mount(providers.docs({ handbook: folder }, chosen));
    return await talk(made, async (client) => {
      const { tools } = await client.request('tools/list', {});
      const own = tools.map(({ name }) => name).filter((name) => !/_resources?$/.test(name));
      if (own.length > 0) {
        const found = await client.request('tools/call', { name: 'docs_search', arguments: { q: 'money' } });
        assert.match(found.content[0].text, /refunds\.md/);
      }
      return own;
    });
  };
  assert.deepEqual(await names({ exposeAsTools: true }), ['docs_search']);
  assert.deepEqual(await names({ exposeAsTools: true }, { tools: false }), []);
  assert.deepEqual(await names({}, { tools: ['docs_search'] }), ['docs_search']);
  await assert.rejects(names({}), /tools\/list/);
});

test('an output schema makes the result structured, in each revision', async () => {
  const options = { output: z.array(z.string()) };
  const content = [{ type: 'text', text: '["a"]' }];
  assert.deepEqual(await called(() => ['a'], { options }), { content, structuredContent: ['a'] });
  assert.deepEqual(await called(() => ['a'], { options, revision: '2025-06-18' }), {
    content,
    structuredContent: { result: ['a'] },
  });
  assert.deepEqual(await called(() => ['a'], { options, revision: '2025-03-26' }), { content });
  // A text that a schema describes is sent as it is, and structured.
  assert.deepEqual(await called(() => 'a', { options: { output: z.string() } }), {
    content: [{ type: 'text', text: 'a' }],
    structuredContent: 'a',
  });
  // What the schema does not have is not sent.
  const known = { output: z.object({ a: z.number() }) };
  assert.deepEqual((await called(async () => ({ a: 1, secret: 2 }), { options: known })).structuredContent, { a: 1 });
});

test('schemas of libraries are published and checked', async () => {
  const made = server();
  const validate = valibot.object({ a: valibot.number() });
  made.tool(
    'zod',
    { input: z.object({ a: z.number().default(3), b: z.enum(['x', 'y']).optional() }) },
    (given) => given,
  );
  made.tool('arktype', { input: type({ a: 'number' }) }, (given) => given);
  made.tool('valibot', { input: { schema: { type: 'object' }, validate } }, (given) => given);
  made.tool('late', { input: z.object({ a: z.number() }).refine(async ({ a }) => a < 9, 'too large') }, ({ a }) => a);
  const own = (given) => {
    if (given.a !== 1) throw new InvalidParameterError('a', 'one');
    return { b: given.a };
  };
  made.tool('own', { input: { schema: { type: 'object' }, validate: own } }, (given) => given);
  made.tool('none', { input: { schema: { type: 'object', properties: { a: {} } } } }, (given) => given);
  await talk(made, async (client) => {
    const { tools } = await client.request('tools/list');
    const schemas = Object.fromEntries(tools.map(({ name, inputSchema }) => [name, inputSchema]));
    assert.deepEqual(schemas.arktype, { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] });
    assert.deepEqual(schemas.zod.properties.a, { default: 3, type: 'number' });
    assert.equal('$schema' in schemas.zod, false);
    assert.deepEqual(schemas.none, { type: 'object', properties: { a: {} } });
    const call = async (name, args) => {
      const { isError, content, structuredContent } = await client.request('tools/call', { name, arguments: args });
      return isError ? content[0].text : structuredContent;
    };
    assert.deepEqual(await call('zod', {}), { a: 3 });
    assert.equal(
      await call('zod', { a: 'q', b: 'z' }),
      'Invalid arguments for zod: a: Invalid input: expected number, received string; b: Invalid option: expected one of "x"|"y"',
    );
    assert.equal(await call('arktype', {}), 'Invalid arguments for arktype: a: a must be a number (was missing)');
    assert.match(await call('valibot', { a: 'q' }), /^Invalid arguments for valibot: a: Invalid type: Expected number/);
    assert.equal(await call('late', { a: 9 }), 'Invalid arguments for late: arguments: too large');
    assert.equal(await call('late', { a: 8 }), 8);
    assert.deepEqual(await call('own', { a: 1 }), { b: 1 });
    assert.equal(await call('own', { a: 2 }), 'Invalid arguments for own: a: expected one');
    assert.deepEqual(await call('none', { a: 'anything' }), { a: 'anything' });
  });
});

test('a failure that the model can mend, and one that it cannot', async () => {
  const failing = (error) => () => {
    throw error;
  };
  assert.equal(await sentence(failing(new ToolError('There is no order 8.'))), 'There is no order 8.');
  assert.equal(
    await sentence(async () => {
      throw new ToolError('Later.');
    }),
    'Later.',
  );
  const { result, text } = await heard(() => sentence(failing(new Error('the secret of the disk'))));
  assert.equal(result, 'The tool it failed');
  assert.match(text, /the secret of the disk/);
  assert.throws(() => new ToolError(5), /message is 5, expected a string/);
  // A tool's error has no such meaning in a reader.
  const made = server();
  made.resource('a://b', failing(new ToolError('no')));
  const told = await heard(() => talk(made, (client) => failure(client.read('a://b'))));
  assert.equal(told.result.code, -32603);
});

test('what cannot be sent is said to the author', async () => {
  const cycle = {};
  cycle.self = cycle;
  const wrong = [
    [() => Number.NaN, /is NaN, which JSON does not have/],
    [() => ({ a: [Number.NaN] }), /the value at a\[0\] is NaN/],
    [() => cycle, /the value at self contains itself/],
    [() => ({ a: Buffer.from('x') }), /the value at a is a Buffer; encode it/],
    [() => Buffer.from('x'), /the tool returned a Buffer; return one of Image, Audio, ResourceLink, Embedded and Text/],
    [() => new Contents('x'), /the tool returned a Contents; return one of Image, Audio/],
    [() => new Map(), /is a Map; use Object.fromEntries/],
    [() => [new Text('x'), 5], /item 1 of a ToolResult is 5, expected a string or one of Image/],
  ];
  for (const [call, message] of wrong) {
    const { result, text } = await heard(() => sentence(call));
    assert.equal(result, 'The tool it failed');
    assert.match(text, message);
  }
  const output = z.object({ a: z.number() });
  const { text } = await heard(() => sentence(() => ({ a: 'x' }), { options: { output } }));
  assert.match(text, /the result does not fit the output schema: a: Invalid input: expected number/);
});

test('tools come and go, and clients hear of it', async () => {
  const made = server({ tools: true });
  await talk(
    made,
    async (client) => {
      const names = async () => (await client.request('tools/list')).tools.map(({ name }) => name);
      assert.deepEqual(await names(), []);
      made.tool('a', function first() {});
      assert.deepEqual(await names(), ['a']);
      assert.equal((await client.notification()).kind, 'list_changed');
      made.tool('a', { replace: true, description: 'second' }, () => 'second');
      assert.equal((await client.request('tools/call', { name: 'a' })).content[0].text, 'second');
      made.removeTool('a');
      made.removeTool('a');
      assert.deepEqual(await names(), []);
      made.batch(() => {
        for (let at = 0; at < 150; at += 1) made.tool(`t${at}`, () => undefined);
      });
      const page = await client.request('tools/list');
      assert.equal(page.tools.length, 100);
      assert.equal((await client.request('tools/list', { cursor: page.nextCursor })).tools.length, 50);
    },
    LEGACY,
  );
});

test('a tool whose client leaves is cancelled, and may ask, report and be asked again', async () => {
  const made = server();
  let aborted;
  const entered = new Promise((enter) => {
    made.tool('endless', async (_, { signal }) => {
      aborted = once(signal, 'abort');
      enter();
      await aborted;
    });
  });
  made.tool('reports', (_, ctx) => {
    ctx.progress(1, 2, 'half');
    return ctx.uri === undefined ? 'no URI' : 'a URI';
  });
  made.tool('asks', (_, ctx) => {
    const answer = ctx.inputs.name;
    return answer === undefined
      ? new InputRequired({ name: new Elicit('Your name?', { type: 'object', properties: { n: { type: 'string' } } }) })
      : `Hello, ${answer.content.n}`;
  });
  const client = await TestClient.connect(made, { capabilities: { elicitation: {} } });
  const { id } = client.send('tools/call', { name: 'endless' });
  await entered;
  const reported = await client.request('tools/call', { name: 'reports' }, { meta: { progressToken: 1 } });
  assert.equal(reported.content[0].text, 'no URI');
  assert.equal((await client.notification()).params.message, 'half');
  const inputResponses = { name: { action: 'accept', content: { n: 'Ada' } } };
  const { inputRequests, requestState } = await client.request('tools/call', { name: 'asks' });
  assert.deepEqual(Object.keys(inputRequests), ['name']);
  const again = await client.request('tools/call', { name: 'asks', inputResponses, requestState });
  assert.equal(again.content[0].text, 'Hello, Ada');
  client.cancel(id);
  await aborted;
  client.close();
});

test('prompts', async () => {
  const made = server();
  const said = (text, role = 'user') => ({ role, content: { type: 'text', text } });
  made.prompt('plain', () => 'hi');
  made.prompt('image', () => new Image(Uint8Array.of(1), 'image/png'));
  made.prompt(
    'full',
    {
      title: 'Full',
      arguments: { city: { required: true, description: 'Where' }, tone: { values: ['dry', 'warm'] } },
      complete: { city: (typed, chosen) => [`${typed}${chosen.tone ?? ''}`] },
    },
    ({ city, tone }) => new PromptResult([new PromptMessage(`${city} ${tone}`, 'assistant')], { description: 'd' }),
  );
  const schema = z.object({ count: z.coerce.number().int().describe('How many'), unit: z.enum(['c', 'f']).optional() });
  made.prompt('typed', { arguments: schema }, ({ count }) => ['one', `${count + 1}`]);
  made.prompt('wrong', () => 5);
  await talk(made, async (client) => {
    const { prompts } = await client.request('prompts/list');
    assert.deepEqual(prompts.find(({ name }) => name === 'typed').arguments, [
      { name: 'count', description: 'How many', required: true },
      { name: 'unit' },
    ]);
    const get = (name, args) => client.request('prompts/get', { name, arguments: args });
    assert.deepEqual((await get('plain')).messages, [said('hi')]);
    assert.equal((await get('image')).messages[0].content.data, 'AQ==');
    const full = await get('full', { city: 'Rome', tone: 'dry' });
    assert.deepEqual([full.description, full.messages], ['d', [said('Rome dry', 'assistant')]]);
    assert.equal((await failure(get('full', {}))).code, -32602);
    assert.deepEqual((await get('typed', { count: '2' })).messages, [said('one'), said('3')]);
    assert.match((await failure(get('typed', { count: 'x' }))).message, /count/);
    const ref = { type: 'ref/prompt', name: 'full' };
    const complete = async (name, value) =>
      (await client.request('completion/complete', { ref, argument: { name, value } })).completion.values;
    assert.deepEqual(await complete('tone', 'w'), ['warm']);
    assert.deepEqual(await complete('city', 'R'), ['R']);
    const { result, text } = await heard(() => failure(get('wrong')));
    assert.equal(result.code, -32603);
    assert.match(text, /the prompt has 5, expected strings, PromptMessage and Image/);
    made.removePrompt('plain');
    assert.equal((await failure(get('plain'))).code, -32602);
  });
});

test('resources as tools', async () => {
  const made = server({ exposeAsTools: true });
  made.resource('note://{day}', ({ day }) => `the note of ${day}`);
  made.addResource({ uri: 'config://app' }, { text: 'on' });
  await talk(made, async (client) => {
    const call = async (name, args) => (await client.request('tools/call', { name, arguments: args })).content[0].text;
    assert.match(await call('list_resources', {}), /config:\/\/app/);
    assert.equal(await call('read_resource', { uri: 'note://monday' }), 'the note of monday');
    assert.match(await call('read_resource', { uri: 'none://x' }), /^There is no resource none:\/\/x\./);
  });
});

const ABOUT = { name: 'test', version: '1' };
const transport = { command: process.execPath, args: [SERVER], stderr: 'inherit' };
const CLIENTS = {
  'client 2, modern': () => [
    new Client(ABOUT, { versionNegotiation: { mode: { pin: MODERN } } }),
    new StdioClientTransport(transport),
  ],
  'client 2, legacy': () => [
    new Client(ABOUT, { versionNegotiation: { mode: 'legacy' } }),
    new StdioClientTransport(transport),
  ],
  'sdk 1': () => [new Client1(ABOUT), new Transport1(transport)],
};

for (const [name, make] of Object.entries(CLIENTS)) {
  test(`${name}: the official client calls tools and gets prompts beside a resource`, async (t) => {
    const [client, way] = make();
    await client.connect(way);
    t.after(() => client.close());
    const isModern = name === 'client 2, modern';
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map((tool) => tool.name),
      ['add_note', 'count', 'list', 'picture', 'plain'],
    );
    assert.equal(tools[1].annotations.readOnlyHint, true);
    const call = (tool, args = {}) => client.callTool({ name: tool, arguments: args });
    const link = await call('add_note', { day: 'friday', text: 'bread' });
    assert.deepEqual(link.content, [
      { type: 'resource_link', uri: 'note://friday', name: 'friday', title: 'A note', mimeType: 'text/plain' },
    ]);
    assert.equal((await client.readResource({ uri: link.content[0].uri })).contents[0].text, 'bread');
    const refused = await call('add_note', { day: 'friday', text: 'x'.repeat(21) });
    assert.equal(refused.isError, true);
    assert.match(refused.content[0].text, /^Invalid arguments for add_note: text: Too big/);
    const failed = await call('add_note', { day: 'never', text: '' });
    assert.deepEqual([failed.isError, failed.content[0].text], [true, 'There is no such day.']);
    assert.deepEqual((await call('count', { days: ['a', 'b'] })).structuredContent, { count: 2 });
    const days = ['monday', 'tuesday', 'friday'];
    assert.deepEqual((await call('list')).structuredContent, isModern ? days : { result: days });
    assert.deepEqual(
      (await call('picture')).content.map((block) => block.type),
      ['text', 'image'],
    );
    assert.equal((await call('plain')).content[0].text, '{"a":[1,null]}');
    const { prompts } = await client.listPrompts();
    assert.equal(prompts[0].name, 'summary');
    const { messages } = await client.getPrompt({ name: 'summary', arguments: { day: 'monday' } });
    assert.deepEqual(
      messages.map(({ role, content }) => [role, content.text]),
      [
        ['user', 'Sum up the note of monday, short.'],
        ['assistant', 'Of course.'],
      ],
    );
    const argument = { name: 'day', value: 't' };
    const { completion } = await client.complete({ ref: { type: 'ref/prompt', name: 'summary' }, argument });
    assert.deepEqual(completion.values, days);
  });
}
