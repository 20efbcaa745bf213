// The second fixture server in Node: what it has stands in `methods.json`, for every language; here is how that is done.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  AskFailedError,
  CustomError,
  Elicit,
  InputRequired,
  ListRoots,
  MethodResult,
  ResourceServer,
  Sample,
} from 'mcp-resources';

const METHODS = JSON.parse(readFileSync(new URL('methods.json', import.meta.url), 'utf8'));
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

const server = new ResourceServer(
  { name: 'conformance-full', version: '1.0.0' },
  { logging: true, listCache: { ttlMs: 60_000, cacheScope: 'public' } },
);

for (const [name, { steps, inputSchema, ...about }] of Object.entries(METHODS.tools)) {
  const input = inputSchema && { schema: inputSchema };
  server.tool(name, { ...about, ...(input && { input }) }, (given, ctx) => perform(steps, given, ctx));
}
for (const [name, { steps, ...about }] of Object.entries(METHODS.prompts)) {
  const complete = Object.fromEntries((about.arguments ?? []).map((argument) => [argument.name, () => []]));
  server.prompt(name, { ...about, complete }, (values, ctx) => perform(steps, values, ctx));
}

/** Takes the steps of a tool or prompt until one answers. */
async function perform(steps, given, ctx) {
  const inputs = Object.fromEntries(Object.entries(ctx.inputs).map(([key, { value }]) => [key, value]));
  const scope = { arguments: given, meta: ctx.meta ?? {}, inputs, state: ctx.state };
  for (const step of steps) {
    const answer = holds(step.when ?? {}, scope) ? await take(step, scope, ctx) : undefined;
    if (answer !== undefined) return answer;
  }
  throw new CustomError(-32603, 'no step has answered');
}

/** Whether a step is to be taken. */
function holds({ inputs = [], state, declared = [] }, scope) {
  const has = scope.meta[CAPABILITIES] ?? {};
  return (
    inputs.every((key) => key in scope.inputs) &&
    (state === undefined || state === scope.state) &&
    declared.every((name) => name in has)
  );
}

/** What a step answers, if it does. */
async function take(step, scope, ctx) {
  if ('log' in step) ctx.log.info(step.log);
  if ('progress' in step) ctx.progress(...step.progress);
  if ('wait' in step) await sleep(step.wait);
  if ('notify' in step) server.notifyListChanged(step.notify);
  if ('ask' in step) {
    try {
      scope.result = await ctx.ask(step.ask[0], filled(step.ask[1], scope));
    } catch (error) {
      if (!(error instanceof AskFailedError)) throw error;
      return error.message;
    }
  }
  if ('require' in step) {
    const requests = Object.entries(step.require).map(([key, ask]) => [key, asked(ask)]);
    return new InputRequired(Object.fromEntries(requests), { state: filled(step.state, scope) });
  }
  return 'answer' in step ? new MethodResult(filled(step.answer, scope)) : undefined;
}

function asked({ form, sampling }) {
  if (form !== undefined) return new Elicit(form.message, form.schema);
  return sampling === undefined ? new ListRoots() : new Sample(sampling);
}

/** `value`, its `{path.to.member}` filled in: texts as they are, anything else as JSON. */
function filled(value, scope) {
  if (Array.isArray(value)) return value.map((item) => filled(item, scope));
  if (typeof value === 'string') return value.replace(/\{([\w.]+)\}/g, (_, path) => text(path.split('.'), scope));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, filled(member, scope)]));
}

function text(path, scope) {
  const found = path.reduce((at, name) => at?.[name], scope);
  return typeof found === 'string' ? found : JSON.stringify(found ?? null);
}

for (const { text: body, blob, ...about } of METHODS.resources) {
  server.addResource(about, blob === undefined ? { text: body } : { bytes: Buffer.from(blob, 'base64') });
}

server.resource(
  'test://template/{id}/data',
  { name: 'template', description: 'One of many.', mimeType: 'application/json' },
  ({ id }) => ({ id, templateTest: true, data: `Data for ID: ${id}` }),
);

const [way, port] = process.argv.slice(2);
if (way === '--http' && port !== undefined) {
  await server.run({ http: { port: Number(port), polling: [200, 100] } });
} else {
  console.error('usage: server.mjs --http PORT');
  process.exitCode = 1;
}
