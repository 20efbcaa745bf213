/**
 * Serves a `ResourceServer` inside a server of the official SDK: a hook on its transports, which asks the core.
 *
 * Law: this module carries values between the SDK and the core. It never imports the SDK.
 */
import type { AsyncLocalStorage } from 'node:async_hooks';
import { binding, type Server } from './binding.js';
import { isObject, shown } from './check.js';
import type { Peers } from './driver.js';
import { EmbeddedConnection, EmbeddedDriver } from './embedded-connection.js';
import type { HttpExchange, HttpOwner } from './embedded-listens.js';
import type { Lifespan } from './lifespan.js';
import { warned } from './log.js';
import { unsupported } from './sdk.js';
import type { LowServer, SdkFactory, SdkServer } from './sdk-types.js';

/** How a `ResourceServer` is attached. */
export interface AttachOptions {
  /** Whether the SDK's own resources are listed and read too, under the policy of the `ResourceServer`. Default: `true`. */
  readonly adopt?: boolean;
}

/** The methods of a server that are used, or that only a server has. */
const NEEDED = ['connect', 'close', 'setRequestHandler', 'sendResourceUpdated', 'getClientVersion'];
/** Where it is missing, a transport does not say which messages came over HTTP, whose senders are not local. */
const NEWEST = 'createElicitationCompletionNotifier';
const ATTACHED = new WeakSet<object>();
const FIX = 'serve resources.wrap(createMcpHandler(resources.factory))';

/** The parts of a `ResourceServer`. */
export interface ServerParts {
  readonly native: Server;
  readonly peers: Peers;
  readonly lifespan: Lifespan;
}

/** The hook on a server, or on those that a factory makes. */
export class Attachment implements HttpOwner {
  /** Makes servers, if there is a factory. */
  readonly factory: SdkFactory | undefined;
  readonly driver: EmbeddedDriver;
  /** The request over HTTP that is served, for a handler that was wrapped. */
  exchange: AsyncLocalStorage<HttpExchange> | undefined;
  readonly #name: string;
  readonly #lifespan: Lifespan;
  #started: Promise<void> | undefined;
  #isWarned = false;

  constructor(
    name: string,
    { native, peers, lifespan }: ServerParts,
    readonly app: SdkServer | SdkFactory,
    adopt: boolean,
  ) {
    const make = typeof app === 'function' ? app : undefined;
    if (make === undefined) check(native, app as SdkServer);
    else if (/^class\b/.test(Function.prototype.toString.call(make))) {
      const fix = `not the class ${make.name}; pass () => new ${make.name}(…)`;
      throw new TypeError(`attach takes a server, or a function that makes one, ${fix}`);
    }
    this.#name = name;
    this.#lifespan = lifespan;
    this.driver = new EmbeddedDriver(native, peers, adopt);
    if (make === undefined) this.#hook(lowServer(app));
    else this.factory = (context) => this.#made(make(context), context);
  }

  /** Logs what the core has found. */
  warn(): void {
    for (const warning of this.driver.native.warnings()) warned(this.driver.logger, this.#name, warning);
  }

  /** Runs `onStop`. */
  stop(): void {
    if (this.#started !== undefined) this.#lifespan.left(this.driver.logger);
    this.#started = undefined;
  }

  /** Runs `onStart` once, before the first client. */
  async #start(): Promise<void> {
    this.#started ??= this.#lifespan.enter();
    try {
      await this.#started;
    } catch (error) {
      this.#started = undefined;
      throw error;
    }
  }

  #made<T extends SdkServer | PromiseLike<SdkServer>>(product: T, context: HttpContext): T {
    if (typeof (product as PromiseLike<SdkServer>)?.then === 'function') {
      return (product as PromiseLike<SdkServer>).then((server) => this.#made(server, context)) as unknown as T;
    }
    const exchange = this.exchange?.getStore();
    if (!this.#isWarned && context?.era === 'modern' && context.requestInfo !== undefined && exchange === undefined) {
      this.#isWarned = true;
      const what = 'clients of 2026-07-28 are not told of changes of attached resources';
      warned(this.driver.logger, this.#name, `${what}; ${FIX}`);
    }
    const low = lowServer(product);
    if (!ATTACHED.has(low)) {
      if (low.transport !== undefined) throw new Error('the factory returned a server that is connected already');
      this.#hook(low);
    }
    if (exchange !== undefined) exchange.server = low;
    return product;
  }

  /** Hooks each transport before the server is connected to it. */
  #hook(low: LowServer): void {
    ATTACHED.add(low);
    const connect = low.connect.bind(low);
    low.connect = async (transport: never): Promise<void> => {
      const exchange = this.exchange?.getStore();
      if (exchange !== undefined) exchange.server = undefined;
      await this.#start();
      const connection = new EmbeddedConnection(this, low, transport);
      try {
        await connect(transport);
      } catch (error) {
        connection.close();
        throw error;
      }
    };
  }
}

/** What `createMcpHandler` tells a factory. */
type HttpContext = { readonly era?: unknown; readonly requestInfo?: unknown } | undefined;

function check(native: Server, app: SdkServer): void {
  const low = lowServer(app);
  if (ATTACHED.has(low)) {
    throw new Error('a ResourceServer is attached to this server already; register everything on that one');
  }
  if (low.transport !== undefined) throw new Error('this server is connected already; attach before connect()');
  const { _registeredTools: tools = {}, _registeredPrompts: prompts = {} } = app as unknown as Record<string, object>;
  for (const [kind, own] of Object.entries({ tools, prompts })) {
    for (const name of binding.Embedding.conflicts(native, kind === 'prompts', Object.keys(own))) {
      throw new Error(`both servers have ${name} among their ${kind}; rename one of them`);
    }
  }
}

function lowServer(app: unknown): LowServer {
  const low = (app as { server?: unknown } | undefined)?.server ?? app;
  if (!isObject(low) || !('connect' in low)) {
    throw new TypeError(`attach takes a server of the SDK, or a function that makes one, not ${shown(app)}`);
  }
  if ('callTool' in low) throw new TypeError('attach takes a server, not a Client; clients cannot have resources');
  const missing = [...NEEDED, NEWEST].find((name) => typeof (low as Record<string, unknown>)[name] !== 'function');
  if (missing !== undefined) throw unsupported(`Server.${missing}()`);
  return low as unknown as LowServer;
}
