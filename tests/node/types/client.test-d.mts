// What the type checker makes of a client. Nothing here runs: it is compiled.
import {
  type Change,
  Client,
  type ClientOptions,
  type Completion,
  type Contents,
  type FailureKind,
  type ListedResource,
  type ListedTemplate,
  type Question,
  ReadFailedError,
  ResourceServer,
  type ServerAbout,
} from 'mcp-resources';
import { type Equal, holds } from './equal.js';

const options: ClientOptions = {
  resources: ['file:///project/**'],
  timeout: 1_000,
  env: { LOG: 'info' },
  answers: { elicitation: (question: Question) => ({ action: 'accept', content: question.params }) },
  onNote: (server, note) => console.error(server, note),
};
const client = new Client(['server', '--all'], options);
new Client('https://example.com/mcp', { headers: { Authorization: 'Bearer x' } });
new Client(new ResourceServer({ name: 'x' }), { resources: '*' });
// @ts-expect-error: there is no such question
new Client(['server'], { answers: { tools: () => ({}) } });
// @ts-expect-error: an answer is an object
new Client(['server'], { answers: { roots: () => 7 } });
// @ts-expect-error: globs stand in an array
new Client(['server'], { resources: 'file:///project/**' });
Client.fromConfig('agents.yaml', { agent: 'frontend' });
// @ts-expect-error: the allow-list stands in the file
Client.fromConfig('agents.yaml', { resources: '*' });

for await (const resource of client.list()) {
  holds<Equal<typeof resource, ListedResource>>();
  holds<Equal<typeof resource.size, number | undefined>>();
}
for await (const template of client.listTemplates({ server: 'notes' })) {
  holds<Equal<typeof template, ListedTemplate>>();
}
const controller = new AbortController();
const value = await client.read('a://b', {
  server: 'notes',
  timeout: 5,
  signal: controller.signal,
  onProgress: ({ progress, total }) => progress / (total ?? 1),
});
holds<Equal<typeof value, string | Buffer | Contents[]>>();
holds<Equal<Awaited<ReturnType<typeof client.readContents>>, Contents[]>>();
const completed = await client.complete('a://{x}', 'x', 'b', { y: '1' });
holds<Equal<typeof completed, Completion>>();
for await (const change of client.watch('a://b')) {
  holds<Equal<typeof change, Change>>();
  holds<Equal<typeof change.contents, string | Buffer | Contents[] | null>>();
}
for await (const server of client.listChanges()) holds<Equal<typeof server, string>>();
holds<Equal<Awaited<ReturnType<typeof client.about>>, ServerAbout>>();
const [failed] = client.failures.values();
if (failed instanceof ReadFailedError) {
  holds<Equal<typeof failed.kind, FailureKind>>();
  holds<Equal<typeof failed.code, number | undefined>>();
}
await client.close();
await client[Symbol.asyncDispose]();
