/**
 * Standard Schema v1 (https://standardschema.dev): what zod, valibot, arktype and others let themselves be asked
 * through, and how a variable is held to a schema. Knows no library.
 */
import { shown } from './check.js';
import { InvalidParameterError } from './errors.js';

/** A schema of any library that has the interface. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** What the schema is as a JSON schema, where a library can say that (Standard JSON Schema). */
    readonly jsonSchema?: { input(options: { readonly target: string }): Record<string, unknown> } | undefined;
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
  readonly type?: 'integer' | 'number' | 'boolean';
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
    ? result.then((late) => accept(parameter, value, late))
    : accept(parameter, value, result);
}

/**
 * What a schema tells of one value, for clients to see and to complete: its type, the texts that it may be, and its
 * description. Nothing, where the library does not tell or it is more than that.
 */
export function facts(schema: StandardSchema): SchemaFacts {
  const known = jsonSchema(schema);
  const values = choices(known);
  const { type, description } = known;
  return {
    ...((type === 'integer' || type === 'number' || type === 'boolean') && { type }),
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

/** The texts of an `enum`, or of alternatives that are each a `const`. */
function choices(known: Record<string, unknown>): string[] | undefined {
  const alternatives = Array.isArray(known.anyOf) ? known.anyOf.map((one) => Object(one).const) : undefined;
  const found: unknown = known.enum ?? alternatives;
  return Array.isArray(found) && found.every((one) => typeof one === 'string') ? found : undefined;
}

function accept<Output>(parameter: string, value: unknown, result: StandardResult<Output>): Output {
  if (result.issues === undefined) return result.value;
  const reason = phrase(result.issues);
  if (value === undefined) throw new InvalidParameterError(parameter, `a value: ${reason}`);
  throw new RefusedParameter(parameter, typeof value === 'string' ? value : JSON.stringify(value), reason);
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
  const place = (first.path ?? []).map((step) => String(typeof step === 'object' ? step.key : step)).join('.');
  const line = `${place === '' ? '' : `${place}: `}${first.message}`.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST - 1).toWellFormed()}…` : line;
}
