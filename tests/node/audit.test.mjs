// What is recorded of requests, and what is counted of them (S-18, S-19, R-208, R-215).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { AccessDeniedError, RegistrationError, ResourceNotFoundError } from 'mcp-resources';
import { heard, server, talk } from './helpers.mjs';

const FIXTURES = new URL('../fixtures/audit/', import.meta.url);
const CASES = JSON.parse(readFileSync(new URL('cases.json', FIXTURES), 'utf8'));
const SCHEMA = JSON.parse(readFileSync(new URL('line.schema.json', FIXTURES), 'utf8'));
const VOLATILE = ['time', 'timestamp', 'address', 'connection', 'bytes', 'duration', 'principal'];
const SECRET = 'secret contents';

/** The server of the cases: see `tests/fixtures/README.md`. */
function audited(audit, options = {}) {
  const made = server({ audit, ...options });
  made.addResource({ uri: 'audit://text' }, { text: SECRET });
  made.resource('audit://item/{id}', { complete: { id: () => ['7'] } }, async ({ id }) => {
    if (id === 'missing') throw new ResourceNotFoundError();
    if (id === 'secret') throw new AccessDeniedError();
    if (id === 'broken') throw new Error('secret reason');
    return SECRET;
  });
  return made;
}

function ask(made, { request, params, meta = {}, revision }) {
  const asked = (client) => client.request(request, params, { meta }).catch(() => {});
  return heard(() => talk(made, asked, revision === undefined ? {} : { revision }));
}

function linesOf(text) {
  const lines = text.split('\n');
  assert.equal(lines.pop(), '', 'the last line has its end');
  return lines.map((line) => JSON.parse(line));
}

function stable(entries) {
  const members = SCHEMA.oneOf[0].properties;
  return entries
    .filter((entry) => !['initialize', 'server/discover'].includes(entry.method))
    .map((entry) => {
      assert.deepEqual(
        Object.keys(entry).filter((name) => !(name in members)),
        [],
      );
      assert.deepEqual(
        SCHEMA.oneOf[0].required.filter((name) => !(name in entry)),
        [],
      );
      assert.ok(members.outcome.enum.includes(entry.outcome), entry.outcome);
      return Object.fromEntries(Object.entries(entry).filter(([name]) => !VOLATILE.includes(name)));
    });
}

function scratch(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'mcp-resources-audit-'));
  t.after(() => rmSync(folder, { recursive: true }));
  return path.join(folder, 'audit.jsonl');
}

for (const given of CASES) {
  test(`the same entry in a file and for a function: ${given.name} (S-19, R-215)`, async (t) => {
    const [file, seen] = [scratch(t), []];
    for (const audit of [file, (entry) => seen.push(entry)]) {
      const made = audited(audit);
      await ask(made, given);
      made.flushAudit();
    }
    const text = readFileSync(file, 'utf8');
    assert.ok(!text.includes('secret contents') && !text.includes('secret reason'));
    for (const entries of [linesOf(text), seen]) assert.deepEqual(stable(entries), [given.entry]);
  });
}

test('a file is appended to, and for its owner alone (S-19)', async (t) => {
  const file = scratch(t);
  for (const _ of [1, 2]) {
    const made = audited(file);
    await ask(made, CASES[0]);
    made.flushAudit();
  }
  assert.equal(stable(linesOf(readFileSync(file, 'utf8'))).length, 2);
  assert.equal(statSync(file).mode & 0o777, 0o600);
});

test('a file that cannot be opened is told at once', () => {
  assert.throws(() => server({ audit: '/no/such/folder/audit.jsonl' }), TypeError);
});

test('a function that fails holds nobody up; it hears of the rest by itself (S-19)', async () => {
  const seen = [];
  const made = audited((entry) => {
    seen.push(entry);
    if (seen.length === 1) throw new Error('the disk is full');
  });
  const { text } = await heard(async () => {
    await talk(made, (client) => client.read('audit://text'));
    while (seen.length < 2) await turn();
  });
  assert.match(text, /the audit function failed, so a record may be lost/);
  assert.ok(seen.some((entry) => entry.uri === 'audit://text'));
});

test('what a busy loop misses is counted, and told in its place (S-19)', async () => {
  const seen = [];
  const made = audited((entry) => seen.push(entry), { limits: { auditQueue: 2 }, metrics: true });
  await talk(made, async (client) => {
    await Promise.all(Array.from({ length: 20 }, () => client.read('audit://text')));
  });
  made.flushAudit();
  const dropped = seen.reduce((sum, entry) => sum + (entry.dropped ?? 0), 0);
  assert.ok(dropped > 0);
  assert.match(made.metricsText(), new RegExp(`^mcp_resources_audit_dropped_total ${dropped}$`, 'm'));
});

test('a process whose loop has nothing else to do ends, and nothing is lost', (t) => {
  const file = scratch(t);
  const program = `
    import { ResourceServer } from 'mcp-resources';
    import { Client } from 'mcp-resources/testing';
    for (const audit of [${JSON.stringify(file)}, (entry) => console.log(entry.method)]) {
      const server = new ResourceServer({ name: 'test' }, { audit });
      server.addResource({ uri: 'a://b' }, { text: 'c' });
      const client = await Client.connect(server);
      for (let count = 0; count < 100; count += 1) await client.read('a://b');
      client.close();
      server.flushAudit();
    }
  `;
  const root = new URL('../..', import.meta.url);
  const told = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: root,
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.equal(told.match(/resources\/read/g)?.length, 100);
  assert.equal(readFileSync(file, 'utf8').match(/resources\/read/g)?.length, 100);
});

test('the trace of a request: what is well-formed, and nothing else (R-022)', async () => {
  const [made, seen] = [server(), []];
  made.resource('a://b', (_, ctx) => {
    seen.push({ ...ctx.trace });
    return '';
  });
  const good = {
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    tracestate: 'rojo=00f067aa0ba902b7',
    baggage: 'userId=alice',
  };
  await talk(made, async (client) => {
    for (const meta of [good, { ...good, traceparent: '00-0-0-01' }, {}]) {
      await client.request('read', { uri: 'a://b' }, { meta });
    }
  });
  assert.deepEqual(seen, [good, { baggage: 'userId=alice' }, {}]);
});

test('metrics: counters by method, era and kind; no label is a text of a client (S-19)', async () => {
  const made = audited(() => {}, { metrics: true });
  for (const given of CASES) await ask(made, given);
  const text = made.metricsText();
  assert.match(text, /^mcp_resources_errors_total\{kind="hidden"\} 1$/m);
  assert.match(text, /^mcp_resources_errors_total\{kind="rate_limited"\} 0$/m);
  assert.match(text, /^mcp_resources_requests_total\{method="resources\/read",era="legacy"\} 1$/m);
  assert.ok(!text.includes('audit://'));
  assert.equal(server().metricsText(), undefined);
});

test('metrics over HTTP are off by default, and checked as the endpoint is (R-156, R-157)', async () => {
  const status = async (options, at, headers = {}) => {
    const made = server();
    const web = createServer(made.nodeHandler(options)).listen(0, '127.0.0.1');
    await once(web, 'listening');
    try {
      const response = await fetch(`http://127.0.0.1:${web.address().port}${at}`, { headers });
      return [response.status, response.headers.get('content-type'), await response.text()];
    } finally {
      made.close();
      web.closeAllConnections();
      web.close();
    }
  };
  assert.equal((await status({}, '/metrics'))[0], 404);
  const [code, type, text] = await status({ metrics: true }, '/metrics');
  assert.deepEqual([code, type], [200, 'text/plain; version=0.0.4; charset=utf-8']);
  assert.match(text, /^# TYPE mcp_resources_requests_total counter$/m);
  assert.equal((await status({ metrics: '/own' }, '/own'))[0], 200);
  assert.equal((await status({ metrics: true }, '/metrics', { origin: 'https://evil.example' }))[0], 403);
  const auth = {
    resource: 'http://localhost/mcp',
    authorizationServers: ['https://login.example'],
    verify: async () => ({ subject: 'a', scopes: [] }),
  };
  assert.equal((await status({ metrics: true, auth }, '/metrics'))[0], 401);
  assert.equal((await status({ metrics: true, auth }, '/metrics', { authorization: 'Bearer x' }))[0], 200);
  assert.throws(() => server().nodeHandler({ metrics: '/mcp' }), RegistrationError);
});
