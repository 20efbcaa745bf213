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
  api,
  clock,
  config,
  db,
  docs,
  env,
  files,
  git,
  Memory,
  Metrics,
  memory,
  metrics,
  Provider,
  type PutOptions,
  type PutResultOptions,
  type ResultOptions,
  Results,
  rag,
  results,
  skills,
  upstream,
} from './provider.js';
export type {
  ApiDocument,
  ApiEndpoint,
  ApiOptions,
  ClockOptions,
  ConfigOptions,
  Database,
  DbOptions,
  DocsOptions,
  EnvOptions,
  EnvVariable,
  FilesOptions,
  GitOptions,
  MetricsOptions,
  RagOptions,
  ResultsOptions,
  ServerEntry,
  SkillsOptions,
} from './provider-options.js';
export type {
  ApiEndpoints,
  Collection,
  DriveCollection,
  Embedder,
  Root,
  Vectors,
} from './provider-values.js';
