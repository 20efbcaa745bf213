/**
 * JSON of what handlers return. `JSON.stringify` turns a `Map`, a promise or an error into `{}` and drops functions:
 * here a value without a JSON form is refused, and the error names where it stands.
 */
import { bytesOf, isNumbers } from './bytes.js';
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
  const survey = new Survey();
  const fault = look(value, survey, false);
  if (fault === undefined) return written(value, root, survey);
  if (convert === undefined) throw refused(fault, root);
  const made = replaced(value, convert, []);
  const other = new Survey();
  const rest = look(made, other, false);
  if (rest !== undefined) throw refused(rest, root);
  return written(made, root, other);
}

/** What is known of a value that is looked into. */
class Survey {
  /** The objects around the place. */
  readonly above: object[] = [];
  /** Whether there are arrays of numbers, which `JSON.stringify` takes for objects with the indices as names. */
  hasNumbers = false;
}

/** The text, unless a method `toJSON` says that there is none: what it returns is not looked into before. */
function written(value: unknown, root: string, { hasNumbers }: Survey): string {
  const listed = (_: string, member: unknown) => (isNumbers(member) ? Array.from(member as Iterable<unknown>) : member);
  const text: string | undefined = hasNumbers ? JSON.stringify(value, listed) : JSON.stringify(value);
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

/** The first value without a JSON form. */
function look(value: unknown, survey: Survey, inArray: boolean): Fault | undefined {
  const { above } = survey;
  const why = typeof value === 'object' && value !== null ? faultOf(value) : scalarFault(value, inArray);
  if (why !== undefined) return { keys: [], why };
  if (typeof value !== 'object' || value === null || hasToJson(value)) return undefined;
  if (above.includes(value)) return { keys: [], why: 'contains itself; JSON has no references' };
  if (above.length === DEEPEST) return { keys: [], why: `is nested deeper than ${DEEPEST} levels` };
  above.push(value);
  if (isNumbers(value)) survey.hasNumbers = true;
  const isArray = Array.isArray(value) || isNumbers(value);
  const found = isArray ? lookIntoArray(value as readonly unknown[], survey) : lookIntoObject(value, survey);
  above.pop();
  return found;
}

function lookIntoArray(items: readonly unknown[], survey: Survey): Fault | undefined {
  for (let at = 0; at < items.length; at += 1) {
    const found = look(items[at], survey, true);
    if (found !== undefined) return within(at, found);
  }
  return undefined;
}

function lookIntoObject(value: object, survey: Survey): Fault | undefined {
  for (const key of Object.keys(value)) {
    const found = look((value as Record<string, unknown>)[key], survey, false);
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
  if (isNumbers(value)) return undefined;
  if (bytesOf(value) !== undefined) {
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
  if (isNumbers(found)) return Array.from(found as Iterable<unknown>, (item) => replaced(item, convert, inner));
  if (Array.isArray(found)) return found.map((item) => replaced(item, convert, inner));
  return Object.fromEntries(Object.entries(found).map(([key, item]) => [key, replaced(item, convert, inner)]));
}
