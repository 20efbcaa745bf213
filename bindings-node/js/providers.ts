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
} from './provider.js';
export type {
  ApiEndpoint,
  ApiEndpoints,
  ApiOptions,
  ClockOptions,
  Collection,
  ConfigOptions,
  Database,
  DbOptions,
  DocsOptions,
  DriveCollection,
  Embedder,
  EnvOptions,
  EnvVariable,
  FilesOptions,
  GitOptions,
  MetricsOptions,
  RagOptions,
  ResultsOptions,
  Root,
  SkillsOptions,
  Vectors,
} from './provider-options.js';
