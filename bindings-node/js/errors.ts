/**
 * What this library throws, and what a handler throws to answer a request with an error: one tree under `McpError`.
 */
import { shown } from './check.js';

/** The words for errors that clients find in the error's data. */
export type ErrorKind =
  | 'not_found'
  | 'access_denied'
  | 'invalid_uri'
  | 'invalid_parameter'
  | 'size_exceeded'
  | 'timeout'
  | 'rate_limited'
  | 'input_required'
  | 'input_declined'
  | 'invalid_token';

/** The words for what goes wrong between a {@link Client} and a server. */
export type FailureKind =
  | 'server'
  | 'timeout'
  | 'unreachable'
  | 'unauthorized'
  | 'too_large'
  | 'bad_answer'
  | 'unsupported'
  | 'input_required'
  | 'no_server'
  | 'several_servers'
  | 'cancelled'
  | 'limit_reached';

/** The base of all. */
export class McpError extends Error {
  /** The word that clients find in the error's data; `undefined` where there is none. */
  get kind(): ErrorKind | FailureKind | undefined {
    return undefined;
  }

  override get name(): string {
    return this.constructor.name;
  }
}

/** There is no such resource. Thrown by a handler; the client's URI goes into the error by itself. */
export class ResourceNotFoundError extends McpError {
  /** The URI, as a client was asked for it; `undefined` in what a handler throws. */
  declare readonly uri?: string;

  override get kind(): ErrorKind {
    return 'not_found';
  }
}

/** The client may not see it. Told as not found, unless the server was made with `explicitDenials: true`. */
export class AccessDeniedError extends McpError {
  /** The URI, as a client was asked for it; `undefined` in what a handler throws. */
  declare readonly uri?: string;

  override get kind(): ErrorKind {
    return 'access_denied';
  }
}

/** A text is not a URI, or a handler finds the URI that it was asked for unusable. */
export class InvalidUriError extends McpError {
  /** The URI, as a client was asked for it; `undefined` in what a handler throws. */
  declare readonly uri?: string;

  override get kind(): ErrorKind {
    return 'invalid_uri';
  }
}

/** A value has the wrong type or form. `expected` is one short phrase, sent to the client. */
export class InvalidParameterError extends McpError {
  constructor(
    readonly parameter: string,
    readonly expected: string,
  ) {
    super(`${parameter}: expected ${expected}`);
  }

  override get kind(): ErrorKind {
    return 'invalid_parameter';
  }
}

/** The contents are larger than allowed: `limit` and, if known, `size` in bytes. */
export class SizeExceededError extends McpError {
  constructor(
    readonly limit: number,
    readonly size?: number,
  ) {
    super(`larger than ${limit} bytes`);
  }

  override get kind(): ErrorKind {
    return 'size_exceeded';
  }
}

/** The handler did not answer in time: `afterMs` milliseconds. */
export class ReadTimeoutError extends McpError {
  constructor(readonly afterMs: number) {
    super(`no answer after ${afterMs} ms`);
  }

  override get kind(): ErrorKind {
    return 'timeout';
  }
}

/** Too many requests: come back in `retryAfterMs` milliseconds. */
export class RateLimitedError extends McpError {
  constructor(readonly retryAfterMs: number) {
    super(`retry after ${retryAfterMs} ms`);
  }

  override get kind(): ErrorKind {
    return 'rate_limited';
  }
}

/** The user declined to give the input that the handler asked for. */
export class InputDeclinedError extends McpError {
  override get kind(): ErrorKind {
    return 'input_declined';
  }
}

/**
 * An error of the server's own, with a code that it documents: outside -32768 to -32000, or a standard one. `data` is
 * a JSON object.
 *
 * @throws {TypeError} the code is not a whole number of 32 bits, or the message no string.
 */
export class CustomError extends McpError {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: Readonly<Record<string, unknown>>,
  ) {
    super(message);
    if ((code | 0) !== code) throw new TypeError(`code is ${shown(code)}, expected a whole number of 32 bits`);
    if (typeof message !== 'string') throw new TypeError(`message is ${shown(message)}, expected a string`);
  }
}

/** A client gave no result to `ctx.ask`: it could not be asked, did not answer, or refused with this `code`. */
export class AskFailedError extends McpError {
  constructor(
    message: string,
    readonly code?: number,
  ) {
    super(message);
  }
}

/** A resource, template or handler that cannot be registered. The message says what is allowed. */
export class RegistrationError extends McpError {}

/** A text is not a URI template: `template` is wrong at `offset`, in bytes from its beginning. */
export class InvalidTemplateError extends RegistrationError {
  constructor(
    message: string,
    readonly template: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

/** `template` matches the same URIs as `other`, so that neither could be preferred. */
export class TemplateConflictError extends RegistrationError {
  constructor(
    message: string,
    readonly template: string,
    readonly other: string,
  ) {
    super(message);
  }
}

/** A configuration of a client, or an option that depends on others, that cannot be used. The message names what is wrong. */
export class ConfigError extends McpError {}

/** A {@link Client} could not do what it was asked, for a reason other than access, a missing resource or a wrong URI. */
export class ReadFailedError extends McpError {
  readonly #kind: FailureKind;
  /** The code of the server's error, if the server has answered with one. */
  readonly code: number | undefined;
  /** The `data` of the server's error: a JSON value. */
  readonly data: unknown;
  /** The name of the server, if one alone was asked. */
  readonly server: string | undefined;

  constructor(
    message: string,
    kind: FailureKind,
    { code, data, server }: { readonly code?: number; readonly data?: unknown; readonly server?: string } = {},
  ) {
    super(message);
    this.#kind = kind;
    this.code = code;
    this.data = data;
    this.server = server;
  }

  /** What went wrong. */
  override get kind(): FailureKind {
    return this.#kind;
  }
}

/** What the compiled part says of a value that it cannot take, such as `Number 5 `, and the type that it wants. */
const CONVERSION = /^Failed to convert JavaScript value `(\w+)(.*?) ?` into rust type `(\w+)`(?: on \w+\.(\w+))?/s;
const TYPES: Readonly<Record<string, string>> = {
  String: 'a string',
  bool: 'true or false',
  f64: 'a number',
  i64: 'a number',
};

/** The same in the words of this language. */
function plain(message: string): string {
  const [, kind, value, type, field] = CONVERSION.exec(message) ?? [];
  if (kind === undefined || type === undefined) return message;
  const given = value?.trim() ? value.trim() : kind.toLowerCase();
  return `${field ?? 'an argument'} is ${given}, expected ${TYPES[type] ?? 'another value'}`;
}

/** What the compiled part throws. */
type Thrown = Error & { code?: string; mcpError?: string } & Record<string, string>;

/** Calls the compiled part; what it throws becomes the class of this tree that it names, or a `TypeError`. */
export function translated<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw error instanceof Error ? translate(error as Thrown) : error;
  }
}

function translate(error: Thrown): Error {
  switch (error.mcpError) {
    case 'InvalidUriError':
      return new InvalidUriError(error.message);
    case 'InvalidTemplateError':
      return new InvalidTemplateError(error.message, error.template ?? '', Number(error.offset));
    case 'TemplateConflictError':
      return new TemplateConflictError(error.message, error.template ?? '', error.other ?? '');
    case 'SizeExceededError':
      return new SizeExceededError(Number(error.limit));
    case 'AskFailedError':
      return new AskFailedError(error.message);
    case 'ConfigError':
      return new ConfigError(error.message);
    case 'System':
      return error;
    case undefined:
      return /^InvalidArg$|Expected$/.test(error.code ?? '') ? new TypeError(plain(error.message)) : error;
    default:
      return new RegistrationError(error.message);
  }
}
