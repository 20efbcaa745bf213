// The package as it is published: what is in it, that it works once installed, and that both module systems get one copy.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import * as esm from 'mcp-resources';
import * as esmTesting from 'mcp-resources/testing';
import { ROOT } from './vectors.mjs';
import { modern } from './web.mjs';

const require = createRequire(import.meta.url);
const OURS = path.join(ROOT, 'bindings-node');
const MODULES = readdirSync(path.join(OURS, 'js'))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -'.ts'.length));
const BINARY = readdirSync(OURS).find((name) => name.endsWith('.node'));
/** What every function has. */
const OF_FUNCTIONS = ['length', 'name', 'prototype', 'arguments', 'caller'];
const folder = mkdtempSync(path.join(os.tmpdir(), 'mcp-resources-'));
after(() => rmSync(folder, { recursive: true }));

function npm(...options) {
  const npm = process.env.NPM ?? 'npm';
  return execFileSync(npm, options, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

test('the published files are those and no others', () => {
  const [{ files }] = JSON.parse(npm('pack', '--dry-run', '--json'));
  const expected = [
    'LICENSE-APACHE',
    'LICENSE-MIT',
    'README.md',
    'bindings-node/binding.d.ts',
    ...MODULES.flatMap((name) => [`bindings-node/dist/${name}.js`, `bindings-node/dist/${name}.d.ts`]),
    ...['index', 'testing'].flatMap((name) => [`bindings-node/dist/${name}.mjs`, `bindings-node/dist/${name}.d.mts`]),
    'package.json',
  ];
  assert.deepEqual(files.map((file) => file.path).sort(), expected.sort());
});

test('an installed package works, with the binary from the package of its platform', () => {
  const [{ filename }] = JSON.parse(npm('pack', '--json', '--pack-destination', folder));
  const [, platform] = /\.([^.]+)\.node$/.exec(BINARY);
  const binaries = path.join(folder, 'binaries');
  mkdirSync(binaries);
  copyFileSync(path.join(OURS, BINARY), path.join(binaries, BINARY));
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  writeFileSync(
    path.join(binaries, 'package.json'),
    JSON.stringify({ name: `mcp-resources-${platform}`, version, main: BINARY }),
  );
  // As a user does, without anything of this repository within reach.
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: 'clean', private: true }));
  const quiet = ['--offline', '--no-audit', '--no-fund', '--install-links', '--ignore-scripts'];
  execFileSync(process.env.NPM ?? 'npm', ['install', ...quiet, `./${filename}`, './binaries'], {
    cwd: folder,
    stdio: 'ignore',
    env: { PATH: process.env.PATH, HOME: folder },
  });
  const body = `
    const server = new ResourceServer({ name: 'x', version: '1' });
    server.resource('a://{x}', ({ x }) => x);
    Client.connect(server).then((client) => client.readText('a://b')).then((text) => console.log(text));
  `;
  const imports = `import { ResourceServer } from 'mcp-resources'; import { Client } from 'mcp-resources/testing';`;
  const requires = `const { ResourceServer } = require('mcp-resources'); const { Client } = require('mcp-resources/testing');`;
  for (const [name, head] of [
    ['esm.mjs', imports],
    ['cjs.cjs', requires],
  ]) {
    writeFileSync(path.join(folder, name), head + body);
    assert.equal(execFileSync(process.execPath, [path.join(folder, name)], { encoding: 'utf8' }), 'b\n');
  }
  const served = `${imports} const server = new ResourceServer({ name: 'x' }); server.resource('a://{x}', ({ x }) => x); server.run();`;
  writeFileSync(path.join(folder, 'stdio.mjs'), served);
  const input = `${JSON.stringify(JSON.parse(modern(1, 'resources/read', { uri: 'a://b' }).body))}\n`;
  const answer = execFileSync(process.execPath, [path.join(folder, 'stdio.mjs')], { input, encoding: 'utf8' });
  assert.equal(JSON.parse(answer).result.contents[0].text, 'b');
});

test('a server on a pipe loads nothing that only others need', () => {
  const program = `
    import { createRequire } from 'node:module';
    const builtin = new Set(process.moduleLoadList);
    const { ResourceServer } = await import('mcp-resources');
    const server = new ResourceServer({ name: 'x' });
    server.resource('a://{x}', ({ x }) => x);
    server.addResource({ uri: 'b://c' }, { text: 'c' });
    await server.run();
    const { cache } = createRequire(import.meta.url);
    const native = process.moduleLoadList.filter((name) => !builtin.has(name));
    console.error(JSON.stringify({ native, ours: Object.keys(cache) }));
  `;
  const command = ['--input-type=module', '--eval', program];
  const input = `${JSON.stringify(JSON.parse(modern(1, 'resources/read', { uri: 'a://b' }).body))}\n`;
  const { stdout, stderr } = spawnSync(process.execPath, command, { cwd: ROOT, encoding: 'utf8', input });
  assert.equal(JSON.parse(stdout).result.contents[0].text, 'b');
  const { native, ours } = JSON.parse(stderr);
  const names = ours.map((file) => path.basename(file, '.js'));
  assert.ok(names.includes('server'));
  const others = /^(attach|client-memory|embedded-.*|endpoint|fetch|http|node-handler|sdk|testing|tool-.*|tools|ui)$/;
  assert.deepEqual(
    names.filter((name) => others.test(name)),
    [],
  );
  assert.deepEqual(
    native.filter((name) => /^NativeModule (http|https|http2|tls)$/.test(name)),
    [],
  );
});

test('a bundle without the compiled part says how to leave the package out', () => {
  const bundle = mkdtempSync(path.join(os.tmpdir(), 'mcp-resources-bundle-'));
  after(() => rmSync(bundle, { recursive: true }));
  const file = path.join(bundle, 'program.cjs');
  writeFileSync(file, readFileSync(path.join(OURS, 'dist', 'binding.js')));
  assert.throws(() => require(file), /cannot be loaded from .*\.node works there\. .*esbuild --external:mcp-resources/);
});

test('a system without a build gets one sentence that names those that there are', () => {
  for (const [platform, arch] of [
    ['win32', 'x64'],
    ['linux', 'riscv64'],
    ['freebsd', 'x64'],
  ]) {
    const program = `
      Object.defineProperty(process, 'platform', { value: '${platform}' });
      Object.defineProperty(process, 'arch', { value: '${arch}' });
      require(${JSON.stringify(path.join(OURS, 'dist', 'binding.js'))});
    `;
    const { status, stderr } = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' });
    assert.equal(status, 1);
    assert.ok(stderr.includes(`no build of mcp-resources for ${platform} on ${arch}, only for Linux (x64`), stderr);
    assert.match(stderr, /macOS \(x64 and arm64\); on Windows, use WSL/);
  }
});

test('both module systems have the same exports, and one copy of each', () => {
  for (const [one, other] of [
    [esm, require('mcp-resources')],
    [esmTesting, require('mcp-resources/testing')],
  ]) {
    const names = Object.keys(other).sort();
    assert.ok(names.length > 4);
    assert.deepEqual(
      Object.keys(one)
        .filter((name) => !['default', 'module.exports', '__esModule'].includes(name))
        .sort(),
      names,
    );
    for (const name of names) assert.equal(one[name], other[name]);
  }
});

test('the types of the binary say what it exports', () => {
  const binary = require(path.join(OURS, BINARY));
  const declared = readFileSync(path.join(OURS, 'binding.d.ts'), 'utf8');
  const values = [...declared.matchAll(/^export declare (?:class|enum|function|const) (\w+)/gm)].map(
    ([, name]) => name,
  );
  assert.deepEqual(values.sort(), Object.keys(binary).sort());
  for (const name of values) {
    // Native functions have a prototype too.
    if (!declared.includes(`export declare class ${name} `)) continue;
    const [, body] = new RegExp(`^export declare class ${name} \\{\n([^]*?)^\\}`, 'm').exec(declared) ?? [];
    assert.notEqual(body, undefined, name);
    const members = [...body.matchAll(/^ {2}(?:static )?(?:get |set )?(\w+)\(/gm)].map(([, member]) => member);
    const own = [
      ...Object.getOwnPropertyNames(binary[name].prototype),
      ...Object.getOwnPropertyNames(binary[name]).filter((member) => !OF_FUNCTIONS.includes(member)),
    ];
    assert.deepEqual(
      [...new Set([...members, 'constructor'])].sort(),
      [...new Set([...own, 'constructor'])].sort(),
      name,
    );
  }
});

test('the versions of the packages are one', () => {
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  assert.match(readFileSync(path.join(ROOT, 'Cargo.toml'), 'utf8'), new RegExp(`^version = "${version}"$`, 'm'));
});

test('no address of a download is in the lock file', () => {
  const lock = readFileSync(path.join(ROOT, 'package-lock.json'), 'utf8');
  assert.doesNotMatch(lock, /"resolved"|https?:\/\/registry/);
});
