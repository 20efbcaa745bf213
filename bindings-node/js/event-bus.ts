/** The bus between the processes of a server, for servers of the official SDK. */
import { binding, type SharedEvents } from './binding.js';
import { checkOptions, checkText, ITERABLE, OBJECT, said, TEXT } from './check.js';
import { translated } from './errors.js';
import { failed, type Logger, warned } from './log.js';

/** An event of the SDK for TypeScript: what has changed, and the URI of a resource. */
export interface ServerEvent {
  readonly kind: string;
  readonly uri?: string;
}

/** The options of {@link ServerEventBus}. */
export interface ServerEventBusOptions {
  /** The name of the server, which all of its processes share. */
  readonly name: string;
  /** Secrets of at least 16 bytes that all of its processes share. They seal the messages. */
  readonly keys: Iterable<Uint8Array>;
  /** Takes the message that the bus is lost, and that it is back. Default: `console`. */
  readonly logger?: Logger;
}

const OPTIONS = {
  name: TEXT,
  keys: said(ITERABLE, 'an array of secrets, each a Buffer of at least 16 bytes'),
  logger: said(OBJECT, 'an object with warn() and error(), such as console'),
};

type Listener = (event: ServerEvent) => void;

/**
 * The `ServerEventBus` of the official SDK, shared by all processes of a server.
 *
 * ```ts
 * const bus = new ServerEventBus('redis://localhost:6379/0', { name: 'notes', keys: [secret] });
 * const handler = createMcpHandler(makeServer, { bus });
 * ```
 *
 * Servers of this library with the same name, keys and bus tell it of their changes, and hear of its events. The `params` of an
 * event reach the listeners of this process alone.
 */
export class ServerEventBus {
  readonly #native: SharedEvents;
  readonly #listeners = new Map<symbol, Listener>();
  readonly #logger: Logger;
  readonly #name: string;

  /**
   * Connects, without waiting for it.
   *
   * @param url - the bus, as the option `bus` of `ResourceServer` has it.
   * @throws {TypeError} an argument has another type.
   * @throws {RegistrationError} the URL has another form, or a key is too short, or there is none.
   */
  constructor(url: string, options: ServerEventBusOptions) {
    checkText('the URL of the bus', url, 'redis://localhost:6379/0');
    checkOptions('ServerEventBus', options, OPTIONS);
    const { name, keys, logger = console } = options;
    checkText('name', name, 'notes');
    this.#logger = logger;
    this.#name = name;
    // The function is held for ever, so it must not hold the bus.
    const own = new WeakRef(this);
    const bell = (): void => {
      const bus = own.deref();
      if (bus !== undefined) bus.#take();
    };
    this.#native = translated(() => new binding.SharedEvents(url, name, [...keys] as never, bell));
  }

  /** Tells all listeners of all processes of an event. Never waits for the bus. */
  publish(event: ServerEvent): void {
    if (!this.#native.announce(event.kind, event.uri)) {
      throw new TypeError(`${JSON.stringify(event.kind)} is no kind of event, expected one such as "resource_updated"`);
    }
    this.#deliver(event);
  }

  /** Calls `listener` with each event. Returns a function that ends this. */
  subscribe(listener: Listener): () => void {
    const token = Symbol('listener');
    this.#listeners.set(token, listener);
    return () => {
      this.#listeners.delete(token);
    };
  }

  /** Leaves the bus, after all events were sent. Events of this process still reach its own listeners. */
  close(): void {
    this.#native.stop();
  }

  #take(): void {
    const { events, lines } = this.#native.take();
    for (const line of lines) warned(this.#logger, this.#name, line);
    for (const event of events) this.#deliver(event);
  }

  #deliver(event: ServerEvent): void {
    for (const listener of [...this.#listeners.values()]) {
      try {
        listener(event);
      } catch (error) {
        failed(this.#logger, listener.name || 'a listener', event.uri ?? event.kind, error);
      }
    }
  }
}
