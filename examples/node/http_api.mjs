// Answers of an HTTP API, under a scheme of our own, so that clients ask this server and not the API.
//
// api://users/{id}  GET <base>/users/<id>
//
//     node examples/node/http_api.mjs http://127.0.0.1:8080      (or API_BASE_URL in the environment)
import { ResourceNotFoundError, ResourceServer } from 'mcp-resources';

const BASE = process.argv[2] ?? process.env.API_BASE_URL ?? 'http://127.0.0.1:8080';

const server = new ResourceServer({ name: 'api', version: '1.0.0' });

server.resource(
  'api://users/{id}',
  {
    name: 'user',
    description: 'A user of the API.',
    mimeType: 'application/json',
    ttlMs: 5_000,
    parameters: { id: { type: 'integer' } },
  },
  async ({ id }, ctx) => {
    const response = await fetch(`${BASE}/users/${id}`, { signal: ctx.signal }); // ends with the request
    if (response.status === 404) throw new ResourceNotFoundError();
    // Logged here; the client hears that the read failed, and no more.
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    return response.text();
  },
);

await server.run();
