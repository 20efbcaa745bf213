// A handbook that is asked questions: passages in Japanese and English, each with its document, score and position.
//
// rag:///handbook/search/{+query}  the passages that answer a question
// rag:///handbook/doc/{+id}        a document; subscribers are notified when it changes
// gdrive:///{fileId}               a file of Google Drive, if the argument is a file that says which (docs/rag.md)
import { fileURLToPath } from 'node:url';
import { providers, ResourceServer } from 'mcp-resources';

const handbook = fileURLToPath(new URL('../data/handbook', import.meta.url));
const collections = { handbook: { folder: handbook } };
const [config] = process.argv.slice(2);
if (config !== undefined) collections.drive = { drive: config };

const server = new ResourceServer({ name: 'retrieval', version: '1.0.0' });
server.mount(providers.rag(collections, { exclude: ['drafts'], hits: 3 }));
await server.run();
