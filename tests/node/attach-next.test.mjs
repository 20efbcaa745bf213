// `attach` in a route handler of a real Next.js server, read by the official client. Next is installed below `target/peers`.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { ENV, folder } from './peers.mjs';
import { MODERN, ROOT } from './vectors.mjs';

const PACKAGES = {
  '@modelcontextprotocol/server': '2.4.0',
  next: '16.4.6',
  react: '19.3.1',
  'react-dom': '19.3.1',
  zod: '4.6.7',
};

/** Starts Next, as it is developed (`dev`) or built and then served (`start`), and returns the URL that it prints. */
async function started(made, command) {
  const bin = path.join(made, 'node_modules', 'next', 'dist', 'bin', 'next');
  const env = { ...ENV, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: command === 'dev' ? 'development' : 'production' };
  if (command === 'start') {
    execFileSync(process.execPath, [bin, 'build'], { cwd: made, env, stdio: ['ignore', 'ignore', 'inherit'] });
  }
  const options = { cwd: made, env, stdio: ['ignore', 'pipe', 'inherit'], detached: true };
  const child = spawn(process.execPath, [bin, command, '--hostname', '127.0.0.1', '--port', '0'], options);
  let url;
  for await (const line of createInterface({ input: child.stdout })) {
    url ??= line.match(/http:\/\/127\.0\.0\.1:\d+/)?.[0];
    if (url !== undefined && /Ready/.test(line)) break;
  }
  assert.ok(url, 'Next serves');
  child.stdout.resume();
  const stop = async () => {
    // Next starts a process of its own, which this one does not always end.
    process.kill(-child.pid, 'SIGTERM');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  return { url: new URL('/mcp', url), stop };
}

for (const command of ['dev', 'start'])
  test(`attach to SDK 2: a route handler of Next.js, next ${command}`, (context) => served(command, context));

async function served(command, context) {
  const made = await folder('attach-next', PACKAGES, { isCopied: true }).catch((error) => error);
  if (made instanceof Error) {
    context.skip('Next cannot be installed from npm here');
    return;
  }
  cpSync(path.join(ROOT, 'tests', 'node', 'next'), made, { recursive: true });
  const { url, stop } = await started(made, command);
  try {
    for (const mode of [{ pin: MODERN }, 'legacy']) {
      const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
      const told = [];
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => told.push(params.uri));
      await client.connect(new StreamableHTTPClientTransport(url));
      const read = async () => (await client.readResource({ uri: 'stock://1' })).contents[0].text;
      const before = Number(await read());
      const isModern = mode !== 'legacy';
      const listen = isModern ? await client.listen({ resourceSubscriptions: ['stock://1'] }) : undefined;
      await client.callTool({ name: 'sell', arguments: { id: '1' } });
      assert.equal(Number(await read()), before - 1);
      for (const end = Date.now() + 20_000; isModern && told.length === 0 && Date.now() < end; ) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      assert.deepEqual(told, isModern ? ['stock://1'] : []);
      await listen?.close();
      await client.close();
    }
  } finally {
    await stop();
  }
}
