// The wire fixtures through the public API: `ResourceServer` with functions, and `Connection` of `mcp-resources/testing`.
// What the server sent is written to `target/fixtures/node.out`; `tests/fixtures/compare.py` holds it equal to Rust's.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { ROOT, record } from './vectors.mjs';
import { cases } from './wire.mjs';
import { Host, unobservable } from './wire-host.mjs';

const sent = [];

after(() => {
  const folder = path.join(ROOT, 'target', 'fixtures');
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, 'node.out'), Buffer.concat(sent));
});

for (const one of cases()) {
  test(String(one), { skip: unobservable(one) ?? false }, async () => {
    const host = new Host(one);
    try {
      await host.run();
    } finally {
      await host.end();
    }
    record({ of: String(one), cites: JSON.stringify(one.members.covers ?? []) });
    sent.push(Buffer.from(`# ${one}\n`), ...host.sent, Buffer.from('\n'));
  });
}
