/**
 * The errors that this library throws, and those that a handler throws to answer a request with an error. All are
 * subclasses of `McpError`.
 */
import { COUNT, isObject, type Kind, shown, TEXT } from './check.js';

/** The word for an error in the data that clients get. */
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

/** The reason why a call of a {@link Client} failed. */
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

/** The base class of all errors. */
export class McpError extends Error {
  /** The word for the error in the data that clients get, or `undefined`. */
  get kind(): ErrorKind | FailureKind | undefined {
    return undefined;
  }

  override get name(): string {
    return this.constructor.name;
  }
}

/**
 * The resource does not exist. Thrown by a handler, and by `Client`.
 *
 * A handler need not name the URI: the error for the client has it. Its message is logged, not sent.
 */
export class ResourceNotFoundError extends McpError {
  /** The URI that was read; set by `Client`. */
  declare readonly uri?: string;

  override get kind(): ErrorKind {
    return 'not_found';
  }
}

/**
 * The client may not see the resource. Thrown by a handler, and by `Client`.
 *
 * To the client it looks like a resource that does not exist, unless the server has `explicitDenials: true`.
 */
export class AccessDeniedError extends McpError {
  /** The URI that was read; set by `Client`. */
  declare readonly uri?: string;

  override get kind(): ErrorKind {
    return 'access_denied';
  }
}

/** A text is not a URI, or a handler cannot use the URI of the request. */
export class InvalidUriError extends McpError {
  /** The URI that was read; set by `Client`. */
  declare readonly uri?: string;

  override get kind(): ErrorKind {
    return 'invalid_uri';
  }
}

/** The value of a variable of a template is wrong. Thrown by a handler. */
export class InvalidParameterError extends McpError {
  /**
   * @param parameter - the name of the variable.
   * @param expected - a short phrase for the client, such as `a date`.
   */
  constructor(
    readonly parameter: string,
    readonly expected: string,
  ) {
    super(`${parameter}: expected ${expected}`);
    check('parameter', parameter, TEXT);
    check('expected', expected, TEXT);
  }

  override get kind(): ErrorKind {
    return 'invalid_parameter';
  }
}

/** The contents are too large. Thrown by a handler. */
export class SizeExceededError extends McpError {
  /**
   * @param limit - the largest size that is allowed, in bytes.
   * @param size - the size of the contents, in bytes. Default: unknown.
   */
  constructor(
    readonly limit: number,
    readonly size?: number,
  ) {
    super(`larger than ${limit} bytes`);
    check('limit', limit, COUNT);
    if (size !== undefined) check('size', size, COUNT);
  }

  override get kind(): ErrorKind {
    return 'size_exceeded';
  }
}

/** The contents were not ready in time. Thrown by a handler. */
export class ReadTimeoutError extends McpError {
  /** @param afterMs - the time that has passed, in milliseconds. */
  constructor(readonly afterMs: number) {
    super(`no answer after ${afterMs} ms`);
    check('afterMs', afterMs, COUNT);
  }

  override get kind(): ErrorKind {
    return 'timeout';
  }
}

/** There are too many requests. Thrown by a handler. */
export class RateLimitedError extends McpError {
  /** @param retryAfterMs - when the client may try again, in milliseconds from now. */
  constructor(readonly retryAfterMs: number) {
    super(`retry after ${retryAfterMs} ms`);
    check('retryAfterMs', retryAfterMs, COUNT);
  }

  override get kind(): ErrorKind {
    return 'rate_limited';
  }
}

/** The user declined to give the input that the handler asked for. Thrown by a handler. */
export class InputDeclinedError extends McpError {
  override get kind(): ErrorKind {
    return 'input_declined';
  }
}

/** A JSON-RPC error of your own. Thrown by a handler. */
export class CustomError extends McpError {
  /**
   * @param code - a whole number outside of -32768 to -32000, or one of the standard codes of JSON-RPC.
   * @param message - the message for the client.
   * @param data - a JSON object with details. Default: none.
   * @throws {TypeError} the code is not a whole number of 32 bits, the message is not a string, or the data not an object.
   */
  constructor(
    readonly code: number,
    message: string,
    readonly data?: Readonly<Record<string, unknown>>,
  ) {
    super(message);
    if ((code | 0) !== code) throw new TypeError(`code is ${shown(code)}, expected a whole number of 32 bits`);
    check('message', message, TEXT);
    if (data !== undefined && !isObject(data)) throw new TypeError(`data is ${shown(data)}, expected an object`);
  }
}

/** A tool failed in a way that the model can mend. Thrown by a tool; the model reads the message. */
export class ToolError extends McpError {
  /** @param message - one sentence for the model. */
  constructor(message: string) {
    super(message);
    check('message', message, TEXT);
  }
}

/** `ctx.ask` got no result: the client cannot be asked, did not answer, or refused. */
export class AskFailedError extends McpError {
  /**
   * @param message - the reason.
   * @param code - the code of the client's error, if it refused.
   */
  constructor(
    message: string,
    readonly code?: number,
  ) {
    super(message);
  }
}

/** A resource, template, handler or option cannot be registered. The message says what is allowed. */
export class RegistrationError extends McpError {}

/** A text is not a URI template. `template` is the text, `offset` the place of the error, in bytes. */
export class InvalidTemplateError extends RegistrationError {
  constructor(
    message: string,
    readonly template: string,
    readonly offset: number,
  ) {
    super(message);
  }
}

/** Two templates match the same URIs: `template`, and `other`, which is registered already. */
export class TemplateConflictError extends RegistrationError {
  constructor(
    message: string,
    readonly template: string,
    readonly other: string,
  ) {
    super(message);
  }
}

/** A configuration file or an option of a client is wrong. The message names the key, agent, server or file. */
export class ConfigError extends McpError {}

/** A call of a {@link Client} failed. Missing resources, denied access and invalid URIs have classes of their own. */
export class ReadFailedError extends McpError {
  readonly #kind: FailureKind;
  /** The code of the server's error, or `undefined`. */
  readonly code: number | undefined;
  /** The data of the server's error, a JSON value, or `undefined`. */
  readonly data: unknown;
  /** The name of the server, or `undefined` if several were asked. */
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

  /** The reason: `server` means that the server answered with an error. */
  override get kind(): FailureKind {
    return this.#kind;
  }
}

/** The message of the compiled part for a value of the wrong type: the value, such as `Number 5 `, and the type. */
const CONVERSION = /^Failed to convert JavaScript value `(\w+)(.*?) ?` into rust type `(\w+)`(?: on \w+\.(\w+))?/s;
const TYPES: Readonly<Record<string, string>> = {
  String: 'a string',
  bool: 'true or false',
  f64: 'a number',
  i64: 'a number',
};

/** The same message in terms of JavaScript. */
function plain(message: string): string {
  const [, kind, value, type, field] = CONVERSION.exec(message) ?? [];
  if (kind === undefined || type === undefined) return message;
  const given = value?.trim() ? value.trim() : kind.toLowerCase();
  return `${field ?? 'an argument'} is ${given}, expected ${TYPES[type] ?? 'another value'}`;
}

/** An error that the compiled part throws. */
type Thrown = Error & { code?: string; mcpError?: string } & Record<string, string>;

/**
 * Calls the compiled part. An error that it throws becomes the class of this module that it names, or a `TypeError`.
 * The message about an option shows its value, which is found in `options`.
 */
export function translated<T>(call: () => T, options?: unknown): T {
  try {
    return call();
  } catch (error) {
    throw error instanceof Error ? translate(error as Thrown, options) : error;
  }
}

/** What stands in the message of the compiled part for the value of an option, and between the steps of its path. */
const MARK = '\0';

/** The value at a path; names in it are spelled as in the core. */
function valueAt(value: unknown, path: string): unknown {
  return path.split(MARK).reduce((within: unknown, step) => {
    if (Array.isArray(within)) return within[Number(step)] ?? within.find((pair) => pair?.[0] === step)?.[1];
    const spelled = step.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    return isObject(within) ? (within[step] ?? within[spelled]) : within;
  }, value);
}

function translate(error: Thrown, options: unknown): Error {
  switch (error.mcpError) {
    case 'OptionError':
      return new TypeError(error.message.replace(MARK, () => shown(valueAt(options, error.path ?? ''))));
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

function check(name: string, value: unknown, { is, expected }: Kind): void {
  if (!is(value)) throw new TypeError(`${name} is ${shown(value)}, expected ${expected}`);
}
