// The site that `make docs` builds, in a real browser: both colour schemes, wide and narrow, by keyboard, and with axe.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { AXE, launch, open, ROOT } from './driver.mjs';

const SITE = join(ROOT, 'target', 'site', 'html');
const TYPES = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
};
const PAGES = {
  start: '/',
  guide: '/guides/docs.html',
  reference: '/reference/python.html',
  results: '/results.html',
  clients: '/clients.html',
  comparison: '/compare/rmcp.html',
  'start in Japanese': '/ja/index.html',
};
const SKIP = !existsSync(join(SITE, 'index.html')) && 'the site is not built; run make docs';
let browser;
let server;
let base;

before(async () => {
  browser = await launch();
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://site');
    const file = decodeURIComponent(pathname.endsWith('/') ? `${pathname}index.html` : pathname);
    try {
      const body = readFileSync(join(SITE, file));
      response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${server.address().port}`;
});
after(async () => {
  await browser?.close();
  server?.close();
});

for (const colorScheme of ['light', 'dark']) {
  for (const width of [1400, 400]) {
    test(`the site, ${colorScheme}, ${width} pixels`, { skip: SKIP }, async () => {
      const viewport = { width, height: 900 };
      for (const [name, path] of Object.entries(PAGES)) {
        const { page, context, wrong } = await open(browser, base + path, { colorScheme, viewport });
        await page.waitForSelector('h1');
        const beside = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(beside <= 0, `${name} is ${beside} pixels wider than the window`);
        await page.evaluate(readFileSync(AXE, 'utf8'));
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
        assert.deepEqual(
          violations.map((found) => `${name}: ${found.id}: ${found.nodes[0].html.slice(0, 120)}`),
          [],
        );
        assert.deepEqual(wrong, [], name);
        await context.close();
      }
    });
  }
}

test('the site is searched by keyboard alone', { skip: SKIP }, async () => {
  const { page, context, wrong } = await open(browser, `${base}/`);
  await page.waitForSelector('h1');
  await page.keyboard.press('Tab');
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ''), /skip/i);
  await page.keyboard.press('Control+k');
  await page.keyboard.type('revocation', { delay: 20 });
  // The navigation has links too. Results of the last letters may come after a key, and begin at the first again.
  const chosen = (place) =>
    page.locator(`[role=option][href*="revocation"][aria-posinset="${place}"][aria-selected=true]`);
  await chosen(1).waitFor({ timeout: 20_000 });
  for (let at = 0; at < 20 && (await chosen(2).count()) === 0; at++) {
    await page.keyboard.press('ArrowDown');
    await page.waitForTimeout(at * 50);
  }
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname !== '/', { timeout: 20_000 });
  assert.deepEqual(wrong, []);
  await context.close();
});
