// Others' files, which are not kept here: the cases of uritemplate-test.
// They are looked for in the directory that MCP_RESOURCES_VECTORS names, then in `target/vectors`, where `make setup` writes what it
// finds in packages.
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
  const { MCP_RESOURCES_VECTORS: named, CARGO_TARGET_DIR: target = 'target' } = process.env;
  return [named, path.join(target, 'vectors')]
    .filter((folder) => folder)
    .map((folder) => path.resolve(ROOT, folder, name))
    .find((found) => existsSync(found) && statSync(found).isDirectory());
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
