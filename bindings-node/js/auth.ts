/** Bearer tokens: what an HTTP endpoint asks for, and what it says of it (RFC 6750, RFC 9728). */
import { binding, type TokenVerifier as Native, type PlainValue, type VerifiedFields } from './binding.js';
import { type ErrorKind, McpError, translated } from './errors.js';
import { type Logger, unverified } from './log.js';
import type { JsonObject } from './results.js';

/** The token is not valid, has expired, or was made for another audience. Thrown by `Auth.verify`. */
export class InvalidTokenError extends McpError {
  override get kind(): ErrorKind {
    return 'invalid_token';
  }
}

/** A token that was verified: signature, expiry, issuer and audience. */
export interface Verified {
  /** Who it stands for: what sessions, cursors and request states are bound to. */
  readonly subject: string;
  /** What it may be used for; a text holds scopes with spaces between them, as OAuth writes them. Default: nothing. */
  readonly scopes?: readonly string[] | string;
  /** When it expires, in seconds since 1970: until then it need not be verified again. Default: each time. */
  readonly expires?: number;
  /** What handlers are given as `ctx.claims`. Default: nothing. */
  readonly claims?: JsonObject;
}

/** What verifies tokens. */
export interface TokenVerifier {
  /**
   * Verifies a token.
   *
   * @throws {InvalidTokenError} it is not good; anything else means that it could not be found out now.
   */
  verify(token: string): Verified | PromiseLike<Verified>;
}

/** The verifiers of the compiled part, which the native server asks on its own threads. */
const COMPILED = new WeakMap<object, Native>();

/**
 * Verifies tokens by a list: for tests, or for a few clients whose tokens an administrator makes. Tokens are compared by
 * their SHA-256 in constant time. Each should have at least 128 random bits.
 */
export class StaticTokens implements TokenVerifier {
  /**
   * @param tokens - each token with what it stands for.
   * @throws {TypeError} a token could not stand in an `Authorization` header.
   */
  constructor(tokens: Readonly<Record<string, Verified>>) {
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

/** What a {@link JwtVerifier} accepts. */
export interface JwtOptions {
  /** The `iss` of tokens. */
  readonly issuer: string;
  /** The `aud` of tokens, or several of which one is enough: as a rule `Auth.resource`. */
  readonly audience: string | readonly string[];
  /** A JWKS, as an object or JSON text. */
  readonly keys?: JsonObject | string;
  /**
   * Where the JWKS is: `https`, or `http` on this machine. It is asked for the first token, then every ten minutes, and for
   * a token with an unknown key at most twice a minute.
   */
  readonly jwksUrl?: string;
  /** What tokens may be signed with, such as `ES256`. Default: each that fits the key. */
  readonly algorithms?: readonly string[];
  /** How far the clocks of issuer and server may be apart, in seconds. Default 60. */
  readonly leeway?: number;
}

/**
 * Verifies signed JWTs (RFC 9068): type, signature, `exp`, `nbf`, `iss` and `aud`. The subject is the token's `sub`; in a
 * token without one `client_id:` and its `client_id`. The scopes are those of `scope` or `scp`. Shared secrets (HS256) and
 * unsigned tokens are never accepted.
 */
export class JwtVerifier implements TokenVerifier {
  /** @throws {TypeError} the keys, the URL or an algorithm cannot be used. */
  constructor({ issuer, audience, keys, jwksUrl, algorithms, leeway = 60 }: JwtOptions) {
    const fields = {
      issuer,
      audiences: typeof audience === 'string' ? [audience] : [...audience],
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

/** What bearer tokens must be. */
export interface Auth {
  /** The URL of the endpoint as clients know it: the audience of tokens. */
  readonly resource: string;
  /** The servers that give tokens for it; at least one. */
  readonly authorizationServers: readonly string[];
  /**
   * Verifies a token. Throws `InvalidTokenError`; anything else means that it could not be found out now. A function of yours, a
   * {@link JwtVerifier} or {@link StaticTokens}.
   */
  readonly verify: ((token: string) => Verified | PromiseLike<Verified>) | TokenVerifier;
  /** What every request needs. */
  readonly requiredScopes?: readonly string[];
  /** What a client may ask for. */
  readonly scopesSupported?: readonly string[];
  /** Which narrower scopes a broader one includes. */
  readonly impliedScopes?: readonly (readonly [broader: string, narrower: string])[];
  /** The authorization server's metadata, for clients of 2025-03-26, which look for it here. */
  readonly authorizationServerDocument?: JsonObject;
}

/** What became of a token: who it stands for, or that it is not valid (`false`) or could not be looked at (`true`). */
export type Verdict = VerifiedFields | boolean;

/** Asks the author's function. */
export async function verdict(auth: Auth, token: string, logger: Logger): Promise<Verdict> {
  try {
    return verifiedFields(await (typeof auth.verify === 'function' ? auth.verify(token) : auth.verify.verify(token)));
  } catch (error) {
    if (error instanceof InvalidTokenError) return false;
    unverified(logger, error);
    return true;
  }
}

/** The verifier that the native server can ask by itself. */
export function compiled(auth: Auth | undefined): Native | null {
  return (typeof auth?.verify === 'object' && COMPILED.get(auth.verify)) || null;
}

/** What the compiled part takes of it. */
export function authFields(auth: Auth): PlainValue {
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

/** What the compiled part takes of a verified token. */
function verifiedFields(verified: Verified): VerifiedFields {
  if (typeof verified !== 'object' || verified === null) {
    throw new TypeError(`verify returned ${kind(verified)}; expected an object with a subject`);
  }
  const { subject, scopes = [], expires, claims } = verified;
  if (typeof subject !== 'string') {
    throw new TypeError(`the subject of a verified token is ${kind(subject)}; expected a string`);
  }
  if (expires !== undefined && !Number.isFinite(expires)) {
    throw new TypeError(`expires of a verified token is ${String(expires)}; expected seconds since 1970`);
  }
  return {
    subject,
    scopes:
      typeof scopes === 'string'
        ? scopes.split(' ').filter((scope) => scope !== '')
        : listed('the scopes of a verified token', scopes),
    ...(expires !== undefined && { expiresMs: Math.floor(expires * 1000) }),
    ...(claims !== undefined && { claims: JSON.stringify(claims) }),
  };
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

/** Asks a verifier of the compiled part. */
async function check(verifier: object, token: string): Promise<Verified> {
  const checking = (COMPILED.get(verifier) as Native).check(token);
  for (;;) {
    let wake = (): void => {};
    const rung = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const { pending, verified, unavailable } = checking.poll(wake);
    if (pending) await rung;
    else if (verified) return opened(verified);
    else throw unavailable ? new Error('the keys cannot be had') : new InvalidTokenError('the token is not valid');
  }
}

function opened({ subject, scopes, expiresMs, claims }: VerifiedFields): Verified {
  return {
    subject,
    scopes,
    ...(typeof expiresMs === 'number' && { expires: expiresMs / 1000 }),
    ...(typeof claims === 'string' && { claims: JSON.parse(claims) as JsonObject }),
  };
}
