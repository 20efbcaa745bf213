/** Converts matched values of variables to those that a handler gets. */
import type { Variable } from '../binding.js';
import type { AnyParameter, Param } from './options.js';
import { isSchema, type StandardSchema, validate } from './schema.js';

/** Converts a matched value to the one that the handler gets, or a promise of it. */
type Convert = (value: unknown) => unknown;

interface Slot {
  readonly name: string;
  readonly convert: Convert | undefined;
  /** Whether a value that is left out is converted too. */
  readonly always: boolean;
}

/** How the values of one template are read. */
export class Values {
  readonly #slots: readonly Slot[];

  constructor(variables: readonly (readonly [string, Variable])[], parameters: Readonly<Record<string, AnyParameter>>) {
    this.#slots = variables.map(([name, variable]) => slot(name, variable, parameters[name]));
  }

  /** The variables that are there, by name; a promise of them, if a schema is asynchronous. */
  read(values: readonly unknown[]): Record<string, unknown> | Promise<Record<string, unknown>> {
    const variables: Record<string, unknown> = {};
    let late: Promise<void>[] | undefined;
    for (let at = 0; at < this.#slots.length; at += 1) {
      const { name, convert, always } = this.#slots[at] as Slot;
      const value = values[at];
      if (value === undefined && !always) continue;
      const converted = convert === undefined ? value : convert(value);
      if (converted instanceof Promise) {
        late ??= [];
        late.push(converted.then((found) => set(variables, name, found)));
      } else {
        set(variables, name, converted);
      }
    }
    return late === undefined ? variables : Promise.all(late).then(() => variables);
  }
}

/** An object with names that a client chose. It has no prototype, so that no name has a special meaning. */
export function record<T>(entries: Iterable<readonly [string, T]>): Record<string, T> {
  return Object.setPrototypeOf(Object.fromEntries(entries), null);
}

function set(variables: Record<string, unknown>, name: string, value: unknown): void {
  if (value !== undefined) variables[name] = value;
}

function slot(name: string, { kind }: Variable, parameter: AnyParameter | undefined): Slot {
  const shape = kind === 'map' ? (pairs: unknown) => Object.fromEntries(pairs as [string, string][]) : undefined;
  if (isSchema(parameter)) return { name, convert: held(name, parameter, shape), always: true };
  const scalar = parameter === undefined ? undefined : SCALARS[parameter.type ?? 'string'];
  return { name, convert: each(kind, scalar) ?? shape, always: false };
}

function held(name: string, schema: StandardSchema, shape: Convert | undefined): Convert {
  return (value) => validate(name, schema, shape === undefined || value === undefined ? value : shape(value));
}

/** Types that are no text. The compiled part has checked the value. */
const SCALARS: Partial<Record<NonNullable<Param['type']>, (text: string) => unknown>> = {
  integer: Number,
  number: Number,
  boolean: (text) => text === 'true',
};

function each(kind: Variable['kind'], scalar: ((text: string) => unknown) | undefined): Convert | undefined {
  if (scalar === undefined) return undefined;
  if (kind === 'list') return (items) => (items as string[]).map(scalar);
  if (kind === 'map') {
    return (pairs) => Object.fromEntries((pairs as [string, string][]).map(([key, value]) => [key, scalar(value)]));
  }
  return scalar as Convert;
}
