// Builds the page into `dist`, each file compressed with gzip. With --check it compares what it builds with `dist` instead:
// the uncompressed bytes, because another zlib may compress them otherwise.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { build } from 'vite';

const MOST = 400_000;
const here = dirname(fileURLToPath(import.meta.url));
/** The packages whose code is in the page: their licences ask for their text beside it. */
const BUNDLED = [
  'd3-dsv',
  'diff',
  'dompurify',
  'entities',
  'highlight.js',
  'js-yaml',
  'linkify-it',
  'markdown-it',
  'mdurl',
  'preact',
  'punycode.js',
  'uc.micro',
  'uplot',
];

const { output } = await build({
  root: here,
  configFile: false,
  logLevel: 'warn',
  base: './',
  build: {
    write: false,
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      input: join(here, 'index.html'),
      output: {
        entryFileNames: 'app.js',
        chunkFileNames: '[name].js',
        assetFileNames: 'app[extname]',
      },
    },
  },
});

const files = new Map();
const inPage = new Set();
for (const file of output) {
  const bytes = Buffer.from(file.type === 'chunk' ? file.code : file.source);
  if (files.has(file.fileName)) throw new Error(`two files are named ${file.fileName}`);
  files.set(file.fileName, bytes);
  for (const path of file.type === 'chunk' ? Object.keys(file.modules) : []) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(path)?.[1];
    if (name) inPage.add(name);
  }
}
for (const name of inPage) {
  if (!BUNDLED.includes(name)) throw new Error(`${name} is in the page; add it to BUNDLED in build.mjs`);
}
files.set('licenses.txt', Buffer.from(licenses()));

let size = 0;
const wrong = [];
for (const name of ['index.html', 'app.js', 'views.js', 'app.css', 'licenses.txt']) {
  const bytes = files.get(name);
  if (!bytes) throw new Error(`the page has no ${name}`);
  files.delete(name);
  const path = join(here, 'dist', `${name}.gz`);
  const packed = gzipSync(bytes, { level: 9 });
  size += packed.length;
  if (process.argv.includes('--check')) {
    if (!gunzipSync(readFileSync(path)).equals(bytes)) wrong.push(name);
  } else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, packed);
  }
  console.log(`${name.padEnd(14)} ${bytes.length.toString().padStart(8)} ${packed.length.toString().padStart(8)}`);
}
console.log(`${'compressed'.padEnd(14)} ${size.toString().padStart(17)}`);
if (files.size) throw new Error(`the command does not know ${[...files.keys()].join(', ')}`);
if (size > MOST) throw new Error(`the page has ${size} bytes; at most ${MOST}`);
if (wrong.length) {
  console.error(`dist has another ${wrong.join(', ')} than the sources build to; run npm run build in core/cli/web`);
  process.exit(1);
}

/** The licences of the packages in the page. */
function licenses() {
  const parts = BUNDLED.map((name) => {
    const folder = join(here, 'node_modules', name);
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const text = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENSE-MIT.txt', 'license'].map((file) => {
      try {
        return readFileSync(join(folder, file), 'utf8');
      } catch {
        return undefined;
      }
    });
    const found = text.find((one) => one !== undefined);
    if (!found) throw new Error(`${name} has no licence text`);
    return `${name} ${version} (${license})\n\n${found.trim()}\n`;
  });
  return parts.join(`\n${'-'.repeat(80)}\n\n`);
}
