// A folder of documents, their names and texts in any script.
//
// docs:///{name}  a Markdown file of examples/data/docs; listed with its heading as title, completes the names
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ResourceNotFoundError, ResourceServer, UriTemplate } from 'mcp-resources';

const FOLDER = fileURLToPath(new URL('../data/docs', import.meta.url));
const TEMPLATE = 'docs:///{name}'; // `{name}` never matches a slash or `..`: a URI cannot leave the folder
const URI = new UriTemplate(TEMPLATE);

const server = new ResourceServer({ name: 'documents', version: '1.0.0' });

/** The files by name. Some file systems decompose accents and kana; URIs have the composed form. */
async function documents() {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.md')).sort();
  return new Map(names.map((name) => [name.normalize('NFC'), path.join(FOLDER, name)]));
}

async function describe([name, file]) {
  const [heading] = (await readFile(file, 'utf8')).split('\n', 1);
  const { size } = await stat(file);
  return { uri: URI.expand({ name }), name, title: heading.replace(/^# /, ''), mimeType: 'text/markdown', size };
}

server.resource(
  TEMPLATE,
  {
    name: 'document',
    description: 'A document.',
    mimeType: 'text/markdown',
    complete: {
      name: async (value) => [...(await documents()).keys()].filter((name) => name.startsWith(value.normalize('NFC'))),
    },
    list: async () => Promise.all([...(await documents())].map(describe)),
  },
  async ({ name }) => {
    const file = (await documents()).get(name.normalize('NFC'));
    if (file === undefined) throw new ResourceNotFoundError();
    return readFile(file, 'utf8');
  },
);

await server.run();
