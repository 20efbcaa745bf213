// Runs a file of match cases: a line for each failure, then `N passed, M failed`. See `tests/fixtures/run-match`.
const { readFileSync } = require('node:fs');
const { isDeepStrictEqual } = require('node:util');
const {
  InvalidTemplateError,
  InvalidUriError,
  Match,
  Rejected,
  TemplateConflictError,
  TemplateSet,
  UriTemplate,
} = require('mcp-resources');

const REFUSALS = [
  [InvalidTemplateError, 'invalid_template'],
  [TemplateConflictError, 'conflict'],
  [InvalidUriError, 'invalid_uri'],
];

/** How many cases passed, and a line for each that did not. Each is run in both orders of registration. */
function run(cases) {
  const failures = [];
  for (const one of cases) {
    const texts = one.templates ?? [one.template];
    for (const order of [texts, [...texts].reverse()]) {
      const got = outcome(one, order);
      if (isDeepStrictEqual(got, expected(one, got))) continue;
      failures.push(`${one.id}: ${order} on ${one.uri}: ${JSON.stringify(got)}`);
      break;
    }
  }
  return { passed: cases.length - failures.length, failures };
}

/** What a case wants; what it leaves open is as it was got. */
function expected(one, got) {
  if (one.outcome === 'match') return { outcome: one.outcome, ...one.expect };
  if (one.outcome !== 'rejected') return { outcome: one.outcome };
  return { outcome: one.outcome, var: one.var ?? got.var, why: one.why ?? got.why };
}

/** What a case gives, in the words of the format. */
function outcome({ opts: { vars = {}, extra_query: extraQuery = 'ignore' } = {}, uri }, texts) {
  try {
    const templates = texts.map((text) => new UriTemplate(text, vars, { extraQuery }));
    const set = new TemplateSet(templates);
    if (uri === null) return { outcome: 'registered' };
    const found = described(set.match(uri));
    const [alone, ...others] = templates;
    if (others.length === 0 && !isDeepStrictEqual(described(alone.match(uri)), found)) {
      return { outcome: 'something else without an index' };
    }
    return found;
  } catch (error) {
    const refusal = REFUSALS.find(([kind]) => error instanceof kind);
    if (refusal === undefined) throw error;
    return { outcome: refusal[1] };
  }
}

/** A lookup in the words of the format. */
function described(found) {
  if (found instanceof Match) return { outcome: 'match', template: found.template, vars: plain(found.params) };
  if (found instanceof Rejected) return { outcome: 'rejected', var: found.variable, why: found.why };
  return { outcome: 'none' };
}

/** Without the prototypes, that the comparison would see. */
function plain(value) {
  return JSON.parse(JSON.stringify(value));
}

module.exports = { run };

if (require.main === module) {
  const [, , file] = process.argv;
  if (file === undefined) {
    console.error('usage: run-match.js FILE');
    process.exit(2);
  }
  const { passed, failures } = run(JSON.parse(readFileSync(file, 'utf8')).cases);
  for (const failure of failures) console.log(failure);
  console.log(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length > 0 ? 1 : 0;
}
