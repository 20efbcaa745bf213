/** URI templates outside of a server: expansion, matching, and sets of templates. */
import type { Variable as VariableFields } from '../binding.js';
import { binding, type Found } from './binding.js';
import { checkText, ITERABLE, isObject, shown } from './check.js';
import { translated } from './errors.js';
import { checkMatching } from './option-checks.js';
import type { Expandable, TemplateOptions, TemplateValue, Variable, VariableInfo } from './template-types.js';

/** A URI matches `template`, with these values of its variables. */
export class Match {
  readonly matched = true;

  constructor(
    readonly template: string,
    readonly params: Readonly<Record<string, TemplateValue>>,
  ) {}
}

/** A URI matches no template. */
export class NoMatch {
  readonly matched = false;
}

/** A URI matches `template`, but the policy of `variable` refuses its value. Clients get the same error as for no match. */
export class Rejected {
  readonly matched = false;

  constructor(
    readonly template: string,
    readonly variable: string,
    readonly why: string,
  ) {}
}

/** A URI template (RFC 6570). */
export class UriTemplate<T extends string = string> {
  /** As the compiled part takes it. */
  readonly native: InstanceType<typeof binding.UriTemplate>;

  /**
   * @param template - the text of the template, such as `note://{id}`.
   * @param vars - the rules of variables, by their names. Default: see {@link Variable}.
   * @throws {InvalidTemplateError} the text is not a URI template, or no URI can match it.
   */
  constructor(template: T, vars: Readonly<Record<string, Variable>> = {}, options: TemplateOptions = {}) {
    checkMatching(template, vars, options);
    const { extraQuery } = options;
    this.native = translated(
      () => new binding.UriTemplate(template, { ...vars } as Record<string, VariableFields>, extraQuery),
    );
  }

  /** The variables by name, in the order of the template. */
  get variables(): Readonly<Record<string, VariableInfo>> {
    return Object.fromEntries(this.native.variables) as Record<string, VariableInfo>;
  }

  /**
   * Expands the template (RFC 6570). Variables that are missing, `null` or `undefined` are left out; values for which the
   * template has no variable are ignored.
   *
   * @throws {TypeError} a value is not a string, number, boolean, list or record of them.
   */
  expand(values: Expandable<T>): string {
    if (!isObject(values)) throw new TypeError(`the values for ${this} are ${shown(values)}, expected an object`);
    const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
    const texts = Object.fromEntries(given.map(([name, value]) => [name, expandable(value)]));
    return translated(() => this.native.expand(texts));
  }

  /**
   * Matches a URI, in any spelling.
   *
   * @throws {InvalidUriError} `uri` is not a URI.
   */
  match(uri: string): Match | NoMatch | Rejected {
    checkText('uri', uri, 'note://1');
    return outcome(translated(() => this.native.match(uri)));
  }

  /** The text of the template. */
  toString(): string {
    return this.native.toString();
  }
}

/** A set of templates. The most specific template that matches a URI wins, independent of their order. */
export class TemplateSet {
  readonly #native: InstanceType<typeof binding.TemplateSet>;

  /**
   * @param templates - templates, or their texts.
   * @throws {TemplateConflictError} two templates match the same URIs.
   */
  constructor(templates: Iterable<UriTemplate | string>) {
    if (!ITERABLE.is(templates)) {
      throw new TypeError(`a TemplateSet is made with ${shown(templates)}, expected an array of templates`);
    }
    const given = [...templates];
    for (const one of given) {
      if (typeof one === 'string' || one instanceof UriTemplate) continue;
      throw new TypeError(`a template is ${shown(one)}, expected a string or a UriTemplate`);
    }
    const all = given.map((one) => (typeof one === 'string' ? new UriTemplate(one) : one).native);
    this.#native = translated(() => new binding.TemplateSet(all));
  }

  /**
   * Finds the template for a URI, in any spelling.
   *
   * @throws {InvalidUriError} `uri` is not a URI.
   */
  match(uri: string): Match | NoMatch | Rejected {
    checkText('uri', uri, 'note://1');
    return outcome(translated(() => this.#native.match(uri)));
  }

  /** The number of templates. */
  get size(): number {
    return this.#native.size;
  }
}

function outcome({
  outcome: kind,
  template = '',
  params = {},
  variable = '',
  why = '',
}: Found): Match | NoMatch | Rejected {
  if (kind === 'match') return new Match(template, params);
  return kind === 'rejected' ? new Rejected(template, variable, why) : new NoMatch();
}

function expandable(value: unknown): string | string[] | [string, string][] {
  if (Array.isArray(value)) return value.map(atom);
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).map(([key, item]): [string, string] => [key, atom(item)]);
  }
  return atom(value);
}

function atom(value: unknown): string {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new TypeError(`a value of a template is ${value}, which is not a finite number`);
  }
  if (['string', 'number', 'bigint', 'boolean'].includes(typeof value)) return String(value);
  throw new TypeError(
    `a value of a template is ${shown(value)}, expected a string, a number, or an array or object of them`,
  );
}
