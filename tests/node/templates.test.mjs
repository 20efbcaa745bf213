// `UriTemplate` and `TemplateSet` by themselves, the shared corpus (DEC-14), and the cases of uritemplate-test.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import {
  InvalidTemplateError,
  InvalidUriError,
  Match,
  NoMatch,
  Rejected,
  TemplateConflictError,
  TemplateSet,
  UriTemplate,
} from 'mcp-resources';
import match from './run-match.js';
import { directory, ROOT } from './vectors.mjs';

test('the corpus passes', () => {
  const { cases } = JSON.parse(readFileSync(path.join(ROOT, 'tests/fixtures/match/corpus.json'), 'utf8'));
  const { passed, failures } = match.run(cases);
  assert.deepEqual(failures, []);
  assert.ok(passed >= 327);
});

test('a wrong expectation is a failure', () => {
  for (const wrong of [
    { uri: 'x://1', outcome: 'match', expect: { template: 'x://{a}', vars: { a: '2' } } },
    { uri: 'x://1', outcome: 'none' },
    { uri: 'x://..', outcome: 'rejected', var: 'a', why: 'Slash' },
    { uri: null, outcome: 'conflict' },
  ]) {
    const { passed, failures } = match.run([{ id: 'x', template: 'x://{a}', ...wrong }]);
    assert.deepEqual([passed, failures.length], [0, 1]);
  }
});

const vectors = directory('uritemplate-test');
const why = vectors === undefined && 'no cases of uritemplate-test: make setup';
test('the cases of uritemplate-test pass', { skip: why }, () => {
  let passed = 0;
  for (const file of readdirSync(vectors).filter((name) => name.endsWith('.json'))) {
    for (const group of Object.values(JSON.parse(readFileSync(path.join(vectors, file), 'utf8')))) {
      for (const [template, expected] of group.testcases) {
        assert.ok(agrees(expected, expansion(template, group.variables)), `${file}: ${template} gives ${expected}`);
        passed += 1;
      }
    }
  }
  assert.ok(passed >= 200, `${passed}`);
});

/** `undefined`: it cannot be parsed or expanded; `null`: no URI could be of it, so that it is refused at once. */
function expansion(template, variables) {
  try {
    return new UriTemplate(`x:/${template}`).expand(variables).slice('x:/'.length);
  } catch (error) {
    return error instanceof InvalidTemplateError ? null : undefined;
  }
}

/** What only matching refuses, such as `{a}{b}`, is not held against expansion. */
function agrees(expected, got) {
  if (expected === false) return got === undefined || got === null;
  if (got === null) return true;
  return Array.isArray(expected) ? expected.includes(got) : expected === got;
}

test('expansion', () => {
  const template = new UriTemplate('docs://{name}{?tags*,page}');
  assert.equal(template.expand({ name: '設計.md' }), 'docs://%E8%A8%AD%E8%A8%88.md');
  assert.equal(template.expand({ name: 'a b', tags: ['x', 'y'], page: 2 }), 'docs://a%20b?tags=x&tags=y&page=2');
  assert.equal(template.expand({ name: null, page: undefined }), 'docs://');
  assert.equal(new UriTemplate('a://h{?m*}').expand({ m: { k: 1.5 } }), 'a://h?k=1.5');
  assert.equal(String(template), 'docs://{name}{?tags*,page}');
  assert.throws(() => template.expand({ name: Symbol('s') }), TypeError);
  assert.throws(() => new UriTemplate('a://{x:3}').expand({ x: ['a'] }), /prefix/);
});

test('matching', () => {
  const vars = { ids: { kind: 'list' }, m: { kind: 'map' } };
  const template = new UriTemplate('a://h{/path*}{?ids,m*}', vars);
  const found = template.match('a://h/x/y?ids=1,2&k=v');
  assert.ok(found instanceof Match);
  assert.equal(found.template, 'a://h{/path*}{?ids,m*}');
  assert.deepEqual({ ...found.params }, { path: ['x', 'y'], ids: ['1', '2'], m: { k: 'v' } });
  assert.ok(template.match('b://h') instanceof NoMatch);
  const rejected = new UriTemplate('a://h/{x}').match('a://h/a%2Fb');
  assert.ok(rejected instanceof Rejected);
  assert.deepEqual([rejected.template, rejected.variable, rejected.why], ['a://h/{x}', 'x', 'Slash']);
  assert.ok(new UriTemplate('a://h/{x}', { x: { policy: 'any' } }).match('a://h/a%2Fb') instanceof Match);
  assert.ok(new UriTemplate('a://h{?x}', {}, { extraQuery: 'reject' }).match('a://h?x=1&y=2') instanceof NoMatch);
  assert.throws(() => template.match('no uri'), InvalidUriError);
});

test('variables', () => {
  const { variables } = new UriTemplate('a://{x}/{+rest}{?q}', { x: { empty: true } });
  const told = Object.entries(variables).map(([name, { kind, policy, empty, required }]) => [
    name,
    kind,
    policy,
    empty,
    required,
  ]);
  assert.deepEqual(told, [
    ['x', 'scalar', 'segment', true, true],
    ['rest', 'scalar', 'path', false, true],
    ['q', 'scalar', 'text', false, false],
  ]);
  assert.throws(() => new UriTemplate('a://{x}', { x: { kind: 'lists' } }), /kind/);
});

test('a set prefers the most specific', () => {
  for (const texts of [
    ['a://{x}', 'a://one{?q}'],
    ['a://one{?q}', 'a://{x}'],
  ]) {
    const templates = new TemplateSet(texts);
    assert.equal(templates.size, 2);
    const found = templates.match('A://one');
    assert.ok(found instanceof Match);
    assert.equal(found.template, 'a://one{?q}');
  }
  assert.ok(new TemplateSet([new UriTemplate('a://{x}')]).match('b://x') instanceof NoMatch);
  assert.throws(
    () => new TemplateSet(['a://{x}', new UriTemplate('a://{y}')]),
    (error) => {
      assert.ok(error instanceof TemplateConflictError);
      assert.deepEqual([error.template, error.other].sort(), ['a://{x}', 'a://{y}']);
      return true;
    },
  );
  assert.throws(
    () => new TemplateSet(['a://{x}{y}']),
    (error) => error instanceof InvalidTemplateError && error.offset > 0,
  );
});
