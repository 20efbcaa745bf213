// An official TypeScript client of the gateway: lists, reads, calls and watches, and prints what it has seen.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { MODERN } from './vectors.mjs';

const [sdk, program, file] = process.argv.slice(2);
const about = { name: 'test', version: '1' };
const server = { command: program, args: ['gateway', '--config', file], stderr: 'ignore' };
const uri = 'b+note://x';
let updated = () => {};
const told = new Promise((resolve) => {
  updated = resolve;
});

const mode = sdk === '2' ? { pin: MODERN } : 'legacy';
const client = sdk === '1' ? new Client1(about) : new Client(about, { versionNegotiation: { mode } });
await client.connect(sdk === '1' ? new Transport1(server) : new StdioClientTransport(server));
const hear = (message) => updated(message.params.uri);
if (sdk === '1') {
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, hear);
} else {
  client.setNotificationHandler('notifications/resources/updated', hear);
}
const uris = (await client.listResources()).resources.map((resource) => resource.uri);
const { text } = (await client.readResource({ uri })).contents[0];
if (sdk === '2') {
  await client.listen({ resourceSubscriptions: [uri] });
} else {
  await client.subscribeResource({ uri });
}
await new Promise((resolve) => setTimeout(resolve, 300));
await client.listTools();
const called = await client.callTool({ name: 'b_set', arguments: { uri: 'note://x', text: 'new' } });
const tool = JSON.parse(called.content[0].text).server;
console.log(JSON.stringify({ uris, text, tool, updated: await told }));
await client.close();
