// Serves cases of `tests/fixtures/http` over real sockets, in one of three ways: serve-http.mjs run | nodeHandler | fetch.
// What is to be done is told on standard input, what happens is told on standard output: `tests/fixtures/README.md`.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { InvalidTokenError } from 'mcp-resources';
import { internals } from '../../bindings-node/dist/server.js';
import { Author, camel, edit, server } from './catalogs.mjs';

/** Tick 0 at 2025-01-01T00:00:00Z. */
const START = [0, 1_735_689_600_000];

/** In place of the timers of this process: their clock moves with `tick` alone. */
class Timers {
  #now = 0;
  #pending = new Set();

  constructor() {
    const { setTimeout, clearTimeout } = globalThis;
    globalThis.setTimeout = (callback, delay = 0, ...given) => {
      if (delay <= 0) return setTimeout(callback, 0, ...given);
      const timer = { at: this.#now + delay, call: () => callback(...given), ref: () => timer, unref: () => timer };
      this.#pending.add(timer);
      return timer;
    };
    globalThis.clearTimeout = (timer) => {
      if (!this.#pending.delete(timer)) clearTimeout(timer);
    };
  }

  advance(milliseconds) {
    this.#now += milliseconds;
    for (const timer of [...this.#pending].sort((one, other) => one.at - other.at)) {
      if (timer.at <= this.#now && this.#pending.delete(timer)) timer.call();
    }
  }
}

/** Each way serves on a free port: the port, and how to end it. */
const WAYS = {
  async run(made, options) {
    let listening;
    const url = new Promise((resolve) => {
      listening = resolve;
    });
    const ended = made.run({ http: { port: 0, onListening: listening, ...options } });
    return [Number(new URL(await Promise.race([url, ended])).port), () => made.close()];
  },
  nodeHandler: (made, options) => listen(made, made.nodeHandler(options)),
  fetch(made, options) {
    const handle = made.fetchHandler(options);
    return listen(made, (incoming, response) => carry(handle, incoming, response));
  },
};

async function listen(made, handle) {
  const web = createServer(handle).listen(0, '127.0.0.1');
  await once(web, 'listening');
  const end = () => {
    made.close();
    web.closeAllConnections();
    web.close();
  };
  return [web.address().port, end];
}

/** As a runtime does that has `Request` and `Response`. */
async function carry(handle, incoming, response) {
  const leaving = new AbortController();
  response.once('close', () => leaving.abort());
  const { method, rawHeaders } = incoming;
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at], rawHeaders[at + 1]);
  const body = ['GET', 'HEAD'].includes(method) ? {} : { body: Readable.toWeb(incoming), duplex: 'half' };
  const url = new URL(incoming.url, 'http://localhost');
  try {
    const answer = await handle(new Request(url, { method, headers, signal: leaving.signal, ...body }));
    const isBare = answer.body === null && method !== 'HEAD' && answer.status !== 204;
    const length = isBare ? [['content-length', '0']] : [];
    response.writeHead(answer.status, [...new Map([...length, ...answer.headers])].flat());
    response.flushHeaders();
    if (answer.body !== null) for await (const chunk of answer.body) response.write(chunk);
    response.end();
  } catch {
    response.destroy();
  }
}

/** The rules of a case, as the public API has them. */
function rules(given = {}, tokens = {}) {
  const { hosts, origins, polling, auth, sse24, cors_headers: corsHeaders, ...rest } = given;
  const verify = (token) => {
    if (!Object.hasOwn(tokens, token)) throw new InvalidTokenError('unknown');
    const { principal: subject, scopes = [], deny = [] } = tokens[token];
    return { subject, scopes, deny };
  };
  return {
    ...rest,
    ...(hosts && { hosts: hosts === 'any' ? '*' : hosts }),
    ...(origins && { origins: origins === 'any' ? '*' : origins }),
    ...(polling && { polling: [polling.after, polling.retry] }),
    ...(sse24 && { sse24: true }),
    ...(corsHeaders && { corsHeaders }),
    ...(auth && { auth: { ...camel(auth), verify } }),
  };
}

/** A case that is served, and its author. */
class Served {
  constructor({ catalog, rules: given, tokens }) {
    this.author = new Author(false);
    // What happens is told at once.
    this.author.events.push = (event) => tell({ event });
    this.server = server(catalog, this.author);
    this.now = START;
    this.asked = 0;
    internals(this.server).native.setTime(...START);
    this.options = rules(given, tokens);
  }

  async start(way) {
    [this.port, this.end] = await WAYS[way](this.server, this.options);
  }

  act(step) {
    const which = (number) =>
      number === undefined ? this.author.open.find((call) => !call.done) : this.author.open[number];
    if ('respond' in step) which(step.to).respond(step.respond);
    else if ('progress' in step) which(step.progress.to).context.progress(...progress(step.progress));
    else if ('log' in step) which(step.log.to).context.log(step.log.level, step.log.data, step.log.logger);
    else if ('ask' in step) this.#ask(which(step.ask.to).context, step.ask);
    else if ('updated' in step) this.server.notifyUpdated(step.updated);
    else if ('list_changed' in step) this.server.notifyListChanged(step.list_changed);
    else if ('edit' in step) edit(this.server, step.edit, this.author);
    else if ('tick' in step) {
      this.now = this.now.map((time) => time + step.tick);
      internals(this.server).native.setTime(...this.now);
      timers?.advance(step.tick);
    } else if ('shutdown' in step) internals(this.server).native.shutdown();
    else throw new Error(`no such step: ${JSON.stringify(step)}`);
  }

  /** Sends a request to the client, as the handler of a read does. */
  #ask(context, { method, params }) {
    this.asked += 1;
    const event = { replied: this.asked };
    const replied = () => this.author.events.push(event);
    context.ask(method, params).then(replied, replied);
  }
}

function progress({ progress: done, total, message }) {
  return [done, total, message];
}

function tell(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

const way = process.argv[2] ?? 'run';
// The native server sleeps by its own clock, which `setTime` moves.
const timers = way === 'run' ? undefined : new Timers();
let served;
for await (const line of createInterface(process.stdin)) {
  const told = JSON.parse(line);
  if ('serve' in told) {
    if (served !== undefined) {
      served.author.events.push = () => {};
      served.end();
    }
    served = new Served(told.serve);
    await served.start(way);
    tell({ port: served.port });
  } else {
    served.act(told);
    tell({ done: true });
  }
}
process.exit();
