/**
 * Serves a `ResourceServer` inside a server of the official SDK: a hook on its transports, which asks the core.
 *
 * Law: this module carries values between the SDK and the core. It never imports the SDK.
 */
import type { AsyncLocalStorage } from 'node:async_hooks';
import { binding, type MessageSender, type Server } from './binding.js';
import { isObject, shown } from './check.js';
import type { Peers } from './driver.js';
import { EmbeddedDriver } from './embedded.js';
import { type ConnectionOwner, EmbeddedConnection } from './embedded-connection.js';
import type { HttpExchange } from './embedded-listens.js';
import type { Lifespan } from './lifespan.js';
import { warned } from './log.js';
import type { AuthInfo, Extra, LowServer, SdkFactory, SdkServer } from './sdk-types.js';
import { unsupported } from './sdk-version.js';

/** How a `ResourceServer` is attached. */
export interface AttachOptions {
  /** Whether the SDK's own resources are listed and read too, under the policy of the `ResourceServer`. Default: `true`. */
  readonly adopt?: boolean;
}

/** The methods of a server that are used, or that only a server has. */
const NEEDED = [
  'connect',
  'close',
  'setRequestHandler',
  'sendResourceUpdated',
  'sendToolListChanged',
  'getClientVersion',
];
const ATTACHED = new WeakSet<object>();

/** The parts of a `ResourceServer`. */
export interface ServerParts {
  readonly native: Server;
  readonly peers: Peers;
  readonly lifespan: Lifespan;
}

/** The hook on a server, or on those that a factory makes. */
export class Attachment implements ConnectionOwner {
  /** Makes servers, if there is a factory. */
  readonly factory: SdkFactory | undefined;
  readonly driver: EmbeddedDriver;
  readonly #lifespan: Lifespan;
  readonly #name: string;
  /** The request over HTTP that is served, for a handler that was wrapped. */
  exchange: AsyncLocalStorage<HttpExchange> | undefined;
  readonly #anonymous = new binding.MessageSender(null, [], false);
  readonly #local = new binding.MessageSender(null, [], true);
  readonly #senders = new WeakMap<AuthInfo, MessageSender>();
  #started: Promise<void> | undefined;
  #isWarned = false;

  constructor(
    name: string,
    { native, peers, lifespan }: ServerParts,
    readonly app: SdkServer | SdkFactory,
    adopt: boolean,
  ) {
    const low = typeof app === 'function' ? undefined : lowServer(app);
    if (low === undefined) checkFactory(app);
    else this.#check(native, app as SdkServer, low);
    this.#name = name;
    this.#lifespan = lifespan;
    this.driver = new EmbeddedDriver(native, peers, adopt);
    if (low === undefined) {
      this.factory = (context) => {
        this.#checkWrapped(context);
        return this.#made((app as SdkFactory)(context));
      };
    } else this.#hook(low);
  }

  /** The sender of a message. */
  sender(extra: Extra | undefined, isLocal: boolean): MessageSender {
    const info = extra?.authInfo;
    if (info === undefined) return isLocal ? this.#local : this.#anonymous;
    let sender = this.#senders.get(info);
    if (sender === undefined) {
      const owner = typeof info.extra?.sub === 'string' ? info.extra.sub : info.clientId;
      sender = new binding.MessageSender(String(owner), [...(info.scopes ?? [])], false);
      this.#senders.set(info, sender);
    }
    return sender;
  }

  /** Logs what the core has found. */
  warn(): void {
    for (const warning of this.driver.native.warnings()) warned(this.driver.logger, this.#name, warning);
  }

  /** Runs `onStart` once, before the first client. */
  start(): Promise<void> {
    this.#started ??= this.#enter();
    return this.#started;
  }

  /** Runs `onStop`. */
  stop(): void {
    if (this.#started !== undefined && !this.#lifespan.isEmpty) this.#lifespan.left(this.driver.logger);
    this.#started = undefined;
  }

  async #enter(): Promise<void> {
    if (this.#lifespan.isEmpty) return;
    try {
      await this.#lifespan.enter();
    } catch (error) {
      this.#started = undefined;
      throw error;
    }
  }

  /** A handler that nobody has wrapped answers listens without this server. */
  #checkWrapped(context: { readonly era?: unknown; readonly requestInfo?: unknown } | undefined): void {
    if (this.#isWarned || context?.era !== 'modern' || context.requestInfo === undefined) return;
    if (this.exchange?.getStore() !== undefined) return;
    this.#isWarned = true;
    const fix = 'serve resources.wrap(createMcpHandler(resources.factory))';
    warned(
      this.driver.logger,
      this.#name,
      `clients of 2026-07-28 are not told of changes of attached resources; ${fix}`,
    );
  }

  #check(native: Server, app: SdkServer, low: LowServer): void {
    if (ATTACHED.has(low))
      throw new Error('a ResourceServer is attached to this server already; register everything on that one');
    if (low.transport !== undefined) throw new Error('this server is connected already; attach before connect()');
    const { _registeredTools: tools, _registeredPrompts: prompts } = app as {
      _registeredTools?: object;
      _registeredPrompts?: object;
    };
    for (const [kind, own] of [
      ['tools', tools],
      ['prompts', prompts],
    ] as const) {
      for (const name of binding.Embedding.conflicts(native, kind === 'prompts', Object.keys(own ?? {}))) {
        throw new Error(`both servers have ${name} among their ${kind}; rename one of them`);
      }
    }
  }

  #made<T extends SdkServer | PromiseLike<SdkServer>>(product: T): T {
    if (typeof (product as PromiseLike<SdkServer>)?.then === 'function') {
      return (product as PromiseLike<SdkServer>).then((server) => this.#made(server)) as unknown as T;
    }
    const low = lowServer(product);
    if (!ATTACHED.has(low)) {
      if (low.transport !== undefined) throw new Error('the factory returned a server that is connected already');
      this.#hook(low);
    }
    const exchange = this.exchange?.getStore();
    if (exchange !== undefined) exchange.server = low;
    return product;
  }

  /** Hooks each transport before the server is connected to it. */
  #hook(low: LowServer): void {
    ATTACHED.add(low);
    const connect = low.connect.bind(low);
    low.connect = async (transport: never): Promise<void> => {
      const exchange = this.exchange?.getStore();
      if (exchange !== undefined) exchange.isConnected = true;
      await this.start();
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

function lowServer(app: unknown): LowServer {
  const low = (app as { server?: unknown } | undefined)?.server ?? app;
  if (!isObject(low) || !('connect' in low)) {
    throw new TypeError(`attach takes a server of the SDK, or a function that makes one, not ${shown(app)}`);
  }
  if ('callTool' in low) throw new TypeError('attach takes a server, not a Client; clients cannot have resources');
  const missing = NEEDED.find((name) => typeof (low as Record<string, unknown>)[name] !== 'function');
  if (missing !== undefined) throw unsupported(`Server.${missing}()`);
  return low as unknown as LowServer;
}

function checkFactory(app: unknown): void {
  const { name } = app as SdkFactory;
  if (/^class\b/.test(Function.prototype.toString.call(app))) {
    throw new TypeError(
      `attach takes a server, or a function that makes one, not the class ${name}; pass () => new ${name}(…)`,
    );
  }
}
