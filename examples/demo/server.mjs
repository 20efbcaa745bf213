// The demo's server in Node: the same resources as `server.py`.
//
// repo://docs/{name}         a document of the root folder; listed, completes the names
// repo://source/{+path}      a source file of the engine; listed, completes the paths
// repo://documents.json.gz   all documents, compressed when asked: binary
// metrics://server/uptime    how long this server runs: changes by itself, and tells who subscribed
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { ResourceNotFound, ResourceServer, UriTemplate } from 'mcp-resources';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SOURCES = path.join(ROOT, 'core', 'engine', 'src');
const MARKDOWN = 'text/markdown';
const RUST = 'text/x-rust';
const UPTIME = 'metrics://server/uptime';
const TICK = 200;

const server = new ResourceServer({ name: 'mcp-resources-demo', version: '0.1.0' }, { limits: { page: 40 } });
const started = performance.now();

/** The files of a folder with this ending, by their paths from there. */
function files(folder, ending, recursive = false) {
  const names = readdirSync(folder, { recursive }).filter((name) => name.endsWith(ending));
  return new Map(names.sort().map((name) => [name.split(path.sep).join('/'), path.join(folder, name)]));
}

function read(available, name) {
  const file = available.get(name);
  if (file === undefined) throw new ResourceNotFound(); // only what is listed can be read
  return readFileSync(file, 'utf8');
}

function listed(template, mimeType, available) {
  const [variable] = Object.keys(template.variables);
  return [...available].map(([name, file]) => ({
    uri: template.expand({ [variable]: name }),
    name,
    mimeType,
    size: statSync(file).size,
  }));
}

function completed(available) {
  return (value) => [...available().keys()].filter((name) => name.startsWith(value));
}

const documents = () => files(ROOT, '.md');
const sources = () => files(SOURCES, '.rs', true);

server.resource(
  'repo://docs/{name}',
  {
    name: 'document',
    description: 'A document of this repository.',
    mimeType: MARKDOWN,
    complete: { name: completed(documents) },
    list: () => listed(new UriTemplate('repo://docs/{name}'), MARKDOWN, documents()),
  },
  ({ name }) => read(documents(), name),
);

server.resource(
  'repo://source/{+path}',
  {
    name: 'source',
    description: 'A source file of the engine.',
    mimeType: RUST,
    complete: { path: completed(sources) },
    list: () => listed(new UriTemplate('repo://source/{+path}'), RUST, sources()),
  },
  ({ path }) => read(sources(), path),
);

server.resource(
  'repo://documents.json.gz',
  { name: 'archive', description: 'All documents, compressed.', mimeType: 'application/gzip' },
  () => {
    const texts = [...documents()].map(([name, file]) => [name, readFileSync(file, 'utf8')]);
    return gzipSync(JSON.stringify(Object.fromEntries(texts)));
  },
);

server.resource(
  UPTIME,
  { name: 'uptime', description: 'Seconds since this server started.', mimeType: 'application/json' },
  () => ({ seconds: Math.round(performance.now() - started) / 1000 }),
);

setInterval(() => server.notifyUpdated(UPTIME), TICK).unref();
await server.run();
