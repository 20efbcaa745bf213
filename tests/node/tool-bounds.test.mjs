// Tools with much of everything (S-60): what is bounded, what the client reads, and what the author is told.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ResourceServer } from 'mcp-resources';
import { Client } from 'mcp-resources/testing';
import { z } from 'zod';

// Above the default limits of a message (4 MiB) and of a result (16 MiB), in bytes.
const MUCH = 10_000_000;
const VERY_MUCH = 100_000_000;
const MOST_TOOLS = 10_000;

function counting() {
  const told = [];
  const tell = (...what) => told.push(what.map(String).join(' '));
  const server = new ResourceServer(
    { name: 'bounds', version: '1' },
    { logger: { ...console, warn: tell, error: tell } },
  );
  server.tool('count', { input: z.object({ text: z.string() }) }, ({ text }) => String(text.length));
  return { server, told };
}

async function call(client, name, args = {}) {
  const { content } = await client.request('tools/call', { name, arguments: args });
  return content[0].text;
}

test('ten megabytes of arguments: the request has its own error, and the author reads of the limit once', async () => {
  const { server, told } = counting();
  const client = await Client.connect(server);
  for (const _ of [1, 2]) {
    await assert.rejects(call(client, 'count', { text: 'x'.repeat(MUCH) }), {
      code: -32600,
      message: /Message too large/,
    });
  }
  assert.equal(await call(client, 'count', { text: 'x'.repeat(1_000_000) }), '1000000');
  client.close();
  assert.equal(told.length, 1, told.join('\n'));
  assert.match(told[0], /larger than the limit "message" of 4194304 bytes/);
});

test('ten thousand tools are listed; one more is an error that names the limit', async () => {
  const { server } = counting();
  for (let number = 1; number < MOST_TOOLS; number += 1) server.tool(`tool-${number}`, () => 'x');
  assert.throws(() => server.tool('one-more', () => 'x'), /10000|10,000/);
  const client = await Client.connect(server);
  const names = new Set();
  let cursor;
  do {
    const page = await client.request('tools/list', cursor === undefined ? {} : { cursor });
    for (const { name } of page.tools) names.add(name);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  assert.equal(names.size, MOST_TOOLS);
  assert.equal(await call(client, 'tool-9999'), 'x');
  client.close();
});

test('a hundred megabytes of a result are not sent, and the author reads of the limit', async () => {
  const { server, told } = counting();
  server.tool('text', () => 'x'.repeat(VERY_MUCH));
  server.tool('structured', () => ({ text: 'x'.repeat(VERY_MUCH) }));
  const client = await Client.connect(server);
  for (const name of ['text', 'structured']) {
    told.length = 0;
    await assert.rejects(call(client, name), { message: /Result too large/ });
    assert.match(told.join('\n'), /more than the limit `contents` of 16777216/);
  }
  assert.equal(await call(client, 'count', { text: '' }), '0');
  client.close();
});

test('a tool that never ends: clients that leave take their calls with them', async () => {
  const { server } = counting();
  let running = 0;
  server.tool(
    'forever',
    (_, context) =>
      new Promise((_, reject) => {
        running += 1;
        context.signal.addEventListener('abort', () => {
          running -= 1;
          reject(context.signal.reason);
        });
      }),
  );
  for (let round = 0; round < 20; round += 1) {
    const client = await Client.connect(server);
    const waiting = call(client, 'forever').catch(() => {});
    while (running === 0) await sleep(1);
    client.close();
    await waiting;
  }
  for (let tries = 0; tries < 2_000 && running > 0; tries += 1) await sleep(10);
  assert.equal(running, 0);
  const client = await Client.connect(server);
  assert.equal(await call(client, 'count', { text: 'abc' }), '3');
  client.close();
});
