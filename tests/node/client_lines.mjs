// A server whose answers are short, long, or the last.
import { ResourceServer } from 'mcp-resources';

/** The length of a long answer. */
export const LONG = 1_000_000;

if (process.argv[2] === 'serve') {
  const server = new ResourceServer({ name: 'lines' });
  server.resource('text://{id}', ({ id }) => id);
  server.resource('long://{id}', ({ id }) => id.repeat(LONG));
  server.resource('end://{id}', () => process.exit(0));
  server.resource('pid://{id}', () => String(process.pid));
  await server.run();
}
