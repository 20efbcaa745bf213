// The wire fixtures through servers of both generations of the official SDK, to which our server is attached.
// `tests/fixtures/attached.json` lists the cases that cannot apply, with the reasons. Adoption is off: a server that may have more
// resources answers differently for those that ours does not have.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { InMemoryTransport as Memory1 } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer as First } from '@modelcontextprotocol/sdk/server/mcp.js';
import { InMemoryTransport, McpServer as Second } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { MODERN } from './vectors.mjs';
import { cases, compare, outgoing, read, resolve, write } from './wire.mjs';
import { Host, unobservable } from './wire-host.mjs';

const LEFT_OUT = read('attached.json');
/** Turns of the event loop after which nothing more happens. */
const ROUNDS = 12;
/** How often this is tried again while a message is missing. */
const PATIENCE = 100;
const NAME = 'io.modelcontextprotocol/serverInfo';

/** One client of the SDK's server, in memory, with the interface of `Connection` of `mcp-resources/testing`. */
class AttachedConnection {
  closed = false;
  #out = [];
  #changes = [];

  static async open(generation, make) {
    const connection = new AttachedConnection();
    const [near, far] = (generation === 2 ? InMemoryTransport : Memory1).createLinkedPair();
    near.onmessage = (message) => connection.#out.push(message);
    connection.near = near;
    await near.start();
    if (generation === 2) serveStdio(make, { transport: far });
    else await make().connect(far);
    return connection;
  }

  async receive(data) {
    for (const line of data.toString().split('\n').slice(0, -1)) await this.near.send(JSON.parse(line));
    return this.settle();
  }

  async settle() {
    for (let round = 0; round < ROUNDS; round += 1) await turn();
    const out = this.#out.splice(0);
    this.#changes.push(...out.filter(isChange));
    return lines(out.filter((message) => !isChange(message)));
  }

  /** The changes that the client was told of. Nothing holds them back here. */
  async deliver() {
    return Buffer.concat([await this.settle(), lines(this.#changes.splice(0))]);
  }

  async close() {
    this.closed = true;
    await this.near.close();
  }
}

function isChange({ method = '' }) {
  return method === 'notifications/resources/updated' || method.endsWith('/list_changed');
}

function lines(messages) {
  return Buffer.from(messages.map((message) => `${write(message)}\n`).join(''));
}

/** A message without the name of the server: another server sends ours. */
function unnamed(value) {
  if (Array.isArray(value)) return value.map(unnamed);
  if (value === null || typeof value !== 'object') return value;
  const items = Object.entries(value).filter(([name]) => name !== NAME);
  const kept = items.map(([name, item]) => [name, unnamed(item)]);
  const isBare = ([name, item]) => name === '_meta' && Object.keys(item).length === 0;
  return Object.fromEntries(kept.filter((entry) => !isBare(entry)));
}

class AttachedHost extends Host {
  constructor(one, generation) {
    super(one);
    this.generation = generation;
    const Server = generation === 2 ? Second : First;
    this.server.attach(() => new Server({ name: 'theirs', version: '1' }), { adopt: false });
  }

  async opened() {
    const connection = await AttachedConnection.open(this.generation, this.server.factory);
    // As clients do: `serveStdio` answers a listen itself that is the first message.
    if (this.case.revision === MODERN) {
      const greeting = outgoing({ id: 'greeting', method: 'server/discover' }, MODERN, {});
      await connection.receive(`${write(greeting)}\n`);
    }
    return connection;
  }

  /** Waits longer for what must come: the machine may be busy. */
  async settled(on, out) {
    let sent = await super.settled(on, out);
    const isMissing = () => sent.length === 0 && this.step?.sends?.length > 0;
    for (let again = 0; again < PATIENCE && isMissing(); again += 1) {
      await sleep(10);
      sent = await super.settled(on);
    }
    return sent;
  }

  checkSent(step, out) {
    const sent = out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    const expected = step.sends_text?.map((line) => JSON.parse(line)) ?? step.sends ?? [];
    const wanted = this.terms.message(resolve(expected, this.bound));
    return compare(unnamed(wanted), unnamed(sent), this.bound, 'sends');
  }
}

/** Why a case cannot be run through another server, if so. */
function leftOut(one, generation) {
  const { reasons, files, cases: named } = LEFT_OUT;
  const steps = one.steps();
  if (steps.some((step) => 'tick' in step)) return reasons.clock;
  if (steps.some(({ deliver }) => typeof deliver === 'number')) return reasons.delivery;
  if (generation === 1 && (one.revision === MODERN || write(one.members).includes(MODERN))) return reasons.first;
  const { name } = one.members;
  const why = files[one.file] ?? named[one.file]?.[name];
  return why === undefined ? unobservable(one) : reasons[why];
}

for (const generation of [2, 1]) {
  const run = [...cases()].filter((one) => leftOut(one, generation) === undefined);

  test(`attach to SDK ${generation}: most cases are run`, () => assert.ok(run.length > 500, `${run.length} cases`));

  for (const one of run) {
    test(`attach to SDK ${generation}: ${one}`, async () => {
      const host = new AttachedHost(one, generation);
      try {
        await host.run();
      } finally {
        await host.end();
      }
    });
  }
}
