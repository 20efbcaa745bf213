// `ServerEventBus`: the bus of our servers, as the official SDK for TypeScript takes one.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { RegistrationError, ResourceServer, ServerEventBus } from 'mcp-resources';

const KEYS = [Buffer.from('0f1e2d3c4b5a69788796a5b4c3d2e1f0')];
const PATIENCE = 30_000;
const SILENT = { warn() {}, error() {} };

async function until(isSo, what) {
  for (const end = Date.now() + PATIENCE; !isSo(); ) {
    assert.ok(Date.now() < end, what());
    await sleep(10);
  }
}

/** Calls `work` with the URL of a bus. */
async function withBus(work) {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-bus-'));
  try {
    await work(`unix:${join(folder, 'notes.bus')}`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Waits until what one tells reaches the other. */
async function joined(tell, bus) {
  let isHeard = false;
  const end = bus.subscribe(({ uri }) => {
    isHeard ||= uri === 'note://join';
  });
  await until(
    () => {
      tell();
      return isHeard;
    },
    () => 'never joined',
  );
  await sleep(300);
  end();
}

test('events reach the listeners of all processes, each once, and a listener that throws stops no other', async () => {
  await withBus(async (url) => {
    const [first, second] = [1, 2].map(() => new ServerEventBus(url, { name: 'notes', keys: KEYS, logger: SILENT }));
    await joined(() => first.publish({ kind: 'resource_updated', uri: 'note://join' }), second);
    const heard = [[], []];
    second.subscribe(() => {
      throw new Error('canary');
    });
    first.subscribe((event) => heard[0].push(event));
    const end = second.subscribe((event) => heard[1].push(event));
    const events = ['resources_list_changed', 'tools_list_changed', 'prompts_list_changed'].map((kind) => ({ kind }));
    events.push({ kind: 'resource_updated', uri: 'note://1' });
    for (const event of events) first.publish(event);
    assert.deepEqual(heard[0], events);
    await until(
      () => heard[1].length === 4,
      () => JSON.stringify(heard[1]),
    );
    const text = ({ kind, uri }) => `${kind} ${uri}`;
    assert.deepEqual(heard[1].map(text).toSorted(), events.map(text).toSorted());
    end();
    end();
    first.publish(events[0]);
    await sleep(200);
    assert.equal(heard[1].length, 4);
    first.close();
    second.close();
    first.publish(events[0]);
    assert.equal(heard[0].length, 6);
  });
});

test('our server and one of the SDK hear of each other; changes for one client stay with ours', async () => {
  await withBus(async (url) => {
    const server = new ResourceServer({ name: 'notes' }, { keys: KEYS, bus: url, metrics: true });
    server.resource('note://{id}', ({ id }) => id);
    const bus = new ServerEventBus(url, { name: 'notes', keys: KEYS });
    const handler = createMcpHandler(() => new McpServer({ name: 'notes', version: '1.0.0' }), { bus });
    await joined(() => server.notifyUpdated('note://join'), bus);
    const heard = [];
    bus.subscribe((event) => heard.push(event));
    server.notifyUpdated('note://ada', { principal: 'ada' });
    server.notifyUpdated('note://1');
    await until(
      () => heard.length > 0,
      () => 'nothing',
    );
    await sleep(200);
    assert.deepEqual(
      heard.map(({ uri }) => uri),
      ['note://1'],
    );
    const received = () => Number(/^mcp_resources_bus_received_total (\d+)$/m.exec(server.metricsText())[1]);
    const before = received();
    handler.notify.resourceUpdated('note://1');
    await until(
      () => received() > before,
      () => server.metricsText(),
    );
    bus.close();
  });
});

test('what is wrong is said, without credentials', () => {
  const make = (url, keys) => () => new ServerEventBus(url, { name: 'notes', keys });
  for (const [url, keys, said] of [
    ['redis://me:hunter2@localhost', [], /keys/],
    ['kafka://me:hunter2@localhost', KEYS, /redis:\/\/HOST:PORT\/DB/],
  ]) {
    assert.throws(make(url, keys), (error) => {
      return error instanceof RegistrationError && said.test(error.message) && !/hunter2/.test(error.message);
    });
  }
  assert.throws(make('redis://localhost', [Buffer.from('short')]), /16 bytes/);
  assert.throws(make(7, KEYS), { name: 'TypeError', message: /the URL of the bus is 7/ });
  assert.throws(make('redis://localhost', 'secret'), { name: 'TypeError', message: /keys is "secret"/ });
  assert.throws(() => new ServerEventBus('redis://localhost', { nmae: 'notes', keys: KEYS }), /did you mean "name"/);
  assert.throws(() => new ServerEventBus('redis://localhost', { keys: KEYS }), {
    name: 'TypeError',
    message: /name is/,
  });
  assert.throws(
    () => new ResourceServer({ name: 'n' }, { guard: { rate: { shared: true } } }).resource('a://b', () => ''),
    {
      name: 'RegistrationError',
      message: /rate\.shared: it needs a bus on Redis/,
    },
  );
});
