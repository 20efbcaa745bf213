// The page of `browse` over the example of seven systems: every kind of contents, keyboard, accessibility, live changes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AXE, browse, COMMAND, endAll, hash, launch, open, ROOT } from './driver.mjs';

const SERVER = 'mcp-resources';
const JAPANESE = 'docs:///handbook/ja/%E3%82%B5%E3%83%BC%E3%83%90%E6%A7%8B%E6%88%90.md';
let browser;
let techsapo;

before(async () => {
  browser = await launch();
  techsapo = await browse(['--', COMMAND, 'serve', '--config', 'examples/techsapo.yaml'], { cwd: ROOT });
});
after(async () => {
  await browser?.close();
  await endAll();
});

/** Runs axe, and fails with each violation. */
async function accessible(page) {
  await page.evaluate(() => document.getElementById('axe') ?? true);
  const source = (await import('node:fs')).readFileSync(AXE, 'utf8');
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const said = violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 120)).join(' | ')}`);
  assert.deepEqual(said, []);
}

/** Opens a resource on a page of its own. */
async function show(uri, options) {
  const opened = await open(browser, techsapo.url + hash(SERVER, uri), options);
  await opened.page.waitForSelector('.contents');
  return opened;
}

async function close({ context, wrong }) {
  await context.close();
  assert.deepEqual(wrong, []);
}

test('the tree shows all systems, is used by keyboard alone, and opens a resource', async () => {
  const opened = await open(browser, techsapo.url);
  const { page } = opened;
  await page.waitForSelector('[role=treeitem]');
  const labels = await page.locator('[role=treeitem] .label').allInnerTexts();
  for (const label of ['config:///', 'docs:///', 'file:///', 'git:///', 'metrics:///', 'rag:///', 'env:///'])
    assert(labels.includes(label), labels.join(' '));
  await accessible(page);
  // By keyboard: the search, down into the tree, and open.
  await page.keyboard.press('/');
  await page.keyboard.press('ArrowDown');
  const active = () => page.locator('.row.is-active .label').innerText();
  for (let at = 0; at < 40 && (await active()) !== 'handbook'; at++) await page.keyboard.press('ArrowDown');
  assert.equal(await page.locator('.row.is-active').getAttribute('aria-expanded'), 'false');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.locator('.row.is-active').getAttribute('aria-expanded'), 'true');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowLeft');
  assert.equal(await active(), 'handbook');
  await page.keyboard.press('Enter');
  await page.waitForSelector('.markdown a');
  assert.equal(await page.locator('.resource h2').first().innerText(), 'The pages of handbook');
  await page.keyboard.press('Escape');
  await page.waitForSelector('.welcome');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('role')), 'tree');
  await close(opened);
});

test('a search and filters leave what fits', async () => {
  const opened = await open(browser, techsapo.url);
  const { page } = opened;
  await page.waitForSelector('[role=treeitem]');
  await page.fill('#search', 'サーバ構成');
  await page.waitForSelector('[role=option]');
  assert.match(await page.locator('.found').innerText(), /^1 of \d+/);
  await page.fill('#search', '');
  await page.click('[aria-label=Filters]');
  await page.selectOption('.filters select >> nth=2', '0.9');
  await page.waitForFunction(() => !document.querySelector('.panel').innerText.includes('cpu_usage_percent'));
  const rows = await page.locator('.row-uri').allInnerTexts();
  assert(rows.includes('config:///app') && !rows.includes('metrics:///cpu_usage_percent'), rows.join(' '));
  await accessible(page);
  await page.selectOption('.filters select >> nth=0', 'text/markdown');
  await page.waitForFunction(() => !document.body.innerText.includes('config:///app'));
  await close(opened);
});

test('Markdown in Japanese, in both schemes and at both widths', async () => {
  for (const colorScheme of ['light', 'dark']) {
    for (const width of [1400, 400]) {
      const opened = await show(JAPANESE, { colorScheme, viewport: { width, height: 800 } });
      const { page } = opened;
      await page.waitForSelector('.markdown h2');
      assert.deepEqual(await page.locator('.markdown h2').allInnerTexts(), ['台数', '名前']);
      assert.equal(await page.locator('.markdown code').first().innerText(), 'tyo-');
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert(overflow <= 0, `${overflow} px too wide at ${width}`);
      await accessible(page);
      if (width === 400) {
        await page.click('.back');
        await page.waitForSelector('[role=treeitem]');
        await accessible(page);
      }
      await close(opened);
    }
  }
});

test('links of Markdown lead to resources of the same server', async () => {
  const opened = await show('docs:///handbook/');
  const { page } = opened;
  await page.click('.markdown a >> text=Incident guide');
  await page.waitForFunction(() => document.querySelector('.uri')?.textContent.endsWith('incidents/guide.md'));
  await close(opened);
});

test('source with colours, a patch, a picture, a tree of values, a table, a directory', async () => {
  const git = 'git:///techsapo/blob/HEAD/';
  for (const [uri, selector, text] of [
    [`${git}core/cli/src/watch.rs`, '.source .hljs-keyword', 'use'],
    ['git:///techsapo/diff/HEAD~1/HEAD', '.line.is-file', 'diff --git'],
    ['config:///app', '.value-tree .member', 'server'],
    [`${git}examples/techsapo.yaml`, '.value-tree .member', 'name'],
    [`${git}examples/data/tables/people.csv`, '[role=table] [role=cell]', 'Ada'],
    ['file:///project/', '.directory .link', ''],
  ]) {
    const opened = await show(uri);
    await opened.page.waitForSelector(selector);
    const found = await opened.page.locator(selector).first().innerText();
    assert(found.includes(text), `${uri}: ${found}`);
    await accessible(opened.page);
    await close(opened);
  }
  const opened = await show(`${git}tests/bench/plots/clients.svg`);
  await opened.page.waitForFunction(() => document.querySelector('.image img')?.naturalWidth > 0);
  await accessible(opened.page);
  await close(opened);
});

test('a series is a chart that moves', async () => {
  const opened = await show('metrics:///cpu_usage_percent', { colorScheme: 'dark' });
  const { page } = opened;
  await page.waitForSelector('.chart canvas');
  const points = async () => Number((await page.locator('.chart figcaption').innerText()).match(/(\d+) points/)[1]);
  const begin = await points();
  await page.waitForFunction((least) => Number(/(\d+) points/.exec(document.body.innerText)?.[1]) > least, begin);
  await page.waitForSelector('text=/Changed at/');
  await accessible(page);
  await close(opened);
});

test('a search has its hits marked, and a hit opens its section', async () => {
  const opened = await show(`docs:///handbook/search/${encodeURIComponent('検索')}`);
  const { page } = opened;
  assert.equal(await page.locator('.hits mark').first().innerText(), '検索');
  await accessible(page);
  await page.click('.hits .link >> nth=0');
  await page.waitForSelector('.markdown');
  await close(opened);
});

test('a template is a form that proposes values', async () => {
  const opened = await open(browser, techsapo.url);
  const { page } = opened;
  await page.click('#tab-templates');
  await page.click('.templates button:has-text("docs:///{site}/search/{+query}")');
  const site = page.locator('input[role=combobox]').first();
  await site.fill('hand');
  await page.waitForSelector('.proposals:not([hidden]) [role=option]');
  await accessible(page);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  assert.equal(await site.inputValue(), 'handbook');
  await page.locator('input[role=combobox]').nth(1).fill('検索 設定');
  const uri = `docs:///handbook/search/${encodeURIComponent('検索 設定')}`;
  await page.waitForSelector(`text=${uri}`);
  await page.click('text=Read it');
  await page.waitForSelector('.hits, .contents .empty');
  await close(opened);
});

test('the message, a copy, a download and the basket have the contents', async () => {
  const opened = await show(JAPANESE);
  const { page } = opened;
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await page.click('text=Copy URI');
  await page.waitForSelector('text=Copied');
  assert.equal(await copied(), JAPANESE);
  await page.click('text=Message');
  await page.waitForSelector('.message pre:has-text("contents")');
  assert.match(await page.locator('.message pre').last().innerText(), /"text": "---/);
  await accessible(page);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Download')]);
  assert.equal(download.suggestedFilename(), '_E3_82_B5_E3_83_BC_E3_83_90_E6_A7_8B_E6_88_90.md');
  await page.click('text=Add to context');
  await page.click('#tab-basket');
  await page.waitForSelector('.basket .total:has-text("About")');
  await page.waitForFunction(() => /About [1-9]\d* tokens$/m.test(document.querySelector('.total').innerText));
  await accessible(page);
  await page.click('text=Copy as a prompt');
  await page.waitForSelector('.basket >> text=Copied');
  assert.match(await copied(), /^<resource uri="docs:[^"]+" mimeType="text\/markdown">\n---\n[\s\S]+\n<\/resource>\n$/);
  await page.click('text=Copy as resources');
  await page.waitForTimeout(200);
  assert.deepEqual(JSON.parse(await copied()), { mcpServers: { [SERVER]: { resources: [JAPANESE] } } });
  await close(opened);
});

test('rows of a database follow to the last page', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'browse-'));
  const make =
    "import sqlite3\nshop = sqlite3.connect('shop.db')\nshop.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)')\n" +
    "shop.executemany('INSERT INTO t VALUES (?, ?)', [(n, f'name {n}') for n in range(1, 451)])\nshop.commit()\n";
  execFileSync('python3', ['-c', make], { cwd: folder });
  const command = await browse(['--', COMMAND, 'serve', 'db:shop=sqlite:shop.db,t'], { cwd: folder });
  const opened = await open(browser, command.url + hash(SERVER, 'db:///shop/t'));
  const { page } = opened;
  await page.waitForSelector('[role=table] [role=cell]');
  for (let at = 0; at < 40 && !(await page.innerText('.contents')).includes('450 rows'); at++) {
    await page.evaluate(() => document.querySelector('.grid').scrollTo(0, 1e7));
    await page.waitForTimeout(100);
  }
  await page.evaluate(() => document.querySelector('.grid').scrollTo(0, 1e7));
  await page.waitForSelector('[role=cell]:has-text("name 450")');
  assert.match(await page.innerText('.contents'), /450 rows$/m);
  await accessible(page);
  await command.end();
  await opened.context.close();
  rmSync(folder, { recursive: true });
});

test('a watched file changes in place and shows what changed; new files appear; a file that is gone says so', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'browse-'));
  mkdirSync(join(folder, 'notes'));
  const file = join(folder, 'notes', 'a.txt');
  writeFileSync(file, 'one\ntwo\nthree\n');
  const command = await browse(['--', COMMAND, 'serve', 'files:notes'], { cwd: folder });
  const opened = await open(browser, command.url + hash(SERVER, 'file:///notes/a.txt'));
  const { page } = opened;
  await page.waitForSelector('.live:has-text("Live")');
  await page.waitForTimeout(300);
  // As many editors save: the file is empty for a moment. For the page, both changes come at the same time.
  await page.clock.setFixedTime(new Date());
  writeFileSync(file, '');
  await page.waitForFunction(() => !document.querySelector('.source')?.textContent.includes('three'));
  writeFileSync(file, 'one\n2\nthree\nfour\n');
  await page.waitForSelector('.line:has-text("four")');
  assert.deepEqual(await page.locator('.line.is-new code').allInnerTexts(), ['2', 'four']);
  await page.click('.views >> text=Changes');
  await page.waitForSelector('.line.is-removed');
  assert.equal(await page.locator('.line.is-removed').innerText(), '-two');
  await accessible(page);
  writeFileSync(join(folder, 'notes', 'b.txt'), 'new\n');
  await page.waitForSelector('[role=treeitem]:has-text("b.txt")');
  rmSync(file);
  await page.waitForSelector('.live:has-text("gone")');
  await command.end();
  await page.waitForSelector('text=The command has ended');
  await opened.context.close();
  rmSync(folder, { recursive: true });
});

test('a server that is lost says so, and comes back', async () => {
  const command = await browse(['--', process.execPath, join(ROOT, 'tests/browse/server.mjs'), 'notes']);
  const opened = await open(browser, command.url + hash('server', 'test:///pid'));
  const { page } = opened;
  await page.waitForSelector('.source code');
  process.kill(Number(await page.innerText('.source code')), 'SIGKILL');
  await page.waitForSelector('.banner.is-bad:has-text("is lost")');
  // The client connects again by itself, or when it is asked.
  await page.click('text=Try now', { timeout: 2000 }).catch(() => {});
  await page.waitForSelector('.banner.is-bad', { state: 'detached' });
  await page.waitForSelector('.chip.is-connected');
  const before = await page.innerText('.source code');
  await page.click('text=Read again');
  await page.waitForFunction((old) => document.querySelector('.source code')?.textContent !== old, before);
  await close(opened);
  await command.end();
});

test('a hundred thousand entries keep few rows in the page', async () => {
  const command = await browse(['--', process.execPath, join(ROOT, 'tests/browse/server.mjs'), 'many', '100000']);
  const opened = await open(browser, command.url);
  const { page } = opened;
  await page.waitForSelector('[role=treeitem]');
  await page.fill('#search', 'item-99999');
  await page.waitForSelector('.found:has-text("1 of 100,000")', { timeout: 60_000 });
  await page.fill('#search', '');
  await page.click('[aria-label="As a list"]');
  await page.waitForSelector('[role=listbox]');
  await page.focus('[role=listbox]');
  await page.keyboard.press('End');
  await page.waitForSelector('[role=option]:has-text("item-99999.txt")');
  const rows = await page.locator('[role=option]').count();
  assert(rows < 80, `${rows} rows`);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.source code:has-text("many:///99/item-99999.txt")');
  await close(opened);
  await command.end();
});

test('the gateway is browsed as a server', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'browse-'));
  const notes = { command: process.execPath, args: [join(ROOT, 'tests/browse/server.mjs'), 'notes'], resources: '*' };
  const files = { command: COMMAND, args: ['serve', `files:web=${join(ROOT, 'core/cli/web/src')}`], resources: '*' };
  writeFileSync(join(folder, 'team.json'), JSON.stringify({ mcpServers: { notes, files } }));
  const command = await browse(['--', COMMAND, 'gateway', '--config', 'team.json'], { cwd: folder });
  const opened = await open(browser, command.url);
  const { page } = opened;
  await page.waitForSelector('[role=treeitem]:has-text("test:///")');
  await page.waitForSelector('[role=treeitem]:has-text("file:///")');
  await close(opened);
  await command.end();
  rmSync(folder, { recursive: true });
});
