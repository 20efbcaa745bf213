/** `ResourceHandler`: a registered function, with the completers and the lister of its template. */
import { binding, type Edit, type NativeFunction, type PlainValue } from './binding.js';
import { type LinkOptions, ResourceLink } from './blocks.js';
import { checkFunction, checkOptions, FLAG, isObject, shown } from './check.js';
import type { Peers } from './driver.js';
import { RegistrationError, translated } from './errors.js';
import { type AnyFunction, completer, decider, lister, nameOf, reader } from './functions.js';
import type { Access, AccessBatch, Completer, Lister, ResourceOptions } from './handler-types.js';
import { checkRegistration } from './option-checks.js';
import { describe } from './option-fields.js';
import type { AnyParameter, Details, Resource } from './options.js';
import { facts, isSchema } from './schema.js';
import type { Expandable, TemplateValue, VariableName } from './template-types.js';
import { Match, UriTemplate } from './templates.js';
import { Values } from './values.js';
import type { Watcher, Watches } from './watches.js';

/** The types of values that a lister may return by themselves. */
const ATOMS = ['string', 'number', 'bigint', 'boolean'];

/** The parts of a server that a handler uses. */
export interface Registrar {
  readonly publish: (edits: Edit[]) => void;
  readonly peers: Peers;
  readonly watches: Watches;
  readonly checkLink: (registered: string, uri: string) => void;
}

/** A registered function. `complete`, `list`, `access` and `onWatch` add further functions. */
export class ResourceHandler<T extends string = string, S = unknown> {
  /** The URI or template, as it was registered. */
  readonly uri: T;
  readonly #publish: (edits: Edit[]) => void;
  readonly #peers: Peers;
  readonly #watches: Watches;
  readonly #checkLink: (registered: string, uri: string) => void;
  readonly #name: string;
  readonly #reader: NativeFunction;
  readonly #details: Details;
  readonly #template: UriTemplate | undefined;
  readonly #parameters: Readonly<Record<string, AnyParameter>>;
  readonly #completers = new Map<string, NativeFunction>();
  #lister: NativeFunction | undefined;
  #access: NativeFunction | undefined;
  readonly #values: Values | undefined;
  #pages = false;
  readonly #tool: string | boolean;

  /** Called by `ResourceServer.resource` only. */
  constructor({ publish, peers, watches, checkLink }: Registrar, uri: T, options: ResourceOptions, call: AnyFunction) {
    checkRegistration(options, uri);
    const { vars, extraQuery, parameters = {}, complete, list, pages, access, tool, replace, ...details } = options;
    this.uri = uri;
    this.#publish = publish;
    this.#peers = peers;
    this.#watches = watches;
    this.#checkLink = checkLink;
    this.#name = nameOf(call) ?? uri;
    this.#template = uri.includes('{')
      ? new UriTemplate(uri, vars, extraQuery === undefined ? {} : { extraQuery })
      : undefined;
    this.#parameters = parameters;
    this.#tool = tool ?? false;
    const variables = this.#template?.native.variables ?? [];
    for (const name of Object.keys(parameters)) this.#check(name, variables, 'parameters: ');
    const values = this.#template && new Values(variables, parameters);
    this.#values = values;
    const json = details.mimeType === undefined ? 'application/json' : undefined;
    this.#reader = reader(peers, this.#name, call, { values, json });
    this.#details = { ...details, name: details.name ?? this.#name };
    for (const [name, own] of Object.entries(complete ?? {})) {
      if (own !== undefined) this.#addCompleter(name, own);
    }
    if (list !== undefined) this.#setLister(list, pages);
    if (access !== undefined) this.#setAccess(access, false);
    this.#register(replace);
  }

  /**
   * Registers a function as the completer of a variable.
   *
   * @param variable - the name of the variable.
   * @throws {RegistrationError} the template has no such variable.
   */
  complete(variable: VariableName<T>, call: Completer<S>): this {
    this.#addCompleter(variable, call);
    this.#register(true);
    return this;
  }

  /**
   * Registers a function as the lister of the template: it returns the resources that exist.
   *
   * The function is called for each page of the list, unless `Limits.listTtl` lets its result be reused. Items are sorted by
   * URI. An item with an invalid URI is left out and logged.
   *
   * @param options - `pages`: whether it takes a cursor and pages itself. Default: if it declares a parameter.
   * @throws {RegistrationError} this is not a template.
   */
  list(call: Lister<T, S>, { pages }: { readonly pages?: boolean } = {}): this {
    this.#setLister(call, pages);
    this.#register(true);
    return this;
  }

  /**
   * Registers the function that decides who may use the resource, or those of the template.
   *
   * It is asked about each URI before it is listed, completed, read or watched, and before an update is sent. An answer is
   * used again for `Limits.accessTtl` milliseconds, or until `ResourceServer.regrant`. What a person may not see looks to
   * them as if it did not exist. An error means no, and is logged.
   *
   * @param options - `batch`: whether it gets the variables of many URIs at once, in an array, and returns an array of
   *   booleans, so that a list needs one query of a database. Default `false`.
   */
  access(call: Access<Readonly<Record<string, unknown>>, S>, options?: { readonly batch?: false }): this;
  access(call: AccessBatch<Readonly<Record<string, unknown>>, S>, options: { readonly batch: true }): this;
  access(call: AnyFunction, options: { readonly batch?: boolean } = {}): this {
    checkOptions('access', options, { batch: FLAG });
    this.#setAccess(call, options.batch ?? false);
    this.#register(true);
    return this;
  }

  /**
   * Calls a function with a URI and `true` when the first client watches it, with `false` after the last.
   *
   * The URI is in canonical form. Changes that cancel out before their call are skipped. Register it before the server
   * starts to serve.
   *
   * @throws {TypeError} it is not a function.
   */
  onWatch(call: Watcher): this {
    if (typeof call !== 'function') throw new TypeError(`onWatch takes a function, not ${shown(call)}`);
    this.#watches.add(this.uri, nameOf(call) ?? `${this.#name} (watch)`, call);
    return this;
  }

  /**
   * Returns the URI for these values of the variables, such as `handler.expand({ day: 'monday' })`.
   *
   * @throws {TypeError} the template has no such variable, or a required value is missing or has the wrong type.
   */
  expand(values: Expandable<T>): string {
    const given: unknown = values ?? {};
    if (!isObject(given)) throw new TypeError(`the values for ${this.uri} are ${shown(given)}, expected an object`);
    const variables = this.#template?.native.variables ?? [];
    for (const name of Object.keys(given)) this.#check(name, variables, '', TypeError);
    for (const [name, { required }] of variables) {
      if (required && (given[name] === undefined || given[name] === null)) {
        throw new TypeError(`${this.uri} needs a value for ${JSON.stringify(name)}`);
      }
    }
    return this.#template?.expand(given as Expandable<T>) ?? this.uri;
  }

  /**
   * Returns a link to this resource, or to that with these values of the variables, for the result of a tool or prompt:
   * `handler.link({ day: 'monday' })`. It has the details of the registration.
   *
   * @param values - the values of the variables. Default: none.
   * @param details - details that differ from those of the registration.
   * @throws {TypeError} the template has no such variable, a required value is missing, a value is not of its variable's type,
   *   or the template is not registered now.
   */
  link(values?: Expandable<T>, details?: LinkOptions): ResourceLink {
    const given = (values ?? {}) as Record<string, TemplateValue>;
    const { uri, ...name } =
      this.#template === undefined ? { uri: this.expand(given as Expandable<T>) } : this.#named(given);
    if (this.#template !== undefined && !(this.#template.match(uri) instanceof Match)) {
      throw new TypeError(`${uri} is no URI of ${this.uri}; a link must lead to a resource of this server`);
    }
    try {
      this.#checkLink(this.uri, uri);
    } catch (error) {
      throw new TypeError((error as Error).message);
    }
    const { ttlMs: _, cacheScope: __, scopes: ___, children: ____, ...own } = this.#details;
    return new ResourceLink(uri, { ...own, ...name, ...details });
  }

  /** Removes the resource or template from the server. */
  remove(): void {
    this.#watches.remove(this.uri);
    this.#publish([this.#removal()]);
  }

  #setAccess(call: AnyFunction, batch: boolean): void {
    checkFunction(`access of ${this.uri}`, call);
    if (call.length > 3) {
      const name = nameOf(call) ?? 'the function';
      throw new RegistrationError(
        `"${this.uri}": ${name} takes ${call.length} parameters, but access is called with (principal, variables, ctx)`,
      );
    }
    const count = this.#template?.native.variables.length ?? 0;
    const name = nameOf(call) ?? `${this.#name} (access)`;
    this.#access = decider(this.#peers, name, call, { values: this.#values, count, batch });
  }

  #addCompleter(variable: string, call: AnyFunction): void {
    checkFunction(`the completer of ${JSON.stringify(variable)}`, call);
    this.#check(variable, this.#template?.native.variables ?? [], '');
    this.#completers.set(variable, completer(this.#peers, nameOf(call) ?? `${this.#name} (${variable})`, call));
  }

  #setLister(call: AnyFunction, pages: boolean | undefined): void {
    if (this.#template === undefined) {
      throw new RegistrationError(
        `"${this.uri}" has no variables, so there is nothing to list; list is for templates such as "note://{id}"`,
      );
    }
    checkFunction(`the lister of ${this.uri}`, call);
    this.#lister = lister(this.#peers, nameOf(call) ?? `${this.#name} (list)`, call, (item) => this.#listed(item));
    this.#pages = pages ?? call.length > 0;
  }

  /** The resource for an item with values of variables; `undefined` if the item is a resource itself. */
  #listed(item: unknown): Resource | undefined {
    const known = this.#template?.native.variables ?? [];
    const names = known.map(([name]) => name);
    if (!isObject(item)) {
      const required = known.filter(([, { required }]) => required).map(([name]) => name);
      const [only, ...others] = names.length === 1 ? names : required;
      const isValue = only !== undefined && others.length === 0 && ATOMS.includes(typeof item);
      if (isValue) return this.#named({ [only]: item as TemplateValue });
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

  #check(
    variable: string,
    variables: readonly (readonly [string, unknown])[],
    what: string,
    Refusal: new (message: string) => Error = RegistrationError,
  ): void {
    if (variables.some(([name]) => name === variable)) return;
    throw new Refusal(`${what}${JSON.stringify(variable)} is no variable of ${this.uri}`);
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
      const added = translated(() => binding.Edit.addResource(resource, this.#reader, this.#access ?? null));
      this.#publish(again ? [this.#removal(), added] : [added]);
      return;
    }
    const parameters = Object.entries(this.#parameters).map(([name, known]) => {
      const { values, ...rest } = isSchema(known) ? facts(known) : known;
      // A number holds no larger integer exactly: it would be another one.
      const safe = rest.type === 'integer' && { safe: true };
      return { name, ...rest, ...safe, ...(values && { values: [...values] }) };
    });
    const own = { ...(this.#lister && { pages: this.#pages }), ...(this.#tool !== false && { tool: this.#tool }) };
    const fields = { ...details, parameters, ...own } as PlainValue;
    const addition = translated(() =>
      binding.Edit.addTemplate(
        template.native,
        fields,
        this.#reader,
        [...this.#completers],
        this.#lister ?? null,
        this.#access ?? null,
      ),
    );
    this.#publish(again ? [this.#removal(), addition] : [addition]);
  }
}
