// An HTTP API as declared endpoints: no function is written.
//
// api:///directory/user/{+id}   a user of the API; is polled while it is watched
//
// node examples/node/api_endpoints.mjs http://127.0.0.1:8080
import { providers, ResourceServer } from 'mcp-resources';

const base = process.argv[2] ?? 'http://127.0.0.1:8080';

const server = new ResourceServer({ name: 'api', version: '1.0.0' });
// The API is on this machine; others need no `privateNetworks`.
server.mount(providers.api({ directory: { endpoints: { user: `${base}/users/{id}` } } }, { privateNetworks: true }));
await server.run();
