// A folder of files, as the servers of agents' configurations are: `project_files.mjs --root FOLDER`.
//
// file:///project/{+path}  a file below the folder; a change is told within a tenth of a second
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { ResourceNotFound, ResourceServer } from 'mcp-resources';

const { values } = parseArgs({ options: { root: { type: 'string' } } });
const root = realpathSync(values.root);
const server = new ResourceServer({ name: 'filesystem', version: '1.0.0' });

function contentsOf(name) {
  try {
    const file = realpathSync(path.join(root, name));
    if (file.startsWith(root + path.sep) && statSync(file).isFile()) return readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'ENOTDIR') throw error;
  }
  throw new ResourceNotFound();
}

/** When each file was changed, by URI. */
function times() {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map((entry) => {
      const file = path.join(entry.parentPath ?? entry.path, entry.name);
      return [`file:///project/${path.relative(root, file)}`, statSync(file).mtimeMs];
    }),
  );
}

server.resource(
  'file:///project/{+path}',
  {
    name: 'project_file',
    title: 'A file of the project',
    list: () => [...times().keys()].map((uri) => ({ uri, name: path.posix.basename(uri) })),
  },
  ({ path: name }) => contentsOf(name),
);

let before = times();
setInterval(() => {
  const now = times();
  for (const uri of new Set([...before.keys(), ...now.keys()])) {
    if (before.get(uri) !== now.get(uri)) server.notifyUpdated(uri);
  }
  before = now;
}, 100).unref();
await server.run();
