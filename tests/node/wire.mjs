// The wire fixtures as data: the files of cases, their short forms written out, and the comparison.
// Knows nothing of the library: `tests/fixtures/README.md` describes the format.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { MODERN, ROOT } from './vectors.mjs';

const FIXTURES = path.join(ROOT, 'tests', 'fixtures');
const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', MODERN];
const META = 'io.modelcontextprotocol/';

/** Errors by their kind: the code before 2026-07-28, and the code there (DEC-20). */
const CODES = {
  not_found: [-32002, -32602],
  invalid_parameter: [-32602, -32602],
  access_denied: [-32003, -31003],
  invalid_uri: [-32602, -32602],
  read_error: [-32603, -32603],
  size_exceeded: [-32603, -31013],
  timeout: [-32603, -31008],
  rate_limited: [-32603, -31029],
  input_required: [-32603, -32603],
  input_declined: [-32603, -32602],
};

/** One run of one case: under one revision, or under none when its steps say all. */
export class Case {
  constructor(file, revision, members) {
    this.file = file;
    this.revision = revision;
    this.members = members;
  }

  toString() {
    const name = `${this.file}: ${this.members.name}`;
    return this.revision === undefined ? name : `${name} [${this.revision}]`;
  }

  get legacy() {
    return this.revision !== undefined && this.revision !== MODERN;
  }

  /** The catalogue, with the options of the case. */
  catalog() {
    const catalog = read(`catalog/${this.members.catalog ?? 'basic'}.json`);
    catalog.options = { ...catalog.options, ...this.members.options };
    return catalog;
  }

  steps() {
    return [...unrolled(this.members.steps)];
  }
}

/** A fixture, with the members of every object sorted. */
export function read(file) {
  return JSON.parse(write(JSON.parse(readFileSync(path.join(FIXTURES, file), 'utf8'))));
}

/** Every run of every case, in the order of files, cases and revisions. */
export function* cases() {
  const files = readdirSync(path.join(FIXTURES, 'wire')).filter((name) => name.endsWith('.json'));
  for (const file of files.sort()) {
    const { cases: given, ...defaults } = read(`wire/${file}`);
    for (const one of given) {
      const members = { ...defaults, ...one };
      for (const revision of revisions(members.revisions)) yield new Case(file, revision, members);
    }
  }
}

/** JSON without spaces and with sorted members: the same text in every language. */
export function write(value) {
  if (Array.isArray(value)) return `[${value.map(write).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const names = Object.keys(value).sort(byCodePoint);
  return `{${names.map((name) => `${JSON.stringify(name)}:${write(value[name])}`).join(',')}}`;
}

/** A request or notification of the short form, as the client sends it. */
export function outgoing(short, revision, capabilities) {
  const message = { ...short, jsonrpc: '2.0' };
  if ('id' in short && revision === MODERN) {
    const own = { [`${META}protocolVersion`]: MODERN, [`${META}clientCapabilities`]: capabilities };
    message.params = { ...message.params, _meta: { ...own, ...message.params?._meta } };
  }
  return message;
}

/** `value` with its references and repetitions written out. */
export function resolve(value, bound) {
  if (Array.isArray(value)) return value.map((item) => resolve(item, bound));
  if (!isObject(value)) return value;
  if ('$ref' in value) return changed(bound.get(value.$ref), value);
  if ('$repeat' in value) {
    const [prefix, unit, times] = value.$repeat;
    return prefix + unit.repeat(times);
  }
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolve(item, bound)]));
}

/** Whether an object of this name is anywhere in the value. */
export function mentions(value, name) {
  if (Array.isArray(value)) return value.some((item) => mentions(item, name));
  return isObject(value) && (name in value || Object.values(value).some((item) => mentions(item, name)));
}

/** What the short forms of what is sent are written out with. */
export class Terms {
  constructor(one, catalog) {
    this.revision = one.revision;
    const { instructions: _, ...serverInfo } = catalog.server;
    this.serverInfo = serverInfo;
  }

  /** One expected message, or several. */
  message(short) {
    if (Array.isArray(short)) return short.map((item) => this.message(item));
    if ('$set' in short) return { $set: this.message(short.$set) };
    const message = { ...short };
    const isShort = !('jsonrpc' in message);
    if (isShort) {
      message.jsonrpc = '2.0';
      if ('result' in message) message.result = this.#result(message.result);
    }
    if ('error' in message) {
      message.error = this.#error(message.error);
      const isNull = isShort && this.revision !== undefined && this.revision <= '2025-06-18';
      if (isNull && !('id' in message)) message.id = null;
    }
    return message;
  }

  #result(result) {
    if (!isObject(result) || '$open' in result || this.revision === undefined) return result;
    if (this.revision !== MODERN) {
      const { ttlMs: _, cacheScope: __, ...rest } = result;
      return rest;
    }
    const full = { resultType: 'complete', _meta: { [`${META}serverInfo`]: this.serverInfo }, ...result };
    const cacheable = ['contents', 'resources', 'resourceTemplates', 'supportedVersions', 'tools', 'prompts'];
    const isCached = full.resultType === 'complete' && cacheable.some((name) => name in full);
    return isCached ? { ttlMs: 0, cacheScope: 'private', ...full } : full;
  }

  #error(error) {
    const { kind } = error;
    const full =
      kind === undefined
        ? error
        : {
            code: CODES[kind][Number(this.revision === MODERN)],
            message: kind === 'not_found' ? 'Resource not found' : { $line: true },
            data: error,
          };
    return { message: { $line: true }, data: { $any: true }, ...full };
  }
}

/** Where the two differ, and how; `undefined` if they do not. Remembers what `$bind` names. */
export function compare(expected, actual, bound, at = '') {
  if (isObject(expected) && Object.keys(expected).some((name) => name.startsWith('$'))) {
    return match(expected, actual, bound, at);
  }
  if (isObject(expected) && isObject(actual)) {
    const extra = Object.keys(actual).find((name) => !(name in expected));
    return extra === undefined
      ? open(expected, actual, bound, at)
      : `${at}/${extra}: ${show(actual[extra])} is not expected`;
  }
  if (Array.isArray(expected) && Array.isArray(actual) && expected.length === actual.length) {
    return first(expected.map((item, index) => () => compare(item, actual[index], bound, `${at}/${index}`)));
  }
  return expected === actual ? undefined : `${at}: ${show(actual)} instead of ${show(expected)}`;
}

function open(expected, actual, bound, at) {
  return first(
    Object.entries(expected).map(([name, item]) => () => {
      if (name in actual) return compare(item, actual[name], bound, `${at}/${name}`);
      return isObject(item) && '$any' in item ? undefined : `${at}/${name} is missing, expected ${show(item)}`;
    }),
  );
}

function match(matcher, actual, bound, at) {
  if ('$any' in matcher) return undefined;
  if ('$line' in matcher && typeof actual === 'string' && actual !== '' && !/[\r\n]/.test(actual)) return undefined;
  if ('$bind' in matcher && typeof actual === 'string' && actual !== '') {
    bound.set(matcher.$bind, actual);
    return undefined;
  }
  if ('$in' in matcher && matcher.$in.some((choice) => compare(choice, actual, bound) === undefined)) return undefined;
  if ('$open' in matcher && isObject(actual)) return open(matcher.$open, actual, bound, at);
  if ('$set' in matcher && Array.isArray(actual)) return set(matcher.$set, actual, bound, at);
  return `${at}: ${show(actual)} does not match ${show(matcher)}`;
}

function set(items, actual, bound, at) {
  const left = [...actual];
  for (const item of items) {
    const found = left.findIndex((value) => compare(item, value, bound) === undefined);
    if (found < 0) return `${at}: ${show(item)} is not among ${show(actual)}`;
    left.splice(found, 1);
  }
  return left.length === 0 ? undefined : `${at}: ${show(left[0])} is not expected`;
}

function changed(text, { flip, cut = 0 }) {
  if (flip !== undefined) {
    const at = Math.min(flip, text.length - 1);
    return changed(`${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`, { cut });
  }
  return text.slice(0, text.length - cut);
}

function revisions(given) {
  if (given === undefined) return [undefined];
  const named = { all: REVISIONS, legacy: REVISIONS.slice(0, -1), modern: REVISIONS.slice(-1) };
  const chosen = typeof given === 'string' ? named[given] : given;
  return REVISIONS.filter((revision) => chosen.includes(revision));
}

function* unrolled(steps) {
  for (const step of steps) {
    if ('repeat' in step) for (let time = 0; time < step.repeat; time += 1) yield* unrolled(step.steps);
    else yield step;
  }
}

function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function first(checks) {
  for (const check of checks) {
    const differs = check();
    if (differs !== undefined) return differs;
  }
  return undefined;
}

function show(value) {
  return JSON.stringify(value);
}

function byCodePoint(one, other) {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}
