// A server of metrics that pushes, for metrics.test.mjs.
import { providers, ResourceServer } from 'mcp-resources';

const metrics = providers.metrics({ interval: 50, host: true });
const server = new ResourceServer({ name: 'metrics', version: '1' });
server.mount(metrics);
metrics.push('jobs', 1, new Date(Date.now() - 60_000));
metrics.push('jobs', Number.NaN, Date.now() - 30_000);
let done = 1;
const pushes = setInterval(() => {
  done += 1;
  metrics.push('jobs', done);
}, 10);
await server.run();
clearInterval(pushes);
