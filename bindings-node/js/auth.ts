/** Bearer tokens: what an HTTP endpoint asks for, and what it says of it (RFC 6750, RFC 9728). */
import type { HttpFields } from './binding.js';
import { McpError } from './errors.js';
import { unverified } from './log.js';
import type { JsonObject } from './results.js';

/** The token is not valid, has expired, or was made for another audience. Thrown by `Auth.verify`. */
export class InvalidToken extends McpError {}

/** A token that was verified: signature, expiry, issuer and audience. */
export interface Verified {
  /** Who it stands for: what sessions, cursors and request states are bound to. */
  readonly subject: string;
  /** What it may be used for. Default: nothing. */
  readonly scopes?: readonly string[];
  /** When it expires, in seconds since 1970: until then it need not be verified again. Default: each time. */
  readonly expires?: number;
}

/** What bearer tokens must be. */
export interface Auth {
  /** The URL of the endpoint as clients know it: the audience of tokens. */
  readonly resource: string;
  /** The servers that give tokens for it; at least one. */
  readonly authorizationServers: readonly string[];
  /** Verifies a token. Throws `InvalidToken`; anything else means that it could not be found out now. */
  readonly verify: (token: string) => Verified | PromiseLike<Verified>;
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
export type Verdict = { subject: string; scopes: string[]; expiresMs: number | undefined } | boolean;

/** Asks the author's function. */
export async function verdict(auth: Auth, token: string): Promise<Verdict> {
  try {
    const { subject, scopes = [], expires } = await auth.verify(token);
    if (typeof subject !== 'string') throw new TypeError('a verified token has a subject, a text');
    return { subject, scopes: [...scopes], expiresMs: expires === undefined ? undefined : Math.floor(expires * 1000) };
  } catch (error) {
    if (error instanceof InvalidToken) return false;
    unverified(error);
    return true;
  }
}

/** What the compiled part takes of it. */
export function authFields(auth: Auth): NonNullable<HttpFields['auth']> {
  const { resource, authorizationServers, requiredScopes = [], scopesSupported = [], impliedScopes = [] } = auth;
  const document = auth.authorizationServerDocument;
  return {
    resource,
    authorizationServers: [...authorizationServers],
    requiredScopes: [...requiredScopes],
    scopesSupported: [...scopesSupported],
    impliedScopes: impliedScopes.map(([broader, narrower]) => [broader, narrower]),
    ...(document && { authorizationServerDocument: JSON.stringify(document) }),
  };
}
