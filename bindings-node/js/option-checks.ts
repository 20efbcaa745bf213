/** The kinds of all options of servers, resources and endpoints: each name of `options.ts` is here, and no other. */
import { binding } from './binding.js';
import {
  CALL,
  COUNT,
  checkOptions,
  either,
  FLAG,
  type Hints,
  ITERABLE,
  isObject,
  LIST,
  NUMBER,
  OBJECT,
  oneOf,
  type Shape,
  said,
  shown,
  TEXT,
  TEXTS,
} from './check.js';
import type { ResourceOptions } from './handler-types.js';
import type {
  Details,
  HttpOptions,
  ListenOptions,
  MethodOptions,
  Param,
  Resource,
  RunOptions,
  ServerInfo,
  ServerOptions,
} from './options.js';
import { isSchema } from './schema.js';
import type { TemplateOptions, VariableInfo } from './template-types.js';

const DATE = { is: (value: unknown) => value instanceof Date, expected: 'a Date' };
const HOST = {
  is: (value: unknown) => typeof value === 'string' && !value.includes('/'),
  expected: 'an address such as "127.0.0.1", without scheme and path',
};
const NULL = { is: (value: unknown) => value === null, expected: 'null' };
const PORT = {
  is: (value: unknown) => COUNT.is(value) && (value as number) <= 65_535,
  expected: 'a whole number from 0 (any free port) to 65535',
};
const NAMES = either('"loopback", "*" or an array of names such as ["example.com"]', oneOf('loopback', '*'), TEXTS);
const ORIGINS = either(
  '"loopback", "*" or an array of origins such as ["https://app.example.com"]',
  oneOf('loopback', '*'),
  TEXTS,
);
const PAIR = { is: (value: unknown) => LIST.is(value) && (value as unknown[]).length === 2, expected: 'a pair' };
const PATH_OR_NULL = either('a path such as "/healthz"', TEXT, NULL);

const INFO: Shape<ServerInfo> = {
  name: TEXT,
  version: said(TEXT, 'a string such as "1.0.0"'),
  title: TEXT,
  description: TEXT,
  websiteUrl: TEXT,
  icons: LIST,
};

const SERVER: Shape<ServerOptions> = {
  instructions: TEXT,
  limits: said(OBJECT, 'an object such as { page: 50 }'),
  revisions: said(ITERABLE, 'an array of dates such as ["2025-11-25"]'),
  subscribe: FLAG,
  listChanged: FLAG,
  completions: FLAG,
  tools: FLAG,
  prompts: FLAG,
  exposeAsTools: FLAG,
  logging: FLAG,
  serverInfoInResults: FLAG,
  explicitDenials: FLAG,
  audit: either('the path of a file, or a function', TEXT, CALL),
  metrics: FLAG,
  guard: either('a policy or the path of a policy file', TEXT, OBJECT),
  cache: FLAG,
  redact: said(CALL, 'a function (uri, contents) => Contents'),
  json: said(CALL, 'a function that gives a value in place of one without a JSON form'),
  logger: {
    is: (value) => ['warn', 'error'].every((name) => typeof (value as never)?.[name] === 'function'),
    expected: 'an object with warn() and error(), such as console',
  },
  onStart: CALL,
  onStop: CALL,
  listCache: said(OBJECT, 'an object such as { ttlMs: 60_000 }'),
  discoverCache: said(OBJECT, 'an object such as { ttlMs: 60_000 }'),
  keys: said(ITERABLE, 'an array of secrets, each a Buffer of at least 16 bytes'),
  bus: either('a URL such as "redis://localhost:6379/0"', TEXT, NULL),
  extensions: OBJECT,
};

const DETAIL: Shape<Details> = {
  name: TEXT,
  title: TEXT,
  description: TEXT,
  mimeType: TEXT,
  icons: said(LIST, 'an array of icons such as [{ src: "https://example.com/icon.png" }]'),
  audience: said(TEXTS, 'an array of "user" and "assistant", such as ["user"]'),
  priority: said(NUMBER, 'a number from 0 to 1'),
  lastModified: either('a Date, or a string such as "2025-01-31T12:00:00Z"', TEXT, DATE),
  meta: OBJECT,
  ttlMs: said(COUNT, 'a whole number of milliseconds'),
  cacheScope: oneOf('public', 'private'),
  scopes: said(TEXTS, 'an array of strings such as ["notes:read"]'),
  children: FLAG,
  size: said(COUNT, 'a whole number of bytes'),
};

/** The names of the details. */
export const DETAILS = Object.keys(DETAIL) as readonly (keyof Details)[];

const ITEM: Shape<Resource> = { uri: TEXT, ...DETAIL };

type Further = Omit<ResourceOptions, keyof Details>;
const ACCESS = said(CALL, 'a function (principal, variables) => boolean');
const FIXED: Shape<Pick<Further, 'replace' | 'parameters' | 'access'>> = {
  replace: FLAG,
  parameters: OBJECT,
  access: ACCESS,
};
const TEMPLATE: Shape<Further> = {
  ...FIXED,
  vars: OBJECT,
  extraQuery: oneOf('ignore', 'reject'),
  complete: {
    is: (value) => isObject(value) && Object.values(value).every((call) => call === undefined || CALL.is(call)),
    expected: 'an object of functions by variable such as { id: (typed) => […] }',
  },
  list: CALL,
  pages: FLAG,
  tool: either('true or a name such as "search_notes"', FLAG, TEXT),
};

const PARAM: Shape<Param> = {
  type: oneOf('string', 'integer', 'number', 'boolean', 'date', 'date-time', 'uuid'),
  values: said(TEXTS, 'an array of strings such as ["c", "f"]'),
  pattern: said(TEXT, 'a regular expression as a string'),
  description: TEXT,
};

const HTTP: Shape<HttpOptions> = {
  path: said(TEXT, 'a path such as "/mcp"'),
  health: PATH_OR_NULL,
  metrics: either('true or a path such as "/metrics"', FLAG, TEXT, NULL),
  hosts: NAMES,
  origins: ORIGINS,
  cors: FLAG,
  trustedProxies: said(TEXTS, 'an array of addresses such as ["10.0.0.0/8"]'),
  corsHeaders: said(TEXTS, 'an array of names of headers such as ["X-Team"]'),
  answers: oneOf('either', 'json', 'events'),
  polling: either('two times in milliseconds such as [30_000, 1_000]', PAIR, NULL),
  sessions: FLAG,
  instance: either('a name such as "a"', TEXT, NULL),
  sse24: either('true or two paths such as ["/sse", "/messages"]', FLAG, PAIR),
  auth: OBJECT,
};

const LISTEN: Shape<ListenOptions> = {
  ...HTTP,
  host: HOST,
  port: PORT,
  tls: said(OBJECT, 'an object { cert, key } with the paths of PEM files'),
  onListening: CALL,
};

const METHOD: Shape<MethodOptions> = {
  nameParam: TEXT,
  capability: {
    is: (value) => PAIR.is(value) && TEXT.is((value as unknown[])[0]) && isObject((value as unknown[])[1]),
    expected: 'a name with its settings such as ["tools", {}]',
  },
  lists: oneOf('tools', 'prompts'),
  timeout: said(COUNT, 'a whole number of milliseconds'),
};

const VARIABLE: Shape<VariableInfo> = {
  kind: oneOf('scalar', 'list', 'map'),
  policy: oneOf('segment', 'path', 'text', 'any'),
  empty: FLAG,
  chars: oneOf('operator', 'any'),
  required: FLAG,
};
const OF_A_VARIABLE: Hints = {
  type: 'the type of a value belongs into parameters: { parameters: { id: { type: "integer" } } }',
  values: 'the allowed values belong into parameters: { parameters: { unit: { values: ["c", "f"] } } }',
};

const MATCHING: Shape<TemplateOptions> = { extraQuery: oneOf('ignore', 'reject') };

const OF_DETAILS: Hints = {
  tags: 'put it into meta: { meta: { tags: […] } }',
  annotations: 'give audience, priority and lastModified as options of their own',
  type: 'did you mean "mimeType"?',
  contentType: 'did you mean "mimeType"?',
  metadata: 'did you mean "meta"?',
  _meta: 'did you mean "meta"?',
};
const OF_TEMPLATES = ['vars', 'extraQuery', 'complete', 'list', 'pages', 'tool'];
const FIRST = 'it belongs into the first argument, beside name and version';
const SECOND = 'it belongs into the second argument: new ResourceServer(info, options)';
const OF_INFO: Hints = Object.fromEntries(Object.keys(SERVER).map((name) => [name, SECOND]));
const OF_A_SERVER: Hints = Object.fromEntries(Object.keys(INFO).map((name) => [name, FIRST]));
const YOURS = 'the program that passes requests to this handler decides where it listens';
const OF_A_HANDLER: Hints = { host: YOURS, port: YOURS, onListening: YOURS };

/** Checks the first argument of `new ResourceServer`. */
export function checkInfo(info: unknown): asserts info is ServerInfo {
  if (!isObject(info)) {
    const name = typeof info === 'string' ? JSON.stringify(info) : '"my-server"';
    throw new TypeError(`a server is made with an object, not ${shown(info)}: new ResourceServer({ name: ${name} })`);
  }
  checkOptions('ResourceServer', info, INFO, OF_INFO);
  if (info.name === undefined) throw new TypeError('a server needs a name: new ResourceServer({ name: "my-server" })');
}

/** Checks the second argument of `new ResourceServer`. */
export function checkServerOptions(options: unknown): void {
  checkOptions('ResourceServer', options, SERVER, OF_A_SERVER);
  const { limits = {} } = options as ServerOptions;
  for (const [name, value] of Object.entries(limits)) {
    if (value === undefined || COUNT.is(value)) continue;
    const range = `expected a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`;
    throw new RangeError(`the limit ${JSON.stringify(name)} is ${shown(value)}; ${range}`);
  }
}

/** Checks the options of a registration: of a template, or of a resource without variables. */
export function checkRegistration(options: unknown, uri: string): void {
  const isTemplate = uri.includes('{');
  const hints = isTemplate ? OF_DETAILS : { ...OF_DETAILS, ...ofTemplates(options, uri) };
  if (isTemplate && (options as Partial<Details> | undefined)?.size !== undefined) {
    throw new TypeError(`unexpected option "size"; it is for resources, and ${uri} is a template`);
  }
  checkOptions('resource', options, { ...DETAIL, ...(isTemplate ? TEMPLATE : FIXED) }, hints);
  for (const [name, known] of Object.entries((options as ResourceOptions).parameters ?? {})) {
    if (!isSchema(known)) checkOptions(`parameters.${name}`, known, PARAM);
  }
}

/** Advice for options of templates that are given for a URI without variables. */
function ofTemplates(options: unknown, uri: string): Hints {
  const given = OF_TEMPLATES.filter((name) => Object.hasOwn(Object(options), name));
  if (given.length === 0) return {};
  const meant = binding.Server.suggestedTemplate(uri);
  const fix = meant === null ? '' : `; did you mean ${JSON.stringify(meant)}?`;
  const why = `it is for templates, and this URI has no variables such as {id}${fix}`;
  return Object.fromEntries(given.map((name) => [name, why]));
}

/** Checks a resource that is added, or an item of a list. */
export function checkItem(resource: unknown): void {
  checkOptions('a resource', resource, ITEM, OF_DETAILS);
  const { uri } = resource as Partial<Resource>;
  if (uri === undefined) throw new TypeError('a resource has no uri: give it one, such as { uri: "note://1" }');
}

/** Checks the options of `nodeHandler` and `fetchHandler`. */
export function checkHttp(options: unknown): void {
  checkOptions('the endpoint', options, HTTP, OF_A_HANDLER);
}

/** Checks the options of `run`. */
export function checkRun(options: unknown): void {
  if (!isObject(options)) {
    throw new TypeError(
      `run takes an object, not ${shown(options)}: run() for stdio, run({ http: { port: 8000 } }) for HTTP`,
    );
  }
  const misplaced = Object.keys(options).find((name) => Object.hasOwn(LISTEN, name));
  if (misplaced !== undefined) {
    throw new TypeError(
      `unexpected option "${misplaced}"; it belongs into http: run({ http: { ${misplaced}: ${literal(options[misplaced])} } })`,
    );
  }
  const shape: Shape<RunOptions> = { http: said(OBJECT, 'an object such as { port: 8000 }') };
  checkOptions('run', options, shape);
  if (options.http !== undefined) checkOptions('http', options.http, LISTEN);
}

/** Checks the options of a custom method. */
export function checkMethod(options: unknown): void {
  checkOptions('method', options, METHOD);
}

/** Checks the arguments of `new UriTemplate`. */
export function checkMatching(template: unknown, vars: unknown, options: unknown): void {
  if (typeof template !== 'string') {
    throw new TypeError(`the template is ${shown(template)}, expected a string such as "note://{id}"`);
  }
  checkOptions('vars', vars, Object.fromEntries(Object.keys(Object(vars)).map((name) => [name, OBJECT])));
  for (const how of Object.values(vars as object)) checkOptions('vars', how, VARIABLE, OF_A_VARIABLE);
  checkOptions('UriTemplate', options, MATCHING);
}

function literal(value: unknown): string {
  return ['string', 'number', 'boolean'].includes(typeof value) ? shown(value) : '…';
}
