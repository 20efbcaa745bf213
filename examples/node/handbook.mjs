// A handbook in Japanese and English: pages of Markdown, their sections, and a search over all of them.
//
// docs:///handbook/{+page}          a page, or a section of it with `#slug`; subscribers are notified when it changes
// docs:///handbook/search/{+query}  the pages that have all of some words, as JSON
import { fileURLToPath } from 'node:url';
import { providers, ResourceServer } from 'mcp-resources';

const handbook = fileURLToPath(new URL('../data/handbook', import.meta.url));

const server = new ResourceServer({ name: 'handbook', version: '1.0.0' });
server.mount(providers.docs({ handbook }, { exclude: ['drafts'] }));
await server.run();
