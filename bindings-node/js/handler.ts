/** A registered function, and what else can be said of its template. */
import { binding, type Edit, type NativeFunction, type PlainValue } from './binding.js';
import { isObject, shown } from './check.js';
import type { Context } from './context.js';
import type { Peers } from './driver.js';
import { RegistrationError, translated } from './errors.js';
import { type AnyFunction, completer, lister, reader } from './functions.js';
import { checkRegistration } from './option-checks.js';
import { type AnyParameter, type Details, describe, nameOf, type Resource } from './options.js';
import type { Completion, Contents, InputRequired, ListPage, ReadResult } from './results.js';
import { facts, isSchema } from './schema.js';
import type { WireResult } from './shapes.js';
import type { Stream } from './streams.js';
import type { Expandable, SingleValue, TemplateValue, VariableName } from './template-types.js';
import { UriTemplate, type Variable } from './templates.js';
import { Values } from './values.js';
import type { Watcher, Watches } from './watches.js';

/**
 * A value that becomes JSON: an object or an array. What has no JSON form, such as a function, a `Map` or a promise,
 * is not one.
 */
export type Jsonable =
  | (object & {
      readonly [Symbol.toStringTag]?: never;
      readonly [Symbol.iterator]?: never;
      readonly apply?: never;
      readonly then?: never;
    })
  | readonly (Jsonable | string | number | boolean | null)[];

/** What a reader may return: a text, bytes, a body with a type, a value that becomes JSON, contents, or a stream. */
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
 * An item of a lister: a resource, or the values of the template's variables, with details if there are any. Of one
 * variable the value itself.
 */
export type Listed<T extends string = string> = Resource | (Expandable<T> & Details) | SingleValue<T>;

/** What a lister may return: items, or with a cursor a page of them. A text is no list of its characters. */
export type Listable<T extends string = string> = (Iterable<Listed<T>> & object) | ListPage<Listed<T>>;

/** Reads a resource. `variables` is empty where there are none. */
export type Reader<V> = (variables: V, ctx: Context) => Readable | PromiseLike<Readable>;

/**
 * Completes a variable: called with what was typed and the values chosen so far, returns texts, best first, or a
 * `Completion`.
 */
export type Completer = (
  value: string,
  chosen: Readonly<Record<string, string>>,
  ctx: Context,
) => Completable | PromiseLike<Completable>;

/** What a completer may return. A text is no list of its characters. */
type Completable = (Iterable<string> & object) | Completion;

/**
 * Lists the concrete resources of a template. One that takes a cursor, `undefined` at first, pages itself and returns
 * `ListPage`s.
 */
export type Lister<T extends string = string> = (
  cursor: string | undefined,
  ctx: Context,
) => Listable<T> | PromiseLike<Listable<T>>;

/** The options of `ResourceServer.resource`. */
export interface ResourceOptions<
  T extends string = string,
  V extends Readonly<Record<string, Variable>> = Readonly<Record<string, Variable>>,
  P extends Readonly<Record<string, AnyParameter>> = Readonly<Record<string, AnyParameter>>,
> extends Details {
  /** How single variables of the template match. */
  readonly vars?: V & { readonly [N in Exclude<keyof V, VariableName<T>>]: never };
  /** What query names that the template does not have mean. Default `ignore`. */
  readonly extraQuery?: 'ignore' | 'reject';
  /** What is known of the variables: a `Param`, or a schema whose output replaces the text. */
  readonly parameters?: P & { readonly [N in Exclude<keyof P, VariableName<T>>]: never };
  /** Completers, by variable. */
  readonly complete?: { readonly [N in VariableName<T>]?: Completer };
  /** Lists the concrete resources of the template. */
  readonly list?: Lister<T>;
  /** Whether `list` pages itself. Default: if it declares a parameter. */
  readonly pages?: boolean;
  /** Whether it takes the place of what is registered under this URI or template already. Default `false`. */
  readonly replace?: boolean;
}

/** What a handler needs of its server. */
export interface Registrar {
  readonly publish: (edits: Edit[]) => void;
  readonly peers: Peers;
  readonly watches: Watches;
}

/** What `ResourceServer.resource` returns. */
export class ResourceHandler<T extends string = string> {
  /** The URI or template as it was given. */
  readonly uri: T;
  readonly #publish: (edits: Edit[]) => void;
  readonly #peers: Peers;
  readonly #watches: Watches;
  readonly #name: string;
  readonly #reader: NativeFunction;
  readonly #details: Details;
  readonly #template: UriTemplate | undefined;
  readonly #parameters: Readonly<Record<string, AnyParameter>>;
  readonly #completers = new Map<string, NativeFunction>();
  #lister: NativeFunction | undefined;
  #pages = false;

  /** Made by `ResourceServer.resource` alone. */
  constructor({ publish, peers, watches }: Registrar, uri: T, options: ResourceOptions, call: AnyFunction) {
    checkRegistration(options, uri);
    const { vars, extraQuery, parameters = {}, complete, list, pages, replace, ...details } = options;
    this.uri = uri;
    this.#publish = publish;
    this.#peers = peers;
    this.#watches = watches;
    this.#name = nameOf(call) ?? uri;
    this.#template = uri.includes('{')
      ? new UriTemplate(uri, vars, extraQuery === undefined ? {} : { extraQuery })
      : undefined;
    this.#parameters = parameters;
    const variables = this.#template?.native.variables ?? [];
    for (const name of Object.keys(parameters)) this.#check(name, variables, 'parameters: ');
    const values = this.#template && new Values(variables, parameters);
    const json = details.mimeType === undefined ? 'application/json' : undefined;
    this.#reader = reader(peers, this.#name, call, { values, json });
    this.#details = { ...details, name: details.name ?? this.#name };
    for (const [name, own] of Object.entries(complete ?? {})) {
      if (own !== undefined) this.#addCompleter(name, own);
    }
    if (list !== undefined) this.#setLister(list, pages);
    this.#register(replace);
  }

  /**
   * Completes a variable with a function.
   * @throws {RegistrationError} the template has no such variable.
   */
  complete(variable: VariableName<T>, call: Completer): this {
    this.#addCompleter(variable, call);
    this.#register(true);
    return this;
  }

  /**
   * Lists the concrete resources of the template with a function. It pages itself if it declares a parameter, or if
   * `pages` says so. It is called for each page of a walk, unless `Limits.listTtl` keeps what it gives.
   * @throws {RegistrationError} this is no template.
   */
  list(call: Lister<T>, { pages }: { readonly pages?: boolean } = {}): this {
    this.#setLister(call, pages);
    this.#register(true);
    return this;
  }

  /**
   * Calls a function with a URI and `true` when its first client watches it, with `false` after the last. What is undone
   * before its turn is left out. Register it before the server serves.
   * @throws {TypeError} it is no function.
   */
  onWatch(call: Watcher): this {
    if (typeof call !== 'function') throw new TypeError(`onWatch takes a function, not ${shown(call)}`);
    this.#watches.add(this.uri, nameOf(call) ?? `${this.#name} (watch)`, call);
    return this;
  }

  /**
   * The URI with these values: `handler.expand({ day: 'monday' })`. A resource without variables has its own URI.
   * @throws {TypeError} a value is no text, number, list or record of them.
   */
  expand(values: Expandable<T>): string {
    return this.#template?.expand(values) ?? this.uri;
  }

  /** Removes it from the server. */
  remove(): void {
    this.#watches.remove(this.uri);
    this.#publish([this.#removal()]);
  }

  #addCompleter(variable: string, call: AnyFunction): void {
    this.#check(variable, this.#template?.native.variables ?? [], '');
    this.#completers.set(variable, completer(this.#peers, nameOf(call) ?? `${this.#name} (${variable})`, call));
  }

  #setLister(call: AnyFunction, pages: boolean | undefined): void {
    if (this.#template === undefined) {
      throw new RegistrationError(
        `"${this.uri}" has no variables, so there is nothing to list; list is for templates such as "note://{id}"`,
      );
    }
    this.#lister = lister(this.#peers, nameOf(call) ?? `${this.#name} (list)`, call, (item) => this.#listed(item));
    this.#pages = pages ?? call.length > 0;
  }

  /** The resource of a listed item that is or has values of variables; `undefined` if it is a resource itself. */
  #listed(item: unknown): Resource | undefined {
    const names = (this.#template?.native.variables ?? []).map(([name]) => name);
    if (!isObject(item)) {
      const isValue = names.length === 1 && ['string', 'number', 'bigint', 'boolean'].includes(typeof item);
      if (isValue) return this.#named({ [names[0] as string]: item as TemplateValue });
      throw new TypeError(`it is ${shown(item)}, expected an object with a uri or values of ${names.join(', ')}`);
    }
    if (typeof item.uri === 'string' && !names.includes('uri')) return undefined;
    const entries = Object.entries(item);
    const values = entries.filter(([name]) => names.includes(name)) as [string, TemplateValue][];
    if (values.length === 0) {
      throw new TypeError(`it has neither a uri nor a value of a variable of ${this.uri} (${names.join(', ')})`);
    }
    const rest = Object.fromEntries(entries.filter(([name]) => !names.includes(name)));
    return { ...this.#named(Object.fromEntries(values)), ...rest };
  }

  /** The resource with these values, named after them. Lists and maps make no name: then it is the URI. */
  #named(values: Record<string, TemplateValue>): Resource {
    const uri = this.expand(values as Expandable<T>);
    const names = (this.#template?.native.variables ?? []).map(([name]) => name);
    const given = names.map((name) => values[name]).filter((value) => value !== undefined);
    const name = given.some((value) => typeof value === 'object') ? '' : given.join('/');
    return name === '' ? { uri } : { uri, name };
  }

  #check(variable: string, variables: readonly (readonly [string, unknown])[], what: string): void {
    if (variables.some(([name]) => name === variable)) return;
    throw new RegistrationError(`${what}${JSON.stringify(variable)} is no variable of ${this.uri}`);
  }

  #removal(): Edit {
    const { Edit: native } = binding;
    return this.#template === undefined ? native.removeResource(this.uri) : native.removeTemplate(this.uri);
  }

  #register(again = false): void {
    const details = describe(this.#details);
    const template = this.#template;
    if (template === undefined) {
      const resource = { ...details, uri: this.uri };
      const added = translated(() => binding.Edit.addResource(resource, this.#reader));
      this.#publish(again ? [this.#removal(), added] : [added]);
      return;
    }
    const parameters = Object.entries(this.#parameters).map(([name, known]) => {
      if (isSchema(known)) return { name, ...facts(known) };
      const { values, ...rest } = known;
      return { name, ...rest, ...(values && { values: [...values] }) };
    });
    const fields = { ...details, parameters, ...(this.#lister && { pages: this.#pages }) } as PlainValue;
    const addition = translated(() =>
      binding.Edit.addTemplate(template.native, fields, [this.#reader, [...this.#completers], this.#lister ?? null]),
    );
    this.#publish(again ? [this.#removal(), addition] : [addition]);
  }
}
