// An agent and what it may read: the servers and the allow-lists stand in `examples/data/agents.yaml`.
//
// It lists, reads what is allowed and what is not, reads everything as another agent, and follows a file that changes.
import { cpSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { AccessDeniedError, Client } from 'mcp-resources';

const EXAMPLES = fileURLToPath(new URL('..', import.meta.url));
const CONFIG = path.join(EXAMPLES, 'data', 'agents.yaml');
const MAIN = 'file:///project/src/main.ts';
const SECRET = 'file:///project/config.json';

const folder = mkdtempSync(path.join(os.tmpdir(), 'project-'));
cpSync(path.join(EXAMPLES, 'data', 'project'), folder, { recursive: true });
Object.assign(process.env, {
  RUNTIME: process.execPath,
  PROJECT_FILES: path.join(EXAMPLES, 'node', 'project_files.mjs'),
  PROJECT: folder,
});

const frontend = Client.fromConfig(CONFIG, { agent: 'frontend' });
const listed = [];
for await (const resource of frontend.list()) listed.push(resource.uri);
console.log('listed:', ...listed);
console.log('allowed:', await frontend.read(MAIN));
try {
  await frontend.read(SECRET);
} catch (error) {
  if (!(error instanceof AccessDeniedError)) throw error;
  console.log('refused:', error.message);
}
for await (const change of frontend.watch(MAIN)) {
  console.log('watched:', change.contents);
  if (change.contents.includes('43')) break;
  // Renamed, so that nobody reads half of it.
  writeFileSync(path.join(folder, 'main.new'), 'export const answer = 43;\n');
  renameSync(path.join(folder, 'main.new'), path.join(folder, 'src', 'main.ts'));
}
await frontend.close();

const admin = Client.fromConfig(CONFIG, { agent: 'admin' });
console.log('wildcard:', await admin.read(SECRET));
await admin.close();
rmSync(folder, { recursive: true });
