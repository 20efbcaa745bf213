// Databases, asked by the official TypeScript client in both eras (S-20).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const SERVER = fileURLToPath(new URL('./db-server.mjs', import.meta.url));
const PLANTED = 'hunter2-canary';
const PYTHON = fileURLToPath(new URL('../../.venv/bin/python', import.meta.url));
const SCHEMA = `
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, password TEXT);
INSERT INTO customers VALUES (1, 'Ada', 'London', '${PLANTED}'), (2, 'Bo', 'Oslo', ''), (9007199254740993, 'Cy', 'Oslo', '');
CREATE TABLE orderLines (order_id INTEGER, line INTEGER, item TEXT, PRIMARY KEY (order_id, line));
INSERT INTO orderLines VALUES (2, 3, 'tea')`;

/** Commits in a process of its own: older versions of Node have no SQLite. */
const commit = (file, sql) =>
  execFileSync(PYTHON, [
    '-c',
    'import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])',
    file,
    sql,
  ]);

/** A database of the test's own. */
function database(t) {
  const folder = mkdtempSync(join(tmpdir(), 'mcp-db-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'shop.db');
  commit(file, SCHEMA);
  return file;
}

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-20: the official client, ${era}, lists, reads, completes and watches a database`, async (t) => {
    const file = database(t);
    const transport = new StdioClientTransport({ command: process.execPath, args: [SERVER, file] });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const heard = new EventEmitter();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.emit('updated', params.uri));
    await client.connect(transport);
    t.after(() => client.close());
    const text = async (uri) => (await client.readResource({ uri })).contents[0].text;
    const json = async (uri) => JSON.parse(await text(uri));

    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      ['db:///', 'db:///shop_1/schema', 'db:///shop_1/customers', 'db:///shop_1/orderLines'],
    );
    const texts = await Promise.all(resources.map(({ uri }) => text(uri)));
    assert.ok(!JSON.stringify([resources, texts]).includes(PLANTED));
    assert.deepEqual(await json('db:///shop_1/customers/1'), { id: 1, name: 'Ada', city: 'London' });
    assert.match(await text('db:///shop_1/customers/9007199254740993'), /"id":9007199254740993,/);
    assert.equal((await json('db:///shop_1/orderLines/2,3')).item, 'tea');
    const { rows, next } = await json('db:///shop_1/customers');
    assert.equal(rows.length, 2);
    assert.equal((await json(next)).rows[0].name, 'Cy');
    assert.match(await text('db:///shop_1/query/byCity?city=Oslo'), /^\{"rows":\[\{"id":2\},/);
    for (const path of ['customers/3', 'customers/01', 'none', 'sqlite_schema']) {
      await assert.rejects(text(`db:///shop_1/${path}`), { code: -32602 });
    }
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'db:///{name}/{table}/{key}' },
      argument: { name: 'key', value: '' },
      context: { arguments: { name: 'shop_1', table: 'customers' } },
    });
    assert.deepEqual(completion.values, ['1', '2', '9007199254740993']);

    const watched = ['db:///shop_1/customers/1', 'db:///shop_1/customers/2'];
    if (era === 'modern') await client.listen({ resourceSubscriptions: watched });
    else for (const uri of watched) await client.subscribeResource({ uri });
    await Promise.all(watched.map(text));
    const updated = once(heard, 'updated');
    commit(file, "UPDATE customers SET name = 'Bea' WHERE id = 2");
    assert.deepEqual(await updated, [watched[1]]);
    assert.equal((await json(watched[1])).name, 'Bea');
  });
}

const POSTGRES = `postgres://me:${PLANTED}@127.0.0.1:1/x`;

test('S-20: wrong options of a database are named with what would be right, and without a password', (t) => {
  const url = `sqlite:${database(t)}`;
  for (const [call, message] of [
    [() => providers.db(), /db\(\) takes databases by their names/],
    [() => providers.db({ shop: { url, tabels: ['customers'] } }), /tabels/],
    [() => providers.db({ shop: { url, tables: 5 } }), /tables is 5, expected a name or a list of names/],
    [() => providers.db({ shop: { url, tables: ['customer'] } }), /did you mean "customers"/],
    [() => providers.db({ shop: { url, tables: 'customers', rows: 1001 } }), /rows is 1001, expected a whole number/],
    [() => providers.db({ shop: { url: { env: 'NEVER_SET' } } }), /"NEVER_SET" of the environment is not set/],
    [() => providers.db({ shop: { url, password: [PLANTED] } }), /url and password are each a text/],
    [() => providers.db({ shop: { url: `mysql://${PLANTED}` } }), /neither sqlite:PATH nor postgres/],
    [() => providers.db({ shop: { url, sslmode: 'tls' } }), /sslmode is "tls", expected disable, allow, prefer/],
    [() => providers.db({ shop: { url: `${POSTGRES}?sslmode=${PLANTED}` } }), /write sslmode=disable, allow, prefer/],
    [() => providers.db({ shop: { url: POSTGRES, sslmode: 'verify-ca' } }), /name the file with sslrootcert/],
  ]) {
    assert.throws(call, (error) => {
      assert.match(error.message, message);
      return error instanceof TypeError && !error.message.includes(PLANTED);
    });
  }
});
