// Folders with packages of npm, below `target/peers`: other versions than those of this repository, or ones that it does not have.
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './vectors.mjs';

export const run = promisify(execFile);
const { CARGO_TARGET_DIR: target = 'target', NODE_TEST_CONTEXT: _, MCP_RESOURCES_RECORD: __, ...rest } = process.env;
/** The environment of programs in such a folder. */
export const ENV = rest;

/** A folder with these packages, and with this one; `isCopied`: not as a link, which a bundler would follow. Made once. */
export async function folder(name, dependencies, { isCopied = false } = {}) {
  const made = path.resolve(ROOT, target, 'peers', name);
  const manifest = JSON.stringify({ private: true, dependencies });
  const ready = path.join(made, 'ready');
  if (!existsSync(ready) || readFileSync(ready, 'utf8') !== manifest) {
    rmSync(made, { recursive: true, force: true });
    mkdirSync(made, { recursive: true });
    writeFileSync(path.join(made, 'package.json'), manifest);
    await run('npm', ['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: made, env: ENV });
    const own = path.join(made, 'node_modules', 'mcp-resources');
    if (isCopied) {
      mkdirSync(own);
      copyFileSync(path.join(ROOT, 'package.json'), path.join(own, 'package.json'));
      symlinkSync(path.join(ROOT, 'bindings-node'), path.join(own, 'bindings-node'));
    } else {
      symlinkSync(ROOT, own);
      symlinkSync(path.join(ROOT, 'bindings-node'), path.join(made, 'bindings-node'));
    }
    writeFileSync(ready, manifest);
  }
  return made;
}
