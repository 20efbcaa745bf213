// A server over stdio for the tests of the page, written by hand: it may say whatever a hostile server says.
// usage: server.mjs many N | hostile | notes
import { createInterface } from 'node:readline';

const PAGE = 1000;
const [, , kind, count] = process.argv;

const HOSTILE = {
  'hostile:///markdown.md': [
    'text/markdown',
    [
      '# Title<script>window.pwned = 1</script>',
      '<img src=x onerror="window.pwned = 2">',
      '[click](javascript:window.pwned=3) <javascript:window.pwned=4>',
      '[data](data:text/html,<script>window.pwned=5</script>)',
      '[spaced]( java\tscript:window.pwned=6)',
      '![remote](https://example.invalid/pixel.png)',
      '<iframe src="https://example.invalid/"></iframe><style>body{display:none}</style>',
      '[web](https://example.invalid/page)',
      '<form action="https://example.invalid/"><input name=x></form>',
    ].join('\n\n'),
  ],
  'hostile:///picture.svg': [
    'image/svg+xml',
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="window.pwned = 7"><script>window.pwned = 8; ' +
      "fetch('https://example.invalid/')</script><image href=\"https://example.invalid/x.png\"/><rect width='40' height='40'/></svg>",
  ],
  'hostile:///page.html': [
    'text/html',
    '<!doctype html><script>window.pwned = 9</script><body onload="window.pwned = 10"><h1>Page</h1>',
  ],
  'hostile:///value.json': [
    'application/json',
    '{"__proto__": {"polluted": 1}, "a": "<img src=x onerror=window.pwned=11>", "link": "javascript:window.pwned=12"}',
  ],
  'hostile:///hits.json': [
    'application/json',
    '{"query": "x", "hits": [{"uri": "javascript:window.pwned=13", "title": "<b onclick=1>t</b>", "snippet": "**<img src=x onerror=window.pwned=14>**"}]}',
  ],
  'hostile:///table.csv': ['text/csv', 'a,b\n<script>window.pwned=15</script>,=cmd()\n"open quote,\n'],
  'hostile:///bomb.yaml': [
    'application/yaml',
    `a: &a [x,x,x,x,x,x,x,x,x]\n${[...'bcdefghij'].map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefghij'[at]}`)}]`).join('\n')}\n`,
  ],
  'hostile:///terminal.txt': ['text/plain', 'red \u001b[31m\u001b]0;title\u0007 end\u202eexe.txt\u0000'],
  'hostile:///lines.txt': ['text/plain', () => 'x\n'.repeat(1_000_000)],
  'hostile:///line.txt': ['text/plain', () => 'y'.repeat(3_000_000)],
  'hostile:///deep.json': ['application/json', () => `${'['.repeat(50_000)}${']'.repeat(50_000)}`],
  'hostile:///huge.txt': ['text/plain', () => 'huge '.repeat(20_000_000)],
  'hostile:///huge.bin': ['application/octet-stream', () => Buffer.alloc(100_000_000)],
  'hostile:///no-picture.png': ['image/png', () => Buffer.from('this is no picture\0')],
  'javascript:window.pwned=16': ['text/plain', 'its URI is a script'],
};

const NOTES = { 'test:///pid': ['text/plain', () => String(process.pid)], 'test:///note': ['text/plain', 'a note'] };

function uris() {
  if (kind === 'many') return Array.from({ length: Number(count) }, (_, at) => `many:///${at % 100}/item-${at}.txt`);
  return Object.keys(kind === 'hostile' ? HOSTILE : NOTES);
}

const all = uris();

function entry(uri) {
  const found = HOSTILE[uri] ?? NOTES[uri];
  const name = kind === 'hostile' ? `<img src=x onerror="window.pwned=17">${uri}` : uri.split('/').at(-1);
  return { uri, name, mimeType: found?.[0] ?? 'text/plain', description: '<script>window.pwned = 18</script>' };
}

function contents(uri) {
  if (kind === 'many') return { uri, mimeType: 'text/plain', text: uri };
  const [mimeType, body] = (kind === 'hostile' ? HOSTILE : NOTES)[uri];
  const made = typeof body === 'function' ? body() : body;
  if (Buffer.isBuffer(made)) return { uri, mimeType, blob: made.toString('base64') };
  return { uri, mimeType, text: made };
}

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion: protocolVersion === '2025-06-18' ? protocolVersion : '2025-06-18',
    capabilities: { resources: {} },
    serverInfo: { name: '<img src=x onerror="window.pwned=19">', version: '1' },
    instructions: '<script>window.pwned = 20</script>',
  }),
  ping: () => ({}),
  'resources/list': ({ cursor }) => {
    const from = Number(cursor ?? 0);
    const next = from + PAGE < all.length ? { nextCursor: String(from + PAGE) } : {};
    return { resources: all.slice(from, from + PAGE).map(entry), ...next };
  },
  'resources/templates/list': () => ({ resourceTemplates: [] }),
  'resources/read': ({ uri }) => ({ contents: [contents(uri)] }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = METHODS[method]
    ? { result: METHODS[method](params ?? {}) }
    : { error: { code: -32601, message: 'Method not found' } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
});
