/**
 * Serve resources, tools and prompts of the Model Context Protocol.
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
export type { AttachOptions } from './attach.js';
export type { AuditFunction } from './audit.js';
export {
  type Auth,
  InvalidTokenError,
  type JwtOptions,
  JwtVerifier,
  StaticTokens,
  type TokenVerifier,
  type Verified,
} from './auth.js';
export {
  Audio,
  type Block,
  type BlockOptions,
  Embedded,
  Image,
  type LinkOptions,
  PromptMessage,
  PromptResult,
  ResourceLink,
  type Said,
  Text,
  ToolResult,
} from './blocks.js';
export { Client, type WatchOptions } from './client.js';
export type {
  Answerer,
  Answers,
  CallOptions,
  ClientOptions,
  ClientTarget,
  CommonClientOptions,
  ConfigOptions,
} from './client-options.js';
export {
  Change,
  ListedResource,
  ListedTemplate,
  Progress,
  Question,
  type ReadValue,
  ServerAbout,
} from './client-values.js';
export { Context } from './context.js';
export {
  AccessDeniedError,
  AskFailedError,
  ConfigError,
  CustomError,
  type ErrorKind,
  type FailureKind,
  InputDeclinedError,
  InvalidParameterError,
  InvalidTemplateError,
  InvalidUriError,
  McpError,
  RateLimitedError,
  ReadFailedError,
  ReadTimeoutError,
  RegistrationError,
  ResourceNotFoundError,
  SizeExceededError,
  TemplateConflictError,
  ToolError,
} from './errors.js';
export { type ServerEvent, ServerEventBus, type ServerEventBusOptions } from './event-bus.js';
export type { FetchHandler } from './fetch.js';
export {
  Guard,
  type NamePolicy,
  type OneOrMany,
  type Policy,
  type PrincipalPolicy,
  type Rate,
  type Rates,
  type Requester,
} from './guard.js';
export { ResourceHandler } from './handler.js';
export type {
  Access,
  AccessBatch,
  Completer,
  Jsonable,
  Listable,
  Listed,
  Lister,
  Readable,
  Reader,
  ResourceOptions,
} from './handler-types.js';
export type { ToJson } from './json.js';
export type { Log, Logger, LogLevel } from './log.js';
export type { NodeHandler } from './node-handler.js';
export type {
  AnyParameter,
  ConfigServerOptions,
  Details,
  HttpOptions,
  Icon,
  Limits,
  ListenOptions,
  MethodOptions,
  Param,
  Redact,
  Resource,
  RunOptions,
  ServerInfo,
  ServerOptions,
  Tls,
} from './options.js';
export * as providers from './providers.js';
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
export type { SdkFactory, SdkHandler, SdkServer } from './sdk-types.js';
export {
  type Lists,
  type Method,
  ResourceServer,
  type ResourceSource,
} from './server.js';
export type { WireContents, WireResult } from './shapes.js';
export type { Stream } from './streams.js';
export type {
  Expandable,
  TemplateOptions,
  TemplateValue,
  Variable,
  VariableInfo,
  VariableName,
  Variables,
} from './template-types.js';
export {
  Match,
  NoMatch,
  Rejected,
  TemplateSet,
  UriTemplate,
} from './templates.js';
export type { WireBlock, WireToolResult } from './tool-shapes.js';
export type {
  CheckedSchema,
  NamedArgument,
  PromptArgument,
  PromptArguments,
  Promptable,
  PromptFunction,
  PromptOptions,
  PromptValues,
  ToolAnnotations,
  ToolAnswer,
  ToolArguments,
  Toolable,
  ToolFunction,
  ToolOptions,
  ToolSchema,
} from './tool-types.js';
export type { UiCsp, UiOptions, UiPermission } from './ui.js';
export type { Watcher } from './watches.js';
