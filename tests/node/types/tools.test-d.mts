// What the type checker makes of tools and prompts. Nothing here runs: it is compiled.
import {
  type Context,
  Image,
  type JsonObject,
  PromptMessage,
  ResourceLink,
  ResourceServer,
  type ServerOptions,
  ToolError,
  ToolResult,
} from 'mcp-resources';
import * as valibot from 'valibot';
import { z } from 'zod';
import { type Equal, holds } from './equal.js';

const options: ServerOptions = { exposeAsTools: true, tools: true, limits: { callTimeout: 5_000 } };
const server = new ResourceServer({ name: 'types' }, options);

// Arguments have the types that the schema gives.
server.tool('zod', { input: z.object({ day: z.string(), limit: z.number().default(3) }) }, (args, ctx) => {
  holds<Equal<typeof args, { day: string; limit: number }>>();
  holds<Equal<typeof ctx, Context>>();
  if (args.limit > 5) throw new ToolError('The limit is 5.');
  return args.day;
});
server.tool('none', (args) => {
  holds<Equal<typeof args, JsonObject>>();
});
server.tool('titled', { title: 'x', annotations: { readOnlyHint: true } }, (args) => {
  holds<Equal<typeof args, JsonObject>>();
  return [new Image(Buffer.alloc(1)), new Image(Buffer.alloc(1), 'image/jpeg'), 'text'];
});
const schema = { type: 'object' };
server.tool('by hand', { input: { schema } }, (args) => {
  holds<Equal<typeof args, JsonObject>>();
  return { any: [1, 'x'] };
});
server.tool('checked', { input: { schema, validate: (given: unknown) => ({ given, size: 1 }) } }, ({ size }) => {
  holds<Equal<typeof size, number>>();
  return size;
});
server.tool('valibot', { input: { schema, validate: valibot.object({ a: valibot.number() }) } }, (args) => {
  holds<Equal<typeof args, { a: number }>>();
  return new ResourceLink('a://b', { title: 'x' });
});
// @ts-expect-error: the arguments have no `dya`
server.tool('zod', { input: z.object({ day: z.string() }) }, ({ dya }) => String(dya));
// @ts-expect-error: bytes have no content of their own
server.tool('bytes', () => Buffer.alloc(1));
// @ts-expect-error: there is no such option
server.tool('x', { inputSchema: z.object({}) }, () => 'x');
// @ts-expect-error: there is no such hint
server.tool('x', { annotations: { readOnly: true } }, () => 'x');

// The result has the type that the output schema accepts.
server.tool('output', { output: z.object({ total: z.number() }) }, async () => ({ total: 7 }));
server.tool('output', { output: z.object({ total: z.number() }) }, () => new ToolResult('no', { isError: true }));
// @ts-expect-error: the total is a number
server.tool('output', { output: z.object({ total: z.number() }) }, () => ({ total: 'x' }));

// Arguments of prompts are texts, and optional unless they are required.
server.prompt('greet', { arguments: { name: { required: true }, tone: { values: ['warm'] } } }, ({ name, tone }) => {
  holds<Equal<typeof name, string>>();
  holds<Equal<typeof tone, string | undefined>>();
  return [name, new PromptMessage('Yes?', 'assistant')];
});
server.prompt('listed', { arguments: [{ name: 'a', required: true }] }, ({ a }) => {
  holds<Equal<typeof a, string | undefined>>();
  return a ?? '';
});
server.prompt('plain', () => 'text');
server.prompt('typed', { arguments: z.object({ count: z.coerce.number() }) }, ({ count }) => {
  holds<Equal<typeof count, number>>();
  return `${count}`;
});
// @ts-expect-error: the prompt has no argument `nmae`
server.prompt('greet', { arguments: { name: {} }, complete: { nmae: () => [] } }, () => 'x');
// @ts-expect-error: a number is no message
server.prompt('greet', () => 5);

// Links take the values of the template.
const note = server.resource('note://{day}', ({ day }) => day);
note.link({ day: 'monday' }, { title: 'Monday' });
server.resource('config://app', () => 'x').link();
// @ts-expect-error: the template has no `dya`
note.link({ dya: 'monday' });

// A template can be a tool too.
server.resource('book://{shelf}', { tool: 'search_pages' }, ({ shelf }) => shelf);
server.resource('day://{day}', { tool: true }, ({ day }) => day);
