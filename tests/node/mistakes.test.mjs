// What an author gets wrong, and what the error says: the value, the reason and the fix (`tests/fixtures/README.md`).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import * as library from 'mcp-resources';
import { Client, ServerError } from 'mcp-resources/testing';
import * as valibot from 'valibot';
import { z } from 'zod';
import { ROOT } from './vectors.mjs';

const ROWS = JSON.parse(readFileSync(path.join(ROOT, 'tests/fixtures/mistakes/node.json'), 'utf8'));
const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;

/** Runs the lines of a row: what is thrown, else what the author's logger is given, else what the client is told. */
async function said({ code }) {
  const logged = [];
  const take = (message, thrown) => logged.push(thrown instanceof Error ? thrown.message : message);
  const logger = { warn: take, error: take, info: take };
  const make = (options) => new library.ResourceServer({ name: 'mistakes' }, { logger, ...options });
  let told;
  const ask =
    (body) =>
    async (server, ...given) => {
      const client = await Client.connect(server);
      try {
        return await body(client, ...given);
      } catch (error) {
        if (!(error instanceof ServerError)) throw error;
        told = error.message;
        return undefined;
      } finally {
        client.close();
      }
    };
  const scope = {
    ...library,
    TestClient: Client,
    z,
    valibot,
    make,
    server: make(),
    read: ask((client, uri = 'a://b') => client.read(uri)),
    list: ask((client) => client.listResources()),
    call: ask((client, method) => client.request(method)),
    callTool: ask(async (client, name, given) => {
      const { isError, content } = await client.request('tools/call', { name, arguments: given });
      if (isError) told = content[0].text;
    }),
    getPrompt: ask((client, name, given) => client.request('prompts/get', { name, arguments: given })),
    complete: ask((client, template, variable) => client.complete(template, variable, '')),
  };
  const names = Object.keys(scope).filter((name) => name !== 'default' && name !== 'module.exports');
  try {
    await new AsyncFunction(...names, code.join('\n'))(...names.map((name) => scope[name]));
  } catch (error) {
    return error.message;
  }
  // A busy machine lets any function wait: that is no mistake of its author.
  const mistakes = logged.filter((line) => !line.includes('blocked the event loop'));
  return mistakes.length > 0 ? mistakes.join('\n') : told;
}

test('there are enough mistakes, each with a name of its own', () => {
  assert.ok(ROWS.length >= 60, `${ROWS.length}`);
  assert.equal(new Set(ROWS.map(({ name }) => name)).size, ROWS.length);
});

for (const row of ROWS) {
  test(`a mistake: ${row.name}`, async () => {
    const message = await said(row);
    assert.ok(message !== undefined, 'nothing was said');
    if (row.pattern === undefined) assert.equal(message, row.message);
    else assert.match(message, new RegExp(row.pattern));
  });
}
