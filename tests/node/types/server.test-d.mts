// What the type checker makes of a registration. Nothing here runs: it is compiled.
import { McpServer as McpServer1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { createMcpHandler, type McpHttpHandler, type McpRequestContext, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import {
  Completion,
  Contents,
  type Context,
  InputRequired,
  type InputResponse,
  type Limits,
  providers,
  ReadResult,
  type ResourceHandler,
  ResourceServer,
  type ServerOptions,
  TemplateSet,
  UriTemplate,
} from 'mcp-resources';
import { Client } from 'mcp-resources/testing';
import { z } from 'zod';
import { type Equal, holds } from './equal.js';

const limits: Limits = { page: 20, readTimeout: 1_000 };
const options: ServerOptions = { limits, subscribe: false, listCache: { ttlMs: 5, cacheScope: 'public' } };
const server = new ResourceServer({ name: 'types', version: '1.0.0' }, options);
// @ts-expect-error: a server has a name
new ResourceServer({ version: '1.0.0' });
// @ts-expect-error: there is no such limit
new ResourceServer({ name: 'x', version: '1' }, { limits: { patience: 1 } });

// Variables come from the template's text, and the context has its own type.
server.resource('a://{x}/{y*}{?z}', (variables, ctx) => {
  holds<Equal<typeof variables, { x: string; y: string[]; z?: string }>>();
  holds<Equal<typeof ctx, Context>>();
  holds<Equal<typeof ctx.signal, AbortSignal>>();
  holds<Equal<typeof ctx.inputs, Readonly<Record<string, InputResponse>>>>();
  return variables.x;
});
// @ts-expect-error: the template has no `y`
server.resource('a://{x}', ({ y }) => String(y));
server.resource('a://fixed', () => 'text');

// `vars` and `parameters` change the types of the variables they name.
server.resource(
  'a://{city}{?days,unit,ids}',
  {
    mimeType: 'text/plain',
    vars: { ids: { kind: 'list' } },
    parameters: { days: z.coerce.number().default(3), unit: { values: ['c', 'f'] } },
  },
  async ({ city, days, unit, ids }) => {
    holds<Equal<typeof city, string>>();
    holds<Equal<typeof days, number>>();
    holds<Equal<typeof unit, 'c' | 'f' | undefined>>();
    holds<Equal<typeof ids, string[] | undefined>>();
    return `${city} ${days}`;
  },
);

// Only variables of the template complete or have parameters.
server.resource('a://{x}', { complete: { x: (value, chosen) => [value, chosen.x ?? ''] } }, ({ x }) => x);
// @ts-expect-error: the template has no `y`
server.resource('a://{x}', { complete: { y: () => [] } }, ({ x }) => x);
// @ts-expect-error: the template has no `y`
server.resource('a://{x}', { parameters: { y: { type: 'integer' } } }, ({ x }) => x);
// @ts-expect-error: the template has no `y`
server.resource('a://{x}', { vars: { y: { kind: 'list' } } }, ({ x }) => x);
// @ts-expect-error: there is no such detail
server.resource('a://{x}', { colour: 'red' }, ({ x }) => x);

// @ts-expect-error: a text is no list of texts
server.resource('a://{x}', { complete: { x: () => 'abc' } }, ({ x }) => x);
// @ts-expect-error: a text is no list of texts
server.resource('a://{x}', { complete: { x: async () => 'abc' } }, ({ x }) => x);
server.resource('a://{x}', { complete: { x: () => new Set(['a']) } }, ({ x }) => x);
// @ts-expect-error: a text is no list of values
server.resource('a://{x}', { list: () => 'abc' }, ({ x }) => x);
server.resource('a://{x}', { list: () => new Map([['a', 1]]).keys() }, ({ x }) => x);

// A template that is not a literal has variables of any name.
const text: string = 'a://{x}';
server.resource(text, ({ anything }) => {
  holds<Equal<typeof anything, string | string[] | Record<string, string> | undefined>>();
  return 'x';
});

// What a handler may return.
server.resource('a://1', () => new Uint8Array());
server.resource('a://2', async () => ({ json: [1, null, 'x'] }));
server.resource('a://3', () => [new Contents('x', { mimeType: 'text/x' })]);
server.resource('a://4', () => new ReadResult(new Contents('x'), { ttlMs: 1 }));
server.resource('a://5', async function* () {
  yield 'chunk';
});
server.resource('a://6', () => new ReadableStream<Uint8Array>());
server.resource('a://7', () => new InputRequired({}, { state: 1 }));
server.resource('a://8', () => 1);
server.resource('a://8a', async () => new Response('x'));
server.resource('a://8b', () => new Blob([]));
server.resource('a://8c', () => ({ contents: [{ uri: 'a://8c', text: 'x' }] }));
interface Row {
  readonly id: number;
  readonly inner?: Row;
}
server.resource('a://8d', (): Row => ({ id: 1 }));
server.resource('a://8e', (): Row[] => [{ id: 1 }]);
// @ts-expect-error: a Map has no JSON form
server.resource('a://8f', () => new Map());
// @ts-expect-error: a Set has no JSON form
server.resource('a://8g', () => new Set());
// @ts-expect-error: a promise in an array has no JSON form
server.resource('a://8h', () => [Promise.resolve(1)]);
// @ts-expect-error: a function has no JSON form
server.resource('a://8i', () => () => 1);
// @ts-expect-error: nothing is no contents
server.resource('a://9', () => undefined);

// A type of a parameter.
server.resource('a://10/{n}', { parameters: { n: { type: 'integer' } } }, ({ n }) => n.toFixed());
// @ts-expect-error: there is no such type
server.resource('a://11/{n}', { parameters: { n: { type: 'int' } } }, ({ n }) => `${n}`);
// @ts-expect-error: the template has no such variable
server.resource('a://12/{n}', { parameters: { m: { type: 'integer' } } }, ({ n }) => `${n}`);

// A lister returns values of the only variable, or of the only one that every URI has.
server.resource('a://13/{n}{?q,r}', ({ n }) => n).list(() => [1, 2n, 'three']);
// @ts-expect-error: two variables that every URI has
server.resource('a://14/{n}/{m}', ({ n }) => n).list(() => [1]);

// The handle of a registration.
const handler = server.resource('a://{x}/{y}', ({ x }) => x);
holds<Equal<typeof handler extends ResourceHandler<infer T> ? T : never, 'a://{x}/{y}'>>();
handler.complete('x', () => new Completion(['a'], { total: 1 }));
handler.list(() => [
  { uri: 'a://1/2', name: 'one' },
  { x: 1, y: 2, title: 'Two' },
]);
handler.expand({ x: 1, y: 'two' });
// @ts-expect-error: the template has no `z`
handler.expand({ z: 1 });
// @ts-expect-error: the compiled part is no public member
server.native;
// @ts-expect-error: there is no such option of `run`
server.run({ port: 8000 });
// @ts-expect-error: the template has no `z`
handler.complete('z', () => []);

// One source of a constant resource.
server.addResource({ uri: 'a://text' }, { text: 'x' });
server.addResource({ uri: 'a://bytes' }, { bytes: new Uint8Array() });
server.addResource({ uri: 'a://read' }, { read: (_, ctx) => ctx.uri ?? '' });
// @ts-expect-error: either text or bytes
server.addResource({ uri: 'a://both' }, { text: 'x', bytes: new Uint8Array() });

// Templates by themselves.
const template = new UriTemplate('a://{x}{?y*}');
template.expand({ x: 1, y: ['a', 'b'] });
// @ts-expect-error: the template has no `z`
template.expand({ z: 1 });
const found = new TemplateSet([template, 'b://{z}']).match('a://1');
if ('params' in found) holds<Equal<typeof found.template, string>>();

// The client of tests.
const client = await Client.connect(server, { revision: '2025-11-25', capabilities: { elicitation: {} } });
holds<Equal<typeof client extends Client ? true : false, true>>();
const contents = await client.read('a://1', { inputs: { name: { action: 'accept' } } });
holds<Equal<(typeof contents)[number], Contents>>();

const folder: providers.Memory = providers.memory();
server.mount(providers.clock(), folder);
folder.put('a/b', 'text', { mimeType: 'text/x' });
folder.put('a/b', Uint8Array.of(1));
const isGone: boolean = server.unmount(folder);
// @ts-expect-error: a path is no provider
server.mount('./docs');
// @ts-expect-error: a function makes it
new providers.Memory();
// @ts-expect-error: the clock holds nothing
providers.clock().put('a', 'b');
// @ts-expect-error: a value has no bytes
folder.put('a', { b: isGone });

// A server of either generation can be attached, and the factory keeps its type.
const resources = server.attach((_: McpRequestContext) => new McpServer({ name: 'x', version: '1' }), { adopt: false });
serveStdio(resources.factory);
holds<Equal<ReturnType<typeof resources.factory>, McpServer>>();
const wrapped: McpHttpHandler = resources.wrap(createMcpHandler(resources.factory));
void wrapped.notify.resourceUpdated('a://fixed');
server.attach(new McpServer1({ name: 'x', version: '1' }));
// @ts-expect-error: a class is no server
server.attach(McpServer);

// What `onStart` returns is the type of `ctx.lifespan`, in every function of the server.
interface Pool {
  fetch(id: string): string;
}
const pooled = new ResourceServer({ name: 'pooled' }, { onStart: async (): Promise<Pool> => ({ fetch: (id) => id }) });
holds<Equal<typeof pooled, ResourceServer<Pool>>>();
pooled
  .resource('row://{id}', ({ id }, ctx) => {
    holds<Equal<typeof ctx, Context<Pool>>>();
    // @ts-expect-error: there is no such method
    ctx.lifespan.fetsh(id);
    return ctx.lifespan.fetch(id);
  })
  .list((_cursor, ctx) => [ctx.lifespan.fetch('1')])
  .complete('id', (value, _chosen, ctx) => [ctx.lifespan.fetch(value)])
  .access((principal, _variables, ctx) => ctx.lifespan.fetch(principal) !== '');
pooled.tool('first', (_args, ctx) => ctx.lifespan.fetch('1'));
pooled.prompt('ask', (_args, ctx) => ctx.lifespan.fetch('1'));
pooled.method('vendor/row', (_params, ctx) => ({ row: ctx.lifespan.fetch('1') }));
pooled.addResource({ uri: 'row://first' }, { read: (_variables, ctx) => ctx.lifespan.fetch('1') });
const shared = (_variables: object, ctx: Context) => String(ctx.lifespan);
pooled.resource('row://shared', shared);
holds<Equal<Context['lifespan'], unknown>>();
// A function that takes any server takes this one.
const any: ResourceServer = pooled;
any.close();
const fromFile = ResourceServer.fromConfig('team.yaml', { onStart: () => 7, watch: false });
fromFile.resource('n://1', (_variables, ctx) => ctx.lifespan.toFixed());
// @ts-expect-error: the guard stands in the file
ResourceServer.fromConfig('team.yaml', { guard: { deny: '**' } });
