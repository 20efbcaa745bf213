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
  type ConfigOptions,
  clock,
  config,
  type Database,
  type DbOptions,
  type DocsOptions,
  db,
  docs,
  type EnvOptions,
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
  type ResultOptions,
  Results,
  type ResultsOptions,
  type Root,
  results,
  type SkillsOptions,
  skills,
  type Variable,
} from './provider.js';
