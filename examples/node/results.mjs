// A cache of results: what takes long is computed once for all who ask, and kept for ten minutes.
//
// analyze:///{topic}             computes the analysis of a topic, unless it is kept, and says where it is
// wallbounce:///{analysisId}     an analysis that is kept; is listed, and watched
// wallbounce:///                 all that are kept
import { setTimeout } from 'node:timers/promises';
import { providers, ResourceServer } from 'mcp-resources';

const server = new ResourceServer({ name: 'results', version: '1.0.0' });
const results = providers.results({ scheme: 'wallbounce', ttl: '10min' });
server.mount(results);

server.resource('analyze:///{topic}', async ({ topic }) => {
  await results.getOrCompute(topic, async () => {
    await setTimeout(200); // what takes long
    return `${[...topic].length} letters`;
  });
  return `wallbounce:///${topic}`;
});

await server.run();
