// Fragments of headings, compared with github-slugger (S-07).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import GithubSlugger, { slug } from 'github-slugger';

const SERVER = fileURLToPath(new URL('./docs-server.mjs', import.meta.url));
// Headings on one page: every read parses its page.
const ON_A_PAGE = 50;
const RANDOM = 1_000;
const SEED = 20_261_125;

/** Letters, marks, numbers and punctuation of all scripts, without what Markdown reads itself. */
function* characters() {
  for (let code = 0x80; code < 0x110000; code++) {
    const char = String.fromCodePoint(code);
    if (!/^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(char)) continue;
    // Letters that Unicode has had since github-slugger was made: it drops them.
    const isWord = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]$/u.test(char);
    if (isWord === (slug(char, true) !== '')) yield char;
  }
}

/** Pieces of 64 characters behind a letter. */
function* everyCharacter() {
  let heading = 'x';
  for (const char of characters()) {
    heading += char;
    if ([...heading].length > 64) {
      yield heading;
      heading = 'x';
    }
  }
  yield heading;
}

/** Headings of a few words, some of them alike, some in decomposed letters. */
function* random() {
  const words = [
    'A',
    'a',
    'Café',
    'ΣΊΣΥΦΟΣ',
    'İ',
    '検索',
    'ガイド',
    'v2.0',
    'x-1',
    'a_b',
    '১য়',
    '🚀',
    '“q”',
    '1',
    'ß',
    '한글',
  ];
  let state = SEED;
  const below = (max) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * max);
  };
  for (let at = 0; at < RANDOM; at++) {
    const picked = Array.from({ length: 1 + below(3) }, () => words[below(words.length)]);
    const heading = picked.join([' ', '-', ' - ', '  '][below(4)]);
    yield [heading, heading.normalize('NFD'), heading.normalize('NFC')][below(3)];
  }
}

test('S-07: a section is found by the fragment that GitHub gives its heading, in every script', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'mcp-slugs-'));
  t.after(() => rmSync(path, { recursive: true }));
  const headings = [...everyCharacter(), ...random()];
  const pages = [];
  for (let at = 0; at < headings.length; at += ON_A_PAGE) {
    const own = headings.slice(at, at + ON_A_PAGE);
    pages.push(own);
    const text = own.map((heading) => `# ${heading}\n\ntext\n\n`).join('');
    writeFileSync(join(path, `p${pages.length}.md`), text);
  }
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [SERVER, path] }));
  t.after(() => client.close());
  for (const [at, headings] of pages.entries()) {
    const slugger = new GithubSlugger();
    for (const heading of headings) {
      const own = slugger.slug(heading);
      // GitHub gives no fragment to the first heading without a letter.
      if (own === '') continue;
      const uri = `docs:///book/p${at + 1}.md#${encodeURIComponent(own)}`;
      const answer = await client.readResource({ uri }).catch((error) => ({ contents: [{ text: `${error}` }] }));
      assert.equal(answer.contents[0].text, `# ${heading}\n\ntext\n\n`, uri);
    }
  }
});
