/**
 * Checks of arguments: a wrong name or value is refused where it is passed, with the value, the reason and the fix,
 * before the compiled part sees it.
 */
import { binding } from './binding.js';

/** A test of a value, and its name in messages. */
export interface Kind {
  readonly is: (value: unknown) => boolean;
  /** The end of the sentence "expected …". */
  readonly expected: string;
}

/** The kinds of the members of an options object. */
export type Shape<T> = { readonly [N in keyof Required<T>]: Kind };

/** Advice for names that belong somewhere else. */
export type Hints = Readonly<Record<string, string>>;

export const TEXT: Kind = { is: (value) => typeof value === 'string', expected: 'a string' };
export const FLAG: Kind = { is: (value) => typeof value === 'boolean', expected: 'true or false' };
export const NUMBER: Kind = { is: (value) => typeof value === 'number', expected: 'a number' };
export const COUNT: Kind = {
  is: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  expected: 'a whole number from 0',
};
export const CALL: Kind = { is: (value) => typeof value === 'function', expected: 'a function' };
export const OBJECT: Kind = { is: isObject, expected: 'an object' };
export const TEXTS: Kind = { is: isTexts, expected: 'an array of strings' };
export const LIST: Kind = { is: Array.isArray, expected: 'an array' };
/** Anything iterable except strings. */
export const ITERABLE: Kind = {
  is: (value) => typeof value === 'object' && value !== null && Symbol.iterator in value,
  expected: 'an array or another iterable',
};

/** The same kind with another description. */
export function said(kind: Kind, expected: string): Kind {
  return { is: kind.is, expected };
}

/** One of several kinds. */
export function either(expected: string, ...kinds: readonly Kind[]): Kind {
  return { is: (value) => kinds.some((kind) => kind.is(value)), expected };
}

/** One of a few strings. */
export function oneOf(...words: readonly string[]): Kind {
  return { is: (value) => words.includes(value as string), expected: listed(words) };
}

function listed(words: readonly string[]): string {
  const quoted = words.map((word) => `"${word}"`);
  return quoted.length > 2 ? `one of ${quoted.join(', ')}` : quoted.join(' or ');
}

/**
 * Checks an options object: every name is known, and every value has the right kind.
 *
 * @throws {TypeError} the message has the value, the reason and the fix.
 */
export function checkOptions(
  what: string,
  options: unknown,
  shape: Readonly<Record<string, Kind>>,
  hints: Hints = {},
): void {
  if (!isObject(options)) throw new TypeError(`${what} takes an object of options, not ${shown(options)}`);
  for (const [name, value] of Object.entries(options)) {
    const kind = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (kind === undefined) throw unexpected('option', name, Object.keys(shape), hints);
    if (value !== undefined && !kind.is(value)) {
      throw new TypeError(`${name} is ${shown(value)}, expected ${kind.expected}`);
    }
  }
}

/** Refuses an argument that is not a string; `example` is one that is right. */
export function checkText(what: string, value: unknown, example?: string): void {
  if (typeof value === 'string') return;
  const fix = value instanceof URL ? `; pass ${what}.href` : '';
  const expected = example === undefined ? 'a string' : `a string such as "${example}"`;
  throw new TypeError(`${what} is ${shown(value)}, expected ${expected}${fix}`);
}

/** Refuses an argument that is not a function. */
export function checkFunction(what: string, value: unknown): void {
  if (typeof value !== 'function') throw new TypeError(`${what} is ${shown(value)}, expected a function`);
}

/** The error for an unknown name, with the name that was probably meant, or all known ones. */
export function unexpected(what: string, name: string, known: readonly string[], hints: Hints = {}): TypeError {
  const hint = Object.hasOwn(hints, name) ? hints[name] : undefined;
  if (hint !== undefined) return new TypeError(`unexpected ${what} "${name}"; ${hint}`);
  return new TypeError(binding.Server.unexpected(what, name, [...known]));
}

/** Longest value that an error message shows, in UTF-16 code units. */
const LONGEST = 60;

/** A value in an error message: short, on one line, without the members of an object. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    return JSON.stringify(value.length > LONGEST ? `${value.slice(0, LONGEST).toWellFormed()}…` : value);
  }
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return value.name === '' ? 'a function' : `the function ${value.name}`;
  if (typeof value === 'symbol') return 'a symbol';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array';
  if (typeof value !== 'object' || value === null) return String(value);
  const name = className(value);
  return name === 'Object' ? 'an object' : withArticle(name);
}

/** A name after "a" or "an". */
export function withArticle(name: string): string {
  return `${/^[AEIO]/i.test(name) ? 'an' : 'a'} ${name}`;
}

/** The name of the class of an object. */
export function className(value: object): string {
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name;
  return typeof name === 'string' && name !== '' ? name : 'Object';
}

/** Whether it is an object other than an array. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
