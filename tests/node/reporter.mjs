// Says what failed and why, what was left out and why, and how many tests there were.
import path from 'node:path';
import { record } from './vectors.mjs';

/** How much is shown of what a file printed in which a test failed. */
const PRINTED = 4_000;

/** @param {AsyncIterable<{ type: string, data: any }>} source */
export default async function* report(source) {
  const counts = { pass: 0, fail: 0, skip: 0 };
  const skipped = new Map();
  const printed = new Map();
  const broken = new Set();
  for await (const { type, data } of source) {
    if (type === 'test:stderr' || type === 'test:stdout') {
      printed.set(data.file, (printed.get(data.file) ?? '') + data.message);
    }
    if (type === 'test:fail') broken.add(data.file);
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.details?.type === 'suite' || isFile(data)) {
      if (type === 'test:fail' && !isSubtestFailure(data)) yield failure(data);
      continue;
    }
    const why = data.skip ?? (data.todo === undefined ? undefined : `to do: ${data.todo}`);
    if (why !== undefined) {
      counts.skip += 1;
      skipped.set(why, (skipped.get(why) ?? 0) + 1);
      record({ of: data.name, left_out: String(why) });
    } else if (type === 'test:pass') {
      counts.pass += 1;
      record({ of: data.name, cites: data.name });
    } else {
      counts.fail += 1;
      yield failure(data);
    }
  }
  for (const file of broken) {
    if (printed.has(file))
      yield `${path.relative(process.cwd(), file)} printed:\n${printed.get(file).slice(-PRINTED)}\n`;
  }
  for (const [why, count] of skipped) yield `left out: ${count}, because ${why}\n`;
  if (counts.fail === 0 && broken.size === 0) record({ ended: true });
  yield `Node ${process.versions.node}: ${counts.pass} passed, ${counts.fail} failed, ${counts.skip} left out\n`;
}

/** Node reports a whole file as a test of its own, at the top. */
function isFile({ name, nesting }) {
  return nesting === 0 && path.isAbsolute(name);
}

function isSubtestFailure({ details }) {
  return details?.error?.failureType === 'subtestsFailed';
}

function failure({ name, file, line, details }) {
  const cause = details?.error?.cause ?? details?.error;
  const where = file === undefined ? '' : ` (${path.relative(process.cwd(), file)}:${line})`;
  return `FAILED ${name}${where}\n${String(cause?.stack ?? cause).replaceAll(/^/gm, '    ')}\n`;
}
