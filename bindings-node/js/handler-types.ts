/** The functions and options of a registration: types only. */
import type { Context } from './context.js';
import type { AnyParameter, Details, Resource } from './options.js';
import type { Completion, Contents, InputRequired, ListPage, ReadResult } from './results.js';
import type { WireResult } from './shapes.js';
import type { Stream } from './streams.js';
import type { Expandable, SingleValue, Variable, VariableName } from './template-types.js';

/** An object or array that is serialized as JSON. Functions, promises and a `Map` or `Set` have no JSON form. */
export type Jsonable =
  | (object & {
      readonly [Symbol.toStringTag]?: never;
      readonly [Symbol.iterator]?: never;
      readonly apply?: never;
      readonly then?: never;
    })
  | readonly (Jsonable | string | number | boolean | null)[];

/** The result of a reader: a text, bytes, a `Blob` or `Response`, a JSON value, contents, or a stream. */
export type Readable =
  | string
  | number
  | boolean
  | ArrayBufferView
  | ArrayBufferLike
  | Blob
  | Response
  | Contents
  | readonly Contents[]
  | ReadResult
  | WireResult
  | InputRequired
  | Stream
  | Jsonable;

/**
 * An item of a lister: a resource, or the values of the template's variables, which may stand beside details. If there is
 * only one variable, or only one that every URI has, its value alone is enough.
 */
export type Listed<T extends string = string> = Resource | (Expandable<T> & Details) | SingleValue<T>;

/** The result of a lister: an iterable of items or, from one that takes a cursor, a `ListPage`. */
export type Listable<T extends string = string> = (Iterable<Listed<T>> & object) | ListPage<Listed<T>>;

/** Reads a resource: called with the variables of the template (an empty object for a resource) and a `Context`. */
export type Reader<V, S = unknown> = (variables: V, ctx: Context<S>) => Readable | PromiseLike<Readable>;

/**
 * Completes a variable: called with the text that the user has typed, the variables that are chosen already, and a
 * `Context`. Returns a list of strings, best first, or a `Completion`.
 */
export type Completer<S = unknown> = (
  value: string,
  chosen: Readonly<Record<string, string>>,
  ctx: Context<S>,
) => Completable | PromiseLike<Completable>;

/** The result of a completer. */
type Completable = (Iterable<string> & object) | Completion;

/**
 * Lists the resources of a template that exist. A function that takes an argument must page itself: the argument is the
 * cursor, `undefined` for the first page, and it returns a `ListPage`.
 */
export type Lister<T extends string = string, S = unknown> = (
  cursor: string | undefined,
  ctx: Context<S>,
) => Listable<T> | PromiseLike<Listable<T>>;

/**
 * Decides who may use a resource: called with the identity of the person, as `Context.principal` has it, the variables of the
 * template, and a `Context`.
 */
export type Access<V, S = unknown> = (
  principal: string,
  variables: V,
  ctx: Context<S>,
) => boolean | PromiseLike<boolean>;

/** The same for many URIs at once: the result has one boolean for each, in their order. */
export type AccessBatch<V, S = unknown> = (
  principal: string,
  variables: readonly V[],
  ctx: Context<S>,
) => readonly boolean[] | PromiseLike<readonly boolean[]>;

/** Members that are no variables of the template, which nothing can have. Without those of any name. */
type Unknown<O, T extends string> = {
  readonly [N in keyof O as string extends N ? never : Exclude<N, VariableName<T>>]: never;
};

/** The options of `ResourceServer.resource`. */
export interface ResourceOptions<
  T extends string = string,
  V extends Readonly<Record<string, Variable>> = Readonly<Record<string, Variable>>,
  P extends Readonly<Record<string, AnyParameter>> = Readonly<Record<string, AnyParameter>>,
  S = unknown,
> extends Details {
  /** How variables of the template match, by their names. Default: see `Variable`. */
  readonly vars?: V & Unknown<V, T>;
  /**
   * Whether a URI with query parameters that the template does not have still matches (`ignore`) or not (`reject`).
   * Default `ignore`.
   */
  readonly extraQuery?: 'ignore' | 'reject';
  /** Types, allowed values and descriptions of variables, by their names; or schemas, whose output the function gets. */
  readonly parameters?: P & Unknown<P, T>;
  /** Functions that complete variables, by their names. Default: none. */
  readonly complete?: { readonly [N in VariableName<T>]?: Completer<S> };
  /** A function that lists the resources of the template. Default: they are not listed. */
  readonly list?: Lister<T, S>;
  /** A function that decides who may use the resource, or those of the template: see `ResourceHandler.access`. */
  readonly access?: Access<Readonly<Record<string, unknown>>, S>;
  /** Whether `list` takes a cursor and pages itself. Default: if it declares a parameter. */
  readonly pages?: boolean;
  /**
   * Whether the template is a tool too, which takes the variables as arguments and reads the resource: the name of the
   * tool, or `true` for that of the template. Default `false`.
   */
  readonly tool?: string | boolean;
  /**
   * Whether it replaces a resource or template with the same URI, such as when a notebook cell runs again. Default
   * `false`: that is an error.
   */
  readonly replace?: boolean;
}
