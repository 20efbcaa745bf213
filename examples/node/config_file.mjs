// A configuration file: the whole of it, and each section by name.
//
// config://app            the file, as JSON
// config://app/{section}  one section; completes the names that exist
import { readFile } from 'node:fs/promises';
import { ResourceNotFoundError, ResourceServer } from 'mcp-resources';

const FILE = new URL('../data/app.json', import.meta.url);

const server = new ResourceServer({ name: 'config', version: '1.0.0' });

async function app() {
  return JSON.parse(await readFile(FILE, 'utf8'));
}

const JSON_TYPE = { mimeType: 'application/json' };

server.resource('config://app', { ...JSON_TYPE, description: "The application's configuration." }, app);

server.resource(
  'config://app/{section}',
  {
    ...JSON_TYPE,
    description: 'One section of it.',
    complete: { section: async (value) => Object.keys(await app()).filter((name) => name.startsWith(value)) },
  },
  async ({ section }) => {
    const sections = await app();
    if (!Object.hasOwn(sections, section)) throw new ResourceNotFoundError();
    return sections[section];
  },
);

await server.run();
