/** A registered function, and what else can be said of its template. */
import { binding, type Edit, type NativeFunction } from './binding.js';
import type { Context } from './context.js';
import type { Peers } from './driver.js';
import { RegistrationError, translated } from './errors.js';
import { type AnyFunction, completer, lister, reader } from './functions.js';
import { type AnyParameter, checkRegistration, type Details, describe, nameOf, type Resource } from './options.js';
import type { Completion, Contents, InputRequired, JsonObject, ListPage, ReadResult } from './results.js';
import { facts, isSchema } from './schema.js';
import type { Stream } from './streams.js';
import type { VariableName } from './template-types.js';
import { UriTemplate, type Variable } from './templates.js';
import { Values } from './values.js';

/** What a reader may return: a text, bytes, a value that becomes JSON, contents, or a stream of chunks. */
export type Readable =
  | string
  | ArrayBufferView
  | ArrayBufferLike
  | JsonObject
  | readonly unknown[]
  | Contents
  | ReadResult
  | InputRequired
  | Stream
  | object;

/** What a lister may return: resources, or with a cursor a page of them. */
export type Listable = Iterable<Resource> | ListPage<Resource>;

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
) => Iterable<string> | Completion | PromiseLike<Iterable<string> | Completion>;

/**
 * Lists the concrete resources of a template. One that takes a cursor, `undefined` at first, pages itself and returns
 * `ListPage`s.
 */
export type Lister = (cursor: string | undefined, ctx: Context) => Listable | PromiseLike<Listable>;

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
  readonly list?: Lister;
  /** Whether `list` pages itself. Default: if it declares a parameter. */
  readonly pages?: boolean;
}

/** What `ResourceServer.resource` returns. */
export class ResourceHandler<T extends string = string> {
  /** The URI or template as it was given. */
  readonly uri: T;
  readonly #publish: (edits: Edit[]) => void;
  readonly #peers: Peers;
  readonly #name: string;
  readonly #reader: NativeFunction;
  readonly #details: Details;
  readonly #template: UriTemplate | undefined;
  readonly #parameters: Readonly<Record<string, AnyParameter>>;
  readonly #completers = new Map<string, NativeFunction>();
  #lister: NativeFunction | undefined;
  #pages = false;

  /** Made by `ResourceServer.resource` alone. */
  constructor(
    { publish, peers }: { publish: (edits: Edit[]) => void; peers: Peers },
    uri: T,
    options: ResourceOptions,
    call: AnyFunction,
  ) {
    checkRegistration(options, uri.includes('{'));
    const { vars, extraQuery, parameters = {}, complete, list, pages, ...details } = options;
    this.uri = uri;
    this.#publish = publish;
    this.#peers = peers;
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
    this.#register();
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
   * `pages` says so.
   * @throws {RegistrationError} this is no template.
   */
  list(call: Lister, { pages }: { readonly pages?: boolean } = {}): this {
    this.#setLister(call, pages);
    this.#register(true);
    return this;
  }

  /** Removes it from the server. */
  remove(): void {
    this.#publish([this.#removal()]);
  }

  #addCompleter(variable: string, call: AnyFunction): void {
    this.#check(variable, this.#template?.native.variables ?? [], '');
    this.#completers.set(variable, completer(this.#peers, nameOf(call) ?? `${this.#name} (${variable})`, call));
  }

  #setLister(call: AnyFunction, pages: boolean | undefined): void {
    if (this.#template === undefined) {
      throw new RegistrationError(`${this.uri} is no template, so there is nothing to list`);
    }
    this.#lister = lister(this.#peers, nameOf(call) ?? `${this.#name} (list)`, call);
    this.#pages = pages ?? call.length > 0;
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
    const details = describe({ ...this.#details, uri: this.uri });
    const template = this.#template;
    if (template === undefined) {
      this.#publish([translated(() => binding.Edit.addResource(details, this.#reader))]);
      return;
    }
    const parameters = Object.entries(this.#parameters).map(([name, known]) => {
      if (isSchema(known)) return { name, ...facts(known) };
      const { values, ...rest } = known;
      return { name, ...rest, ...(values && { values: [...values] }) };
    });
    const fields = { parameters, ...(this.#lister && { pages: this.#pages }) };
    const addition = translated(() =>
      binding.Edit.addTemplate(template.native, details, fields, [
        this.#reader,
        [...this.#completers],
        this.#lister ?? null,
      ]),
    );
    this.#publish(again ? [this.#removal(), addition] : [addition]);
  }
}
