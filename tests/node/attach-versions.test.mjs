// `attach` with the oldest versions that it supports, and what it says to an older one. The newest are those of the other tests.
// Each has a folder of its own below `target/peers`.
import assert from 'node:assert/strict';
import { cpSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ENV, folder, run } from './peers.mjs';
import { ROOT } from './vectors.mjs';

const OLDEST = {
  '@modelcontextprotocol/client': '2.0.0',
  '@modelcontextprotocol/node': '2.0.0',
  '@modelcontextprotocol/sdk': '1.32.0',
  '@modelcontextprotocol/server': '2.0.0',
  zod: '4.6.7',
};
const ADAPTERS = {
  '@modelcontextprotocol/client': '2.4.0',
  '@modelcontextprotocol/express': '2.0.2',
  '@modelcontextprotocol/hono': '2.0.2',
  '@modelcontextprotocol/node': '2.1.2',
  '@modelcontextprotocol/server': '2.4.0',
  express: '5.3.0',
  hono: '4.13.19',
  zod: '4.6.7',
};
/** The files of the tests of attach. */
const FILES = ['attach.test.mjs', 'attached-app.mjs', 'attached-app.cjs', 'helpers.mjs', 'vectors.mjs'];
const TOO_OLD = `
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { ResourceServer } from 'mcp-resources';
try {
  new ResourceServer({ name: 'ours' }).attach(new McpServer({ name: 'theirs', version: '1' }));
} catch (error) {
  console.log(error.message);
}`;

test('attach: the oldest versions of both generations pass its tests', async () => {
  const made = await folder('attach-ts-oldest', OLDEST);
  const tests = path.join(made, 'tests', 'node');
  for (const file of FILES) cpSync(path.join(ROOT, 'tests', 'node', file), path.join(tests, file));
  const args = ['--test', '--test-timeout=600000', path.join(tests, 'attach.test.mjs')];
  await run(process.execPath, args, { cwd: made, env: ENV, maxBuffer: 1 << 26 }).catch(({ stdout }) =>
    assert.fail(stdout),
  );
});

test('attach: the adapters of the SDK for Express and Hono', async () => {
  const made = await folder('attach-ts-adapters', ADAPTERS);
  cpSync(path.join(ROOT, 'tests', 'node', 'attached-adapters.mjs'), path.join(made, 'app.mjs'));
  const { stdout } = await run(process.execPath, ['app.mjs'], { cwd: made, env: ENV });
  assert.equal(stdout, 'ok\n');
});

test('attach: a version that is too old is one sentence, with the version and the remedy', async () => {
  const made = await folder('attach-ts-too-old', { '@modelcontextprotocol/sdk': '1.20.0' });
  writeFileSync(path.join(made, 'app.mjs'), TOO_OLD);
  const { stdout } = await run(process.execPath, ['app.mjs'], { cwd: made, env: ENV });
  assert.match(
    stdout,
    /^attach needs Server\.\w+\(\), which .*@modelcontextprotocol\/sdk 1\.20\.0 does not have; install [^\n]+ or a newer mcp-resources\n$/,
  );
});
