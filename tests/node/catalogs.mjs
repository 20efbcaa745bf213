// A server made from a catalogue fixture through the public API, with functions that answer when they are told to.
import {
  AccessDeniedError,
  Audio,
  Completion,
  Contents,
  CustomError,
  Elicit,
  ElicitUrl,
  Embedded,
  Image,
  InputDeclinedError,
  InputRequired,
  InvalidParameterError,
  InvalidUriError,
  ListPage,
  ListRoots,
  MethodResult,
  PromptMessage,
  PromptResult,
  RateLimitedError,
  ReadResult,
  ResourceLink,
  ResourceNotFoundError,
  ResourceServer,
  Sample,
  SizeExceededError,
  Text,
  ToolResult,
} from 'mcp-resources';

/** A call of one of the author's functions. */
class Open {
  constructor(on, context) {
    this.on = on;
    this.context = context;
    this.done = false;
    this.answer = new Promise((resolve) => {
      this.resolve = resolve;
    });
  }

  /** Lets the function return, or throw. */
  respond(answer) {
    this.done = true;
    this.resolve(answer);
  }
}

/** The author's functions: each tells that it was called, and waits for what to answer. */
export class Author {
  /** @param {boolean} generates whether readers are generators */
  constructor(generates) {
    this.generates = generates;
    this.open = [];
    this.events = [];
    /** The connection that is being driven. */
    this.on = '';
  }

  reader(name) {
    const told = (variables, ctx) => this.#called('read', this.#read(name, variables, ctx), ctx);
    if (!this.generates) return async (variables, ctx) => value(await told(variables, ctx));
    return async function* (variables, ctx) {
      const answer = await told(variables, ctx);
      for (const chunk of answer.chunks ?? []) {
        yield typeof chunk === 'string' ? chunk : Buffer.from(chunk.blob, 'base64');
      }
      if ('then' in answer || !('chunks' in answer)) value(answer.then ?? answer);
    };
  }

  completer(name, variable) {
    return async (typed, chosen, ctx) => {
      const event = { handler: name, variable, value: typed, ...present({ arguments: chosen }) };
      return value(await this.#called('complete', event, ctx));
    };
  }

  lister(name, pages) {
    const ask = async (event, ctx) => value(await this.#called('list', event, ctx));
    if (pages) return (cursor, ctx) => ask({ handler: name, ...present({ cursor }) }, ctx);
    return (...given) => ask({ handler: name }, given[1]); // no parameter: it does not page itself
  }

  method(name, method) {
    return async (params, ctx) => {
      const event = { handler: name, method, ...present({ params, ...round(ctx) }) };
      return value(await this.#called('call', event, ctx));
    };
  }

  tool(handler, name) {
    return async (given, ctx) => namedValue(await this.#called('tool', this.#named(handler, name, given, ctx), ctx));
  }

  prompt(handler, name) {
    return async (given, ctx) => namedValue(await this.#called('prompt', this.#named(handler, name, given, ctx), ctx));
  }

  #named(handler, name, given, ctx) {
    return { handler, name, ...present({ arguments: given, ...round(ctx) }) };
  }

  #read(name, variables, ctx) {
    return { handler: name, uri: ctx.uri, ...present({ params: texts(variables), ...round(ctx) }) };
  }

  #called(kind, event, ctx) {
    const call = new Open(this.on, ctx);
    const number = this.open.length;
    this.open.push(call);
    // Before the call is told, because a signal that was aborted before has no event.
    ctx.signal.addEventListener('abort', () => this.events.push({ cancelled: number }));
    this.events.push({ [kind]: { ...event, ...present({ meta: ctx.meta }) } });
    return call.answer;
  }
}

/** The server of a catalogue, with everything registered. */
export function server(catalog, author) {
  const { name, version, title, description, websiteUrl, instructions } = catalog.server;
  const about = present({ title, description, websiteUrl, icons: catalog.server.icons });
  const how = { ...options(catalog.options), ...present({ instructions }) };
  const made = new ResourceServer({ name, version, ...about }, how);
  for (const extension of catalog.extensions ?? []) {
    const { handler, method, nameParam, capability, listKind, timeout } = extension;
    made.method(method, present({ nameParam, capability, lists: listKind, timeout }), author.method(handler, method));
  }
  for (const entry of [...(catalog.resources ?? []), ...(catalog.templates ?? [])]) add(made, entry, author);
  addNamed(made, catalog, author);
  return made;
}

/** All of an edit, or nothing. */
export function edit(made, step, author) {
  made.batch(() => {
    for (const removed of step.remove ?? []) {
      if (removed.tool !== undefined) made.removeTool(removed.tool);
      else if (removed.prompt !== undefined) made.removePrompt(removed.prompt);
      else if (removed.includes('{')) made.removeTemplate(removed);
      else made.removeResource(removed);
    }
    for (const entry of step.add ?? []) add(made, entry, author);
    addNamed(made, step, author);
  });
}

/** What a function returns for an answer; it may throw instead. */
export function value(answer) {
  const [, make] = VALUES.find(([name]) => name in answer);
  return make(answer);
}

/** The same for a tool or prompt: a plain array would be a value of a tool, and a result is raw as it is. */
function namedValue(answer) {
  if ('completion' in answer) return new Completion(answer.completion);
  if (!('raw' in answer)) return value(answer);
  return new MethodResult(answer.raw, present({ resultType: answer.resultType, meta: answer._meta }));
}

function add(made, entry, author) {
  if ('uriTemplate' in entry) addTemplate(made, entry, author);
  else if ('page' in entry) made.ui(entry.uri, { html: entry.text, ...details(entry), ...entry.page });
  else if ('text' in entry) made.addResource(resource(entry), { text: entry.text });
  else if ('blob' in entry) made.addResource(resource(entry), { bytes: Buffer.from(entry.blob, 'base64') });
  else made.addResource(resource(entry), { read: author.reader(entry.handler) });
}

/** The tools and prompts of a catalogue or an edit, with their schemas as they are. */
function addNamed(made, { tools = [], prompts = [] }, author) {
  for (const { name, handler, inputSchema, outputSchema, _meta: meta, ...entry } of tools) {
    const schemas = {
      ...(inputSchema && { input: { schema: inputSchema } }),
      ...(outputSchema && { output: { schema: outputSchema } }),
    };
    made.tool(name, { ...entry, ...schemas, ...(meta && { meta }) }, author.tool(handler, name));
  }
  for (const { name, handler, complete = [], _meta: meta, ...entry } of prompts) {
    const completers = complete.map((argument) => [argument, author.completer(handler, argument)]);
    const how = {
      ...entry,
      ...(meta && { meta }),
      complete: Object.fromEntries(completers),
    };
    made.prompt(name, how, author.prompt(handler, name));
  }
}

function addTemplate(made, entry, author) {
  const given = Object.entries(entry.vars ?? {});
  const parts = (words) =>
    Object.fromEntries(
      given.map(([name, said]) => [name, pick(said, words)]).filter(([, said]) => Object.keys(said).length > 0),
    );
  const handler = made.resource(
    entry.uriTemplate,
    {
      ...details(entry),
      ...present({ extraQuery: entry.extraQuery }),
      ...('tool' in entry && { tool: entry.tool === '' ? true : entry.tool }),
      parameters: parts(['description', 'type', 'values', 'pattern']),
      vars: parts(['kind', 'policy', 'empty', 'chars']),
    },
    author.reader(entry.handler),
  );
  for (const variable of entry.complete ?? []) handler.complete(variable, author.completer(entry.handler, variable));
  if ('list' in entry) handler.list(author.lister(entry.handler, entry.list === 'paged'));
  if ('access' in entry) {
    const { variable, may } = entry.access;
    handler.access((principal, variables) => (may[variables[variable]] ?? []).includes(principal));
  }
}

function resource(entry) {
  return { uri: entry.uri, ...details(entry), ...pick(entry, ['size']) };
}

/** What resources and templates have in common. */
function details(entry) {
  const words = ['name', 'title', 'description', 'mimeType', 'ttlMs', 'cacheScope', 'children', 'icons'];
  const annotations = pick(entry.annotations ?? {}, ['audience', 'priority', 'lastModified']);
  return { ...pick(entry, words), ...annotations, ...('_meta' in entry ? { meta: entry._meta } : {}) };
}

/** The engine's own names of options, as the public API has them. */
function options(given = {}) {
  const { limits, extension_capabilities: extensions, ...rest } = given;
  const named = camel(rest);
  return {
    ...named,
    ...(limits ? { limits: camel(limits) } : {}),
    ...(extensions ? { extensions: Object.fromEntries(extensions) } : {}),
    ...(named.keys ? { keys: named.keys.map((key) => Buffer.from(key)) } : {}),
  };
}

export function camel(members) {
  return Object.fromEntries(
    Object.entries(members).map(([name, member]) => [
      name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()),
      member,
    ]),
  );
}

function pick(from, words) {
  return Object.fromEntries(words.filter((word) => word in from).map((word) => [word, from[word]]));
}

function present(members) {
  return Object.fromEntries(Object.entries(members).filter(([, member]) => !isAbsent(member)));
}

/** What the client gives in a further round. */
function round({ inputs, state }) {
  return { inputs: Object.fromEntries(Object.entries(inputs).map(([key, response]) => [key, response.value])), state };
}

/** The values as they stood in the URI. */
function texts(value) {
  if (Array.isArray(value)) return value.map(texts);
  if (typeof value !== 'object') return String(value);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, texts(item)]));
}

function isAbsent(member) {
  if (member === undefined || member === null || member === '') return true;
  return typeof member === 'object' && !Array.isArray(member) && Object.keys(member).length === 0;
}

function entries(answer) {
  const made = answer.contents.map((entry) => {
    const body = 'text' in entry ? entry.text : Buffer.from(entry.blob, 'base64');
    return new Contents(body, {
      ...pick(entry, ['uri', 'mimeType']),
      ...('_meta' in entry ? { meta: entry._meta } : {}),
    });
  });
  if ('ttlMs' in answer) return new ReadResult(made, pick(answer, ['ttlMs', 'cacheScope']));
  return made.length > 0 ? made : new ReadResult([]);
}

function toolResult({ content = [], structured, isError, _meta: meta }) {
  return new ToolResult(content.map(block), { structured, isError, meta });
}

function promptResult({ messages, description, _meta: meta }) {
  const made = messages.map(({ role, content }) => new PromptMessage(block(content), role));
  return new PromptResult(made, { description, meta });
}

/** A block, as the protocol writes it. */
function block({ type, annotations, _meta: meta, ...members }) {
  const hints = { ...annotations, ...(meta && { meta }) };
  const bytes = () => Buffer.from(members.data, 'base64');
  switch (type) {
    case 'text':
      return new Text(members.text, hints);
    case 'image':
      return new Image(bytes(), members.mimeType, hints);
    case 'audio':
      return new Audio(bytes(), members.mimeType, hints);
    case 'resource_link':
      return new ResourceLink(members.uri, { ...pick(members, LINKED), ...hints });
    default:
      return new Embedded(entries({ contents: [members.resource] })[0], hints);
  }
}

const LINKED = ['name', 'title', 'description', 'mimeType', 'size', 'icons'];

function completion({ completion: given }) {
  if (Array.isArray(given)) return given;
  return new Completion(given.values, present({ total: given.total, hasMore: given.has_more }));
}

function listed(answer) {
  const items = answer.listed.map(resource);
  return 'next' in answer ? new ListPage(items, answer.next) : items;
}

function raw(answer) {
  if (Object.keys(answer).length === 1) return answer.raw;
  return new MethodResult(answer.raw, present({ resultType: answer.resultType, meta: answer._meta }));
}

function required({ input_required: given }) {
  const requests = Object.fromEntries(Object.entries(given.requests).map(([key, ask]) => [key, question(ask)]));
  return new InputRequired(requests, { state: given.state });
}

function question(ask) {
  if ('form' in ask) return new Elicit(ask.form.message, ask.form.schema);
  if ('url' in ask) return new ElicitUrl(ask.url.message, ask.url.url);
  return 'sampling' in ask ? new Sample(ask.sampling) : new ListRoots();
}

function failed({ error }) {
  const given = typeof error === 'string' ? { kind: error } : error;
  const make = ERRORS[given.kind] ?? (() => new Error('the disk is on fire'));
  throw make(given);
}

const ERRORS = {
  not_found: () => new ResourceNotFoundError(),
  access_denied: () => new AccessDeniedError(),
  invalid_uri: () => new InvalidUriError('no'),
  size_exceeded: (given) => new SizeExceededError(given.limit, given.size),
  rate_limited: (given) => new RateLimitedError(given.retryAfterMs),
  invalid_parameter: (given) => new InvalidParameterError(given.parameter, given.expected),
  input_declined: () => new InputDeclinedError(),
  custom: (given) => new CustomError(given.code, given.message, given.data),
};

const VALUES = [
  ['text', (answer) => answer.text],
  ['blob', (answer) => Buffer.from(answer.blob, 'base64')],
  ['json', (answer) => answer.json],
  ['contents', entries],
  ['completion', completion],
  ['listed', listed],
  ['content', toolResult],
  ['structured', toolResult],
  ['messages', promptResult],
  ['raw', raw],
  ['input_required', required],
  [
    'raises',
    (answer) => {
      throw new Error(answer.raises);
    },
  ],
  ['error', failed],
];
