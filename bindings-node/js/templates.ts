/** URI templates on their own: expansion, matching, and several of them at once. */
import type { Variable as VariableFields } from '../binding.js';
import { binding, type Found } from './binding.js';
import { shown } from './check.js';
import { translated } from './errors.js';
import { checkMatching } from './option-checks.js';
import type { Expandable, TemplateValue } from './template-types.js';

/** How one variable of a template matches. */
export interface Variable {
  /** The type of its value. Default: a list with `*`, else a scalar. */
  readonly kind?: 'scalar' | 'list' | 'map';
  /** Which values are refused. Default: `path` for `{+x}`, `text` in a query or fragment, else `segment`. */
  readonly policy?: 'segment' | 'path' | 'text' | 'any';
  /** Whether `{x}` and `{+x}` may be empty. Default `false`. */
  readonly empty?: boolean;
  /** Which characters `{+x}` may hold: `any` lets it take `?` and `#` too. Default `operator`. */
  readonly chars?: 'operator' | 'any';
}

/** What a template says of one of its variables. */
export interface VariableInfo extends Required<Variable> {
  /** Whether every URI defines it. */
  readonly required: boolean;
}

/** How a template matches. */
export interface TemplateOptions {
  /** What query names that the template does not have mean. Default `ignore`. */
  readonly extraQuery?: 'ignore' | 'reject';
}

/** A template matches. */
export class Match {
  readonly matched = true;

  constructor(
    readonly template: string,
    readonly params: Readonly<Record<string, TemplateValue>>,
  ) {}
}

/** No template matches. */
export class NoMatch {
  readonly matched = false;
}

/** The winning template refuses a value: to a client the same as no match. */
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
   * @param template - its text.
   * @param vars - how single variables match.
   * @throws {InvalidTemplateError} it is not one, or nothing could match it.
   */
  constructor(template: T, vars: Readonly<Record<string, Variable>> = {}, options: TemplateOptions = {}) {
    checkMatching(template, vars, options);
    const { extraQuery } = options;
    this.native = translated(
      () => new binding.UriTemplate(template, { ...vars } as Record<string, VariableFields>, extraQuery),
    );
  }

  /** The variables by name, in template order. */
  get variables(): Readonly<Record<string, VariableInfo>> {
    return Object.fromEntries(this.native.variables) as Record<string, VariableInfo>;
  }

  /**
   * Expands the template. A variable that is not given, `null` or `undefined` is left out.
   * @throws {TypeError} a value is no text, number, list or record of them.
   */
  expand(values: Expandable<T>): string {
    const given = Object.entries(values).filter(([, value]) => value !== null && value !== undefined);
    const texts = Object.fromEntries(given.map(([name, value]) => [name, expandable(value)]));
    return translated(() => this.native.expand(texts));
  }

  /**
   * Matches a URI, in any spelling.
   * @throws {InvalidUriError} it is not a URI.
   */
  match(uri: string): Match | NoMatch | Rejected {
    return outcome(translated(() => this.native.match(uri)));
  }

  /** The text. */
  toString(): string {
    return this.native.toString();
  }
}

/** Several templates: the most specific one that matches wins, whatever their order. */
export class TemplateSet {
  readonly #native: InstanceType<typeof binding.TemplateSet>;

  /** @throws {TemplateConflictError} two match the same URIs. */
  constructor(templates: Iterable<UriTemplate | string>) {
    const all = Array.from(templates, (one) => (typeof one === 'string' ? new UriTemplate(one) : one).native);
    this.#native = translated(() => new binding.TemplateSet(all));
  }

  /**
   * Finds the template for a URI, in any spelling.
   * @throws {InvalidUriError} it is not a URI.
   */
  match(uri: string): Match | NoMatch | Rejected {
    return outcome(translated(() => this.#native.match(uri)));
  }

  /** How many templates there are. */
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
  if (['string', 'number', 'bigint', 'boolean'].includes(typeof value)) return String(value);
  throw new TypeError(
    `a value of a template is ${shown(value)}, expected a string, a number, or an array or object of them`,
  );
}
