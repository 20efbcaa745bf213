// Others' files, which are not kept here: the cases of uritemplate-test.
// They are looked for in the directory that MCP_RESOURCES_VECTORS names, by default `../shared` beside the project.
import { appendFileSync, existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const MODERN = '2026-07-28';
export const LEGACY = '2025-11-25';

/**
 * The directory of this name among the vectors, if it is there.
 * @param {string} name
 * @returns {string | undefined}
 */
export function directory(name) {
  const found = path.resolve(ROOT, process.env.MCP_RESOURCES_VECTORS ?? '../shared', name);
  return existsSync(found) && statSync(found).isDirectory() ? found : undefined;
}

/**
 * Appends to the file that `tests/checks/ran.py` reads, if there is one: a test that passed with the requirements that
 * it `cites`, or the reason why it was `left_out`.
 * @param {{ of?: string, cites?: string, left_out?: string, ended?: boolean }} entry
 */
export function record(entry) {
  const file = process.env.MCP_RESOURCES_RECORD;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(entry)}\n`);
}
