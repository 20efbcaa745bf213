// The server that the tests of the client talk to: in the same process, or as a process of its own over stdio or HTTP.
// usage: client_server.mjs [--http]
import { pathToFileURL } from 'node:url';
import {
  Contents,
  Elicit,
  InputRequired,
  ListRoots,
  ReadResult,
  ResourceNotFoundError,
  ResourceServer,
  Sample,
} from 'mcp-resources';

/** How many notes there are: more than two pages. */
export const NOTES = 25;
/** How many resources are not notes. */
export const FIXED = 5;
const QUESTIONS = {
  elicitation: new Elicit('Who?', { type: 'object', properties: {} }),
  sampling: new Sample({ messages: [], maxTokens: 1 }),
  roots: new ListRoots(),
};
const METHODS = { elicitation: 'elicitation/create', sampling: 'sampling/createMessage', roots: 'roots/list' };

/** A new server. `client_server://` are its controls. */
export function make(options = {}) {
  const server = new ResourceServer(
    { name: 'notes', version: '1.2.3' },
    { limits: { page: 10 }, instructions: 'Read.', ...options },
  );
  const notes = new Map(Array.from({ length: NOTES }, (_, at) => [String(at).padStart(2, '0'), `note ${at}`]));
  const counts = { cancelled: 0, kept: 0, slow: 0 };
  const note = ({ id }) => {
    const text = notes.get(id);
    if (text === undefined) throw new ResourceNotFoundError();
    return text;
  };
  const list = () =>
    [...notes.keys()].map((id) => ({ uri: `note://${id}`, title: `Note ${id}`, mimeType: 'text/plain' }));
  server.resource(
    'note://{id}',
    { list, complete: { id: (value) => [...notes.keys()].filter((id) => id.startsWith(value)) } },
    note,
  );
  server.resource('bytes://{id}', ({ id }) => Buffer.from([0, 255, Number(id)]));
  server.resource('many://{id}', ({ id }) => [
    new Contents(`one ${id}`, { uri: 'many://1', mimeType: 'text/x-one', meta: { a: 1 } }),
    new Contents(Buffer.from('two'), { uri: 'many://2' }),
  ]);
  server.resource('kept://{id}', () => {
    counts.kept += 1;
    return new ReadResult(new Contents(`kept ${counts.kept}`), { ttlMs: 600_000 });
  });
  server.resource('slow://{id}', (_, ctx) => {
    counts.slow += 1;
    return new Promise((resolve) => {
      ctx.signal.addEventListener('abort', () => {
        counts.cancelled += 1;
        resolve('late');
      });
    });
  });
  server.resource('work://{id}', (_, ctx) => {
    ctx.progress(1, 2, 'half');
    return 'worked';
  });
  server.resource('ask://{sort}', async ({ sort }, ctx) => {
    if (ctx.revision !== '2026-07-28') {
      const params =
        sort === 'elicitation'
          ? { message: 'Who?', requestedSchema: { type: 'object', properties: {} } }
          : sort === 'sampling'
            ? { messages: [], maxTokens: 1 }
            : {};
      return JSON.stringify(await ctx.ask(METHODS[sort], params));
    }
    if (ctx.inputs.one !== undefined) return JSON.stringify(ctx.inputs.one.value);
    throw new InputRequired({ one: QUESTIONS[sort] });
  });
  server.resource('control://counts', () => JSON.stringify(counts));
  server.resource('control://set/{id}/{text}', ({ id, text }) => {
    notes.set(id, text);
    server.notifyUpdated(`note://${id}`);
    return 'done';
  });
  server.resource('control://remove/{id}', ({ id }) => {
    notes.delete(id);
    server.notifyUpdated(`note://${id}`);
    server.notifyListChanged();
    return 'done';
  });
  server.resource('control://pid', () => String(process.pid));
  for (const name of ['src/main.rs', 'src/deep/lib.rs', 'config.json']) {
    server.addResource({ uri: `file:///project/${name}` }, { text: name });
  }
  return server;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const onListening = (url) => process.stdout.write(`${url}\n`);
  await make().run(process.argv.includes('--http') ? { http: { port: 0, onListening } } : {});
}
