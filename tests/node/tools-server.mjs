// A small server with a resource, tools and a prompt, for tools.test.mjs.
import { Image, PromptMessage, ResourceServer, ToolError } from 'mcp-resources';
import { z } from 'zod';

const notes = { monday: 'milk', tuesday: 'water' };
const server = new ResourceServer({ name: 'notes', version: '1.0.0' });

const note = server.resource(
  'note://{day}',
  { title: 'A note', mimeType: 'text/plain' },
  ({ day }) => notes[day] ?? '',
);

server.tool(
  'add_note',
  { description: 'Sets the note of a day.', input: z.object({ day: z.string(), text: z.string().max(20) }) },
  ({ day, text }) => {
    if (day === 'never') throw new ToolError('There is no such day.');
    notes[day] = text;
    server.notifyUpdated(`note://${day}`);
    return note.link({ day });
  },
);
server.tool(
  'count',
  {
    input: z.object({ days: z.array(z.string()).default(['monday']) }),
    output: z.object({ count: z.number(), longest: z.string().optional() }),
    annotations: { readOnlyHint: true },
  },
  async ({ days }) => ({ count: days.length, hidden: 'not in the schema' }),
);
server.tool('list', { output: z.array(z.string()) }, () => Object.keys(notes));
server.tool('picture', () => ['A pixel:', new Image(Buffer.from('iVBORw0KGgo=', 'base64'), 'image/png')]);
server.tool('plain', () => ({ a: [1, null] }));
server.prompt(
  'summary',
  {
    arguments: { day: { required: true }, tone: { values: ['short', 'long'] } },
    complete: { day: () => Object.keys(notes) },
  },
  ({ day, tone = 'short' }) => [`Sum up the note of ${day}, ${tone}.`, new PromptMessage('Of course.', 'assistant')],
);
await server.run();
