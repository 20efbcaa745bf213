/**
 * The options of a URI template (RFC 6570), and from its text to the types of its variables: types only, nothing at run
 * time.
 *
 * They say what the engine gives a handler: a text, or a list where the variable is exploded, or what `vars` says; and
 * a variable that a URI may leave out is optional. A template that is not a literal has variables of any name.
 */
import type { StandardSchema } from './schema.js';

/** The rules by which one variable of a template matches. */
export interface Variable {
  /** The type of the value. Default: `list` for a variable with `*`, else `scalar`. */
  readonly kind?: 'scalar' | 'list' | 'map';
  /**
   * The values that are accepted: `segment`, `path` and `text` refuse values that are dangerous in such a place; `any`
   * accepts all. Default: `path` for `{+x}`, `text` in a query or fragment, else `segment`.
   */
  readonly policy?: 'segment' | 'path' | 'text' | 'any';
  /** Whether the value of `{x}` and `{+x}` may be empty. Default `false`. */
  readonly empty?: boolean;
  /** The characters of `{+x}`: `any` also accepts `?` and `#`. Default `operator`: those that RFC 6570 gives the operator. */
  readonly chars?: 'operator' | 'any';
}

/** The rules of a variable in a template. */
export interface VariableInfo extends Required<Variable> {
  /** Whether every URI of the template has a value for it. */
  readonly required: boolean;
}

/** The options of a template. */
export interface TemplateOptions {
  /** Whether a URI with query parameters that the template does not have still matches. Default `ignore`: it does. */
  readonly extraQuery?: 'ignore' | 'reject';
}

/** The value of a variable as the engine matches it: percent-decoded once. */
export type TemplateValue = string | string[] | Record<string, string>;

/** How single variables match, as far as types depend on it. */
export type VariableKinds = { readonly [name: string]: { readonly kind?: unknown } | undefined };

/** The parameters on which the types of variables depend: a schema, or a `Param`. */
export type VariableParameters = { readonly [name: string]: unknown };

/**
 * The variables of a template, by name, as a handler is given them.
 *
 * @typeParam T - the template's text.
 * @typeParam V - `vars`: a `kind` of `list` or `map` makes a list or a record.
 * @typeParam P - `parameters`: a schema's output, or the `type` and `values` of a `Param`, replaces the text.
 */
export type Variables<T extends string, V = {}, P = {}> = string extends T
  ? Record<string, Dynamic<P>>
  : Flat<
      { [N in Present<T, P>]: Value<T, N, V, P> } & {
        [N in Exclude<VariableName<T>, Present<T, P>>]?: Value<T, N, V, P>;
      }
    >;

/** The names of a template's variables; any text, where the template is not a literal. */
export type VariableName<T extends string> = string extends T ? string : NameOf<SpecOf<Expressions<T>>>;

/** Values for {@link VariableName}s, to expand a template. A variable that is left out or `undefined` is undefined. */
export type Expandable<T extends string> = { readonly [N in VariableName<T>]?: ExpandableValue };

type Atom = string | number | bigint;
/** A value with which a variable can be expanded. */
export type ExpandableValue = Atom | readonly Atom[] | { readonly [key: string]: Atom } | null | undefined;

/** The value of the only variable of a template, or of the only one that every URI has; nothing otherwise. */
export type SingleValue<T extends string> =
  IsSingle<VariableName<T>> extends true ? Atom : IsSingle<RequiredName<T>> extends true ? Atom : never;

type IsSingle<N> = [N] extends [never] ? false : IsUnion<N> extends false ? true : false;

type IsUnion<N, All = N> = N extends unknown ? ([All] extends [N] ? false : true) : never;

/** The variables that every URI of the template defines: the first of `{x,y}` and of `{+x,y}`. */
export type RequiredName<T extends string> = string extends T ? never : RequiredOf<Expressions<T>>;

type Operator = '+' | '#' | '.' | '/' | ';' | '?' | '&';
type Flat<O> = { [N in keyof O]: O[N] };

/** The texts between braces, as a union. */
type Expressions<T extends string, Found extends string = never> = T extends `${string}{${infer E}}${infer Rest}`
  ? Expressions<Rest, Found | E>
  : Found;

/** The variable specifications of expressions, with their modifiers. */
type SpecOf<E extends string> = E extends `${Operator}${infer List}` ? Split<List> : Split<E>;
type Split<L extends string, Found extends string = never> = L extends `${infer Spec},${infer Rest}`
  ? Split<Rest, Found | Spec>
  : Found | L;

type NameOf<S extends string> = S extends `${infer N}*` ? N : S extends `${infer N}:${string}` ? N : S;
type Exploded<S extends string> = S extends `${infer N}*` ? N : never;

type RequiredOf<E extends string> = E extends `+${infer List}`
  ? First<List>
  : E extends `${Operator}${string}`
    ? never
    : First<E>;
type First<L extends string> = L extends `${infer Spec},${string}` ? NameOf<Spec> : NameOf<L>;

/** Those that are there in every call: as the template says, or because a schema answers for a missing value too. */
type Present<T extends string, P> =
  | Exclude<RequiredName<T>, SchemaName<P>>
  | { [N in VariableName<T> & SchemaName<P>]: undefined extends Output<P[N & keyof P]> ? never : N }[VariableName<T> &
      SchemaName<P>];
type SchemaName<P> = { [N in keyof P]: P[N] extends StandardSchema ? N : never }[keyof P];

type Value<T extends string, N extends string, V, P> = N extends keyof P
  ? P[N] extends StandardSchema
    ? Output<P[N]>
    : Shaped<Kind<T, N, V>, Scalar<P[N]>>
  : Shaped<Kind<T, N, V>, string>;

type Kind<T extends string, N extends string, V> = N extends keyof V
  ? V[N] extends { readonly kind: infer K extends string }
    ? K
    : KindOf<T, N>
  : KindOf<T, N>;
type KindOf<T extends string, N extends string> = N extends Exploded<SpecOf<Expressions<T>>> ? 'list' : 'scalar';

type Shaped<K extends string, S> = string extends K
  ? S | S[] | Record<string, S>
  : K extends 'list'
    ? S[]
    : K extends 'map'
      ? Record<string, S>
      : S;

/** The output of a schema, in the words of Standard Schema. */
type Output<S> = S extends StandardSchema<unknown, infer O> ? O : never;

/** The type of one value under a `Param`. */
type Scalar<P> = P extends { readonly values: readonly (infer W extends string)[] }
  ? W
  : P extends { readonly type: infer K }
    ? K extends 'integer' | 'number'
      ? number
      : K extends 'boolean'
        ? boolean
        : string
    : string;

/** A variable whose name is not known to the type checker. */
type Dynamic<P> = {} extends P ? TemplateValue | undefined : unknown;
