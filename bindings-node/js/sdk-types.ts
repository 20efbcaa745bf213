/** The parts of the SDK that are used, which is not a dependency. */

/** A server of the SDK: an `McpServer` or `Server` of `@modelcontextprotocol/server` 2.x or `@modelcontextprotocol/sdk` 1.32. */
export interface SdkServer {
  connect(transport: never): Promise<void>;
  close(): Promise<void>;
}
/** A function that makes a server of the SDK for each connection or request. */
export type SdkFactory = (context: never) => SdkServer | PromiseLike<SdkServer>;
/** A handler that `createMcpHandler` of the SDK made. */
export interface SdkHandler {
  readonly fetch: (request: Request, options?: never) => Promise<Response>;
  readonly close: () => Promise<void>;
}

/** A server, below the `McpServer`. */
export interface LowServer extends SdkServer {
  readonly transport?: unknown;
  getNegotiatedProtocolVersion?(): string | undefined;
}
export interface Message {
  readonly id?: string | number;
  readonly method?: string;
}
/** What a transport says of a message. */
export interface Extra {
  readonly authInfo?: AuthInfo;
  readonly requestInfo?: unknown;
  readonly request?: unknown;
}
export interface AuthInfo {
  readonly clientId: string;
  readonly scopes?: readonly string[];
  readonly extra?: { readonly sub?: unknown };
}
export type Receive = (message: Message, extra?: Extra) => void;
export type Send = (message: Message, options?: { readonly relatedRequestId?: string | number }) => Promise<void>;
export interface Transport {
  readonly sessionId?: string | undefined;
  onmessage?: Receive | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  start(): Promise<void>;
  send: Send;
  close(): Promise<void>;
  /** The pipe of a channel of `serveStdio`, whose listens pass no server. */
  readonly _wire?: Transport;
}
