/**
 * Standard Schema v1 (https://standardschema.dev): what zod, valibot, arktype and others let themselves be asked
 * through, and how a variable is held to a schema. Knows no library.
 *
 * Law: a value has one text. A schema that converts must give a value whose text is what the client sent; an output
 * without a text of its own, such as an object, is the schema's own affair.
 */
import { isObject, shown } from './check.js';
import { InvalidParameterError } from './errors.js';
import type { JsonObject } from './results.js';
import { spellings } from './spelling.js';

/** A schema of any library that has the interface. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** The schema as a JSON schema, from libraries that have Standard JSON Schema. */
    readonly jsonSchema?:
      | {
          input(options: { readonly target: string }): Record<string, unknown>;
          output(options: { readonly target: string }): Record<string, unknown>;
        }
      | undefined;
  };
}

/** The result of a validation: the output, or the issues. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One thing that is wrong. */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The properties of a schema that are published with the template. */
export interface SchemaFacts {
  readonly type?: 'integer' | 'number' | 'boolean' | 'uuid';
  readonly values?: string[];
  readonly description?: string;
}

const DIALECT = { target: 'draft-2020-12' };

/** The longest phrase about the expected value that is sent to a client, in UTF-16 code units. */
const LONGEST = 200;

/** Whether `value` is a schema. Those of arktype are functions. */
export function isSchema(value: unknown): value is StandardSchema {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false;
  const standard = (value as Partial<StandardSchema>)['~standard'];
  return typeof standard === 'object' && standard !== null && typeof standard.validate === 'function';
}

/**
 * Holds the value of a variable to a schema. `value` is `undefined` where the URI leaves the variable out: the schema
 * says what that means.
 *
 * @returns the schema's output, or a promise of it if the schema is asynchronous.
 * @throws {InvalidParameterError} the schema refuses the value; rejects with it, if asynchronous.
 */
export function validate<Output>(
  parameter: string,
  schema: StandardSchema<unknown, Output>,
  value: unknown,
): Output | Promise<Output> {
  const result = schema['~standard'].validate(value);
  return result instanceof Promise
    ? result.then((late) => accept(parameter, schema, value, late))
    : accept(parameter, schema, value, result);
}

/**
 * What a schema tells of one value, for clients to see and to complete: its type, the texts that it may be, and its
 * description. Nothing, where the library does not tell or it is more than that.
 */
export function facts(schema: StandardSchema): SchemaFacts {
  const known = jsonSchema(schema);
  const values = choices(known);
  const { type, format, description } = known;
  return {
    ...((type === 'integer' || type === 'number' || type === 'boolean') && { type }),
    ...(type === 'string' && format === 'uuid' && { type: 'uuid' as const }),
    ...(values !== undefined && { values }),
    ...(typeof description === 'string' && { description }),
  };
}

function jsonSchema(schema: StandardSchema): Record<string, unknown> {
  try {
    return schema['~standard'].jsonSchema?.input(DIALECT) ?? {};
  } catch {
    return {}; // some schemas have no JSON form
  }
}

/**
 * The JSON schema of the values that a schema takes or gives. `what` names the schema in errors.
 *
 * @throws {TypeError} the library has none, or this schema has none.
 */
export function published(what: string, schema: StandardSchema, side: 'input' | 'output'): JsonObject {
  const { jsonSchema: made, vendor } = schema['~standard'];
  if (made === undefined) {
    throw new TypeError(
      `${what} is a schema of ${vendor} that gives no JSON schema: use zod 4.2, arktype 2.1.28 or @valibot/to-json-schema, ` +
        'or { schema, validate } with a JSON schema of your own',
    );
  }
  try {
    // The dialect is the protocol's own; some clients refuse to compile a schema that names it.
    const { $schema: _, ...rest } = made[side](DIALECT);
    return rest;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TypeError(`${what}${faultyMember(schema, side)} has no JSON schema: ${why}`, { cause: error });
  }
}

/** The member of an object schema that has no JSON schema, if its library shows the members as `shape`. */
function faultyMember(schema: StandardSchema, side: 'input' | 'output'): string {
  const members = Object.entries(Object((schema as { shape?: unknown }).shape));
  const wrong = members.find(([, member]) => {
    try {
      if (isSchema(member)) member['~standard'].jsonSchema?.[side](DIALECT);
      return false;
    } catch {
      return true;
    }
  });
  return wrong === undefined ? '' : `.${wrong[0]}`;
}

/**
 * Checks the arguments of a tool or prompt.
 *
 * @returns the schema's output, or a promise of it if the schema is asynchronous.
 * @throws {InvalidParameterError} the schema refuses them; rejects with it, if asynchronous.
 */
export function validateAll<Output>(schema: StandardSchema<unknown, Output>, given: unknown): Output | Promise<Output> {
  const result = schema['~standard'].validate(given);
  return result instanceof Promise ? result.then(acceptAll) : acceptAll(result);
}

function acceptAll<Output>(result: StandardResult<Output>): Output {
  if (result.issues === undefined) return result.value;
  const [first, ...others] = result.issues.slice(0, MOST_ISSUES);
  if (first === undefined) throw new RefusedParameter('arguments', '', 'they are not valid');
  const rest = others.map((issue) => `; ${placeOf(issue) || 'arguments'}: ${oneLine(issue.message)}`);
  throw new RefusedParameter(placeOf(first) || 'arguments', '', oneLine(first.message) + rest.join(''));
}

/** The most issues that one sentence for a model has. */
const MOST_ISSUES = 5;

/** The first issue of a value that does not fit a schema; `undefined` if it fits. */
export function issueOf(result: StandardResult<unknown>): string | undefined {
  return result.issues === undefined ? undefined : phrase(result.issues);
}

/** One argument of a prompt, as the members of an object schema tell of it. */
export interface ArgumentFacts {
  readonly name: string;
  readonly description?: string;
  readonly required: boolean;
  readonly values?: string[];
}

/**
 * The members of an object schema, as arguments of a prompt.
 *
 * @throws {TypeError} the schema has no JSON schema, or is not one of an object.
 */
export function argumentFacts(what: string, schema: StandardSchema): ArgumentFacts[] {
  const { properties, required } = published(what, schema, 'input');
  if (!isObject(properties)) throw new TypeError(`${what} is a schema without members, expected one of an object`);
  return Object.entries(properties).map(([name, member]) => {
    const known: Record<string, unknown> = Object(member);
    const values = choices(known);
    return {
      name,
      ...(typeof known.description === 'string' && { description: known.description }),
      required: Array.isArray(required) && required.includes(name),
      ...(values !== undefined && { values }),
    };
  });
}

/** The texts of an `enum`, or of alternatives that are each a `const`. */
function choices(known: Record<string, unknown>): string[] | undefined {
  const alternatives = Array.isArray(known.anyOf) ? known.anyOf.map((one) => Object(one).const) : undefined;
  const found: unknown = known.enum ?? alternatives;
  return Array.isArray(found) && found.every((one) => typeof one === 'string') ? found : undefined;
}

function accept<Output>(
  parameter: string,
  schema: StandardSchema<unknown, Output>,
  value: unknown,
  result: StandardResult<Output>,
): Output | Promise<Output> {
  if (result.issues === undefined) {
    const checked = value === undefined ? true : isSpelled(schema, value, result.value);
    const refused = () => new RefusedParameter(parameter, shownText(value), OTHER_SPELLING);
    if (checked instanceof Promise) {
      return checked.then((isRight) => {
        if (!isRight) throw refused();
        return result.value;
      });
    }
    if (!checked) throw refused();
    return result.value;
  }
  const reason = phrase(result.issues);
  if (value === undefined) throw new InvalidParameterError(parameter, `a value: ${reason}`);
  throw new RefusedParameter(parameter, shownText(value), reason);
}

function shownText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Without the text: what a schema makes of a value may be none of the client's business. */
const OTHER_SPELLING = 'expected the only spelling of this value, as the server writes it';

/** Whether `given`, a text or a list or record of texts, is the text of `output`. */
function isSpelled(schema: StandardSchema, given: unknown, output: unknown): boolean | Promise<boolean> {
  if (typeof given === 'string') {
    const texts = spellings(output);
    return texts === undefined || isFirst(schema, given, texts);
  }
  if (Array.isArray(given)) {
    if (!Array.isArray(output)) return true;
    return given.length === output.length && given.every((item, at) => isOneOf(item, output[at]));
  }
  if (!isObject(output) || !isObject(given) || spellings(output) !== undefined) return true;
  const names = Object.keys(given);
  return names.every((name) => !Object.hasOwn(output, name) || isOneOf(given[name], output[name]));
}

function isOneOf(given: unknown, output: unknown): boolean {
  const texts = spellings(output);
  return texts === undefined || texts[0] === given;
}

/** Whether `given` is the first of the texts that the schema accepts: some accept days alone, some times alone. */
function isFirst(schema: StandardSchema, given: string, texts: readonly string[]): boolean | Promise<boolean> {
  const [first, ...rest] = texts;
  if (first === undefined) return false;
  if (given === first) return true;
  if (rest.length === 0) return false;
  const result = schema['~standard'].validate(first);
  const next = (found: StandardResult<unknown>) => found.issues !== undefined && isFirst(schema, given, rest);
  return result instanceof Promise ? result.then(next) : next(result);
}

/** A schema refuses a value of the client's. */
export class RefusedParameter extends InvalidParameterError {
  constructor(
    parameter: string,
    readonly value: string,
    readonly reason: string,
  ) {
    super(parameter, `another value than ${shown(value)}: ${reason}`);
  }

  override get name(): string {
    return 'InvalidParameterError';
  }
}

/** One line for the client. A list's item or a map's value is named by where it stands. */
function phrase(issues: readonly StandardIssue[]): string {
  const [first] = issues;
  if (first === undefined) return 'it is not valid';
  const place = placeOf(first);
  return oneLine(`${place === '' ? '' : `${place}: `}${first.message}`);
}

function placeOf({ path = [] }: StandardIssue): string {
  return path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
}

function oneLine(text: string): string {
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1).toWellFormed()}…` : line;
}
