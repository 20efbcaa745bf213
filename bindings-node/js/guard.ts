/** The access policy of a server, and `Guard`, which applies one outside of a server. */
import { binding } from './binding.js';
import { checkOptions, checkText, isObject, shown, TEXT, TEXTS } from './check.js';
import { translated } from './errors.js';

/** One string, or several. */
export type OneOrMany = string | readonly string[];

/**
 * An access policy, with the same keys as a policy file. Globs are matched against canonical URIs. In those of `allow`, `deny`,
 * `scopes` and `groups`, `{principal}` is the identity of the client, and `{group}` each of its groups.
 */
export interface Policy {
  /** Globs: the URIs that clients see; to them, others do not exist. Default `*`: all. */
  readonly allow?: OneOrMany | null;
  /** Globs: URIs that clients do not see, even if `allow` has them. Default: none. */
  readonly deny?: OneOrMany;
  /** The scopes that a token must have for the URIs of a glob. Default: none. */
  readonly scopes?: Readonly<Record<string, OneOrMany>>;
  /** The groups that may use the URIs of a glob. Only members of one of them see these URIs; a scope counts as a group. Default: none. */
  readonly groups?: Readonly<Record<string, OneOrMany>>;
  /** Restrictions for single principals, by their identity; the client on stdio is `""`. Default: none. */
  readonly principals?: Readonly<Record<string, PrincipalPolicy>>;
  /** The tools that clients see. Default: all. */
  readonly tools?: NamePolicy;
  /** The prompts that clients see. Default: all. */
  readonly prompts?: NamePolicy;
  /** The rate limits of each principal. Default: see {@link Rates}. */
  readonly rate?: Rates;
  /** The largest number of unanswered requests of one principal. Default: no limit. */
  readonly concurrency?: number | null;
  /** The largest contents of one read, in bytes, for the URIs of a glob. Default: no limit. */
  readonly max_size?: Readonly<Record<string, number>>;
  /** The names of the detectors whose finds in texts are replaced by `[redacted:NAME]`. Default: none. */
  readonly redact?: OneOrMany;
}

/**
 * The names of tools or prompts that clients see. In a glob `*` is any run of characters, and `?` one character.
 */
export interface NamePolicy {
  /** Globs: the names that clients see; to them, others do not exist. Default `*`: all. */
  readonly allow?: OneOrMany | null;
  /** Globs: names that clients do not see, even if `allow` has them. Default: none. */
  readonly deny?: OneOrMany;
}

/** A rate limit of one principal. */
export interface Rate {
  /** Requests per second, on average. More than 0. */
  readonly per_second: number;
  /** Requests at once. Default: as many as in one second, at least 1. */
  readonly burst?: number;
}

/** The rate limits of one principal, for each kind of request. `null` stands for the default. */
export interface Rates {
  /** Reads. Default: no limit. */
  readonly read?: Rate | null;
  /** Completions. Default: 200 per second, 400 at once. */
  readonly completion?: Rate | null;
  /** Pages of lists. Default: no limit. */
  readonly list?: Rate | null;
  /** Subscriptions and listens. Default: no limit. */
  readonly subscribe?: Rate | null;
  /** Custom methods. Default: no limit. */
  readonly call?: Rate | null;
  /** Whether the processes of the server count together. Needs a `bus` on Redis. Default `false`: each counts for itself. */
  readonly shared?: boolean;
}

/** Restrictions of the policy for one principal. */
export interface PrincipalPolicy {
  /** Globs: the principal sees the URIs that both this and the policy allow. Default: those of the policy. */
  readonly allow?: OneOrMany | null;
  /** Globs: URIs that are hidden from the principal, in addition to those of the policy. Default: none. */
  readonly deny?: OneOrMany;
  /** The tools that the principal sees, among those of the policy. Default: the same. */
  readonly tools?: NamePolicy;
  /** The prompts that the principal sees, among those of the policy. Default: the same. */
  readonly prompts?: NamePolicy;
  /** Scopes that the principal has in addition to those of its token. Default: none. */
  readonly scopes?: OneOrMany;
}

/** The client whose access is checked. */
export interface Requester {
  /** The identity of the client. Default: the client on stdio. */
  readonly principal?: string;
  /** The scopes of its token. Default: none. */
  readonly scopes?: readonly string[];
  /** The groups of the client. Default: none. */
  readonly groups?: readonly string[];
}

/** Applies an access policy outside of a server, for tests and for your own functions. */
export class Guard {
  readonly #native: InstanceType<typeof binding.Guard>;

  /**
   * @param policy - the policy, or the path of a JSON or YAML file.
   * @param options - `explicitDenials`: whether `decide` returns `denied` instead of `hidden`. Default `false`.
   * @throws {TypeError} `policy` is neither an object nor a path.
   * @throws {RegistrationError} the policy has an unknown key or a value that is not allowed, or the file cannot be read.
   */
  constructor(policy: Policy | string, { explicitDenials = false }: { readonly explicitDenials?: boolean } = {}) {
    if (typeof policy !== 'string' && !isObject(policy)) {
      throw new TypeError(`the policy is ${shown(policy)}, expected an object or the path of a policy file`);
    }
    this.#native = translated(() => new binding.Guard(policySource(policy), explicitDenials));
  }

  /**
   * Returns whether a client may see a URI, in any spelling.
   *
   * @throws {InvalidUriError} `uri` is not a URI.
   */
  decide(uri: string, requester: Requester = {}): 'allow' | 'hidden' | 'denied' | 'missing_scope' {
    checkText('uri', uri, 'note://1');
    return translated(() => this.#native.decide(uri, given(requester)));
  }

  /**
   * Returns the scopes that the token lacks for a URI, if `decide` returns `missing_scope`; else an empty array.
   *
   * @throws {InvalidUriError} `uri` is not a URI.
   */
  missingScopes(uri: string, requester: Requester = {}): string[] {
    checkText('uri', uri, 'note://1');
    return translated(() => this.#native.missingScopes(uri, given(requester)));
  }

  /**
   * Returns whether a client sees a template in the list: whether the policy allows one of its URIs.
   *
   * @throws {InvalidTemplateError} `template` is not a URI template.
   */
  knowsTemplate(template: string, requester: Requester = {}): boolean {
    checkText('template', template, 'note://{id}');
    return translated(() => this.#native.knowsTemplate(template, given(requester)));
  }
}

/** A policy as the compiled part takes it. */
export function policySource(policy: Policy | string): { json?: string; file?: string } {
  return typeof policy === 'string' ? { file: policy } : { json: JSON.stringify(policy) };
}

function given(requester: Requester): { principal: string; scopes: string[]; groups: string[] } {
  checkOptions('the requester', requester, { principal: TEXT, scopes: TEXTS, groups: TEXTS });
  const { principal = '', scopes = [], groups = [] } = requester;
  return { principal, scopes: [...scopes], groups: [...groups] };
}
