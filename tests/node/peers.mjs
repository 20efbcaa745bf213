// Folders with packages of npm, below `target/peers`: other versions than those of this repository, or ones that it does not have.
import { execFile } from 'node:child_process';
import {
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './vectors.mjs';

export const run = promisify(execFile);
const { CARGO_TARGET_DIR: target = 'target', NODE_TEST_CONTEXT: _, MCP_RESOURCES_RECORD: __, ...rest } = process.env;
/** The environment of programs in such a folder. */
export const ENV = rest;

/** A folder with these packages, and with this one; `isCopied`: as files, because a bundler follows links. Made once. */
export async function folder(name, dependencies, { isCopied = false } = {}) {
  const made = path.resolve(ROOT, target, 'peers', name);
  const manifest = JSON.stringify({ private: true, dependencies });
  const ready = path.join(made, 'ready');
  if (!existsSync(ready) || readFileSync(ready, 'utf8') !== manifest) {
    rmSync(made, { recursive: true, force: true });
    mkdirSync(made, { recursive: true });
    writeFileSync(path.join(made, 'package.json'), manifest);
    await run('npm', ['install', '--silent', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: made, env: ENV });
    writeFileSync(ready, manifest);
  }
  const own = path.join(made, 'node_modules', 'mcp-resources');
  remove(own);
  if (isCopied) {
    copyPackage(own);
  } else {
    link(ROOT, own);
    link(path.join(ROOT, 'bindings-node'), path.join(made, 'bindings-node'));
  }
  return made;
}

/** A link, also where one led elsewhere: the folder may be a copy. */
function link(target, place) {
  remove(place);
  symlinkSync(target, place);
}

/** Removes a folder, or a link and not what it leads to. */
function remove(place) {
  const found = lstatSync(place, { throwIfNoEntry: false });
  if (found?.isSymbolicLink()) unlinkSync(place);
  else if (found) rmSync(place, { recursive: true });
}

/** This package as it is published. */
function copyPackage(own) {
  mkdirSync(path.join(own, 'bindings-node'), { recursive: true });
  cpSync(path.join(ROOT, 'package.json'), path.join(own, 'package.json'));
  const built = path.join(ROOT, 'bindings-node');
  cpSync(path.join(built, 'dist'), path.join(own, 'bindings-node', 'dist'), { recursive: true });
  for (const name of readdirSync(built).filter((name) => name.endsWith('.node'))) {
    cpSync(path.join(built, name), path.join(own, 'bindings-node', name), { mode: constants.COPYFILE_FICLONE });
  }
}
