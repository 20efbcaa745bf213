/** The options of a client: what they are, and what they may be. */
import type { PlainValue } from './binding.js';
import { CALL, COUNT, checkOptions, isObject, type Shape, said, shown, TEXT, TEXTS } from './check.js';
import type { Answerer, Callbacks, CallOptions } from './client-wire.js';
import { ConfigError } from './errors.js';
import type { Logger } from './log.js';
import { ResourceServer } from './server.js';

/** Functions that answer the questions of servers. The client declares the capabilities of those that are there. */
export interface Answers {
  /** A form or a page for the user. */
  readonly elicitation?: Answerer;
  /** A completion by a model. */
  readonly sampling?: Answerer;
  /** The client's roots. */
  readonly roots?: Answerer;
}

/** Options of every client. */
export interface CommonClientOptions {
  /** How long a request may take, in milliseconds. Default 30,000. */
  readonly timeout?: number;
  /** The only revision of the protocol to speak. Default: 2026-07-28 with servers that have it, else the newest older one. */
  readonly revision?: string;
  /** What answers the questions of servers. Default: nothing. */
  readonly answers?: Answers;
  /** Called with the name of a server and a sentence about what was left out or ignored, for a log. */
  readonly onNote?: (server: string, note: string) => unknown;
  /** Where failures of these functions are reported. Default: `console`. */
  readonly logger?: Logger;
}

/** Options of a client of one server. */
export interface ClientOptions extends CommonClientOptions {
  /** The name of the server, in results and errors. Default: `server`. */
  readonly name?: string;
  /** What may be seen of it: globs over URIs, or `"*"` for everything. Default: `"*"`. */
  readonly resources?: '*' | readonly string[];
  /** Headers of every request, such as `Authorization`. With a URL. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Variables beside those of this process' environment. With a command. */
  readonly env?: Readonly<Record<string, string>>;
  /** The directory that the server runs in. Default: this process' own. With a command. */
  readonly cwd?: string;
}

/** Options of a client of a configuration's servers. */
export interface ConfigOptions extends CommonClientOptions {
  /** The agent whose servers and allow-lists count. Default: the servers' own entries. */
  readonly agent?: string;
}

/** A server: a command with its arguments, the URL of an endpoint, or a server of this process. */
export type ClientTarget = readonly string[] | string | URL | ResourceServer;

/** A configuration file and an agent, in place of one server. */
export class ConfigFile {
  constructor(
    readonly path: string,
    readonly agent: string | undefined,
  ) {}
}

/** What the compiled part takes: options of the core's by name. */
export type ClientFields = Record<string, PlainValue>;

const PAIRS = {
  is: (value: unknown) => isObject(value) && Object.values(value).every((item) => typeof item === 'string'),
  expected: 'an object whose values are strings',
};
const MILLISECONDS = said(COUNT, 'a whole number of milliseconds');
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

/** What the compiled part takes, of a server. */
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

/** What of the author's is called. */
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
  if (!isUrl && headers !== undefined) throw new ConfigError('headers is an option for a URL, and the server has none');
  for (const [option, value] of Object.entries({ env, cwd })) {
    if (!isCommand && value !== undefined) {
      throw new ConfigError(`${option} is an option for a command, and the server has none`);
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
