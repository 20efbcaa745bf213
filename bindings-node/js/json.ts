/**
 * JSON of what handlers return. `JSON.stringify` turns a `Map`, a promise or an error into `{}` and drops functions:
 * here a value without a JSON form is refused, and the error names where it stands.
 */
import { className, withArticle } from './check.js';

/** Gives a value in place of one that has no JSON form; `undefined` if it has none either. */
export type ToJson = (value: unknown) => unknown;

/** A fault of a value, and the path of keys to it, outermost first. */
interface Fault {
  readonly keys: PropertyKey[];
  readonly why: string;
}

/** Deepest nesting that is looked into. */
const DEEPEST = 1_000;

/**
 * JSON text. `convert` is asked for each value that has no JSON form; `root` names the value in errors.
 *
 * @throws {TypeError} a value has no JSON form; the message names its place, such as `rows[3].at`.
 */
export function jsonText(value: unknown, convert?: ToJson, root = ''): string {
  const fault = look(value, [], false);
  if (fault === undefined) return written(value, root);
  if (convert === undefined) throw refused(fault, root);
  const made = replaced(value, convert, []);
  const rest = look(made, [], false);
  if (rest !== undefined) throw refused(rest, root);
  return written(made, root);
}

/** The text, unless a method `toJSON` says that there is none: what it returns is not looked into before. */
function written(value: unknown, root: string): string {
  const text: string | undefined = JSON.stringify(value);
  if (text !== undefined) return text;
  const why = hasToJson(value as object)
    ? 'has a toJSON() that returned nothing; return a value from it'
    : 'is undefined; use null';
  throw refused({ keys: [], why }, root);
}

function refused({ keys, why }: Fault, root: string): TypeError {
  const place = root + keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return new TypeError(`${place === '' ? 'the value' : `the value at ${place.replace(/^\./, '')}`} ${why}`);
}

/** The first value without a JSON form. `above` are the objects around it. */
function look(value: unknown, above: object[], inArray: boolean): Fault | undefined {
  const why = typeof value === 'object' && value !== null ? faultOf(value) : scalarFault(value, inArray);
  if (why !== undefined) return { keys: [], why };
  if (typeof value !== 'object' || value === null || hasToJson(value)) return undefined;
  if (above.includes(value)) return { keys: [], why: 'contains itself; JSON has no references' };
  if (above.length === DEEPEST) return { keys: [], why: `is nested deeper than ${DEEPEST} levels` };
  above.push(value);
  const found = Array.isArray(value) ? lookIntoArray(value, above) : lookIntoObject(value, above);
  above.pop();
  return found;
}

function lookIntoArray(items: readonly unknown[], above: object[]): Fault | undefined {
  for (let at = 0; at < items.length; at += 1) {
    const found = look(items[at], above, true);
    if (found !== undefined) return within(at, found);
  }
  return undefined;
}

function lookIntoObject(value: object, above: object[]): Fault | undefined {
  for (const key of Object.keys(value)) {
    const found = look((value as Record<string, unknown>)[key], above, false);
    if (found !== undefined) return within(key, found);
  }
  return undefined;
}

function within(key: PropertyKey, fault: Fault): Fault {
  fault.keys.unshift(key);
  return fault;
}

function scalarFault(value: unknown, inArray: boolean): string | undefined {
  switch (typeof value) {
    case 'number':
      return Number.isFinite(value) ? undefined : `is ${value}, which JSON does not have; use null or a string`;
    case 'bigint':
      return `is the BigInt ${value}n; use Number(value) or String(value), or convert it with the option json`;
    case 'function':
      return `is a function${value.name === '' ? '' : ` (${value.name})`}, which has no JSON form; call it, or leave it out`;
    case 'symbol':
      return 'is a symbol, which has no JSON form; use a string';
    case 'undefined':
      return inArray ? 'is undefined, which an array in JSON cannot have; use null' : undefined;
    default:
      return undefined;
  }
}

/** Why an object has no JSON form. */
function faultOf(value: object): string | undefined {
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return undefined;
  if (value instanceof Map) return 'is a Map; use Object.fromEntries(map)';
  if (value instanceof Set) return 'is a Set; use [...set]';
  if (typeof (value as PromiseLike<unknown>).then === 'function') return 'is a Promise; await it, or use Promise.all';
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return `is ${withArticle(className(value))}; encode it, such as Buffer.from(bytes).toString('base64'), or return the bytes by themselves`;
  }
  if (value instanceof Date && Number.isNaN(value.getTime())) return 'is an invalid Date; use null';
  if (hasToJson(value) || Array.isArray(value)) return undefined;
  if (value instanceof Error)
    return `is the error ${className(value)}: ${value.message}; throw it, or use error.message`;
  const isBox = value instanceof String || value instanceof Number || value instanceof Boolean;
  const isOpaque = Object.keys(value).length === 0 && !isBox;
  return isOpaque
    ? `is ${withArticle(className(value))} without properties, which would become {}; use a plain object`
    : undefined;
}

function hasToJson(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function' && !ArrayBuffer.isView(value);
}

/** A copy in which the option `json` has converted values without a JSON form. */
function replaced(value: unknown, convert: ToJson, above: readonly object[]): unknown {
  const isWrong = (one: unknown) =>
    typeof one === 'object' && one !== null ? faultOf(one) !== undefined : scalarFault(one, true) !== undefined;
  const found = isWrong(value) && value !== undefined ? (convert(value) ?? value) : value;
  if (typeof found !== 'object' || found === null || isWrong(found) || hasToJson(found)) return found;
  if (above.includes(found) || above.length === DEEPEST) return found;
  const inner = [...above, found];
  if (Array.isArray(found)) return found.map((item) => replaced(item, convert, inner));
  return Object.fromEntries(Object.entries(found).map(([key, item]) => [key, replaced(item, convert, inner)]));
}
