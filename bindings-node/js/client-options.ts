/** The options of a client and of its calls, with their checks. */
import type { PlainValue } from './binding.js';
import { CALL, COUNT, checkOptions, isObject, type Shape, said, shown, TEXT, TEXTS } from './check.js';
import type { Progress, Question } from './client-values.js';
import { ConfigError } from './errors.js';
import type { Logger } from './log.js';
import { ResourceServer } from './server.js';

/** The options of a call. */
export interface CallOptions {
  /** The name of the only server to ask. Default: every server whose allow-list has the URI. */
  readonly server?: string;
  /**
   * The longest time for a request, in milliseconds; each progress report restarts it. Default: that of the client.
   */
  readonly timeout?: number;
  /** Called with each progress report of the server. Default: nothing is called. */
  readonly onProgress?: (progress: Progress) => unknown;
  /** Cancels the request when it is aborted; the call rejects with its reason. */
  readonly signal?: AbortSignal;
}

/** Answers a request of a server: returns the result, a JSON object. */
export type Answerer = (question: Question) => object | PromiseLike<object>;

/** The functions of the options of a client. */
export interface Callbacks {
  readonly answers: ReadonlyMap<string, Answerer>;
  readonly onNote: ((server: string, note: string) => unknown) | undefined;
  readonly logger: Logger;
}

/** Functions that answer requests of servers. The client declares the capabilities of those that are given. */
export interface Answers {
  /** Shows the user a form or a page. */
  readonly elicitation?: Answerer;
  /** Asks a model for a completion. */
  readonly sampling?: Answerer;
  /** Returns the roots of the client. */
  readonly roots?: Answerer;
}

/** The options of every client. */
export interface CommonClientOptions {
  /** The longest time for a request, in milliseconds. Default 30,000. */
  readonly timeout?: number;
  /** The only protocol revision to use. Default: the newest that the server supports. */
  readonly revision?: string;
  /**
   * Functions that answer requests of the server. Each gets a `Question`, may be `async`, and returns the result, an object.
   * If it throws, the error is logged and the server gets an error. Default: none.
   */
  readonly answers?: Answers;
  /**
   * Called with the name of a server and a sentence when something of the server is left out or ignored. Default: nothing
   * is called.
   */
  readonly onNote?: (server: string, note: string) => unknown;
  /** Takes the errors that these functions throw. Default: `console`. */
  readonly logger?: Logger;
}

/** The options of a client of one server. */
export interface ClientOptions extends CommonClientOptions {
  /** The name of the server in errors and notes. Default `server`. */
  readonly name?: string;
  /** The allow-list: globs over URIs. Default `"*"`: all resources of the server. */
  readonly resources?: '*' | readonly string[];
  /** HTTP headers of every request, such as `Authorization`. For a URL. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Environment variables of the command, in addition to those of this process. Default: none. */
  readonly env?: Readonly<Record<string, string>>;
  /** The working directory of the command. Default: that of this process. */
  readonly cwd?: string;
}

/** The options of a client of a configuration file. */
export interface ConfigOptions extends CommonClientOptions {
  /**
   * A name under `agents` in the file: the client then has only the servers of this agent, with its allow-lists. Default:
   * all servers, with their own `resources`.
   */
  readonly agent?: string;
}

/** A server: a command with its arguments, the URL of an endpoint, or a `ResourceServer` of this process. */
export type ClientTarget = readonly string[] | string | URL | ResourceServer;

/** A configuration file and an agent, in place of one server. */
export class ConfigFile {
  constructor(
    readonly path: string,
    readonly agent: string | undefined,
  ) {}
}

/** The options of a client as the compiled part takes them. */
export type ClientFields = Record<string, PlainValue>;

const PAIRS = {
  is: (value: unknown) => isObject(value) && Object.values(value).every((item) => typeof item === 'string'),
  expected: 'an object whose values are strings',
};
const MILLISECONDS = {
  is: (value: unknown) => COUNT.is(value) && (value as number) > 0,
  expected: 'a whole number of milliseconds above 0, such as 5_000',
};
const COMMON: Shape<CommonClientOptions> = {
  timeout: MILLISECONDS,
  revision: said(TEXT, 'a date such as "2025-11-25"'),
  answers: { is: isObject, expected: 'an object of functions such as { elicitation: (question) => … }' },
  onNote: CALL,
  logger: {
    is: (value) => typeof (value as { error?: unknown } | null)?.error === 'function',
    expected: 'an object with warn() and error(), such as console',
  },
};
const OF_A_SERVER: Shape<ClientOptions> = {
  ...COMMON,
  name: TEXT,
  resources: {
    is: (value) => value === '*' || TEXTS.is(value),
    expected: '"*" or an array of globs such as ["file:///project/**"]',
  },
  headers: PAIRS,
  env: PAIRS,
  cwd: TEXT,
};
const OF_A_CONFIG: Shape<ConfigOptions> = { ...COMMON, agent: TEXT };
const ANSWERS: Shape<Answers> = { elicitation: CALL, sampling: CALL, roots: CALL };
const CALLS: Shape<CallOptions> = {
  server: TEXT,
  timeout: MILLISECONDS,
  onProgress: CALL,
  signal: { is: (value) => value instanceof AbortSignal, expected: 'an AbortSignal' },
};

/** Checks the options of a call. */
export function checkCall(method: string, options: CallOptions | undefined): void {
  if (options !== undefined) checkOptions(method, options, CALLS);
}

/** Checks the options of {@link Client.fromConfig}. */
export function checkConfig(path: unknown, options: unknown): void {
  if (typeof path !== 'string')
    throw new TypeError(`the path is ${shown(path)}, expected a string such as "agents.yaml"`);
  checkOptions('Client.fromConfig', options, OF_A_CONFIG);
}

/** The server and the options of a client as the compiled part takes them. */
export function fieldsOf(target: ClientTarget | ConfigFile, options: ClientOptions): ClientFields {
  checkOptions('Client', options, OF_A_SERVER);
  const { timeout, revision, answers = {}, onNote } = options;
  checkOptions('answers', answers, ANSWERS);
  return {
    ...(timeout !== undefined && { timeout }),
    ...(revision !== undefined && { revision }),
    answers: [...given(answers).keys()],
    notes: onNote !== undefined,
    ...(target instanceof ConfigFile ? configFields(target) : serverFields(target, options)),
  };
}

/** The functions of the options. */
export function callbacksOf({ answers = {}, onNote, logger = console }: CommonClientOptions): Callbacks {
  return { answers: given(answers), onNote, logger };
}

function given(answers: Answers): Map<string, Answerer> {
  return new Map(Object.entries(answers).filter(([, answerer]) => answerer !== undefined));
}

function configFields({ path, agent }: ConfigFile): ClientFields {
  return { config: path, ...(agent !== undefined && { agent }) };
}

function serverFields(target: ClientTarget, options: ClientOptions): ClientFields {
  const { name, resources = '*', headers, env, cwd } = options;
  const isUrl = typeof target === 'string' || target instanceof URL;
  const isCommand = TEXTS.is(target) && (target as readonly string[]).length > 0;
  if (!isUrl && !isCommand && !(target instanceof ResourceServer)) {
    const known = 'a command such as ["my-server", "--all"], a URL or a ResourceServer';
    throw new TypeError(`the server is ${shown(target)}, expected ${known}`);
  }
  if (typeof target === 'string' && !/^https?:\/\//i.test(target)) {
    throw new TypeError(
      `the server is ${shown(target)}, which is no http URL; give a command as an array: ["my-server"]`,
    );
  }
  const kind = isUrl ? 'a URL' : isCommand ? 'a command' : 'a server of this process';
  if (!isUrl && headers !== undefined) {
    throw new ConfigError(`headers is an option for a URL, and the server is ${kind}; leave it out`);
  }
  for (const [option, value] of Object.entries({ env, cwd })) {
    if (!isCommand && value !== undefined) {
      throw new ConfigError(`${option} is an option for a command, and the server is ${kind}; leave it out`);
    }
  }
  return {
    ...(isUrl && { url: String(target) }),
    ...(isCommand && { command: [...(target as readonly string[])] }),
    ...(name !== undefined && { name }),
    ...(resources !== '*' && { resources: [...resources] }),
    ...(headers && { headers: Object.entries(headers) }),
    ...(env && { env: Object.entries(env) }),
    ...(cwd !== undefined && { cwd }),
  };
}
