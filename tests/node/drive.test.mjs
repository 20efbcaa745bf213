// Google Drive as a source of documents, on loopback, asked by the official TypeScript client in both eras (S-03).
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { providers } from 'mcp-resources';
import { MODERN } from './vectors.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SERVER = fileURLToPath(new URL('./rag-server.mjs', import.meta.url));
const CREDENTIALS = JSON.stringify({ client_id: 'canary', client_secret: 'canary', refresh_token: 'canary' });
const DOCUMENT = 'application/vnd.google-apps.document';

/** A Drive of the test's own: the program `serve-drive` of tests/rust. */
async function drive(t) {
  const program = execFileSync(join(ROOT, 'tests', 'rust', 'program'), ['serve-drive'], { encoding: 'utf8' });
  const child = spawn(join(ROOT, program.trim()), { stdio: ['pipe', 'pipe', 'inherit'] });
  t.after(() => child.stdin.end());
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => (await lines.next()).value;
  const url = await next();
  const command = async (members) => {
    child.stdin.write(`${JSON.stringify(members)}\n`);
    return JSON.parse(await next());
  };
  const put = (id, text, more = {}) => command({ put: { id, name: id, mimeType: DOCUMENT, text, ...more } });
  await put('doc1', '# Plan\n\nOpen the shop in Kawagoe.\n');
  await put('team2', 'The team is in Nara.', { drive: 'TEAM' });
  return { url, command, put };
}

/** A folder with credentials. */
function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'mcp-drive-'));
  t.after(() => rmSync(path, { recursive: true }));
  writeFileSync(join(path, 'credentials.json'), CREDENTIALS);
  return path;
}

for (const [era, mode] of [
  ['modern', { pin: MODERN }],
  ['legacy', 'legacy'],
]) {
  test(`S-03, R-083: the official client, ${era}, lists, reads, finds and watches files of Drive`, async (t) => {
    const own = await drive(t);
    const path = folder(t);
    const config = join(path, 'team.yaml');
    writeFileSync(config, `credentials: credentials.json\ndrive: TEAM\nbase_url: ${own.url}\n`);
    const mine = { credentials: { env: 'DRIVE_CREDENTIALS' }, baseUrl: own.url };
    const collections = JSON.stringify({ mine: { drive: mine }, team: { drive: config } });
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [SERVER, collections, '50ms'],
      env: { ...process.env, DRIVE_CREDENTIALS: CREDENTIALS },
    });
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const heard = new EventEmitter();
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => heard.emit('updated', params.uri));
    await client.connect(transport);
    t.after(() => client.close());
    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri).filter((uri) => uri.includes('/doc/')),
      ['rag:///mine/doc/doc1', 'rag:///team/doc/team2'],
    );
    const found = async (uri) => {
      const { contents } = await client.readResource({ uri });
      return contents.filter(({ _meta }) => 'score' in _meta).map(({ uri, _meta }) => [uri, _meta.source]);
    };
    assert.deepEqual(await found('rag:///team/search/nara'), [['rag:///team/doc/team2', 'gdrive:///team2']]);
    assert.deepEqual(await found('rag:///mine/search/nara'), []);
    const uri = 'gdrive:///doc1';
    assert.equal((await client.readResource({ uri })).contents[0].text, '# Plan\n\nOpen the shop in Kawagoe.\n');

    if (era === 'modern') await client.listen({ resourceSubscriptions: [uri] });
    else await client.subscribeResource({ uri });
    const updated = once(heard, 'updated');
    await own.put('doc1', '# Plan\n\nOpen the shop in Nara.\n');
    assert.deepEqual(await updated, [uri]);
    assert.deepEqual(await found('rag:///mine/search/nara'), [['rag:///mine/doc/doc1', uri]]);
    await own.command({ remove: 'doc1' });
    while ((await found('rag:///mine/search/nara')).length > 0);
    // The client words the older code as the newer one.
    await assert.rejects(client.readResource({ uri }), { code: -32602 });
    assert.ok(!(await own.command({})).join().includes('canary'));
  });
}

test('S-03: wrong options of a drive are named with what would be right, without a secret', (t) => {
  const credentials = join(folder(t), 'credentials.json');
  for (const [drive, message] of [
    [{}, /drive needs credentials/],
    [{ credentials: 'none.json' }, /none.json does not exist/],
    [{ credentials: { refreshToken: 'canary' } }, /neither a file nor/],
    [{ credentials, folders: 'x' }, /did you mean "folder"/],
    [{ credentials, drive: 'a/b' }, /"a\/b" is no id of Drive's/],
    ['none.yaml', /the file none.yaml does not exist/],
  ]) {
    const refused = (error) =>
      error instanceof TypeError && message.test(error.message) && !error.message.includes('canary');
    assert.throws(() => providers.rag({ kb: { drive } }), refused, JSON.stringify(drive));
  }
});
