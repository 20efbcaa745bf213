/** The guard's policy, and the guard on its own. */
import { binding } from './binding.js';
import { translated } from './errors.js';

/** A text, or several. */
export type OneOrMany = string | readonly string[];

/** Who may see what: the same keys as in a policy file. Globs are compared with canonical URIs. */
export interface Policy {
  /** What may be seen; the rest does not exist. `*` alone is everything. Default: everything. */
  readonly allow?: OneOrMany | null;
  /** What may not be seen, also where it is allowed. Default: nothing. */
  readonly deny?: OneOrMany;
  /** By glob, the scopes that a token must have. Default: none. */
  readonly scopes?: Readonly<Record<string, OneOrMany>>;
  /** By identity, what narrows the policy for one principal; the local process has the empty one. Default: nothing. */
  readonly principals?: Readonly<Record<string, PrincipalPolicy>>;
  /** How often one principal may ask. */
  readonly rate?: Rates;
  /** How many requests of one principal may wait for an answer. Default: no bound. */
  readonly concurrency?: number | null;
  /** By glob, the most bytes that one read may give. Default: none. */
  readonly max_size?: Readonly<Record<string, number>>;
  /** The detectors whose finds in texts are replaced. Default: none. */
  readonly redact?: OneOrMany;
}

/** How often one principal may ask. */
export interface Rate {
  /** How many a second in the long run. */
  readonly per_second: number;
  /** How many at once. Default: those of one second, one at least. */
  readonly burst?: number;
}

/** How often one principal may ask, by what it asks for. `null` stands for the default. */
export interface Rates {
  /** Reads. Default: no bound. */
  readonly read?: Rate | null;
  /** Completions. Default: 200 a second, 400 at once. */
  readonly completion?: Rate | null;
  /** Pages of lists. Default: no bound. */
  readonly list?: Rate | null;
  /** Subscriptions and listens. Default: no bound. */
  readonly subscribe?: Rate | null;
  /** Methods that are not of resources. Default: no bound. */
  readonly call?: Rate | null;
}

/** What narrows a policy for one principal. */
export interface PrincipalPolicy {
  /** As in the policy: it may see what both allow. */
  readonly allow?: OneOrMany | null;
  /** As in the policy. */
  readonly deny?: OneOrMany;
  /** Scopes that it has beside those of its token. */
  readonly scopes?: OneOrMany;
}

/** Who asks. */
export interface Requester {
  /** The identity. Default: the local process. */
  readonly principal?: string;
  /** The scopes of its token. Default: none. */
  readonly scopes?: readonly string[];
}

/** What a policy says, for an author's own tests and functions. */
export class Guard {
  readonly #native: InstanceType<typeof binding.Guard>;

  /**
   * @param policy - the policy, or the path of a JSON or YAML file.
   * @throws {RegistrationError} it has an unknown member, or one with a value that means nothing.
   */
  constructor(policy: Policy | string, { explicitDenials = false }: { readonly explicitDenials?: boolean } = {}) {
    this.#native = translated(() => new binding.Guard(policySource(policy), explicitDenials));
  }

  /**
   * What is said of a URI, in any spelling.
   * @throws {InvalidUriError} it is not a URI.
   */
  decide(uri: string, requester: Requester = {}): 'allow' | 'hidden' | 'denied' | 'missing_scope' {
    return translated(() => this.#native.decide(uri, given(requester)));
  }

  /**
   * The scopes that are missing where nothing else is.
   * @throws {InvalidUriError} it is not a URI.
   */
  missingScopes(uri: string, requester: Requester = {}): string[] {
    return translated(() => this.#native.missingScopes(uri, given(requester)));
  }

  /**
   * Whether a template is listed: one of its URIs may be seen.
   * @throws {InvalidTemplateError} it is not one.
   */
  knowsTemplate(template: string, requester: Requester = {}): boolean {
    return translated(() => this.#native.knowsTemplate(template, given(requester)));
  }
}

/** A policy as the compiled part takes it. */
export function policySource(policy: Policy | string): { json?: string; file?: string } {
  return typeof policy === 'string' ? { file: policy } : { json: JSON.stringify(policy) };
}

function given({ principal = '', scopes = [] }: Requester): { principal: string; scopes: string[] } {
  return { principal, scopes: [...scopes] };
}
