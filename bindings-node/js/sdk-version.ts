/** The packages of the SDK, and the copy that the program has. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

/** The second generation of the SDK. */
export const SECOND = '@modelcontextprotocol/server';
/** The first. */
export const FIRST = '@modelcontextprotocol/sdk';

/** The error for a version of the SDK without something that is needed. */
export function unsupported(missing: string): Error {
  const found = [SECOND, FIRST].map((name) => [name, versionOf(name)]).filter(([, version]) => version !== undefined);
  const has = found.map((pair) => pair.join(' ')).join(' and ') || 'the SDK of this server';
  return new Error(
    `attach needs ${missing}, which ${has} does not have; install ${SECOND}@2, ${FIRST}@1.32 or a newer mcp-resources`,
  );
}

/** Resolves names as the program does. */
export function program(): NodeJS.Require {
  return createRequire(process.argv[1] ?? path.join(process.cwd(), 'index.js'));
}

function versionOf(name: string): string | undefined {
  try {
    const folder = program()
      .resolve.paths(name)
      ?.find((folder) => existsSync(path.join(folder, name, 'package.json')));
    if (folder === undefined) return undefined;
    return JSON.parse(readFileSync(path.join(folder, name, 'package.json'), 'utf8')).version;
  } catch {
    return undefined;
  }
}
