// `stdio_server.mjs` as a process, spoken to over pipes or whatever else stands in for them.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export const SCRIPT = fileURLToPath(new URL('stdio_server.mjs', import.meta.url));
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};
const PATIENCE = 60_000;

/** A line: a modern request. */
export function request(id, method, params, meta = {}) {
  return `${JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...META, ...meta } } })}\n`;
}

/** A line: a read. */
export function read(id, uri, meta) {
  return request(id, 'resources/read', { uri }, meta);
}

/** A line that takes a request back. */
export function cancel(id) {
  return `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })}\n`;
}

/** A running server; what it writes to standard error is collected. */
export class Process {
  #messages = [];
  #waiting = [];
  #rest = '';
  #ended = false;
  errors = '';

  constructor(...options) {
    this.process = spawn(process.execPath, [SCRIPT, ...options], { stdio: 'pipe' });
    this.process.stdin.on('error', () => {}); // the server is gone: its exit is looked at
    this.process.stdout.setEncoding('utf8').on('data', (chunk) => this.#take(chunk));
    this.process.stdout.on('end', () => this.#end());
    this.process.stderr.setEncoding('utf8').on('data', (chunk) => {
      this.errors += chunk;
    });
    this.exit = once(this.process, 'close').then(([code, signal]) => code ?? signal);
  }

  write(...lines) {
    return this.process.stdin.write(lines.join(''));
  }

  /** The next messages. */
  async messages(count) {
    const found = [];
    while (found.length < count) found.push(await this.#next());
    return found;
  }

  /** The next answers, by id. */
  async answers(count) {
    return new Map((await this.messages(count)).map((message) => [message.id, message]));
  }

  /** Reads one text. */
  async text(uri) {
    this.write(read(0, uri));
    const [answer] = await this.messages(1);
    assert.ok(answer.result, JSON.stringify(answer.error));
    return answer.result.contents[0].text;
  }

  async value(uri) {
    return JSON.parse(await this.text(uri));
  }

  /** Closes the input: the exit status, and what was left of the output. */
  async end() {
    this.process.stdin.end();
    const status = await this.exit;
    return { status, rest: this.#messages.splice(0) };
  }

  /** Stops reading the output, or goes on. */
  pause(paused) {
    if (paused) this.process.stdout.pause();
    else this.process.stdout.resume();
  }

  kill() {
    this.process.kill('SIGKILL');
    return this.exit;
  }

  #take(chunk) {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#give(JSON.parse(line)); // what is no message ends the test here
  }

  #give(message) {
    const waiting = this.#waiting.shift();
    if (waiting === undefined) this.#messages.push(message);
    else waiting.resolve(message);
  }

  #end() {
    this.#ended = true;
    for (const { reject } of this.#waiting.splice(0)) reject(new Error(`the output ended; ${this.errors}`));
  }

  async #next() {
    const [message] = this.#messages.splice(0, 1);
    if (message !== undefined) return message;
    if (this.#ended) throw new Error(`the output ended; ${this.errors}`);
    let timer;
    try {
      return await new Promise((resolve, reject) => {
        timer = setTimeout(() => reject(new Error(`nothing came; ${this.errors}`)), PATIENCE);
        this.#waiting.push({ resolve, reject });
      });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A server for the time of `body`. */
export async function running(body, ...options) {
  const server = new Process(...options);
  try {
    return await body(server);
  } finally {
    await server.kill();
  }
}
