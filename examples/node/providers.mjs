// Two providers: the time, and a folder in memory whose entries come and go.
//
// clock:///now, clock:///{+zone}  the time, told each second while somebody watches
// memory:///{+path}               100,000 notes in pages; ticker.txt changes twice a second, guest.txt comes and goes
//
// `providers.mjs PORT` serves over HTTP instead of stdio. What lies in secret/ is hidden by the guard.
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer(
  { name: 'providers', version: '1.0.0' },
  { guard: { deny: ['memory:///secret/**'] } },
);
const folder = providers.memory();

for (let number = 0; number < 100_000; number++) {
  folder.put(`notes/${String(number).padStart(5, '0')}.txt`, `note ${number}\n`);
}
const pattern = Uint8Array.from({ length: 131_072 }, (_, at) => at % 256);
folder.put('picture.bin', pattern, { mimeType: 'image/x-pattern' });
folder.put('secret/plan.txt', 'not for everybody');

let turn = 0;
function comeAndGo() {
  folder.put('ticker.txt', `turn ${turn}`);
  if (turn % 2) folder.remove('guest.txt');
  else folder.put('guest.txt', 'here');
  turn += 1;
}

server.mount(providers.clock(), folder);
comeAndGo();
setInterval(comeAndGo, 500).unref();

const port = process.argv[2];
await server.run(port ? { http: { port: Number(port) } } : {});
