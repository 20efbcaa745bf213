// Series of numbers: this machine, and what the program measures itself.
//
// metrics:///                              all series with their last values
// metrics:///{name}                        the last hour of one, such as metrics:///cpu_usage_percent; is watched
// metrics:///{name}{?from,to,step,format}  another part of it, such as metrics:///jobs_done?from=-5m&format=csv
import { providers, ResourceServer } from 'mcp-resources';

const metrics = providers.metrics({ host: true, interval: '200ms' });
const server = new ResourceServer({ name: 'machine', version: '1.0.0' });
server.mount(metrics);

// Does a job every tenth of a second, and counts them.
let done = 0;
metrics.push('jobs_done', done);
const work = setInterval(() => {
  done += 1;
  metrics.push('jobs_done', done);
}, 100);

await server.run();
clearInterval(work);
