// Runs `mcp-resources browse` and drives its page in a real browser.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const COMMAND = join(ROOT, 'target', 'debug', 'mcp-resources');
const require = createRequire(join(ROOT, 'core', 'cli', 'web', 'package.json'));
const { chromium } = require('playwright-core');
export const AXE = require.resolve('axe-core/axe.min.js');

/** The system's chromium, or undefined. */
export const CHROMIUM = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser'].find(
  (path) => path && existsSync(path),
);

export function launch() {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
}

const running = new Set();

/** Ends what a failed test left running: its pipes would keep the file of tests from ending. */
export async function endAll() {
  await Promise.all([...running].map((command) => command.end()));
}

/** Starts `browse` with these words; its URL is the first line. */
export async function browse(words, options = {}) {
  const child = spawn(COMMAND, ['browse', '--no-open', ...words], { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  // A test that fails must not leave it running.
  process.on('exit', () => child.kill());
  let errors = '';
  child.stderr.on('data', (data) => {
    errors += data;
  });
  const ended = new Promise((resolve) => child.on('close', resolve));
  const first = new Promise((resolve) => createInterface(child.stdout).once('line', resolve));
  const url = await Promise.race([first, ended.then(() => Promise.reject(new Error(`browse has ended: ${errors}`)))]);
  const command = {
    url,
    child,
    errors: () => errors,
    async end() {
      running.delete(command);
      child.kill('SIGTERM');
      await ended;
    },
  };
  running.add(command);
  return command;
}

/** The fragment that opens a resource. */
export function hash(server, uri) {
  return `#${encodeURIComponent(server)}/${encodeURIComponent(uri)}`;
}

/** A page that records what it must not do: errors, refused sources, requests to another place. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1400, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  });
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const wrong = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) wrong.push(message.text());
  });
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('request', (request) => {
    const to = request.url();
    if (!to.startsWith(new URL(url).origin) && !/^(?:blob|data):/.test(to)) wrong.push(`request to ${to}`);
  });
  page.on('dialog', (dialog) => {
    wrong.push(`dialog ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(url);
  return { page, context, wrong };
}
