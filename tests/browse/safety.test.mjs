// What a hostile server, another site, or another process can do with the page of `browse`: nothing.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { browse, endAll, hash, launch, open, ROOT } from './driver.mjs';

const SCRIPT = join(ROOT, 'tests/browse/server.mjs');
let browser;
let hostile;

before(async () => {
  browser = await launch();
  hostile = await browse(['--', process.execPath, SCRIPT, 'hostile']);
});
after(async () => {
  await browser?.close();
  await endAll();
});

/** Opens a hostile resource, looks at it, and checks that nothing has run or was asked of another place. */
async function look(uri, selector, check = () => {}) {
  const { page, context, wrong } = await open(browser, hostile.url + hash('server', uri));
  await page.waitForSelector(selector, { timeout: 60_000 });
  await check(page);
  await page.click('.views >> text=Source').catch(() => {});
  await page.waitForTimeout(150);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.equal(await page.evaluate(() => ({}).polluted), undefined);
  assert.deepEqual(wrong, []);
  await context.close();
}

test('scripts, HTML and links of scripts in Markdown are text', () =>
  look('hostile:///markdown.md', '.markdown h1', async (page) => {
    const links = await page.locator('.markdown a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    assert.deepEqual(
      links.filter((href) => href !== null && !/^(?:https:|#)/.test(href)),
      [],
    );
    assert.equal(await page.locator('.markdown :is(script, iframe, img, form, style)').count(), 0);
    assert.equal(await page.locator('.markdown a[href^="https:"]').first().getAttribute('rel'), 'noopener noreferrer');
    assert.match(await page.innerText('.markdown'), /nothing is loaded from the network/);
    for (const link of await page.locator('.markdown a:not([target])').all())
      await link.click({ timeout: 1000 }).catch(() => {});
  }));

test('an SVG is a picture: its script does not run', () =>
  look('hostile:///picture.svg', '.image img', (page) =>
    page.waitForFunction(() => document.querySelector('.image img').naturalWidth === 40),
  ));

test('HTML is shown as source', () =>
  look('hostile:///page.html', '.source code', async (page) => {
    assert.match(await page.innerText('.source'), /<!doctype html><script>window\.pwned = 9/);
  }));

test('values, hits and cells are text', async () => {
  await look('hostile:///value.json', '.value-tree .is-string', async (page) => {
    assert.match(await page.innerText('.value-tree'), /javascript:window\.pwned=12/);
    assert.equal(await page.locator('.value-tree .link').count(), 0);
  });
  await look('hostile:///hits.json', '.hits mark', async (page) => {
    await page.click('.hits .link');
    await page.waitForTimeout(200);
  });
  await look('hostile:///table.csv', '[role=cell]');
  await look('javascript:window.pwned=16', '.source code');
});

test('aliases of YAML and nesting of JSON do not stop the page', async () => {
  await look('hostile:///bomb.yaml', '.value-tree, .source');
  await look('hostile:///deep.json', '.value-tree, .source');
});

test('what moves a terminal or text is written out', () =>
  look('hostile:///terminal.txt', '.source code', async (page) => {
    const text = await page.innerText('.source code');
    assert(text.includes('\\x1b[31m\\x1b]0;title\\x07 end\\u{202e}exe.txt\\x00'), text);
  }));

test('a million lines are few rows', () =>
  look('hostile:///lines.txt', '.source code', async (page) => {
    const box = page.locator('.source');
    await box.evaluate((own) => own.scrollTo(0, own.scrollHeight));
    await page.waitForSelector('.number:has-text("1000000")');
    assert((await page.locator('.line').count()) < 100);
  }));

test('a line of three million letters is cut', () =>
  look('hostile:///line.txt', '.source code', async (page) => {
    assert.match(await page.innerText('.source'), /more characters/);
  }));

test('100 MB are cut with a word, and a download has all', async () => {
  await look('hostile:///huge.txt', '.banner', async (page) => {
    assert.match(await page.innerText('.banner'), /too big to show whole \(100\.0 MB\)/);
    await page.waitForSelector('.source code');
  });
  await look('hostile:///huge.bin', '.contents', async (page) => {
    await page.waitForSelector('text=/100.0 MB of application.octet-stream: too big/');
  });
  const all = await fetch(`${hostile.url}api/download?server=server&uri=${encodeURIComponent('hostile:///huge.bin')}`);
  assert.equal((await all.arrayBuffer()).byteLength, 100_000_000);
  assert.equal(all.headers.get('content-type'), 'application/octet-stream');
  assert.equal(all.headers.get('content-disposition'), 'attachment; filename="huge.bin"');
});

test('a picture that is none says so', () => look('hostile:///no-picture.png', 'text=cannot show this picture'));

/** The status of a request with headers of one's own. */
function status(path, { method = 'GET', headers = {}, body } = {}) {
  const url = new URL(path, hostile.url);
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

test('the token, Host, Origin, site and type of a request are checked', async () => {
  const json = { 'content-type': 'application/json' };
  const ask = (headers, body = '{"server":"server","uri":"hostile:///page.html"}') =>
    status('api/read', { method: 'POST', headers, body });
  assert.equal(await status(''), 200);
  assert.equal(await ask(json), 200);
  assert.equal(await ask({ ...json, origin: new URL(hostile.url).origin }), 200);
  const other = hostile.url.replace(/[0-9a-f]{32}/, '0'.repeat(32));
  for (const path of [other, '/', '/x/', `${hostile.url.slice(0, -2)}/`]) assert.equal(await status(path), 404, path);
  const { port } = new URL(hostile.url);
  for (const headers of [
    { host: 'evil.example' },
    { host: `evil.example:${port}` },
    { host: `127.0.0.1.evil.example:${port}` },
    { host: '127.0.0.1:1' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://127.0.0.1:1' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ])
    assert.equal(await ask({ ...json, ...headers }), 403, JSON.stringify(headers));
  assert.equal(await ask({ 'content-type': 'text/plain' }), 415);
  assert.equal(await ask({}), 415);
  assert.equal(await ask(json, '[]'), 400);
  assert.equal(await ask(json, '{"server":"server"}'), 400);
  assert.equal(await ask(json, `{"a":"${'x'.repeat(300_000)}"}`), 413);
  assert.equal(await status('api/nothing', { method: 'POST', headers: json, body: '{}' }), 404);
  assert.equal(await status('', { method: 'DELETE' }), 405);
  assert.equal(await status('../app.js'), 404);
  const page = await fetch(hostile.url);
  assert.match(page.headers.get('content-security-policy'), /default-src 'none'; script-src 'self'/);
  assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
});

test('an allow-list holds: what it leaves out is neither listed, read nor downloaded', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'browse-'));
  const one = { command: process.execPath, args: [SCRIPT, 'notes'] };
  const file = {
    mcpServers: { a: { ...one, resources: ['test:///note'] }, b: one },
    agents: { x: { mcpServers: { a: {} } } },
  };
  file.agents.x.mcpServers.a.resources = ['test:///n*'];
  writeFileSync(join(folder, 'agents.json'), JSON.stringify(file));
  const command = await browse(['--config', 'agents.json', '--agent', 'x'], { cwd: folder });
  const ask = async (name, question) => {
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(question) };
    return (await fetch(`${command.url}api/${name}`, init)).json();
  };
  const listed = await ask('list', { server: 'a' });
  assert.deepEqual(
    listed.items.map((item) => item.uri),
    ['test:///note'],
  );
  assert.equal((await ask('read', { server: 'a', uri: 'test:///note' })).contents[0].text, 'a note');
  for (const name of ['read', 'raw'])
    assert.match(JSON.stringify(await ask(name, { server: 'a', uri: 'test:///pid' })), /error/, name);
  assert.equal((await ask('read', { server: 'a', uri: 'test:///pid' })).error.kind, 'accessDenied');
  assert.match((await ask('read', { server: 'b', uri: 'test:///pid' })).error.message, /no server/);
  const download = await fetch(`${command.url}api/download?server=a&uri=${encodeURIComponent('test:///pid')}`);
  assert.equal(download.status, 403);
  await command.end();
  rmSync(folder, { recursive: true });
});
