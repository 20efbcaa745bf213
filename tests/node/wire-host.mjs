// One run of a wire fixture through the public API: its steps, and what they must lead to.
import assert from 'node:assert/strict';
import { InvalidTemplateError, InvalidUriError, McpError, TemplateConflictError } from 'mcp-resources';
import { Connection } from 'mcp-resources/testing';
import { internals } from '../../bindings-node/dist/server.js';
import { Author, edit, server } from './catalogs.mjs';
import { compare, mentions, outgoing, resolve, Terms, write } from './wire.mjs';

/** Tick 0 at 2025-01-01T00:00:00Z. */
const START = [0, 1_735_689_600_000];
/** Events that the Node API does not show. */
const QUIET = ['watched', 'unwatched', 'notified'];
const REFUSALS = [
  [InvalidUriError, 'invalid_uri'],
  [InvalidTemplateError, 'invalid_template'],
  [TemplateConflictError, 'template_conflict'],
];
const VERBS = [
  'receive',
  'stream',
  'request',
  'notify',
  'initialize',
  'respond',
  'progress',
  'log',
  'tick',
  'updated',
  'list_changed',
  'edit',
  'deliver',
  'connect',
  'close',
  'shutdown',
];

/** One run of one case. */
export class Host {
  /** All that was sent. */
  sent = [];
  connections = new Map();
  bound = new Map();

  constructor(one) {
    this.case = one;
    const catalog = one.catalog();
    this.terms = new Terms(one, catalog);
    this.author = new Author(mentions(one.members.steps, 'chunks'));
    this.server = server(catalog, this.author);
    this.now = START;
  }

  async run() {
    await this.connect('', this.case.members);
    for (const [number, step] of this.case.steps().entries()) {
      const differs = await this.take(step);
      assert.equal(differs, undefined, `step ${number}: ${differs}\n    ${write(step)}`);
    }
  }

  async end() {
    for (const connection of this.connections.values()) await connection.close();
  }

  /** Takes one step. What is not as expected, if anything. */
  async take(step) {
    this.author.events.length = 0;
    this.refused = undefined;
    const out = await this.act(step);
    this.sent.push(out);
    const events = (step.events ?? []).filter((event) => !QUIET.some((name) => name in event));
    return (
      compare(events, this.happened(events), this.bound, 'events') ??
      this.checkSent(step, out.toString()) ??
      this.checkRefused(step)
    );
  }

  async act(step) {
    this.step = step;
    this.on = step.on ?? '';
    let verb = VERBS.find((name) => name in step);
    let given = resolve(step[verb], this.bound);
    if (verb === 'request' || verb === 'notify') {
      given = outgoing(given, this.case.revision, step.capabilities ?? this.case.members.capabilities ?? {});
      verb = 'receive';
    }
    return (await this[`_${verb}`](given)) ?? Buffer.alloc(0);
  }

  /** The events; `meta` is compared only where it is given. */
  happened(expected) {
    return this.author.events.map((event, number) => {
      const [[kind, members]] = Object.entries(event);
      if (typeof members !== 'object') return event;
      const { meta, ...rest } = members;
      const wanted = expected[number]?.[kind];
      return { [kind]: wanted && Object.hasOwn(wanted, 'meta') ? members : rest };
    });
  }

  checkSent(step, out) {
    if ('sends_text' in step) {
      return step.sends_text.map((line) => `${line}\n`).join('') === out ? undefined : `sent ${out}`;
    }
    assert.ok(out === '' || out.endsWith('\n'), 'the last line has no end');
    const sent = out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    return compare(this.terms.message(resolve(step.sends ?? [], this.bound)), sent, this.bound, 'sends');
  }

  checkRefused(step) {
    if (this.refused !== 'registration') return compare(step.refused, this.refused, this.bound, 'refused');
    // One class stands for the refusals that have no facts of their own.
    const isOther = step.refused !== undefined && !REFUSALS.some(([, word]) => word === step.refused);
    return isOther ? undefined : `refused: ${step.refused}`;
  }

  async connect(name, step) {
    this.connections.set(name, await this.opened());
    if (this.case.legacy && step.handshake !== false) {
      this.on = name;
      await this._initialize();
      this.sent.push(await this._receive({ jsonrpc: '2.0', method: 'notifications/initialized' }));
    }
  }

  /** Another connection to the server. */
  opened() {
    return new Connection(this.server, { now: this.now });
  }

  /** Lets handlers go on until nothing more happens. */
  async settled(on, out = Buffer.alloc(0)) {
    const parts = [out];
    for (let round = 0; round < 4; round += 1) parts.push(await this.connections.get(on).settle());
    return Buffer.concat(parts);
  }

  _receive(given) {
    const { raw, base64 } = Object(given);
    if (raw !== undefined) return this.feed(Buffer.from(`${raw}\n`));
    if (base64 !== undefined) return this.feed(Buffer.concat([Buffer.from(base64, 'base64'), Buffer.from('\n')]));
    return this.feed(Buffer.from(`${write(given)}\n`));
  }

  _stream(given) {
    return this.feed(Buffer.from(given));
  }

  async feed(data) {
    this.author.on = this.on;
    return this.settled(this.on, await this.connections.get(this.on).receive(data));
  }

  /** The first half of the handshake: the answer names the revision. */
  async _initialize() {
    const params = {
      protocolVersion: this.case.revision,
      capabilities: this.case.members.capabilities ?? {},
      clientInfo: { name: 'client', version: '1' },
    };
    const out = await this._receive({ jsonrpc: '2.0', id: 'handshake', method: 'initialize', params });
    assert.equal(JSON.parse(out.toString()).result.protocolVersion, this.case.revision);
    this.sent.push(out);
  }

  async _respond(given) {
    const call = this.which(this.step.to);
    call.respond(given);
    return this.connections.get(call.on).closed ? Buffer.alloc(0) : this.settled(call.on);
  }

  _progress(given) {
    const call = this.which(given.to);
    call.context.progress(given.progress, given.total, given.message);
    return this.settled(call.on);
  }

  _log(given) {
    const call = this.which(given.to);
    call.context.log(given.level, given.data, given.logger);
    return this.settled(call.on);
  }

  which(number) {
    return number === undefined ? this.author.open.find((call) => !call.done) : this.author.open[number];
  }

  async _tick(given) {
    this.now = this.now.map((part) => part + given);
    const parts = [];
    for (const [name, connection] of [...this.connections].sort(([one], [other]) => (one < other ? -1 : 1))) {
      if (connection.closed) continue;
      this.author.on = name;
      parts.push(await this.settled(name, await connection.tick(given)));
    }
    return Buffer.concat(parts);
  }

  _updated(given) {
    this.server.notifyUpdated(given);
    return this.settled(this.on);
  }

  _list_changed(given) {
    this.server.notifyListChanged(given);
    return this.settled(this.on);
  }

  _edit(given) {
    try {
      edit(this.server, given, this.author);
    } catch (error) {
      // A value of the wrong type is refused before the engine sees it.
      assert.ok(error instanceof McpError || error instanceof TypeError, String(error));
      this.refused = REFUSALS.find(([kind]) => error instanceof kind)?.[1] ?? 'registration';
    }
    return this.settled(this.on);
  }

  _deliver(given) {
    return this.connections.get(this.on).deliver(given ?? undefined);
  }

  async _connect(given) {
    await this.connect(given, this.step);
  }

  async _close(given) {
    await this.connections.get(given).close();
  }

  async _shutdown() {
    internals(this.server).native.shutdown();
    return this.settled(this.on);
  }
}

/** Why a case cannot be run through the public API, if so. */
export function unobservable({ members }) {
  const peers = [members, ...members.steps].map(({ peer }) => peer ?? 'stdio');
  if (peers.some((peer) => peer !== 'stdio')) return 'the Node API has no connection without a pipe yet';
  if (members.steps.some((step) => 'as' in step)) return 'the process at the other end of a pipe is the local user';
  return undefined;
}
