/**
 * Serves a `ResourceServer` inside a server of the official SDK: a hook on its transports, which asks the core.
 *
 * Law: this module carries values between the SDK and the core. It never imports the SDK.
 */
import type { AsyncLocalStorage } from 'node:async_hooks';
import { binding, type Server } from './binding.js';
import { isObject, shown } from './check.js';
import type { ServerParts } from './driver.js';
import { EmbeddedConnection, EmbeddedDriver } from './embedded-connection.js';
import type { HttpExchange } from './embedded-listens.js';
import type { Lifespan } from './lifespan.js';
import { unsupported } from './sdk.js';
import type { LowServer, SdkFactory, SdkServer, Transport } from './sdk-types.js';

/** How a `ResourceServer` is attached. */
export interface AttachOptions {
  /** Whether the SDK's own resources are listed and read too, under the policy of the `ResourceServer`. Default: `true`. */
  readonly adopt?: boolean;
}

/**
 * The methods of a server that are used, or that only a server has. Without the last one, a transport does not say which
 * messages came over HTTP, whose senders are not local.
 */
const NEEDED = [
  'connect',
  'close',
  'setRequestHandler',
  'sendResourceUpdated',
  'getClientVersion',
  'createElicitationCompletionNotifier',
];
const ATTACHED = new WeakSet<object>();

/** The hook on a server, or on those that a factory makes. */
export class Attachment {
  /** Makes servers, if there is a factory. */
  readonly factory: SdkFactory | undefined;
  readonly driver: EmbeddedDriver;
  /** The request over HTTP that is served, for a handler that was wrapped. */
  exchange: AsyncLocalStorage<HttpExchange> | undefined;
  readonly #lifespan: Lifespan;
  #started: Promise<void> | undefined;
  #isWarned = false;

  constructor(
    name: string,
    parts: ServerParts,
    readonly app: SdkServer | SdkFactory,
    adopt: boolean,
  ) {
    check(parts.native, app);
    this.#lifespan = parts.lifespan;
    this.driver = new EmbeddedDriver(name, parts, adopt);
    if (typeof app === 'function') this.factory = (context) => this.#made(app(context), context);
    else this.#hook(lowServer(app));
  }

  /** Runs `onStop`. */
  stop(): void {
    if (this.#started !== undefined) this.#lifespan.left(this.driver.logger);
    this.#started = undefined;
  }

  #made<T extends SdkServer | PromiseLike<SdkServer>>(product: T, context: HttpContext): T {
    if (typeof (product as PromiseLike<SdkServer>)?.then === 'function') {
      return (product as PromiseLike<SdkServer>).then((server) => this.#made(server, context)) as unknown as T;
    }
    const exchange = this.exchange?.getStore();
    if (!this.#isWarned && context?.era === 'modern' && context.requestInfo !== undefined && exchange === undefined) {
      this.#isWarned = true;
      const what = 'clients of 2026-07-28 are not told of changes of attached resources';
      this.driver.warn(`${what}; serve resources.wrap(createMcpHandler(resources.factory))`);
    }
    const low = lowServer(product, 'the function that was given to attach must return a server of the SDK');
    if (!ATTACHED.has(low)) {
      if (low.transport !== undefined) throw new Error('the factory returned a server that is connected already');
      this.#hook(low);
    }
    if (exchange !== undefined) exchange.server = low;
    return product;
  }

  /** Hooks each transport when the server that is connected to it starts it: then it has set what it calls. */
  #hook(low: LowServer): void {
    ATTACHED.add(low);
    const connect = low.connect.bind(low);
    low.connect = async (transport: Transport): Promise<void> => {
      const exchange = this.exchange?.getStore();
      if (exchange !== undefined) exchange.server = undefined;
      // Before the first client, and again if it has failed.
      this.#started ??= this.#lifespan.enter();
      await this.#started.catch((error) => {
        this.#started = undefined;
        throw error;
      });
      const start = transport.start.bind(transport);
      transport.start = async () => {
        new EmbeddedConnection(this.driver, low, transport).listen();
        await start();
      };
      await connect(transport as never);
    };
  }
}

/** What `createMcpHandler` tells a factory. */
type HttpContext = { readonly era?: unknown; readonly requestInfo?: unknown } | undefined;

/** @throws {Error} `app` cannot have our resources. */
function check(native: Server, app: SdkServer | SdkFactory): void {
  if (typeof app === 'function') {
    if (!/^class\b/.test(Function.prototype.toString.call(app))) return;
    const fix = `not the class ${app.name}; pass () => new ${app.name}(…)`;
    throw new TypeError(`attach takes a server, or a function that makes one, ${fix}`);
  }
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

function lowServer(app: unknown, rule = 'attach takes a server of the SDK, or a function that makes one'): LowServer {
  const low = (app as { server?: unknown } | undefined)?.server ?? app;
  if (!isObject(low) || !('connect' in low)) {
    const fix = isObject(low) && 'fetch' in low ? '; give it what you gave to createMcpHandler, and wrap() this' : '';
    throw new TypeError(`${rule}, not ${shown(app)}${fix}`);
  }
  if ('callTool' in low) throw new TypeError('attach takes a server, not a Client; clients cannot have resources');
  const missing = NEEDED.find((name) => typeof (low as Record<string, unknown>)[name] !== 'function');
  if (missing !== undefined) throw unsupported(`Server.${missing}()`);
  return low as unknown as LowServer;
}
