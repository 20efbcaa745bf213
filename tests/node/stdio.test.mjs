// A real process over pipes: dispatch, back-pressure, the end, and what a handler may do to the descriptors.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { cancel, read, request, running, SCRIPT } from './process.mjs';
import { ROOT } from './vectors.mjs';

const SORTS = ['sync', 'async', 'later', 'turn'];
const count = (to) => Array.from({ length: to }, (_, at) => at + 1);
const text = (answer) => answer.result.contents[0].text;

for (const sort of SORTS) {
  test(`every sort of handler answers in bulk: ${sort}`, () =>
    running(async (server) => {
      server.write(...count(500).map((id) => read(id, `s://${sort}/${id}`)));
      const answers = await server.answers(500);
      for (const id of count(500)) assert.equal(text(answers.get(id)), String(id));
      assert.deepEqual(await server.end(), { status: 0, rest: [] });
      assert.match(server.errors, /came back/);
    }));
}

test('a program that reads its standard input itself is told so', () => {
  const program = (reads) => `
    const { ResourceServer } = require('mcp-resources');
    ${reads}
    new ResourceServer({ name: 'x' }).run().catch((error) => console.error(error.message));
    setTimeout(() => process.exit(3), 200).unref();`;
  const ends = (reads) =>
    spawnSync(process.execPath, ['-e', program(reads)], { cwd: ROOT, input: '', encoding: 'utf8' });
  for (const reads of ['process.stdin.on("data", () => {});', 'process.stdin.on("readable", () => {});']) {
    const { signal, stdout, stderr } = ends(reads);
    assert.deepEqual([signal, stdout], [null, ''], reads);
    assert.match(stderr, /^something else reads process\.stdin, .*; remove its listeners/);
  }
  assert.deepEqual(ends('process.stdin.on("end", () => {}).setEncoding("utf8");').stderr, '');
});

test('streams', () =>
  running(async (server) => {
    assert.equal(await server.text('s://chunks/x'), 'x'.repeat(16_000));
  }));

test('input in single bytes and without a last newline (R-145)', () =>
  running(async (server) => {
    for (const byte of read(1, 's://sync/a')) {
      server.write(byte);
      await null;
    }
    assert.equal((await server.messages(1))[0].id, 1);
    server.write(read(2, 's://sync/b').trimEnd());
    const { status, rest } = await server.end();
    assert.equal(status, 0);
    assert.deepEqual(rest.map(text), ['b']);
  }));

test('a slow handler blocks nobody (R-149)', () =>
  running(async (server) => {
    await server.text('s://sync/warm');
    const began = performance.now();
    server.write(read(1, 's://sleep/600'), read(2, 's://deaf/600'), read(3, 's://sync/a'), read(4, 's://async/a'));
    assert.deepEqual((await server.messages(2)).map(({ id }) => id).sort(), [3, 4]);
    assert.ok(performance.now() - began < 500);
    assert.deepEqual((await server.messages(2)).map(({ id }) => id).sort(), [1, 2]);
  }));

test('cancelling (R-127)', () =>
  running(async (server) => {
    server.write(read(1, 's://sleep/60000'), read(2, 's://deaf/200'));
    assert.equal(await server.text('s://sync/a'), 'a');
    server.write(cancel(1), cancel(2), read(3, 's://sleep/60000'), cancel(3));
    assert.equal(await server.text('s://sync/b'), 'b');
    await sleep(300);
    assert.equal(server.errors.match(/sleep ended/g)?.length, 2);
    assert.deepEqual(await server.end(), { status: 0, rest: [] });
  }));

test('what is in flight at the end of input may finish (R-150)', () =>
  running(async (server) => {
    server.write(read(1, 's://sleep/200'), read(2, 's://deaf/200'));
    const { status, rest } = await server.end();
    assert.equal(status, 0);
    assert.deepEqual(rest.map(({ id }) => id).sort(), [1, 2]);
  }));

test('what takes longer is cancelled', () =>
  running(async (server) => {
    server.write(read(1, 's://sleep/60000'), read(2, 's://sleep/60000'));
    await server.text('s://sync/a');
    const began = performance.now();
    assert.deepEqual(await server.end(), { status: 0, rest: [] });
    assert.ok(performance.now() - began < 5_000);
    assert.match(server.errors, /sleep ended/);
  }));

test('a handler that does not hear of the end does not keep the process (R-150)', () =>
  running(async (server) => {
    server.write(read(1, 's://deaf/60000'));
    await server.text('s://sync/a');
    const began = performance.now();
    assert.deepEqual(await server.end(), { status: 0, rest: [] });
    assert.ok(performance.now() - began < 5_000);
    assert.match(server.errors, /came back/);
  }));

test('a signal ends listens with their results (R-096, R-097)', () =>
  running(async (server) => {
    const filter = { notifications: { resourceSubscriptions: ['s://watched'] } };
    server.write(request(1, 'subscriptions/listen', filter));
    assert.match((await server.messages(1))[0].method, /acknowledged$/);
    server.process.kill('SIGTERM');
    const [result, cancelled] = await server.messages(2);
    assert.deepEqual([result.id, result.result.resultType], [1, 'complete']);
    assert.equal(cancelled.params.requestId, 1);
    assert.equal(await server.exit, 0);
  }));

test('the end of input ends listens with their results (R-096, R-097)', () =>
  running(async (server) => {
    const filter = { notifications: { resourceSubscriptions: ['s://watched'] } };
    server.write(request(1, 'subscriptions/listen', filter));
    assert.match((await server.messages(1))[0].method, /acknowledged$/);
    const { status, rest } = await server.end();
    const [result, cancelled] = rest;
    assert.deepEqual([status, result.id, result.result.resultType], [0, 1, 'complete']);
    assert.equal(cancelled.params.requestId, 1);
  }));

for (const signal of ['SIGTERM', 'SIGINT']) {
  test(`a signal while idle: ${signal}`, () =>
    running(async (server) => {
      await server.text('s://sync/a');
      server.process.kill(signal);
      assert.equal(await server.exit, 0);
      assert.doesNotMatch(server.errors, /Error/);
    }));
}

test('stray output and processes cannot break in (R-146)', () =>
  running(async (server) => {
    for (const round of count(3)) {
      assert.equal(await server.text('s://print'), 'quiet', `${round}`);
      assert.equal(await server.text('s://sync/a'), 'a');
    }
    const { status, rest } = await server.end();
    assert.deepEqual([status, rest], [0, []]);
    for (const line of ['a stray print', 'written', 'to the descriptor', 'from a process 0', 'Grüße']) {
      assert.ok(server.errors.includes(line), `${line} in ${server.errors}`);
    }
  }));

test('a client that does not read blocks nothing', () =>
  running(async (server) => {
    server.pause(true);
    server.write(...count(64).map((id) => read(id, `s://big/${id}`)));
    await sleep(500);
    server.pause(false);
    for (const answer of (await server.answers(64)).values()) assert.equal(text(answer).length, 1_048_575);
    assert.deepEqual(await server.end(), { status: 0, rest: [] });
  }));

test('a client that is gone ends the server', () =>
  running(async (server) => {
    await server.text('s://sync/a');
    server.process.stdout.destroy();
    server.write(read(1, 's://sync/a'));
    assert.equal(await server.exit, 0);
    assert.doesNotMatch(server.errors, /Error/);
  }));

test('a handler that holds the loop is named', () =>
  running(async (server) => {
    server.write(read(1, 's://later/x'));
    assert.equal((await server.messages(1))[0].id, 1);
    server.write(read(2, 's://sleep/700'), read(3, 's://hold/400'));
    await server.messages(2);
    await sleep(200);
    assert.match(server.errors, /hold.* blocked the event loop/);
  }));

test('a line that is too long is refused and skipped (R-153)', () =>
  running(async (server) => {
    server.write('x'.repeat(5 << 20), '\n', read(1, 's://sync/a'));
    const ids = (await server.messages(2)).map(({ id }) => id ?? null);
    assert.deepEqual(ids, [null, 1]);
  }));

test('lines that wait for room are served without another (R-149, R-153)', () =>
  running(async (server) => {
    server.write(...count(5).map((id) => read(id, `s://sync/${id}`)));
    assert.deepEqual((await server.messages(5)).map(({ id }) => id).sort(), [1, 2, 3, 4, 5]);
  }, '--narrow'));

test('process.exit in a handler ends the server with its status', () =>
  running(async (server) => {
    server.write(read(1, 's://exit'));
    assert.equal(await server.exit, 7);
  }));

test('input and output may be files', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'mcp-resources-'));
  try {
    const [source, sink] = [path.join(folder, 'in'), path.join(folder, 'out')];
    writeFileSync(source, SORTS.map((sort, id) => read(id, `s://${sort}/x`)).join(''));
    writeFileSync(sink, 'kept\n');
    const stdio = [openSync(source, 'r'), openSync(sink, 'a'), 'pipe'];
    const ended = spawnSync(process.execPath, [SCRIPT], { stdio, timeout: 60_000 });
    assert.equal(ended.status, 0, String(ended.stderr));
    const lines = readFileSync(sink, 'utf8').trimEnd().split('\n');
    assert.deepEqual([lines[0], lines.length], ['kept', 1 + SORTS.length]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const WITH_AUTH = `
  import { ResourceServer } from 'mcp-resources';
  const server = new ResourceServer({ name: 'x' });
  server.addResource({ uri: 'a://open' }, { text: 'open' });
  server.addResource({ uri: 'a://scoped', scopes: ['read'] }, { text: 'scoped' });
  const verify = () => ({ subject: 'ada', scopes: ['read'] });
  const servers = ['https://login.example.com'];
  server.nodeHandler({
    auth: { resource: 'https://api.example.com/mcp', authorizationServers: servers, requiredScopes: ['read'], verify },
  });
  await server.run();
`;

// An endpoint that asks for tokens has no effect on standard input and output of the same server.
test('a pipe asks for no token and gives no scopes (R-195)', () => {
  const input = ['open', 'scoped', 'absent'].map((name) => read(1, `a://${name}`)).join('');
  const command = ['--input-type=module', '--eval', WITH_AUTH];
  const ended = spawnSync(process.execPath, command, { cwd: ROOT, input, encoding: 'utf8', timeout: 60_000 });
  assert.equal(ended.status, 0, ended.stderr);
  const [open, scoped, absent] = ended.stdout.trimEnd().split('\n');
  assert.equal(text(JSON.parse(open)), 'open');
  assert.ok(JSON.parse(scoped).error);
  assert.equal(scoped.replaceAll('scoped', 'absent'), absent);
});

test('no input at all', () => {
  const ended = spawnSync(process.execPath, [SCRIPT], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 });
  assert.deepEqual([ended.status, String(ended.stdout)], [0, '']);
});

test('a socket as other runtimes give it (R-154)', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'mcp-resources-'));
  const listener = createServer({ allowHalfOpen: true }).listen(path.join(folder, 'socket'));
  try {
    const accepted = new Promise((resolve) => listener.once('connection', resolve));
    // A shell gives its child the socket as both descriptors, as other runtimes do.
    const connect = `const s = require('node:net').connect(process.argv[1], () => require('node:child_process')
      .spawn(process.execPath, [process.argv[2]], { stdio: [s, s, 'inherit'] }).on('exit', (c) => process.exit(c)));`;
    const parent = spawn(process.execPath, ['-e', connect, path.join(folder, 'socket'), SCRIPT]);
    const status = new Promise((resolve) => parent.once('exit', resolve));
    const socket = await accepted;
    let received = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      received += chunk;
    });
    socket.end(read(1, 's://big/x') + read(2, 's://async/a'));
    assert.equal(await status, 0);
    await sleep(50);
    assert.equal(received.trimEnd().split('\n').length, 2);
  } finally {
    listener.close();
    rmSync(folder, { recursive: true });
  }
});
