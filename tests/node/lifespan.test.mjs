// What an author registers beside readers: a start and a stop, a logger, items of lists by their variables, replacements.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ListPage } from 'mcp-resources';
import { Client } from 'mcp-resources/testing';
import { readText, refusal, server, talk } from './helpers.mjs';
import { modern } from './web.mjs';

/** A server that notes when it starts and stops. */
function noted(options) {
  const events = [];
  const made = server({
    onStart: async () => {
      await turn();
      events.push('start');
    },
    onStop: () => events.push('stop'),
    ...options,
  });
  made.resource('a://b', () => {
    events.push('read');
    return 'x';
  });
  return [made, events];
}

async function until(condition) {
  while (!condition()) await turn();
}

test('a client of tests starts the server, and the last one stops it', async () => {
  const [made, events] = noted();
  const first = await Client.connect(made);
  const second = await Client.connect(made);
  await first.readText('a://b');
  first.close();
  first.close();
  await second.readText('a://b');
  await second[Symbol.asyncDispose]();
  assert.deepEqual(events, ['start', 'read', 'read', 'stop']);
  assert.equal(await readText(made, 'a://b'), 'x');
  await until(() => events.length === 7);
  assert.deepEqual(events.slice(4), ['start', 'read', 'stop']);
});

test('HTTP begins after the start, and the stop is waited for', async () => {
  const [made, events] = noted();
  const ended = made.run({ http: { port: 0, onListening: () => events.push('listening') } });
  await until(() => events.includes('listening'));
  made.close();
  await ended;
  assert.deepEqual(events, ['start', 'listening', 'stop']);
});

test('a handler of requests waits for the start; `close` stops', async () => {
  const [made, events] = noted();
  const handle = made.fetchHandler();
  const [{ headers, body, method }] = [modern(1, 'resources/read', { uri: 'a://b' })];
  const response = await handle(new Request('http://localhost/mcp', { method, headers, body }));
  assert.equal((await response.json()).result.contents[0].text, 'x');
  made.close();
  made.close();
  await until(() => events.length === 3);
  assert.deepEqual(events, ['start', 'read', 'stop']);
});

test('a start that fails serves nothing', async () => {
  const [made, events] = noted({
    onStart: () => {
      throw new Error('no database');
    },
  });
  await assert.rejects(Client.connect(made), /no database/);
  await assert.rejects(made.run({ http: { port: 0 } }), /no database/);
  assert.deepEqual(events, []);
});

test('stdio too is served between start and stop', async () => {
  const program = `
    import { ResourceServer } from 'mcp-resources';
    const say = (text) => () => console.error(text);
    await new ResourceServer({ name: 'x' }, { onStart: say('start'), onStop: say('stop') }).run();
    console.error('end');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { cwd: import.meta.dirname ?? '.' });
  let text = '';
  child.stderr.on('data', (chunk) => {
    text += chunk;
  });
  child.stdin.end();
  const [status] = await once(child, 'close');
  assert.deepEqual([text, status], ['start\nstop\nend\n', 0]);
});

test('messages to the author go to the logger', async () => {
  const given = [];
  const logger = { warn: (message) => given.push(['warn', message]), error: (...all) => given.push(['error', ...all]) };
  const made = server({ logger });
  const broken = new Error('for the author');
  made.resource('a://b', () => {
    throw broken;
  });
  made.resource('files://{path*}', () => 'x');
  await refusal(made, 'a://b');
  assert.equal(given[0][0], 'warn');
  assert.match(given[0][1], /^mcp-resources: test: files:/);
  assert.deepEqual(given[1], ['error', 'mcp-resources: a://b failed: a://b', broken]);
});

test('a handler expands its template', () => {
  const made = server();
  assert.equal(made.resource('a://{day}{?unit}', () => 'x').expand({ day: 'ä', unit: 'c' }), 'a://%C3%A4?unit=c');
  assert.equal(made.resource('a://b', () => 'x').expand({}), 'a://b');
});

test('a lister gives the values of variables, with details', async () => {
  const made = server();
  made.resource('a://{day}', () => 'x').list(() => [{ day: 'mon day', title: 'M' }, { uri: 'a://tue' }]);
  made
    .resource('b://{n}', () => 'x')
    .list((cursor) => new ListPage([{ n: cursor === undefined ? 1 : 2 }], cursor === undefined ? 'next' : undefined));
  const listed = await talk(made, (client) => client.listResources());
  assert.deepEqual(
    listed.map(({ uri, title }) => [uri, title]),
    [
      ['a://mon%20day', 'M'],
      ['a://tue', undefined],
      ['b://1', undefined],
      ['b://2', undefined],
    ],
  );
});

test('a registration may replace an earlier one', async () => {
  const made = server();
  for (const text of ['first', 'second']) {
    made.resource('a://b', { replace: true }, () => text);
    made.resource('a://c/{x}', { replace: true }, ({ x }) => text + x);
  }
  assert.equal(await readText(made, 'a://b'), 'second');
  assert.equal(await readText(made, 'a://c/!'), 'second!');
  assert.throws(() => made.resource('a://b', () => 'third'), /registered already/);
});
