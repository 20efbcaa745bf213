/**
 * What the official TypeScript client sees of a server of files: `official.mjs ERA FOLDER COMMAND… | URL`.
 *
 * ERA is `legacy` or `modern`; FOLDER is what is served, and is changed here. Every line that is printed was checked first.
 */
import assert from 'node:assert/strict';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const ROOT = 'file:///project/';
const FILES = 'file:///{root}/{+path}';
const PATIENCE = 10_000;
const [era, folder, command, ...args] = process.argv.slice(2);
const isUrl = command.startsWith('http://');

const mode = era === 'legacy' ? 'legacy' : { pin: '2026-07-28' };
const client = new Client({ name: 'demo', version: '1.0.0' }, { versionNegotiation: { mode } });
await client.connect(
  isUrl ? new StreamableHTTPClientTransport(new URL(command)) : new StdioClientTransport({ command, args }),
);
try {
  const revision = client.getNegotiatedProtocolVersion();
  console.log(`\nofficial TypeScript client, revision ${revision}, ${isUrl ? 'HTTP' : 'stdio'}\n`);
  await lists();
  await reads();
  await watches();
  await isRefused();
} finally {
  await client.close();
}

/** The list, of which this client fetches all pages, and the templates. */
async function lists() {
  const began = performance.now();
  const { resources } = await client.listResources();
  const took = (performance.now() - began).toFixed(0);
  const uris = resources.map(({ uri }) => uri);
  assert.ok(uris.includes(`${ROOT}src/main.ts`) && !uris.includes(`${ROOT}.env`));
  say('list', `${uris.length} resources after ${took} ms`);
  const { resourceTemplates } = await client.listResourceTemplates();
  const { completion } = await client.complete({
    ref: { type: 'ref/resource', uri: FILES },
    argument: { name: 'path', value: 'src/' },
    context: { arguments: { root: 'project' } },
  });
  say('templates', resourceTemplates.map(({ uriTemplate }) => uriTemplate).join('   '));
  say('complete', `path “src/”: ${completion.values.join(', ')}`);
}

/** A file, and a directory. */
async function reads() {
  const text = await read(`${ROOT}src/main.ts`);
  assert.equal(text, await readFile(join(folder, 'src/main.ts'), 'utf8'));
  say('read', `${ROOT}src/main.ts: ${text.trim()}`);
  const { contents } = await client.readResource({ uri: `${ROOT}src` });
  say('read', `${ROOT}src: ${contents.map(({ uri }) => uri.slice(ROOT.length)).join(', ')}`);
}

/** A file that changes while it is watched, in the way of the era. */
async function watches() {
  const uri = `${ROOT}src/main.ts`;
  const told = new Promise((resolve) =>
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => resolve(params.uri)),
  );
  const listening =
    era === 'legacy' ? await client.subscribeResource({ uri }) : await client.listen({ resourceSubscriptions: [uri] });
  const began = performance.now();
  // Renamed, so that nobody reads half of it.
  await writeFile(join(folder, 'main.new'), `export const answer = ${Date.now() % 1000};\n`);
  await rename(join(folder, 'main.new'), join(folder, 'src/main.ts'));
  const late = setTimeout(() => assert.fail('no update came'), PATIENCE);
  assert.equal(await told, uri);
  clearTimeout(late);
  const took = (performance.now() - began).toFixed(0);
  say('watch', `${uri}: changed, told after ${took} ms, read again: ${(await read(uri)).trim()}`);
  await listening.close?.();
}

/** What is hidden answers as what is not there. */
async function isRefused() {
  const codes = [];
  for (const name of ['.env', 'nothing.txt']) {
    await assert.rejects(client.readResource({ uri: `${ROOT}${name}` }), ({ code }) => codes.push(code) > 0);
  }
  assert.equal(codes[0], codes[1]);
  say('not found', `${ROOT}.env and ${ROOT}nothing.txt: ${codes[0]} both`);
}

async function read(uri) {
  const [content] = (await client.readResource({ uri })).contents;
  return content.text;
}

function say(step, text) {
  console.log(`  ${step.padEnd(11)}${text}`);
}
