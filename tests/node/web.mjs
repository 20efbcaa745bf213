// HTTP for tests: requests of both eras to a URL, and what a stream of events brings.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { MODERN } from './vectors.mjs';

export const META = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
};
const LEGACY = '2025-11-25';

/** A message: a request. */
export function request(id, method, params) {
  return { jsonrpc: '2.0', id, method, params };
}

/** The parts of a modern request, as `fetch` takes them. */
export function modern(id, method, params, { token, meta, ...rest } = {}) {
  return {
    method: 'POST',
    headers: {
      ...headers(token),
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...(params.uri && { 'mcp-name': params.uri }),
    },
    body: JSON.stringify(request(id, method, { ...params, _meta: { ...META, ...meta } })),
    ...rest,
  };
}

/** One who asks: `ask` is `fetch`, or stands in for it. */
export class Caller {
  constructor(url, ask = fetch) {
    this.url = url;
    this.ask = ask;
  }

  /** A modern request: its response. */
  send(method, params, options) {
    return this.ask(this.url, modern(1, method, params, options));
  }

  /** The text of a resource, read in the modern way. */
  async text(uri, options) {
    const { result, error } = await answer(await this.send('resources/read', { uri }, options));
    assert.ok(result, JSON.stringify(error));
    return result.contents[0].text;
  }

  /** A legacy session. */
  async session(capabilities = {}) {
    const hello = { protocolVersion: LEGACY, capabilities, clientInfo: { name: 'test', version: '1' } };
    const body = JSON.stringify(request(0, 'initialize', hello));
    const response = await this.ask(this.url, { method: 'POST', headers: headers(), body });
    assert.equal((await answer(response)).result.protocolVersion, LEGACY);
    const session = new Session(this, response.headers.get('mcp-session-id'));
    const accepted = await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    assert.equal(accepted.status, 202);
    return session;
  }
}

/** A legacy session. */
class Session {
  #caller;

  constructor(caller, id) {
    this.#caller = caller;
    this.headers = { ...headers(), 'mcp-session-id': id, 'mcp-protocol-version': LEGACY };
  }

  post(message, options) {
    const body = JSON.stringify(message);
    return this.#caller.ask(this.#caller.url, { method: 'POST', headers: this.headers, body, ...options });
  }

  /** The session's stream of notifications. */
  listen(options) {
    return this.#caller.ask(this.#caller.url, { method: 'GET', headers: this.headers, ...options });
  }
}

/** The answer of a response: its JSON, or the last message of its stream. */
export async function answer(response) {
  const text = await response.text();
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return text && JSON.parse(text);
  return datas(text).at(-1);
}

/** The messages of a stream, as they come. */
export async function* messages(response) {
  let rest = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + chunk).split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) yield* datas(event);
  }
}

/** The next message of a stream. */
export async function next(stream) {
  const { value, done } = await stream.next();
  assert.ok(!done, 'the stream has ended');
  return value;
}

function datas(text) {
  const lines = text.split('\n').filter((line) => line.startsWith('data: '));
  return lines.map((line) => line.slice('data: '.length)).flatMap((data) => (data ? [JSON.parse(data)] : []));
}

function headers(token) {
  const own = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  return token === undefined ? own : { ...own, authorization: `Bearer ${token}` };
}

/** The ways to serve a server over HTTP. Each gives `body` a caller, and ends the server after it. */
export const WAYS = {
  run: async (made, options, body) => {
    const { promise, resolve } = Promise.withResolvers?.() ?? resolvers();
    const ended = made.run({ http: { port: 0, onListening: resolve, ...options } });
    const url = await Promise.race([promise, ended]);
    try {
      return await body(new Caller(url));
    } finally {
      made.close();
      await ended;
    }
  },
  nodeHandler: async (made, options, body) => {
    const web = createServer(made.nodeHandler(options)).listen(0, '127.0.0.1');
    await once(web, 'listening');
    try {
      return await body(new Caller(`http://127.0.0.1:${web.address().port}/mcp`));
    } finally {
      made.close();
      web.closeAllConnections();
      web.close();
    }
  },
  fetch: async (made, options, body) => {
    const handle = made.fetchHandler(options);
    try {
      return await body(new Caller('http://localhost/mcp', (url, init) => handle(new Request(url, init))));
    } finally {
      made.close();
    }
  },
};

/** A promise, and what resolves it. */
export function resolvers() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
