/**
 * Serve the *Resources* feature of the Model Context Protocol.
 *
 * ```ts
 * import { ResourceServer } from 'mcp-resources';
 *
 * const server = new ResourceServer({ name: 'weather', version: '1.0.0' });
 *
 * server.resource('weather://{city}/forecast{?days}', async ({ city, days }) => fetchForecast(city, days));
 *
 * await server.run();
 * ```
 */
export type { AuditFunction } from './audit.js';
export {
  type Auth,
  InvalidToken,
  type JwtOptions,
  JwtVerifier,
  StaticTokens,
  type TokenVerifier,
  type Verified,
} from './auth.js';
export { Context } from './context.js';
export {
  AccessDenied,
  AskFailed,
  CustomError,
  type ErrorKind,
  InputDeclined,
  InvalidParameter,
  InvalidTemplate,
  InvalidUri,
  McpError,
  RateLimited,
  ReadTimeout,
  RegistrationError,
  ResourceNotFound,
  SizeExceeded,
  TemplateConflict,
} from './errors.js';
export type { FetchHandler } from './fetch.js';
export {
  type Asker,
  Guard,
  type OneOrMany,
  type Policy,
  type PrincipalPolicy,
  type Rate,
  type Rates,
} from './guard.js';
export {
  type Completer,
  type Listable,
  type Lister,
  type Readable,
  type Reader,
  ResourceHandler,
  type ResourceOptions,
} from './handler.js';
export type { Log, LogLevel } from './log.js';
export type { NodeHandler } from './node-handler.js';
export type {
  AnyParameter,
  Details,
  HttpOptions,
  Icon,
  Limits,
  ListenOptions,
  Param,
  Redact,
  Resource,
  ServerInfo,
  ServerOptions,
  Tls,
} from './options.js';
export {
  type CacheHint,
  type CacheScope,
  Completion,
  Contents,
  type ContentsOptions,
  Elicit,
  ElicitUrl,
  type InputRequest,
  InputRequired,
  InputResponse,
  type JsonObject,
  ListPage,
  ListRoots,
  MethodResult,
  ReadResult,
  Sample,
} from './results.js';
export type { StandardIssue, StandardResult, StandardSchema } from './schema.js';
export {
  type Lists,
  type Method,
  type MethodOptions,
  ResourceServer,
  type ResourceSource,
  type RunOptions,
} from './server.js';
export type { Stream } from './streams.js';
export type { Expandable, TemplateValue, VariableName, Variables } from './template-types.js';
export {
  Match,
  NoMatch,
  Rejected,
  type TemplateOptions,
  TemplateSet,
  UriTemplate,
  type Variable,
  type VariableInfo,
} from './templates.js';
