// A live feed: a reading that changes by itself, and tells who subscribed to it.
//
// metrics://cpu/usage  load of the last minute per core, sampled twice a second
import os from 'node:os';
import { ResourceServer } from 'mcp-resources';

const INTERVAL = 500;
const URI = 'metrics://cpu/usage';

const server = new ResourceServer({ name: 'metrics', version: '1.0.0' });
let sample = { usage: 0, sampled_at: 0 };

server.resource(
  URI,
  {
    name: 'cpu_usage',
    description: 'Load of the last minute per core: 1.0 is fully busy.',
    mimeType: 'application/json',
  },
  () => sample,
);

function watchCpu() {
  const load = os.loadavg()[0] / os.availableParallelism();
  sample = { usage: Number(load.toFixed(3)), sampled_at: Date.now() / 1000 };
  server.notifyUpdated(URI); // costs nothing while nobody is subscribed
}

watchCpu();
setInterval(watchCpu, INTERVAL).unref(); // the process ends with its client
await server.run();
