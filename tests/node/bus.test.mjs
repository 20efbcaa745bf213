// Two processes of a server in Node on a bus: a change in one reaches the client of the other.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { RegistrationError, ResourceServer } from 'mcp-resources';
import { Client } from 'mcp-resources/testing';

const KEYS = [Buffer.from('0f1e2d3c4b5a69788796a5b4c3d2e1f0')];
const PATIENCE = 30_000;
const OTHER = `
  const { ResourceServer } = await import('mcp-resources');
  const keys = [Buffer.from('${KEYS[0]}')];
  const server = new ResourceServer({ name: 'notes' }, { keys, bus: process.argv[1] });
  server.resource('note://{id}', ({ id }) => id);
  setInterval(() => server.notifyUpdated('note://1'), 50);
`;

test('a change in one process reaches the client of another', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bus-'));
  const bus = `unix:${join(folder, 'notes.bus')}`;
  const server = new ResourceServer({ name: 'notes' }, { keys: KEYS, bus, metrics: true });
  server.resource('note://{id}', ({ id }) => id);
  const cwd = fileURLToPath(new URL('.', import.meta.url));
  const other = spawn(process.execPath, ['--input-type=module', '-e', OTHER, bus], {
    cwd,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const client = await Client.connect(server);
  try {
    const updates = await client.listen(['note://1']);
    // What is announced when this process joins the bus.
    const connected = () => /^mcp_resources_bus_connected 1$/m.test(server.metricsText());
    for (const end = Date.now() + PATIENCE; !connected(); ) {
      assert.ok(Date.now() < end, server.metricsText());
      await sleep(10);
    }
    const received = () => Number(/^mcp_resources_bus_received_total (\d+)$/m.exec(server.metricsText())[1]);
    for (const end = Date.now() + PATIENCE; received() === 0; ) {
      assert.ok(Date.now() < end, server.metricsText());
      await sleep(10);
    }
    const update = await updates.next();
    assert.match(JSON.stringify(update), /note:\/\/1/);
  } finally {
    other.kill('SIGKILL');
    await client.close?.();
    rmSync(folder, { recursive: true });
  }
});

test('a bus needs keys and a URL of its form, and its credentials are in no message', () => {
  const make = (options) => () => new ResourceServer({ name: 'notes' }, options);
  assert.throws(make({ bus: 'redis://me:hunter2@localhost' }), (error) => {
    return error instanceof RegistrationError && /keys/.test(error.message) && !/hunter2/.test(error.message);
  });
  assert.throws(make({ bus: 'kafka://me:hunter2@localhost', keys: KEYS }), (error) => {
    return (
      error instanceof RegistrationError &&
      /redis:\/\/HOST:PORT\/DB/.test(error.message) &&
      !/hunter2/.test(error.message)
    );
  });
  assert.throws(make({ bus: 7, keys: KEYS }), TypeError);
});
