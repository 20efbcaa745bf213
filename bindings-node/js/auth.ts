/** Bearer tokens of an HTTP endpoint: how they are verified, and what its metadata says (RFC 6750, RFC 9728). */
import { binding, type TokenVerifier as Native, type PlainValue, type Server, type VerifiedFields } from './binding.js';
import { checkOptions, checkText, isObject, type Kind, shown, TEXT } from './check.js';
import { type ErrorKind, McpError, translated } from './errors.js';
import { type Logger, unverified } from './log.js';
import type { JsonObject } from './results.js';

/** The token is not valid, has expired, or was issued for another audience. Thrown by `Auth.verify`. */
export class InvalidTokenError extends McpError {
  override get kind(): ErrorKind {
    return 'invalid_token';
  }
}

/** A token that was verified: its signature, expiry, issuer and audience are right. */
export interface Verified {
  /** The identity of the client: `ctx.principal`. Sessions, cursors and request states belong to it. */
  readonly subject: string;
  /** The scopes of the token: an array, or one string with spaces between them, as OAuth writes them. Default: none. */
  readonly scopes?: readonly string[] | string;
  /**
   * When the token expires, in seconds since 1970. It is not verified again before that, nor longer than `Limits.tokenTtl`.
   * Default: it is verified for each request.
   */
  readonly expires?: number;
  /** The claims that handlers get as `ctx.claims`. Default: none. */
  readonly claims?: JsonObject;
  /**
   * Globs over URIs: in addition to the policy of the server, the client sees only what matches one of them. Default:
   * everything that the policy allows.
   */
  readonly allow?: readonly string[];
  /** Globs over URIs that the client does not see, even if they are allowed. Default: none. */
  readonly deny?: readonly string[];
}

/** A verifier of tokens. */
export interface TokenVerifier {
  /**
   * Verifies a token.
   *
   * @throws {InvalidTokenError} the token is not valid. Anything else means that it could not be verified now.
   */
  verify(token: string): Verified | PromiseLike<Verified>;
}

/** The verifiers of the compiled part, which the native HTTP server calls on its own threads. */
const COMPILED = new WeakMap<object, Native>();

/**
 * Accepts a fixed list of tokens: for tests, or for a few clients whose tokens an administrator creates. Compares the
 * SHA-256 of tokens in constant time. Each token should have at least 128 random bits.
 */
export class StaticTokens implements TokenVerifier {
  /**
   * @param tokens - the tokens, each with the identity and the scopes that it stands for.
   * @throws {TypeError} a token has characters that an `Authorization` header cannot carry, or a value is not a `Verified`.
   */
  constructor(tokens: Readonly<Record<string, Verified>>) {
    if (!isObject(tokens)) {
      throw new TypeError(`tokens is ${shown(tokens)}, expected an object such as { TOKEN: { subject: "alice" } }`);
    }
    // The token itself is not repeated: an error ends in a log.
    const wrong = Object.values(tokens).find((verified) => !isObject(verified));
    if (wrong !== undefined) {
      throw new TypeError(`a token stands for a value ${kind(wrong)}; expected an object such as { subject: "alice" }`);
    }
    const known = Object.entries(tokens).map(([token, verified]) => ({ token, verified: verifiedFields(verified) }));
    COMPILED.set(
      this,
      translated(() => binding.TokenVerifier.listed(known)),
    );
  }

  /** See {@link TokenVerifier.verify}. */
  verify(token: string): Promise<Verified> {
    return check(this, token);
  }
}

/** The options of {@link JwtVerifier}. */
export interface JwtOptions {
  /** The issuer, compared with the claim `iss`. */
  readonly issuer: string;
  /** One or several audiences, usually `Auth.resource`. The claim `aud` must contain one of them. */
  readonly audience: string | readonly string[];
  /** The keys as a JWKS, an object or JSON text. */
  readonly keys?: JsonObject | string;
  /**
   * The URL of the JWKS: `https`, or `http` on this machine. It is fetched for the first token, then every ten minutes, and
   * for a token with an unknown key at most twice a minute.
   */
  readonly jwksUrl?: string;
  /** The signature algorithms that are accepted, such as `ES256`. Default: all that fit the key. */
  readonly algorithms?: readonly string[];
  /** The largest difference between the clocks of the issuer and the server, in seconds. Default 60. */
  readonly leeway?: number;
}

/**
 * Verifies signed JWTs (RFC 9068): type, signature, `exp`, `nbf`, `iss` and `aud`. The subject is the claim `sub` or,
 * without one, `client_id:` followed by the claim `client_id`. The scopes are those of the claim `scope` or `scp`. Tokens
 * that are unsigned or signed with a shared secret (HS256) are never accepted.
 */
export class JwtVerifier implements TokenVerifier {
  /**
   * Makes a verifier with `keys` or with `jwksUrl`: exactly one of them.
   *
   * @throws {TypeError} an option has the wrong type, or the keys, the URL or an algorithm cannot be used.
   */
  constructor(options: JwtOptions) {
    checkOptions('JwtVerifier', options, JWT_SHAPE);
    const { issuer, audience, keys, jwksUrl, algorithms, leeway = 60 } = options;
    checkText('issuer', issuer, 'https://id.example.com');
    if (audience === undefined) throw new TypeError('JwtVerifier needs an audience, usually the resource of auth');
    if ((keys === undefined) === (jwksUrl === undefined)) {
      const given = keys === undefined ? 'neither' : 'both';
      throw new TypeError(`JwtVerifier needs the keys or the URL of the keys: give keys or jwksUrl, got ${given}`);
    }
    const fields = {
      issuer,
      audiences: typeof audience === 'string' ? [audience] : listed('audience', audience),
      ...(keys !== undefined && { keys: typeof keys === 'string' ? keys : JSON.stringify(keys) }),
      ...(jwksUrl !== undefined && { jwksUrl }),
      ...(algorithms !== undefined && { algorithms: listed('algorithms', algorithms) }),
      leeway,
    };
    COMPILED.set(
      this,
      translated(() => binding.TokenVerifier.jwt(fields)),
    );
  }

  /** See {@link TokenVerifier.verify}. */
  verify(token: string): Promise<Verified> {
    return check(this, token);
  }
}

/** Requires bearer tokens at an HTTP endpoint (RFC 9728). */
export interface Auth {
  /** The URL of the endpoint as clients know it. Tokens must be issued for it: it is their audience. */
  readonly resource: string;
  /** The URLs of the authorization servers that issue tokens for the endpoint; at least one. */
  readonly authorizationServers: readonly string[];
  /**
   * Verifies a token: a function, a {@link JwtVerifier} or {@link StaticTokens}.
   *
   * Throws `InvalidTokenError` for a token that is not valid: the client gets status 401. Anything else that it throws means
   * that the token could not be verified now: it is logged, and the client gets status 503.
   */
  readonly verify: ((token: string) => Verified | PromiseLike<Verified>) | TokenVerifier;
  /** The scopes that every request needs. Default: none. */
  readonly requiredScopes?: readonly string[];
  /** The scopes that clients may request, for the metadata of the endpoint. Default: none. */
  readonly scopesSupported?: readonly string[];
  /** Pairs of scopes (broader, narrower): a token with the first one also has the second. Default: none. */
  readonly impliedScopes?: readonly (readonly [broader: string, narrower: string])[];
  /**
   * The metadata of the authorization server, for clients of 2025-03-26, which fetch it from this endpoint. Default: none.
   */
  readonly authorizationServerDocument?: JsonObject;
}

const ANY: Kind = { is: () => true, expected: '' };
/** The lists are checked later, where messages name their items. */
const AUTH_SHAPE = {
  resource: TEXT,
  authorizationServers: ANY,
  verify: {
    is: (value: unknown) => {
      const { verify } = Object(value) as { verify?: unknown };
      return typeof verify === 'function' || (typeof value === 'function' && !isClass(value));
    },
    expected: 'a function, a JwtVerifier or StaticTokens',
  },
  requiredScopes: ANY,
  scopesSupported: ANY,
  impliedScopes: {
    is: (value: unknown) => Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2),
    expected: 'an array of pairs [broader, narrower]',
  },
  authorizationServerDocument: { is: isObject, expected: 'an object' },
};
const JWT_SHAPE = {
  issuer: TEXT,
  audience: ANY,
  keys: ANY,
  jwksUrl: TEXT,
  algorithms: ANY,
  leeway: {
    is: (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0,
    expected: 'a whole number of seconds from 0',
  },
};

function isClass(value: unknown): boolean {
  return value === StaticTokens || value === JwtVerifier;
}

/** The result of a verification: the identity, or `false` for an invalid token, or `true` if it could not be verified. */
export type Verdict = VerifiedFields | boolean;

/** Calls `verify`. */
export async function verdict(verify: Auth['verify'], token: string, logger: Logger): Promise<Verdict> {
  try {
    return verifiedFields(await (typeof verify === 'function' ? verify(token) : verify.verify(token)));
  } catch (error) {
    if (error instanceof InvalidTokenError) return false;
    unverified(logger, error);
    return true;
  }
}

/** The verifier of a server's configuration file; `undefined` if it has none. */
export function fileVerifier({ verifier }: Server): Auth['verify'] | undefined {
  if (verifier === null) return undefined;
  const own = {};
  COMPILED.set(own, verifier);
  return (token) => check(own, token);
}

/** The verifier that the native server can call without JavaScript; `null` if there is none. */
export function compiled(auth: Auth | undefined): Native | null {
  return (typeof auth?.verify === 'object' && COMPILED.get(auth.verify)) || null;
}

/** The fields of an `Auth` as the compiled part takes them. */
export function authFields(auth: Auth): PlainValue {
  if (auth instanceof StaticTokens || auth instanceof JwtVerifier) {
    throw new TypeError(
      `auth is ${shown(auth)}, expected { resource, authorizationServers, verify }: it is the verify`,
    );
  }
  checkOptions('auth', auth, AUTH_SHAPE);
  for (const name of ['resource', 'authorizationServers', 'verify'] as const) {
    if (auth[name] === undefined) throw new TypeError(`auth needs ${name}: { resource, authorizationServers, verify }`);
  }
  const { resource, authorizationServers, requiredScopes = [], scopesSupported = [], impliedScopes = [] } = auth;
  const document = auth.authorizationServerDocument;
  return {
    resource,
    authorizationServers: listed('authorizationServers', authorizationServers),
    requiredScopes: listed('requiredScopes', requiredScopes),
    scopesSupported: listed('scopesSupported', scopesSupported),
    impliedScopes: impliedScopes.map(([broader, narrower]) => [broader, narrower]),
    ...(document && { authorizationServerDocument: JSON.stringify(document) }),
  };
}

/** A verified token as the compiled part takes it. */
function verifiedFields(verified: Verified): VerifiedFields {
  if (typeof verified !== 'object' || verified === null) {
    throw new TypeError(`verify returned ${kind(verified)}; expected an object with a subject`);
  }
  const { subject, scopes = [], expires, claims, allow, deny = [] } = verified;
  if (typeof subject !== 'string') {
    throw new TypeError(`the subject of a verified token is ${kind(subject)}; expected a string`);
  }
  if (expires !== undefined && !Number.isFinite(expires)) {
    const fix = (expires as unknown) instanceof Date ? ', such as expires.getTime() / 1000' : '';
    throw new TypeError(`expires of a verified token is ${shown(expires)}; expected seconds since 1970${fix}`);
  }
  return {
    subject,
    scopes:
      typeof scopes === 'string'
        ? scopes.split(' ').filter((scope) => scope !== '')
        : listed('the scopes of a verified token', scopes),
    ...(expires !== undefined && { expiresMs: Math.floor(expires * 1000) }),
    ...(claims !== undefined && { claims: JSON.stringify(claims) }),
    ...globs(allow, deny),
  };
}

/** The globs that a verified token allows and denies. */
function globs(allow: readonly string[] | undefined, deny: readonly string[]): { allow?: string[]; deny: string[] } {
  const allowed = allow && { allow: listed('allow of a verified token', allow) };
  const given = { ...allowed, deny: listed('deny of a verified token', deny) };
  if (allowed !== undefined || given.deny.length > 0)
    translated(() => new binding.Guard({ json: JSON.stringify(given) }, false));
  return given;
}

/** A list of strings. */
export function listed(name: string, given: readonly string[]): string[] {
  if (typeof given === 'string') {
    const text = JSON.stringify(given);
    throw new TypeError(`${name}: expected a list of strings, such as [${text}], and not the string ${text}`);
  }
  if (typeof (given as Iterable<string> | undefined)?.[Symbol.iterator] !== 'function') {
    throw new TypeError(`${name}: expected a list of strings, and not ${kind(given)}`);
  }
  const found = [...given];
  const wrong = found.findIndex((item) => typeof item !== 'string');
  if (wrong >= 0) throw new TypeError(`${name}: expected a list of strings; item ${wrong} is ${kind(found[wrong])}`);
  return found;
}

function kind(value: unknown): string {
  return value === null ? 'null' : `of type ${typeof value}`;
}

/** Calls a verifier of the compiled part. */
async function check(verifier: object, token: string): Promise<Verified> {
  const checking = (COMPILED.get(verifier) as Native).check(token);
  for (;;) {
    let wake = (): void => {};
    const woken = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const { pending, verified, unavailable } = checking.poll(wake);
    if (pending) await woken;
    else if (verified) return opened(verified);
    else if (unavailable) throw new Error('the keys of the issuer cannot be fetched');
    else throw new InvalidTokenError('the token is not valid');
  }
}

function opened({ subject, scopes, expiresMs, claims, allow, deny }: VerifiedFields): Verified {
  return {
    subject,
    scopes,
    ...(typeof expiresMs === 'number' && { expires: expiresMs / 1000 }),
    ...(typeof claims === 'string' && { claims: JSON.parse(claims) as JsonObject }),
    ...(allow && { allow }),
    deny,
  };
}
