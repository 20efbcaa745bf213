/**
 * Sources of resources that are ready to serve.
 *
 * ```ts
 * import { ResourceServer, providers } from 'mcp-resources';
 *
 * const folder = providers.memory();
 * server.mount(providers.clock(), folder);
 * folder.put('notes/today.md', '# Today');
 * ```
 */
export { clock, Memory, memory, Provider, type PutOptions } from './provider.js';
