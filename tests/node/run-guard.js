// Runs a file of guard cases: a line for each failure, then `N passed, M failed`. See `tests/fixtures/run-guard`.
const { readFileSync } = require('node:fs');
const { Guard, InvalidTemplateError, InvalidUriError, RegistrationError } = require('mcp-resources');

/** How many decisions were as the cases want them, and a line for each that was not. */
function run(cases) {
  let passed = 0;
  const failures = [];
  for (const one of cases) {
    for (const [what, got, wanted] of checks(one)) {
      if (got === wanted) passed += 1;
      else failures.push(`${one.name}: ${what}: expected ${wanted}, got ${got}`);
    }
  }
  return { passed, failures };
}

/** What was asked, what was said, and what the case wants. */
function checks({ policy, explicit = false, as: who = {}, refused, never = [], missing = {}, ...lists }) {
  const guard = compiled(policy, explicit);
  if (!(guard instanceof Guard)) return [['the policy', guard, refused ?? 'accepted']];
  if (refused !== undefined) return [['the policy', 'accepted', refused]];
  const each = (words, ask) => words.flatMap((word) => (lists[word] ?? []).map((text) => [text, ask(text), word]));
  return [
    ...each(['allow', 'hidden', 'denied'], (uri) => decided(guard, uri, who)),
    ...never.map((uri) => [uri, decided(guard, uri, who).replace('invalid_uri', 'hidden'), 'hidden']),
    ...Object.entries(missing).map(([uri, scopes]) => [
      uri,
      decided(guard, uri, who),
      ['missing_scope', ...scopes].join(' '),
    ]),
    ...each(['known', 'unknown'], (template) => known(guard, template, who)),
  ];
}

/** The guard, or the field for which its policy is refused. */
function compiled(policy, explicitDenials) {
  try {
    return new Guard(policy, { explicitDenials });
  } catch (error) {
    if (!(error instanceof RegistrationError)) throw error;
    return error.message.replace(/^guard: /, '').split(': ')[0];
  }
}

/** The word for what is said of a URI, with the scopes that are missing. */
function decided(guard, uri, who) {
  try {
    const word = guard.decide(uri, who);
    return word === 'missing_scope' ? [word, ...guard.missingScopes(uri, who)].join(' ') : word;
  } catch (error) {
    if (!(error instanceof InvalidUriError)) throw error;
    return 'invalid_uri';
  }
}

/** Whether a template is listed, in the words of the format. */
function known(guard, template, who) {
  try {
    return guard.knowsTemplate(template, who) ? 'known' : 'unknown';
  } catch (error) {
    if (!(error instanceof InvalidTemplateError)) throw error;
    return error.message;
  }
}

module.exports = { run };

if (require.main === module) {
  const [, , file] = process.argv;
  if (file === undefined) {
    console.error('usage: run-guard.js FILE');
    process.exit(2);
  }
  const { passed, failures } = run(JSON.parse(readFileSync(file, 'utf8')).cases);
  for (const failure of failures) console.log(failure);
  console.log(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length > 0 ? 1 : 0;
}
