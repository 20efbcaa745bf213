// The conformance fixture server in Node: what it holds is the same in every language.
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Contents, Elicit, InputRequired, ResourceNotFoundError, ResourceServer } from 'mcp-resources';

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const UNICODE =
  'Grüße, 世界! 🦀 \u2028\u2029 "quotes" \\back\\slash\\ \ttab\r\nnewline \x00 nul \x1f unit \x7f del end';
const WORDS = ['alpha', 'alphabet', 'beta', 'gamma', ...Array.from({ length: 150 }, (_, n) => `item-${padded(n)}`)];
const FILES = new Map([
  ['alice', ['a1.txt', 'a2.txt']],
  ['bob', ['b1.txt']],
]);
const NAME_FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const DYNAMIC = {
  uri: 'test://dynamic',
  name: 'dynamic',
  mimeType: 'text/plain',
  description: 'Here only while it is switched on',
};
const TEXT = { mimeType: 'text/plain' };

const server = new ResourceServer({ name: 'conformance-node', version: '1.0.0' }, { limits: { page: 20 } });
let watched = 1;
let isDynamic = false;

addConstants();
addNumbered();

server.resource(
  'test://watched-resource',
  { ...TEXT, name: 'watched-resource', description: 'A text that changes.' },
  () => `Version ${watched}`,
);

server.resource('test://multi', { ...TEXT, name: 'multi', description: 'Two contents.' }, () => [
  new Contents('part a', { uri: 'test://multi/a', mimeType: 'text/plain' }),
  new Contents(Uint8Array.of(0, 255), { uri: 'test://multi/b', mimeType: 'application/octet-stream' }),
]);

server.resource(
  'test://annotated',
  {
    name: 'annotated',
    title: 'Annotated Resource',
    description: 'Everything that a resource can say of itself.',
    mimeType: 'text/markdown',
    size: 11,
    audience: ['user', 'assistant'],
    priority: 0.8,
    lastModified: '2025-01-12T15:00:58Z',
    icons: [{ src: 'https://example.com/icon.png', mimeType: 'image/png', sizes: ['48x48'] }],
    meta: { 'com.example/tag': 'v1' },
  },
  async () => new Contents('# Annotated', { meta: { 'com.example/content': 'c1' } }),
);

server.resource('test://error', { ...TEXT, name: 'error', description: 'Its handler fails.' }, () => {
  throw new Error('secret-detail-4711');
});

server.resource(
  'test://input-required',
  { ...TEXT, name: 'input-required', description: "Needs the user's name." },
  async (_, ctx) => {
    const answer = ctx.inputs.name;
    if (answer?.action !== 'accept') {
      throw new InputRequired({ name: new Elicit('What is your name?', NAME_FORM) }, { state: 'name' });
    }
    return `Hello, ${answer.content.name}`;
  },
);

server.resource(
  'test://template/{id}/data',
  {
    name: 'template_data',
    description: 'Data by id.',
    mimeType: 'application/json',
    complete: { id: (value) => WORDS.filter((word) => word.startsWith(value)) },
  },
  ({ id }) => ({ id, templateTest: true, data: `Data for ID: ${id}` }),
);

server.resource(
  'test://users/{user}/files/{file}',
  {
    ...TEXT,
    name: 'user_file',
    description: "A user's file.",
    complete: {
      user: (value) => [...FILES.keys()].filter((user) => user.startsWith(value)),
      file: (value, chosen) => (FILES.get(chosen.user ?? '') ?? []).filter((file) => file.startsWith(value)),
    },
  },
  ({ user, file }) => `${user}:${file}`,
);

server.resource(
  'test://path/{+path}',
  { ...TEXT, name: 'path', description: 'A path of many segments.' },
  ({ path }) => path,
);

server.resource(
  'test://slow/{ms}',
  { ...TEXT, name: 'slow', description: 'Answers after a while.', parameters: { ms: { type: 'integer' } } },
  async ({ ms }, { signal }) => {
    await sleep(ms, undefined, { signal });
    return `slept ${ms}`;
  },
);

server.resource(
  'test://trigger/{event}',
  { ...TEXT, name: 'trigger', description: 'Simulates a change from outside.' },
  ({ event }) => {
    if (event === 'updated') {
      watched += 1;
      server.notifyUpdated('test://watched-resource');
    } else if (event === 'updated-other') server.notifyUpdated('test://static-text');
    else if (event === 'list-changed') switchDynamic();
    else if (event === 'print') process.stdout.write('a stray print\n');
    else throw new ResourceNotFoundError();
    return 'ok';
  },
);

const [way, port] = process.argv.slice(2);
if (way === '--stdio') {
  await server.run();
} else if (way === '--http' && port !== undefined) {
  await server.run({ http: { port: Number(port) } });
} else if (way === '--sse' && port !== undefined) {
  await server.run({ http: { port: Number(port), sse24: true } });
} else if (way === '--handler' && port !== undefined) {
  createServer(server.nodeHandler()).listen(Number(port), '127.0.0.1');
} else {
  console.error('usage: node_server.mjs --stdio | --http PORT | --handler PORT | --sse PORT');
  process.exitCode = 1;
}

function addConstants() {
  for (const [uri, mimeType, content, description] of [
    ['test://static-text', 'text/plain', 'This is the content of the static text resource.', 'A static text'],
    ['test://static-binary', 'image/png', PNG, 'A static picture'],
    ['test://unicode', 'text/plain', UNICODE, 'Characters that need care'],
    ['test://empty-text', 'text/plain', '', 'An empty text'],
    ['test://empty-blob', 'application/octet-stream', new Uint8Array(), 'No bytes'],
    ['test://all-bytes', 'application/octet-stream', Uint8Array.from({ length: 256 }, (_, n) => n), 'Every byte'],
    ['test://large-text', 'text/plain', 'abcdefghij'.repeat(100_000), 'A megabyte of text'],
  ]) {
    const about = { uri, name: uri.slice('test://'.length), mimeType, description };
    server.addResource(about, typeof content === 'string' ? { text: content } : { bytes: content });
  }
  for (let number = 0; number < 60; number += 1) {
    const label = padded(number);
    const item = { uri: `test://page/${label}`, name: `page-${label}`, description: `Item ${label} of a long list` };
    server.addResource({ ...item, ...TEXT }, { text: `Page item ${label}` });
  }
}

function addNumbered() {
  server.batch(() => {
    for (let number = 0; number < 30; number += 1) {
      const name = `tpl-${String(number).padStart(2, '0')}`;
      const about = { ...TEXT, name, description: 'One of many templates.' };
      server.resource(`test://${name}/{x}`, about, ({ x }) => x);
    }
  });
}

function switchDynamic() {
  if (isDynamic) server.removeResource(DYNAMIC.uri);
  else server.addResource(DYNAMIC, { text: 'dynamic' });
  isDynamic = !isDynamic;
}

function padded(number) {
  return String(number).padStart(3, '0');
}
