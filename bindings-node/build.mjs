// Builds the binary beside everything else that Cargo builds here, and says what it exports (binding.d.ts). The command
// line of napi names a target: then every dependency is compiled twice. `release/` makes the packages that are published.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { generateTypeDef, parseTriple } from '@napi-rs/cli';

const CRATE = 'mcp-resources-node';
const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
const types = process.env.NAPI_TYPE_DEF_TMP_FOLDER ?? join(target, 'napi-types');

function run(command, options, env = {}) {
  const ended = spawnSync(command, options, {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    stdio: ['inherit', 'pipe', 'inherit'],
  });
  if (ended.status !== 0) {
    process.exit(ended.status ?? 1);
  }
  return ended.stdout;
}

/** Writes what the library exports, as a macro noted it in this folder. */
async function declare(folder) {
  const { dts } = await generateTypeDef({ typeDefDir: folder, cwd: root, constEnum: false });
  // A type may not refer to itself in a `Record`; and with an index signature, no interface and no readonly array would be one.
  writeFileSync(join(here, 'binding.d.ts'), dts.replaceAll('Record<string, PlainValue>', 'object'));
}

function build() {
  mkdirSync(types, { recursive: true });
  // A macro writes the types while the crate is compiled: without them it must be compiled anew.
  const force = existsSync(join(types, CRATE)) ? {} : { NAPI_FORCE_BUILD_MCP_RESOURCES_NODE: String(Date.now()) };
  run('cargo', ['build', '--package', CRATE], { NAPI_TYPE_DEF_TMP_FOLDER: types, ...force });

  const triple = run('rustc', ['-vV']).match(/^host: (\S+)$/m)[1];
  const { platform, platformArchABI } = parseTriple(triple);
  const library = { darwin: 'libmcp_resources_node.dylib' };
  const built = join(target, 'debug', library[platform] ?? 'libmcp_resources_node.so');
  copyFileSync(built, join(here, `mcp-resources.${platformArchABI}.node`));
}

// `--types FOLDER`: another program has built the library, and its types are there.
const [option, folder] = process.argv.slice(2);
if (option !== '--types') build();
await declare(option === '--types' ? folder : types);
