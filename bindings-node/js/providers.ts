/**
 * Sources of resources that are ready to serve.
 *
 * ```ts
 * import { ResourceServer, providers } from 'mcp-resources';
 *
 * const folder = providers.memory();
 * server.mount(providers.files('.'), providers.clock(), folder);
 * folder.put('notes/today.md', '# Today');
 * ```
 */
export {
  type ApiEndpoint,
  type ApiEndpoints,
  type ApiOptions,
  api,
  type ClockOptions,
  type ConfigOptions,
  clock,
  config,
  type Database,
  type DbOptions,
  type DocsOptions,
  db,
  docs,
  type EnvOptions,
  type EnvVariable,
  env,
  type FilesOptions,
  files,
  type GitOptions,
  git,
  Memory,
  Metrics,
  type MetricsOptions,
  memory,
  metrics,
  Provider,
  type PutOptions,
  type PutResultOptions,
  type RagOptions,
  type ResultOptions,
  Results,
  type ResultsOptions,
  type Root,
  rag,
  results,
  type SkillsOptions,
  skills,
} from './provider.js';
export type { Collection, DriveCollection, Embedder, Vectors } from './rag.js';
